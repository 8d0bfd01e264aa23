#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_join.py ZIPCCL|none - parts that are written by hand: what is joined, what is refused"""
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import zipccl_join

ZIPCCL = None
MS = 1000000


def part(rank, world, lines, step=0, host="a", t1=100 * MS):
    """A part: header, one step, 'lines', end."""
    out = [{"part": "zipccl-capture-part", "version": 1, "rank": rank, "world": world,
            "host": host, "clock": "host", "generator": "test"}]
    out += [x for x in lines if "ranks" in x or "member" in x]
    out.append({"step": step, "t0": 0, "t1": t1})
    out += [x for x in lines if "ranks" not in x and "member" not in x]
    return out + [{"end": len(out)}]


def call(n, t, op="all_reduce", group="w", count=8, **more):
    """A call made at 't' ms that took 1 ms."""
    x = {"call": n, "group": group, "op": op, "dtype": "fp32", "count": count, "t0": t * MS,
         "issue": t * MS, "t1": (t + 1) * MS, "end": (t + 1) * MS}
    if op in ("all_reduce", "reduce_scatter"):
        x["redop"] = "sum"
    x.update(more)
    return x


def wait(calls, t):
    return {"wait": calls, "t0": t * MS, "t1": t * MS}


def group(ranks, key="w", name=""):
    return {"group": key, "name": name, "ranks": ranks}


class Join(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.out = os.path.join(self.folder.name, "job")
        os.makedirs(os.path.join(self.out, "parts"))

    def tearDown(self):
        self.folder.cleanup()

    def write(self, parts):
        for p in parts:
            path = os.path.join(self.out, "parts", "rank%d.jsonl" % p[0]["rank"])
            with open(path, "w") as f:
                f.writelines(json.dumps(x) + "\n" for x in p)

    def joined(self, parts, **options):
        self.write(parts)
        zipccl_join.join(self.out, **options)
        if ZIPCCL:
            subprocess.run([ZIPCCL, "trace", "check", self.out], check=True,
                           stdout=subprocess.DEVNULL)
        with open(os.path.join(self.out, "trace.jsonl")) as f:
            lines = [json.loads(x) for x in f]
        return lines[0], lines[1:-1]

    def refused(self, parts, *words):
        self.write(parts)
        with self.assertRaises(zipccl_join.JoinError) as caught:
            zipccl_join.join(self.out)
        for word in words:
            self.assertIn(word, str(caught.exception))
        self.assertFalse(os.path.exists(os.path.join(self.out, "trace.jsonl")))

    def test_compute_calls_and_waits(self):
        lines = [group([0, 1]), call(0, 10), call(1, 20, op="all_gather"), wait([0], 30),
                 wait([1], 40)]
        slow = [dict(x, t0=x["t0"] + MS, t1=x["t1"] + MS) if "t0" in x else x for x in lines]
        header, events = self.joined([part(0, 2, lines), part(1, 2, slow, host="b")])
        self.assertEqual(header["ranks_per_node"], 1)
        self.assertEqual(header["streams"], ["compute", "comm:world"])
        self.assertEqual([e["kind"][:4] for e in events],
                         ["comp", "coll", "comp", "coll", "comp", "comp", "comp"])
        self.assertEqual(events[0]["duration_by_rank_s"], [0.01, 0.011])
        self.assertEqual([e.get("deps") for e in events],
                         [None, [1], None, [3], None, [2], [4]])
        self.assertEqual([e.get("recorded_s") for e in events if "op" in e], [0.001, 0.001])

    def test_equal_groups_are_one_set(self):
        parts = [part(r, 4, [group([r // 2 * 2, r // 2 * 2 + 1], "g%d" % (r // 2), "tp"),
                             call(0, 10, group="g%d" % (r // 2), count=5)]) for r in range(4)]
        header, events = self.joined(parts)
        self.assertEqual(header["groups"], [{"name": "tp", "ranks": [[0, 1], [2, 3]]}])
        self.assertEqual(sum("op" in e for e in events), 1)
        parts[3] = part(3, 4, [group([2, 3], "g1", "tp"), call(0, 10, group="g1", count=6)])
        parts[2] = part(2, 4, [group([2, 3], "g1", "tp"), call(0, 10, group="g1", count=6)])
        header, events = self.joined(parts)
        self.assertEqual([g["name"] for g in header["groups"]], ["tp", "tp.2"])

    def test_orders_that_circle_are_taken_apart(self):
        # ranks 0, 1: a then b; ranks 2, 3: b then a, each in a group of their own
        parts = []
        for r in range(4):
            a, b = "a%d" % (r // 2), "b%d" % (r // 2)
            members = [r // 2 * 2, r // 2 * 2 + 1]
            order = [a, b] if r < 2 else [b, a]
            parts.append(part(r, 4, [group(members, a, "a"), group(members, b, "b")] + [
                call(i, 10 * i + 10, group=g) for i, g in enumerate(order)]))
        header, events = self.joined(parts)
        self.assertEqual(len(header["groups"]), 4)
        # the same ranks in two orders: nothing to be done
        parts = [part(r, 2, [group([0, 1], "a", "a"), group([0, 1], "b", "b")] + [
            call(i, 10 * i + 10, group=g) for i, g in enumerate("ab" if r else "ba")])
            for r in range(2)]
        os.unlink(os.path.join(self.out, "trace.jsonl"))
        for r in (2, 3):
            os.unlink(os.path.join(self.out, "parts", "rank%d.jsonl" % r))
        self.refused(parts, "no single order")

    def test_pipeline(self):
        parts = [part(r, 3, [group([0, 1, 2])] + [
            call(i, 10 * i + 10, op=op, peer=peer) for i, (op, peer) in enumerate(ops)])
            for r, ops in enumerate([[("send", 1)], [("recv", 0), ("send", 2)], [("recv", 1)]])]
        header, events = self.joined(parts)
        pairs = [(g["ranks"], e["pairs"]) for e in events if e.get("op") == "sendrecv"
                 for g in header["groups"] if g["name"] == e["group"]]
        self.assertEqual(pairs, [([[0, 1]], [[0, 1]]), ([[1, 2]], [[0, 1]])])

    def test_neighbours_send_to_each_other(self):
        parts = [part(r, 2, [group([0, 1])] + [
            call(0, 10, op="send", peer=1 - r), call(1, 10, op="recv", peer=1 - r),
            wait([0, 1], 20)]) for r in range(2)]
        header, events = self.joined(parts)
        self.assertEqual([e["pairs"] for e in events if "op" in e], [[[0, 1]], [[1, 0]]])

    def test_groups_of_sends_are_an_exchange(self):
        parts = []
        for r in range(3):
            lines = [{"group": "w", "name": "", "member": r, "size": 3}]
            n = 0
            for p in range(3):
                for op in ("send", "recv"):
                    k = 10 * r + p if op == "send" else 10 * p + r
                    lines.append(call(n, 5, op=op, peer=p, count=k, batch=1))
                    n += 1
            parts.append(part(r, 3, lines + [wait(list(range(n)), 6)]))
        header, events = self.joined(parts)
        self.assertEqual(header["splits"][0]["counts"], [[10 * r + p for p in range(3)]
                                                         for r in range(3)])
        self.assertEqual([e["op"] for e in events if "op" in e], ["alltoallv"])

    def test_steps(self):
        both = [part(r, 2, [group([0, 1]), call(0, 10)]) for r in range(2)]
        for p in both:
            p[-1:] = [{"step": 1, "t0": 200 * MS, "t1": 250 * MS}, call(9, 210),
                      {"end": len(p) + 1}]
        self.assertIn("step 1", self.joined(both)[0]["provenance"])
        self.assertIn("step 0", self.joined(both, step=0)[0]["provenance"])
        with self.assertRaisesRegex(zipccl_join.JoinError, "step 5 was not recorded"):
            zipccl_join.join(self.out, step=5)

    def test_refused(self):
        good = [part(r, 2, [group([0, 1]), call(0, 10)]) for r in range(2)]
        self.refused(good[:1], "no part of rank 1")
        self.refused([good[0], good[1][:-1]], "rank1.jsonl", "cut")
        self.refused([good[0], good[1][:-1] + [{"end": 7}]], "rank1.jsonl:5", "expected 7")
        self.refused([good[0], part(1, 3, [group([0, 1]), call(0, 10)])], "rank 1 of 3")
        self.refused([good[0], part(1, 2, [group([0, 1]), call(0, 10, count=9)])],
                     "count is 8 on rank 0 and 9 on rank 1")
        self.refused([good[0], part(1, 2, [group([0, 1])])], "rank 1 did not make it")
        self.refused([good[0], part(1, 2, [group([0, 1]), call(0, 10)], step=4)], "no step")
        self.refused([good[0], part(1, 2, [group([0, 1]), call(0, 10, op="smooth")])],
                     "rank1.jsonl:4", "smooth")
        self.refused([good[0], part(1, 2, [call(0, 10)])], "expected parts of one job")
        with open(os.path.join(self.out, "parts", "rank1.jsonl"), "w") as f:
            f.write("not json\n")
        with self.assertRaisesRegex(zipccl_join.JoinError, "rank1.jsonl:1"):
            zipccl_join.join(self.out)

    def test_random_bytes(self):
        self.write([part(0, 1, [group([0]), call(0, 10)])])
        path = os.path.join(self.out, "parts", "rank0.jsonl")
        with open(path, "rb") as f:
            good = f.read()
        random.seed(7)
        for at in range(0, len(good), 5):
            noise = bytes(random.randrange(128, 256) for _ in range(20))
            with open(path, "wb") as f:
                f.write(good[:at] + noise + good[at + 20:])
            with self.assertRaisesRegex(zipccl_join.JoinError, "rank0.jsonl:[0-9]"):
                zipccl_join.join(self.out)
        with open(path, "wb") as f:
            f.write(good.replace(b'"count": 8', b'"count": ' + b"[" * 100000))
        with self.assertRaisesRegex(zipccl_join.JoinError, "rank0.jsonl:[0-9]"):
            zipccl_join.join(self.out)
        with open(path, "wb") as f:
            f.write(good)
        with open(os.path.join(self.out, "parts", "rank0.safetensors"), "wb") as f:
            f.write(struct.pack("<Q", 2) + b"[]")
        with self.assertRaisesRegex(zipccl_join.JoinError, "expected a .safetensors file"):
            zipccl_join.join(self.out)

    def test_samples_are_missed(self):
        name = "allreduce.grad.step0.call0"
        self.write([part(r, 2, [group([0, 1]), call(0, 10, sample=name)]) for r in range(2)])
        self.assertIn("no rank0.safetensors and 1 more", zipccl_join.join(self.out)[-1])
        self.write([part(r, 2, [group([0, 1]), call(0, 10)]) for r in range(2)])
        self.assertEqual(len(zipccl_join.join(self.out)), 1)

    def test_a_failed_write_leaves_nothing(self):
        self.write([part(0, 1, [group([0]), call(0, 10)])])
        os.mkdir(os.path.join(self.out, "trace.jsonl"))
        with self.assertRaises(OSError):
            zipccl_join.join(self.out)
        self.assertEqual(sorted(os.listdir(self.out)), ["parts", "trace.jsonl"])

    def test_command(self):
        script = os.path.join(os.path.dirname(HERE), "zipccl_join.py")
        p = subprocess.run([sys.executable, script, self.out], stderr=subprocess.PIPE)
        self.assertEqual(p.returncode, 2)
        self.assertIn(b"expected the part of each rank", p.stderr)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        ZIPCCL = None if sys.argv[1] == "none" else os.path.abspath(sys.argv[1])
        del sys.argv[1]
    unittest.main()
