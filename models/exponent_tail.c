/*
 * exponent_tail.c - how likely messages are larger than a size
 *
 * The size of a message is a sum over superblocks, each a mixture over choices of sums over
 * sub-blocks, each a mixture over bases of sums over elements.  Characteristic functions follow
 * that structure exactly: sums multiply, mixtures average.  The density is the Fourier series of
 * the characteristic function over a window far wider than the distribution (Fang and Oosterlee
 * 2008); sizes are taken as continuous, since a bit is little against a standard deviation.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/exponent_size.h"

#include <complex.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_math.h>
#include <gsl/gsl_roots.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* Width of the window, in standard deviations: rare choices lie far out. */
#define WINDOW 240
/* The series ends where this many terms in a row are below what a double adds up. */
#define SMALL      1e-15
#define SMALL_RUN  8
#define MOST_TERMS 8192

struct series {
    size_t n;
    double low, width;    /* the window */
    double complex *term; /* [n] coefficients of the density, k = 1 to n */
};

/*
 * Characteristic functions stay near 1 where it matters and are raised to powers of up to 2^32:
 * they are carried as what they differ from 1 by, and as logarithms, to keep all digits.
 */

/* e^z - 1 */
static double complex exp_minus_1(double complex z)
{
    double half = sin(cimag(z) / 2);
    double real = expm1(creal(z)) * cos(cimag(z)) - 2 * half * half;
    return real + I * (exp(creal(z)) * sin(cimag(z)));
}

/* ln(1 + z) */
static double complex log_1_plus(double complex z)
{
    double x = creal(z), y = cimag(z);
    return log1p(2 * x + x * x + y * y) / 2 + I * atan2(y, 1 + x);
}

/* Of the bytes of one element: logarithm of the characteristic function. */
static double complex element_at(const double *p, const struct zipccl_choice *choice, uint8_t base,
                                 double w)
{
    struct zipccl_code_classes classes;
    zipccl_code_classes_of(p, choice, base, &classes);
    double complex sum = 0;
    for (size_t i = 0; i < classes.n; i++)
        sum += classes.share[i] * exp_minus_1(I * w * classes.bytes[i]);
    return log_1_plus(sum);
}

/* Of a superblock of 'm' elements with one choice: logarithm. */
static double complex choice_at(const double *p, const struct zipccl_choice *choice, size_t m,
                                double w)
{
    double complex whole = 0, rest = 0;
    for (size_t v = 0; v < choice->nbases; v++) {
        double complex one = element_at(p, choice, choice->base[v].base, w);
        whole += choice->base[v].weight * exp_minus_1(ZIPCCL_SUBBLOCK * one);
        rest += choice->base[v].weight * exp_minus_1((double)(m % ZIPCCL_SUBBLOCK) * one);
    }
    double complex sum = I * w * zipccl_choice_constant(p, choice, m) + log_1_plus(rest);
    if (m >= ZIPCCL_SUBBLOCK)
        sum += (double)(m / ZIPCCL_SUBBLOCK) * log_1_plus(whole);
    return sum;
}

/* Of a superblock: logarithm. */
static double complex choices_at(const double *p, const struct zipccl_choices *c, double w)
{
    double complex sum = 0;
    for (size_t i = 0; i < c->nchoices; i++)
        sum += c->choice[i].weight * exp_minus_1(choice_at(p, &c->choice[i], c->m, w));
    return log_1_plus(sum);
}

static zipccl_status series_create(const struct zipccl_size_model *model, struct series *out)
{
    out->width = WINDOW * model->sd;
    out->low = model->mean - out->width / 2;
    out->n = 0;
    out->term = malloc(MOST_TERMS * sizeof *out->term);
    if (!out->term)
        return ZIPCCL_ERR_NOMEM;
    double start = (double)model->fixed - out->low;
    double nfull = (double)(model->n / ZIPCCL_SUPERBLOCK);
    for (int small = 0; out->n < MOST_TERMS && small < SMALL_RUN;) {
        double w = 2 * M_PI * (double)(out->n + 1) / out->width;
        double complex all = I * w * start + choices_at(model->p, &model->last, w) +
                             nfull * choices_at(model->p, &model->full, w);
        all = cexp(all);
        out->term[out->n++] = all;
        small = cabs(all) < SMALL ? small + 1 : 0;
    }
    return ZIPCCL_OK;
}

/* Integral of the density from 'nbytes' to the end of the window. */
static double tail_of(const struct series *series, double nbytes)
{
    double x = (nbytes - series->low) / series->width, sum = 1 - x;
    if (x <= 0 || x >= 1)
        return x <= 0 ? 1 : 0;
    for (size_t i = 0; i < series->n; i++) {
        double k = 2 * M_PI * (double)(i + 1);
        sum += 2 * creal(series->term[i] * (cexp(-I * k * x) - 1) / (I * k));
    }
    return fmin(1, fmax(0, sum));
}

double zipccl_size_tail(const struct zipccl_size_model *model, double nbytes)
{
    struct series series;
    if (model->sd <= 0 || nbytes >= (double)model->bound)
        return nbytes < model->mean ? 1 : 0;
    if (series_create(model, &series) != ZIPCCL_OK)
        return NAN;
    double tail = tail_of(&series, nbytes);
    free(series.term);
    return tail;
}

struct search {
    const struct series *series;
    double target;
};

static double above_target(double nbytes, void *params)
{
    const struct search *search = params;
    return log(fmax(1e-16, tail_of(search->series, nbytes))) - search->target;
}

double zipccl_size_quantile(const struct zipccl_size_model *model, double tail)
{
    struct series series;
    if (model->sd <= 0)
        return model->mean;
    if (!(tail > 0 && tail < 1) || series_create(model, &series) != ZIPCCL_OK)
        return NAN;
    struct search search = {.series = &series, .target = log(tail)};
    double low = series.low, high = low + series.width, found = NAN;
    gsl_root_fsolver *solver = gsl_root_fsolver_alloc(gsl_root_fsolver_bisection);
    if (solver && above_target(low, &search) > 0 && above_target(high, &search) < 0) {
        gsl_function function = {.function = above_target, .params = &search};
        gsl_root_fsolver_set(solver, &function, low, high);
        for (int i = 0; i < 60; i++) {
            gsl_root_fsolver_iterate(solver);
            found = gsl_root_fsolver_x_upper(solver);
            if (found - gsl_root_fsolver_x_lower(solver) < 0.01)
                break;
        }
    }
    if (solver)
        gsl_root_fsolver_free(solver);
    free(series.term);
    return found > (double)model->bound ? (double)model->bound : found;
}
