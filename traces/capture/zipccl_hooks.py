# SPDX-License-Identifier: Apache-2.0
"""zipccl_hooks.py - what stands in the place of torch's methods and operators while a step is recorded"""
import contextlib
import gc
import sys
import threading
import types

import torch

from zipccl_calls import OPERATORS, all_reduce, reduce_scatter, reduce_scatter_base

# The recorder, while it records or waits for its first step.
state = types.SimpleNamespace(active=None)
here = threading.local()  # what this thread is inside of


def in_backward(otherwise):
    """True if this thread is in a backward pass; 'otherwise' where torch (1.13) does not tell."""
    task = getattr(torch._C, "_current_graph_task_id", None)
    return task() != -1 if task is not None else otherwise


def recorder():
    """The recorder, unless this thread is inside a call that is recorded already."""
    r = state.active
    return r if r is not None and r.recording and not getattr(here, "inside", 0) else None


@contextlib.contextmanager
def inside():
    here.inside = getattr(here, "inside", 0) + 1
    try:
        yield
    finally:
        here.inside -= 1


def is_sync():
    """True if torch.distributed called and will wait at once."""
    frame = sys._getframe(2)
    return (frame.f_code.co_filename.endswith("distributed_c10d.py")
            and frame.f_locals.get("async_op", frame.f_code.co_name in ("isend", "irecv"))
            is False)


def method_hook(original, parse):
    def method(self, *args, **kw):
        r = recorder()
        calls = r.before(self, parse, args + tuple(kw.values())) if r is not None else None
        with inside():
            work = original(self, *args, **kw)
        if calls:
            late = calls[0].op in ("send", "recv") or is_sync()
            r.after(calls, work, None if late else lambda: _wait_original(work))
        return work
    method.__name__ = getattr(original, "__name__", "method")
    return method


_wait_original = torch._C._distributed_c10d.Work.wait


def wait_hook(original, _):
    def wait(self, *args, **kw):
        r = recorder()
        token = r.waiting(self) if r is not None else None
        result = original(self, *args, **kw)
        if token:
            r.waited(token)
        return result
    return wait


def event_record_hook(original, _):
    def record(self, stream=None):
        result = original(self, stream) if stream is not None else original(self)
        if state.active is not None and state.active.recording:
            state.active.event_recorded(self, stream)
        return result
    return record


def event_wait_hook(original, _):
    def wait(self, stream=None):
        def really():
            return original(self, stream) if stream is not None else original(self)
        if state.active is None or not state.active.recording:
            return really()
        return state.active.event_awaited(self, stream, really)
    return wait


def coalescing_hook(original, name):
    def coalescing(self, *args, **kw):
        r = recorder()
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

def hook_operators():
    libraries = []
    for key in ("AutogradCPU", "AutogradCUDA"):
        library = torch.library.Library("c10d", "IMPL", key)
        for name, (parse, position) in OPERATORS.items():
            if hasattr(torch.ops.c10d, name):
                library.impl(name, operator_hook(name, parse, position))
        libraries.append(library)
    return [libraries.clear]


def group_of_operator(boxed):
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


def operator_hook(name, parse, position):
    operator = getattr(torch.ops.c10d, name).default

    def kernel(*args):
        r = recorder()
        calls = None
        if r is not None:
            try:
                pg = group_of_operator(args[position])
                opts = args[position + 1:] or (None,)
                if parse in (all_reduce, reduce_scatter, reduce_scatter_base):
                    opts = (None,)  # a boxed operator; C++ callers sum or divide themselves
                calls = r.before(pg, parse, args[:position] + tuple(opts), past_python=True)
            except Exception as error:
                r.fail(error)
        guard = torch._C._AutoDispatchBelowAutograd()
        with inside():
            result = operator(*args)
        del guard
        if calls:
            work = result[-1] if isinstance(result, tuple) else result
            r.past_python.extend(calls)
            r.after(calls, None, work.wait if hasattr(work, "wait") else None)
        return result
    return kernel


# ------------------------------------------------------------------ optimizers

def hook_optimizers():
    """Tell the recorder of every step of every optimizer, those to come included."""
    def wrap(cls):
        step = vars(cls).get("step")
        if step is None or getattr(step, "zipccl_capture", False):
            return

        def stepped(self, *args, **kw):
            outer = getattr(here, "stepping", None)
            here.stepping = self
            try:
                result = step(self, *args, **kw)
            finally:
                here.stepping = outer
            if outer is not self and state.active is not None:
                state.active.stepped(self)
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
