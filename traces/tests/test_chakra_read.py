#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_chakra_read.py ZIPCCL - what 'trace export chakra' writes, read by Google's protobuf

The messages are described here once more, from et_def.proto of MLCommons Chakra, and what is asked
of them is what ASTRA-sim's feeder asks.  It is not ASTRA-sim, which was not run.  Exit code 77,
with a message, where this Python has no protobuf.
"""
import glob
import json
import os
import subprocess
import sys
import tempfile

try:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
except ImportError:
    print("skipped: no protobuf for Python (Debian: python3-protobuf)")
    sys.exit(77)

COMP, SEND, RECV, COLL = 4, 5, 6, 7
ALL_REDUCE, ALL_GATHER, BROADCAST, ALL_TO_ALL, REDUCE_SCATTER = 0, 2, 5, 6, 7
KINDS = {"double": 1, "float": 2, "int64": 3, "uint64": 4, "int32": 5, "fixed64": 6, "fixed32": 7,
         "bool": 8, "string": 9, "bytes": 12, "uint32": 13, "sfixed32": 15, "sfixed64": 16,
         "sint32": 17, "sint64": 18}


def describe():
    """The messages Node and GlobalMetadata, as et_def.proto has them, lists of values left out."""
    file = descriptor_pb2.FileDescriptorProto(name="et_def.proto", package="C", syntax="proto3")

    def message(name, fields, oneof=()):
        m = file.message_type.add(name=name)
        if oneof:
            m.oneof_decl.add(name="value")
        for number, field, kind, repeated in fields:
            f = m.field.add(name=field, number=number, label=3 if repeated else 1)
            if kind in KINDS:
                f.type = KINDS[kind]
            else:
                f.type, f.type_name = 11, ".C." + kind
            if field in oneof:
                f.oneof_index = 0

    values = [(3 + 2 * i, kind + "_val", kind, False) for i, kind in enumerate((
        "double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32",
        "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes"))]
    message("AttributeProto", [(1, "name", "string", False), (2, "doc_string", "string", False)] +
            values, [v[1] for v in values])
    message("IOInfo", [(1, "values", "string", False), (2, "shapes", "string", False),
                       (3, "types", "string", False)])
    message("GlobalMetadata", [(1, "version", "string", False),
                               (2, "attr", "AttributeProto", True)])
    message("Node", [(1, "id", "uint64", False), (2, "name", "string", False),
                     (3, "type", "int32", False), (4, "ctrl_deps", "uint64", True),
                     (5, "data_deps", "uint64", True), (6, "start_time_micros", "uint64", False),
                     (7, "duration_micros", "uint64", False), (8, "inputs", "IOInfo", False),
                     (9, "outputs", "IOInfo", False), (10, "attr", "AttributeProto", True)])
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    factory = message_factory.MessageFactory(pool)
    return [factory.GetPrototype(pool.FindMessageTypeByName("C." + name))
            for name in ("GlobalMetadata", "Node")]


def unknown(message):
    """Bytes of a message that its description does not have."""
    copy = type(message)()
    copy.CopyFrom(message)
    before = copy.ByteSize()
    copy.DiscardUnknownFields()
    return before - copy.ByteSize()


def read(path, metadata, node):
    """The nodes of a file, whose frames have to fill it."""
    with open(path, "rb") as f:
        data = f.read()
    at, messages = 0, []
    while at < len(data):
        length = shift = 0
        while True:
            length |= (data[at] & 0x7f) << shift
            at, shift = at + 1, shift + 7
            if data[at - 1] < 0x80:
                break
        assert at + length <= len(data), "%s: cut at byte %d" % (path, at)
        messages.append((node if messages else metadata).FromString(data[at:at + length]))
        at += length
    assert not any(unknown(m) for m in messages), "%s: fields that Chakra has not" % path
    assert messages[0].version, path
    return messages[1:]


def attributes(node):
    found = {a.name: getattr(a, a.WhichOneof("value")) for a in node.attr}
    assert len(found) == len(node.attr), "node %d: an attribute twice" % node.id
    return found


def check_rank(rank, nodes, groups):
    """(calls by group, ends of pairs) of one rank, and what ASTRA-sim's feeder would stumble over."""
    seen, calls, ends, flops = set(), {}, [], 0
    for node in nodes:
        a = attributes(node)
        where = "rank %d, node %d" % (rank, node.id)
        assert node.id not in seen, where + ": its id is another's too"
        assert set(node.data_deps) | set(node.ctrl_deps) <= seen, where + ": waits for a later one"
        seen.add(node.id)
        assert a["is_cpu_op"] is False and node.name, where
        if node.type == COMP:
            # Both or none: the roofline asks for both.
            assert ("num_ops" in a) == ("tensor_size" in a), where
            assert node.duration_micros or "num_ops" in a or a.get("duration_ns", 0) >= 0, where
            flops += a.get("num_ops", 0)
            continue
        group = groups[str(int(a["pg_name"]))]
        assert rank in group, where + ": a group without it"
        assert a["comm_size"] > 0 and node.inputs.types.startswith("['Tensor("), where
        if node.type == COLL:
            calls.setdefault(a["pg_name"], []).append((a["comm_type"], a["comm_size"]))
        else:
            assert node.type in (SEND, RECV), where
            assert a["comm_src"] in group and a["comm_dst"] in group, where
            assert a["comm_src" if node.type == SEND else "comm_dst"] == rank, where
            ends.append((node.type, a["comm_src"], a["comm_dst"], a["comm_tag"], a["comm_size"]))
    return calls, ends, flops


def export(zipccl, trace, folder):
    prefix = os.path.join(folder, "x")
    subprocess.run([zipccl, "trace", "export", "chakra", trace, "-o", prefix], check=True,
                   stdout=subprocess.DEVNULL)
    with open(prefix + ".comm_group.json") as f:
        groups = json.load(f)
    metadata, node = describe()
    ranks = len(glob.glob(prefix + ".*.et"))
    return groups, [check_rank(r, read("%s.%d.et" % (prefix, r), metadata, node), groups)
                    for r in range(ranks)]


def check(zipccl, trace, ranks):
    """All ranks; the members of a group make the same calls, and every send has its receive."""
    with tempfile.TemporaryDirectory() as folder:
        groups, found = export(zipccl, trace, folder)
    assert len(found) == ranks, (trace, len(found))
    for name, members in groups.items():
        lists = {tuple(found[r][0].get(name, ())) for r in members}
        assert len(lists) == 1, "%s: group %s: members make different calls" % (trace, name)
    ends = [e for _, rank_ends, _ in found for e in rank_ends]
    sends = sorted(e[1:] for e in ends if e[0] == SEND)
    assert sends == sorted(e[1:] for e in ends if e[0] == RECV), trace
    return groups, found, sends


def main():
    zipccl = os.path.abspath(sys.argv[1])
    # moe4: 2 nodes of 2; README of traces/samples has the numbers of calls.
    groups, found, sends = check(zipccl, "traces/samples/moe4", 4)
    kinds = [kind for calls in found[0][0].values() for kind, _ in calls]
    for kind, n in ((ALL_TO_ALL, 8), (ALL_GATHER, 4), (REDUCE_SCATTER, 2), (ALL_REDUCE, 2),
                    (BROADCAST, 1)):
        assert kinds.count(kind) == n, (kind, kinds)
    assert sends, "no pairs"
    # Llama-2-7B: a shard of a block is 202,383,360 / 64 in bf16; the gather's input, the scatter's
    # part of 64.
    groups, found, _ = check(zipccl, "traces/samples/llama2-7b-fsdp64", 64)
    shard = 2 * 202383360 // 64
    calls = [c for c in sum(found[0][0].values(), [])]
    assert calls.count((ALL_GATHER, shard)) == 63, calls
    assert calls.count((REDUCE_SCATTER, 64 * shard)) == 32, calls
    assert found[0][2] > 1e14, found[0][2]
    print("as ASTRA-sim's feeder asks: %d ranks" % len(found))


if __name__ == "__main__":
    main()
