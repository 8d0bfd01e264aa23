# SPDX-License-Identifier: Apache-2.0
"""zipccl_parts.py - reads what the ranks of a job wrote; trusts none of it"""
import collections
import glob
import json
import os

from zipccl_files import PART

OPS = ("all_gather", "reduce_scatter", "all_reduce", "alltoall", "alltoallv", "send", "recv",
       "broadcast")


class JoinError(Exception):
    pass


class Part:
    """What one rank wrote: 'steps' is {number: Step}."""

    def __init__(self, path):
        self.path, self.groups, self.members, self.steps, self.header = path, {}, {}, {}, None
        self.ended, self.step = False, None
        with open(path, "rb") as f:
            for number, line in enumerate(f, 1):
                try:
                    self.take(json.loads(line), number)
                except JoinError as error:
                    raise JoinError("%s:%d: %s" % (path, number, error)) from None
                except (ValueError, KeyError, TypeError, AttributeError, OverflowError,
                        RecursionError) as error:
                    raise JoinError("%s:%d: %s: %s, expected a line of a part" % (
                        path, number, type(error).__name__, error)) from None
        if not self.ended:
            raise JoinError("%s: cut after its last line, expected an end line" % path)

    def take(self, x, number):
        if self.header is None:
            if not isinstance(x, dict) or x.get("part") != PART:
                raise JoinError("no part of a capture, expected \"part\": \"%s\"" % PART)
            if x["version"] != 1:
                raise JoinError("version %s, expected 1" % x["version"])
            self.header, self.rank, self.world = x, int(x["rank"]), int(x["world"])
        elif self.ended:
            raise JoinError("a line after the end, expected none")
        elif "ranks" in x:
            self.groups[x["group"]] = (x["name"], tuple(x["ranks"]))
        elif "member" in x:
            self.members[x["group"]] = (x["member"], x["size"])
        elif "step" in x:
            self.step = self.steps[x["step"]] = Step(x)
        elif "end" in x and "call" not in x:
            if x["end"] != number - 1:
                raise JoinError("%d lines, expected %d" % (number - 1, x["end"]))
            self.ended = True
        elif "wait" in x:
            self.step.marks.append({"wait": list(x["wait"]), "t0": x["t0"], "t1": x["t1"]})
        else:
            if x["op"] not in OPS:
                raise JoinError("op \"%s\", expected one of %s" % (x["op"], ", ".join(OPS)))
            x["rank"], x["count"] = self.rank, int(x["count"])
            self.step.calls[int(x["call"])] = x
            self.step.marks.append(x)


class Step:
    """Calls and waits of a rank in a step, in the order in which it made them."""

    def __init__(self, x):
        self.t0, self.t1, self.marks, self.calls = x["t0"], x["t1"], [], {}

    def resolve(self, part, exchanges):
        """Give each call its lane, what the n-th call is counted in, and its number there."""
        self.marks = list(self.exchanged(exchanges))
        ordinals, run = collections.Counter(), 0
        for i, x in enumerate(self.marks):
            if "wait" in x:
                run = i + 1
                continue
            name, ranks = part.groups[x["group"]]
            key, ends = (x["group"], name, ranks), None
            if x["op"] in ("send", "recv"):
                peer = ranks[x["peer"]]
                ends = (part.rank, peer) if x["op"] == "send" else (peer, part.rank)
                key = (x["group"], name or "p2p", tuple(sorted(ends)))
            x["lane"] = (key, ends)
            x["ordinal"] = ordinals[x["lane"]]
            ordinals[x["lane"]] += 1
            # Sends and receives without a wait in between have no order among themselves.
            run = run if ends else i + 1
            self.marks[run:i + 1] = sorted(self.marks[run:i + 1], key=lambda m: m["lane"][1])

    def exchanged(self, exchanges):
        """Marks, where all sends and receives of an NCCL group are one uneven all-to-all."""
        one = None
        for x in self.marks:
            if x.get("op") not in ("send", "recv") or x["group"] not in exchanges:
                one = None
                yield x
                continue
            if one is None or (one["batch"], one["group"]) != (x["batch"], x["group"]):
                one = dict(x, op="alltoallv", row=[0] * exchanges[x["group"]], peer=None)
                yield one
            if x["op"] == "send":
                one["row"][x["peer"]] += x["count"]
                one["sample"] = one.get("sample") or x.get("sample")
            one["t1"], one["end"] = max(one["t1"], x["t1"]), max(one["end"], x["end"])
            self.calls[x["call"]] = one


def resolve(parts):
    """Know the ranks of groups of which each part tells its own member, and the lanes of calls."""
    ranks = {}
    for part in parts:
        for group, (member, size) in part.members.items():
            known = ranks.setdefault(group, [None] * size)
            if size != len(known) or not 0 <= member < size or known[member] is not None:
                raise JoinError("%s: member %s of %s in group %s, which other parts contradict"
                                % (part.path, member, size, group))
            known[member] = part.rank
    for part in parts:
        for group in part.members:
            if None in ranks[group]:
                raise JoinError("group %s: no part of its member %d" % (
                    group, ranks[group].index(None)))
            part.groups[group] = ("", tuple(ranks[group]))
    for number in {n for part in parts for n in part.steps}:
        exchanges = {}
        for part in parts:
            peers = collections.defaultdict(set)
            for x in part.steps[number].marks if number in part.steps else ():
                if "batch" in x and x["op"] in ("send", "recv"):
                    peers[x["batch"], x["group"]].add(part.groups[x["group"]][1][x["peer"]])
            for (_, group), seen in peers.items():
                if len(seen) > 2 or part.rank in seen:  # no pipeline does that
                    exchanges[group] = len(part.groups[group][1])
        for part in parts:
            if number in part.steps:
                part.steps[number].resolve(part, exchanges)


def read_parts(folder):
    paths = sorted(glob.glob(os.path.join(folder, "parts", "rank*.jsonl")))
    if not paths:
        raise JoinError("%s/parts: no rank*.jsonl, expected the part of each rank" % folder)
    parts = {}
    for path in paths:
        part = Part(path)
        if part.rank in parts:
            raise JoinError("%s: rank %d, which %s has too" % (path, part.rank,
                                                              parts[part.rank].path))
        parts[part.rank] = part
    world = parts[min(parts)].world
    for part in parts.values():
        if part.world != world or part.rank >= world:
            raise JoinError("%s: rank %d of %d, expected a rank of %d: parts of several jobs?"
                            % (part.path, part.rank, part.world, world))
    missing = [r for r in range(world) if r not in parts]
    if missing:
        raise JoinError("%s/parts: no part of rank%s %s, expected all %d" % (
            folder, "s" if len(missing) > 1 else "",
            ", ".join(map(str, missing[:8])) + (", ..." if len(missing) > 8 else ""), world))
    parts = [parts[r] for r in range(world)]
    try:
        resolve(parts)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise JoinError("%s/parts: %s: %s, expected parts of one job" % (
            folder, type(error).__name__, error)) from None
    return parts


def choose_step(parts, wanted):
    steps = set(parts[0].steps)
    for part in parts:
        steps &= set(part.steps)
    if not steps:
        raise JoinError("no step that all ranks recorded: parts of several runs?")
    if wanted is not None:
        if wanted not in steps:
            raise JoinError("step %d was not recorded, expected one of %s" % (
                wanted, ", ".join(map(str, sorted(steps)))))
        return wanted
    spans = sorted((max(p.steps[s].t1 - p.steps[s].t0 for p in parts), s) for s in steps)
    return spans[(len(spans) - 1) // 2][1]
