# SPDX-License-Identifier: Apache-2.0
"""zipccl_calls.py - what each method of a process group moves: op, dtype, counts, peers"""
import torch

DTYPES = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32",
          torch.float64: "fp64", torch.int8: "int8", torch.uint8: "uint8", torch.bool: "uint8",
          torch.int32: "int32", torch.int64: "int64"}
for _name, _ours in (("float8_e4m3fn", "fp8_e4m3"), ("float8_e5m2", "fp8_e5m2"),
                     ("uint32", "uint32"), ("uint64", "uint64")):
    if hasattr(torch, _name):
        DTYPES[getattr(torch, _name)] = _ours
REDOPS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX")


def flat(x):
    """All tensors in a tensor, a list, or lists of lists."""
    if torch.is_tensor(x):
        return [x]
    return [t for y in x or () for t in flat(y)]


def redop_of(opts, default="SUM"):
    op = getattr(opts, "reduceOp", opts)
    text = str(getattr(op, "op", op) if op is not None else default).upper()
    if "PREMUL" in text:
        return "sum"
    for name in REDOPS:
        if name in text.replace("REDOPTYPE", ""):
            return {"PRODUCT": "prod"}.get(name, name.lower())
    return None  # bitwise: nothing a trace can express


class Call:
    """One collective of one rank.  'payload' is what this rank sends, for samples."""
    __slots__ = ("op", "dtype", "count", "redop", "root", "peer", "row", "label", "payload",
                 "seq", "group", "t0", "issue", "t1", "end", "before_end", "backward", "sample",
                 "side", "opaque")

    def __init__(self, op, tensors, count=None, scale=1, **more):
        self.redop = self.root = self.peer = self.row = self.label = self.sample = None
        self.end = self.before_end = self.side = None
        self.opaque = self.backward = False
        first = tensors[0] if tensors else None
        self.payload = first
        self.op = op
        self.count = count if count is not None else sum(t.numel() for t in tensors)
        self.dtype = DTYPES.get(first.dtype) if first is not None else "uint8"
        if self.dtype is None:  # complex, int16: as so many bytes, which a sum does not allow
            self.dtype, scale = "uint8", first.element_size()
            self.opaque = op in ("all_reduce", "reduce_scatter")
        self.count *= scale
        for key, value in more.items():
            setattr(self, key, value)
        if self.row is not None:
            self.row = [n * scale for n in self.row]


def all_reduce(group, tensors, opts=None, *_):
    tensors, redop = flat(tensors), redop_of(opts)
    return [Call("all_reduce", [t], redop=redop or "sum", opaque=redop is None) for t in tensors]


def root(opts):
    return opts if isinstance(opts, int) else opts.rootRank


def broadcast(group, tensors, opts=0, *_):
    return [Call("broadcast", [t], root=root(opts)) for t in flat(tensors)]


def reduce(group, tensors, opts=None, *_):
    return [Call("all_reduce", [t], redop="sum", label="reduce", opaque=True)
            for t in flat(tensors)]


def all_gather(group, outputs, inputs, *_):
    calls = []
    lists = outputs if outputs and not torch.is_tensor(outputs[0]) else [outputs]
    inputs = flat(inputs)
    if len(lists) != len(inputs):  # the coalesced form: one list a rank
        return [Call("all_gather", [t]) for t in inputs]
    for outs, t in zip(lists, inputs):
        outs = flat(outs)
        if any(o.numel() != t.numel() for o in outs):  # uneven: everyone to everyone
            calls.append(Call("alltoallv", [t], row=[t.numel()] * len(outs), label="all_gather"))
        else:
            calls.append(Call("all_gather", [t]))
    return calls


def all_gather_base(group, outputs, inputs, *_):
    return [Call("all_gather", [t]) for t in flat(inputs)]


def reduce_scatter(group, outputs, inputs, opts=None, *_):
    outputs, redop = flat(outputs), redop_of(opts)
    lists = inputs if not torch.is_tensor(inputs) and inputs and not torch.is_tensor(
        inputs[0]) else [inputs]
    calls = []
    for out, given in zip(outputs, lists):
        given = flat(given)
        uneven = len({t.numel() for t in given}) > 1
        call = Call("reduce_scatter", given, count=out.numel(), redop=redop or "sum",
                    opaque=redop is None or uneven)
        calls.append(call)
    return calls


def reduce_scatter_base(group, outputs, inputs, opts=None, *_):
    redop = redop_of(opts)
    return [Call("reduce_scatter", [i], count=o.numel(), redop=redop or "sum",
                 opaque=redop is None) for o, i in zip(flat(outputs), flat(inputs))]


def gather(group, outputs, inputs, opts=0, *_):
    row = [0] * group.size
    row[root(opts)] = inputs[0].numel()
    return [Call("alltoallv", flat(inputs)[:1], row=row, label="gather")]


def scatter(group, outputs, inputs, opts=0, *_):
    n = flat(outputs)[0].numel()
    given = flat(inputs)
    row = [n] * group.size if given else [0] * group.size
    return [Call("alltoallv", given or flat(outputs)[:1], row=row, label="scatter")]


def all_to_all_base(group, output, given, out_splits=None, in_splits=None, *_):
    if not in_splits and not out_splits:
        return [Call("alltoall", [given], count=given.numel() // group.size)]
    rows = given.shape[0] if given.dim() else 0
    if not in_splits:
        in_splits = [rows // group.size] * group.size
    width = given.numel() // rows if rows else 0
    return [Call("alltoallv", [given], row=[int(n) * width for n in in_splits])]


def all_to_all(group, outputs, inputs, *_):
    row = [t.numel() for t in inputs]
    big = max(inputs, key=lambda t: t.numel())
    return [Call("alltoallv", [big], row=row)]


def send(group, tensors, peer, *_):
    return [Call("send", [t], peer=int(peer)) for t in flat(tensors)]


def recv(group, tensors, peer, *_):
    return [Call("recv", [t], peer=int(peer)) for t in flat(tensors)]


def recv_any(group, tensors, *_):
    return [Call("all_reduce", [t], redop="sum", label="recv from any", opaque=True)
            for t in flat(tensors)]


def barrier(group, *_):
    return [Call("all_reduce", [], count=0, redop="sum", label="barrier")]


METHODS = {
    "allreduce": all_reduce, "allreduce_coalesced": all_reduce, "broadcast": broadcast,
    "reduce": reduce, "allgather": all_gather, "_allgather_base": all_gather_base,
    "allgather_coalesced": all_gather, "allgather_into_tensor_coalesced": all_gather_base,
    "gather": gather, "scatter": scatter, "reduce_scatter": reduce_scatter,
    "reduce_scatter_base": reduce_scatter_base,
    "reduce_scatter_tensor_coalesced": reduce_scatter_base, "alltoall_base": all_to_all_base,
    "alltoall": all_to_all, "send": send, "recv": recv, "recv_anysource": recv_any,
    "barrier": barrier,
}
# What C++ (DDP's reducer, functional collectives) calls past Python: the dispatcher's operators.
OPERATORS = {
    "allreduce_": (all_reduce, 1), "broadcast_": (broadcast, 1),
    "allreduce_coalesced_": (all_reduce, 1), "allgather_": (all_gather, 2),
    "_allgather_base_": (all_gather_base, 2),
    "allgather_into_tensor_coalesced_": (all_gather_base, 2),
    "reduce_scatter_": (reduce_scatter, 2), "_reduce_scatter_base_": (reduce_scatter_base, 2),
    "reduce_scatter_tensor_coalesced_": (reduce_scatter_base, 2),
    "alltoall_base_": (all_to_all_base, 2), "alltoall_": (all_to_all, 2),
}
