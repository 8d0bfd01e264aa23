/*
 * app_watch.c - the test program's scenarios: a second thread that asks, or aborts what hangs
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "gpu/preload/tests/app.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct watch {
    struct app *app;
    int done;
};

static void *ask(void *arg)
{
    struct watch *watch = arg;
    ncclResult_t state;

    while (!__atomic_load_n(&watch->done, __ATOMIC_ACQUIRE)) {
        CHECK_NCCL(ncclCommGetAsyncError(watch->app->comm, &state));
        if (state != ncclSuccess || ncclGetLastError(watch->app->comm) == NULL)
            __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
        (void)usleep(50);
    }
    return NULL;
}

/* Calls that grow, so that what the library keeps for them grows too, while another thread asks. */
void run_watched(struct app *app)
{
    struct watch watch = {app, 0};
    pthread_t thread;

    if (pthread_create(&thread, NULL, ask, &watch) != 0)
        exit(2);
    for (int i = 0; i < 8; i++) {
        size_t n = (size_t)N << (i / 2);
        uint16_t *send = filled(app->rank, i, n), *recv = empty((size_t)app->nranks * n);

        CHECK_NCCL(ncclAllGather(send, recv, n, ncclBfloat16, app->comm, app->stream));
        for (int r = 0; r < app->nranks; r++)
            expect(app, recv + (size_t)r * n, r, i, n, "watched all_gather");
        CHECK_CUDA(cudaFree(send));
        CHECK_CUDA(cudaFree(recv));
    }
    __atomic_store_n(&watch.done, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
}

static void *abort_stuck(void *arg)
{
    struct app *app = arg;
    const char *path = getenv("APP_RELEASE");
    struct timespec from, to;
    FILE *file;

    (void)usleep(300000);
    (void)clock_gettime(CLOCK_MONOTONIC, &from);
    if (ncclCommAbort(app->comm) != ncclSuccess)
        __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
    (void)clock_gettime(CLOCK_MONOTONIC, &to);
    if (to.tv_sec - from.tv_sec > 10) {
        fprintf(stderr, "rank %d: ncclCommAbort() took %d s\n", app->rank,
                (int)(to.tv_sec - from.tv_sec));
        __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
    }
    file = path != NULL && app->rank == 1 ? fopen(path, "w") : NULL;
    if (file != NULL)
        (void)fclose(file);
    return NULL;
}

/* Rank 1's call hangs inside the library until its communicator has been aborted (faulty_back_end.c). */
void run_stuck(struct app *app)
{
    uint16_t *send = filled(app->rank, 9, N), *recv = empty((size_t)app->nranks * N);
    pthread_t thread;

    if (pthread_create(&thread, NULL, abort_stuck, app) != 0)
        exit(2);
    if (app->rank == 1)
        (void)ncclAllGather(send, recv, N, ncclBfloat16, app->comm, app->stream);
    pthread_join(thread, NULL);
    CHECK_CUDA(cudaFree(send));
    CHECK_CUDA(cudaFree(recv));
    app->comm = NULL;
}
