# SPDX-License-Identifier: Apache-2.0
"""zipccl_clocks.py - when calls begin and end, on the host or by CUDA events"""
import contextlib
import queue
import threading
import time

import torch


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
