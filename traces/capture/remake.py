#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""remake.py - tensors like the bundled ones, made again by training, and held against them

    python3 traces/capture/remake.py OUT [--zipccl build/zipccl] [--batch 1]

Trains the dense (sharded, tensor parallel, in a pipeline) and the MoE transformer of
traces/samples/tensors with train.py, two processes each, captures their last step to OUT/dense,
OUT/tp, OUT/pp and OUT/moe, and compares class by class what the codec
reaches on the captured and on the bundled tensors.  Exit code 1 if a class differs by more than
--tolerance.  It needs torch and a built zipccl; --compare compares what OUT has already.
"""
import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BUNDLED = os.path.join(os.path.dirname(HERE), "samples", "tensors")
DENSE = ["--model", "dense", "--layers", "8", "--width", "512", "--ffn", "1408", "--heads", "8"]
JOBS = {
    "dense": DENSE + ["--parallel", "fsdp", "--steps", "220"],
    "tp": DENSE + ["--parallel", "tp", "--steps", "220"],
    "pp": DENSE + ["--parallel", "pp", "--steps", "111"],
    "moe": ["--model", "moe", "--parallel", "ep-fsdp", "--layers", "6", "--width", "384", "--ffn",
            "640", "--heads", "6", "--experts", "8", "--steps", "300"],
}
# Classes that both have.  The other bundled ones are of parallelisms that train.py does not run
# (parameters of experts, which it does not shard), or of another cut of the same (norms, router).
CLASSES = {
    "dense": ["allgather.param.layer0", "allgather.param.layer3", "allgather.param.layer7",
              "reducescatter.grad.layer0", "reducescatter.grad.layer3",
              "reducescatter.grad.layer7"],
    "tp": ["allreduce.tp.hidden.mlp_out.layer3"],
    "pp": ["p2p.pp.hidden", "p2p.pp.grad"],
    "moe": ["allgather.param.layer0", "allgather.param.layer2", "reducescatter.grad.layer0",
            "reducescatter.grad.layer2", "alltoall.dispatch.layer0", "alltoall.dispatch.layer2",
            "alltoall.dispatch.layer5", "alltoall.combine.layer0", "alltoall.combine.layer2",
            "alltoall.combine.layer5", "alltoall.dispatch_grad.layer2",
            "alltoall.combine_grad.layer2"],
}
# In a bundled class, but no part of what train.py sends under that name.
LEFT_OUT = (".experts.", ".router.", ".norms.", ".embed.", ".head.")


def train(kind, out, options):
    # 80 KiB as the bundled ones have; one tensor of a class and rank.
    command = [sys.executable, os.path.join(HERE, "train.py"), "--ranks", "2",
               "--seq", "256", "--batch", str(options.batch), "--sample-kb", "80", "--per-class",
               "1", "--samples-mb", "64", "--capture", out] + JOBS[kind]
    if options.steps:
        command += ["--steps", str(options.steps)]
    steps = int(command[len(command) - 1 - command[::-1].index("--steps") + 1])
    command += ["--capture-steps", "%d:%d" % (steps - 1, steps)]
    print(" ".join(os.path.relpath(c) if os.path.isabs(c) else c for c in command), flush=True)
    subprocess.run(command, check=True)


def ratios(zipccl, path, classes):
    """{class: (tensors, raw / wire bytes)} of a file."""
    with tempfile.NamedTemporaryFile(suffix=".json") as result:
        subprocess.run([zipccl, "codec", "stat", path, "-J", result.name], check=True,
                       stdout=subprocess.DEVNULL)
        with open(result.name) as f:
            tensors = json.load(f)["tensors"]
    found = {}
    for name in classes:
        of = [t for t in tensors if t["name"].startswith(name + ".")
              and t["dtype"] == "BF16" and not any(w in t["name"] for w in LEFT_OUT)]
        if of:
            found[name] = (len(of), sum(t["raw_bytes"] for t in of) /
                           sum(t["wire_bytes"] for t in of))
    return found


def compare(out, options):
    rows, bad = [], 0
    for kind, classes in CLASSES.items():
        old = ratios(options.zipccl, os.path.join(BUNDLED, ("moe" if kind == "moe" else "dense") + ".safetensors"), classes)
        new = ratios(options.zipccl, os.path.join(out, kind, "tensors.safetensors"), classes)
        for name in classes:
            if name not in old or name not in new:
                sys.exit("remake.py: %s has no class %s, expected it in both files" % (
                    "the bundled file" if name not in old else out, name))
            off = new[name][1] / old[name][1] - 1
            bad += abs(off) > options.tolerance
            rows.append((kind, name, old[name][0], "%.4f" % old[name][1], new[name][0],
                         "%.4f" % new[name][1], "%+.2f" % (100 * off)))
    head = ("model", "class", "bundled_tensors", "bundled_ratio", "remade_tensors", "remade_ratio",
            "difference_percent")
    with open(os.path.join(out, "compare.csv"), "w", newline="") as f:
        csv.writer(f, lineterminator="\n").writerows([head] + rows)
    for row in [("", "class", "n", "bundled", "n", "remade", "%")] + rows:
        print("%-6s %-32s %3s %8s %4s %8s %8s" % row)
    print("%d classes, %d differ by more than %g %%" % (len(rows), bad, 100 * options.tolerance))
    return bad


def main():
    p = argparse.ArgumentParser(description="train, capture, and compare with the bundled tensors")
    p.add_argument("out", help="folder for both captures and compare.csv")
    p.add_argument("--zipccl", default="build/zipccl", help="the program that compresses")
    p.add_argument("--batch", type=int, default=4,
                   help="sequences of 256 tokens of a rank and step; 1 takes a quarter of the time")
    p.add_argument("--steps", type=int, help="fewer steps than the bundled ones (220 and 300)")
    p.add_argument("--tolerance", type=float, default=0.05,
                   help="part by which ratios may differ")
    p.add_argument("--compare", action="store_true", help="do not train")
    options = p.parse_args()
    if not os.access(options.zipccl, os.X_OK):
        p.error("no program %s, expected zipccl: build it, or name it with --zipccl" %
                options.zipccl)
    if not options.compare:
        for kind in JOBS:
            train(kind, os.path.join(options.out, kind), options)
    sys.exit(1 if compare(options.out, options) else 0)


if __name__ == "__main__":
    main()
