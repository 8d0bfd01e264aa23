/*
 * exec_cuda.c - the exec as core sees it: what steps call, creation, failures
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/exec_cuda.h"

#include "gpu/gate.h"

#include <stdlib.h>

/* Keep the first failure of a call that cannot return one. */
static void keep_failure(struct zipccl_exec_cuda *e, cudaError_t result, const char *what)
{
    zipccl_status status = zipccl_transport_nccl_cuda(e->transport, result, what);

    if (e->failed == ZIPCCL_OK)
        e->failed = status;
}

static zipccl_status encode(struct zipccl_exec *exec, enum zipccl_dtype dtype, const void *src,
                            size_t n, void *dst, size_t capacity, size_t *nbytes)
{
    (void)exec, (void)dtype, (void)src, (void)n, (void)dst, (void)capacity, (void)nbytes;
    return ZIPCCL_ERR_UNSUPPORTED; /* only plans with parts ask for it, and there are none */
}

/* Listed now, launched when the step ends. */
static zipccl_status decode(struct zipccl_exec *exec, enum zipccl_dtype dtype, const void *wire,
                            size_t nbytes, void *dst, size_t n)
{
    (void)dtype;
    return zipccl_cuda_list_add(
        zipccl_cuda_of(exec),
        (struct zipccl_gpu_slot){
            .elements = dst, .wire = (void *)(uintptr_t)wire, .n = n, .capacity = nbytes});
}

static void copy(struct zipccl_exec *exec, void *dst, const void *src, size_t nbytes)
{
    struct zipccl_exec_cuda *e = zipccl_cuda_of(exec);

    keep_failure(e, cudaMemcpyAsync(dst, src, nbytes, cudaMemcpyDeviceToDevice, e->now),
                 "copy on the device");
}

static void zero(struct zipccl_exec *exec, void *dst, size_t nbytes)
{
    struct zipccl_exec_cuda *e = zipccl_cuda_of(exec);

    if (nbytes > 0)
        keep_failure(e, cudaMemsetAsync(dst, 0, nbytes, e->now), "clear on the device");
}

static bool ended(struct zipccl_exec *exec, const void *owner, struct zipccl_ended_call *out)
{
    struct zipccl_exec_cuda *e = zipccl_cuda_of(exec);

    return e->gate != NULL && zipccl_gate_ended(e->gate, owner, out);
}

static void destroy(struct zipccl_exec *exec)
{
    zipccl_exec_cuda_destroy(zipccl_cuda_of(exec));
}

static const struct zipccl_exec_ops ops = {
    .name = "cuda",
    .encode = encode,
    .decode = decode,
    .copy = copy,
    .zero = zero,
    .encode_many = zipccl_cuda_encode_many,
    .decode_sum = zipccl_cuda_decode_sum,
    .message_read = zipccl_cuda_message_read,
    .run = zipccl_cuda_run,
    .ended = ended,
    .time_next = zipccl_cuda_time_next,
    .time_of = zipccl_cuda_time_of,
    .destroy = destroy,
};

static zipccl_status start(struct zipccl_exec_cuda *e, const struct zipccl_exec_cuda_options *o)
{
    int device, sms;

    ZIPCCL_CUDA_TRY(e, cudaGetDevice(&device));
    ZIPCCL_CUDA_TRY(e, cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device));
    e->nsms = o->nsms > 0 && o->nsms < (uint32_t)sms ? o->nsms : (uint32_t)sms;
    ZIPCCL_CUDA_TRY(e, cudaStreamCreateWithFlags(&e->wire, cudaStreamNonBlocking));
    ZIPCCL_CUDA_TRY(e, cudaEventCreateWithFlags(&e->done, cudaEventDisableTiming));
    ZIPCCL_CUDA_TRY(e, cudaEventCreateWithFlags(&e->looked, cudaEventDisableTiming));
    return zipccl_cuda_memory_create(e);
}

zipccl_status zipccl_exec_cuda_create(struct zipccl_transport_nccl *transport,
                                      const struct zipccl_exec_cuda_options *options,
                                      struct zipccl_exec_cuda **out)
{
    struct zipccl_exec_cuda *e = calloc(1, sizeof *e);
    zipccl_status status;

    if (e == NULL)
        return ZIPCCL_ERR_NOMEM;
    e->base.ops = &ops;
    e->transport = transport;
    e->api = transport->api;
    e->most_staging = options->most_staging;
    e->time_codec = options->time_codec;
    e->next_ticket = 1; /* 0: a timer that was not used */
    if (options->staging != NULL) {
        e->staging.d = options->staging;
        e->staging.nbytes = options->most_staging;
        e->staging.borrowed = true;
    }
    status = start(e, options);
    if (status != ZIPCCL_OK) {
        zipccl_exec_cuda_destroy(e);
        return status;
    }
    *out = e;
    return ZIPCCL_OK;
}

/* Wait for the last call; false if that was in vain. */
static bool has_ended(struct zipccl_exec_cuda *e)
{
    return !e->used || zipccl_transport_nccl_wait(e->transport, e->done) == ZIPCCL_OK ||
           cudaEventQuery(e->done) == cudaSuccess;
}

void zipccl_exec_cuda_destroy(struct zipccl_exec_cuda *e)
{
    bool under_way;

    if (atomic_load(&e->transport->aborted)) /* nobody comes to send again */
        zipccl_gate_abort(e->gate);
    under_way = !has_ended(e);
    if (under_way && e->gate != NULL) {
        zipccl_gate_abort(e->gate); /* whose helper goes: else the caller's stream waits for ever */
        under_way = !has_ended(e);
    }
    under_way = !zipccl_gate_is_quiet(e->gate) || under_way;
    zipccl_gate_close(e->gate, under_way);
    e->gate = NULL;

    if (!under_way) { /* else kernels may still write there */
        zipccl_cuda_memory_destroy(e);
        if (e->wire != NULL)
            cudaStreamDestroy(e->wire);
    }
    for (unsigned i = 0; i <= UINT8_MAX; i++)
        if (e->coded_event[i] != NULL)
            cudaEventDestroy(e->coded_event[i]);
    zipccl_cuda_events_destroy(e);
    zipccl_cuda_late_destroy(e);
    zipccl_cuda_times_destroy(e);
    if (e->done != NULL)
        cudaEventDestroy(e->done);
    if (e->looked != NULL)
        cudaEventDestroy(e->looked);
    free(e->list);
    free(e);
}

zipccl_status zipccl_exec_cuda_enter(struct zipccl_exec_cuda *e, cudaStream_t stream)
{
    if (e->gate != NULL && zipccl_gate_enter(e, stream))
        return e->gate->entered;
    /* Also for the last call's handle, which may be another stream: cudaStreamPerThread, or reused. */
    if (e->used)
        ZIPCCL_CUDA_TRY(e, cudaStreamWaitEvent(stream, e->done, 0));
    e->transport->stream = stream;
    e->now = stream;
    return ZIPCCL_OK;
}

zipccl_status zipccl_exec_cuda_failed(struct zipccl_exec_cuda *e)
{
    for (unsigned i = 0; i < ZIPCCL_CUDA_ARENAS; i++)
        if (e->arenas[i].busy && cudaEventQuery(e->arenas[i].done) == cudaSuccess)
            zipccl_cuda_arena_look(e, &e->arenas[i]);
    if (e->gate != NULL) {
        zipccl_gate_look_back(e->gate);
        e->failed = e->failed != ZIPCCL_OK ? e->failed : zipccl_gate_failed(e->gate);
    }
    if (e->failed == ZIPCCL_ERR_CORRUPT && e->transport->error.text[0] == '\0')
        zipccl_fail(&e->transport->error, e->failed,
                    "rank %u: a message that arrived earlier could not be decoded",
                    e->transport->base.rank);
    return e->failed;
}
