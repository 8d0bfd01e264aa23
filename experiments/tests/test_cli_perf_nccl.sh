#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_cli_perf_nccl.sh - zipccl perf --on nccl over the doubles of cudart and NCCL
#
# test_cli_perf_nccl.sh PROGRAM    zipccl-perf linked with the doubles; ranks as threads and as processes
set -u
program=$1
root=$PWD
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
bad=0

failed() {
    echo "failed: $*"
    bad=1
}

# works TEXT OPTION... - perf --on nccl, of threads
works() {
    "$program" perf --on nccl "${@:2}" >out 2>err && grep -qF -- "$1" out && [ ! -s err ] ||
        failed "${*:2}: $(cat out err)"
}

# refuses TEXT VARIABLE=VALUE... - with a launcher's variables
refuses() {
    env "${@:2}" "$program" perf all_gather --on nccl -b 4K -T 1 >out 2>err
    [ $? -eq 2 ] && grep -qF -- "$1" err || failed "${*:2}: $(cat out err)"
}

# processes N COMMON... - N processes as torchrun starts them, but by hand
processes() {
    local n=$1 r pids=
    shift
    for r in $(seq $((n - 1)) -1 0); do
        RANK=$r WORLD_SIZE=$n LOCAL_RANK=$r "$program" perf --on nccl "$@" >out.$r 2>err.$r &
        pids="$pids $!"
    done
    for r in $pids; do
        wait "$r" || failed "a process: $(cat err.*)"
    done
    grep -q 'Out of bounds values : 0 OK' out.0 || failed "$n processes: $(cat out.0 err.*)"
    [ ! -s out.1 ] || failed "rank 1 printed: $(cat out.1)"
}

for op in all_gather reduce_scatter all_reduce alltoall alltoallv sendrecv broadcast; do
    works "Out of bounds values : 0 OK" $op -b 128K -t 4 -n 1 -w 1 --mode native,compressed --ranks-per-node 2
done
works "fixed ring" all_gather -b 256K -t 2 -n 1 --strategy "fixed ring" --nchunks 2
works "0 OK" all_gather -b 64K -t 4 -n 1 -d fp8_e4m3 --mode compressed -J a.json --csv a.csv
grep -q '"nccl"' a.json || failed "the JSON does not say nccl"
awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
         { rows++; if (!($at["encode_s"] > 0 && $at["decode_s"] > 0)) rows = -9 } END { exit rows < 1 }' a.csv ||
    failed "kernels are not timed: $(cat a.csv)"
works "0 OK" alltoallv -b 128K -t 3 -n 2 --mode raw,compressed --gate all -J g.json
grep -q '"gate"' g.json || failed "the JSON does not say which gate"
NCCL_TESTS_SPLIT="MOD 2" works "each of the groups" all_reduce -b 64K -t 4 -n 1
processes 3 alltoallv -b 128K -n 1 -w 1 --mode compressed
processes 2 all_reduce -b 128K -n 2 -w 1 --mode compressed --gate all
MASTER_ADDR=127.0.0.1 MASTER_PORT=$((30000 + $$ % 2000)) processes 2 all_reduce -b 64K -n 1 -w 1 --mode compressed

if command -v mpirun >/dev/null; then
    "$root"/tests/run_mpi.sh 3 "$program" perf reduce_scatter --on nccl -b 128K -n 1 --mode raw,compressed \
        >out 2>err && grep -q 'Out of bounds values : 0 OK' out || failed "mpirun: $(cat out err)"
fi
# A step of a trace, every element checked.
"$program" replay "$root/traces/samples/moe4" --on nccl --gaps skip -n 1 -w 0 -J r.json >out 2>err &&
    grep -q 'GPUs over NCCL' out && grep -q '"on"' r.json || failed "replay: $(cat out err)"

"$program" perf all_gather --gate all >out 2>err
[ $? -eq 2 ] && grep -qF -- "--gate is of --on nccl" err || failed "--gate of CPUs: $(cat out err)"
refuses "has no GPU" RANK=8 WORLD_SIZE=9 LOCAL_RANK=8
refuses "without MASTER_PORT" RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1
refuses "MASTER_PORT=\"x\"" RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=x
exit $bad
