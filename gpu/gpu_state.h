/*
 * gpu_state.h - what a GPU communicator keeps
 *
 * Private to zipccl_gpu.c (creation, failures, statistics), gpu_calls.c (collectives) and gpu_group.c
 * (point-to-point).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_GPU_STATE_H
#define ZIPCCL_GPU_GPU_STATE_H

#include "core/comm_state.h"
#include "gpu/exec_cuda.h"
#include "gpu/zipccl_gpu.h"

struct zipccl_gpu_comm {
    struct zipccl_gpu_options
        options; /* 'strategy' and 'node_of' are the caller's no longer: NULL */
    struct zipccl_transport_nccl *transport;
    struct zipccl_exec_cuda *exec;
    struct zipccl_topology *topology;
    struct zipccl_comm *core;
    struct zipccl_gpu_op_stats stats[ZIPCCL_NUM_OPS]; /* without what is known late */
    const struct zipccl_plan *last;
    struct zipccl_error error;
    atomic_uint inside;                      /* calls */
    enum cudaStreamCaptureMode capture_mode; /* of the calling thread, while a call is inside */
    bool disabled;
    uint32_t noticed; /* bits: enum zipccl_gpu_reason */
    /* Of a group: [nranks] each. */
    size_t *pairs; /* [4 * nranks] counts and displacements */
    uint8_t *done; /* [room_done] ops of the group */
    size_t room_done;
};

/* Around every call.  enter: ZIPCCL_ERR_ABORTED; leave returns 'status', and keeps the transport's text. */
zipccl_status zipccl_gpu_enter(struct zipccl_gpu_comm *comm);
zipccl_status zipccl_gpu_leave(struct zipccl_gpu_comm *comm, zipccl_status status);

/* Why data of 'nbytes' are not compressed, as far as it does not depend on the plan; may look at the stream. */
enum zipccl_gpu_reason zipccl_gpu_reason_of(struct zipccl_gpu_comm *comm, enum zipccl_op op,
                                            enum zipccl_dtype dtype, enum zipccl_redop redop,
                                            size_t nbytes, cudaStream_t stream);

/* Count calls of 'op': plain ones, which handed over 'raw' bytes; ones that ran 'comm->last', 'before' them. */
void zipccl_gpu_count_plain(struct zipccl_gpu_comm *comm, enum zipccl_op op,
                            enum zipccl_gpu_reason reason, uint64_t calls, uint64_t raw);
void zipccl_gpu_count_plan(struct zipccl_gpu_comm *comm, enum zipccl_op op, uint64_t calls,
                           const struct zipccl_comm_stats *before);

/* Tell the user of 'reason' once. */
void zipccl_gpu_notice(struct zipccl_gpu_comm *comm, enum zipccl_gpu_reason reason,
                       const char *text);

/* Let what is enqueued come after the last call; 'op' is what it counts as. */
zipccl_status zipccl_gpu_order(struct zipccl_gpu_comm *comm, enum zipccl_op op, cudaStream_t stream,
                               struct zipccl_comm_stats *before);

/* The messages of an alltoallv or group; 'op' says which. */
zipccl_status zipccl_gpu_pairs(struct zipccl_gpu_comm *comm, enum zipccl_op op,
                               const struct zipccl_gpu_p2p *ops, size_t nops, cudaStream_t stream);

#endif
