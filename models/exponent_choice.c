/*
 * exponent_choice.c - distribution of what the encoder chooses
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/exponent_probe.h"
#include "models/exponent_size.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define PULL ZIPCCL_PULL
/* Most exponents that are sampled of a sub-block, and the lattice of their sum. */
#define MOST_SAMPLED (ZIPCCL_SAMPLES * ZIPCCL_LOOKS)
#define LATTICE      (2 * PULL * MOST_SAMPLED + 1)
/* The common location is looked at this far to either side, in standard deviations ... */
#define REACH 8
/* ... at points this far apart, or 1/256 octave, whichever is more. */
#define STEP 0.125
/* Sub-blocks closer to the common location than this, in 1/256 octave, never have their own. */
#define LEAST_OWN 64
/* Deviations of single sub-blocks are looked at in bins this wide, in 1/256 octave. */
#define BIN 6
/* Searches started by one deviating sub-block less often than this are left out. */
#define SELDOM 0.02
/* A search moves the base of a sub-block where that gains so many bits (core/codec/choose.c). */
#define CHANCE_BITS 8.0
/* Octaves that a search may go astray. */
#define ASTRAY 2

/* Choices being collected, with what their cause was. */
struct collection {
    struct zipccl_probe *probe;
    const struct zipccl_pulled *pulled;
    const double *p;
    struct zipccl_choices *out;
    bool searched[ZIPCCL_MAX_CHOICES];
    double search[ZIPCCL_MAX_CHOICES]; /* mean probability of the searches */
    double sums[LATTICE];              /* distribution of a sub-block's sum */
    size_t nvalid;                     /* exponents in that sum */
};

/* Distribution of the sum of 'count' pulled exponents, each counted from 'lowest'. */
static void convolve(const struct zipccl_pulled *pulled, size_t count, double *sums)
{
    memset(sums, 0, LATTICE * sizeof *sums);
    sums[0] = 1;
    for (size_t k = 0; k < count; k++) {
        for (size_t s = 2 * PULL * (k + 1) + 1; s-- > 0;) {
            double sum = 0;
            for (size_t i = 0; i <= 2 * PULL && i <= s; i++)
                sum += sums[s - i] * pulled->p[i];
            sums[s] = sum;
        }
    }
}

/* The choice with this cause, program and base, added if it is new; NULL if there is no room. */
static struct zipccl_choice *choice_of(struct collection *c, bool searched,
                                       const struct zipccl_entry *entry)
{
    /* Sub-block 0 deviates only where it is asked to. */
    uint8_t base = entry->base[0];
    struct zipccl_choices *out = c->out;
    for (size_t i = 0; i < out->nchoices; i++)
        if (out->choice[i].program == entry->program && out->choice[i].base[0].base == base &&
            c->searched[i] == searched)
            return &out->choice[i];
    if (out->nchoices == ZIPCCL_MAX_CHOICES)
        return NULL;
    c->searched[out->nchoices] = searched;
    struct zipccl_choice *choice = &out->choice[out->nchoices++];
    *choice = (struct zipccl_choice){.program = entry->program, .nbases = 1};
    choice->base[0].base = base;
    return choice;
}

static void base_add(struct zipccl_choice *choice, uint8_t base, double weight)
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
    choice->base[v].weight += weight;
}

/* Add the bases of sub-blocks whose own location deviates from the common one. */
static void deviate(const struct collection *c, double common, double weight,
                    struct zipccl_choice *choice)
{
    double nsub = (double)((c->out->m + ZIPCCL_SUBBLOCK - 1) / ZIPCCL_SUBBLOCK), rest = 1;
    /* Part of a deviation is one of the common mean itself. */
    double unit = 256 / (double)c->nvalid * sqrt(1 - 1 / nsub);
    double centre = (c->pulled->mean - c->pulled->lowest) * (double)c->nvalid;
    size_t bin = (size_t)fmax(1, BIN / unit);
    for (size_t s = 0; s < LATTICE; s += bin) {
        double mass = 0, moment = 0;
        for (size_t k = s; k < s + bin && k < LATTICE; k++) {
            double away = unit * ((double)k - centre);
            mass += fabs(away) < LEAST_OWN ? 0 : c->sums[k];
            moment += fabs(away) < LEAST_OWN ? 0 : away * c->sums[k];
        }
        if (mass < ZIPCCL_RARE)
            continue;
        struct zipccl_answer answer;
        zipccl_probe_ask(c->probe, common, moment / mass, SELDOM, &answer);
        double stays = mass * (1 - answer.search);
        base_add(choice, answer.quiet.base[0], weight * stays);
        rest -= stays;
        /* A search that changes the program too leaves nothing to deviate from. */
        if (answer.search > 0 && answer.searched.program == choice->program) {
            base_add(choice, answer.searched.base[0], weight * mass * answer.search);
            rest -= mass * answer.search;
        }
    }
    choice->base[0].weight += weight * rest;
}

/* Add what is chosen where the common location deviates by 'common'. */
static void collect(struct collection *c, double common, double weight)
{
    struct zipccl_answer answer;
    zipccl_probe_ask(c->probe, common, 0, ZIPCCL_RARE, &answer);
    double by_search = weight * answer.search, stays = weight - by_search;
    struct zipccl_choice *choice;
    if (by_search > 0 && (choice = choice_of(c, true, &answer.searched)) != NULL) {
        double *search = &c->search[choice - c->out->choice];
        choice->weight += by_search;
        choice->base[0].weight += by_search;
        *search += by_search * (answer.search - *search) / choice->weight;
    }
    if (stays > 0 && (choice = choice_of(c, false, &answer.quiet)) != NULL) {
        choice->weight += stays;
        /* Where searches are the rule, sub-blocks follow their own samples anyway. */
        if (c->out->m > ZIPCCL_SUBBLOCK && c->nvalid > 0 && stays > by_search)
            deviate(c, common, stays, choice);
        else
            choice->base[0].weight += stays;
    }
}

/* Probability that the mean of 'bits' over 'n' sampled exponents exceeds 'limit'. */
static double exceeds(const double *p, const double *bits, double n, double limit)
{
    double mean = 0, square = 0;
    for (int e = 0; e < ZIPCCL_NUM_EXPONENTS; e++) {
        mean += p[e] * bits[e];
        square += p[e] * bits[e] * bits[e];
    }
    double sd = sqrt(fmax(0, square - mean * mean) / n);
    return sd > 0 ? gsl_cdf_gaussian_Q(limit - mean, sd) : mean > limit;
}

/*
 * In a search, the sample of a sub-block may make a worse base look better: by a difference that
 * deviates by as much as the base is worse and what it must gain.
 */
static void mislead(const double *p, size_t m, double search, struct zipccl_choice *choice)
{
    uint8_t base = choice->base[0].base;
    double bits[ZIPCCL_NUM_EXPONENTS], gain[ZIPCCL_NUM_EXPONENTS], moved = 0;
    double n = fmin(MOST_SAMPLED, (double)m);
    for (int e = 0; e < ZIPCCL_NUM_EXPONENTS; e++)
        bits[e] = zipccl_program_bits(choice->program, base, (uint8_t)e);
    for (int octave = -ASTRAY; octave <= ASTRAY && moved < 1; octave++) {
        if (octave == 0 || base + octave < 0 || base + octave > 255)
            continue;
        uint8_t other = (uint8_t)(base + octave);
        for (int e = 0; e < ZIPCCL_NUM_EXPONENTS; e++)
            gain[e] = bits[e] - zipccl_program_bits(choice->program, other, (uint8_t)e);
        double weight = exceeds(p, gain, n, CHANCE_BITS / n);
        /* With few sub-blocks the same sample starts the search and misleads it. */
        if (m <= ZIPCCL_LOOKS * ZIPCCL_SUBBLOCK)
            weight = fmin(1, weight / search);
        weight = fmin(weight, 1 - moved) / (1 - moved);
        if (weight <= 0)
            continue;
        for (size_t v = 0; v < choice->nbases; v++)
            choice->base[v].weight *= 1 - weight;
        base_add(choice, other, weight);
        moved += weight * (1 - moved);
    }
}

static void normalise(struct zipccl_choices *out)
{
    double sum = 0;
    for (size_t i = 0; i < out->nchoices; i++)
        sum += out->choice[i].weight;
    for (size_t i = 0; i < out->nchoices; i++) {
        struct zipccl_choice *choice = &out->choice[i];
        double bases = 0;
        for (size_t v = 0; v < choice->nbases; v++)
            bases += choice->base[v].weight;
        for (size_t v = 0; v < choice->nbases; v++)
            choice->base[v].weight /= bases;
        choice->weight /= sum;
    }
}

static void collect_all(struct collection *c)
{
    struct zipccl_answer answer;
    zipccl_probe_ask(c->probe, 0, 0, ZIPCCL_RARE, &answer);
    /* Where searches are the rule, their closer looks place the bases. */
    const struct zipccl_sampled *sampled = answer.search > 0.5 ? &answer.looked : &answer.sampled;
    c->nvalid = answer.sampled.nvalid_first;
    convolve(c->pulled, c->nvalid, c->sums);
    double sd = 0, step = 1;
    if (sampled->nvalid > 0) {
        sd = 256 * sqrt(c->pulled->variance / (double)sampled->nvalid);
        step = fmax(1, STEP * sd);
    }
    int steps = (int)ceil(REACH * sd / step);
    for (int k = -steps; k <= steps; k++) {
        double away = -fabs(k * step), weight = 1;
        if (sd > 0)
            weight =
                gsl_cdf_gaussian_P(away + step / 2, sd) - gsl_cdf_gaussian_P(away - step / 2, sd);
        collect(c, k * step, weight);
    }
    normalise(c->out);
    for (size_t i = 0; i < c->out->nchoices; i++)
        if (c->searched[i] && zipccl_programs[c->out->choice[i].program].ntiers > 0)
            mislead(c->p, c->out->m, c->search[i], &c->out->choice[i]);
    normalise(c->out);
}

zipccl_status zipccl_choices_expect(const double *p, size_t m, struct zipccl_choices *out)
{
    if (m == 0 || m > ZIPCCL_SUPERBLOCK)
        return ZIPCCL_ERR_ARG;
    struct collection *c = calloc(1, sizeof *c);
    struct zipccl_probe *probe = zipccl_probe_create(p, m);
    zipccl_status status = ZIPCCL_ERR_NOMEM;
    if (c && probe) {
        *out = (struct zipccl_choices){.m = m};
        c->probe = probe;
        c->pulled = zipccl_probe_pulled(probe);
        c->p = p;
        c->out = out;
        collect_all(c);
        status = ZIPCCL_OK;
    }
    zipccl_probe_destroy(probe);
    free(c);
    return status;
}
