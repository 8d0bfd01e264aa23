/*
 * import_kineto_listed.c - calls of which the order and the sizes are all that is known
 *
 * Calls of one process group are a stream.  Where the host waits for a call, an event of no length
 * holds back what it calls after that; it stands for nothing that is computed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_kineto_calls.h"

#include <stdlib.h>
#include <string.h>

struct listing {
    struct kineto_maker m;
    uint32_t *meta_call;  /* [nmetas] the call made of it, KINETO_NONE: none */
    uint32_t *segment_at; /* [ncalls] segments before it */
    size_t call_room, segment_room;
    uint64_t unknown, other;
    uint64_t unknown_line, other_line;
};

static zipccl_status nomem(const struct listing *l)
{
    struct zipccl_place at = {l->m.file->path, 0, l->m.at.error};

    return zipccl_place_nomem(&at);
}

/* Communicators are streams. */
static zipccl_status set_stream(struct listing *l, const struct kineto_meta *meta,
                                struct kineto_call *call)
{
    struct zipccl_place at = {l->m.file->path, meta->line, l->m.at.error};
    uint32_t i = 0;

    while (i < l->m.nlanes &&
           (l->m.lanes[i].set != call->set || l->m.lanes[i].number != call->lane))
        i++;
    if (i >= KINETO_MAX_STREAMS)
        return zipccl_place_fail(&at,
                                 "communication in more than %d process groups, expected fewer",
                                 KINETO_MAX_STREAMS);
    call->stream = i + 1;
    if (l->m.k->nstreams < i + 2)
        l->m.k->nstreams = i + 2;
    return ZIPCCL_OK;
}

static zipccl_status add_call(struct listing *l, uint32_t i)
{
    const struct kineto_meta *meta = &l->m.file->metas[i];
    struct kineto_rank *r = l->m.rank;
    struct kineto_call call = {.start_ns = i, .end_ns = i, .host_ns = i, .kernel = i};

    if (meta->coll == KINETO_UNKNOWN || meta->coll == KINETO_OTHER) {
        bool other = meta->coll == KINETO_OTHER;

        *(other ? &l->other_line : &l->unknown_line) = meta->line;
        *(other ? &l->other : &l->unknown) += 1;
        return ZIPCCL_OK;
    }
    ZIPCCL_TRY(kineto_set_payload(&l->m, meta, "", &call));
    call.seq = -1; /* in old files it counts what the process calls, not what the group does */
    if (call.opaque)
        return ZIPCCL_OK;
    ZIPCCL_TRY(set_stream(l, meta, &call));
    if (r->ncalls >= KINETO_NONE ||
        !kineto_grow(&r->calls, &r->call_room, r->ncalls, sizeof *r->calls) ||
        !kineto_grow(&l->segment_at, &l->call_room, r->ncalls, sizeof *l->segment_at))
        return nomem(l);
    l->segment_at[r->ncalls] = (uint32_t)r->nsegments;
    l->meta_call[i] = (uint32_t)r->ncalls;
    r->calls[r->ncalls++] = call;
    return ZIPCCL_OK;
}

/* The last call before a wait that has its number. */
static uint32_t awaited(const struct listing *l, uint32_t wait)
{
    const struct kineto_meta *metas = l->m.file->metas, *w = &metas[wait];

    for (uint32_t i = wait; w->seq >= 0 && i-- > 0;)
        if (l->meta_call[i] != KINETO_NONE && metas[i].seq == w->seq &&
            (w->pg_name[0] == '\0' || strcmp(w->pg_name, "0") == 0 ||
             strcmp(w->pg_name, metas[i].pg_name) == 0))
            return l->meta_call[i];
    return KINETO_NONE;
}

static zipccl_status add_wait(struct listing *l, uint32_t i)
{
    struct kineto_rank *r = l->m.rank;
    uint32_t call = awaited(l, i), *dep;

    if (call == KINETO_NONE)
        return ZIPCCL_OK;
    /* Streams keep their order: one that was waited for covers those before it. */
    for (size_t s = r->nsegments; s-- > 0;)
        if (r->calls[r->segments[s].deps[0]].stream == r->calls[call].stream &&
            r->segments[s].deps[0] >= call)
            return ZIPCCL_OK;
    dep = zipccl_arena_alloc(&r->arena, 1, sizeof *dep);
    if (dep == NULL ||
        !kineto_grow(&r->segments, &l->segment_room, r->nsegments, sizeof *r->segments))
        return nomem(l);
    *dep = call;
    r->segments[r->nsegments++] =
        (struct kineto_segment){.gap_before = KINETO_NONE, .ndeps = 1, .deps = dep};
    return ZIPCCL_OK;
}

/* A wait after the last call holds nothing back. */
static void drop_last_waits(struct listing *l)
{
    struct kineto_rank *r = l->m.rank;

    r->nsegments = r->ncalls > 0 ? l->segment_at[r->ncalls - 1] : 0;
}

static zipccl_status finish(struct listing *l)
{
    struct kineto_rank *r = l->m.rank;

    drop_last_waits(l);
    r->nkernels = r->nsegments;
    r->waits_for = zipccl_arena_alloc(&r->arena, r->ncalls, sizeof *r->waits_for);
    r->kernels_before = zipccl_arena_alloc(&r->arena, r->ncalls, sizeof *r->kernels_before);
    r->seconds = zipccl_arena_alloc(&r->arena, r->nsegments, sizeof *r->seconds);
    if (r->waits_for == NULL || r->kernels_before == NULL || r->seconds == NULL)
        return nomem(l);
    for (size_t i = 0; i < r->ncalls; i++) {
        r->kernels_before[i] = l->segment_at[i];
        r->waits_for[i] = l->segment_at[i] > 0 ? l->segment_at[i] - 1 : KINETO_NONE;
    }
    kineto_find_class(l->m.k, r);
    ZIPCCL_TRY(zipccl_import_count(&l->m.at, true, "unknown call", l->unknown_line, l->unknown,
                                   "calls of a name that is not known are left out"));
    return zipccl_import_count(&l->m.at, true, "other op", l->other_line, l->other,
                               "reduce, gather and scatter, which a trace lacks, are left out");
}

zipccl_status kineto_make_listed(struct kineto_import *k, struct kineto_file *file,
                                 struct kineto_rank *rank)
{
    struct listing l = {.m = {.k = k,
                              .file = file,
                              .rank = rank,
                              .at = kineto_at(k, &file->path),
                              .timeless = true},
                        .meta_call = malloc((file->nmetas + 1) * sizeof *l.meta_call)};
    zipccl_status status = l.meta_call != NULL ? ZIPCCL_OK : nomem(&l);

    for (uint32_t i = 0; i < file->nmetas && status == ZIPCCL_OK; i++) {
        l.meta_call[i] = KINETO_NONE;
        if (file->metas[i].coll == KINETO_WAIT)
            status = add_wait(&l, i);
        else if (file->metas[i].coll != KINETO_INIT)
            status = add_call(&l, i);
    }
    if (status == ZIPCCL_OK)
        status = finish(&l);
    free(l.meta_call);
    free(l.segment_at);
    free(l.m.lanes);
    return status;
}
