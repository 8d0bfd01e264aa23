/*
 * exponent_fit.c - likelihood of exponent counts, maximised by a simplex
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/exponent_fit.h"

#include "core/wire.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_multimin.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* What no model expects at all must not rule all of them out: a stray NaN or infinity. */
#define LEAST_P 1e-30
/* Student's t beyond this is a Gaussian, below the other end its exponents are all but uniform. */
#define MOST_NU         1e3
#define LEAST_NU        0.1
#define MOST_PARAMETERS 3

void zipccl_exponent_count(const void *src, size_t n, struct zipccl_exponent_counts *out)
{
    const uint8_t *bytes = src;
    memset(out, 0, sizeof *out);
    out->n = n;
    for (size_t i = 0; i < n; i++) {
        unsigned magnitude = zipccl_get_u16(bytes + 2 * i) & 0x7fffu;
        out->count[magnitude >> 7]++;
        out->zeros += magnitude == 0;
    }
}

void zipccl_exponent_shares(const struct zipccl_exponent_counts *counts, double *p)
{
    for (int e = 0; e < ZIPCCL_NUM_EXPONENTS; e++)
        p[e] = counts->n ? (double)counts->count[e] / (double)counts->n : 0;
}

/* Values that have a scale; their exponents' sum. */
static double normal_values(const struct zipccl_exponent_counts *counts, double *sum)
{
    double n = 0;
    *sum = 0;
    for (int e = 1; e < ZIPCCL_NUM_EXPONENTS - 1; e++) {
        n += (double)counts->count[e];
        *sum += e * (double)counts->count[e];
    }
    return n;
}

double zipccl_exponent_mean(const struct zipccl_exponent_counts *counts)
{
    double sum, n = normal_values(counts, &sum);
    return n > 0 ? sum / n : 0;
}

static size_t nparameters(enum zipccl_family family)
{
    static const size_t n[ZIPCCL_NUM_FAMILIES] = {1, 3, 2};
    return n[family];
}

struct problem {
    const struct zipccl_exponent_counts *counts;
    enum zipccl_family family;
    double zero;
    double sigma; /* from the log-moment; parameters are relative to it */
};

/* Parameters are logarithms and a log-odds, so that any value is a valid one. */
static struct zipccl_exponent_model model_at(const struct problem *problem, const gsl_vector *x)
{
    struct zipccl_exponent_model model = {.family = problem->family, .zero = problem->zero};
    model.sigma = problem->sigma * exp(gsl_vector_get(x, 0));
    if (problem->family == ZIPCCL_FAMILY_MIXTURE) {
        model.sigma2 = model.sigma * exp(gsl_vector_get(x, 1));
        model.share2 = 1 / (1 + exp(-gsl_vector_get(x, 2)));
    } else if (problem->family == ZIPCCL_FAMILY_STUDENT_T) {
        model.nu = fmin(MOST_NU, fmax(LEAST_NU, exp(gsl_vector_get(x, 1))));
    }
    return model;
}

/* Minus the log-likelihood. */
static double cost(const struct zipccl_exponent_counts *counts,
                   const struct zipccl_exponent_model *model)
{
    double p[ZIPCCL_NUM_EXPONENTS], sum = 0;
    if (zipccl_exponent_pmf(model, p) != ZIPCCL_OK)
        return HUGE_VAL;
    for (int e = 0; e < ZIPCCL_NUM_EXPONENTS; e++)
        if (counts->count[e])
            sum -= (double)counts->count[e] * log(fmax(LEAST_P, p[e]));
    return sum;
}

static double cost_at(const gsl_vector *x, void *params)
{
    const struct problem *problem = params;
    struct zipccl_exponent_model model = model_at(problem, x);
    /* Scales out of a double's range are far from any data. */
    return fmin(cost(problem->counts, &model), 1e300);
}

static void start_at(enum zipccl_family family, gsl_vector *x, gsl_vector *step)
{
    gsl_vector_set_zero(x);
    gsl_vector_set_all(step, 0.2);
    if (family == ZIPCCL_FAMILY_MIXTURE) {
        gsl_vector_set(x, 0, -0.2);
        gsl_vector_set(x, 1, 1);  /* 2.7 times as wide ... */
        gsl_vector_set(x, 2, -1); /* ... for a quarter of the values */
        gsl_vector_set_all(step, 0.5);
    } else if (family == ZIPCCL_FAMILY_STUDENT_T) {
        gsl_vector_set(x, 0, -0.1);
        gsl_vector_set(x, 1, 1.5); /* nu = 4.5 */
        gsl_vector_set(step, 1, 0.5);
    }
}

static zipccl_status maximise(struct problem *problem, struct zipccl_exponent_model *out)
{
    size_t k = nparameters(problem->family);
    zipccl_status status = ZIPCCL_ERR_NOMEM;
    gsl_vector *x = gsl_vector_alloc(k), *step = gsl_vector_alloc(k);
    gsl_multimin_fminimizer *minimizer =
        gsl_multimin_fminimizer_alloc(gsl_multimin_fminimizer_nmsimplex2, k);
    if (x && step && minimizer) {
        start_at(problem->family, x, step);
        gsl_multimin_function function = {.f = cost_at, .n = k, .params = problem};
        gsl_multimin_fminimizer_set(minimizer, &function, x, step);
        for (int i = 0; i < 500; i++) {
            if (gsl_multimin_fminimizer_iterate(minimizer) != GSL_SUCCESS)
                break;
            if (gsl_multimin_test_size(gsl_multimin_fminimizer_size(minimizer), 1e-5) ==
                GSL_SUCCESS)
                break;
        }
        *out = model_at(problem, gsl_multimin_fminimizer_x(minimizer));
        status = ZIPCCL_OK;
    }
    if (minimizer)
        gsl_multimin_fminimizer_free(minimizer);
    if (x)
        gsl_vector_free(x);
    if (step)
        gsl_vector_free(step);
    return status;
}

/* Pool bins from small values to large until each expects 5 elements, and compare. */
static void compare(const struct zipccl_exponent_counts *counts, const double *p, int k,
                    struct zipccl_exponent_fit *fit)
{
    double expected = 0, seen = 0, chi_square = 0, n = (double)counts->n;
    double below_model = 0, below_data = 0;
    int bins = 0;
    for (int e = 0; e < ZIPCCL_NUM_EXPONENTS; e++) {
        double share = (double)counts->count[e] / n;
        below_model += p[e];
        below_data += share;
        fit->distance = fmax(fit->distance, fabs(below_model - below_data));
        if (share > 0)
            fit->lost_bits += share * log2(share / fmax(LEAST_P, p[e]));
        expected += n * p[e];
        seen += (double)counts->count[e];
        double rest = n * (1 - below_model);
        bool last = e == ZIPCCL_NUM_EXPONENTS - 1;
        if ((expected < 5 || rest < 5) && !last)
            continue;
        if (expected > 0) {
            chi_square += (seen - expected) * (seen - expected) / expected;
            bins++;
        }
        expected = seen = 0;
    }
    fit->chi_square = chi_square;
    fit->dof = bins - 1 - k > 0 ? bins - 1 - k : 0;
    fit->p_value = fit->dof ? gsl_cdf_chisq_Q(chi_square, fit->dof) : 1;
}

zipccl_status zipccl_exponent_fit(const struct zipccl_exponent_counts *counts,
                                  enum zipccl_family family, struct zipccl_exponent_fit *out)
{
    if ((unsigned)family >= ZIPCCL_NUM_FAMILIES)
        return ZIPCCL_ERR_ARG;
    double mean = zipccl_exponent_mean(counts);
    if (mean <= 0)
        return ZIPCCL_ERR_UNSUPPORTED;
    struct problem problem = {.counts = counts,
                              .family = family,
                              .zero = (double)counts->zeros / (double)counts->n,
                              .sigma = zipccl_exponent_sigma(mean, 0)};
    struct zipccl_exponent_fit fit = {.distance = 0};
    ZIPCCL_TRY(maximise(&problem, &fit.model));
    double p[ZIPCCL_NUM_EXPONENTS];
    ZIPCCL_TRY(zipccl_exponent_pmf(&fit.model, p));
    /* The share of zeros is a parameter too, where there are any. */
    int k = (int)nparameters(family) + (counts->zeros > 0);
    fit.aic = 2 * k + 2 * cost(counts, &fit.model);
    compare(counts, p, k, &fit);
    *out = fit;
    return ZIPCCL_OK;
}

zipccl_status zipccl_exponent_fit_best(const struct zipccl_exponent_counts *counts,
                                       struct zipccl_exponent_fit *out)
{
    struct zipccl_exponent_fit best = {.aic = HUGE_VAL};
    for (int family = 0; family < ZIPCCL_NUM_FAMILIES; family++) {
        struct zipccl_exponent_fit fit;
        ZIPCCL_TRY(zipccl_exponent_fit(counts, (enum zipccl_family)family, &fit));
        if (fit.aic < best.aic)
            best = fit;
    }
    *out = best;
    return ZIPCCL_OK;
}
