#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# quickstart.sh - from a fresh Debian 12 to two replays and their pages; safe to run again
set -euo pipefail
here=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. experiments/setup.sh

case ${1-} in
"") ;;
-h | --help)
    echo "Usage: experiments/quickstart.sh"
    echo "Installs what is missing, builds into build/, and replays the bundled mixture-of-experts"
    echo "trace on two simulated clusters."
    exit 0
    ;;
*) zipccl_die "takes no arguments" ;;
esac

zipccl_install build
zipccl_say "building into build/"
zipccl_build default build zipccl zipccl-sim zipccl-perf

where=
[ "$here" = "$PWD" ] || where=$PWD/
trace=traces/samples/moe64

zipccl_say "a NIC shared by eight GPUs: where compression pays"
build/zipccl replay "$trace" --cluster a100-8x8-200g --html build/moe64-a100-8x8-200g.html

zipccl_say "a NIC for each GPU: where it pays less, or not"
build/zipccl replay "$trace" --cluster h100-8x8-400g --summary --html build/moe64-h100-8x8-400g.html

zipccl_say "next"
cat <<END
pages      ${where}build/moe64-a100-8x8-200g.html
           ${where}build/moe64-h100-8x8-400g.html
your trace ${where}build/zipccl replay TRACE --cluster h100-8x8-400g --html out.html
           (the format: traces/TRACE.md; other clusters: ${where}build/zipccl cluster list)
tests      ${where}experiments/test.sh
END
