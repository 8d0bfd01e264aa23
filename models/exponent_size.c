/*
 * exponent_size.c - code lengths, and mean and variance of the size of a message
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/exponent_size.h"

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

void zipccl_code_classes_of(const double *p, enum zipccl_program_id program, uint8_t base,
                            struct zipccl_code_classes *out)
{
    const struct zipccl_tier_program *tiers = &zipccl_programs[program];
    struct zipccl_program_cost cost = {.reach = {1}};
    (void)zipccl_program_cost(p, program, base, &cost);
    out->n = (size_t)tiers->ntiers + 1;
    double bytes = 0;
    for (int t = 0; t <= tiers->ntiers; t++) {
        bool raw = t == tiers->ntiers;
        if (t > 0)
            bytes += raw ? 1 : tiers->tier[t].width / 8.0;
        out->bytes[t] = bytes;
        out->share[t] = cost.reach[t] - (raw ? 0 : cost.reach[t + 1]);
    }
}

/* Planes end on whole bytes: of 8 remainders, the mean loss is 3.5 bits a plane. */
double zipccl_program_padding(enum zipccl_program_id program)
{
    const struct zipccl_tier_program *tiers = &zipccl_programs[program];
    double bytes = 0;
    for (int t = 1; t < tiers->ntiers; t++)
        bytes += tiers->tier[t].width * 3.5 / 8;
    return bytes;
}

/* Mean and variance of bytes. */
struct moments {
    double mean, variance;
};

static struct moments sum_of(struct moments a, double n, struct moments b)
{
    return (struct moments){a.mean + n * b.mean, a.variance + n * b.variance};
}

static struct moments mixture_of(const double *weights, const struct moments *a, size_t n)
{
    struct moments mix = {0, 0};
    for (size_t i = 0; i < n; i++)
        mix.mean += weights[i] * a[i].mean;
    for (size_t i = 0; i < n; i++) {
        double away = a[i].mean - mix.mean;
        mix.variance += weights[i] * (a[i].variance + away * away);
    }
    return mix;
}

/* Bytes that 'm' elements put into the variable region. */
static struct moments elements_moments(const double *p, enum zipccl_program_id program,
                                       uint8_t base, size_t m)
{
    struct zipccl_code_classes classes;
    zipccl_code_classes_of(p, program, base, &classes);
    struct moments constant[ZIPCCL_MAX_TIERS + 1];
    for (size_t i = 0; i < classes.n; i++)
        constant[i] = (struct moments){classes.bytes[i], 0};
    struct moments one = mixture_of(classes.share, constant, classes.n);
    return (struct moments){(double)m * one.mean, (double)m * one.variance};
}

static struct moments subblock_moments(const double *p, const struct zipccl_choice *choice,
                                       size_t m)
{
    struct moments by_base[ZIPCCL_MAX_BASES];
    double weights[ZIPCCL_MAX_BASES];
    for (size_t v = 0; v < choice->nbases; v++) {
        by_base[v] = elements_moments(p, choice->program, choice->base[v].base, m);
        weights[v] = choice->base[v].weight;
    }
    return mixture_of(weights, by_base, choice->nbases);
}

/* Variable bytes of a superblock of 'm' elements. */
static struct moments choice_moments(const double *p, const struct zipccl_choice *choice, size_t m)
{
    if (zipccl_programs[choice->program].ntiers == 0)
        return (struct moments){(double)zipccl_raw_variable(m), 0};
    struct moments sum = {zipccl_program_padding(choice->program), 0};
    sum = sum_of(sum, (double)(m / ZIPCCL_SUBBLOCK), subblock_moments(p, choice, ZIPCCL_SUBBLOCK));
    return sum_of(sum, 1, subblock_moments(p, choice, m % ZIPCCL_SUBBLOCK));
}

static struct moments choices_moments(const double *p, const struct zipccl_choices *c)
{
    struct moments by_choice[ZIPCCL_MAX_CHOICES];
    double weights[ZIPCCL_MAX_CHOICES];
    for (size_t i = 0; i < c->nchoices; i++) {
        by_choice[i] = choice_moments(p, &c->choice[i], c->m);
        weights[i] = c->choice[i].weight;
    }
    return mixture_of(weights, by_choice, c->nchoices);
}

/* What would not shrink is stored raw. */
static void settle_raw(const double *p, struct zipccl_choices *c)
{
    for (size_t i = 0; i < c->nchoices; i++)
        if (choice_moments(p, &c->choice[i], c->m).mean >= (double)zipccl_raw_variable(c->m))
            c->choice[i].program = ZIPCCL_PROGRAM_RAW;
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
    struct moments sum = {(double)model.fixed, 0};
    sum = sum_of(sum, (double)(n / ZIPCCL_SUPERBLOCK), choices_moments(p, &model.full));
    sum = sum_of(sum, 1, choices_moments(p, &model.last));
    bool coded = sum.mean < (double)model.bound;
    model.mean = coded ? sum.mean : (double)model.bound;
    model.sd = coded ? sqrt(sum.variance) : 0;
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
