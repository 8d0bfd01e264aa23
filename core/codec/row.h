/*
 * row.h - what one instruction set contributes to the codec
 *
 * A row is a table of kernels over one superblock or less.  Kernels do not allocate, do not
 * fail and touch only what is named here.  The scalar row defines the bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_CODEC_ROW_H
#define ZIPCCL_CORE_CODEC_ROW_H

#include "core/codec/ans.h"
#include "core/codec/decide.h"
#include "core/codec/isa.h"
#include "core/codec/layout.h"

/* Bytes past the end of a work buffer that kernels may read and write. */
#define ZIPCCL_SLACK 64u

/* What one look at a sub-block says; two lines of a cache. */
struct zipccl_sample {
    /* Exponents, run 1 from the middle on; 0 where none was taken. */
    _Alignas(64) uint8_t e[ZIPCCL_SAMPLES];
    uint64_t taken; /* bit i: e[i] was sampled */
    uint32_t nsampled;
    uint32_t nzero;  /* of those, how many elements have no bit set */
    uint32_t nvalid; /* how many are neither zero, subnormal, infinite nor NaN */
    uint32_t sum;    /* of the valid exponents, pulled to within 6 of their mean */
};

/*
 * What a superblock's looks say, by sub-block, and where the sub-blocks lie.  Those beyond 'nsub'
 * have nothing valid: loops over all that a superblock can have are loops over whole vectors.
 */
struct zipccl_moments {
    uint32_t sum[ZIPCCL_SUBBLOCKS], nvalid[ZIPCCL_SUBBLOCKS]; /* of all looks */
    uint32_t nsub, nlooks;
    uint8_t least, most;            /* of the exponents, where sample_all fills them in */
    int location[ZIPCCL_SUBBLOCKS]; /* the common one unless 'own' */
    int own[ZIPCCL_SUBBLOCKS];      /* -1 if its scale is not the superblock's, else 0 */
    uint32_t spread; /* sum of the squares of what sub-blocks are away from the common location */
};

/* How max ratio would code a superblock, and what is known of the other programs. */
struct zipccl_ans_choice {
    bool possible;      /* false: the data has no scale, or is constant */
    bool gaussian;      /* the sample is that of a Gaussian; else try and see */
    uint32_t tier_bits; /* estimate of the chosen tier program, in 1/256 bit an exponent */
    uint16_t law;       /* field of the entry: shape and lowest top */
    uint8_t base[ZIPCCL_SUBBLOCKS]; /* the same: tables */
};

/* Work memory of one call; the caller of the codec owns it. */
struct zipccl_scratch {
    uint8_t a[ZIPCCL_SUPERBLOCK + ZIPCCL_SLACK];
    uint8_t b[ZIPCCL_SUPERBLOCK + ZIPCCL_SLACK];
    uint8_t exponents[ZIPCCL_SUPERBLOCK + ZIPCCL_SLACK];
    uint8_t bits[ZIPCCL_SUPERBLOCK + ZIPCCL_SLACK]; /* an element's bits of all bit-planes */
    uint8_t variable[ZIPCCL_MAX_VARIABLE + ZIPCCL_SLACK];
    uint8_t share[ZIPCCL_MAX_SHARE + ZIPCCL_SLACK];
    uint8_t rest[4 * ZIPCCL_SUPERBLOCK + ZIPCCL_SLACK];     /* elements without the zeros */
    uint8_t elements[4 * ZIPCCL_SUPERBLOCK + ZIPCCL_SLACK]; /* converted from or to fp32 */
    uint64_t words[ZIPCCL_SUPERBLOCK / ZIPCCL_GROUP];       /* a bitmap */
    float sums[ZIPCCL_SUPERBLOCK];
    struct zipccl_sample sample[ZIPCCL_SUBBLOCKS * ZIPCCL_LOOKS];
    uint16_t counts[ZIPCCL_SUBBLOCKS][256]; /* how often a sub-block's sample has each exponent */
    /* Program ANS only: a share with the bytes that the states carry, and a stream. */
    uint8_t fixed[ZIPCCL_MAX_SHARE + ZIPCCL_SLACK];
    uint8_t low[ZIPCCL_SUPERBLOCK + ZIPCCL_SLACK];
    uint8_t stream[ZIPCCL_SLACK + ZIPCCL_ANS_MOST_STREAM + ZIPCCL_SLACK];
    struct zipccl_ans_table table;
    struct zipccl_ans_choice choice;
};

/*
 * How many exponents of a sample its sum stands for.  Whole tensors of a type with few exponents may
 * be subnormal: all but the zeros count there, at exponent 0 unless they are valid.
 */
static inline uint32_t zipccl_sample_located(const struct zipccl_fields *fields,
                                             const struct zipccl_sample *s)
{
    return fields->exponent_bits < 8 ? s->nsampled - s->nzero : s->nvalid;
}

struct zipccl_row {
    uint32_t needs; /* features that its file was built with: ZIPCCL_BUILT_WITH, 0 for scalar */

    /*
     * Sample sub-block 'i' of its superblock: 'm' elements at 'src', 1 <= m <= ZIPCCL_SUBBLOCK.
     * Each 'look' < ZIPCCL_LOOKS takes other elements, as far as there are.
     */
    void (*sample)(const struct zipccl_fields *fields, const uint8_t *src, size_t i, size_t m,
                   size_t look, struct zipccl_sample *sample);

    /*
     * The same for all sub-blocks of a full superblock: fills e of sample [ZIPCCL_SUBBLOCKS], adds
     * sums and counts of the valid to 'moments', and returns how many elements have no bit set.
     * NULL if the row has nothing better than sample.
     */
    uint32_t (*sample_all)(const struct zipccl_fields *fields, const uint8_t *src, size_t look,
                           struct zipccl_sample *sample, struct zipccl_moments *moments);

    /*
     * Find the location of every sub-block, and the spread; returns the common one.  NULL for
     * locate.h as choose.c compiles it.
     */
    int (*locate)(struct zipccl_moments *moments);

    /*
     * Sum bits[d - ZIPCCL_LEAST_D], of any unit, d = base - e, over all exponents taken in sample [n], whose
     * bases are bases [n]; bits[31] stands for any d outside.  NULL if it is cheaper to count what
     * was sampled once, and then counts.
     */
    uint32_t (*cost)(const struct zipccl_sample *sample, size_t n, const uint8_t *bases,
                     const uint8_t bits[ZIPCCL_NUM_D]);

    /*
     * The same for a full superblock that sample_all looked at: sample [nlooks][ZIPCCL_SUBBLOCKS], of
     * which every element was taken, bases [ZIPCCL_SUBBLOCKS].  Also for each sub-block alone, to
     * each [ZIPCCL_SUBBLOCKS], unless that is NULL.  NULL if the row has nothing better than cost.
     */
    uint32_t (*cost_all)(const struct zipccl_sample *sample, const struct zipccl_moments *moments,
                         const uint8_t *bases, const uint8_t bits[ZIPCCL_NUM_D], uint32_t *each);

    /*
     * Split 'm' bf16 for a first tier of 2 bits: [m] low bytes, tier-1 words and the d of all
     * that escape, whose number is returned.  escaped [m + ZIPCCL_SLACK].  With 'stream', low
     * bytes and words go past the caches where they are aligned for that.
     */
    size_t (*split)(const uint8_t *src, size_t m, const uint8_t *bases, bool stream, uint8_t *low,
                    uint8_t *words, uint8_t *escaped);

    /*
     * Inverse of split.  Returns how many of 'escaped' the words call for, at most m.  With
     * 'stream', dst goes past the caches where it is aligned for that.
     */
    size_t (*join)(const uint8_t *low, const uint8_t *words, const uint8_t *escaped, size_t m,
                   const uint8_t *bases, bool stream, uint8_t *dst);

    /*
     * Take 'm' elements of any type apart: [m] low bytes where it has them, [m] exponents, and
     * the rest: into 'planes', the byte planes 'stride' bytes apart, or else into bits [m].
     * Returns the OR of all that rest; a byte plane k is bits 8 k to 8 k + 7 of it.
     */
    uint32_t (*take)(const struct zipccl_fields *fields, const uint8_t *src, size_t m, uint8_t *low,
                     uint8_t *planes, size_t stride, uint8_t *bits, uint8_t *exponents);

    /* Inverse of take; a byte plane that is NULL is all zero. */
    void (*give)(const struct zipccl_fields *fields, const uint8_t *low, const uint8_t *plane0,
                 const uint8_t *plane1, const uint8_t *bits, const uint8_t *exponents, size_t m,
                 uint8_t *dst);

    /*
     * Gather the bits of x [m + ZIPCCL_SLACK] that 'mask' names into planes, one after the other,
     * each a word a group.  What lies behind x [m] may change.
     */
    void (*pack)(uint8_t *x, size_t m, uint32_t mask, uint8_t *planes);

    /* Inverse of pack to x [m + ZIPCCL_SLACK]; bits outside 'mask' are zero. */
    void (*unpack)(const uint8_t *planes, size_t m, uint32_t mask, uint8_t *x);

    /*
     * Tier 1 of 'width' bits over exponents [m + ZIPCCL_SLACK], which become the d of all that
     * escape; their number is returned.  words as in the share, third [8 groups] if width is 3.
     */
    size_t (*tier1)(uint8_t *exponents, size_t m, const uint8_t *bases, int width, uint8_t *words,
                    uint8_t *third);

    /* Inverse of tier1 from 'escaped', as join. */
    size_t (*untier1)(const uint8_t *words, const uint8_t *third, const uint8_t *escaped, size_t m,
                      const uint8_t *bases, int width, uint8_t *exponents);

    /*
     * Code 'm' values of d by a deeper tier: [zipccl_plane_bytes(m, width)] planes; those that
     * escape again move to the front of d [m + ZIPCCL_SLACK]; their number is returned.
     * planes has ZIPCCL_SLACK bytes more.
     */
    size_t (*sift)(uint8_t *d, size_t m, const struct zipccl_tier *tier, uint8_t *planes);

    /*
     * Inverse of sift from 'escaped' to d, both [m + ZIPCCL_SLACK] and apart.  Returns how many
     * of 'escaped' the planes call for, at most m.
     */
    size_t (*unsift)(const uint8_t *planes, const uint8_t *escaped, size_t m,
                     const struct zipccl_tier *tier, uint8_t *d);

    /*
     * Move the elements of src [m] that are not zero to rest [m + ZIPCCL_SLACK bytes], and set
     * their bits in words [groups].  Returns how many.
     */
    size_t (*compact)(size_t size, const uint8_t *src, size_t m, uint64_t *words, uint8_t *rest);

    /* Inverse of compact; 'rest' holds at least as many elements as bits are set. */
    void (*scatter)(size_t size, const uint64_t *words, const uint8_t *rest, size_t m,
                    uint8_t *dst);

    /* Add 'm' elements (bf16, fp16 or fp32) to acc [m]. */
    void (*add)(const struct zipccl_fields *fields, const uint8_t *elements, size_t m, float *acc);

    /* Kernels of program ANS. */
    const struct zipccl_ans_kernels *ans;

    /* Round x [m] to elements (bf16 or fp16), to nearest even; NaN becomes the canonical one. */
    void (*round)(const struct zipccl_fields *fields, const float *x, size_t m, uint8_t *elements);
};

/*
 * The features that the file being compiled may use, by the compiler's own macros: __AVX2__ is 1 or
 * stands for itself, so that ROW_ON_ and it become "0," or one word, and 1 or 0 comes second.
 */
#define ZIPCCL_ROW_ON_1               0,
#define ZIPCCL_ROW_SECOND(a, b, ...)  b
#define ZIPCCL_ROW_PICK(zero_or_word) ZIPCCL_ROW_SECOND(zero_or_word 1u, 0u, 0)
#define ZIPCCL_ROW_PASTE(x)           ZIPCCL_ROW_PICK(ZIPCCL_ROW_ON_##x)
#define ZIPCCL_ROW_IS_ON(x)           ZIPCCL_ROW_PASTE(x)
#define ZIPCCL_ROW_BIT(name, text)    | ZIPCCL_ROW_IS_ON(__##name##__) << ZIPCCL_FEATURE_##name
#define ZIPCCL_BUILT_WITH             (0u ZIPCCL_FEATURES(ZIPCCL_ROW_BIT))

extern const struct zipccl_row zipccl_row_scalar;
#ifdef ZIPCCL_HAVE_X86_ROWS
extern const struct zipccl_row zipccl_row_avx2;
extern const struct zipccl_row zipccl_row_avx512;
#endif

/* The kernels of 'isa'; NULL if zipccl_isa_usable() says no. */
const struct zipccl_row *zipccl_row_of(enum zipccl_isa isa);

#endif
