/*
 * gpu_world.h - ranks with a GPU communicator each, and the same ranks on the CPU, for tests
 *
 * Ranks are threads of this process.  Each has an NCCL communicator, a stream, and a handle of a memory transport
 * over the same ranks, so that core's communicator can run the same calls.  Test code.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_TESTS_GPU_WORLD_H
#define ZIPCCL_GPU_TESTS_GPU_WORLD_H

#include "core/tests/race_checked.h"
#include "gpu/gpu_state.h"

#include <pthread.h>
#include <stdatomic.h>

#define MAX_RANKS 8u

struct gpu_world;

struct gpu_rank {
    struct gpu_world *world;
    uint32_t rank;
    ncclComm_t nccl;
    cudaStream_t stream;
    struct zipccl_transport *host;
    struct zipccl_exec *cpu;
    bool ok;          /* of what has been checked so far */
    unsigned notices; /* of gpu communicators, counted by tests */
};

struct gpu_world {
    uint32_t nranks, node_of[MAX_RANKS];
    struct zipccl_topology *topology;
    struct gpu_rank ranks[MAX_RANKS];
    pthread_barrier_t barrier;
    ncclUniqueId id;
    void (*fn)(struct gpu_rank *r, void *context);
    void *context;
};

/* A failure that a test injects, and who has told of it. */
struct gpu_failure {
    const char *what;
    int nth, code;
    atomic_uint told; /* ranks with an error */
};

/* Run 'fn' on three ranks of a node for each of 'failures' [n], its context; true if all stayed ok. */
bool gpu_world_run_failures(void (*fn)(struct gpu_rank *, void *), struct gpu_failure *failures,
                            size_t n);

/* Run 'fn' on nranks ranks, 'per_node' to a node; true if all stayed ok. */
bool gpu_world_run(uint32_t nranks, uint32_t per_node, void (*fn)(struct gpu_rank *, void *),
                   void *context);

/* The same of the rank of one process: 'id' and 'host' from outside. */
void gpu_rank_open(struct gpu_rank *r);
void gpu_rank_close(struct gpu_rank *r);

void gpu_barrier(struct gpu_rank *r);

/* Note that 'what' must hold on this rank; tells where it does not. */
bool gpu_expect_at(struct gpu_rank *r, bool holds, const char *what, const char *file, int line);
#define EXPECT(r, what) gpu_expect_at((r), (what), #what, __FILE__, __LINE__)

/* Options of tests: all ops, any size, nodes of the world. */
void gpu_test_options(const struct gpu_rank *r, struct zipccl_gpu_options *options);

/* core's communicator with the same settings. */
struct zipccl_comm *gpu_host_comm(struct gpu_rank *r, const struct zipccl_gpu_options *options);

/* Device memory that holds 'bytes', and back. */
void *gpu_upload(struct gpu_rank *r, const void *bytes, size_t nbytes);
void gpu_download(struct gpu_rank *r, void *bytes, const void *d, size_t nbytes);

#endif
