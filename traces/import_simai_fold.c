/*
 * import_simai_fold.c - what a SimAI workload's header and layers imply
 *
 * Group sizes, recomputation, and the micro-batches: AICB writes the layers of every micro-batch
 * out, so the period is found and the step is written as a loop.  A file of GA micro-batches takes
 * as many events as one of a single micro-batch.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_simai_fold.h"

#include "traces/trace_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* World of a file that does not say it: the smallest from this on that fits. */
#define DEFAULT_WORLD 64

/* Pipeline stages, and layers written out for all of them. */
#define MAX_STAGES 1024
#define MAX_ROWS   2000000

static zipccl_status default_degree(struct simai_workload *w, const char *what, uint64_t *degree,
                                    bool guess)
{
    if (*degree > 0)
        return ZIPCCL_OK;
    *degree = 1;
    return zipccl_import_count(w->importer, guess, what, 1, 1,
                               "the first line lacks it: 1 is assumed");
}

static zipccl_status find_world(struct simai_workload *w)
{
    uint64_t given = w->importer->options->nranks, unit = w->tp * w->pp * w->ep;
    uint64_t likely = w->importer->options->likely_nranks;

    if (w->all_gpus > 0)
        return zipccl_import_count(
            w->importer, false, "nranks", 1, given > 0 && given != w->all_gpus,
            "the option is not used, since the file says all_gpus: %" PRIu64, w->all_gpus);
    if (given > 0) {
        w->all_gpus = given;
        return ZIPCCL_OK;
    }
    w->all_gpus =
        likely > 0 && likely % unit == 0 ? likely : (DEFAULT_WORLD + unit - 1) / unit * unit;
    return zipccl_import_count(w->importer, true, "all_gpus", 1, 1,
                               "the file does not say how many ranks there are: %" PRIu64
                               " are assumed, option nranks sets another number",
                               w->all_gpus);
}

/* True if some call goes to 'set'. */
static bool uses_set(const struct simai_workload *w, enum simai_set set)
{
    for (size_t i = 0; i < w->nrows; i++)
        for (int phase = 0; phase < SIMAI_PHASES; phase++)
            if (w->rows[i].part[phase].call != SIMAI_NONE && w->rows[i].part[phase].set == set)
                return true;
    return false;
}

static zipccl_status check_degrees(struct simai_workload *w)
{
    struct zipccl_place at = {w->importer->paths[0], 1, w->importer->error};

    if (w->all_gpus > ZIPCCL_TRACE_MAX_RANKS)
        return zipccl_place_fail(&at, "%" PRIu64 " ranks, expected at most %" PRIu32, w->all_gpus,
                                 ZIPCCL_TRACE_MAX_RANKS);
    if (w->all_gpus % (w->tp * w->pp) != 0)
        return zipccl_place_fail(
            &at, "%" PRIu64 " ranks, expected a multiple of TP %" PRIu64 " times PP %" PRIu64,
            w->all_gpus, w->tp, w->pp);
    w->dp = w->all_gpus / (w->tp * w->pp);
    if (w->dp % w->ep != 0 && (uses_set(w, SIMAI_EP) || uses_set(w, SIMAI_DP_EP)))
        return zipccl_place_fail(&at,
                                 "EP %" PRIu64 ", expected a divisor of the %" PRIu64
                                 " data-parallel ranks (%" PRIu64 " over TP times PP)",
                                 w->ep, w->dp, w->all_gpus);
    return ZIPCCL_OK;
}

static zipccl_status find_degrees(struct simai_workload *w)
{
    struct zipccl_place at = {w->importer->paths[0], 1, w->importer->error};
    bool hybrid = w->mode == SIMAI_MODE_TRANSFORMER;

    if (!hybrid)
        w->tp = w->pp = 1;
    ZIPCCL_TRY(default_degree(w, "ep", &w->ep, hybrid && uses_set(w, SIMAI_EP)));
    ZIPCCL_TRY(default_degree(w, "pp", &w->pp, hybrid));
    ZIPCCL_TRY(default_degree(w, "ga", &w->ga, false));
    ZIPCCL_TRY(default_degree(w, "tp", &w->tp, true));
    if (w->tp > ZIPCCL_TRACE_MAX_RANKS || w->pp > ZIPCCL_TRACE_MAX_RANKS / w->tp ||
        w->ep > ZIPCCL_TRACE_MAX_RANKS / w->tp / w->pp)
        return zipccl_place_fail(&at,
                                 "TP %" PRIu64 ", EP %" PRIu64 ", PP %" PRIu64
                                 ", expected at most %" PRIu32 " ranks",
                                 w->tp, w->ep, w->pp, ZIPCCL_TRACE_MAX_RANKS);
    ZIPCCL_TRY(find_world(w));
    if (w->mode == SIMAI_MODE_MODEL || w->mode == SIMAI_MODE_INFERENCE)
        w->tp = w->all_gpus;
    return check_degrees(w);
}

/* Calls of groups of one rank: nothing moves, unless a person knows better. */
static zipccl_status find_single(struct simai_workload *w)
{
    bool move = w->importer->options->single_tp_as_dp;

    if (w->tp > 1)
        return ZIPCCL_OK;
    for (size_t i = 0; i < w->nrows; i++) {
        for (int phase = 0; phase < SIMAI_PHASES; phase++) {
            struct simai_part *part = &w->rows[i].part[phase];

            if (part->call == SIMAI_NONE || part->set != SIMAI_TP)
                continue;
            if (move)
                part->set = SIMAI_DP;
            else
                ZIPCCL_TRY(zipccl_import_count(
                    w->importer, false, "single rank", w->rows[i].line, 1,
                    "calls of tensor-parallel groups of one rank move nothing; files of DeepSpeed "
                    "mean data parallel: option single_tp_as_dp"));
        }
    }
    return ZIPCCL_OK;
}

static int compare_layers(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* The backward pass of an initiating layer starts with the forward passes from the nearest
 * checkpoint before it on. */
static zipccl_status find_recompute(struct simai_workload *w)
{
    struct zipccl_place at = {w->importer->paths[0], 1, w->importer->error};
    uint64_t sum = 0;

    if (w->ncheckpoints > 0)
        qsort(w->checkpoints, w->ncheckpoints, sizeof *w->checkpoints, compare_layers);
    for (size_t i = 0; i < w->ninitiates; i++) {
        uint64_t layer = w->initiates[i];
        size_t k = w->ncheckpoints;

        if (layer >= w->nrows)
            return zipccl_place_fail(
                &at, "checkpoint_initiates names layer %" PRIu64 ", expected 0 to %zu", layer,
                w->nrows - 1);
        while (k > 0 && w->checkpoints[k - 1] > layer)
            k--;
        if (k == 0)
            return zipccl_place_fail(&at,
                                     "no checkpoint at or before layer %" PRIu64
                                     " of checkpoint_initiates, expected one",
                                     layer);
        w->rows[layer].recompute = (uint32_t)(layer - w->checkpoints[k - 1]);
    }
    for (size_t i = 0; i < w->nrows; i++)
        sum += w->rows[i].recompute;
    if (sum > w->nrows)
        return zipccl_place_fail(&at,
                                 "checkpoints repeat %" PRIu64 " layers of %zu, expected each at "
                                 "most once",
                                 sum, w->nrows);
    return ZIPCCL_OK;
}

/* Compare two rows; compute times only if 'times' is set. */
static bool same_rows(const struct simai_row *a, const struct simai_row *b, bool times)
{
    if (a->recompute != b->recompute || strcmp(a->name, b->name) != 0)
        return false;
    for (int phase = 0; phase < SIMAI_PHASES; phase++) {
        const struct simai_part *x = &a->part[phase], *y = &b->part[phase];

        if (x->nbytes != y->nbytes || x->call != y->call || x->set != y->set ||
            (times && x->ns != y->ns))
            return false;
    }
    return true;
}

static bool starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* Rows that recompute must find what they recompute in their own micro-batch. */
static bool self_contained(const struct simai_workload *w, size_t start, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (w->rows[start + i].recompute > i)
            return false;
    return true;
}

/* Of a run that is periodic for longer than needed, prefer to start with the embedding. */
static size_t choose_start(const struct simai_workload *w, size_t first, size_t last)
{
    for (size_t i = first; i <= last; i++)
        if (starts_with(w->rows[i].name, "embedding_layer"))
            return i;
    return first;
}

/* Find 'ga' blocks of 'period' rows one after the other that differ in times at most. */
static bool find_period(const struct simai_workload *w, size_t period, size_t *start)
{
    size_t need = period * (size_t)(w->ga - 1), run = 0;

    for (size_t i = 0; i + period < w->nrows; i++) {
        size_t first, last = i;

        run = same_rows(&w->rows[i], &w->rows[i + period], false) ? run + 1 : 0;
        if (run < need)
            continue;
        first = i + 1 - run;
        while (last + 1 + period < w->nrows &&
               same_rows(&w->rows[last + 1], &w->rows[last + 1 + period], false))
            last++;
        *start = choose_start(w, first, last + 1 - need);
        return self_contained(w, *start, period);
    }
    return false;
}

static bool same_blocks(const struct simai_workload *w, size_t a, size_t b)
{
    for (size_t i = 0; i < w->block_rows; i++)
        if (!same_rows(&w->rows[a + i], &w->rows[b + i], true))
            return false;
    return true;
}

/* Cut 'n' blocks into runs of equal ones: AICB gives the first one other times. */
static zipccl_status make_runs(struct simai_workload *w, size_t n)
{
    struct zipccl_place at = simai_place(w);
    size_t capacity = 1;

    w->block_end = w->block + n * w->block_rows;
    for (size_t i = 1; i < n; i++)
        capacity +=
            !same_blocks(w, w->block + (i - 1) * w->block_rows, w->block + i * w->block_rows);
    w->runs = zipccl_arena_alloc(&w->arena, capacity, sizeof *w->runs);
    if (w->runs == NULL)
        return zipccl_place_nomem(&at);
    for (size_t i = 0; i < n; i++) {
        size_t first = w->block + i * w->block_rows;

        if (i == 0 || !same_blocks(w, first - w->block_rows, first))
            w->runs[w->nruns++].first = first;
        w->runs[w->nruns - 1].repeat++;
    }
    return ZIPCCL_OK;
}

/* Without a period, the layers between those of gradients and those of the end are the block. */
static zipccl_status named_block(struct simai_workload *w)
{
    size_t first = 0, end;

    while (first < w->nrows && !starts_with(w->rows[first].name, "embedding_layer"))
        first++;
    if (first == w->nrows)
        first = 0;
    for (end = first + 1; end < w->nrows; end++)
        if (starts_with(w->rows[end].name, "cross_entropy") ||
            starts_with(w->rows[end].name, "optimizer"))
            break;
    w->block = first;
    w->block_rows = end - first;
    return make_runs(w, 1);
}

/* Run 'wanted' micro-batches instead of 'ga': the longest run of equal ones takes the difference. */
static zipccl_status change_number(struct simai_workload *w, uint64_t wanted)
{
    struct zipccl_place at = {w->importer->paths[0], 0, w->importer->error};
    struct simai_run *longest = w->runs;

    for (size_t i = 1; i < w->nruns; i++)
        if (w->runs[i].repeat > longest->repeat)
            longest = &w->runs[i];
    if (wanted + longest->repeat <= w->ga)
        return zipccl_place_fail(&at,
                                 "%" PRIu64 " micro-batches wanted, expected more than the %" PRIu64
                                 " that differ from the rest",
                                 wanted, w->ga - longest->repeat);
    longest->repeat = wanted - (w->ga - longest->repeat);
    return ZIPCCL_OK;
}

static zipccl_status find_micro_batches(struct simai_workload *w)
{
    struct zipccl_place at = {w->importer->paths[0], 0, w->importer->error};
    uint64_t wanted = w->importer->options->micro_batches;

    if (w->ga > 1 && w->mode != SIMAI_MODE_MICRO) {
        for (size_t period = (size_t)(w->nrows / w->ga); period > 0; period--) {
            if (!find_period(w, period, &w->block))
                continue;
            w->block_rows = period;
            ZIPCCL_TRY(make_runs(w, (size_t)w->ga));
            return wanted > 0 ? change_number(w, wanted) : ZIPCCL_OK;
        }
    }
    w->block = 0;
    if (wanted > 0)
        return zipccl_place_fail(&at,
                                 "no block of layers that repeats ga times, expected one to run "
                                 "%" PRIu64 " times",
                                 wanted);
    if (w->pp > 1)
        ZIPCCL_TRY(named_block(w));
    return zipccl_import_count(w->importer, true, "micro-batches", 1, w->ga > 1,
                               "ga is %" PRIu64 ", but no block of layers repeats as often: the "
                               "layers run once, as they stand",
                               w->ga);
}

/* What the pipeline needs; without sizes there is none. */
static zipccl_status find_pipeline(struct simai_workload *w)
{
    const struct zipccl_importer *importer = w->importer;
    struct zipccl_place at = {importer->paths[0], 1, importer->error};

    ZIPCCL_TRY(zipccl_import_count(importer, false, "pp_comm", 1, w->pp == 1 && w->pp_nbytes > 0,
                                   "pp_comm is not used, since pp is 1"));
    if (w->pp == 1)
        return ZIPCCL_OK;
    if (w->pp > MAX_STAGES || w->nruns * w->block_rows > MAX_ROWS / w->pp)
        return zipccl_place_fail(&at,
                                 "%" PRIu64 " stages of %zu layers, expected at most %d stages and "
                                 "%d layers in all",
                                 w->pp, w->nruns * w->block_rows, MAX_STAGES, MAX_ROWS);
    ZIPCCL_TRY(zipccl_import_count(importer, true, "pp_comm", 1, w->pp_nbytes == 0,
                                   "pp is %" PRIu64 ", but pp_comm is absent or 0: stages send "
                                   "each other nothing and run at the same time",
                                   w->pp));
    ZIPCCL_TRY(zipccl_import_count(importer, false, "vpp", 1, w->vpp > 1,
                                   "vpp: %" PRIu64 " is not used: AICB writes the number of layers "
                                   "there, and stages are not interleaved",
                                   w->vpp));
    return zipccl_import_count(importer, true, "pipeline", 1, 1,
                               "the file gives layers of one stage: all %" PRIu64
                               " stages run the same, ranks are ordered TP, DP, PP, all forward "
                               "passes come before the backward passes",
                               w->pp);
}

zipccl_status simai_complete(struct simai_workload *w)
{
    ZIPCCL_TRY(find_degrees(w));
    ZIPCCL_TRY(find_single(w));
    ZIPCCL_TRY(find_recompute(w));
    ZIPCCL_TRY(find_micro_batches(w));
    return find_pipeline(w);
}
