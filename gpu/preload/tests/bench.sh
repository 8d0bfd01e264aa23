#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# bench.sh - what a call costs before NCCL sees it: bench.sh BUILD_FOLDER/preload_tests [CALLS]
set -eu
room=$1
calls=${2:-1000000}
cudart=$room/double
export ZIPCCL_STATS=0
one() {
    printf '%-28s' "$1"
    shift
    env "$@" "$room/zipccl_preload_bench" "$calls" 2>/dev/null
}
one "alone" LD_LIBRARY_PATH="$room/null:$cudart"
for mode in off observe; do
    one "preloaded, $mode" LD_LIBRARY_PATH="$room/null:$cudart" LD_PRELOAD="$room/../libzipccl-preload.so" ZIPCCL_MODE=$mode
    one "forwarding, $mode" LD_LIBRARY_PATH="$room/forwarding:$room/null:$cudart" ZIPCCL_MODE=$mode
done
