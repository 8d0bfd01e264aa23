/*
 * block.cuh - teams of 256 threads in a block: barriers, sums and prefix sums of one
 *
 * A block that takes a whole SM leaves all others alone, and the superblocks of its teams overlap as those
 * of small blocks would.  So teams have barriers of their own; a kernel of one team is the plain case.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_BLOCK_CUH
#define ZIPCCL_GPU_BLOCK_CUH

#include "gpu/portable.cuh"

#define TEAM_THREADS 256u
#define TEAM_WARPS   8u

#define FULL_WARP 0xffffffffu

/* Before a loop that is not worth the registers that an unrolled one takes. */
#define KEEP_LOOP _Pragma("unroll 1")

/* What a team shares to meet; in shared memory, see team_begin(). */
struct team_meeting {
    uint32_t arrived, meetings; /* the emulator's; a GPU has barriers in hardware */
    uint64_t sums[TEAM_WARPS];
};

/* Number of the thread in its team, and of the team in its block. */
static __device__ inline unsigned team_thread()
{
    return threadIdx.x % TEAM_THREADS;
}

static __device__ inline unsigned team_number()
{
    return threadIdx.x / TEAM_THREADS;
}

/* Wait for the team; orders its memory as __syncthreads() does.  All 256 threads call. */
static __device__ inline void team_sync(struct team_meeting *meeting)
{
#if defined(__CUDACC__)
    (void)meeting;
    asm volatile("bar.sync %0, 256;" ::"r"(1 + team_number()) : "memory");
#else
    uint32_t now = __atomic_load_n(&meeting->meetings, __ATOMIC_ACQUIRE);
    if (simt_add_acq_rel(&meeting->arrived, 1) + 1 == TEAM_THREADS) {
        __atomic_store_n(&meeting->arrived, 0, __ATOMIC_RELAXED);
        simt_st_release(&meeting->meetings, now + 1);
    } else {
        while (simt_ld_acquire(&meeting->meetings) == now) {
        }
    }
#endif
}

/* Before the first use of the block's meetings, by the whole block. */
static __device__ inline void team_begin(struct team_meeting *meeting)
{
    if (team_thread() == 0)
        meeting->arrived = meeting->meetings = 0;
    __syncthreads();
}

/* Sum of x over the team's threads before this one; '*total' over all.  The whole team calls. */
template <class T> static __device__ inline T team_scan(struct team_meeting *meeting, T x, T *total)
{
    unsigned lane = threadIdx.x % 32, warp = team_thread() / 32;
    T *sums = (T *)meeting->sums, upto = x, before = 0, all = 0;
    SIMT_UNROLL
    for (unsigned d = 1; d < 32; d *= 2) {
        T other = __shfl_up_sync(FULL_WARP, upto, d);
        upto += lane >= d ? other : 0;
    }
    if (lane == 31)
        sums[warp] = upto;
    team_sync(meeting);
    SIMT_UNROLL
    for (unsigned w = 0; w < TEAM_WARPS; w++) {
        before += w < warp ? sums[w] : 0;
        all += sums[w];
    }
    team_sync(meeting);
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
