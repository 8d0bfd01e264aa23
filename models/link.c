/*
 * link.c - fits links and codec to measured calls
 *
 * One residual per measured number: ln(predicted / measured) of the time, and of the codec's seconds
 * where a row has them.  A first guess comes from bounds: no link is slower than the most loaded port
 * of a row over the row's time.  What cannot be told is taken out, the vaguest first, and the rest is
 * fitted again.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/link.h"

#include "models/link_call.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_linalg.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A parameter whose change by a factor of e moves a row by less does not matter to it. */
#define LEAST_EFFECT 0.005
/* No link is as slow, bytes/s: what bare_params() leaves of the others is less. */
#define LEAST_RATE 1e-12
/* Beyond this nothing is a time or a rate. */
#define MOST_LOG 60.0

enum { NUM = ZIPCCL_NUM_LINK_KEYS };

static const struct {
    const char *name;
    size_t offset;
    bool rate;
} keys[NUM] = {
#define AT(field) offsetof(struct zipccl_cost_params, field)
    [ZIPCCL_LINK_NVLINK_RATE] = {"nvlink.rate", AT(nvlink_Bps), true},
    [ZIPCCL_LINK_NVLINK_ALPHA] = {"nvlink.alpha", AT(nvlink_alpha_s), false},
    [ZIPCCL_LINK_NIC_RATE] = {"nic.rate", AT(nic_Bps), true},
    [ZIPCCL_LINK_NIC_ALPHA] = {"nic.alpha", AT(nic_alpha_s), false},
    [ZIPCCL_LINK_ENCODE_RATE] = {"codec.encode_rate", AT(encode_Bps), true},
    [ZIPCCL_LINK_DECODE_RATE] = {"codec.decode_rate", AT(decode_Bps), true},
    [ZIPCCL_LINK_RATIO_ENCODE_RATE] = {"codec.ratio_encode_rate", AT(ratio_encode_Bps), true},
    [ZIPCCL_LINK_RATIO_DECODE_RATE] = {"codec.ratio_decode_rate", AT(ratio_decode_Bps), true},
    [ZIPCCL_LINK_LAUNCH] = {"codec.launch", AT(codec_launch_s), false},
    [ZIPCCL_LINK_REDUCE_RATE] = {"reduce.rate", AT(reduce_Bps), true},
#undef AT
};

const char *zipccl_link_key_name(enum zipccl_link_key key)
{
    return keys[key].name;
}

double *zipccl_link_value(struct zipccl_cost_params *params, enum zipccl_link_key key)
{
    return (double *)((char *)params + keys[key].offset);
}

struct problem {
    const struct zipccl_link_row *rows;
    size_t nrows, nresiduals;
    struct zipccl_link_call *calls; /* [nrows] */
    struct zipccl_cost_params params;
    double codec_weight; /* of the codec's seconds beside times, at most 1 */
    unsigned free[NUM];  /* [nfree] keys that are being fitted */
    size_t nfree;
};

/* An oversubscribed fabric keeps its ratio to the NICs. */
static void set_value(struct zipccl_cost_params *params, enum zipccl_link_key key, double value)
{
    double *at = zipccl_link_value(params, key);

    if (key == ZIPCCL_LINK_NIC_RATE && params->fabric_Bps > 0)
        params->fabric_Bps *= value / *at;
    *at = value;
}

/* Codec seconds of the busiest rank, as a row has them: 0 encode, 1 decode. */
static double codec_seconds(const struct zipccl_link_call *call,
                            const struct zipccl_cost_params *params, int decode)
{
    double rate = decode ? zipccl_cost_decode_Bps(params, call->plan)
                         : zipccl_cost_encode_Bps(params, call->plan);
    double added_s =
        params->reduce_Bps > 0 ? call->summed_n / zipccl_cost_reduce_Bps(params, call->plan) : 0;

    return decode ? call->decode_n / rate + call->ndecodes * params->codec_launch_s + added_s
                  : call->encode_n / rate + call->nencodes * params->codec_launch_s;
}

static double measured_codec(const struct zipccl_link_call *call, int decode)
{
    double seconds = decode ? call->row->decode_s : call->row->encode_s;
    double n = decode ? call->decode_n : call->encode_n;

    return n > 0 && seconds > 0 ? seconds : 0;
}

/* 'codec': of its seconds, which may scatter more than times and then say less. */
static double weight_of(const struct problem *p, const struct zipccl_link_row *row, bool codec)
{
    double spread = isfinite(row->spread) && row->spread > 0 ? row->spread : 0;

    return (codec ? p->codec_weight : 1) / hypot(spread, ZIPCCL_LINK_FLOOR);
}

/* All residuals, each divided by what it is exact to. */
static bool residuals(const struct problem *p, const struct zipccl_cost_params *params,
                      gsl_vector *out)
{
    size_t k = 0;

    for (size_t i = 0; i < p->nrows; i++) {
        const struct zipccl_link_call *call = &p->calls[i];
        double weight = weight_of(p, call->row, false), codec = weight_of(p, call->row, true);
        struct zipccl_cost cost;

        if (zipccl_link_call_price(call, params, &cost) != ZIPCCL_OK || !(cost.total_s > 0))
            return false;
        gsl_vector_set(out, k++, weight * log(cost.total_s / call->row->time_s));
        for (int decode = 0; decode < 2; decode++) {
            double measured = measured_codec(call, decode);

            if (measured > 0)
                gsl_vector_set(out, k++,
                               codec * log(codec_seconds(call, params, decode) / measured));
        }
    }
    return true;
}

static struct zipccl_cost_params params_at(const struct problem *p, const gsl_vector *x)
{
    struct zipccl_cost_params params = p->params;

    for (size_t j = 0; j < p->nfree; j++) {
        double log_value = fmax(-MOST_LOG, fmin(MOST_LOG, gsl_vector_get(x, j)));

        set_value(&params, (enum zipccl_link_key)p->free[j], exp(log_value));
    }
    return params;
}

static int residuals_at(const gsl_vector *x, void *context, gsl_vector *f)
{
    const struct problem *p = context;
    struct zipccl_cost_params params = params_at(p, x);

    return residuals(p, &params, f) ? GSL_SUCCESS : GSL_EDOM;
}

/*
 * Mean squares of the residuals of times and of the codec's seconds, which scatter differently: the worse
 * of the two counts for all intervals, so that exact numbers of one kind do not make the other's look
 * exact.
 */
static void mean_squares(const struct problem *p, const gsl_vector *f, double out[2])
{
    double sum[2] = {0, 0}, n[2] = {0, 0};
    size_t k = 0;

    for (size_t i = 0; i < p->nrows; i++) {
        double r = gsl_vector_get(f, k++);

        sum[0] += r * r;
        n[0]++;
        for (int decode = 0; decode < 2; decode++)
            if (measured_codec(&p->calls[i], decode) > 0) {
                r = gsl_vector_get(f, k++);
                sum[1] += r * r;
                n[1]++;
            }
    }
    out[0] = sum[0] / n[0];
    out[1] = n[1] > 0 ? sum[1] / n[1] : 0;
}

/* What a fit of the free parameters gave. */
struct solution {
    double x[NUM], error[NUM]; /* of the logarithms; errors are infinite where nothing is known */
    double correlation[NUM][NUM];
    size_t nrows[NUM];            /* rows that depend on it */
    double mean_square, kinds[2]; /* of a residual; of times, of the codec's seconds */
};

/* Standard errors and correlations from the singular values of the Jacobian, which may be 0. */
static zipccl_status read_errors(const struct problem *p, const gsl_matrix *jacobian,
                                 struct solution *s)
{
    size_t n = p->nresiduals, k = p->nfree;
    gsl_matrix *u = gsl_matrix_alloc(n, k), *v = gsl_matrix_alloc(k, k);
    gsl_vector *singular = gsl_vector_alloc(k), *work = gsl_vector_alloc(k);
    double covariance[NUM][NUM], scale;

    if (u == NULL || v == NULL || singular == NULL || work == NULL ||
        gsl_matrix_memcpy(u, jacobian) != GSL_SUCCESS ||
        gsl_linalg_SV_decomp(u, v, singular, work) != GSL_SUCCESS) {
        gsl_matrix_free(u);
        gsl_matrix_free(v);
        gsl_vector_free(singular);
        gsl_vector_free(work);
        return ZIPCCL_ERR_NOMEM;
    }
    scale = n > k ? s->mean_square * (double)n / (double)(n - k) : INFINITY;
    for (size_t a = 0; a < k; a++)
        for (size_t b = 0; b < k; b++) {
            covariance[a][b] = 0;
            for (size_t i = 0; i < k; i++) {
                double least = 1e-9 * gsl_vector_get(singular, 0) + 1e-30;
                double sv = fmax(gsl_vector_get(singular, i), least);

                covariance[a][b] += gsl_matrix_get(v, a, i) * gsl_matrix_get(v, b, i) / (sv * sv);
            }
        }
    for (size_t a = 0; a < k; a++) {
        s->error[a] = sqrt(covariance[a][a] * scale);
        for (size_t b = 0; b < k; b++)
            s->correlation[a][b] = covariance[a][b] / sqrt(covariance[a][a] * covariance[b][b]);
    }
    gsl_matrix_free(u);
    gsl_matrix_free(v);
    gsl_vector_free(singular);
    gsl_vector_free(work);
    return ZIPCCL_OK;
}

/* Rows that a change of each free parameter moves. */
static void count_rows(const struct problem *p, const gsl_matrix *jacobian, struct solution *s)
{
    for (size_t j = 0; j < p->nfree; j++) {
        size_t k = 0;

        s->nrows[j] = 0;
        for (size_t i = 0; i < p->nrows; i++) {
            double weight = weight_of(p, p->calls[i].row, false);
            double codec = weight_of(p, p->calls[i].row, true);
            bool moves = fabs(gsl_matrix_get(jacobian, k++, j)) > LEAST_EFFECT * weight;

            for (int decode = 0; decode < 2; decode++)
                if (measured_codec(&p->calls[i], decode) > 0)
                    moves = fabs(gsl_matrix_get(jacobian, k++, j)) > LEAST_EFFECT * codec || moves;
            s->nrows[j] += moves;
        }
    }
}

/* Fit the free parameters from where p->params has them, with the weights as they are. */
static zipccl_status solve_once(struct problem *p, struct solution *out)
{
    gsl_multifit_nlinear_parameters options = gsl_multifit_nlinear_default_parameters();
    gsl_multifit_nlinear_fdf fdf = {
        .f = residuals_at, .n = p->nresiduals, .p = p->nfree, .params = p};
    gsl_multifit_nlinear_workspace *w;
    gsl_vector *x = gsl_vector_alloc(p->nfree);
    zipccl_status status = ZIPCCL_ERR_NOMEM;
    int info, code;

    options.h_df = 1e-5;
    w = gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &options, p->nresiduals, p->nfree);
    if (x != NULL && w != NULL) {
        for (size_t j = 0; j < p->nfree; j++)
            gsl_vector_set(x, j,
                           log(*zipccl_link_value(&p->params, (enum zipccl_link_key)p->free[j])));
        code = gsl_multifit_nlinear_init(x, &fdf, w);
        if (code == GSL_SUCCESS)
            code = gsl_multifit_nlinear_driver(200, 1e-9, 1e-9, 0, NULL, NULL, &info, w);
        status = code == GSL_SUCCESS || code == GSL_ENOPROG || code == GSL_EMAXITER
                     ? ZIPCCL_OK
                     : ZIPCCL_ERR_INTERNAL;
    }
    if (status == ZIPCCL_OK) {
        mean_squares(p, gsl_multifit_nlinear_residual(w), out->kinds);
        out->mean_square = fmax(out->kinds[0], out->kinds[1]);
        for (size_t j = 0; j < p->nfree; j++)
            out->x[j] = gsl_vector_get(gsl_multifit_nlinear_position(w), j);
        count_rows(p, gsl_multifit_nlinear_jac(w), out);
        status = read_errors(p, gsl_multifit_nlinear_jac(w), out);
        p->params = params_at(p, gsl_multifit_nlinear_position(w));
    }
    gsl_multifit_nlinear_free(w);
    gsl_vector_free(x);
    return status;
}

/* The same, the codec's seconds weighing less where they scatter more than times do. */
static zipccl_status solve(struct problem *p, struct solution *out)
{
    p->codec_weight = 1;
    for (int round = 0; round < 4; round++) {
        memset(out, 0, sizeof *out);
        ZIPCCL_TRY(solve_once(p, out));
        if (!(out->kinds[1] > 1.05 * out->kinds[0]) || !(out->kinds[0] > 0))
            break;
        p->codec_weight *= sqrt(out->kinds[0] / out->kinds[1]);
    }
    return ZIPCCL_OK;
}

/* Seconds of one wire resource of a row: all others are free. */
static void bare_params(struct zipccl_cost_params *params)
{
    params->nvlink_Bps = params->nic_Bps = params->copy_Bps = 1e300;
    params->encode_Bps = params->decode_Bps = 1e300;
    params->fabric_Bps = params->nvlink_alpha_s = params->nic_alpha_s = 0;
    params->codec_launch_s = params->fence_s = params->reduce_Bps = 0;
    if (params->ratio_encode_Bps > 0)
        params->ratio_encode_Bps = 1e300;
    if (params->ratio_decode_Bps > 0)
        params->ratio_decode_Bps = 1e300;
}

/* The value of 'key' at which the row it suits worst would take its whole time for it alone. */
static double bound_of(const struct problem *p, enum zipccl_link_key key)
{
    double bound = keys[key].rate ? 0 : INFINITY;

    for (size_t i = 0; i < p->nrows; i++) {
        struct zipccl_cost_params params = p->params;
        struct zipccl_cost cost;
        double n;

        bare_params(&params);
        *zipccl_link_value(&params, key) = 1;
        if (zipccl_link_call_price(&p->calls[i], &params, &cost) != ZIPCCL_OK)
            continue;
        n = cost.total_s;
        if (keys[key].rate)
            bound = fmax(bound, n / p->rows[i].time_s);
        else if (n > LEAST_RATE)
            bound = fmin(bound, p->rows[i].time_s / n);
    }
    return bound;
}

/* Take out what no row has any of, and, the least important first, what there are no numbers for. */
static void drop_absent(struct problem *p, const struct zipccl_cost_params *base,
                        struct zipccl_link_fit *out)
{
    struct zipccl_cost_params old = *base;

    p->nfree = 0;
    for (unsigned k = 0; k < NUM; k++) {
        enum zipccl_link_key key = (enum zipccl_link_key)k;
        double bound = bound_of(p, key);

        out->estimates[k] = (struct zipccl_link_estimate){
            .state = ZIPCCL_LINK_NO_ROWS, .value = *zipccl_link_value(&old, key), .with = key};
        if (keys[k].rate ? bound > LEAST_RATE : isfinite(bound))
            p->free[p->nfree++] = k;
    }
    while (p->nfree > p->nresiduals)
        out->estimates[p->free[--p->nfree]].state = ZIPCCL_LINK_UNCLEAR;
}

/* Start rates at their bounds or a little above, alphas well below theirs. */
static void guess(struct problem *p)
{
    for (size_t j = 0; j < p->nfree; j++) {
        unsigned k = p->free[j];
        enum zipccl_link_key key = (enum zipccl_link_key)k;
        double bound = bound_of(p, key), *at = zipccl_link_value(&p->params, key);
        bool codec = key >= ZIPCCL_LINK_ENCODE_RATE && key != ZIPCCL_LINK_LAUNCH;

        if (keys[k].rate)
            set_value(&p->params, key, codec ? fmax(*at, 2 * bound) : 1.1 * bound);
        else
            *at = key == ZIPCCL_LINK_LAUNCH ? fmin(*at, bound / 4) : bound / 4;
        if (!(*at > 0))
            *at = 1e-9;
    }
}

static void take_out(struct problem *p, size_t j)
{
    p->nfree--;
    memmove(&p->free[j], &p->free[j + 1], (p->nfree - j) * sizeof p->free[0]);
}

/* The largest change of a residual if 'key' had 'value', by the floor's weight. */
static double effect_of(const struct problem *p, enum zipccl_link_key key, double value)
{
    struct zipccl_cost_params params = p->params;
    gsl_vector *now = gsl_vector_alloc(p->nresiduals), *then = gsl_vector_alloc(p->nresiduals);
    double most = INFINITY;

    set_value(&params, key, value);
    if (now != NULL && then != NULL && residuals(p, &p->params, now) &&
        residuals(p, &params, then)) {
        gsl_vector_sub(then, now);
        most = fmax(gsl_vector_max(then), -gsl_vector_min(then)) * ZIPCCL_LINK_FLOOR;
    }
    gsl_vector_free(now);
    gsl_vector_free(then);
    return most;
}

/* A parameter that no row depends on: as it was, if that is so there too, else at its end. */
static void leave_out(struct problem *p, enum zipccl_link_key key, double base,
                      struct zipccl_link_estimate *out)
{
    double end = keys[key].rate ? bound_of(p, key) : 0;

    out->state = ZIPCCL_LINK_NO_ROWS;
    out->value = base;
    if (effect_of(p, key, base) > LEAST_EFFECT) {
        out->state = ZIPCCL_LINK_BOUND;
        out->value = end;
    }
    set_value(&p->params, key, out->value);
}

static double factor_of(const struct problem *p, double error)
{
    return p->nresiduals > p->nfree
               ? exp(error * gsl_cdf_tdist_Pinv(0.975, (double)(p->nresiduals - p->nfree)))
               : INFINITY;
}

/* Take out one parameter that the rows do not tell; false if they tell all that are left. */
static bool take_out_worst(struct problem *p, const struct solution *s,
                           const struct zipccl_cost_params *base, struct zipccl_link_fit *out)
{
    size_t worst = 0;

    for (size_t j = 0; j < p->nfree; j++)
        if (s->nrows[j] == 0) {
            enum zipccl_link_key key = (enum zipccl_link_key)p->free[j];
            struct zipccl_cost_params old = *base;

            leave_out(p, key, *zipccl_link_value(&old, key), &out->estimates[key]);
            take_out(p, j);
            return true;
        }
    for (size_t j = 1; j < p->nfree; j++)
        if (s->error[j] > s->error[worst])
            worst = j;
    if (p->nfree == 0 || factor_of(p, s->error[worst]) < ZIPCCL_LINK_VAGUE)
        return false;

    enum zipccl_link_key key = (enum zipccl_link_key)p->free[worst];
    struct zipccl_link_estimate *e = &out->estimates[key];
    struct zipccl_cost_params old = *base;
    double strongest = 0.9;

    *e = (struct zipccl_link_estimate){.state = ZIPCCL_LINK_UNCLEAR,
                                       .value = *zipccl_link_value(&old, key),
                                       .with = key,
                                       .nrows = s->nrows[worst]};
    for (size_t j = 0; j < p->nfree; j++)
        if (j != worst && fabs(s->correlation[worst][j]) > strongest) {
            strongest = fabs(s->correlation[worst][j]);
            e->with = (enum zipccl_link_key)p->free[j];
        }
    /* No rate of additions is none to wait for, no alpha a very small one. */
    set_value(&p->params, key, e->value > 0 || keys[key].rate ? e->value : 1e-12);
    take_out(p, worst);
    return true;
}

static zipccl_status fit_all(struct problem *p, const struct zipccl_cost_params *base,
                             struct zipccl_link_fit *out, struct zipccl_error *error)
{
    struct solution s;

    do {
        if (p->nfree == 0)
            return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                               "the rows do not tell any alpha or rate: expected more rows, of "
                               "several sizes (%zu given)",
                               p->nrows);
        memset(&s, 0, sizeof s);
        zipccl_status status = solve(p, &s);
        if (status != ZIPCCL_OK)
            return zipccl_fail(error, status, "the fit failed: %s", zipccl_status_string(status));
    } while (take_out_worst(p, &s, base, out));
    for (size_t j = 0; j < p->nfree; j++) {
        enum zipccl_link_key key = (enum zipccl_link_key)p->free[j];
        double value = exp(s.x[j]), factor = factor_of(p, s.error[j]);

        out->estimates[key] = (struct zipccl_link_estimate){.state = ZIPCCL_LINK_FITTED,
                                                            .value = value,
                                                            .low = value / factor,
                                                            .high = value * factor,
                                                            .with = key,
                                                            .nrows = s.nrows[j]};
    }
    return ZIPCCL_OK;
}

/* Predictions, and how far they are off. */
static zipccl_status compare(const struct problem *p, double *predicted_s, double *off,
                             struct zipccl_link_fit *out)
{
    for (size_t i = 0; i < p->nrows; i++) {
        struct zipccl_cost cost;

        ZIPCCL_TRY(zipccl_link_call_price(&p->calls[i], &p->params, &cost));
        predicted_s[i] = cost.total_s;
        off[i] = fabs(cost.total_s / p->rows[i].time_s - 1);
    }
    gsl_sort(off, 1, p->nrows);
    out->median = gsl_stats_median_from_sorted_data(off, 1, p->nrows);
    out->worst = off[p->nrows - 1];
    return ZIPCCL_OK;
}

static zipccl_status open_calls(struct problem *p, const struct zipccl_cost_params *base,
                                struct zipccl_error *error)
{
    for (size_t i = 0; i < p->nrows; i++) {
        struct zipccl_error why = {""};
        zipccl_status status = zipccl_link_call_open(&p->rows[i], base, &p->calls[i], &why);
        struct zipccl_cost cost;

        if (status == ZIPCCL_OK)
            status = zipccl_link_call_price(&p->calls[i], base, &cost);
        if (status == ZIPCCL_OK && !(cost.total_s > 0))
            status = zipccl_fail(&why, ZIPCCL_ERR_INPUT, "a call that moves nothing");
        if (status != ZIPCCL_OK)
            return zipccl_fail(error, status, "row %zu: %s", i + 1,
                               why.text[0] != '\0' ? why.text : zipccl_status_string(status));
        p->nresiduals +=
            1 + (measured_codec(&p->calls[i], 0) > 0) + (measured_codec(&p->calls[i], 1) > 0);
    }
    return ZIPCCL_OK;
}

/* Rows of max ratio can be priced although the base has no rates for it: begin with a tenth. */
static void offer_ratio(const struct zipccl_link_row *rows, size_t n,
                        struct zipccl_cost_params *params)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].effort == ZIPCCL_EFFORT_RATIO && !(params->ratio_encode_Bps > 0)) {
            params->ratio_encode_Bps = params->encode_Bps / 10;
            params->ratio_decode_Bps = params->decode_Bps / 10;
        }
}

zipccl_status zipccl_link_fit(const struct zipccl_link_row *rows, size_t n,
                              const struct zipccl_cost_params *given, struct zipccl_link_fit *out,
                              double *predicted_s, struct zipccl_error *error)
{
    struct zipccl_cost_params start = *given, *base = &start;
    struct problem p = {.rows = rows, .nrows = n};
    gsl_error_handler_t *handler;
    double *off;
    zipccl_status status;

    if (n == 0)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "no rows to fit to");
    if (n == 1)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "one row tells no alpha from a rate: expected more rows, of several "
                           "sizes");
    offer_ratio(rows, n, base);
    p.params = *base;
    p.calls = calloc(n, sizeof *p.calls);
    off = malloc(n * sizeof *off);
    handler = gsl_set_error_handler_off();
    status = p.calls != NULL && off != NULL ? open_calls(&p, base, error)
                                            : zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    memset(out, 0, sizeof *out);
    if (status == ZIPCCL_OK) {
        drop_absent(&p, base, out);
        guess(&p);
        status = fit_all(&p, base, out, error);
    }
    if (status == ZIPCCL_OK) {
        status = compare(&p, predicted_s, off, out);
        out->params = p.params;
    }
    gsl_set_error_handler(handler);
    for (size_t i = 0; p.calls != NULL && i < n; i++)
        zipccl_link_call_close(&p.calls[i]);
    free(p.calls);
    free(off);
    return status;
}
