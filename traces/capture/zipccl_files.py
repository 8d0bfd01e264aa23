# SPDX-License-Identifier: Apache-2.0
"""zipccl_files.py - files of a capture, written through temporary ones; needs no torch"""
import contextlib
import json
import os
import struct

PART = "zipccl-capture-part"


def write_file(path, chunks):
    temporary = "%s.tmp%d" % (path, os.getpid())
    try:
        with open(temporary, "wb") as f:
            for chunk in chunks:
                f.write(chunk)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def write_safetensors(path, tensors, metadata):
    """[(name, dtype of safetensors, shape, bytes)] to 'path'."""
    header, at = {"__metadata__": metadata}, 0
    for name, dtype, shape, raw in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(raw)]}
        at += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    write_file(path, [struct.pack("<Q", len(text)), text] + [t[3] for t in tensors])
