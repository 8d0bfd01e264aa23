#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# device_check.sh - what one GPU does with the kernels: right, how fast, over NCCL; in under 5 minutes
#
# gpu/device_check.sh [-o RESULT.json] [-B BUILD_DIR] [--nvcomp LIBNVCOMP] [--dietgpu LIBDIETGPU]
#     builds preset "gpu" for this GPU alone, checks every type against the scalar row, times encoding
#     and decoding from 64 KiB to 1 GiB against a copy, runs NCCL of one rank, and compute-sanitizer
#     on small sizes where it is installed.  nvCOMP 5 is measured as well where it is found (pip's
#     nvidia-libnvcomp too) or named, DietGPU where its library is named and PyTorch is there.  One table
#     on standard output, one JSON file.
# gpu/device_check.sh --emulated PROGRAM [-o RESULT.json] [--nvcomp DOUBLE]
#     the same on the emulator, tiny sizes, as a test: not run on a GPU.
set -euo pipefail
from=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
emulated='' nvcomp=() dietgpu='' result=device_check.json build=build-device

usage() {
    sed -n '4,12s/^# \{0,1\}//p' "$0"
}
# python - one with PyTorch, if there is one: python3's own or the system's
python() {
    local python
    for python in python3 /usr/bin/python3; do
        "$python" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)' 2>/dev/null && break
    done
    echo "$python"
}
# take VARIABLE WHAT OPTION [VALUE]... - the value, a path of where this script was called
take() {
    [ -n "${4:-}" ] || { echo "device_check.sh: $3 needs $2" >&2 && exit 2; }
    case $4 in /*) printf -v "$1" %s "$4" ;; *) printf -v "$1" %s "$from/$4" ;; esac
}
while [ $# -gt 0 ]; do
    case $1 in
    -o) take result 'a file' "$@" && shift 2 ;;
    -B) take build 'a folder' "$@" && shift 2 ;;
    --nvcomp)
        take library 'a library' "$@"
        case $2 in */*) nvcomp=(--nvcomp "$library") ;; *) nvcomp=(--nvcomp "$2") ;; esac # a name alone: the loader's
        shift 2
        ;;
    --dietgpu) take dietgpu 'a library' "$@" && shift 2 ;;
    --emulated) take emulated 'the program' "$@" && shift 2 ;;
    -h | --help) usage && exit 0 ;;
    *) echo "device_check.sh: unknown argument '$1'; --help shows how" >&2 && exit 2 ;;
    esac
done

if [ -n "$emulated" ]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    [ "$result" != device_check.json ] || result=$folder/result.json
    "$emulated" --emulated "${nvcomp[@]}" -J "$result" | tee "$folder/table"
    # has FILE TEXT... - lines with these are there
    has() {
        local file=$1 text
        for text in "${@:2}"; do
            grep -q -- "$text" "$file" || { echo "device_check.sh: no '$text' in $file" >&2 && cat "$file" >&2 && exit 1; }
        done
    }
    has "$folder/table" '^EMULATED: .*NOT RUN ON A GPU'
    has "$result" '"emulated": true' '"zipccl.device_check"' '"good": true'
    ! "$emulated" >/dev/null 2>&1 || { echo "runs without --emulated" >&2 && exit 1; }
    if [ ${#nvcomp[@]} -gt 0 ]; then
        has "$folder/table" 'nvCOMP ANS encode' 'nvCOMP Bitcomp decode' '^nvCOMP    version number 5300$'
        has "$result" '"peer": "nvCOMP ANS"'
        for what in old:'found version number 4100, expected 5000 to 5999' wrong:'what comes back is not what went in' \
            status:'CompressAsync returned status 10'; do
            DOUBLE_NVCOMP=${what%%:*} "$emulated" --emulated --only-peers "${nvcomp[@]}" >"$folder/table"
            has "$folder/table" "not measured: .*${what#*:}"
            ! grep 'nvCOMP ANS encode' "$folder/table" || exit 1
        done
    fi
    echo "sanitizer not run: no GPU here"
    # A check that ends without a result, with stand-ins for the tools: what an earlier one left is not taken for it.
    mkdir "$folder/tools" "$folder/build"
    printf '#!/bin/sh\necho 9.0\n' >"$folder/tools/nvidia-smi"
    printf '#!/bin/sh\n' >"$folder/tools/cmake"
    printf '#!/bin/sh\nexit 2\n' >"$folder/build/zipccl-device-check"
    chmod +x "$folder"/tools/* "$folder/build/zipccl-device-check"
    echo '{}' >"$folder/old.json"
    ! PATH=$folder/tools:$PATH gpu/device_check.sh -B "$folder/build" -o "$folder/old.json" --dietgpu none >"$folder/table" 2>&1 ||
        { echo "a failed check is none" >&2 && exit 1; }
    has "$folder/table" '^no result'
    ! grep 'wrote' "$folder/table" || exit 1
    has "$folder/old.json" '^{}$'
    "$(python)" experiments/tests/double_dietgpu.py x --most 65536 --repeats 3 -o "$result" >"$folder/table" || code=$?
    cat "$folder/table"
    if [ ${code:-0} -ne 77 ]; then
        [ ${code:-0} -eq 0 ] || exit 1
        has "$folder/table" 'DietGPU decode' 'DietGPU   not measured: .*not what went in'
        has "$result" '"dietgpu"' '"good": true'
    fi
    exit 0
fi

command -v nvidia-smi >/dev/null || { echo "device_check.sh: no nvidia-smi, so no GPU here" >&2 && exit 2; }
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d '. ')
nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,temperature.gpu,power.draw \
    --format=csv | head -n 2
echo "building for sm_$capability in $build ..."
started=$SECONDS
mkdir -p "$build"
if ! { cmake --preset gpu -B "$build" -DCMAKE_CUDA_ARCHITECTURES="$capability-real" -DZIPCCL_WITH_MPI=OFF &&
    cmake --build "$build" -j "$(nproc)" --target zipccl-device-check; } >"$build/device_check.log" 2>&1; then
    tail -n 40 "$build/device_check.log" >&2
    echo "device_check.sh: building failed; all of it stands in $build/device_check.log" >&2
    exit 1
fi
echo "built in $((SECONDS - started)) s"
# pip has nvCOMP where no loader looks.
[ ${#nvcomp[@]} -gt 0 ] || for file in $(python3 -c 'import nvidia.libnvcomp as n; print(n.__path__[0])' 2>/dev/null)/lib64/libnvcomp.so.5; do
    [ ! -e "$file" ] || nvcomp=(--nvcomp "$file")
done
code=0 result_of=$build/device_check.began
touch "$result_of"
"$build/zipccl-device-check" "${nvcomp[@]}" -J "$result" || code=$?
[ ! "$result" -nt "$result_of" ] || result_of=''
if [ -n "$dietgpu" ] && [ -n "$result_of" ]; then
    echo "DietGPU   not measured: there is no result to add to"
elif [ -n "$dietgpu" ]; then
    timeout 90 "$(python)" experiments/device/device_dietgpu.py "$dietgpu" -o "$result" || echo "DietGPU   left out"
else
    echo "DietGPU   not measured: --dietgpu names no library"
fi
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null || true)
if [ -n "$sanitizer" ]; then
    for tool in memcheck racecheck; do
        if timeout 60 "$sanitizer" --tool "$tool" --error-exitcode 9 "$build/zipccl-device-check" --tiny \
            >"$build/$tool.log" 2>&1; then
            echo "sanitizer $tool: nothing found"
        else
            rc=$?
            [ $rc -eq 124 ] && echo "sanitizer $tool: stopped after 60 s, nothing known" ||
                { echo "sanitizer $tool: FAILED, see $build/$tool.log" && code=1; }
        fi
    done
else
    echo "sanitizer not run: compute-sanitizer is not installed"
fi
if [ -z "$result_of" ]; then
    echo "wrote $result after $((SECONDS - started)) s in all"
else
    echo "no result after $((SECONDS - started)) s in all"
fi
exit $code
