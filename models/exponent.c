/*
 * exponent.c - exponent probabilities by cumulative distributions, and the log-moment
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/exponent.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_math.h>
#include <gsl/gsl_sf_psi.h>
#include <math.h>
#include <stdbool.h>

/* A bf16 has 8 significant bits: values from 2 - 2^-8 on, in units of their octave, round up. */
#define ROUND_UP 0x1p-9

const char *zipccl_family_name(enum zipccl_family family)
{
    switch (family) {
    case ZIPCCL_FAMILY_GAUSSIAN: return "gaussian";
    case ZIPCCL_FAMILY_MIXTURE: return "mixture";
    case ZIPCCL_FAMILY_STUDENT_T: return "student-t";
    case ZIPCCL_NUM_FAMILIES: break;
    }
    return "?";
}

struct zipccl_exponent_model zipccl_exponent_gaussian(double sigma)
{
    return (struct zipccl_exponent_model){.family = ZIPCCL_FAMILY_GAUSSIAN, .sigma = sigma};
}

/* P(a <= |x| < b) of a unit Gaussian (nu = 0) or Student's t; each side where it is exact. */
static double mass(double nu, double a, double b)
{
    if (a > 1)
        return nu > 0 ? 2 * (gsl_cdf_tdist_Q(a, nu) - gsl_cdf_tdist_Q(b, nu))
                      : 2 * (gsl_cdf_ugaussian_Q(a) - gsl_cdf_ugaussian_Q(b));
    return nu > 0 ? 2 * (gsl_cdf_tdist_P(b, nu) - gsl_cdf_tdist_P(a, nu))
                  : 2 * (gsl_cdf_ugaussian_P(b) - gsl_cdf_ugaussian_P(a));
}

static double mass_of(const struct zipccl_exponent_model *m, double a, double b)
{
    double nu = m->family == ZIPCCL_FAMILY_STUDENT_T ? m->nu : 0;
    double all = mass(nu, a / m->sigma, b / m->sigma);
    if (m->family == ZIPCCL_FAMILY_MIXTURE)
        all += m->share2 * (mass(0, a / m->sigma2, b / m->sigma2) - all);
    return all;
}

double zipccl_exponent_below(const struct zipccl_exponent_model *model, double edge)
{
    return mass_of(model, 0, edge);
}

static bool valid(const struct zipccl_exponent_model *m)
{
    if (!(m->zero >= 0 && m->zero <= 1) || !(m->sigma > 0 && isfinite(m->sigma)))
        return false;
    switch (m->family) {
    case ZIPCCL_FAMILY_GAUSSIAN: return true;
    case ZIPCCL_FAMILY_MIXTURE:
        return m->sigma2 > 0 && isfinite(m->sigma2) && m->share2 >= 0 && m->share2 <= 1;
    case ZIPCCL_FAMILY_STUDENT_T: return m->nu > 0 && isfinite(m->nu);
    case ZIPCCL_NUM_FAMILIES: break;
    }
    return false;
}

/* Smallest |x| that rounds to an exponent field of 'e' or more. */
static double lower_edge(int e)
{
    if (e == 0)
        return 0;
    /* Below the first octave the step does not halve: half a step is twice as wide there. */
    return ldexp(1 - (e == 1 ? 2 * ROUND_UP : ROUND_UP), e - 127);
}

zipccl_status zipccl_exponent_pmf(const struct zipccl_exponent_model *model, double *p)
{
    if (!valid(model))
        return ZIPCCL_ERR_ARG;
    /* Far from the widest scale there is nothing: skip what would cost time and add nothing. */
    double widest = model->sigma;
    if (model->family == ZIPCCL_FAMILY_MIXTURE)
        widest = fmax(widest, model->sigma2);
    double sum = 0;
    for (int e = ZIPCCL_NUM_EXPONENTS - 1; e > 0; e--) {
        double a = lower_edge(e), b = e == 255 ? GSL_POSINF : lower_edge(e + 1);
        bool nothing = model->family != ZIPCCL_FAMILY_STUDENT_T && a > 40 * widest;
        p[e] = nothing ? 0 : (1 - model->zero) * mass_of(model, a, b);
        sum += p[e];
    }
    p[0] = fmax(0, 1 - sum);
    return ZIPCCL_OK;
}

double zipccl_exponent_entropy(const double *p)
{
    double h = 0;
    for (int e = 0; e < ZIPCCL_NUM_EXPONENTS; e++)
        if (p[e] > 0)
            h -= p[e] * log2(p[e]);
    return h;
}

double zipccl_exponent_bound(double entropy)
{
    return 16 / (8 + entropy);
}

double zipccl_exponent_mean_offset(double nu)
{
    double upper = nu > 0 ? log(nu) - gsl_sf_psi(nu / 2) : M_LN2;
    return (gsl_sf_psi(0.5) + upper) / (2 * M_LN2) - 0.5 - log1p(-ROUND_UP) / M_LN2;
}

double zipccl_exponent_sigma(double mean_exponent, double nu)
{
    return exp2(mean_exponent - 127 - zipccl_exponent_mean_offset(nu));
}
