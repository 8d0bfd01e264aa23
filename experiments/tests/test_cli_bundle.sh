#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_cli_bundle.sh - zipccl bundle: what is in it, without names of hosts or environment
#
# test_cli_bundle.sh BUILD_DIR
set -u
zipccl=$(realpath "$1")/zipccl
results=$(realpath "$(dirname "$0")/../results/testbed-2026-11-30-quiet") || exit 1
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
bad=0

failed() {
    echo "failed: $*"
    bad=1
}

# refuses TEXT ARGUMENT... - exit code 2, one line with TEXT, no bundle
refuses() {
    "$zipccl" bundle "${@:2}" >out 2>err
    [ $? -eq 2 ] && [ "$(wc -l <err)" -eq 1 ] && grep -qF -- "$1" err || failed "$*: $(cat out err)"
}

host=$(uname -n)
ours='"schema": {"name": "zipccl.perf", "version": 1}'
printf '{%s, "on": "%s", "peer": "node7.example.org", "other": "x%s, nodes"}\n' "$ours" "$host" "$host" >a.json
printf 'zipccl-rank 0 of 2 on gpu-a.example.org: GPUs none\n0: zipccl-rank 1 of 2 on gpu-b: GPUs none\n' >p.txt
SECRET_OF_TEST=hidden-value "$zipccl" bundle a.json p.txt --host node7 -o b.tar.gz >out 2>err || failed "bundle: $(cat err)"
mkdir x && tar -xzf b.tar.gz -C x || failed "no tar.gz"
for name in CONTENTS a.json p.txt versions.txt; do
    [ -s x/$name ] || failed "no $name in it"
    [ $name = CONTENTS ] || grep -q "^$name " out || failed "$name is not listed"
done
grep -q '"on": "host[0-9]*", "peer": "host[0-9]*", "other": "x'"$host"', nodes"' x/a.json || failed "names: $(cat x/a.json)"
! grep -q 'gpu-a\|gpu-b\|example' x/p.txt && [ "$(grep -c 'on host[0-9]*: GPUs' x/p.txt)" -eq 2 ] || failed "names: $(cat x/p.txt)"
! grep -rq hidden-value x || failed "the environment is in it"
grep -q 'zipccl [0-9]' x/versions.txt || failed "no version: $(cat x/versions.txt)"
[ ! -e b2.tar.gz ] || failed "b2.tar.gz is there"

# Names of hosts in names of files; a member's name is what CONTENTS and the listing have.
cp a.json "perf_$host.json" && cp a.json "perf.$host.json.log" && cp a.json node7.example.org.json && cp a.json node7.example.com.json
"$zipccl" bundle "perf_$host.json" "perf.$host.json.log" node7.example.org.json --host node7 -o n.tar.gz >out 2>err ||
    failed "names of files: $(cat err)"
{ tar -tzf n.tar.gz && tar -xzOf n.tar.gz CONTENTS && cat out; } >names
! grep -qi -e "$host" -e node7 -e example names && [ "$(grep -c '^perf[._]host[0-9]*\.json' names)" -eq 6 ] &&
    [ "$(grep -c '^host[0-9]*\.json' names)" -eq 3 ] || failed "names of files: $(cat names)"
refuses "two files are named host" node7.example.org.json node7.example.com.json --host node7 -o b2.tar.gz

# Suffixes, escapes, numbers; addresses as a whole; keys and the schema as they are.
cat >s.json <<END
{$ours, "mode": 4096, "perf": "mode", "node1": [10.0, 1e5, 0.50],
  "a": "node1-ib0:1 node1_0/Node12.b.c.", "b": "x\nnode1 \"node1\" \u006eode1", "c": "modes model mode",
  "d": "10.0.0.1:80 10.0.0.12 110.0.0.1 10.0.0.1.", "e": "fe80::1 fe80::12", "f": "\u00e9\n kept"}
END
printf 'C\\nnode1 \033[1mnode1-eth1 node1-ib0:1 node1_0/Node12.b.c. 1node1 4096 10.0.0.1:80 10.0.0.12 110.0.0.1 10.0.0.1. fe80::1 fe80::12\n' >s.log
printf 'op,mode,bytes\nall_gather,mode,10.0\nnode1_3,x,4096\n' >s.csv
gzip -c s.json >g.json.gz
"$zipccl" bundle s.json s.log s.csv g.json.gz --host node1 --host mode --host perf --host 10.0.0.1 --host fe80::1 -o s.tar.gz >out 2>err ||
    failed "suffixes: $(cat err)"
mkdir s && tar -xzf s.tar.gz -C s
sed -i 's/host[0-9]/H/g' s/*
cat >expected <<END
{$ours, "mode": 4096, "perf": "H", "node1": [10.0, 1e5, 0.50],
  "a": "H:1 H/H.", "b": "x\nH \"H\" H", "c": "modes model H",
  "d": "H:80 10.0.0.12 110.0.0.1 H.", "e": "H fe80::12", "f": "\u00e9\n kept"}
END
cmp s/s.json expected || failed "JSON: $(cat s/s.json)"
gzip -dc s/g.json.gz >g.json && sed 's/host[0-9]/H/g' g.json | cmp - expected || failed "JSON with gzip: $(cat g.json)"
printf 'C\\nH \033[1mH H:1 H/H. 1node1 4096 H:80 10.0.0.12 110.0.0.1 H. H fe80::12\n' | cmp - s/s.log || failed "log: $(cat s/s.log)"
printf 'op,mode,bytes\nall_gather,H,10.0\nH,x,4096\n' | cmp - s/s.csv || failed "CSV: $(cat s/s.csv)"

# What was packed is still read; this tree's traces and results are taken.
cp "$results"/1gbit-all_gather-{activations,tokens}.json . && cp "$results"/../regret-*/regret.csv .
gzip -c "$results"/../../../traces/samples/moe4/trace.jsonl >trace.jsonl.gz
"$zipccl" bundle 1gbit-*.json regret.csv trace.jsonl.gz --host zipccl -o r.tar.gz >out 2>err || failed "results: $(cat err)"
mkdir r && tar -xzf r.tar.gz -C r && cmp r/regret.csv regret.csv
for name in . r; do
    "$zipccl" compare $name/1gbit-all_gather-activations.json $name/1gbit-all_gather-tokens.json --csv - >rows.$(basename $name).csv 2>err || failed "compare: $(cat err)"
done
[ -s rows.r.csv ] && cmp rows.r.csv rows...csv || failed "compare reads something else"
gzip -dc r/trace.jsonl.gz | cmp - "$results"/../../../traces/samples/moe4/trace.jsonl || failed "the trace is another"

# What is no result.
refuses "' '" a.json --host ' ' -o b2.tar.gz
refuses "'4096'" a.json --host 4096 -o b2.tar.gz
: >empty.txt && refuses "empty.txt: empty" a.json empty.txt -o b2.tar.gz
mkfifo fifo.txt && refuses "fifo.txt: a FIFO" fifo.txt -o b2.tar.gz
refuses "/dev/null: a device" /dev/null -o b2.tar.gz
head -c 64 "$zipccl" >elf.log && refuses "elf.log: binary" elf.log -o b2.tar.gz
mkdir l && ln -s ../a.json l/out.json && refuses "l/out.json: a symbolic link out of its folder" l/out.json -o b2.tar.gz
sed 's/zipccl.perf/zipccl.plan_steps/' a.json >plan.json && "$zipccl" bundle plan.json -o plan.tar.gz >out 2>err || failed "plan: $(cat err)"
ln -s a.json in.json && "$zipccl" bundle in.json -o in.tar.gz >out 2>err || failed "link: $(cat err)"
echo '{"key": "secret"}' >other.json && refuses "other.json: JSON without a schema" other.json -o b2.tar.gz
echo "{$ours" >cut.json && refuses "cut.json:2: no JSON" cut.json -o b2.tar.gz
echo 'secret' >id_rsa && refuses "id_rsa: no kind of result" id_rsa -o b2.tar.gz
head -c 60 g.json.gz >cut.json.gz && refuses "cut.json.gz: damaged or cut gzip" cut.json.gz -o b2.tar.gz
cp g.json.gz g2.json && refuses "g2.json: packed with gzip" g2.json -o b2.tar.gz
cp a.json a2.json.gz && refuses "a2.json.gz: not packed" a2.json.gz -o b2.tar.gz

refuses "expected RESULT" -o b2.tar.gz
refuses "expected RESULT" a.json
refuses "none.json: No such file" none.json -o b2.tar.gz
refuses "expected a regular file" . -o b2.tar.gz
mkdir y && cp a.json y/
refuses "another file is named a.json" a.json y/a.json -o b2.tar.gz
refuses "a.json" a.json -o a.json
ls b2.tar.gz* 2>/dev/null && failed "something half-written is left"

# A machine with nvidia-smi, which says the host's name.
mkdir bin
printf '#!/bin/sh\necho "said by nvidia-smi on %s: $*"\n' "$host" >bin/nvidia-smi
chmod +x bin/nvidia-smi
PATH=$folder/bin:$PATH "$zipccl" bundle a.json -o g.tar.gz >out 2>err || failed "with nvidia-smi: $(cat err)"
mkdir z && tar -xzf g.tar.gz -C z
grep -q 'on host[0-9]*: topo -m' z/topology.txt && grep -q 'clocks.sm' z/clocks.txt || failed "no topology or clocks: $(ls z)"
exit $bad
