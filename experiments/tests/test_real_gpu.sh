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
for wrong in "-n x --launch local" "-n 2" "-n 2 --launch local --stages nothing" "-n 3 --launch local --one-node 2" --no \
    "-n 2 --launch local --one-node 0" "-n 2 --launch local --one-node x" "-n 2 --launch local --local x" "-n 2 -o" \
    "-n 2 --launch local -o $program"; do
    # shellcheck disable=SC2086
    "$run" --program "$program" $wrong >out 2>err
    [ $? -eq 2 ] || failed "$wrong: $(cat out err)"
done

works() {
    "$run" -n 2 --launch local --program "$program" --tiny -o r --one-node 1 "$@" >out 2>err || failed "$*: $(cat out err)"
}
"$run" --list | tail -n 1 | grep -q '^all: 80 min' || failed "--list: $("$run" --list)"
"$run" --list -n 8 | tail -n 1 | grep -q '^all: 65 min' || failed "--list -n 8: $("$run" --list -n 8)"
"$run" --list -n 6 | grep -q '^replay-llama2-7b-fsdp64  left out' || failed "--list -n 6: $("$run" --list -n 6)"
works --stages preflight,all_gather
grep -q 'to do: about 7 min' out || failed "no minutes: $(cat out)"
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
# A folder without results is of no settings.
for cluster in nothing_there ""; do
    "$run" -n 2 --launch local --program "$program" -o f --tiny --stages preflight ${cluster:+--cluster $cluster} >out 2>err
    [ $? -eq $((${#cluster} > 0 ? 2 : 0)) ] || failed "after a failure: $(cat out err)"
done
# A trace is taken to as many ranks as are here.
"$run" -n 4 --launch local --program "$program" --tiny -o w --one-node 2 --stages replay-moe64 >out 2>err &&
    grep -q ' 4 ranks as GPUs' w/replay-moe64.txt && grep -q '"zipccl.replay"' w/replay-moe64.json ||
    failed "a replay: $(cat out err w/replay-moe64.txt)"
# Stopped: no rank goes on, and what was done is kept.
printf '#!/bin/sh\necho $$ >>%s/pids\nexec sleep 60\n' "$folder" >sleeps && chmod +x sleeps
"$run" -n 2 --launch local --program ./sleeps --tiny -o r --one-node 1 --stages all_gather,alltoall >out 2>err &
stopped=$!
for _ in $(seq 100); do
    [ "$(wc -l 2>/dev/null <pids || echo 0)" -lt 2 ] || break
    sleep 0.1
done
kill -TERM $stopped
wait $stopped
[ $? -eq 130 ] && grep -q 'stopped; run it again' err || failed "stopped: $(cat out err)"
for _ in $(seq 50); do
    while read -r pid; do kill -0 "$pid" 2>/dev/null; done <pids || break
    sleep 0.1
done
while read -r pid; do ! kill -0 "$pid" 2>/dev/null || failed "rank $pid goes on"; done <pids
grep -q 'all_gather: done before' out && [ ! -e r/alltoall.json ] || failed "stopped: $(cat out)"
works --stages alltoall
[ -s r/alltoall.json ] || failed "going on after a stop: $(cat out)"
# Two hosts, and a launcher that does not say where rank 0 is.
mkdir path
printf '#!/bin/sh\necho $HOST_OF_TEST\n' >path/uname
printf '#!/bin/sh\necho "a GPU $*"\n' >path/nvidia-smi
cat >twohosts <<'END'
#!/usr/bin/env bash
HOST_OF_TEST=other PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1 "$@" & p=$!
HOST_OF_TEST=localhost PMI_RANK=0 PMI_SIZE=2 MPI_LOCALRANKID=0 "$@" && wait $p
END
chmod +x path/uname path/nvidia-smi twohosts
PATH=$folder/path:$PATH "$run" -n 2 --launch ./twohosts --program "$program" --tiny -o t --stages preflight >out 2>err ||
    failed "two hosts: $(cat out err t/*)"
[ "$(grep -c '^a GPU topo -m$' t/preflight.gpus.txt)" -eq 1 ] || failed "how GPUs are connected: $(cat t/preflight.gpus.txt)"
grep -q ' on other: GPUs .*; rank 0 unknown$' t/preflight.txt && grep -q 'bits of all_reduce.* right' out || failed "two hosts: $(cat out)"
# With torchrun on each of two nodes one has the results, the other knows that the stage ran.
cat >ofnode <<'END'
#!/usr/bin/env bash
RANK=$NODE WORLD_SIZE=2 LOCAL_RANK=$NODE exec "$@"
END
chmod +x ofnode
for node in 1 0; do
    NODE=$node MASTER_ADDR=127.0.0.1 MASTER_PORT=$((29000 + $$ % 900)) "$run" -n 2 --local 1 --launch ./ofnode --program "$program" \
        --tiny -o n$node --stages preflight,broadcast >out$node 2>err$node &
    pids="${pids:-} $!"
done
for pid in $pids; do
    wait "$pid" || failed "of two nodes: $(cat out0 err0 out1 err1)"
done
[ -s n0/broadcast.json ] && [ -s n1/broadcast.elsewhere ] && [ ! -e n1/broadcast.json ] || failed "of two nodes: $(ls n0 n1)"
# Too few ranks come up.
"$run" -n 2 --launch "env RANK=0 WORLD_SIZE=1" --program "$program" --tiny -o s --stages preflight >out 2>err
[ $? -eq 2 ] && grep -q '0 of 2 ranks seen' err || failed "a missing rank: $(cat out err)"
if command -v mpirun >/dev/null; then
    "$run" -n 2 --launch "$root/tests/run_mpi.sh 2" --program "$program" --tiny -o m --stages preflight >out 2>err ||
        failed "mpirun: $(cat out err)"
fi
exit $bad
