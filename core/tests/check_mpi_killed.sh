#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_mpi_killed.sh - a killed rank ends the job within 10 s: check_mpi_killed.sh RUN_MPI PROGRAM
set -u
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
timeout 10 "$1" 3 "$2" killed >"$out" 2>&1
rc=$?
cat "$out"
[ $rc -ne 77 ] || exit 77
[ $rc -ne 124 ] || { echo "FAILED: the job was still there after 10 s"; exit 1; }
[ $rc -ne 0 ] || { echo "FAILED: mpirun ended with 0"; exit 1; }
grep -Eq 'rank 1 .*signal 9' "$out" || { echo "FAILED: no line names rank 1"; exit 1; }
echo "ended with $rc"
