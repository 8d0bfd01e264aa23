/*
 * app_torch.c - the test program's scenarios that do what PyTorch's ProcessGroupNCCL does
 *
 * Communicators made eagerly from a configuration and split into named groups; a stream for each group, tied to
 * the compute stream by events; memory of ncclMemAlloc that is registered; a watchdog thread that asks for
 * events and asynchronous errors all the time, and aborts all communicators in one group when nothing
 * moves; calls from the autograd thread; coalesced collectives and batched sends and receives.
 * Source: ProcessGroupNCCL.cpp and NCCLUtils.cpp of PyTorch 2.x, read, not run.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "gpu/preload/tests/app.h"

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

/* Works under way at most; the watchdog's polls until a work counts as hanging. */
enum { WORKS = 64, PATIENCE = 100 };

/* A process group. */
struct group {
    ncclComm_t comm;
    cudaStream_t stream;
    int rank, nranks;
};

struct job {
    struct app *app;
    struct group world, tp, dp; /* all ranks, pairs, and every second rank */
    pthread_t watchdog;
    pthread_mutex_t lock; /* of works */
    cudaEvent_t works[WORKS];
    size_t nworks;
    int over, hangs;
    void *segment, *handle; /* registered memory */
};

/* Drop the works that have ended; true if one is under way. */
static bool look_at_works(struct job *job)
{
    bool under_way;

    pthread_mutex_lock(&job->lock);
    for (size_t i = 0; i < job->nworks;) {
        cudaError_t state = cudaEventQuery(job->works[i]);

        if (state == cudaErrorNotReady) {
            i++;
            continue;
        }
        CHECK_CUDA(cudaEventDestroy(job->works[i]));
        job->works[i] = job->works[--job->nworks];
    }
    under_way = job->nworks > 0;
    pthread_mutex_unlock(&job->lock);
    return under_way;
}

/* Ranks that have aborted.  Rank 0, for which the others wait, is the last one. */
static int ended;

static void *watch(void *arg)
{
    struct job *job = arg;
    struct group *groups[] = {&job->tp, &job->dp, &job->world}; /* the one that hangs comes last */
    ncclResult_t state;
    int polls = 0;

    CHECK_CUDA(cudaSetDevice(job->app->rank % 8));
    while (!__atomic_load_n(&job->over, __ATOMIC_ACQUIRE)) {
        bool under_way = look_at_works(job);

        for (int i = 0; i < 3; i++) {
            CHECK_NCCL(ncclCommGetAsyncError(groups[i]->comm, &state));
            if (state != ncclSuccess && !__atomic_load_n(&job->hangs, __ATOMIC_ACQUIRE)) {
                fprintf(stderr, "rank %d: %s\n", job->app->rank, ncclGetLastError(NULL));
                __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
            }
        }
        polls = under_way || __atomic_load_n(&job->hangs, __ATOMIC_ACQUIRE) ? polls + 1 : 0;
        if (__atomic_load_n(&job->hangs, __ATOMIC_ACQUIRE) && polls >= PATIENCE &&
            (job->app->rank > 0 ||
             __atomic_load_n(&ended, __ATOMIC_ACQUIRE) == job->app->nranks - 1)) {
            CHECK_NCCL(ncclGroupStart());
            for (int i = 0; i < 3; i++)
                CHECK_NCCL(ncclCommAbort(groups[i]->comm));
            CHECK_NCCL(ncclGroupEnd());
            (void)__atomic_add_fetch(&ended, 1, __ATOMIC_ACQ_REL);
            return NULL;
        }
        (void)usleep(1000);
    }
    return NULL;
}

/* The group's stream waits for the compute stream. */
static void begin(struct job *job, struct group *group)
{
    cudaEvent_t ready;

    CHECK_CUDA(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
    CHECK_CUDA(cudaEventRecord(ready, job->app->stream));
    CHECK_CUDA(cudaStreamWaitEvent(group->stream, ready, 0));
    CHECK_CUDA(cudaEventDestroy(ready));
}

/* The compute stream waits for the group's, and the watchdog watches. */
static void end(struct job *job, struct group *group)
{
    cudaEvent_t done;

    CHECK_CUDA(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
    CHECK_CUDA(cudaEventRecord(done, group->stream));
    CHECK_CUDA(cudaStreamWaitEvent(job->app->stream, done, 0));
    pthread_mutex_lock(&job->lock);
    if (job->nworks == WORKS)
        exit(2);
    job->works[job->nworks++] = done;
    pthread_mutex_unlock(&job->lock);
}

/* The rank in the world of rank 'r' of a group. */
static int pair_rank(const struct job *job, int r)
{
    return job->app->rank / 2 * 2 + r;
}

static void split(struct job *job, struct group *group, const char *name, int color)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;

    config.blocking = 1;
    config.commName = name;
    CHECK_NCCL(ncclCommSplit(job->world.comm, color, job->app->rank, &group->comm, &config));
    CHECK_NCCL(ncclCommCount(group->comm, &group->nranks));
    CHECK_NCCL(ncclCommUserRank(group->comm, &group->rank));
    CHECK_CUDA(cudaStreamCreateWithFlags(&group->stream, cudaStreamNonBlocking));
}

static void start(struct job *job)
{
    struct app *app = job->app;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    size_t nbytes = ((size_t)app->nranks * N * 2 + 4095) / 4096 * 4096;

    config.blocking = 1;
    config.commName = "default_pg";
    CHECK_NCCL(ncclCommInitRankConfig(&job->world.comm, app->nranks, app_more_ids[TORCH_ID],
                                      app->rank, &config));
    job->world.rank = app->rank;
    job->world.nranks = app->nranks;
    CHECK_CUDA(cudaStreamCreateWithFlags(&job->world.stream, cudaStreamNonBlocking));
    split(job, &job->tp, "tp", app->rank / 2);
    split(job, &job->dp, "dp", app->rank % 2);
    CHECK_NCCL(ncclMemAlloc(&job->segment, nbytes));
    CHECK_NCCL(ncclCommRegister(job->world.comm, job->segment, nbytes, &job->handle));
    if (pthread_mutex_init(&job->lock, NULL) != 0 ||
        pthread_create(&job->watchdog, NULL, watch, job) != 0)
        exit(2);
}

/* In place into registered memory, as FSDP gathers its parameters. */
static void gather(struct job *job)
{
    struct app *app = job->app;
    uint16_t *own = filled(app->rank, 1, N), *all = job->segment;

    CHECK_CUDA(cudaMemcpyAsync(all + (size_t)app->rank * N, own, N * 2, cudaMemcpyDeviceToDevice,
                               app->stream));
    begin(job, &job->world);
    CHECK_NCCL(ncclAllGather(all + (size_t)app->rank * N, all, N, ncclBfloat16, job->world.comm,
                             job->world.stream));
    end(job, &job->world);
    for (int r = 0; r < app->nranks; r++)
        expect(app, all + (size_t)r * N, r, 1, N, "torch: all_gather in place");
    CHECK_CUDA(cudaFree(own));
}

/* reduce_scatter as FSDP and DDP with PREMUL_SUM have it, and a bucket's all_reduce; from the autograd thread. */
static void *backward(void *arg)
{
    struct job *job = arg;
    struct app *app = job->app;
    size_t each = N / (size_t)app->nranks;
    uint16_t *grad, *part, half = 0x3f00;
    ncclRedOp_t scaled;

    CHECK_CUDA(cudaSetDevice(app->rank % 8));
    grad = filled(app->rank, 2, N);
    part = empty(N);
    begin(job, &job->world);
    CHECK_NCCL(ncclReduceScatter(grad, part, each, ncclBfloat16, ncclAvg, job->world.comm,
                                 job->world.stream));
    end(job, &job->world);
    expect_sum(app, part, 2, (size_t)app->rank * each, each, app->nranks, "torch: reduce_scatter");
    CHECK_NCCL(ncclRedOpCreatePreMulSum(&scaled, &half, ncclBfloat16, ncclScalarHostImmediate,
                                        job->world.comm));
    begin(job, &job->world);
    CHECK_NCCL(ncclReduceScatter(grad, part, each, ncclBfloat16, scaled, job->world.comm,
                                 job->world.stream));
    CHECK_NCCL(ncclRedOpDestroy(scaled, job->world.comm));
    CHECK_NCCL(
        ncclAllReduce(grad, grad, N, ncclBfloat16, ncclSum, job->world.comm, job->world.stream));
    end(job, &job->world);
    expect_sum(app, part, 2, (size_t)app->rank * each, each, 2, "torch: PREMUL_SUM");
    expect_sum(app, grad, 2, 0, N, 1, "torch: all_reduce");
    CHECK_CUDA(cudaFree(grad));
    CHECK_CUDA(cudaFree(part));
    return NULL;
}

/* A coalescing manager over one group, and a group over two communicators with streams of their own. */
static void coalesced(struct job *job)
{
    enum { CALLS = 3 };
    struct app *app = job->app;
    uint16_t *send[CALLS], *recv[CALLS];

    for (int i = 0; i < CALLS; i++) {
        send[i] = filled(app->rank, 10 + i, N);
        recv[i] = empty((size_t)app->nranks * N);
    }
    begin(job, &job->tp);
    begin(job, &job->dp);
    CHECK_NCCL(ncclGroupStart());
    for (int i = 0; i < CALLS; i++) {
        struct group *group = i == CALLS - 1 ? &job->dp : &job->tp;

        CHECK_NCCL(ncclAllGather(send[i], recv[i], N, ncclBfloat16, group->comm, group->stream));
    }
    CHECK_NCCL(ncclGroupEnd());
    end(job, &job->tp);
    end(job, &job->dp);
    for (int i = 0; i < CALLS - 1; i++)
        for (int r = 0; r < job->tp.nranks; r++)
            expect(app, recv[i] + (size_t)r * N, pair_rank(job, r), 10 + i, N, "torch: coalesced");
    for (int r = 0; r < job->dp.nranks; r++)
        expect(app, recv[CALLS - 1] + (size_t)r * N, 2 * r + app->rank % 2, 10 + CALLS - 1, N,
               "torch: two communicators");
    for (int i = 0; i < CALLS; i++) {
        CHECK_CUDA(cudaFree(send[i]));
        CHECK_CUDA(cudaFree(recv[i]));
    }
}

/* Pipeline stages: batch_isend_irecv round a ring; isend and irecv of a pair, one after the other. */
static void pipeline(struct job *job)
{
    struct app *app = job->app;
    struct group *world = &job->world, *tp = &job->tp;
    int next = (app->rank + 1) % app->nranks, before = (app->rank + app->nranks - 1) % app->nranks;
    uint16_t *send = filled(app->rank, 20, N), *recv = empty(N);

    begin(job, world);
    CHECK_NCCL(ncclGroupStart());
    CHECK_NCCL(ncclSend(send, N, ncclBfloat16, next, world->comm, world->stream));
    CHECK_NCCL(ncclRecv(recv, N, ncclBfloat16, before, world->comm, world->stream));
    CHECK_NCCL(ncclGroupEnd());
    end(job, world);
    expect(app, recv, before, 20, N, "torch: batch_isend_irecv");
    for (int turn = 0; turn < 2; turn++) {
        begin(job, tp);
        if (tp->rank == turn)
            CHECK_NCCL(ncclSend(send, N, ncclBfloat16, 1 - tp->rank, tp->comm, tp->stream));
        else
            CHECK_NCCL(ncclRecv(recv, N, ncclBfloat16, 1 - tp->rank, tp->comm, tp->stream));
        end(job, tp);
    }
    expect(app, recv, pair_rank(job, 1 - tp->rank), 20, N, "torch: isend and irecv");
    CHECK_CUDA(cudaFree(send));
    CHECK_CUDA(cudaFree(recv));
}

/* What barrier() and the broadcast of a module's buffers are. */
static void small(struct job *job)
{
    struct app *app = job->app;
    float one = 1, sum = 0, *d;

    CHECK_CUDA(cudaMalloc((void **)&d, sizeof one));
    CHECK_CUDA(cudaMemcpy(d, &one, sizeof one, cudaMemcpyHostToDevice));
    begin(job, &job->world);
    CHECK_NCCL(ncclAllReduce(d, d, 1, ncclFloat, ncclSum, job->world.comm, job->world.stream));
    CHECK_NCCL(ncclBroadcast(d, d, 4, ncclUint8, 0, job->world.comm, job->world.stream));
    end(job, &job->world);
    CHECK_CUDA(cudaStreamSynchronize(app->stream));
    CHECK_CUDA(cudaMemcpy(&sum, d, sizeof sum, cudaMemcpyDeviceToHost));
    if (sum != (float)app->nranks)
        __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
    CHECK_CUDA(cudaFree(d));
}

static void step(struct job *job)
{
    pthread_t autograd;

    gather(job);
    coalesced(job);
    pipeline(job);
    if (pthread_create(&autograd, NULL, backward, job) != 0)
        exit(2);
    pthread_join(autograd, NULL);
    small(job);
}

/* The watchdog has ended; 'orderly': no communicator was aborted. */
static void stop(struct job *job, bool orderly)
{
    struct group *groups[] = {&job->dp, &job->tp, &job->world};

    for (int i = 0; i < 3 && orderly; i++) {
        if (i == 2)
            CHECK_NCCL(ncclCommDeregister(job->world.comm, job->handle));
        CHECK_NCCL(ncclCommFinalize(groups[i]->comm));
        CHECK_NCCL(ncclCommDestroy(groups[i]->comm));
    }
    for (int i = 0; i < 3; i++)
        (void)cudaStreamDestroy(groups[i]->stream);
    for (size_t i = 0; i < job->nworks; i++)
        (void)cudaEventDestroy(job->works[i]);
    (void)ncclMemFree(job->segment);
    pthread_mutex_destroy(&job->lock);
}

/* Two training steps and an orderly end. */
void run_torch(struct app *app)
{
    struct job job = {.app = app};

    start(&job);
    for (int i = 0; i < 2; i++)
        step(&job);
    __atomic_store_n(&job.over, 1, __ATOMIC_RELEASE);
    pthread_join(job.watchdog, NULL);
    stop(&job, true);
}

/* After a step rank 0 leaves the others alone in a collective: the watchdogs abort. */
void run_torch_hang(struct app *app)
{
    struct job job = {.app = app};
    uint16_t *send, *recv;

    start(&job);
    step(&job);
    send = filled(app->rank, 30, N);
    recv = empty((size_t)app->nranks * N);
    CHECK_CUDA(cudaStreamSynchronize(app->stream));
    __atomic_store_n(&job.hangs, 1, __ATOMIC_RELEASE);
    /* Whether the call, the stream or neither tells of the abort is the library's choice. */
    if (app->rank != 0)
        (void)ncclAllGather(send, recv, N, ncclBfloat16, job.world.comm, job.world.stream);
    pthread_join(job.watchdog, NULL);
    (void)cudaStreamSynchronize(job.world.stream);
    stop(&job, false);
    CHECK_CUDA(cudaFree(send));
    CHECK_CUDA(cudaFree(recv));
}
