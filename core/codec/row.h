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

#include "core/codec/layout.h"

/* Bytes past the end of a work buffer that kernels may read and write. */
#define ZIPCCL_SLACK 64u

/* Elements of a sub-block that one look takes, and how many looks there are at most. */
#define ZIPCCL_SAMPLES 64u
#define ZIPCCL_LOOKS   4u

/* What one look at a sub-block says. */
struct zipccl_sample {
    uint64_t taken; /* bit i: e[i] was sampled */
    uint32_t nsampled;
    uint32_t nvalid;           /* of those, neither zero, subnormal, infinite nor NaN */
    uint32_t sum;              /* of the valid exponents, pulled to within 6 of their mean */
    uint8_t e[ZIPCCL_SAMPLES]; /* exponents, run 1 from the middle on; 0 where none was taken */
};

/* Work memory of one call; the caller of the codec owns it. */
struct zipccl_scratch {
    uint8_t a[ZIPCCL_SUPERBLOCK + ZIPCCL_SLACK];
    uint8_t b[ZIPCCL_SUPERBLOCK + ZIPCCL_SLACK];
    uint8_t variable[ZIPCCL_MAX_VARIABLE + ZIPCCL_SLACK];
    struct zipccl_sample sample[ZIPCCL_SUBBLOCKS * ZIPCCL_LOOKS];
};

/* First element of run 'run' (0 or 1) of a look at sub-block 'i', which has 'm' elements. */
static inline size_t zipccl_sample_start(size_t i, size_t m, size_t look, size_t run)
{
    if (m < ZIPCCL_SUBBLOCK)
        return run * (m / 2) + look * (m / 8);
    /* The stride 5 visits all 16 places: no column of a power-of-two row is sampled alone. */
    return run * (ZIPCCL_SUBBLOCK / 2) + (5 * i + 4 * look) % 16 * 32;
}

struct zipccl_row {
    /*
     * Sample sub-block 'i' of its superblock: 'm' elements at 'src', 1 <= m <= ZIPCCL_SUBBLOCK.
     * Each 'look' < ZIPCCL_LOOKS takes other elements, as far as there are.
     */
    void (*sample)(const uint8_t *src, size_t i, size_t m, size_t look,
                   struct zipccl_sample *sample);

    /*
     * Sum bits[d - ZIPCCL_LEAST_D], d = base - e, over all exponents taken in sample [n], whose
     * bases are bases [n]; bits[15] stands for any d outside.
     */
    uint32_t (*cost)(const struct zipccl_sample *sample, size_t n, const uint8_t *bases,
                     const uint8_t bits[16]);

    /*
     * Split 'm' elements: [m] low bytes, [zipccl_tier1_bytes(m)] planes of tier 1 and the d of
     * all that escape, whose number is returned.  escaped [m + ZIPCCL_SLACK].
     */
    size_t (*split)(const uint8_t *src, size_t m, const uint8_t *bases, uint8_t *low,
                    uint8_t *planes, uint8_t *escaped);

    /*
     * Code 'm' values of d by a deeper tier: [zipccl_plane_bytes(m, width)] planes; those that
     * escape again move to the front of d [m + ZIPCCL_SLACK]; their number is returned.
     * planes has ZIPCCL_SLACK bytes more.
     */
    size_t (*sift)(uint8_t *d, size_t m, const struct zipccl_tier *tier, uint8_t *planes);

    /* Split 'm' elements into [m] low bytes and [m] exponents. */
    void (*split_raw)(const uint8_t *src, size_t m, uint8_t *low, uint8_t *exponents);

    /*
     * Inverse of split.  Returns how many of 'escaped' the planes call for, at most m;
     * escaped [m + ZIPCCL_SLACK], any content.
     */
    size_t (*join)(const uint8_t *low, const uint8_t *planes, const uint8_t *escaped, size_t m,
                   const uint8_t *bases, uint8_t *dst);

    /* Inverse of sift from 'escaped' to d, both [m + ZIPCCL_SLACK] and apart. */
    size_t (*unsift)(const uint8_t *planes, const uint8_t *escaped, size_t m,
                     const struct zipccl_tier *tier, uint8_t *d);

    /* Inverse of split_raw. */
    void (*join_raw)(const uint8_t *low, const uint8_t *exponents, size_t m, uint8_t *dst);
};

extern const struct zipccl_row zipccl_row_scalar;
#ifdef ZIPCCL_HAVE_AVX512
extern const struct zipccl_row zipccl_row_avx512;
#endif

/* The kernels of 'isa'; NULL if zipccl_isa_usable() says no. */
const struct zipccl_row *zipccl_row_of(enum zipccl_isa isa);

#endif
