/*
 * exponent.h - how likely each exponent of a bf16 tensor is, if its values have a known law
 *
 * Gaussian, a mixture of two Gaussians, Student's t, each with a share of exact zeros, rounded to
 * bf16 to nearest even.  It knows no data and no codec: see exponent_fit.h and exponent_size.h.
 * Source: original; derivation in models/exponent.md.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_MODELS_EXPONENT_H
#define ZIPCCL_MODELS_EXPONENT_H

#include "core/status.h"

#include <stddef.h>

#define ZIPCCL_NUM_EXPONENTS 256

enum zipccl_family {
    ZIPCCL_FAMILY_GAUSSIAN = 0,
    ZIPCCL_FAMILY_MIXTURE,   /* of two Gaussians around zero: uneven scales within a tensor */
    ZIPCCL_FAMILY_STUDENT_T, /* a continuous mixture of scales: heavy tails */
    ZIPCCL_NUM_FAMILIES
};

struct zipccl_exponent_model {
    enum zipccl_family family;
    double zero;   /* share of exact zeros, 0 to 1; the rest follows 'family' */
    double sigma;  /* scale > 0: standard deviation, or what Student's t is multiplied by */
    double sigma2; /* mixture: the other scale */
    double share2; /* mixture: how much of the rest has it */
    double nu;     /* Student's t: degrees of freedom > 0 */
};

/* Short name of a family: "gaussian", "mixture", "student-t". */
const char *zipccl_family_name(enum zipccl_family family);

/* The Gaussian model without zeros. */
struct zipccl_exponent_model zipccl_exponent_gaussian(double sigma);

/*
 * Probability of each exponent field.
 *
 * p  [ZIPCCL_NUM_EXPONENTS] out, sums to 1; [0] are zeros and subnormals, [255] what rounds to
 *    infinity
 * ZIPCCL_ERR_ARG for parameters out of range.
 */
zipccl_status zipccl_exponent_pmf(const struct zipccl_exponent_model *model, double *p);

/* Probability mass of |x| < 'edge' for the part of 'model' that is not exact zeros. */
double zipccl_exponent_below(const struct zipccl_exponent_model *model, double edge);

/* Entropy of 'p' [ZIPCCL_NUM_EXPONENTS] in bits; the sum of p need not be 1. */
double zipccl_exponent_entropy(const double *p);

/* Best ratio of bf16 if only exponents of 'entropy' bits are coded: 16 / (8 + entropy). */
double zipccl_exponent_bound(double entropy);

/*
 * Octaves from the scale to the mean exponent: E[exponent] - 127 - log2(sigma), below 0, over
 * values that are not zero.  Closed form, for the Gaussian (nu = 0) and Student's t:
 * E[ln|x|] = (psi(1/2) - psi(nu/2) + ln nu) / 2, whose last two terms become ln 2 for the
 * Gaussian; half an octave less for the floor; the rounding to bf16 adds -log2(1 - 2^-9).
 */
double zipccl_exponent_mean_offset(double nu);

/* Scale from a mean exponent field, by the log-moment above. */
double zipccl_exponent_sigma(double mean_exponent, double nu);

#endif
