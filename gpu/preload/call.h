/*
 * call.h - one data call: judged, counted, given to the back end or to plain NCCL
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_PRELOAD_CALL_H
#define ZIPCCL_GPU_PRELOAD_CALL_H

#include "gpu/preload/comms.h"

/* The functions of nccl.h that move data. */
enum zipccl_shim_function {
    ZIPCCL_SHIM_FN_ALL_GATHER,
    ZIPCCL_SHIM_FN_ALLTOALL,
    ZIPCCL_SHIM_FN_BROADCAST,
    ZIPCCL_SHIM_FN_BCAST,
    ZIPCCL_SHIM_FN_REDUCE_SCATTER,
    ZIPCCL_SHIM_FN_ALL_REDUCE,
    ZIPCCL_SHIM_FN_REDUCE,
    ZIPCCL_SHIM_FN_GATHER,
    ZIPCCL_SHIM_FN_SCATTER,
    ZIPCCL_SHIM_FN_SEND,
    ZIPCCL_SHIM_FN_RECV
};

struct zipccl_shim_call {
    enum zipccl_shim_function function;
    const void *send;
    void *recv;
    size_t count;
    ncclDataType_t dtype;
    ncclRedOp_t redop;
    int root; /* root, or peer of a send or receive */
    ncclComm_t comm;
    cudaStream_t stream;
};

static inline bool zipccl_shim_is_p2p(const struct zipccl_shim_call *call)
{
    return call->function == ZIPCCL_SHIM_FN_SEND || call->function == ZIPCCL_SHIM_FN_RECV;
}

/* The row of the tables that a call counts in; of a send or receive SENDRECV. */
enum zipccl_shim_op zipccl_shim_op_of(enum zipccl_shim_function function);

/* Why 'call' cannot be compressed on 'comm' now; TAKEN if it can, or OBSERVING if it could. */
enum zipccl_shim_reason zipccl_shim_judge(const struct zipccl_shim_comm *comm,
                                          const struct zipccl_shim_call *call);

/* Count a collective as gone the way of 'reason'. */
void zipccl_shim_count_call(struct zipccl_shim_comm *comm, const struct zipccl_shim_call *call,
                            enum zipccl_shim_reason reason);

/* Call NCCL. */
ncclResult_t zipccl_shim_issue(const struct zipccl_shim_call *call);

/* Call NCCL for a call that was meant for the back end of 'comm', if the communicator is still there. */
ncclResult_t zipccl_shim_issue_late(struct zipccl_shim_comm *comm,
                                    const struct zipccl_shim_call *call);

/* Give a collective to the back end; to NCCL if that has gone meanwhile. */
ncclResult_t zipccl_shim_run(struct zipccl_shim_comm *comm, const struct zipccl_shim_call *call);

/* What entry points do when they do not forward. */
ncclResult_t zipccl_shim_submit(const struct zipccl_shim_call *call);

#endif
