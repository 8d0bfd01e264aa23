/*
 * exponent_choice.c - distribution of what the encoder chooses
 *
 * The encoder itself is asked, for samples drawn at random: thresholds, searches and what chance
 * makes of them are the codec's own.  The seed is fixed, so the same law gives the same numbers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/superblock.h"
#include "models/exponent_size.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SEED 20260101
/* Elements are bf16: the exponent of element 'e' of the law, and no other bit set. */
#define ELEMENT(e) ((uint16_t)((e) << 7))

/* Elements that come into being as the encoder looks at them. */
struct drawing {
    struct zipccl_fields fields; /* first: rows are handed no more than this */
    gsl_rng *random;
    gsl_ran_discrete_t *law;
    struct zipccl_scratch *scratch;
    bool zeros; /* a bitmap has taken them out */
    size_t m;
    uint16_t src[ZIPCCL_SUPERBLOCK];
};

static void draw(struct drawing *d, size_t first, size_t n)
{
    for (size_t j = first; j < first + n; j++)
        d->src[j] = ELEMENT(gsl_ran_discrete(d->random, d->law));
}

/* Looks at a full sub-block take different elements; those at a short one overlap. */
static void draw_and_sample(const struct zipccl_fields *fields, const uint8_t *src, size_t i,
                            size_t m, size_t look, struct zipccl_sample *sample)
{
    struct drawing *d = (struct drawing *)(uintptr_t)fields;
    size_t first = i * ZIPCCL_SUBBLOCK;
    for (size_t run = 0; run < 2 && m == ZIPCCL_SUBBLOCK; run++)
        draw(d, first + zipccl_sample_start(i, m, look, run), ZIPCCL_SAMPLES / 2);
    if (m < ZIPCCL_SUBBLOCK && look == 0)
        draw(d, first, m);
    zipccl_row_scalar.sample(fields, src, i, m, look, sample);
}

static struct zipccl_choice *choice_of(struct zipccl_choices *out, enum zipccl_program_id program,
                                       bool zeros, uint8_t base)
{
    for (size_t i = 0; i < out->nchoices; i++)
        if (out->choice[i].program == program && out->choice[i].zeros == zeros &&
            out->choice[i].base[0].base == base)
            return &out->choice[i];
    if (out->nchoices == ZIPCCL_MAX_CHOICES)
        return NULL;
    struct zipccl_choice *choice = &out->choice[out->nchoices++];
    *choice = (struct zipccl_choice){.program = program, .zeros = zeros, .nbases = 1};
    choice->base[0].base = base;
    return choice;
}

/* Sub-blocks that are counted: a short one counts only where there is no other. */
static size_t counted(size_t m)
{
    return m < ZIPCCL_SUBBLOCK ? 1 : m / ZIPCCL_SUBBLOCK;
}

/* The base that most of 'nsub' sub-blocks have. */
static uint8_t common_base(const struct zipccl_entry *entry, size_t nsub)
{
    uint8_t best = entry->base[0];
    size_t most = 0;
    for (size_t i = 0; i < nsub; i++) {
        size_t same = 0;
        for (size_t k = 0; k < nsub; k++)
            same += entry->base[k] == entry->base[i];
        if (same > most) {
            most = same;
            best = entry->base[i];
        }
    }
    return best;
}

static void add_base(struct zipccl_choice *choice, uint8_t base)
{
    size_t v = 0;
    while (v < choice->nbases && choice->base[v].base != base)
        v++;
    if (v == ZIPCCL_MAX_BASES)
        v = 0;
    if (v == choice->nbases) {
        choice->base[v].base = base;
        choice->base[v].weight = 0;
        choice->nbases++;
    }
    choice->base[v].weight++;
}

static void add(const struct drawing *d, const struct zipccl_entry *entry,
                struct zipccl_choices *out)
{
    size_t nsub = counted(d->m);
    struct zipccl_choice *choice =
        choice_of(out, (enum zipccl_program_id)entry->program, d->zeros, common_base(entry, nsub));
    if (!choice)
        return; /* rarer than all that are listed */
    choice->weight++;
    for (size_t i = 0; i < nsub; i++)
        add_base(choice, entry->base[i]);
}

/* Scale the weights of choices 'first' to the last to a sum of 'total', those of their bases to 1. */
static void normalise(struct zipccl_choices *out, size_t first, double total)
{
    double sum = 0;
    for (size_t i = first; i < out->nchoices; i++)
        sum += out->choice[i].weight;
    for (size_t i = first; i < out->nchoices; i++) {
        struct zipccl_choice *choice = &out->choice[i];
        double bases = 0;
        for (size_t v = 0; v < choice->nbases; v++)
            bases += choice->base[v].weight;
        for (size_t v = 0; v < choice->nbases; v++)
            choice->base[v].weight /= bases;
        choice->weight *= total / sum;
    }
}

/* Ask 'draws' times; returns how often the answer was to look for zeros. */
static size_t ask(struct drawing *d, bool look_for_zeros, size_t draws, struct zipccl_choices *out)
{
    struct zipccl_row row = zipccl_row_scalar;
    struct zipccl_coder coder = {.row = &row, .fields = &d->fields, .scratch = d->scratch};
    size_t nzeros = 0;
    row.sample = draw_and_sample;
    for (size_t k = 0; k < draws; k++) {
        struct zipccl_entry entry = {0};
        if (zipccl_superblock_choose(&coder, (const uint8_t *)d->src, d->m, look_for_zeros, &entry))
            nzeros++;
        else
            add(d, &entry, out);
    }
    return nzeros;
}

static zipccl_status start(struct drawing *d, const double *p, size_t m)
{
    d->m = m;
    gsl_ran_discrete_free(d->law);
    d->law = gsl_ran_discrete_preproc(ZIPCCL_NUM_EXPONENTS, p);
    return d->law ? ZIPCCL_OK : ZIPCCL_ERR_NOMEM;
}

/* Where zeros are at the limit, samples disagree on whether to take them out. */
static zipccl_status collect(struct drawing *d, const double *p, size_t m, size_t draws,
                             struct zipccl_choices *out)
{
    double rest[ZIPCCL_NUM_EXPONENTS], share = 0;
    bool pays = 2 * p[0] * (double)m > zipccl_bitmap_expect(p, m);
    ZIPCCL_TRY(start(d, p, m));
    if (p[0] < 1)
        share = (double)ask(d, pays, draws, out) / (double)draws;
    normalise(out, 0, 1 - share);
    size_t nrest = (size_t)lround((1 - p[0]) * (double)m), first = out->nchoices;
    if (nrest == 0 || p[0] >= 1) {
        out->nchoices = 1;
        out->choice[0] = (struct zipccl_choice){
            .weight = 1, .program = ZIPCCL_PROGRAM_CONSTANT, .nbases = 1, .base = {{1, 0}}};
        return ZIPCCL_OK;
    }
    if (share == 0)
        return ZIPCCL_OK;
    zipccl_exponent_nonzero(p, rest);
    ZIPCCL_TRY(start(d, rest, nrest));
    d->zeros = true;
    ask(d, false, draws, out);
    normalise(out, first, share);
    return ZIPCCL_OK;
}

zipccl_status zipccl_choices_expect(const double *p, size_t m, size_t draws,
                                    struct zipccl_choices *out)
{
    if (m == 0 || m > ZIPCCL_SUPERBLOCK || draws == 0)
        return ZIPCCL_ERR_ARG;
    *out = (struct zipccl_choices){.m = m};
    zipccl_status status = ZIPCCL_ERR_NOMEM;
    struct drawing *d = calloc(1, sizeof *d);
    if (!d)
        return status;
    d->fields = *zipccl_fields_of(ZIPCCL_BFLOAT16);
    d->scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    d->random = gsl_rng_alloc(gsl_rng_taus2);
    if (d->scratch && d->random) {
        gsl_rng_set(d->random, SEED);
        status = collect(d, p, m, draws, out);
    }
    gsl_ran_discrete_free(d->law);
    gsl_rng_free(d->random);
    free(d->scratch);
    free(d);
    return status;
}
