/*
 * parallel.c - superblocks coded on several threads, into the bytes of one
 *
 * Encoding: threads take runs of superblocks.  A share is written where it lies if those before it
 * are as long as they can be, which they mostly are; variable bytes are written to the thread's own
 * memory.  In the order of the runs, one thread after the other then learns where its bytes lie;
 * only this step waits.  Shares that lie too far behind move down in it, so that a run only ever
 * moves to where runs before it have left.  If the variable bytes do not fit before the shares' end
 * is known, the rest is encoded by the caller alone, as zipccl_encode() does.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/pool.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* Superblocks that are worth waking threads for. */
#define LEAST_SUPERBLOCKS 4u

static bool is_small(const struct zipccl_pool *pool, size_t nsuperblocks)
{
    return pool->nthreads == 1 || nsuperblocks < LEAST_SUPERBLOCKS;
}

struct encoding {
    struct zipccl_encoder *encoder;
    size_t per_run, nruns; /* superblocks of a run; runs */
    size_t full;           /* most bytes of a superblock's share */
    atomic_size_t taken;   /* runs */
    atomic_bool stopped;   /* no room: the encoder stays in front of that run */
    pthread_mutex_t lock;  /* over 'placed' and the encoder's progress */
    pthread_cond_t changed;
    size_t placed; /* runs */
};

/* Bytes of one run, before and after it has its place. */
struct run {
    size_t first, end; /* superblocks */
    size_t share;      /* where its shares were written */
    size_t nshare, nvariable;
};

static void encode_run(const struct encoding *w, struct zipccl_worker *worker, struct run *run)
{
    const struct zipccl_encoder *e = w->encoder;
    struct zipccl_coder c = zipccl_encoder_coder(e, worker->scratch);
    size_t room = ZIPCCL_RUN_MOST * ZIPCCL_MAX_VARIABLE + ZIPCCL_SLACK;
    size_t share_end = run->end == e->nsuperblocks ? e->variable : e->first + run->end * w->full;
    run->share = e->first + run->first * w->full;
    for (size_t s = run->first; s < run->end; s++) {
        size_t at = run->share + run->nshare, nshare, nvariable;
        zipccl_encoder_superblock(e, &c, s, e->dst + at, share_end - at,
                                  worker->variable + run->nvariable, room - run->nvariable, &nshare,
                                  &nvariable);
        run->nshare += nshare;
        run->nvariable += nvariable;
    }
}

/* Give a run its place, in its turn.  True, and where its variable bytes go, if there is room. */
static bool place_run(struct encoding *w, size_t number, const struct run *run, size_t *variable)
{
    struct zipccl_encoder *e = w->encoder;
    pthread_mutex_lock(&w->lock);
    while (w->placed < number)
        pthread_cond_wait(&w->changed, &w->lock);
    bool fits = !w->stopped && run->nvariable <= e->limit - e->end;
    if (fits) {
        *variable = e->end;
        if (e->final_end < run->share)
            memmove(e->dst + e->final_end, e->dst + run->share, run->nshare);
        e->final_end += run->nshare;
        e->end += run->nvariable;
        e->next = run->end;
    } else {
        w->stopped = true;
    }
    w->placed++;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    return fits;
}

static void encode_runs(struct zipccl_worker *worker, void *arg)
{
    struct encoding *w = arg;
    size_t number, variable, nsuperblocks = w->encoder->nsuperblocks;
    while ((number = atomic_fetch_add(&w->taken, 1)) < w->nruns) {
        struct run run = {.first = number * w->per_run, .end = (number + 1) * w->per_run};
        if (run.end > nsuperblocks)
            run.end = nsuperblocks;
        if (!w->stopped)
            encode_run(w, worker, &run);
        if (place_run(w, number, &run, &variable))
            memcpy(w->encoder->dst + variable, worker->variable, run.nvariable);
    }
}

/* Encode as many superblocks as possible on all threads. */
static void encode_together(struct zipccl_pool *pool, struct zipccl_encoder *e)
{
    struct encoding w = {.encoder = e, .full = zipccl_early_superblock(e->dtype)};
    w.per_run = e->nsuperblocks / (4 * (size_t)pool->nthreads);
    w.per_run = w.per_run < 1 ? 1 : w.per_run > ZIPCCL_RUN_MOST ? ZIPCCL_RUN_MOST : w.per_run;
    w.nruns = (e->nsuperblocks + w.per_run - 1) / w.per_run;
    pthread_mutex_init(&w.lock, NULL);
    pthread_cond_init(&w.changed, NULL);
    zipccl_pool_run(pool, encode_runs, &w);
    pthread_cond_destroy(&w.changed);
    pthread_mutex_destroy(&w.lock);
}

static zipccl_status encode_taken(struct zipccl_pool *pool, enum zipccl_isa isa,
                                  enum zipccl_effort effort, enum zipccl_dtype dtype,
                                  const void *src, size_t n, void *dst, size_t capacity,
                                  size_t *nbytes)
{
    struct zipccl_encoder e;
    ZIPCCL_TRY(zipccl_encode_begin(&e, isa, effort, dtype, src, n, dst, capacity,
                                   pool->workers[0].scratch));
    if (e.coded && !is_small(pool, e.nsuperblocks) && e.variable <= e.limit) {
        e.coded = !zipccl_encoder_hopeless(&e);
        if (e.coded)
            encode_together(pool, &e);
    }
    return zipccl_encode_finish(&e, nbytes);
}

zipccl_status zipccl_encode_mt(struct zipccl_pool *pool, enum zipccl_isa isa,
                               enum zipccl_effort effort, enum zipccl_dtype dtype, const void *src,
                               size_t n, void *dst, size_t capacity, size_t *nbytes)
{
    zipccl_pool_take(pool);
    zipccl_status status = encode_taken(pool, isa, effort, dtype, src, n, dst, capacity, nbytes);
    zipccl_pool_give(pool);
    return status;
}

struct decoding {
    enum zipccl_isa isa;
    enum zipccl_dtype dtype;
    size_t n, nparts;
    struct zipccl_reader *readers; /* [nparts] */
    const struct zipccl_sink *sink;
    atomic_size_t taken;
    atomic_int status; /* zipccl_status */
};

static void decode_parts(struct zipccl_worker *worker, void *arg)
{
    struct decoding *w = arg;
    struct zipccl_coder c = zipccl_coder_of(w->isa, w->dtype, w->n, worker->scratch);
    size_t part;
    while ((part = atomic_fetch_add(&w->taken, 1)) < w->nparts) {
        size_t end = zipccl_superblocks(w->n) * (part + 1) / w->nparts;
        zipccl_status status = zipccl_reader_run(&c, &w->readers[part], end, w->sink);
        if (status != ZIPCCL_OK)
            atomic_store(&w->status, (int)status);
    }
}

static zipccl_status decode_together(struct zipccl_pool *pool, enum zipccl_isa isa,
                                     enum zipccl_dtype dtype, const void *wire, size_t nbytes,
                                     size_t n, const struct zipccl_sink *sink)
{
    struct zipccl_coder c = zipccl_coder_of(isa, dtype, n, pool->workers[0].scratch);
    size_t nparts = (size_t)pool->nthreads * ZIPCCL_PARTS_PER_THREAD;
    if (nparts > zipccl_superblocks(n))
        nparts = zipccl_superblocks(n);
    ZIPCCL_TRY(zipccl_reader_open(&c, dtype, wire, nbytes, n, pool->readers, nparts));
    struct decoding w = {.isa = isa,
                         .dtype = dtype,
                         .n = n,
                         .nparts = nparts,
                         .readers = pool->readers,
                         .sink = sink};
    zipccl_pool_run(pool, decode_parts, &w);
    return (zipccl_status)atomic_load(&w.status);
}

zipccl_status zipccl_decode_mt(struct zipccl_pool *pool, enum zipccl_isa isa,
                               enum zipccl_dtype dtype, const void *wire, size_t nbytes, void *dst,
                               size_t n)
{
    struct zipccl_sink sink = {dst, NULL, zipccl_dtype_size(dtype), SIZE_MAX, SIZE_MAX};
    zipccl_status status;
    if (!zipccl_row_of(isa) || sink.size == 0)
        return ZIPCCL_ERR_ARG;
    zipccl_pool_take(pool);
    if (is_small(pool, zipccl_superblocks(n)))
        status = zipccl_decode(isa, dtype, wire, nbytes, dst, n, pool->workers[0].scratch);
    else
        status = decode_together(pool, isa, dtype, wire, nbytes, n, &sink);
    zipccl_pool_give(pool);
    return status;
}

struct slicing {
    enum zipccl_isa isa;
    enum zipccl_effort effort;
    enum zipccl_dtype dtype;
    struct zipccl_slice *slices;
    size_t nslices, large; /* slices of so many superblocks are coded by all threads together */
    atomic_size_t taken;
};

static void encode_small(struct zipccl_worker *worker, void *arg)
{
    struct slicing *w = arg;
    size_t i;
    while ((i = atomic_fetch_add(&w->taken, 1)) < w->nslices) {
        struct zipccl_slice *slice = &w->slices[i];
        if (zipccl_superblocks(slice->n) < w->large)
            slice->status =
                zipccl_encode_effort(w->isa, w->effort, w->dtype, slice->src, slice->n, slice->dst,
                                     slice->capacity, worker->scratch, &slice->nbytes);
    }
}

zipccl_status zipccl_encode_many_mt(struct zipccl_pool *pool, enum zipccl_isa isa,
                                    enum zipccl_effort effort, enum zipccl_dtype dtype,
                                    struct zipccl_slice *slices, size_t nslices)
{
    struct slicing w = {
        .isa = isa, .effort = effort, .dtype = dtype, .slices = slices, .nslices = nslices};
    size_t total = 0, nsmall = 0;
    ZIPCCL_TRY(zipccl_slices_check(isa, effort, dtype, slices, nslices));
    for (size_t i = 0; i < nslices; i++)
        total += zipccl_superblocks(slices[i].n);
    w.large = total / (2 * (size_t)pool->nthreads);
    if (w.large < LEAST_SUPERBLOCKS)
        w.large = LEAST_SUPERBLOCKS;
    zipccl_pool_take(pool);
    for (size_t i = 0; i < nslices; i++) {
        struct zipccl_slice *slice = &slices[i];
        if (zipccl_superblocks(slice->n) < w.large)
            nsmall++;
        else
            slice->status = encode_taken(pool, isa, effort, dtype, slice->src, slice->n, slice->dst,
                                         slice->capacity, &slice->nbytes);
    }
    if (nsmall > 1 && !is_small(pool, total))
        zipccl_pool_run(pool, encode_small, &w);
    else
        encode_small(&pool->workers[0], &w);
    zipccl_pool_give(pool);
    return zipccl_slices_flag(slices, nslices);
}

struct adding {
    enum zipccl_isa isa;
    enum zipccl_dtype dtype;
    size_t nterms, n, nparts;
    uint32_t divisor;
    uint8_t *dst;
    atomic_int status; /* zipccl_status */
};

static void add_part(struct zipccl_worker *worker, void *arg)
{
    struct adding *w = arg;
    struct zipccl_coder c = zipccl_coder_of(w->isa, w->dtype, w->n, worker->scratch);
    size_t nsuperblocks = zipccl_superblocks(w->n);
    if (worker->index >= w->nparts)
        return;
    zipccl_status status =
        zipccl_sum_run(&c, worker->terms, w->nterms, w->n, nsuperblocks * worker->index / w->nparts,
                       nsuperblocks * (worker->index + 1) / w->nparts, w->divisor, w->dst);
    if (status != ZIPCCL_OK)
        atomic_store(&w->status, (int)status);
}

/* Hand each part's readers to its thread. */
static zipccl_status open_terms(struct zipccl_pool *pool, const struct adding *w,
                                const struct zipccl_term *terms)
{
    struct zipccl_coder c = zipccl_coder_of(w->isa, w->dtype, w->n, pool->workers[0].scratch);
    for (size_t part = 0; part < w->nparts; part++) {
        struct zipccl_worker *worker = &pool->workers[part];
        if (worker->nterms >= w->nterms)
            continue;
        free(worker->terms);
        worker->nterms = 0;
        worker->terms = calloc(w->nterms, sizeof *worker->terms);
        if (!worker->terms)
            return ZIPCCL_ERR_NOMEM;
        worker->nterms = w->nterms;
    }
    for (size_t t = 0; t < w->nterms; t++) {
        ZIPCCL_TRY(zipccl_term_open(&c, w->dtype, &terms[t], w->n, pool->readers, w->nparts));
        for (size_t part = 0; part < w->nparts; part++)
            pool->workers[part].terms[t].reader = pool->readers[part];
    }
    return ZIPCCL_OK;
}

zipccl_status zipccl_decode_sum_mt(struct zipccl_pool *pool, enum zipccl_isa isa,
                                   enum zipccl_dtype dtype, struct zipccl_term *terms,
                                   size_t nterms, size_t n, uint32_t divisor, void *dst)
{
    size_t nsuperblocks = zipccl_superblocks(n);
    struct adding w = {.isa = isa,
                       .dtype = dtype,
                       .nterms = nterms,
                       .n = n,
                       .nparts = nsuperblocks < pool->nthreads ? nsuperblocks : pool->nthreads,
                       .divisor = divisor,
                       .dst = dst};
    ZIPCCL_TRY(zipccl_sum_check(dtype, nterms, divisor));
    if (!zipccl_row_of(isa))
        return ZIPCCL_ERR_ARG;
    zipccl_pool_take(pool);
    zipccl_status status;
    if (is_small(pool, nsuperblocks)) {
        status =
            zipccl_decode_sum(isa, dtype, terms, nterms, n, divisor, dst, pool->workers[0].scratch);
    } else {
        status = open_terms(pool, &w, terms);
        if (status == ZIPCCL_OK) {
            zipccl_pool_run(pool, add_part, &w);
            status = (zipccl_status)atomic_load(&w.status);
        }
    }
    zipccl_pool_give(pool);
    return status;
}
