#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_samples.sh - the bundled traces are what their maker writes, the tensors what they were
#
# usage: check_samples.sh MAKE_SAMPLES, from anywhere
set -u
maker=$1
samples=$(cd "$(dirname "$0")/../samples" && pwd) || exit 2
made=$(mktemp -d) || exit 2
trap 'rm -rf "$made"' EXIT
bad=0

"$maker" "$made" >"$made/log" || exit 1
for trace in "$samples"/*/trace.jsonl; do
    name=${trace#"$samples"/}
    cmp "$trace" "$made/$name" || bad=1
done
[ "$(find "$samples" -name 'trace.jsonl*' | wc -l)" -eq "$(find "$made" -name 'trace.jsonl*' | wc -l)" ] ||
    { echo "not as many traces as the maker writes"; bad=1; }
(cd "$samples/tensors" && sha256sum -c --quiet SHA256SUMS) || bad=1
[ $bad -eq 0 ] && echo "samples: ok"
exit $bad
