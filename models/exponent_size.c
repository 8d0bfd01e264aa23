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

void zipccl_exponent_nonzero(const double *p, double *rest)
{
    for (int e = 0; e < ZIPCCL_NUM_EXPONENTS; e++)
        rest[e] = e > 0 ? p[e] / (1 - p[0]) : 0;
}

double zipccl_bitmap_expect(const double *p, size_t m)
{
    double ngroups = (double)zipccl_groups(m);
    return 8 * ((double)zipccl_groups(zipccl_groups(m)) + ngroups * (1 - pow(p[0], ZIPCCL_GROUP)));
}

void zipccl_code_classes_of(const double *p, const struct zipccl_choice *choice, uint8_t base,
                            struct zipccl_code_classes *out)
{
    const struct zipccl_tier_program *tiers = NULL;
    double rest[ZIPCCL_NUM_EXPONENTS], left = 1, bytes = 0;
    *out = (struct zipccl_code_classes){0};
    if (choice->program < ZIPCCL_NUM_PROGRAMS)
        tiers = &zipccl_programs[choice->program];
    if (choice->zeros) {
        zipccl_exponent_nonzero(p, rest);
        left = 1 - p[0];
        out->share[out->n++] = p[0]; /* costs a bit of the bitmap */
        bytes = !tiers || tiers->ntiers == 0 ? 2 : 1 + tiers->tier[0].width / 8.0;
    }
    if (!tiers || tiers->ntiers == 0) {
        out->share[out->n] = left;
        out->bytes[out->n++] = bytes;
        return;
    }
    struct zipccl_program_cost cost = {.reach = {1}};
    (void)zipccl_program_cost(choice->zeros ? rest : p, choice->program, base, &cost);
    for (int t = 0; t <= tiers->ntiers; t++) {
        bool raw = t == tiers->ntiers;
        if (t > 0)
            bytes += raw ? 1 : tiers->tier[t].width / 8.0;
        out->share[out->n] = left * (cost.reach[t] - (raw ? 0 : cost.reach[t + 1]));
        out->bytes[out->n++] = bytes;
    }
}

/* Planes end on whole bytes: of 8 remainders, the mean loss is 3.5 bits a plane. */
static double padding(const struct zipccl_tier_program *tiers)
{
    double bytes = 0;
    for (int t = 1; t < tiers->ntiers; t++)
        bytes += tiers->tier[t].width * 3.5 / 8;
    return bytes;
}

double zipccl_choice_constant(const double *p, const struct zipccl_choice *choice, size_t m)
{
    const struct zipccl_fields *fields = zipccl_fields_of(ZIPCCL_BFLOAT16);
    if (choice->program == ZIPCCL_PROGRAM_CONSTANT)
        return 0;
    const struct zipccl_tier_program *tiers = &zipccl_programs[choice->program];
    size_t raw = zipccl_raw_share(fields, m);
    /* Shares end on 64 bytes: half of that is lost on average. */
    if (choice->zeros)
        return zipccl_bitmap_expect(p, m) + padding(tiers) + 32;
    if (tiers->ntiers == 0)
        return (double)(zipccl_align64(raw) + m * fields->size - raw);
    int width = tiers->tier[0].width;
    size_t third = width == 3 ? 8 * zipccl_groups(m) : 0;
    return (double)(zipccl_align64(zipccl_share_of(fields, m, 0, width).end) + third) +
           padding(tiers);
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

/* What 'm' elements add. */
static struct moments elements_moments(const double *p, const struct zipccl_choice *choice,
                                       uint8_t base, size_t m)
{
    struct zipccl_code_classes classes;
    zipccl_code_classes_of(p, choice, base, &classes);
    struct moments constant[sizeof classes.bytes / sizeof *classes.bytes];
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
        by_base[v] = elements_moments(p, choice, choice->base[v].base, m);
        weights[v] = choice->base[v].weight;
    }
    return mixture_of(weights, by_base, choice->nbases);
}

/* Bytes of a superblock of 'm' elements. */
static struct moments choice_moments(const double *p, const struct zipccl_choice *choice, size_t m)
{
    struct moments sum = {zipccl_choice_constant(p, choice, m), 0};
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
    for (size_t i = 0; i < c->nchoices; i++) {
        struct zipccl_choice raw = c->choice[i];
        raw.program = ZIPCCL_PROGRAM_RAW;
        if (c->choice[i].program != ZIPCCL_PROGRAM_CONSTANT &&
            choice_moments(p, &c->choice[i], c->m).mean >= choice_moments(p, &raw, c->m).mean)
            c->choice[i].program = ZIPCCL_PROGRAM_RAW;
    }
}

zipccl_status zipccl_size_from_choices(const double *p, size_t n, const struct zipccl_choices *full,
                                       const struct zipccl_choices *last,
                                       struct zipccl_size_model *out)
{
    struct zipccl_layout at;
    if (!zipccl_layout_of(zipccl_fields_of(ZIPCCL_BFLOAT16), n, &at) ||
        (n >= ZIPCCL_SUPERBLOCK && !full) ||
        (n % ZIPCCL_SUPERBLOCK && (!last || last->m != n % ZIPCCL_SUPERBLOCK)))
        return ZIPCCL_ERR_ARG;
    struct zipccl_size_model model = {
        .n = n, .fixed = at.fixed, .bound = zipccl_bound(ZIPCCL_BFLOAT16, n)};
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
        ZIPCCL_TRY(zipccl_choices_expect(p, ZIPCCL_SUPERBLOCK, ZIPCCL_FEW_DRAWS, &full));
    if (rest)
        /* Little is chosen for few elements, and files have many such tensors. */
        ZIPCCL_TRY(zipccl_choices_expect(
            p, rest, rest < 4096 ? ZIPCCL_FEW_DRAWS / 4 : ZIPCCL_FEW_DRAWS, &last));
    return zipccl_size_from_choices(p, n, n >= ZIPCCL_SUPERBLOCK ? &full : NULL,
                                    rest ? &last : NULL, out);
}
