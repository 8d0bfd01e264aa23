#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_real_gpu.sh - the validation's scripts with 2 ranks on the doubles: preflight, stages, going on
#
# test_real_gpu.sh BUILD_DIR    which has tests/perf_emulated
set -u
root=$PWD
program=$(realpath "$1")/tests/perf_emulated
run=$root/experiments/real_gpu/run.sh
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
bad=0

failed() {
    echo "failed: $*"
    bad=1
}

"$run" --list | grep -q '^preflight  1 min' || failed "--list"
for wrong in "-n x --launch local" "-n 2" "-n 2 --launch local --stages nothing" "-n 3 --launch local --one-node 2" --no; do
    # shellcheck disable=SC2086
    "$run" --program "$program" $wrong >out 2>err
    [ $? -eq 2 ] || failed "$wrong: $(cat out err)"
done

works() {
    "$run" -n 2 --launch local --program "$program" --tiny -o r --one-node 1 "$@" >out 2>err || failed "$*: $(cat out err)"
}
works --stages preflight,all_gather
command -v nvidia-smi >/dev/null || grep -q 'WARNING: a rank sees no GPU' err || failed "no word of no GPU: $(cat err)"
grep -q 'zipccl-rank 1 of 2' out && grep -q 'bits of alltoall, plain and compressed: right' out || failed "preflight: $(cat out)"
grep -q '"on": "nccl"' r/all_gather.json || failed "all_gather's result"
# A stage that was cut has no result: it is run again, the others are not.
rm r/all_gather.json
works --stages preflight,all_gather,reduce_scatter
grep -q 'preflight: done before' out && grep -q '^all_gather: [0-9]* s' out && [ -s r/reduce_scatter.json ] ||
    failed "going on: $(cat out)"
# An empty result is none.
: >r/all_gather.json
works --stages all_gather
grep -q '^all_gather: [0-9]* s' out && [ -s r/all_gather.json ] || failed "an empty result: $(cat out)"
# Results of other settings are not taken for these.
other() {
    local name=$1
    shift
    "$run" --launch local --program "$program" -o r --stages all_gather "$@" >out 2>err
    [ $? -eq 2 ] && grep -q "settings.txt: $name" err || failed "other settings, $*: $(cat out err)"
}
other "-n 2, now -n 4" -n 4 --tiny --one-node 1
other "--one-node 1, now --one-node none" -n 2 --tiny
other "--tiny 1, now --tiny 0" -n 2 --one-node 1
other "--cluster none, now --cluster h100" -n 2 --one-node 1 --tiny --cluster h100
# Too few ranks come up.
"$run" -n 2 --launch "env RANK=0 WORLD_SIZE=1" --program "$program" --tiny -o s --stages preflight >out 2>err
[ $? -eq 2 ] && grep -q '0 of 2 ranks seen' err || failed "a missing rank: $(cat out err)"
if command -v mpirun >/dev/null; then
    "$run" -n 2 --launch "$root/tests/run_mpi.sh 2" --program "$program" --tiny -o m --stages preflight >out 2>err ||
        failed "mpirun: $(cat out err)"
fi
exit $bad
