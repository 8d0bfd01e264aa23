#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh OUT [BENCH OPTION...] - measures the codec on this machine: JSON and plots in OUT
#
# Needs build/zipccl.  Tensors: ../shared/data/tensors where it is, and traces/samples/tensors.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

die() {
    printf 'run.sh: %s\n' "$*" >&2
    exit 2
}

[ $# -ge 1 ] || die "expected a folder to write to"
[ -x build/zipccl ] || die "build/zipccl: not built"
out=$1
shift
mkdir -p "$out"
[ $# -gt 0 ] || set -- -b 64K -e 64M -f 2
build/zipccl codec bench "$@" -J "$out/bench.json"
for set in captured:../shared/data/tensors samples:traces/samples/tensors; do
    for file in "${set#*:}"/*.safetensors; do
        [ -r "$file" ] || { echo "run.sh: no tensors in ${set#*:}: left out" >&2; continue; }
        name=stat-${set%%:*}-$(basename "$file" .safetensors)
        build/zipccl codec stat "$file" -J "$out/$name.json" | tail -6 | sed "s/^/# /"
    done
done
experiments/e04_codec/plot.sh "$out"
