/*
 * pool.c - threads that sleep until all of them run one function
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/pool.h"

#include <stdlib.h>
#include <string.h>

#define ALIGNMENT 64

/* The codec works in its scratch. */
#define STACK_BYTES ((size_t)256 << 10)

void zipccl_pool_take(struct zipccl_pool *pool)
{
    pthread_mutex_lock(&pool->turn);
}

void zipccl_pool_give(struct zipccl_pool *pool)
{
    pthread_mutex_unlock(&pool->turn);
}

static void *worker_main(void *p)
{
    struct zipccl_worker *worker = p;
    struct zipccl_pool *pool = worker->pool;
    uint64_t seen = 0;
    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (pool->round == seen && !pool->stop)
            pthread_cond_wait(&pool->started, &pool->lock);
        if (pool->stop)
            break;
        seen = pool->round;
        pthread_mutex_unlock(&pool->lock);
        pool->fn(worker, pool->arg);
        pthread_mutex_lock(&pool->lock);
        if (--pool->nrunning == 0)
            pthread_cond_signal(&pool->finished);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

void zipccl_pool_run(struct zipccl_pool *pool, void (*fn)(struct zipccl_worker *, void *),
                     void *arg)
{
    pthread_mutex_lock(&pool->lock);
    pool->fn = fn;
    pool->arg = arg;
    pool->nrunning = pool->nstarted;
    pool->round++;
    pthread_cond_broadcast(&pool->started);
    pthread_mutex_unlock(&pool->lock);
    fn(&pool->workers[0], arg);
    pthread_mutex_lock(&pool->lock);
    while (pool->nrunning > 0)
        pthread_cond_wait(&pool->finished, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

static void *allocate(size_t nbytes)
{
    void *p = NULL;
    return posix_memalign(&p, ALIGNMENT, nbytes) == 0 ? p : NULL;
}

static bool prepare_workers(struct zipccl_pool *pool)
{
    size_t nreaders = (size_t)pool->nthreads * ZIPCCL_PARTS_PER_THREAD;
    pool->readers = malloc(nreaders * sizeof *pool->readers);
    if (!pool->readers)
        return false;
    for (uint32_t i = 0; i < pool->nthreads; i++) {
        struct zipccl_worker *worker = &pool->workers[i];
        worker->pool = pool;
        worker->index = i;
        worker->scratch = allocate(zipccl_codec_scratch_bytes());
        worker->variable = allocate(ZIPCCL_RUN_MOST * ZIPCCL_MAX_VARIABLE + ZIPCCL_SLACK);
        if (!worker->scratch || !worker->variable)
            return false;
    }
    return true;
}

static bool start_workers(struct zipccl_pool *pool)
{
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    bool ok = pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0;
    for (uint32_t i = 1; ok && i < pool->nthreads; i++) {
        struct zipccl_worker *worker = &pool->workers[i];
        ok = pthread_create(&worker->thread, &attributes, worker_main, worker) == 0;
        pool->nstarted += ok;
    }
    pthread_attr_destroy(&attributes);
    return ok;
}

zipccl_status zipccl_pool_create(uint32_t nthreads, struct zipccl_pool **out)
{
    if (!out || nthreads == 0 || nthreads > ZIPCCL_MAX_THREADS)
        return ZIPCCL_ERR_ARG;
    struct zipccl_pool *pool = calloc(1, sizeof *pool + nthreads * sizeof *pool->workers);
    if (!pool)
        return ZIPCCL_ERR_NOMEM;
    pool->nthreads = nthreads;
    pthread_mutex_init(&pool->turn, NULL);
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->started, NULL);
    pthread_cond_init(&pool->finished, NULL);
    if (!prepare_workers(pool) || !start_workers(pool)) {
        zipccl_pool_destroy(pool);
        return ZIPCCL_ERR_NOMEM;
    }
    *out = pool;
    return ZIPCCL_OK;
}

void zipccl_pool_destroy(struct zipccl_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->lock);
    pool->stop = true;
    pthread_cond_broadcast(&pool->started);
    pthread_mutex_unlock(&pool->lock);
    for (uint32_t i = 1; i <= pool->nstarted; i++)
        pthread_join(pool->workers[i].thread, NULL);
    for (uint32_t i = 0; i < pool->nthreads; i++) {
        free(pool->workers[i].scratch);
        free(pool->workers[i].variable);
        free(pool->workers[i].terms);
    }
    free(pool->readers);
    pthread_cond_destroy(&pool->finished);
    pthread_cond_destroy(&pool->started);
    pthread_mutex_destroy(&pool->lock);
    pthread_mutex_destroy(&pool->turn);
    free(pool);
}
