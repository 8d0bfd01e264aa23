/*
 * call.c - one data call: judged, counted, given to the back end or to plain NCCL
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/preload/call.h"

#include "gpu/preload/control.h"
#include "gpu/preload/counts.h"
#include "gpu/preload/cuda.h"
#include "gpu/preload/engine.h"
#include "gpu/preload/fault.h"
#include "gpu/preload/group.h"
#include "gpu/preload/shim.h"
#include "gpu/preload/verify.h"

enum zipccl_shim_op zipccl_shim_op_of(enum zipccl_shim_function function)
{
    static const enum zipccl_shim_op ops[] = {[ZIPCCL_SHIM_FN_ALL_GATHER] = ZIPCCL_SHIM_ALL_GATHER,
                                              [ZIPCCL_SHIM_FN_ALLTOALL] = ZIPCCL_SHIM_ALLTOALL,
                                              [ZIPCCL_SHIM_FN_BROADCAST] = ZIPCCL_SHIM_BROADCAST,
                                              [ZIPCCL_SHIM_FN_BCAST] = ZIPCCL_SHIM_BROADCAST,
                                              [ZIPCCL_SHIM_FN_REDUCE_SCATTER] =
                                                  ZIPCCL_SHIM_REDUCE_SCATTER,
                                              [ZIPCCL_SHIM_FN_ALL_REDUCE] = ZIPCCL_SHIM_ALL_REDUCE,
                                              [ZIPCCL_SHIM_FN_REDUCE] = ZIPCCL_SHIM_REDUCE,
                                              [ZIPCCL_SHIM_FN_GATHER] = ZIPCCL_SHIM_GATHER,
                                              [ZIPCCL_SHIM_FN_SCATTER] = ZIPCCL_SHIM_SCATTER,
                                              [ZIPCCL_SHIM_FN_SEND] = ZIPCCL_SHIM_SENDRECV,
                                              [ZIPCCL_SHIM_FN_RECV] = ZIPCCL_SHIM_SENDRECV};

    return ops[function];
}

/* Bytes of the larger buffer, as the back end compares them with its least. */
static size_t larger_bytes(const struct zipccl_shim_comm *comm, const struct zipccl_shim_call *call)
{
    size_t nbytes = call->count * zipccl_dtype_size((enum zipccl_dtype)call->dtype);

    switch (call->function) {
    case ZIPCCL_SHIM_FN_ALL_GATHER:
    case ZIPCCL_SHIM_FN_ALLTOALL:
    case ZIPCCL_SHIM_FN_REDUCE_SCATTER: return nbytes * (size_t)comm->nranks;
    default: return nbytes;
    }
}

static bool captured(cudaStream_t stream)
{
    const struct zipccl_cuda *cuda = zipccl_cuda_get();
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;

    return cuda == NULL || cuda->cudaStreamIsCapturing(stream, &status) != cudaSuccess ||
           status != cudaStreamCaptureStatusNone;
}

enum zipccl_shim_reason zipccl_shim_judge(const struct zipccl_shim_comm *comm,
                                          const struct zipccl_shim_call *call)
{
    const struct zipccl_shim_settings *settings = &zipccl_shim.settings;
    enum zipccl_shim_op op = zipccl_shim_op_of(call->function);
    int stopped = __atomic_load_n(&comm->stopped, __ATOMIC_RELAXED);
    bool reduces = op >= ZIPCCL_SHIM_REDUCE_SCATTER;

    if (comm->plain != ZIPCCL_SHIM_TAKEN)
        return comm->plain;
    if (stopped != ZIPCCL_SHIM_TAKEN)
        return (enum zipccl_shim_reason)stopped;
    if (!settings->compress[op])
        return ZIPCCL_SHIM_OP;
    if (call->dtype < 0 || call->dtype >= ncclNumTypes ||
        !zipccl_dtype_compressible((enum zipccl_dtype)call->dtype))
        return ZIPCCL_SHIM_TYPE;
    if (reduces && call->redop != ncclSum && call->redop != ncclAvg)
        return ZIPCCL_SHIM_REDOP;
    if (larger_bytes(comm, call) < settings->min_bytes || call->count == 0)
        return ZIPCCL_SHIM_SMALL;
    if (settings->mode == ZIPCCL_SHIM_OBSERVE)
        return ZIPCCL_SHIM_OBSERVING;
    if (settings->gate != ZIPCCL_GATE_OFF && settings->verify_every == 0)
        return ZIPCCL_SHIM_TAKEN; /* the engine decides; a check is no part of a graph */
    return captured(call->stream) ? ZIPCCL_SHIM_CAPTURED : ZIPCCL_SHIM_TAKEN;
}

void zipccl_shim_count_call(struct zipccl_shim_comm *comm, const struct zipccl_shim_call *call,
                            enum zipccl_shim_reason reason)
{
    enum zipccl_dtype dtype = (enum zipccl_dtype)call->dtype;
    enum zipccl_shim_op op = zipccl_shim_op_of(call->function);
    size_t nbytes = call->count * zipccl_dtype_size(dtype);

    if (op == ZIPCCL_SHIM_ALLTOALL || op == ZIPCCL_SHIM_REDUCE_SCATTER || op == ZIPCCL_SHIM_SCATTER)
        nbytes *= (size_t)comm->nranks;
    zipccl_shim_count(comm, op, dtype, call->count, nbytes, reason);
}

ncclResult_t zipccl_shim_issue(const struct zipccl_shim_call *c)
{
    const struct zipccl_nccl *n = zipccl_nccl_get();

#define ZIPCCL_CALL(name, ...)                                                                     \
    return n->name == NULL ? zipccl_nccl_missing(#name) : n->name(__VA_ARGS__)
    switch (c->function) {
    case ZIPCCL_SHIM_FN_ALL_GATHER:
        ZIPCCL_CALL(ncclAllGather, c->send, c->recv, c->count, c->dtype, c->comm, c->stream);
    case ZIPCCL_SHIM_FN_ALLTOALL:
        ZIPCCL_CALL(ncclAlltoAll, c->send, c->recv, c->count, c->dtype, c->comm, c->stream);
    case ZIPCCL_SHIM_FN_BROADCAST:
        ZIPCCL_CALL(ncclBroadcast, c->send, c->recv, c->count, c->dtype, c->root, c->comm,
                    c->stream);
    case ZIPCCL_SHIM_FN_BCAST:
        ZIPCCL_CALL(ncclBcast, c->recv, c->count, c->dtype, c->root, c->comm, c->stream);
    case ZIPCCL_SHIM_FN_REDUCE_SCATTER:
        ZIPCCL_CALL(ncclReduceScatter, c->send, c->recv, c->count, c->dtype, c->redop, c->comm,
                    c->stream);
    case ZIPCCL_SHIM_FN_ALL_REDUCE:
        ZIPCCL_CALL(ncclAllReduce, c->send, c->recv, c->count, c->dtype, c->redop, c->comm,
                    c->stream);
    case ZIPCCL_SHIM_FN_REDUCE:
        ZIPCCL_CALL(ncclReduce, c->send, c->recv, c->count, c->dtype, c->redop, c->root, c->comm,
                    c->stream);
    case ZIPCCL_SHIM_FN_GATHER:
        ZIPCCL_CALL(ncclGather, c->send, c->recv, c->count, c->dtype, c->root, c->comm, c->stream);
    case ZIPCCL_SHIM_FN_SCATTER:
        ZIPCCL_CALL(ncclScatter, c->send, c->recv, c->count, c->dtype, c->root, c->comm, c->stream);
    case ZIPCCL_SHIM_FN_SEND:
        ZIPCCL_CALL(ncclSend, c->send, c->count, c->dtype, c->root, c->comm, c->stream);
    default: ZIPCCL_CALL(ncclRecv, c->recv, c->count, c->dtype, c->root, c->comm, c->stream);
    }
#undef ZIPCCL_CALL
}

static zipccl_status give(const struct zipccl_shim_back_end *back, struct zipccl_gpu_comm *engine,
                          const struct zipccl_shim_call *c)
{
    enum zipccl_dtype dtype = (enum zipccl_dtype)c->dtype;
    enum zipccl_redop redop = (enum zipccl_redop)c->redop;

    switch (c->function) {
    case ZIPCCL_SHIM_FN_ALL_GATHER:
        return back->all_gather(c->send, c->recv, c->count, dtype, engine, c->stream);
    case ZIPCCL_SHIM_FN_ALLTOALL:
        return back->alltoall(c->send, c->recv, c->count, dtype, engine, c->stream);
    case ZIPCCL_SHIM_FN_BROADCAST:
    case ZIPCCL_SHIM_FN_BCAST:
        return back->broadcast(c->send, c->recv, c->count, dtype, (uint32_t)c->root, engine,
                               c->stream);
    case ZIPCCL_SHIM_FN_REDUCE_SCATTER:
        return back->reduce_scatter(c->send, c->recv, c->count, dtype, redop, engine, c->stream);
    case ZIPCCL_SHIM_FN_ALL_REDUCE:
        return back->all_reduce(c->send, c->recv, c->count, dtype, redop, engine, c->stream);
    default: return ZIPCCL_ERR_INTERNAL;
    }
}

ncclResult_t zipccl_shim_issue_late(struct zipccl_shim_comm *comm,
                                    const struct zipccl_shim_call *call)
{
    if (__atomic_load_n(&comm->gone, __ATOMIC_ACQUIRE) != 0)
        return zipccl_shim_fault(NULL, ncclInvalidUsage,
                                 "a call waited for the end of its group, and its communicator of "
                                 "%d ranks was destroyed or aborted meanwhile",
                                 comm->nranks);
    return zipccl_shim_nccl_said(comm, zipccl_shim_issue(call));
}

ncclResult_t zipccl_shim_run(struct zipccl_shim_comm *comm, const struct zipccl_shim_call *call)
{
    const struct zipccl_shim_settings *settings = &zipccl_shim.settings;
    const struct zipccl_cuda *cuda = zipccl_cuda_get();
    struct zipccl_shim_check check = {0};
    struct zipccl_cuda_place before;
    ncclResult_t result;
    bool verify;

    pthread_rwlock_rdlock(&comm->engine_lock);
    if (comm->engine == NULL || cuda == NULL || !zipccl_cuda_enter(cuda, comm->device, &before)) {
        pthread_rwlock_unlock(&comm->engine_lock);
        return zipccl_shim_issue_late(comm, call);
    }
    pthread_mutex_lock(&comm->call_lock);
    comm->taken_calls++;
    verify = settings->verify_every > 0 && comm->taken_calls % settings->verify_every == 0;
    result = verify ? zipccl_shim_check_begin(&check, comm, call) : ncclSuccess;
    if (result == ncclSuccess)
        result =
            zipccl_shim_engine_said(comm, give(zipccl_shim_engine_table(), comm->engine, call));
    if (verify)
        result = zipccl_shim_check_end(&check, comm, call, result);
    zipccl_shim_engine_note(comm);
    pthread_mutex_unlock(&comm->call_lock);
    zipccl_cuda_leave(cuda, &before);
    pthread_rwlock_unlock(&comm->engine_lock);
    return result;
}

static ncclResult_t submit_collective(struct zipccl_shim_comm *comm,
                                      const struct zipccl_shim_call *call)
{
    enum zipccl_shim_reason reason = zipccl_shim_judge(comm, call);
    ncclResult_t result;

    zipccl_shim_count_call(comm, call, reason);
    __atomic_store_n(&comm->collectives, comm->collectives + 1, __ATOMIC_RELAXED);
    if (zipccl_shim_thread.depth > 0) {
        zipccl_shim_group_touch(comm);
        return reason == ZIPCCL_SHIM_TAKEN ? zipccl_shim_group_add(comm, call)
                                           : zipccl_shim_nccl_said(comm, zipccl_shim_issue(call));
    }
    result = reason == ZIPCCL_SHIM_TAKEN ? zipccl_shim_run(comm, call)
                                         : zipccl_shim_nccl_said(comm, zipccl_shim_issue(call));
    return result == ncclSuccess ? zipccl_shim_control_step(comm) : result;
}

ncclResult_t zipccl_shim_submit(const struct zipccl_shim_call *call)
{
    struct zipccl_shim_comm *comm;
    ncclResult_t result;

    zipccl_shim_thread.inside++;
    comm = zipccl_shim_comm_get(call->comm);
    if (comm == NULL)
        comm = zipccl_shim_comm_unknown();
    if (comm == NULL)
        result = zipccl_shim_issue(call);
    else if (__atomic_load_n(&comm->failed, __ATOMIC_ACQUIRE) != ncclSuccess)
        result = zipccl_shim_fault_again(
            comm, (ncclResult_t)__atomic_load_n(&comm->failed, __ATOMIC_RELAXED));
    else if (zipccl_shim_is_p2p(call))
        result = zipccl_shim_group_p2p(comm, call);
    else
        result = submit_collective(comm, call);
    zipccl_shim_comm_put(comm);
    zipccl_shim_thread.inside--;
    return result;
}
