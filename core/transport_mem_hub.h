/*
 * transport_mem_hub.h - what the two halves of the memory transport share
 *
 * Private to transport_mem.c (pairs, counters, abort) and transport_mem_native.c (collectives).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_TRANSPORT_MEM_HUB_H
#define ZIPCCL_CORE_TRANSPORT_MEM_HUB_H

#include "core/transport_mem.h"

#include <pthread.h>
#include <time.h>

struct zipccl_mem_rank;

/* One posted send or receive; it lives in its poster's array until the poster's group ends. */
struct zipccl_mem_op {
    struct zipccl_mem_op *next; /* in a pair's queue, or in the receiver's list of matched ones */
    struct zipccl_mem_op *mate; /* a matched receive's send */
    struct zipccl_mem_rank *owner;
    const void *src; /* send */
    void *dst;       /* receive */
    size_t nbytes;
    uint32_t peer;
    bool is_send, done;
};

struct zipccl_mem_queue {
    struct zipccl_mem_op *head, *tail;
};

struct zipccl_mem_hub {
    pthread_mutex_t lock; /* guards all that follows and the 'lock' part of every rank */
    pthread_cond_t met;   /* a meeting is complete, its last reader has left, or abort */
    uint32_t nranks, nhandles;
    bool aborted;
    struct zipccl_mem_queue *pairs; /* [nranks * nranks] unmatched, of one kind at a time */
    uint64_t *bytes;                /* [nranks * nranks] */
    struct zipccl_mem_rank **ranks; /* [nranks] */
    double limit_s;                 /* of a call; 0: none */
    uint32_t narrived, nreaders;
    uint64_t meeting;                       /* meetings completed */
    const struct zipccl_native_call **call; /* [nranks] what each rank brought to the meeting */
    struct zipccl_error error;              /* of the first failure */
};

struct zipccl_mem_rank {
    struct zipccl_transport base;
    struct zipccl_mem_hub *hub;
    /* Owner only. */
    struct zipccl_mem_op *ops; /* posted since group_begin */
    size_t nops, capacity;
    uint32_t depth;
    /* Under the hub's lock. */
    pthread_cond_t wake;
    size_t pending;                /* own ops published and not complete */
    struct zipccl_mem_queue ready; /* own receives that have a mate */
    uint32_t nlent;                /* own send buffers that a peer is reading right now */
    bool mismatch, late;
};

/* When a call that starts now must be over. */
struct zipccl_mem_deadline {
    bool none;
    struct timespec at; /* CLOCK_MONOTONIC */
};
struct zipccl_mem_deadline zipccl_mem_deadline_of(const struct zipccl_mem_hub *hub);

/* Wait for 'cond' with the hub's lock held; true if the deadline has passed. */
bool zipccl_mem_wait(struct zipccl_mem_hub *hub, pthread_cond_t *cond,
                     const struct zipccl_mem_deadline *deadline);

/* Abort the hub, with its lock held; the first text stays. */
void zipccl_mem_abort_hub(struct zipccl_mem_hub *hub, const struct zipccl_error *error);

/* Native half, entries of the transport's table. */
zipccl_status zipccl_mem_all_gather(struct zipccl_transport *t, const void *send, void *recv,
                                    size_t nbytes, uint32_t channels);
zipccl_status zipccl_mem_broadcast(struct zipccl_transport *t, void *buf, size_t nbytes,
                                   uint32_t root, uint32_t channels);
zipccl_status zipccl_mem_native(struct zipccl_transport *t, const struct zipccl_native_call *call);
bool zipccl_mem_has_native(const struct zipccl_transport *t, enum zipccl_op op,
                           enum zipccl_dtype dtype, enum zipccl_redop redop);

#endif
