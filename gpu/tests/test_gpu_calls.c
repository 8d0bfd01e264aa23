/*
 * test_gpu_calls.c - what calls of the GPU back end do besides running a plan
 *
 * Reasons for plain NCCL, capture, groups of sends and receives, several communicators, what is learnt.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/codec_data.h"
#include "gpu/gpu_state.h"
#include "gpu/tests/gpu_calls_run.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct zipccl_gpu_comm *open_comm(struct gpu_rank *r, const struct zipccl_gpu_options *o)
{
    struct zipccl_gpu_comm *gpu = NULL;
    struct zipccl_error error = {""};

    if (!EXPECT(r, zipccl_gpu_create(r->nccl, o, &gpu, &error) == ZIPCCL_OK))
        fprintf(stderr, "%s\n", error.text);
    return gpu;
}

/* The case on both, once. */
static void run_case(struct gpu_rank *r, const struct gpu_case *c, struct zipccl_gpu_comm *gpu,
                     struct zipccl_comm *host)
{
    struct gpu_buffers b;

    gpu_buffers_open(r, c, &b);
    gpu_case_host(r, c, &b, host);
    if (!EXPECT(r, gpu_case_call(r, c, &b, gpu) == ZIPCCL_OK))
        fprintf(stderr, "%s\n", zipccl_gpu_error(gpu));
    EXPECT(r, gpu_case_right(r, c, &b));
    gpu_buffers_close(r, &b);
}

static uint64_t calls_of(const struct zipccl_gpu_comm *gpu, enum zipccl_op op,
                         enum zipccl_gpu_reason reason)
{
    struct zipccl_gpu_op_stats stats;

    zipccl_gpu_get_stats(gpu, op, &stats);
    return stats.reasons[reason];
}

static void reasons(struct gpu_rank *r, void *context)
{
    static const struct {
        struct gpu_case c;
        enum zipccl_gpu_reason reason;
    } cases[] = {
        {{.op = ZIPCCL_ALL_GATHER, .dtype = ZIPCCL_BFLOAT16, .count = 40000},
         ZIPCCL_GPU_COMPRESSED},
        {{.op = ZIPCCL_ALL_GATHER, .dtype = ZIPCCL_BFLOAT16, .count = 100}, ZIPCCL_GPU_SMALL},
        {{.op = ZIPCCL_ALL_GATHER, .dtype = ZIPCCL_INT32, .count = 40000}, ZIPCCL_GPU_TYPE},
        {{.op = ZIPCCL_BROADCAST, .dtype = ZIPCCL_BFLOAT16, .count = 40000}, ZIPCCL_GPU_OP_OFF},
        {{.op = ZIPCCL_ALL_REDUCE, .dtype = ZIPCCL_BFLOAT16, .redop = ZIPCCL_MAX, .count = 40000},
         ZIPCCL_GPU_REDOP},
        {{.op = ZIPCCL_ALLTOALL, .dtype = ZIPCCL_FLOAT8_E4M3, .count = 40000},
         ZIPCCL_GPU_COMPRESSED},
    };
    struct zipccl_gpu_options options;
    struct zipccl_gpu_comm *gpu;
    struct zipccl_comm *host;

    (void)context;
    gpu_test_options(r, &options);
    options.ops &= ~ZIPCCL_GPU_OP(ZIPCCL_BROADCAST);
    options.min_bytes = 4096;
    gpu = open_comm(r, &options);
    host = gpu_host_comm(r, &options);
    for (unsigned i = 0; r->ok && i < sizeof cases / sizeof *cases; i++) {
        uint64_t before = calls_of(gpu, cases[i].c.op, cases[i].reason);

        run_case(r, &cases[i].c, gpu, host);
        EXPECT(r, calls_of(gpu, cases[i].c.op, cases[i].reason) == before + 1);
        EXPECT(r,
               (zipccl_gpu_last_plan(gpu) != NULL) == (cases[i].reason == ZIPCCL_GPU_COMPRESSED));
    }
    zipccl_gpu_disable(gpu);
    run_case(r, &cases[0].c, gpu, host);
    EXPECT(r, calls_of(gpu, ZIPCCL_ALL_GATHER, ZIPCCL_GPU_DISABLED) == 1);
    zipccl_comm_destroy(host);
    zipccl_gpu_destroy(gpu);
}

/* Capture two calls, replay them twice with other data, and call eagerly in between. */
static void capture(struct gpu_rank *r, void *context)
{
    static const struct gpu_case c = {
        .op = ZIPCCL_ALL_GATHER, .dtype = ZIPCCL_BFLOAT16, .count = 20000};
    struct zipccl_gpu_options options;
    struct zipccl_gpu_comm *gpu;
    struct zipccl_comm *host;
    struct gpu_buffers b;
    cudaGraph_t graph;
    cudaGraphExec_t replay;

    (void)context;
    gpu_test_options(r, &options);
    options.notice = gpu_count_captured;
    options.notice_context = r;
    gpu = open_comm(r, &options);
    host = gpu_host_comm(r, &options);
    run_case(r, &c, gpu, host);
    gpu_buffers_open(r, &c, &b);
    gpu_barrier(r); /* others' copies and allocations would end a capture of the global mode */
    EXPECT(r, cudaStreamBeginCapture(r->stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
    EXPECT(r, gpu_case_call(r, &c, &b, gpu) == ZIPCCL_OK);
    EXPECT(r, gpu_case_call(r, &c, &b, gpu) == ZIPCCL_OK);
    EXPECT(r, cudaStreamEndCapture(r->stream, &graph) == cudaSuccess);
    gpu_barrier(r);
    EXPECT(r, cudaGraphInstantiate(&replay, graph, 0) == cudaSuccess);
    for (unsigned i = 0; r->ok && i < 2; i++) {
        gpu_case_host(r, &c, &b, host);
        EXPECT(r, cudaGraphLaunch(replay, r->stream) == cudaSuccess);
        EXPECT(r, gpu_case_right(r, &c, &b));
        run_case(r, &c, gpu, host);
    }
    EXPECT(r, calls_of(gpu, ZIPCCL_ALL_GATHER, ZIPCCL_GPU_CAPTURED) == 2);
    EXPECT(r, calls_of(gpu, ZIPCCL_ALL_GATHER, ZIPCCL_GPU_COMPRESSED) == 3);
    EXPECT(r, r->notices == 1);
    EXPECT(r, cudaGraphExecDestroy(replay) == cudaSuccess);
    EXPECT(r, cudaGraphDestroy(graph) == cudaSuccess);
    gpu_buffers_close(r, &b);
    zipccl_comm_destroy(host);
    zipccl_gpu_destroy(gpu);
}

/* Classes narrow as on the CPU, at the same calls, and then the wire saves what the codec does. */
static void learning(struct gpu_rank *r, void *context)
{
    static const struct gpu_case c = {
        .op = ZIPCCL_ALL_GATHER, .dtype = ZIPCCL_BFLOAT16, .count = 40000};
    struct zipccl_gpu_op_stats first, last;
    struct zipccl_gpu_options options;
    struct zipccl_comm_class a, b;
    struct zipccl_gpu_comm *gpu;
    struct zipccl_comm *host;

    (void)context;
    gpu_test_options(r, &options);
    options.strategy = "fixed ring";
    gpu = open_comm(r, &options);
    host = gpu_host_comm(r, &options);
    for (unsigned i = 0; r->ok && i < 2 * ZIPCCL_CLASS_PERIOD + 1; i++) {
        run_case(r, &c, gpu, host);
        EXPECT(r, zipccl_comm_get_class(zipccl_gpu_core(gpu), 0, &a) &&
                      zipccl_comm_get_class(host, 0, &b) && a.now == b.now && a.calls == b.calls);
    }
    EXPECT(r, a.now >= ZIPCCL_CLASS_SETTLED);
    zipccl_gpu_get_stats(gpu, ZIPCCL_ALL_GATHER, &first);
    run_case(r, &c, gpu, host);
    zipccl_gpu_get_stats(gpu, ZIPCCL_ALL_GATHER, &last);
    EXPECT(r, (double)(last.coded_raw_bytes - first.coded_raw_bytes) >
                  1.47 * (double)(last.coded_wire_bytes - first.coded_wire_bytes));
    EXPECT(r, zipccl_gpu_ratio(&last) > 1.2 && zipccl_gpu_ratio(&last) < 1.5);
    zipccl_comm_destroy(host);
    zipccl_gpu_destroy(gpu);
}

/* Two communicators, in two streams each, by turns. */
static void several(struct gpu_rank *r, void *context)
{
    static const struct gpu_case cases[] = {
        {.op = ZIPCCL_ALL_GATHER, .dtype = ZIPCCL_BFLOAT16, .count = 50000},
        {.op = ZIPCCL_ALL_REDUCE, .dtype = ZIPCCL_FLOAT32, .count = 30001},
        {.op = ZIPCCL_ALLTOALL, .dtype = ZIPCCL_FLOAT16, .count = 9000, .spoiled = 4}};
    struct zipccl_gpu_comm *gpu[2];
    struct zipccl_gpu_options options;
    cudaStream_t streams[2] = {r->stream, NULL};
    struct zipccl_comm *host;
    ncclComm_t other;

    (void)context;
    gpu_test_options(r, &options);
    options.strategy = "fixed direct";
    options.nchunks = 2;
    EXPECT(r, cudaStreamCreateWithFlags(&streams[1], cudaStreamNonBlocking) == cudaSuccess);
    EXPECT(r, ncclCommSplit(r->nccl, 0, (int)r->rank, &other, NULL) == ncclSuccess);
    host = gpu_host_comm(r, &options);
    gpu[0] = open_comm(r, &options);
    EXPECT(r, zipccl_gpu_create(other, &options, &gpu[1], NULL) == ZIPCCL_OK);
    for (unsigned i = 0; r->ok && i < 12; i++) {
        r->stream = streams[i / 2 % 2];
        run_case(r, &cases[i % 3], gpu[i % 2], host);
    }
    r->stream = streams[0];
    zipccl_gpu_destroy(gpu[0]);
    zipccl_gpu_destroy(gpu[1]);
    zipccl_comm_destroy(host);
    EXPECT(r, ncclCommDestroy(other) == ncclSuccess);
    EXPECT(r, cudaStreamDestroy(streams[1]) == cudaSuccess);
}

/* One handle, two streams: cudaStreamPerThread of another thread than the last call's. */
struct other_thread {
    struct zipccl_gpu_comm *gpu;
    uint32_t device;
    bool entered, waits;
    atomic_bool go_on; /* what the first thread's stream waits for */
};

static void hold(void *arg)
{
    while (!atomic_load(&((struct other_thread *)arg)->go_on))
        sched_yield();
}

static void *enter_again(void *arg)
{
    struct other_thread *o = arg;

    o->entered = cudaSetDevice((int)o->device) == cudaSuccess &&
                 zipccl_exec_cuda_enter(o->gpu->exec, cudaStreamPerThread) == ZIPCCL_OK;
    o->waits = cudaStreamQuery(cudaStreamPerThread) == cudaErrorNotReady;
    atomic_store(&o->go_on, true);
    o->entered = o->entered && cudaStreamSynchronize(cudaStreamPerThread) == cudaSuccess;
    return NULL;
}

static void per_thread(struct gpu_rank *r, void *context)
{
    static const struct gpu_case c = {
        .op = ZIPCCL_ALL_GATHER, .dtype = ZIPCCL_BFLOAT16, .count = 20000};
    struct other_thread other = {.device = r->rank};
    struct zipccl_gpu_options options;
    cudaStream_t own = r->stream;
    struct zipccl_comm *host;
    struct gpu_buffers b;
    pthread_t thread;

    (void)context;
    gpu_test_options(r, &options);
    options.strategy = "raw direct"; /* calls return before their work has ended */
    other.gpu = open_comm(r, &options);
    host = gpu_host_comm(r, &options);
    r->stream = cudaStreamPerThread;
    run_case(r, &c, other.gpu, host); /* a first call makes what it needs */
    gpu_buffers_open(r, &c, &b);
    gpu_case_host(r, &c, &b, host);
    EXPECT(r, cudaLaunchHostFunc(r->stream, hold, &other) == cudaSuccess);
    EXPECT(r, gpu_case_call(r, &c, &b, other.gpu) == ZIPCCL_OK);
    if (!EXPECT(r, pthread_create(&thread, NULL, enter_again, &other) == 0))
        atomic_store(&other.go_on, true);
    else
        pthread_join(thread, NULL);
    EXPECT(r, other.entered);
    EXPECT(r, other.waits);
    EXPECT(r, gpu_case_right(r, &c, &b));
    gpu_buffers_close(r, &b);
    r->stream = own;
    zipccl_comm_destroy(host);
    zipccl_gpu_destroy(other.gpu);
}

/* Staging from the caller, no more than it, and all chunks fit. */
static void staging(struct gpu_rank *r, void *context)
{
    static const struct gpu_case c = {
        .op = ZIPCCL_ALLTOALL, .dtype = ZIPCCL_BFLOAT16, .count = 100000, .spoiled = 1};
    struct zipccl_gpu_options options;
    struct zipccl_gpu_comm *gpu = NULL;
    struct zipccl_error error = {""};
    struct zipccl_comm *host;

    (void)context;
    gpu_test_options(r, &options);
    options.strategy = "fixed direct";
    options.max_staging_bytes = 1 << 20;
    EXPECT(r, cudaMalloc(&options.staging, 1 << 20) == cudaSuccess);
    options.staging_bytes = (1 << 20) - 1;
    EXPECT(r, zipccl_gpu_create(r->nccl, &options, &gpu, &error) == ZIPCCL_ERR_ARG);
    EXPECT(r, strstr(error.text, "staging") != NULL);
    options.staging_bytes = 1 << 20;
    gpu = open_comm(r, &options);
    host = gpu_host_comm(r, &options);
    run_case(r, &c, gpu, host);
    EXPECT(r, zipccl_gpu_last_plan(gpu) != NULL && zipccl_gpu_last_plan(gpu)->nchunks > 1);
    for (unsigned i = 0; i < ZIPCCL_CUDA_ARENAS; i++)
        run_case(r, &c, gpu, host);
    EXPECT(r, zipccl_gpu_device_bytes(gpu) < (2 << 20));
    zipccl_gpu_destroy(gpu);
    zipccl_comm_destroy(host);
    EXPECT(r, cudaFree(options.staging) == cudaSuccess);
}

int main(void)
{
    bool ok = gpu_world_run(3, 3, reasons, NULL);

    ok = gpu_world_run(4, 2, capture, NULL) && ok;
    ok = (RACE_CHECKED || gpu_world_run(4, 2, learning, NULL)) && ok;
    ok = gpu_world_run(4, 2, several, NULL) && ok;
    ok = gpu_world_run(2, 2, per_thread, NULL) && ok;
    ok = gpu_world_run(4, 4, staging, NULL) && ok;
    return ok ? 0 : 1;
}
