#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_cli_sweep.sh - sweeps at the command line: what they find is what replays find, and how errors are told
#
# test_cli_sweep.sh BUILD    run from the root of the source tree
. "$(dirname "$0")/cli_helpers.sh"

cat >tiny.yaml <<'END'
name: tiny
description: two small layers
source: "made up for this test"
layers: 2
hidden: 512
ffn: 2048
heads: 4
vocab: 512
gated: true
END
cat >sweep.yaml <<'END'
# axes in any order; a single value is a list of one
nic: [10Gbps, 100Gbps]
model: tiny.yaml
gpus:
  - 16
  - 20   # no whole node
sharding: [fsdp]
tp: [1, 2]
cluster: h100-8x8-400g
END

# ---- a point is what 'trace generate' and 'replay' make of the same configuration, to the last digit
works "4 run, 4 skipped" "$zipccl" sweep sweep.yaml -J sweep.json --csv sweep.csv --html sweep.html
grep -q 'Skipped, world: 4, such as tp 1, gpus 20, nic.rate 10Gbps: 20 GPUs are no whole number of nodes of 8' out ||
    failed "skipped points: $(cat out)"
grep -q 'No combination with gpus 20 can be run' out && grep -q 'Break-even along nic.rate: .*(a guess between values up to 10 times apart)' out ||
    failed "summary: $(cat out)"
"$zipccl" trace generate -m tiny.yaml --sharding fsdp --tp 2 --gpus 16 -c h100-8x8-400g --set nodes=2 -q -o point.jsonl ||
    failed "a point made up"
works "" "$zipccl" replay point.jsonl -c h100-8x8-400g --set nodes=2 --set nic.rate=10Gbps -f t0 -q -J point.json
for key in step_time_raw_s step_time_compressed_s step_time_adaptive_s end_to_end_speedup comm_speedup \
    exposed_comm_share raw_bytes; do
    expected=$(sed -n '/"totals"/,/}/s/^ *"'$key'": \([^,]*\),*$/\1/p' point.json)
    found=$(sed -n '/"points"/,/"skipped"/p' sweep.json | tr -d '\n' |
        sed 's/.*"tp": "2", *"sharding": "fsdp", *"gpus": "16", *"cluster": "h100-8x8-400g", *"nic.rate": "10Gbps" *}//' |
        grep -o "\"$key\": [^,]*" | head -1 | cut -d' ' -f2)
    [ -n "$found" ] && [ "$found" = "$expected" ] || failed "$key of the point: $found, of its replay: $expected"
done
grep -q '"name": "zipccl.sweep"' sweep.json && grep -q '"kind": "world"' sweep.json || failed "the schema"
[ "$(wc -l <sweep.csv)" -eq 5 ] || failed "$(wc -l <sweep.csv) lines of CSV"
grep -q '^simulated,tiny.yaml,1,fsdp,16,' sweep.csv || failed "the CSV: $(head -2 sweep.csv)"
grep -q '<svg' sweep.html && grep -q 'Simulated' sweep.html && ! grep -qi '<script\|http:' sweep.html ||
    failed "the page"
works "" "$zipccl" report sweep.json -q -o again.html
cmp -s again.html sweep.html || failed "the page of sweep.json is not that of the sweep which wrote it"

# ---- in the same order and with the same bytes whatever runs at once; options say what a file says
works "" "$zipccl" sweep -m tiny.yaml --gpus 16,20 --sharding fsdp --tp 1,2 -c h100-8x8-400g --nic 10Gbps,100Gbps \
    -j 3 -q -J three.json
[ ! -s out ] || failed "--quiet prints: $(cat out)"
works "" "$zipccl" sweep sweep.yaml -j 1 -q -J one.json
cmp -s one.json sweep.json || failed "-j 1 differs"
cmp -s <(grep '_s"\|speedup' one.json | sort) <(grep '_s"\|speedup' three.json | sort) || failed "options and file differ"
works "... 2 rows more" "$zipccl" sweep sweep.yaml --top 2
sed -n '/raw ms/,/more/p' out | grep -m1 -A1 'GB/GPU' | grep -q ' 10Gbps' || failed "--top: $(cat out)"
works "8 combinations, 4 to run, of 2 distinct steps" "$zipccl" sweep sweep.yaml --list
readme=$(sed -n 's/.*`build.zipccl \(sweep [^`]*\)`.*/\1/p' "$OLDPWD/README.md")
# shellcheck disable=SC2086
works "4 combinations, 4 to run" "$zipccl" $readme --list

# ---- a SPEC in other ways that YAML can be written, JSON among them; long lines count once
printf '{"model": "tiny.yaml", "gpus": [8, 16],\n "cluster": "h100-8x8-400g"}\n' >flow.yaml
printf '  model : tiny.yaml\n  "gpus": # two\n    - 8\n    - 16\n  cluster: # one\n    h100-8x8-400g\n' >block.yaml
printf '#%0600d\nmodel: tiny.yaml\n  # none\ngpus: [8, x]\ncluster: h100-8x8-400g\n' 0 >long.yaml
works "2 combinations, 2 to run" "$zipccl" sweep flow.yaml --list
works "2 combinations, 2 to run" "$zipccl" sweep block.yaml --list
refuses "long.yaml: line 4: key \"gpus\"" "$zipccl" sweep long.yaml

# ---- traces, to other ranks; parallelism by combinations; memory
works "2 run" "$zipccl" sweep --trace "$OLDPWD/traces/samples/moe4" --gpus 4,8 -c laptop --nic 1Gbps -r 1.4
works "Skipped, rescale: 1" "$zipccl" sweep --trace "$OLDPWD/traces/samples/moe4" --gpus 4,6 -c laptop --set gpus_per_node=2 -r 1.4
works "tp=2,sp" "$zipccl" sweep -m tiny.yaml --gpus 16 --parallel tp=2,sp --parallel pp=2 -c h100-8x8-400g --ratio 1.3
works "Skipped, memory: 1" "$zipccl" sweep -m tiny.yaml --sharding ddp,fsdp --gpus 16 -c h100-8x8-400g --gpu-memory 250MB -r 1.4
works "1 point does not fit" "$zipccl" sweep -m tiny.yaml --sharding ddp --gpus 16 -c h100-8x8-400g --gpu-memory 250MB \
    --keep-unfit --mode raw -r 1.4
works "Usage: zipccl sweep" "$zipccl" sweep --help
works "sweep" "$zipccl" help

# ---- groups of a long name with a comma are where they are, and one field of the CSV
long="data,parallel$(printf '%060d' 0)"
sed "s/\"dp\"/\"$long\"/g" point.jsonl >long.jsonl
works "NIC: " "$zipccl" sweep --trace long.jsonl -c h100-8x8-400g --nic 10Gbps -r 1.4 --csv long.csv
grep -q ',NIC,[a-z_]*,"data,parallel0*",$' long.csv || failed "a long name: $(cat long.csv)"

# ---- a point that fails is a row with its error, the others stand
printf 'not tensors' >bad.safetensors
"$zipccl" sweep -m tiny.yaml --gpus 16 -c h100-8x8-400g --samples bad.safetensors -J failed.json >out 2>err
[ $? -eq 1 ] && grep -q "FAILED: .*bad.safetensors" out && grep -q "1 of 1 points failed" err &&
    grep -q '"error": ".*bad.safetensors' failed.json || failed "a point that fails: $(cat out err)"

# ---- what is refused
refuse() { refuses "$1" "$zipccl" sweep "${@:2}"; }
printf 'model: tiny.yaml\ngpsu: [8]\n' >key.yaml
printf 'model: tiny.yaml\ngpus: []\n' >none.yaml
printf 'model: tiny.yaml\ncluster: h100-8x8-400g\nnic: [100Gbps, 100]\n' >unit.yaml
refuse "key.yaml: line 2: unknown key \"gpsu\"" key.yaml
refuse "none.yaml: line 2: key \"gpus\": an empty list" none.yaml
refuse "unit.yaml: line 3: key \"nic\"" unit.yaml
refuse "missing.yaml" missing.yaml
refuse "given twice, the other by --gpus" sweep.yaml --gpus 8
refuse "no model and no trace" --gpus 8
refuse "no cluster given" -m tiny.yaml
refuse "expected raw, adaptive or all" sweep.yaml --mode fast
refuse "expected t0 or t1" sweep.yaml -f t2
refuse "none of 1 combinations can be run; 1 of them for their parallelism" -m tiny.yaml --tp 3 --gpus 16 -c h100-8x8-400g
refuse "must not overwrite an input" sweep.yaml -J sweep.yaml
refuse "two outputs have the same path" sweep.yaml -J same --csv ./same
refuse "fabric.oversubscripton" -m tiny.yaml -c h100-8x8-400g --set fabric.oversubscripton=2
refuse "llama9" -m llama9 -c h100-8x8-400g

finish
