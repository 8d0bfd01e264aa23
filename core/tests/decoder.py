#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# decoder.py - a second decoder, written from core/FORMAT.md alone
#
# decoder.py < MESSAGE > ELEMENTS
# Standard library only.  It shows that the document is enough and checks every rule that the
# document states; it is not meant to be fast.  Exit code 1 and the reason for bytes that are no
# valid message, or a message without elements (OVERFLOW).
import sys

FNV_START, FNV_PRIME = 2166136261, 16777619
RAW, OVERFLOW, ANY_OVERFLOW = 1, 2, 4
SIZES = {0: 1, 1: 1, 2: 4, 3: 4, 4: 8, 5: 8, 6: 2, 7: 4, 8: 8, 9: 2, 10: 1, 11: 1}
SUPERBLOCK, SUBBLOCK, GROUP = 16384, 1024, 64

# dtype: (first bit and width of the exponent, bit of the sign, first bit of the seven that share
# the low byte with it or None, [bits of each plane])
FIELDS = {
    9: (7, 8, 15, 0, []),
    6: (10, 5, 15, 3, [[0], [1], [2]]),
    7: (23, 8, 31, 16, [list(range(0, 8)), list(range(8, 16))]),
    10: (3, 4, 7, None, [[7], [0], [1], [2]]),
    11: (2, 5, 7, None, [[7], [0], [1]]),
}

PROGRAMS = {
    1: [[0, 1, 2], [3], [4, -1, 5], [6, 7, 8], [9, 10, -2, 11, 12, 13, -3]],
    2: [[0, 1, 2], [3], [4], [5, 6, -1], [7, 8, 9, 10, -2, 11, 12]],
    3: [[0, 1, 2], [3, -1, 4], [5], [6, 7, 8], [9, 10, -2, 11, 12, 13, -3]],
    4: [[0, 1, 2], [-1], [3], [4, 5, 6], [7, 8, -2, 9, 10, 11, 12]],
    5: [[0, 1, 2], [3, -1, 4], [5, -2, 6], [7, 8, 9, 10, -3, 11, 12]],
    6: [[0, 1, 2, 3, 4, 5, 6], [7, -1, 8], [-2, 9, -3, 10, 11, 12, 13]],
    7: [[0], [1, -1, 2], [3, 4, -2], [5, 6, -3]],
}
WIDTH = {1: 1, 3: 2, 7: 3}
PROGRAM_RAW, PROGRAM_CONSTANT, PROGRAM_ANS, BITMAP = 0, 8, 9, 128

# Program 9: lines of "shape phase: octaves: frequencies; those of escapes", and the tiers of escapes.
LAWS = """
0 0: 9: 1 1 31 7 49 33 33 30 18 17 9 9 5 5 2 2 1 1; 1 1
0 1: 9: 2 1 37 11 48 35 30 28 16 16 8 8 4 4 2 2 1 1; 1 1
0 2: 9: 4 1 41 14 46 35 28 26 15 15 8 7 4 4 2 2 1 1; 1 1
0 3: 9: 7 1 44 19 44 35 26 25 14 13 7 7 3 3 2 2 1 1; 1 1
0 4: 9: 11 1 47 22 42 35 24 23 13 12 6 6 3 3 2 2 1 1; 1 1
0 5: 9: 15 1 48 26 39 34 22 22 12 11 6 6 3 3 2 2 1 1; 1 1
0 6: 9: 21 3 49 29 37 33 21 20 11 10 5 5 3 3 1 1 1 1; 1 1
0 7: 8: 26 5 50 32 35 31 19 19 10 10 5 5 2 2 1 1; 2 1
1 0: 10: 1 1 5 1 29 11 45 29 33 29 18 18 9 9 5 5 2 2 1 1; 1 1
1 1: 10: 1 1 7 1 33 13 44 31 31 27 17 16 9 9 4 4 2 2 1 1; 1 1
1 2: 10: 1 1 9 2 36 15 43 31 29 26 16 15 8 8 4 4 2 2 1 1; 1 1
1 3: 10: 1 1 12 2 39 18 42 31 27 25 14 14 7 7 4 4 2 2 1 1; 1 1
1 4: 10: 1 1 15 3 41 21 40 32 25 23 13 13 7 7 3 3 2 2 1 1; 1 1
1 5: 10: 2 1 18 5 43 23 38 31 23 22 12 12 6 6 3 3 2 2 1 1; 1 1
1 6: 10: 2 1 22 6 44 26 37 31 21 20 11 11 6 6 3 3 1 1 1 1; 1 1
1 7: 10: 4 1 26 8 44 27 35 30 20 19 10 10 5 5 3 3 1 1 1 1; 1 1
2 0: 11: 1 1 9 2 28 12 39 26 32 27 19 18 10 10 5 5 3 3 1 1 1 1; 1 1
2 1: 11: 2 1 11 3 30 14 39 26 31 26 18 17 9 9 5 5 2 2 1 1 1 1; 1 1
2 2: 10: 2 1 13 4 32 16 39 28 29 25 17 16 9 9 4 4 2 2 1 1; 1 1
2 3: 10: 3 1 15 5 34 18 39 28 27 24 15 15 8 8 4 4 2 2 1 1; 1 1
2 4: 10: 3 1 17 6 36 20 38 28 26 23 14 14 7 7 4 4 2 2 1 1; 1 1
2 5: 10: 4 1 20 8 37 21 37 28 24 22 13 13 7 7 3 3 2 2 1 1; 1 1
2 6: 10: 6 1 23 9 38 23 35 28 22 21 12 12 6 6 3 3 2 2 1 1; 1 1
2 7: 9: 7 2 25 11 39 24 34 28 21 19 11 11 6 6 3 3 1 1; 2 2
3 0: 12: 1 1 4 1 12 5 25 13 33 21 30 23 20 18 12 11 6 6 3 3 2 2 1 1; 1 1
3 1: 12: 1 1 4 1 14 6 26 14 33 22 29 23 19 17 11 10 6 6 3 3 2 1 1 1; 1 1
3 2: 12: 1 1 5 2 15 7 28 15 33 23 28 22 18 16 10 10 5 5 3 3 1 1 1 1; 1 1
3 3: 12: 1 1 6 2 17 8 29 17 33 23 27 22 17 15 9 9 5 5 2 2 1 1 1 1; 1 1
3 4: 11: 2 1 7 3 19 9 30 18 33 23 26 21 16 15 9 8 4 4 2 2 1 1; 1 1
3 5: 11: 2 1 8 3 20 10 31 19 32 24 24 21 15 14 8 8 4 4 2 2 1 1; 1 1
3 6: 11: 3 1 9 4 22 11 32 20 31 23 23 20 14 13 7 7 4 4 2 2 1 1; 1 1
3 7: 11: 3 1 11 4 23 12 33 21 31 23 22 19 13 12 7 7 3 3 2 2 1 1; 1 1
4 0: 13: 1 1 3 1 7 3 14 7 22 13 27 18 26 19 20 17 14 12 8 7 4 4 2 2 1 1; 1 1
4 1: 13: 1 1 3 1 8 3 15 8 23 14 27 18 25 19 20 16 13 11 7 7 4 4 2 2 1 1; 1 1
4 2: 13: 1 1 3 1 8 4 16 9 24 14 27 18 25 19 19 15 12 11 7 6 4 4 2 2 1 1; 1 1
4 3: 13: 1 1 4 2 9 4 17 9 25 15 27 19 24 19 18 15 11 10 6 6 3 3 2 2 1 1; 1 1
4 4: 13: 1 1 4 2 10 5 18 10 25 16 27 19 23 18 17 14 10 10 6 6 3 3 2 2 1 1; 1 1
4 5: 12: 2 1 5 2 11 5 19 11 25 16 27 19 23 18 16 14 10 9 5 5 3 3 2 1; 2 2
4 6: 12: 2 1 6 2 12 6 20 11 26 17 27 19 22 18 15 13 9 8 5 5 3 3 1 1; 2 2
4 7: 12: 2 1 6 3 13 7 21 12 27 17 26 19 21 17 14 13 9 8 5 5 2 2 1 1; 2 2
5 0: 15: 1 1 1 1 3 1 5 3 9 5 14 8 18 12 21 14 21 15 18 14 14 12 10 8 6 6 4 3 2 2; 2 2
5 1: 15: 1 1 1 1 3 1 6 3 10 5 15 9 19 12 21 14 21 15 18 14 13 11 9 8 6 5 3 3 2 2; 2 2
5 2: 15: 1 1 1 1 3 2 6 3 10 6 15 9 19 12 21 15 20 15 17 14 13 11 9 8 5 5 3 3 2 2; 2 2
5 3: 15: 1 1 2 1 3 2 7 3 11 6 16 9 19 13 21 15 20 15 17 13 12 10 8 7 5 5 3 3 2 2; 2 2
5 4: 15: 1 1 2 1 4 2 7 4 11 6 16 10 20 13 21 15 19 15 16 13 12 10 8 7 5 4 3 3 2 1; 2 2
5 5: 15: 1 1 2 1 4 2 8 4 12 7 17 10 20 13 21 15 19 15 16 13 11 10 7 7 5 4 3 2 1 1; 2 2
5 6: 15: 1 1 2 1 5 2 8 4 13 7 18 11 21 14 21 15 19 15 15 12 11 9 7 6 4 4 2 2 1 1; 2 2
5 7: 15: 1 1 2 1 5 2 9 5 13 8 18 11 21 14 21 15 19 14 15 12 10 9 7 6 4 4 2 2 1 1; 2 1
"""
FAR_TIERS = [[0, 1, 2], [3, -1, 4, 5, -2, 6, 7]]
LANES, SHAPES, ESCAPE = 64, 6, 30


class Corrupt(Exception):
    pass


def must(holds, what):
    if not holds:
        raise Corrupt(what)


def up(x, to):
    return -(-x // to) * to


def read_laws():
    """By (shape, phase): the octaves and, for each slot of 256, symbol, frequency and slots before."""
    laws = {}
    for line in LAWS.split("\n"):
        if not line:
            continue
        name, octaves, rest = line.split(":")
        listed, escapes = rest.split(";")
        frequencies = [int(f) for f in listed.split()]
        frequencies += [0] * (ESCAPE - len(frequencies)) + [int(f) for f in escapes.split()]
        slots, before = [], 0
        for symbol, frequency in enumerate(frequencies):
            slots += [(symbol, frequency, before)] * frequency
            before += frequency
        assert before == 256
        laws[tuple(int(x) for x in name.split())] = int(octaves), slots
    return laws


def number(data):
    return int.from_bytes(data, "little")


def bits(data):
    """The bits of 'data' as a string of '0' and '1', bit 0 of byte 0 first."""
    return bin(number(data) | 1 << 8 * len(data))[:2:-1]


def read_header(data):
    must(len(data) >= 32, "shorter than a header")
    must(data[0:4] == b"ZCCL", "magic")
    check = FNV_START
    for byte in data[0:28]:
        check = (check ^ byte) * FNV_PRIME % 2**32
    must(number(data[28:32]) == check, "check")
    must(data[4] == 2, "version")
    must(data[5] in SIZES, "dtype")
    must(data[6] & ~(RAW | OVERFLOW | ANY_OVERFLOW) == 0, "flags")
    must(data[7] == 0 and number(data[24:28]) == 0, "reserved bytes")
    dtype, flags, n, nbody = data[5], data[6], number(data[8:16]), number(data[16:24])
    must(32 + nbody <= len(data), "body longer than what was received")
    if flags & OVERFLOW:
        must(not flags & RAW and nbody == 0, "overflow with a body")
    elif flags & RAW:
        must(nbody == n * SIZES[dtype], "raw body of another size")
    else:
        must(dtype in FIELDS, "coded type")
        must(0 < n < 2**32, "coded n")
        must(nbody < n * SIZES[dtype], "coded body no shorter than raw")
    return dtype, flags, n, nbody


class Entry:
    """One superblock of 'm' elements: what its directory entry says, checked."""

    def __init__(self, data, dtype, m):
        self.m, self.size = m, SIZES[dtype]
        self.has_low, self.fields = FIELDS[dtype][3] is not None, FIELDS[dtype]
        planes = self.fields[4]
        self.byte_planes = dtype == 7
        self.planes = [k for k in range(8) if data[1] >> k & 1]
        self.escapes = [number(data[2 + 2 * t:4 + 2 * t]) for t in range(5)]
        self.rest, self.groups = number(data[12:14]), number(data[14:16])
        self.base = data[16:32]
        self.constant = data[0] == PROGRAM_CONSTANT
        self.share = self.bitmap = self.variable = 0
        if self.constant:
            must(not any(data[1:16]) and not any(self.base[self.size:]), "constant entry")
            return
        self.program = data[0] % BITMAP
        must(self.program in (PROGRAM_RAW, PROGRAM_ANS) or self.program in PROGRAMS, "program")
        if data[0] >= BITMAP:
            must(0 < self.rest <= m and 0 < self.groups <= -(-m // GROUP), "rest or groups")
            self.bitmap = 8 * -(-(-(-m // GROUP)) // GROUP) + 8 * self.groups
        else:
            must(self.rest == m and self.groups == 0, "rest or groups without a bitmap")
        if self.program == PROGRAM_RAW:
            must(not self.planes and not any(self.escapes) and not any(self.base), "raw entry")
            self.first = min(self.rest * self.size, self.unrounded(len(planes), 16))
            self.share = up(self.first, 64)
            self.variable = self.bitmap + self.rest * self.size - self.first
            return
        if self.program == PROGRAM_ANS:
            self.read_ans(len(planes))
        else:
            self.read_tiers(len(planes))

    def unrounded(self, nplanes, tier1_bytes):
        """A share before its last rounding; tier 1 takes so many bytes a group."""
        r = self.rest
        low = up(r, 16) if self.has_low else 0
        each = up(r, 16) if self.byte_planes else 8 * -(-r // GROUP)
        self.tier1 = low + up(nplanes * each, 16)
        self.plane_at = [low + k * each for k in range(nplanes)]
        return self.tier1 + tier1_bytes * -(-r // GROUP)

    def read_tiers(self, nplanes):
        self.tiers, r = PROGRAMS[self.program], self.rest
        must(all(k < nplanes for k in self.planes), "planes that the type does not have")
        self.reach = [r] + self.escapes[:len(self.tiers)]
        must(all(a >= b for a, b in zip(self.reach, self.reach[1:])), "escapes grow")
        must(not any(self.escapes[len(self.tiers):]), "escapes beyond the last tier")
        must(not any(self.base[-(-r // SUBBLOCK):]), "bases beyond the last sub-block")
        width = WIDTH[len(self.tiers[0])]
        share = self.unrounded(len(self.planes), 8 if width == 1 else 16)
        nbytes = 8 * -(-r // GROUP) if width == 3 else 0
        for tier, c in list(zip(self.tiers, self.reach))[1:]:
            nbytes += WIDTH[len(tier)] * -(-c // 8)
        nbytes += self.reach[-1]
        must(share + nbytes < r * self.size, "a superblock that should be raw")
        self.share, self.variable = up(share, 64), self.bitmap + nbytes


    def read_ans(self, nplanes):
        r = self.rest
        if not self.has_low:
            nplanes -= 1
        must(all(k < nplanes for k in self.planes), "planes that the type does not have")
        must(not any(self.base[-(-r // SUBBLOCK):]), "tables beyond the last sub-block")
        self.reach, self.nstream = self.escapes[:3], self.escapes[4]
        self.lowest, self.shape = self.escapes[3] % 256, self.escapes[3] // 256
        must(self.shape < SHAPES, "shape")
        must(r >= self.reach[0] >= self.reach[1] >= self.reach[2], "escapes grow")
        must(self.nstream <= r, "a stream longer than the rest")
        low = up(-(-7 * r // 8), 16) if self.has_low else 0
        each = up(r, 16) if self.byte_planes else 8 * -(-r // GROUP)
        self.plane_at = [low + k * each for k in range(len(self.planes))]
        self.parts = low + up(len(self.planes) * each, 16)
        self.carried = min(LANES, self.parts)
        nbytes = 2 * LANES + self.nstream + 2 * -(-self.reach[0] // 8) + 3 * -(-self.reach[1] // 8)
        nbytes += self.reach[2]
        share = self.parts - self.carried
        must(share + nbytes < r * self.size, "a superblock that should be raw")
        self.share, self.variable = up(share, 64), self.bitmap + nbytes


def tier1_codes(entry, share, variable):
    width = WIDTH[len(entry.tiers[0])]
    words = 1 if width == 1 else 2
    for g in range(-(-entry.rest // GROUP)):
        at = entry.tier1 + 8 * words * g
        planes = [bits(share[at + 8 * b:at + 8 * b + 8]) for b in range(words)]
        if width == 3:
            planes.append(bits(variable[8 * g:8 * g + 8]))
        for i in range(min(GROUP, entry.rest - GROUP * g)):
            yield sum(1 << b for b, plane in enumerate(planes) if plane[i] == "1")


def deep_codes(width, c, data):
    at = 0
    for first in range(0, c, GROUP):
        g = min(GROUP, c - first)
        nbytes = -(-g // 8)
        planes = [bits(data[at + b * nbytes:at + (b + 1) * nbytes]) for b in range(width)]
        at += width * nbytes
        for i in range(g):
            yield sum(1 << b for b, plane in enumerate(planes) if plane[i] == "1")


def distances(entry, share, variable):
    """The d of each element of the rest, as an integer that may be negative."""
    r, tiers = entry.rest, entry.tiers
    codes = [list(tier1_codes(entry, share, variable))]
    at = 8 * -(-r // GROUP) if len(tiers[0]) == 7 else 0
    for tier, c in list(zip(tiers, entry.reach))[1:]:
        width = WIDTH[len(tier)]
        nbytes = width * -(-c // 8)
        codes.append(list(deep_codes(width, c, variable[at:at + nbytes])))
        at += nbytes
    escaped = list(variable[at:at + entry.reach[-1]])
    for tier, code, count in reversed(list(zip(tiers, codes, entry.reach[1:]))):
        must(code.count(len(tier)) == count, "escape codes against their count")
        deeper = iter(escaped)
        escaped = [next(deeper) if k == len(tier) else tier[k] for k in code]
    return escaped


def decode_tiers(entry, share, variable):
    first, width, sign, low_first, _ = entry.fields
    values = []
    for i, d in enumerate(distances(entry, share, variable)):
        exponent = (entry.base[i // SUBBLOCK] - d) % 256 & (1 << width) - 1
        value = exponent << first
        if low_first is not None:
            value |= (share[i] & 1) << sign | share[i] >> 1 << low_first
        values.append(value)
    return join_planes(entry, share, values)


def join_planes(entry, share, values):
    """Add the planes to the values; returns the elements' bytes."""
    planes, r = entry.fields[4], entry.rest
    for at, k in zip(entry.plane_at, entry.planes):
        if entry.byte_planes:
            for i in range(r):
                values[i] |= share[at + i] << planes[k][0]
        else:
            plane = bits(share[at:at + 8 * -(-r // GROUP)])
            for i in range(r):
                if plane[i] == "1":
                    values[i] |= 1 << planes[k][0]
    return b"".join(value.to_bytes(entry.size, "little") for value in values)


def symbols(entry, variable):
    """The symbol of each element with its octaves and top, and the bytes that the states carry."""
    laws, out = read_laws(), []
    states = [variable[i] + 256 * variable[LANES + i] for i in range(LANES)]
    must(all(x >= 256 for x in states), "a state below 256")
    stream = iter(variable[2 * LANES:2 * LANES + entry.nstream])
    for j in range(entry.rest):
        base = entry.base[j // SUBBLOCK]
        octaves, slots = laws[entry.shape, base % 8]
        x = states[j % LANES]
        symbol, frequency, before = slots[x % 256]
        x = frequency * (x // 256) + x % 256 - before
        if x < 256:
            byte = next(stream, None)
            must(byte is not None, "the stream ends early")
            x = 256 * x + byte
        states[j % LANES] = x
        out.append((symbol, octaves, (entry.lowest + base // 8) % 256))
    must(all(256 <= x < 512 for x in states), "a last state")
    must(next(stream, None) is None, "the stream is not taken to its end")
    return out, bytes(x - 256 for x in states)


def far_values(entry, data):
    """What escapes the tables, by the two tiers at the start of 'data'."""
    c1, c2, c3 = entry.reach
    first = 2 * -(-c1 // 8)
    second = first + 3 * -(-c2 // 8)
    codes = [list(deep_codes(2, c1, data[:first])), list(deep_codes(3, c2, data[first:second]))]
    escaped = list(data[second:second + c3])
    for tier, code, count in [(FAR_TIERS[1], codes[1], c3), (FAR_TIERS[0], codes[0], c2)]:
        must(code.count(len(tier)) == count, "escape codes against their count")
        deeper = iter(escaped)
        escaped = [next(deeper) if k == len(tier) else tier[k] % 256 for k in code]
    return escaped


def decode_ans(entry, share, variable):
    first, width, sign, low_first, planes = entry.fields
    coded, carried = symbols(entry, variable)
    must(sum(symbol >= ESCAPE for symbol, _, _ in coded) == entry.reach[0], "escapes of the tables")
    far = iter(far_values(entry, variable[2 * LANES + entry.nstream:]))
    parts = carried[:entry.carried] + share[:entry.parts - entry.carried]
    low = number(parts[:-(-7 * entry.rest // 8)]) if entry.has_low else 0
    low_bits = bin(low | 1 << 8 * len(parts))[:2:-1]
    values = []
    for j, (symbol, octaves, top) in enumerate(coded):
        d = symbol // 2
        if symbol >= ESCAPE:
            d = next(far)
            d += octaves if d < 128 else 0
        value = (top - d) % 256 % (1 << width) << first
        if entry.has_low:
            byte = int(low_bits[7 * j:7 * j + 7][::-1], 2) | symbol % 2 << 7
            value |= (byte & 1) << sign | byte >> 1 << low_first
        else:
            value |= symbol % 2 << planes[-1][0]
        values.append(value)
    return join_planes(entry, parts, values)


def place(entry, data, rest):
    """Put the bytes 'rest' of the coded elements where the bitmap 'data' says."""
    ngroups, size = -(-entry.m // GROUP), entry.size
    shown = [g for g, bit in enumerate(bits(data[:8 * -(-ngroups // GROUP)])[:ngroups]) if bit == "1"]
    must(len(shown) == entry.groups, "groups of the bitmap")
    at, where = 8 * -(-ngroups // GROUP), []
    for g in shown:
        word = bits(data[at:at + 8])[:entry.m - GROUP * g]
        where += [GROUP * g + i for i, bit in enumerate(word) if bit == "1"]
        at += 8
    must(len(where) == entry.rest, "elements of the bitmap")
    out = bytearray(entry.m * size)
    for k, i in enumerate(where):
        out[size * i:size * (i + 1)] = rest[size * k:size * (k + 1)]
    return bytes(out)


def decode_superblock(entry, share, variable):
    if entry.constant:
        return bytes(entry.base[:entry.size]) * entry.m
    coded = variable[entry.bitmap:]
    if entry.program == PROGRAM_RAW:
        rest = share[:entry.first] + coded
    elif entry.program == PROGRAM_ANS:
        rest = decode_ans(entry, share, coded)
    else:
        rest = decode_tiers(entry, share, coded)
    return place(entry, variable, rest) if entry.bitmap else rest


def decode(data):
    dtype, flags, n, nbody = read_header(data)
    must(not flags & OVERFLOW, "overflow: the elements come by another way")
    if flags & RAW:
        return data[32:32 + nbody]
    end, s = 32 + nbody, -(-n // SUPERBLOCK)
    fixed = up(32 + 32 * s, 64)
    must(fixed <= end, "directory beyond the end")
    entries = [Entry(data[32 + 32 * i:64 + 32 * i], dtype, min(SUPERBLOCK, n - SUPERBLOCK * i))
               for i in range(s)]
    variable = fixed + sum(entry.share for entry in entries)
    must(variable + sum(entry.variable for entry in entries) == end, "sizes against the end")
    parts = []
    for entry in entries:
        parts.append(decode_superblock(entry, data[fixed:fixed + entry.share],
                                       data[variable:variable + entry.variable]))
        fixed += entry.share
        variable += entry.variable
    return b"".join(parts)


def main():
    try:
        sys.stdout.buffer.write(decode(sys.stdin.buffer.read()))
    except Corrupt as reason:
        sys.exit(f"decoder.py: corrupt: {reason}")


if __name__ == "__main__":
    main()
