/*
 * replay_rows.c - the rows of a result: bytes, ratios, times and exposures of each call
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/replay_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the events of one row add up to; bytes of the rank that the row is of. */
struct sums {
    double raw_bytes, wire_bytes, sent_bytes;
    double by_source[ZIPCCL_NUM_RATIO_SOURCES]; /* raw bytes */
    double weight[ZIPCCL_NUM_STEPS];            /* time of the call whose name is shown */
    char name[ZIPCCL_NUM_STEPS][48];
    const struct zipccl_price *compressed; /* of the call that names it */
};

/* The strategy that takes most of the row's time gives the row its name. */
static void weigh_name(struct sums *sums, int mode, const struct zipccl_price *price, double calls)
{
    double weight = price->total_s * calls;

    if (weight < sums->weight[mode])
        return;
    sums->weight[mode] = weight;
    if (mode == ZIPCCL_STEP_COMPRESSED)
        sums->compressed = price;
    memcpy(sums->name[mode], price->name, sizeof(price->name));
}

/* Parts of a group that lie differently may do differently. */
static void add_event(const struct zipccl_replay_state *state, size_t index, struct sums *sums)
{
    const struct zipccl_program_event *e = &state->program->events[index];
    enum zipccl_ratio_source source =
        zipccl_samples_source(state->samples, state->program->classes[e->class].set);
    uint32_t rank = state->program->rows[e->row].rank;
    double calls = (double)e->calls;

    for (uint32_t part = 0; part < e->nparts; part++) {
        const struct zipccl_price *adaptive;

        if (e->nmembers[part] == 0)
            continue;
        adaptive = zipccl_pricing_get(state->pricing, e, part, state->adapted.best);
        for (int mode = 0; mode < ZIPCCL_NUM_STEPS; mode++)
            weigh_name(sums, mode,
                       mode == ZIPCCL_STEP_ADAPTIVE
                           ? adaptive
                           : zipccl_pricing_get(state->pricing, e, part, mode),
                       calls);
    }
    if (e->part_of[rank] != ZIPCCL_NO_PART) {
        const struct zipccl_price *adaptive =
            zipccl_pricing_get(state->pricing, e, e->part_of[rank], state->adapted.best);

        if (!adaptive->compressed)
            source = ZIPCCL_RATIO_NONE;
        sums->raw_bytes += calls * adaptive->raw_bytes;
        sums->wire_bytes += calls * adaptive->wire_bytes;
        sums->sent_bytes += calls * adaptive->sent_bytes;
        sums->by_source[source] += calls * adaptive->raw_bytes;
    }
}

static enum zipccl_ratio_source main_source(const struct sums *sums)
{
    int best = ZIPCCL_RATIO_NONE;

    for (int i = 0; i < ZIPCCL_NUM_RATIO_SOURCES; i++)
        if (sums->by_source[i] > sums->by_source[best])
            best = i;
    return (enum zipccl_ratio_source)best;
}

static void fill_row(const struct zipccl_replay_state *state, uint32_t index,
                     const struct sums *sums, struct zipccl_result_row *row)
{
    const struct zipccl_program_row *r = &state->program->rows[index];
    const struct zipccl_trace_group *group = &state->trace->header.groups[r->event->group];
    const struct zipccl_run *runs = state->adapted.runs;

    row->op = r->event->op;
    row->dtype = r->event->dtype;
    row->count = r->event->count;
    row->nranks = group->size;
    row->calls = r->calls;
    snprintf(row->group, sizeof(row->group), "%.63s", group->name);
    snprintf(row->stream, sizeof(row->stream), "%.63s",
             state->trace->header.streams[r->event->stream]);
    row->raw_bytes = sums->raw_bytes;
    row->wire_bytes = sums->wire_bytes;
    row->sent_bytes = sums->sent_bytes;
    row->ratio = sums->wire_bytes > 0 ? sums->raw_bytes / sums->wire_bytes : 1;
    row->ratio_source = zipccl_ratio_source_name(main_source(sums));
    memcpy(row->strategy_raw, sums->name[ZIPCCL_STEP_RAW], sizeof(row->strategy_raw));
    memcpy(row->strategy_compressed, sums->name[ZIPCCL_STEP_COMPRESSED],
           sizeof(row->strategy_compressed));
    memcpy(row->strategy, sums->name[ZIPCCL_STEP_ADAPTIVE], sizeof(row->strategy));
    if (sums->compressed != NULL) {
        if (sums->compressed->capacity_class != ZIPCCL_NO_CLASS)
            row->capacity_class = zipccl_class_name(sums->compressed->capacity_class);
        row->capacity_ratio = sums->compressed->capacity_ratio;
        row->overflows_settled = sums->compressed->overflows_settled;
    }
    row->time_recorded_s = r->recorded_s;
    row->time_raw_s = runs[ZIPCCL_STEP_RAW].row_time[index];
    row->time_compressed_s = runs[ZIPCCL_STEP_COMPRESSED].row_time[index];
    row->time_adaptive_s = runs[state->adapted.best].row_time[index];
    row->exposed_raw_s = runs[ZIPCCL_STEP_RAW].row_exposed[index];
    row->exposed_compressed_s = runs[ZIPCCL_STEP_COMPRESSED].row_exposed[index];
    row->exposed_adaptive_s = runs[state->adapted.best].row_exposed[index];
}

/* True if 'name' is one of 'list', "fp32, int64": "int8" is not in "uint8". */
static bool lists(const char *list, const char *name)
{
    size_t n = strlen(name), length;

    for (const char *at = list; *at != '\0'; at += length + strspn(at + length, ", ")) {
        length = strcspn(at, ",");
        if (length == n && memcmp(at, name, n) == 0)
            return true;
    }
    return false;
}

/* Types that the codec does not cover, with the bytes they moved. */
static void note_raw_type(struct zipccl_replay_result *result, const struct zipccl_result_row *row)
{
    const char *name = zipccl_dtype_name(row->dtype);
    size_t n = strlen(result->raw_dtypes);

    if (zipccl_dtype_compressible(row->dtype))
        return;
    result->raw_dtype_bytes += row->raw_bytes;
    if (!lists(result->raw_dtypes, name))
        snprintf(result->raw_dtypes + n, sizeof(result->raw_dtypes) - n, "%s%s", n ? ", " : "",
                 name);
}

static void sum_up(const struct zipccl_replay_state *state, const struct sums *sums,
                   struct zipccl_replay_result *result)
{
    double raw_s = 0, adaptive_s = 0, total = 0;

    for (size_t i = 0; i < result->nrows; i++) {
        raw_s += result->rows[i].time_raw_s;
        adaptive_s += result->rows[i].time_adaptive_s;
        note_raw_type(result, &result->rows[i]);
        for (int k = 0; k < ZIPCCL_NUM_RATIO_SOURCES; k++) {
            result->source_share[k] += sums[i].by_source[k];
            total += sums[i].by_source[k];
        }
    }
    for (int k = 0; k < ZIPCCL_NUM_RATIO_SOURCES && total > 0; k++)
        result->source_share[k] /= total;
    if (state->options.raw && state->options.adaptive && adaptive_s > 0)
        result->comm_speedup = raw_s / adaptive_s;
}

zipccl_status zipccl_replay_rows(const struct zipccl_replay_state *state,
                                 struct zipccl_replay_result *result)
{
    uint32_t nrows = state->program->nrows;
    struct sums *sums = calloc((size_t)nrows + 1, sizeof(*sums));

    result->rows = calloc((size_t)nrows + 1, sizeof(*result->rows));
    if (sums == NULL || result->rows == NULL) {
        free(sums);
        return ZIPCCL_ERR_NOMEM;
    }
    for (size_t i = 0; i < state->program->nevents; i++)
        if (state->program->events[i].group != NULL)
            add_event(state, i, &sums[state->program->events[i].row]);
    for (uint32_t i = 0; i < nrows; i++)
        fill_row(state, i, &sums[i], &result->rows[i]);
    result->nrows = nrows;
    sum_up(state, sums, result);
    qsort(result->rows, nrows, sizeof(*result->rows), zipccl_result_row_order);
    free(sums);
    return ZIPCCL_OK;
}
