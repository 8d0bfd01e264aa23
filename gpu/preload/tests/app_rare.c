/*
 * app_rare.c - the test program's scenario of what jobs seldom call
 *
 * A communicator of several unique ids, one shrunk by its last rank, a group that is only simulated, a
 * captured stream, memory of ncclMemAlloc, an operator of the user's, communicators that do not block, a
 * registered window: data must be right, whether compressed or not.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "gpu/preload/tests/app.h"

#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

void gather_on(struct app *app, ncclComm_t comm, int nranks, int tag, const char *what)
{
    uint16_t *send = filled(app->rank, tag, N), *recv = empty((size_t)nranks * N);

    if (ncclAllGather(send, recv, N, ncclBfloat16, comm, app->stream) != ncclSuccess) {
        fprintf(stderr, "rank %d: %s: %s\n", app->rank, what, ncclGetLastError(comm));
        exit(1);
    }
    for (int r = 0; r < nranks; r++)
        expect(app, recv + (size_t)r * N, r, tag, N, what);
    CHECK_CUDA(cudaFree(send));
    CHECK_CUDA(cudaFree(recv));
}

/* 1 compressed call a rank.  The configuration is an older program's, which ends before it has a name. */
static void scalable(struct app *app)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclComm_t comm;

    config.size = offsetof(ncclConfig_t, commName);
    config.commName = (const char *)8;
    CHECK_NCCL(ncclCommInitRankScalable(&comm, app->nranks, app->rank, SEVERAL_IDS, app_more_ids,
                                        &config));
    gather_on(app, comm, app->nranks, 1, "all_gather of several ids");
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
    gather_on(app, comm, count, 2, "all_gather of a shrunk communicator");
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
    gather_on(app, app->comm, app->nranks, 4, "all_gather after a simulated group");
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

/* All ranks, which are threads, have come to a place. */
static void meet(const struct app *app, int *there)
{
    (void)__atomic_add_fetch(there, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(there, __ATOMIC_ACQUIRE) < app->nranks)
        (void)usleep(100);
}

struct beside {
    struct app *app;
    ncclComm_t comm;
    cudaStream_t stream;
    uint16_t *send, *recv;
};

static void *make_and_gather(void *arg)
{
    struct beside *b = arg;
    struct app *app = b->app;
    ncclResult_t state;

    CHECK_CUDA(cudaSetDevice(app->rank % 8));
    CHECK_NCCL(ncclCommSplit(app->comm, 0, app->rank, &b->comm, NULL));
    CHECK_NCCL(ncclAllGather(b->send, b->recv, N, ncclBfloat16, b->comm, b->stream));
    /* As a watchdog asks. */
    for (int i = 0; i < 10; i++) {
        CHECK_NCCL(ncclCommGetAsyncError(b->comm, &state));
        CHECK_NCCL(state);
    }
    return NULL;
}

/* A second thread makes a communicator and a call, and asks, while the first captures: 1 compressed call a rank. */
static void beside_capture(struct app *app)
{
    static int before, after;
    struct beside b = {app, NULL, NULL, filled(app->rank, 12, N), empty((size_t)app->nranks * N)};
    pthread_t thread;
    cudaGraph_t graph = NULL;

    CHECK_CUDA(cudaStreamCreateWithFlags(&b.stream, cudaStreamNonBlocking));
    meet(app, &before);
    CHECK_CUDA(cudaStreamBeginCapture(app->stream, cudaStreamCaptureModeGlobal));
    if (pthread_create(&thread, NULL, make_and_gather, &b) != 0)
        exit(2);
    pthread_join(thread, NULL);
    CHECK_CUDA(cudaStreamEndCapture(app->stream, &graph));
    meet(app, &after);
    CHECK_CUDA(cudaGraphDestroy(graph));
    CHECK_CUDA(cudaStreamSynchronize(b.stream));
    for (int r = 0; r < app->nranks; r++)
        expect(app, b.recv + (size_t)r * N, r, 12, N, "all_gather beside a capture");
    CHECK_NCCL(ncclCommDestroy(b.comm));
    CHECK_CUDA(cudaStreamDestroy(b.stream));
    CHECK_CUDA(cudaFree(b.send));
    CHECK_CUDA(cudaFree(b.recv));
}

/* Memory of NCCL's that is registered: 1 compressed call a rank. */
static void registered(struct app *app)
{
    size_t nbytes = (size_t)app->nranks * N * 2;
    uint16_t *own = filled(app->rank, 7, N), *all = NULL;
    void *handle = NULL, *memory = NULL;

    CHECK_NCCL(ncclMemAlloc(&memory, nbytes));
    CHECK_NCCL(ncclCommRegister(app->comm, memory, nbytes, &handle));
    all = memory;
    CHECK_CUDA(cudaMemcpy(all + (size_t)app->rank * N, own, N * 2, cudaMemcpyDeviceToDevice));
    CHECK_NCCL(
        ncclAllGather(all + (size_t)app->rank * N, all, N, ncclBfloat16, app->comm, app->stream));
    for (int r = 0; r < app->nranks; r++)
        expect(app, all + (size_t)r * N, r, 7, N, "all_gather in registered memory");
    CHECK_NCCL(ncclCommDeregister(app->comm, handle));
    CHECK_NCCL(ncclMemFree(memory));
    CHECK_CUDA(cudaFree(own));
}

/* A sum of halves, by an operator with a factor: plain whatever is selected. */
static void scaled(struct app *app)
{
    uint16_t *send = filled(app->rank, 8, N), *recv = empty(N), half = 0x3f00;
    ncclRedOp_t op;

    CHECK_NCCL(
        ncclRedOpCreatePreMulSum(&op, &half, ncclBfloat16, ncclScalarHostImmediate, app->comm));
    CHECK_NCCL(ncclAllReduce(send, recv, N, ncclBfloat16, op, app->comm, app->stream));
    CHECK_NCCL(ncclRedOpDestroy(op, app->comm));
    expect_sum(app, recv, 8, 0, N, 2, "all_reduce with a factor");
    CHECK_CUDA(cudaFree(send));
    CHECK_CUDA(cudaFree(recv));
}

static void wait_for(ncclComm_t comm)
{
    ncclResult_t state;

    do
        CHECK_NCCL(ncclCommGetAsyncError(comm, &state));
    while (state == ncclInProgress);
    CHECK_NCCL(state);
}

/* 2 plain calls a rank, and 1 compressed one, in a group that makes a communicator that does not block. */
static void nonblocking(struct app *app)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    uint16_t *send = filled(app->rank, 9, N), *recv = empty((size_t)app->nranks * N);
    ncclComm_t comm, late;
    ncclResult_t said;

    config.blocking = 0;
    said = ncclCommInitRankConfig(&comm, app->nranks, app_more_ids[NONBLOCKING_ID], app->rank,
                                  &config);
    if (said != ncclSuccess && said != ncclInProgress)
        exit(1);
    wait_for(comm);
    gather_on(app, comm, app->nranks, 10, "all_gather of one that does not block");
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(
        ncclCommInitRankConfig(&late, app->nranks, app_more_ids[LATE_ID], app->rank, &config));
    CHECK_NCCL(ncclAllGather(send, recv, N, ncclBfloat16, app->comm, app->stream));
    said = ncclGroupEnd();
    if (said != ncclSuccess && said != ncclInProgress)
        exit(1);
    for (int r = 0; r < app->nranks; r++)
        expect(app, recv + (size_t)r * N, r, 9, N, "all_gather beside one in progress");
    wait_for(late);
    gather_on(app, late, app->nranks, 11, "all_gather of a late one");
    CHECK_NCCL(ncclCommDestroy(late));
    CHECK_NCCL(ncclCommDestroy(comm));
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
    gather_on(app, app->comm, app->nranks, 6, "all_gather with a window");
    CHECK_NCCL(ncclCommWindowDeregister(app->comm, window));
    CHECK_NCCL(ncclMemFree(buffer));
}

void run_rare(struct app *app)
{
    scalable(app);
    shrunk(app);
    simulated(app);
    captured(app);
    beside_capture(app);
    registered(app);
    scaled(app);
    nonblocking(app);
    windowed(app);
}
