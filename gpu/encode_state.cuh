/*
 * encode_state.cuh - what the threads that encode one superblock share, and how elements are read
 *
 * A block of 512 threads encodes a superblock at a time, warp w its sub-block w: thread 'lane' of
 * it has the elements [8 lane, 8 lane + 8) of each of its four quarters.  Eight elements are a
 * load of 16 bytes (bf16, fp16), and their bits of a bit-plane are a byte.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_ENCODE_STATE_CUH
#define ZIPCCL_GPU_ENCODE_STATE_CUH

#include "core/codec/decide.h"
#include "core/codec/layout.h"
#include "core/reduce.h"
#include "gpu/bytes.cuh"

#define ENC_THREADS  (32 * ZIPCCL_SUBBLOCKS)
#define ENC_QUARTERS 4
#define ENC_QUARTER  (ZIPCCL_SUBBLOCK / ENC_QUARTERS)
/* Before a loop that is not worth its registers unrolled. */
#if defined(__CUDACC__)
#define ENC_ROLLED _Pragma("unroll 1")
/* Before a loop over quarters that is unrolled if the type is known. */
#define ENC_QUARTERLY _Pragma("unroll (enc_unrolled<SPLIT>)")
#else
#define ENC_ROLLED
#define ENC_QUARTERLY
#endif
/*
 * A type that is known when the kernel runs: elements are words that are taken apart as fp32 are,
 * see encode_ratio_words.cuh.
 */
#define ENC_ANY       (ZIPCCL_NUM_SPLITS + 1)
#define ENC_AS(SPLIT) ((SPLIT) == ENC_ANY ? ZIPCCL_SPLIT_FP32 : (SPLIT))
/* All quarters at once do not fit the registers beside what max ratio keeps. */
#if defined(__CUDACC__)
template <int SPLIT> static constexpr int enc_unrolled = SPLIT == ENC_ANY ? 1 : ENC_QUARTERS;
#endif
/* Programs that a search weighs: four for Gaussians, and three at three octaves. */
#define ENC_CANDIDATES 13

/* How each type is taken apart, for the compiler. */
static constexpr struct zipccl_fields enc_fields[ZIPCCL_NUM_SPLITS] = {
#include "core/codec/fields.inc"
};

ZIPCCL_TABLE struct zipccl_tier_program enc_programs[ZIPCCL_NUM_PROGRAMS] = {
#include "core/codec/programs.inc"
};

ZIPCCL_TABLE uint8_t enc_code_lengths[ZIPCCL_NUM_PROGRAMS][ZIPCCL_NUM_D] = {
#include "core/codec/code_lengths.inc"
};

/* The elements of a superblock, in memory. */
struct enc_source {
    const uint8_t *p;
    uint32_t m;
    bool floats; /* fp32 to be rounded to the type */
    bool wide;   /* 'p' is aligned to 16 bytes */
};

/* In shared memory. */
struct enc_shared {
    uint8_t d[ZIPCCL_SUPERBLOCK]; /* what escapes a tier, in order; or a bitmap's words */
    uint32_t scan[2][ZIPCCL_SUBBLOCKS];
    uint32_t any[ZIPCCL_SUBBLOCKS]; /* bits of planes */
    /* What was sampled, by sub-block; 0 beyond the last one. */
    uint32_t sum[ZIPCCL_SUBBLOCKS], nvalid[ZIPCCL_SUBBLOCKS];
    uint32_t nsampled[ZIPCCL_SUBBLOCKS], nzero[ZIPCCL_SUBBLOCKS];
    uint32_t cost[ENC_CANDIDATES][ZIPCCL_SUBBLOCKS];
    int location[ZIPCCL_SUBBLOCKS], own[ZIPCCL_SUBBLOCKS];
    int centre;
    uint32_t spread;
    uint8_t base[ZIPCCL_SUBBLOCKS];
    uint32_t escapes[ZIPCCL_MAX_TIERS]; /* out of each tier */
    /*
     * What the block does next.  These are the same for all threads: here they take no registers.
     */
    uint32_t item, message, index; /* of the launch, its message, and of that */
    struct enc_source src;         /* the elements, or after a bitmap those that are not zero */
    uint8_t *slot;                 /* for variable bytes, aligned to 16 */
    uint8_t *rest;                 /* room for the elements of a superblock, aligned to 16 */
    uint32_t ngroups, nbitmap;     /* groups of the bitmap, and its bytes; 0 without one */
    uint64_t before;               /* sizes of the superblocks before this one */
    uint32_t found;                /* overflowing messages */
    struct zipccl_fields fields;   /* of ENC_ANY */
};

/* Where a thread stands. */
struct enc_thread {
    struct enc_shared *sh;
    uint32_t lane, warp;
};

/* How elements are taken apart; their size on the wire. */
template <int SPLIT>
static __device__ __forceinline__ struct zipccl_fields enc_fields_of(const struct enc_shared *sh)
{
    if constexpr (SPLIT == ENC_ANY) {
        return sh->fields;
    } else {
        constexpr struct zipccl_fields fields = enc_fields[SPLIT];
        return fields;
    }
}

/* Quarter 'h' of this thread: its first element in the superblock. */
static __device__ __forceinline__ uint32_t enc_first(const struct enc_thread *t, uint32_t h)
{
    return t->warp * ZIPCCL_SUBBLOCK + h * ENC_QUARTER + 8 * t->lane;
}

/*
 * Sum of 'count' over the threads before this one, and over all.  Every thread calls it; two calls with
 * the same 'buffer' (0 or 1) have a barrier between them besides their own.
 */
static __device__ __forceinline__ uint32_t enc_scan(const struct enc_thread *t, uint32_t buffer,
                                                    uint32_t count, uint32_t *total)
{
    uint32_t *sums = t->sh->scan[buffer];
    uint32_t upto = warp_scan(count, t->lane);
    if (t->lane == 31)
        sums[t->warp] = upto;
    __syncthreads();
    uint32_t sum = t->lane < ZIPCCL_SUBBLOCKS ? sums[t->lane] : 0;
    *total = __reduce_add_sync(ALL_LANES, sum);
    return __reduce_add_sync(ALL_LANES, t->lane < t->warp ? sum : 0) + upto - count;
}

/*
 * Byte h of 'masks' marks elements of quarter h.  Fills 'places' with how many marked ones lie before
 * each quarter of this thread, in the order of the superblock, and returns how many there are.  As
 * enc_scan() with buffer 0.
 */
static __device__ __forceinline__ uint32_t enc_places(struct enc_thread *t, uint32_t masks,
                                                      uint32_t places[ENC_QUARTERS])
{
    uint32_t counts = bytes_popc(masks), total;
    /* At most 8 of each quarter in each of 31 lanes: the bytes do not overflow. */
    uint32_t before = __shfl_up_sync(ALL_LANES, counts, 1);
    before = warp_scan(t->lane == 0 ? 0 : before, t->lane);
    uint32_t even = (before & 0xff00ffu) + (counts & 0xff00ffu);
    uint32_t odd = (before >> 8 & 0xff00ffu) + (counts >> 8 & 0xff00ffu);
    even = __shfl_sync(ALL_LANES, even, 31);
    odd = __shfl_sync(ALL_LANES, odd, 31);
    uint32_t sums[ENC_QUARTERS] = {even & 0xffff, odd & 0xffff, even >> 16, odd >> 16};
    uint32_t *of_warps = t->sh->scan[0];
    if (t->lane == 0)
        of_warps[t->warp] = sums[0] + sums[1] + sums[2] + sums[3];
    __syncthreads();
    uint32_t sum = t->lane < ZIPCCL_SUBBLOCKS ? of_warps[t->lane] : 0;
    total = __reduce_add_sync(ALL_LANES, sum);
    uint32_t place = __reduce_add_sync(ALL_LANES, t->lane < t->warp ? sum : 0);
    SIMT_UNROLL
    for (int h = 0; h < ENC_QUARTERS; h++) {
        places[h] = place + (before >> 8 * h & 0xff);
        place += sums[h];
    }
    return total;
}

static __device__ __forceinline__ float enc_float(uint32_t bits)
{
    return zipccl_float_from_bits(bits);
}

/* A float as an element of bf16 or fp16. */
template <int SPLIT> static __device__ __forceinline__ uint32_t enc_round(uint32_t bits)
{
    return SPLIT == ZIPCCL_SPLIT_BF16 ? zipccl_bf16_from_float(enc_float(bits))
                                      : zipccl_fp16_from_float(enc_float(bits));
}

/* Element 'i' of the source. */
template <int SPLIT, bool FLOATS>
static __device__ __forceinline__ uint32_t enc_element(const struct enc_source *src, uint32_t i)
{
    constexpr uint32_t size = enc_fields[ENC_AS(SPLIT)].size;
    if (FLOATS && src->floats)
        return enc_round<SPLIT>(((const uint32_t *)src->p)[i]);
    return size == 1   ? src->p[i]
           : size == 2 ? ((const uint16_t *)src->p)[i]
                       : ((const uint32_t *)src->p)[i];
}

/* Words that eight elements take. */
#define ENC_WORDS(SPLIT) (2 * enc_fields[ENC_AS(SPLIT)].size)

/* True if elements i to i + 7 can be loaded at once. */
static __device__ __forceinline__ bool enc_is_wide(const struct enc_source *src, uint32_t i)
{
    return src->wide && i + 8 <= src->m;
}

/* Elements i to i + 7, i a multiple of 8, to 'words', where enc_is_wide(). */
template <int SPLIT, bool FLOATS>
static __device__ __forceinline__ void enc_load_wide(const struct enc_source *src, uint32_t i,
                                                     uint32_t *words)
{
    constexpr uint32_t size = enc_fields[ENC_AS(SPLIT)].size;
    if (FLOATS && src->floats) {
        const uint4 *p = (const uint4 *)(src->p + 4 * i);
        uint4 a = p[0], b = p[1];
        words[0] = enc_round<SPLIT>(a.x) | enc_round<SPLIT>(a.y) << 16;
        words[1] = enc_round<SPLIT>(a.z) | enc_round<SPLIT>(a.w) << 16;
        words[2] = enc_round<SPLIT>(b.x) | enc_round<SPLIT>(b.y) << 16;
        words[3] = enc_round<SPLIT>(b.z) | enc_round<SPLIT>(b.w) << 16;
        return;
    }
    const uint8_t *p = src->p + size * i;
    if constexpr (size == 1) {
        uint2 a = *(const uint2 *)p;
        words[0] = a.x, words[1] = a.y;
    } else {
        SIMT_UNROLL
        for (uint32_t k = 0; k < size / 2; k++) {
            uint4 a = ((const uint4 *)p)[k];
            words[4 * k] = a.x, words[4 * k + 1] = a.y;
            words[4 * k + 2] = a.z, words[4 * k + 3] = a.w;
        }
    }
}

/* The same anywhere; zeros beyond the last element. */
template <int SPLIT, bool FLOATS>
static __device__ __forceinline__ void enc_load(const struct enc_source *src, uint32_t i,
                                                uint32_t *words)
{
    constexpr uint32_t size = enc_fields[ENC_AS(SPLIT)].size;
    if (enc_is_wide(src, i)) {
        enc_load_wide<SPLIT, FLOATS>(src, i, words);
        return;
    }
    SIMT_UNROLL
    for (uint32_t k = 0; k < ENC_WORDS(SPLIT); k++)
        words[k] = 0;
    /* The last one first: each moves those after it up. */
    ENC_ROLLED
    for (uint32_t j = 8; j-- > 0;) {
        uint32_t x = i + j < src->m ? enc_element<SPLIT, FLOATS>(src, i + j) : 0;
        SIMT_UNROLL
        for (uint32_t k = ENC_WORDS(SPLIT) - 1; k > 0; k--)
            words[k] = size == 4 ? words[k - 1]
                                 : words[k] << 8 * size % 32 | words[k - 1] >> (32 - 8 * size) % 32;
        words[0] = size == 4 ? x : words[0] << 8 * size % 32 | x;
    }
}

/* Exponents of four elements, of 'words' from enc_load(): first four (q = 0) or last. */
template <int SPLIT>
static __device__ __forceinline__ uint32_t enc_exponents(const uint32_t *words, int q)
{
    if (SPLIT == ZIPCCL_SPLIT_BF16)
        return __byte_perm(words[2 * q] >> 7, words[2 * q + 1] >> 7, 0x6420);
    if (SPLIT == ZIPCCL_SPLIT_FP16)
        return __byte_perm(words[2 * q] >> 10, words[2 * q + 1] >> 10, 0x6420) & 0x1f1f1f1fu;
    if (ENC_AS(SPLIT) == ZIPCCL_SPLIT_FP32)
        return __byte_perm(__byte_perm(words[4 * q] << 1, words[4 * q + 1] << 1, 0x0073),
                           __byte_perm(words[4 * q + 2] << 1, words[4 * q + 3] << 1, 0x0073),
                           0x5410);
    return SPLIT == ZIPCCL_SPLIT_E4M3 ? words[q] >> 3 & 0x0f0f0f0fu : words[q] >> 2 & 0x1f1f1f1fu;
}

/* Low bytes, sign lowest, of types that have them. */
template <int SPLIT>
static __device__ __forceinline__ uint32_t enc_low(const uint32_t *words, int q)
{
    uint32_t low[4];
    SIMT_UNROLL
    for (int k = 0; k < (ENC_AS(SPLIT) == ZIPCCL_SPLIT_FP32 ? 4 : 2); k++) {
        uint32_t w = words[(ENC_AS(SPLIT) == ZIPCCL_SPLIT_FP32 ? 4 : 2) * q + k];
        low[k] = SPLIT == ZIPCCL_SPLIT_BF16   ? (w << 1 & 0xfe00feu) | (w >> 15 & 0x10001u)
                 : SPLIT == ZIPCCL_SPLIT_FP16 ? (w >> 2 & 0xfe00feu) | (w >> 15 & 0x10001u)
                                              : (w >> 15 & 0xfeu) | w >> 31;
    }
    if (ENC_AS(SPLIT) != ZIPCCL_SPLIT_FP32)
        return __byte_perm(low[0], low[1], 0x6420);
    return __byte_perm(__byte_perm(low[0], low[1], 0x0040), __byte_perm(low[2], low[3], 0x0040),
                       0x5410);
}

/* Byte-plane 'k' of four fp32. */
static __device__ __forceinline__ uint32_t enc_byte_plane(const uint32_t *words, int q, int k)
{
    uint32_t pick = k == 0 ? 0x0040u : 0x0051u;
    return __byte_perm(__byte_perm(words[4 * q], words[4 * q + 1], pick),
                       __byte_perm(words[4 * q + 2], words[4 * q + 3], pick), 0x5410);
}

/* A byte an element of what bit-planes hold, plane k in bit k. */
template <int SPLIT>
static __device__ __forceinline__ uint32_t enc_bits(const uint32_t *words, int q)
{
    if constexpr (SPLIT == ENC_ANY)
        return enc_byte_plane(words, q, 0);
    if (SPLIT == ZIPCCL_SPLIT_FP16)
        return __byte_perm(words[2 * q], words[2 * q + 1], 0x6420) & 0x07070707u;
    if (SPLIT == ZIPCCL_SPLIT_E4M3)
        return (words[q] << 1 & 0x0e0e0e0eu) | (words[q] >> 7 & 0x01010101u);
    if (SPLIT == ZIPCCL_SPLIT_E5M2)
        return (words[q] << 1 & 0x06060606u) | (words[q] >> 7 & 0x01010101u);
    return 0;
}

/* Which of eight elements have a bit set. */
template <int SPLIT> static __device__ __forceinline__ uint32_t enc_nonzero(const uint32_t *words)
{
    constexpr uint32_t size = enc_fields[ENC_AS(SPLIT)].size;
    if constexpr (size == 1)
        return bytes_plane(bytes_nonzero(words[0]), bytes_nonzero(words[1]), 7);
    uint32_t mask = 0;
    SIMT_UNROLL
    for (uint32_t j = 0; j < 8; j++) {
        uint32_t w = words[j * size / 4];
        mask |= (uint32_t)((size == 4 ? w : w >> 16 * (j & 1) & 0xffffu) != 0) << j;
    }
    return mask;
}

#endif
