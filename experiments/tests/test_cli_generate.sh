#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_cli_generate.sh - steps made up at the command line: written, checked, replayed, refused
#
# test_cli_generate.sh BUILD    run from the root of the source tree
. "$(dirname "$0")/cli_helpers.sh"

cat >tiny.yaml <<'END'
name: tiny
description: eight small layers
source: "made up for this test"
layers: 8
hidden: 64
ffn: 256
heads: 4
vocab: 64
gated: true
END
# 2 ms a layer forward, 4 ms backward, nothing else.
cat >times.yaml <<'END'
embedding_forward: 0ms
embedding_backward: 0ms
attention_forward: 1ms
attention_backward: 2ms
mlp_forward: 1ms
mlp_backward: 2ms
head_forward: 0ms
head_backward: 0ms
optimizer: 0ms
END
echo '{"model_type":"llama","hidden_size":64,"intermediate_size":256,"num_attention_heads":4,"num_hidden_layers":8,"vocab_size":64}' >config.json
sed 's/1ms/1/' times.yaml >nounit.yaml
echo 'attention: 1ms' >badtimes.yaml
generate="$zipccl trace generate"

# ---- models
works "70,553,706,496" "$zipccl" trace models
works "671,026,419,200" $generate --model list
mkdir own
cp tiny.yaml own
works "tiny" "$zipccl" trace models --model-dir own

# ---- what is written passes the check, is described, and replays
$generate -m llama3-70b --dp 8 --estimate --gpu-memory 80GB >out 2>err || failed "an estimate: $(cat err)"
grep -q "DOES NOT FIT" out && grep -q "warning: .* do not fit" err || failed "no warning: $(cat out err)"
$generate -m llama3-70b --sharding fsdp --dp 64 --seq 8192 --recompute full -c h100-8x8-400g --estimate >out 2>err ||
    failed "the example of the docs: $(cat err)"
[ ! -s err ] && ! grep -q "DOES NOT FIT" out && grep -q "1 micro-batch of" out || failed "the example of the docs: $(cat out err)"
works "weight-sync" "$zipccl" trace generate --help
works "bounds by formula" $generate -m qwen3-0.6b --dp 8 --sharding fsdp -c h100-8x8-400g --set nodes=1 -o fsdp.jsonl.gz
works "ok: qwen3-0.6b" "$zipccl" trace check fsdp.jsonl.gz
works "nothing measured" "$zipccl" trace info fsdp.jsonl.gz
grep -q "names bound, .* 0 missing" out || failed "no samples bound: $(cat out)"
works "end to end" "$zipccl" replay fsdp.jsonl.gz -c h100-8x8-400g --set nodes=1 -f t0
# Tensors are named from the trace's folder, of which links are followed, and told where they are missing.
zcat fsdp.jsonl.gz | head -1 | grep -q '"samples":"\.\./.*dense.safetensors"' || failed "samples by an absolute path"
mkdir -p deep/er && ln -s deep/er link
$generate -m llama3-8b --dp 8 -q -o link/t.jsonl || failed "into a link"
grep -q "names bound, .* 0 missing" <("$zipccl" trace info deep/er/t.jsonl) || failed "no samples from a link"
mkdir -p far/away/from/here && sed '1s|"samples":"|&lost/|' link/t.jsonl >far/t.jsonl
refuses "dense.safetensors', expected the tensors at far/lost/" "$zipccl" replay far/t.jsonl -c h100-8x8-400g --set nodes=1
head -c 500 fsdp.jsonl.gz >cut.jsonl.gz
refuses "the gzip stream is cut after 500 bytes" "$zipccl" replay cut.jsonl.gz -c h100-8x8-400g --set nodes=1
works "wrote" $generate -m tiny.yaml --dp 16 --sharding fsdp --shard 8 --samples none -c h100-8x8-400g --set nodes=2 -o hsdp.jsonl
works "replicas" "$zipccl" replay hsdp.jsonl -c h100-8x8-400g --set nodes=2 --ratio 1.3 -f t0
works "wrote" $generate -m config.json --tp 2 --sp --dp 2 --peak 100TFLOPS --mfu 0.5 -o peak.jsonl
grep -q '"duration_s"' peak.jsonl || failed "no durations in peak.jsonl"
grep -q '"flops"' peak.jsonl && failed "flops in peak.jsonl, which would be taken before durations"
works "GB a rank" $generate -m llama3-8b --workload weight-sync --sync all-gather --dp 8 --samples none -o sync.jsonl
works "no compute events" "$zipccl" trace check sync.jsonl

# step NAME RANKS OPTION... - the simulated raw step in ms, of a trace of 'tiny' with given times
step() {
    local name=$1 ranks=$2
    shift 2
    works "" $generate -m tiny.yaml --seq 64 --times times.yaml "$@" -q -o "$name.jsonl"
    works "" "$zipccl" trace check "$name.jsonl"
    works "" "$zipccl" replay "$name.jsonl" -c h100-8x8-400g --set nodes=1 --set gpus_per_node="$ranks" --set nic.per_node="$ranks" -m raw -f t0 -q -J "$name.json"
    sed -n 's/.*"step_time_raw_s": \([0-9.e-]*\).*/\1/p' "$name.json"
}

# expect MS NAME RANKS OPTION... - that step, within 0.5 ms for the messages
expect() {
    local want=$1 got
    shift
    got=$(step "$@")
    awk -v a="$got" -v b="$want" 'BEGIN {d = 1000 * a - b; exit !(a != "" && d >= 0 && d < 0.5)}' ||
        failed "step of $* is '$got' s, expected $want ms and little more"
}

# ---- 1F1B takes m + p - 1 turns, interleaved m + (p - 1) / v
expect 132 plain 4 --pp 4 --global-batch 8
expect 114 woven 4 --pp 4 --vpp 2 --global-batch 8
expect 66 short 4 --pp 4 --vpp 2 --global-batch 4
expect 60 few 4 --pp 4 --global-batch 2

# ---- a loop and its copies take the same time
for options in "--pp 4 --global-batch 12" "--pp 2 --vpp 2 --tp 2 --sp --global-batch 8" \
    "--dp 4 --global-batch 20 --sharding ddp" "--cp 2 --tp 2 --global-batch 3 --recompute full" \
    "--dp 4 --global-batch 12 --sharding fsdp" "--pp 2 --dp 2 --global-batch 12 --overlap param"; do
    loop=$(step loop 4 $options)
    copy=$(step copy 4 $options --unroll)
    awk -v a="$loop" -v b="$copy" 'BEGIN {exit !(a != "" && a - b < 1e-9 * a && b - a < 1e-9 * a)}' ||
        failed "steps of $options: '$loop' s as loops, '$copy' s as copies"
    [ "$(wc -l <loop.jsonl)" -lt "$(wc -l <copy.jsonl)" ] || failed "$options: no line saved"
done

# ---- experts: the same for passes in pairs, and what is hidden makes the step shorter
sed 's/^name: tiny/name: few/; s/^ffn: .*/&\nexperts: 8\ntopk: 2\nexpert_ffn: 64/' tiny.yaml >few.yaml
moe() {
    local name=$1
    shift
    works "" $generate -m few.yaml --seq 4096 --times times.yaml "$@" -q --samples none -o "$name.jsonl"
    works "" "$zipccl" replay "$name.jsonl" -c h100-8x8-400g --set nodes=4 --set gpus_per_node=2 --set nic.per_node=2 -m raw -f t0 --ratio 1.3 -q -J "$name.json"
    sed -n 's/.*"step_time_raw_s": \([0-9.e-]*\).*/\1/p' "$name.json"
}
experts="--pp 2 --dp 4 --ep 4 --global-batch 44 --ranks-per-node 2"
pairs=$(moe pairs $experts --overlap grad,p2p,a2a)
copies=$(moe copies $experts --overlap grad,p2p,a2a --unroll)
apart=$(moe apart $experts)
nodes=$(moe nodes $experts --dispatch node)
awk -v a="$pairs" -v b="$copies" 'BEGIN {exit !(a != "" && a - b < 1e-9 * a && b - a < 1e-9 * a)}' ||
    failed "steps in pairs: '$pairs' s as loops, '$copies' s as copies"
awk -v a="$pairs" -v b="$apart" 'BEGIN {exit !(a != "" && a < b)}' || failed "in pairs '$pairs' s, apart '$apart' s"
[ -n "$nodes" ] && grep -q '"ep.rail"' nodes.jsonl || failed "no dispatch by nodes"
works "EP 2 x ETP 2" $generate -m few.yaml --tp 2 --sp --dp 2 --ep 2 --etp 2 --overlap grad,tp --samples none -o etp.jsonl
refuses "several whole nodes" $generate -m few.yaml --dp 4 --ep 4 --ranks-per-node 4 --dispatch node -o x.jsonl

# ---- the same step as the bundled one, which was written by other code, takes the same time
works "" $generate -m llama2-7b --sharding fsdp --dp 64 -c $a100 -q -o seven.jsonl
for name in seven.jsonl "$llama"; do
    works "" "$zipccl" replay "$name" -c $a100 -m raw -f t0 -q -J seven.json
    sed -n 's/.*"step_time_raw_s": \([0-9.e-]*\).*/\1/p' seven.json
done >steps
awk 'NR == 1 {a = $1} END {exit !(NR == 2 && a > 0 && (a - $1)^2 < (0.002 * a)^2)}' steps ||
    failed "steps of FSDP made up and bundled: $(cat steps)"

# ---- a run that is ended leaves nothing
# ended PATTERN COMMAND... - ends the command by SIGTERM when a file of PATTERN is there
ended() {
    local pattern=$1 pid i
    shift
    ntests=$((ntests + 1))
    "$@" >out 2>err </dev/null &
    pid=$!
    for i in $(seq 600); do
        compgen -G "$pattern" >/dev/null && break
        sleep 0.05
    done
    compgen -G "$pattern" >/dev/null || failed "no $pattern while running: $* $(cat err)"
    kill -TERM $pid
    wait $pid && failed "a terminated run ends well: $*"
    ! compgen -G "ended*" >left || failed "a terminated run leaves: $(cat left)"
}
ended "ended.jsonl.*.tmp" $generate -m llama3-405b --tp 8 --sp --pp 8 --dp 8 --global-batch 65536 --unroll --samples none -o ended.jsonl
$generate -m llama3-70b --tp 8 --sp --pp 8 --dp 2 --global-batch 256 --samples none -q -o large.jsonl 2>err || failed "$(cat err)"
ended "ended/x.1.et.partial" "$zipccl" trace export chakra large.jsonl -o ended/x
rm large.jsonl

# ---- what is refused, with the reason
refuses "no model is named \"llama\"" $generate -m llama -o x.jsonl
refuses "no --model given" $generate -o x.jsonl
refuses "no -o OUT given" $generate -m llama3-8b
refuses "exclude each other" $generate -m llama3-8b --estimate -o x.jsonl
refuses "does not divide the 32 heads" $generate -m llama3-8b --tp 3 -o x.jsonl
refuses "is no multiple of tp x pp x cp" $generate -m llama3-8b --tp 8 --gpus 12 -o x.jsonl
refuses "exclude each other" $generate -m llama3-8b --dp 2 --gpus 12 -o x.jsonl
refuses "expected one of" $generate -m llama3-8b --sharding zero9 -o x.jsonl
refuses "expected one of" $generate -m llama3-8b --overlap grad,magic -o x.jsonl
refuses "expected a divisor of dp x cp = 16" $generate -m llama3-8b --dp 16 --sharding fsdp --shard 16 -o x.jsonl
refuses "go together" $generate -m llama3-8b --peak 100TFLOPS -o x.jsonl
refuses "--seq" $generate -m llama3-8b --seq 0 -o x.jsonl
refuses "name one" $generate -m llama3-8b --set nic.rate=1Gbps -o x.jsonl
refuses "No such file" $generate -m llama3-8b --samples none.safetensors -o x.jsonl
refuses "overwrite an input" $generate -m tiny.yaml -o tiny.yaml
refuses "attention_forward" $generate -m tiny.yaml --times nounit.yaml -o x.jsonl
refuses "unknown key \"attention\"" $generate -m tiny.yaml --times badtimes.yaml -o x.jsonl
refuses "--ranks-per-node 3 does not divide 8 ranks" $generate -m tiny.yaml --dp 8 --ranks-per-node 3 -o x.jsonl
works "wrote" $generate -m tiny.yaml --dp 8 --ranks-per-node 2 --samples none -o per_node.jsonl
grep -q '"ranks_per_node":2' per_node.jsonl || failed "no ranks_per_node: $(head -1 per_node.jsonl)"
cat tiny.yaml times.yaml | sed '9a ---' >two.yaml
refuses "a second document" $generate -m two.yaml --dp 2 -o x.jsonl
(cat times.yaml; echo ---; cat times.yaml) >twotimes.yaml
refuses "a second document" $generate -m tiny.yaml --dp 2 --times twotimes.yaml -o x.jsonl
refuses "dp is 1" $generate -m tiny.yaml --workload weight-sync -o x.jsonl
refuses "unexpected argument" "$zipccl" trace models all
refuses "name a trace" "$zipccl" trace check
head -3 plain.jsonl >cut.jsonl
refuses "cut.jsonl" "$zipccl" trace check cut.jsonl
refuses "tiny.yaml" "$zipccl" trace check tiny.yaml

finish
