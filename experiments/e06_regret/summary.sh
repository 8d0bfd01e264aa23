#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# summary.sh FILE.csv - regret by op, and what split plans, max-ratio mode and compression give
set -euo pipefail
[ $# -eq 1 ] && [ -r "$1" ] || {
    echo "summary.sh: expected the CSV that build/tests/regret writes" >&2
    exit 2
}

# Columns: 1 op, 10 chosen, 13 its T2, 14 best, 17 its T2, 21 T2 of the best raw plan, 25 of the best
# plan that is not split, 26 regret in percent.
median='{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }'
echo "regret, percent: points, median, worst"
for op in all $(tail -n +2 "$1" | cut -d, -f1 | sort -u); do
    rows=$(tail -n +2 "$1" | awk -F, -v op="$op" 'op == "all" || $1 == op { print $26 }' | sort -g)
    printf '%-16s %5d %8.3f %8.3f\n' "$op" "$(wc -l <<<"$rows")" "$(awk "$median" <<<"$rows")" \
        "$(tail -1 <<<"$rows")"
done
tail -n +2 "$1" | awk -F, '
    $10 ~ /split/ { split_taken++; gain = $25 / $13 - 1; if (gain > most) { most = gain; at = $0 } sum += gain }
    $10 ~ /max-ratio/ { ratio++ }
    $10 !~ /^(native|raw)/ { coded++; g = $21 / $13; if (g > best) best = g }
    $13 > $17 * 1.02 { behind++ }
    END {
        printf "compressed is taken at %d of %d points, up to %.2f times as fast as raw\n", coded, NR, best
        printf "max-ratio mode at %d, split plans at %d\n", ratio, split_taken
        if (split_taken > 0)
            printf "a split plan is %.2f %% faster in the mean, %.2f %% at most, than the best one that is not split:\n  %s\n",
                100 * sum / split_taken, 100 * most, at
        printf "more than 2 %% behind: %d points\n", behind
    }'
