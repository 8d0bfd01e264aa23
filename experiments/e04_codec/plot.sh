#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# plot.sh FOLDER - draws ratio-*.png and speed.png from the JSON files in FOLDER
#
# FOLDER holds what run.sh writes: bench.json, and stat-SET-NAME.json of sets of tensors.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

die() {
    printf 'plot.sh: %s\n' "$*" >&2
    exit 2
}

[ $# -eq 1 ] || die "expected one folder with results"
for tool in jq gnuplot; do
    command -v $tool >/dev/null || die "$tool is needed: apt-get install jq gnuplot-nox"
done
cd "$1" || die "$1: no such folder"
[ -r bench.json ] || die "$1: no bench.json; run.sh writes it"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# draw NAME SCRIPT SETTINGS - the picture appears whole or not at all
draw() {
    gnuplot -e "output = '$work/$1'; $3" "$here/$2"
    mv "$work/$1" "$1"
}

for set in $(ls stat-*.json | sed 's/^stat-//; s/-[^-]*$//' | sort -u); do
    jq -rs -f "$here/classes.jq" stat-"$set"-*.json >"$work/classes.tsv"
    draw "ratio-$set.png" ratio.gp "data = '$work/classes.tsv'; rows = $(wc -l <"$work/classes.tsv"); title = 'Ratio by class of tensor (how many), set \"$set\"'"
done

jq -r '[.rows[] | select(.dtype == "bf16")] as $rows
    | [$rows[] | [.codec, .isa]] | reduce .[] as $x ([]; if index([$x]) then . else . + [$x] end)
    | .[] as [$codec, $isa]
    | ($rows | map(select(.codec == $codec and .isa == $isa)) | sort_by(.raw_bytes)
        | .[] | [.raw_bytes, .encode_GBps, .encode_q1_GBps, .encode_q3_GBps, .decode_GBps,
                 .decode_q1_GBps, .decode_q3_GBps, .memcpy_GBps, .best_copy_GBps // "NaN"] | @tsv),
      "\n"' bench.json >"$work/speed.tsv"
list=$(jq -r '[.rows[] | select(.dtype == "bf16") | if .codec == "zipccl" then "zipccl " + .isa else .codec end]
    | reduce .[] as $x ([]; if index([$x]) then . else . + [$x] end) | join(",")' bench.json)
machine=$(jq -r '.machine | "\(.cpu), \(.cores) cores, load \(.load_before)"' bench.json)
draw speed.png speed.gp "data = '$work/speed.tsv'; list = '$list'; names = '$(echo "$list" | tr -d ' ' | tr ',' ' ')'; title = 'One thread, bf16, $(jq -r '.rows[0].input' bench.json): median and quartiles. $machine'"
ls -- ratio-*.png speed.png
