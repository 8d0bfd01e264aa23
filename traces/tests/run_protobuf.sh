#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run_protobuf.sh - test_chakra_read.py with a Python that has protobuf: python3's own or the system's
here=$(dirname "$0")
for python in python3 /usr/bin/python3; do
    if "$python" -c 'import google.protobuf' 2>/dev/null; then
        exec "$python" "$here/test_chakra_read.py" "$@"
    fi
done
echo "skipped: no protobuf for Python (Debian: python3-protobuf)"
exit 77
