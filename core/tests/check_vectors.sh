#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check_vectors.sh - the vectors in the tree are those that make_vectors writes, and no others
#
# check_vectors.sh MAKE_VECTORS    run from the root of the source tree
set -u
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/accepted" "$dir/refused" || exit 1
"$1" "$dir" || exit 1
diff -rq "$dir" core/tests/vectors || {
    echo "core/tests/vectors differs from what $1 writes: a change of the format or of choices?"
    exit 1
}
# The sums once more, by another program.
cd core/tests/vectors || exit 1
grep -v '^#' MANIFEST.tsv | awk -F '\t' '{ print $3 "  " $1; if ($6 != "-") print $7 "  " $6 }' |
    sha256sum --quiet --strict -c - && echo "vectors: ok"
