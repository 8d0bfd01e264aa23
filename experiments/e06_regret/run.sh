#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh OUT [EVERY] - how far the chooser's plans are from the best: grid, summary and plot in OUT
#
# Question: does adaptive take a plan within 2 % (median) and 10 % (everywhere) of the best candidate?
# Needs build/tests/regret; one point in EVERY (default 5) of the 1344 of the grid.  Simulated.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

die() {
    printf 'run.sh: %s\n' "$*" >&2
    exit 2
}

[ $# -ge 1 ] && [ $# -le 2 ] || die "expected a folder to write to, and perhaps EVERY"
[ -x build/tests/regret ] || die "build/tests/regret: not built"
command -v gnuplot >/dev/null || die "gnuplot is needed: apt-get install gnuplot-nox"
out=$1
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build/tests/regret "${2:-5}" >"$work/regret.csv"
mv "$work/regret.csv" "$out/regret.csv"
experiments/e06_regret/summary.sh "$out/regret.csv" >"$work/summary.txt"
mv "$work/summary.txt" "$out/summary.txt"
tail -n +2 "$out/regret.csv" | cut -d, -f26 | sort -g >"$work/sorted"
gnuplot -e "output = '$work/regret.png'; data = '$work/sorted'; n = $(wc -l <"$work/sorted")" \
    experiments/e06_regret/regret.gp
mv "$work/regret.png" "$out/regret.png"
cat "$out/summary.txt"
