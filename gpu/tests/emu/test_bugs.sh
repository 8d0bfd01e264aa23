#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# test_bugs.sh - a sanitizer reports each planted bug at its marked line, and nothing for no_bug
#
# test_bugs.sh PROGRAM REPORT BUG...   REPORT is what the sanitizer's line begins with
set -u
program=$1
report=$2
shift 2
bad=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Errors do not end the process, so that one has all bugs; their shared memory may lie at one address.
export TSAN_OPTIONS=exitcode=66:atexit_sleep_ms=0:suppress_equal_addresses=0
export ASAN_OPTIONS=detect_leaks=0:halt_on_error=0
"$program" no_bug >"$log" 2>&1 && ! grep -q "$report" "$log" || { echo "no_bug: a false report"; cat "$log"; bad=1; }
"$program" "$@" >"$log" 2>&1
grep -q "$report" "$log" || { echo "no \"$report\" at all"; bad=1; }
for bug in "$@"; do
    line=$(grep -n "/\* $bug \*/" gpu/tests/emu/bugs.cu | cut -d: -f1)
    grep -q "bugs.cu:$line " "$log" || { echo "$bug: bugs.cu:$line is not reported"; bad=1; }
done
[ $bad -eq 0 ] && echo "$report: ok" || head -200 "$log"
exit $bad
