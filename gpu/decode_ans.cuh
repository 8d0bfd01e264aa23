/*
 * decode_ans.cuh - program ANS: one warp runs the 64 states of a superblock, two a lane
 *
 * Each step decodes a group.  Who needs a byte of the stream is a ballot; the other warps of the
 * block wait, and other blocks of the SM use its time.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_DECODE_ANS_CUH
#define ZIPCCL_GPU_DECODE_ANS_CUH

#include "gpu/ans_laws.cuh"
#include "gpu/decode_block.cuh"

/* Slots of a table, each its symbol, frequency and distance from the symbol's first slot. */
static __device__ inline void ans_slots(uint32_t *slots, int number)
{
    const struct zipccl_ans_law *law = &ans_laws[number];
    unsigned u = threadIdx.x % 32;
    unsigned f = u < ZIPCCL_ANS_ESCAPE ? law->frequency[u] : law->escape[u - ZIPCCL_ANS_ESCAPE];
    unsigned upto = f;
    __syncwarp();
    SIMT_UNROLL
    for (unsigned d = 1; d < 32; d *= 2) {
        unsigned other = __shfl_up_sync(FULL_WARP, upto, d);
        upto += u >= d ? other : 0;
    }
    KEEP_LOOP
    for (unsigned k = 0; k < f; k++)
        slots[upto - f + k] = u | f << 8 | k << 16;
    __syncwarp();
}

/* One step of a state; true if it needs a byte. */
static __device__ inline bool ans_step(const uint32_t *slots, uint32_t *x, unsigned *symbol)
{
    uint32_t slot = slots[*x & 255];
    *symbol = slot & 255;
    *x = (slot >> 8 & 255) * (*x >> 8) + (slot >> 16);
    return *x < 256;
}

/*
 * Decode the symbols of v->rest elements to sh->b and who escapes to sh->plane[0]; called by one warp.
 * False if the states or the end of the stream cannot be.
 */
static __device__ inline bool ans_symbols(struct decode_shared *sh, const struct decode_view *v)
{
    const uint8_t *states = v->variable, *stream = states + ZIPCCL_ANS_STATE_BYTES;
    unsigned lane = threadIdx.x % 32, nstream = entry_escapes(sh, ZIPCCL_ANS_AT_STREAM), next = 0;
    unsigned before_lane = (1u << lane) - 1;
    uint32_t x0 = states[lane] | (uint32_t)states[64 + lane] << 8;
    uint32_t x1 = states[32 + lane] | (uint32_t)states[96 + lane] << 8;
    uint32_t *slots = sh->plane[1];
    uint8_t *symbols = (uint8_t *)sh->b;
    int law = -1;
    bool good = x0 >= 256 && x1 >= 256;
    KEEP_LOOP
    for (unsigned g = 0; ZIPCCL_GROUP * g < v->rest; g++) {
        unsigned i = ZIPCCL_GROUP * g / ZIPCCL_SUBBLOCK, j = ZIPCCL_GROUP * g + lane, u0, u1;
        int named = zipccl_ans_law_of((int)(entry_escapes(sh, ZIPCCL_ANS_AT_LAW) >> 8),
                                      (int)(entry_base(sh, i) & 7));
        if (named != law)
            ans_slots(slots, law = named);
        /* States without an element stay as they are. */
        uint32_t y0 = x0, y1 = x1;
        bool here0 = j < v->rest, here1 = j + 32 < v->rest;
        bool need0 = ans_step(slots, &y0, &u0) && here0, need1 = ans_step(slots, &y1, &u1) && here1;
        unsigned ask0 = __ballot_sync(FULL_WARP, need0), ask1 = __ballot_sync(FULL_WARP, need1);
        unsigned at0 = next + __popc(ask0 & before_lane);
        unsigned at1 = next + __popc(ask0) + __popc(ask1 & before_lane);
        next += __popc(ask0) + __popc(ask1);
        /* More than there is is found at the end. */
        if (need0)
            y0 = y0 << 8 | (at0 < nstream ? stream[at0] : 0);
        if (need1)
            y1 = y1 << 8 | (at1 < nstream ? stream[at1] : 0);
        x0 = here0 ? y0 : x0;
        x1 = here1 ? y1 : x1;
        symbols[j] = (uint8_t)u0;
        symbols[j + 32] = (uint8_t)u1;
        unsigned far0 = __ballot_sync(FULL_WARP, here0 && u0 >= ZIPCCL_ANS_ESCAPE);
        unsigned far1 = __ballot_sync(FULL_WARP, here1 && u1 >= ZIPCCL_ANS_ESCAPE);
        if (lane == 0) {
            sh->plane[0][2 * g] = far0;
            sh->plane[0][2 * g + 1] = far1;
        }
    }
    sh->carried[lane] = (uint8_t)x0;
    sh->carried[lane + 32] = (uint8_t)x1;
    good = good && x0 >> 8 == 1 && x1 >> 8 == 1 && next == nstream;
    return __all_sync(FULL_WARP, good);
}

/* Symbols to sh->b, far values of what escapes to sh->a; false if something cannot be. */
static __device__ inline bool open_ans(struct decode_shared *sh, const struct decode_view *v)
{
    unsigned t = team_thread(), law = entry_escapes(sh, ZIPCCL_ANS_AT_LAW);
    unsigned nstates = ZIPCCL_ANS_STATE_BYTES + entry_escapes(sh, ZIPCCL_ANS_AT_STREAM);
    uint32_t total;
    if (!undo_tiers(sh, decode_ans_tiers, 0, ZIPCCL_ANS_TIERS, 0, v->variable + nstates, v->staged))
        return false;
    if (t < ZIPCCL_SUBBLOCKS) {
        unsigned base = entry_base(sh, t);
        sh->top[t] = (uint8_t)((law & 255) + (base >> 3));
        sh->octaves[t] = ans_laws[zipccl_ans_law_of((int)(law >> 8), (int)(base & 7))].octaves;
    }
    if (t < 32) {
        bool good = ans_symbols(sh, v);
        if (t == 0)
            sh->ok = good;
    }
    team_sync(&sh->meeting);
    if (!sh->ok)
        return false;
    unsigned far0 = 0, far1 = 0;
    if (ZIPCCL_GROUP * t < v->rest) {
        far0 = __popc(sh->plane[0][2 * t]);
        far1 = __popc(sh->plane[0][2 * t + 1]);
    }
    unsigned before = team_scan(&sh->meeting, (uint32_t)(far0 + far1), &total);
    sh->before[2 * t] = (uint16_t)before;
    sh->before[2 * t + 1] = (uint16_t)(before + far0);
    team_sync(&sh->meeting);
    return total == entry_escapes(sh, 0);
}

/* Byte i of the parts: the states carry the first ones. */
static __device__ inline unsigned ans_part(const struct decode_shared *sh,
                                           const struct decode_view *v, unsigned i)
{
    return i < v->ncarried ? sh->carried[i] : v->share[i - v->ncarried];
}

/* Bits 0 to 6 of element r's low byte. */
static __device__ inline unsigned ans_low(const struct decode_shared *sh,
                                          const struct decode_view *v, unsigned r)
{
    unsigned at = 7 * r / 8, shift = 7 * r % 8, bits = ans_part(sh, v, at);
    if (shift > 1)
        bits |= ans_part(sh, v, at + 1) << 8;
    return bits >> shift & 127;
}

/* Exponent, and the half in bit 8, of element r. */
static __device__ inline unsigned ans_exponent(const struct decode_shared *sh, unsigned r)
{
    unsigned symbol = ((const uint8_t *)sh->b)[r], i = r / ZIPCCL_SUBBLOCK, d = symbol >> 1;
    if (symbol >= ZIPCCL_ANS_ESCAPE) {
        uint32_t escapes = sh->plane[0][r / 32] & ((1u << r % 32) - 1);
        unsigned far = ((const uint8_t *)sh->a)[sh->before[r / 32] + __popc(escapes)];
        d = far < 128 ? far + sh->octaves[i] : far;
    }
    return ((sh->top[i] - d) & 255) | (symbol & 1) << 8;
}

#endif
