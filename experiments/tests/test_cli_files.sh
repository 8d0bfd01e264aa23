#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_cli_files.sh - inputs that stay whole, numbers out of range, output that cannot be written
#
# test_cli_files.sh BUILD    run from the root of the source tree
. "$(dirname "$0")/cli_helpers.sh"

header='{"format": "zipccl-trace", "version": 1, "name": "mini", "provenance": "generated", "generator": "test", "nranks": 8, "streams": ["compute", "comm"], "groups": [{"name": "world", "size": 8}]'
compute='{"kind": "compute", "id": 1, "duration_s": 0.01}'
call='{"kind": "collective", "id": 2, "stream": "comm", "op": "all_gather", "group": "world", "dtype": "bf16", "count": 1048576, "deps": [1]'
end='{"kind": "end", "events": 2}'
mkdir folder clusters
cp "$tensors" tensors.safetensors
printf '%s\n' "$header, \"samples\": \"tensors.safetensors\"}" "$compute" "$call}" "$end" >plain.jsonl
sed 's#"tensors#"../tensors#' plain.jsonl >folder/trace.jsonl
ln -s plain.jsonl link.jsonl
cp "$OLDPWD/models/clusters/laptop.yaml" clusters/own.yaml
simai='HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2'
printf '%s\n' "$simai" 1 'x -1 1 ALLREDUCE 4194304 1 NONE 0 1 NONE 0 1' >work.txt

# ---- no output destroys an input, by whatever name
sha256sum folder/* clusters/* tensors.safetensors plain.jsonl work.txt >sums
for output in folder/trace.jsonl ./folder/../folder/trace.jsonl tensors.safetensors; do
    refuses "overwrite an input" "$zipccl" trace info folder -J $output
    refuses "overwrite an input" "$zipccl" trace info folder/trace.jsonl -J $output
    for option in -J --csv --html --perfetto; do
        refuses "overwrite an input" "$zipccl" replay folder -c laptop $option $output
    done
done
refuses "overwrite an input" "$zipccl" trace info link.jsonl -J plain.jsonl
refuses "overwrite an input" "$zipccl" trace info plain.jsonl -J link.jsonl
refuses "overwrite an input" "$zipccl" codec stat tensors.safetensors -J ./tensors.safetensors
for option in -J --csv --html --perfetto; do
    refuses "overwrite an input" "$zipccl" replay plain.jsonl --cluster-dir clusters -c own $option clusters/own.yaml
done
refuses "overwrite an input" "$zipccl" trace import work.txt -o work.txt
refuses "overwrite an input" "$zipccl" trace import work.txt --samples tensors.safetensors -o ./tensors.safetensors
refuses "overwrite an input" "$zipccl" replay work.txt -c laptop --samples tensors.safetensors --perfetto tensors.safetensors
refuses "overwrite an input" "$zipccl" replay work.txt -c laptop -J work.txt
sha256sum --quiet -c sums || failed "an input was changed"

# ---- standard output as a file: nothing else goes there
works '"schema": "zipccl-trace-info"' "$zipccl" trace info plain.jsonl -J -
[ "$(head -c 1 out)" = "{" ] || failed "trace info -J - prints more than JSON"
works '"name": "zipccl.replay"' "$zipccl" replay plain.jsonl -c laptop -f t0 -J -
"$check" out || failed "replay -J - prints more than JSON"
works "kind,op,group" "$zipccl" replay plain.jsonl -c laptop -f t0 --csv - -J here.json
[ "$(grep -c '' out)" -eq 2 ] || failed "replay --csv - prints more than CSV"
refuses "same path" "$zipccl" replay plain.jsonl -c laptop -J - --csv -
[ ! -e - ] || failed "a file named - is left"
works "mini" "$zipccl" trace info plain.jsonl -J ./-
rm ./-

# ---- numbers that no step has, and traces that hold nothing or too much: by file, once
printf '%s\n' "$header}" '{"kind": "compute", "id": 1, "duration_s": 1e300}' "$call}" "$end" >long.jsonl
printf '%s\n' "$header}" '{"kind": "compute", "id": 1, "flops": 1e300}' "$call}" "$end" >heavy.jsonl
printf '%s\n' "$header, \"recorded_step_s\": 1e300}" "$compute" "$call}" "$end" >slow.jsonl
printf '%s\n' "$header}" "$compute" "$call, \"repeat\": 9007199254740992}" "$end" >huge.jsonl
printf '%s\n' "$header}" '{"kind": "end", "events": 0}' >nothing.jsonl
printf '%s\n' "$header}" '{"kind": "compute", "id": 1, "hbm_bytes": 1e9}' "$call}" "$end" >memory.jsonl
for command in "replay -c laptop" "trace info"; do
    refuses "long.jsonl:2: \"duration_s\" is 1e+300, expected" "$zipccl" $command long.jsonl
    refuses "heavy.jsonl:2: \"flops\" is 1e+300, expected" "$zipccl" $command heavy.jsonl
    refuses "slow.jsonl:1: \"recorded_step_s\" is 1e+300, expected" "$zipccl" $command slow.jsonl
    refuses "huge.jsonl:" "$zipccl" $command huge.jsonl
    refuses "nothing.jsonl: " "$zipccl" $command nothing.jsonl
done
works "174.3 ms" "$zipccl" replay memory.jsonl -c laptop --summary

# ---- a recorded step is off from 10 % on, not before
works "" "$zipccl" replay plain.jsonl -c laptop -q --mode raw -J base.json
raw=$(sed -n 's/^ *"step_time_raw_s": \([0-9.e-]*\),*$/\1/p' base.json | head -1)
for off in 0.91 0.95 1.05 1.09; do
    recorded=$(awk "BEGIN { printf \"%.9f\", $raw / $off }")
    printf '%s\n' "$header, \"recorded_step_s\": $recorded}" "$compute" "$call}" "$end" >recorded.jsonl
    works "Recorded step" "$zipccl" replay recorded.jsonl -c laptop --mode raw
    ! grep -q 'WARNING.*baseline' out || failed "a raw step at $off of the recorded one earns a warning"
done
for off in 0.89 1.11 2; do
    recorded=$(awk "BEGIN { printf \"%.9f\", $raw / $off }")
    printf '%s\n' "$header, \"recorded_step_s\": $recorded}" "$compute" "$call}" "$end" >recorded.jsonl
    works "WARNING: the simulated raw step" "$zipccl" replay recorded.jsonl -c laptop --mode raw
done

# ---- an option that holds one thing is given once
refuses "--cluster is given twice" "$zipccl" replay plain.jsonl -c laptop -c laptop
refuses "--set nodes is given twice" "$zipccl" replay plain.jsonl -c laptop --set nodes=2 --set nodes=4
refuses "--set nodes is given twice" "$zipccl" cluster show laptop --set nodes=2 --set nodes=4
refuses "twice" "$zipccl" trace info plain.jsonl -J a -J b
refuses "twice" "$zipccl" cluster list --cluster-dir clusters --cluster-dir clusters

# ---- a name that is not there: which are
refuses "there are: a100-8x8-200g, h100-8x8-400g, laptop ('zipccl cluster list')" "$zipccl" replay plain.jsonl -c nope
refuses "there are: own" "$zipccl" cluster show nope --cluster-dir clusters

# ---- output that is lost
if [ -w /dev/full ]; then
    loses "$zipccl" --help
    loses "$zipccl" version
    loses "$zipccl" cluster list
    loses "$zipccl" cluster show laptop
    loses "$zipccl" trace info plain.jsonl
    loses "$zipccl" trace info plain.jsonl -J -
    loses "$zipccl" trace import work.txt -o import.jsonl
    loses "$zipccl" replay --help
    loses "$zipccl" replay plain.jsonl -c laptop -f t0
    loses "$zipccl" replay plain.jsonl -c laptop -f t0 -J -
    loses "$sim" version
    if "$zipccl" help | grep -q '^  codec '; then
        loses "$zipccl" codec stat tensors.safetensors
    fi
fi
# A reader that has read enough, and one that is gone: no stack of errors.
for command in "trace info plain.jsonl" "replay plain.jsonl -c laptop -f t0" "cluster list"; do
    "$zipccl" $command 2>err | head -1 >out
    [ ! -s err ] || failed "closed early: $(cat err)"
    (trap '' PIPE; { sleep 0.2; "$zipccl" $command 2>err; } | true)
    [ ! -s err ] || failed "closed at once: $(cat err)"
done

finish
