#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_plots.sh BUILD - e04_codec's plots are drawn from what bench and stat write
#
# Exit 77 without jq or gnuplot, or without codec stat.
set -u
build=$1
plot=$(cd "$(dirname "$0")/../e04_codec" && pwd)/plot.sh
samples=$(cd "$(dirname "$0")/../../traces/samples/tensors" && pwd)
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT

fail() {
    echo "FAILED: $*"
    exit 1
}

command -v jq >/dev/null && command -v gnuplot >/dev/null || { echo "skipped: no jq or gnuplot"; exit 77; }
"$build/zipccl" codec --help | grep -q '^  stat ' || { echo "skipped: no codec stat"; exit 77; }

"$build/zipccl" codec bench -b 4K -e 16K -n 2 -q -J "$work/bench.json" || fail "codec bench"
"$build/zipccl" codec stat "$samples/dense.safetensors" -J "$work/stat-samples-dense.json" >"$work/text" ||
    fail "codec stat"

# Classes hold all covered tensors, and their ratio is that of their bytes.
jq -rs -f "$(dirname "$plot")/classes.jq" "$work"/stat-samples-*.json >"$work/classes.tsv" || fail "classes.jq"
covered=$(jq -s '[.[].tensors[] | select(.covered)] | length' "$work"/stat-samples-*.json)
counted=$(cut -f2 "$work/classes.tsv" | awk '{ n += $1 } END { print n }')
[ "$covered" = "$counted" ] || fail "$covered tensors, $counted in classes"
head=$(jq -r '.tensors[] | select(.name | contains("grad.head")) | .ratio' "$work/stat-samples-dense.json")
awk -F '\t' -v head="$head" '$1 == "head gradients" { found = ($3 - head) ^ 2 < 1e-12 } END { exit !found }' \
    "$work/classes.tsv" || fail "the ratio of head gradients is not $head"

"$plot" "$work" >"$work/names" 2>"$work/errors" || fail "$(cat "$work/errors")"
[ ! -s "$work/errors" ] || fail "$(cat "$work/errors")"
for name in ratio-samples speed; do
    [ "$(head -c 8 "$work/$name.png" | od -An -tx1 | tr -d ' ')" = 89504e470d0a1a0a ] || fail "$name.png is no picture"
done
# Nothing is drawn from a folder without results, and the reason is told.
mkdir "$work/empty"
"$plot" "$work/empty" 2>"$work/errors" && fail "drew from nothing"
grep -q "no bench.json" "$work/errors" || fail "$(cat "$work/errors")"
echo "plots: ok"
