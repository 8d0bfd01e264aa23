#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# test.sh - installs what is missing, builds everything and runs all tests; safe to run again
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. experiments/setup.sh

[ $# -eq 0 ] || zipccl_die "takes no arguments"
zipccl_install build
zipccl_say "building into build/"
zipccl_build default build
zipccl_say "testing"
if zipccl_ctest build -j 2; then
    echo "zipccl: all tests that ran passed"
else
    echo "zipccl: TESTS FAILED; their output stands above"
    exit 1
fi
