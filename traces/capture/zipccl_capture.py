#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""zipccl_capture.py - records what a PyTorch job sends, as a zipccl trace with samples of its tensors

    import zipccl_capture
    with zipccl_capture.capture("out", steps=range(10, 12)) as cap:
        for batch in batches:
            train(batch)
            cap.step()

Each rank writes what it saw to out/parts; rank 0 joins the parts to out/trace.jsonl and
out/tensors.safetensors, with zipccl_join.py where it can be imported,
else "python3 zipccl_join.py out" does later.  docs/capture.md has the rest.

A mistake in here must never end a training: every entry catches what it raises, warns once and
switches itself off.  torch 1.13 and later, any backend; on GPUs times come from CUDA events.
"""
import atexit
import contextlib
import hashlib
import json
import os
import socket
import sys
import threading
import time
import warnings
import weakref

import torch
import torch.distributed as dist

from zipccl_calls import METHODS, Call
from zipccl_clocks import DeviceClock, HostClock, Waiter
from zipccl_files import PART, write_file
from zipccl_hooks import (coalescing_hook, event_record_hook, event_wait_hook, here, hook_operators, hook_optimizers, in_backward, inside, method_hook, recorder, state, wait_hook)
from zipccl_samples import Sampler, write_samples

VERSION = "1"
_names = {}             # process group -> name given by name_group()


def name_group(group, name):
    """Call 'group' (None: the world) 'name' in traces: "dp", "tp", "ep", "pp"."""
    _names[group if group is not None else dist.group.WORLD] = str(name)


@contextlib.contextmanager
def label(text):
    """Calls made inside, by this thread, carry 'text'; their samples are of class OP.text."""
    old = getattr(here, "label", None)
    here.label = text
    try:
        yield
    finally:
        here.label = old


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
        # Kept, as scripts destroy the process group before the capture ends.
        self.rank, self.world = rank, world = dist.get_rank(), dist.get_world_size()
        self.backend = dist.get_backend()
        on_device = torch.cuda.is_available() and self.backend == "nccl"
        self.clock = DeviceClock() if on_device else HostClock()
        ranks = self.sample_ranks if self.sample_ranks is not None else (0, world // 2, world - 1)
        self.samples_here = rank in ranks
        for ending in ("jsonl", "safetensors"):  # of another run
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.part_path(ending))

    def part_path(self, ending):
        return os.path.join(self.parts, "rank%d.%s" % (self.rank, ending))

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
        if not self.in_backward and in_backward(otherwise=past_python):
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
                    call.label = getattr(here, "label", None) or call.label
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
            write_samples(self.part_path("safetensors"), self.sampler.tensors,
                              {"generator": "zipccl_capture " + VERSION})
        lines = list(self.lines())
        lines.append({"end": len(lines)})
        write_file(self.part_path("jsonl"),
                   [(json.dumps(x, separators=(",", ":")) + "\n").encode() for x in lines])

    def lines(self):
        host = hashlib.sha1(socket.gethostname().encode()).hexdigest()[:12]
        yield {"part": PART, "version": 1, "rank": self.rank, "world": self.world,
               "host": host, "clock": self.clock.kind,
               "generator": "zipccl_capture %s, torch %s, %s" % (
                   VERSION, torch.__version__.split("+")[0], self.backend)}
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
        try:
            with self.lock:
                self.recording = False
                self.write()
            if state.active is self:
                state.active = None
            if self.on and not self.done:
                raise RuntimeError("none of the steps %d to %d was reached or ended (%d ended)"
                                   % (min(self.steps), max(self.steps), self.step_now))
            if join and self.on and self.written and self.rank == 0:
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
        until = time.monotonic() + self.wait_s
        while not all(os.path.exists(os.path.join(self.parts, "rank%d.jsonl" % r))
                      for r in range(self.world)):
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
            self.replace(c.ProcessGroup, name, method_hook, parse)
        for name in ("_start_coalescing", "_end_coalescing"):
            self.replace(c.ProcessGroup, name, coalescing_hook, name)
        for name in ("wait", "synchronize"):
            self.replace(c.Work, name, wait_hook, None)
        if self.clock.kind == "device":
            self.replace(torch.cuda.Event, "record", event_record_hook, None)
            self.replace(torch.cuda.Event, "wait", event_wait_hook, None)
        self.undo.extend(hook_operators())

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
    if state.active is not None:
        raise ValueError("zipccl_capture: a capture is on already, expected one at a time")
    try:
        recorder = Recorder(out, steps, samples_mb, sample_kb, per_class, sample_ranks, wait_s)
        recorder.by_hand = optimizer is None
        if optimizer not in (None, "any"):
            recorder.optimizer = weakref.ref(optimizer)
    except OSError as error:
        warnings.warn("zipccl_capture: %s; nothing is captured, the training goes on" % error)
        return Capture(None)
    state.active = recorder
    try:
        if optimizer is not None:
            hook_optimizers()
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
    r = recorder()
    calls = None
    if r is not None:
        def parse(_):
            return [Call(op, [tensor], count=count, redop=redop, row=row)]
        calls = r.before(group if group is not None else _world(), parse, ())
    with inside():
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
    if not out or state.active is not None:
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
