#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# ptxas_gate.sh - run nvcc with -Xptxas=-v; fail if a kernel spills registers on any architecture
#
# ptxas_gate.sh NVCC ARG...   What ptxas says of each kernel goes to OBJECT.ptxas, a table.
set -u
object=
previous=
for arg in "$@"; do
    [ "$previous" = -o ] && object=$arg
    previous=$arg
done
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"$@" >"$log" 2>&1
rc=$?
grep -v '^ptxas info\|^ *[0-9]* bytes stack frame' "$log" >&2
[ $rc -eq 0 ] || exit $rc
table=${object:-/dev/stdout}
[ -z "$object" ] || table=$object.ptxas
awk -v object="$object" '
    /Compiling entry function/ { split($0, part, "\x27"); kernel = part[2]; arch = part[4]; next }
    /Function properties for/ { next }
    /bytes stack frame/ {
        frame = $1; stores = $5; loads = $9
        next
    }
    /Used [0-9]+ registers/ && kernel != "" {
        for (i = 1; i < NF; i++)
            if ($i == "Used") registers = $(i + 1)
        smem = match($0, /[0-9]+ bytes smem/) ? substr($0, RSTART, RLENGTH) + 0 : 0
        printf "%-7s %4d registers %6d shared %4d stack %4d spilled  %s\n", arch, registers, smem, frame,
            stores + loads, kernel
        if (stores + loads > 0) {
            bad = 1
            printf "ptxas spills registers of %s for %s: %d bytes stored, %d loaded\n", kernel, arch, stores,
                loads >"/dev/stderr"
        }
        seen++
        kernel = ""
    }
    END {
        if (!seen && object ~ /\.o$/) print "ptxas said nothing: is -Xptxas=-v missing?" >"/dev/stderr"
        exit bad || (!seen && object ~ /\.o$/)
    }' "$log" >"$table"
rc=$?
[ $rc -eq 0 ] || rm -f "$object"
exit $rc
