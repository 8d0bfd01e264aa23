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
# ---- what was learnt: saved, loaded, kept
learning() {
    "$zipccl" perf all_gather -b 64K -e 256K -f 4 -t 2 -n 33 -w 1 -c 0 "$@"
}
works "" learning -q --mode raw,adaptive --state-save learnt
[ "$(cat learnt/rank-[01].state | grep -c '^even all_gather bf16 ')" -eq 4 ] || failed "learnt: $(head learnt/*)"
[ "$(ls learnt)" = "$(printf 'rank-0.state\nrank-1.state')" ] || failed "files of what was learnt: $(ls learnt)"
works "adaptive" learning --mode raw,adaptive --state-load learnt --state-freeze -J frozen.json
grep -q '"name": "state_load"' frozen.json || failed "the JSON does not say that state was loaded"
works "" learning -q --state-load learnt --state-save learnt
[ "$(sed -n 's/^even all_gather bf16 16384 calls \([0-9]*\) .*/\1/p' learnt/rank-0.state)" -ge 128 ] ||
    failed "a loaded run does not go on: $(cat learnt/rank-0.state)"
plan() {
    "$zipccl" plan all_gather --count 16384 --cluster laptop --set nodes=1 --set gpus_per_node=2 "$@"
}
works "in use after" plan --state learnt/rank-0.state -J plan.json
works "nothing of this call" plan --dtype fp32 --state learnt/rank-0.state
grep -q '"measured_s"' plan.json || failed "the JSON of plan has not what was learnt"
refuses "learnt/rank-1.state: line 2: what was learnt is of 2 ranks, expected 8" "$zipccl" plan all_gather --count 16384 \
    --cluster laptop --state learnt/rank-1.state
mkdir broken odd
cp learnt/* broken
cp learnt/rank-0.state odd
sed -i '4s/ trials on/ trials maybe/' broken/rank-1.state
refuses "broken/rank-1.state: line 4: found 'maybe', expected on or off" "$zipccl" perf all_gather -b 64K -t 2 --state-load broken
refuses "broken/rank-1.state: line 4: found 'maybe'" "$zipccl" plan all_gather --count 16384 --cluster laptop --state broken/rank-1.state
mkfifo odd/rank-1.state
refuses "odd/rank-1.state: found a pipe, expected a regular file" "$zipccl" perf all_gather -b 64K -t 2 --state-load odd
refuses "odd/rank-1.state: found a pipe" "$zipccl" plan all_gather --count 16384 --cluster laptop --state odd/rank-1.state
refuses "odd/rank-1.state: found a pipe" "$zipccl" compare odd/rank-1.state odd/rank-1.state
rm odd/rank-1.state
refuses "odd/rank-1.state: No such file" "$zipccl" perf all_gather -b 64K -t 2 --state-load odd
refuses ".state: what was learnt is of a communicator with other rates" "$zipccl" perf all_gather -b 64K -t 2 --cluster laptop --state-load learnt
# Files of two runs: each is whole, and only together they are wrong.
mkdir mixed
"$zipccl" perf all_gather -b 64K -t 2 --mode adaptive -n 65 -q --state-save other
cp other/rank-1.state mixed/rank-1.state
cp learnt/rank-0.state mixed/rank-0.state
refuses "had learnt something else of calls with equal counts" "$zipccl" perf all_gather -b 64K -t 2 --state-load mixed
refuses "--state-load missing: No such file" "$zipccl" perf all_gather -b 64K -t 2 --state-load missing
refuses "expected a folder" "$zipccl" perf all_gather -b 64K -t 2 --state-save plan.json
refuses "--state-save no/where: No such file" "$zipccl" perf all_gather -b 64K -t 2 --state-save no/where
refuses "of --mode adaptive, which is not run" "$zipccl" perf all_gather --mode raw --state-save x
refuses "with --class wide nothing is learnt" "$zipccl" perf all_gather --class wide --state-load learnt
refuses "nothing is learnt that --state-save could save" "$zipccl" perf all_gather --state-freeze --state-save x
refuses "of real ranks, not of --on sim" "$zipccl" perf all_gather --on sim --cluster laptop --state-load learnt
# ---- one plan from a file
make_plan() {
    "$zipccl" plan "$@" --cluster "$a100" --ranks 4 --ranks-per-node 2
}
works "" make_plan all_gather --count 30001 --mode compressed -o gather.plan
works "Out of bounds values : 0 OK" "$zipccl" perf all_gather --plan gather.plan -t 4 --ranks-per-node 2 -n 2 -J planned.json
grep -q "$(sed -n 's/.*"digest": "\(.*\)",/\1/p' gather.plan)" planned.json || failed "another plan: $(cat planned.json)"
works "  raw  " "$zipccl" perf all_gather --plan gather.plan -t 4 --ranks-per-node 2 -n 1 --mode all
refuses "a plan of all_gather, expected alltoall" "$zipccl" perf alltoall --plan gather.plan -t 4
refuses "for 4 ranks, here are 2" "$zipccl" perf all_gather --plan gather.plan -t 2
refuses "made for 4 ranks on 2 nodes, here are 4 on 1" "$zipccl" perf all_gather --plan gather.plan -t 4
refuses "--minbytes beside --plan" "$zipccl" perf all_gather --plan gather.plan -b 4K
refuses "of --mode compressed, which is not run" "$zipccl" perf all_gather --plan gather.plan -t 4 --mode raw
refuses "--plan is of real ranks" "$zipccl" perf all_gather --plan gather.plan --on sim --cluster laptop
refuses "missing.plan: No such file" "$zipccl" perf all_gather --plan missing.plan
refuses "expected \"zipccl.plan_steps\"" "$zipccl" perf all_gather --plan plan.json
refuses "two outputs have the same path" "$zipccl" plan all_gather --count 30001 --cluster "$a100" -o same -J ./same
refuses "gather.plan" "$zipccl" perf all_gather --plan gather.plan -t 4 -J gather.plan
sed '0,/"chunk_n": [0-9]*/s//"chunk_n": 1/' gather.plan >changed.plan
refuses "changed.plan: 'digest': found" "$zipccl" perf all_gather --plan changed.plan -t 4 --ranks-per-node 2
sed -i '/"digest"/d' changed.plan
refuses "rule 'chunk'" "$zipccl" perf all_gather --plan changed.plan -t 4 --ranks-per-node 2
# A file of version 1 stays one.
works "# Out of bounds values : 0 OK" "$zipccl" perf all_gather --plan "$OLDPWD/experiments/tests/files/plan_steps_2.json" -t 2 -n 1
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
    ntests=$((ntests + 2))
    for option in save load; do
        "$run_mpi" 2 "$zipccl" perf all_gather -b 64K -n 33 -q --state-$option by_mpi >out 2>err ||
            failed "--state-$option under mpirun: $(cat out err)"
    done
    for state in mixed broken; do
        ntests=$((ntests + 1))
        "$run_mpi" 2 "$zipccl" perf all_gather -b 64K --state-load $state >out 2>err
        code=$?
        [ "$code" -eq 2 ] || failed "--state-load $state under mpirun: exit $code, $(cat err)"
    done
    grep -q '^even all_gather bf16 ' by_mpi/rank-1.state || failed "learnt under mpirun: $(cat by_mpi/*)"
    ntests=$((ntests + 1))
    "$run_mpi" 4 "$zipccl" perf all_gather --plan gather.plan --ranks-per-node 2 -n 1 -w 0 >out 2>err &&
        grep -q '# Out of bounds values : 0 OK' out || failed "a plan under mpirun: $(cat out err)"
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
works "page of 2 results" "$zipccl" report real.json a.json -o real.html
grep -q '<strong>Measured.</strong>' real.html || failed "the page does not say that it was measured"
grep -q 'Spread of measured' real.html && failed "a spread of one step"
works "every element of one more step" "$zipccl" replay "$moe4" --on threads --gap-scale 0.1 -n 1 -w 0 --class settled --mode raw
works " 8 ranks" "$zipccl" replay "$moe4" --on threads --gaps skip -n 1 -w 0 -c 0 --mode raw --ranks 8
works "step (measured)" "$zipccl" replay "$moe4" --on threads --gaps busy --gap-scale 0.01 -n 1 -w 0 -c 0 --mode raw --summary
# The same rows as the simulation has.
works "" "$zipccl" replay "$moe4" -c laptop --set gpus_per_node=2 -f t0 -q --csv sim.csv
cut -d, -f2-6 real.csv | sort >real.keys
cut -d, -f2-6 sim.csv | sort >sim.keys
cmp -s real.keys sim.keys || failed "rows of a real replay and of a simulated one differ: $(diff real.keys sim.keys)"
works "" "$zipccl" replay "$moe4" --on threads --gaps skip -n 2 -w 0 -c 0 -q --mode adaptive --state-save steps
[ -n "$(ls steps/group-0.stream-*.rank-3.state)" ] || failed "files of what a replay has learnt: $(ls steps)"
works "step, ms (measured)" "$zipccl" replay "$moe4" --on threads --gaps skip -n 1 -w 0 -c 0 --mode adaptive --state-load steps --state-freeze
refuses "--state-load: learnt/group-" "$zipccl" replay "$moe4" --on threads --gaps skip --state-load learnt
refuses "of --mode adaptive, which is not run" "$zipccl" replay "$moe4" --on threads --mode raw --state-load steps
refuses "with --class tight nothing is learnt" "$zipccl" replay "$moe4" --on threads --class tight --state-freeze
refuses "4 ranks, but 3 are there" "$zipccl" replay "$moe4" --on threads -t 3
refuses "4 ranks to 6, expected a multiple or a divisor" "$zipccl" replay "$moe4" --on threads --ranks 6
refuses "8 ranks, but 4 are there" "$zipccl" replay "$moe4" --on threads --ranks 8 -t 4
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
