/*
 * test_gpu_gate_faults.c - a stream at a gate goes on, and somebody is told, whatever fails
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/gate_check.h"
#include "gpu/tests/test_gpu_gate.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct gpu_case spoiled = {
    .op = ZIPCCL_ALL_GATHER, .dtype = ZIPCCL_BFLOAT16, .count = 20000, .spoiled = 1};

static void give_up(struct gpu_rank *r, struct zipccl_gpu_comm *gpu)
{
    if (gpu != NULL)
        zipccl_gpu_abort(gpu);
    EXPECT(r, ncclCommAbort(r->nccl) == ncclSuccess);
    r->nccl = NULL;
    zipccl_gpu_destroy(gpu);
}

static void fault_options(struct gpu_rank *r, struct zipccl_gpu_options *options)
{
    gpu_test_options(r, options);
    options->strategy = "fixed ring";
    options->gate = ZIPCCL_GATE_ALL;
}

/* Helpers that have come to the large all-gather. */
static atomic_uint ncame;

/* An NCCL of which rank 0 leaves out a large all-gather of raw elements. */
static ncclResult_t leaving_out(const void *send, void *recv, size_t count, ncclDataType_t type,
                                ncclComm_t comm, cudaStream_t stream)
{
    int rank = 0;

    ncclCommUserRank(comm, &rank);
    if (count == 20000 * 2)
        atomic_fetch_add(&ncame, 1);
    if (rank == 0 && count == 20000 * 2)
        return ncclSuccess;
    return ncclAllGather(send, recv, count, type, comm, stream);
}

/* The failure that the helper finds; it may be later than the stream's end. */
static zipccl_status told(struct zipccl_gpu_comm *gpu, struct zipccl_error *error)
{
    zipccl_status status = ZIPCCL_OK;

    for (unsigned i = 0; status == ZIPCCL_OK && i < 20000; i++) {
        sched_yield();
        status = zipccl_gpu_async_error(gpu, error);
    }
    return status;
}

static void *abort_it(void *gpu)
{
    zipccl_gpu_abort(gpu);
    return NULL;
}

/* Rank 0's helper does not come, so streams of others wait, or their helpers within NCCL, which connects late;
 * 'context': a thread aborts them, or the limit. */
static void released(struct gpu_rank *r, void *context)
{
    bool aborts = *(const bool *)context;
    struct emu_options emu;
    struct zipccl_nccl_api api = *zipccl_nccl_linked();
    struct zipccl_error error = {""};
    struct zipccl_gpu_options options;
    struct zipccl_gpu_comm *gpu;
    struct zipccl_comm *host;
    struct gpu_buffers b;
    pthread_t thread;

    api.AllGather = leaving_out;
    fault_options(r, &options);
    options.nccl = &api;
    gpu = gate_comm(r, r->nccl, &options);
    host = gpu_host_comm(r, &options);
    gpu_buffers_open(r, &spoiled, &b);
    gpu_case_host(r, &spoiled, &b, host);
    if (!aborts)
        gpu->exec->gate->limit_s = 0.05;
    EXPECT(r, gpu_case_call(r, &spoiled, &b, gpu) == ZIPCCL_OK);
    if (aborts) {
        emu_get_options(&emu);
        while (atomic_load(&ncame) < r->world->nranks ||
               (!emu.lazy && zipccl_gpu_gate_resends(gpu) == 0))
            sched_yield();
        EXPECT(r, r->rank == 0 || cudaStreamQuery(r->stream) == cudaErrorNotReady);
        gpu_barrier(r); /* nobody is let go before all have looked */
        EXPECT(r, pthread_create(&thread, NULL, abort_it, gpu) == 0);
        EXPECT(r, cudaStreamSynchronize(r->stream) == cudaSuccess);
        pthread_join(thread, NULL);
        EXPECT(r, zipccl_gpu_async_error(gpu, NULL) == ZIPCCL_ERR_ABORTED);
    } else {
        EXPECT(r, cudaStreamSynchronize(r->stream) == cudaSuccess);
        if (r->rank > 0) {
            /* Its own limit, or NCCL's error after the other's. */
            EXPECT(r, told(gpu, &error) == ZIPCCL_ERR_IO);
            if (!EXPECT(r, strstr(error.text, "raw resend: ") != NULL))
                fprintf(stderr, "found \"%s\"\n", error.text);
            EXPECT(r, gpu_case_call(r, &spoiled, &b, gpu) != ZIPCCL_OK);
        }
    }
    gpu_barrier(r);
    give_up(r, gpu);
    gpu_buffers_close(r, &b);
    zipccl_comm_destroy(host);
}

/* The same, but the communicator ends without an abort: nobody sends again then, so the stream goes on. */
static void ended(struct gpu_rank *r, void *context)
{
    struct zipccl_nccl_api api = *zipccl_nccl_linked();
    struct zipccl_gpu_options options;
    struct zipccl_gpu_comm *gpu;
    struct zipccl_comm *host;
    struct gpu_buffers b;

    (void)context;
    api.AllGather = leaving_out;
    fault_options(r, &options);
    options.nccl = &api;
    gpu = gate_comm(r, r->nccl, &options);
    host = gpu_host_comm(r, &options);
    gpu_buffers_open(r, &spoiled, &b);
    gpu_case_host(r, &spoiled, &b, host);
    EXPECT(r, gpu_case_call(r, &spoiled, &b, gpu) == ZIPCCL_OK);
    EXPECT(r, r->rank > 0 || cudaStreamSynchronize(r->stream) == cudaSuccess);
    gpu_barrier(r);
    gpu->transport->limit_s = 0.05;
    zipccl_gpu_destroy(gpu);
    EXPECT(r, cudaStreamSynchronize(r->stream) == cudaSuccess);
    gpu_barrier(r);
    gpu_buffers_close(r, &b);
    zipccl_comm_destroy(host);
}

/* A call of the libraries below fails on rank 0, in a call or in the helper. */
static void injected(struct gpu_rank *r, void *context)
{
    struct gpu_failure *f = context;
    struct emu_options before, emu;
    struct zipccl_gpu_options options;
    struct zipccl_gpu_comm *gpu;
    struct zipccl_comm *host;
    struct gpu_buffers b;
    zipccl_status status = ZIPCCL_OK;

    fault_options(r, &options);
    options.strategy = "fixed direct";
    gpu = gate_comm(r, r->nccl, &options);
    host = gpu_host_comm(r, &options);
    gpu_buffers_open(r, &spoiled, &b);
    gpu_case_host(r, &spoiled, &b, host);
    gpu_barrier(r);
    if (r->rank == 0) {
        emu_get_options(&before);
        emu = before;
        /* A rank that failed does not come.  Not earlier: communicators take longer on a loaded machine. */
        emu.peer_ms = 300;
        emu_set_options(&emu);
        emu_fail(f->what, f->nth, f->code);
    }
    gpu_barrier(r);
    for (unsigned i = 0; status == ZIPCCL_OK && i < 4; i++)
        status = gpu_case_call(r, &spoiled, &b, gpu);
    cudaStreamSynchronize(r->stream);
    if (status == ZIPCCL_OK)
        status = told(gpu, NULL);
    if (status != ZIPCCL_OK)
        atomic_fetch_add(&f->told, 1);
    gpu_barrier(r);
    if (!EXPECT(r, atomic_load(&f->told) > 0))
        fprintf(stderr, "%s, call %d: no error\n", f->what, f->nth);
    if (r->rank == 0)
        emu_set_options(&before);
    give_up(r, gpu);
    gpu_buffers_close(r, &b);
    zipccl_comm_destroy(host);
}

static bool test_injected(void)
{
    struct gpu_failure failures[] = {
        {"cuStreamWaitValue32", 2, CUDA_ERROR_INVALID_VALUE, 0},
        {"cuStreamWriteValue32", 1, CUDA_ERROR_INVALID_VALUE, 0},
        {"cuStreamWriteValue32", 7, CUDA_ERROR_INVALID_VALUE, 0},
        {"cudaEventRecord", 6, cudaErrorLaunchFailure, 0},
        {"cudaMemcpyAsync", 6, cudaErrorInvalidValue, 0},
        {"cudaLaunchHostFunc", 7, cudaErrorLaunchFailure, 0},
        {"ncclSend", 6, ncclInternalError, 0},
        {"ncclRecv", 9, ncclSystemError, 0},
    };

    return gpu_world_run_failures(injected, failures, sizeof failures / sizeof *failures);
}

/* Rank 1 wants another gate. */
static void setting_differs(struct gpu_rank *r, void *context)
{
    struct zipccl_gpu_options options;
    struct zipccl_gpu_comm *gpu = NULL;
    struct zipccl_error error = {""};

    (void)context;
    fault_options(r, &options);
    if (r->rank == 1)
        options.gate = ZIPCCL_GATE_CAPTURE;
    EXPECT(r, zipccl_gpu_create(r->nccl, &options, &gpu, &error) == ZIPCCL_ERR_MISMATCH);
    EXPECT(r, strstr(error.text, "rank 1 has another gate") != NULL);
    gpu_barrier(r);
}

static void count_notice(void *context, const char *text)
{
    EXPECT((struct gpu_rank *)context, strstr(text, "no gate") != NULL);
    ((struct gpu_rank *)context)->notices++;
}

/* Of pthread_create() in everything that is linked here statically, the doubles' own threads apart. */
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg);

static _Thread_local bool no_thread;

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*fn)(void *),
                          void *arg)
{
    bool fails = no_thread;

    no_thread = false;
    return fails ? EAGAIN : __real_pthread_create(thread, attr, fn, arg);
}

/* One rank's driver lacks the operations, or it can have no thread: no gate on any, and the host waits. */
static void unable(struct gpu_rank *r, void *context)
{
    struct zipccl_gpu_options options;
    struct zipccl_gpu_comm *gpu = NULL;
    struct zipccl_comm *host;
    struct gpu_buffers b;

    fault_options(r, &options);
    options.notice = count_notice;
    options.notice_context = r;
    no_thread = r->rank == 0 && strcmp(context, "pthread_create") == 0;
    if (r->rank == 0 && !no_thread)
        emu_fail(context, 1, cudaErrorNotSupported);
    gpu_barrier(r);
    EXPECT(r, zipccl_gpu_create(r->nccl, &options, &gpu, NULL) == ZIPCCL_OK);
    if (!EXPECT(r, gpu != NULL && !zipccl_gpu_has_gate(gpu) && r->notices == 1 && !no_thread))
        return;
    host = gpu_host_comm(r, &options);
    gpu_buffers_open(r, &spoiled, &b);
    gpu_case_host(r, &spoiled, &b, host);
    EXPECT(r, gpu_case_call(r, &spoiled, &b, gpu) == ZIPCCL_OK);
    EXPECT(r, gpu_case_right(r, &spoiled, &b));
    gpu_buffers_close(r, &b);
    zipccl_comm_destroy(host);
    zipccl_gpu_destroy(gpu);
}

/*
 * Over an NCCL that connects ranks when they first need it: the raw resend is the first large all-gather.  No helper waits
 * for another rank of its own process, which all are here.
 */
static void connected_late(struct gpu_rank *r, void *context)
{
    struct zipccl_gpu_options options;
    struct zipccl_gpu_comm *gpu;
    struct zipccl_comm *host;
    struct gpu_buffers b;

    (void)context;
    fault_options(r, &options);
    gpu = gate_comm(r, r->nccl, &options);
    host = gpu_host_comm(r, &options);
    gpu_buffers_open(r, &spoiled, &b);
    gpu_case_host(r, &spoiled, &b, host);
    EXPECT(r, gpu_case_call(r, &spoiled, &b, gpu) == ZIPCCL_OK);
    EXPECT(r, gpu_case_right(r, &spoiled, &b));
    EXPECT(r, zipccl_gpu_async_error(gpu, NULL) == ZIPCCL_OK);
    EXPECT(r, zipccl_gpu_gate_resends(gpu) == 1);
    gpu_buffers_close(r, &b);
    zipccl_comm_destroy(host);
    zipccl_gpu_destroy(gpu);
}

/* What a machine with one GPU runs. */
static void one_rank(struct gpu_rank *r, void *context)
{
    struct zipccl_gate_check check = {0};
    struct zipccl_error error = {""};

    (void)context;
    if (!EXPECT(r, zipccl_gate_check(r->nccl, zipccl_nccl_linked(), 50000, &check, &error) ==
                       ZIPCCL_OK))
        fprintf(stderr, "%s\n", error.text);
    EXPECT(r, check.able && check.passes && check.resends && check.replays && check.aborts);
    EXPECT(r, check.pass_us > 0 && check.resend_us > 0);
}

bool gate_faults(void)
{
    char driver[] = "cudaGetDriverEntryPointByVersion", word[] = "cuStreamWaitValue32",
         thread[] = "pthread_create";
    struct emu_options options;
    bool by_abort = true, by_limit = false, ok;

    ok = gpu_world_run(3, 3, setting_differs, NULL);
    /* A stream that was let go reads what a resend may still write: its results are void, but it races. */
    ok = (RACE_CHECKED || gpu_world_run(3, 3, released, &by_abort)) && ok;
    ok = (RACE_CHECKED || gpu_world_run(3, 3, released, &by_limit)) && ok;
    ok = (RACE_CHECKED || gpu_world_run(3, 3, ended, NULL)) && ok;
    ok = gpu_world_run(3, 3, unable, driver) && ok;
    ok = gpu_world_run(3, 3, unable, word) && ok;
    ok = gpu_world_run(3, 3, unable, thread) && ok;
    emu_get_options(&options);
    options.lazy = 1;
    emu_set_options(&options);
    ok = gpu_world_run(3, 3, connected_late, NULL) && ok;
    atomic_store(&ncame, 0);
    ok = (RACE_CHECKED || gpu_world_run(3, 3, released, &by_abort)) && ok;
    options.lazy = 0;
    emu_set_options(&options);
    ok = gpu_world_run(1, 1, one_rank, NULL) && ok;
    return test_injected() && ok;
}
