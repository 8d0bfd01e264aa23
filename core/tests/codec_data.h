/*
 * codec_data.h - deterministic inputs for the codec's tests, and pages that fault
 *
 * Test support, not part of the library.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_TESTS_CODEC_DATA_H
#define ZIPCCL_CORE_TESTS_CODEC_DATA_H

#include "core/dtype.h"

#include <stddef.h>
#include <stdint.h>

/* A seeded stream of random numbers (splitmix64). */
struct data_random {
    uint64_t state;
};

uint64_t data_next(struct data_random *random);

/* Round 'x' to the nearest bf16, ties to even; not for NaN. */
uint16_t data_bf16(float x);

/* Fill out [n] with N(0, sigma^2), from a table of 2^15 quantiles joined by lines. */
void data_gauss(struct data_random *random, uint16_t *out, size_t n, double sigma);

/* Fill out [n] with runs of Gaussians, sigma log-uniform over two decades from run to run. */
void data_mixture(struct data_random *random, uint16_t *out, size_t n);

/* Fill out [n] with Gaussians of which about one in 'every' is any bit pattern instead. */
void data_spoiled(struct data_random *random, uint16_t *out, size_t n, unsigned every);

/* Fill out [n] with random bits. */
void data_bits(struct data_random *random, uint16_t *out, size_t n);

/*
 * Fill out [n] with e4m3 whose exponents are spread so widely that tiers take more than the 4 bits of
 * an exponent, and program ANS less than the 5 of an exponent and a half.
 */
void data_wide(struct data_random *random, uint8_t *out, size_t n);

/* Kinds of input by number, for tests that run over all of them. */
enum data_kind {
    DATA_GAUSS,
    DATA_MIXTURE,
    DATA_SPOILED,
    DATA_SPARSE,
    DATA_BITS,
    DATA_ZEROS,
    DATA_CONSTANT,
    DATA_RAMP,
    DATA_HALF_BITS,
    DATA_ROWS,
    DATA_PEAKED,
    DATA_NUM_KINDS
};

/* Fill out [n] with 'kind'; 'phase' in [0, 1) moves log2 of its scale. */
void data_fill(enum data_kind kind, struct data_random *random, double phase, uint16_t *out,
               size_t n);

/*
 * Fill out [n] with elements of a type that the codec covers: the values of 'kind', with random
 * bits where the type has more mantissa than bf16.  DATA_BITS are random bits in every type.
 */
void data_fill_type(enum zipccl_dtype dtype, enum data_kind kind, struct data_random *random,
                    double phase, void *out, size_t n);

/* The types that the codec covers. */
#define DATA_NUM_TYPES 5
extern const enum zipccl_dtype data_types[DATA_NUM_TYPES];

/* 'nbytes' readable and writable bytes that end where a page begins that may not be touched. */
struct data_guarded {
    uint8_t *bytes;
    void *mapping;
    size_t mapped;
};

struct data_guarded data_guard(size_t nbytes);
void data_unguard(struct data_guarded *guarded);

#endif
