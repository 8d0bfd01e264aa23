/*
 * gpu_calls.c - the collectives: a plan of core's, or plain NCCL for a reason
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/gpu_state.h"

#include <stdlib.h>

/* True if plans add up elements of 'dtype'. */
static bool has_sums(enum zipccl_dtype dtype, enum zipccl_redop redop)
{
    return (redop == ZIPCCL_SUM || redop == ZIPCCL_AVG) &&
           (dtype == ZIPCCL_BFLOAT16 || dtype == ZIPCCL_FLOAT16 || dtype == ZIPCCL_FLOAT32);
}

void zipccl_gpu_notice(struct zipccl_gpu_comm *comm, enum zipccl_gpu_reason reason,
                       const char *text)
{
    uint32_t bit = (uint32_t)1 << reason;

    if (comm->noticed & bit)
        return;
    comm->noticed |= bit;
    if (comm->options.notice != NULL)
        comm->options.notice(comm->options.notice_context, text);
}

static bool is_captured(cudaStream_t stream)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;

    return cudaStreamIsCapturing(stream, &status) == cudaSuccess &&
           status != cudaStreamCaptureStatusNone;
}

enum zipccl_gpu_reason zipccl_gpu_reason_of(struct zipccl_gpu_comm *comm, enum zipccl_op op,
                                            enum zipccl_dtype dtype, enum zipccl_redop redop,
                                            size_t nbytes, cudaStream_t stream)
{
    const struct zipccl_gpu_options *o = &comm->options;

    if (comm->disabled || o->mode == ZIPCCL_MODE_RAW)
        return ZIPCCL_GPU_DISABLED;
    if (comm->transport->base.nranks == 1)
        return ZIPCCL_GPU_ONE_RANK;
    if ((o->ops & ZIPCCL_GPU_OP(op)) == 0)
        return ZIPCCL_GPU_OP_OFF;
    if (!zipccl_dtype_compressible(dtype))
        return ZIPCCL_GPU_TYPE;
    if (zipccl_is_reduction(op) && !has_sums(dtype, redop))
        return ZIPCCL_GPU_REDOP;
    if (nbytes < o->min_bytes || nbytes == 0)
        return ZIPCCL_GPU_SMALL;
    if (comm->exec->gate != NULL || !is_captured(stream))
        return ZIPCCL_GPU_COMPRESSED;
    zipccl_gpu_notice(comm, ZIPCCL_GPU_CAPTURED,
                      "calls in streams that are being captured are passed to plain NCCL");
    return ZIPCCL_GPU_CAPTURED;
}

/* Bytes that a call hands over for peers, NCCL's bus factors, and of the larger buffer. */
static uint64_t handed_over(const struct zipccl_native_call *call, uint32_t rank, uint64_t nranks)
{
    uint64_t nbytes = call->count * zipccl_dtype_size(call->dtype);

    if (call->op == ZIPCCL_ALL_REDUCE)
        return 2 * nbytes * (nranks - 1) / nranks;
    if (call->op == ZIPCCL_BROADCAST)
        return rank == call->root ? nbytes * (nranks - 1) : 0;
    return nbytes * (nranks - 1);
}

static size_t larger_buffer(const struct zipccl_native_call *call, size_t nranks)
{
    size_t nbytes = call->count * zipccl_dtype_size(call->dtype);

    return call->op == ZIPCCL_ALL_REDUCE || call->op == ZIPCCL_BROADCAST ? nbytes : nbytes * nranks;
}

static zipccl_status run_plan(struct zipccl_gpu_comm *comm, const struct zipccl_native_call *call,
                              cudaStream_t stream)
{
    const void *send = call->send;
    void *recv = call->recv;

    switch (call->op) {
    case ZIPCCL_ALL_GATHER:
        return zipccl_all_gather(send, recv, call->count, call->dtype, comm->core, stream);
    case ZIPCCL_REDUCE_SCATTER:
        return zipccl_reduce_scatter(send, recv, call->count, call->dtype, call->redop, comm->core,
                                     stream);
    case ZIPCCL_ALL_REDUCE:
        return zipccl_all_reduce(send, recv, call->count, call->dtype, call->redop, comm->core,
                                 stream);
    case ZIPCCL_BROADCAST:
        return zipccl_broadcast(send, recv, call->count, call->dtype, call->root, comm->core,
                                stream);
    default: return zipccl_alltoall(send, recv, call->count, call->dtype, comm->core, stream);
    }
}

static zipccl_status run(struct zipccl_gpu_comm *comm, const struct zipccl_native_call *call,
                         cudaStream_t stream)
{
    struct zipccl_transport_nccl *t = comm->transport;
    struct zipccl_comm_stats before;
    enum zipccl_gpu_reason reason;

    if (zipccl_dtype_size(call->dtype) == 0)
        return zipccl_fail(&comm->error, ZIPCCL_ERR_ARG, "type number %d is none",
                           (int)call->dtype);
    if (call->count > SIZE_MAX / 16 / t->base.nranks)
        return zipccl_fail(&comm->error, ZIPCCL_ERR_ARG, "%zu elements on %u ranks exceed size_t",
                           call->count, t->base.nranks);
    reason = zipccl_gpu_reason_of(comm, call->op, call->dtype, call->redop,
                                  larger_buffer(call, t->base.nranks), stream);
    if (reason != ZIPCCL_GPU_COMPRESSED) {
        t->stream = stream;
        ZIPCCL_TRY(zipccl_transport_nccl_native(&t->base, call));
        zipccl_gpu_count_plain(comm, call->op, reason, 1,
                               handed_over(call, t->base.rank, t->base.nranks));
        return ZIPCCL_OK;
    }
    ZIPCCL_TRY(zipccl_gpu_order(comm, call->op, stream, &before));
    ZIPCCL_TRY(run_plan(comm, call, stream));
    comm->last = zipccl_comm_last_plan(comm->core);
    zipccl_gpu_count_plan(comm, call->op, 1, &before);
    return ZIPCCL_OK;
}

static zipccl_status call_of(struct zipccl_gpu_comm *comm, struct zipccl_native_call call,
                             cudaStream_t stream)
{
    if (comm == NULL)
        return ZIPCCL_ERR_ARG;
    ZIPCCL_TRY(zipccl_gpu_enter(comm));
    return zipccl_gpu_leave(comm, run(comm, &call, stream));
}

zipccl_status zipccl_gpu_all_gather(const void *send, void *recv, size_t count,
                                    enum zipccl_dtype dtype, struct zipccl_gpu_comm *comm,
                                    cudaStream_t stream)
{
    return call_of(
        comm,
        (struct zipccl_native_call){
            .op = ZIPCCL_ALL_GATHER, .send = send, .recv = recv, .count = count, .dtype = dtype},
        stream);
}

zipccl_status zipccl_gpu_reduce_scatter(const void *send, void *recv, size_t recv_count,
                                        enum zipccl_dtype dtype, enum zipccl_redop redop,
                                        struct zipccl_gpu_comm *comm, cudaStream_t stream)
{
    return call_of(comm,
                   (struct zipccl_native_call){.op = ZIPCCL_REDUCE_SCATTER,
                                               .send = send,
                                               .recv = recv,
                                               .count = recv_count,
                                               .dtype = dtype,
                                               .redop = redop},
                   stream);
}

zipccl_status zipccl_gpu_all_reduce(const void *send, void *recv, size_t count,
                                    enum zipccl_dtype dtype, enum zipccl_redop redop,
                                    struct zipccl_gpu_comm *comm, cudaStream_t stream)
{
    return call_of(comm,
                   (struct zipccl_native_call){.op = ZIPCCL_ALL_REDUCE,
                                               .send = send,
                                               .recv = recv,
                                               .count = count,
                                               .dtype = dtype,
                                               .redop = redop},
                   stream);
}

zipccl_status zipccl_gpu_broadcast(const void *send, void *recv, size_t count,
                                   enum zipccl_dtype dtype, uint32_t root,
                                   struct zipccl_gpu_comm *comm, cudaStream_t stream)
{
    return call_of(comm,
                   (struct zipccl_native_call){.op = ZIPCCL_BROADCAST,
                                               .send = send,
                                               .recv = recv,
                                               .count = count,
                                               .dtype = dtype,
                                               .root = root},
                   stream);
}

zipccl_status zipccl_gpu_alltoall(const void *send, void *recv, size_t count,
                                  enum zipccl_dtype dtype, struct zipccl_gpu_comm *comm,
                                  cudaStream_t stream)
{
    return call_of(
        comm,
        (struct zipccl_native_call){
            .op = ZIPCCL_ALLTOALL, .send = send, .recv = recv, .count = count, .dtype = dtype},
        stream);
}
