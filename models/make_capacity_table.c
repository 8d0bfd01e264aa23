/*
 * make_capacity_table.c - prints core/codec/capacity_table.inc, or checks the one compiled in
 *
 * Usage: make_capacity_table > FILE
 *        make_capacity_table --check       exit code 1 if the table is not what the model says at
 *                                          the phases that it names as the worst
 *        make_capacity_table --check-all   the same for all phases, which takes minutes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/exponent_size.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rate {
    uint32_t at, rate;
};

#define ZIPCCL_CAPACITY_PHASES
#include "core/codec/capacity_table.inc"

/*
 * Messages larger than their capacity, at the worst phase: less than is promised, since choices
 * rarer than what is drawn are not seen.
 */
#define TAIL 1e-10
/* Phases of log2(sigma) that are tried; the worst counts. */
#define PHASES 32
/* Units: rates are whole numbers of 1/256 byte a superblock, 1/65536 byte an element. */
#define FULL 256
#define LAST 65536
/* Samples drawn of full superblocks, and of each size of a partial one. */
#define FULL_DRAWS (1 << 16)
#define LAST_DRAWS (1 << 14)
/* The first table ends at 2^32 elements; shorter superblocks than the second's first are raw. */
#define MOST_FULL  (1u << 18)
#define LEAST_LAST 256u

enum { MOST_RATES = 64 };

struct rates {
    size_t count;
    struct rate rate[MOST_RATES];
    uint8_t phase[MOST_RATES]; /* the worst */
};

/* Rates fall ever more slowly: two points an octave, then one in two. */
static void grid_full(struct rates *rates)
{
    rates->count = 0;
    for (uint32_t at = 1; at <= MOST_FULL;) {
        rates->rate[rates->count++] = (struct rate){at, 0};
        bool power = (at & (at - 1)) == 0;
        at = at >= 64 ? 4 * at : at == 1 ? 2 : power ? at + at / 2 : at / 3 * 4;
    }
}

/*
 * Partial superblocks: what the encoder samples of them steps up with each sub-block and down where
 * it stops to look four times, after four.
 */
static void grid_last(struct rates *rates)
{
    static const uint32_t at[] = {
        LEAST_LAST, 384,  512,  640,  768,  1023, 1024, 1280,  1536,  2048,  3072,
        4096,       4097, 5120, 6144, 7168, 8192, 9216, 10240, 12288, 14336, ZIPCCL_SUPERBLOCK - 1};
    rates->count = sizeof at / sizeof *at;
    for (size_t i = 0; i < rates->count; i++)
        rates->rate[i] = (struct rate){at[i], 0};
}

/* Bytes of a message's shares, as zipccl_capacity_settled() has them. */
static double shares_of(size_t n)
{
    const struct zipccl_fields *fields = zipccl_fields_of(ZIPCCL_BFLOAT16);
    size_t rest = n % ZIPCCL_SUPERBLOCK, full = n / ZIPCCL_SUPERBLOCK;
    return (double)(full * zipccl_full_share(fields, ZIPCCL_SUPERBLOCK) +
                    (rest ? zipccl_full_share(fields, rest) : 0));
}

/* Raise the rate of entry 'i' to what this message needs. */
static zipccl_status raise_rate(struct rates *rates, size_t i, int phase,
                                const struct zipccl_size_model *model, double unit)
{
    double variable =
        zipccl_size_quantile(model, TAIL) - (double)model->fixed - shares_of(model->n);
    if (!(variable > 0))
        return ZIPCCL_ERR_INTERNAL;
    double rate = ceil(variable * unit / rates->rate[i].at);
    if (rate > rates->rate[i].rate) {
        rates->rate[i].rate = (uint32_t)rate;
        rates->phase[i] = (uint8_t)phase;
    }
    return ZIPCCL_OK;
}

static bool wanted(const uint8_t *phases, size_t count, size_t i, int phase)
{
    return !phases || (i < count && phases[i] == phase);
}

/* Full superblocks at one phase; if 'only' is given, entries for which it is the worst. */
static zipccl_status compute_full(const double *p, int phase, const uint8_t *only, size_t count,
                                  struct rates *full)
{
    struct zipccl_choices choices = {0};
    struct zipccl_size_model model;
    for (size_t i = 0; i < full->count; i++) {
        size_t n = (size_t)full->rate[i].at * ZIPCCL_SUPERBLOCK;
        if (!wanted(only, count, i, phase))
            continue;
        if (choices.m == 0)
            ZIPCCL_TRY(zipccl_choices_expect(p, ZIPCCL_SUPERBLOCK, FULL_DRAWS, &choices));
        n = n > ZIPCCL_MAX_CODED_N ? n - ZIPCCL_SUPERBLOCK : n;
        ZIPCCL_TRY(zipccl_size_from_choices(p, n, &choices, NULL, &model));
        ZIPCCL_TRY(raise_rate(full, i, phase, &model, FULL));
    }
    return ZIPCCL_OK;
}

static zipccl_status compute_last(const double *p, int phase, const uint8_t *only, size_t count,
                                  struct rates *last)
{
    struct zipccl_choices choices;
    struct zipccl_size_model model;
    for (size_t i = 0; i < last->count; i++) {
        uint32_t m = last->rate[i].at;
        if (!wanted(only, count, i, phase))
            continue;
        ZIPCCL_TRY(zipccl_choices_expect(p, m, LAST_DRAWS, &choices));
        ZIPCCL_TRY(zipccl_size_from_choices(p, m, NULL, &choices, &model));
        ZIPCCL_TRY(raise_rate(last, i, phase, &model, LAST));
    }
    return ZIPCCL_OK;
}

static zipccl_status compute(bool all, struct rates *full, struct rates *last)
{
    const uint8_t *only_full = all ? NULL : full_phases, *only_last = all ? NULL : last_phases;
    grid_full(full);
    grid_last(last);
    for (int phase = 0; phase < PHASES; phase++) {
        double p[ZIPCCL_NUM_EXPONENTS];
        struct zipccl_exponent_model gaussian =
            zipccl_exponent_gaussian(exp2(phase / (double)PHASES));
        ZIPCCL_TRY(zipccl_exponent_pmf(&gaussian, p));
        ZIPCCL_TRY(compute_full(p, phase, only_full, sizeof full_phases, full));
        ZIPCCL_TRY(compute_last(p, phase, only_last, sizeof last_phases, last));
    }
    return ZIPCCL_OK;
}

static void print(const char *name, const struct rates *rates)
{
    fprintf(stdout, "static const struct rate %s_rates[] = {", name);
    for (size_t i = 0; i < rates->count; i++)
        fprintf(stdout, "%s{%u, %u},", i % 6 ? " " : "\n    ", (unsigned)rates->rate[i].at,
                (unsigned)rates->rate[i].rate);
    fprintf(stdout, "\n};\n");
}

static void print_phases(const char *name, const struct rates *rates)
{
    fprintf(stdout, "static const uint8_t %s_phases[] = {", name);
    for (size_t i = 0; i < rates->count; i++)
        fprintf(stdout, "%s%u,", i % 20 ? " " : "\n    ", rates->phase[i]);
    fprintf(stdout, "\n};\n");
}

/* Equal but for what another libm or compiler does to the last digits. */
static int check(const char *name, const struct rate *table, size_t count, const struct rates *now)
{
    int bad = count != now->count;
    for (size_t i = 0; i < count && i < now->count; i++) {
        const struct rate *a = &table[i], *b = &now->rate[i];
        if (a->at == b->at && fabs((double)a->rate - b->rate) <= 1 + 1e-3 * b->rate)
            continue;
        fprintf(stderr, "%s: {%u, %u} is now {%u, %u}\n", name, (unsigned)a->at, (unsigned)a->rate,
                (unsigned)b->at, (unsigned)b->rate);
        bad = 1;
    }
    return bad;
}

int main(int argc, char **argv)
{
    struct rates full = {0}, last = {0};
    bool checks = argc == 2 && strncmp(argv[1], "--check", 7) == 0;
    bool all = argc == 1 || strcmp(argv[1], "--check-all") == 0;
    if (argc > 2 || (argc == 2 && !all && strcmp(argv[1], "--check") != 0)) {
        fprintf(stderr, "usage: make_capacity_table [--check|--check-all]\n");
        return 2;
    }
    if (compute(all, &full, &last) != ZIPCCL_OK) {
        fprintf(stderr, "make_capacity_table: the model failed\n");
        return 1;
    }
    if (checks) {
        int bad = FULL_UNIT != FULL || LAST_UNIT != LAST;
        bad |= check("full_rates", full_rates, sizeof full_rates / sizeof *full_rates, &full);
        bad |= check("last_rates", last_rates, sizeof last_rates / sizeof *last_rates, &last);
        if (bad)
            fprintf(stderr, "core/codec/capacity_table.inc is stale: run make_capacity_table\n");
        return bad;
    }
    fprintf(
        stdout,
        "/*\n * capacity_table.inc - variable bytes that Gaussian messages exceed with "
        "probability %g\n *\n * Made by models/make_capacity_table from the exponent "
        "model; do not edit.\n * {superblocks or elements, bytes for each in units of "
        "1 / *_UNIT}; phases in 1/%d octave.\n *\n * SPDX-License-Identifier: Apache-2.0\n */\n",
        TAIL, PHASES);
    fprintf(stdout, "#define FULL_UNIT %d\n#define LAST_UNIT %d\n", FULL, LAST);
    print("full", &full);
    print("last", &last);
    fprintf(stdout, "#ifdef ZIPCCL_CAPACITY_PHASES\n");
    print_phases("full", &full);
    print_phases("last", &last);
    fprintf(stdout, "#endif\n");
    return 0;
}
