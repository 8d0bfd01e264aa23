/*
 * transport_mem_native.c - the memory transport's own collectives
 *
 * Messages are those of rings.h; the values of reductions are read from the peers' send buffers,
 * since all ranks share one address space.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/reduce.h"
#include "core/rings.h"
#include "core/transport_mem.h"
#include "core/transport_mem_hub.h"

#include <stdlib.h>

zipccl_status zipccl_mem_all_gather(struct zipccl_transport *t, const void *send, void *recv,
                                    size_t nbytes, uint32_t channels)
{
    return zipccl_rings_all_gather(t, send, recv, nbytes, 1, channels);
}

zipccl_status zipccl_mem_broadcast(struct zipccl_transport *t, void *buf, size_t nbytes,
                                   uint32_t root, uint32_t channels)
{
    if (root >= t->nranks)
        return ZIPCCL_ERR_ARG;
    return zipccl_rings_broadcast(t, buf, nbytes, 1, root, channels);
}

/* The limit has passed at a meeting: name the first rank that has not come. */
static zipccl_status fail_late(struct zipccl_mem_rank *rank, const struct zipccl_native_call *call)
{
    struct zipccl_mem_hub *hub = rank->hub;
    struct zipccl_error error;
    uint32_t absent = 0;

    while (absent + 1 < hub->nranks && hub->call[absent] != NULL)
        absent++;
    zipccl_fail(&error, ZIPCCL_ERR_TIMEOUT,
                "rank %u has waited %g s for rank %u to call %s %s of %zu elements, %zu bytes",
                rank->base.rank, hub->limit_s, absent, zipccl_op_name(call->op),
                zipccl_dtype_name(call->dtype), call->count,
                call->count * zipccl_dtype_size(call->dtype));
    zipccl_mem_abort_hub(hub, &error);
    return ZIPCCL_ERR_TIMEOUT;
}

/*
 * Meet all ranks with this rank's call; from then on until part() every rank may read every
 * other's send buffer.  MISMATCH on all ranks if the calls differ.
 */
static zipccl_status meet(struct zipccl_mem_rank *rank, const struct zipccl_native_call *call)
{
    struct zipccl_mem_hub *hub = rank->hub;
    zipccl_status status = ZIPCCL_OK;
    struct zipccl_mem_deadline deadline;
    uint64_t meeting;

    pthread_mutex_lock(&hub->lock);
    deadline = zipccl_mem_deadline_of(hub);
    meeting = hub->meeting;
    hub->call[rank->base.rank] = call;
    if (hub->aborted) {
        status = ZIPCCL_ERR_ABORTED;
    } else if (++hub->narrived == hub->nranks) {
        hub->narrived = 0;
        hub->nreaders = hub->nranks;
        hub->meeting++;
        pthread_cond_broadcast(&hub->met);
    } else {
        while (hub->meeting == meeting && !hub->aborted && status == ZIPCCL_OK)
            if (zipccl_mem_wait(hub, &hub->met, &deadline) && hub->meeting == meeting &&
                !hub->aborted)
                status = fail_late(rank, call);
        if (hub->meeting == meeting && status == ZIPCCL_OK)
            status = ZIPCCL_ERR_ABORTED;
    }
    pthread_mutex_unlock(&hub->lock);
    return status;
}

/* Leave a meeting; returns when no rank reads any more.  Readers never block, so it ends. */
static void part(struct zipccl_mem_rank *rank)
{
    struct zipccl_mem_hub *hub = rank->hub;

    pthread_mutex_lock(&hub->lock);
    if (--hub->nreaders == 0) {
        for (uint32_t r = 0; r < hub->nranks; r++)
            hub->call[r] = NULL; /* of the next meeting nobody has come yet */
        pthread_cond_broadcast(&hub->met);
    } else {
        while (hub->nreaders > 0)
            pthread_cond_wait(&hub->met, &hub->lock);
    }
    pthread_mutex_unlock(&hub->lock);
}

/* All ranks see the same calls, so all find the same difference. */
static zipccl_status compare_calls(struct zipccl_mem_rank *rank)
{
    struct zipccl_mem_hub *hub = rank->hub;
    const struct zipccl_native_call *a = hub->call[0];

    for (uint32_t r = 1; r < hub->nranks; r++) {
        const struct zipccl_native_call *b = hub->call[r];

        if (a->op == b->op && a->dtype == b->dtype && a->redop == b->redop && a->count == b->count)
            continue;
        pthread_mutex_lock(&hub->lock);
        if (hub->error.text[0] == '\0')
            zipccl_fail(&hub->error, ZIPCCL_ERR_MISMATCH,
                        "rank 0 calls %s %s %s of %zu elements, rank %u %s %s %s of %zu",
                        zipccl_op_name(a->op), zipccl_dtype_name(a->dtype),
                        zipccl_redop_name(a->redop), a->count, r, zipccl_op_name(b->op),
                        zipccl_dtype_name(b->dtype), zipccl_redop_name(b->redop), b->count);
        pthread_mutex_unlock(&hub->lock);
        return ZIPCCL_ERR_MISMATCH;
    }
    return ZIPCCL_OK;
}

/* Reduce elements [first, first + n) of every rank's send buffer into 'dst'. */
static zipccl_status reduce_shared(struct zipccl_transport *t,
                                   const struct zipccl_native_call *call, size_t first, size_t n,
                                   void *dst)
{
    struct zipccl_mem_rank *rank = (struct zipccl_mem_rank *)t;
    struct zipccl_mem_hub *hub = rank->hub;
    const void **sources = malloc(hub->nranks * sizeof *sources);
    size_t offset = first * zipccl_dtype_size(call->dtype);
    zipccl_status status;

    if (sources == NULL) {
        t->ops->abort(t);
        return ZIPCCL_ERR_NOMEM;
    }
    status = meet(rank, call);
    if (status == ZIPCCL_OK) {
        status = compare_calls(rank);
        for (uint32_t r = 0; r < hub->nranks; r++)
            sources[r] = (const char *)hub->call[r]->send + offset;
        if (status == ZIPCCL_OK)
            status = zipccl_reduce(call->dtype, call->redop, sources, hub->nranks, n, dst);
        part(rank);
    }
    free(sources);
    return status;
}

bool zipccl_mem_has_native(const struct zipccl_transport *t, enum zipccl_op op,
                           enum zipccl_dtype dtype, enum zipccl_redop redop)
{
    (void)t;
    if (zipccl_dtype_size(dtype) == 0 || (unsigned)op >= ZIPCCL_NUM_OPS)
        return false;
    if (zipccl_is_reduction(op))
        return zipccl_reduce_serves(dtype, redop);
    return true;
}

zipccl_status zipccl_mem_native(struct zipccl_transport *t, const struct zipccl_native_call *call)
{
    if (!zipccl_mem_has_native(t, call->op, call->dtype, call->redop))
        return ZIPCCL_ERR_UNSUPPORTED;
    return zipccl_rings_native(t, call, reduce_shared);
}
