/*
 * gpu_calls_run.h - one call on the GPU and the same on the CPU, compared bit by bit
 *
 * Test code.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_TESTS_GPU_CALLS_RUN_H
#define ZIPCCL_GPU_TESTS_GPU_CALLS_RUN_H

#include "gpu/tests/gpu_world.h"

/* A call, and the data of each rank. */
struct gpu_case {
    enum zipccl_op op; /* not SENDRECV */
    enum zipccl_dtype dtype;
    enum zipccl_redop redop;
    size_t count;
    uint32_t root;
    bool in_place;
    uint32_t seed;    /* other data */
    uint32_t spoiled; /* bit r: rank r has random bits, which no fixed message holds */
    size_t spoiled_n; /* so many in front; 0: all that it sends */
};

/* Buffers of a rank, host copies and device. */
struct gpu_buffers {
    size_t send_nbytes, recv_nbytes;
    char *send, *recv, *want; /* on the host; what came, and what must come */
    char *d_send, *d_recv;
    size_t counts[4][MAX_RANKS]; /* uneven: counts and displacements, send and receive */
};

void gpu_buffers_open(struct gpu_rank *r, const struct gpu_case *c, struct gpu_buffers *b);
void gpu_buffers_close(struct gpu_rank *r, struct gpu_buffers *b);

/* Fresh data, the call with core on the CPU; what must come is in b->want. */
void gpu_case_host(struct gpu_rank *r, const struct gpu_case *c, struct gpu_buffers *b,
                   struct zipccl_comm *host);

/* The call on the device, enqueued. */
zipccl_status gpu_case_call(struct gpu_rank *r, const struct gpu_case *c, struct gpu_buffers *b,
                            struct zipccl_gpu_comm *comm);

/* Wait for it; true if every byte is as it must be. */
bool gpu_case_right(struct gpu_rank *r, const struct gpu_case *c, struct gpu_buffers *b);

/* A 'notice' of options, with the rank as its context: counts them, each must be about capture. */
void gpu_count_captured(void *context, const char *text);

#endif
