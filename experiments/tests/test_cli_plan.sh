#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# test_cli_plan.sh - zipccl plan at the command line: choices, flips, files, refusals
#
# Usage, from the root of the source tree: test_cli_plan.sh BUILD
. "$(dirname "$0")/cli_helpers.sh"

plan() {
    "$zipccl" plan "$@"
}

# number KEY - the first number of KEY in out
number() {
    sed -n "s/^ *\"$1\": *\([0-9.e+-]*\),*$/\1/p" out | head -1
}

# holds EXPRESSION - awk finds it true
holds() {
    ntests=$((ntests + 1))
    awk "BEGIN { exit !($1) }" || failed "not true: $1"
}

works "zipccl plan" "$zipccl" plan --help
works "plan " "$zipccl" help
works "PREDICTED: tier T0" plan all_gather --count 1048576 --cluster $a100
for text in "64 ranks on 8 nodes" "> " " r raw two-level" "chosen   " "why      than raw two-level" \
    "less for bytes on the wire" "flips    between 1 KiB and 1 GiB" "codec: of the busiest rank"; do
    grep -qF -- "$text" out || failed "no '$text' in: $(cat out)"
done
cp out table

# The same in JSON: what is chosen is the first, its parts make its time, the gain is the quotient.
works '"name": "zipccl.plan"' plan all_gather --count 1048576 --cluster $a100 -J -
holds "$(number chosen) == 0"
holds "$(number gain) > 1.3 && $(number gain) < 1.55"
time_s=$(number time_s)
sum=$(awk "BEGIN { print $(number wire_s) + $(number alpha_s) + $(number not_hidden_s) }")
holds "($time_s - $sum) ^ 2 < ($time_s * 1e-4) ^ 2"
count=$(sed -n 's/^ *"from_count": *\([0-9]*\),*$/\1/p' out | tail -1)

# A flip is one: there the strategy is chosen, two percent below another one.
last=$(tail -1 table | sed 's/.*: //')
works "chosen   $last" plan all_gather --count "$count" --cluster $a100
plan all_gather --count $((count * 98 / 100)) --cluster $a100 >out
ntests=$((ntests + 1))
! grep -q "^chosen   $last" out || failed "$last below its flip"

# Small messages, integers and max stay uncompressed.
for call in "all_gather --count 16" "all_gather --count 1000000 -d int64" \
    "all_reduce --count 1000000 --redop max"; do
    # shellcheck disable=SC2086
    works "the best uncompressed plan" plan $call --cluster $a100
done

# Additions are told where the cluster has a rate for them: 8 ranks make the sums of 2e6 bytes each.
works '"reduce_s": 0.001' plan reduce_scatter --count 1000000 --cluster laptop --set reduce.rate=2GBps --mode raw -J -
works "additions" plan reduce_scatter --count 1000000 --cluster laptop --set reduce.rate=2GBps

# Ratios: of data that do not shrink nothing is compressed; those of real tensors are told.
works "chosen   raw" plan all_gather --count 1048576 --cluster $a100 --ratio 1
works "ratio    1.3: --ratio" plan all_gather --count 1048576 --cluster $a100 --ratio 1.3
works "tensors of $tensors" plan all_gather --count 1000000 --cluster laptop --input "$tensors"
works "12 ranks on 3 nodes" plan alltoall --count 100000 --cluster $a100 --ranks 12 --ranks-per-node 4
works "mode raw" plan all_reduce --count 1000000 --cluster laptop --mode raw
grep -q "fixed\|exact" out && failed "a compressed candidate with --mode raw"
works "all pairs of a type" plan alltoallv --count 100000 --cluster $a100
works '"pairs_strategy": "' plan sendrecv --count 100000 --cluster $a100 -J -
works "wire  exchange" plan all_reduce --count 1000000 --cluster laptop --print -d fp32 --redop avg
works "10 nodes" plan broadcast --count 1000 --root 7 --cluster $a100 --set nodes=10

# Files.
works "chosen" plan all_gather --count 1000 --cluster laptop -J plan.json --csv plan.csv
grep -q '"best_raw": [0-9]' plan.json || failed "plan.json: $(head -5 plan.json)"
[ "$(head -1 plan.csv | tr ',' '\n' | wc -l)" -eq 23 ] || failed "columns of $(head -1 plan.csv)"
[ "$(tail -n +2 plan.csv | awk -F, 'NF != 23 || ($13 != 0 && $13 != 1)' | wc -l)" -eq 0 ] ||
    failed "rows of plan.csv"
[ "$(awk -F, '$13 == 1' plan.csv | wc -l)" -eq 1 ] || failed "not one chosen in plan.csv"
loses "$zipccl" plan all_gather --count 1000 --cluster laptop

# Refusals.
cp plan.json keep.yaml
refuses "name a collective" "$zipccl" plan --count 5 --cluster laptop
refuses "did you mean 'all_gather'" "$zipccl" plan allgather --count 5 --cluster laptop
refuses "no --count" "$zipccl" plan all_gather --cluster laptop
refuses "no --cluster" "$zipccl" plan all_gather --count 5
refuses "--count" "$zipccl" plan all_gather --count 0 --cluster laptop
refuses "--count is given twice" "$zipccl" plan all_gather --count 5 --count 6 --cluster laptop
refuses "no such type" "$zipccl" plan all_gather --count 5 --cluster laptop -d float7
refuses "for reductions" "$zipccl" plan all_gather --count 5 --cluster laptop --redop sum
refuses "for broadcast" "$zipccl" plan all_gather --count 5 --cluster laptop --root 1
refuses "none of 8 ranks" "$zipccl" plan broadcast --count 5 --cluster laptop --root 8
refuses "do not fit laptop" "$zipccl" plan all_gather --count 5 --cluster laptop --ranks 9
refuses "do not fit laptop" "$zipccl" plan all_gather --count 5 --cluster laptop --ranks-per-node 5
refuses "exclude each other" "$zipccl" plan all_gather --count 5 --cluster laptop --ratio 1.5 \
    --input "$tensors"
refuses "travels raw" "$zipccl" plan all_gather --count 5 --cluster laptop -d int32 --ratio 1.5
refuses "no tensor of type fp16" "$zipccl" plan all_gather --count 5 --cluster laptop -d fp16 \
    --input "$tensors"
refuses "nothere" "$zipccl" plan all_gather --count 5 --cluster laptop --input nothere.safetensors
refuses "expected raw, compressed or adaptive" "$zipccl" plan all_gather --count 5 --cluster laptop \
    --mode fast
refuses "keep.yaml" "$zipccl" plan all_gather --count 5 --cluster keep.yaml
refuses "must not overwrite" "$zipccl" plan all_gather --count 5 --cluster laptop --input "$tensors" \
    -J "$tensors"
refuses "unexpected argument" "$zipccl" plan all_gather extra --count 5 --cluster laptop
finish
