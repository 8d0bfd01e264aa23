/*
 * adapt.c - runs a step call by call, refined, raw and compressed, and takes the shortest
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/adapt.h"

#include "sim/times.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The rows with most codec time are tried; the rest is small. */
#define MAX_TRIED 64

/* Steps closer than this are the same: call by call then stands. */
#define SAME_STEP 1e-4

/* A row that refinement may send raw. */
struct candidate {
    uint32_t row;
    double codec_s;
};

static int compare_candidates(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;

    if (x->codec_s != y->codec_s)
        return x->codec_s > y->codec_s ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* Rows that 'mode' compresses, most codec time first; their number. */
static uint32_t find_candidates(const struct zipccl_program *program,
                                const struct zipccl_pricing *pricing, int mode,
                                struct candidate *out)
{
    uint32_t n = 0;

    for (uint32_t row = 0; row < program->nrows; row++)
        out[row] = (struct candidate){row, 0};
    for (size_t i = 0; i < program->nevents; i++) {
        const struct zipccl_program_event *e = &program->events[i];

        for (uint32_t part = 0; e->group != NULL && part < e->nparts; part++) {
            const struct zipccl_price *price = zipccl_pricing_get(pricing, e, part, mode);

            if (price->compressed && e->nmembers[part] > 0)
                out[e->row].codec_s += (double)e->calls * price->codec_s;
        }
    }
    qsort(out, program->nrows, sizeof(*out), compare_candidates);
    while (n < program->nrows && n < MAX_TRIED && out[n].codec_s > 0)
        n++;
    return n;
}

/* From 'start' on, send raw one row after another as long as the step at T0 gets no longer. */
static zipccl_status refine(const struct zipccl_program *program, struct zipccl_pricing *pricing,
                            int start, uint32_t *nreverted)
{
    struct candidate *rows = malloc(((size_t)program->nrows + 1) * sizeof(*rows));
    struct zipccl_times *times = NULL;
    zipccl_status status = rows != NULL ? zipccl_times_create(program, &times) : ZIPCCL_ERR_NOMEM;
    uint32_t n = 0;
    double best = 0;

    *nreverted = 0;
    memset(pricing->row_mode, start, program->nrows);
    if (status == ZIPCCL_OK)
        status = zipccl_step_t0_run(program, pricing, start, times);
    if (status == ZIPCCL_OK) {
        best = times->step_s;
        n = find_candidates(program, pricing, start, rows);
    }
    for (uint32_t i = 0; i < n && status == ZIPCCL_OK; i++) {
        pricing->row_mode[rows[i].row] = ZIPCCL_STEP_RAW;
        status = zipccl_step_t0_run(program, pricing, ZIPCCL_RUN_REFINED, times);
        if (times->step_s <= best * (1 + 1e-12)) {
            best = times->step_s;
            ++*nreverted;
        } else {
            pricing->row_mode[rows[i].row] = (unsigned char)start;
        }
    }
    zipccl_times_destroy(times);
    free(rows);
    return status;
}

/* The mode whose plans adaptive takes for every call, if there is one: one run serves both. */
static int adaptive_like(const struct zipccl_pricing *pricing)
{
    for (int mode = ZIPCCL_STEP_RAW; mode < ZIPCCL_STEP_ADAPTIVE; mode++)
        if (zipccl_pricing_adaptive_is(pricing, mode))
            return mode;
    return ZIPCCL_STEP_ADAPTIVE;
}

/* Run the modes of 'wanted', [nwanted], side by side. */
static zipccl_status run_modes(struct zipccl_adapted *a, const int *wanted, uint32_t nwanted,
                               const struct zipccl_adapt_options *o, struct zipccl_error *error)
{
    struct zipccl_child_task tasks[ZIPCCL_NUM_RUNS];

    /* At T0 nothing forbids to run here; a child is worth it only beside others. */
    if (o->nprocs < 2 && a->runs[0].base->fidelity == ZIPCCL_FIDELITY_T0) {
        for (uint32_t i = 0; i < nwanted; i++)
            ZIPCCL_TRY(zipccl_run_here(&a->runs[wanted[i]], error));
        return ZIPCCL_OK;
    }
    for (uint32_t i = 0; i < nwanted; i++)
        tasks[i] = zipccl_run_task(&a->runs[wanted[i]]);
    return zipccl_child_run(tasks, nwanted, o->nprocs, o->finished, o->context, error);
}

/* Raw, compressed and call by call. */
static zipccl_status run_first(struct zipccl_adapted *a, const struct zipccl_pricing *pricing,
                               const struct zipccl_adapt_options *o, struct zipccl_error *error)
{
    int like = pricing->raw_only ? ZIPCCL_STEP_RAW : adaptive_like(pricing);
    int wanted[ZIPCCL_NUM_STEPS];
    uint32_t n = 0;

    if (o->raw == NULL)
        wanted[n++] = ZIPCCL_STEP_RAW;
    if (!pricing->raw_only)
        wanted[n++] = ZIPCCL_STEP_COMPRESSED;
    if (like == ZIPCCL_STEP_ADAPTIVE)
        wanted[n++] = ZIPCCL_STEP_ADAPTIVE;
    ZIPCCL_TRY(run_modes(a, wanted, n, o, error));
    if (o->raw != NULL)
        zipccl_run_copy(&a->runs[ZIPCCL_STEP_RAW], o->raw);
    if (pricing->raw_only)
        zipccl_run_copy(&a->runs[ZIPCCL_STEP_COMPRESSED], &a->runs[ZIPCCL_STEP_RAW]);
    if (like != ZIPCCL_STEP_ADAPTIVE)
        zipccl_run_copy(&a->runs[ZIPCCL_STEP_ADAPTIVE], &a->runs[like]);
    return ZIPCCL_OK;
}

static double step_s(const struct zipccl_adapted *a, int run)
{
    return a->runs[run].step->step_s;
}

/* The refined step, if it differs from those that were run. */
static zipccl_status run_refined(struct zipccl_adapted *a, struct zipccl_pricing *pricing,
                                 const struct zipccl_adapt_options *o, struct zipccl_error *error)
{
    const struct zipccl_program *program = a->runs[0].base->program;
    int start = step_s(a, ZIPCCL_STEP_COMPRESSED) < step_s(a, ZIPCCL_STEP_ADAPTIVE)
                    ? ZIPCCL_STEP_COMPRESSED
                    : ZIPCCL_STEP_ADAPTIVE;
    int wanted = ZIPCCL_RUN_REFINED;

    if (refine(program, pricing, start, &a->nreverted) != ZIPCCL_OK)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    if (a->nreverted == 0)
        return ZIPCCL_OK;
    a->refined = true;
    return run_modes(a, &wanted, 1, o, error);
}

/* Never longer than raw, compressed or call by call; refined only where it gains. */
static int choose(const struct zipccl_adapted *a)
{
    int best = ZIPCCL_STEP_ADAPTIVE;

    if (a->refined && step_s(a, ZIPCCL_RUN_REFINED) < step_s(a, best) * (1 - SAME_STEP))
        best = ZIPCCL_RUN_REFINED;
    for (int mode = ZIPCCL_STEP_RAW; mode < ZIPCCL_STEP_ADAPTIVE; mode++)
        if (step_s(a, mode) < step_s(a, best) ||
            (best == ZIPCCL_RUN_REFINED && step_s(a, mode) == step_s(a, best)))
            best = mode;
    return best;
}

zipccl_status zipccl_adapt(const struct zipccl_run_base *base, struct zipccl_pricing *pricing,
                           const struct zipccl_adapt_options *options, struct zipccl_adapted *out,
                           struct zipccl_error *error)
{
    memset(out, 0, sizeof(*out));
    for (int i = 0; i < ZIPCCL_NUM_RUNS; i++) {
        if ((options->keep ? zipccl_run_init_kept(&out->runs[i], base, i)
                           : zipccl_run_init(&out->runs[i], base, i)) != ZIPCCL_OK)
            return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
        out->runs[i].pricing = pricing;
    }
    ZIPCCL_TRY(run_first(out, pricing, options, error));
    if (!pricing->raw_only && base->fidelity <= ZIPCCL_FIDELITY_T1)
        ZIPCCL_TRY(run_refined(out, pricing, options, error));
    out->best = choose(out);
    return ZIPCCL_OK;
}

void zipccl_adapted_release(struct zipccl_adapted *adapted)
{
    for (int i = 0; i < ZIPCCL_NUM_RUNS; i++)
        zipccl_run_release(&adapted->runs[i]);
}

void zipccl_adapted_describe(const struct zipccl_adapted *adapted, char *text, size_t capacity)
{
    double mix_s = step_s(adapted, ZIPCCL_STEP_ADAPTIVE), best_s = step_s(adapted, adapted->best);
    double percent = best_s > 0 ? 100 * (mix_s / best_s - 1) : 0;

    text[0] = '\0';
    if (adapted->best == ZIPCCL_RUN_REFINED)
        snprintf(text, capacity,
                 "call by call the step takes %.3f ms, %.2f %% more: refined, %u row%s whose "
                 "compression does not shorten the step sent raw",
                 1e3 * mix_s, percent, adapted->nreverted, adapted->nreverted == 1 ? "" : "s");
    else if (adapted->best != ZIPCCL_STEP_ADAPTIVE)
        snprintf(text, capacity,
                 "call by call the step takes %.3f ms, %.2f %% more than always %s (contention): "
                 "pinned to %s",
                 1e3 * mix_s, percent, adapted->best == ZIPCCL_STEP_RAW ? "raw" : "compressed",
                 adapted->best == ZIPCCL_STEP_RAW ? "raw" : "compressed");
}

static double row_sum(const struct zipccl_run *run)
{
    double sum = 0;

    for (uint32_t i = 0; i < run->base->program->nrows; i++)
        sum += run->row_time[i];
    return sum;
}

zipccl_status zipccl_adapt_step(const struct zipccl_run_base *base,
                                const struct zipccl_scenario *scenario,
                                const struct zipccl_run *raw, struct zipccl_adapted_step *out,
                                struct zipccl_error *error)
{
    struct zipccl_adapt_options options = {.nprocs = 1, .raw = raw};
    struct zipccl_scenario needed = *scenario;
    struct zipccl_pricing *pricing = NULL;
    struct zipccl_adapted adapted;
    zipccl_status status;

    needed.flows = base->fidelity == ZIPCCL_FIDELITY_T1;
    needed.native = base->native;
    ZIPCCL_TRY(zipccl_pricing_create(base->program, base->cluster, &needed, base->samples, &pricing,
                                     error));
    status = zipccl_adapt(base, pricing, &options, &adapted, error);
    if (status == ZIPCCL_OK)
        *out = (struct zipccl_adapted_step){
            step_s(&adapted, ZIPCCL_STEP_RAW), step_s(&adapted, adapted.best),
            row_sum(&adapted.runs[ZIPCCL_STEP_RAW]), row_sum(&adapted.runs[adapted.best])};
    zipccl_adapted_release(&adapted);
    zipccl_pricing_destroy(pricing);
    return status;
}
