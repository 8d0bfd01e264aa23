#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run_criterion.sh - run one Criterion program; a sanitizer report in any child is a failure
set -u
logs=$(mktemp -d) || exit 1
trap 'rm -rf "$logs"' EXIT
ASAN_OPTIONS="log_path=$logs/asan:${ASAN_OPTIONS:-}" LSAN_OPTIONS="log_path=$logs/lsan:${LSAN_OPTIONS:-}" \
    "$@" --jobs 2
rc=$?
for f in "$logs"/*; do
    [ -s "$f" ] || continue
    cat "$f" >&2
    rc=1
done
exit $rc
