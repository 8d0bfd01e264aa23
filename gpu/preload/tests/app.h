/*
 * app.h - an ordinary NCCL program for tests of the preloaded library: ranks, buffers, checks
 *
 * It knows nothing of zipccl and is linked with libnccl.so.2 and libcudart by their real names; which
 * libraries those are, and whether anything stands before them, is the caller's business.  Ranks are
 * threads of one process, or processes that a launcher started (RANK, OMPI_COMM_WORLD_RANK).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_PRELOAD_TESTS_APP_H
#define ZIPCCL_GPU_PRELOAD_TESTS_APP_H

#include "gpu/tests/emu/emu.h"

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK_NCCL(call)                                                                           \
    do {                                                                                           \
        ncclResult_t check_result = (call);                                                        \
        if (check_result != ncclSuccess) {                                                         \
            fprintf(stderr, "%s:%d: %s: %d %s\n", __FILE__, __LINE__, #call, (int)check_result,    \
                    ncclGetErrorString(check_result));                                             \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define CHECK_CUDA(call)                                                                           \
    do {                                                                                           \
        cudaError_t check_error = (call);                                                          \
        if (check_error != cudaSuccess) {                                                          \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,                          \
                    cudaGetErrorString(check_error));                                              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* One rank of a test. */
struct app {
    int rank, nranks;
    ncclComm_t comm;
    cudaStream_t stream;
    const char *scenario;
};

/* Elements of a call; several chunks of the codec and a tail. */
enum { N = 70000 + 3 };

/* bf16 of element 'i' of what 'from' gives for 'tag': near-Gaussian bytes would do as well, but sums of
 * these are exact in any order. */
uint16_t value_of(int from, int tag, size_t i);
double number_of(uint16_t bits);

/* Device memory [n] of bf16: filled with what 'from' gives, or with 0xff. */
uint16_t *filled(int from, int tag, size_t n);
uint16_t *empty(size_t n);

/* Wait for the stream and compare device memory [n] with what 'from' gives; count differences. */
void expect(struct app *app, const uint16_t *d, int from, int tag, size_t n, const char *what);

/* The same with the sum over all ranks' elements from 'first' on. */
void expect_sum(struct app *app, const uint16_t *d, int tag, size_t first, size_t n, int divisor,
                const char *what);

/* What the double of cudart has counted. */
struct emu_stats app_stats(void);

/* Differences found so far in this process. */
extern int wrong;

void run_collectives(struct app *app);
void run_groups(struct app *app);
void run_split(struct app *app);
void run_abort(struct app *app);
void run_control(struct app *app);
void run_watched(struct app *app);
void run_stuck(struct app *app);
void run_steady(struct app *app);
void run_many(struct app *app);
/* These have ranks that are threads: */
void run_rare(struct app *app);
void run_endings(struct app *app);
void run_torch(struct app *app);
void run_torch_hang(struct app *app);

/* all_gather of N elements on 'comm', whose rank r is rank r of the world; checked. */
void gather_on(struct app *app, ncclComm_t comm, int nranks, int tag, const char *what);

/* Unique ids beside the world's; only where ranks are threads.  The first two make one communicator. */
enum { SEVERAL_IDS = 2, NONBLOCKING_ID = SEVERAL_IDS, LATE_ID, TORCH_ID, NIDS };
extern ncclUniqueId app_more_ids[NIDS];

#endif
