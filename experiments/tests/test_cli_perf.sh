#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_cli_perf.sh - zipccl perf at the command line: what works, and how each error is told
#
# test_cli_perf.sh BUILD    run from the root of the source tree
. "$(dirname "$0")/cli_helpers.sh"
perf=$build/zipccl-perf
ldd "$perf" | grep -E 'simgrid|gsl' && failed "zipccl-perf links SimGrid or GSL"

works "Examples:" "$zipccl" perf --help
works "Usage: zipccl-perf" "$perf" --help
works "zipccl-perf 0." "$perf" --version
works "# Out of bounds values : 0 OK" "$zipccl" perf all_reduce -b 8 -e 4K -f 8 -t 3 -n 2 -w 1 --mode all -J a.json --csv a.csv
[ "$(grep -c '  bfloat16     sum      -1  ' out)" -eq 16 ] || failed "not 16 rows: $(cat out)"
grep -q '^ *8  *4  bfloat16     sum      -1 ' out || failed "the columns moved: $(grep bfloat16 out | head -1)"
grep -q '"name": "zipccl.perf"' a.json || failed "no schema in the JSON"
[ "$(awk -F, '{print NF}' a.csv | sort -u | wc -l)" -eq 1 ] || failed "CSV lines differ in columns"
[ "$(wc -l <a.csv)" -eq 33 ] || failed "$(wc -l <a.csv) lines of CSV, not 33"
works '"rows"' "$zipccl" perf sendrecv -b 4K -t 2 -n 1 -J -
works "i_cv%" "$zipccl" perf all_gather -b 4K -t 2 -n 3 -I 1 -S 1 -M 1 -C 1 -a 0
works "# Memory:" "$zipccl" perf broadcast -b 4K -t 2 -n 1 -M 1 -r all
works "exact ring x1, 2 chunks" "$zipccl" perf all_gather -b 256K -t 2 -n 1 --strategy "exact ring" --nchunks 2
works ", ratio" "$zipccl" perf all_gather -b 64K -t 2 -n 1 --effort ratio --strategy "exact direct"
works "on 2 nodes" "$zipccl" perf alltoall -b 64K -t 4 -n 1 --ranks-per-node 2 --cluster laptop --set nic.rate=1Gbps
works "0 OK" "$zipccl" perf alltoallv -b 64K -t 3 -n 1 --input "$tensors" --mode compressed --class settled
works "0 OK" "$zipccl" perf all_reduce -b 64K -t 2 -n 1 --input "$tensors:alltoall.dispatch.layer2.step299"
works "N/A" "$zipccl" perf all_gather -b 4K -t 2 -n 1 -c 0 -u 64
works "nothing that was asked for serves it here" "$zipccl" perf all_reduce -b 64 -t 2 -n 1 -d all
works "2 ranks on 1 node (threads, each of the groups" env NCCL_TESTS_SPLIT="MOD 2" "$zipccl" perf all_gather -b 4K -t 4 -n 1
works "OK" env NCCL_TESTS_MIN_BW=0 "$zipccl" perf all_gather -b 4K -t 2 -n 1

# Too slow is a failure; the table is there.
ntests=$((ntests + 1))
NCCL_TESTS_MIN_BW=1e6 "$zipccl" perf all_gather -b 4K -t 2 -n 1 >out 2>err
[ $? -eq 1 ] && grep -q 'FAILED' out && grep -q 'NCCL_TESTS_MIN_BW' err || failed "too slow: $(cat out err)"

# with VARIABLE=VALUE COMMAND... - the same with a variable, told by the command's name
with() {
    local assignment=$1
    shift
    ntests=$((ntests + 1))
    env "$assignment" "${@:2}" >out 2>err </dev/null
    [ $? -eq 2 ] && [ ! -s out ] && [ "$(wc -l <err)" -eq 1 ] && grep -qF -- "$1" err ||
        failed "with $assignment: $(cat out err)"
}
with NCCL_TESTS_DEVICE=0 "NCCL_TESTS_DEVICE is set" "$zipccl" perf all_gather
with NCCL_TESTS_SPLIT="MOD 2" "groups of 2 and of 1 ranks" "$zipccl" perf all_gather -t 3
with NCCL_TESTS_SPLIT="XOR 2" "expected AND, OR, MOD or DIV" "$zipccl" perf all_gather -t 3
with NCCL_TESTS_MIN_BW=fast "expected GB/s" "$zipccl" perf all_gather -t 3
with OMPI_COMM_WORLD_SIZE=2 "OMPI_COMM_WORLD_RANK" "$zipccl" perf all_gather

refuses "name an operation" "$zipccl" perf
refuses "did you mean 'all_gather'" "$zipccl" perf all_gathr
refuses "after the operation" "$zipccl" perf all_gather all_reduce
refuses "expected a size" "$zipccl" perf all_gather -b 1X
refuses "is given twice" "$zipccl" perf all_gather -b 1K -b 2K
refuses "exclude each other" "$zipccl" perf all_gather -f 2 -i 4K
refuses "-b is more than -e" "$zipccl" perf all_gather -b 1M -e 64K
refuses "more than 1000 sizes" "$zipccl" perf all_gather -b 1 -e 1M -i 1
refuses "-g 2 of nccl-tests is not offered" "$zipccl" perf all_gather -g 2
refuses "returns when it is done" "$zipccl" perf all_gather -z 0
refuses "no CUDA graphs" "$zipccl" perf all_gather -G 1
refuses "registers memory" "$zipccl" perf all_gather -R 1
refuses "no device API" "$zipccl" perf all_gather -D 1
refuses "-o is of reductions" "$zipccl" perf all_gather -o sum
refuses "has no root" "$zipccl" perf all_reduce -r 1
refuses "not one of 2 ranks" "$zipccl" perf broadcast -b 4K -t 2 -r 2
refuses "expected one of native" "$zipccl" perf all_gather --strategy ring
refuses "does not serve alltoall" "$zipccl" perf alltoall -b 4K -t 2 --strategy "exact ring"
refuses "which is not run" "$zipccl" perf all_gather --mode raw --strategy "exact ring"
refuses "--nchunks is of a --strategy" "$zipccl" perf all_gather --nchunks 2
refuses "no codec rates for it" "$zipccl" perf all_gather -t 2 --cluster "$a100" --effort ratio
refuses "missing.safetensors" "$zipccl" perf all_gather -t 2 --input missing.safetensors
refuses "no tensor is named" "$zipccl" perf all_gather -t 2 --input "$tensors:none"
refuses "as -d says" "$zipccl" perf all_gather -t 2 -d float --input "$tensors:alltoall.dispatch.layer2.step299"
refuses "no tensor of type fp16" "$zipccl" perf all_gather -t 2 -d half --input "$tensors"
refuses "do not reduce fp8" "$zipccl" perf all_reduce -b 4K -t 2 -d fp8_e4m3
refuses "elements are aligned" "$zipccl" perf all_gather -t 2 -u 1
refuses "four fifths of this machine" "$zipccl" perf all_gather -t 4 -b 256G
refuses "no cluster is named" "$zipccl" perf all_gather -t 2 --cluster none
refuses "start them with mpirun -np 4" "$zipccl" perf all_gather --on mpi -t 4
refuses "300 ranks as threads, expected at most 256" "$zipccl" perf all_gather -t 300
refuses "/dev/full: cannot write: JSON" "$zipccl" perf all_gather -b 4K -t 2 -n 1 -q -J /dev/full
refuses "two outputs have the same path" "$zipccl" perf all_gather -t 2 -J same --csv ./same
refuses "-t 3 is of --on threads" "$zipccl" perf all_gather -t 3 --on mpi
# Ranks as processes, where MPI was found when this was built.
if ldd "$perf" | grep -q libmpi && command -v mpirun >/dev/null; then
    run_mpi=$OLDPWD/tests/run_mpi.sh
    ntests=$((ntests + 3))
    "$run_mpi" 3 "$zipccl" perf all_reduce -b 8 -e 64K -f 64 --mode all -n 2 -c 2 --ranks-per-node 2 -J mpi.json >out 2>err ||
        failed "under mpirun: $(cat out err)"
    [ "$(grep -c '3 ranks on 2 nodes (mpi)' out)" -eq 1 ] && grep -q '# Out of bounds values : 0 OK' out ||
        failed "under mpirun: $(cat out)"
    grep -q '"on": "mpi"' mpi.json || failed "the JSON of mpi: $(head -9 mpi.json)"
    "$run_mpi" 2 "$zipccl" perf all_gather -b 4K -t 2 >out 2>err &&
        failed "-t 2 under mpirun: $(cat out)"
    grep -q 'Open MPI has started 2 processes' err || failed "-t 2 under mpirun: $(cat err)"
    NCCL_TESTS_SPLIT="MOD 2" "$run_mpi" 4 "$zipccl" perf alltoall -b 4K -n 2 >out 2>err ||
        failed "split under mpirun: $(cat out err)"
    grep -q '2 ranks on 1 node (mpi' out || failed "split under mpirun: $(cat out)"
    # Either process alone would fit; both do not.
    ntests=$((ntests + 2))
    "$run_mpi" 2 "$zipccl" perf all_gather -b "$(awk '/^MemTotal/ {print int($2 / 2048)}' /proc/meminfo)M" >out 2>err &&
        failed "too much memory under mpirun: $(cat out)"
    grep -q '2 ranks here with .* four fifths of this machine' err || failed "memory under mpirun: $(cat err)"
    "$run_mpi" 2 "$zipccl" perf all_gather -b 1M --on sim --cluster "$a100" >out 2>err &&
        failed "a simulation under mpirun: $(cat out)"
    grep -q 'each of them would simulate the same' err || failed "a simulation under mpirun: $(cat err)"
fi
# ---- a trace on real ranks
moe4=$OLDPWD/traces/samples/moe4
works "Examples:" "$perf" replay --help
works "step, ms (measured)" "$zipccl" replay "$moe4" --on threads --gaps skip -n 1 -w 0 -J real.json --csv real.csv
works "" "$check" real.json kind=measured fidelity=real
grep -q '^measured,' real.csv || failed "no measured row in the CSV"
works "every element of one more step" "$zipccl" replay "$moe4" --on threads --gap-scale 0.1 -n 1 -w 0 --class settled --mode raw
works "step (measured)" "$zipccl" replay "$moe4" --on threads --gaps busy --gap-scale 0.01 -n 1 -w 0 -c 0 --mode raw --summary
# The same rows as the simulation has.
works "" "$zipccl" replay "$moe4" -c laptop --set gpus_per_node=2 -f t0 -q --csv sim.csv
cut -d, -f2-6 real.csv | sort >real.keys
cut -d, -f2-6 sim.csv | sort >sim.keys
cmp -s real.keys sim.keys || failed "rows of a real replay and of a simulated one differ: $(diff real.keys sim.keys)"
refuses "4 ranks, but 3 are there" "$zipccl" replay "$moe4" --on threads -t 3
refuses "four fifths of this machine" "$zipccl" replay "$moe" --on threads --gaps skip
refuses "--cluster says how fast" "$zipccl" replay "$moe" --on threads
refuses "expected sleep, busy or skip" "$zipccl" replay "$moe4" --on threads --gaps none
refuses "expected threads, mpi or nccl" "$zipccl" replay "$moe4" --on gpus
refuses "no trace given" "$zipccl" replay --on threads
refuses "--html is for simulations" "$zipccl" replay "$moe4" --on threads --html a.html
refuses "--perfetto is for simulations" "$zipccl" replay "$moe4" --on threads --perfetto a.json
refuses "one trace at a time" "$zipccl" replay "$moe4" "$moe4" --on threads
refuses "unknown option '--fidelity'" "$zipccl" replay "$moe4" --on threads --fidelity t0
if [ -n "${run_mpi:-}" ]; then
    ntests=$((ntests + 1))
    "$run_mpi" 4 "$zipccl" replay "$moe4" --on mpi --gaps skip -n 1 -w 0 --ranks-per-node 2 --summary >out 2>err ||
        failed "replay under mpirun: $(cat out err)"
    grep -q '4 ranks as MPI processes on 2 nodes' out || failed "replay under mpirun: $(cat out)"
fi
loses "$zipccl" perf all_gather -b 4K -t 2 -n 1

finish
