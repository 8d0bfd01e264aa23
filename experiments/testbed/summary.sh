#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# summary.sh - the table of what measure.sh has measured: summary.sh FOLDER; needs jq
#
# "raw" is the fastest of: our uncompressed plan, MPI's nonblocking collective (native), MPI's blocking one.
# "adaptive" is what the chooser took, learning as it goes.  Times are medians, in seconds, of the slowest rank; q1
# and q3 beside the compressed ones.
set -eu
[ $# -eq 1 ] || { echo "usage: summary.sh FOLDER" >&2; exit 2; }
cd "$1"
echo "| rate | op | tensor | ratio | raw plan | native | MPI blocking | compressed (q1-q3) | faster by | of the ratio | adaptive (q1-q3) | faster by | plan |"
echo "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
for file in *-*-{parameters,gradients,activations,tokens}.json; do
    [ -e "$file" ] || continue
    IFS=- read -r rate op input <<<"${file%.json}"
    jq -r --arg rate "$rate" --arg op "$op" --arg input "$input" --slurpfile mpi "$rate-$op-mpi.json" '
        def of($m): first(.rows[] | select(.mode == $m and (.in_place | not)));
        def s: . * 1000 | round / 1000;
        of("raw").time_s as $raw | of("native").time_s as $native | $mpi[0].time_s as $blocking |
        of("compressed") as $c | (of("adaptive") // null) as $a | ([$raw, $native, $blocking] | min) as $best |
        ($best / $c.time_s) as $gain |
        "| \($rate) | \($op) | \($input) | \($c.ratio * 1000 | round / 1000) | \($raw | s) | \($native | s) | " +
        "\($blocking | s) | \($c.time_s | s) (\($c.time_q1_s | s)-\($c.time_q3_s | s)) | " +
        "\($gain * 100 | round / 100) | \($gain / $c.ratio * 1000 | round / 1000) | " +
        (if $a == null then "- | - | - |" else
            "\($a.time_s | s) (\($a.time_q1_s | s)-\($a.time_q3_s | s)) | \($best / $a.time_s * 100 | round / 100) | " +
            "\($a.strategy), \($a.nchunks) chunk\(if $a.nchunks > 1 then "s" else "" end) |" end)' "$file"
done | sort -t '|' -k 2,2r -k 3,3 -k 4,4
