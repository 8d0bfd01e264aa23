/*
 * block.cuh - what the decoders' threads do together: sums and prefix sums over a block
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_BLOCK_CUH
#define ZIPCCL_GPU_BLOCK_CUH

#include "gpu/portable.cuh"

#define BLOCK_WARPS 8u /* of the 256 threads that call */

#define FULL_WARP 0xffffffffu

/*
 * Sum of x over the threads before this one; '*total' over all.  The whole block calls; sums
 * [BLOCK_WARPS] in shared memory may be used for the next call at once.
 */
template <class T> static __device__ inline T block_scan(T x, T *sums, T *total)
{
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    T upto = x, before = 0, all = 0;
    SIMT_UNROLL
    for (unsigned d = 1; d < 32; d *= 2) {
        T other = __shfl_up_sync(FULL_WARP, upto, d);
        upto += lane >= d ? other : 0;
    }
    if (lane == 31)
        sums[warp] = upto;
    __syncthreads();
    SIMT_UNROLL
    for (unsigned w = 0; w < BLOCK_WARPS; w++) {
        before += w < warp ? sums[w] : 0;
        all += sums[w];
    }
    __syncthreads();
    *total = all;
    return before + upto - x;
}

/* Sum over the lanes of a warp, which all call. */
template <class T> static __device__ inline T warp_sum(T x)
{
    SIMT_UNROLL
    for (unsigned d = 16; d > 0; d /= 2)
        x += __shfl_xor_sync(FULL_WARP, x, (int)d);
    return x;
}

#endif
