/*
 * compact.cu - the example kernel: keep the values that are not zero, in order
 *
 * One block per tile of 1024 values.  Source of the look-back: Merrill, Garland, "Single-pass Parallel
 * Prefix Scan with Decoupled Look-back", NVIDIA NVR-2016-002.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/emu/compact.h"

#include "gpu/portable.cuh"

enum { WARPS = 8, PER_LANE = 4, TILE = WARPS * 32 * PER_LANE };

/* A tile's word: state in the two top bits, number of values kept in the others. */
#define SUM_OF_TILE  (1ull << 62)
#define SUM_UP_TO    (2ull << 62)
#define SUM_OF(word) ((word) & ~(3ull << 62))

/* Done by one full warp: how many values the tiles before 'tile' keep. */
static __device__ __forceinline__ uint64_t look_back(uint64_t *words, unsigned tile, uint64_t mine,
                                                     unsigned lane)
{
    uint64_t before = 0;
    if (lane == 0) {
        simt_st_release(&words[tile], (tile ? SUM_OF_TILE : SUM_UP_TO) | mine);
    }
    for (int64_t end = tile; end > 0; end -= 32) {
        const int64_t k = end - 1 - lane;
        uint64_t word = SUM_UP_TO;
        if (k >= 0) {
            while ((word = simt_ld_acquire(&words[k])) == 0) {
                simt_backoff();
            }
        }
        const unsigned full = __ballot_sync(~0u, (word & SUM_UP_TO) != 0);
        const unsigned nearest = full ? (unsigned)__ffs((int)full) - 1 : 31;
        uint64_t sum = lane <= nearest ? SUM_OF(word) : 0;
        for (int d = 16; d > 0; d >>= 1) {
            sum += __shfl_xor_sync(~0u, sum, d);
        }
        before += sum;
        if (full) {
            break;
        }
    }
    if (lane == 0 && tile > 0) {
        simt_st_release(&words[tile], SUM_UP_TO | (before + mine));
    }
    return before;
}

__global__ void __launch_bounds__(WARPS * 32)
    compact_kernel(const uint32_t *__restrict__ in, uint64_t n, uint32_t *__restrict__ out,
                   uint64_t *count, uint64_t *words, unsigned *tickets)
{
    SIMT_SHARED(unsigned, kept, WARPS);
    SIMT_SHARED(uint64_t, base, 1);
    SIMT_SHARED(unsigned, ticket, 1);
    SIMT_DYN_SHARED(uint32_t, staged); /* [TILE] */
    const unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    if (threadIdx.x == 0) {
        ticket[0] = atomicAdd(tickets, 1u);
    }
    __syncthreads();
    const unsigned tile = ticket[0];
    const uint64_t first = (uint64_t)tile * TILE + warp * 32 * PER_LANE;
    unsigned mine = 0;
    uint32_t *warp_staged = staged + warp * 32 * PER_LANE;
    SIMT_UNROLL
    for (int i = 0; i < PER_LANE; i++) {
        const uint64_t at = first + i * 32 + lane;
        const uint32_t v = at < n ? in[at] : 0;
        const unsigned some = __ballot_sync(~0u, v != 0);
        if (v != 0) {
            warp_staged[mine + __popc(some & ((1u << lane) - 1))] = v;
        }
        mine += __popc(some);
    }
    if (lane == 0) {
        kept[warp] = mine;
    }
    __syncthreads();
    if (warp == 0) {
        const unsigned c = lane < WARPS ? kept[lane] : 0;
        unsigned sum = c;
        for (unsigned d = 1; d < WARPS; d <<= 1) {
            const unsigned below = __shfl_up_sync(~0u, sum, d);
            sum += lane >= d ? below : 0;
        }
        const unsigned total = __shfl_sync(~0u, sum, WARPS - 1);
        const uint64_t before = look_back(words, tile, total, lane);
        if (lane < WARPS) {
            kept[lane] = sum - c;
        }
        if (lane == 0) {
            base[0] = before;
            if (tile == gridDim.x - 1) {
                *count = before + total;
            }
        }
    }
    __syncthreads();
    for (unsigned i = lane; i < mine; i += 32) {
        out[base[0] + kept[warp] + i] = warp_staged[i];
    }
}
SIMT_KERNEL(compact_kernel);

static unsigned tiles(uint64_t n)
{
    return n == 0 ? 1 : (unsigned)((n + TILE - 1) / TILE);
}

size_t emu_compact_workspace(uint64_t n)
{
    return ((size_t)tiles(n) + 1) * sizeof(uint64_t);
}

cudaError_t emu_compact(const uint32_t *in, uint64_t n, uint32_t *out, uint64_t *count,
                        void *workspace, cudaStream_t stream)
{
    uint64_t *words = static_cast<uint64_t *>(workspace);
    const cudaError_t error = cudaMemsetAsync(words, 0, emu_compact_workspace(n), stream);
    if (error != cudaSuccess) {
        return error;
    }
    SIMT_LAUNCH(compact_kernel, dim3(tiles(n)), dim3(WARPS * 32), TILE * sizeof(uint32_t), stream,
                in, n, out, count, words + 1, reinterpret_cast<unsigned *>(words));
    return cudaGetLastError();
}
