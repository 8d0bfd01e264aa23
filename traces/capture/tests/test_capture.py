#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_capture.py ZIPCCL [CASE] - processes over gloo that are captured, and what zipccl says to it

Exit code 77, with a message, where this Python has no torch with gloo.
"""
import contextlib
import json
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
os.environ.setdefault("OMP_NUM_THREADS", "1")

try:
    import torch
    import torch.distributed as dist
    if not dist.is_available() or not hasattr(torch._C._distributed_c10d, "ProcessGroupGloo"):
        raise ImportError("torch without gloo")
except ImportError as error:
    print("skipped: %s (Debian: python3-torch, PyPI: torch)" % error)
    sys.exit(77)

import zipccl_capture

ZIPCCL = None


# ------------------------------------------------------------------ running ranks

def child(rank, world, folder, body, results):
    failed = None
    try:
        torch.set_num_threads(1)
        dist.init_process_group("gloo", init_method="file://%s/store" % folder, rank=rank,
                                world_size=world)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            value = body(rank, os.path.join(folder, "out"))
        results.put((rank, value, [str(w.message) for w in caught
                                   if "zipccl_capture" in str(w.message)]))
        if dist.is_initialized():
            dist.barrier()
    except BaseException:
        failed = traceback.format_exc()
        results.put((rank, failed, None))
    results.close()
    results.join_thread()
    os._exit(0 if failed is None else 1)


def ranks(world, body, folder):
    """Run body(rank, out) in so many processes: [(value, warnings)] by rank."""
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    jobs = [context.Process(target=child, args=(r, world, folder, body, results))
            for r in range(world)]
    for job in jobs:
        job.start()
    try:
        got = sorted((results.get(timeout=120) for _ in jobs), key=lambda x: x[0])
        for rank, value, told in got:
            assert told is not None, "rank %d: %s" % (rank, value)
        for job in jobs:
            job.join(60)
            assert job.exitcode == 0, "a rank ended with %s" % job.exitcode
    finally:
        for job in jobs:
            if job.is_alive():
                job.kill()
    return [(value, told) for _, value, told in got]


def zipccl(*args):
    p = subprocess.run([ZIPCCL] + list(args), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    text = p.stdout.decode()
    assert p.returncode == 0, "zipccl %s: exit code %d\n%s" % (" ".join(args), p.returncode, text)
    return text


def trace(out):
    with open(os.path.join(out, "trace.jsonl")) as f:
        lines = [json.loads(line) for line in f]
    return lines[0], lines[1:-1]


def calls(events):
    return [e for e in events if e["kind"] == "collective"]


# ------------------------------------------------------------------ cases

def every_operation(folder):
    """All kinds of calls: what is recorded, and that zipccl takes it."""
    def body(rank, out):
        low = [dist.new_group([0, 1]), dist.new_group([2, 3])][rank // 2]
        zipccl_capture.name_group(low, "pair")
        with zipccl_capture.capture(out, steps=[1]) as cap:
            for step in range(3):
                x = torch.randn(1000)
                work = dist.all_reduce(x, async_op=True)
                time.sleep(0.01)
                work.wait()
                dist.all_reduce(torch.full((10,), 1.0, dtype=torch.float16), group=low,
                                op=dist.ReduceOp.MAX)
                rows = torch.randn(rank + 4, 8)
                sent, got = [rank, 1, 0, 3], [[0, 1, 2, 3], [1] * 4, [0] * 4, [3] * 4][rank]
                dist.all_to_all_single(torch.empty(sum(got), 8), rows, got, sent)
                dist.all_to_all_single(torch.empty(8), torch.randn(8))
                dist.all_gather([torch.empty(7) for _ in range(4)], torch.randn(7))
                dist.broadcast(torch.randn(5), src=2)
                dist.gather(torch.randn(3), [torch.empty(3) for _ in range(4)] if rank == 1
                            else None, dst=1)
                dist.scatter(torch.empty(2), [torch.randn(2) for _ in range(4)] if rank == 3
                             else None, src=3)
                if rank < 3:
                    send = dist.isend(torch.randn(6), rank + 1)
                if rank > 0:
                    dist.recv(torch.empty(6), rank - 1)
                if rank < 3:
                    send.wait()
                late = dist.new_group([1, 2])
                if rank in (1, 2):
                    dist.all_reduce(torch.ones(4, dtype=torch.int64), group=late)
                dist.reduce(torch.randn(9), dst=0)
                with zipccl_capture.label("mine"), zipccl_capture.collective(
                        "reduce_scatter", torch.randn(16), count=4, redop="avg"):
                    dist.all_to_all_single(torch.empty(16), torch.randn(16))
                cap.step()

    out = os.path.join(folder, "out")
    for _, told in ranks(4, body, folder):
        assert not told, told
    header, events = trace(out)
    assert header["nranks"] == 4 and header["ranks_per_node"] == 4
    assert header["provenance"].startswith("captured")
    seen = [(c["op"], c["dtype"], c["count"], c.get("label")) for c in calls(events)
            if c.get("label") != "barrier"]
    for want in [("all_reduce", "fp32", 1000, None), ("all_reduce", "fp16", 10, None),
                 ("alltoallv", "fp32", 24, None), ("alltoall", "fp32", 2, None),
                 ("all_gather", "fp32", 7, None), ("broadcast", "fp32", 5, None),
                 ("alltoallv", "fp32", 3, "gather"), ("alltoallv", "fp32", 2, "scatter"),
                 ("all_reduce", "int64", 4, None), ("reduce_scatter", "fp32", 4, "mine")]:
        assert seen.count(want) == 1, "%s: %d times in %s" % (want, seen.count(want), seen)
    assert seen.count(("sendrecv", "fp32", 6, None)) == 3, seen
    assert [e["label"] for e in events if e["kind"] == "communication"] == ["reduce"]
    tables = {t["name"]: t["counts"] for t in header["splits"]}
    uneven = next(c for c in calls(events) if c["op"] == "alltoallv" and "label" not in c)
    assert tables[uneven["splits"]] == [[8 * n for n in (r, 1, 0, 3)] for r in range(4)]
    assert next(c for c in calls(events) if c["op"] == "broadcast")["root"] == 2
    pair = next(g for g in header["groups"] if g["name"] == "pair")
    assert pair["ranks"] == [[0, 1], [2, 3]]
    # what ran while the first call did does not wait for it, what came after its wait() does
    first = calls(events)[0]
    after = [e for e in events if e["kind"] == "compute" and e["id"] > first["id"]]
    assert first["id"] not in after[0].get("deps", []), after[0]
    assert max(after[0].get("duration_by_rank_s", [after[0].get("duration_s")])) > 0.009
    assert any(first["id"] in e.get("deps", []) for e in events), "nothing waits for the first"
    zipccl("trace", "check", out)
    zipccl("trace", "info", out)
    zipccl("replay", out, "--cluster", "laptop", "--set", "nodes=1")
    zipccl("replay", out, "--on", "threads", "-n", "1", "-w", "0", "--gaps", "skip")
    parts = os.path.join(out, "parts")
    assert not [n for n in os.listdir(parts) if "tmp" in n or "try" in n]


def ddp(folder):
    """DDP's reducer calls from C++: seen, in the backward pass, waited for at its end."""
    def body(rank, out):
        torch.manual_seed(1)
        net = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(6)])
        net = torch.nn.parallel.DistributedDataParallel(net, bucket_cap_mb=0.3)
        opt = torch.optim.SGD(net.parameters(), lr=0.01)
        with zipccl_capture.capture(out, steps=[2], optimizer=opt):
            for step in range(4):
                net(torch.randn(8, 256)).sum().backward()
                dist.all_gather([torch.empty(1 << 18)] * 2, torch.randn(1 << 18))
                opt.step()
                opt.zero_grad()

    out = os.path.join(folder, "out")
    for _, told in ranks(2, body, folder):
        assert not told, told
    header, events = trace(out)
    reduces = [c for c in calls(events) if c["op"] == "all_reduce"]
    assert sum(c["count"] for c in reduces) == 6 * (256 * 256 + 256), reduces
    assert len(reduces) >= 2 and all("recorded_s" in c for c in reduces)
    end = next(e for e in events if e["kind"] == "compute" and e["id"] > reduces[-1]["id"]
               and "deps" in e)
    assert {c["id"] for c in reduces} <= set(end["deps"]), end
    zipccl("trace", "check", out)
    # 1 Gb/s between the two: compressing pays, by what the captured gradients give
    replay = os.path.join(folder, "replay.json")
    zipccl("replay", out, "--cluster", "laptop", "--set", "gpus_per_node=1", "-J", replay)
    with open(replay) as f:
        row = [r for r in json.load(f)["rows"] if r["op"] == "all_gather"][0]
    assert row["ratio_source"] == "captured" and row["ratio"] > 1.05, row


def fsdp(folder):
    """torch's FSDP, both of them; on CPUs from torch 2.4 on."""
    if int(torch.__version__.split(".")[0]) < 2:
        print("fsdp: skipped, torch %s has none for CPUs" % torch.__version__)
        return

    def body(rank, out):
        from torch.distributed.fsdp import FullyShardedDataParallel
        net = torch.nn.Sequential(*[FullyShardedDataParallel(
            torch.nn.Linear(64, 64), device_id=torch.device("cpu")) for _ in range(3)])
        opt = torch.optim.SGD(net.parameters(), lr=0.01)
        with zipccl_capture.capture(out, steps=[1], optimizer=opt):
            for step in range(2):
                net(torch.randn(8, 64)).sum().backward()
                opt.step()
                opt.zero_grad()
        from torch.distributed.fsdp import fully_shard
        net = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(3)])
        for layer in net:
            fully_shard(layer)
        opt = torch.optim.SGD(net.parameters(), lr=0.01)
        with zipccl_capture.capture(out + "2", steps=[1], optimizer=opt):
            for step in range(2):
                net(torch.randn(8, 64)).sum().backward()
                opt.step()
                opt.zero_grad()

    for _, told in ranks(2, body, folder):
        assert not told, told
    for out in ("out", "out2"):
        header, events = trace(os.path.join(folder, out))
        seen = [(c["op"], c["count"]) for c in calls(events)]
        share = (64 * 64 + 64) // 2
        assert seen.count(("all_gather", share)) >= 3, (out, seen)
        assert seen.count(("reduce_scatter", share)) == 3, (out, seen)
        zipccl("trace", "check", os.path.join(folder, out))


def coalesced(folder):
    """Calls made together: each is one call of the trace, and a wait for all holds back what follows."""
    def body(rank, out):
        c10d, group = dist.distributed_c10d, dist.group.WORLD
        with zipccl_capture.capture(out, steps=[0]) as cap:
            # a ring, each rank sends to the next and receives from the one before
            for work in dist.batch_isend_irecv([
                    dist.P2POp(dist.isend, torch.full((6,), float(rank)), (rank + 1) % 3),
                    dist.P2POp(dist.irecv, torch.empty(6), (rank + 2) % 3)]):
                work.wait()
            both = [torch.ones(10), torch.ones(20)]
            if hasattr(dist, "all_reduce_coalesced"):
                dist.all_reduce_coalesced(both)
            else:
                group.allreduce_coalesced(both).wait()
            assert both[1].tolist() == [3.0] * 20
            # inside torch's manager, which newer versions make of one call, older of several
            reqs, sums = [], [torch.ones(7), torch.ones(9)]
            if "reqs" in c10d._coalescing_manager.__wrapped__.__code__.co_varnames:
                with c10d._coalescing_manager(group, reqs):
                    reqs += [dist.all_reduce(t, async_op=True) for t in sums]
                for work in reqs:
                    work.wait()
            else:
                with c10d._coalescing_manager(group):
                    for t in sums:
                        dist.all_reduce(t)
            assert [t[0].item() for t in sums] == [3.0, 3.0]
            if hasattr(dist, "all_gather_coalesced"):
                dist.all_gather_coalesced([[torch.empty(4), torch.empty(5)] for _ in range(3)],
                                          [torch.ones(4), torch.ones(5)])
            for name, out_n, in_n in (("allgather_into_tensor_coalesced", 3, 1),
                                      ("reduce_scatter_tensor_coalesced", 1, 3)):
                method = getattr(group, name, None)  # FSDP2 and Megatron call these
                if method is not None:
                    with contextlib.suppress(RuntimeError):  # gloo of some versions has none
                        method([torch.empty(out_n * n) for n in (8, 16)],
                               [torch.ones(in_n * n) for n in (8, 16)]).wait()
            cap.step()

    out = os.path.join(folder, "out")
    for _, told in ranks(3, body, folder):
        assert not told, told
    header, events = trace(out)
    seen = [(c["op"], c["count"]) for c in calls(events)]
    rings = [c for c in calls(events) if c["op"] == "sendrecv"]
    members = {g["name"]: g.get("ranks", [list(range(3))]) for g in header["groups"]}
    pairs = [(part[a], part[b]) for c in rings for part in members[c["group"]]
             for a, b in c["pairs"]]
    assert sorted(pairs) == [(0, 1), (1, 2), (2, 0)], (pairs, rings, header["groups"])
    assert all(c["count"] == 6 for c in rings), rings
    for n in (10, 20, 7, 9):
        assert seen.count(("all_reduce", n)) == 1, (n, seen)
    if hasattr(dist, "all_gather_coalesced"):
        assert seen.count(("all_gather", 4)) == 1 and seen.count(("all_gather", 5)) == 1, seen
    last = [c["id"] for c in calls(events) if c["op"] == "all_reduce"][-1]
    assert any(last in e.get("deps", []) for e in events), "nothing waits for the last sum"
    zipccl("trace", "check", out)


def stays_out_of_the_way(folder):
    """Errors of the job pass, those of the capture do not."""
    def body(rank, out):
        # the job's own error, in a call and in a step
        try:
            with zipccl_capture.capture(out, steps=[0, 1]) as cap:
                with contextlib.suppress(Exception):
                    dist.all_reduce(None)
                dist.all_reduce(torch.ones(4))
                cap.step()
                dist.all_reduce(torch.ones(4))
                raise KeyError("the job's")
        except KeyError:
            pass
        with open(os.path.join(out, "parts", "rank%d.jsonl" % rank)) as f:
            steps = [json.loads(line)["step"] for line in f if '"step"' in line]
        assert steps == [0], steps
        assert dist.distributed_c10d.ProcessGroup.allreduce.__name__ == "allreduce"

        # a mistake of ours
        def broken(*_):
            raise ZeroDivisionError("planted")
        take, zipccl_capture.Sampler.take = zipccl_capture.Sampler.take, broken
        with zipccl_capture.capture(out + "2", steps=[0], sample_ranks=(0, 1)) as cap:
            for _ in range(3):
                x = torch.full((4,), rank + 1.0)
                dist.all_reduce(x)
                assert x.tolist() == [3.0] * 4
                cap.step()
        zipccl_capture.Sampler.take = take
        # a folder that cannot be, and a disk that is full
        with open(out + "3", "w"):
            pass
        dist.barrier()
        with zipccl_capture.capture(out + "3", steps=[0]) as cap:
            dist.all_reduce(torch.ones(4))
            cap.step()
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with zipccl_capture.capture(out + "4", steps=[0], sample_ranks=(0, 1)) as cap:
            dist.all_reduce(torch.randn(40000))
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
            cap.step()
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
        dist.barrier()
        return os.listdir(out + "4/parts")

    for value, told in ranks(2, body, folder):
        assert value == [], value
        assert len(told) == 3 and "planted" in told[0] and "nothing is captured" in told[1] \
            and "large" in told[2], told


class FakeStream:
    """A stream of a GPU that is not there; 'now' is how far it has come, ms."""
    def __init__(self, number):
        self.cuda_stream, self.now = number, 0.0

    def wait_stream(self, other):
        event = torch.cuda.Event()
        event.record(other)
        event.wait(self)


class FakeEvent:
    def __init__(self, enable_timing=False):
        self.at = None

    def record(self, stream=None):
        self.at = (stream or torch.cuda.current_stream()).now

    def wait(self, stream=None):
        stream = stream or torch.cuda.current_stream()
        stream.now = max(stream.now, self.at)

    def elapsed_time(self, other):
        return other.at - self.at


def streams_of_a_device(folder):
    """Waits that go from stream to stream, as FSDP's do; CUDA itself is faked."""
    def body(rank, out):
        main, side = FakeStream(1), FakeStream(2)
        now = [main]
        torch.cuda.Event, torch.cuda.current_stream = FakeEvent, lambda: now[0]
        torch.cuda.is_available, torch.cuda.synchronize = lambda: True, lambda: None
        dist.get_backend = lambda *_: "nccl"
        wait = torch._C._distributed_c10d.Work.wait

        def slow(self, *args):  # the collective takes 7 ms in the stream that waits
            now[0].now += 7
            return wait(self, *args)
        torch._C._distributed_c10d.Work.wait = slow
        with zipccl_capture.capture(out, steps=[0]) as cap:
            main.now += 10
            side.wait_stream(main)
            now[0] = side
            dist.all_gather([torch.empty(8)] * 2, torch.ones(8))  # in the side stream
            now[0] = main
            main.now += 4     # beside it
            main.wait_stream(side)
            main.now += 20
            dist.all_reduce(torch.ones(8))
            cap.step()

    out = os.path.join(folder, "out")
    for _, told in ranks(2, body, folder):
        assert not told, told
    header, events = trace(out)
    gather, reduce = calls(events)
    assert [e["id"] for e in calls(events)] == [2, 5], events
    assert [(e["kind"], e.get("duration_s"), e.get("deps")) for e in events] == [
        ("compute", 0.01, None), ("collective", None, [1]), ("compute", 0.004, None),
        ("compute", 0.02, [2]), ("collective", None, [4])], events
    assert gather["recorded_s"] == 0.007 and reduce["recorded_s"] == 0.007
    zipccl("trace", "check", out)


def environment(folder):
    """ZIPCCL_CAPTURE alone, any optimizer; steps that never come are said."""
    def body(rank, out):
        os.environ.update(ZIPCCL_CAPTURE=out, ZIPCCL_CAPTURE_STEPS="1:3",
                          ZIPCCL_CAPTURE_SAMPLES_MB="0")
        zipccl_capture._from_environment()
        w = torch.nn.Parameter(torch.zeros(100))
        opt = torch.optim.Adam([w])
        for step in range(3):
            w.grad = torch.randn(100)
            dist.all_reduce(w.grad)
            opt.step()
        dist.destroy_process_group()  # as scripts do at their end, which is before the capture's
        zipccl_capture.state.active.finish(join=True)
        with zipccl_capture.capture(out + "2", steps=[7]) as cap:
            cap.step()

    out = os.path.join(folder, "out")
    for _, told in ranks(2, body, folder):
        assert len(told) == 1 and "7" in told[0], told
    header, events = trace(out)
    assert "samples" not in header and len(calls(events)) == 1
    zipccl("trace", "check", out)


def training_script(folder):
    """train.py's own two models."""
    script = os.path.join(os.path.dirname(HERE), "train.py")
    # Two steps are too few for --time, and it must not end the job for that.
    small = ["--steps", "2", "--layers", "1", "--width", "32", "--ffn", "32", "--seq", "16", "--time"]
    for model, ops in (("moe", {"alltoall", "alltoallv", "all_reduce"}),):
        out = os.path.join(folder, model)
        subprocess.run([sys.executable, script, "--model", model, "--ranks", "2", "--capture", out,
                        "--experts", "4"] + small, check=True, stdout=subprocess.DEVNULL)
        header, events = trace(out)
        assert {c["op"] for c in calls(events)} == ops
        zipccl("trace", "check", out)


CASES = [every_operation, ddp, fsdp, coalesced, stays_out_of_the_way, streams_of_a_device, environment, training_script]


def main():
    global ZIPCCL
    ZIPCCL = os.path.abspath(sys.argv[1])
    for case in CASES:
        if len(sys.argv) > 2 and case.__name__ not in sys.argv[2:]:
            continue
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            case(folder)
        print("%s: ok, %.1f s" % (case.__name__, time.monotonic() - begin), flush=True)


if __name__ == "__main__":
    main()
