#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh OUT - measures on the testbed, fits at one rate, predicts the others: tables and a page in OUT
#
# run.sh OUT           everything: needs root, build/zipccl, build/zipccl-perf and Open MPI
# run.sh --fit OUT     the fit and the comparison alone, from what OUT holds
#
# The environment may give ITERS (5), OPS, RATES (Mb/s, lowest first), WORLDS (hosts) and SIZES (perf's options).
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
# What is fitted, chosen before looking: one rate (the lowest; as a second experiment the highest), the largest
# world, three sizes.
fit_sizes=1M,4M,16M fit_nodes=4
rates=${RATES:-200 500 1000} worlds=${WORLDS:-2 3 4}
plans=('raw direct' 'exact direct')

testbed=(experiments/testbed/testbed.sh)
# One file a rate, a world, an op and a plan: fit_RATE_NODES_OP_PLAN.json
measure_world() { # measure_world RATE NODES
    local op plan file
    "${testbed[@]}" up --name e05 -n "$2" -r "${1}mbit" 2>>"$out/fit_log.txt"
    # The token bucket of a link in bytes of packets, as tc rounds it.
    echo "$1 $(ip netns exec e05-node1 tc -j qdisc show dev eth0 | jq '.[] | select(.kind == "tbf") | .options.burst')" \
        >>"$out/fit_burst.txt"
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
    : >"$out/fit_burst.txt"
    for rate in $rates; do
        for nodes in $worlds; do measure_world "$rate" "$nodes"; done
    done
    uptime >>"$out/fit_load.txt"
fi

# The sums of a comparison, without the rows.
summary() {
    sed -n '/^  off, rows of/,$p' | grep -v ' wrote '
}

# What the links let through at once after a rest, in payload bytes of TCP.
burst() { # burst RATE
    awk -v r="$1" '$1 == r {n = $2} END {if (!n) exit 1; printf "%.6gB", n * 1448 / 1514}' "$out/fit_burst.txt" ||
        die "$out/fit_burst.txt: no line '$1 BYTES'"
}

# moves_or_reductions CSV: rows, median and worst of |error| in %, of moves and reductions, raw and compressed
moves_or_reductions() {
    local mode ops_of
    for mode in raw compressed; do
        for ops_of in 'all_gather|alltoall' 'all_reduce|reduce_scatter'; do
            awk -F, -v m=$mode -v o="^($ops_of)$" \
                'NR > 1 && $9 == m && $1 ~ o && $15 != "" {e = $15 < 0 ? -$15 : $15; print 100 * e}' "$1" |
                sort -g | awk -v n="$mode ${ops_of/|/ and }" '{v[NR] = $1; over += $1 > 10}
                    END {if (NR) printf "  %-42s %4d %8.1f %8.1f %8d\n", n, NR,
                        (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2, v[NR], over}'
        done
    done
}

# fit_and_compare RATE NAME: fits to the rows of RATE, compares with all; $out/NAME.yaml, _table.txt, .txt
fit_and_compare() {
    local fit_rate=$1 to=$out/$2 nic of_rate rate nodes cores
    local -a sets
    cores=$(jq -r '.settings[] | select(.name == "machine.cores").value' "$out/fit_${fit_rate}_${fit_nodes}_all_gather_raw.json")
    # The base says what the fit leaves: a node is one rank with one link, and all share one machine.
    build/zipccl cluster fit "$out/fit_${fit_rate}_${fit_nodes}"_*.json --sizes $fit_sizes \
        --base laptop --set nic.per_node=1 --set nic.burst="$(burst "$fit_rate")" \
        --set machine.cores="$cores" --name "testbed-$fit_rate" -o "$to.yaml" | sed "/^  wrote /d" >"${to}_table.txt"
    nic=$(sed -n '/^nic:/,/^[a-z]*:$/s/^  rate: {value: \([0-9.]*\)MBps.*/\1/p' "$to.yaml")
    [ -n "$nic" ] || die "$to.yaml: no nic.rate in MBps"
    for rate in $rates; do
        # Of another rate the link has the same part: nic.rate in proportion, as the burst.
        of_rate=$(awk -v n="$nic" -v r="$rate" -v f="$fit_rate" 'BEGIN {printf "%.6g", n * r / f}')
        sets=(--set nic.rate="${of_rate}MBps" --set nic.burst="$(burst "$rate")")
        for nodes in $worlds; do
            echo "== $rate Mb/s, $nodes nodes: ${sets[*]}"
            build/zipccl compare --cluster "$to.yaml" "${sets[@]}" \
                "$out/fit_${rate}_${nodes}"_*.json --min-bytes 1MB | summary
        done
        build/zipccl compare --cluster "$to.yaml" "${sets[@]}" "$out/fit_${rate}"_[0-9]_*.json \
            --min-bytes 1MB -q --svg "${to}_${rate}.svg" --csv "${to}_${rate}.csv"
        printf '== %s Mb/s, all worlds\n  %-42s %4s %8s %8s %8s\n' "$rate" "off, rows of" rows "median %" "worst %" "> 10 %"
        moves_or_reductions "${to}_${rate}.csv"
    done >"$to.txt"
}

lowest=${rates%% *} highest=${rates##* }
fit_and_compare "$lowest" "fit_model"
[ "$lowest" = "$highest" ] || fit_and_compare "$highest" "fit_model_high"
for model in fit_model fit_model_high; do
    [ ! -e "$out/$model.txt" ] || cat "$out/${model}_table.txt" "$out/$model.txt"
done
