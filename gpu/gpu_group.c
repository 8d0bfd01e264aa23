/*
 * gpu_group.c - groups of sends and receives, and alltoallv, which is one
 *
 * Both ends of a message see its size and type, and their messages to each other in the same order.  So
 * both pass the same ones to plain NCCL, in one group, first; and both take the others in the same rounds:
 * of one type at a time, in each round the next message of every pair, which core's pairs then
 * move.  Every rank works through plain, type, round and chunk in that order, so whatever others are in a
 * rank's group, no two wait for each other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/gpu_state.h"

#include <stdlib.h>
#include <string.h>

#define TRY_NCCL(call) ZIPCCL_TRY(zipccl_transport_nccl_check(t, (call), #call))

/* State of an op in comm->done: to be compressed, or the reason why not plus PLAIN. */
enum { TO_CODE, CODED, PLAIN };

static size_t bytes_of(const struct zipccl_gpu_p2p *op)
{
    return op->count * zipccl_dtype_size(op->dtype);
}

static zipccl_status check(struct zipccl_gpu_comm *comm, const struct zipccl_gpu_p2p *ops,
                           size_t nops)
{
    for (size_t i = 0; i < nops; i++) {
        size_t size = zipccl_dtype_size(ops[i].dtype);

        if (size == 0 || ops[i].peer >= comm->transport->base.nranks ||
            ops[i].count > SIZE_MAX / 4 / size || (ops[i].count > 0 && ops[i].buf == NULL) ||
            (uintptr_t)ops[i].buf % (size > 0 ? size : 1) != 0)
            return zipccl_fail(&comm->error, ZIPCCL_ERR_ARG,
                               "%s of %zu elements of type %d at %p, peer %u of %u ranks",
                               ops[i].send ? "send" : "receive", ops[i].count, (int)ops[i].dtype,
                               ops[i].buf, ops[i].peer, comm->transport->base.nranks);
    }
    return ZIPCCL_OK;
}

static zipccl_status classify(struct zipccl_gpu_comm *comm, enum zipccl_op op,
                              const struct zipccl_gpu_p2p *ops, size_t nops, cudaStream_t stream)
{
    uint32_t self = comm->transport->base.rank;

    if (nops > comm->room_done) {
        uint8_t *more = realloc(comm->done, nops);

        if (more == NULL)
            return ZIPCCL_ERR_NOMEM;
        comm->done = more;
        comm->room_done = nops;
    }
    for (size_t i = 0; i < nops; i++) {
        enum zipccl_gpu_reason reason =
            ops[i].peer == self ? ZIPCCL_GPU_ONE_RANK
                                : zipccl_gpu_reason_of(comm, op, ops[i].dtype, ZIPCCL_SUM,
                                                       bytes_of(&ops[i]), stream);

        comm->done[i] = reason == ZIPCCL_GPU_COMPRESSED ? TO_CODE : (uint8_t)(PLAIN + reason);
    }
    return ZIPCCL_OK;
}

static zipccl_status post_plain(struct zipccl_gpu_comm *comm, const struct zipccl_gpu_p2p *ops,
                                size_t nops, cudaStream_t stream)
{
    struct zipccl_transport_nccl *t = comm->transport;

    for (size_t i = 0; i < nops; i++) {
        ncclDataType_t type = (ncclDataType_t)ops[i].dtype;

        if (comm->done[i] < PLAIN)
            continue;
        if (ops[i].send)
            TRY_NCCL(
                t->api->Send(ops[i].buf, ops[i].count, type, (int)ops[i].peer, t->comm, stream));
        else
            TRY_NCCL(
                t->api->Recv(ops[i].buf, ops[i].count, type, (int)ops[i].peer, t->comm, stream));
    }
    return ZIPCCL_OK;
}

static zipccl_status run_plain(struct zipccl_gpu_comm *comm, enum zipccl_op op,
                               const struct zipccl_gpu_p2p *ops, size_t nops, cudaStream_t stream)
{
    struct zipccl_transport_nccl *t = comm->transport;
    zipccl_status status;
    size_t nplain = 0;

    for (size_t i = 0; i < nops; i++)
        nplain += comm->done[i] >= PLAIN;
    if (nplain == 0)
        return ZIPCCL_OK;
    TRY_NCCL(t->api->GroupStart());
    status = post_plain(comm, ops, nops, stream);
    TRY_NCCL(t->api->GroupEnd());
    ZIPCCL_TRY(status);
    for (size_t i = 0; i < nops; i++)
        if (comm->done[i] >= PLAIN)
            zipccl_gpu_count_plain(comm, op, (enum zipccl_gpu_reason)(comm->done[i] - PLAIN), 1,
                                   ops[i].send && ops[i].peer != t->base.rank ? bytes_of(&ops[i])
                                                                              : 0);
    return ZIPCCL_OK;
}

/* Lowest address of what is sent, or received, in 'dtype'. */
static uintptr_t base_of(const struct zipccl_gpu_comm *comm, const struct zipccl_gpu_p2p *ops,
                         size_t nops, enum zipccl_dtype dtype, bool send)
{
    uintptr_t base = UINTPTR_MAX;

    for (size_t i = 0; i < nops; i++)
        if (comm->done[i] == TO_CODE && ops[i].dtype == dtype && ops[i].send == send &&
            (uintptr_t)ops[i].buf < base)
            base = (uintptr_t)ops[i].buf;
    return base == UINTPTR_MAX ? 0 : base;
}

/* Take the next message of every pair and direction; how many. */
static size_t take_round(struct zipccl_gpu_comm *comm, const struct zipccl_gpu_p2p *ops,
                         size_t nops, enum zipccl_dtype dtype, const uintptr_t *base)
{
    size_t nranks = comm->transport->base.nranks, taken = 0;

    memset(comm->pairs, 0, 4 * nranks * sizeof *comm->pairs);
    for (size_t i = 0; i < nops; i++) {
        size_t *counts = comm->pairs + (ops[i].send ? 0 : 2 * nranks);

        if (comm->done[i] != TO_CODE || ops[i].dtype != dtype || counts[ops[i].peer] > 0)
            continue;
        counts[ops[i].peer] = ops[i].count;
        counts[nranks + ops[i].peer] =
            ((uintptr_t)ops[i].buf - base[ops[i].send]) / zipccl_dtype_size(dtype);
        comm->done[i] = CODED;
        taken++;
    }
    return taken;
}

static zipccl_status run_coded(struct zipccl_gpu_comm *comm, enum zipccl_op op,
                               const struct zipccl_gpu_p2p *ops, size_t nops,
                               enum zipccl_dtype dtype, cudaStream_t stream)
{
    size_t nranks = comm->transport->base.nranks, taken;
    size_t *pairs = comm->pairs;

    for (;;) {
        uintptr_t base[2] = {base_of(comm, ops, nops, dtype, false),
                             base_of(comm, ops, nops, dtype, true)};
        struct zipccl_comm_stats before;

        taken = take_round(comm, ops, nops, dtype, base);
        if (taken == 0)
            return ZIPCCL_OK;
        ZIPCCL_TRY(zipccl_gpu_order(comm, op, stream, &before));
        ZIPCCL_TRY(zipccl_comm_run_pairs(comm->core, (const void *)base[1], pairs, pairs + nranks,
                                         (void *)base[0], pairs + 2 * nranks, pairs + 3 * nranks,
                                         dtype, stream));
        comm->last = zipccl_comm_last_plan(comm->core);
        zipccl_gpu_count_plan(comm, op, taken, &before);
    }
}

zipccl_status zipccl_gpu_pairs(struct zipccl_gpu_comm *comm, enum zipccl_op op,
                               const struct zipccl_gpu_p2p *ops, size_t nops, cudaStream_t stream)
{
    ZIPCCL_TRY(check(comm, ops, nops));
    ZIPCCL_TRY(classify(comm, op, ops, nops, stream));
    ZIPCCL_TRY(run_plain(comm, op, ops, nops, stream));
    for (int dtype = 0; dtype < ZIPCCL_NUM_DTYPES; dtype++)
        if (zipccl_dtype_compressible((enum zipccl_dtype)dtype))
            ZIPCCL_TRY(run_coded(comm, op, ops, nops, (enum zipccl_dtype)dtype, stream));
    return ZIPCCL_OK;
}

zipccl_status zipccl_gpu_group(const struct zipccl_gpu_p2p *ops, size_t nops,
                               struct zipccl_gpu_comm *comm, cudaStream_t stream)
{
    if (comm == NULL || (ops == NULL && nops > 0))
        return ZIPCCL_ERR_ARG;
    ZIPCCL_TRY(zipccl_gpu_enter(comm));
    return zipccl_gpu_leave(comm, zipccl_gpu_pairs(comm, ZIPCCL_SENDRECV, ops, nops, stream));
}

static zipccl_status alltoallv(const void *send, const size_t *send_counts,
                               const size_t *send_displs, void *recv, const size_t *recv_counts,
                               const size_t *recv_displs, enum zipccl_dtype dtype,
                               struct zipccl_gpu_comm *comm, cudaStream_t stream)
{
    size_t nranks = comm->transport->base.nranks, size = zipccl_dtype_size(dtype), n = 0;
    struct zipccl_gpu_p2p *ops = calloc(2 * nranks, sizeof *ops);
    zipccl_status status;

    if (ops == NULL)
        return ZIPCCL_ERR_NOMEM;
    for (uint32_t p = 0; p < nranks; p++) {
        char *from = (char *)(uintptr_t)send + send_displs[p] * size;

        if (send_counts[p] > 0)
            ops[n++] = (struct zipccl_gpu_p2p){true, p, from, send_counts[p], dtype};
        if (recv_counts[p] > 0)
            ops[n++] = (struct zipccl_gpu_p2p){false, p, (char *)recv + recv_displs[p] * size,
                                               recv_counts[p], dtype};
    }
    status = zipccl_gpu_pairs(comm, ZIPCCL_ALLTOALLV, ops, n, stream);
    free(ops);
    return status;
}

zipccl_status zipccl_gpu_alltoallv(const void *send, const size_t *send_counts,
                                   const size_t *send_displs, void *recv, const size_t *recv_counts,
                                   const size_t *recv_displs, enum zipccl_dtype dtype,
                                   struct zipccl_gpu_comm *comm, cudaStream_t stream)
{
    if (comm == NULL || send_counts == NULL || send_displs == NULL || recv_counts == NULL ||
        recv_displs == NULL)
        return ZIPCCL_ERR_ARG;
    ZIPCCL_TRY(zipccl_gpu_enter(comm));
    return zipccl_gpu_leave(comm, alltoallv(send, send_counts, send_displs, recv, recv_counts,
                                            recv_displs, dtype, comm, stream));
}
