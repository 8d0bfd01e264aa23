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
while [ $# -gt 0 ]; do
    case $1 in
    -o) result=${2:?-o needs a file} && shift 2 ;;
    -B) build=${2:?-B needs a folder} && shift 2 ;;
    --nvcomp) nvcomp=(--nvcomp "${2:?--nvcomp needs a library}") && shift 2 ;;
    --dietgpu) dietgpu=${2:?--dietgpu needs a library} && shift 2 ;;
    --emulated) emulated=${2:?--emulated needs the program} && shift 2 ;;
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
code=0
"$build/zipccl-device-check" "${nvcomp[@]}" -J "$result" || code=$?
if [ -n "$dietgpu" ]; then
    timeout 90 "$(python)" experiments/device_dietgpu.py "$dietgpu" -o "$result" || echo "DietGPU   left out"
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
echo "wrote $result after $((SECONDS - started)) s in all"
exit $code
