#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# compare.sh - our JSON library and yajl make the same of the same; where they do not, it is listed
#
# compare.sh FOLDER    the folder of json_driver_json and json_driver_yajl
#                      --update: write what is listed in json/tests anew
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
ours=$1/json_driver_json yajl=$1/json_driver_yajl tests=json/tests
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
bad=0

same() {
    if cmp -s "$2" "$3"; then
        echo "$1: $(wc -l <"$2") lines are the same"
    else
        echo "$1: differ (left $2)"
        diff "$2" "$3" | cut -c 1-160 | head -n 20 || true
        bad=1
    fi
}

# both NAME INPUT ARGUMENT... - both libraries say the same
both() {
    local name=$1 input=$2
    shift 2
    "$yajl" "$@" <"$input" >"$scratch/yajl"
    "$ours" "$@" <"$input" >"$scratch/ours"
    [ -s "$scratch/ours" ] || { echo "$name: nothing was said" && bad=1; }
    same "$name" "$scratch/yajl" "$scratch/ours"
}

listed() {
    if [ "${2:-}" = --update ]; then cp "$scratch/now" "$tests/$1"; fi
    same "$1" "$tests/$1" "$scratch/now"
}

both documents "$tests/documents.txt" documents
both generator /dev/null generator
files=(CMakePresets.json traces/samples/*/trace.jsonl experiments/results/codec-*/stat-*.json
    experiments/results/testbed-*/*all_gather*.json)
both files /dev/null files "${files[@]}"
grep -q differ "$scratch/ours" && echo "files: pieces differ" && bad=1

# Known differences and our errors: what is said is in the tree.
"$yajl" differences <"$tests/differences.txt" | sed 's/^/yajl: /' >"$scratch/now"
"$ours" differences <"$tests/differences.txt" | sed 's/^/ours: /' >>"$scratch/now"
listed differences.expected "${2:-}"
"$ours" errors <"$tests/documents.txt" >"$scratch/now"
"$ours" errors <"$tests/differences.txt" >>"$scratch/now"
"$ours" misuse >>"$scratch/now"
listed errors.expected "${2:-}"

# Damaged documents: ours never takes what yajl refuses, and pieces never matter.
inputs=("$tests/documents.txt" CMakePresets.json traces/samples/moe4/trace.jsonl)
"$yajl" mutations 4000 "${inputs[@]}" | cut -c 1 >"$scratch/yajl"
"$ours" mutations 4000 "${inputs[@]}" >"$scratch/ours"
paste -d ' ' "$scratch/yajl" "$scratch/ours" | awk '
    $1 < $2 || / differ$/ { print "mutations: yajl " $0; bad = 1 }
    { taken += $2; stricter += $1 > $2 }
    END { printf "mutations: %d, %d accepted, yajl accepts %d more\n", NR, taken, stricter
          exit bad || NR != 4000 || taken < 100 }' || bad=1

[ $bad -eq 0 ] && echo "json: ok"
exit $bad
