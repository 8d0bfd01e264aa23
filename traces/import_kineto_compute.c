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

/* Streams as bits, and when the host asked for it: calls launched later are not meant. */
struct wait {
    uint64_t streams;
    int64_t asked_ns;
};

struct layout {
    struct kineto_import *k;
    struct kineto_file *file;
    struct kineto_rank *rank;
    struct zipccl_importer at;
    uint32_t *order;           /* [nkernels] GPU activities in host order */
    struct wait *waits;        /* [nlaunches] what compute launched here waits for */
    uint32_t *latest, *waited; /* [nstreams] calls plus 1, 0: none */
    uint32_t *before;          /* [ncalls] the call before it in its stream, plus 1 */
    size_t room;
    int64_t *ends; /* [nsegments] on the GPU */
    size_t ends_room;
    bool open;
    int64_t prev_end;
    uint64_t guessed, timed;
};

static zipccl_status nomem(const struct layout *l)
{
    struct zipccl_place at = {l->file->path, 0, l->at.error};

    return zipccl_place_nomem(&at);
}

static zipccl_status sort_kernels(struct layout *l)
{
    struct kineto_file *f = l->file;
    struct kineto_keyed *keys = malloc((f->ngpu + 1) * sizeof *keys);
    size_t n = 0;

    if (keys == NULL)
        return nomem(l);
    for (size_t i = 0; i < f->ngpu; i++)
        if (f->gpu[i].meta == KINETO_NONE)
            keys[n++] = (struct kineto_keyed){kineto_host_time(f, &f->gpu[i]), f->gpu[i].start_ns,
                                              (uint32_t)i};
    qsort(keys, n, sizeof *keys, kineto_compare_keyed);
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

/* True if a call comes before a kernel; what one graph launches goes by its start. */
static bool precedes(const struct layout *l, uint32_t call, size_t i)
{
    const struct kineto_call *c = &l->rank->calls[call];
    int64_t host;

    if (i >= l->rank->nkernels)
        return true;
    host = kineto_host_time(l->file, kernel(l, i));
    return c->host_ns != host ? c->host_ns < host : c->start_ns <= kernel(l, i)->start_ns;
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
    const struct kineto_sync *s = NULL;
    uint32_t stream;

    if (l->file->nsyncs > 0)
        s = bsearch(&key, l->file->syncs, l->file->nsyncs, sizeof *l->file->syncs, compare_syncs);
    if (s == NULL)
        return ANY_STREAM;
    stream = comm_stream(l->file, s->wait_on_stream);
    if (comm_stream(l->file, s->stream) > 0 || stream == 0)
        return 0;
    return stream < 64 ? (uint64_t)1 << stream : ANY_STREAM;
}

/* True if the wait is part of a call: communication that waits for compute. */
static bool is_of_call(const struct layout *l, size_t wait, const unsigned char *kind)
{
    const struct kineto_file *f = l->file;
    const struct kineto_meta *cpu = kineto_around(f, &f->launches[wait], KINETO_FROM_CPU);

    /* Old profilers do not name what record_param_comms is of: it may be a wait. */
    if ((cpu != NULL && (cpu->used || cpu->coll != KINETO_UNKNOWN)) ||
        kineto_around(f, &f->launches[wait], KINETO_FROM_ANNOTATION) != NULL)
        return true;
    /* Without the CPU's word, by what the thread launches next. */
    for (size_t i = wait + 1; f->nordered == 0 && i < f->nlaunches; i++)
        if (f->launches[i].thread == f->launches[wait].thread && kind[i] > 0)
            return kind[i] == 2;
    return false;
}

/*
 * Other waits bind what the host launches to compute from then on: on their thread the next
 * launch, on others, which do not say which streams they mean, all until then.
 */
static void bind_waits(struct layout *l, const unsigned char *kind, struct wait *pending)
{
    struct kineto_file *f = l->file;

    for (size_t i = 0; i < f->nlaunches; i++) {
        struct wait *own = &pending[f->launches[i].thread];

        if (f->launches[i].wait && !is_of_call(l, i, kind)) {
            own->streams |= wait_mask(l, &f->launches[i]);
            own->asked_ns = f->launches[i].ts_ns;
        }
        for (size_t t = 0; kind[i] == 1 && t < f->nthreads; t++)
            if (pending[t].streams != 0) {
                l->waits[i].streams |= pending[t].streams;
                if (pending[t].asked_ns > l->waits[i].asked_ns)
                    l->waits[i].asked_ns = pending[t].asked_ns;
            }
        if (kind[i] == 1)
            own->streams = 0;
    }
}

static zipccl_status find_waits(struct layout *l)
{
    struct kineto_file *f = l->file;
    unsigned char *kind = calloc(f->nlaunches + 1, 1);
    struct wait *pending = calloc(f->nthreads + 1, sizeof *pending);

    if (f->nsyncs > 0)
        qsort(f->syncs, f->nsyncs, sizeof *f->syncs, compare_syncs);
    l->waits = calloc(f->nlaunches + 1, sizeof *l->waits);
    if (kind == NULL || pending == NULL || l->waits == NULL) {
        free(kind);
        free(pending);
        return nomem(l);
    }
    for (size_t i = 0; i < f->nlaunches; i++)
        l->waits[i].asked_ns = INT64_MIN;
    for (size_t i = 0; i < f->ngpu; i++)
        if (f->gpu[i].launch != KINETO_NONE)
            kind[f->gpu[i].launch] = f->gpu[i].meta == KINETO_NONE ? 1 : 2;
    bind_waits(l, kind, pending);
    free(kind);
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

/*
 * The latest call of a stream that had ended by 'when', launched by 'asked', that was not waited
 * for yet; 0: none.
 */
static uint32_t ended_call(const struct layout *l, uint32_t stream, int64_t when, int64_t asked)
{
    uint32_t call = l->latest[stream];

    while (call > l->waited[stream] && (l->rank->calls[call - 1].end_ns > when + TOLERANCE_NS ||
                                        l->rank->calls[call - 1].host_ns > asked))
        call = l->before[call - 1];
    return call > l->waited[stream] ? call : 0;
}

/* True if compute that starts at 'start' seems to have waited for the call's end. */
static bool seems_awaited(const struct layout *l, const struct kineto_call *c, int64_t start,
                          int64_t host)
{
    if (c->end_ns <= l->prev_end || start <= l->prev_end)
        return false;
    return !l->file->has_waits || host == c->host_ns ||
           (host > c->end_ns && kineto_host_blocked(l->file, c->end_ns));
}

/* Calls that compute starting at 'start', launched at 'host', waited for; into 'deps'. */
static uint32_t find_deps(struct layout *l, int64_t start, int64_t host, const struct wait *wait,
                          uint32_t *deps)
{
    uint32_t n = 0;

    for (uint32_t s = 1; s < l->k->nstreams; s++) {
        uint32_t any = ended_call(l, s, start, INT64_MAX);
        bool told = wait != NULL && s < 64 && wait->streams >> s & 1;
        bool guessed = wait != NULL && (wait->streams & ANY_STREAM);
        uint32_t asked = told || guessed ? ended_call(l, s, start, wait->asked_ns) : 0;
        bool timed;

        if (any == 0)
            continue;
        timed = seems_awaited(l, &l->rank->calls[any - 1], start, host);
        if (l->rank->calls[any - 1].blocking || timed)
            asked = any;
        else if (asked > 0)
            l->guessed += !told;
        if (asked == 0)
            continue;
        l->timed += timed && !l->rank->calls[any - 1].blocking;
        l->waited[s] = asked;
        deps[n++] = asked - 1;
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
        uint32_t n = find_deps(l, c->host_ns, c->host_ns, NULL, deps);

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
    const struct wait *wait = g->launch != KINETO_NONE ? &l->waits[g->launch] : NULL;
    uint32_t n = find_deps(l, g->start_ns, kineto_host_time(l->file, g), wait, deps);

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
        while (call < r->ncalls && precedes(l, call, i) && status == ZIPCCL_OK)
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
           a->stream == b->stream && a->root == b->root && a->src == b->src && a->dst == b->dst &&
           a->opaque == b->opaque && a->foreign == b->foreign && a->dispatch == b->dispatch &&
           a->blocking == b->blocking && a->pair == b->pair && a->kernel == b->kernel &&
           (a->in_split == NULL) == (b->in_split == NULL) &&
           (a->label == b->label ||
            (a->label != NULL && b->label != NULL && strcmp(a->label, b->label) == 0));
}

static bool same_list(uint32_t n, const uint32_t *a, uint32_t m, const uint32_t *b)
{
    return n == m && (n == 0 || memcmp(a, b, n * sizeof *a) == 0);
}

/* Graphs that were told, not found, must agree in what waits for what. */
static bool same_graph(const struct kineto_rank *a, const struct kineto_rank *b)
{
    if (a->after == NULL || b->after == NULL)
        return a->after == b->after;
    for (size_t i = 0; i < a->ncalls; i++)
        if (a->waits_for[i] != b->waits_for[i] ||
            !same_list(a->after[i].n, a->after[i].calls, b->after[i].n, b->after[i].calls))
            return false;
    if (a->nsegments != b->nsegments)
        return false;
    for (size_t i = 0; i < a->nsegments; i++)
        if (!same_list(a->segments[i].ndeps, a->segments[i].deps, b->segments[i].ndeps,
                       b->segments[i].deps) ||
            a->flops[i] != b->flops[i] || a->hbm[i] != b->hbm[i])
            return false;
    return true;
}

static bool same_structure(const struct kineto_rank *a, const struct kineto_rank *b)
{
    if (a->ncalls != b->ncalls || a->nkernels != b->nkernels || !same_graph(a, b))
        return false;
    for (size_t i = 0; i < a->ncalls; i++)
        if (!same_call(&a->calls[i], &b->calls[i]) || a->kernels_before[i] != b->kernels_before[i])
            return false;
    return true;
}

void kineto_find_class(const struct kineto_import *k, struct kineto_rank *rank)
{
    uint32_t i = 0;

    while (&k->ranks[i] < rank && (k->ranks[i].class != i || !same_structure(&k->ranks[i], rank)))
        i++;
    rank->class = i;
}

/* Kernels before each call, as take_call() counts them. */
static void count_before(struct layout *l)
{
    struct kineto_rank *r = l->rank;
    uint32_t call = 0;

    for (size_t i = 0; i <= r->nkernels; i++)
        while (call < r->ncalls && precedes(l, call, i))
            r->kernels_before[call++] = (uint32_t)i;
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
    kineto_find_class(l->k, r);
    if (&l->k->ranks[r->class] != r) {
        r->waits_for = l->k->ranks[r->class].waits_for;
        return measure(l, &l->k->ranks[r->class]);
    }
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
