#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh OUT - steps of six jobs on 64 GPUs, replayed over NIC and codec rates: points.csv, summary.txt, page.html
#
# Simulated throughout.  Needs build/zipccl, build/zipccl-sim and jq; takes minutes on two cores.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

die() {
    printf 'run.sh: %s\n' "$*" >&2
    exit 2
}

[ $# -eq 1 ] || die "expected a folder to write to"
[ -x build/zipccl ] || die "build/zipccl: not built"
[ -x build/zipccl-sim ] || die "build/zipccl-sim: not built"
command -v jq >/dev/null || die "jq: not found"
mkdir -p "$1/json"
out=$(cd "$1" && pwd)
export out
traces=$(mktemp -d)
trap 'rm -rf "$traces"' EXIT
export traces

# The jobs: dense and mixture of experts, each on 64 GPUs.
make_trace() { # make_trace NAME OPTION...
    local name=$1
    shift
    build/zipccl trace generate "$@" -c a100-8x8-200g -o "$traces/$name.jsonl" >"$out/json/$name.txt"
}
make_trace dense-8b-fsdp -m llama3-8b --sharding fsdp --dp 64
make_trace dense-7b-zero1 -m llama2-7b --sharding zero1 --dp 64 --micro-batch 2
make_trace dense-70b-3d -m llama3-70b --tp 8 --sp --pp 2 --dp 4 --global-batch 16
make_trace moe-30b-ep64 -m qwen3-30b-a3b --dp 64 --ep 64
make_trace moe-30b-ep8 -m qwen3-30b-a3b --dp 64 --ep 8
make_trace moe-47b-tp8 -m mixtral-8x7b --tp 8 --sp --dp 8 --ep 8
jobs='dense-70b-3d moe-30b-ep64 moe-47b-tp8 moe-30b-ep8 dense-7b-zero1 dense-8b-fsdp' # the slow ones first

# The systems: NAME CLUSTER CODEC_GBPS [--set ...]; rates are effective, 24.2 GB/s of 200 Gb/s.
cat >"$traces/systems" <<'END'
a100-100g a100-8x8-200g 250 --set nic.rate=12.1GBps
a100-200g a100-8x8-200g 250
a100-400g a100-8x8-200g 250 --set nic.rate=48.4GBps
a100-800g a100-8x8-200g 250 --set nic.rate=96.8GBps
a100-8x200g a100-8x8-200g 250 --set nic.per_node=8
h100-8x400g h100-8x8-400g 410
END

# replay_on SYSTEM TRACE OPTION...: with the system's cluster and settings
replay_on() {
    local system=$1 trace=$2 cluster sets
    shift 2
    read -r _ cluster _ sets < <(grep "^$system " "$traces/systems")
    # shellcheck disable=SC2086
    build/zipccl replay "$traces/$trace.jsonl" -c "$cluster" -q -j 1 --steps-only ${sets-} "$@"
}

# native SYSTEM TRACE: the step by NCCL's own algorithms, which the paper compares with
native() {
    replay_on "$1" "$2" --mode raw --baseline native -J "$out/json/$2.$1.native.json"
}

# point SYSTEM TRACE FACTOR RATIO: a line of points.csv.  FACTOR is of the codec's assumed rates; RATIO 'codec': as
# the codec reaches on captured tensors.
point() {
    local system=$1 trace=$2 factor=$3 ratio=$4 codec
    local file=$out/json/$2.$1.codec$3.ratio$4.json
    local -a options
    codec=$(awk -v s="$system" -v f="$factor" '$1 == s {printf "%g", $3 * f}' "$traces/systems")
    options=(--set codec.encode_rate="${codec}GBps" --set codec.decode_rate="${codec}GBps")
    [ "$ratio" = codec ] || options+=(--ratio "$ratio")
    replay_on "$system" "$trace" "${options[@]}" -J "$file"
    jq -rn --slurpfile b "$file" --slurpfile n "$out/json/$trace.$system.native.json" --arg t "$trace" \
        --arg s "$system" --argjson f "$factor" --arg ratio "$ratio" --argjson codec "$codec" '
        def calls(key): [.rows[][key]] | add;
        $b[0] as $best | $n[0] as $native
        | $best.totals.step_time_adaptive_s as $step | ($best | calls("time_adaptive_s")) as $comm
        | [$t, $s, $f, $codec, $ratio, $best.totals.raw_bytes / $best.totals.wire_bytes,
           1e3 * $native.totals.step_time_raw_s, 1e3 * $best.totals.step_time_raw_s,
           1e3 * $best.totals.step_time_compressed_s, 1e3 * $step, $best.totals.exposed_comm_share,
           ($native | calls("time_raw_s")) / $comm, ($best | calls("time_raw_s")) / $comm,
           $native.totals.step_time_raw_s / $step, $best.totals.step_time_raw_s / $step]
        | map(if type == "number" then . * 1e4 | round / 1e4 else . end) | @csv' | tr -d '"'
}
export -f replay_on native point

all_systems() { # all_systems TRACE...
    local trace system
    for trace in "$@"; do
        while read -r system _; do echo "$system $trace"; done <"$traces/systems"
    done
}
# Rates and ratio are varied where a NIC is shared by eight GPUs, and where each has its own.
points() {
    # shellcheck disable=SC2086
    all_systems $jobs | sed 's/$/ 1 codec/'
    # shellcheck disable=SC2086
    all_systems $jobs | grep -E '^(a100-200g|a100-8x200g|h100-8x400g) ' |
        while read -r system trace; do
            for factor in 0.5 0.25; do echo "$system $trace $factor codec"; done
            echo "$system $trace 1 1.4"
        done
}
run_all() { xargs -P "$(nproc)" -L 1 bash -c 'set -euo pipefail; f=$1; shift; "$f" "$@"' _ "$1"; }

# shellcheck disable=SC2086
all_systems $jobs | run_all native
head=trace,system,codec_factor,codec_GBps,ratio_from,ratio,native_ms,raw_ms,always_ms,adaptive_ms,exposed_share
{
    echo "$head,comm_over_native,comm_over_best,step_over_native,step_over_best"
    points | run_all point | sort
} >"$out/points.csv"
build/zipccl report "$out"/json/*.codec1.ratiocodec.json --title "64 GPUs, simulated" -q -o "$out/page.html"
experiments/e07_paper/summary.sh "$out/points.csv" | tee "$out/summary.txt"
