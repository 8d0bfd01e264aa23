#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# measure.sh - compressed and adaptive against raw on the testbed: 4 ops, 4 tensors from training, 32 MiB per rank
#
# measure.sh OUTPUT_FOLDER TENSOR_FOLDER [RATE...]   (rates: 200mbit 1gbit)
# One JSON of 'zipccl perf' per rate, op and tensor, and of MPI's blocking collective per rate and op;
# summary.sh makes the table.  The environment's BUILD names the build folder (build); with LEARN=N mode
# adaptive makes N calls before, and what it has learnt then stays for the row; OPS names fewer ops.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
[ $# -ge 2 ] || { echo "usage: measure.sh OUTPUT_FOLDER TENSOR_FOLDER [RATE...]" >&2; exit 2; }
out=$1 tensors=$2 build=${BUILD:-build} learn=${LEARN:-0}
[[ $learn =~ ^[0-9]+$ ]] || { echo "measure.sh: LEARN is '$learn', expected a number of calls" >&2; exit 2; }
shift 2
[ $# -gt 0 ] || set -- 200mbit 1gbit
testbed=experiments/testbed/testbed.sh
name=zm$$
mib=$((1 << 20))

inputs="parameters=dense.safetensors:allgather.param.layer3.mlp.step219
gradients=dense.safetensors:reducescatter.grad.layer3.mlp.step219
activations=dense.safetensors:p2p.pp.hidden.stage0-1.step219
tokens=moe.safetensors:alltoall.dispatch.layer2.step299"

mkdir -p "$out"
state=$(mktemp -d)
trap '$testbed down --name $name; rm -rf "$state"' EXIT
{
    echo "date: $(date -u +%Y-%m-%dT%H:%M:%SZ)"
    echo "machine: $(nproc) x $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), Linux $(uname -r)"
    echo "$(mpirun --version | head -n 1)"
    echo "revision: $(git describe --always --dirty 2>/dev/null || echo unknown)"
    echo "command: ${OPS:+OPS=\"$OPS\" }${LEARN:+LEARN=$LEARN }experiments/testbed/measure.sh"
    echo "load when started: $(cut -d ' ' -f 1-3 /proc/loadavg)"
} >"$out/machine.txt"

for rate in "$@"; do
    chunks=4 iters=4
    [ "$rate" != 1gbit ] || chunks=8 iters=7
    $testbed up --name $name -n 4 -r "$rate"
    for op in ${OPS:-all_gather reduce_scatter all_reduce alltoall}; do
        # nccl-tests' size of an all-gather is what arrives, of the others what each rank sends.
        size=$((32 * mib)) n=$iters
        [ $op != all_gather ] || size=$((128 * mib)) n=$(((iters + 1) / 2))
        $testbed mpirun --name $name "$build/tests/mpi_baseline" $op $((32 * mib)) $n \
            >"$out/$rate-$op-mpi.json.tmp"
        mv "$out/$rate-$op-mpi.json.tmp" "$out/$rate-$op-mpi.json"
        for input in $inputs; do
            result=$out/$rate-$op-${input%%=*}.json
            learnt=()
            if [ "$learn" -gt 0 ]; then
                rm -rf "$state/learnt"
                $testbed mpirun --name $name "$build/zipccl-perf" perf $op -b $size -n 1 -w "$learn" -c 0 \
                    --mode adaptive --input "$tensors/${input#*=}" --state-save "$state/learnt" >/dev/null
                learnt=(--state-load "$state/learnt" --state-freeze)
            fi
            $testbed mpirun --name $name "$build/zipccl-perf" perf $op -b $size -n $n -w 1 -c 1 \
                --mode raw,native,compressed,adaptive --strategy "exact direct" --nchunks $chunks \
                --input "$tensors/${input#*=}" "${learnt[@]}" -K 1 -J "$result" | grep -v '^#' || true
            echo "$rate $op ${input%%=*}: load $(cut -d ' ' -f 1 /proc/loadavg)" | tee -a "$out/machine.txt"
        done
    done
    $testbed down --name $name
done
