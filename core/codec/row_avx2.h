/*
 * row_avx2.h - what the templates of kernels ask for, for the files of the AVX2 row
 *
 * Static functions only; what includes it is built with the row's instructions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_CODEC_ROW_AVX2_H
#define ZIPCCL_CORE_CODEC_ROW_AVX2_H

#include "core/codec/avx2.h"

ALWAYS_INLINE size_t compress(const uint8_t *d, uint64_t mask, uint8_t *out)
{
    uint8_t *end = append(out, load(d), load(d + 32), (uint32_t)mask, (uint32_t)(mask >> 32));
    return (size_t)(end - out);
}

ALWAYS_INLINE size_t expand(const uint8_t *in, uint64_t mask, uint8_t *d)
{
    for (int k = 0; k < 2; k++) {
        uint32_t half = (uint32_t)(mask >> 32 * k);
        __m256i lanes = lanes_of(half);
        __m256i x = _mm256_shuffle_epi8(next_32(in, half), places_of(lanes));
        store(d + 32 * k, _mm256_or_si256(x, _mm256_andnot_si256(lanes, load(d + 32 * k))));
        in += _mm_popcnt_u32(half);
    }
    return (size_t)_mm_popcnt_u64(mask);
}

ALWAYS_INLINE void group_planes(const uint8_t *codes, int nbits, uint64_t *planes)
{
    for (int k = 0; k < nbits; k++)
        planes[k] = mask_of(_mm256_slli_epi16(load(codes), 7 - k),
                            _mm256_slli_epi16(load(codes + 32), 7 - k));
}

/* The codes of 32 lanes. */
ALWAYS_INLINE __m256i codes_of(const uint64_t *planes, int nbits, int half)
{
    __m256i x = _mm256_setzero_si256();
    for (int k = 0; k < nbits; k++) {
        __m256i lanes = lanes_of((uint32_t)(planes[k] >> 32 * half));
        x = _mm256_or_si256(x, _mm256_and_si256(lanes, _mm256_set1_epi8((char)(1 << k))));
    }
    return x;
}

ALWAYS_INLINE void group_codes(const uint64_t *planes, int nbits, uint8_t *codes)
{
    store(codes, codes_of(planes, nbits, 0));
    store(codes + 32, codes_of(planes, nbits, 1));
}

ALWAYS_INLINE size_t fill(const uint8_t *in, uint64_t mask, uint8_t *d)
{
    return expand(in, mask, d);
}

#endif
