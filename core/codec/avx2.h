/*
 * avx2.h - what the files of the AVX2 row share
 *
 * Only files that are built for AVX2 include it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_CODEC_AVX2_H
#define ZIPCCL_CORE_CODEC_AVX2_H

#include "core/codec/row.h"

#include <immintrin.h>
#include <string.h>

/* Constants stay in registers only where the helpers are part of the loop. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

/*
 * At [h][m]: numbers of the set bits of m, one a byte, lowest first, and 8 h added: a shuffle that
 * compresses half h of 16 bytes.  Entries are read 8 bytes beyond.
 */
extern const uint64_t zipccl_packing_avx2[2][257];

ALWAYS_INLINE __m256i load(const void *p)
{
    return _mm256_loadu_si256(p);
}

ALWAYS_INLINE void store(void *p, __m256i x)
{
    _mm256_storeu_si256(p, x);
}

ALWAYS_INLINE uint64_t mask_of(__m256i a, __m256i b)
{
    return (uint32_t)_mm256_movemask_epi8(a) | (uint64_t)(uint32_t)_mm256_movemask_epi8(b) << 32;
}

ALWAYS_INLINE __m256i twice(const uint8_t *p)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)p));
}

/* Append what 'm' takes of half 'half' of 16 bytes; 8 bytes are written. */
ALWAYS_INLINE uint8_t *append_8(uint8_t *out, __m128i x, int half, unsigned m)
{
    const uint64_t *entry = &zipccl_packing_avx2[half][m];
    _mm_storel_epi64((void *)out, _mm_shuffle_epi8(x, _mm_loadu_si128((const void *)entry)));
    return out + _mm_popcnt_u32(m);
}

/* Append the bytes of 64 in two registers that two halves of a mask take; at most 8 beyond are written. */
ALWAYS_INLINE uint8_t *append(uint8_t *out, __m256i x, __m256i y, uint32_t mask_x, uint32_t mask_y)
{
    uint8_t m[8];
    memcpy(m, &mask_x, 4);
    memcpy(m + 4, &mask_y, 4);
    /* From memory a byte of the mask is one instruction, and the ports for loads have the time. */
    __asm__("" : "+m"(m));
    __m128i x1 = _mm256_extracti128_si256(x, 1), y1 = _mm256_extracti128_si256(y, 1);
    out = append_8(out, _mm256_castsi256_si128(x), 0, m[0]);
    out = append_8(out, _mm256_castsi256_si128(x), 1, m[1]);
    out = append_8(out, x1, 0, m[2]);
    out = append_8(out, x1, 1, m[3]);
    out = append_8(out, _mm256_castsi256_si128(y), 0, m[4]);
    out = append_8(out, _mm256_castsi256_si128(y), 1, m[5]);
    out = append_8(out, y1, 0, m[6]);
    return append_8(out, y1, 1, m[7]);
}

/* Byte numbers that put bits 8 i to 8 i + 7 of the word at byte 'from' into lanes 8 i to 8 i + 7. */
ALWAYS_INLINE __m256i bytes_from(int from)
{
    const __m256i byte =
        _mm256_setr_epi64x(0, 0x0101010101010101ll, 0x0202020202020202ll, 0x0303030303030303ll);
    return _mm256_add_epi8(byte, _mm256_set1_epi8((char)from));
}

/* 32 bytes of all ones where a bit is set in the word at byte 'from' of 'words', twice the same 16. */
ALWAYS_INLINE __m256i lanes_at(__m256i words, int from)
{
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201ull);
    __m256i x = _mm256_shuffle_epi8(words, bytes_from(from));
    return _mm256_cmpeq_epi8(_mm256_and_si256(x, bit), bit);
}

/* The same for a word. */
ALWAYS_INLINE __m256i lanes_of(uint32_t mask)
{
    return lanes_at(_mm256_set1_epi32((int)mask), 0);
}

/*
 * Where 32 bytes come from that are spread to the lanes set: how many are set below in its half of
 * 16, in the others 255, which makes a zero.
 */
ALWAYS_INLINE __m256i places_of(__m256i lanes)
{
    const __m256i ones = _mm256_set1_epi8(-1),
                  carry = _mm256_setr_epi64x(-1, 0x0707070707070707ll, -1, 0x0707070707070707ll);
    /* Counts below zero: sums of 2, 4, 8 and then 16 lanes. */
    __m256i x = _mm256_add_epi8(lanes, _mm256_slli_epi64(lanes, 8));
    x = _mm256_add_epi8(x, _mm256_slli_epi64(x, 16));
    x = _mm256_add_epi8(x, _mm256_slli_epi64(x, 32));
    x = _mm256_add_epi8(x, _mm256_shuffle_epi8(x, carry));
    return _mm256_xor_si256(_mm256_and_si256(x, lanes), ones);
}

/* The bytes that 32 lanes with mask 'm' take from 'in' on: each half its own 16. */
ALWAYS_INLINE __m256i next_32(const uint8_t *in, uint32_t m)
{
    const uint8_t *upper = in + _mm_popcnt_u32(m & 0xffff);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)in)),
                                   _mm_loadu_si128((const void *)upper), 1);
}

/* Entries 'at' < 32 of a table in two registers, each twice the same 16 bytes. */
ALWAYS_INLINE __m256i look_up(__m256i below_16, __m256i from_16, __m256i at)
{
    return _mm256_blendv_epi8(_mm256_shuffle_epi8(below_16, at), _mm256_shuffle_epi8(from_16, at),
                              _mm256_slli_epi16(at, 3));
}

/* row.h's sample, sample_all, locate, cost and cost_all. */
void zipccl_sample_avx2(const struct zipccl_fields *fields, const uint8_t *src, size_t i, size_t m,
                        size_t look, struct zipccl_sample *sample);
uint32_t zipccl_sample_all_avx2(const struct zipccl_fields *fields, const uint8_t *src, size_t look,
                                struct zipccl_sample *sample, struct zipccl_moments *moments);
int zipccl_locate_avx2(struct zipccl_moments *moments);
uint32_t zipccl_cost_avx2(const struct zipccl_sample *sample, size_t n, const uint8_t *bases,
                          const uint8_t bits[ZIPCCL_NUM_D]);
uint32_t zipccl_cost_all_avx2(const struct zipccl_sample *sample,
                              const struct zipccl_moments *moments, const uint8_t *bases,
                              const uint8_t bits[ZIPCCL_NUM_D], uint32_t *each);

/* row.h's sift and unsift. */
size_t zipccl_sift_avx2(uint8_t *d, size_t m, const struct zipccl_tier *tier, uint8_t *planes);
size_t zipccl_unsift_avx2(const uint8_t *planes, const uint8_t *escaped, size_t m,
                          const struct zipccl_tier *tier, uint8_t *d);

#endif
