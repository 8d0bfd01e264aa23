#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# summary.sh POINTS.csv - where the paper's figures are reached, against NCCL's own and the best uncompressed plans
set -euo pipefail
if [ $# -ne 1 ] || [ ! -r "$1" ]; then
    echo "summary.sh: expected the points.csv that run.sh writes" >&2
    exit 2
fi

# Columns: 1 trace, 2 system, 3 codec_factor, 4 codec_GBps, 5 ratio_from, 6 ratio, 7 native_ms, 8 raw_ms, 9 always_ms,
# 10 adaptive_ms, 11 exposed_share, 12 comm_over_native, 13 comm_over_best, 14 step_over_native, 15 step_over_best.
echo "SIMULATED (T1).  Speedups of adaptive; communication: times summed over calls.  The paper: up to 1.35, end to end 1.18."
echo "best: over the best uncompressed plans; NCCL: over NCCL's own algorithms, as the model has them.  raw/wire: bytes of the"
echo "adaptive step; exposed: of the raw step; always: the raw step over one that compresses all that the codec covers."
echo
echo "Codec at the assumed rates, sizes as the codec reaches on captured tensors"
printf '%-15s %-12s %6s %9s %8s %8s | %-13s | %-13s\n' "" "" "raw/" "raw step" exposed always communication "end to end"
printf '%-15s %-12s %6s %9s %8s %8s | %6s %6s | %6s %6s\n' trace system wire ms % x best NCCL best NCCL
awk -F, 'NR > 1 && $3 == 1 && $5 == "codec" {
    printf "%-15s %-12s %6.2f %9.1f %8.1f %8.2f | %6.2f %6.2f | %6.2f %6.2f\n",
        $1, $2, $6, $8, 100 * $11, $8 / $9, $13, $12, $15, $14}' "$1"
echo
echo "The six traces of a system and codec: largest and median speedup, and how many of them reach the paper's figure"
printf '%-12s %6s %-6s | %-41s | %-41s\n' "" codec ratio "communication, 1.35: best (NCCL)" "end to end, 1.18: best (NCCL)"
printf '%-12s %6s %-6s | %13s %13s %13s | %13s %13s %13s\n' system GB/s from most median reach most median reach
awk -F, 'NR > 1 {
    k = $2 "," $4 "," $5; if (!(k in n)) order[++m] = k
    i = ++n[k]; for (c = 12; c <= 15; c++) v[k, c, i] = $c }
    function most(k, c,   i, x) { for (i = 1; i <= n[k]; i++) if (v[k, c, i] > x) x = v[k, c, i]; return x }
    function reach(k, c, y,   i, x) { for (i = 1; i <= n[k]; i++) x += v[k, c, i] >= y; return x + 0 }
    function median(k, c,   i, j, t, a) {
        for (i = 1; i <= n[k]; i++) a[i] = v[k, c, i] + 0
        for (i = 2; i <= n[k]; i++) for (j = i; j > 1 && a[j] < a[j - 1]; j--) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
        return (a[int((n[k] + 1) / 2)] + a[int(n[k] / 2) + 1]) / 2 }
    function both(c, format) { return sprintf(format " (" format ")", c, other) }
    END { for (i = 1; i <= m; i++) { k = order[i]; split(k, p, ",")
        printf "%-12s %6g %-6s |", p[1], p[2], p[3]
        for (c = 13; c <= 15; c += 2) {
            other = most(k, c - 1); printf " %13s", both(most(k, c), "%.2f")
            other = median(k, c - 1); printf " %13s", both(median(k, c), "%.2f")
            y = c == 13 ? 1.35 : 1.18
            other = reach(k, c - 1, y); printf " %13s%s", both(reach(k, c, y), "%d"), c == 13 ? " |" : "\n"
        } } }' "$1" | sort -t' ' -k1,1 -s
echo
awk -F, 'NR > 1 {
    t++; slower += $15 < 0.9995; comm += $13 >= 1.35; step += $15 >= 1.18; none += $15 < 1.02
    if (least == 0 || $8 / $9 < least) { least = $8 / $9; at = $1 " on " $2 ", codec " $4 " GB/s" } }
    END {
        printf "Of %d points, over the best uncompressed plans: communication 1.35 at %d, end to end 1.18 at %d, under 1.02 at %d, slower at %d\n", t, comm, step, none, slower
        printf "Always compressing is worst at %.2f of raw: %s\n", least, at }' "$1"
