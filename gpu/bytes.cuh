/*
 * bytes.cuh - four bytes at a time in a word, and what warps and blocks do with counts
 *
 * Device functions that encoders use on every element.  They know no format.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_BYTES_CUH
#define ZIPCCL_GPU_BYTES_CUH

#include "gpu/portable.cuh"

#define ALL_LANES 0xffffffffu

static __device__ __forceinline__ uint32_t bytes_of(uint32_t x)
{
    return x * 0x01010101u;
}

/* a - b in each byte, modulo 256. */
static __device__ __forceinline__ uint32_t bytes_sub(uint32_t a, uint32_t b)
{
    return ((a | 0x80808080u) - (b & 0x7f7f7f7fu)) ^ ((a ^ ~b) & 0x80808080u);
}

/* Bit 7 of each byte that is not zero. */
static __device__ __forceinline__ uint32_t bytes_nonzero(uint32_t x)
{
    return (((x & 0x7f7f7f7fu) + 0x7f7f7f7fu) | x) & 0x80808080u;
}

/* Bit 0 of bytes 0 to 3 in bits 0 to 3; the multiplication brings them together without carries. */
static __device__ __forceinline__ uint32_t bytes_gather(uint32_t x)
{
    return ((x & 0x01010101u) * 0x01020408u) >> 24;
}

/* Bit 'k' of eight bytes. */
static __device__ __forceinline__ uint32_t bytes_plane(uint32_t x0, uint32_t x1, int k)
{
    return bytes_gather(x0 >> k) | bytes_gather(x1 >> k) << 4;
}

/* How many bits each byte has set. */
static __device__ __forceinline__ uint32_t bytes_popc(uint32_t x)
{
    x -= x >> 1 & 0x55555555u;
    x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
    return (x + (x >> 4)) & 0x0f0f0f0fu;
}

/* The lowest 'n' of 8 bits, none below 0, all above 8. */
static __device__ __forceinline__ uint32_t bits_below(int n)
{
    return n >= 8 ? 0xffu : n <= 0 ? 0 : (1u << n) - 1;
}

/*
 * Four lanes exchange bytes: lane j of each four gets byte j of all four, that of its first lane
 * lowest.
 */
static __device__ __forceinline__ uint32_t quad_transpose(uint32_t x, uint32_t lane)
{
    uint32_t y = __shfl_xor_sync(ALL_LANES, x, 1);
    x = __byte_perm(x, y, lane & 1 ? 0x3715 : 0x6240);
    y = __shfl_xor_sync(ALL_LANES, x, 2);
    return __byte_perm(x, y, lane & 2 ? 0x3276 : 0x5410);
}

/* Sum of 'x' over this lane and those before it. */
static __device__ __forceinline__ uint32_t warp_scan(uint32_t x, uint32_t lane)
{
    SIMT_UNROLL
    for (uint32_t step = 1; step < 32; step *= 2) {
        uint32_t y = __shfl_up_sync(ALL_LANES, x, step);
        x += lane >= step ? y : 0;
    }
    return x;
}

#endif
