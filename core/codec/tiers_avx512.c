/*
 * tiers_avx512.c - the deeper tiers with AVX-512
 *
 * Whole groups first, without a branch; then what is left, which fills no group.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/avx512.h"

#include <string.h>

/* The values of a tier, one a register; of three in a tier of one or two bits. */
struct values {
    __m512i d0, d1, d2;
};

ALWAYS_INLINE struct values values_of(const struct zipccl_tier *tier)
{
    return (struct values){_mm512_set1_epi8(tier->d[0]), _mm512_set1_epi8(tier->d[1]),
                           _mm512_set1_epi8(tier->d[2])};
}

/* Append the bytes of 'x' under 'mask'; 64 bytes are written. */
ALWAYS_INLINE uint8_t *append(uint8_t *out, __m512i x, __mmask64 mask)
{
    _mm512_storeu_si512(out, _mm512_maskz_compress_epi8(mask, x));
    return out + __builtin_popcountll(mask);
}

/* Code the lanes of 'x' under 'inside' into planes [width], and return which escape. */
ALWAYS_INLINE __mmask64 code_lanes(__m512i x, struct values v, int width, __mmask64 inside,
                                   __mmask64 *planes)
{
    if (width == 1) {
        planes[0] = _mm512_mask_cmpneq_epi8_mask(inside, x, v.d0);
        return planes[0];
    }
    __mmask64 is1 = _mm512_mask_cmpeq_epi8_mask(inside, x, v.d1);
    __mmask64 is2 = _mm512_mask_cmpeq_epi8_mask(inside, x, v.d2);
    __mmask64 others = _kandn_mask64(_kor_mask64(is1, is2), inside);
    __mmask64 escapes = _mm512_mask_cmpneq_epi8_mask(others, x, v.d0);
    planes[0] = _kor_mask64(is1, escapes);
    planes[1] = _kor_mask64(is2, escapes);
    return escapes;
}

ALWAYS_INLINE size_t sift_width(uint8_t *d, size_t m, struct values v, int width, uint8_t *planes)
{
    /* In place: what is written lies behind what is read. */
    uint8_t *out = d;
    __mmask64 plane[2];
    size_t i = 0;
    for (; i + ZIPCCL_GROUP <= m; i += ZIPCCL_GROUP, planes += 8 * width) {
        __m512i x = _mm512_loadu_si512(d + i);
        __mmask64 escapes = code_lanes(x, v, width, ~0ull, plane);
        memcpy(planes, plane, 8 * (size_t)width);
        out = append(out, x, escapes);
    }
    if (i < m) {
        __m512i x = _mm512_loadu_si512(d + i);
        __mmask64 escapes = code_lanes(x, v, width, mask_of(m - i), plane);
        memcpy(planes, &plane[0], 8);
        if (width == 2)
            memcpy(planes + (m - i + 7) / 8, &plane[1], 8);
        out = append(out, x, escapes);
    }
    return (size_t)(out - d);
}

static size_t sift3(uint8_t *d, size_t m, const struct zipccl_tier *tier, uint8_t *planes)
{
    uint8_t of_d[64];
    memset(of_d, 7, sizeof of_d);
    for (uint8_t k = 0; k < 7; k++)
        of_d[tier->d[k] - ZIPCCL_LEAST_D] = k;
    const __m512i table = _mm512_loadu_si512(of_d), last = _mm512_set1_epi8(ZIPCCL_NUM_D - 1),
                  least = _mm512_set1_epi8(ZIPCCL_LEAST_D);
    uint8_t *out = d;
    for (size_t i = 0; i < m; i += ZIPCCL_GROUP) {
        uint64_t mask = mask_of(m - i), escapes = mask;
        size_t nbytes = m - i < ZIPCCL_GROUP ? (m - i + 7) / 8 : 8;
        __m512i x = _mm512_loadu_si512(d + i);
        __m512i at = _mm512_min_epu8(_mm512_sub_epi8(x, least), last);
        __m512i codes = _mm512_permutexvar_epi8(at, table);
        for (int k = 0; k < 3; k++) {
            uint64_t plane = mask & _mm512_test_epi8_mask(codes, _mm512_set1_epi8((char)(1 << k)));
            memcpy(planes, &plane, 8);
            planes += nbytes;
            escapes &= plane;
        }
        out = append(out, x, escapes);
    }
    return (size_t)(out - d);
}

size_t zipccl_sift_avx512(uint8_t *d, size_t m, const struct zipccl_tier *tier, uint8_t *planes)
{
    switch (tier->width) {
    case 1: return sift_width(d, m, values_of(tier), 1, planes);
    case 2: return sift_width(d, m, values_of(tier), 2, planes);
    default: return sift3(d, m, tier, planes);
    }
}

/* The d of 64 codes of one bit, or two with plane 1; lanes that escape take the next bytes. */
ALWAYS_INLINE __m512i lanes_of(__mmask64 p0, __mmask64 p1, int width, struct values v,
                               const uint8_t *next)
{
    __m512i x = _mm512_loadu_si512(next);
    if (width == 1)
        return _mm512_mask_expand_epi8(v.d0, p0, x);
    __m512i d = _mm512_mask_mov_epi8(_mm512_mask_blend_epi8(p0, v.d0, v.d1), p1, v.d2);
    return _mm512_mask_expand_epi8(d, _kand_mask64(p0, p1), x);
}

ALWAYS_INLINE uint64_t word_at(const uint8_t *p, size_t nbytes)
{
    uint64_t word = 0;
    memcpy(&word, p, nbytes);
    return word;
}

ALWAYS_INLINE size_t unsift_width(const uint8_t *planes, const uint8_t *escaped, size_t m,
                                  struct values v, int width, uint8_t *d)
{
    const uint8_t *next = escaped;
    size_t i = 0;
    for (; i + ZIPCCL_GROUP <= m; i += ZIPCCL_GROUP, planes += 8 * width) {
        const uint8_t *second = planes + 8 * (width - 1);
        __mmask64 p0 = word_at(planes, 8), p1 = word_at(second, 8);
        _mm512_storeu_si512(d + i, lanes_of(p0, p1, width, v, next));
        next += __builtin_popcountll(word_at(planes, 8) & word_at(second, 8));
    }
    if (i < m) {
        size_t nbytes = (m - i + 7) / 8;
        uint64_t p0 = word_at(planes, nbytes) & mask_of(m - i), p1 = p0;
        if (width == 2)
            p1 = word_at(planes + nbytes, nbytes);
        _mm512_storeu_si512(d + i, lanes_of(p0, p1, width, v, next));
        next += __builtin_popcountll(p0 & p1);
    }
    return (size_t)(next - escaped);
}

static size_t unsift3(const uint8_t *planes, const uint8_t *escaped, size_t m,
                      const struct zipccl_tier *tier, uint8_t *d)
{
    uint8_t of_code[16] = {0};
    memcpy(of_code, tier->d, sizeof tier->d);
    const __m512i table = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)of_code));
    const uint8_t *next = escaped;
    for (size_t i = 0; i < m; i += ZIPCCL_GROUP) {
        uint64_t escapes = mask_of(m - i);
        size_t nbytes = m - i < ZIPCCL_GROUP ? (m - i + 7) / 8 : 8;
        __m512i codes = _mm512_setzero_si512();
        for (int k = 0; k < 3; k++) {
            uint64_t plane = word_at(planes, nbytes);
            codes = _mm512_or_si512(codes, _mm512_maskz_set1_epi8(plane, (char)(1 << k)));
            planes += nbytes;
            escapes &= plane;
        }
        __m512i x = _mm512_mask_expand_epi8(_mm512_shuffle_epi8(table, codes), escapes,
                                            _mm512_loadu_si512(next));
        _mm512_storeu_si512(d + i, x);
        next += __builtin_popcountll(escapes);
    }
    return (size_t)(next - escaped);
}

size_t zipccl_unsift_avx512(const uint8_t *planes, const uint8_t *escaped, size_t m,
                            const struct zipccl_tier *tier, uint8_t *d)
{
    switch (tier->width) {
    case 1: return unsift_width(planes, escaped, m, values_of(tier), 1, d);
    case 2: return unsift_width(planes, escaped, m, values_of(tier), 2, d);
    default: return unsift3(planes, escaped, m, tier, d);
    }
}
