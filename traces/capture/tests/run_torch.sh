#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run_torch.sh - test_capture.py with a Python that has torch: python3's own or the system's
here=$(dirname "$0")
for python in python3 /usr/bin/python3; do
    if "$python" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("torch") is None)' \
        2>/dev/null; then
        exec "$python" "$here/test_capture.py" "$@"
    fi
done
echo "skipped: no torch (Debian: python3-torch, PyPI: torch)"
exit 77
