/*
 * import_kineto_write.c - the trace of what was recorded: header, splits, events
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_kineto.h"
#include "traces/trace_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct writing {
    struct kineto_import *k;
    struct kineto_graph *g;
    struct zipccl_trace_header header;
    struct zipccl_trace_writer *writer;
    size_t split_room, dep_room;
    int32_t *split_of; /* [nnodes] table of a call, -1: none */
    uint64_t *deps;
    uint32_t ndeps;
    uint32_t *ranks; /* [world] of an event */
    uint32_t nranks;
    double *seconds; /* [world] */
    uint64_t next_id;
    const char *bound[ZIPCCL_NUM_OPS][ZIPCCL_NUM_DTYPES]; /* classes of samples */
    uint64_t left_out, unsure;
    bool whole; /* some part of the call that is written has a file for each member */
    double waiting_s, comm_s, opaque_s, foreign_s;
};

static zipccl_status nomem(const struct writing *w)
{
    struct zipccl_place at = {w->k->importer->paths[0], 0, w->k->importer->error};

    return zipccl_place_nomem(&at);
}

static const struct kineto_call *call_of(const struct writing *w, const struct kineto_node *n)
{
    return &w->k->ranks[n->class].calls[n->index];
}

/* True if a call of all its classes; else some class would never come. */
static bool is_whole(const struct writing *w, const struct kineto_node *n)
{
    return n->kind != KINETO_NODE_CALL || call_of(w, n)->pair ||
           n->nlinked == w->g->families[n->family].nclasses;
}

static bool in_node(const struct writing *w, const struct kineto_node *n, uint32_t part)
{
    if (n->part != KINETO_NONE)
        return part == n->part;
    return w->g->family_of[n->set][part] == n->family &&
           !kineto_is_split(w->k, call_of(w, n), part);
}

/* The table of a call whose members all tell theirs; equal tables are one. */
static zipccl_status add_table(struct writing *w, const struct kineto_node *n, int32_t *out)
{
    struct zipccl_trace_header *h = &w->header;
    const struct kineto_set *s = &w->k->sets[n->set];
    uint64_t *counts = zipccl_arena_alloc(&w->k->arena, (size_t)s->size * s->size, sizeof *counts);
    char *name = zipccl_arena_alloc(&w->k->arena, 1, 24);

    if (counts == NULL || name == NULL ||
        !kineto_grow(&h->splits, &w->split_room, h->nsplits, sizeof *h->splits))
        return nomem(w);
    for (uint32_t i = 0; i < s->size; i++) {
        const struct kineto_rank *r =
            kineto_recorded(w->k, s->ranks[(size_t)n->part * s->size + i]);

        memcpy(counts + (size_t)i * s->size,
               kineto_call_at(r, n->set, n->lane, n->ordinal)->in_split, s->size * sizeof *counts);
    }
    for (uint32_t i = 0; i < h->nsplits; i++)
        if (h->splits[i].size == s->size &&
            memcmp(h->splits[i].counts, counts, (size_t)s->size * s->size * sizeof *counts) == 0) {
            *out = (int32_t)i;
            return ZIPCCL_OK;
        }
    snprintf(name, 24, "split%" PRIu32, h->nsplits);
    h->splits[h->nsplits] = (struct zipccl_trace_splits){name, s->size, counts};
    *out = (int32_t)h->nsplits++;
    return ZIPCCL_OK;
}

static zipccl_status make_tables(struct writing *w)
{
    uint64_t entries = 0, balanced = 0;

    w->split_of = malloc((w->g->nnodes + 1) * sizeof *w->split_of);
    if (w->split_of == NULL)
        return nomem(w);
    for (size_t i = 0; i < w->g->nnodes; i++) {
        const struct kineto_node *n = &w->g->nodes[i];
        uint64_t size;

        w->split_of[i] = -1;
        if (n->kind != KINETO_NODE_CALL || call_of(w, n)->op != ZIPCCL_ALLTOALLV || !is_whole(w, n))
            continue;
        size = w->k->sets[n->set].size;
        if (n->part == KINETO_NONE || w->header.nsplits >= ZIPCCL_TRACE_MAX_SPLITS ||
            entries + size * size > ZIPCCL_TRACE_MAX_MEMBERS) {
            balanced++;
            continue;
        }
        ZIPCCL_TRY(add_table(w, n, &w->split_of[i]));
        entries += size * size;
    }
    return zipccl_import_count(w->k->importer, true, "balanced", 0, balanced,
                               "uneven all-to-alls of which not all members were recorded, or too "
                               "many to keep: taken to be balanced");
}

static void make_groups(struct writing *w, struct zipccl_trace_group *groups)
{
    for (size_t i = 0; i < w->k->nsets; i++) {
        const struct kineto_set *s = &w->k->sets[i];

        groups[i] = (struct zipccl_trace_group){s->name, s->nparts, s->size, s->ranks};
    }
    w->header.groups = groups;
    w->header.ngroups = (uint32_t)w->k->nsets;
}

static zipccl_status make_header(struct writing *w)
{
    struct kineto_import *k = w->k;
    struct zipccl_trace_group *groups = zipccl_arena_alloc(&k->arena, k->nsets + 1, sizeof *groups);
    char **streams = zipccl_arena_alloc(&k->arena, k->nstreams, sizeof *streams);
    char *model = zipccl_arena_alloc(&k->arena, 1, 120), steps[40];
    double span = 0;

    if (groups == NULL || streams == NULL || model == NULL)
        return nomem(w);
    for (uint32_t s = 0; s < k->nstreams; s++) {
        streams[s] = zipccl_arena_alloc(&k->arena, 1, 24);
        if (streams[s] == NULL)
            return nomem(w);
        snprintf(streams[s], 24, s == 0 ? "compute" : "comm%" PRIu32, s);
    }
    for (size_t i = 0; i < k->nranks; i++)
        span += 1e-9 * (double)(k->ranks[i].last_ns - k->ranks[i].first_ns) / (double)k->nranks;
    snprintf(steps, sizeof steps, ", %" PRIu64 " step%s", k->nsteps, k->nsteps == 1 ? "" : "s");
    snprintf(model, 120, "%s, %zu of %" PRIu32 " ranks%s", k->what, k->nranks, k->world,
             k->nsteps > 0 ? steps : "");
    w->header = (struct zipccl_trace_header){
        .version = 1,
        .name = zipccl_import_trace_name(k->importer, &k->arena, "kineto"),
        .model = model,
        .provenance = k->provenance,
        .generator = k->generator,
        .nranks = k->world,
        .ranks_per_node = k->importer->options->ranks_per_node,
        .recorded_step_s = span > 0 ? span : -1,
        .samples = k->importer->options->samples,
        .nstreams = k->nstreams,
        .streams = streams};
    make_groups(w, groups);
    return make_tables(w);
}

static zipccl_status add_dep(struct writing *w, uint32_t node)
{
    uint64_t id = w->g->nodes[node].id;

    for (uint32_t i = 0; i < w->ndeps; i++)
        if (w->deps[i] == id)
            return ZIPCCL_OK;
    if (id == 0) /* left out */
        return ZIPCCL_OK;
    if (!kineto_grow(&w->deps, &w->dep_room, w->ndeps, sizeof *w->deps))
        return nomem(w);
    w->deps[w->ndeps++] = id;
    return ZIPCCL_OK;
}

/* What a call of a class waits for. */
static zipccl_status add_wait(struct writing *w, uint32_t class, uint32_t call)
{
    const struct kineto_rank *r = &w->k->ranks[class];
    uint32_t segment = r->waits_for[call];

    for (uint32_t a = 0; r->after != NULL && a < r->after[call].n; a++) {
        const uint32_t *first = &w->g->first_link[class][r->after[call].calls[a]];

        for (uint32_t l = first[0]; l < first[1]; l++)
            ZIPCCL_TRY(add_dep(w, w->g->links[l]));
    }
    return segment == KINETO_NONE ? ZIPCCL_OK : add_dep(w, w->g->segment_of[class][segment]);
}

/* The call of 'class' that is node 'n'; KINETO_NONE if it makes none. */
static uint32_t index_in(const struct writing *w, const struct kineto_node *n, uint32_t class)
{
    const struct kineto_rank *r = &w->k->ranks[class];
    const struct kineto_call *c;

    if (!call_of(w, n)->pair) {
        c = kineto_call_at(r, n->set, n->lane, n->ordinal);
        return c != NULL ? (uint32_t)(c - r->calls) : KINETO_NONE;
    }
    for (size_t i = 0; i < r->ncalls; i++) {
        c = &r->calls[i];
        if (c->pair && !c->opaque && !c->dropped && c->set == n->set && c->lane == n->lane &&
            c->ordinal == n->ordinal && c->src == n->src && c->dst == n->dst)
            return (uint32_t)i;
    }
    return KINETO_NONE;
}

/* Recorded times of one part: the shortest is the communication, what is beyond it is waiting. */
static void time_part(struct writing *w, const struct kineto_node *n, uint32_t part,
                      double *recorded)
{
    const struct kineto_set *s = &w->k->sets[n->set];
    double least = -1, sum = 0;
    uint32_t members = 0;

    for (uint32_t i = 0; i < s->size; i++) {
        const struct kineto_rank *r = kineto_recorded(w->k, s->ranks[(size_t)part * s->size + i]);
        uint32_t at = r != NULL ? index_in(w, n, r->class) : KINETO_NONE;
        double seconds;

        if (at == KINETO_NONE || r->calls[at].end_ns <= r->calls[at].start_ns ||
            (r->calls[at].pair && i != n->src && i != n->dst))
            continue;
        seconds = 1e-9 * (double)(r->calls[at].end_ns - r->calls[at].start_ns);
        least = least < 0 || seconds < least ? seconds : least;
        sum += seconds;
        members++;
    }
    w->whole |= members == s->size || call_of(w, n)->pair;
    w->comm_s += least > 0 ? least * members : 0;
    w->waiting_s += sum - (least > 0 ? least * members : 0);
    *recorded = least > *recorded ? least : *recorded;
}

/* Elements to each member if it were balanced: the mean over the members that were recorded. */
static uint64_t balanced_count(const struct writing *w, const struct kineto_node *n)
{
    const struct kineto_set *s = &w->k->sets[n->set];
    uint64_t sum = 0, members = 0;

    for (uint32_t part = 0; part < s->nparts; part++)
        for (uint32_t i = 0; i < s->size && in_node(w, n, part); i++) {
            const struct kineto_rank *r =
                kineto_recorded(w->k, s->ranks[(size_t)part * s->size + i]);
            const struct kineto_call *c =
                r != NULL ? kineto_call_at(r, n->set, n->lane, n->ordinal) : NULL;

            sum += c != NULL ? c->count : 0;
            members += c != NULL;
        }
    return members > 0 ? (sum + members - 1) / members : call_of(w, n)->count;
}

static int compare_ranks(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

/* Ranks, dependencies and the recorded time of a call. */
static zipccl_status gather_call(struct writing *w, const struct kineto_node *n, double *recorded)
{
    const struct kineto_set *s = &w->k->sets[n->set];
    const struct kineto_call *c = call_of(w, n);
    bool all = n->part == KINETO_NONE;

    *recorded = -1;
    w->whole = false;
    for (uint32_t part = 0; part < s->nparts; part++) {
        const uint32_t *ranks = s->ranks + (size_t)part * s->size;

        if (!in_node(w, n, part)) {
            all = false;
            continue;
        }
        memcpy(w->ranks + w->nranks, ranks, s->size * sizeof *ranks);
        w->nranks += s->size;
        time_part(w, n, part, recorded);
        for (uint32_t i = 0; i < s->size; i++) {
            uint32_t class = kineto_class(w->k, ranks[i]);
            uint32_t call = index_in(w, n, class);

            if (call != KINETO_NONE && (!c->pair || kineto_recorded(w->k, ranks[i]) != NULL) &&
                (!c->pair || i == n->src || i == n->dst))
                ZIPCCL_TRY(add_wait(w, class, call));
        }
    }
    w->unsure += !w->whole && *recorded >= 0;
    qsort(w->ranks, w->nranks, sizeof *w->ranks, compare_ranks);
    if (all)
        w->nranks = 0;
    return ZIPCCL_OK;
}

static zipccl_status write_call(struct writing *w, const struct kineto_node *n, int32_t table)
{
    const struct kineto_call *c = call_of(w, n);
    struct zipccl_trace_pair ends = {n->src, n->dst};
    struct zipccl_event e = {.kind = ZIPCCL_EVENT_COLLECTIVE,
                             .id = n->id,
                             .repeat = 1,
                             .stream = c->stream,
                             .duration_s = -1,
                             .flops = -1,
                             .hbm_bytes = -1,
                             .op = (enum zipccl_op)c->op,
                             .dtype = (enum zipccl_dtype)c->dtype,
                             .redop = (enum zipccl_redop)c->redop,
                             .group = n->set,
                             .count = c->count,
                             .splits = table};
    char *sample;

    ZIPCCL_TRY(gather_call(w, n, &e.recorded_s));
    e.ranks = w->ranks;
    e.nranks = w->nranks;
    e.deps = w->deps;
    e.ndeps = w->ndeps;
    if (table >= 0) {
        const struct zipccl_trace_splits *t = &w->header.splits[table];

        e.count = 0;
        for (size_t i = 0; i < (size_t)t->size * t->size; i++)
            e.count = t->counts[i] > e.count ? t->counts[i] : e.count;
    } else if (c->op == ZIPCCL_ALLTOALL || c->op == ZIPCCL_ALLTOALLV) {
        e.op = ZIPCCL_ALLTOALL;
        e.count = balanced_count(w, n);
    }
    if (c->op == ZIPCCL_BROADCAST)
        e.root = c->root;
    if (c->pair) {
        e.pairs = &ends;
        e.npairs = 1;
    }
    if (c->foreign)
        e.label = c->label;
    sample = (char *)w->bound[e.op][e.dtype];
    if (sample != NULL) {
        e.samples = &sample;
        e.nsamples = 1;
    }
    w->k->importer->report->ncollectives++;
    return zipccl_trace_write(w->writer, &e, w->k->importer->error);
}

/* Ranks of a class, and what 'seconds' each of them takes. */
static void gather_class(struct writing *w, uint32_t class, const struct kineto_node *n)
{
    w->nranks = 0;
    for (uint32_t r = 0; r < w->k->world; r++) {
        const struct kineto_rank *donor = &w->k->ranks[w->k->donor[r]];

        if (donor->class != class)
            continue;
        if (n->kind == KINETO_NODE_SEGMENT)
            w->seconds[w->nranks] = donor->seconds[n->index];
        else
            w->seconds[w->nranks] =
                1e-9 * (double)(donor->calls[n->index].end_ns - donor->calls[n->index].start_ns);
        w->ranks[w->nranks++] = r;
    }
}

static zipccl_status write_timed(struct writing *w, const struct kineto_node *n)
{
    const struct kineto_rank *r = &w->k->ranks[n->class];
    bool segment = n->kind == KINETO_NODE_SEGMENT, equal = true;
    struct zipccl_event e = {.kind = segment ? ZIPCCL_EVENT_COMPUTE : ZIPCCL_EVENT_COMMUNICATION,
                             .id = n->id,
                             .repeat = 1,
                             .stream = segment ? 0 : r->calls[n->index].stream,
                             .label = segment ? NULL : r->calls[n->index].label,
                             .duration_s = -1,
                             .flops = -1,
                             .hbm_bytes = -1,
                             .recorded_s = -1,
                             .splits = -1};

    gather_class(w, n->class, n);
    for (uint32_t d = 0; segment && d < r->segments[n->index].ndeps; d++) {
        const uint32_t *first = &w->g->first_link[n->class][r->segments[n->index].deps[d]];

        for (uint32_t l = first[0]; l < first[1]; l++)
            ZIPCCL_TRY(add_dep(w, w->g->links[l]));
    }
    if (!segment)
        ZIPCCL_TRY(add_wait(w, n->class, n->index));
    for (uint32_t i = 1; i < w->nranks; i++)
        equal = equal && w->seconds[i] == w->seconds[0];
    for (uint32_t i = 0; !segment && i < w->nranks; i++) {
        w->opaque_s += w->seconds[i] / w->k->world;
        w->foreign_s += r->calls[n->index].foreign ? w->seconds[i] / w->k->world : 0;
    }
    if (segment && r->flops != NULL) {
        e.flops = r->flops[n->index];
        e.hbm_bytes = r->hbm[n->index];
    }
    if (e.flops >= 0 || e.hbm_bytes >= 0)
        e.duration_s = -1; /* such segments have no time */
    else if (equal)
        e.duration_s = w->seconds[0];
    else
        e.duration_by_rank_s = w->seconds;
    e.ranks = w->ranks;
    e.nranks = w->nranks < w->k->world ? w->nranks : 0;
    e.deps = w->deps;
    e.ndeps = w->ndeps;
    return zipccl_trace_write(w->writer, &e, w->k->importer->error);
}

static zipccl_status write_events(struct writing *w)
{
    for (size_t i = 0; i < w->g->nnodes; i++) {
        struct kineto_node *n = &w->g->nodes[w->g->order[i]];

        if (!is_whole(w, n)) {
            w->left_out++;
            continue;
        }
        n->id = w->next_id++;
        w->ndeps = w->nranks = 0;
        ZIPCCL_TRY(n->kind == KINETO_NODE_CALL ? write_call(w, n, w->split_of[w->g->order[i]])
                                               : write_timed(w, n));
    }
    ZIPCCL_TRY(zipccl_import_count(w->k->importer, true, "recorded times", 0, w->unsure,
                                   "recorded times of calls, of which some members have no file: "
                                   "they may hold waiting for those"));
    return zipccl_import_count(w->k->importer, true, "partial calls", 0, w->left_out,
                               "calls that not all members of the group would make, since ranks "
                               "without a file do what others do: left out");
}

/* Times that are worth knowing: what was compute, waiting, and not NCCL. */
static zipccl_status note_times(const struct writing *w)
{
    const struct zipccl_importer *importer = w->k->importer;
    double span = 0, busy = 0, idle = 0, n = (double)w->k->nranks;

    for (size_t i = 0; i < w->k->nranks; i++) {
        const struct kineto_rank *r = &w->k->ranks[i];
        double sum = 0;

        for (size_t s = 0; s < w->k->ranks[r->class].nsegments; s++)
            sum += r->seconds[s];
        span += 1e-9 * (double)(r->last_ns - r->first_ns) / n;
        busy += 1e-9 * (double)r->busy_ns / n;
        idle += sum > 1e-9 * (double)r->busy_ns ? (sum - 1e-9 * (double)r->busy_ns) / n : 0;
    }
    ZIPCCL_TRY(zipccl_import_count(
        importer, false, "times", 0, span > 0,
        "mean of the ranks with a file: %.4g ms recorded, kernels compute in %.4g ms, in %.4g ms "
        "the GPU waits for the host (counted as compute)",
        1e3 * span, 1e3 * busy, 1e3 * idle));
    ZIPCCL_TRY(zipccl_import_count(
        importer, false, "late ranks", 0, w->waiting_s > 0,
        "%.4g ms a rank of the time in NCCL kernels is waiting for ranks that came late; it is no "
        "communication time (%.4g ms a rank)",
        1e3 * w->waiting_s / n, 1e3 * w->comm_s / n));
    return zipccl_import_count(
        importer, false, "not NCCL", 0, w->foreign_s > 0,
        "%.4g ms a rank (%.1f %% of the time recorded) is communication past NCCL, not compressed "
        "here; option dispatch_bytes replays its dispatch and combine as all-to-all",
        1e3 * w->foreign_s, span > 0 ? 100 * w->foreign_s / span : 0);
}

/* Calls of the rank that makes most. */
static void count_calls(const struct writing *w)
{
    uint64_t most = 0, *n = &w->k->importer->report->ncollectives;

    for (size_t i = 0; i < w->k->nranks; i++) {
        uint64_t calls = 0;

        for (size_t c = 0; c < w->k->ranks[i].ncalls; c++)
            calls += !w->k->ranks[i].calls[c].opaque && !w->k->ranks[i].calls[c].dropped;
        most = calls > most ? calls : most;
    }
    *n = most < *n ? most : *n;
}

static zipccl_status write_all(struct writing *w)
{
    struct zipccl_error *error = w->k->importer->error;
    struct zipccl_place at = {w->k->importer->paths[0], 0, error};
    zipccl_status status;

    w->ranks = malloc((w->k->world + 1) * sizeof *w->ranks);
    w->seconds = malloc((w->k->world + 1) * sizeof *w->seconds);
    if (w->ranks == NULL || w->seconds == NULL)
        return nomem(w);
    ZIPCCL_TRY(make_header(w));
    ZIPCCL_TRY(zipccl_import_bind_samples(w->k->importer, w->bound));
    ZIPCCL_TRY(zipccl_trace_writer_open(w->k->importer->out_path, &w->header, &w->writer, error));
    status = write_events(w);
    if (status == ZIPCCL_OK)
        status = note_times(w);
    count_calls(w);
    if (status == ZIPCCL_OK && w->k->importer->report->ncollectives == 0)
        status = zipccl_place_fail(&at, "no call is made by all members of its group, expected one "
                                        "or more");
    if (status == ZIPCCL_OK)
        return zipccl_trace_writer_finish(w->writer, true, error);
    zipccl_trace_writer_finish(w->writer, false, NULL);
    return status;
}

zipccl_status kineto_write(struct kineto_import *k, struct kineto_graph *g)
{
    struct writing w = {.k = k, .g = g, .next_id = 1};
    zipccl_status status = write_all(&w);

    free(w.header.splits);
    free(w.split_of);
    free(w.deps);
    free(w.ranks);
    free(w.seconds);
    return status;
}
