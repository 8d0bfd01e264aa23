/*
 * import_kineto_compute.c - what a rank computes between its calls, and who waits for whom
 *
 * Kernels of all streams that compute are one queue, in the order of their launches.  It is cut
 * into segments where a call is launched and where compute waits for one.  A segment takes from
 * the end of what it waits for to the end of its kernels: times in which the GPU waits for the
 * host are in it, times in which it waits for communication are not.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_kineto.h"

#include <stdlib.h>
#include <string.h>

/* Old files have whole microseconds, so ends and starts may overlap by one each. */
#define TOLERANCE_NS 2000

/* A host later than this is told by a segment of its own. */
#define MIN_GAP_NS 5000

#define ANY_STREAM 1u /* bit of a mask of trace streams: which one is not told */

struct layout {
    struct kineto_import *k;
    struct kineto_file *file;
    struct kineto_rank *rank;
    struct zipccl_importer at;
    uint32_t *order;           /* [nkernels] GPU activities in host order */
    uint64_t *waits;           /* [nlaunches] streams that compute launched here waits for */
    uint32_t *latest, *waited; /* [nstreams] calls plus 1, 0: none */
    uint32_t *before;          /* [ncalls] the call before it in its stream, plus 1 */
    size_t room;
    int64_t *ends; /* [nsegments] on the GPU */
    size_t ends_room;
    bool open;
    int64_t prev_end;
    uint64_t guessed, timed;
};

struct keyed {
    int64_t key;
    uint32_t index;
};

static int compare_keyed(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;

    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static zipccl_status nomem(const struct layout *l)
{
    struct zipccl_place at = {l->file->path, 0, l->at.error};

    return zipccl_place_nomem(&at);
}

static int64_t host_time(const struct kineto_file *f, const struct kineto_gpu *g)
{
    return g->launch != KINETO_NONE ? f->launches[g->launch].ts_ns : g->start_ns;
}

static zipccl_status sort_kernels(struct layout *l)
{
    struct kineto_file *f = l->file;
    struct keyed *keys = malloc((f->ngpu + 1) * sizeof *keys);
    size_t n = 0;

    if (keys == NULL)
        return nomem(l);
    for (size_t i = 0; i < f->ngpu; i++)
        if (f->gpu[i].meta == KINETO_NONE)
            keys[n++] = (struct keyed){host_time(f, &f->gpu[i]), (uint32_t)i};
    qsort(keys, n, sizeof *keys, compare_keyed);
    l->order = malloc((n + 1) * sizeof *l->order);
    for (size_t i = 0; l->order != NULL && i < n; i++)
        l->order[i] = keys[i].index;
    free(keys);
    l->rank->nkernels = n;
    return l->order != NULL ? ZIPCCL_OK : nomem(l);
}

static const struct kineto_gpu *kernel(const struct layout *l, size_t i)
{
    return &l->file->gpu[l->order[i]];
}

/* Trace stream of the communication in a GPU stream; 0 if there is none. */
static uint32_t comm_stream(const struct kineto_file *f, int64_t number)
{
    for (size_t i = 0; i < f->nstreams; i++)
        if (f->streams[i].number == number && f->streams[i].trace_stream != KINETO_NONE)
            return f->streams[i].trace_stream;
    return 0;
}

static int compare_syncs(const void *a, const void *b)
{
    const struct kineto_sync *x = a, *y = b;

    return x->correlation < y->correlation ? -1 : x->correlation > y->correlation;
}

/* What a cudaStreamWaitEvent is for: streams as bits, 0 if compute waits for nothing here. */
static uint64_t wait_mask(const struct layout *l, const struct kineto_launch *wait)
{
    struct kineto_sync key = {.correlation = wait->correlation};
    const struct kineto_sync *s =
        bsearch(&key, l->file->syncs, l->file->nsyncs, sizeof *l->file->syncs, compare_syncs);
    uint32_t stream;

    if (s == NULL)
        return ANY_STREAM;
    stream = comm_stream(l->file, s->wait_on_stream);
    if (comm_stream(l->file, s->stream) > 0 || stream == 0)
        return 0;
    return stream < 64 ? (uint64_t)1 << stream : ANY_STREAM;
}

/* A wait binds what its thread launches next; before communication it is a wait for compute. */
static zipccl_status find_waits(struct layout *l)
{
    struct kineto_file *f = l->file;
    uint64_t *pending = calloc(f->nthreads + 1, sizeof *pending);
    unsigned char *kind = calloc(f->nlaunches + 1, 1);

    qsort(f->syncs, f->nsyncs, sizeof *f->syncs, compare_syncs);
    l->waits = calloc(f->nlaunches + 1, sizeof *l->waits);
    for (size_t i = 0; kind != NULL && i < f->ngpu; i++)
        if (f->gpu[i].launch != KINETO_NONE)
            kind[f->gpu[i].launch] = f->gpu[i].meta == KINETO_NONE ? 1 : 2;
    for (size_t i = 0; pending != NULL && kind != NULL && l->waits != NULL && i < f->nlaunches;
         i++) {
        const struct kineto_launch *launch = &f->launches[i];

        if (launch->wait)
            pending[launch->thread] |= wait_mask(l, launch);
        if (kind[i] == 1)
            l->waits[i] = pending[launch->thread];
        if (kind[i] > 0)
            pending[launch->thread] = 0;
    }
    free(kind);
    if (pending == NULL || l->waits == NULL) {
        free(pending);
        return nomem(l);
    }
    free(pending);
    return ZIPCCL_OK;
}

static zipccl_status open_segment(struct layout *l, size_t first_kernel, uint32_t gap_before,
                                  const uint32_t *deps, uint32_t ndeps)
{
    struct kineto_rank *r = l->rank;
    struct kineto_segment s = {
        .first_kernel = first_kernel, .gap_before = gap_before, .ndeps = ndeps};

    if (ndeps > 0) {
        s.deps = zipccl_arena_alloc(&r->arena, ndeps, sizeof *s.deps);
        if (s.deps == NULL)
            return nomem(l);
        memcpy(s.deps, deps, ndeps * sizeof *deps);
    }
    if (r->nsegments >= KINETO_NONE ||
        !kineto_grow(&r->segments, &l->room, r->nsegments, sizeof *r->segments) ||
        !kineto_grow(&l->ends, &l->ends_room, r->nsegments, sizeof *l->ends))
        return nomem(l);
    r->segments[r->nsegments++] = s;
    l->ends[r->nsegments - 1] = l->prev_end;
    l->open = gap_before == KINETO_NONE;
    return ZIPCCL_OK;
}

/* The latest call of a stream that had ended by 'when' and was not waited for yet; 0: none. */
static uint32_t ended_call(const struct layout *l, uint32_t stream, int64_t when)
{
    uint32_t call = l->latest[stream];

    while (call > l->waited[stream] && l->rank->calls[call - 1].end_ns > when + TOLERANCE_NS)
        call = l->before[call - 1];
    return call > l->waited[stream] ? call : 0;
}

/* Calls that compute starting at 'start', launched at 'host', waited for; into 'deps'. */
static uint32_t find_deps(struct layout *l, int64_t start, int64_t host, uint64_t mask,
                          uint32_t *deps)
{
    uint32_t n = 0;

    for (uint32_t s = 1; s < l->k->nstreams; s++) {
        uint32_t call = ended_call(l, s, start);
        const struct kineto_call *c = call > 0 ? &l->rank->calls[call - 1] : NULL;
        bool told, guessed, timed;

        if (c == NULL)
            continue;
        told = c->blocking || (s < 64 && mask >> s & 1);
        guessed = mask & ANY_STREAM;
        timed = c->end_ns > l->prev_end && start > l->prev_end &&
                (!l->file->has_waits || host > c->end_ns);
        if (!told && !guessed && !timed)
            continue;
        l->guessed += !told && guessed;
        l->timed += !told && !guessed;
        l->waited[s] = call;
        deps[n++] = call - 1;
    }
    return n;
}

/* The last segment that had ended when the call started; compute launched later is not awaited. */
static void bind_call(struct layout *l, uint32_t i)
{
    const struct kineto_call *c = &l->rank->calls[i];
    size_t s = l->rank->nsegments;

    while (s > 0 && l->ends[s - 1] > c->start_ns + TOLERANCE_NS)
        s--;
    l->rank->waits_for[i] = s > 0 ? (uint32_t)(s - 1) : KINETO_NONE;
}

static zipccl_status take_call(struct layout *l, uint32_t i, size_t nkernels, uint32_t *deps)
{
    struct kineto_call *c = &l->rank->calls[i];

    l->rank->kernels_before[i] = (uint32_t)nkernels;
    l->open = false;
    if (c->host_ns > l->prev_end + MIN_GAP_NS && c->host_ns <= c->start_ns + TOLERANCE_NS) {
        uint32_t n = find_deps(l, c->host_ns, c->host_ns, 0, deps);

        ZIPCCL_TRY(open_segment(l, nkernels, i, deps, n));
        l->prev_end = c->host_ns;
        l->ends[l->rank->nsegments - 1] = l->prev_end;
    }
    bind_call(l, i);
    l->before[i] = l->latest[c->stream];
    l->latest[c->stream] = i + 1;
    return ZIPCCL_OK;
}

static zipccl_status take_kernel(struct layout *l, size_t i, uint32_t *deps)
{
    const struct kineto_gpu *g = kernel(l, i);
    uint64_t mask = g->launch != KINETO_NONE ? l->waits[g->launch] : 0;
    uint32_t n = find_deps(l, g->start_ns, host_time(l->file, g), mask, deps);

    if (n > 0 || !l->open)
        ZIPCCL_TRY(open_segment(l, i, KINETO_NONE, deps, n));
    if (g->end_ns > l->prev_end)
        l->prev_end = g->end_ns;
    l->ends[l->rank->nsegments - 1] = l->prev_end;
    return ZIPCCL_OK;
}

/* Calls and kernels in host order. */
static zipccl_status lay_out(struct layout *l)
{
    struct kineto_rank *r = l->rank;
    uint32_t *deps = malloc((l->k->nstreams + 1) * sizeof *deps), call = 0;
    zipccl_status status = deps != NULL ? ZIPCCL_OK : nomem(l);

    l->prev_end = r->first_ns;
    for (size_t i = 0; i <= r->nkernels && status == ZIPCCL_OK; i++) {
        int64_t host = i < r->nkernels ? host_time(l->file, kernel(l, i)) : INT64_MAX;

        while (call < r->ncalls && r->calls[call].host_ns <= host && status == ZIPCCL_OK)
            status = take_call(l, call++, i, deps);
        if (i < r->nkernels && status == ZIPCCL_OK)
            status = take_kernel(l, i, deps);
    }
    free(deps);
    if (status == ZIPCCL_OK)
        status = zipccl_import_count(&l->at, true, "awaited call", 0, l->guessed,
                                     "waits of compute for communication: the file tells that "
                                     "there is one, taken to be for the last call that had ended");
    if (status == ZIPCCL_OK)
        status = zipccl_import_count(&l->at, true, "wait by time", 0, l->timed,
                                     "idle times of compute in which a call ended, and that the "
                                     "file does not explain: taken to be waits for the call");
    return status;
}

/* The length of each segment on this rank. */
static zipccl_status measure(struct layout *l, const struct kineto_rank *class)
{
    struct kineto_rank *r = l->rank;
    int64_t prev_end = r->first_ns;

    r->seconds = zipccl_arena_alloc(&r->arena, class->nsegments, sizeof *r->seconds);
    if (r->seconds == NULL)
        return nomem(l);
    for (size_t s = 0; s < class->nsegments; s++) {
        const struct kineto_segment *seg = &class->segments[s];
        size_t last = s + 1 < class->nsegments ? class->segments[s + 1].first_kernel : r->nkernels;
        bool gap = seg->gap_before != KINETO_NONE;
        int64_t base = prev_end, end = gap ? r->calls[seg->gap_before].host_ns : prev_end;
        int64_t start = gap ? end : kernel(l, seg->first_kernel)->start_ns;

        for (uint32_t d = 0; d < seg->ndeps; d++) {
            int64_t ended = r->calls[seg->deps[d]].end_ns;

            ended = ended < start ? ended : start;
            base = ended > base ? ended : base;
        }
        for (size_t i = seg->first_kernel; !gap && i < last; i++) {
            const struct kineto_gpu *g = kernel(l, i);
            int64_t from = g->start_ns > end ? g->start_ns : end;

            r->busy_ns += g->end_ns > from ? g->end_ns - from : 0;
            end = g->end_ns > end ? g->end_ns : end;
        }
        r->seconds[s] = end > base ? 1e-9 * (double)(end - base) : 0;
        prev_end = end > prev_end ? end : prev_end;
    }
    return ZIPCCL_OK;
}

static bool same_call(const struct kineto_call *a, const struct kineto_call *b)
{
    return a->set == b->set && a->lane == b->lane && a->op == b->op && a->dtype == b->dtype &&
           a->redop == b->redop && (a->count == b->count || a->op == ZIPCCL_ALLTOALLV) &&
           a->stream == b->stream && a->src == b->src && a->dst == b->dst &&
           a->opaque == b->opaque && a->foreign == b->foreign && a->dispatch == b->dispatch &&
           a->blocking == b->blocking && a->pair == b->pair &&
           (a->kernel == 0 || b->kernel == 0 || a->kernel == b->kernel) &&
           (a->in_split == NULL) == (b->in_split == NULL) &&
           (a->label == b->label ||
            (a->label != NULL && b->label != NULL && strcmp(a->label, b->label) == 0));
}

static bool same_structure(const struct kineto_rank *a, const struct kineto_rank *b)
{
    if (a->ncalls != b->ncalls || a->nkernels != b->nkernels)
        return false;
    for (size_t i = 0; i < a->ncalls; i++)
        if (!same_call(&a->calls[i], &b->calls[i]) || a->kernels_before[i] != b->kernels_before[i])
            return false;
    return true;
}

/* Kernels before each call, as take_call() counts them. */
static void count_before(struct layout *l)
{
    struct kineto_rank *r = l->rank;
    uint32_t call = 0;

    for (size_t i = 0; i <= r->nkernels; i++) {
        int64_t host = i < r->nkernels ? host_time(l->file, kernel(l, i)) : INT64_MAX;

        while (call < r->ncalls && r->calls[call].host_ns <= host)
            r->kernels_before[call++] = (uint32_t)i;
    }
}

/* First start and last end of what the GPU did. */
static void find_span(struct layout *l)
{
    const struct kineto_file *f = l->file;

    for (size_t i = 0; i < f->ngpu; i++) {
        if (i == 0 || f->gpu[i].start_ns < l->rank->first_ns)
            l->rank->first_ns = f->gpu[i].start_ns;
        if (i == 0 || f->gpu[i].end_ns > l->rank->last_ns)
            l->rank->last_ns = f->gpu[i].end_ns;
    }
}

static zipccl_status make(struct layout *l)
{
    struct kineto_rank *r = l->rank;

    find_span(l);
    ZIPCCL_TRY(sort_kernels(l));
    r->waits_for = zipccl_arena_alloc(&r->arena, r->ncalls, sizeof *r->waits_for);
    r->kernels_before = zipccl_arena_alloc(&r->arena, r->ncalls, sizeof *r->kernels_before);
    l->latest = calloc(l->k->nstreams + 1, sizeof *l->latest);
    l->waited = calloc(l->k->nstreams + 1, sizeof *l->waited);
    l->before = calloc(r->ncalls + 1, sizeof *l->before);
    if (r->waits_for == NULL || r->kernels_before == NULL || l->latest == NULL ||
        l->waited == NULL || l->before == NULL)
        return nomem(l);
    count_before(l);
    for (uint32_t i = 0; &l->k->ranks[i] < r; i++) {
        const struct kineto_rank *other = &l->k->ranks[i];

        if (other->class != i || !same_structure(other, r))
            continue;
        r->class = i;
        r->waits_for = other->waits_for;
        return measure(l, other);
    }
    r->class = (uint32_t)(r - l->k->ranks);
    ZIPCCL_TRY(find_waits(l));
    ZIPCCL_TRY(lay_out(l));
    return measure(l, r);
}

zipccl_status kineto_make_compute(struct kineto_import *k, struct kineto_file *file,
                                  struct kineto_rank *rank)
{
    struct layout l = {.k = k, .file = file, .rank = rank, .at = kineto_at(k, &file->path)};
    zipccl_status status = make(&l);

    free(l.order);
    free(l.waits);
    free(l.latest);
    free(l.waited);
    free(l.before);
    free(l.ends);
    return status;
}
