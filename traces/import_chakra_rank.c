/*
 * import_chakra_rank.c - calls and compute of one rank from its Chakra graph
 *
 * What a GPU computes is one queue, calls of a group are another.  A call waits for the last of
 * compute that it depends on, and for calls; compute is cut where it depends on a call, and where a
 * call that depended on it had to be told from what follows.  What the host does only passes
 * dependencies on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_chakra.h"
#include "traces/import_kineto_calls.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct graph {
    struct kineto_maker m;
    struct chakra_file *f;
    const struct chakra_groups *groups;
    struct kineto_file kf;
    uint32_t *order, *first_dep, *dep_of;
    uint32_t *call_of; /* [nnodes] the call, KINETO_NONE: none */
    uint32_t *last;    /* [nnodes] segment of the last compute that it needs, plus 1 */
    uint32_t *latest;  /* [nnodes * nstreams] the last call of each stream that it needs, plus 1 */
    int64_t *end_ns;   /* [nnodes] if nothing but the graph held it back */
    int64_t *free_ns;  /* [nstreams] */
    uint32_t *waited;  /* [nstreams] calls that compute has waited for, plus 1 */
    uint32_t *covered; /* [nsegments * nstreams] 'waited' when the segment began */
    size_t segment_room, second_room, flop_room, hbm_room, covered_room;
    double *seconds, *flops, *hbm; /* [nsegments] */
    bool closed;                   /* the last segment must not grow */
    bool host_comm;
    uint64_t guessed, rounded, gathers, unsized, untimed, memory, others, last_line;
};

static zipccl_status nomem(const struct graph *g)
{
    struct zipccl_place at = {g->f->path, 0, g->m.at.error};

    return zipccl_place_nomem(&at);
}

static bool is_comm(const struct chakra_node *n)
{
    return n->type == CHAKRA_COLL || n->type == CHAKRA_SEND || n->type == CHAKRA_RECV;
}

/* Calls stand twice in files from profiles: what the host does, and what the GPU does. */
static bool counts(const struct graph *g, const struct chakra_node *n)
{
    return is_comm(n) && (!n->cpu || g->host_comm);
}

static bool computes(const struct chakra_node *n)
{
    return n->type == CHAKRA_COMP && !n->cpu;
}

/* A time, or work; limits are those of a trace. */
static bool is_told(const struct chakra_node *n)
{
    return n->duration_us > 0 || n->flops >= 0 || n->hbm_bytes >= 0;
}

static const char *dtype_name(enum zipccl_dtype dtype)
{
    static const char *const names[ZIPCCL_NUM_DTYPES] = {[ZIPCCL_INT8] = "Char",
                                                         [ZIPCCL_UINT8] = "Byte",
                                                         [ZIPCCL_INT32] = "Int",
                                                         [ZIPCCL_UINT32] = "UInt32",
                                                         [ZIPCCL_INT64] = "Long",
                                                         [ZIPCCL_UINT64] = "UInt64",
                                                         [ZIPCCL_FLOAT16] = "Half",
                                                         [ZIPCCL_FLOAT32] = "Float",
                                                         [ZIPCCL_FLOAT64] = "Double",
                                                         [ZIPCCL_BFLOAT16] = "BFloat16",
                                                         [ZIPCCL_FLOAT8_E4M3] = "Float8_e4m3fn",
                                                         [ZIPCCL_FLOAT8_E5M2] = "Float8_e5m2"};

    return names[dtype];
}

/* The type as profiler files call it, and how many bytes an element has. */
static const char *find_dtype(const struct graph *g, const struct chakra_node *n, uint64_t *size,
                              bool *guessed)
{
    const struct zipccl_import_options *o = g->m.at.options;
    enum zipccl_dtype dtype = o->dtype_given ? o->dtype : ZIPCCL_BFLOAT16;
    uint32_t factor = 1;

    *guessed = false;
    for (int d = 0; d < ZIPCCL_NUM_DTYPES; d++)
        if (strcmp(n->dtype, zipccl_dtype_name((enum zipccl_dtype)d)) == 0) {
            *size = zipccl_dtype_size((enum zipccl_dtype)d);
            return dtype_name((enum zipccl_dtype)d);
        }
    if (kineto_dtype_of(n->dtype, &dtype, &factor)) {
        *size = zipccl_dtype_size(dtype) * factor;
        return n->dtype;
    }
    *guessed = !o->dtype_given;
    *size = zipccl_dtype_size(dtype);
    return dtype_name(dtype);
}

static enum kineto_coll coll_of(const struct chakra_node *n)
{
    static const enum kineto_coll colls[CHAKRA_COMMS] = {
        [CHAKRA_ALL_REDUCE] = KINETO_ALL_REDUCE,
        [CHAKRA_REDUCE] = KINETO_OTHER,
        [CHAKRA_ALL_GATHER] = KINETO_ALL_GATHER,
        [CHAKRA_GATHER] = KINETO_OTHER,
        [CHAKRA_SCATTER] = KINETO_OTHER,
        [CHAKRA_BROADCAST] = KINETO_BROADCAST,
        [CHAKRA_ALL_TO_ALL] = KINETO_ALL_TO_ALL,
        [CHAKRA_REDUCE_SCATTER] = KINETO_REDUCE_SCATTER,
        [CHAKRA_REDUCE_SCATTER_BLOCK] = KINETO_REDUCE_SCATTER,
        [CHAKRA_BARRIER] = KINETO_BARRIER};

    if (n->type == CHAKRA_SEND)
        return KINETO_SEND;
    if (n->type == CHAKRA_RECV)
        return KINETO_RECV;
    return n->comm >= 0 && n->comm < CHAKRA_COMMS ? colls[n->comm] : KINETO_UNKNOWN;
}

static const char *ranks_of(const struct graph *g, const char *pg)
{
    for (size_t i = 0; pg[0] != '\0' && i < g->groups->n; i++)
        if (strcmp(g->groups->groups[i].name, pg) == 0)
            return g->groups->groups[i].ranks;
    return "";
}

/* What the node says as a profiler file would. */
static struct kineto_meta meta_of(struct graph *g, const struct chakra_node *n)
{
    int64_t peer = n->type == CHAKRA_SEND ? n->dst : n->src;
    struct kineto_meta m = {.line = n->place,
                            .seq = -1,
                            .src = n->src,
                            .dst = n->dst,
                            .first = -1,
                            .stride = -1,
                            .root = n->root,
                            .name = n->type == CHAKRA_SEND ? "send" : "recv",
                            .pg_name = n->pg,
                            .pg_desc = "",
                            .pg_ranks = ranks_of(g, n->pg),
                            .in_split = "",
                            .source = KINETO_FROM_KERNEL,
                            .coll = (uint8_t)coll_of(n)};
    uint64_t size, count;
    bool guessed;

    m.dtype = find_dtype(g, n, &size, &guessed);
    m.sized = n->nbytes >= 0 || m.coll == KINETO_BARRIER;
    g->guessed += guessed && m.sized && m.coll != KINETO_BARRIER && m.coll != KINETO_UNKNOWN &&
                  m.coll != KINETO_OTHER;
    count = n->nbytes > 0 ? (uint64_t)n->nbytes / size + ((uint64_t)n->nbytes % size != 0) : 0;
    g->rounded += n->nbytes > 0 && (uint64_t)n->nbytes % size != 0;
    /* ASTRA-sim sends all of it in each step of a gather; who has not told inputs may differ. */
    g->gathers += m.coll == KINETO_ALL_GATHER && !n->inputs && m.sized;
    m.in = count;
    if (n->type != CHAKRA_COLL && peer >= 0 && peer < UINT32_MAX) {
        m.first = 0; /* for the size of the world */
        m.stride = 1;
        m.size = (uint32_t)peer + 1;
    }
    return m;
}

static zipccl_status make_metas(struct graph *g)
{
    g->host_comm = true;
    for (size_t i = 0; i < g->f->nnodes; i++)
        if (is_comm(&g->f->nodes[i]) && !g->f->nodes[i].cpu)
            g->host_comm = false;
    g->kf.metas = calloc(g->f->nnodes + 1, sizeof *g->kf.metas);
    if (g->kf.metas == NULL)
        return nomem(g);
    for (size_t i = 0; i < g->f->nnodes; i++) {
        const struct chakra_node *n = &g->f->nodes[g->order[i]];

        g->call_of[g->order[i]] = KINETO_NONE;
        if (counts(g, n)) {
            g->call_of[g->order[i]] = (uint32_t)g->kf.nmetas; /* for now */
            g->kf.metas[g->kf.nmetas++] = meta_of(g, n);
        }
    }
    return ZIPCCL_OK;
}

/* Groups are streams; a send and its receive must be in one, so all of them are. */
static zipccl_status set_stream(struct graph *g, const struct kineto_meta *meta,
                                struct kineto_call *call)
{
    struct zipccl_place at = {g->f->path, meta->line, g->m.at.error};
    uint32_t i = 0;

    while (i < g->m.nlanes &&
           (g->m.lanes[i].set != call->set || g->m.lanes[i].number != call->lane))
        i++;
    if (i >= KINETO_MAX_STREAMS)
        return zipccl_place_fail(&at, "communication in more than %d groups, expected fewer",
                                 KINETO_MAX_STREAMS);
    call->stream = i + 1;
    if (g->m.k->nstreams < i + 2)
        g->m.k->nstreams = i + 2;
    return ZIPCCL_OK;
}

static zipccl_status add_call(struct graph *g, uint32_t node, struct kineto_meta *meta)
{
    const struct chakra_node *n = &g->f->nodes[node];
    struct kineto_rank *r = g->m.rank;
    struct kineto_call call = {.kernel = (uint32_t)r->ncalls, .label = "communication"};
    bool timed = n->duration_us > 0;

    g->call_of[node] = KINETO_NONE;
    if (!meta->sized || meta->coll == KINETO_UNKNOWN || meta->coll == KINETO_OTHER) {
        *(meta->coll == KINETO_OTHER ? &g->others : &g->unsized) += 1;
        g->last_line = n->place;
        call.opaque = true;
    } else {
        bool all = meta->pg_ranks[0] == '\0' && (n->pg[0] == '\0' || n->type != CHAKRA_COLL);

        /* No group: all ranks.  Until here these were for the size of the world. */
        meta->size = all ? g->m.k->world : 0;
        meta->first = all ? 0 : -1;
        meta->stride = all ? 1 : -1;
        ZIPCCL_TRY(kineto_set_payload(&g->m, meta, n->kernel, &call));
    }
    if (call.opaque && !timed)
        return ZIPCCL_OK;
    if (call.opaque)
        call.stream = 1;
    else
        ZIPCCL_TRY(set_stream(g, meta, &call));
    if (call.stream >= g->m.k->nstreams)
        g->m.k->nstreams = call.stream + 1;
    if (r->ncalls >= KINETO_NONE ||
        !kineto_grow(&r->calls, &r->call_room, r->ncalls, sizeof *r->calls))
        return nomem(g);
    g->call_of[node] = (uint32_t)r->ncalls;
    r->calls[r->ncalls++] = call;
    return ZIPCCL_OK;
}

static zipccl_status make_calls(struct graph *g)
{
    for (size_t i = 0; i < g->f->nnodes; i++)
        if (g->call_of[g->order[i]] != KINETO_NONE)
            ZIPCCL_TRY(add_call(g, g->order[i], &g->kf.metas[g->call_of[g->order[i]]]));
    return ZIPCCL_OK;
}

/* What a node needs, from what it depends on; returns when that has ended. */
static int64_t gather(struct graph *g, uint32_t node)
{
    uint32_t n = g->m.k->nstreams, *latest = g->latest + (size_t)node * n;
    int64_t start = 0;

    for (uint32_t d = g->first_dep[node]; d < g->first_dep[node + 1]; d++) {
        uint32_t dep = g->dep_of[d];

        g->last[node] = g->last[dep] > g->last[node] ? g->last[dep] : g->last[node];
        start = g->end_ns[dep] > start ? g->end_ns[dep] : start;
        for (uint32_t s = 0; s < n; s++)
            if (g->latest[(size_t)dep * n + s] > latest[s])
                latest[s] = g->latest[(size_t)dep * n + s];
    }
    return start;
}

static zipccl_status take_call(struct graph *g, uint32_t node, int64_t start)
{
    struct kineto_rank *r = g->m.rank;
    uint32_t n = g->m.k->nstreams, *latest = g->latest + (size_t)node * n;
    uint32_t index = g->call_of[node], segment = g->last[node];
    struct kineto_call *call = &r->calls[index];
    struct kineto_after *after = &r->after[index];
    int64_t length = (int64_t)(1e3 * g->f->nodes[node].duration_us);

    r->waits_for[index] = segment > 0 ? segment - 1 : KINETO_NONE;
    r->kernels_before[index] = (uint32_t)r->nsegments;
    g->closed |= segment == r->nsegments;
    after->calls = zipccl_arena_alloc(&r->arena, n, sizeof *after->calls);
    if (after->calls == NULL)
        return nomem(g);
    for (uint32_t s = 1; s < n; s++) {
        uint32_t known = segment > 0 ? g->covered[(size_t)(segment - 1) * n + s] : 0;

        /* A stream keeps its order, but for sends and receives. */
        if (latest[s] > known && (s != call->stream || call->pair))
            after->calls[after->n++] = latest[s] - 1;
    }
    latest[call->stream] = index + 1;
    start = g->free_ns[call->stream] > start ? g->free_ns[call->stream] : start;
    call->start_ns = call->host_ns = start;
    call->end_ns = g->end_ns[node] = g->free_ns[call->stream] = start + length;
    return ZIPCCL_OK;
}

static zipccl_status new_segment(struct graph *g, const uint32_t *latest)
{
    struct kineto_rank *r = g->m.rank;
    uint32_t n = g->m.k->nstreams;
    struct kineto_segment s = {.gap_before = KINETO_NONE,
                               .deps = zipccl_arena_alloc(&r->arena, n, sizeof *s.deps)};

    if (s.deps == NULL || r->nsegments >= KINETO_NONE ||
        !kineto_grow(&r->segments, &g->segment_room, r->nsegments, sizeof *r->segments) ||
        !kineto_grow(&g->seconds, &g->second_room, r->nsegments, sizeof *g->seconds) ||
        !kineto_grow(&g->flops, &g->flop_room, r->nsegments, sizeof *g->flops) ||
        !kineto_grow(&g->hbm, &g->hbm_room, r->nsegments, sizeof *g->hbm) ||
        !kineto_grow(&g->covered, &g->covered_room, r->nsegments, n * sizeof *g->covered))
        return nomem(g);
    for (uint32_t i = 1; i < n; i++)
        if (latest[i] > g->waited[i]) {
            s.deps[s.ndeps++] = latest[i] - 1;
            g->waited[i] = latest[i];
        }
    memcpy(g->covered + r->nsegments * n, g->waited, n * sizeof *g->covered);
    g->seconds[r->nsegments] = 0;
    g->flops[r->nsegments] = g->hbm[r->nsegments] = -1;
    r->segments[r->nsegments++] = s;
    g->closed = false;
    return ZIPCCL_OK;
}

static zipccl_status take_compute(struct graph *g, uint32_t node, int64_t start)
{
    struct kineto_rank *r = g->m.rank;
    uint32_t n = g->m.k->nstreams;
    const uint32_t *latest = g->latest + (size_t)node * n;
    const struct chakra_node *c = &g->f->nodes[node];
    double us = c->duration_us;
    bool timed = us > 0, more = r->nsegments == 0 || g->closed;
    size_t at = r->nsegments - 1;

    /* Times add up; of work the larger of two times counts, so it stands alone. */
    if (!more)
        more = !timed || g->flops[at] >= 0 || g->hbm[at] >= 0;
    for (uint32_t s = 1; s < n; s++)
        more |= latest[s] > g->waited[s];
    if (more)
        ZIPCCL_TRY(new_segment(g, latest));
    at = r->nsegments - 1;
    g->seconds[at] += 1e-6 * us;
    if (!timed && c->flops >= 0)
        g->flops[at] = (g->flops[at] < 0 ? 0 : g->flops[at]) + c->flops;
    if (!timed && c->hbm_bytes >= 0)
        g->hbm[at] = (g->hbm[at] < 0 ? 0 : g->hbm[at]) + c->hbm_bytes;
    r->busy_ns += (int64_t)(1e3 * us);
    g->last[node] = (uint32_t)r->nsegments;
    start = g->free_ns[0] > start ? g->free_ns[0] : start;
    g->end_ns[node] = g->free_ns[0] = start + (int64_t)(1e3 * us);
    return ZIPCCL_OK;
}

static zipccl_status lay_out(struct graph *g)
{
    struct kineto_rank *r = g->m.rank;
    size_t n = g->m.k->nstreams;

    if (g->f->nnodes > SIZE_MAX / 8 / n)
        return nomem(g);
    g->latest = calloc(g->f->nnodes * n + 1, sizeof *g->latest);
    g->last = calloc(g->f->nnodes + 1, sizeof *g->last);
    g->end_ns = calloc(g->f->nnodes + 1, sizeof *g->end_ns);
    g->free_ns = calloc(n, sizeof *g->free_ns);
    g->waited = calloc(n, sizeof *g->waited);
    r->waits_for = zipccl_arena_alloc(&r->arena, r->ncalls, sizeof *r->waits_for);
    r->kernels_before = zipccl_arena_alloc(&r->arena, r->ncalls, sizeof *r->kernels_before);
    r->after = zipccl_arena_alloc(&r->arena, r->ncalls, sizeof *r->after);
    if (g->latest == NULL || g->last == NULL || g->end_ns == NULL || g->free_ns == NULL ||
        g->waited == NULL || r->waits_for == NULL || r->kernels_before == NULL || r->after == NULL)
        return nomem(g);
    for (size_t i = 0; i < g->f->nnodes; i++) {
        uint32_t node = g->order[i];
        const struct chakra_node *c = &g->f->nodes[node];
        int64_t start = gather(g, node);

        g->end_ns[node] = start;
        if (g->call_of[node] != KINETO_NONE)
            ZIPCCL_TRY(take_call(g, node, start));
        else if (computes(c) && is_told(c))
            ZIPCCL_TRY(take_compute(g, node, start));
        g->untimed += computes(c) && !is_told(c) && !c->timed;
        g->memory += (c->type == CHAKRA_MEM_LOAD || c->type == CHAKRA_MEM_STORE) && !c->cpu;
    }
    return ZIPCCL_OK;
}

/* Times of the recording, where there are any. */
static void find_span(struct graph *g)
{
    uint64_t first = UINT64_MAX, last = 0;

    for (size_t i = 0; i < g->f->nnodes; i++) {
        const struct chakra_node *n = &g->f->nodes[i];
        uint64_t end = n->start_us + (uint64_t)n->duration_us;

        if (n->start_us == 0)
            continue;
        first = n->start_us < first ? n->start_us : first;
        last = end > last ? end : last;
    }
    if (last > first && last - first < 1000000000000u)
        g->m.rank->last_ns = (int64_t)(last - first) * 1000;
}

static zipccl_status count_guesses(struct graph *g, uint64_t cycles, uint64_t missing)
{
    const struct zipccl_importer *at = &g->m.at;

    ZIPCCL_TRY(zipccl_import_count(at, true, "dtype", 0, g->guessed,
                                   "the file does not tell the type of these calls: taken to be "
                                   "bf16; option dtype sets another"));
    ZIPCCL_TRY(zipccl_import_count(at, true, "rounded", 0, g->rounded,
                                   "sizes that are no whole number of elements: rounded up"));
    ZIPCCL_TRY(zipccl_import_count(at, true, "gather size", 0, g->gathers,
                                   "all-gathers without input tensors: comm_size is taken for what "
                                   "a rank puts in, as ASTRA-sim does"));
    ZIPCCL_TRY(zipccl_import_count(at, true, "no size", 0, g->unsized,
                                   "communication without comm_type or comm_size: its time is "
                                   "kept, without time it is left out"));
    ZIPCCL_TRY(zipccl_import_count(at, true, "other op", 0, g->others,
                                   "reduce, gather and scatter, which a trace lacks: their time is "
                                   "kept, without time they are left out"));
    ZIPCCL_TRY(
        zipccl_import_count(at, true, "untimed compute", 0, g->untimed,
                            "compute with neither time nor work is left out; what depends on it "
                            "waits for what it depended on"));
    ZIPCCL_TRY(zipccl_import_count(at, true, "memory", 0, g->memory,
                                   "loads and stores of memory are left out"));
    ZIPCCL_TRY(zipccl_import_count(at, true, "cycles", 0, cycles,
                                   "nodes that depend on themselves through others: the first in "
                                   "the file goes first"));
    return zipccl_import_count(at, true, "missing nodes", 0, missing,
                               "dependencies on nodes that are not in the file are ignored");
}

static zipccl_status keep(const struct graph *g, const double *from, double **to)
{
    struct kineto_rank *r = g->m.rank;

    *to = zipccl_arena_alloc(&r->arena, r->nsegments, sizeof **to);
    if (*to == NULL)
        return nomem(g);
    if (r->nsegments > 0)
        memcpy(*to, from, r->nsegments * sizeof **to);
    return ZIPCCL_OK;
}

/* Groups tell the world, if nothing else does. */
static int64_t world_of(const struct graph *g, int64_t number)
{
    int64_t world = g->f->world;

    if (world > 0 || g->m.k->world > 0 || g->m.at.options->nranks > 0)
        return world;
    for (size_t i = 0; i < g->groups->n; i++) {
        int64_t last = (int64_t)g->groups->groups[i].last + 1;

        world = last > world ? last : world;
    }
    return world > 0 && number >= world ? number + 1 : world;
}

static zipccl_status make(struct graph *g, int64_t number)
{
    uint64_t cycles = 0, missing = 0;
    struct kineto_rank *r = g->m.rank;

    g->order = malloc((g->f->nnodes + 1) * sizeof *g->order);
    g->call_of = malloc((g->f->nnodes + 1) * sizeof *g->call_of);
    if (g->order == NULL || g->call_of == NULL)
        return nomem(g);
    ZIPCCL_TRY(chakra_order(g->f, g->order, &g->first_dep, &g->dep_of, &cycles, &missing));
    ZIPCCL_TRY(make_metas(g));
    g->kf.rank = number;
    g->kf.world = world_of(g, number);
    ZIPCCL_TRY(kineto_set_rank(g->m.k, &g->kf, r));
    ZIPCCL_TRY(make_calls(g));
    ZIPCCL_TRY(lay_out(g));
    find_span(g);
    r->nkernels = r->nsegments;
    ZIPCCL_TRY(keep(g, g->seconds, &r->seconds));
    ZIPCCL_TRY(keep(g, g->flops, &r->flops));
    ZIPCCL_TRY(keep(g, g->hbm, &r->hbm));
    kineto_find_class(g->m.k, r);
    return count_guesses(g, cycles, missing);
}

zipccl_status chakra_make_rank(struct kineto_import *k, struct chakra_file *f,
                               const struct chakra_groups *groups, int64_t number,
                               struct kineto_rank *rank)
{
    struct graph g = {.f = f, .groups = groups, .kf = {.path = f->path}};
    zipccl_status status;

    g.m =
        (struct kineto_maker){.k = k, .file = &g.kf, .rank = rank, .at = kineto_at(k, &g.kf.path)};
    status = make(&g, number);
    free(g.order);
    free(g.first_dep);
    free(g.dep_of);
    free(g.call_of);
    free(g.last);
    free(g.latest);
    free(g.end_ns);
    free(g.free_ns);
    free(g.waited);
    free(g.covered);
    free(g.seconds);
    free(g.flops);
    free(g.hbm);
    free(g.m.lanes);
    free(g.kf.metas);
    return status;
}
