#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""double_dietgpu.py - device_dietgpu.py with operators that copy, on the CPU: a test of how it calls

double_dietgpu.py ARGUMENT...    its arguments, then once more with an element changed, which must be told;
77: skipped, no PyTorch
"""
import os
import sys
import time

try:
    import torch
    from torch.library import Library
except ImportError:
    print("skipped: PyTorch is not here")
    sys.exit(77)
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "device"))
import device_dietgpu  # noqa: E402

wrong = False
library = Library("dietgpu", "DEF")
library.define("max_float_compressed_output_size(Tensor[] ts) -> (int, int)")
library.define("compress_data(bool f, Tensor[] ts, bool checksum, Tensor? temp=None, Tensor? out=None, Tensor? sizes=None)"
               " -> (Tensor, Tensor, int)")
library.define("decompress_data(bool f, Tensor[] ts, Tensor[] out, bool checksum, Tensor? temp=None,"
               " Tensor? status=None, Tensor? sizes=None) -> int")


def compress(f, ts, checksum, temp=None, out=None, sizes=None):
    raw = ts[0].view(torch.int16).view(torch.uint8)
    out[0, :raw.numel()] = raw
    sizes[0] = raw.numel()
    return out, sizes, 0


def decompress(f, ts, out, checksum, temp=None, status=None, sizes=None):
    out[0].view(torch.int16).view(torch.uint8).copy_(ts[0])
    if wrong:
        out[0][0] = 7
    return 0


library.impl("max_float_compressed_output_size", lambda ts: (1, 2 * ts[0].numel() + 64), "CPU")
library.impl("compress_data", compress, "CPU")
library.impl("decompress_data", decompress, "CPU")
torch.ops.load_library = lambda path: None


def timer(torch, device, call):
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1e3


if device_dietgpu.main(sys.argv[1:], device="cpu", timer=timer) != 0:
    sys.exit("failed: operators that copy")
wrong = True
if device_dietgpu.main(["x", "--most", "65536"], device="cpu", timer=timer) != 1:
    sys.exit("failed: a changed element is not told")
