/*
 * exponent_size.c - code lengths, and the size of a message through its cumulant function
 *
 * The size of a message is a sum over superblocks, each a mixture over choices of sums over
 * sub-blocks, each a mixture over bases of sums over elements.  Cumulant generating functions
 * follow that structure exactly: sums add, mixtures average exponentials.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/exponent_size.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <gsl/gsl_randist.h>
#include <gsl/gsl_roots.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

zipccl_status zipccl_program_cost(const double *p, enum zipccl_program_id program, uint8_t base,
                                  struct zipccl_program_cost *out)
{
    if ((unsigned)program >= ZIPCCL_NUM_PROGRAMS)
        return ZIPCCL_ERR_ARG;
    const struct zipccl_tier_program *tiers = &zipccl_programs[program];
    struct zipccl_program_cost cost = {.reach = {1}};
    for (int t = 0; t < tiers->ntiers; t++) {
        const struct zipccl_tier *tier = &tiers->tier[t];
        double coded = 0;
        for (int k = 0; k < (1 << tier->width) - 1; k++)
            coded += p[(uint8_t)(base - tier->d[k])];
        cost.bits[t] = tier->width * cost.reach[t];
        cost.reach[t + 1] = fmax(0, cost.reach[t] - coded);
        cost.total += cost.bits[t];
    }
    cost.bits[tiers->ntiers] = 8 * cost.reach[tiers->ntiers];
    cost.total += cost.bits[tiers->ntiers];
    *out = cost;
    return ZIPCCL_OK;
}

unsigned zipccl_program_bits(enum zipccl_program_id program, uint8_t base, uint8_t e)
{
    const struct zipccl_tier_program *tiers = &zipccl_programs[program];
    unsigned bits = 0;
    for (int t = 0; t < tiers->ntiers; t++) {
        bits += tiers->tier[t].width;
        for (int k = 0; k < (1 << tiers->tier[t].width) - 1; k++)
            if ((uint8_t)(base - tiers->tier[t].d[k]) == e)
                return bits;
    }
    return bits + 8;
}

/* A cumulant generating function and its two derivatives at one point. */
struct cumulant {
    double k, k1, k2;
};

static struct cumulant times(double n, struct cumulant a)
{
    return (struct cumulant){n * a.k, n * a.k1, n * a.k2};
}

static struct cumulant plus(struct cumulant a, struct cumulant b)
{
    return (struct cumulant){a.k + b.k, a.k1 + b.k1, a.k2 + b.k2};
}

/* A mixture being summed up: 'top' keeps the exponentials within range. */
struct mixture {
    double top, weight, first, second;
};

static void mixture_add(struct mixture *mix, double weight, struct cumulant a)
{
    if (weight <= 0)
        return;
    if (a.k > mix->top) {
        double scale = exp(mix->top - a.k);
        mix->weight *= scale;
        mix->first *= scale;
        mix->second *= scale;
        mix->top = a.k;
    }
    double w = weight * exp(a.k - mix->top);
    mix->weight += w;
    mix->first += w * a.k1;
    mix->second += w * (a.k2 + a.k1 * a.k1);
}

static struct cumulant mixture_end(const struct mixture *mix)
{
    double mean = mix->first / mix->weight;
    return (struct cumulant){mix->top + log(mix->weight), mean,
                             fmax(0, mix->second / mix->weight - mean * mean)};
}

static const struct mixture mixture_none = {.top = -HUGE_VAL};

/* Bytes that one element puts into the variable region. */
static struct cumulant element_cumulant(const double *p, enum zipccl_program_id program,
                                        uint8_t base, double t)
{
    const struct zipccl_tier_program *tiers = &zipccl_programs[program];
    struct zipccl_program_cost cost = {.reach = {1}};
    (void)zipccl_program_cost(p, program, base, &cost);
    struct mixture mix = mixture_none;
    double bytes = 0;
    for (int i = 0; i < tiers->ntiers; i++) {
        mixture_add(&mix, cost.reach[i] - cost.reach[i + 1],
                    (struct cumulant){bytes * t, bytes, 0});
        bytes += i + 1 < tiers->ntiers ? tiers->tier[i + 1].width / 8.0 : 1;
    }
    mixture_add(&mix, cost.reach[tiers->ntiers], (struct cumulant){bytes * t, bytes, 0});
    return mixture_end(&mix);
}

/* Planes end on whole bytes: of 8 remainders, the mean loss is 3.5 bits a plane. */
static double padding(enum zipccl_program_id program)
{
    const struct zipccl_tier_program *tiers = &zipccl_programs[program];
    double bytes = 0;
    for (int t = 1; t < tiers->ntiers; t++)
        bytes += tiers->tier[t].width * 3.5 / 8;
    return bytes;
}

/* Variable bytes of a superblock of 'm' elements for one choice. */
static struct cumulant choice_cumulant(const double *p, const struct zipccl_choice *choice,
                                       size_t m, double t)
{
    if (zipccl_programs[choice->program].ntiers == 0) {
        double raw = (double)zipccl_raw_variable(m);
        return (struct cumulant){raw * t, raw, 0};
    }
    double pad = padding(choice->program);
    struct cumulant sum = {pad * t, pad, 0};
    size_t whole = m / ZIPCCL_SUBBLOCK, rest = m % ZIPCCL_SUBBLOCK;
    struct mixture one = mixture_none, last = mixture_none;
    for (size_t v = 0; v < choice->nbases; v++) {
        struct cumulant e = element_cumulant(p, choice->program, choice->base[v].base, t);
        mixture_add(&one, choice->base[v].weight, times(ZIPCCL_SUBBLOCK, e));
        mixture_add(&last, choice->base[v].weight, times((double)rest, e));
    }
    if (whole)
        sum = plus(sum, times((double)whole, mixture_end(&one)));
    if (rest)
        sum = plus(sum, mixture_end(&last));
    return sum;
}

/* What would not shrink is stored raw. */
static void settle_raw(const double *p, struct zipccl_choices *c)
{
    for (size_t i = 0; i < c->nchoices; i++)
        if (choice_cumulant(p, &c->choice[i], c->m, 0).k1 >= (double)zipccl_raw_variable(c->m))
            c->choice[i].program = ZIPCCL_PROGRAM_RAW;
}

static struct cumulant choices_cumulant(const double *p, const struct zipccl_choices *c, double t)
{
    struct mixture mix = mixture_none;
    for (size_t i = 0; i < c->nchoices; i++)
        mixture_add(&mix, c->choice[i].weight, choice_cumulant(p, &c->choice[i], c->m, t));
    return mixture_end(&mix);
}

static struct cumulant message_cumulant(const struct zipccl_size_model *model, double t)
{
    double fixed = (double)model->fixed;
    struct cumulant sum = {fixed * t, fixed, 0};
    if (model->full.m)
        sum = plus(sum, times((double)(model->n / ZIPCCL_SUPERBLOCK),
                              choices_cumulant(model->p, &model->full, t)));
    if (model->last.m)
        sum = plus(sum, choices_cumulant(model->p, &model->last, t));
    return sum;
}

zipccl_status zipccl_size_from_choices(const double *p, size_t n, const struct zipccl_choices *full,
                                       const struct zipccl_choices *last,
                                       struct zipccl_size_model *out)
{
    struct zipccl_layout at;
    if (!zipccl_layout_of(n, &at) || (n >= ZIPCCL_SUPERBLOCK && !full) ||
        (n % ZIPCCL_SUPERBLOCK && (!last || last->m != n % ZIPCCL_SUPERBLOCK)))
        return ZIPCCL_ERR_ARG;
    struct zipccl_size_model model = {
        .n = n, .fixed = at.variable, .bound = zipccl_bound(ZIPCCL_BFLOAT16, n)};
    memcpy(model.p, p, sizeof model.p);
    if (n >= ZIPCCL_SUPERBLOCK)
        model.full = *full;
    if (n % ZIPCCL_SUPERBLOCK)
        model.last = *last;
    settle_raw(p, &model.full);
    settle_raw(p, &model.last);
    struct cumulant sum = message_cumulant(&model, 0);
    bool coded = sum.k1 < (double)model.bound;
    model.mean = coded ? sum.k1 : (double)model.bound;
    model.sd = coded ? sqrt(sum.k2) : 0;
    *out = model;
    return ZIPCCL_OK;
}

zipccl_status zipccl_size_expect(const double *p, size_t n, struct zipccl_size_model *out)
{
    struct zipccl_choices full, last;
    size_t rest = n % ZIPCCL_SUPERBLOCK;
    if (n >= ZIPCCL_SUPERBLOCK)
        ZIPCCL_TRY(zipccl_choices_expect(p, ZIPCCL_SUPERBLOCK, &full));
    if (rest)
        ZIPCCL_TRY(zipccl_choices_expect(p, rest, &last));
    return zipccl_size_from_choices(p, n, n >= ZIPCCL_SUPERBLOCK ? &full : NULL,
                                    rest ? &last : NULL, out);
}

/* Tail at the point whose tilt is 't': P(size > K'(t)). */
static double tail_at(const struct zipccl_size_model *model, double t)
{
    struct cumulant c = message_cumulant(model, t);
    double w = copysign(sqrt(fmax(0, 2 * (t * c.k1 - c.k))), t), u = t * sqrt(c.k2);
    /* Both terms grow without bound where they cancel, at the mean. */
    if (fabs(w) < 1e-3 || fabs(u) < 1e-3)
        return gsl_cdf_ugaussian_Q(u);
    return gsl_cdf_ugaussian_Q(w) + gsl_ran_ugaussian_pdf(w) * (1 / u - 1 / w);
}

struct search {
    const struct zipccl_size_model *model;
    double target;
};

static double size_above(double t, void *params)
{
    const struct search *search = params;
    return message_cumulant(search->model, t).k1 - search->target;
}

static double tail_above(double t, void *params)
{
    const struct search *search = params;
    return log(fmax(1e-300, tail_at(search->model, t))) - search->target;
}

/* Root of a monotone function between 'low' and 'high'; the nearer end if it has none there. */
static double solve(double (*f)(double, void *), struct search *search, double low, double high)
{
    double at_low = f(low, search), at_high = f(high, search);
    if (at_low * at_high >= 0)
        return fabs(at_low) < fabs(at_high) ? low : high;
    gsl_root_fsolver *solver = gsl_root_fsolver_alloc(gsl_root_fsolver_brent);
    if (!solver)
        return low;
    gsl_function function = {.function = f, .params = search};
    gsl_root_fsolver_set(solver, &function, low, high);
    for (int i = 0; i < 100; i++) {
        gsl_root_fsolver_iterate(solver);
        if (gsl_root_test_interval(gsl_root_fsolver_x_lower(solver),
                                   gsl_root_fsolver_x_upper(solver), 0, 1e-9) == GSL_SUCCESS)
            break;
    }
    double root = gsl_root_fsolver_root(solver);
    gsl_root_fsolver_free(solver);
    return root;
}

/* Tilts that reach about 40 standard deviations; bytes of one element are at most 2. */
static double widest_tilt(const struct zipccl_size_model *model)
{
    return fmin(40 / model->sd, 8);
}

double zipccl_size_tail(const struct zipccl_size_model *model, double nbytes)
{
    if (model->sd <= 0 || nbytes >= (double)model->bound)
        return nbytes < model->mean ? 1 : 0;
    struct search search = {.model = model, .target = nbytes};
    double most = widest_tilt(model);
    return tail_at(model, solve(size_above, &search, -most, most));
}

double zipccl_size_quantile(const struct zipccl_size_model *model, double tail)
{
    if (model->sd <= 0)
        return model->mean;
    struct search search = {.model = model, .target = log(tail)};
    double t = solve(tail_above, &search, 0, widest_tilt(model));
    return fmin(message_cumulant(model, t).k1, (double)model->bound);
}
