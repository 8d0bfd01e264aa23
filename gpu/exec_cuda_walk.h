/*
 * exec_cuda_walk.h - what the files that enqueue a plan share
 *
 * exec_cuda_run.c walks the steps; exec_cuda_late.c has the plans whose messages are decoded before the
 * host has looked at their headers.
 *
 * Private to these two.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_EXEC_CUDA_WALK_H
#define ZIPCCL_GPU_EXEC_CUDA_WALK_H

#include "gpu/exec_cuda.h"

#define ZIPCCL_NUM_LANES 2

/* A chunk of which the host has not looked at anything yet. */
struct zipccl_cuda_late {
    uint16_t encode, resolve, raw, decode; /* its steps */
    /* As its ENCODE left the slot: */
    struct zipccl_slice *slices; /* [nslices], in the exec's room */
    uint32_t *encoded;           /* [nslices] */
    size_t nslices;
    const struct zipccl_gpu_result *coded; /* [nslices] */
    /* As its DECODE found it: */
    size_t rx_stride;
    const struct zipccl_gpu_result *seen; /* headers, in the order of RESOLVE */
};

struct zipccl_cuda_walk {
    struct zipccl_exec_cuda *e;
    struct zipccl_run run;
    struct zipccl_run_state state;
    cudaStream_t stream[ZIPCCL_NUM_LANES];
    uint32_t
        next[ZIPCCL_NUM_LANES]; /* no step before it is still to be enqueued, of the lane or not */
    uint32_t nevents[ZIPCCL_NUM_LANES];
    uint16_t *event_of; /* [nsteps] in the ring of its lane */
    bool *enqueued;     /* [nsteps] */
    bool failed;
    struct zipccl_cuda_late *lates; /* [nchunks]; NULL: headers are looked at as they arrive */
    cudaEvent_t last_coded; /* of the last ENCODE with messages since the last look; or NULL */
    bool looked;            /* at some header */
};

static inline bool zipccl_cuda_two_streams(const struct zipccl_cuda_walk *w)
{
    return w->stream[ZIPCCL_LANE_CODEC] != w->stream[ZIPCCL_LANE_WIRE];
}

/* List the messages that 'step', a RESOLVE, looks at, in its order. */
zipccl_status zipccl_cuda_list_received(struct zipccl_cuda_walk *w, const struct zipccl_step *step);

/* Fill in what the last ENCODE into slot 'number' found, of which 'coded' has arrived on the host. */
zipccl_status zipccl_cuda_settle(struct zipccl_cuda_walk *w, uint8_t number,
                                 const struct zipccl_gpu_result *coded);

/* Start with 'lates', for which the exec then has room, if the plan is one for it. */
zipccl_status zipccl_cuda_late_init(struct zipccl_cuda_walk *w);

/* After the ENCODE 'step': keep what the next user of its slot writes over. */
void zipccl_cuda_late_encoded(struct zipccl_cuda_walk *w, const struct zipccl_step *step);

/* Before the DECODE 'step': enqueue the look at what it decodes. */
zipccl_status zipccl_cuda_late_look(struct zipccl_cuda_walk *w, const struct zipccl_step *step);

/* When all is enqueued: wait once, and have sent again what overflowed. */
zipccl_status zipccl_cuda_late_finish(struct zipccl_cuda_walk *w);

#endif
