/*
 * app_rare.c - the test program's scenario of what jobs seldom call
 *
 * A communicator of several unique ids, one shrunk by its last rank, a group that is only simulated, a
 * captured stream, a registered window: data must be right, whether compressed or not.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/preload/tests/app.h"

/* all_gather of N elements on 'comm', whose rank r is rank r of the world. */
static void gather(struct app *app, ncclComm_t comm, int nranks, int tag, const char *what)
{
    uint16_t *send = filled(app->rank, tag, N), *recv = empty((size_t)nranks * N);

    CHECK_NCCL(ncclAllGather(send, recv, N, ncclBfloat16, comm, app->stream));
    for (int r = 0; r < nranks; r++)
        expect(app, recv + (size_t)r * N, r, tag, N, what);
    CHECK_CUDA(cudaFree(send));
    CHECK_CUDA(cudaFree(recv));
}

/* 1 compressed call a rank. */
static void scalable(struct app *app)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm;

    CHECK_NCCL(
        ncclCommInitRankScalable(&comm, app->nranks, app->rank, NIDS, app_more_ids, &config));
    gather(app, comm, app->nranks, 1, "all_gather of several ids");
    CHECK_NCCL(ncclCommDestroy(comm));
}

/* 1 compressed call a rank but the last. */
static void shrunk(struct app *app)
{
    int last = app->nranks - 1, count = 0;
    ncclComm_t comm;

    if (app->rank == last)
        return; /* who is left out does not call */
    CHECK_NCCL(ncclCommShrink(app->comm, &last, 1, &comm, NULL, NCCL_SHRINK_DEFAULT));
    CHECK_NCCL(ncclCommCount(comm, &count));
    if (count != last)
        exit(1);
    gather(app, comm, count, 2, "all_gather of a shrunk communicator");
    CHECK_NCCL(ncclCommDestroy(comm));
}

/* Nothing is moved, and the next group starts afresh; 1 compressed call a rank. */
static void simulated(struct app *app)
{
    ncclSimInfo_t info = NCCL_SIM_INFO_INITIALIZER;
    uint16_t *send = filled(app->rank, 3, N), *recv = empty((size_t)app->nranks * N);
    uint16_t first = 0;
    ncclResult_t said;

    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclAllGather(send, recv, N, ncclBfloat16, app->comm, app->stream));
    /* NCCL's double ends the group and says that it has no times to tell. */
    said = ncclGroupSimulateEnd(&info);
    if (said != ncclSuccess && said != ncclInvalidUsage)
        exit(1);
    CHECK_CUDA(cudaStreamSynchronize(app->stream));
    CHECK_CUDA(cudaMemcpy(&first, recv, sizeof first, cudaMemcpyDeviceToHost));
    if (first != 0xffff)
        __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
    CHECK_CUDA(cudaFree(send));
    CHECK_CUDA(cudaFree(recv));
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclGroupEnd());
    gather(app, app->comm, app->nranks, 4, "all_gather after a simulated group");
}

/* 1 plain call a rank, run twice. */
static void captured(struct app *app)
{
    uint16_t *send = filled(app->rank, 5, N), *recv = empty((size_t)app->nranks * N);
    cudaGraphExec_t runnable;
    cudaGraph_t graph;

    CHECK_CUDA(cudaStreamBeginCapture(app->stream, cudaStreamCaptureModeThreadLocal));
    CHECK_NCCL(ncclAllGather(send, recv, N, ncclBfloat16, app->comm, app->stream));
    CHECK_CUDA(cudaStreamEndCapture(app->stream, &graph));
    CHECK_CUDA(cudaGraphInstantiate(&runnable, graph, 0));
    for (int i = 0; i < 2; i++)
        CHECK_CUDA(cudaGraphLaunch(runnable, app->stream));
    for (int r = 0; r < app->nranks; r++)
        expect(app, recv + (size_t)r * N, r, 5, N, "captured all_gather");
    CHECK_CUDA(cudaGraphExecDestroy(runnable));
    CHECK_CUDA(cudaGraphDestroy(graph));
    CHECK_CUDA(cudaFree(send));
    CHECK_CUDA(cudaFree(recv));
}

/* 1 plain call a rank; last, since the communicator stays plain. */
static void windowed(struct app *app)
{
    size_t nbytes = 64 * NCCL_WIN_REQUIRED_ALIGNMENT;
    void *buffer = NULL;
    ncclWindow_t window = NULL;

    CHECK_NCCL(ncclMemAlloc(&buffer, nbytes));
    CHECK_NCCL(ncclCommWindowRegister(app->comm, buffer, nbytes, &window, 0));
    gather(app, app->comm, app->nranks, 6, "all_gather with a window");
    CHECK_NCCL(ncclCommWindowDeregister(app->comm, window));
    CHECK_NCCL(ncclMemFree(buffer));
}

void run_rare(struct app *app)
{
    scalable(app);
    shrunk(app);
    simulated(app);
    captured(app);
    windowed(app);
}
