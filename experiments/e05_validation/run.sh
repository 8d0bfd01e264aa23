#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh OUT - measures on the testbed, fits at one rate, predicts the others: tables and a page in OUT
#
# run.sh OUT           everything: needs root, build/zipccl, build/zipccl-perf and Open MPI
# run.sh --fit OUT     the fit and the comparison alone, from what OUT holds
#
# The environment may give ITERS (5), OPS, RATES (Mb/s), WORLDS (hosts) and SIZES (perf's options).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

die() {
    printf 'run.sh: %s\n' "$*" >&2
    exit 2
}

measure=1
[ "${1-}" != --fit ] || { measure=0; shift; }
[ $# -eq 1 ] || die "expected a folder to write to"
out=$1
[ -x build/zipccl ] || die "build/zipccl: not built"
mkdir -p "$out"

ops=${OPS:-all_gather reduce_scatter all_reduce alltoall}
sizes=${SIZES:--b 1M -e 32M -f 2} # as nccl-tests counts them
fit_rate=200 fit_nodes=4       # what is fitted: this rate and world, disturbed least ...
fit_sizes=1M,4M,16M            # ... and these three sizes
rates=${RATES:-200 500 1000} worlds=${WORLDS:-2 3 4}
plans=('raw direct' 'exact direct')

testbed=(experiments/testbed/testbed.sh)
# One file a rate, a world, an op and a plan: fit_RATE_NODES_OP_PLAN.json
measure_world() { # measure_world RATE NODES
    local op plan file
    "${testbed[@]}" up --name e05 -n "$2" -r "${1}mbit" 2>>"$out/fit_log.txt"
    for op in $ops; do
        for plan in "${plans[@]}"; do
            file=$out/fit_${1}_${2}_${op}_${plan%% *}.json
            # shellcheck disable=SC2086
            "${testbed[@]}" mpirun --name e05 -- build/zipccl perf "$op" $sizes \
                --strategy "$plan" -n "${ITERS:-5}" -w 1 -J "$file" -q 2>>"$out/fit_log.txt"
            echo "$file"
        done
    done
    "${testbed[@]}" down --name e05
}
if [ $measure = 1 ]; then
    trap '"${testbed[@]}" down --name e05' EXIT
    uptime >"$out/fit_load.txt"
    for rate in $rates; do
        for nodes in $worlds; do measure_world "$rate" "$nodes"; done
    done
    uptime >>"$out/fit_load.txt"
fi

# The sums of a comparison, without the rows.
summary() {
    sed -n '/^  off, rows of/,$p' | grep -v ' wrote '
}

# fit_and_compare FOLDER NAME: fits to the rows in FOLDER, compares; $out/NAME.yaml, _table.txt, .txt
fit_and_compare() {
    local from=$1 to=$out/$2 nic of_rate rate nodes
    # The base says what the fit leaves: a node is one rank with one link.
    build/zipccl cluster fit "$from/fit_${fit_rate}_${fit_nodes}"_*.json --sizes $fit_sizes \
        --base laptop --set nic.per_node=1 --name "testbed-$fit_rate" -o "$to.yaml" | sed "/^  wrote /d" >"${to}_table.txt"
    nic=$(sed -n '/^nic:/,/^[a-z]*:$/s/^  rate: {value: \([0-9.]*\)MBps.*/\1/p' "$to.yaml")
    [ -n "$nic" ] || die "$to.yaml: no nic.rate in MBps"
    for rate in $rates; do
        # Of another rate the link has the same part: nic.rate in proportion.
        of_rate=$(awk -v n="$nic" -v r="$rate" -v f="$fit_rate" 'BEGIN {printf "%.6g", n * r / f}')
        for nodes in $worlds; do
            echo "== $rate Mb/s, $nodes nodes: nic.rate ${of_rate}MBps"
            build/zipccl compare --cluster "$to.yaml" --set nic.rate="${of_rate}MBps" \
                "$from/fit_${rate}_${nodes}"_*.json --min-bytes 1MB | summary
        done
        build/zipccl compare --cluster "$to.yaml" --set nic.rate="${of_rate}MBps" \
            "$from/fit_${rate}"_[0-9]_*.json --min-bytes 1MB -q --svg "${to}_${rate}.svg" \
            --csv "${to}_${rate}.csv"
    done >"$to.txt"
}

fit_and_compare "$out" fit_model
cat "$out/fit_model_table.txt" "$out/fit_model.txt"

# On a machine that does something else besides, the fastest iteration was disturbed least: the same of it.
fastest=$(mktemp -d)
trap 'rm -rf "$fastest"' EXIT
for file in "$out"/fit_[0-9]*.json; do
    jq '.rows |= map(.time_s = .time_min_s | .time_q1_s = .time_min_s | .time_q3_s = .time_min_s)' \
        "$file" >"$fastest/$(basename "$file")"
done
fit_and_compare "$fastest" fit_model_fastest
echo "==== the fastest of the iterations"
cat "$out/fit_model_fastest.txt"
