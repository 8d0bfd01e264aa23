#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""zipccl_join.py - joins the parts that the ranks of a captured job wrote to one zipccl trace

    python3 zipccl_join.py FOLDER [--step N] [--name NAME]

reads FOLDER/parts/rank*.jsonl and .safetensors, as zipccl_capture.py and libzipccl-capture.so
write them, and writes FOLDER/trace.jsonl and FOLDER/tensors.safetensors.  Needs Python 3.8 and
nothing else.  traces/TRACE.md is the format that is written, docs/capture.md says how it is made.
"""
import argparse
import collections
import heapq
import json
import os
import struct
import sys

from zipccl_files import write_file, write_safetensors
from zipccl_parts import JoinError, choose_step, read_parts

LEAST_NS = 1000        # shorter compute is left out
SAMPLE_BYTES = 64 << 20  # of all ranks together


# ------------------------------------------------------------------ calls of one group are one

class Node:
    """A collective of one group; 'calls' has each member's record."""
    __slots__ = ("group", "ends", "calls", "set", "part", "id", "table")

    def __init__(self, group, ends):
        self.group, self.ends, self.calls, self.table = group, ends, {}, None

    @property
    def first(self):
        return next(iter(self.calls.values()))

    @property
    def op(self):
        return "sendrecv" if self.ends else self.first["op"]


def match(steps):
    """{group: [nodes in order]}: the n-th call of each member is one."""
    nodes = {}
    for step in steps:
        for call in step.marks:
            if "wait" in call:
                continue
            key = (call["lane"], call["ordinal"])
            node = nodes.get(key)
            if node is None:
                node = nodes[key] = Node(*call["lane"])
            node.calls[call["rank"]] = call
            call["node"] = node
    groups = collections.OrderedDict()
    for (lane, ordinal), node in sorted(nodes.items(), key=lambda kv: kv[1].first["call"]):
        check(node, ordinal)
        groups.setdefault(node.group, []).append(node)
    return groups


def check(node, ordinal):
    key, name, ranks = node.group
    what = "call %d of group %s of ranks %s" % (ordinal, name or key, list(ranks)[:8])
    absent = [r for r in ranks if r not in node.calls]
    if absent:
        raise JoinError("%s: rank %d did not make it, rank %d did (%s): do all ranks record the "
                        "same steps?" % (what, absent[0], node.first["rank"], node.first["op"]))
    first = node.first
    for call in node.calls.values():
        same = ("dtype",) if node.ends or call["op"] == "alltoallv" or first["op"] == "alltoallv" \
            else ("op", "dtype", "count", "redop", "root")
        for field in same:
            if call.get(field) != first.get(field):
                raise JoinError("%s: %s is %s on rank %d and %s on rank %d" % (
                    what, field, first.get(field), first["rank"], call.get(field), call["rank"]))
    if node.ends and len({c["count"] for c in node.calls.values()}) > 1:
        raise JoinError("%s: sent and received counts differ: %s" % (
            what, [c["count"] for c in node.calls.values()]))
    if any(c["op"] == "alltoallv" for c in node.calls.values()):
        node.table = tuple(tuple(row(node.calls[r], len(ranks))) for r in ranks)
        for call in node.calls.values():
            call["op"] = "alltoallv"


def row(call, size):
    """Elements to each member; an even call in between uneven ones has the same for each."""
    given = call.get("row")
    if given is None:
        return [call["count"]] * size
    if len(given) != size:
        raise JoinError("a row of %d entries in a group of %d" % (len(given), size))
    return given


def signature(nodes):
    return tuple((n.op, n.first["dtype"], n.first["count"], n.first.get("redop"),
                  n.first.get("root"), n.first.get("label"), n.table, n.first.get("opaque"),
                  n.ends and n.ends[0] < n.ends[1]) for n in nodes)


def make_sets(groups, world, merge):
    """
    Groups that do the same and share no rank are one set of the trace, as far as 'merge' says.
    """
    sets = []
    for group, nodes in groups.items():
        key, name, ranks = group
        sign = signature(nodes)
        may = merge == "all" or (merge == "collectives" and not nodes[0].ends)
        for s in sets if may else ():
            if (s["name"], s["sign"], s["size"]) == (name, sign, len(ranks)) and \
                    not s["members"] & set(ranks):
                break
        else:
            s = {"name": name, "sign": sign, "size": len(ranks), "members": set(), "parts": [],
                 "nodes": [[] for _ in nodes]}
            sets.append(s)
        s["members"] |= set(ranks)
        s["parts"].append(ranks)
        for i, node in enumerate(nodes):
            s["nodes"][i].append(node)
    used = set()
    for s in sets:
        s["base"] = base = "".join(c for c in s["name"] if c.isprintable()) or default_name(s, world)
        s["title"], n = base, 2
        while s["title"] in used:
            s["title"], n = "%s.%d" % (base, n), n + 1
        used.add(s["title"])
    return sets


def default_name(s, world):
    ranks = s["parts"][0]
    if len(ranks) == world:
        return "world"
    strides = {b - a for a, b in zip(ranks, ranks[1:])}
    return "group%d" % len(ranks) + (".stride%d" % strides.pop() if len(strides) == 1 else "")


# ------------------------------------------------------------------ events in one order

class Event:
    """A line to be: a call of a set, or the compute of ranks that do the same."""
    __slots__ = ("nodes", "ranks", "seconds", "deps", "when", "set", "stream", "waits", "id")

    def __init__(self, ranks):
        self.nodes, self.ranks, self.seconds, self.deps = None, ranks, None, set()
        self.when, self.set, self.stream, self.waits, self.id = 0, None, None, 0, 0


def events_of(parts, steps, sets):
    """Events, and each rank's in its order."""
    order = [[] for _ in parts]
    event_of = {}
    for s in sets:
        for nodes in s["nodes"]:
            event = Event(sorted(r for n in nodes for r in n.calls))
            event.nodes, event.set = nodes, s
            event.stream = stream_name(s, nodes[0])
            for node in nodes:
                event_of[id(node)] = event
    sequences = collections.OrderedDict()
    for rank, step in enumerate(steps):
        marks = tuple(id(event_of[id(m["node"])]) if "call" in m else
                      ("wait",) + tuple(id(event_of[id(step.calls[c]["node"])])
                                        for c in m["wait"] if c in step.calls)
                      for m in step.marks)
        sequences.setdefault(marks, []).append(rank)
    for ranks in sequences.values():
        one_class(ranks, [steps[r] for r in ranks], event_of, order)
    return order


def stream_name(s, node):
    if node.ends:
        return "p2p:%s%s" % (s["base"], ".up" if node.ends[0] < node.ends[1] else ".down")
    return "comm:" + s["base"]


def one_class(ranks, steps, event_of, order):
    """Ranks that make the same calls and waits in the same order: their compute is common."""
    cursors = [s.t0 for s in steps]
    waited, last, ends = set(), None, []

    def compute(times):
        nonlocal waited, last
        spans = [max(0, t - c) for t, c in zip(times, cursors)]
        if max(spans) < LEAST_NS:
            return
        event = Event(ranks)
        event.seconds = [1e-9 * x for x in spans]
        event.deps, waited = waited, set()
        event.when = sum(times) / len(times) - sum(s.t0 for s in steps) / len(steps)
        event.stream, last = "compute", event
        ends.append((times[0], event))
        for r in ranks:
            order[r].append(event)

    for marks in zip(*(s.marks for s in steps)):
        compute([m["t0"] for m in marks])
        if "wait" in marks[0]:
            for c in marks[0]["wait"]:
                if c in steps[0].calls:
                    waited.add(event_of[id(steps[0].calls[c]["node"])])
        else:
            event = event_of[id(marks[0]["node"])]
            if "side" in marks[0]:  # from another stream of the GPU: what had ended there and then
                event.deps |= set([e for t, e in ends if t <= marks[0]["side"]][-1:])
            else:
                event.deps |= waited | ({last} if last is not None else set())
            event.when = max(event.when, max(m["t0"] - s.t0 for m, s in zip(marks, steps)))
            for r in ranks:
                order[r].append(event)
        cursors = [max(c, m["t1"]) for c, m in zip(cursors, marks)]
    compute([s.t1 for s in steps])


def one_order(order):
    """
    All events, each after what stands before it on every rank that runs it; None in a circle of
    ranks that make their calls in different orders.
    """
    after = collections.defaultdict(list)
    events, seen = [], set()
    for mine in order:
        for event in mine:
            if id(event) not in seen:
                seen.add(id(event))
                events.append(event)
        for a, b in zip(mine, mine[1:]):
            after[id(a)].append(b)
            b.waits += 1
    ready = [(e.when, i, e) for i, e in enumerate(events) if e.waits == 0]
    heapq.heapify(ready)
    out, n = [], len(events)
    while ready:
        event = heapq.heappop(ready)[2]
        out.append(event)
        for b in after[id(event)]:
            b.waits -= 1
            if b.waits == 0:
                n += 1
                heapq.heappush(ready, (b.when, n, b))
    return out if len(out) == len(events) else None


# ------------------------------------------------------------------ samples

def read_samples(folder, ranks, step):
    """{rank: {name: (dtype, shape, bytes)}} of the tensors of that step."""
    found, left = {}, SAMPLE_BYTES
    for rank in ranks:
        path = os.path.join(folder, "parts", "rank%d.safetensors" % rank)
        if not os.path.exists(path):
            continue
        with open(path, "rb") as f:
            raw = f.read()
        try:
            size = struct.unpack("<Q", raw[:8])[0]
            header = json.loads(raw[8:8 + size])
            for name, x in header.items():
                if name == "__metadata__" or ".step%d." % step not in name:
                    continue
                a, b = x["data_offsets"]
                if not 0 <= a <= b <= len(raw) - 8 - size:
                    raise ValueError("tensor %s outside of the file" % name)
                if left >= b - a:
                    left -= b - a
                    found.setdefault(rank, {})[name] = (x["dtype"], x["shape"],
                                                        raw[8 + size + a:8 + size + b])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError,
                struct.error) as error:
            raise JoinError("%s: %s, expected a .safetensors file" % (path, error)) from None
    return found


def missing_samples(folder, parts, step):
    """A line for people if ranks name samples in calls and have no file of them, else none."""
    absent = [p.rank for p in parts if any(x.get("sample") for x in p.steps[step].marks) and
              not os.path.exists(os.path.join(folder, "parts", "rank%d.safetensors" % p.rank))]
    if not absent:
        return []
    return ["WARNING: %s/parts: no rank%d.safetensors%s, which calls name samples of: the trace "
            "lacks these tensors" % (folder, absent[0], " and %d more" % (len(absent) - 1)
                                     if len(absent) > 1 else "")]


def bind_samples(events, samples):
    """{event: names} and the tensors that are bound, as [(name, dtype, shape, bytes)]."""
    bound, tensors, classes = {}, [], {}
    for event in events:
        if event.nodes is None or event.nodes[0].first.get("opaque"):
            continue
        for node in event.nodes:
            for rank, call in sorted(node.calls.items()):
                name = call.get("sample")
                if name is None or name not in samples.get(rank, {}):
                    continue
                mine = samples[rank].pop(name)
                name = "%s.rank%d" % (name, rank)
                tensors.append((name,) + mine)
                bound.setdefault(event, []).append(name)
                key = (node.op, node.first["dtype"], event.set["base"], call.get("label"),
                       bool(call.get("backward")))
                for n in range(len(key), 1, -1):
                    classes.setdefault(key[:n], class_of(name))
    for event in events:
        if event.nodes is None or event in bound or event.nodes[0].first.get("opaque"):
            continue
        first = event.nodes[0].first
        key = (event.nodes[0].op, first["dtype"], event.set["base"], first.get("label"),
               bool(first.get("backward")))
        for n in range(len(key), 1, -1):
            if key[:n] in classes:
                bound[event] = ["class:" + classes[key[:n]]]
                break
    return bound, tensors


def class_of(name):
    return name[:name.index(".step")]


# ------------------------------------------------------------------ the trace

def spans_of(ranks, world):
    """As 'ranks' of an event: None for all, else ranks and [first, last, stride]."""
    if len(ranks) == world:
        return None
    out, i = [], 0
    while i < len(ranks):
        j = i + 1
        stride = ranks[j] - ranks[i] if j < len(ranks) else 0
        while j + 1 < len(ranks) and ranks[j + 1] - ranks[j] == stride:
            j += 1
        if j - i >= 2:
            out.append([ranks[i], ranks[j]] + ([stride] if stride > 1 else []))
            i = j + 1
        else:
            out.append(ranks[i])
            i += 1
    return out


def recorded(event):
    """From when the last member began to when it ended: the least over the members."""
    worst = None
    for node in event.nodes:
        spans = [1e-9 * (c["end"] - c.get("side", c["issue"])) for c in node.calls.values()
                 if c.get("end") is not None]
        if len(spans) == len(node.calls) and min(spans) > 0:
            worst = max(worst or 0, min(spans))
    return worst


def number(x):
    return float("%.9g" % x)


def event_line(event, world, tables, bound):
    line = {"id": event.id}
    spans = spans_of(event.ranks, world)
    deps = sorted(e.id for e in event.deps if 0 < e.id < event.id)
    if event.nodes is None:
        line.update(kind="compute", stream="compute")
        if len(set(event.seconds)) == 1:
            line["duration_s"] = number(event.seconds[0])
        else:
            line["duration_by_rank_s"] = [number(x) for x in event.seconds]
    else:
        node, first = event.nodes[0], event.nodes[0].first
        seconds = recorded(event)
        line["kind"] = "communication" if first.get("opaque") else "collective"
        if first.get("label"):
            line["label"] = first["label"]
        line["stream"] = event.stream
        if first.get("opaque"):
            line["duration_s"] = number(seconds or 0)
        else:
            line.update(op=node.op, group=event.set["title"], dtype=first["dtype"],
                        count=first["count"])
            if node.op in ("all_reduce", "reduce_scatter"):
                line["redop"] = first["redop"]
            if node.op == "broadcast":
                line["root"] = first["root"]
            if node.op == "sendrecv":
                line["pairs"] = [[node.group[2].index(e) for e in node.ends]]
            if node.table is not None:
                line["count"] = max(max(r) for r in node.table)
                line["splits"] = tables[node.table]
            if seconds is not None:
                line["recorded_s"] = number(seconds)
            if event in bound:
                line["samples"] = bound[event]
    if spans is not None:
        line["ranks"] = spans
    if deps:
        line["deps"] = deps
    return line


def header_line(parts, chosen, sets, events, tables, name, has_samples):
    steps = [p.steps[chosen] for p in parts]
    streams = ["compute"]
    for event in events:
        if event.stream not in streams:
            streams.append(event.stream)
    header = {"format": "zipccl-trace", "version": 1, "name": name,
              "provenance": "captured from a running job, step %d" % chosen,
              "generator": "zipccl_join.py 1 of " + parts[0].header["generator"],
              "nranks": len(parts),
              "recorded_step_s": number(1e-9 * max(s.t1 - s.t0 for s in steps))}
    per_node = ranks_per_node(parts)
    if per_node:
        header["ranks_per_node"] = per_node
    if has_samples:
        header["samples"] = "tensors.safetensors"
    header["streams"] = streams
    header["groups"] = [{"name": s["title"], "ranks": [list(r) for r in s["parts"]]}
                        for s in sets]
    if tables:
        header["splits"] = [{"name": n, "counts": [list(r) for r in t]}
                            for t, n in tables.items()]
    return header


def ranks_per_node(parts):
    hosts = [p.header.get("host") for p in parts]
    n = hosts.count(hosts[0])
    if len(hosts) % n == 0 and all(len(set(hosts[i:i + n])) == 1 for i in range(0, len(hosts), n)) \
            and len(set(hosts[::n])) == len(hosts) // n:
        return n
    return None


def build(parts, chosen):
    """Sets, and events in an order that suits every rank."""
    steps = [p.steps[chosen] for p in parts]
    groups = match(steps)
    for merge in ("all", "collectives", "none"):
        sets = make_sets(groups, len(parts), merge)
        order = events_of(parts, steps, sets)
        events = one_order(order)
        if events is not None:
            for i, event in enumerate(events):
                event.id = i + 1
            return sets, events
    raise JoinError("step %d: ranks make calls of several groups in orders that no single order "
                    "agrees with" % chosen)


def join(folder, step=None, name=None):
    """Join the parts in 'folder'; returns lines for people."""
    parts = read_parts(folder)
    chosen = choose_step(parts, step)
    sets, events = build(parts, chosen)
    samples = read_samples(folder, range(len(parts)), chosen)
    warnings = missing_samples(folder, parts, chosen)
    bound, tensors = bind_samples(events, samples)
    tables = collections.OrderedDict()
    for event in events:
        if event.nodes is not None and event.nodes[0].table is not None:
            tables.setdefault(event.nodes[0].table, "splits%d" % len(tables))
    used = {id(e.set) for e in events if e.nodes is not None}
    header = header_line(parts, chosen, [s for s in sets if id(s) in used], events, tables,
                         name or os.path.basename(os.path.abspath(folder)) or "captured",
                         bool(tensors))
    lines = [header] + [event_line(e, len(parts), tables, bound) for e in events]
    lines.append({"kind": "end", "events": len(events)})
    if tensors:
        write_safetensors(os.path.join(folder, "tensors.safetensors"), tensors,
                          {"origin": "captured from the job itself"})
    write_file(os.path.join(folder, "trace.jsonl"),
               [(json.dumps(x, separators=(",", ":")) + "\n").encode() for x in lines])
    ncalls = sum(e.nodes is not None for e in events)
    return ["%s: step %d of %s, %d ranks, %d collectives in %d groups, %d tensors of %.1f MB" % (
        os.path.join(folder, "trace.jsonl"), chosen, sorted(parts[0].steps), len(parts), ncalls,
        len(header["groups"]), len(tensors), 1e-6 * sum(len(t[3]) for t in tensors))] + warnings


def main():
    parser = argparse.ArgumentParser(description="join the parts of a capture to a zipccl trace")
    parser.add_argument("folder", help="what zipccl_capture or ZIPCCL_CAPTURE was given")
    parser.add_argument("--step", type=int, help="which of the captured steps; default: the one "
                        "of median time")
    parser.add_argument("--name", help="of the trace; default: the folder's")
    options = parser.parse_args()
    try:
        for line in join(options.folder, options.step, options.name):
            print(line)
    except (JoinError, OSError) as error:
        print("zipccl_join.py: %s" % error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
