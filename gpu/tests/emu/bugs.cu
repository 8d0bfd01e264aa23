/*
 * bugs.cu - kernels with one planted bug each, for the tests of the emulator
 *
 * The first ones are found by the emulator itself.  The races and the accesses out of bounds are for
 * ThreadSanitizer and AddressSanitizer; what a sanitizer must name is the line marked with the
 * bug's name.  Each kernel is right without its bug.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/emu/bugs.h"

#include "gpu/portable.cuh"
#include "gpu/tests/emu/emu.h"

/* Half a warp stands at another barrier. */
__global__ void other_barrier(unsigned *)
{
    if (threadIdx.x % 32 < 16) {
        __syncthreads(); /* other_barrier */
    } else {
        __syncthreads();
    }
}

__global__ void divergent_ballot(unsigned *words)
{
    if (threadIdx.x % 32 < 7) {
        words[threadIdx.x] = (unsigned)__any_sync(~0u, 1); /* divergent_ballot */
    } else {
        words[threadIdx.x] = __ballot_sync(~0u, 1);
    }
}

__global__ void shuffle_outside(unsigned *words)
{
    if (threadIdx.x < 4) {
        words[threadIdx.x] = __shfl_sync(0xfu, threadIdx.x, 9); /* shuffle_outside */
    }
}

__global__ void not_in_mask(unsigned *words)
{
    words[threadIdx.x] = __ballot_sync(0xffffu, 1); /* not_in_mask */
}

__global__ void early_return(unsigned *words)
{
    if (threadIdx.x == 40) {
        return;
    }
    __syncthreads(); /* early_return */
    words[threadIdx.x] = 1;
}

__global__ void early_return_in_warp(unsigned *words)
{
    if (threadIdx.x == 31) {
        return;
    }
    words[threadIdx.x] = __ballot_sync(~0u, 1); /* early_return_in_warp */
}

__global__ void partial_warp(unsigned *words)
{
    words[threadIdx.x] = __ballot_sync(~0u, 1); /* partial_warp */
}

/* Each block waits for the one before it, by its index: the one before may not have started. */
__global__ void look_back_by_index(unsigned *words)
{
    if (threadIdx.x == 0) {
        while (blockIdx.x > 0 &&
               simt_ld_acquire(&words[blockIdx.x - 1]) == 0) { /* look_back_by_index */
            simt_backoff();
        }
        simt_st_release(&words[blockIdx.x], 1u);
    }
}

__global__ void waits_for_nobody(unsigned *words)
{
    if (threadIdx.x < 32) {
        while (!__any_sync(~0u, simt_ld_acquire(&words[7]) == 1)) { /* waits_for_nobody */
        }
    }
    __syncthreads();
}

/* Two halves wait for each other. */
__global__ void crossed_masks(unsigned *)
{
    if (threadIdx.x < 16) {
        __syncwarp(0x1ffffu); /* crossed_masks */
    } else {
        __syncwarp(0xffff8000u);
    }
}

__global__ void shared_overflow(unsigned *words)
{
    SIMT_SHARED(unsigned, s, 31);
    s[threadIdx.x] = threadIdx.x; /* shared_overflow */
    __syncthreads();
    words[threadIdx.x] = s[(threadIdx.x + 1) % 31];
}

__global__ void dynamic_overflow(unsigned *words)
{
    SIMT_DYN_SHARED(unsigned, s);
    s[threadIdx.x] = threadIdx.x; /* dynamic_overflow */
    __syncthreads();
    words[threadIdx.x] = s[0];
}

__global__ void reads_unwritten(unsigned *words)
{
    SIMT_SHARED(unsigned, s, 32);
    if (threadIdx.x < 8) {
        s[threadIdx.x] = 0;
    }
    __syncthreads();
    if (s[threadIdx.x] != 0) {
        __syncthreads(); /* reads_unwritten */
    }
    words[threadIdx.x] = 1;
}

__global__ void global_overflow(unsigned *words)
{
    words[EMU_BUG_WORDS + threadIdx.x - 31] = 1; /* global_overflow */
}

__global__ void missing_syncwarp(unsigned *words)
{
    SIMT_SHARED(unsigned, s, 32);
    s[threadIdx.x] = threadIdx.x; /* missing_syncwarp */
    words[threadIdx.x] = s[31 - threadIdx.x];
}

__global__ void missing_barrier(unsigned *words)
{
    SIMT_SHARED(unsigned, s, 64);
    s[threadIdx.x] = threadIdx.x; /* missing_barrier */
    __syncwarp();
    words[threadIdx.x] = s[63 - threadIdx.x];
}

__global__ void ballot_is_no_fence(unsigned *words)
{
    SIMT_SHARED(unsigned, s, 32);
    s[threadIdx.x] = threadIdx.x; /* ballot_is_no_fence */
    (void)__ballot_sync(~0u, 1);
    words[threadIdx.x] = s[31 - threadIdx.x];
}

__global__ void same_word(unsigned *words)
{
    if (threadIdx.x == 0) {
        words[0] = blockIdx.x; /* same_word */
    }
}

/* The flag is taken by a relaxed atomic, so what it guards is not. */
__global__ void relaxed_flag(unsigned *words)
{
    if (threadIdx.x == 0 && blockIdx.x == 0) {
        words[1] = 5; /* relaxed_flag */
        simt_st_release(&words[0], 1u);
    }
    if (threadIdx.x == 0 && blockIdx.x == 1 && atomicOr(&words[0], 0u)) {
        words[2] = words[1];
    }
}

/* Right: what the others get wrong.  No tool may complain. */
__global__ void no_bug(unsigned *words)
{
    SIMT_SHARED(unsigned, s, 64);
    s[threadIdx.x] = threadIdx.x;
    __syncthreads();
    const unsigned other = s[63 - threadIdx.x];
    __syncwarp();
    if (threadIdx.x == 0) {
        words[64 + blockIdx.x] = other;
        if (simt_add_acq_rel(&words[0], 1u) == gridDim.x - 1) {
            for (unsigned b = 0; b < gridDim.x; b++) {
                words[1] += words[64 + b];
            }
        }
    }
}

#define LAUNCH(kern, grid, block, smem)                                                            \
    [](unsigned *words, cudaStream_t s) { SIMT_LAUNCH(kern, grid, block, smem, s, words); }

const struct emu_bug emu_bugs[] = {
    {"no_bug", 1, EMU_SHUFFLED, "", nullptr, LAUNCH(no_bug, 8, 64, 0)},
    {"other_barrier", 1, EMU_ASCENDING, "threads of one block meet at different barriers",
     "other_barrier", LAUNCH(other_barrier, 1, 32, 0)},
    {"divergent_ballot", 1, EMU_ASCENDING, "lanes of one warp meet in different operations",
     "divergent_ballot", LAUNCH(divergent_ballot, 1, 32, 0)},
    {"shuffle_outside", 1, EMU_ASCENDING, "reads lane 9, which is not in the mask",
     "shuffle_outside", LAUNCH(shuffle_outside, 1, 32, 0)},
    {"not_in_mask", 1, EMU_ASCENDING, "calling lane is not in its own mask", "not_in_mask",
     LAUNCH(not_in_mask, 1, 32, 0)},
    {"early_return", 1, EMU_ASCENDING, "thread exited while others wait at a barrier",
     "early_return", LAUNCH(early_return, 1, 64, 0)},
    {"early_return_in_warp", 1, EMU_ASCENDING,
     "lane exited while a warp operation that names it waits", "early_return_in_warp",
     LAUNCH(early_return_in_warp, 1, 32, 0)},
    {"partial_warp", 1, EMU_ASCENDING, "mask names lanes that do not exist", "partial_warp",
     LAUNCH(partial_warp, 1, 40, 0)},
    {"look_back_by_index", 1, EMU_DESCENDING, "livelock: threads spin without progress",
     "look_back_by_index", LAUNCH(look_back_by_index, 4, 32, 0)},
    {"waits_for_nobody", 1, EMU_ASCENDING, "livelock: threads spin without progress",
     "waits_for_nobody", LAUNCH(waits_for_nobody, 1, 64, 0)},
    {"crossed_masks", 1, EMU_ASCENDING, "deadlock: no thread can run", "crossed_masks",
     LAUNCH(crossed_masks, 1, 32, 0)},
    {"shared_overflow", 1, EMU_ASCENDING, "wrote outside static shared memory of 124 bytes",
     nullptr, LAUNCH(shared_overflow, 1, 32, 0)},
    {"dynamic_overflow", 1, EMU_ASCENDING, "wrote outside dynamic shared memory of 64 bytes",
     nullptr, LAUNCH(dynamic_overflow, 1, 32, 64)},
    {"reads_unwritten", 1, EMU_ASCENDING, "while others wait at a barrier", "reads_unwritten",
     LAUNCH(reads_unwritten, 1, 32, 0)},
    {"global_overflow", 0, EMU_ASCENDING, nullptr, nullptr, LAUNCH(global_overflow, 1, 32, 0)},
    {"missing_syncwarp", 0, EMU_ASCENDING, nullptr, nullptr, LAUNCH(missing_syncwarp, 1, 32, 0)},
    {"missing_barrier", 0, EMU_ASCENDING, nullptr, nullptr, LAUNCH(missing_barrier, 1, 64, 0)},
    {"ballot_is_no_fence", 0, EMU_ASCENDING, nullptr, nullptr,
     LAUNCH(ballot_is_no_fence, 1, 32, 0)},
    {"same_word", 0, EMU_ASCENDING, nullptr, nullptr, LAUNCH(same_word, 4, 32, 0)},
    {"relaxed_flag", 0, EMU_ASCENDING, nullptr, nullptr, LAUNCH(relaxed_flag, 2, 32, 0)},
};
const int emu_nbugs = sizeof emu_bugs / sizeof emu_bugs[0];
