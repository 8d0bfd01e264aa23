/*
 * row_ans.h - the ANS kernels in plain C, compiled by each row with its own instructions
 *
 * A template: it defines static functions, of which a row takes those that it has nothing better
 * for.  The row defines compress() and expand() as for row_common.h, which it includes before.
 * What these kernels write is the format.
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
        out += compress(far, escapes & common_mask(m - i), out);
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
        next += expand(next, escapes & common_mask(m - i), far);
        for (size_t j = 0; j < ZIPCCL_GROUP; j++) {
            uint8_t beyond = (uint8_t)(far[j] < 128 ? far[j] + octaves : far[j]);
            uint8_t d = outside[j] ? beyond : symbols[i + j] >> 1;
            exponents[i + j] = (uint8_t)(top - d);
            bits[i + j] = (uint8_t)(bits[i + j] | (symbols[i + j] & 1) << lead);
        }
    }
    return (size_t)(next - escaped);
}

/* No branches on data: whether a state gives or takes a byte cannot be foretold. */
static inline uint8_t *ans_encode(const uint8_t *symbols, size_t m,
                                  const struct zipccl_ans_table *table,
                                  struct zipccl_ans_states *states, uint8_t *end)
{
    uint32_t x[ZIPCCL_ANS_LANES];
    for (size_t l = 0; l < ZIPCCL_ANS_LANES; l++)
        x[l] = states->low[l] | (uint32_t)states->high[l] << 8;
    for (size_t i = m; i-- > 0;) {
        uint8_t u = symbols[i];
        uint32_t f = table->frequency[u], y = x[i % ZIPCCL_ANS_LANES], give = y >> 8 >= f;
        end[-1] = (uint8_t)y;
        end -= give;
        y >>= 8 * give;
        /* y < 256 f: the inverse falls short by one at most. */
        uint32_t q = y * table->inverse[u] >> 16, rest = y - q * f, more = rest >= f;
        q += more;
        rest -= more * f;
        x[i % ZIPCCL_ANS_LANES] = q << 8 | (rest + table->start[u]);
    }
    for (size_t l = 0; l < ZIPCCL_ANS_LANES; l++) {
        states->low[l] = (uint8_t)x[l];
        states->high[l] = (uint8_t)(x[l] >> 8);
    }
    return end;
}

static inline const uint8_t *ans_decode(const uint8_t *in, size_t m,
                                        const struct zipccl_ans_table *table,
                                        struct zipccl_ans_states *states, uint8_t *symbols)
{
    uint32_t x[ZIPCCL_ANS_LANES];
    for (size_t l = 0; l < ZIPCCL_ANS_LANES; l++)
        x[l] = states->low[l] | (uint32_t)states->high[l] << 8;
    for (size_t i = 0; i < m; i++) {
        uint32_t y = x[i % ZIPCCL_ANS_LANES], slot = y & 255;
        uint8_t u = table->symbol[slot];
        y = table->frequency[u] * (y >> 8) + slot - table->start[u];
        uint32_t take = y < 256;
        x[i % ZIPCCL_ANS_LANES] = y << 8 * take | (*in & (0u - take));
        in += take;
        symbols[i] = u;
    }
    for (size_t l = 0; l < ZIPCCL_ANS_LANES; l++) {
        states->low[l] = (uint8_t)x[l];
        states->high[l] = (uint8_t)(x[l] >> 8);
    }
    return in;
}

static inline void ans_pack(const uint8_t *low, size_t m, uint8_t *packed)
{
    for (size_t i = 0; i < m; i += 8) {
        size_t n = common_min(8, m - i);
        uint64_t word = 0;
        for (size_t j = 0; j < n; j++)
            word |= (uint64_t)(low[i + j] & 127) << 7 * j;
        memcpy(packed, &word, (7 * n + 7) / 8);
        packed += 7;
    }
}

static inline void ans_unpack(const uint8_t *packed, size_t m, uint8_t *low)
{
    for (size_t i = 0; i < m; i += 8) {
        uint64_t word = common_word(packed, 7);
        for (size_t j = 0; j < 8; j++)
            low[i + j] = word >> 7 * j & 127;
        packed += 7;
    }
}

#endif
