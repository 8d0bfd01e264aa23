/*
 * rescale.c - a trace of n ranks taken to m, by copies of the model along its data-parallel groups
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/rescale.h"

#include "traces/arena.h"
#include "traces/trace_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rescaling {
    const struct zipccl_trace *trace;
    const struct zipccl_rescale_options *options;
    struct zipccl_rescale_report *report;
    struct zipccl_error *error;
    struct zipccl_arena arena;
    struct zipccl_trace_header header;
    uint32_t from, to, factor;
    bool up;
    bool *grows; /* [ngroups] */
    uint32_t *ranks;
    double *seconds;
};

static zipccl_status wrong(const struct rescaling *r, const char *what, const char *name)
{
    return zipccl_fail(r->error, ZIPCCL_ERR_INPUT, "%.250s: group %.60s: %s", r->trace->path, name,
                       what);
}

static zipccl_status nomem(const struct rescaling *r)
{
    return zipccl_fail(r->error, ZIPCCL_ERR_NOMEM, "%s: out of memory", r->trace->path);
}

/* 'word' as a part of the name: "nccl.dp", "dp_ep", "DP"; not the middle of another word. */
static bool has_word(const char *name, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = name; *p != '\0'; p++) {
        size_t i = 0;

        while (i < n && p[i] != '\0' && (p[i] | 0x20) == word[i])
            i++;
        if (i == n && (p == name || strchr("._-: ", p[-1]) != NULL) &&
            (p[n] == '\0' || strchr("._-: ", p[n]) != NULL || (p[n] >= '0' && p[n] <= '9')))
            return true;
    }
    return false;
}

/* Called after copies of a group of shards, as with HSDP: "replicas", "dp_replicate". */
static bool has_copies(const char *name)
{
    return has_word(name, "replicas") || has_word(name, "replicate");
}

/* One of several groups that share the parameters, each of which has copies elsewhere. */
static bool is_shard_group(const struct zipccl_trace_header *header, const char *name)
{
    static const char *const words[] = {"dp", "ddp", "fsdp", "zero", "data"};
    bool copies = false, shards = false;

    for (uint32_t g = 0; g < header->ngroups; g++)
        copies |= has_copies(header->groups[g].name);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        shards |= has_word(name, words[i]);
    return copies && shards;
}

bool zipccl_rescale_grows(const struct zipccl_trace_header *header, uint32_t group)
{
    static const char *const data[] = {"dp", "ddp", "fsdp", "edp", "zero", "data", "world"};
    static const char *const other[] = {"tp", "pp", "ep", "cp", "sp", "etp", "expert", "tensor"};
    const struct zipccl_trace_group *g = &header->groups[group];

    if (has_copies(g->name))
        return true;
    if (is_shard_group(header, g->name))
        return false;
    for (size_t i = 0; i < sizeof data / sizeof data[0]; i++)
        if (has_word(g->name, data[i]))
            return true;
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
        if (has_word(g->name, other[i]))
            return false;
    return g->size == header->nranks;
}

static zipccl_status choose_sets(struct rescaling *r)
{
    const struct zipccl_rescale_options *o = r->options;
    const struct zipccl_trace_header *h = &r->trace->header;

    r->grows = zipccl_arena_alloc(&r->arena, h->ngroups, sizeof *r->grows);
    if (r->grows == NULL)
        return nomem(r);
    for (uint32_t g = 0; g < h->ngroups; g++)
        r->grows[g] = o->nscaled == 0 && zipccl_rescale_grows(h, g);
    for (size_t i = 0; i < o->nscaled; i++) {
        bool found = false;

        for (uint32_t g = 0; g < h->ngroups; g++)
            if (strcmp(h->groups[g].name, o->scaled[i]) == 0)
                found = r->grows[g] = true;
        if (!found)
            return wrong(r, "no such group, expected one of the trace's", o->scaled[i]);
    }
    return ZIPCCL_OK;
}

/* Ranks of 'from' [n] that are in the new world, copies behind each other; returns how many. */
static uint32_t copy_ranks(const struct rescaling *r, const uint32_t *from, uint32_t n,
                           uint32_t *to)
{
    uint32_t k = 0;

    for (uint32_t copy = 0; copy < (r->up ? r->factor : 1); copy++)
        for (uint32_t i = 0; i < n; i++)
            if (from[i] < r->to)
                to[k++] = from[i] + copy * r->from;
    return k;
}

static zipccl_status make_set(struct rescaling *r, uint32_t index, struct zipccl_trace_group *to)
{
    const struct zipccl_trace_group *from = &r->trace->header.groups[index];
    uint32_t n = from->nparts * from->size, size = from->size, k = 0;

    *to = *from;
    to->ranks =
        zipccl_arena_alloc(&r->arena, (size_t)n * (r->up ? r->factor : 1), sizeof *to->ranks);
    if (to->ranks == NULL)
        return nomem(r);
    if (r->grows[index]) {
        uint32_t want = r->up ? size * r->factor : size / r->factor;

        for (uint32_t p = 0; p < from->nparts; p++) {
            uint32_t got = copy_ranks(r, from->ranks + (size_t)p * size, size, to->ranks + k);

            if (got != 0 && (got != want || (!r->up && size % r->factor != 0)))
                return wrong(r,
                             "it does not shrink evenly, expected its ranks in steps of the "
                             "new world",
                             from->name);
            k += got;
        }
        to->size = want;
    } else if (r->up) {
        k = copy_ranks(r, from->ranks, n, to->ranks);
    } else {
        for (uint32_t p = 0; p < from->nparts; p++) {
            uint32_t got = copy_ranks(r, from->ranks + (size_t)p * size, size, to->ranks + k);

            if (got != 0 && got != size)
                return wrong(r, "it stays and would be cut, expected whole groups in the new world",
                             from->name);
            k += got;
        }
    }
    if (k == 0)
        return wrong(r, "none of its ranks are in the new world", from->name);
    to->nparts = k / to->size;
    return ZIPCCL_OK;
}

static zipccl_status make_header(struct rescaling *r)
{
    const struct zipccl_trace_header *h = &r->trace->header;
    char *provenance = zipccl_arena_alloc(&r->arena, 1, strlen(h->provenance) + 64);

    r->header = *h;
    r->header.groups = zipccl_arena_alloc(&r->arena, h->ngroups, sizeof *h->groups);
    if (provenance == NULL || r->header.groups == NULL)
        return nomem(r);
    sprintf(provenance, "%s; rescaled from %" PRIu32 " to %" PRIu32 " ranks", h->provenance,
            r->from, r->to);
    r->header.provenance = provenance;
    r->header.nranks = r->to;
    r->header.recorded_step_s = -1;
    r->header.samples = r->options->samples;
    if (h->ranks_per_node > 0 && r->to % h->ranks_per_node != 0)
        r->header.ranks_per_node = 0;
    for (uint32_t g = 0; g < h->ngroups; g++)
        ZIPCCL_TRY(make_set(r, g, &r->header.groups[g]));
    return ZIPCCL_OK;
}

/* What a call in a set that grows moves now. */
static zipccl_status scale_call(struct rescaling *r, struct zipccl_event *e)
{
    const char *name = r->header.groups[e->group].name;
    uint64_t count = e->count;

    r->report->ntimes += e->recorded_s >= 0;
    e->recorded_s = -1;
    switch (e->op) {
    case ZIPCCL_ALL_REDUCE: return ZIPCCL_OK;
    case ZIPCCL_BROADCAST:
        if (e->root >= r->header.groups[e->group].size)
            return wrong(r, "the root of a broadcast is not in the new world", name);
        return ZIPCCL_OK;
    case ZIPCCL_ALL_GATHER:
    case ZIPCCL_REDUCE_SCATTER:
    case ZIPCCL_ALLTOALL: break;
    default:
        return wrong(r, "a call that is uneven or in pairs, expected none in groups that grow",
                     name);
    }
    e->count = r->up ? count / r->factor + (count % r->factor != 0) : count * r->factor;
    r->report->nshards++;
    r->report->nrounded += r->up && count % r->factor != 0;
    return ZIPCCL_OK;
}

static zipccl_status write_event(struct rescaling *r, const struct zipccl_event *from,
                                 struct zipccl_trace_writer *writer)
{
    struct zipccl_event e = *from;
    uint32_t n = from->nranks > 0 ? from->nranks : r->from, k = 0;

    if (from->nranks > 0) {
        e.ranks = r->ranks;
        e.nranks = copy_ranks(r, from->ranks, from->nranks, r->ranks);
        if (e.nranks == 0)
            return zipccl_fail(r->error, ZIPCCL_ERR_INPUT,
                               "%.300s: event %" PRIu64
                               " is of ranks that are not in the new world, expected all kinds of "
                               "ranks below %" PRIu32,
                               r->trace->path, from->id, r->to);
    }
    if (from->duration_by_rank_s != NULL) {
        for (uint32_t copy = 0; copy < (r->up ? r->factor : 1); copy++)
            for (uint32_t i = 0; i < n; i++)
                if ((from->nranks > 0 ? from->ranks[i] : i) < r->to)
                    r->seconds[k++] = from->duration_by_rank_s[i];
        e.duration_by_rank_s = r->seconds;
    }
    if (e.kind == ZIPCCL_EVENT_COLLECTIVE && r->grows[e.group])
        ZIPCCL_TRY(scale_call(r, &e));
    return zipccl_trace_write(writer, &e, r->error);
}

static zipccl_status check_ranks(struct rescaling *r)
{
    r->from = r->trace->header.nranks;
    r->to = r->options->nranks;
    r->up = r->to >= r->from;
    if (r->to == 0 || r->to > ZIPCCL_TRACE_MAX_RANKS ||
        (r->up ? r->to % r->from : r->from % r->to) != 0)
        return zipccl_fail(r->error, ZIPCCL_ERR_INPUT,
                           "%.300s: %" PRIu32 " ranks to %" PRIu32
                           ", expected a multiple or a divisor, at most %" PRIu32,
                           r->trace->path, r->from, r->to, ZIPCCL_TRACE_MAX_RANKS);
    r->factor = r->up ? r->to / r->from : r->from / r->to;
    r->report->from = r->from;
    r->report->to = r->to;
    r->ranks = zipccl_arena_alloc(&r->arena, (size_t)r->to + r->from, sizeof *r->ranks);
    r->seconds = zipccl_arena_alloc(&r->arena, (size_t)r->to + r->from, sizeof *r->seconds);
    return r->ranks != NULL && r->seconds != NULL ? ZIPCCL_OK : nomem(r);
}

static zipccl_status rescale(struct rescaling *r, const char *out_path)
{
    struct zipccl_trace_writer *writer;
    zipccl_status status = ZIPCCL_OK;

    ZIPCCL_TRY(check_ranks(r));
    ZIPCCL_TRY(choose_sets(r));
    ZIPCCL_TRY(make_header(r));
    ZIPCCL_TRY(zipccl_trace_writer_open(out_path, &r->header, &writer, r->error));
    for (size_t i = 0; i < r->trace->nevents && status == ZIPCCL_OK; i++)
        status = write_event(r, &r->trace->events[i], writer);
    if (status == ZIPCCL_OK)
        return zipccl_trace_writer_finish(writer, true, r->error);
    zipccl_trace_writer_finish(writer, false, NULL);
    return status;
}

zipccl_status zipccl_trace_rescale(const struct zipccl_trace *trace,
                                   const struct zipccl_rescale_options *options,
                                   const char *out_path, struct zipccl_rescale_report *report,
                                   struct zipccl_error *error)
{
    struct zipccl_rescale_report own;
    struct rescaling r = {.trace = trace,
                          .options = options,
                          .report = report != NULL ? report : &own,
                          .error = error};
    zipccl_status status;

    if (trace == NULL || options == NULL || out_path == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "zipccl_trace_rescale: NULL argument");
    memset(r.report, 0, sizeof *r.report);
    status = rescale(&r, out_path);
    zipccl_arena_free(&r.arena);
    return status;
}
