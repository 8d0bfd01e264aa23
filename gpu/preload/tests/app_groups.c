/*
 * app_groups.c - the test program's scenarios: groups, several communicators, splits, abort
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "gpu/preload/tests/app.h"

#include <pthread.h>
#include <unistd.h>

/* Elements that 'from' sends to 'to': uneven, some small, some none. */
static size_t pair_count(int from, int to)
{
    static const size_t counts[] = {N, 0, 17, N / 2, 60001};

    return counts[(from * 3 + to * 2) % 5];
}

/* Everyone to everyone with other counts, as grouped sends and receives, oneself included. */
static void uneven(struct app *app, ncclComm_t comm, int tag)
{
    uint16_t *send[16], *recv[16];
    int n = app->nranks, me = app->rank;

    for (int p = 0; p < n; p++) {
        send[p] = filled(me, tag + p, pair_count(me, p));
        recv[p] = empty(pair_count(p, me));
    }
    CHECK_NCCL(ncclGroupStart());
    for (int p = 0; p < n; p++) {
        if (pair_count(me, p) > 0)
            CHECK_NCCL(ncclSend(send[p], pair_count(me, p), ncclBfloat16, p, comm, app->stream));
        if (pair_count(p, me) > 0)
            CHECK_NCCL(ncclRecv(recv[p], pair_count(p, me), ncclBfloat16, p, comm, app->stream));
    }
    CHECK_NCCL(ncclGroupEnd());
    for (int p = 0; p < n; p++) {
        expect(app, recv[p], p, tag + me, pair_count(p, me), "uneven all-to-all");
        CHECK_CUDA(cudaFree(send[p]));
        CHECK_CUDA(cudaFree(recv[p]));
    }
}

/* Coalesced all_gathers and a small all_reduce in nested groups, as PyTorch makes them. */
static void coalesced(struct app *app, ncclComm_t second)
{
    enum { CALLS = 3 };
    uint16_t *send[CALLS], *recv[CALLS], *small = filled(app->rank, 70, 8);

    CHECK_NCCL(ncclGroupStart());
    for (int i = 0; i < CALLS; i++) {
        send[i] = filled(app->rank, 60 + i, N);
        recv[i] = empty((size_t)app->nranks * N);
        CHECK_NCCL(ncclGroupStart());
        CHECK_NCCL(ncclAllGather(send[i], recv[i], N, ncclBfloat16, i == 1 ? second : app->comm,
                                 app->stream));
        CHECK_NCCL(ncclGroupEnd());
    }
    CHECK_NCCL(ncclAllReduce(small, small, 8, ncclBfloat16, ncclSum, app->comm, app->stream));
    CHECK_NCCL(ncclGroupEnd());
    expect_sum(app, small, 70, 0, 8, 1, "small all_reduce in a group");
    for (int i = 0; i < CALLS; i++) {
        for (int r = 0; r < app->nranks; r++)
            expect(app, recv[i] + (size_t)r * N, r, 60 + i, N, "coalesced all_gather");
        CHECK_CUDA(cudaFree(send[i]));
        CHECK_CUDA(cudaFree(recv[i]));
    }
    CHECK_CUDA(cudaFree(small));
}

/* A ring, one end grouped and the other not: both are legal for two ranks. */
static void ring(struct app *app)
{
    int next = (app->rank + 1) % app->nranks, before = (app->rank + app->nranks - 1) % app->nranks;
    uint16_t *send = filled(app->rank, 80, N), *recv = empty(N);

    if (app->rank == 0) {
        CHECK_NCCL(ncclGroupStart());
        CHECK_NCCL(ncclSend(send, N, ncclBfloat16, next, app->comm, app->stream));
        CHECK_NCCL(ncclRecv(recv, N, ncclBfloat16, before, app->comm, app->stream));
        CHECK_NCCL(ncclGroupEnd());
    } else {
        CHECK_NCCL(ncclRecv(recv, N, ncclBfloat16, before, app->comm, app->stream));
        CHECK_NCCL(ncclSend(send, N, ncclBfloat16, next, app->comm, app->stream));
    }
    expect(app, recv, before, 80, N, "ring");
    CHECK_CUDA(cudaFree(send));
    CHECK_CUDA(cudaFree(recv));
}

void run_groups(struct app *app)
{
    ncclComm_t second;

    CHECK_NCCL(ncclCommSplit(app->comm, 0, app->rank, &second, NULL));
    for (int round = 0; round < 2; round++) {
        uneven(app, app->comm, 100 * round);
        coalesced(app, second);
        ring(app);
    }
    uneven(app, second, 300);
    CHECK_NCCL(ncclCommDestroy(second));
}

/* Halves, one rank left out of the second split; then a communicator without its last rank. */
void run_split(struct app *app)
{
    ncclComm_t half, some = NULL;
    struct app child = *app;
    int color = app->rank % 2;
    uint16_t *send = filled(app->rank, 5, N), *recv = empty((size_t)app->nranks * N);

    CHECK_NCCL(ncclCommSplit(app->comm, color, app->rank, &half, NULL));
    CHECK_NCCL(ncclCommCount(half, &child.nranks));
    CHECK_NCCL(ncclAllGather(send, recv, N, ncclBfloat16, half, app->stream));
    for (int r = 0; r < child.nranks; r++)
        expect(app, recv + (size_t)r * N, 2 * r + color, 5, N, "all_gather of a half");
    CHECK_NCCL(
        ncclCommSplit(app->comm, app->rank == 0 ? NCCL_SPLIT_NOCOLOR : 7, -app->rank, &some, NULL));
    if ((some == NULL) != (app->rank == 0))
        __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
    if (some != NULL) {
        CHECK_NCCL(ncclCommCount(some, &child.nranks));
        CHECK_NCCL(ncclAllGather(send, recv, N, ncclBfloat16, some, app->stream));
        for (int r = 0; r < child.nranks; r++)
            expect(app, recv + (size_t)r * N, app->nranks - 1 - r, 5, N, "all_gather of some");
        CHECK_NCCL(ncclCommDestroy(some));
    }
    CHECK_NCCL(ncclCommDestroy(half));
    CHECK_CUDA(cudaFree(send));
    CHECK_CUDA(cudaFree(recv));
}

struct watchdog {
    ncclComm_t comm;
    int device;
};

static void *abort_soon(void *arg)
{
    struct watchdog *dog = arg;

    usleep(200000);
    (void)cudaSetDevice(dog->device);
    if (ncclCommAbort(dog->comm) != ncclSuccess)
        __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
    return NULL;
}

/* Rank 0 stays away from a collective; the others' watchdogs abort what waits for it. */
void run_abort(struct app *app)
{
    struct watchdog dog = {app->comm, app->rank % 8};
    uint16_t *send = filled(app->rank, 9, N), *recv = empty((size_t)app->nranks * N);
    pthread_t thread;

    CHECK_NCCL(ncclAllGather(send, recv, N, ncclBfloat16, app->comm, app->stream));
    CHECK_CUDA(cudaStreamSynchronize(app->stream));
    if (pthread_create(&thread, NULL, abort_soon, &dog) != 0)
        exit(2);
    /* Whether the call, the stream or neither tells of the abort is the library's choice. */
    if (app->rank != 0)
        (void)ncclAllGather(send, recv, N, ncclBfloat16, app->comm, app->stream);
    pthread_join(thread, NULL);
    (void)cudaStreamSynchronize(app->stream);
    app->comm = NULL;
}
