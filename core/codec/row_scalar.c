/*
 * row_scalar.c - the row that defines the bytes, in portable C11
 *
 * Eight lanes at a time in 64-bit words, without branches on data.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/row.h"

#include <string.h>

#define ONES 0x0101010101010101ull

static uint64_t lanes_load(const uint8_t *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

/*
 * How those of 8 lanes that 8 bits m take come to lie together, in either half: which stay and which go
 * down by one lane, and of those which stay and which go down by two.
 */
struct moves {
    uint64_t keep1, move1, keep2, move2;
    uint32_t nlower, n; /* bits set in the lower four, and in all */
};

/* Bit i of a nibble m, how many of those below are not set, and all ones in lane 'at' if 'x'. */
#define BIT(m, i)   ((m) >> (i)&1)
#define NONE(m, i)  ((i)-COUNT((m) & ((1 << (i)) - 1)))
#define COUNT(m)    (BIT(m, 0) + BIT(m, 1) + BIT(m, 2) + BIT(m, 3))
#define LANE(x, at) ((x) ? 255ull << 8 * (at) : 0)
#define ALL(f, m)   (f(m, 0) | f(m, 1) | f(m, 2) | f(m, 3))
#define ONE(m, i)   ((uint64_t)BIT(m, i) << 8 * (i))
#define KEEP1(m, i) LANE(BIT(m, i) && !(NONE(m, i) & 1), i)
#define MOVE1(m, i) LANE(BIT(m, i) && NONE(m, i) & 1, i)
#define KEEP2(m, i) LANE(BIT(m, i) && !(NONE(m, i) & 2), (i) - (NONE(m, i) & 1))
#define MOVE2(m, i) LANE(BIT(m, i) && NONE(m, i) & 2, (i) - (NONE(m, i) & 1))
#define BOTH(f, m)  (ALL(f, (m)&15) | ALL(f, (m) >> 4) << 32)
#define ENTRY(m)                                                                                   \
    {                                                                                              \
        BOTH(KEEP1, m), BOTH(MOVE1, m), BOTH(KEEP2, m), BOTH(MOVE2, m), COUNT((m)&15),             \
            COUNT((m)&15) + COUNT((m) >> 4)                                                        \
    }
#define ROW4(m)  ENTRY(m), ENTRY(m + 1), ENTRY(m + 2), ENTRY(m + 3)
#define ROW16(m) ROW4(m), ROW4(m + 4), ROW4(m + 8), ROW4(m + 12)
#define ROW64(m) ROW16(m), ROW16(m + 16), ROW16(m + 32), ROW16(m + 48)

static const struct moves moves[256] = {ROW64(0), ROW64(64), ROW64(128), ROW64(192)};

#undef ENTRY
#define ENTRY(m) BOTH(ONE, m)

/* 8 lanes, 1 where bit i of m is set. */
static const uint64_t lanes[256] = {ROW64(0), ROW64(64), ROW64(128), ROW64(192)};

#undef BIT
#undef NONE
#undef COUNT
#undef LANE
#undef ALL
#undef ONE
#undef KEEP1
#undef MOVE1
#undef KEEP2
#undef MOVE2
#undef BOTH
#undef ENTRY
#undef ROW4
#undef ROW16
#undef ROW64

/* Gather bit 'bit' of 64 bytes into one word; the multiplication collects one bit of 8 lanes. */
static uint64_t plane_of(const uint8_t *codes, int bit)
{
    uint64_t plane = 0;
    for (int k = 0; k < 8; k++) {
        uint64_t bits = lanes_load(codes + 8 * k) >> bit & ONES;
        plane |= (bits * 0x0102040810204080ull >> 56) << (8 * k);
    }
    return plane;
}

static inline void group_planes(const uint8_t *codes, int nbits, uint64_t *planes)
{
    for (int k = 0; k < nbits; k++)
        planes[k] = plane_of(codes, k);
}

static inline void group_codes(const uint64_t *planes, int nbits, uint8_t *codes)
{
    for (int i = 0; i < 64; i += 8) {
        uint64_t x = 0;
        for (int k = 0; k < nbits; k++)
            x |= lanes[planes[k] >> i & 255] << k;
        memcpy(codes + i, &x, 8);
    }
}

/* No branches on data: how many lanes are taken cannot be foretold. */
static inline size_t compress(const uint8_t *d, uint64_t mask, uint8_t *out)
{
    uint8_t *start = out;
    for (int i = 0; i < 64; i += 8) {
        const struct moves *l = &moves[mask >> i & 255];
        uint64_t x = lanes_load(d + i);
        x = (x & l->keep1) | (x & l->move1) >> 8;
        x = (x & l->keep2) | (x & l->move2) >> 16;
        uint32_t lower = (uint32_t)x, upper = (uint32_t)(x >> 32);
        memcpy(out, &lower, 4);
        memcpy(out + l->nlower, &upper, 4);
        out += l->n;
    }
    return (size_t)(out - start);
}

/* The inverse of what compress() does with 8 lanes; the others are 0. */
static inline uint64_t spread(const uint8_t *in, const struct moves *l)
{
    uint32_t lower, upper;
    memcpy(&lower, in, 4);
    memcpy(&upper, in + l->nlower, 4);
    uint64_t x = lower | (uint64_t)upper << 32;
    x = (x & l->keep2) | (x << 16 & l->move2);
    return (x & l->keep1) | (x << 8 & l->move1);
}

static inline size_t fill(const uint8_t *in, uint64_t mask, uint8_t *d)
{
    const uint8_t *start = in;
    for (int i = 0; i < 64; i += 8) {
        const struct moves *l = &moves[mask >> i & 255];
        uint64_t x = spread(in, l) | lanes_load(d + i);
        memcpy(d + i, &x, 8);
        in += l->n;
    }
    return (size_t)(in - start);
}

static inline size_t expand(const uint8_t *in, uint64_t mask, uint8_t *d)
{
    const uint8_t *start = in;
    for (int i = 0; i < 64; i += 8) {
        const struct moves *l = &moves[mask >> i & 255];
        uint64_t x = spread(in, l) | (lanes_load(d + i) & ~(l->keep1 | l->move1));
        memcpy(d + i, &x, 8);
        in += l->n;
    }
    return (size_t)(in - start);
}

#include "core/codec/row_ans.h"

const struct zipccl_ans_kernels zipccl_ans_scalar = {
    .symbols = ans_symbols,
    .exponents = ans_exponents,
    .encode = ans_encode,
    .decode = ans_decode,
    .pack = ans_pack,
    .unpack = ans_unpack,
};

const struct zipccl_row zipccl_row_scalar = {
    .sample = common_sample,
    .split = common_split,
    .join = common_join,
    .take = common_take,
    .give = common_give,
    .pack = common_pack,
    .unpack = common_unpack,
    .tier1 = common_tier1,
    .untier1 = common_untier1,
    .sift = common_sift,
    .unsift = common_unsift,
    .compact = common_compact,
    .scatter = common_scatter,
    .add = common_add,
    .round = common_round,
    .ans = &zipccl_ans_scalar,
};
