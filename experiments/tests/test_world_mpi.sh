#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_world_mpi.sh - worlds of MPI's processes under mpirun, and under what looks like torchrun
# test_world_mpi.sh RUN_MPI PROGRAM
set -u
run=$1 program=$2
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
command -v mpirun >/dev/null || { echo "skipped: no mpirun here"; exit 77; }
failures=0

# expect CODE TEXT COMMAND... - CODE "not0": any but 0, within 10 s
expect() {
    local code=$1 text=$2 rc
    shift 2
    timeout 10 "$@" >"$out" 2>&1
    rc=$?
    if [ "$code" = not0 ] && [ $rc -ne 0 ] && [ $rc -ne 124 ]; then
        code=$rc
    fi
    if [ "$rc" != "$code" ] || ! grep -qF -- "$text" "$out"; then
        echo "FAILED: $*: exit code $rc, expected $code and \"$text\":"
        cat "$out"
        failures=$((failures + 1))
    fi
}

expect 0 "4 ranks on 1 nodes" "$run" 4 "$program" ok
expect 0 "5 ranks on 3 nodes" "$run" 5 "$program" ok 2
expect 0 "1 ranks on 1 nodes" "$run" 1 "$program" ok
expect not0 "corrupt data" "$run" 3 "$program" fail
expect not0 "rank 1 has failed or left the others" "$run" 3 "$program" leave
expect not0 "for rank 1, to send 4 bytes" "$run" 3 "$program" late
# A launcher that does not bring up MPI: each process would be a world of its own.
expect 2 "torchrun has started 2 processes (WORLD_SIZE), but MPI sees a world of 1" \
    env RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 "$run" alone "$program"
expect 2 "srun --mpi=pmix" env SLURM_PROCID=1 SLURM_NTASKS=2 "$run" alone "$program"
expect not0 "torchrun says rank 0 of 9, but Open MPI says rank" \
    env RANK=0 WORLD_SIZE=9 "$run" 2 "$program"

echo "$failures failures"
[ $failures -eq 0 ]
