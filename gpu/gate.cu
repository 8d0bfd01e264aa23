/*
 * gate.cu - decide on the device whether a stream goes on, and use what was sent again
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/portable.cuh"

#include "gpu/gate_kernels.h"

#define GATE_THREADS 256u

static __device__ bool overflowed(const struct zipccl_gpu_result *r)
{
    return r->error == ZIPCCL_ERR_OVERFLOW;
}

/* One block. */
__global__ void __launch_bounds__(GATE_THREADS) gate_decide_kernel(struct zipccl_gate_decide_args a)
{
    SIMT_SHARED(uint32_t, any, 3);
    const uint32_t n = a.nin + a.nout;
    if (threadIdx.x == 0) {
        any[0] = any[1] = 0;
        any[2] = simt_ld_acquire(&a.words[ZIPCCL_GATE_CLOSED]);
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < n; i += GATE_THREADS) {
        const struct zipccl_gpu_result *r = i < a.nin ? a.d_in + i : a.d_out + (i - a.nin);
        if (overflowed(r))
            atomicOr(&any[0], 1u);
        else if (r->error != ZIPCCL_OK)
            atomicOr(&any[1], 1u);
    }
    __syncthreads();
    const bool asks = any[0] != 0 && any[2] == 0;
    for (uint32_t i = threadIdx.x; asks && i < n; i += GATE_THREADS)
        a.flags[i] = overflowed(i < a.nin ? a.d_in + i : a.d_out + (i - a.nin)) ? 1 : 0;
    __syncthreads();
    if (threadIdx.x == 0) {
        const struct zipccl_gpu_result all = {0, 0,
                                              (uint32_t)(asks ? ZIPCCL_ERR_OVERFLOW : ZIPCCL_OK)};
        *a.d_any = all;
        if (any[1] != 0)
            simt_st_release_system(a.broken, 1);
        if (asks)
            simt_st_release_system(a.bell, a.site);
        else
            simt_st_release(&a.words[ZIPCCL_GATE_WORD], 1);
    }
}

cudaError_t zipccl_gate_decide(const struct zipccl_gate_decide_args *args, cudaStream_t stream)
{
    if (!args->words || !args->flags || !args->bell || !args->broken || !args->d_any ||
        args->site == 0)
        return cudaErrorInvalidValue;
    const struct zipccl_gate_decide_args copy = *args; /* the emulator evaluates arguments later */
    SIMT_LAUNCH(gate_decide_kernel, dim3(1), dim3(GATE_THREADS), 0, stream, copy);
    return cudaGetLastError();
}

/* Copy what this thread of 'nthreads' has of 'nbytes', in units of T. */
template <class T>
static __device__ void copy_units(const struct zipccl_gate_copy *c, uint64_t thread,
                                  uint64_t nthreads)
{
    const T *src = static_cast<const T *>(c->raw);
    T *dst = static_cast<T *>(c->elements);
    for (uint64_t i = thread; i < c->nbytes / sizeof(T); i += nthreads)
        dst[i] = src[i];
    const uint64_t done = c->nbytes / sizeof(T) * sizeof(T);
    if (thread < c->nbytes - done)
        static_cast<char *>(c->elements)[done + thread] =
            static_cast<const char *>(c->raw)[done + thread];
}

__global__ void __launch_bounds__(GATE_THREADS)
    gate_copies_kernel(const struct zipccl_gate_copy *copies, uint32_t n)
{
    const uint64_t thread = (uint64_t)blockIdx.x * GATE_THREADS + threadIdx.x;
    const uint64_t nthreads = (uint64_t)gridDim.x * GATE_THREADS;
    for (uint32_t i = 0; i < n; i++) {
        const struct zipccl_gate_copy *c = copies + i;
        if (!c->seen || !overflowed(c->seen))
            continue;
        const uintptr_t both = (uintptr_t)c->raw | (uintptr_t)c->elements;
        if (both % sizeof(uint4) == 0)
            copy_units<uint4>(c, thread, nthreads);
        else if (both % sizeof(uint32_t) == 0)
            copy_units<uint32_t>(c, thread, nthreads);
        else if (both % sizeof(uint16_t) == 0)
            copy_units<uint16_t>(c, thread, nthreads);
        else
            copy_units<uint8_t>(c, thread, nthreads);
        if (thread == 0 && c->result)
            c->result->error = ZIPCCL_OK;
    }
}

cudaError_t zipccl_gate_copies(const struct zipccl_gate_copy *d_copies, uint32_t n, uint32_t nsms,
                               cudaStream_t stream)
{
    if (n == 0)
        return cudaSuccess;
    if (!d_copies || nsms == 0)
        return cudaErrorInvalidValue;
    SIMT_LAUNCH(gate_copies_kernel, dim3(nsms), dim3(GATE_THREADS), 0, stream, d_copies, n);
    return cudaGetLastError();
}

__global__ void __launch_bounds__(GATE_THREADS)
    gate_terms_kernel(const struct zipccl_gate_copy *copies, struct zipccl_gpu_term *terms,
                      uint32_t n)
{
    for (uint32_t i = threadIdx.x; i < n; i += GATE_THREADS)
        if (copies[i].seen && overflowed(copies[i].seen)) {
            terms[i].bytes = copies[i].raw;
            terms[i].nbytes = 0;
        }
}

cudaError_t zipccl_gate_terms(const struct zipccl_gate_copy *d_copies,
                              struct zipccl_gpu_term *d_terms, uint32_t n, cudaStream_t stream)
{
    if (n == 0)
        return cudaSuccess;
    if (!d_copies || !d_terms)
        return cudaErrorInvalidValue;
    SIMT_LAUNCH(gate_terms_kernel, dim3(1), dim3(GATE_THREADS), 0, stream, d_copies, d_terms, n);
    return cudaGetLastError();
}

__global__ void __launch_bounds__(GATE_THREADS)
    gate_outcomes_kernel(const struct zipccl_gpu_result *results, uint32_t n, uint32_t *broken)
{
    for (uint32_t i = threadIdx.x; i < n; i += GATE_THREADS)
        if (results[i].error != ZIPCCL_OK)
            simt_st_release_system(broken, 1);
}

cudaError_t zipccl_gate_outcomes(const struct zipccl_gpu_result *d_results, uint32_t n,
                                 uint32_t *broken, cudaStream_t stream)
{
    if (n == 0)
        return cudaSuccess;
    if (!d_results || !broken)
        return cudaErrorInvalidValue;
    SIMT_LAUNCH(gate_outcomes_kernel, dim3(1), dim3(GATE_THREADS), 0, stream, d_results, n, broken);
    return cudaGetLastError();
}

SIMT_KERNEL(gate_decide_kernel);
SIMT_KERNEL(gate_copies_kernel);
SIMT_KERNEL(gate_terms_kernel);
SIMT_KERNEL(gate_outcomes_kernel);
