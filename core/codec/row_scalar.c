/*
 * row_scalar.c - the row that defines the bytes, in portable C11
 *
 * It is written for reading first; eight lanes at a time where that is plain.
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

/* Spread 8 bits over 8 lanes, 1 where the bit is set. */
static uint64_t lanes_of(uint64_t bits)
{
    uint64_t picked = (bits & 0xff) * ONES & 0x8040201008040201ull;
    return (picked + 0x7f7f7f7f7f7f7f7full) >> 7 & ONES;
}

static inline void group_planes(const uint8_t *codes, int nbits, uint64_t *planes)
{
    for (int k = 0; k < nbits; k++)
        planes[k] = plane_of(codes, k);
}

static inline void group_codes(const uint64_t *planes, int nbits, uint8_t *codes)
{
    for (int i = 0; i < 64; i += 8) {
        uint64_t lanes = 0;
        for (int k = 0; k < nbits; k++)
            lanes |= lanes_of(planes[k] >> i) << k;
        memcpy(codes + i, &lanes, 8);
    }
}

static inline size_t compress(const uint8_t *d, uint64_t mask, uint8_t *out)
{
    size_t n = 0;
    for (; mask; mask &= mask - 1)
        out[n++] = d[__builtin_ctzll(mask)];
    return n;
}

static inline size_t expand(const uint8_t *in, uint64_t mask, uint8_t *d)
{
    size_t n = 0;
    for (; mask; mask &= mask - 1)
        d[__builtin_ctzll(mask)] = in[n++];
    return n;
}

#include "core/codec/row_common.h"

const struct zipccl_row zipccl_row_scalar = {
    .sample = common_sample,
    .cost = common_cost,
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
};
