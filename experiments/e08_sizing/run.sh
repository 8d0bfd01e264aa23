#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh - the sweeps of e08: where compression pays on 64 to 1024 simulated GPUs, by the speed of the NICs
#
# run.sh OUT    run from the root of the source tree, built into build/; OUT is made
set -euo pipefail
[ $# -eq 1 ] || { echo "run.sh: usage: run.sh OUT" >&2; exit 2; }
mkdir -p "$1"
for sweep in dense moe; do
    build/zipccl sweep "experiments/e08_sizing/$sweep.yaml" --csv "$1/$sweep.csv" >"$1/$sweep.txt"
done
