/*
 * make_capacity_table.c - prints core/codec/capacity_table.inc, or checks the one compiled in
 *
 * Usage: make_capacity_table > FILE
 *        make_capacity_table --check     exit code 1 if the table is not what the model says
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

#include "core/codec/capacity_table.inc"

/* Messages larger than their capacity, at the worst phase. */
#define TAIL 1e-9
/* Phases of log2(sigma) that are tried; the worst counts. */
#define PHASES 64
/* Units: rates are whole numbers of 1/256 byte a superblock, 1/65536 byte an element. */
#define FULL 256
#define LAST 65536
/* The first table ends at 2^32 elements; shorter superblocks than the second's first are raw. */
#define MOST_FULL  (1u << 18)
#define LEAST_LAST 256u

enum { MOST_RATES = 64 };

struct rates {
    size_t count;
    struct rate rate[MOST_RATES];
};

/* Two points an octave while rates fall fast: 1, 2, 3, 4, 6, ...; from 'coarse' on, one in two. */
static uint32_t next_point(uint32_t at, uint32_t coarse)
{
    if (at >= coarse)
        return 4 * at;
    bool power = (at & (at - 1)) == 0;
    return at == 1 ? 2 : power ? at + at / 2 : at / 3 * 4;
}

static void grid(struct rates *rates, uint32_t first, uint32_t last, uint32_t coarse)
{
    rates->count = 0;
    for (uint32_t at = first; at <= last && rates->count < MOST_RATES; at = next_point(at, coarse))
        rates->rate[rates->count++] = (struct rate){at, 0};
}

/* Raise the rate of entry 'i' to what this message needs. */
static zipccl_status raise_rate(struct rates *rates, size_t i,
                                const struct zipccl_size_model *model, double unit)
{
    double variable = zipccl_size_quantile(model, TAIL) - (double)model->fixed;
    if (!(variable > 0))
        return ZIPCCL_ERR_INTERNAL;
    double rate = ceil(variable * unit / rates->rate[i].at);
    if (rate > rates->rate[i].rate)
        rates->rate[i].rate = (uint32_t)rate;
    return ZIPCCL_OK;
}

static zipccl_status compute(struct rates *full, struct rates *last)
{
    grid(full, 1, MOST_FULL, 64);
    grid(last, LEAST_LAST, ZIPCCL_SUPERBLOCK - 1, ZIPCCL_SUPERBLOCK);
    for (int phase = 0; phase < PHASES; phase++) {
        double p[ZIPCCL_NUM_EXPONENTS];
        struct zipccl_exponent_model gaussian =
            zipccl_exponent_gaussian(exp2(phase / (double)PHASES));
        struct zipccl_choices choices;
        struct zipccl_size_model model;
        ZIPCCL_TRY(zipccl_exponent_pmf(&gaussian, p));
        ZIPCCL_TRY(zipccl_choices_expect(p, ZIPCCL_SUPERBLOCK, &choices));
        for (size_t i = 0; i < full->count; i++) {
            size_t n = (size_t)full->rate[i].at * ZIPCCL_SUPERBLOCK;
            n = n > ZIPCCL_MAX_CODED_N ? n - ZIPCCL_SUPERBLOCK : n;
            ZIPCCL_TRY(zipccl_size_from_choices(p, n, &choices, NULL, &model));
            ZIPCCL_TRY(raise_rate(full, i, &model, FULL));
        }
        for (size_t i = 0; i < last->count; i++) {
            ZIPCCL_TRY(zipccl_size_expect(p, last->rate[i].at, &model));
            ZIPCCL_TRY(raise_rate(last, i, &model, LAST));
        }
    }
    return ZIPCCL_OK;
}

static void print(const char *name, const struct rates *rates)
{
    fprintf(stdout, "static const struct rate %s[] = {", name);
    for (size_t i = 0; i < rates->count; i++)
        fprintf(stdout, "%s{%u, %u},", i % 6 ? " " : "\n    ", (unsigned)rates->rate[i].at,
                (unsigned)rates->rate[i].rate);
    fprintf(stdout, "\n};\n");
}

/* Equal but for what another libm or compiler does to the last digits. */
static int check(const char *name, const struct rate *table, size_t count, const struct rates *now)
{
    int bad = count != now->count;
    for (size_t i = 0; i < count && i < now->count; i++) {
        const struct rate *a = &table[i], *b = &now->rate[i];
        if (a->at == b->at && fabs((double)a->rate - b->rate) <= 1 + 1e-4 * b->rate)
            continue;
        fprintf(stderr, "%s: {%u, %u} is now {%u, %u}\n", name, (unsigned)a->at, (unsigned)a->rate,
                (unsigned)b->at, (unsigned)b->rate);
        bad = 1;
    }
    return bad;
}

int main(int argc, char **argv)
{
    struct rates full, last;
    if (argc > 2 || (argc == 2 && strcmp(argv[1], "--check") != 0)) {
        fprintf(stderr, "usage: make_capacity_table [--check]\n");
        return 2;
    }
    if (compute(&full, &last) != ZIPCCL_OK) {
        fprintf(stderr, "make_capacity_table: the model failed\n");
        return 1;
    }
    if (argc == 2) {
        int bad = FULL_UNIT != FULL || LAST_UNIT != LAST;
        bad |= check("full_rates", full_rates, sizeof full_rates / sizeof *full_rates, &full);
        bad |= check("last_rates", last_rates, sizeof last_rates / sizeof *last_rates, &last);
        if (bad)
            fprintf(stderr, "core/codec/capacity_table.inc is stale: run make_capacity_table\n");
        return bad;
    }
    fprintf(stdout,
            "/*\n * capacity_table.inc - variable bytes that Gaussian messages exceed with "
            "probability %g\n *\n * Made by models/make_capacity_table from the exponent "
            "model; do not edit.\n * {superblocks or elements, bytes for each in units of "
            "1 / *_UNIT}.\n *\n * SPDX-License-Identifier: Apache-2.0\n */\n",
            TAIL);
    fprintf(stdout, "#define FULL_UNIT %d\n#define LAST_UNIT %d\n", FULL, LAST);
    print("full_rates", &full);
    print("last_rates", &last);
    return 0;
}
