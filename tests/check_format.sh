#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_format.sh - every C file is laid out as .clang-format says
set -u
cd "$(dirname "$0")/.." || exit 2
tool=$(command -v clang-format-14 || command -v clang-format) || {
    echo "skipped: clang-format is not installed"
    exit 77
}
case $("$tool" --version) in
*"version 14."*) ;;
*) echo "skipped: the layout is decided by clang-format 14"; exit 77 ;;
esac
find json core gpu models traces sim analysis experiments tests \( -name '*.[ch]' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
    xargs -0 -r "$tool" --dry-run -Werror && echo "format: ok"
