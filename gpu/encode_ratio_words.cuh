/*
 * encode_ratio_words.cuh - elements of any type as words that are taken apart like fp32
 *
 * Max ratio has one kernel for all types (ENC_ANY), which is compiled once.  A superblock's elements
 * are first put into the workspace, a word each: exponent, sign and low byte where fp32 has them, what
 * goes into bit-planes in the lowest bits, plane 0 lowest.  Two elements are equal, or zero, if their
 * words are.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_ENCODE_RATIO_WORDS_CUH
#define ZIPCCL_GPU_ENCODE_RATIO_WORDS_CUH

#include "gpu/encode_kernel.cuh"

static __device__ __forceinline__ uint32_t ratio_word_of(int split, uint32_t x)
{
    switch (split) {
    case ZIPCCL_SPLIT_BF16: return x << 16;
    case ZIPCCL_SPLIT_FP16: return (x & 0x7ff8u) << 13 | (x & 0x8000u) << 16 | (x & 7u);
    case ZIPCCL_SPLIT_E4M3: return (x >> 3 & 15u) << 23 | (x << 1 & 14u) | x >> 7;
    case ZIPCCL_SPLIT_E5M2: return (x >> 2 & 31u) << 23 | (x << 1 & 6u) | x >> 7;
    default: return x;
    }
}

/* The inverse. */
static __device__ __forceinline__ uint32_t ratio_element_of(int split, uint32_t w)
{
    switch (split) {
    case ZIPCCL_SPLIT_BF16: return w >> 16;
    case ZIPCCL_SPLIT_FP16: return (w >> 13 & 0x7ff8u) | (w >> 16 & 0x8000u) | (w & 7u);
    case ZIPCCL_SPLIT_E4M3: return (w >> 23 & 15u) << 3 | (w >> 1 & 7u) | (w & 1u) << 7;
    case ZIPCCL_SPLIT_E5M2: return (w >> 23 & 31u) << 2 | (w >> 1 & 3u) | (w & 1u) << 7;
    default: return w;
    }
}

/* A float as an element of bf16 or fp16. */
static __device__ __forceinline__ uint32_t ratio_round(int split, uint32_t bits)
{
    return split == ZIPCCL_SPLIT_BF16 ? enc_round<ZIPCCL_SPLIT_BF16>(bits)
                                      : enc_round<ZIPCCL_SPLIT_FP16>(bits);
}

/* Element 'i' of the message's own. */
static __device__ __forceinline__ uint32_t ratio_element(const struct enc_shared *sh, uint32_t i)
{
    const struct enc_source *src = &sh->src;
    if (src->floats)
        return ratio_round(sh->fields.split, ((const uint32_t *)src->p)[i]);
    return sh->fields.size == 1   ? src->p[i]
           : sh->fields.size == 2 ? ((const uint16_t *)src->p)[i]
                                  : ((const uint32_t *)src->p)[i];
}

/*
 * Put the block's elements to sh->rest as words; sh->src is these then.  True if all are equal.  Every
 * thread calls it and gets the same.
 */
static __device__ __forceinline__ bool ratio_stage(struct enc_thread *t)
{
    struct enc_shared *sh = t->sh;
    uint32_t thread = 32 * t->warp + t->lane, m = sh->src.m, *words = (uint32_t *)sh->rest;
    uint32_t first = ratio_word_of(sh->fields.split, ratio_element(sh, 0)), others = 0;
    for (uint32_t i = thread; i < m; i += ENC_THREADS) {
        words[i] = ratio_word_of(sh->fields.split, ratio_element(sh, i));
        others |= words[i] ^ first;
    }
    bool constant = !__syncthreads_or(others != 0);
    if (thread == 0) {
        sh->src = (struct enc_source){sh->rest, m, false, true};
        sh->rest += ZIPCCL_SUPERBLOCK * sizeof words[0];
    }
    __syncthreads();
    return constant;
}

/* Word 'i' of the staged ones; 0 beyond the last one. */
static __device__ __forceinline__ uint32_t ratio_staged(const struct enc_shared *sh, uint32_t i)
{
    return i < sh->src.m ? ((const uint32_t *)sh->src.p)[i] : 0;
}

/* Bytes i to i + 3 of the superblock's elements as they travel raw, i a multiple of 4. */
static __device__ __forceinline__ uint32_t ratio_raw_word(const struct enc_shared *sh, uint32_t i)
{
    uint32_t size = sh->fields.size, bytes = 0;
    ENC_ROLLED
    for (uint32_t k = 0; k < 4; k += size)
        bytes |= ratio_element_of(sh->fields.split, ratio_staged(sh, (i + k) / size)) << 8 * k;
    return bytes;
}

/* A raw superblock: its share to 'share' unless that is NULL, the other bytes to the slot. */
static __device__ __forceinline__ void ratio_place_raw(const struct enc_thread *t,
                                                       const struct enc_sizes *z, uint8_t *share)
{
    const struct enc_shared *sh = t->sh;
    uint32_t first = z->share, end = sh->src.m * sh->fields.size;
    for (uint32_t i = 4 * (32 * t->warp + t->lane); i < end; i += 4 * ENC_THREADS) {
        uint32_t bytes = ratio_raw_word(sh, i);
        if (i >= first)
            *(uint32_t *)(sh->slot + sh->nbitmap + i - first) = bytes;
        else if (share)
            *(uint32_t *)(share + i) = bytes;
    }
    if (share)
        enc_clear(t, share, (first + 3) & ~3u, (uint32_t)zipccl_align64(first));
}

/* The floats of an item, rounded, to their place in the body of a RAW message. */
template <>
__device__ __forceinline__ void enc_store_rounded<ENC_ANY>(struct enc_thread *t, uint8_t *out)
{
    for (uint32_t i = 32 * t->warp + t->lane; i < t->sh->src.m; i += ENC_THREADS)
        ((uint16_t *)out)[i] = (uint16_t)ratio_element(t->sh, i);
}

#endif
