#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# device_check.sh - what one GPU does with the kernels: right, how fast, over NCCL; in under 5 minutes
#
# gpu/device_check.sh [-o RESULT.json] [-B BUILD_DIR]
#     builds preset "gpu" for this GPU alone, checks every type against the scalar row, times encoding
#     and decoding from 64 KiB to 1 GiB against a copy, runs NCCL of one rank, and compute-sanitizer
#     on small sizes where it is installed.  One table on standard output, one JSON file.
# gpu/device_check.sh --emulated PROGRAM [-o RESULT.json]
#     the same on the emulator, tiny sizes, as a test: not run on a GPU.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
emulated='' result=device_check.json build=build-device

usage() {
    sed -n '4,10s/^# \{0,1\}//p' "$0"
}
while [ $# -gt 0 ]; do
    case $1 in
    -o) result=${2:?-o needs a file} && shift 2 ;;
    -B) build=${2:?-B needs a folder} && shift 2 ;;
    --emulated) emulated=${2:?--emulated needs the program} && shift 2 ;;
    -h | --help) usage && exit 0 ;;
    *) echo "device_check.sh: unknown argument '$1'; --help shows how" >&2 && exit 2 ;;
    esac
done

if [ -n "$emulated" ]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    [ "$result" != device_check.json ] || result=$folder/result.json
    "$emulated" --emulated -J "$result" | tee "$folder/table"
    grep -q '^EMULATED: .*NOT RUN ON A GPU' "$folder/table"
    grep -q '"emulated": true' "$result" && grep -q '"zipccl.device_check"' "$result" &&
        grep -q '"good": true' "$result"
    ! "$emulated" >/dev/null 2>&1 || { echo "runs without --emulated" >&2 && exit 1; }
    echo "sanitizer not run: no GPU here"
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
code=0
"$build/zipccl-device-check" -J "$result" || code=$?
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
