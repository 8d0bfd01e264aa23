/*
 * report_perfetto.c - a replayed step as Chrome trace events, for Perfetto and readers of Kineto
 *
 * One process a rank, one thread a stream, one complete event ("X") a kernel or collective, in
 * microseconds from the begin of the step.  docs/replay.md describes the file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/report/report.h"

#include "experiments/program/json_put.h"
#include "experiments/trace/kineto_names.h"
#include "experiments/program/sink.h"
#include "sim/timeline.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct writer {
    const struct zipccl_replay_result *result;
    const struct zipccl_timeline *timeline;
    const struct zipccl_trace_header *header;
    yajl_gen gen;
    struct zipccl_sink *sink;
};

/* Perfetto takes thread 0 for the idle thread, so streams count from 1. */
static uint32_t thread_of(uint32_t stream)
{
    return stream + 1;
}

/* Whole nanoseconds: begin and end are rounded, so what follows without a gap still does. */
static int64_t nanoseconds(double seconds)
{
    return llround(seconds * 1e9);
}

static void put_us(struct writer *w, const char *key, int64_t ns)
{
    char digits[40];
    int n = snprintf(digits, sizeof digits, "%" PRId64 ".%03" PRId64, ns / 1000, ns % 1000);

    zipccl_put_key(w->gen, key);
    yajl_gen_number(w->gen, digits, (size_t)n);
}

static void open_event(struct writer *w, const char *ph, uint32_t rank, uint32_t stream)
{
    /* One event a line; white space between tokens is free in JSON. */
    zipccl_sink_put(w->sink, "\n", 1);
    yajl_gen_map_open(w->gen);
    zipccl_put_string(w->gen, "ph", ph);
    zipccl_put_integer(w->gen, "pid", rank);
    zipccl_put_integer(w->gen, "tid", thread_of(stream));
}

static void put_metadata(struct writer *w, uint32_t rank, uint32_t stream, const char *name,
                         const char *key, const char *text, uint64_t number)
{
    open_event(w, "M", rank, stream);
    zipccl_put_string(w->gen, "name", name);
    zipccl_put_key(w->gen, "args");
    yajl_gen_map_open(w->gen);
    if (text != NULL)
        zipccl_put_string(w->gen, key, text);
    else
        zipccl_put_integer(w->gen, key, number);
    yajl_gen_map_close(w->gen);
    yajl_gen_map_close(w->gen);
}

static void put_names(struct writer *w)
{
    for (uint32_t k = 0; k < w->timeline->nranks; k++) {
        uint32_t rank = w->timeline->ranks[k], gpus = w->timeline->gpus_per_node;
        char text[160];

        snprintf(text, sizeof text, "rank %" PRIu32, rank);
        put_metadata(w, rank, 0, "process_name", "name", text, 0);
        snprintf(text, sizeof text, "node %" PRIu32 ", GPU %" PRIu32 ", simulated, %s", rank / gpus,
                 rank % gpus, zipccl_step_names[w->timeline->mode]);
        put_metadata(w, rank, 0, "process_labels", "labels", text, 0);
        put_metadata(w, rank, 0, "process_sort_index", "sort_index", NULL, rank);
        for (uint32_t s = 0; s < w->header->nstreams; s++) {
            snprintf(text, sizeof text, "stream %" PRIu32 " %.120s", thread_of(s),
                     w->header->streams[s]);
            put_metadata(w, rank, s, "thread_name", "name", text, 0);
            put_metadata(w, rank, s, "thread_sort_index", "sort_index", NULL, s);
        }
    }
}

/* What is ours, with units in the names. */
static void put_own(struct writer *w, const struct zipccl_span *span)
{
    const struct zipccl_event *e = &w->timeline->trace->events[span->event];
    const struct zipccl_span_price *price = &w->timeline->prices[span->price];
    double ratio = price->wire_bytes > 0 ? price->raw_bytes / price->wire_bytes : 1;

    zipccl_put_string(w->gen, "op", zipccl_op_name(e->op));
    zipccl_put_integer(w->gen, "count", e->count);
    if (e->op == ZIPCCL_REDUCE_SCATTER || e->op == ZIPCCL_ALL_REDUCE)
        zipccl_put_string(w->gen, "redop", zipccl_redop_name(e->redop));
    zipccl_put_string(w->gen, "strategy", price->strategy);
    zipccl_put_number(w->gen, "raw_bytes", price->raw_bytes, true);
    zipccl_put_number(w->gen, "wire_bytes", price->wire_bytes, true);
    zipccl_put_number(w->gen, "ratio", ratio, true);
    put_us(w, "codec_us", nanoseconds(price->codec_s));
    put_us(w, "wait_us", nanoseconds(span->start_s) - nanoseconds(span->enter_s));
}

static void put_times(struct writer *w, double from_s, double to_s)
{
    int64_t from = nanoseconds(from_s), to = nanoseconds(to_s);

    put_us(w, "ts", from);
    put_us(w, "dur", to > from ? to - from : 0);
}

/* The rank is there and another one is not: an event of its own before the collective's. */
static void put_wait(struct writer *w, const struct zipccl_span *span, const char *kernel)
{
    char name[ZIPCCL_KINETO_NAME_SIZE + 8];

    if (nanoseconds(span->start_s) <= nanoseconds(span->enter_s))
        return;
    snprintf(name, sizeof name, "wait: %s", kernel);
    open_event(w, "X", span->rank, span->stream);
    zipccl_put_string(w->gen, "cat", "wait");
    zipccl_put_string(w->gen, "name", name);
    put_times(w, span->enter_s, span->start_s);
    yajl_gen_map_close(w->gen);
}

static void put_span(struct writer *w, const struct zipccl_span *span)
{
    const struct zipccl_event *e = &w->timeline->trace->events[span->event];
    bool collective = e->kind == ZIPCCL_EVENT_COLLECTIVE;
    char kernel[ZIPCCL_KINETO_NAME_SIZE];
    bool compute = e->kind == ZIPCCL_EVENT_COMPUTE;
    const char *name = e->label != NULL ? e->label : compute ? "compute" : "communication";

    if (collective) {
        name = zipccl_kineto_kernel(kernel, e, w->timeline->prices[span->price].compressed);
        put_wait(w, span, name);
    }
    open_event(w, "X", span->rank, span->stream);
    zipccl_put_string(w->gen, "cat", "kernel");
    zipccl_put_string(w->gen, "name", name);
    put_times(w, span->start_s, span->end_s);
    zipccl_put_key(w->gen, "args");
    yajl_gen_map_open(w->gen);
    zipccl_put_integer(w->gen, "External id", (uint64_t)span->op + 1);
    zipccl_put_integer(w->gen, "correlation", (uint64_t)span->op + 1);
    zipccl_put_integer(w->gen, "device", span->rank % w->timeline->gpus_per_node);
    zipccl_put_integer(w->gen, "stream", thread_of(span->stream));
    if (collective) {
        zipccl_kineto_put(w->gen, w->header, e, span->part, span->rank);
        if (e->label != NULL)
            zipccl_put_string(w->gen, "label", e->label);
        put_own(w, span);
    }
    yajl_gen_map_close(w->gen);
    yajl_gen_map_close(w->gen);
}

/* A process group with a rank that is shown. */
static bool group_is_shown(const struct writer *w, const uint32_t *ranks, uint32_t size,
                           const bool *shown)
{
    for (uint32_t i = 0; i < size; i++)
        if (shown[ranks[i]])
            return true;
    return w->timeline->all_ranks;
}

static void put_groups(struct writer *w, const bool *shown)
{
    zipccl_put_key(w->gen, "pg_config");
    yajl_gen_array_open(w->gen);
    for (uint32_t g = 0; g < w->header->ngroups; g++)
        for (uint32_t part = 0; part < w->header->groups[g].nparts; part++) {
            const struct zipccl_trace_group *group = &w->header->groups[g];
            const uint32_t *ranks = group->ranks + (size_t)part * group->size;
            char name[ZIPCCL_KINETO_NAME_SIZE];

            if (!group_is_shown(w, ranks, group->size, shown))
                continue;
            yajl_gen_map_open(w->gen);
            zipccl_put_string(w->gen, "pg_name", zipccl_kineto_group(name, group, part));
            zipccl_put_string(w->gen, "pg_desc", group->name);
            zipccl_put_integer(w->gen, "pg_size", group->size);
            zipccl_put_key(w->gen, "ranks");
            yajl_gen_array_open(w->gen);
            for (uint32_t i = 0; i < group->size; i++)
                yajl_gen_integer(w->gen, ranks[i]);
            yajl_gen_array_close(w->gen);
            yajl_gen_map_close(w->gen);
        }
    yajl_gen_array_close(w->gen);
}

static void put_head(struct writer *w, const bool *shown)
{
    const struct zipccl_replay_result *r = w->result;

    zipccl_put_integer(w->gen, "schemaVersion", 1);
    zipccl_put_string(w->gen, "displayTimeUnit", "ms");
    zipccl_put_integer(w->gen, "baseTimeNanoseconds", 0);
    zipccl_put_string(w->gen, "traceName", r->trace_name);
    zipccl_put_key(w->gen, "zipccl");
    yajl_gen_map_open(w->gen);
    zipccl_put_string(w->gen, "kind", r->measured ? "measured" : "simulated");
    zipccl_put_string(w->gen, "fidelity", r->fidelity);
    zipccl_put_string(w->gen, "mode", zipccl_step_names[w->timeline->mode]);
    zipccl_put_string(w->gen, "adaptive_note", r->adaptive_note);
    zipccl_put_string(w->gen, "trace", r->trace_model);
    zipccl_put_string(w->gen, "cluster", r->cluster_line);
    zipccl_put_number(w->gen, "step_time_s", r->steps[w->timeline->mode].step_s, true);
    zipccl_put_integer(w->gen, "ranks", r->nranks);
    zipccl_put_integer(w->gen, "ranks_shown", w->timeline->nranks);
    yajl_gen_map_close(w->gen);
    zipccl_put_key(w->gen, "distributedInfo");
    yajl_gen_map_open(w->gen);
    zipccl_put_string(w->gen, "backend", "nccl");
    zipccl_put_integer(w->gen, "rank", w->timeline->ranks[0]);
    zipccl_put_integer(w->gen, "world_size", w->header->nranks);
    put_groups(w, shown);
    yajl_gen_map_close(w->gen);
}

static zipccl_status put_all(struct writer *w, struct zipccl_error *error)
{
    bool *shown = calloc((size_t)w->header->nranks + 1, sizeof *shown);

    if (shown == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "timeline: out of memory");
    for (uint32_t k = 0; k < w->timeline->nranks; k++)
        shown[w->timeline->ranks[k]] = true;
    yajl_gen_map_open(w->gen);
    put_head(w, shown);
    free(shown);
    zipccl_put_key(w->gen, "traceEvents");
    yajl_gen_array_open(w->gen);
    put_names(w);
    for (size_t i = 0; i < w->timeline->nspans; i++)
        put_span(w, &w->timeline->spans[i]);
    yajl_gen_array_close(w->gen);
    yajl_gen_map_close(w->gen);
    zipccl_sink_put(w->sink, "\n", 1);
    return ZIPCCL_OK;
}

zipccl_status zipccl_report_perfetto(const struct zipccl_replay_result *result, const char *path,
                                     FILE *out, struct zipccl_error *error)
{
    struct writer w = {.result = result, .timeline = result->timeline};
    zipccl_status status;

    if (w.timeline == NULL || w.timeline->nranks == 0)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "timeline: none was kept");
    w.header = &w.timeline->trace->header;
    ZIPCCL_TRY(zipccl_sink_open(out, path, &w.sink, error));
    w.gen = yajl_gen_alloc(NULL);
    if (w.gen == NULL) {
        zipccl_sink_close(w.sink, NULL);
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "timeline: out of memory");
    }
    yajl_gen_config(w.gen, yajl_gen_print_callback, zipccl_sink_put, (void *)w.sink);
    status = put_all(&w, error);
    yajl_gen_free(w.gen);
    zipccl_status closed = zipccl_sink_close(w.sink, status == ZIPCCL_OK ? error : NULL);
    return status == ZIPCCL_OK ? closed : status;
}
