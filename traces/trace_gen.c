/*
 * trace_gen.c - headers and events as JSON
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/trace_gen.h"

#include "traces/trace_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void zipccl_gen_key(yajl_gen gen, const char *key)
{
    yajl_gen_string(gen, (const unsigned char *)key, strlen(key));
}

void zipccl_gen_string(yajl_gen gen, const char *key, const char *value)
{
    zipccl_gen_key(gen, key);
    zipccl_gen_key(gen, value);
}

static void gen_integer(yajl_gen gen, uint64_t value)
{
    char text[24];
    int n = snprintf(text, sizeof text, "%" PRIu64, value);

    yajl_gen_number(gen, text, (size_t)n);
}

void zipccl_gen_uint(yajl_gen gen, const char *key, uint64_t value)
{
    zipccl_gen_key(gen, key);
    gen_integer(gen, value);
}

static void gen_number(yajl_gen gen, double value)
{
    char text[40];
    int n;

    if (value <= (double)ZIPCCL_JSON_MAX_INTEGER && value == (double)(uint64_t)value) {
        gen_integer(gen, (uint64_t)value);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        n = snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    yajl_gen_number(gen, text, (size_t)n);
}

void zipccl_gen_real(yajl_gen gen, const char *key, double value)
{
    zipccl_gen_key(gen, key);
    gen_number(gen, value);
}

/* The stride of a set that the short form describes; 0 if none does. */
static uint32_t regular_stride(const struct zipccl_trace_group *g, uint32_t nranks)
{
    uint32_t stride = g->size > 1 && g->ranks[1] > g->ranks[0] ? g->ranks[1] - g->ranks[0] : 1;
    size_t k = 0;

    if ((uint64_t)g->nparts * g->size != nranks || nranks % ((uint64_t)g->size * stride) != 0)
        return 0;
    for (uint32_t block = 0; block < nranks; block += g->size * stride)
        for (uint32_t first = 0; first < stride; first++)
            for (uint32_t i = 0; i < g->size; i++)
                if (g->ranks[k++] != block + first + i * stride)
                    return 0;
    return stride;
}

static void gen_group(yajl_gen gen, const struct zipccl_trace_group *g, uint32_t nranks)
{
    uint32_t stride = regular_stride(g, nranks);

    yajl_gen_map_open(gen);
    zipccl_gen_string(gen, "name", g->name);
    if (stride > 0) {
        zipccl_gen_uint(gen, "size", g->size);
        if (stride > 1)
            zipccl_gen_uint(gen, "stride", stride);
    } else {
        zipccl_gen_key(gen, "ranks");
        yajl_gen_array_open(gen);
        for (uint32_t part = 0; part < g->nparts; part++) {
            yajl_gen_array_open(gen);
            for (uint32_t i = 0; i < g->size; i++)
                gen_integer(gen, g->ranks[(size_t)part * g->size + i]);
            yajl_gen_array_close(gen);
        }
        yajl_gen_array_close(gen);
    }
    yajl_gen_map_close(gen);
}

static void gen_splits(yajl_gen gen, const struct zipccl_trace_splits *s)
{
    yajl_gen_map_open(gen);
    zipccl_gen_string(gen, "name", s->name);
    zipccl_gen_key(gen, "counts");
    yajl_gen_array_open(gen);
    for (uint32_t row = 0; row < s->size; row++) {
        yajl_gen_array_open(gen);
        for (uint32_t column = 0; column < s->size; column++)
            gen_integer(gen, s->counts[(size_t)row * s->size + column]);
        yajl_gen_array_close(gen);
    }
    yajl_gen_array_close(gen);
    yajl_gen_map_close(gen);
}

static void gen_sets(yajl_gen gen, const struct zipccl_trace_header *h)
{
    zipccl_gen_key(gen, "streams");
    yajl_gen_array_open(gen);
    for (uint32_t i = 0; i < h->nstreams; i++)
        zipccl_gen_key(gen, h->streams[i]);
    yajl_gen_array_close(gen);
    if (h->ngroups > 0) {
        zipccl_gen_key(gen, "groups");
        yajl_gen_array_open(gen);
        for (uint32_t i = 0; i < h->ngroups; i++)
            gen_group(gen, &h->groups[i], h->nranks);
        yajl_gen_array_close(gen);
    }
    if (h->nsplits > 0) {
        zipccl_gen_key(gen, "splits");
        yajl_gen_array_open(gen);
        for (uint32_t i = 0; i < h->nsplits; i++)
            gen_splits(gen, &h->splits[i]);
        yajl_gen_array_close(gen);
    }
}

void zipccl_trace_gen_header(yajl_gen gen, const struct zipccl_trace_header *h)
{
    yajl_gen_map_open(gen);
    zipccl_gen_string(gen, "format", ZIPCCL_TRACE_FORMAT);
    zipccl_gen_uint(gen, "version", h->version);
    zipccl_gen_string(gen, "name", h->name);
    if (h->model != NULL && h->model[0] != '\0')
        zipccl_gen_string(gen, "model", h->model);
    zipccl_gen_string(gen, "provenance", h->provenance);
    zipccl_gen_string(gen, "generator", h->generator);
    zipccl_gen_uint(gen, "nranks", h->nranks);
    if (h->ranks_per_node > 0)
        zipccl_gen_uint(gen, "ranks_per_node", h->ranks_per_node);
    if (h->recorded_step_s >= 0)
        zipccl_gen_real(gen, "recorded_step_s", h->recorded_step_s);
    if (h->tokens_per_step > 0)
        zipccl_gen_uint(gen, "tokens_per_step", h->tokens_per_step);
    if (h->samples != NULL)
        zipccl_gen_string(gen, "samples", h->samples);
    gen_sets(gen, h);
    yajl_gen_map_close(gen);
}

/* Runs of three or more with one stride are written as [first, last] or [first, last, stride]. */
static void gen_ranks(yajl_gen gen, const struct zipccl_event *e)
{
    uint32_t i = 0;

    zipccl_gen_key(gen, "ranks");
    yajl_gen_array_open(gen);
    while (i < e->nranks) {
        uint32_t last = i + 1, stride;

        stride = last < e->nranks ? e->ranks[last] - e->ranks[i] : 1;
        while (last + 1 < e->nranks && e->ranks[last + 1] - e->ranks[last] == stride)
            last++;
        if (last < i + 2 || last >= e->nranks) {
            gen_integer(gen, e->ranks[i++]);
            continue;
        }
        yajl_gen_array_open(gen);
        gen_integer(gen, e->ranks[i]);
        gen_integer(gen, e->ranks[last]);
        if (stride > 1)
            gen_integer(gen, stride);
        yajl_gen_array_close(gen);
        i = last + 1;
    }
    yajl_gen_array_close(gen);
}

static void gen_compute(yajl_gen gen, const struct zipccl_trace_header *h,
                        const struct zipccl_event *e)
{
    if (e->duration_s >= 0)
        zipccl_gen_real(gen, "duration_s", e->duration_s);
    if (e->duration_by_rank_s != NULL) {
        zipccl_gen_key(gen, "duration_by_rank_s");
        yajl_gen_array_open(gen);
        for (uint32_t i = 0; i < (e->nranks > 0 ? e->nranks : h->nranks); i++)
            gen_number(gen, e->duration_by_rank_s[i]);
        yajl_gen_array_close(gen);
    }
    if (e->flops >= 0)
        zipccl_gen_real(gen, "flops", e->flops);
    if (e->hbm_bytes >= 0)
        zipccl_gen_real(gen, "hbm_bytes", e->hbm_bytes);
}

static void gen_collective(yajl_gen gen, const struct zipccl_trace_header *h,
                           const struct zipccl_event *e)
{
    zipccl_gen_string(gen, "op", zipccl_op_name(e->op));
    zipccl_gen_string(gen, "group", h->groups[e->group].name);
    zipccl_gen_string(gen, "dtype", zipccl_dtype_name(e->dtype));
    zipccl_gen_uint(gen, "count", e->count);
    if (zipccl_is_reduction(e->op))
        zipccl_gen_string(gen, "redop", zipccl_redop_name(e->redop));
    if (e->op == ZIPCCL_BROADCAST)
        zipccl_gen_uint(gen, "root", e->root);
    if (e->splits >= 0)
        zipccl_gen_string(gen, "splits", h->splits[e->splits].name);
    if (e->npairs > 0) {
        zipccl_gen_key(gen, "pairs");
        yajl_gen_array_open(gen);
        for (uint32_t i = 0; i < e->npairs; i++) {
            yajl_gen_array_open(gen);
            gen_integer(gen, e->pairs[i].src);
            gen_integer(gen, e->pairs[i].dst);
            yajl_gen_array_close(gen);
        }
        yajl_gen_array_close(gen);
    }
    if (e->recorded_s >= 0)
        zipccl_gen_real(gen, "recorded_s", e->recorded_s);
    if (e->nsamples > 0) {
        zipccl_gen_key(gen, "samples");
        yajl_gen_array_open(gen);
        for (uint32_t i = 0; i < e->nsamples; i++)
            zipccl_gen_key(gen, e->samples[i]);
        yajl_gen_array_close(gen);
    }
}

void zipccl_trace_gen_event(yajl_gen gen, const struct zipccl_trace_header *h,
                            const struct zipccl_event *e)
{
    static const char *const kinds[] = {"compute", "collective", "loop_begin", "loop_end",
                                        "communication"};
    bool runs = zipccl_event_runs(e);

    yajl_gen_map_open(gen);
    if (runs)
        zipccl_gen_uint(gen, "id", e->id);
    zipccl_gen_string(gen, "kind", kinds[e->kind]);
    if (e->kind == ZIPCCL_EVENT_LOOP_BEGIN || (runs && e->repeat > 1))
        zipccl_gen_uint(gen, "repeat", e->repeat);
    if (e->kind != ZIPCCL_EVENT_LOOP_END && e->label != NULL && e->label[0] != '\0')
        zipccl_gen_string(gen, "label", e->label);
    if (runs)
        zipccl_gen_string(gen, "stream", h->streams[e->stream]);
    if (runs && e->ndeps > 0) {
        zipccl_gen_key(gen, "deps");
        yajl_gen_array_open(gen);
        for (uint32_t i = 0; i < e->ndeps; i++)
            gen_integer(gen, e->deps[i]);
        yajl_gen_array_close(gen);
    }
    if (runs && e->nranks > 0)
        gen_ranks(gen, e);
    if (runs && e->kind != ZIPCCL_EVENT_COLLECTIVE)
        gen_compute(gen, h, e);
    if (e->kind == ZIPCCL_EVENT_COLLECTIVE)
        gen_collective(gen, h, e);
    yajl_gen_map_close(gen);
}

void zipccl_trace_gen_end(yajl_gen gen, uint64_t nevents)
{
    yajl_gen_map_open(gen);
    zipccl_gen_string(gen, "kind", "end");
    zipccl_gen_uint(gen, "events", nevents);
    yajl_gen_map_close(gen);
}
