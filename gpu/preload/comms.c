/*
 * comms.c - the communicators of this process: found by their handles, held, used again
 *
 * Handles are looked up in a table of a fixed size without a lock: entries are written under one and
 * never move.  A full table makes a communicator unknown, which is plain NCCL.
 *
 * Records are never freed, so that a thread may touch 'holds' of one that it only believes to be alive:
 * it holds first and looks at the table again.  Who takes a communicator out of the table looks at the
 * holds afterwards.  One of the two sees the other, both orders being sequentially consistent.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/preload/comms.h"

#include "gpu/preload/counts.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* SLOTS of the table; LIKES kinds of communicators that are gone and have counts of their own. */
enum { SLOTS = 4096, LIKES = 256 };

/* A removed communicator leaves this behind where probing has to go on past it. */
static struct zipccl_shim_comm tombstone;

static struct zipccl_shim_comm *slots[SLOTS];
static struct zipccl_shim_comm *all, *unused, *past, *unknown, *others;
static size_t nlikes;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static size_t slot_of(ncclComm_t handle)
{
    return (size_t)(((uintptr_t)handle >> 4) * 0x9e3779b97f4a7c15u >> 20) % SLOTS;
}

static ncclComm_t handle_of(const struct zipccl_shim_comm *comm)
{
    return __atomic_load_n(&comm->handle, __ATOMIC_RELAXED);
}

void zipccl_shim_comm_hold(struct zipccl_shim_comm *comm)
{
    (void)__atomic_add_fetch(&comm->holds, 1, __ATOMIC_SEQ_CST);
}

struct zipccl_shim_comm *zipccl_shim_comm_get(ncclComm_t handle)
{
    for (size_t i = slot_of(handle), n = 0; n < SLOTS; i = (i + 1) % SLOTS, n++) {
        struct zipccl_shim_comm *comm = __atomic_load_n(&slots[i], __ATOMIC_ACQUIRE);

        if (comm == NULL)
            return NULL;
        if (comm == &tombstone || handle_of(comm) != handle)
            continue;
        zipccl_shim_comm_hold(comm);
        if (__atomic_load_n(&slots[i], __ATOMIC_SEQ_CST) == comm && handle_of(comm) == handle)
            return comm;
        zipccl_shim_comm_put(comm);
    }
    return NULL;
}

/* What a record has of the communicator that it was of, given back; under the lock. */
static void clear(struct zipccl_shim_comm *comm)
{
    const size_t first = offsetof(struct zipccl_shim_comm, stage);

    free(comm->job_ranks);
    zipccl_topology_destroy(comm->topology);
    free(comm->counts.kinds);
    memset((char *)comm + first, 0, sizeof *comm - first);
}

static bool same_nodes(const struct zipccl_topology *a, const struct zipccl_topology *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    return a->nranks == b->nranks &&
           memcmp(a->node_of, b->node_of, a->nranks * sizeof *a->node_of) == 0;
}

/* Alike in what the statistics tell of a communicator. */
static bool alike(const struct zipccl_shim_comm *a, const struct zipccl_shim_comm *b)
{
    return a->rank == b->rank && a->nranks == b->nranks && a->plain == b->plain &&
           a->stopped == b->stopped && strcmp(a->name, b->name) == 0 &&
           same_nodes(a->topology, b->topology);
}

/* The record that takes the counts of 'comm': of its like, or, if there are too many kinds, of all others. */
static struct zipccl_shim_comm *like_of(const struct zipccl_shim_comm *comm)
{
    for (struct zipccl_shim_comm *one = past; one != NULL; one = one->also)
        if (one != others && alike(one, comm))
            return one;
    return others;
}

/* Nobody holds 'comm' and nobody can find it: keep its counts; under the lock. */
static void retire(struct zipccl_shim_comm *comm)
{
    struct zipccl_shim_comm *like;

    comm->stage = ZIPCCL_SHIM_PAST;
    free(comm->job_ranks);
    comm->job_ranks = NULL;
    if (comm->engine != NULL) /* a call was stuck inside, see zipccl_shim_engine_destroy() */
        return;
    like = like_of(comm);
    if (like != NULL && zipccl_shim_counts_add(&like->counts, &comm->counts)) {
        like->ncomms += comm->ncomms;
        like->collectives += comm->collectives;
        clear(comm);
        comm->also = unused;
        unused = comm;
        return;
    }
    comm->also = past;
    past = comm;
    if (++nlikes == LIKES) {
        /* From now on this one is of all that are like none. */
        (void)snprintf(comm->name, sizeof comm->name, "(others)");
        zipccl_topology_destroy(comm->topology);
        comm->topology = NULL;
        comm->rank = comm->nranks = 0;
        others = comm;
    }
}

void zipccl_shim_comm_put(struct zipccl_shim_comm *comm)
{
    if (comm == NULL || __atomic_sub_fetch(&comm->holds, 1, __ATOMIC_SEQ_CST) > 0 ||
        __atomic_load_n(&comm->gone, __ATOMIC_SEQ_CST) == 0)
        return;
    pthread_mutex_lock(&lock);
    if (comm->stage == ZIPCCL_SHIM_ALIVE && comm->gone != 0 &&
        __atomic_load_n(&comm->holds, __ATOMIC_SEQ_CST) == 0)
        retire(comm);
    pthread_mutex_unlock(&lock);
}

/* Take 'comm' out of the table, under the lock; it stays with those who hold it. */
static void unlist(struct zipccl_shim_comm *comm)
{
    size_t i = slot_of(comm->handle), n = 0;

    while (n < SLOTS && slots[i] != comm && slots[i] != NULL) {
        i = (i + 1) % SLOTS;
        n++;
    }
    if (n == SLOTS || slots[i] != comm)
        return;
    __atomic_store_n(&slots[i], &tombstone, __ATOMIC_SEQ_CST);
    __atomic_store_n(&comm->gone, 1, __ATOMIC_SEQ_CST);
    /* Where nothing follows nobody has to probe past it, nor past those before it. */
    while (slots[(i + 1) % SLOTS] == NULL && slots[i] == &tombstone) {
        __atomic_store_n(&slots[i], NULL, __ATOMIC_SEQ_CST);
        i = (i + SLOTS - 1) % SLOTS;
    }
}

void zipccl_shim_comm_remove(struct zipccl_shim_comm *comm)
{
    pthread_mutex_lock(&lock);
    unlist(comm);
    pthread_mutex_unlock(&lock);
}

/* An unused record, or a new one, held by the caller; under the lock. */
static struct zipccl_shim_comm *take_record(void)
{
    struct zipccl_shim_comm *comm = unused;

    if (comm != NULL) {
        unused = comm->also;
    } else {
        comm = calloc(1, sizeof *comm);
        if (comm == NULL)
            return NULL;
        (void)pthread_mutex_init(&comm->lock, NULL);
        (void)pthread_rwlock_init(&comm->engine_lock, NULL);
        (void)pthread_mutex_init(&comm->call_lock, NULL);
        comm->next = all;
        all = comm;
    }
    __atomic_store_n(&comm->gone, 0, __ATOMIC_SEQ_CST);
    comm->stage = ZIPCCL_SHIM_ALIVE;
    comm->ncomms = 1;
    zipccl_shim_comm_hold(comm);
    return comm;
}

/* Whom NCCL has destroyed behind our back: its handle is another's now. */
static void forget_handle(ncclComm_t handle)
{
    for (size_t i = slot_of(handle), n = 0; n < SLOTS && slots[i] != NULL;
         i = (i + 1) % SLOTS, n++) {
        struct zipccl_shim_comm *comm = slots[i];

        if (comm == &tombstone || comm->handle != handle)
            continue;
        unlist(comm);
        if (__atomic_load_n(&comm->holds, __ATOMIC_SEQ_CST) == 0)
            retire(comm);
        return;
    }
}

struct zipccl_shim_comm *zipccl_shim_comm_add(ncclComm_t handle, int rank, int nranks, int device)
{
    struct zipccl_shim_comm *comm = NULL;
    size_t i = slot_of(handle), n = 0;

    pthread_mutex_lock(&lock);
    forget_handle(handle);
    while (n < SLOTS && slots[i] != NULL && slots[i] != &tombstone) {
        i = (i + 1) % SLOTS;
        n++;
    }
    if (n < SLOTS)
        comm = take_record();
    if (comm != NULL) {
        __atomic_store_n(&comm->handle, handle, __ATOMIC_RELAXED);
        comm->rank = rank;
        comm->nranks = nranks;
        comm->device = device;
        __atomic_store_n(&slots[i], comm, __ATOMIC_SEQ_CST);
    }
    pthread_mutex_unlock(&lock);
    return comm;
}

struct zipccl_shim_comm *zipccl_shim_comm_unknown(void)
{
    struct zipccl_shim_comm *comm = __atomic_load_n(&unknown, __ATOMIC_ACQUIRE);

    if (comm == NULL) {
        pthread_mutex_lock(&lock);
        comm = unknown;
        if (comm == NULL && (comm = take_record()) != NULL) {
            comm->plain = ZIPCCL_SHIM_UNKNOWN;
            __atomic_store_n(&unknown, comm, __ATOMIC_RELEASE);
        }
        pthread_mutex_unlock(&lock);
    }
    if (comm != NULL)
        zipccl_shim_comm_hold(comm);
    return comm;
}

static struct zipccl_shim_comm *used(struct zipccl_shim_comm *comm)
{
    while (comm != NULL && comm->stage == ZIPCCL_SHIM_UNUSED)
        comm = comm->next;
    return comm;
}

struct zipccl_shim_comm *zipccl_shim_comms_lock(void)
{
    pthread_mutex_lock(&lock);
    return used(all);
}

struct zipccl_shim_comm *zipccl_shim_comms_next(const struct zipccl_shim_comm *comm)
{
    return used(comm->next);
}

void zipccl_shim_comms_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

size_t zipccl_shim_comms_alive(int device)
{
    size_t n = 0;

    pthread_mutex_lock(&lock);
    for (struct zipccl_shim_comm *comm = all; comm != NULL; comm = comm->next)
        n += comm->stage == ZIPCCL_SHIM_ALIVE && comm->gone == 0 && comm != unknown &&
             (device < 0 || comm->device == device);
    pthread_mutex_unlock(&lock);
    return n;
}

void zipccl_shim_comm_stop(struct zipccl_shim_comm *comm, enum zipccl_shim_reason reason)
{
    int none = 0;

    (void)__atomic_compare_exchange_n(&comm->stopped, &none, (int)reason, 0, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED);
}
