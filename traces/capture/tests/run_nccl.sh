#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run_nccl.sh - run_nccl.sh PYTHON LIBRARY APP ZIPCCL: preload the library, join, look at the trace
set -eu
python=$1 library=$2 app=$3 zipccl=$4
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "run_nccl.sh: $*"
    exit 1
}

# AddressSanitizer and ThreadSanitizer want to be loaded first: then theirs is, too.
runtime=$(ldd "$app" | awk '/lib[at]san/ { printf "%s ", $3 }')

LD_PRELOAD="$runtime$library" ZIPCCL_CAPTURE="$work/out" "$app" 4 || fail "the job failed: $?"
"$python" "$here/../zipccl_join.py" "$work/out" >"$work/said" || fail "join failed"
cat "$work/said"
grep -q '"op":"alltoallv"' "$work/out/trace.jsonl" || fail "no all-to-all of the sends"
"$python" - "$work/out/trace.jsonl" <<'END' || fail "another trace than expected"
import json, sys
lines = [json.loads(x) for x in open(sys.argv[1])]
header, events = lines[0], lines[1:-1]
calls = [e for e in events if e["kind"] == "collective"]
seen = [(c["op"], c["dtype"], c["count"], c.get("redop")) for c in calls]
world = [("all_reduce", "fp32", 3000, "sum"), ("all_gather", "bf16", 3000, None),
         ("reduce_scatter", "fp32", 750, "avg"), ("broadcast", "int64", 100, None),
         ("alltoallv", "fp32", 7, None)]
for call, times in zip(world, (4, 2, 2, 2, 2)):
    assert seen.count(call) == times, (call, seen)
assert seen.count(("all_reduce", "fp32", 10, "avg")) == 2, seen
assert seen.count(("sendrecv", "bf16", 50, None)) == 4, seen
assert header["nranks"] == 4 and sum(e["kind"] == "communication" for e in events) == 2
halves = [g["ranks"] for g in header["groups"] if len(g["ranks"]) == 2]
assert halves and all(h == [[0, 1], [2, 3]] for h in halves), header["groups"]
assert header["splits"][0]["counts"] == [[r + p + 1 for p in range(4)] for r in range(4)]
assert all("recorded_s" in c for c in calls), calls
assert sum("samples" in c for c in calls if c["dtype"] in ("fp32", "bf16")) > 10
END
[ "$zipccl" = none ] || {
    "$zipccl" trace check "$work/out"
    "$zipccl" replay "$work/out" --cluster laptop --set nodes=1 >/dev/null
}

# a few calls, and no folder to write to: the job does not care
LD_PRELOAD="$runtime$library" ZIPCCL_CAPTURE="$work/few" ZIPCCL_CAPTURE_CALLS=0:3 \
    ZIPCCL_CAPTURE_SAMPLES_MB=0 "$app" 2
[ "$(grep -c '"call"' "$work/few/parts/rank0.jsonl")" = 3 ] || fail "not three calls"
LD_PRELOAD="$runtime$library" ZIPCCL_CAPTURE=/dev/null/no "$app" 2 2>"$work/said"
grep -q 'nothing is captured' "$work/said" || fail "no word of the folder"
LD_PRELOAD="$runtime$library" ZIPCCL_CAPTURE="$work/x" ZIPCCL_CAPTURE_CALLS=3:1 "$app" 2 \
    2>"$work/said"
grep -q 'expected FIRST:END' "$work/said" || fail "no word of the range"
[ ! -e "$work/x" ] || fail "captured all the same"
LD_PRELOAD="$runtime$library" "$app" 2

# calls into a CUDA graph: nothing of the job fails, and they are counted
LD_PRELOAD="$runtime$library" ZIPCCL_CAPTURE="$work/graph" "$app" 2 graph || fail "the job with a graph failed: $?"
grep -q '"in_graphs":13,' "$work/graph/parts/rank0.jsonl" ||
    fail "other calls counted in graphs: $(head -n 1 "$work/graph/parts/rank0.jsonl")"
[ "$(grep -c '"call"' "$work/graph/parts/rank0.jsonl")" = 26 ] || fail "not the calls of both rounds"
echo "capture_nccl: ok"
