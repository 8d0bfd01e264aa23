/*
 * host_kernels.c - the launchers of gpu/kernels.h over core's codec: a stand-in for tests of the host code
 *
 * Each launch is a host function in the stream, which reads and writes the double's device memory.
 * Test code: it checks what kernels check (alignment, room of the workspace) and runs many times faster
 * than the emulated kernels, so that tests can run through many plans.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/host_kernels.h"

#include "core/codec.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of workspace by what must fit; any growing function does. */
static size_t workspace(uint64_t n, uint32_t nmessages, uint32_t nsms)
{
    return 256 + (size_t)n / 64 + 16 * (size_t)nmessages + 64 * (size_t)nsms;
}

size_t zipccl_gpu_encode_workspace(enum zipccl_dtype dtype, uint64_t total_n, uint32_t nmessages,
                                   uint32_t nsms)
{
    (void)dtype;
    return workspace(total_n, nmessages, nsms);
}

/* As with the kernels, it takes more. */
size_t zipccl_gpu_encode_ratio_workspace(enum zipccl_dtype dtype, uint64_t total_n,
                                         uint32_t nmessages, uint32_t nsms)
{
    return 2 * zipccl_gpu_encode_workspace(dtype, total_n, nmessages, nsms);
}

size_t zipccl_gpu_decode_workspace(enum zipccl_dtype dtype, uint64_t total_n, uint32_t nmessages,
                                   uint32_t nsms)
{
    (void)dtype;
    return workspace(total_n, nmessages, nsms);
}

size_t zipccl_gpu_sum_workspace(enum zipccl_dtype dtype, uint64_t n, uint32_t nterms, uint32_t nsms)
{
    (void)dtype;
    return workspace(n, nterms, nsms);
}

cudaError_t zipccl_gpu_workspace_clear(void *d_workspace, size_t nbytes, cudaStream_t stream)
{
    return cudaMemsetAsync(d_workspace, 0, nbytes, stream);
}

static void *scratch_new(void)
{
    return aligned_alloc(64, (zipccl_codec_scratch_bytes() + 63) / 64 * 64);
}

static struct zipccl_gpu_slot slot_of(const struct zipccl_gpu_batch *batch, uint32_t i)
{
    struct zipccl_gpu_slot slot = batch->first;

    if (batch->d_slots != NULL)
        return batch->d_slots[i];
    slot.elements = (char *)slot.elements + i * batch->elements_stride;
    slot.wire = (char *)slot.wire + i * batch->wire_stride;
    return slot;
}

static bool batch_is_wrong(const struct zipccl_gpu_batch *batch, const void *d_workspace,
                           size_t have, size_t need)
{
    if (batch->nmessages > ZIPCCL_GPU_MAX_MESSAGES || d_workspace == NULL || have < need ||
        (uintptr_t)d_workspace % 256 != 0)
        return true;
    return batch->d_slots == NULL && ((uintptr_t)batch->first.wire % ZIPCCL_GPU_WIRE_ALIGN != 0 ||
                                      batch->wire_stride % ZIPCCL_GPU_WIRE_ALIGN != 0);
}

static uint64_t total_n(const struct zipccl_gpu_batch *batch)
{
    return batch->d_slots != NULL ? batch->total_n : batch->first.n * batch->nmessages;
}

/* Of captured launches, which may run any number of times; kept till the process ends. */
static struct kept {
    struct kept *next;
    cudaHostFn_t fn;
    size_t nbytes;
    char args[];
} * all_kept;
static pthread_mutex_t kept_mutex = PTHREAD_MUTEX_INITIALIZER;

static void run_kept(void *arg)
{
    const struct kept *kept = arg;
    void *copy = malloc(kept->nbytes);

    if (copy == NULL)
        abort();
    memcpy(copy, kept->args, kept->nbytes);
    kept->fn(copy);
}

static cudaError_t launch_captured(cudaStream_t stream, cudaHostFn_t fn, const void *args,
                                   size_t nbytes)
{
    struct kept *kept = malloc(sizeof *kept + nbytes);

    if (kept == NULL)
        return cudaErrorMemoryAllocation;
    kept->fn = fn;
    kept->nbytes = nbytes;
    memcpy(kept->args, args, nbytes);
    pthread_mutex_lock(&kept_mutex);
    kept->next = all_kept;
    all_kept = kept;
    pthread_mutex_unlock(&kept_mutex);
    return cudaLaunchHostFunc(stream, run_kept, kept);
}

cudaError_t host_launch(cudaStream_t stream, cudaHostFn_t fn, const void *args, size_t nbytes)
{
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    void *copy = malloc(nbytes);
    cudaError_t result;

    if (copy == NULL)
        return cudaErrorMemoryAllocation;
    if (cudaStreamIsCapturing(stream, &status) == cudaSuccess &&
        status != cudaStreamCaptureStatusNone) {
        free(copy);
        return launch_captured(stream, fn, args, nbytes);
    }
    memcpy(copy, args, nbytes);
    result = cudaLaunchHostFunc(stream, fn, copy);
    if (result != cudaSuccess)
        free(copy);
    return result;
}

static void run_encode(void *arg)
{
    struct zipccl_gpu_encode_args *args = arg;
    uint32_t n = args->batch.nmessages;
    struct zipccl_slice *slices = calloc(n, sizeof *slices);
    void *scratch = scratch_new();

    for (uint32_t i = 0; i < n; i++) {
        struct zipccl_gpu_slot slot = slot_of(&args->batch, i);

        slices[i] = (struct zipccl_slice){
            .src = slot.elements, .n = slot.n, .dst = slot.wire, .capacity = slot.capacity};
    }
    zipccl_encode_many(ZIPCCL_ISA_SCALAR, (enum zipccl_effort)args->effort, args->dtype, slices, n,
                       scratch);
    for (uint32_t i = 0; i < n; i++) {
        struct zipccl_message message;

        memset((char *)slices[i].dst + slices[i].nbytes, 0, slices[i].capacity - slices[i].nbytes);
        zipccl_message_read(slices[i].dst, slices[i].capacity, &message);
        args->d_results[i] =
            (struct zipccl_gpu_result){slices[i].nbytes, message.flags, (uint32_t)slices[i].status};
    }
    free(scratch);
    free(slices);
    free(args);
}

cudaError_t zipccl_gpu_encode(const struct zipccl_gpu_encode_args *args, cudaStream_t stream)
{
    size_t least = workspace(total_n(&args->batch), args->batch.nmessages, args->nsms);

    if (args->effort == ZIPCCL_EFFORT_RATIO)
        least *= 2;
    if ((unsigned)args->effort >= ZIPCCL_NUM_EFFORTS || !args->flag_any ||
        batch_is_wrong(&args->batch, args->d_workspace, args->workspace_nbytes, least))
        return cudaErrorInvalidValue;
    return host_launch(stream, run_encode, args, sizeof *args);
}

static void run_decode(void *arg)
{
    struct zipccl_gpu_decode_args *args = arg;
    void *scratch = scratch_new();

    for (uint32_t i = 0; i < args->batch.nmessages; i++) {
        struct zipccl_gpu_slot slot = slot_of(&args->batch, i);
        zipccl_status status = zipccl_decode(ZIPCCL_ISA_SCALAR, args->dtype, slot.wire,
                                             slot.capacity, slot.elements, slot.n, scratch);

        args->d_results[i] = (struct zipccl_gpu_result){0, 0, (uint32_t)status};
    }
    free(scratch);
    free(args);
}

cudaError_t zipccl_gpu_decode(const struct zipccl_gpu_decode_args *args, cudaStream_t stream)
{
    if (batch_is_wrong(&args->batch, args->d_workspace, args->workspace_nbytes,
                       workspace(total_n(&args->batch), args->batch.nmessages, args->nsms)))
        return cudaErrorInvalidValue;
    return host_launch(stream, run_decode, args, sizeof *args);
}

static void run_sum(void *arg)
{
    struct zipccl_gpu_sum_args *args = arg;
    struct zipccl_term *terms = calloc(args->nterms, sizeof *terms);
    void *scratch = scratch_new();
    zipccl_status status;

    for (uint32_t t = 0; t < args->nterms; t++) {
        struct zipccl_gpu_term term = {(const char *)args->d_wire + t * args->wire_stride,
                                       args->wire_nbytes};

        if (args->d_terms != NULL)
            term = args->d_terms[t];
        else if ((int32_t)t == args->own)
            term = (struct zipccl_gpu_term){args->d_own, 0};
        terms[t] = (struct zipccl_term){
            .bytes = term.bytes, .nbytes = term.nbytes, .is_message = term.nbytes > 0};
    }
    status = zipccl_decode_sum(ZIPCCL_ISA_SCALAR, args->dtype, terms, args->nterms, args->n,
                               args->divisor, args->d_dst, scratch);
    for (uint32_t t = 0; t < args->nterms; t++)
        args->d_results[t] = (struct zipccl_gpu_result){0, 0, (uint32_t)status};
    free(scratch);
    free(terms);
    free(args);
}

cudaError_t zipccl_gpu_decode_sum(const struct zipccl_gpu_sum_args *args, cudaStream_t stream)
{
    if (args->nterms == 0 || args->nterms > ZIPCCL_GPU_MAX_MESSAGES || args->divisor == 0 ||
        args->workspace_nbytes < workspace(args->n, args->nterms, args->nsms))
        return cudaErrorInvalidValue;
    return host_launch(stream, run_sum, args, sizeof *args);
}

struct resolve_args {
    enum zipccl_dtype dtype;
    struct zipccl_gpu_batch batch;
    struct zipccl_gpu_result *d_results;
    struct zipccl_gpu_seen *d_seen;
};

static void run_resolve(void *arg)
{
    struct resolve_args *args = arg;

    *args->d_seen = (struct zipccl_gpu_seen){0};
    for (uint32_t i = 0; i < args->batch.nmessages; i++) {
        struct zipccl_gpu_slot slot = slot_of(&args->batch, i);
        struct zipccl_message message;
        zipccl_status status = zipccl_message_read(slot.wire, slot.capacity, &message);

        if (status == ZIPCCL_OK && (message.n != slot.n || message.dtype != args->dtype))
            status = ZIPCCL_ERR_CORRUPT;
        if (status == ZIPCCL_OK)
            args->d_results[i] = (struct zipccl_gpu_result){
                message.nbytes, message.flags,
                message.flags & ZIPCCL_MESSAGE_OVERFLOW ? ZIPCCL_ERR_OVERFLOW : ZIPCCL_OK};
        else
            args->d_results[i] = (struct zipccl_gpu_result){0, 0, (uint32_t)status};
    }
    free(args);
}

cudaError_t zipccl_gpu_resolve(enum zipccl_dtype dtype, const struct zipccl_gpu_batch *batch,
                               struct zipccl_gpu_result *d_results, struct zipccl_gpu_seen *d_seen,
                               cudaStream_t stream)
{
    struct resolve_args args = {dtype, *batch, d_results, d_seen};

    return host_launch(stream, run_resolve, &args, sizeof args);
}
