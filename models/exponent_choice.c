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
/* Most exponents that are sampled of a sub-block, and the lattice of their sum. */
#define MOST_SAMPLED (ZIPCCL_SAMPLES * ZIPCCL_LOOKS)
#define LATTICE      (2 * PULL * MOST_SAMPLED + 1)
/* The common location is looked at this far to either side, in standard deviations ... */
#define REACH 8
/* ... at points this far apart, or 1/256 octave, whichever is more. */
#define STEP 0.125
/* Sub-blocks closer to the common location than this, in 1/256 octave, never have their own. */
#define LEAST_OWN 64
/* Deviations of single sub-blocks rarer than this are left out. */
#define RARE 1e-11
/*
 * A search starts above this estimate in bits, and moves the base of a sub-block where that gains
 * so many bits on its sample (core/codec/choose.c).
 */
#define SEARCH_FROM 2.75
#define CHANCE_BITS 8.0
/* Octaves that a search may go astray. */
#define ASTRAY 2

/* What the made-up samples say, and how many were asked for. */
struct probe {
    double p[ZIPCCL_NUM_EXPONENTS];
    double valid;                          /* share of sampled values that count */
    double location;                       /* of all sub-blocks but the first */
    double first;                          /* of the first */
    size_t nsampled, nvalid, nvalid_first; /* in the last round of looks */
};

/* Memory that zipccl_choose() needs; each sub-block of 'src' starts with a pointer to the probe. */
struct bench {
    struct zipccl_scratch scratch;
    uint8_t src[2 * ZIPCCL_SUPERBLOCK];
    struct probe probe;
};

static void probe_sample(const uint8_t *src, size_t i, size_t m, size_t look,
                         struct zipccl_sample *sample)
{
    struct probe *probe;
    memcpy(&probe, src, sizeof probe);
    memset(sample, 0, sizeof *sample);
    for (size_t run = 0; run < 2; run++) {
        size_t start = zipccl_sample_start(i, m, look, run), left = m > start ? m - start : 0;
        sample->nsampled += (uint32_t)(left < 32 ? left : 32);
    }
    sample->nvalid = (uint32_t)lround(sample->nsampled * probe->valid);
    /* Sums are whole: rounded by turns, so that their mean is right. */
    double location = i == 0 ? probe->first : probe->location;
    double turn = ((double)(5 * i % 16) + 0.5) / 16;
    sample->sum = (uint32_t)fmax(0, floor(location / 256 * sample->nvalid + turn));
    memcpy(sample->e, &probe, sizeof probe);

    if (i == 0 && look == 0)
        probe->nsampled = probe->nvalid = probe->nvalid_first = 0;
    probe->nsampled += sample->nsampled;
    probe->nvalid += sample->nvalid;
    probe->nvalid_first += i == 0 ? sample->nvalid : 0;
}

static uint32_t probe_cost(const struct zipccl_sample *sample, size_t n, const uint8_t *bases,
                           const uint8_t bits[16])
{
    const struct probe *probe;
    memcpy(&probe, sample->e, sizeof probe);
    double sum = 0, mean = 0;
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || bases[i] != bases[i - 1]) {
            double listed = 0;
            mean = 0;
            for (int k = 0; k < 15; k++) {
                double p = probe->p[(uint8_t)(bases[i] - (k + ZIPCCL_LEAST_D))];
                mean += p * bits[k];
                listed += p;
            }
            mean += fmax(0, 1 - listed) * bits[15];
        }
        sum += sample[i].nsampled * mean;
    }
    return (uint32_t)lround(sum);
}

static const struct zipccl_row probe_row = {.sample = probe_sample, .cost = probe_cost};

static struct bench *bench_create(const double *p)
{
    struct bench *bench = calloc(1, sizeof *bench);
    if (!bench)
        return NULL;
    memcpy(bench->probe.p, p, sizeof bench->probe.p);
    bench->probe.valid = fmax(0, 1 - p[0] - p[ZIPCCL_NUM_EXPONENTS - 1]);
    struct probe *probe = &bench->probe;
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
        for (size_t s = 2 * PULL * (k + 1) + 1; s-- > 0;) {
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
        if (sums[s] < RARE || fabs(away) < LEAST_OWN)
            continue;
        struct zipccl_entry entry;
        ask(bench, m, location + away, location - away / others, &entry);
        base_add(choice, entry.base[0], weight * sums[s]);
        rest -= sums[s];
    }
    choice->base[0].weight += weight * rest;
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
 * Split 'choice' into what stands and what a search comes to.  An unlucky sample starts a search
 * although none is called for; then one of a sub-block may make a worse base look better.
 */
static void mislead(const double *p, size_t nsampled, size_t nsub, struct zipccl_choice *choice,
                    struct zipccl_choice *searched)
{
    uint8_t base = choice->base[0].base;
    double bits[ZIPCCL_NUM_EXPONENTS], gain[ZIPCCL_NUM_EXPONENTS];
    for (int e = 0; e < ZIPCCL_NUM_EXPONENTS; e++)
        bits[e] = zipccl_program_bits(choice->program, base, (uint8_t)e);
    double search = exceeds(p, bits, (double)nsampled, SEARCH_FROM), moved = 0;
    double n = fmin(MOST_SAMPLED, (double)nsampled);
    *searched = *choice;
    searched->weight = choice->weight * search;
    choice->weight -= searched->weight;
    for (int octave = -ASTRAY; octave <= ASTRAY; octave++) {
        if (octave == 0 || base + octave < 0 || base + octave > 255)
            continue;
        uint8_t other = (uint8_t)(base + octave);
        for (int e = 0; e < ZIPCCL_NUM_EXPONENTS; e++)
            gain[e] = bits[e] - zipccl_program_bits(choice->program, other, (uint8_t)e);
        double weight = exceeds(p, gain, n, CHANCE_BITS / n);
        /* With few sub-blocks the same sample does both. */
        if (nsub <= ZIPCCL_LOOKS && search > 0)
            weight = fmin(1, weight / search);
        weight = fmin(weight, 1 - moved) / (1 - moved);
        if (weight > 0) {
            for (size_t v = 0; v < searched->nbases; v++)
                searched->base[v].weight *= 1 - weight;
            base_add(searched, other, weight);
            moved += weight * (1 - moved);
        }
        if (moved >= 1)
            break;
    }
}

static void mislead_all(const double *p, size_t nsampled, struct zipccl_choices *out)
{
    size_t nsub = (out->m + ZIPCCL_SUBBLOCK - 1) / ZIPCCL_SUBBLOCK, nexpected = out->nchoices;
    for (size_t i = 0; i < nexpected && out->nchoices < ZIPCCL_MAX_CHOICES; i++) {
        struct zipccl_choice searched;
        if (zipccl_programs[out->choice[i].program].ntiers == 0)
            continue;
        mislead(p, nsampled, nsub, &out->choice[i], &searched);
        if (searched.weight > RARE)
            out->choice[out->nchoices++] = searched;
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
    size_t nsub = (m + ZIPCCL_SUBBLOCK - 1) / ZIPCCL_SUBBLOCK, nvalid = bench->probe.nvalid;
    size_t first = bench->probe.nvalid_first, nsampled = bench->probe.nsampled;
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
    normalise(out);
    mislead_all(p, nsampled, out);
    free(bench);
    free(sums);
    return ZIPCCL_OK;
}
