/*
 * comms.c - the communicators of this process and their counts
 *
 * Handles are looked up in a table of a fixed size without a lock: entries are written under one and
 * never move.  A full table makes a communicator unknown, which is plain NCCL.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/preload/comms.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = 4096 };

/* A removed communicator leaves this behind, so that probing goes on past it. */
static struct zipccl_shim_comm tombstone;

static struct zipccl_shim_comm *slots[SLOTS];
static struct zipccl_shim_comm *all;
static size_t alive;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const char *const reason_texts[ZIPCCL_SHIM_NUM_REASONS] = {
    [ZIPCCL_SHIM_TAKEN] = "given to the back end",
    [ZIPCCL_SHIM_OBSERVING] = "observing",
    [ZIPCCL_SHIM_SMALL] = "smaller than ZIPCCL_MIN_BYTES",
    [ZIPCCL_SHIM_TYPE] = "type that is not compressed",
    [ZIPCCL_SHIM_REDOP] = "reduction that is not sum or avg",
    [ZIPCCL_SHIM_OP] = "op not selected",
    [ZIPCCL_SHIM_GROUP] = "process group not selected",
    [ZIPCCL_SHIM_ONE_RANK] = "communicator of one rank",
    [ZIPCCL_SHIM_CAPTURED] = "captured into a graph",
    [ZIPCCL_SHIM_WINDOW] = "registered windows",
    [ZIPCCL_SHIM_NONBLOCKING] = "non-blocking communicator",
    [ZIPCCL_SHIM_ABORTED] = "aborted communicator",
    [ZIPCCL_SHIM_DIFFER] = "settings differ between ranks",
    [ZIPCCL_SHIM_STRANGER] = "rank 0 runs without zipccl",
    [ZIPCCL_SHIM_UNKNOWN] = "unknown communicator",
    [ZIPCCL_SHIM_SWITCHED_OFF] = "switched off by the control file",
    [ZIPCCL_SHIM_DISABLED] = "disabled after a mismatch",
    [ZIPCCL_SHIM_THREAD] = "several ranks in one thread",
    [ZIPCCL_SHIM_BACK_END] = "no back end",
};

const char *zipccl_shim_reason_text(enum zipccl_shim_reason reason)
{
    return reason_texts[reason];
}

static size_t slot_of(ncclComm_t handle)
{
    return (size_t)(((uintptr_t)handle >> 4) * 0x9e3779b97f4a7c15u >> 20) % SLOTS;
}

struct zipccl_shim_comm *zipccl_shim_comm_find(ncclComm_t handle)
{
    for (size_t i = slot_of(handle), n = 0; n < SLOTS; i = (i + 1) % SLOTS, n++) {
        struct zipccl_shim_comm *comm = __atomic_load_n(&slots[i], __ATOMIC_ACQUIRE);

        if (comm == NULL)
            return NULL;
        if (comm->handle == handle && comm != &tombstone)
            return comm;
    }
    return NULL;
}

struct zipccl_shim_comm *zipccl_shim_comm_add(ncclComm_t handle, int rank, int nranks, int device)
{
    struct zipccl_shim_comm *comm = calloc(1, sizeof *comm);
    size_t i = slot_of(handle), n = 0;

    if (comm == NULL)
        return NULL;
    comm->handle = handle;
    comm->rank = rank;
    comm->nranks = nranks;
    comm->device = device;
    (void)pthread_mutex_init(&comm->lock, NULL);
    (void)pthread_rwlock_init(&comm->engine_lock, NULL);
    (void)pthread_mutex_init(&comm->call_lock, NULL);
    pthread_mutex_lock(&lock);
    while (n < SLOTS && slots[i] != NULL && slots[i] != &tombstone) {
        i = (i + 1) % SLOTS;
        n++;
    }
    if (n < SLOTS) {
        comm->next = all;
        all = comm;
        __atomic_store_n(&slots[i], comm, __ATOMIC_RELEASE);
        alive++;
    }
    pthread_mutex_unlock(&lock);
    if (n < SLOTS)
        return comm;
    free(comm);
    return NULL;
}

void zipccl_shim_comm_remove(struct zipccl_shim_comm *comm)
{
    pthread_mutex_lock(&lock);
    for (size_t i = slot_of(comm->handle), n = 0; n < SLOTS; i = (i + 1) % SLOTS, n++) {
        if (slots[i] == comm) {
            __atomic_store_n(&slots[i], &tombstone, __ATOMIC_RELEASE);
            alive--;
            break;
        }
        if (slots[i] == NULL)
            break;
    }
    pthread_mutex_unlock(&lock);
}

struct zipccl_shim_comm *zipccl_shim_comm_first(void)
{
    struct zipccl_shim_comm *first;

    pthread_mutex_lock(&lock);
    first = all;
    pthread_mutex_unlock(&lock);
    return first;
}

size_t zipccl_shim_comm_alive(void)
{
    size_t n;

    pthread_mutex_lock(&lock);
    n = alive;
    pthread_mutex_unlock(&lock);
    return n;
}

void zipccl_shim_comm_stop(struct zipccl_shim_comm *comm, enum zipccl_shim_reason reason)
{
    int none = 0;

    (void)__atomic_compare_exchange_n(&comm->stopped, &none, (int)reason, 0, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED);
}

static struct zipccl_shim_kind *kind_of(struct zipccl_shim_counts *counts, uint8_t op,
                                        uint8_t dtype, uint8_t size_class)
{
    struct zipccl_shim_kind *grown;

    for (size_t i = 0; i < counts->nkinds; i++) {
        struct zipccl_shim_kind *k = &counts->kinds[i];

        if (k->op == op && k->dtype == dtype && k->size_class == size_class)
            return k;
    }
    if (counts->nkinds == counts->room) {
        grown = realloc(counts->kinds, (counts->room + 32) * sizeof *grown);
        if (grown == NULL)
            return NULL;
        counts->kinds = grown;
        counts->room += 32;
    }
    grown = &counts->kinds[counts->nkinds++];
    memset(grown, 0, sizeof *grown);
    grown->op = op;
    grown->dtype = dtype;
    grown->size_class = size_class;
    return grown;
}

void zipccl_shim_count(struct zipccl_shim_comm *comm, enum zipccl_shim_op op,
                       enum zipccl_dtype dtype, size_t elements, size_t bytes,
                       enum zipccl_shim_reason reason)
{
    struct zipccl_shim_kind *kind;
    uint8_t size_class = bytes > 0 ? (uint8_t)(63 - __builtin_clzll(bytes)) : 0;

    pthread_mutex_lock(&comm->lock);
    kind = kind_of(&comm->counts, (uint8_t)op, (uint8_t)dtype, size_class);
    if (kind != NULL) {
        kind->calls++;
        kind->elements += elements;
        kind->bytes += bytes;
    }
    comm->counts.reasons[op][reason]++;
    pthread_mutex_unlock(&comm->lock);
}
