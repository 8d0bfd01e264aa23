/*
 * decide.h - the numbers and the arithmetic by which program and bases are chosen
 *
 * What choose.c and the encode kernels of a GPU have in common: where a look takes its elements,
 * means, thresholds.  Each walks over sub-blocks in its own way.  Integers only; locations are mean
 * exponents in 1/256 octave.  core/FORMAT.md's last section tells the whole.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_CODEC_DECIDE_H
#define ZIPCCL_CORE_CODEC_DECIDE_H

#include "core/codec/layout.h"
#include "core/hostdev.h"

/* Elements of a sub-block that one look takes, and how many looks there are at most. */
#define ZIPCCL_SAMPLES 64u
#define ZIPCCL_LOOKS   4u
/* Elements of one of a look's two runs. */
#define ZIPCCL_RUN 32u

/*
 * base = (location + shift) >> 8.  The shifts minimise the exact code length of a Gaussian over
 * its phase.  For a Gaussian, base and program are one choice: x = location + SHIFT_GAUSSIAN has
 * the base in its high bits, and its phase, x mod 256, names the program.
 */
#define ZIPCCL_SHIFT_GAUSSIAN 492
ZIPCCL_TABLE int zipccl_shifts[ZIPCCL_NUM_PROGRAMS] = {0, 529, 557, 486, 413, 472, 673, 299};
/*
 * What a Gaussian costs, in 1/256 bit an exponent, for 16 phases x mod 256 / 16.  1024 samples
 * show it within 9.  Beyond NEAR the other programs are tried on what was sampled, beyond FAR the
 * search goes deeper; far beyond raw the data has no scale and a search would be in vain.
 */
ZIPCCL_TABLE uint16_t zipccl_gaussian_bits[16] = {672, 668, 665, 663, 662, 662, 662, 663,
                                                  664, 665, 666, 668, 671, 672, 672, 673};
#define ZIPCCL_NEAR          12
#define ZIPCCL_FAR           20
#define ZIPCCL_SPREAD        5200
#define ZIPCCL_HOPELESS_BITS 4
/* Bits that another base must gain on a sub-block's sample, against chance. */
#define ZIPCCL_CHANCE_BITS 8
/* Superblocks of so few sub-blocks are looked at closely at once. */
#define ZIPCCL_FEW_SUBBLOCKS 4u
/* Octaves that a search goes to either side. */
#define ZIPCCL_REACH 6
/* A bitmap is weighed where one in so many sampled elements is zero. */
#define ZIPCCL_ZEROS_IN 16
/* Three standard deviations of a mean of 64 exponents of a Gaussian (1.60 octaves / 8). */
#define ZIPCCL_DEVIATION 200
/* Octaves to which an exponent is pulled before it counts. */
#define ZIPCCL_PULL 6u
/* Tops that a table of program ANS can have in one superblock. */
#define ZIPCCL_ANS_TOPS 32
/* Another shape than the Gaussian's must gain 1/8 bit in so many exponents, against chance. */
#define ZIPCCL_SHAPE_CHANCE 4u
/* Of program ANS: phase of shape 0 in bits 5 to 7 of location + SHIFT, its top above. */
#define ZIPCCL_ANS_SHIFT 763

/* First element of run 'run' (0 or 1) of a look at sub-block 'i', which has 'm' elements. */
static ZIPCCL_HOSTDEV inline size_t zipccl_sample_start(size_t i, size_t m, size_t look, size_t run)
{
    if (m < ZIPCCL_SUBBLOCK)
        return run * (m / 2) + look * (m / 8);
    /* The stride 5 visits all 16 places: no column of a power-of-two row is sampled alone. */
    return run * (ZIPCCL_SUBBLOCK / 2) + (5 * i + 4 * look) % 16 * ZIPCCL_RUN;
}

/* Exponents that count are pulled into [*low, *high], around their mean, sum / nvalid rounded. */
static ZIPCCL_HOSTDEV inline void zipccl_pull(unsigned sum, unsigned nvalid, uint8_t *low,
                                              uint8_t *high)
{
    unsigned mean = nvalid ? (sum + nvalid / 2u) / nvalid : 0;
    *low = (uint8_t)(mean > ZIPCCL_PULL ? mean - ZIPCCL_PULL : 0);
    *high = (uint8_t)(mean + ZIPCCL_PULL < 255 ? mean + ZIPCCL_PULL : 255);
}

static ZIPCCL_HOSTDEV inline int zipccl_location_of(uint32_t sum, uint32_t nvalid)
{
    return nvalid ? (int)((256 * sum + nvalid / 2) / nvalid) : 0;
}

/* -1 if 'x' lies within 'deviation' of 'centre', else 0. */
static ZIPCCL_HOSTDEV inline int zipccl_is_near(int x, int centre, int deviation)
{
    int away = x - centre;
    return -(int)((away <= deviation) & (away >= -deviation));
}

/* How far a sub-block may lie from the common location, after 'nlooks' looks. */
static ZIPCCL_HOSTDEV inline int zipccl_deviation(uint32_t nlooks)
{
    return nlooks == 1 ? ZIPCCL_DEVIATION : ZIPCCL_DEVIATION / 2;
}

/* A sub-block's base, by its location and a program's shift. */
static ZIPCCL_HOSTDEV inline uint8_t zipccl_base_of(int location, int shift)
{
    int base = (location + shift) >> 8;
    return (uint8_t)(base < 0 ? 0 : base > 255 ? 255 : base);
}

/* The program of a Gaussian with the phase of 'x': each is shortest up to a crossing. */
static ZIPCCL_HOSTDEV inline uint8_t zipccl_gaussian_program(int x)
{
    int phase = x & 255;
    return (uint8_t)(phase < 84    ? ZIPCCL_PROGRAM_21123_UP
                     : phase < 134 ? ZIPCCL_PROGRAM_21223
                     : phase < 206 ? ZIPCCL_PROGRAM_22123
                                   : ZIPCCL_PROGRAM_21123_DOWN);
}

/* What a sample's mean code length says of the data. */
enum zipccl_verdict {
    ZIPCCL_IS_GAUSSIAN, /* take the Gaussian's program */
    ZIPCCL_IS_NEAR,     /* try the other programs */
    ZIPCCL_IS_FAR,      /* and look closer, and move the bases */
    ZIPCCL_IS_HOPELESS  /* raw */
};

/*
 * bits      estimate of the Gaussian's program for all 'nsampled' exponents
 * gaussian  what a Gaussian costs: zipccl_gaussian_bits[(x & 255) / 16] of 'x' as above
 * spread    sum of the squares of what 'nsub' sub-blocks are away from the common location
 */
static ZIPCCL_HOSTDEV inline enum zipccl_verdict zipccl_verdict_of(uint32_t bits, uint32_t nsampled,
                                                                   uint32_t exponent_bits,
                                                                   int gaussian, uint32_t spread,
                                                                   uint32_t nsub)
{
    if (bits >= (exponent_bits + ZIPCCL_HOPELESS_BITS) * nsampled)
        return ZIPCCL_IS_HOPELESS;
    int off = (int)(256 * bits / nsampled) - gaussian;
    if (off > ZIPCCL_FAR || off < -ZIPCCL_FAR || spread > ZIPCCL_SPREAD * nsub)
        return ZIPCCL_IS_FAR;
    return off <= ZIPCCL_NEAR && off >= -ZIPCCL_NEAR ? ZIPCCL_IS_GAUSSIAN : ZIPCCL_IS_NEAR;
}

/* Lowest top of a superblock with the common location 'centre', by a shape whose own top is 'top'. */
static ZIPCCL_HOSTDEV inline int zipccl_ans_lowest(int centre, int top)
{
    int low = ((centre + ZIPCCL_ANS_SHIFT) >> 8) + top - ZIPCCL_ANS_TOPS / 2;
    return low < 0 ? 0 : low > 255 ? 255 : low;
}

/* Table of a sub-block by that shape: its top above the lowest one, and its phase. */
static ZIPCCL_HOSTDEV inline uint8_t zipccl_ans_table_at(int location, int top, int lowest)
{
    int x = location + ZIPCCL_ANS_SHIFT, above = (x >> 8) + top - lowest;
    above = above < 0 ? 0 : above >= ZIPCCL_ANS_TOPS ? ZIPCCL_ANS_TOPS - 1 : above;
    return (uint8_t)(above << 3 | (x >> 5 & 7));
}

/* Octaves up and down that a deep search moves all bases of 'program' by. */
static ZIPCCL_HOSTDEV inline int zipccl_search_reach(bool deep, uint8_t program)
{
    return deep && program > ZIPCCL_PROGRAM_21123_DOWN ? 1 : 0;
}

#endif
