#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test_cli_bundle.sh - zipccl bundle: what is in it, without names of hosts or environment
#
# test_cli_bundle.sh BUILD_DIR
set -u
zipccl=$(realpath "$1")/zipccl
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
printf '{"on": "%s", "peer": "node7.example.org", "other": "x%s, nodes"}\n' "$host" "$host" >a.json
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

# Suffixes, escapes, numbers; addresses as a whole.
printf 'C\\nnode1 \033[1mnode1-eth1 node1-ib0:1 node1_0/Node12.b.c. 1node1 4096 10.0.0.1:80 10.0.0.12 110.0.0.1 10.0.0.1. fe80::1 fe80::12\n' >s.log
"$zipccl" bundle s.log --host node1 --host 10.0.0.1 --host fe80::1 -o s.tar.gz >out 2>err || failed "suffixes: $(cat err)"
tar -xzOf s.tar.gz s.log | sed 's/host[0-9]/H/g' >s.out
printf 'C\\nH \033[1mH H:1 H/H. 1node1 4096 H:80 10.0.0.12 110.0.0.1 H. H fe80::12\n' | cmp - s.out || failed "suffixes: $(cat s.out)"
refuses "' '" a.json --host ' ' -o b2.tar.gz
refuses "'4096'" a.json --host 4096 -o b2.tar.gz

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
