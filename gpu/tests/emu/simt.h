/*
 * simt.h - CUDA's device language on a CPU: what gpu/portable.cuh includes without nvcc
 *
 * Every CUDA thread is a fiber of an operating-system thread; simt_engine.cpp schedules them.  Warp
 * operations and barriers know the place they were called from (default arguments), so reports name
 * file and line.  Not a model of speed, nor of weak memory: README.md beside this file.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_TESTS_EMU_SIMT_H
#define ZIPCCL_GPU_TESTS_EMU_SIMT_H

#include <stdint.h>
#include <string.h>
#include <utility>

#include <cuda_runtime.h>

#include "gpu/tests/emu/simt_registry.h"

/* All of a kernel in one function takes the compiler minutes; what calls cost is lost beside fibers. */
#undef __forceinline__
#define __forceinline__ inline
#undef __launch_bounds__
#define __launch_bounds__(...)
#undef __shared__
#define __shared__ static_assert(false, "use SIMT_SHARED or SIMT_DYN_SHARED");

namespace simt
{
enum Op : uint8_t {
    OP_NONE,
    OP_SYNCWARP,
    OP_BALLOT,
    OP_ANY,
    OP_ALL,
    OP_SHFL,
    OP_SHFL_UP,
    OP_SHFL_DOWN,
    OP_SHFL_XOR,
    OP_MATCH_ANY,
    OP_ADD,
    OP_MIN,
    OP_MAX,
    OP_AND,
    OP_OR,
    OP_XOR,
    OP_BAR,
    OP_BAR_COUNT,
    OP_BAR_AND,
    OP_BAR_OR
};

struct Place {
    const char *file;
    int line;
};

struct Coords {
    uint3 tid, bid;
    dim3 bdim, gdim;
};

/* Of the running fiber. */
extern __thread const Coords *cur; /* not thread_local, which would be a call each time */

uint64_t warp_op(Op op, unsigned mask, uint64_t value, int arg, int width, Place at);
int block_op(Op op, int pred, Place at);

/* A scheduling point.  'moved': the thread has just changed memory that others may wait for. */
void yield_point(bool moved, Place at);

/* One allocation per block and declaration; 'key' is the declaration. */
void *shared_var(const void *key, size_t nbytes, size_t align);
void *dyn_shared();

/* Copy 'call' (a kernel with its arguments) and enqueue it on 'stream'. */
cudaError_t enqueue(dim3 grid, dim3 block, size_t smem, cudaStream_t stream, const char *name,
                    Call call);

template <class F> struct Closure {
    static void body(void *p)
    {
        (*static_cast<F *>(p))();
    }
    static void destroy(void *p)
    {
        delete static_cast<F *>(p);
    }
};

template <class F>
void launch(dim3 grid, dim3 block, size_t smem, cudaStream_t stream, const char *name, F f)
{
    Call call = {&Closure<F>::body, &Closure<F>::destroy, new F(std::move(f))};
    (void)enqueue(grid, block, smem, stream, name, call);
}

template <class T> inline uint64_t to64(T v)
{
    static_assert(sizeof(T) <= 8, "warp operations carry up to 8 bytes");
    uint64_t r = 0;
    memcpy(&r, &v, sizeof v);
    return r;
}

template <class T> inline T from64(uint64_t r)
{
    T v;
    memcpy(&v, &r, sizeof v);
    return v;
}
} // namespace simt

#define threadIdx (simt::cur->tid)
#define blockIdx  (simt::cur->bid)
#define blockDim  (simt::cur->bdim)
#define gridDim   (simt::cur->gdim)
#define warpSize  32

#define SIMT_LAUNCH(kern, grid, block, smem, stream, ...)                                          \
    ((void)cudaGetLastError(),                                                                     \
     simt::launch((grid), (block), (smem), (stream), #kern, [=] { kern(__VA_ARGS__); }))
#define SIMT_SHARED(T, name, n)                                                                    \
    static const char simt_key_##name = 0;                                                         \
    T *name = static_cast<T *>(simt::shared_var(&simt_key_##name, sizeof(T) * (n), alignof(T)))
#define SIMT_DYN_SHARED(T, name) T *name = static_cast<T *>(simt::dyn_shared())
#define SIMT_UNROLL

#define SIMT_PLACE simt::Place at = {__builtin_FILE(), __builtin_LINE()}

inline void __syncthreads(SIMT_PLACE)
{
    simt::block_op(simt::OP_BAR, 0, at);
}
inline int __syncthreads_count(int pred, SIMT_PLACE)
{
    return simt::block_op(simt::OP_BAR_COUNT, pred, at);
}
inline int __syncthreads_and(int pred, SIMT_PLACE)
{
    return simt::block_op(simt::OP_BAR_AND, pred, at);
}
inline int __syncthreads_or(int pred, SIMT_PLACE)
{
    return simt::block_op(simt::OP_BAR_OR, pred, at);
}

inline void __syncwarp(unsigned mask = ~0u, SIMT_PLACE)
{
    simt::warp_op(simt::OP_SYNCWARP, mask, 0, 0, 32, at);
}
inline unsigned __ballot_sync(unsigned mask, int pred, SIMT_PLACE)
{
    return (unsigned)simt::warp_op(simt::OP_BALLOT, mask, pred != 0, 0, 32, at);
}
inline int __any_sync(unsigned mask, int pred, SIMT_PLACE)
{
    return (int)simt::warp_op(simt::OP_ANY, mask, pred != 0, 0, 32, at);
}
inline int __all_sync(unsigned mask, int pred, SIMT_PLACE)
{
    return (int)simt::warp_op(simt::OP_ALL, mask, pred != 0, 0, 32, at);
}

template <class T> inline T __shfl_sync(unsigned mask, T v, int lane, int width = 32, SIMT_PLACE)
{
    return simt::from64<T>(simt::warp_op(simt::OP_SHFL, mask, simt::to64(v), lane, width, at));
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T v, unsigned d, int width = 32, SIMT_PLACE)
{
    return simt::from64<T>(simt::warp_op(simt::OP_SHFL_UP, mask, simt::to64(v), (int)d, width, at));
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T v, unsigned d, int width = 32, SIMT_PLACE)
{
    return simt::from64<T>(
        simt::warp_op(simt::OP_SHFL_DOWN, mask, simt::to64(v), (int)d, width, at));
}
template <class T> inline T __shfl_xor_sync(unsigned mask, T v, int x, int width = 32, SIMT_PLACE)
{
    return simt::from64<T>(simt::warp_op(simt::OP_SHFL_XOR, mask, simt::to64(v), x, width, at));
}
template <class T> inline unsigned __match_any_sync(unsigned mask, T v, SIMT_PLACE)
{
    return (unsigned)simt::warp_op(simt::OP_MATCH_ANY, mask, simt::to64(v), 0, 32, at);
}

inline unsigned __reduce_add_sync(unsigned mask, unsigned v, SIMT_PLACE)
{
    return (unsigned)simt::warp_op(simt::OP_ADD, mask, v, 0, 32, at);
}
inline unsigned __reduce_min_sync(unsigned mask, unsigned v, SIMT_PLACE)
{
    return (unsigned)simt::warp_op(simt::OP_MIN, mask, v, 0, 32, at);
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned v, SIMT_PLACE)
{
    return (unsigned)simt::warp_op(simt::OP_MAX, mask, v, 0, 32, at);
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned v, SIMT_PLACE)
{
    return (unsigned)simt::warp_op(simt::OP_AND, mask, v, 0, 32, at);
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned v, SIMT_PLACE)
{
    return (unsigned)simt::warp_op(simt::OP_OR, mask, v, 0, 32, at);
}
inline unsigned __reduce_xor_sync(unsigned mask, unsigned v, SIMT_PLACE)
{
    return (unsigned)simt::warp_op(simt::OP_XOR, mask, v, 0, 32, at);
}

#include "gpu/tests/emu/simt_device.h"
#undef SIMT_PLACE

#endif
