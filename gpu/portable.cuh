/*
 * portable.cuh - the device header that every kernel is written against: nvcc or the CPU emulator
 *
 * Under nvcc these are thin macros and helpers over CUDA.  Under a C++ compiler they come from
 * gpu/tests/emu/simt.h, where every CUDA thread is a fiber.  Kernel files include this header and
 * host/device clean headers of core, nothing else; inline PTX is allowed here only.
 *
 * Rules for kernels (gpu/tests/emu/README.md says why):
 *  - no return before a warp operation or barrier that others still reach; branches around them
 *    are uniform over the mask, and masks are explicit;
 *  - shared memory by SIMT_SHARED (a static array) and SIMT_DYN_SHARED (the launch's bytes) only;
 *    'name' is used as a pointer, sizeof(name) means nothing;
 *  - flags between blocks go through simt_ld_acquire and simt_st_release, never through volatile or
 *    __threadfence(); a loop that spins calls simt_ld_acquire or simt_backoff;
 *  - an order between blocks comes from a ticket, never from blockIdx.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_PORTABLE_CUH
#define ZIPCCL_GPU_PORTABLE_CUH

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cuda_runtime.h>

#if defined(__CUDACC__)

/* Start 'kern' on 'stream'; a statement.  The launcher returns cudaGetLastError() after it: of this launch, not
 * what the program that calls has not asked for. */
#define SIMT_LAUNCH(kern, grid, block, smem, stream, ...)                                          \
    do {                                                                                           \
        (void)cudaGetLastError();                                                                  \
        kern<<<(grid), (block), (smem), (stream)>>>(__VA_ARGS__);                                  \
    } while (0)
/* Make 'kern' known by its device name, so that an nvcc-built library can be run on the emulator. */
#define SIMT_KERNEL(...)        static_assert(true, "")
#define SIMT_SHARED(T, name, n) __shared__ __align__(16) T name[n]
#define SIMT_DYN_SHARED(T, name)                                                                   \
    extern __shared__ __align__(16) unsigned char simt_dyn_smem_[];                                \
    T *name = reinterpret_cast<T *>(simt_dyn_smem_)
#define SIMT_UNROLL _Pragma("unroll")

/* A load that later loads and stores of this thread cannot pass; pairs with simt_st_release. */
static __device__ __forceinline__ uint64_t simt_ld_acquire(const uint64_t *p)
{
    uint64_t v;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
}

static __device__ __forceinline__ uint32_t simt_ld_acquire(const uint32_t *p)
{
    uint32_t v;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return v;
}

/* A store that earlier loads and stores of this thread cannot pass. */
static __device__ __forceinline__ void simt_st_release(uint64_t *p, uint64_t v)
{
    asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
}

static __device__ __forceinline__ void simt_st_release(uint32_t *p, uint32_t v)
{
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

/* The same where the host looks: pinned memory. */
static __device__ __forceinline__ void simt_st_release_system(uint32_t *p, uint32_t v)
{
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}

/*
 * Add and return the old value, ordering both ways: for "the last block to come does the rest".
 * Threads of the block other than the caller take part through a __syncthreads() before it, and
 * one after it.
 */
static __device__ __forceinline__ uint32_t simt_add_acq_rel(uint32_t *p, uint32_t v)
{
    uint32_t old;
    asm volatile("atom.add.acq_rel.gpu.global.u32 %0, [%1], %2;"
                 : "=r"(old)
                 : "l"(p), "r"(v)
                 : "memory");
    return old;
}

/* Called in a loop that waits for another block. */
static __device__ __forceinline__ void simt_backoff()
{
    __nanosleep(32);
}

#else
#include "gpu/tests/emu/simt.h"
#endif

#endif
