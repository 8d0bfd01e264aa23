#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_layers.sh - includes point down only; files are small, named and licensed
#
# json (sources include it as <yajl/...>) and core know nothing above them; traces and gpu know core, models know
# core and traces; sim knows all of them;
# analysis and experiments know all but each other's private parts; analysis never includes sim.
set -u
cd "$(dirname "$0")/.." || exit 2
bad=0

allowed() {
    case $1 in
    json) echo "json" ;;
    core) echo "core" ;;
    gpu) echo "core gpu" ;;
    models) echo "core traces models" ;;
    traces) echo "core traces" ;;
    sim) echo "core models traces sim" ;;
    analysis) echo "core analysis" ;;
    experiments) echo "core gpu models traces sim analysis experiments" ;;
    tests) echo "core gpu models traces sim analysis experiments tests" ;;
    esac
}

for layer in json core gpu models traces sim analysis experiments tests; do
    [ -d "$layer" ] || continue
    for file in $(find "$layer" -name '*.[ch]' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' | sort); do
        # The preloaded library reads clusters as models/ does.
        case $file in
        gpu/preload/*) ok="$(allowed "$layer") models" ;;
        *) ok=$(allowed "$layer") ;;
        esac
        # Every project include is written from the root.
        for inc in $(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$file"); do
            top=${inc%%/*}
            case " $ok " in
            *" $top "*) [ -e "$inc" ] || { echo "$file: \"$inc\" is not a path from the root"; bad=1; } ;;
            *) echo "$file: \"$inc\" points up or is not written from the root"; bad=1 ;;
            esac
        done
        lines=$(wc -l <"$file")
        [ "$lines" -lt 600 ] || { echo "$file: $lines lines, 600 or more"; bad=1; }
        grep -q 'SPDX-License-Identifier: Apache-2.0' "$file" || { echo "$file: no SPDX line"; bad=1; }
        sed -n 2p "$file" | grep -q "^ \* $(basename "$file") - " ||
            { echo "$file: line 2 is not \" * $(basename "$file") - purpose\""; bad=1; }
    done
done

# core, models, traces and analysis never see the simulator.  No library prints, exits or reads the
# environment: text goes to a FILE that the caller gives.  A forked child of sim ends by _exit().
for file in $(find json core models traces sim analysis -name '*.[ch]' -not -path '*/tests/*' \
    -not -path '*/fuzz/*' -not -path '*/samples/*' -not -path '*/capture/*' -not -name 'make_*.c' | sort); do
    case $file in
    sim/*) ;;
    *) grep -nE '#[[:space:]]*include[[:space:]]*<(simgrid|smpi|xbt|msg)' "$file" /dev/null && bad=1 ;;
    esac
    grep -nE '(^|[^a-z_>.])(exit|abort|getenv|v?printf|puts|putchar|perror|system)[[:space:]]*\(' \
        "$file" /dev/null &&
        { echo "$file: a library does not print, exit or read the environment"; bad=1; }
    grep -nE '(^|[^A-Za-z_])(stdout|stderr)([^A-Za-z_]|$)' "$file" /dev/null | grep -vE ':[0-9]+:[[:space:]]*(/?\*|//)' &&
        { echo "$file: a library does not write to streams of its own"; bad=1; }
done

[ $bad -eq 0 ] && echo "layers: ok"
exit $bad
