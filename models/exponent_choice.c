/*
 * exponent_choice.c - what the encoder will choose, asked of the encoder itself
 *
 * zipccl_choose() sees its data only through a row.  The row here makes up what a sample would
 * say: a location that deviates by a given amount, and escape counts as the probabilities have
 * them.  So thresholds, shifts and searches are the codec's own and cannot drift from it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/exponent_size.h"

#include "core/codec/superblock.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Exponents further from a sample's mean than this are pulled in (core/codec/row.h). */
#define PULL 6
/* Lattice of a sub-block's sum: 64 values of 0 to 2 * PULL. */
#define LATTICE (2 * PULL * ZIPCCL_SAMPLES + 1)
/* The common location is looked at this far to either side, in standard deviations ... */
#define REACH 8
/* ... at points this far apart, or 1/256 octave, whichever is more. */
#define STEP 0.125
/* Deviations of single sub-blocks rarer than this are left out. */
#define RARE 1e-11
/* A search starts above this estimate and must gain this much, in bits (core/codec/choose.c). */
#define SEARCH_FROM   2.75
#define SEARCH_MARGIN (1.0 / 32)

/* What the made-up samples say. */
struct probe {
    double inside[2 * ZIPCCL_NUM_EXPONENTS + 1]; /* cumulative probabilities, twice around */
    double valid;                                /* share of sampled values that count */
    double location;                             /* of all sub-blocks but the first */
    double first;                                /* of the first */
};

/* Memory that zipccl_choose() needs; each sub-block of 'src' starts with a pointer to the probe. */
struct bench {
    struct zipccl_scratch scratch;
    uint8_t src[2 * ZIPCCL_SUPERBLOCK];
    struct probe probe;
};

static void probe_sample(const uint8_t *src, size_t i, size_t m, struct zipccl_sample *sample)
{
    const struct probe *probe;
    memcpy(&probe, src, sizeof probe);
    memset(sample, 0, sizeof *sample);
    for (size_t run = 0; run < 2; run++) {
        size_t left = m - zipccl_sample_start(i, m, run);
        sample->nsampled += (uint32_t)(left < 32 ? left : 32);
    }
    sample->nvalid = (uint32_t)lround(sample->nsampled * probe->valid);
    /* Sums are whole: rounded by turns, so that their mean is right. */
    double location = i == 0 ? probe->first : probe->location;
    double turn = ((double)(5 * i % 16) + 0.5) / 16;
    sample->sum = (uint32_t)fmax(0, floor(location / 256 * sample->nvalid + turn));
    memcpy(sample->e, &probe, sizeof probe);
}

static void probe_escapes(const struct zipccl_sample *sample, size_t nsubblocks,
                          const uint8_t *bases, const struct zipccl_tier_program *program,
                          uint32_t *escapes)
{
    const struct probe *probe;
    memcpy(&probe, sample->e, sizeof probe);
    for (int t = 0; t < program->ntiers; t++) {
        double sum = 0;
        for (size_t i = 0; i < nsubblocks; i++) {
            /* d from 'lowest' on means exponents from base - lowest down, modulo 256. */
            int high = bases[i] - program->tier[t].lowest + ZIPCCL_NUM_EXPONENTS;
            int low = high - program->tier[t].span;
            while (high >= 2 * ZIPCCL_NUM_EXPONENTS) {
                high -= ZIPCCL_NUM_EXPONENTS;
                low -= ZIPCCL_NUM_EXPONENTS;
            }
            double covered = probe->inside[high + 1] - probe->inside[low];
            sum += sample[i].nsampled * fmax(0, 1 - covered);
        }
        escapes[t] = (uint32_t)lround(sum);
    }
}

static const struct zipccl_row probe_row = {.sample = probe_sample, .escapes = probe_escapes};

static struct bench *bench_create(const double *p)
{
    struct bench *bench = calloc(1, sizeof *bench);
    if (!bench)
        return NULL;
    for (int e = 0; e < 2 * ZIPCCL_NUM_EXPONENTS; e++)
        bench->probe.inside[e + 1] = bench->probe.inside[e] + p[e % ZIPCCL_NUM_EXPONENTS];
    bench->probe.valid = fmax(0, 1 - p[0] - p[ZIPCCL_NUM_EXPONENTS - 1]);
    const struct probe *probe = &bench->probe;
    for (size_t i = 0; i < ZIPCCL_SUBBLOCKS; i++)
        memcpy(bench->src + 2 * i * ZIPCCL_SUBBLOCK, &probe, sizeof probe);
    return bench;
}

static void ask(struct bench *bench, size_t m, double first, double others,
                struct zipccl_entry *entry)
{
    memset(entry, 0, sizeof *entry);
    bench->probe.first = first;
    bench->probe.location = others;
    zipccl_choose(&probe_row, bench->src, m, &bench->scratch, entry);
}

/* Probabilities of one sampled exponent after pulling, from 'lowest' on, and its moments. */
struct pulled {
    int lowest;
    double p[2 * PULL + 1];
    double mean, variance; /* of the exponent field, given that it is valid */
};

static void pull(const double *p, struct pulled *out)
{
    double sum = 0, weight = 0;
    for (int e = 1; e < ZIPCCL_NUM_EXPONENTS - 1; e++) {
        sum += e * p[e];
        weight += p[e];
    }
    int centre = weight > 0 ? (int)lround(sum / weight) : 0;
    *out = (struct pulled){.lowest = centre - PULL};
    for (int e = 1; e < ZIPCCL_NUM_EXPONENTS - 1 && weight > 0; e++) {
        int at = e - out->lowest;
        out->p[at < 0 ? 0 : at > 2 * PULL ? 2 * PULL : at] += p[e] / weight;
    }
    double square = 0, mean = 0;
    for (int i = 0; i <= 2 * PULL; i++) {
        mean += i * out->p[i];
        square += (double)i * i * out->p[i];
    }
    out->mean = out->lowest + mean;
    out->variance = fmax(0, square - mean * mean);
}

/* Distribution of the sum of 'count' pulled exponents, each counted from 'lowest'. */
static void convolve(const struct pulled *pulled, size_t count, double *sums)
{
    memset(sums, 0, LATTICE * sizeof *sums);
    sums[0] = 1;
    for (size_t k = 0; k < count; k++) {
        for (size_t s = LATTICE; s-- > 0;) {
            double sum = 0;
            for (size_t i = 0; i <= 2 * PULL && i <= s; i++)
                sum += sums[s - i] * pulled->p[i];
            sums[s] = sum;
        }
    }
}

/* The choice with this program and base among 'out', added if it is new; NULL if there is no room. */
static struct zipccl_choice *choice_of(struct zipccl_choices *out, uint8_t program, uint8_t base)
{
    for (size_t i = 0; i < out->nchoices; i++)
        if (out->choice[i].program == program && out->choice[i].base[0].base == base)
            return &out->choice[i];
    if (out->nchoices == ZIPCCL_MAX_CHOICES)
        return NULL;
    struct zipccl_choice *choice = &out->choice[out->nchoices++];
    *choice = (struct zipccl_choice){.program = program, .nbases = 1};
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
static void deviate(struct bench *bench, size_t m, double location, const struct pulled *pulled,
                    size_t nvalid, const double *sums, double weight, struct zipccl_choice *choice)
{
    size_t nsub = (m + ZIPCCL_SUBBLOCK - 1) / ZIPCCL_SUBBLOCK;
    double rest = 1, others = (double)(nsub - 1);
    for (size_t s = 0; s < LATTICE; s++) {
        /* Part of a deviation is one of the common mean itself. */
        double away = 256 * ((double)s / (double)nvalid + pulled->lowest - pulled->mean) *
                      sqrt(1 - 1 / (double)nsub);
        if (sums[s] < RARE || fabs(away) < 128)
            continue;
        struct zipccl_entry entry;
        ask(bench, m, location + away, location - away / others, &entry);
        base_add(choice, entry.base[0], weight * sums[s]);
        rest -= sums[s];
    }
    choice->base[0].weight += weight * rest;
}

/*
 * Probability that a sample makes choice 2 look better than choice 1 by the margin; with the same
 * choice twice, that it starts a search at all.
 */
static double unlucky(const double *p, size_t nsampled, enum zipccl_program_id program1,
                      uint8_t base1, enum zipccl_program_id program2, uint8_t base2)
{
    bool same = program1 == program2 && base1 == base2;
    double mean = 0, square = 0;
    for (int e = 0; e < ZIPCCL_NUM_EXPONENTS; e++) {
        if (p[e] <= 0)
            continue;
        double bits = zipccl_program_bits(program1, base1, (uint8_t)e);
        if (!same)
            bits = zipccl_program_bits(program2, base2, (uint8_t)e) - bits;
        mean += p[e] * bits;
        square += p[e] * bits * bits;
    }
    double sd = sqrt(fmax(0, square - mean * mean) / (double)nsampled);
    double away = same ? SEARCH_FROM - mean : mean + SEARCH_MARGIN;
    return sd > 0 ? gsl_cdf_gaussian_Q(away, sd) : away < 0;
}

/*
 * Add what searches find by chance: a choice that is truly worse by 'delta' bits looks better by
 * the margin if the mean difference over the sample deviates by delta + margin.
 */
static void mislead(const double *p, size_t nsampled, struct zipccl_choices *out)
{
    size_t nexpected = out->nchoices;
    for (size_t i = 0; i < nexpected; i++) {
        enum zipccl_program_id program = out->choice[i].program;
        uint8_t base = out->choice[i].base[0].base;
        double search = unlucky(p, nsampled, program, base, program, base);
        for (int k = 0; k < 5 * (ZIPCCL_NUM_PROGRAMS - 1); k++) {
            enum zipccl_program_id other = (enum zipccl_program_id)(1 + k / 5);
            int moved = base + k % 5 - 2;
            if (zipccl_programs[program].ntiers == 0 || moved < 0 || moved > 255 ||
                (other == program && moved == base))
                continue;
            double weight = out->choice[i].weight * fmin(search, unlucky(p, nsampled, program, base,
                                                                         other, (uint8_t)moved));
            if (weight < RARE)
                continue;
            struct zipccl_choice *choice = choice_of(out, (uint8_t)other, (uint8_t)moved);
            if (!choice)
                continue;
            choice->weight += weight;
            choice->base[0].weight += weight;
        }
    }
}

static void normalise(struct zipccl_choices *out)
{
    double sum = 0;
    for (size_t i = 0; i < out->nchoices; i++)
        sum += out->choice[i].weight;
    for (size_t i = 0; i < out->nchoices; i++) {
        struct zipccl_choice *choice = &out->choice[i];
        for (size_t v = 0; v < choice->nbases; v++)
            choice->base[v].weight /= choice->weight;
        choice->weight /= sum;
    }
}

zipccl_status zipccl_choices_expect(const double *p, size_t m, struct zipccl_choices *out)
{
    if (m == 0 || m > ZIPCCL_SUPERBLOCK)
        return ZIPCCL_ERR_ARG;
    struct bench *bench = bench_create(p);
    double *sums = malloc(LATTICE * sizeof *sums);
    if (!bench || !sums) {
        free(bench);
        free(sums);
        return ZIPCCL_ERR_NOMEM;
    }
    struct pulled pulled;
    pull(p, &pulled);
    struct zipccl_entry entry;
    ask(bench, m, 256 * pulled.mean, 256 * pulled.mean, &entry);
    size_t nsub = (m + ZIPCCL_SUBBLOCK - 1) / ZIPCCL_SUBBLOCK, nvalid = 0, nsampled = 0;
    for (size_t i = 0; i < nsub; i++) {
        nvalid += bench->scratch.sample[i].nvalid;
        nsampled += bench->scratch.sample[i].nsampled;
    }
    size_t first = bench->scratch.sample[0].nvalid;
    convolve(&pulled, first, sums);

    *out = (struct zipccl_choices){.m = m};
    double sd = nvalid ? 256 * sqrt(pulled.variance / (double)nvalid) : 0;
    double step = fmax(1, STEP * sd);
    int steps = (int)ceil(REACH * sd / step);
    for (int k = -steps; k <= steps; k++) {
        double away = k * step, location = 256 * pulled.mean + away, weight = 1;
        if (sd > 0)
            weight = gsl_cdf_gaussian_P(-fabs(away) + step / 2, sd) -
                     gsl_cdf_gaussian_P(-fabs(away) - step / 2, sd);
        ask(bench, m, location, location, &entry);
        struct zipccl_choice *choice = choice_of(out, entry.program, entry.base[0]);
        if (!choice)
            continue;
        choice->weight += weight;
        if (nsub > 1 && first > 0)
            deviate(bench, m, location, &pulled, first, sums, weight, choice);
        else
            choice->base[0].weight += weight;
    }
    mislead(p, nsampled, out);
    normalise(out);
    free(bench);
    free(sums);
    return ZIPCCL_OK;
}
