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
PROGRAM_RAW, PROGRAM_CONSTANT, BITMAP = 0, 8, 128


class Corrupt(Exception):
    pass


def must(holds, what):
    if not holds:
        raise Corrupt(what)


def up(x, to):
    return -(-x // to) * to


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
        must(self.program == PROGRAM_RAW or self.program in PROGRAMS, "program")
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
    first, width, sign, low_first, planes = entry.fields
    r = entry.rest
    values = []
    for i, d in enumerate(distances(entry, share, variable)):
        exponent = (entry.base[i // SUBBLOCK] - d) % 256 & (1 << width) - 1
        value = exponent << first
        if low_first is not None:
            value |= (share[i] & 1) << sign | share[i] >> 1 << low_first
        values.append(value)
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
