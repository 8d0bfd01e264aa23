#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_cli_perf_nccl.sh - zipccl perf --on nccl over the doubles of cudart and NCCL
#
# test_cli_perf_nccl.sh PROGRAM [ZIPCCL]
#     PROGRAM is zipccl-perf linked with the doubles, with ranks as threads and as processes; ZIPCCL makes plans
set -u
program=$1
zipccl=${2:-}
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
works ", ratio" all_gather -b 64K -t 2 -n 1 --effort ratio --mode compressed --cluster laptop --cluster-dir "$root/models/clusters"
"$program" perf all_gather --on nccl -b 64K -t 2 -n 1 --effort ratio --mode compressed >out 2>err
[ $? -eq 2 ] && grep -q 'effort ratio: .* no codec rates' err || failed "--effort ratio without rates: $(cat out err)"
works "0 OK" alltoallv -b 128K -t 3 -n 2 --mode raw,compressed --gate all -J g.json
grep -q '"gate"' g.json || failed "the JSON does not say which gate"
NCCL_TESTS_SPLIT="MOD 2" works "each of the groups" all_reduce -b 64K -t 4 -n 1
processes 3 alltoallv -b 128K -n 1 -w 1 --mode compressed
processes 2 all_reduce -b 128K -n 2 -w 1 --mode compressed --gate all
MASTER_ADDR=127.0.0.1 MASTER_PORT=$((30000 + $$ % 2000)) processes 2 all_reduce -b 64K -n 1 -w 1 --mode compressed

# launched NAME RANKS COMMAND... - its table says RANKS ranks and no wrong element
launched() {
    "${@:3}" >out 2>err && grep -q 'Out of bounds values : 0 OK' out && grep -q "measured, $2 ranks" out ||
        failed "$1 with $2 ranks: $(cat out err)"
}

# srun N NODES LIST COMMAND... - N processes with the variables that srun gives its tasks, rank 0 last
srun() {
    local n=$1 r pids= code=0
    for r in $(seq $((n - 1)) -1 0); do
        SLURM_PROCID=$r SLURM_NTASKS=$n SLURM_LOCALID=$r SLURM_JOB_ID=$$ SLURM_STEP_ID=0 SLURM_NNODES=$2 \
            SLURM_STEP_NUM_NODES=$2 SLURM_STEP_NODELIST=$3 SLURM_NODELIST=$3 "${@:4}" &
        pids="$pids $!"
    done
    for r in $pids; do
        wait "$r" || code=$?
    done
    return $code
}

launched srun 4 srun 4 1 here "$program" perf all_gather --on nccl -b 64K -n 1 -w 0 --mode compressed
# A GPU for each task, number 0 in each.
ZIPCCL_EMU=devices=1 CUDA_VISIBLE_DEVICES=0 launched "srun --gpus-per-task=1" 2 srun 2 1 here "$program" perf all_gather --on nccl \
    -b 64K -n 1 -w 0
# Of several hosts Slurm's list says where rank 0 is.
launched "srun on two hosts" 3 srun 3 2 'localhost,other[3-4]' "$program" perf all_reduce --on nccl -b 64K -n 1 -w 0
srun 2 2 'n[3-' "$program" perf all_gather --on nccl -b 4K -T 1 >out 2>err && failed "a broken list of hosts: $(cat out)"
grep -q 'SLURM_STEP_NODELIST="n\[3-": expected a list of hosts' err || failed "a broken list of hosts: $(cat err)"
if command -v mpirun >/dev/null; then
    launched mpirun 3 "$root"/tests/run_mpi.sh 3 "$program" perf reduce_scatter --on nccl -b 128K -n 1 --mode raw,compressed
    launched mpirun 5 "$root"/tests/run_mpi.sh 5 "$program" perf all_reduce --on nccl -b 64K -n 1 -w 0 --mode compressed
    launched mpirun 8 "$root"/tests/run_mpi.sh 8 "$program" perf all_gather --on nccl -b 64K -n 1 -w 0 --mode compressed \
        --ranks-per-node 4
else
    echo "mpirun: left out, it is not here"
fi
for python in python3 /usr/bin/python3; do
    "$python" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)' 2>/dev/null && break
    python=
done
if [ -n "$python" ]; then
    # Debian 12's torch 1.13 trips over Python 3.11's empty flags: -r and -t name a rank that is not there.
    launched torchrun 3 "$python" -m torch.distributed.run --nproc_per_node 3 --master_port $((32000 + $$ % 2000)) \
        -r 9:1 -t 9:1 --no_python "$program" perf all_gather --on nccl -b 64K -n 1 -w 0 --mode compressed
    ! grep -q "Traceback" err || failed "torchrun: $(cat err)"
else
    echo "torchrun: left out, PyTorch is not here"
fi
refuses "set MASTER_ADDR to its host" OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=0 \
    OMPI_COMM_WORLD_LOCAL_SIZE=2
# A plan made elsewhere, exactly.
if [ -n "$zipccl" ]; then
    for op in all_gather reduce_scatter alltoallv; do
        "$zipccl" plan $op --count 28000 --cluster a100-8x8-200g --ranks 4 --ranks-per-node 2 --mode compressed \
            -o $op.plan >/dev/null 2>err || failed "zipccl plan: $(cat err)"
        works "Out of bounds values : 0 OK" $op --plan $op.plan -t 4 --ranks-per-node 2 -n 1 -w 1 -J p.json
        grep -q "\"value\": \"$(sed -n 's/.*"digest": "\(.*\)",/\1/p' $op.plan)\"" p.json || failed "not the plan of $op: $(cat p.json)"
    done
fi
# A step of a trace, every element checked.
"$program" replay "$root/traces/samples/moe4" --on nccl --gaps skip -n 1 -w 0 -J r.json >out 2>err &&
    grep -q 'GPUs over NCCL' out && grep -q '"on"' r.json || failed "replay: $(cat out err)"

"$program" perf all_gather --gate all >out 2>err
[ $? -eq 2 ] && grep -qF -- "--gate is of --on nccl" err || failed "--gate of CPUs: $(cat out err)"
refuses "has no GPU" RANK=8 WORLD_SIZE=9 LOCAL_RANK=8
refuses "local rank 1 of --on nccl has no GPU" RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 ZIPCCL_EMU=devices=1
refuses "without MASTER_PORT" RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1
refuses "; with a program between the launcher and this one" RANK=0 WORLD_SIZE=2 LOCAL_RANK=0
refuses "MASTER_PORT is set without MASTER_ADDR" RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 MASTER_ADDR= MASTER_PORT=29500
refuses "MASTER_PORT=\"x\"" RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=x
exit $bad
