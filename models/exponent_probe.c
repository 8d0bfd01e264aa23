/*
 * exponent_probe.c - a row that makes up samples
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/exponent_probe.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A search starts above this estimate, in bits of an exponent (core/codec/choose.c). */
#define SEARCH_FROM 2.75
/* An estimate that starts one for sure, and no more than that. */
#define SEARCH_SURELY 5

/* What a made-up sample of one sub-block says. */
struct saying {
    double p[ZIPCCL_NUM_EXPONENTS];
    double location; /* 1/256 octave */
};

/* Each sub-block of 'src' starts with a pointer to the probe. */
struct zipccl_probe {
    struct zipccl_scratch scratch;
    uint8_t src[2 * ZIPCCL_SUPERBLOCK];
    double p[ZIPCCL_NUM_EXPONENTS];
    size_t m;
    struct zipccl_pulled pulled;
    double valid;                  /* share of sampled values that count */
    struct saying first, others;   /* sub-block 0, and the rest */
    struct zipccl_sampled sampled; /* in the last round of looks */
    bool searching;                /* the first estimate is to start a search, or not to */
    size_t ncosts;                 /* estimates asked for */
    double mean, variance;         /* of the first estimate */
};

static void probe_sample(const uint8_t *src, size_t i, size_t m, size_t look,
                         struct zipccl_sample *sample)
{
    struct zipccl_probe *probe;
    memcpy(&probe, src, sizeof probe);
    memset(sample, 0, sizeof *sample);
    for (size_t run = 0; run < 2; run++) {
        size_t start = zipccl_sample_start(i, m, look, run), left = m > start ? m - start : 0;
        sample->nsampled += (uint32_t)(left < 32 ? left : 32);
    }
    sample->nvalid = (uint32_t)lround(sample->nsampled * probe->valid);
    /* Sums are whole: rounded by turns, so that their mean is right. */
    const struct saying *saying = i == 0 ? &probe->first : &probe->others;
    double turn = ((double)(5 * i % 16) + 0.5) / 16;
    sample->sum = (uint32_t)fmax(0, floor(saying->location / 256 * sample->nvalid + turn));
    memcpy(sample->e, &saying, sizeof saying);
    memcpy(sample->e + sizeof saying, &probe, sizeof probe);

    if (i == 0 && look == 0)
        probe->sampled = (struct zipccl_sampled){0};
    probe->sampled.n += sample->nsampled;
    probe->sampled.nvalid += sample->nvalid;
    probe->sampled.nvalid_first += i == 0 ? sample->nvalid : 0;
}

static uint32_t probe_cost(const struct zipccl_sample *sample, size_t n, const uint8_t *bases,
                           const uint8_t bits[16])
{
    struct zipccl_probe *probe;
    const struct saying *saying = NULL, *next;
    memcpy(&probe, sample->e + sizeof saying, sizeof probe);
    double sum = 0, spread = 0, taken = 0, mean = 0, square = 0;
    for (size_t i = 0; i < n; i++) {
        memcpy(&next, sample[i].e, sizeof next);
        if (next != saying || bases[i] != bases[i - 1]) {
            double rest = 1;
            saying = next;
            mean = square = 0;
            for (int k = 0; k < 16; k++) {
                double p = k < 15 ? saying->p[(uint8_t)(bases[i] - (k + ZIPCCL_LEAST_D))] : rest;
                mean += p * bits[k];
                square += p * bits[k] * bits[k];
                rest = fmax(0, rest - p);
            }
        }
        taken += sample[i].nsampled;
        sum += sample[i].nsampled * mean;
        spread += sample[i].nsampled * fmax(0, square - mean * mean);
    }
    if (probe->ncosts++ > 0)
        return (uint32_t)lround(sum);
    probe->mean = sum / taken;
    probe->variance = spread / taken / taken;
    return (uint32_t)lround(probe->searching ? fmax(sum, SEARCH_SURELY * taken) : 0);
}

static const struct zipccl_row probe_row = {.sample = probe_sample, .cost = probe_cost};

static void pull(const double *p, struct zipccl_pulled *out)
{
    double sum = 0, weight = 0;
    for (int e = 1; e < ZIPCCL_NUM_EXPONENTS - 1; e++) {
        sum += e * p[e];
        weight += p[e];
    }
    int centre = weight > 0 ? (int)lround(sum / weight) : 0;
    *out = (struct zipccl_pulled){.lowest = centre - ZIPCCL_PULL};
    for (int e = 1; e < ZIPCCL_NUM_EXPONENTS - 1 && weight > 0; e++) {
        int at = e - out->lowest;
        out->p[at < 0 ? 0 : at > 2 * ZIPCCL_PULL ? 2 * ZIPCCL_PULL : at] += p[e] / weight;
    }
    double square = 0, mean = 0;
    for (int i = 0; i <= 2 * ZIPCCL_PULL; i++) {
        mean += i * out->p[i];
        square += (double)i * i * out->p[i];
    }
    out->mean = out->lowest + mean;
    out->variance = fmax(0, square - mean * mean);
}

struct zipccl_probe *zipccl_probe_create(const double *p, size_t m)
{
    struct zipccl_probe *probe = calloc(1, sizeof *probe);
    if (!probe)
        return NULL;
    memcpy(probe->p, p, sizeof probe->p);
    probe->m = m;
    probe->valid = fmax(0, 1 - p[0] - p[ZIPCCL_NUM_EXPONENTS - 1]);
    pull(p, &probe->pulled);
    for (size_t i = 0; i < ZIPCCL_SUBBLOCKS; i++)
        memcpy(probe->src + 2 * i * ZIPCCL_SUBBLOCK, &probe, sizeof probe);
    return probe;
}

void zipccl_probe_destroy(struct zipccl_probe *probe)
{
    free(probe);
}

const struct zipccl_pulled *zipccl_probe_pulled(const struct zipccl_probe *probe)
{
    return &probe->pulled;
}

/*
 * Exponents of a sample whose mean deviates by 'away' / 256 octaves: exponentially tilted, the
 * likeliest way to deviate.  A sample that is low by chance also looks cheap where it is low.
 */
static void say(const double *p, const struct zipccl_pulled *pulled, double away,
                struct saying *out)
{
    double rate = pulled->variance > 0 ? away / 256 / pulled->variance : 0, sum = 0, valid = 0;
    out->location = 256 * pulled->mean + away;
    for (int e = 0; e < ZIPCCL_NUM_EXPONENTS; e++) {
        double from = fmax(-ZIPCCL_PULL, fmin(ZIPCCL_PULL, e - pulled->mean));
        bool counts = e > 0 && e < ZIPCCL_NUM_EXPONENTS - 1;
        out->p[e] = counts && p[e] > 0 ? p[e] * exp(rate * from) : p[e];
        sum += counts ? out->p[e] : 0;
        valid += counts ? p[e] : 0;
    }
    for (int e = 1; e < ZIPCCL_NUM_EXPONENTS - 1 && sum > 0; e++)
        out->p[e] *= valid / sum;
}

static void choose(struct zipccl_probe *probe, bool searching, struct zipccl_entry *entry)
{
    memset(entry, 0, sizeof *entry);
    probe->searching = searching;
    probe->ncosts = 0;
    zipccl_superblock_choose(&probe_row, probe->src, probe->m, &probe->scratch, entry);
}

void zipccl_probe_ask(struct zipccl_probe *probe, double common, double own, double rare,
                      struct zipccl_answer *out)
{
    double others = (double)((probe->m - 1) / ZIPCCL_SUBBLOCK);
    say(probe->p, &probe->pulled, common + own, &probe->first);
    say(probe->p, &probe->pulled, common - (others > 0 ? own / others : 0), &probe->others);
    choose(probe, false, &out->quiet);
    out->sampled = probe->sampled;
    double sd = sqrt(probe->variance), away = SEARCH_FROM - probe->mean;
    out->search = sd > 0 ? gsl_cdf_gaussian_Q(away, sd) : away < 0;
    if (out->search < rare) {
        out->search = 0;
        return;
    }
    choose(probe, true, &out->searched);
    out->looked = probe->sampled;
}
