/*
 * test_gpu_many.c - communicators of several threads of a rank, whose memory grows at the same time
 *
 * What grows in one must not wait for the exchange of another, whose peer may do the same.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/emu/emu.h"
#include "gpu/tests/gpu_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMS = 3, ROUNDS = 7, FIRST = 1500 };

struct lane {
    struct gpu_rank *r;
    int which;
    ncclComm_t nccl;
    struct zipccl_gpu_comm *gpu;
    cudaStream_t stream;
    uint16_t *send, *recv; /* on the device */
    uint16_t *want, *got;  /* [most * nranks] */
    bool ok;
};

static uint16_t element(int which, uint32_t rank, size_t i)
{
    return (uint16_t)(0x3c00 + (i * 2654435761u >> 20) % 61 + 7 * rank + 31 * (uint32_t)which);
}

static const size_t most = (size_t)FIRST << (ROUNDS - 1);

/* Each round needs twice the memory of the one before. */
static void *run_lane(void *arg)
{
    struct lane *l = arg;
    uint32_t nranks = l->r->world->nranks;

    l->ok = cudaSetDevice((int)l->r->rank) == cudaSuccess;
    for (int k = 0; k < ROUNDS && l->ok; k++) {
        size_t n = (size_t)FIRST << k;

        for (uint32_t p = 0; p < nranks; p++)
            for (size_t i = 0; i < n; i++)
                l->want[p * n + i] = element(l->which, p, i);
        l->ok = zipccl_gpu_all_gather(l->send, l->recv, n, ZIPCCL_BFLOAT16, l->gpu, l->stream) ==
                    ZIPCCL_OK &&
                cudaMemcpyAsync(l->got, l->recv, n * nranks * 2, cudaMemcpyDeviceToHost,
                                l->stream) == cudaSuccess &&
                cudaStreamSynchronize(l->stream) == cudaSuccess &&
                memcmp(l->got, l->want, n * nranks * 2) == 0;
        if (!l->ok)
            fprintf(stderr, "rank %u, communicator %d, round %d: %s\n", l->r->rank, l->which, k,
                    zipccl_gpu_error(l->gpu));
    }
    return NULL;
}

static void open_lane(struct lane *l, const ncclUniqueId *id)
{
    struct gpu_rank *r = l->r;
    uint32_t nranks = r->world->nranks;
    struct zipccl_gpu_options options;
    struct zipccl_error error = {""};

    gpu_test_options(r, &options);
    options.max_staging_bytes = (size_t)64 << 20;
    EXPECT(r, ncclCommInitRank(&l->nccl, (int)nranks, *id, (int)r->rank) == ncclSuccess);
    EXPECT(r, cudaStreamCreateWithFlags(&l->stream, cudaStreamNonBlocking) == cudaSuccess);
    if (!EXPECT(r, zipccl_gpu_create(l->nccl, &options, &l->gpu, &error) == ZIPCCL_OK))
        fprintf(stderr, "%s\n", error.text);
    l->want = malloc(most * nranks * 2);
    l->got = malloc(most * nranks * 2);
    for (size_t i = 0; i < most; i++)
        l->want[i] = element(l->which, r->rank, i);
    l->send = gpu_upload(r, l->want, most * 2);
    EXPECT(r, cudaMalloc((void **)&l->recv, most * nranks * 2) == cudaSuccess);
}

static void close_lane(struct lane *l)
{
    struct gpu_rank *r = l->r;

    zipccl_gpu_destroy(l->gpu);
    EXPECT(r, ncclCommDestroy(l->nccl) == ncclSuccess);
    EXPECT(r, cudaStreamDestroy(l->stream) == cudaSuccess);
    EXPECT(r, cudaFree(l->send) == cudaSuccess && cudaFree(l->recv) == cudaSuccess);
    free(l->want);
    free(l->got);
}

static void grow_together(struct gpu_rank *r, void *context)
{
    const ncclUniqueId *ids = context;
    struct lane lanes[COMMS] = {{0}};
    pthread_t threads[COMMS];

    for (int k = 0; k < COMMS; k++) {
        lanes[k].r = r;
        lanes[k].which = k;
        open_lane(&lanes[k], &ids[k]);
    }
    gpu_barrier(r);
    for (int k = 0; k < COMMS; k++)
        if (pthread_create(&threads[k], NULL, run_lane, &lanes[k]) != 0)
            abort();
    for (int k = 0; k < COMMS; k++) {
        pthread_join(threads[k], NULL);
        EXPECT(r, lanes[k].ok);
    }
    gpu_barrier(r);
    for (int k = 0; k < COMMS; k++)
        close_lane(&lanes[k]);
}

int main(void)
{
    struct emu_options options;
    ncclUniqueId ids[COMMS];
    bool ok = true;

    emu_get_options(&options);
    options.peer_ms = 5000; /* what waits for itself is told, and fails the test */
    options.delay_us = 200;
    for (uint32_t nranks = 2; nranks <= 3; nranks++) {
        options.seed = nranks;
        emu_set_options(&options);
        for (int k = 0; k < COMMS; k++)
            if (ncclGetUniqueId(&ids[k]) != ncclSuccess)
                return 1;
        ok = gpu_world_run(nranks, nranks, grow_together, ids) && ok;
    }
    return ok ? 0 : 1;
}
