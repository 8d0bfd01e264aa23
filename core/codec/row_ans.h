/*
 * row_ans.h - the ANS kernels in plain C, compiled by each row with its own instructions
 *
 * A template: it defines static functions, of which a row takes those that it has nothing better
 * for.  It asks for what row_common.h does, which it includes.  What these kernels write is the
 * format.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_CODEC_ROW_ANS_H
#define ZIPCCL_CORE_CODEC_ROW_ANS_H

#include "core/codec/ans.h"
#include "core/codec/row_common.h"

static inline size_t ans_symbols(const uint8_t *exponents, const uint8_t *bits, int lead, size_t m,
                                 uint8_t top, uint8_t octaves, uint8_t *symbols, uint8_t *escaped)
{
    uint8_t *out = escaped;
    for (size_t i = 0; i < m; i += ZIPCCL_GROUP) {
        uint8_t far[ZIPCCL_GROUP], outside[ZIPCCL_GROUP];
        uint64_t escapes;
        for (size_t j = 0; j < ZIPCCL_GROUP; j++) {
            uint8_t d = (uint8_t)(top - exponents[i + j]), half = bits[i + j] >> lead & 1;
            outside[j] = d >= octaves;
            symbols[i + j] = (uint8_t)((outside[j] ? ZIPCCL_ANS_ESCAPE : 2 * d) | half);
            far[j] = (uint8_t)(d < 128 ? d - octaves : d);
        }
        group_planes(outside, 1, &escapes);
        /* Two groups in three have none. */
        for (escapes &= common_mask(m - i); escapes; escapes &= escapes - 1)
            *out++ = far[__builtin_ctzll(escapes)];
    }
    return (size_t)(out - escaped);
}

static inline size_t ans_exponents(const uint8_t *symbols, const uint8_t *escaped, size_t m,
                                   uint8_t top, uint8_t octaves, int lead, uint8_t *bits,
                                   uint8_t *exponents)
{
    const uint8_t *next = escaped;
    for (size_t i = 0; i < m; i += ZIPCCL_GROUP) {
        uint8_t far[ZIPCCL_GROUP] = {0}, outside[ZIPCCL_GROUP];
        uint64_t escapes;
        for (size_t j = 0; j < ZIPCCL_GROUP; j++)
            outside[j] = symbols[i + j] >= ZIPCCL_ANS_ESCAPE;
        group_planes(outside, 1, &escapes);
        for (escapes &= common_mask(m - i); escapes; escapes &= escapes - 1)
            far[__builtin_ctzll(escapes)] = *next++;
        for (size_t j = 0; j < ZIPCCL_GROUP; j++) {
            uint8_t beyond = (uint8_t)(far[j] < 128 ? far[j] + octaves : far[j]);
            uint8_t d = outside[j] ? beyond : symbols[i + j] >> 1;
            exponents[i + j] = (uint8_t)(top - d);
            bits[i + j] = (uint8_t)(bits[i + j] | (symbols[i + j] & 1) << lead);
        }
    }
    return (size_t)(next - escaped);
}

/* What coding a symbol needs: x becomes x + start + q * (256 - f), q = floor(x / f). */
struct ans_step {
    uint64_t inverse;    /* ceil(2^32 / f): exact for x < 2^16 */
    uint32_t least;      /* states from here on give a byte */
    uint16_t start, gap; /* 256 - f */
};

static inline void ans_steps(const struct zipccl_ans_table *table,
                             struct ans_step steps[ZIPCCL_ANS_SYMBOLS])
{
    for (unsigned u = 0; u < ZIPCCL_ANS_SYMBOLS; u++) {
        uint32_t f = table->frequency[u];
        steps[u] = (struct ans_step){.inverse = f ? ((1ull << 32) + f - 1) / f : 0,
                                     .least = f << 8,
                                     .start = table->start[u],
                                     .gap = (uint16_t)(256 - f)};
    }
}

/* No branches on data: whether a state gives or takes a byte cannot be foretold. */
static inline uint8_t *ans_encode(const uint8_t *symbols, size_t m,
                                  const struct zipccl_ans_table *table,
                                  struct zipccl_ans_states *states, uint8_t *end)
{
    uint32_t x[ZIPCCL_ANS_LANES];
    struct ans_step steps[ZIPCCL_ANS_SYMBOLS];
    ans_steps(table, steps);
    for (size_t l = 0; l < ZIPCCL_ANS_LANES; l++)
        x[l] = states->low[l] | (uint32_t)states->high[l] << 8;
    for (size_t i = m; i-- > 0;) {
        const struct ans_step *step = &steps[symbols[i]];
        uint32_t y = x[i % ZIPCCL_ANS_LANES], give = y >= step->least;
        end[-1] = (uint8_t)y;
        end -= give;
        y = give ? y >> 8 : y;
        uint32_t q = (uint32_t)(y * step->inverse >> 32);
        x[i % ZIPCCL_ANS_LANES] = y + step->start + q * step->gap;
    }
    for (size_t l = 0; l < ZIPCCL_ANS_LANES; l++) {
        states->low[l] = (uint8_t)x[l];
        states->high[l] = (uint8_t)(x[l] >> 8);
    }
    return end;
}

/* What a slot says: its symbol, the frequency, and how far into the symbol it lies. */
struct ans_slot {
    uint8_t symbol, frequency, rest;
};

static inline void ans_slots(const struct zipccl_ans_table *table, struct ans_slot slots[256])
{
    for (unsigned slot = 0; slot < 256; slot++) {
        uint8_t u = table->symbol[slot];
        slots[slot] = (struct ans_slot){u, table->frequency[u], (uint8_t)(slot - table->start[u])};
    }
}

static inline const uint8_t *ans_decode(const uint8_t *in, size_t m,
                                        const struct zipccl_ans_table *table,
                                        struct zipccl_ans_states *states, uint8_t *symbols)
{
    uint32_t x[ZIPCCL_ANS_LANES];
    struct ans_slot slots[256];
    ans_slots(table, slots);
    for (size_t l = 0; l < ZIPCCL_ANS_LANES; l++)
        x[l] = states->low[l] | (uint32_t)states->high[l] << 8;
    for (size_t i = 0; i < m; i++) {
        uint32_t y = x[i % ZIPCCL_ANS_LANES];
        const struct ans_slot *slot = &slots[y & 255];
        symbols[i] = slot->symbol;
        y = slot->frequency * (y >> 8) + slot->rest;
        uint32_t take = y < 256;
        x[i % ZIPCCL_ANS_LANES] = y + ((255 * y + *in) & (0u - take));
        in += take;
    }
    for (size_t l = 0; l < ZIPCCL_ANS_LANES; l++) {
        states->low[l] = (uint8_t)x[l];
        states->high[l] = (uint8_t)(x[l] >> 8);
    }
    return in;
}

/* Seven bits of each of eight lanes come together in 56, in three steps. */
static inline uint64_t ans_seven(uint64_t x)
{
    x &= 0x7f7f7f7f7f7f7f7full;
    x = (x & 0x007f007f007f007full) | (x & 0x7f007f007f007f00ull) >> 1;
    x = (x & 0x00003fff00003fffull) | (x & 0x3fff00003fff0000ull) >> 2;
    return (x & 0x000000000fffffffull) | (x & 0x0fffffff00000000ull) >> 4;
}

/* The inverse. */
static inline uint64_t ans_eight(uint64_t x)
{
    x = (x & 0x000000000fffffffull) | (x << 4 & 0x0fffffff00000000ull);
    x = (x & 0x00003fff00003fffull) | (x << 2 & 0x3fff00003fff0000ull);
    return (x & 0x007f007f007f007full) | (x << 1 & 0x7f007f007f007f00ull);
}

static inline void ans_pack(const uint8_t *low, size_t m, uint8_t *packed)
{
    for (size_t i = 0; i < m; i += 8, packed += 7) {
        size_t n = common_min(8, m - i);
        uint64_t x = ans_seven(n == 8 ? common_word(low + i, 8) : common_word(low + i, n));
        /* What follows may be in use already. */
        if (m - i > 8)
            memcpy(packed, &x, 8);
        else
            memcpy(packed, &x, (7 * n + 7) / 8);
    }
}

static inline void ans_unpack(const uint8_t *packed, size_t m, uint8_t *low)
{
    for (size_t i = 0; i < m; i += 8, packed += 7) {
        uint64_t x = ans_eight(common_word(packed, 8));
        memcpy(low + i, &x, 8);
    }
}

#endif
