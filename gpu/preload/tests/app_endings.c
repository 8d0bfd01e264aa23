/*
 * app_endings.c - the test program's scenarios of what ends badly or early, and of what is made over and over
 *
 * Wrong calls inside of groups, texts of errors, communicators that are finalized, revoked, or aborted for a
 * smaller one; many communicators one after another; memory that must not grow.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/preload/tests/app.h"

#include <string.h>

static void complain(const struct app *app, const char *what)
{
    fprintf(stderr, "rank %d: %s\n", app->rank, what);
    __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
}

/* A root that there is not: whoever notices it says so, at the call or at the group's end. */
static void wrong_in_group(struct app *app)
{
    uint16_t *send = filled(app->rank, 1, N), *recv = empty(N);
    ncclResult_t call, end;
    char text[300];

    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclGroupStart());
    call = ncclBroadcast(send, recv, N, ncclBfloat16, 99, app->comm, app->stream);
    CHECK_NCCL(ncclGroupEnd());
    end = ncclGroupEnd();
    if (end != ncclInvalidArgument || (call != ncclSuccess && call != ncclInvalidArgument))
        complain(app, "a wrong root passed");
    (void)snprintf(text, sizeof text, "%s", ncclGetLastError(app->comm));
    if (strstr(text, "99") == NULL || strstr(ncclGetLastError(NULL), "99") == NULL)
        complain(app, text);
    if (app->rank == 0)
        printf("text of a wrong root: %s\n", text);
    gather_on(app, app->comm, app->nranks, 2, "all_gather after a wrong group");
    CHECK_CUDA(cudaFree(send));
    CHECK_CUDA(cudaFree(recv));
}

/* A wrong call that is never compressed, beside one that waits for the end of the group: neither is done. */
static void plain_wrong_in_group(struct app *app)
{
    uint16_t *send = filled(app->rank, 3, N), *recv = empty((size_t)app->nranks * N), first = 0;
    const char *text;

    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclAllGather(send, recv, N, ncclBfloat16, app->comm, app->stream));
    if (ncclReduce(send, send, 8, ncclBfloat16, ncclSum, 77, app->comm, app->stream) == ncclSuccess)
        complain(app, "a wrong root of a reduce passed");
    if (ncclGroupEnd() != ncclInvalidArgument)
        complain(app, "a group with a wrong root passed");
    CHECK_CUDA(cudaStreamSynchronize(app->stream));
    CHECK_CUDA(cudaMemcpy(&first, recv, sizeof first, cudaMemcpyDeviceToHost));
    if (first != 0xffff)
        complain(app, "a group with a wrong root was done");
    /* NCCL's own text, though another library's came before. */
    text = ncclGetLastError(app->comm);
    if (strstr(text, "77") == NULL || strstr(text, "zipccl:") != NULL)
        complain(app, text);
    gather_on(app, app->comm, app->nranks, 4, "all_gather after a wrong reduce");
    CHECK_CUDA(cudaFree(send));
    CHECK_CUDA(cudaFree(recv));
}

/* 1 compressed call a rank and twin, which all ranks have made when it returns; then it takes no more. */
static ncclComm_t twin(struct app *app, int tag)
{
    uint16_t *word = filled(app->rank, tag, 1);
    ncclComm_t comm;

    CHECK_NCCL(ncclCommSplit(app->comm, 0, app->rank, &comm, NULL));
    gather_on(app, comm, app->nranks, tag, "all_gather of a twin");
    CHECK_NCCL(ncclAllReduce(word, word, 1, ncclBfloat16, ncclSum, app->comm, app->stream));
    CHECK_CUDA(cudaStreamSynchronize(app->stream));
    CHECK_CUDA(cudaFree(word));
    return comm;
}

static void expect_refused(struct app *app, ncclComm_t comm, const char *what)
{
    uint16_t *send = filled(app->rank, 5, N), *recv = empty((size_t)app->nranks * N);

    if (ncclAllGather(send, recv, N, ncclBfloat16, comm, app->stream) == ncclSuccess)
        complain(app, what);
    CHECK_CUDA(cudaFree(send));
    CHECK_CUDA(cudaFree(recv));
}

static void finalized(struct app *app)
{
    ncclComm_t comm = twin(app, 6);

    CHECK_NCCL(ncclCommFinalize(comm));
    expect_refused(app, comm, "a finalized communicator took a call");
    CHECK_NCCL(ncclCommDestroy(comm));
    comm = twin(app, 7);
    CHECK_NCCL(ncclCommRevoke(comm, NCCL_REVOKE_DEFAULT));
    expect_refused(app, comm, "a revoked communicator took a call");
    CHECK_NCCL(ncclCommDestroy(comm));
}

/* A smaller one out of one that is aborted: 1 compressed call a rank but the last. */
static void shrunk(struct app *app)
{
    int last = app->nranks - 1;
    ncclComm_t comm = twin(app, 8), rest;

    if (app->rank != last) {
        CHECK_NCCL(ncclCommShrink(comm, &last, 1, &rest, NULL, NCCL_SHRINK_ABORT));
        gather_on(app, rest, last, 9, "all_gather after an abort");
        CHECK_NCCL(ncclCommDestroy(rest));
    }
    CHECK_NCCL(ncclCommAbort(comm));
}

/* A group that waits while its communicator goes: an error, and no call on what is gone. */
static void gone_in_group(struct app *app)
{
    uint16_t *send = filled(app->rank, 10, N), *recv = empty((size_t)app->nranks * N);
    ncclComm_t comm = twin(app, 11);

    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclAllGather(send, recv, N, ncclBfloat16, comm, app->stream));
    CHECK_NCCL(ncclCommAbort(comm));
    if (ncclGroupEnd() == ncclSuccess)
        complain(app, "a call on an aborted communicator passed");
    CHECK_CUDA(cudaFree(send));
    CHECK_CUDA(cudaFree(recv));
}

void run_endings(struct app *app)
{
    wrong_in_group(app);
    plain_wrong_in_group(app);
    finalized(app);
    shrunk(app);
    if (getenv("APP_DEFERS") != NULL)
        gone_in_group(app);
    gather_on(app, app->comm, app->nranks, 12, "all_gather at last");
}

/* A communicator after another, a call on each. */
void run_many(struct app *app)
{
    for (int i = 0; i < 40; i++) {
        ncclComm_t comm;

        CHECK_NCCL(ncclCommSplit(app->comm, 0, app->rank, &comm, NULL));
        gather_on(app, comm, app->nranks, i, "all_gather of one of many");
        CHECK_NCCL(ncclCommDestroy(comm));
    }
}

/* The same calls again and again: once they have been made nothing is allocated any more. */
void run_steady(struct app *app)
{
    size_t n = (size_t)app->nranks;
    uint16_t *send = filled(app->rank, 1, n * N), *recv = empty(n * N);
    int next = (app->rank + 1) % app->nranks, before = (app->rank + app->nranks - 1) % app->nranks;
    uint64_t warm = 0;

    for (int round = 0; round < 8; round++) {
        if (round == 5)
            warm = app_stats().mallocs;
        CHECK_NCCL(ncclAllGather(send, recv, N, ncclBfloat16, app->comm, app->stream));
        CHECK_NCCL(ncclReduceScatter(send, recv, N, ncclBfloat16, ncclSum, app->comm, app->stream));
        CHECK_NCCL(ncclGroupStart());
        CHECK_NCCL(ncclSend(send, N, ncclBfloat16, next, app->comm, app->stream));
        CHECK_NCCL(ncclRecv(recv, N, ncclBfloat16, before, app->comm, app->stream));
        CHECK_NCCL(ncclGroupEnd());
        /* Nobody is a round behind: what another rank still allocates would be counted here. */
        CHECK_NCCL(ncclAllReduce(recv, recv, 1, ncclBfloat16, ncclMax, app->comm, app->stream));
        CHECK_CUDA(cudaStreamSynchronize(app->stream));
    }
    if (app_stats().mallocs != warm)
        complain(app, "memory was allocated for calls that had been made before");
    CHECK_CUDA(cudaFree(send));
    CHECK_CUDA(cudaFree(recv));
}
