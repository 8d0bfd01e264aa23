/*
 * exponent_fit.h - which law the exponents of a tensor follow, and how well
 *
 * Maximum likelihood over exponent counts, started from the log-moment; the family with the least
 * AIC wins.  Only exponents are looked at: a fit says what the codec can gain, not how values are
 * distributed within an octave.  GSL's error handler is left as the program has set it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_MODELS_EXPONENT_FIT_H
#define ZIPCCL_MODELS_EXPONENT_FIT_H

#include "models/exponent.h"

#include <stdint.h>

/* Exponent fields of a bf16 tensor. */
struct zipccl_exponent_counts {
    uint64_t n;
    uint64_t zeros;                       /* exact zeros of either sign, also in count[0] */
    uint64_t count[ZIPCCL_NUM_EXPONENTS]; /* by exponent field */
};

/* Count 'n' bf16 elements at 'src', any alignment. */
void zipccl_exponent_count(const void *src, size_t n, struct zipccl_exponent_counts *out);

/* Shares p [ZIPCCL_NUM_EXPONENTS] of what was counted; all 0 if n is 0. */
void zipccl_exponent_shares(const struct zipccl_exponent_counts *counts, double *p);

/* Mean exponent field of what is neither zero, subnormal, infinite nor NaN; 0 if there is none. */
double zipccl_exponent_mean(const struct zipccl_exponent_counts *counts);

struct zipccl_exponent_fit {
    struct zipccl_exponent_model model;
    double aic;        /* 2 k - 2 ln(likelihood) */
    double chi_square; /* over exponents, pooled until each expects 5 */
    int dof;           /* its degrees of freedom, k taken off; 0: too few bins to tell */
    double p_value;    /* probability of a larger chi-square; 1 if dof is 0 */
    double distance;   /* largest difference of the cumulative shares (Kolmogorov-Smirnov) */
    double lost_bits;  /* bits an exponent that a code made for the model wastes: divergence */
};

/*
 * Fit one family.  ZIPCCL_ERR_UNSUPPORTED if there is no normal value to fit, ZIPCCL_ERR_ARG for
 * no such family, ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_exponent_fit(const struct zipccl_exponent_counts *counts,
                                  enum zipccl_family family, struct zipccl_exponent_fit *out);

/* Fit all families; the least AIC wins.  Errors as above. */
zipccl_status zipccl_exponent_fit_best(const struct zipccl_exponent_counts *counts,
                                       struct zipccl_exponent_fit *out);

#endif
