/*
 * rescale.c - a trace of n ranks taken to m, by copies of the model along its data-parallel groups
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/rescale_sets.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static zipccl_status make_header(struct rescaling *r)
{
    const struct zipccl_trace_header *h = &r->trace->header;
    char *provenance = zipccl_arena_alloc(&r->arena, 1, strlen(h->provenance) + 64);

    r->header = *h;
    if (provenance == NULL)
        return rescale_nomem(r);
    sprintf(provenance, "%s; rescaled from %" PRIu32 " to %" PRIu32 " ranks", h->provenance,
            r->from, r->to);
    r->header.provenance = provenance;
    r->header.nranks = r->to;
    r->header.recorded_step_s = -1;
    r->header.samples = r->options->samples;
    if (h->ranks_per_node > 0 && r->to % h->ranks_per_node != 0)
        r->header.ranks_per_node = 0;
    ZIPCCL_TRY(rescale_groups(r));
    return rescale_tables(r);
}

static uint64_t largest(const struct zipccl_trace_splits *table)
{
    uint64_t most = 0;

    for (size_t i = 0; i < (size_t)table->size * table->size; i++)
        most = table->counts[i] > most ? table->counts[i] : most;
    return most;
}

/* A root is a number in its group, before which other members have come or gone. */
static zipccl_status move_root(const struct rescaling *r, struct zipccl_event *e)
{
    const struct zipccl_trace_group *g = &r->trace->header.groups[e->group];
    uint32_t root = UINT32_MAX;

    for (uint32_t p = 0; p < g->nparts; p++) {
        const uint32_t *from = g->ranks + (size_t)p * g->size;
        uint32_t at = rescale_member(r, from, e->root);

        if (at == UINT32_MAX)
            continue;
        if (root != UINT32_MAX && at != root)
            return rescale_wrong(r,
                                 "the root of a broadcast is at another place in each group, "
                                 "expected one place",
                                 g->name);
        root = at;
    }
    if (root == UINT32_MAX)
        return rescale_wrong(r, "the root of a broadcast is not in the new world", g->name);
    e->root = root;
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
    case ZIPCCL_BROADCAST: return move_root(r, e);
    case ZIPCCL_ALL_GATHER:
    case ZIPCCL_REDUCE_SCATTER:
    case ZIPCCL_ALLTOALL: break;
    case ZIPCCL_ALLTOALLV:
        e->count = largest(&r->header.splits[e->splits]);
        r->report->nshards++;
        return ZIPCCL_OK;
    default:
        return rescale_wrong(r, "a call in pairs, expected none in groups that grow or shrink",
                             name);
    }
    e->count = r->up ? count / r->factor + (count % r->factor != 0) : count * r->factor;
    r->report->nshards++;
    r->report->nrounded += r->up && count % r->factor != 0;
    return ZIPCCL_OK;
}

/* Ranks of an event, and their times, in the new world. */
static zipccl_status copy_ranks(struct rescaling *r, const struct zipccl_event *from,
                                struct zipccl_event *e)
{
    uint32_t n = from->nranks > 0 ? from->nranks : r->from, k = 0;

    for (uint32_t i = 0; i < n; i++)
        r->place[from->nranks > 0 ? from->ranks[i] : i] = 1 + i;
    for (uint32_t rank = 0; rank < r->to; rank++) {
        uint32_t at = r->place[r->origin[rank]];

        if (at == 0)
            continue;
        if (from->duration_by_rank_s != NULL)
            r->seconds[k] = from->duration_by_rank_s[at - 1];
        r->ranks[k++] = rank;
    }
    for (uint32_t i = 0; i < n; i++)
        r->place[from->nranks > 0 ? from->ranks[i] : i] = 0;
    if (k == 0)
        return zipccl_fail(r->error, ZIPCCL_ERR_INPUT,
                           "%.300s: event %" PRIu64
                           " is of ranks that are not in the new world, expected all kinds of "
                           "ranks among the first %" PRIu32 " of each %" PRIu32,
                           r->trace->path, from->id, r->block / r->factor, r->block);
    if (from->nranks > 0) {
        e->ranks = r->ranks;
        e->nranks = k;
    }
    if (from->duration_by_rank_s != NULL)
        e->duration_by_rank_s = r->seconds;
    return ZIPCCL_OK;
}

static zipccl_status write_event(struct rescaling *r, const struct zipccl_event *from,
                                 struct zipccl_trace_writer *writer)
{
    struct zipccl_event e = *from;

    if (from->nranks > 0 || from->duration_by_rank_s != NULL)
        ZIPCCL_TRY(copy_ranks(r, from, &e));
    if (e.kind == ZIPCCL_EVENT_COLLECTIVE && r->grows[e.group])
        ZIPCCL_TRY(scale_call(r, &e));
    return zipccl_trace_write(writer, &e, r->error);
}

static zipccl_status prepare(struct rescaling *r)
{
    r->from = r->trace->header.nranks;
    r->grows = zipccl_arena_alloc(&r->arena, r->trace->header.ngroups, sizeof *r->grows);
    if (r->grows == NULL)
        return rescale_nomem(r);
    ZIPCCL_TRY(zipccl_rescale_choose(r->trace, r->options, r->grows, &r->to, r->error));
    r->report->from = r->from;
    r->report->to = r->to;
    r->origin = zipccl_arena_alloc(&r->arena, r->to, sizeof *r->origin);
    r->place = zipccl_arena_alloc(&r->arena, r->from, sizeof *r->place);
    r->ranks = zipccl_arena_alloc(&r->arena, (size_t)r->to + r->from, sizeof *r->ranks);
    r->seconds = zipccl_arena_alloc(&r->arena, r->to, sizeof *r->seconds);
    if (r->origin == NULL || r->place == NULL || r->ranks == NULL || r->seconds == NULL)
        return rescale_nomem(r);
    rescale_number(r);
    return make_header(r);
}

static zipccl_status rescale(struct rescaling *r, const char *out_path)
{
    struct zipccl_trace_writer *writer;
    zipccl_status status = ZIPCCL_OK;

    ZIPCCL_TRY(prepare(r));
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
