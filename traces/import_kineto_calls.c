/*
 * import_kineto_calls.c - communication kernels of one rank, joined with what the CPU said of them
 *
 * A kernel's own arguments come first, then the record_param_comms that encloses its launch, then
 * those before it that no kernel belongs to (grouped calls), then the annotation's shapes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_kineto_calls.h"

#include "traces/import_et.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static zipccl_status nomem(const struct kineto_maker *m)
{
    struct zipccl_place at = {m->file->path, 0, m->at.error};

    return zipccl_place_nomem(&at);
}

/* Communication kernels in the order of their launches, then of their starts. */
static zipccl_status sort_kernels(struct kineto_maker *m)
{
    const struct kineto_file *f = m->file;
    struct kineto_keyed *keys = malloc((f->nnccl + f->nforeign + 1) * sizeof *keys);

    m->kernels = malloc((f->nnccl + f->nforeign + 1) * sizeof *m->kernels);
    if (keys == NULL || m->kernels == NULL) {
        free(keys);
        return nomem(m);
    }
    for (size_t i = 0; i < f->ngpu; i++)
        if (f->gpu[i].meta != KINETO_NONE)
            keys[m->nkernels++] = (struct kineto_keyed){kineto_host_time(f, &f->gpu[i]),
                                                        f->gpu[i].start_ns, (uint32_t)i};
    qsort(keys, m->nkernels, sizeof *keys, kineto_compare_keyed);
    for (size_t i = 0; i < m->nkernels; i++)
        m->kernels[i] = keys[i].index;
    free(keys);
    return ZIPCCL_OK;
}

bool kineto_is_data(const struct kineto_meta *meta)
{
    return meta->sized && meta->coll != KINETO_UNKNOWN && meta->coll != KINETO_WAIT &&
           meta->coll != KINETO_INIT;
}

static zipccl_status find_lane(struct kineto_maker *m, uint32_t set, const char *pg_name,
                               uint32_t *out)
{
    uint32_t number = 0;

    for (size_t i = 0; i < m->nlanes; i++) {
        if (m->lanes[i].set != set)
            continue;
        if (strcmp(m->lanes[i].pg_name, pg_name) == 0) {
            *out = m->lanes[i].number;
            return ZIPCCL_OK;
        }
        number++;
    }
    if (!kineto_grow(&m->lanes, &m->lane_room, m->nlanes, sizeof *m->lanes))
        return nomem(m);
    m->lanes[m->nlanes++] = (struct kineto_lane){set, number, pg_name};
    *out = number;
    return ZIPCCL_OK;
}

/* What a rank sends to each member; '*even' if the list does not tell. */
static zipccl_status take_splits(struct kineto_maker *m, const struct kineto_meta *meta,
                                 uint32_t size, uint32_t factor, struct kineto_call *call,
                                 bool *even)
{
    uint64_t *list = malloc(((size_t)size + 1) * sizeof *list), sum = 0, scale = 0;
    const char *text = meta->in_split, *whole = NULL;
    bool cut;
    size_t n;

    if (list == NULL)
        return nomem(m);
    if (strstr(text, "...") != NULL && m->file->beside != NULL)
        whole = et_find_split(m->file->beside, meta);
    n = kineto_list(whole != NULL ? whole : text, list, (size_t)size + 1, &cut);
    for (size_t i = 0; i < n; i++)
        sum += list[i] < ZIPCCL_JSON_MAX_INTEGER ? list[i] : 0;
    /* Splits count rows, sizes count elements. */
    if (sum > 0 && meta->in % sum == 0)
        scale = meta->in / sum * factor;
    *even = cut || n != size || (scale == 0 && meta->in > 0);
    if (!*even) {
        call->in_split = zipccl_arena_alloc(&m->rank->arena, size, sizeof *call->in_split);
        if (call->in_split == NULL) {
            free(list);
            return nomem(m);
        }
        for (size_t i = 0; i < n; i++)
            call->in_split[i] = list[i] * scale;
    }
    free(list);
    if (whole != NULL)
        return zipccl_import_count(&m->at, false, "whole splits", meta->line, 1,
                                   "calls whose lists the profiler cut: how much they send to "
                                   "whom is taken from the execution trace, exactly");
    if (cut)
        return zipccl_import_count(&m->at, true, "cut splits", meta->line, 1,
                                   "the profiler cut the lists of how much all-to-all sends to "
                                   "whom: these calls are taken to be balanced");
    return ZIPCCL_OK;
}

static zipccl_status all_to_all(struct kineto_maker *m, const struct kineto_meta *meta,
                                uint32_t size, uint32_t factor, struct kineto_call *call)
{
    bool uneven = meta->coll == KINETO_ALL_TO_ALLV, even = true;
    uint64_t in = meta->in * factor;

    call->op = ZIPCCL_ALLTOALL;
    if (strlen(meta->in_split) > 2) {
        ZIPCCL_TRY(take_splits(m, meta, size, factor, call, &even));
        call->op = even ? ZIPCCL_ALLTOALL : ZIPCCL_ALLTOALLV;
    } else if (uneven || meta->source == KINETO_FROM_ANNOTATION) {
        ZIPCCL_TRY(zipccl_import_count(&m->at, true, "no splits", meta->line, 1,
                                       "the file does not tell how much these all-to-alls send to "
                                       "whom: they are taken to be balanced"));
    }
    call->count = in / size + (in % size != 0);
    return ZIPCCL_OK;
}

/* The other end of a pair as a member; false if it is not told. */
static bool find_peer(const struct kineto_maker *m, const struct kineto_meta *meta,
                      const struct kineto_set *set, uint32_t part, uint32_t *peer)
{
    int64_t world = meta->coll == KINETO_SEND ? meta->dst : meta->src;
    const uint32_t *ranks = set->ranks + (size_t)part * set->size;
    const char *arrow = strpbrk(meta->name, "<>");

    (void)m;
    for (uint32_t i = 0; world >= 0 && i < set->size; i++)
        if (ranks[i] == (uint64_t)world) {
            *peer = i;
            return true;
        }
    if (meta->source != KINETO_FROM_ANNOTATION || arrow == NULL)
        return false;
    /* "nccl:send 0->1", "nccl:recv 1<-0": the second number is the other end. */
    *peer = (uint32_t)strtoul(arrow + (*arrow == '<' ? 2 : 1), NULL, 10);
    return *peer < set->size;
}

static zipccl_status opaque(struct kineto_maker *m, const struct kineto_meta *meta,
                            const char *what, const char *why, struct kineto_call *call)
{
    call->opaque = true;
    if (m->timeless)
        return zipccl_import_count(&m->at, true, what, meta->line, 1, "calls %s: left out", why);
    return zipccl_import_count(&m->at, true, what, meta->line, 1,
                               "communication kernels %s: their time is kept as recorded, they are "
                               "not compressed",
                               why);
}

static zipccl_status pair(struct kineto_maker *m, const struct kineto_meta *meta, uint32_t factor,
                          struct kineto_call *call)
{
    const struct kineto_set *set = &m->k->sets[call->set];
    const uint32_t *ranks = set->ranks + (size_t)call->part * set->size;
    uint32_t own = 0, peer;

    while (own + 1 < set->size && ranks[own] != m->rank->rank)
        own++;
    if (!find_peer(m, meta, set, call->part, &peer) || peer == own)
        return opaque(m, meta, "no peer", "whose other end the file does not name", call);
    call->op = ZIPCCL_SENDRECV;
    call->pair = true;
    call->src = meta->coll == KINETO_SEND ? own : peer;
    call->dst = meta->coll == KINETO_SEND ? peer : own;
    call->count = (meta->in > meta->out ? meta->in : meta->out) * factor;
    return ZIPCCL_OK;
}

static zipccl_status reduction(struct kineto_maker *m, const struct kineto_meta *meta,
                               const char *kernel, struct kineto_call *call)
{
    bool known;

    call->redop = (uint8_t)kineto_redop_of_kernel(kernel, &known);
    return zipccl_import_count(&m->at, true, "redop", meta->line, !known,
                               "%s not tell the operator of these reductions: taken to be sums",
                               m->timeless ? "the file does" : "the kernels' names do");
}

/* Op and count, in NCCL's sense. */
static zipccl_status set_sizes(struct kineto_maker *m, const struct kineto_meta *meta,
                               const char *kernel, uint32_t factor, struct kineto_call *call)
{
    uint32_t n = m->k->sets[call->set].size;
    uint64_t in = meta->in * factor, out = meta->out * factor;

    switch (meta->coll) {
    case KINETO_ALL_REDUCE:
    case KINETO_BARRIER:
        call->op = ZIPCCL_ALL_REDUCE;
        call->count = in > 0 ? in : meta->coll == KINETO_BARRIER;
        return reduction(m, meta, kernel, call);
    case KINETO_ALL_GATHER:
        call->op = ZIPCCL_ALL_GATHER;
        call->count = in > 0 ? in : out / n;
        return ZIPCCL_OK;
    case KINETO_REDUCE_SCATTER:
        call->op = ZIPCCL_REDUCE_SCATTER;
        call->count = out > 0 ? out : in / n + (in % n != 0);
        return reduction(m, meta, kernel, call);
    case KINETO_BROADCAST:
        call->op = ZIPCCL_BROADCAST;
        call->count = in > out ? in : out;
        if (meta->root >= 0 && meta->root < (int64_t)n) {
            call->root = (uint32_t)meta->root;
            return ZIPCCL_OK;
        }
        return zipccl_import_count(&m->at, true, "root", meta->line, 1,
                                   "the file does not tell the root of broadcasts: taken to be "
                                   "the first member of the group");
    case KINETO_ALL_TO_ALL:
    case KINETO_ALL_TO_ALLV: return all_to_all(m, meta, n, factor, call);
    case KINETO_SEND:
    case KINETO_RECV: return pair(m, meta, factor, call);
    default:
        return opaque(m, meta, "other op", "of reduce, gather or scatter, which a trace lacks",
                      call);
    }
}

zipccl_status kineto_set_payload(struct kineto_maker *m, const struct kineto_meta *meta,
                                 const char *kernel, struct kineto_call *call)
{
    enum zipccl_dtype dtype = ZIPCCL_UINT8;
    uint32_t factor = 1;

    call->line = meta->line;
    call->seq = meta->seq;
    if (!kineto_dtype_of(meta->dtype, &dtype, &factor) && meta->coll != KINETO_BARRIER)
        return opaque(m, meta, "unknown dtype", "of a type that is not known", call);
    call->dtype = (uint8_t)dtype;
    if (meta->in > ZIPCCL_JSON_MAX_INTEGER / 64 || meta->out > ZIPCCL_JSON_MAX_INTEGER / 64) {
        struct zipccl_place at = {m->file->path, meta->line, m->at.error};

        return zipccl_place_fail(&at, "%" PRIu64 " elements in one call, expected at most 2^47",
                                 meta->in > meta->out ? meta->in : meta->out);
    }
    ZIPCCL_TRY(zipccl_import_count(&m->at, true, "32-bit size", meta->line, meta->wrapped,
                                   "negative sizes, which older PyTorch writes above 2^31: taken "
                                   "modulo 2^32"));
    ZIPCCL_TRY(kineto_find_group(m->k, m->file, m->rank->rank, meta, &call->set, &call->part));
    ZIPCCL_TRY(find_lane(m, call->set, meta->pg_name, &call->lane));
    return set_sizes(m, meta, kernel, factor, call);
}

static zipccl_status trace_stream(struct kineto_maker *m, uint16_t stream, uint32_t *out)
{
    struct kineto_stream *s = &m->file->streams[stream];
    struct zipccl_place at = {m->file->path, 0, m->at.error};
    uint32_t used = 1;

    if (s->trace_stream == KINETO_NONE) {
        for (size_t i = 0; i < m->file->nstreams; i++)
            used += m->file->streams[i].trace_stream != KINETO_NONE;
        if (used > KINETO_MAX_STREAMS)
            return zipccl_place_fail(&at, "communication in more than %d streams, expected fewer",
                                     KINETO_MAX_STREAMS);
        s->trace_stream = used;
        if (m->k->nstreams <= used)
            m->k->nstreams = used + 1;
    }
    *out = s->trace_stream;
    return ZIPCCL_OK;
}

/* A dispatch or combine past NCCL, of the size that a person gives, among all ranks. */
static zipccl_status replay_dispatch(struct kineto_maker *m, const struct kineto_meta *own,
                                     struct kineto_call *call)
{
    const struct zipccl_import_options *o = m->k->importer->options;
    enum zipccl_dtype dtype = o->dtype_given ? o->dtype : ZIPCCL_BFLOAT16;
    uint64_t size = zipccl_dtype_size(dtype) * m->k->world;
    const struct kineto_meta all = {
        .line = own->line, .size = m->k->world, .pg_name = "", .pg_desc = "", .pg_ranks = ""};

    ZIPCCL_TRY(kineto_find_group(m->k, m->file, m->rank->rank, &all, &call->set, &call->part));
    ZIPCCL_TRY(find_lane(m, call->set, "past NCCL", &call->lane));
    call->opaque = false;
    call->op = ZIPCCL_ALLTOALL;
    call->dtype = (uint8_t)dtype;
    call->count = o->dispatch_bytes / size + (o->dispatch_bytes % size != 0);
    return zipccl_import_count(&m->at, true, "dispatch", own->line, 1,
                               "dispatch and combine past NCCL: all-to-alls among all ranks, of "
                               "the size that was given");
}

static zipccl_status add_call(struct kineto_maker *m, uint32_t kernel,
                              const struct kineto_meta *meta, double share_from, double share_to)
{
    const struct kineto_gpu *g = &m->file->gpu[m->kernels[kernel]];
    const struct kineto_meta *own = &m->file->metas[g->meta];
    struct kineto_rank *r = m->rank;
    double length = (double)(g->end_ns - g->start_ns);
    struct kineto_call call = {.start_ns = g->start_ns + (int64_t)(length * share_from),
                               .end_ns = g->start_ns + (int64_t)(length * share_to),
                               .host_ns = kineto_host_time(m->file, g),
                               .line = own->line,
                               .seq = -1,
                               .kernel = kernel,
                               .blocking = m->file->streams[g->stream].nkernels > 0};

    ZIPCCL_TRY(trace_stream(m, g->stream, &call.stream));
    if (g->kind == KINETO_FOREIGN) {
        call.opaque = call.foreign = true;
        call.label = kineto_foreign_name(own->name);
        call.dispatch =
            strstr(own->name, "dispatch") != NULL || strstr(own->name, "combine") != NULL;
        call.dispatch = call.dispatch && strstr(own->name, "notify") == NULL;
        if (call.dispatch && m->k->importer->options->dispatch_bytes > 0)
            ZIPCCL_TRY(replay_dispatch(m, own, &call));
    } else if (meta == NULL) {
        call.label = "NCCL";
        ZIPCCL_TRY(opaque(m, own, "no size", "without sizes", &call));
    } else {
        call.label = "NCCL";
        ZIPCCL_TRY(kineto_set_payload(m, meta, own->name, &call));
    }
    if (r->ncalls >= KINETO_NONE ||
        !kineto_grow(&r->calls, &r->call_room, r->ncalls, sizeof *r->calls))
        return nomem(m);
    r->calls[r->ncalls++] = call;
    return ZIPCCL_OK;
}

/* Kernels that launch what several calls queued: each takes its share of the time by its bytes. */
static zipccl_status add_grouped(struct kineto_maker *m, uint32_t kernel, bool *any)
{
    const struct kineto_gpu *g = &m->file->gpu[m->kernels[kernel]];
    const struct kineto_launch *l;
    double sum = 0, done = 0;
    size_t last, first;
    uint64_t n = 0;

    *any = false;
    if (g->launch == KINETO_NONE)
        return ZIPCCL_OK;
    l = &m->file->launches[g->launch];
    last = kineto_last_meta(m->file, KINETO_FROM_CPU, l->thread, l->ts_ns);
    if (last == m->file->nordered)
        return ZIPCCL_OK;
    for (first = last + 1; first > 0; first--) {
        const struct kineto_meta *meta = &m->file->metas[m->file->ordered[first - 1]];

        if (meta->source != KINETO_FROM_CPU || meta->thread != l->thread ||
            meta->start_ns <= m->last_launch[l->thread])
            break;
        if (kineto_is_data(meta) && !meta->used) {
            sum += 1 + (double)(meta->in > meta->out ? meta->in : meta->out);
            n++;
        }
    }
    for (size_t i = first; i <= last; i++) {
        struct kineto_meta *meta = &m->file->metas[m->file->ordered[i]];
        double part = (1 + (double)(meta->in > meta->out ? meta->in : meta->out)) / sum;

        if (!kineto_is_data(meta) || meta->used)
            continue;
        meta->used = true;
        ZIPCCL_TRY(add_call(m, kernel, meta, done, done + part));
        done += part;
    }
    *any = n > 0;
    return zipccl_import_count(&m->at, true, "grouped calls", m->file->metas[g->meta].line, n,
                               "calls that one kernel carries out together: found by the order of "
                               "calls before it, its time shared out by their sizes");
}

static zipccl_status add_kernel(struct kineto_maker *m, uint32_t kernel)
{
    struct kineto_file *f = m->file;
    const struct kineto_gpu *g = &f->gpu[m->kernels[kernel]];
    struct kineto_meta *meta = &f->metas[g->meta];
    bool done = false;

    if (g->kind == KINETO_FOREIGN || kineto_is_data(meta))
        return add_call(m, kernel, meta, 0, 1);
    meta = kineto_enclosing(m->file, g, KINETO_FROM_CPU);
    if (meta != NULL && kineto_is_data(meta))
        return add_call(m, kernel, meta, 0, 1);
    ZIPCCL_TRY(add_grouped(m, kernel, &done));
    if (done)
        return ZIPCCL_OK;
    if (m->told != NULL) {
        ZIPCCL_TRY(zipccl_import_count(&m->at, true, "size from order", m->told[kernel]->line, 1,
                                       "kernels without metadata: op, type and size are those of "
                                       "the n-th call of the execution trace, which has as many"));
        return add_call(m, kernel, m->told[kernel], 0, 1);
    }
    meta = kineto_enclosing(m->file, g, KINETO_FROM_ANNOTATION);
    if (meta == NULL || !kineto_is_data(meta))
        return add_call(m, kernel, NULL, 0, 1);
    ZIPCCL_TRY(zipccl_import_count(&m->at, true, "size from shape", meta->line, 1,
                                   "kernels without metadata: op, type and size are those of the "
                                   "annotation around their launch"));
    return add_call(m, kernel, meta, 0, 1);
}

/* Metas that have a kernel of their own are none of a group's. */
static void mark_used(struct kineto_maker *m)
{
    for (size_t i = 0; i < m->nkernels; i++) {
        struct kineto_meta *meta =
            kineto_enclosing(m->file, &m->file->gpu[m->kernels[i]], KINETO_FROM_CPU);

        if (meta != NULL && m->file->gpu[m->kernels[i]].kind == KINETO_NCCL)
            meta->used = true;
    }
}

/* True if a kernel of that name may carry out the call. */
static bool may_be(const char *kernel, const struct kineto_meta *meta)
{
    enum kineto_coll coll = kineto_coll_of_kernel(kernel);

    if (coll == KINETO_UNKNOWN)
        return meta->coll == KINETO_ALL_TO_ALL || meta->coll == KINETO_ALL_TO_ALLV ||
               meta->coll == KINETO_SEND || meta->coll == KINETO_RECV;
    return coll == meta->coll || (coll == KINETO_ALL_REDUCE && meta->coll == KINETO_BARRIER);
}

/*
 * Where the execution trace has as many calls as there are kernels, of the same kinds in the same
 * order, the n-th is the n-th.
 */
static zipccl_status match_beside(struct kineto_maker *m)
{
    const struct kineto_file *et = m->file->beside != NULL ? &m->file->beside->file : NULL;
    bool differs = false;
    size_t n = 0;

    if (et == NULL || m->file->nforeign > 0)
        return ZIPCCL_OK;
    m->told = malloc((m->nkernels + 1) * sizeof *m->told);
    if (m->told == NULL)
        return nomem(m);
    for (size_t i = 0; i < et->nmetas && !differs; i++) {
        if (!kineto_is_data(&et->metas[i]))
            continue;
        differs = n == m->nkernels ||
                  !may_be(m->file->metas[m->file->gpu[m->kernels[n]].meta].name, &et->metas[i]);
        if (!differs)
            m->told[n++] = &et->metas[i];
    }
    /* Numbers and lines of the other file mean nothing here. */
    for (size_t i = 0; i < n; i++) {
        m->told[i]->seq = -1;
        m->told[i]->line = 0;
    }
    if (!differs && n == m->nkernels)
        return ZIPCCL_OK;
    free(m->told);
    m->told = NULL;
    return ZIPCCL_OK;
}

static zipccl_status make_all(struct kineto_maker *m)
{
    uint64_t unlaunched = 0;

    ZIPCCL_TRY(kineto_join(m->file, m->at.error));
    ZIPCCL_TRY(sort_kernels(m));
    ZIPCCL_TRY(match_beside(m));
    m->last_launch = malloc((m->file->nthreads + 1) * sizeof *m->last_launch);
    if (m->last_launch == NULL)
        return nomem(m);
    for (size_t i = 0; i < m->file->nthreads; i++)
        m->last_launch[i] = INT64_MIN;
    mark_used(m);
    for (uint32_t i = 0; i < m->nkernels; i++) {
        const struct kineto_gpu *g = &m->file->gpu[m->kernels[i]];

        ZIPCCL_TRY(add_kernel(m, i));
        unlaunched += g->launch == KINETO_NONE;
        if (g->launch != KINETO_NONE)
            m->last_launch[m->file->launches[g->launch].thread] =
                m->file->launches[g->launch].ts_ns;
    }
    return zipccl_import_count(&m->at, true, "no launch", 0, unlaunched,
                               "communication kernels whose launch is not in the file: taken to "
                               "be launched when they start");
}

zipccl_status kineto_make_calls(struct kineto_import *k, struct kineto_file *file,
                                struct kineto_rank *rank)
{
    struct kineto_maker m = {.k = k, .file = file, .rank = rank, .at = kineto_at(k, &file->path)};
    zipccl_status status = make_all(&m);

    free(m.kernels);
    free(m.told);
    free(m.lanes);
    free(m.last_launch);
    return status;
}
