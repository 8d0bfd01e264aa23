/*
 * app_calls.c - the test program's scenarios: every collective, in place and not; control file
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/preload/tests/app.h"

#include <string.h>

static void gather(struct app *app, int tag)
{
    int n = app->nranks;
    uint16_t *send = filled(app->rank, tag, N), *recv = empty((size_t)n * N);

    CHECK_NCCL(ncclAllGather(send, recv, N, ncclBfloat16, app->comm, app->stream));
    for (int r = 0; r < n; r++)
        expect(app, recv + (size_t)r * N, r, tag, N, "all_gather");
    CHECK_CUDA(cudaMemcpy(recv, recv + N, 2, cudaMemcpyDeviceToDevice));
    CHECK_CUDA(cudaMemcpy(recv + (size_t)app->rank * N, send, N * 2, cudaMemcpyDeviceToDevice));
    CHECK_NCCL(
        ncclAllGather(recv + (size_t)app->rank * N, recv, N, ncclBfloat16, app->comm, app->stream));
    for (int r = 0; r < n; r++)
        expect(app, recv + (size_t)r * N, r, tag, N, "all_gather in place");
    CHECK_CUDA(cudaFree(send));
    CHECK_CUDA(cudaFree(recv));
}

static void all_to_all(struct app *app, int tag)
{
    int n = app->nranks;
    uint16_t *send = empty((size_t)n * N), *recv = empty((size_t)n * N), *part;

    for (int p = 0; p < n; p++) {
        part = filled(app->rank, tag + p, N);
        CHECK_CUDA(cudaMemcpy(send + (size_t)p * N, part, N * 2, cudaMemcpyDeviceToDevice));
        CHECK_CUDA(cudaFree(part));
    }
    CHECK_NCCL(ncclAlltoAll(send, recv, N, ncclBfloat16, app->comm, app->stream));
    for (int p = 0; p < n; p++)
        expect(app, recv + (size_t)p * N, p, tag + app->rank, N, "alltoall");
    CHECK_CUDA(cudaFree(send));
    CHECK_CUDA(cudaFree(recv));
}

static void spread(struct app *app, int tag)
{
    int root = app->nranks - 1;
    uint16_t *send = filled(app->rank, tag, N), *recv = empty(N);

    CHECK_NCCL(ncclBroadcast(send, recv, N, ncclBfloat16, root, app->comm, app->stream));
    expect(app, recv, root, tag, N, "broadcast");
    CHECK_NCCL(ncclBcast(send, N, ncclBfloat16, root, app->comm, app->stream));
    expect(app, send, root, tag, N, "bcast in place");
    CHECK_CUDA(cudaFree(send));
    CHECK_CUDA(cudaFree(recv));
}

static void reduce(struct app *app, int tag)
{
    size_t n = (size_t)app->nranks, each = N / n;
    uint16_t *send = filled(app->rank, tag, N), *recv = empty(N);

    CHECK_NCCL(ncclAllReduce(send, recv, N, ncclBfloat16, ncclSum, app->comm, app->stream));
    expect_sum(app, recv, tag, 0, N, 1, "all_reduce");
    CHECK_NCCL(ncclReduceScatter(send, recv, each, ncclBfloat16, ncclSum, app->comm, app->stream));
    expect_sum(app, recv, tag, (size_t)app->rank * each, each, 1, "reduce_scatter");
    CHECK_NCCL(ncclReduce(send, recv, N, ncclBfloat16, ncclSum, 0, app->comm, app->stream));
    if (app->rank == 0)
        expect_sum(app, recv, tag, 0, N, 1, "reduce");
    CHECK_NCCL(ncclReduceScatter(send, send + (size_t)app->rank * each, each, ncclBfloat16, ncclSum,
                                 app->comm, app->stream));
    expect_sum(app, send + (size_t)app->rank * each, tag, (size_t)app->rank * each, each, 1,
               "reduce_scatter in place");
    CHECK_CUDA(cudaFree(send));
    CHECK_CUDA(cudaFree(recv));
}

static void rooted(struct app *app, int tag)
{
    int n = app->nranks;
    uint16_t *send = filled(app->rank, tag, (size_t)n * 100), *recv = empty((size_t)n * 100);

    CHECK_NCCL(ncclGather(send, recv, 100, ncclBfloat16, 0, app->comm, app->stream));
    for (int r = 0; r < n && app->rank == 0; r++)
        expect(app, recv + r * 100, r, tag, 100, "gather");
    CHECK_NCCL(ncclScatter(send, recv, 100, ncclBfloat16, 0, app->comm, app->stream));
    if (app->rank == 0)
        expect(app, recv, 0, tag, 100, "scatter");
    CHECK_CUDA(cudaFree(send));
    CHECK_CUDA(cudaFree(recv));
}

/* What is never compressed: integers, other operators, few elements. */
static void plain(struct app *app)
{
    int32_t own = app->rank + 1, *d, sum = 0;

    CHECK_CUDA(cudaMalloc((void **)&d, 4));
    CHECK_CUDA(cudaMemcpy(d, &own, 4, cudaMemcpyHostToDevice));
    CHECK_NCCL(ncclAllReduce(d, d, 1, ncclInt32, ncclMax, app->comm, app->stream));
    CHECK_CUDA(cudaStreamSynchronize(app->stream));
    CHECK_CUDA(cudaMemcpy(&sum, d, 4, cudaMemcpyDeviceToHost));
    if (sum != app->nranks)
        __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
    CHECK_CUDA(cudaFree(d));
}

void run_collectives(struct app *app)
{
    for (int round = 0; round < 2; round++) {
        gather(app, round);
        all_to_all(app, 10 + round);
        spread(app, 30 + round);
        reduce(app, 40 + round);
        rooted(app, 50 + round);
        plain(app);
    }
}

/* Twelve all_gathers; after the fourth the control file says off. */
void run_control(struct app *app)
{
    const char *path = getenv("APP_CONTROL");
    FILE *file;

    for (int i = 0; i < 12; i++) {
        if (i == 4 && app->rank == 0 && path != NULL) {
            file = fopen(path, "w");
            if (file == NULL || fputs("off\n", file) < 0 || fclose(file) != 0)
                exit(2);
        }
        gather(app, i);
    }
}
