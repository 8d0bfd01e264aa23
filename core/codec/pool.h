/*
 * pool.h - threads that run one function together
 *
 * What pool.c (threads) and parallel.c (the codec on them) share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_CODEC_POOL_H
#define ZIPCCL_CORE_CODEC_POOL_H

#include "core/codec/message.h"
#include "core/codec_mt.h"

#include <pthread.h>

/* Superblocks that a thread encodes before their variable bytes get their place, at most. */
#define ZIPCCL_RUN_MOST 8u

/* Parts of a message that is decoded, for each thread. */
#define ZIPCCL_PARTS_PER_THREAD 4u

struct zipccl_worker {
    struct zipccl_pool *pool;
    pthread_t thread;
    uint32_t index; /* 0 is the caller */
    void *scratch;
    uint8_t *variable;         /* [ZIPCCL_RUN_MOST * ZIPCCL_MAX_VARIABLE + ZIPCCL_SLACK] */
    struct zipccl_term *terms; /* [nterms] grown */
    size_t nterms;
};

struct zipccl_pool {
    uint32_t nthreads, nstarted;
    pthread_mutex_t turn; /* held by the call that uses the pool */
    pthread_mutex_t lock; /* over all below it */
    pthread_cond_t started, finished;
    void (*fn)(struct zipccl_worker *, void *);
    void *arg;
    uint64_t round; /* counts the runs */
    uint32_t nrunning;
    bool stop;
    struct zipccl_reader *readers; /* [nthreads * ZIPCCL_PARTS_PER_THREAD] */
    struct zipccl_worker workers[];
};

/* Wait for the pool, and let the next call have it. */
void zipccl_pool_take(struct zipccl_pool *pool);
void zipccl_pool_give(struct zipccl_pool *pool);

/* Run fn(worker, arg) on every thread of a pool that was taken, and wait for all. */
void zipccl_pool_run(struct zipccl_pool *pool, void (*fn)(struct zipccl_worker *, void *),
                     void *arg);

#endif
