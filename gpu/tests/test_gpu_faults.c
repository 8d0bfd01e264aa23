/*
 * test_gpu_faults.c - what differs, fails or is corrupt becomes an error on every rank, never a hang
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/codec_data.h"
#include "gpu/tests/emu/emu.h"
#include "gpu/tests/gpu_calls_run.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct gpu_case gather = {
    .op = ZIPCCL_ALL_GATHER, .dtype = ZIPCCL_BFLOAT16, .count = 40000};

/* A rank that saw a failure ends NCCL's part, as a training job's watchdog does. */
static void give_up(struct gpu_rank *r, struct zipccl_gpu_comm *gpu)
{
    if (gpu != NULL)
        zipccl_gpu_abort(gpu);
    EXPECT(r, ncclCommAbort(r->nccl) == ncclSuccess);
    r->nccl = NULL;
    zipccl_gpu_destroy(gpu);
}

/* Settings that differ on rank 1, and what all ranks are told. */
struct difference {
    size_t min_bytes, staging_bytes;
    uint32_t ops, nchunks;
    const char *text, *own_text; /* of the others; of rank 1 if that knows better */
};

static void settings(struct gpu_rank *r, void *context)
{
    const struct difference *d = context;
    struct zipccl_gpu_options options;
    struct zipccl_gpu_comm *gpu = NULL;
    struct zipccl_error error = {""};
    const char *want = r->rank == 1 && d->own_text != NULL ? d->own_text : d->text;

    gpu_test_options(r, &options);
    options.strategy = "fixed direct";
    if (r->rank == 1) {
        options.min_bytes += d->min_bytes;
        options.ops ^= d->ops;
        options.nchunks += d->nchunks;
        if (d->staging_bytes > 0) {
            options.staging = &options; /* not looked at: it is too short */
            options.staging_bytes = d->staging_bytes;
        }
    }
    EXPECT(r, zipccl_gpu_create(r->nccl, &options, &gpu, &error) != ZIPCCL_OK);
    EXPECT(r, gpu == NULL);
    if (!EXPECT(r, strstr(error.text, want) != NULL))
        fprintf(stderr, "found \"%s\", expected \"%s\"\n", error.text, want);
    gpu_barrier(r);
}

/* Rank 2 names another count. */
static void count_differs(struct gpu_rank *r, void *context)
{
    struct zipccl_gpu_options options;
    struct zipccl_gpu_comm *gpu = NULL;
    struct gpu_case c = gather;
    struct gpu_buffers b;

    (void)context;
    gpu_test_options(r, &options);
    EXPECT(r, zipccl_gpu_create(r->nccl, &options, &gpu, NULL) == ZIPCCL_OK);
    gpu_buffers_open(r, &c, &b);
    if (r->rank == 2)
        c.count--;
    EXPECT(r, gpu_case_call(r, &c, &b, gpu) == ZIPCCL_ERR_MISMATCH);
    EXPECT(r, strstr(zipccl_gpu_error(gpu), "rank 2 calls") != NULL);
    gpu_barrier(r);
    give_up(r, gpu);
    gpu_buffers_close(r, &b);
}

/* The ends of a message name different counts: NCCL would hang, the double tells. */
static void pair_differs(struct gpu_rank *r, void *context)
{
    struct zipccl_gpu_p2p op = {r->rank == 0, 1 - r->rank, NULL, 40000, ZIPCCL_BFLOAT16};
    struct zipccl_gpu_options options;
    struct zipccl_gpu_comm *gpu = NULL;
    char *bytes = calloc(40000, 2);
    zipccl_status status;

    (void)context;
    gpu_test_options(r, &options);
    options.strategy = "fixed direct";
    EXPECT(r, zipccl_gpu_create(r->nccl, &options, &gpu, NULL) == ZIPCCL_OK);
    op.buf = gpu_upload(r, bytes, 80000);
    if (r->rank == 1)
        op.count = 20000;
    status = zipccl_gpu_group(&op, 1, gpu, r->stream);
    gpu_barrier(r);
    if (r->rank == 0 && status == ZIPCCL_OK) /* a sender is told when it next has to do with NCCL */
        status = zipccl_gpu_group(&op, 1, gpu, r->stream);
    cudaStreamSynchronize(r->stream);
    if (status == ZIPCCL_OK)
        status = zipccl_gpu_async_error(gpu, NULL);
    EXPECT(r, status == ZIPCCL_ERR_MISMATCH || status == ZIPCCL_ERR_IO);
    gpu_barrier(r);
    give_up(r, gpu);
    EXPECT(r, cudaFree(op.buf) == cudaSuccess);
    free(bytes);
}

/* A call of the libraries below fails on some rank. */
static void injected(struct gpu_rank *r, void *context)
{
    const struct gpu_failure *f = context;
    struct zipccl_gpu_options options;
    struct zipccl_gpu_comm *gpu = NULL;
    struct zipccl_error error = {""};
    struct gpu_buffers b;
    zipccl_status status;

    gpu_test_options(r, &options);
    options.strategy = "fixed direct";
    options.nchunks = 2;
    gpu_buffers_open(r, &gather, &b);
    gpu_barrier(r);
    if (r->rank == 0)
        emu_fail(f->what, f->nth, f->code);
    gpu_barrier(r);
    status = zipccl_gpu_create(r->nccl, &options, &gpu, &error);
    for (unsigned i = 0; status == ZIPCCL_OK && i < 6; i++)
        status = gpu_case_call(r, &gather, &b, gpu);
    if (!EXPECT(r, status != ZIPCCL_OK))
        fprintf(stderr, "%s, call %d: no error\n", f->what, f->nth);
    EXPECT(r, error.text[0] != '\0' || zipccl_gpu_error(gpu)[0] != '\0');
    if (gpu != NULL) {
        EXPECT(r, gpu_case_call(r, &gather, &b, gpu) == ZIPCCL_ERR_ABORTED);
    }
    give_up(r, gpu);
    gpu_barrier(r);
    cudaStreamSynchronize(r->stream);
    gpu_buffers_close(r, &b);
}

/* Rank 0 does not call; a thread of each other rank aborts it while it waits. */
static void *abort_it(void *arg)
{
    struct zipccl_gpu_comm *gpu = arg;

    while (atomic_load(&gpu->inside) == 0)
        sched_yield();
    zipccl_gpu_abort(gpu);
    return NULL;
}

static void aborted(struct gpu_rank *r, void *context)
{
    struct zipccl_gpu_options options;
    struct zipccl_gpu_comm *gpu = NULL;
    struct gpu_buffers b;
    pthread_t thread;

    (void)context;
    gpu_test_options(r, &options);
    EXPECT(r, zipccl_gpu_create(r->nccl, &options, &gpu, NULL) == ZIPCCL_OK);
    gpu_buffers_open(r, &gather, &b);
    if (r->rank > 0) {
        EXPECT(r, pthread_create(&thread, NULL, abort_it, gpu) == 0);
        EXPECT(r, gpu_case_call(r, &gather, &b, gpu) == ZIPCCL_ERR_ABORTED);
        pthread_join(thread, NULL);
    }
    gpu_barrier(r);
    give_up(r, gpu);
    cudaStreamSynchronize(r->stream);
    gpu_buffers_close(r, &b);
}

/* An NCCL whose all-gather spoils what it brings, at 'spoil_at' of rank 1's message. */
static size_t spoil_at, spoil_nbytes;

static ncclResult_t spoiling_all_gather(const void *send, void *recv, size_t count,
                                        ncclDataType_t type, ncclComm_t comm, cudaStream_t stream)
{
    ncclResult_t result = ncclAllGather(send, recv, count, type, comm, stream);

    if (count > 4096) /* a message, not what ranks tell each other */
        cudaMemsetAsync((char *)recv + count + spoil_at, 0xff, spoil_nbytes, stream);
    return result;
}

static void corrupt(struct gpu_rank *r, void *context)
{
    struct zipccl_nccl_api api = *zipccl_nccl_linked();
    bool header = *(const bool *)context;
    struct zipccl_gpu_options options;
    struct zipccl_gpu_comm *gpu = NULL;
    struct gpu_buffers b;
    zipccl_status status;

    gpu_test_options(r, &options);
    api.AllGather = spoiling_all_gather;
    options.nccl = &api;
    options.strategy = "fixed ring";
    EXPECT(r, zipccl_gpu_create(r->nccl, &options, &gpu, NULL) == ZIPCCL_OK);
    gpu_buffers_open(r, &gather, &b);
    memset(b.send, 0, b.send_nbytes);
    status = gpu_case_call(r, &gather, &b, gpu);
    if (r->rank != 1 && header) {
        EXPECT(r, status == ZIPCCL_ERR_CORRUPT);
    } else {
        EXPECT(r, status == ZIPCCL_OK);
        EXPECT(r, cudaStreamSynchronize(r->stream) == cudaSuccess);
        EXPECT(r, zipccl_gpu_async_error(gpu, NULL) ==
                      (r->rank != 1 ? ZIPCCL_ERR_CORRUPT : ZIPCCL_OK));
    }
    if (r->rank != 1)
        EXPECT(r, gpu_case_call(r, &gather, &b, gpu) != ZIPCCL_OK);
    gpu_barrier(r);
    give_up(r, gpu);
    gpu_buffers_close(r, &b);
}

static bool test_corrupt(void)
{
    bool header = true, ok;

    spoil_at = 0;
    spoil_nbytes = 8;
    ok = gpu_world_run(3, 3, corrupt, &header);
    header = false; /* the directory of the first superblock */
    spoil_at = ZIPCCL_MESSAGE_HEADER_BYTES;
    spoil_nbytes = 32;
    return gpu_world_run(3, 3, corrupt, &header) && ok;
}

static bool test_settings(void)
{
    struct difference differences[] = {
        {.min_bytes = 7, .text = "rank 1 has another minimum size"},
        {.ops = 4, .text = "rank 1 has another set of ops"},
        {.nchunks = 3, .text = "rank 1 has another options"},
        {.staging_bytes = 64,
         .text = "rank 1 failed to set itself up",
         .own_text = "staging of 64 bytes"},
    };
    bool ok = true;

    for (unsigned i = 0; i < sizeof differences / sizeof *differences; i++)
        ok = gpu_world_run(3, 3, settings, &differences[i]) && ok;
    return ok;
}

static bool test_injected(void)
{
    struct gpu_failure failures[] = {
        {"cudaMalloc", 1, cudaErrorMemoryAllocation, 0},
        {"cudaMalloc", 5, cudaErrorMemoryAllocation, 0},
        {"cudaMalloc", 12, cudaErrorMemoryAllocation, 0},
        {"cudaStreamCreate", 2, cudaErrorMemoryAllocation, 0},
        {"cudaEventRecord", 9, cudaErrorLaunchFailure, 0},
        {"cudaMemcpyAsync", 4, cudaErrorInvalidValue, 0},
        {"cudaLaunchHostFunc", 5, cudaErrorLaunchFailure, 0},
        {"ncclAllGather", 2, ncclSystemError, 0},
        {"ncclSend", 3, ncclInternalError, 0},
        {"ncclRecv", 4, ncclSystemError, 0},
    };

    return gpu_world_run_failures(injected, failures, sizeof failures / sizeof *failures);
}

int main(void)
{
    struct emu_options options;
    bool ok;

    emu_get_options(&options);
    options.peer_ms = 300; /* a rank that failed does not come */
    emu_set_options(&options);
    ok = test_settings();
    ok = gpu_world_run(3, 3, count_differs, NULL) && ok;
    ok = gpu_world_run(2, 2, pair_differs, NULL) && ok;
    ok = gpu_world_run(3, 3, aborted, NULL) && ok;
    ok = test_corrupt() && ok;
    ok = test_injected() && ok;
    return ok ? 0 : 1;
}
