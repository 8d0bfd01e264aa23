/*
 * transport_nccl_native.c - NCCL's own collectives on the caller's buffers
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/transport_nccl.h"

#define TRY_NCCL(call) ZIPCCL_TRY(zipccl_transport_nccl_check(t, (call), #call))

/* Numbers of types and operators are NCCL's (core/dtype.h). */
static ncclDataType_t type_of(enum zipccl_dtype dtype)
{
    return (ncclDataType_t)dtype;
}

static ncclRedOp_t redop_of(enum zipccl_redop redop)
{
    return (ncclRedOp_t)redop;
}

/* Where peer 'p' sends from or receives to, and how much; equal blocks without counts. */
struct block {
    size_t at, n;
};

static struct block block_of(const size_t *counts, const size_t *displs, size_t count, uint32_t p)
{
    if (counts == NULL)
        return (struct block){p * count, count};
    return (struct block){displs[p], counts[p]};
}

static zipccl_status post_pairs(struct zipccl_transport_nccl *t,
                                const struct zipccl_native_call *call)
{
    size_t size = zipccl_dtype_size(call->dtype);

    for (uint32_t p = 0; p < t->base.nranks; p++) {
        struct block out = block_of(call->send_counts, call->send_displs, call->count, p);
        struct block in = block_of(call->recv_counts, call->recv_displs, call->count, p);

        if (out.n > 0)
            TRY_NCCL(t->api->Send((const char *)call->send + out.at * size, out.n,
                                  type_of(call->dtype), (int)p, t->comm, t->stream));
        if (in.n > 0)
            TRY_NCCL(t->api->Recv((char *)call->recv + in.at * size, in.n, type_of(call->dtype),
                                  (int)p, t->comm, t->stream));
    }
    return ZIPCCL_OK;
}

static zipccl_status pairs(struct zipccl_transport_nccl *t, const struct zipccl_native_call *call)
{
    zipccl_status status;

    TRY_NCCL(t->api->GroupStart());
    status = post_pairs(t, call);
    TRY_NCCL(t->api->GroupEnd());
    return status;
}

zipccl_status zipccl_transport_nccl_native(struct zipccl_transport *base,
                                           const struct zipccl_native_call *call)
{
    struct zipccl_transport_nccl *t = (struct zipccl_transport_nccl *)base;
    ncclDataType_t type = type_of(call->dtype);

    if (atomic_load(&t->aborted))
        return ZIPCCL_ERR_ABORTED;
    switch (call->op) {
    case ZIPCCL_ALL_GATHER:
        TRY_NCCL(t->api->AllGather(call->send, call->recv, call->count, type, t->comm, t->stream));
        return ZIPCCL_OK;
    case ZIPCCL_REDUCE_SCATTER:
        TRY_NCCL(t->api->ReduceScatter(call->send, call->recv, call->count, type,
                                       redop_of(call->redop), t->comm, t->stream));
        return ZIPCCL_OK;
    case ZIPCCL_ALL_REDUCE:
        TRY_NCCL(t->api->AllReduce(call->send, call->recv, call->count, type, redop_of(call->redop),
                                   t->comm, t->stream));
        return ZIPCCL_OK;
    case ZIPCCL_BROADCAST:
        TRY_NCCL(t->api->Broadcast(call->send, call->recv, call->count, type, (int)call->root,
                                   t->comm, t->stream));
        return ZIPCCL_OK;
    case ZIPCCL_ALLTOALL:
        if (t->api->AlltoAll == NULL)
            return pairs(t, call);
        TRY_NCCL(t->api->AlltoAll(call->send, call->recv, call->count, type, t->comm, t->stream));
        return ZIPCCL_OK;
    default: return pairs(t, call);
    }
}
