/*
 * decode_run.cuh - from a message and a number to a superblock's elements where they go
 *
 * Shared by the kernels that decode to elements, that add to sums in memory, and that add up terms.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_DECODE_RUN_CUH
#define ZIPCCL_GPU_DECODE_RUN_CUH

#include "gpu/decode_elements.cuh"
#include "gpu/decode_index.cuh"

static __device__ inline bool is_aligned16(const void *p)
{
    return (uintptr_t)p % 16 == 0;
}

/* Most teams of a block that decodes: 64 registers a thread. */
#define DECODE_TEAMS 4u

/*
 * How many teams of 'nbytes' of shared memory each fit a block, at most 'most'; 'kernel' is allowed to use
 * as much.  cudaErrorNotSupported if not even one does.
 */
template <class K>
static cudaError_t teams_of(K kernel, size_t nbytes, unsigned most, unsigned *nteams)
{
    *nteams = most;
#if defined(__CUDACC__)
    int device, room;
    cudaError_t error = cudaGetDevice(&device);
    if (error == cudaSuccess)
        error = cudaDeviceGetAttribute(&room, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
    if (error != cudaSuccess)
        return error;
    while (*nteams > 0 && *nteams * nbytes > (size_t)room)
        --*nteams;
    if (*nteams == 0)
        return cudaErrorNotSupported;
    return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                (int)(*nteams * nbytes));
#else
    (void)kernel;
    (void)nbytes;
    return cudaSuccess;
#endif
}

/* Once, before the first superblock, by the whole block. */
static __device__ inline void begin_shared(struct decode_shared *sh)
{
    if (team_thread() < 16)
        sh->fill[team_thread()] = fill_selector(team_thread());
    team_begin(&sh->meeting);
}

/* Say in a message's result that its bytes are no message's. */
static __device__ inline void tell_corrupt(const struct decode_launch *p, uint32_t i)
{
    if (team_thread() == 0)
        atomicExch(&p->in.d_results[i].error, (uint32_t)ZIPCCL_ERR_CORRUPT);
}

/*
 * Read the entry of superblock s of message i, and place its bytes: by one warp, from what the chunks of
 * its directory sum up to.
 */
static __device__ inline void place_superblock(struct decode_shared *sh,
                                               const struct decode_launch *p, uint32_t i,
                                               const struct decode_slot *slot, uint32_t s)
{
    const struct decode_state *state = &p->space.states[i];
    uint32_t first = decode_first(p, i), lane = threadIdx.x % 32, mine = s / state->chunk;
    const struct decode_chunk *chunks = p->space.chunks + decode_first_chunk(first, i);
    uint64_t shares = 0, variable = 0, all_shares = 0, all_variable = 0;
    bool bad = false;
    KEEP_LOOP
    for (uint32_t c = lane; c < state->nchunks; c += 32) {
        struct decode_chunk chunk = chunks[c];
        all_shares += chunk.shares;
        all_variable += chunk.variable;
        shares += c < mine ? chunk.shares : 0;
        variable += c < mine ? chunk.variable : 0;
        bad = bad || chunk.bad;
    }
    bad = __any_sync(FULL_WARP, bad);
    if (state->nchunks > 1) {
        shares = warp_sum(shares);
        variable = warp_sum(variable);
    }
    all_shares = warp_sum(all_shares);
    all_variable = warp_sum(all_variable);
    if (lane < ZIPCCL_ENTRY_BYTES / 4)
        sh->entry[lane] = ((const uint32_t *)(slot->wire + ZIPCCL_MESSAGE_HEADER_BYTES +
                                              (size_t)s * ZIPCCL_ENTRY_BYTES))[lane];
    if (lane == 0) {
        struct decode_place place = p->space.places[first + s];
        uint64_t fixed = zipccl_align64(ZIPCCL_MESSAGE_HEADER_BYTES +
                                        (size_t)decode_superblocks(slot->n) * ZIPCCL_ENTRY_BYTES);
        sh->fixed = fixed + shares + place.shares;
        sh->variable = fixed + all_shares + variable + place.variable;
        sh->nvariable = place.nvariable;
        /* The message must end with its variable bytes. */
        sh->ok = !bad && fixed + all_shares + all_variable == state->nbytes;
    }
}

/*
 * Make superblock s of message i ready; false, and told, if its bytes are no message's.  The whole block
 * calls, once it has done with the superblock before.
 */
static __device__ inline bool ready_superblock(struct decode_shared *sh,
                                               const struct decode_launch *p, uint32_t i,
                                               uint32_t s, struct decode_view *v)
{
    struct decode_slot slot = slot_at(&p->in, i);
    if (team_thread() < 32)
        place_superblock(sh, p, i, &slot, s);
    team_sync(&sh->meeting);
    bool good = sh->ok && open_superblock(sh, &p->in.fields, slot.wire,
                                          (unsigned)zipccl_superblock_n(slot.n, s), v);
    if (!good)
        tell_corrupt(p, i);
    return good;
}

/* Add, or set if 'first', up to four floats. */
static __device__ inline void add_quad(float *acc, const float *x, unsigned count, bool first)
{
    if (count == 4 && is_aligned16(acc)) {
        float4 sum = {x[0], x[1], x[2], x[3]};
        if (!first) {
            float4 old = *(const float4 *)acc;
            sum.x = __fadd_rn(old.x, x[0]);
            sum.y = __fadd_rn(old.y, x[1]);
            sum.z = __fadd_rn(old.z, x[2]);
            sum.w = __fadd_rn(old.w, x[3]);
        }
        *(float4 *)acc = sum;
        return;
    }
    SIMT_UNROLL
    for (unsigned k = 0; k < 4; k++)
        if (k < count)
            acc[k] = first ? x[k] : __fadd_rn(acc[k], x[k]);
}

/* The floats of four elements as they lie in memory. */
template <int SPLIT> static __device__ inline void quad_floats(const uint32_t *x, float *y)
{
    SIMT_UNROLL
    for (unsigned k = 0; k < 4; k++)
        y[k] =
            float_of<SPLIT>(element<SPLIT>::size == 4 ? x[k] : x[k / 2] >> 16 * (k % 2) & 0xffff);
}

/* True if four elements at a time are the fast way. */
static __device__ inline bool has_quads(const struct decode_view *v)
{
    return !v->zeros && v->id != ZIPCCL_PROGRAM_RAW && v->id < ZIPCCL_PROGRAM_CONSTANT;
}

/* Add the elements of a superblock to acc [m], or start the sums with them. */
template <int SPLIT>
static __device__ inline void add_superblock(struct decode_shared *sh, const struct decode_view *v,
                                             float *acc, bool first)
{
    if (has_quads(v)) {
        uint32_t low[1] = {0}, next[1] = {0};
        if (4 * team_thread() < v->m)
            load_lows<SPLIT, 1>(v, team_thread(), next);
        KEEP_LOOP
        for (unsigned q = team_thread(); 4 * q < v->m; q += TEAM_THREADS) {
            uint32_t x[4];
            float y[4];
            /* One ahead: these are most of what is read. */
            low[0] = next[0];
            if (4 * (q + TEAM_THREADS) < v->m)
                load_lows<SPLIT, 1>(v, q + TEAM_THREADS, next);
            quad_elements<SPLIT>(sh, v, q, low[0], x);
            quad_floats<SPLIT>(x, y);
            add_quad(acc + 4 * q, y, min(4u, v->m - 4 * q), first);
        }
    } else {
        KEEP_LOOP
        for (unsigned j = team_thread(); j < v->m; j += TEAM_THREADS) {
            float y = float_of<SPLIT>(any_element<SPLIT>(sh, v, j));
            acc[j] = first ? y : __fadd_rn(acc[j], y);
        }
    }
}

/* The same of m elements as they are, at any place that is aligned to them. */
template <int SPLIT>
static __device__ inline void add_elements(const uint8_t *src, unsigned m, float *acc, bool first)
{
    const unsigned size = element<SPLIT>::size;
    bool whole = (uintptr_t)src % (4 * size) == 0;
    KEEP_LOOP
    for (unsigned q = team_thread(); 4 * q < m; q += TEAM_THREADS) {
        unsigned count = min(4u, m - 4 * q);
        const uint8_t *from = src + (size_t)4 * size * q;
        float y[4] = {0, 0, 0, 0};
        if (whole && count == 4) {
            uint32_t x[4];
            if (size == 4) {
                uint4 four = *(const uint4 *)from;
                memcpy(x, &four, 16);
            } else {
                uint2 two = *(const uint2 *)from;
                memcpy(x, &two, 8);
            }
            quad_floats<SPLIT>(x, y);
        } else {
            SIMT_UNROLL
            for (unsigned k = 0; k < 4; k++)
                if (k < count)
                    y[k] = float_of<SPLIT>(size == 4 ? ((const uint32_t *)from)[k]
                                                     : ((const uint16_t *)from)[k]);
        }
        add_quad(acc + 4 * q, y, count, first);
    }
}

template <unsigned SIZE>
static __device__ inline void store_element(uint8_t *dst, unsigned k, uint32_t x)
{
    if (SIZE == 4)
        ((uint32_t *)dst)[k] = x;
    else if (SIZE == 2)
        ((uint16_t *)dst)[k] = (uint16_t)x;
    else
        dst[k] = (uint8_t)x;
}

/* Store 16 bytes of elements, or 'count' elements of them, to where they are aligned to the element. */
template <unsigned SIZE>
static __device__ inline void store_unit(uint8_t *dst, const uint32_t *x, unsigned count)
{
    const unsigned n = 16 / SIZE;
    if (count == n && is_aligned16(dst)) {
        uint4 four = {x[0], x[1], x[2], x[3]};
        *(uint4 *)dst = four;
        return;
    }
    SIMT_UNROLL
    for (unsigned k = 0; k < n; k++)
        if (k < count)
            store_element<SIZE>(dst, k, x[k * SIZE / 4] >> 8 * (k * SIZE % 4));
}

/* Store the elements of a superblock. */
template <int SPLIT>
static __device__ inline void store_superblock(struct decode_shared *sh,
                                               const struct decode_view *v, uint8_t *dst)
{
    const unsigned size = element<SPLIT>::size, n = 16 / size;
    if (has_quads(v)) {
        uint32_t low[n / 4], next[n / 4];
        SIMT_UNROLL
        for (unsigned k = 0; k < n / 4; k++)
            next[k] = 0;
        if (n * team_thread() < v->m)
            load_lows<SPLIT, n / 4>(v, team_thread(), next);
        KEEP_LOOP
        for (unsigned u = team_thread(); n * u < v->m; u += TEAM_THREADS) {
            uint32_t x[4];
            SIMT_UNROLL
            for (unsigned k = 0; k < n / 4; k++)
                low[k] = next[k];
            if (n * (u + TEAM_THREADS) < v->m)
                load_lows<SPLIT, n / 4>(v, u + TEAM_THREADS, next);
            SIMT_UNROLL
            for (unsigned k = 0; k < n / 4; k++)
                quad_elements<SPLIT>(sh, v, n / 4 * u + k, low[k], x + k * size);
            store_unit<size>(dst + (size_t)16 * u, x, min(n, v->m - n * u));
        }
    } else {
        KEEP_LOOP
        for (unsigned j = team_thread(); j < v->m; j += TEAM_THREADS)
            store_element<size>(dst, j, any_element<SPLIT>(sh, v, j));
    }
}

/* Add elements [first, first + m) as they are. */
static __device__ inline void add_raw(unsigned split, const uint8_t *src, unsigned m, float *acc,
                                      bool first)
{
    switch (split) {
    case ZIPCCL_SPLIT_BF16: add_elements<ZIPCCL_SPLIT_BF16>(src, m, acc, first); break;
    case ZIPCCL_SPLIT_FP16: add_elements<ZIPCCL_SPLIT_FP16>(src, m, acc, first); break;
    default: add_elements<ZIPCCL_SPLIT_FP32>(src, m, acc, first); break;
    }
}

static __device__ inline void add_coded(unsigned split, struct decode_shared *sh,
                                        const struct decode_view *v, float *acc, bool first)
{
    switch (split) {
    case ZIPCCL_SPLIT_BF16: add_superblock<ZIPCCL_SPLIT_BF16>(sh, v, acc, first); break;
    case ZIPCCL_SPLIT_FP16: add_superblock<ZIPCCL_SPLIT_FP16>(sh, v, acc, first); break;
    default: add_superblock<ZIPCCL_SPLIT_FP32>(sh, v, acc, first); break;
    }
}

#endif
