/*
 * exponent_size.h - bytes of the codec's messages, expected and in the tail
 *
 * From the probability of each exponent to the coded size: tier by tier for a given base, and for
 * whole messages with headers, padding and what the encoder's sample makes it choose.  Elements
 * are taken as independent; the programs are the codec's own table.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_MODELS_EXPONENT_SIZE_H
#define ZIPCCL_MODELS_EXPONENT_SIZE_H

#include "core/codec/layout.h"
#include "models/exponent.h"

#include <stdbool.h>

/* What one tier program makes of independent exponents at a fixed base. */
struct zipccl_program_cost {
    double reach[ZIPCCL_MAX_TIERS + 1]; /* share of elements that reach each tier, then raw */
    double bits[ZIPCCL_MAX_TIERS + 1];  /* bits per element that each tier writes, then raw */
    double total;                       /* their sum: coded bits per exponent */
};

/*
 * Cost of 'program' at 'base' for exponents of probability 'p' [ZIPCCL_NUM_EXPONENTS].
 * ZIPCCL_ERR_ARG if there is no such program.
 */
zipccl_status zipccl_program_cost(const double *p, enum zipccl_program_id program, uint8_t base,
                                  struct zipccl_program_cost *out);

/* Bits that 'program' writes for exponent 'e' at 'base'. */
unsigned zipccl_program_bits(enum zipccl_program_id program, uint8_t base, uint8_t e);

/* Distinct bases that the sub-blocks of one superblock are expected to get. */
#define ZIPCCL_MAX_BASES 8
/* Distinct programs and common bases that superblocks are expected to get. */
#define ZIPCCL_MAX_CHOICES 48

/* One choice of the encoder for a superblock, with how likely it is. */
struct zipccl_choice {
    double weight;
    enum zipccl_program_id program;
    bool zeros; /* after a bitmap */
    size_t nbases;
    struct {
        double weight; /* of each sub-block, independently */
        uint8_t base;
    } base[ZIPCCL_MAX_BASES]; /* [0] is the base that most sub-blocks share */
};

/* All choices for superblocks of 'm' elements; weights sum to 1. */
struct zipccl_choices {
    size_t m;
    size_t nchoices;
    struct zipccl_choice choice[ZIPCCL_MAX_CHOICES];
};

/* What elements cost beside what their superblock costs anyway, and how many of them do. */
struct zipccl_code_classes {
    size_t n;
    double share[ZIPCCL_MAX_TIERS + 2];
    double bytes[ZIPCCL_MAX_TIERS + 2];
};
void zipccl_code_classes_of(const double *p, const struct zipccl_choice *choice, uint8_t base,
                            struct zipccl_code_classes *out);

/* Samples that are drawn where only means matter. */
#define ZIPCCL_FEW_DRAWS 512

/*
 * Distribution of what the encoder chooses for a superblock of 'm' bf16, by asking the encoder for
 * 'draws' random samples of exponents of probability p [ZIPCCL_NUM_EXPONENTS]; elements of exponent
 * 0 are zeros.  The same law gives the same numbers.
 *
 * Cost: some ten microseconds a draw.  ZIPCCL_ERR_ARG for m = 0 or too large or draws = 0,
 * ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_choices_expect(const double *p, size_t m, size_t draws,
                                    struct zipccl_choices *out);

/* Mean bytes of the bitmap of 'm' elements. */
double zipccl_bitmap_expect(const double *p, size_t m);

/* The law of what is not zero: rest [ZIPCCL_NUM_EXPONENTS]; p[0] < 1. */
void zipccl_exponent_nonzero(const double *p, double *rest);

/* Bytes of a superblock of 'm' elements with this choice that no single element decides. */
double zipccl_choice_constant(const double *p, const struct zipccl_choice *choice, size_t m);

/* Distribution of the size of a message of 'n' elements; filled by zipccl_size_expect(). */
struct zipccl_size_model {
    size_t n;
    size_t fixed; /* bytes of header and directory */
    size_t bound; /* zipccl_bound(): larger messages become raw */
    double p[ZIPCCL_NUM_EXPONENTS];
    struct zipccl_choices full, last; /* superblocks; last.m = 0 if all are full */
    double mean, sd;                  /* bytes of the message */
};

/* ZIPCCL_ERR_ARG if 'n' is too large for a coded message, ZIPCCL_ERR_NOMEM. */
zipccl_status zipccl_size_expect(const double *p, size_t n, struct zipccl_size_model *out);

/*
 * The same from choices that are known already, for many 'n' of the same data.
 *
 * full  NULL if n < ZIPCCL_SUPERBLOCK
 * last  of n % ZIPCCL_SUPERBLOCK elements; NULL if that is 0
 */
zipccl_status zipccl_size_from_choices(const double *p, size_t n, const struct zipccl_choices *full,
                                       const struct zipccl_choices *last,
                                       struct zipccl_size_model *out);

/* Probability that a message is larger than 'nbytes', down to about 1e-13; NaN without memory. */
double zipccl_size_tail(const struct zipccl_size_model *model, double nbytes);

/*
 * Bytes that a message exceeds with probability 'tail', 1e-13 < tail < 1, to 0.01 byte; NaN for
 * another 'tail' or without memory.
 */
double zipccl_size_quantile(const struct zipccl_size_model *model, double tail);

#endif
