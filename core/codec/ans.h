/*
 * ans.h - asymmetric numeral systems: what one instruction set contributes, and the tables
 *
 * A superblock's exponents and leading mantissa bits by range ANS with static frequencies that sum to
 * 256: 64 interleaved states of 16 bits, [256, 65536), which take or give a byte at a time.
 * core/FORMAT.md has the bytes.  It knows no superblocks and no messages.
 * Source: J. Duda, arXiv 1311.2540, section 3 (range variant); the rest is original.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_CODEC_ANS_H
#define ZIPCCL_CORE_CODEC_ANS_H

#include "core/codec/layout.h"

/* What the model says about a shape at a phase; made by models/make_ans_table. */
struct zipccl_ans_law {
    int8_t top;        /* octave of d = 0, from that of the phase's location */
    uint8_t octaves;   /* d below it are coded, others escape */
    uint8_t escape[2]; /* frequencies of the escapes, one a half */
    uint8_t escape_cost;
    uint8_t frequency[ZIPCCL_ANS_ESCAPE]; /* of half 0 and 1 of each octave */
    uint8_t cost[ZIPCCL_ANS_ESCAPE / 2];  /* lengths of octaves, with the half, in 1/8 bit */
};

/* A law's frequencies as kernels use them. */
struct zipccl_ans_table {
    uint8_t frequency[64]; /* by symbol, below 128; those beyond ZIPCCL_ANS_SYMBOLS are 0 */
    uint8_t start[64];     /* sum of the frequencies before */
    uint16_t inverse[ZIPCCL_ANS_SYMBOLS]; /* floor(65535 / frequency) */
    uint8_t symbol[256 + 8];              /* start <= slot < start + frequency */
    uint8_t octaves;
    int law; /* whose these are; below 0 nobody's */
};

/* The states of the lanes, low and high bytes as they travel. */
struct zipccl_ans_states {
    uint8_t low[ZIPCCL_ANS_LANES], high[ZIPCCL_ANS_LANES];
};

/* Where coding is: the states, and the next bytes of the stream and of what escapes. */
struct zipccl_ans_cursor {
    struct zipccl_ans_states states;
    uint8_t *stream, *escaped;
};

/* Kernels work on one sub-block or less: m <= ZIPCCL_SUBBLOCK where nothing else is said. */
struct zipccl_ans_kernels {
    /*
     * Symbols of 'm' exponents and of bit 'lead' of bits [m].  The d of all that escape go to
     * 'escaped', which may be 'exponents' or lie before it: those beyond the table counted from
     * its end, those before it as they are.  Returns how many.
     *
     * exponents, bits, symbols, escaped  [m + ZIPCCL_SLACK]
     */
    size_t (*symbols)(const uint8_t *exponents, const uint8_t *bits, int lead, size_t m,
                      uint8_t top, uint8_t octaves, uint8_t *symbols, uint8_t *escaped);

    /* Inverse: bit 'lead' is set in 'bits', which has it clear.  Returns how many of 'escaped'. */
    size_t (*exponents)(const uint8_t *symbols, const uint8_t *escaped, size_t m, uint8_t top,
                        uint8_t octaves, int lead, uint8_t *bits, uint8_t *exponents);

    /*
     * Code symbols [m + ZIPCCL_SLACK] from the last group to the first, each of which has a
     * frequency.  The stream grows down from 'end', before which there are m + ZIPCCL_SLACK
     * bytes.  Returns where it starts now.
     */
    uint8_t *(*encode)(const uint8_t *symbols, size_t m, const struct zipccl_ans_table *table,
                       struct zipccl_ans_states *states, uint8_t *end);

    /*
     * Inverse, from the first group to the last, for states of 256 and more.  Takes at most m
     * bytes of in [m + ZIPCCL_SLACK] and returns where the next ones lie.
     */
    const uint8_t *(*decode)(const uint8_t *in, size_t m, const struct zipccl_ans_table *table,
                             struct zipccl_ans_states *states, uint8_t *symbols);

    /*
     * The seven lowest bits of each of low [m + ZIPCCL_SLACK], one after the other:
     * packed [ceil(7 m / 8)], unused bits 0.  Any m.
     */
    void (*pack)(const uint8_t *low, size_t m, uint8_t *packed);

    /* Inverse of pack to low [m + ZIPCCL_SLACK]; bit 7 is 0.  Reads ZIPCCL_SLACK more. */
    void (*unpack)(const uint8_t *packed, size_t m, uint8_t *low);

    /*
     * The following are for bf16, and NULL if a row has nothing better than the above one after
     * the other.  split is take, symbols and pack: packed [56 a group + ZIPCCL_SLACK].
     */
    size_t (*split)(const uint8_t *src, size_t m, uint8_t top, uint8_t octaves, uint8_t *packed,
                    uint8_t *symbols, uint8_t *escaped);

    /* Inverse of split.  With 'stream', dst goes past the caches where it is aligned for that. */
    size_t (*join)(const uint8_t *symbols, const uint8_t *packed, const uint8_t *escaped, size_t m,
                   uint8_t top, uint8_t octaves, bool stream, uint8_t *dst);

    /*
     * split and encode, which wait for other things.  packed [ceil(7 m / 8)]; what escapes grows
     * down from at->escaped as the stream from at->stream.  With 'stream', the elements that the next
     * superblocks will need are asked for.
     */
    void (*encode_bf16)(const uint8_t *src, size_t m, uint8_t top,
                        const struct zipccl_ans_table *table, struct zipccl_ans_cursor *at,
                        bool stream, uint8_t *packed);

    /* Inverse: decode and join.  Takes what it needs from at->stream and at->escaped on. */
    void (*decode_bf16)(const uint8_t *packed, size_t m, uint8_t top,
                        const struct zipccl_ans_table *table, struct zipccl_ans_cursor *at,
                        bool stream, uint8_t *dst);
};

extern const struct zipccl_ans_kernels zipccl_ans_scalar;
#ifdef ZIPCCL_HAVE_X86_ROWS
extern const struct zipccl_ans_kernels zipccl_ans_avx2;
extern const struct zipccl_ans_kernels zipccl_ans_avx512;
#endif

/* Number of the law of 'shape' at 'phase', and what the model says about it. */
static ZIPCCL_HOSTDEV inline int zipccl_ans_law_of(int shape, int phase)
{
    return shape * ZIPCCL_ANS_PHASES + phase;
}
const struct zipccl_ans_law *zipccl_ans_law_at(int law);

/* Fill 'table' with 'law' unless it is there already. */
void zipccl_ans_table_fill(struct zipccl_ans_table *table, int law);

#endif
