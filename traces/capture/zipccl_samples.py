# SPDX-License-Identifier: Apache-2.0
"""zipccl_samples.py - bounded copies of what is sent"""
import torch

from zipccl_files import write_safetensors

SAFE = {"bf16": "BF16", "fp16": "F16", "fp32": "F32", "fp64": "F64", "fp8_e4m3": "F8_E4M3",
        "fp8_e5m2": "F8_E5M2"}  # what is worth a sample


class Sampler:
    """Copies of what is sent: the 1st, 2nd, 4th, 8th ... call of each class of a step."""

    def __init__(self, nbytes, per_class, of_a_step):
        self.nbytes, self.per_class, self.of_a_step = nbytes, per_class, of_a_step
        self.seen, self.kept, self.tensors = {}, {}, []

    def new_step(self):
        self.seen, self.kept, self.left = {}, {}, self.of_a_step

    def take(self, call, group, step):
        tensor = call.payload
        if tensor is None or call.dtype not in SAFE or call.op == "recv" or tensor.numel() == 0:
            return
        if call.op == "broadcast" and call.root != group.me:
            return
        name = class_of(call, group)
        n = self.seen[name] = self.seen.get(name, 0) + 1
        if n & (n - 1) or self.kept.get(name, 0) >= self.per_class:
            return
        count = max(1, min(tensor.numel(), self.nbytes // tensor.element_size()))
        if self.left < count * tensor.element_size() or not tensor.is_contiguous():
            return
        first = (tensor.numel() - count) // 2
        with torch.no_grad():
            copy = tensor.detach().view(-1)[first:first + count].clone()
        self.kept[name] = self.kept.get(name, 0) + 1
        self.left -= count * tensor.element_size()
        call.sample = "%s.step%d.call%d" % (name, step, call.seq)
        self.tensors.append((call.sample, call.dtype, copy))


def class_of(call, group):
    """The class of a call's tensors, named as in the bundled samples."""
    parallel = "".join(c if c.isalnum() else "_" for c in (group.name or "").lower())
    split = any(w in parallel for w in ("tp", "tensor", "sp", "cp", "context"))
    default = {"all_gather": ("allgather", "hidden" if split else "param"),
               "reduce_scatter": ("reducescatter", "hidden" if split else "grad"),
               "all_reduce": ("allreduce", "hidden" if split else "grad"),
               "alltoall": ("alltoall", "grad" if call.backward else "dispatch"),
               "alltoallv": ("alltoall", "grad" if call.backward else "dispatch"),
               "broadcast": ("broadcast", "param"),
               "send": ("p2p", "pp.grad" if call.backward else "pp.hidden")}
    op, what = default[call.op]
    if call.label:
        what = "".join(c if c.isalnum() or c == "." else "_" for c in call.label)
    if call.dtype not in ("bf16", "fp16"):
        what += "_" + call.dtype
    return ".".join(x for x in (op, what, parallel) if x)


def write_samples(path, tensors, metadata):
    """[(name, dtype, tensor)] to 'path'."""
    write_safetensors(path, [(name, SAFE[dtype], [tensor.numel()],
                              tensor.cpu().contiguous().view(torch.uint8).numpy().tobytes())
                             for name, dtype, tensor in tensors], metadata)
