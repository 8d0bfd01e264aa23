#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_testbed.sh - the testbed: data right, links as slow as said, failures end, nothing is left
# test_testbed.sh BUILD_FOLDER
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
testbed=experiments/testbed/testbed.sh
name=zt$$
build=$1
out=$(mktemp) || exit 1
trap '$testbed down --name $name 2>/dev/null; rm -f "$out"' EXIT
failures=0

fail() {
    echo "FAILED: $*"
    cat "$out"
    failures=$((failures + 1))
}

# refused TEXT ARGUMENT... - exit code 2 and a text; needs no testbed
refused() {
    local text=$1
    shift
    $testbed "$@" >"$out" 2>&1
    [ $? -eq 2 ] && grep -qF -- "$text" "$out" || fail "$*: expected exit code 2 and \"$text\""
}

refused "none of run, up" walk
refused "a value is missing" run --rate
refused "expected such as 200mbit" run --rate fast true
refused "from 1 to 16" run -n 17 true
refused "no command" run -n 2
refused "is no option" run --speed 3 true

# All ops with data checked; two ranks on a node, which are seen to be.
$testbed run --name $name -n 2 -p 2 -r 100mbit "$build/zipccl-perf" perf all_reduce -b 64K -e 1M -f 16 \
    -n 2 -w 1 -c 2 --mode all >"$out" 2>&1
rc=$?
[ $rc -ne 77 ] || { cat "$out"; exit 77; }
[ $rc -eq 0 ] && grep -q '4 ranks on 2 nodes (mpi)' "$out" && grep -q 'Out of bounds values : 0 OK' "$out" ||
    fail "all_reduce on 2 nodes with 2 ranks each: exit code $rc"
[ -z "$(ip netns list | grep "^$name-")" ] || fail "something is left after a run"

# The links are no faster than said: 2 MiB each way in no less than 0.15 s at 100 Mb/s (12.5 MB/s).
$testbed up --name $name -n 2 -r 100mbit >"$out" 2>&1 || fail "up"
$testbed mpirun --name $name "$build/zipccl-perf" perf all_gather -b 4M -n 2 -w 1 -c 1 --mode raw >"$out" 2>&1
rc=$?
[ $rc -eq 0 ] && awk '$1 == 4194304 && $6 > 150000 {ok = 1} END {exit !ok}' "$out" ||
    fail "all_gather at 100 Mb/s: exit code $rc, or faster than the link"
refused "is in use" run --name $name true

# A killed rank and a dead link end the job within 10 s, and a line names them.
(
    sleep 3
    kill -KILL "$(ip netns pids $name-node2 | while read -r pid; do
        grep -qz zipccl-perf "/proc/$pid/cmdline" && ! grep -qz orted "/proc/$pid/cmdline" && echo "$pid"
    done | head -n 1)"
    date +%s >"$out.when"
) &
timeout 60 $testbed mpirun --name $name "$build/zipccl-perf" perf all_gather -b 8M -n 1000 -c 0 >"$out" 2>&1
rc=$?
wait
[ $rc -ne 0 ] && [ $rc -ne 124 ] && grep -Eq 'signal 9|rank 1' "$out" &&
    [ $(($(date +%s) - $(cat "$out.when"))) -le 10 ] || fail "a killed rank: exit code $rc"
(
    sleep 3
    $testbed cut --name $name 2
    date +%s >"$out.when"
) &
timeout 60 $testbed mpirun --name $name "$build/zipccl-perf" perf all_gather -b 8M -n 1000 -c 0 >"$out" 2>&1
rc=$?
wait
[ $rc -ne 0 ] && [ $rc -ne 124 ] && grep -q '198.18.77.2' "$out" &&
    [ $(($(date +%s) - $(cat "$out.when"))) -le 10 ] || fail "a dead link: exit code $rc"
rm -f "$out.when"
$testbed down --name $name
[ -z "$(ip netns list | grep "^$name-")" ] || fail "something is left after down"

# What a killed run leaves is cleared by the next.
$testbed run --name $name -n 2 sleep 60 >/dev/null 2>&1 &
run=$!
for _ in $(seq 50); do
    ip netns pids $name-node2 2>/dev/null | grep -q . && break
    sleep 0.1
done
kill -KILL $run
wait $run 2>/dev/null
$testbed run --name $name -n 2 true >"$out" 2>&1
rc=$?
[ $rc -eq 0 ] && grep -q 'removing what an earlier run has left' "$out" || fail "after a killed run: exit code $rc"
[ -z "$(ip netns list | grep "^$name-")" ] || fail "something is left after that"

echo "$failures failures"
[ $failures -eq 0 ]
