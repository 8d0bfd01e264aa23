#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""train.py - trains a small transformer on CPUs over several processes and captures what they send

    python3 train.py --model dense --parallel fsdp --ranks 4 --capture out
    python3 train.py --model moe --parallel ep --ranks 4 --capture out

The model is bf16 with fp32 master weights (AdamW).  'fsdp' shards each block's parameters, gathers
them for the forward and again for the backward pass and reduce-scatters bf16 gradients; 'ddp' is
torch's DDP in fp32; 'tp' splits matrices and sums what they give; 'pp' gives each rank some of the
layers; 'ep' puts each expert on one rank (uneven all-to-alls) and all-reduces the
other gradients, 'ep-fsdp' shards the rest as 'fsdp' does.  The text is Python's own library, or --text.  Needs torch and nothing else;
torchrun starts it too.  remake.py makes samples like those of traces/samples with it.
"""
import argparse
import glob
import math
import multiprocessing
import os
import random
import statistics
import sys
import sysconfig
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

try:
    import torch
except ImportError:
    sys.exit("train.py: needs PyTorch: apt-get install python3-torch, or pip install torch")
import torch.distributed as dist
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

import zipccl_capture

BF = torch.bfloat16


# ------------------------------------------------------------------ collectives with gradients

# gloo of torch 1.13 has no bf16 and no reduce-scatter: bits travel as fp16, and the trace is told
# what the calls stand for.

def bits(tensor):
    return tensor.view(torch.float16) if tensor.dtype == BF else tensor


def gather(shard, where):
    """All ranks' shards, one after the other; 'where' names the layer in samples."""
    out = torch.empty(dist.get_world_size() * shard.numel(), dtype=shard.dtype)
    with zipccl_capture.label("param." + where), zipccl_capture.collective("all_gather", shard):
        dist.all_gather(list(bits(out).chunk(dist.get_world_size())), bits(shard))
    return out


def reduce_scatter(full, where):
    """This rank's part of the mean: exchanged, then added in fp32."""
    n, out = dist.get_world_size(), torch.empty_like(full)
    with zipccl_capture.label("grad." + where), \
            zipccl_capture.collective("reduce_scatter", full, count=full.numel() // n, redop="avg"):
        dist.all_to_all_single(bits(out), bits(full))
    return out.view(n, -1).float().mean(0).to(full.dtype)


def exchange(rows, sent, received, label):
    """Rows to the ranks that 'sent' counts, rows from those that 'received' counts."""
    out, width = rows.new_empty(sum(received), rows.shape[1]), rows.shape[1]
    with zipccl_capture.label(label), \
            zipccl_capture.collective("alltoallv", rows, row=[n * width for n in sent]):
        dist.all_to_all_single(bits(out), bits(rows), received, sent)
    return out


def all_sum(part, label):
    """The sum of all ranks' parts, added in fp32."""
    parts = [torch.empty_like(part) for _ in range(dist.get_world_size())]
    with zipccl_capture.label(label), \
            zipccl_capture.collective("all_reduce", part, redop="sum"):
        dist.all_gather([bits(p) for p in parts], bits(part.contiguous()))
    return sum(p.float() for p in parts).to(part.dtype)


class ToParts(torch.autograd.Function):
    """Into tensor parallelism: all ranks have the rows, each a part of their gradient."""
    @staticmethod
    def forward(ctx, x, where):
        ctx.where = where
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return all_sum(grad, "tp.grad." + ctx.where), None


class FromParts(torch.autograd.Function):
    """And out of it."""
    @staticmethod
    def forward(ctx, x, where):
        return all_sum(x.detach(), "tp.hidden." + where)

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx, shard, where):
        ctx.where = where
        return gather(shard.detach(), where)

    @staticmethod
    def backward(ctx, grad):
        return reduce_scatter(grad.contiguous(), ctx.where), None


class Exchange(torch.autograd.Function):
    @staticmethod
    def forward(ctx, rows, sent, received, label, where):
        ctx.splits = sent, received, label, where
        return exchange(rows.detach().contiguous(), sent, received, label + where)

    @staticmethod
    def backward(ctx, grad):
        sent, received, label, where = ctx.splits
        back = exchange(grad.contiguous(), received, sent, label + "_grad" + where)
        return back, None, None, None, None


# ------------------------------------------------------------------ model

class Shapes:
    """Names and shapes of the parameters of a block, and views of them in a flat tensor."""

    def __init__(self, shapes, ranks):
        self.shapes = shapes
        self.numel = sum(math.prod(s) for s in shapes.values())
        self.padded = -(-self.numel // ranks) * ranks

    def views(self, flat):
        out, at = {}, 0
        for name, shape in self.shapes.items():
            n = math.prod(shape)
            out[name] = flat[at:at + n].view(shape)
            at += n
        return out

    def init(self, generator, layers):
        flat = torch.zeros(self.padded)
        for name, view in self.views(flat).items():
            if view.dim() == 1:
                view.fill_(1)
            else:
                std = 0.02 / (math.sqrt(2 * layers) if name in ("wo", "down") else 1)
                view.normal_(0, std, generator=generator)
        return flat


def norm(x, weight):
    y = x.float()
    return (y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + 1e-5) * weight.float()).to(x.dtype)


def attention(p, x, batch, heads, size):
    n = len(x)
    q, k, v = F.linear(x, p["wqkv"]).view(batch, n // batch, 3, heads, size).unbind(2)
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    scores = (q @ k.transpose(-1, -2)).float() / math.sqrt(size)
    mask = torch.full(scores.shape[-2:], float("-inf")).triu(1)
    mixed = ((scores + mask).softmax(-1).to(x.dtype) @ v).transpose(1, 2).reshape(n, heads * size)
    return F.linear(mixed, p["wo"])


def swiglu(x, up, down):
    g, u = F.linear(x, up).float().chunk(2, -1)
    return F.linear((F.silu(g) * u).to(x.dtype), down)


def experts(p, x, options, where):
    """Top-2 of the experts; a rank has as many of them as any other."""
    world, k = dist.get_world_size(), 2
    probs = F.linear(x.float(), p["router"].float()).softmax(-1)
    value, chosen = probs.topk(k, -1)
    order = torch.argsort(chosen.reshape(-1), stable=True)
    counts = torch.bincount(chosen.reshape(-1), minlength=options.experts).view(world, -1)
    theirs = torch.empty_like(counts)
    with zipccl_capture.label("tokens"):
        dist.all_to_all_single(theirs, counts)
    sent, received = counts.sum(1).tolist(), theirs.sum(1).tolist()
    rows = Exchange.apply(x[order // k], sent, received, "dispatch", where)
    # Rows come by rank, then by expert: those of an expert are several pieces.
    pieces = torch.split(rows, theirs.reshape(-1).tolist())
    per_rank, out = theirs.shape[1], [None] * len(pieces)
    for e in range(per_rank):
        mine = list(range(e, len(pieces), per_rank))
        y = swiglu(torch.cat([pieces[i] for i in mine]), p["up"][e], p["down"][e])
        for i, piece in zip(mine, torch.split(y, [len(pieces[i]) for i in mine])):
            out[i] = piece
    back = Exchange.apply(torch.cat(out), received, sent, "combine", where)
    at = torch.empty_like(order)
    at[order] = torch.arange(len(order))
    gate = (value / value.sum(-1, keepdim=True)).unsqueeze(-1)
    return (back[at].view(len(x), k, -1).float() * gate).sum(1).to(x.dtype)


class Model:
    """Flat parameters, one for each block, and one for what is outside of blocks."""

    def __init__(self, options):
        self.o, o, d = options, options, options.width
        ranks = dist.get_world_size()
        self.tp = ranks if o.parallel == "tp" else 1
        part = d // self.tp
        dense = {"wqkv": (3 * part, d), "wo": (d, part), "norm1": (d,), "norm2": (d,)}
        if o.model == "dense":
            dense.update(up=(2 * o.ffn // self.tp, d), down=(d, o.ffn // self.tp))
        else:
            dense.update(router=(o.experts, d))
        mine = o.experts // ranks
        self.outside = Shapes({"embed": (256, d), "norm": (d,), "head": (256, d)}, ranks)
        self.block = Shapes(dense, ranks)
        self.own = Shapes({"up": (mine, 2 * o.ffn, d), "down": (mine, d, o.ffn)}, 1)
        same = torch.Generator().manual_seed(o.seed)
        other = torch.Generator().manual_seed(o.seed + 1 + dist.get_rank())
        flats = [self.outside.init(same, o.layers)]
        flats += [self.block.init(same if self.tp == 1 else other, o.layers)
                  for _ in range(o.layers)]
        self.sharded = o.parallel in ("fsdp", "ep-fsdp")
        if self.sharded:
            flats = [f.chunk(ranks)[dist.get_rank()].clone() for f in flats]
        if o.model == "moe":
            flats += [self.own.init(other, o.layers) for _ in range(o.layers)]
        self.master = [torch.nn.Parameter(f) for f in flats]
        self.dtype = torch.float32 if o.parallel == "ddp" else BF
        self.weights = [f.detach().to(self.dtype).requires_grad_() for f in flats]

    def full(self, i):
        return Gather.apply(self.weights[i], "root") if self.sharded else self.weights[i]

    def run_block(self, x, i, weight, own):
        where = "layer%d" % (i - 1)
        p = self.block.views(Gather.apply(weight, where) if self.sharded else weight)
        heads, size = self.o.heads // self.tp, self.o.width // self.o.heads
        if self.tp > 1:
            h = ToParts.apply(norm(x, p["norm1"]), "attn_in." + where)
            h = attention(p, h, self.o.batch, heads, size)
            x = x + FromParts.apply(h, "attn_out." + where)
            h = ToParts.apply(norm(x, p["norm2"]), "mlp_in." + where)
            return x + FromParts.apply(swiglu(h, p["up"], p["down"]), "mlp_out." + where)
        x = x + attention(p, norm(x, p["norm1"]), self.o.batch, heads, size)
        h = norm(x, p["norm2"])
        if own is None:
            return x + swiglu(h, p["up"], p["down"])
        return x + experts({**p, **self.own.views(own)}, h, self.o, "." + where)

    def pipeline(self, ids):
        """Loss on the last stage; each runs its layers, forward and backward, once."""
        rank, ranks, x = dist.get_rank(), dist.get_world_size(), None
        p = self.outside.views(self.full(0))
        if rank > 0:
            x = torch.empty(ids[:, 1:].numel(), self.o.width, dtype=BF)
            dist.recv(x, rank - 1)
            x.requires_grad_()
        y = x if rank > 0 else F.embedding(ids[:, :-1].reshape(-1), p["embed"])
        for i in range(1 + rank * self.o.layers // ranks,
                       1 + (rank + 1) * self.o.layers // ranks):
            y = self.run_block(y, i, self.weights[i], None)
        if rank < ranks - 1:
            grad = torch.empty_like(y)
            with zipccl_capture.label("pp.hidden"):
                dist.send(y.detach(), rank + 1)
            dist.recv(grad, rank + 1)
            y.backward(grad)
            loss = None
        else:
            logits = F.linear(norm(y, p["norm"]), p["head"])
            loss = F.cross_entropy(logits.float(), ids[:, 1:].reshape(-1))
            loss.backward()
        if rank > 0:
            with zipccl_capture.label("pp.grad"):
                dist.send(x.grad, rank - 1)
        return loss

    def loss(self, ids):
        p = self.outside.views(self.full(0))
        x = F.embedding(ids[:, :-1].reshape(-1), p["embed"])
        for i in range(1, self.o.layers + 1):
            own = self.weights[self.o.layers + i] if self.o.model == "moe" else None
            args = (x, i, self.weights[i], own)
            x = checkpoint(self.run_block, *args, use_reentrant=False) if self.sharded \
                else self.run_block(*args)
        logits = F.linear(norm(x, p["norm"]), p["head"])
        return F.cross_entropy(logits.float(), ids[:, 1:].reshape(-1))

    def give_gradients(self):
        """To the master weights, in fp32; what every rank has a copy of is all-reduced."""
        for i, (master, weight) in enumerate(zip(self.master, self.weights)):
            if weight.grad is None:  # of another stage
                continue
            master.grad, weight.grad = weight.grad.float(), None
            if self.o.parallel in ("tp", "pp"):
                continue
            mine = i > self.o.layers  # its gradient has come from all ranks already
            if mine or not self.sharded:
                master.grad /= dist.get_world_size()
            if not self.sharded:
                if i <= self.o.layers:
                    dist.all_reduce(master.grad)


class AsModule(torch.nn.Module):
    """The model as torch's DDP wants it."""

    def __init__(self, model):
        super().__init__()
        self.model = model
        model.weights = model.master
        self.weights = torch.nn.ParameterList(model.master)

    def forward(self, ids):
        return self.model.loss(ids)


# ------------------------------------------------------------------ training

def read_text(options):
    names = [options.text] if options.text else sorted(
        glob.glob(os.path.join(sysconfig.get_paths()["stdlib"], "*.py")))
    data = b""
    for name in names:
        with open(name, "rb") as f:
            data += f.read()
        if len(data) > 4 << 20:
            break
    if len(data) < 100 * options.seq:
        sys.exit("train.py: %d bytes of text, expected at least %d" % (len(data),
                                                                      100 * options.seq))
    return torch.frombuffer(bytearray(data), dtype=torch.uint8)


def train(options):
    torch.set_num_threads(1)
    model, text = Model(options), read_text(options)
    module = None
    if options.parallel == "ddp":
        module = torch.nn.parallel.DistributedDataParallel(AsModule(model), bucket_cap_mb=1)
    optimizer = torch.optim.AdamW(model.master, lr=options.lr, weight_decay=0.1)
    same_text = options.parallel in ("tp", "pp")
    place = random.Random(options.seed * 1000 + (0 if same_text else dist.get_rank()))
    cap = None
    if options.capture:
        cap = zipccl_capture.start(options.capture, options.capture_steps,
                                   samples_mb=options.samples_mb, sample_kb=options.sample_kb,
                                   per_class=options.per_class)
    seconds, used = {True: [], False: []}, {True: [], False: []}
    for step in range(options.steps):
        begin, begin_cpu = time.perf_counter(), time.process_time()
        starts = [place.randrange(len(text) - options.seq - 1) for _ in range(options.batch)]
        ids = torch.stack([text[s:s + options.seq + 1] for s in starts]).long()
        if options.parallel == "pp":
            loss = model.pipeline(ids)
        else:
            loss = module(ids) if module is not None else model.loss(ids)
            loss.backward()
        if module is None:
            model.give_gradients()
        optimizer.step()
        optimizer.zero_grad()
        if module is None:
            with torch.no_grad():
                for master, weight in zip(model.master, model.weights):
                    weight.copy_(master)
        if cap is not None:
            cap.step()
        captured = options.capture_steps is not None and step in options.capture_steps
        seconds[captured].append(time.perf_counter() - begin)
        used[captured].append(time.process_time() - begin_cpu)
        if loss is not None and (dist.get_rank() == 0 or options.parallel == "pp") and (step % 10 == 0 or step == options.steps - 1):
            print("step %d loss %.3f" % (step, loss.item()), flush=True)
    if dist.get_rank() == 0 and options.time:
        for captured in (False, True):
            for what, times in (("elapsed", seconds), ("of a processor", used)):
                if len(times[captured]) < 3:  # the first is left out
                    print("%s: %d steps, too few for a median %s" % (
                        "captured" if captured else "not captured", len(times[captured]), what))
                    continue
                q = statistics.quantiles(times[captured][1:], n=4)
                print("%s: median %.2f ms a step %s, quartiles %.2f to %.2f, %d steps" % (
                    "captured" if captured else "not captured", 1e3 * q[1], what, 1e3 * q[0],
                    1e3 * q[2], len(times[captured]) - 1))
    if cap is not None and cap.recorder is not None:
        cap.recorder.finish(join=True)


def run(rank, options, store):
    if store is not None:
        dist.init_process_group("gloo", init_method="file://" + store, rank=rank,
                                world_size=options.ranks)
    else:
        dist.init_process_group("gloo")
        options.ranks = dist.get_world_size()
    if options.experts % options.ranks:
        sys.exit("train.py: %d experts on %d ranks, expected a multiple" % (options.experts,
                                                                           options.ranks))
    for what in ("heads", "ffn") if options.parallel == "tp" else ():
        if getattr(options, what) % options.ranks:
            sys.exit("train.py: %s %d on %d ranks, expected a multiple" % (
                what, getattr(options, what), options.ranks))
    if options.parallel == "pp" and options.layers < options.ranks:
        sys.exit("train.py: %d layers on %d ranks, expected one a rank or more" % (
            options.layers, options.ranks))
    train(options)
    dist.barrier()
    dist.destroy_process_group()


def parse():
    p = argparse.ArgumentParser(description="train a small transformer over gloo and capture it")
    p.add_argument("--model", choices=("dense", "moe"), default="dense")
    p.add_argument("--parallel", choices=("ddp", "fsdp", "tp", "pp", "ep", "ep-fsdp"),
                   help="default: fsdp for dense, ep for moe")
    p.add_argument("--ranks", type=int, default=4, help="processes (torchrun says it itself)")
    p.add_argument("--steps", type=int, default=12)
    p.add_argument("--capture", metavar="FOLDER", help="where the trace and the samples go")
    p.add_argument("--capture-steps", default=None, metavar="A:B[:STRIDE]",
                   help="default: the last two")
    p.add_argument("--samples-mb", type=int, default=16, help="MiB of tensors of a rank")
    p.add_argument("--sample-kb", type=int, default=256, help="KiB of one tensor")
    p.add_argument("--per-class", type=int, default=4, help="tensors of a class in a step")
    p.add_argument("--time", action="store_true", help="print what capturing costs")
    p.add_argument("--text", help="a file to train on; default: Python's library")
    for name, value in (("layers", 4), ("width", 256), ("heads", 4), ("ffn", 704), ("seq", 128),
                        ("batch", 2), ("experts", 8), ("seed", 1)):
        p.add_argument("--" + name, type=int, default=value)
    p.add_argument("--lr", type=float, default=1e-3)
    options = p.parse_args()
    options.parallel = options.parallel or ("ep" if options.model == "moe" else "fsdp")
    if (options.model == "moe") != options.parallel.startswith("ep"):
        p.error("--model moe goes with --parallel ep or ep-fsdp, dense with the others")
    if options.capture_steps:
        options.capture_steps = range(*map(int, options.capture_steps.split(":")))
    elif options.capture:
        options.capture_steps = range(max(0, options.steps - 2), options.steps)
    return options


def main():
    options = parse()
    if "RANK" in os.environ:
        run(int(os.environ["RANK"]), options, None)
        return
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        jobs = [context.Process(target=run, args=(r, options, os.path.join(folder, "store")))
                for r in range(options.ranks)]
        for job in jobs:
            job.start()
        for job in jobs:
            job.join()
    sys.exit(max(abs(job.exitcode) for job in jobs))


if __name__ == "__main__":
    main()
