#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""zipccl_capture.py - records what a PyTorch job sends, as a zipccl trace with samples of its tensors

    import zipccl_capture
    with zipccl_capture.capture("out", steps=range(10, 12)) as cap:
        for batch in batches:
            train(batch)
            cap.step()

Each rank writes what it saw to out/parts; rank 0 joins the parts to out/trace.jsonl and
out/tensors.safetensors, with zipccl_join.py where that lies beside this file or can be imported,
else "python3 zipccl_join.py out" does later.  docs/capture.md has the rest.

A mistake in here must never end a training: every entry catches what it raises, warns once and
switches itself off.  torch 1.13 and later, any backend; on GPUs times come from CUDA events.
"""
import atexit
import contextlib
import gc
import hashlib
import json
import os
import queue
import socket
import struct
import sys
import threading
import time
import warnings
import weakref

import torch
import torch.distributed as dist

VERSION = "1"
PART = "zipccl-capture-part"
DTYPES = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32",
          torch.float64: "fp64", torch.int8: "int8", torch.uint8: "uint8", torch.bool: "uint8",
          torch.int32: "int32", torch.int64: "int64"}
for _name, _ours in (("float8_e4m3fn", "fp8_e4m3"), ("float8_e5m2", "fp8_e5m2"),
                     ("uint32", "uint32"), ("uint64", "uint64")):
    if hasattr(torch, _name):
        DTYPES[getattr(torch, _name)] = _ours
SAFE = {"bf16": "BF16", "fp16": "F16", "fp32": "F32", "fp64": "F64", "fp8_e4m3": "F8_E4M3",
        "fp8_e5m2": "F8_E5M2"}  # what is worth a sample
REDOPS = ("SUM", "AVG", "PRODUCT", "MIN", "MAX")

_active = None          # the recorder, while it records or waits for its first step
_names = {}             # process group -> name given by name_group()
_here = threading.local()


def name_group(group, name):
    """Call 'group' (None: the world) 'name' in traces: "dp", "tp", "ep", "pp"."""
    _names[group if group is not None else dist.group.WORLD] = str(name)


@contextlib.contextmanager
def label(text):
    """Calls made inside, by this thread, carry 'text'; their samples are of class OP.text."""
    old = getattr(_here, "label", None)
    _here.label = text
    try:
        yield
    finally:
        _here.label = old


# ------------------------------------------------------------------ what a call moves

def _flat(x):
    """All tensors in a tensor, a list, or lists of lists."""
    if torch.is_tensor(x):
        return [x]
    return [t for y in x or () for t in _flat(y)]


def _redop(opts, default="SUM"):
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


def _all_reduce(group, tensors, opts=None, *_):
    tensors, redop = _flat(tensors), _redop(opts)
    return [Call("all_reduce", [t], redop=redop or "sum", opaque=redop is None) for t in tensors]


def _root(opts):
    return opts if isinstance(opts, int) else opts.rootRank


def _broadcast(group, tensors, opts=0, *_):
    return [Call("broadcast", [t], root=_root(opts)) for t in _flat(tensors)]


def _reduce(group, tensors, opts=None, *_):
    return [Call("all_reduce", [t], redop="sum", label="reduce", opaque=True)
            for t in _flat(tensors)]


def _all_gather(group, outputs, inputs, *_):
    calls = []
    lists = outputs if outputs and not torch.is_tensor(outputs[0]) else [outputs]
    inputs = _flat(inputs)
    if len(lists) != len(inputs):  # the coalesced form: one list a rank
        return [Call("all_gather", [t]) for t in inputs]
    for outs, t in zip(lists, inputs):
        outs = _flat(outs)
        if any(o.numel() != t.numel() for o in outs):  # uneven: everyone to everyone
            calls.append(Call("alltoallv", [t], row=[t.numel()] * len(outs), label="all_gather"))
        else:
            calls.append(Call("all_gather", [t]))
    return calls


def _all_gather_base(group, outputs, inputs, *_):
    return [Call("all_gather", [t]) for t in _flat(inputs)]


def _reduce_scatter(group, outputs, inputs, opts=None, *_):
    outputs, redop = _flat(outputs), _redop(opts)
    lists = inputs if not torch.is_tensor(inputs) and inputs and not torch.is_tensor(
        inputs[0]) else [inputs]
    calls = []
    for out, given in zip(outputs, lists):
        given = _flat(given)
        uneven = len({t.numel() for t in given}) > 1
        call = Call("reduce_scatter", given, count=out.numel(), redop=redop or "sum",
                    opaque=redop is None or uneven)
        calls.append(call)
    return calls


def _reduce_scatter_base(group, outputs, inputs, opts=None, *_):
    redop = _redop(opts)
    return [Call("reduce_scatter", [i], count=o.numel(), redop=redop or "sum",
                 opaque=redop is None) for o, i in zip(_flat(outputs), _flat(inputs))]


def _gather(group, outputs, inputs, opts=0, *_):
    row = [0] * group.size
    row[_root(opts)] = inputs[0].numel()
    return [Call("alltoallv", _flat(inputs)[:1], row=row, label="gather")]


def _scatter(group, outputs, inputs, opts=0, *_):
    n = _flat(outputs)[0].numel()
    given = _flat(inputs)
    row = [n] * group.size if given else [0] * group.size
    return [Call("alltoallv", given or _flat(outputs)[:1], row=row, label="scatter")]


def _all_to_all_base(group, output, given, out_splits=None, in_splits=None, *_):
    if not in_splits and not out_splits:
        return [Call("alltoall", [given], count=given.numel() // group.size)]
    rows = given.shape[0] if given.dim() else 0
    if not in_splits:
        in_splits = [rows // group.size] * group.size
    width = given.numel() // rows if rows else 0
    return [Call("alltoallv", [given], row=[int(n) * width for n in in_splits])]


def _all_to_all(group, outputs, inputs, *_):
    row = [t.numel() for t in inputs]
    big = max(inputs, key=lambda t: t.numel())
    return [Call("alltoallv", [big], row=row)]


def _send(group, tensors, peer, *_):
    return [Call("send", [t], peer=int(peer)) for t in _flat(tensors)]


def _recv(group, tensors, peer, *_):
    return [Call("recv", [t], peer=int(peer)) for t in _flat(tensors)]


def _recv_any(group, tensors, *_):
    return [Call("all_reduce", [t], redop="sum", label="recv from any", opaque=True)
            for t in _flat(tensors)]


def _barrier(group, *_):
    return [Call("all_reduce", [], count=0, redop="sum", label="barrier")]


METHODS = {
    "allreduce": _all_reduce, "allreduce_coalesced": _all_reduce, "broadcast": _broadcast,
    "reduce": _reduce, "allgather": _all_gather, "_allgather_base": _all_gather_base,
    "allgather_coalesced": _all_gather, "allgather_into_tensor_coalesced": _all_gather_base,
    "gather": _gather, "scatter": _scatter, "reduce_scatter": _reduce_scatter,
    "_reduce_scatter_base": _reduce_scatter_base,
    "reduce_scatter_tensor_coalesced": _reduce_scatter_base, "alltoall_base": _all_to_all_base,
    "alltoall": _all_to_all, "send": _send, "recv": _recv, "recv_anysource": _recv_any,
    "barrier": _barrier,
}
# What C++ (DDP's reducer, functional collectives) calls past Python: the dispatcher's operators.
OPERATORS = {
    "allreduce_": (_all_reduce, 1), "broadcast_": (_broadcast, 1),
    "allreduce_coalesced_": (_all_reduce, 1), "allgather_": (_all_gather, 2),
    "_allgather_base_": (_all_gather_base, 2),
    "allgather_into_tensor_coalesced_": (_all_gather_base, 2),
    "reduce_scatter_": (_reduce_scatter, 2), "_reduce_scatter_base_": (_reduce_scatter_base, 2),
    "reduce_scatter_tensor_coalesced_": (_reduce_scatter_base, 2),
    "alltoall_base_": (_all_to_all_base, 2), "alltoall_": (_all_to_all, 2),
}


# ------------------------------------------------------------------ clocks

class HostClock:
    """Times on the CPU: the host does the work, so what it does between calls is compute."""
    kind = "host"

    def __init__(self):
        self.base = time.perf_counter_ns()

    def mark(self):
        return time.perf_counter_ns() - self.base

    def side(self):
        return None

    def read(self, mark):
        return mark

    def settle(self):
        pass


class DeviceClock:
    """
    Times on a GPU: an event in the stream that computes, and one in that of the call.

    Streams also wait for each other by events; 'reached' is what each stream has waited for, so
    that the wait of one (FSDP's) is known to be the wait of the next.
    """
    kind = "device"

    def __init__(self):
        self.record = torch.cuda.Event.record
        self.main = torch.cuda.current_stream()
        self.reached = {}
        self.base = self.mark()

    def mark(self, stream=None):
        event = torch.cuda.Event(enable_timing=True)
        self.record(event, stream if stream is not None else self.main)
        return event

    def side(self):
        stream = torch.cuda.current_stream()
        return None if stream == self.main else self.mark(stream)

    def read(self, mark):
        return None if mark is None else int(1e6 * self.base.elapsed_time(mark))

    def settle(self):
        torch.cuda.synchronize()

    def reach(self, stream, calls):
        """'stream' now waits for 'calls': which of them it had not waited for."""
        known = self.reached.setdefault(stream.cuda_stream, set())
        new = [c for c in calls if c not in known]
        known.update(new)
        return new


class Waiter(threading.Thread):
    """Waits for the calls of one group, to tell when each has ended.  Host clock only."""

    def __init__(self, clock):
        super().__init__(daemon=True, name="zipccl_capture")
        self.clock, self.work = clock, queue.SimpleQueue()
        self.start()

    def run(self):
        while True:
            item = self.work.get()
            if item is None:
                return
            calls, wait = item
            with contextlib.suppress(Exception):  # the job sees it too, where it waits
                wait()
                end = self.clock.mark()
                for call in calls:
                    call.end = end


class Group:
    __slots__ = ("key", "ranks", "name", "size", "waiter", "me")

    def __init__(self, pg, key):
        c10d = dist.distributed_c10d
        world = getattr(c10d, "_world", None)
        known = (world.pg_group_ranks if world else c10d._pg_group_ranks).get(pg)
        names = world.pg_names if world else c10d._pg_names
        self.ranks = sorted(known, key=known.get) if known else list(range(pg.size()))
        self.size, self.waiter = len(self.ranks), None
        self.me = self.ranks.index(dist.get_rank())
        given = _names.get(pg) or getattr(pg, "group_desc", None) or ""
        self.name = given if given not in ("undefined", "default_pg") else ""
        self.key = str(names.get(pg, key))


# ------------------------------------------------------------------ samples

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
        what = "".join(c if c.isalnum() else "_" for c in call.label)
    if call.dtype not in ("bf16", "fp16"):
        what += "_" + call.dtype
    return ".".join(x for x in (op, what, parallel) if x)


def write_safetensors(path, tensors, metadata):
    """[(name, dtype, tensor)] to 'path', through a temporary file."""
    header, at, blobs = {"__metadata__": metadata}, 0, []
    for name, dtype, tensor in tensors:
        raw = tensor.cpu().contiguous().view(torch.uint8).numpy().tobytes()
        header[name] = {"dtype": SAFE[dtype], "shape": [tensor.numel()],
                        "data_offsets": [at, at + len(raw)]}
        at += len(raw)
        blobs.append(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    write_file(path, [struct.pack("<Q", len(text)), text] + blobs)


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


# ------------------------------------------------------------------ the recorder

class Recorder:
    """What one rank does in the chosen steps."""

    def __init__(self, out, steps, samples_mb, sample_kb, per_class, sample_ranks, wait_s):
        self.out, self.steps, self.wait_s = os.path.abspath(str(out)), set(steps), wait_s
        if not self.steps or min(self.steps) < 0:
            raise ValueError("zipccl_capture: steps is empty or negative, expected steps from 0")
        self.sampler = Sampler(sample_kb << 10, per_class, (samples_mb << 20) // len(self.steps))
        self.sample_ranks = sample_ranks
        self.recording = self.written = self.by_hand = self.in_backward = False
        self.lock = threading.RLock()
        self.step_now, self.nseq, self.clock, self.optimizer = 0, 0, None, None
        self.groups, self.works, self.done, self.records = {}, {}, [], []
        self.past_python, self.batch, self.undo = [], None, []
        self.on = True
        self.parts = os.path.join(self.out, "parts")
        os.makedirs(self.parts, exist_ok=True)
        write_file(os.path.join(self.parts, "try%d" % os.getpid()), [b"x"])  # can it be written?
        os.unlink(os.path.join(self.parts, "try%d" % os.getpid()))

    def fail(self, error):
        """A mistake of ours: say it once and leave the training alone."""
        if self.on:
            self.on = self.recording = False
            self.unhook()
            warnings.warn("zipccl_capture: %s: %s; capture is off, the training goes on"
                          % (type(error).__name__, error), stacklevel=2)

    # -- steps

    def begin_step(self):
        if not self.on or self.recording or self.step_now not in self.steps:
            return
        if not dist.is_initialized():
            raise RuntimeError("step %d begins before init_process_group()" % self.step_now)
        if self.clock is None:
            self.first_step()
        self.hook()
        self.sampler.new_step()
        self.records, self.recording = [], True
        self.step_t0 = self.clock.mark()

    def first_step(self):
        rank, world = dist.get_rank(), dist.get_world_size()
        on_device = torch.cuda.is_available() and dist.get_backend() == "nccl"
        self.clock = DeviceClock() if on_device else HostClock()
        ranks = self.sample_ranks if self.sample_ranks is not None else (0, world // 2, world - 1)
        self.samples_here = rank in ranks
        for ending in ("jsonl", "safetensors"):  # of another run
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.part_path(ending))

    def part_path(self, ending):
        return os.path.join(self.parts, "rank%d.%s" % (dist.get_rank(), ending))

    def end_step(self):
        if self.recording:
            self.recording = self.in_backward = False
            self.done.append((self.step_now, self.step_t0, self.clock.mark(), self.records))
            self.past_python, self.batch = [], None

    def next_step(self):
        try:
            with self.lock:
                self.end_step()
                self.step_now += 1
                if self.step_now not in self.steps:
                    self.unhook()
                self.begin_step()
                if self.on and self.step_now > max(self.steps):
                    self.write()
        except Exception as error:
            self.fail(error)

    def stepped(self, optimizer):
        """An optimizer has stepped: the end of a step, unless those are told by hand."""
        if self.on and not self.by_hand:
            if self.optimizer is None:
                self.optimizer = weakref.ref(optimizer)
            if self.optimizer() is optimizer:
                self.next_step()

    # -- calls

    def group_of(self, pg):
        group = self.groups.get(pg)
        if group is None:
            group = self.groups[pg] = Group(pg, "g%d" % len(self.groups))
        return group

    def phase(self, past_python):
        """
        True in a backward pass, whose end then calls backward_ends().  Only asked for where it is
        cheap: to be refused costs a millisecond.
        """
        if not self.in_backward and _in_backward(otherwise=past_python):
            try:
                torch.autograd.Variable._execution_engine.queue_callback(self.backward_ends)
                self.in_backward = True
            except RuntimeError:
                pass
        return self.in_backward

    def backward_ends(self):
        """All of the backward pass is done but what DDP waits for in its own callback."""
        try:
            with self.lock:
                self.in_backward = False
                calls, self.past_python = self.past_python, []
            if calls and self.recording:
                token = (calls, self.clock.mark(), None)
                torch.autograd.Variable._execution_engine.queue_callback(
                    lambda: self.waited(token))
        except Exception as error:
            self.fail(error)

    def before(self, pg, parse, args, past_python=False):
        """The calls that are about to be made; None if there is nothing to record."""
        try:
            t0, side = self.clock.mark(), self.clock.side()
            with self.lock:
                group, backward = self.group_of(pg), self.phase(past_python)
                calls = parse(group, *args)
                for call in calls:
                    call.seq, call.group, call.t0, call.side = self.nseq, group, t0, side
                    call.backward = backward
                    call.label = getattr(_here, "label", None) or call.label
                    self.nseq += 1
                    if self.samples_here and not call.opaque:
                        self.sampler.take(call, group, self.step_now)
                    call.payload = None
                    call.issue = self.clock.mark()
            return calls
        except Exception as error:
            self.fail(error)
            return None

    def after(self, calls, work=None, wait=None):
        """They were made, and 'work' stands for them.  'wait' waits for it, from any thread."""
        try:
            with self.lock:
                for call in calls:
                    call.t1 = self.clock.mark()
                self.records.extend(calls)
                if self.batch is not None:
                    self.batch.extend(calls)
                if work is not None:
                    self.remember(work, calls)
                if wait is not None and calls and self.clock.kind == "host":
                    group = calls[0].group
                    group.waiter = group.waiter or Waiter(self.clock)
                    group.waiter.work.put((calls, wait))
        except Exception as error:
            self.fail(error)

    def remember(self, work, calls):
        self.works[id(work)] = calls
        weakref.finalize(work, self.works.pop, id(work), None)

    def waiting(self, work):
        """A thread begins to wait for 'work'."""
        try:
            calls = self.works.get(id(work))
            return (calls, self.clock.mark(), self.clock.side()) if calls else None
        except Exception as error:
            self.fail(error)
            return None

    def waited(self, token):
        try:
            calls, t0, side0 = token
            side1, t1 = self.clock.side(), self.clock.mark()
            with self.lock:
                for call in calls:
                    if call.end is None:
                        call.end = t1 if side1 is None else side1
                        call.before_end = t0 if side1 is None else side0
                if self.clock.kind == "device":
                    calls = self.clock.reach(torch.cuda.current_stream(), calls)
                if self.recording and side1 is None and calls:
                    self.records.append(([c.seq for c in calls], t0, t1))
        except Exception as error:
            self.fail(error)

    def event_recorded(self, event, stream):
        """A CUDA event stands for what its stream has waited for."""
        try:
            stream = stream if stream is not None else torch.cuda.current_stream()
            event.zipccl_calls = frozenset(self.clock.reached.get(stream.cuda_stream, ()))
        except Exception as error:
            self.fail(error)

    def event_awaited(self, event, stream, wait):
        """A stream waits for an event: 'wait' makes it."""
        stream = stream if stream is not None else torch.cuda.current_stream()
        new, t0 = (), None
        try:
            new = self.clock.reach(stream, getattr(event, "zipccl_calls", ()))
            t0 = self.clock.mark() if new else None
        except Exception as error:
            self.fail(error)
        result = wait()
        try:
            if self.recording and new and stream == self.clock.main:
                self.records.append(([c.seq for c in new], t0, self.clock.mark()))
        except Exception as error:
            self.fail(error)
        return result

    # -- the part of this rank

    def write(self):
        """Write what was seen; once."""
        if self.written or not self.on or not self.done:
            return
        self.written = True
        self.unhook()
        self.clock.settle()
        for group in self.groups.values():
            if group.waiter is not None:
                group.waiter.work.put(None)
                group.waiter.join(timeout=10)
        if self.sampler.tensors:
            write_safetensors(self.part_path("safetensors"), self.sampler.tensors,
                              {"generator": "zipccl_capture " + VERSION})
        lines = list(self.lines())
        lines.append({"end": len(lines)})
        write_file(self.part_path("jsonl"),
                   [(json.dumps(x, separators=(",", ":")) + "\n").encode() for x in lines])

    def lines(self):
        host = hashlib.sha1(socket.gethostname().encode()).hexdigest()[:12]
        yield {"part": PART, "version": 1, "rank": dist.get_rank(),
               "world": dist.get_world_size(), "host": host, "clock": self.clock.kind,
               "generator": "zipccl_capture %s, torch %s, %s" % (
                   VERSION, torch.__version__.split("+")[0], dist.get_backend())}
        for group in self.groups.values():
            yield {"group": group.key, "name": group.name, "ranks": group.ranks}
        read = self.clock.read
        for step, t0, t1, records in self.done:
            yield {"step": step, "t0": read(t0), "t1": read(t1)}
            for r in records:
                if isinstance(r, tuple):
                    yield {"wait": r[0], "t0": read(r[1]), "t1": read(r[2])}
                    continue
                line = {"call": r.seq, "group": r.group.key, "op": r.op, "dtype": r.dtype,
                        "count": r.count, "t0": read(r.t0), "issue": read(r.issue),
                        "t1": read(r.t1)}
                for key in ("redop", "root", "peer", "row", "label", "sample"):
                    if getattr(r, key) is not None:
                        line[key] = getattr(r, key)
                if r.side is not None:
                    line["side"] = read(r.side)
                # A stream that did not have to wait does not tell when a call ended.
                if r.end is not None and (self.clock.kind == "host" or r.before_end is None or
                                          read(r.end) - read(r.before_end) > 5000):
                    line["end"] = read(r.end)
                for key in ("opaque", "backward"):
                    if getattr(r, key):
                        line[key] = True
                yield line

    def finish(self, join):
        """Write, and on rank 0 join the parts of all ranks once they are there."""
        global _active
        try:
            with self.lock:
                self.recording = False
                self.write()
            if _active is self:
                _active = None
            if self.on and not self.done:
                raise RuntimeError("none of the steps %d to %d was reached or ended (%d ended)"
                                   % (min(self.steps), max(self.steps), self.step_now))
            if join and self.on and self.written and dist.get_rank() == 0:
                self.join_parts()
        except Exception as error:
            self.fail(error)
        finally:
            self.unhook()
            self.on = False

    def join_parts(self):
        try:
            import zipccl_join
        except ImportError:
            warnings.warn("zipccl_capture: parts are in %s; python3 zipccl_join.py %s joins them"
                          % (self.parts, self.out))
            return
        world, until = dist.get_world_size(), time.monotonic() + self.wait_s
        while not all(os.path.exists(os.path.join(self.parts, "rank%d.jsonl" % r))
                      for r in range(world)):
            if time.monotonic() > until:
                break  # join() says which are missing
            time.sleep(0.02)
        for line in zipccl_join.join(self.out):
            print("zipccl_capture:", line)

    # -- hooks

    def hook(self):
        if self.undo:
            return
        c = torch._C._distributed_c10d
        for name, parse in METHODS.items():
            self.replace(c.ProcessGroup, name, _method, parse)
        for name in ("_start_coalescing", "_end_coalescing"):
            self.replace(c.ProcessGroup, name, _coalescing, name)
        for name in ("wait", "synchronize"):
            self.replace(c.Work, name, _wait, None)
        if self.clock.kind == "device":
            self.replace(torch.cuda.Event, "record", _event_record, None)
            self.replace(torch.cuda.Event, "wait", _event_wait, None)
        self.undo.extend(_hook_operators())

    def replace(self, owner, name, make, what):
        original = getattr(owner, name, None)
        if original is None:
            return
        own = name in vars(owner)
        setattr(owner, name, make(original, what))
        self.undo.append(lambda: setattr(owner, name, original) if own else delattr(owner, name))

    def unhook(self):
        while self.undo:
            with contextlib.suppress(Exception):
                self.undo.pop()()


def _in_backward(otherwise):
    """True if this thread is in a backward pass; 'otherwise' where torch (1.13) does not tell."""
    task = getattr(torch._C, "_current_graph_task_id", None)
    return task() != -1 if task is not None else otherwise


def _recorder():
    """The recorder, unless this thread is inside a call that is recorded already."""
    r = _active
    return r if r is not None and r.recording and not getattr(_here, "inside", 0) else None


@contextlib.contextmanager
def _inside():
    _here.inside = getattr(_here, "inside", 0) + 1
    try:
        yield
    finally:
        _here.inside -= 1


def _is_sync():
    """True if torch.distributed called and will wait at once."""
    frame = sys._getframe(2)
    return (frame.f_code.co_filename.endswith("distributed_c10d.py")
            and frame.f_locals.get("async_op", frame.f_code.co_name in ("isend", "irecv"))
            is False)


def _method(original, parse):
    def method(self, *args, **kw):
        r = _recorder()
        calls = r.before(self, parse, args + tuple(kw.values())) if r is not None else None
        with _inside():
            work = original(self, *args, **kw)
        if calls:
            late = calls[0].op in ("send", "recv") or _is_sync()
            r.after(calls, work, None if late else lambda: _wait_original(work))
        return work
    method.__name__ = getattr(original, "__name__", "method")
    return method


_wait_original = torch._C._distributed_c10d.Work.wait


def _wait(original, _):
    def wait(self, *args, **kw):
        r = _recorder()
        token = r.waiting(self) if r is not None else None
        result = original(self, *args, **kw)
        if token:
            r.waited(token)
        return result
    return wait


def _event_record(original, _):
    def record(self, stream=None):
        result = original(self, stream) if stream is not None else original(self)
        if _active is not None and _active.recording:
            _active.event_recorded(self, stream)
        return result
    return record


def _event_wait(original, _):
    def wait(self, stream=None):
        def really():
            return original(self, stream) if stream is not None else original(self)
        if _active is None or not _active.recording:
            return really()
        return _active.event_awaited(self, stream, really)
    return wait


def _coalescing(original, name):
    def coalescing(self, *args, **kw):
        r = _recorder()
        result = original(self, *args, **kw)
        if r is not None and name == "_start_coalescing":
            r.batch = []
        elif r is not None and r.batch is not None:
            calls, r.batch = r.batch, None
            if result is not None and calls:
                r.remember(result, calls)
        return result
    return coalescing


# C++ makes calls past the methods above (DDP's reducer does).  All of them pass the dispatcher,
# where a kernel in front of the real one sees them.

def _hook_operators():
    libraries = []
    for key in ("AutogradCPU", "AutogradCUDA"):
        library = torch.library.Library("c10d", "IMPL", key)
        for name, (parse, position) in OPERATORS.items():
            if hasattr(torch.ops.c10d, name):
                library.impl(name, _operator(name, parse, position))
        libraries.append(library)
    return [libraries.clear]


def _group_of_operator(boxed):
    """The process group that an operator was given."""
    group = torch._C._distributed_c10d.ProcessGroup
    if hasattr(group, "unbox"):
        return group.unbox(boxed)
    ddp = torch.nn.parallel.DistributedDataParallel  # torch 1.13: the only one there is
    found = {m.process_group for m in gc.get_objects() if issubclass(type(m), ddp)}
    if len(found) != 1:
        raise RuntimeError("DDP uses %d process groups, which this version of torch does not tell "
                           "apart (2.2 does)" % len(found))
    return found.pop()


def _operator(name, parse, position):
    operator = getattr(torch.ops.c10d, name).default

    def kernel(*args):
        r = _recorder()
        calls = None
        if r is not None:
            try:
                pg = _group_of_operator(args[position])
                opts = args[position + 1:] or (None,)
                if parse in (_all_reduce, _reduce_scatter, _reduce_scatter_base):
                    opts = (None,)  # a boxed operator; C++ callers sum or divide themselves
                calls = r.before(pg, parse, args[:position] + tuple(opts), past_python=True)
            except Exception as error:
                r.fail(error)
        guard = torch._C._AutoDispatchBelowAutograd()
        with _inside():
            result = operator(*args)
        del guard
        if calls:
            work = result[-1] if isinstance(result, tuple) else result
            r.past_python.extend(calls)
            r.after(calls, None, work.wait if hasattr(work, "wait") else None)
        return result
    return kernel


# ------------------------------------------------------------------ optimizers

def _hook_optimizers():
    """Tell the recorder of every step of every optimizer, those to come included."""
    def wrap(cls):
        step = vars(cls).get("step")
        if step is None or getattr(step, "zipccl_capture", False):
            return

        def stepped(self, *args, **kw):
            outer = getattr(_here, "stepping", None)
            _here.stepping = self
            try:
                result = step(self, *args, **kw)
            finally:
                _here.stepping = outer
            if outer is not self and _active is not None:
                _active.stepped(self)
            return result
        stepped.__dict__.update(vars(step))
        stepped.__doc__, stepped.__name__, stepped.zipccl_capture = step.__doc__, "step", True
        cls.step = stepped

    def walk(cls):
        wrap(cls)
        for sub in cls.__subclasses__():
            walk(sub)

    base = torch.optim.Optimizer
    walk(base)
    init = base.__init__
    if not getattr(init, "zipccl_capture", False):
        def initialise(self, *args, **kw):
            for cls in type(self).__mro__[:-1]:
                wrap(cls)
            init(self, *args, **kw)
        initialise.zipccl_capture = True
        base.__init__ = initialise


# ------------------------------------------------------------------ what users call

class Capture:
    """What capture() gives: step() ends a step."""

    def __init__(self, recorder):
        self.recorder = recorder

    def step(self):
        """The step ends here, unless an optimizer says so."""
        if self.recorder is not None and self.recorder.by_hand:
            self.recorder.next_step()


def start(out, steps=range(10, 11), samples_mb=16, sample_kb=256, per_class=4, sample_ranks=None,
          wait_s=60, optimizer=None):
    """Begin; capture() says what the arguments are.  Never raises but for wrong arguments."""
    global _active
    if _active is not None:
        raise ValueError("zipccl_capture: a capture is on already, expected one at a time")
    try:
        recorder = Recorder(out, steps, samples_mb, sample_kb, per_class, sample_ranks, wait_s)
        recorder.by_hand = optimizer is None
        if optimizer not in (None, "any"):
            recorder.optimizer = weakref.ref(optimizer)
    except OSError as error:
        warnings.warn("zipccl_capture: %s; nothing is captured, the training goes on" % error)
        return Capture(None)
    _active = recorder
    try:
        if optimizer is not None:
            _hook_optimizers()
        recorder.begin_step()
    except Exception as error:
        recorder.fail(error)
    return Capture(recorder)


@contextlib.contextmanager
def capture(out, steps=range(10, 11), samples_mb=16, sample_kb=256, per_class=4,
            sample_ranks=None, wait_s=60, optimizer=None):
    """
    Record 'steps' (numbers from 0, counted from here) into the folder 'out'.

    samples_mb    at most so many MiB of tensors on each rank that takes samples, all steps together
    sample_kb     at most so many KiB of one tensor, from its middle
    per_class     at most so many tensors of a class in a step
    sample_ranks  the ranks that take samples; None: the first, the middle one and the last
    wait_s        rank 0 waits at the end for the others' parts, seconds
    optimizer     its step() ends a step; "any": that of the first that steps; None: cap.step() does
    """
    cap = start(out, steps, samples_mb, sample_kb, per_class, sample_ranks, wait_s, optimizer)
    good = False
    try:
        yield cap
        good = True
    finally:
        if cap.recorder is not None:
            cap.recorder.finish(join=good)


@contextlib.contextmanager
def collective(op, tensor, group=None, count=None, redop=None, row=None):
    """
    What is done inside is one collective: for what a library makes of other calls, or past
    torch.distributed.  'op' as in a trace; 'tensor' is what this rank sends, 'count' NCCL's
    argument (default: elements of 'tensor'), 'row' the elements to each member (alltoallv).
    """
    r = _recorder()
    calls = None
    if r is not None:
        def parse(_):
            return [Call(op, [tensor], count=count, redop=redop, row=row)]
        calls = r.before(group if group is not None else _world(), parse, ())
    with _inside():
        yield
    if calls:
        r.after(calls)
        r.waited((calls, calls[0].t1, None))


def _world():
    group = dist.group.WORLD
    return group if group is not None else dist.distributed_c10d._get_default_group()


def _steps(text):
    first, colon, end = text.partition(":")
    return range(int(first), int(end) if colon else int(first) + 1)


def _from_environment():
    out = os.environ.get("ZIPCCL_CAPTURE")
    if not out or _active is not None:
        return
    names = {"samples_mb": "SAMPLES_MB", "sample_kb": "SAMPLE_KB", "per_class": "PER_CLASS"}
    try:
        options = {k: int(os.environ["ZIPCCL_CAPTURE_" + v]) for k, v in names.items()
                   if "ZIPCCL_CAPTURE_" + v in os.environ}
        cap = start(out, _steps(os.environ.get("ZIPCCL_CAPTURE_STEPS", "10:11")),
                    optimizer="any", **options)
    except ValueError as error:
        warnings.warn("zipccl_capture: %s; nothing is captured" % error)
        return
    if cap.recorder is not None:
        atexit.register(cap.recorder.finish, join=True)


_from_environment()


def _main():
    """zipccl_capture.py SCRIPT [ARGUMENTS]: run a script with ZIPCCL_CAPTURE set."""
    import runpy
    if len(sys.argv) < 2:
        sys.exit("usage: ZIPCCL_CAPTURE=FOLDER ZIPCCL_CAPTURE_STEPS=10:12 "
                 "zipccl_capture.py SCRIPT [ARGUMENTS]")
    if not os.environ.get("ZIPCCL_CAPTURE"):
        sys.exit("zipccl_capture.py: ZIPCCL_CAPTURE is not set, expected a folder")
    sys.argv = sys.argv[1:]
    sys.modules["zipccl_capture"] = sys.modules["__main__"]
    sys.path.append(sys.path[0])
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    _main()
