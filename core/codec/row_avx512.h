/*
 * row_avx512.h - 64 bf16 in two registers and back, for the files of the AVX-512 row
 *
 * Static functions only; what includes it is built with the row's instructions.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_CODEC_ROW_AVX512_H
#define ZIPCCL_CORE_CODEC_ROW_AVX512_H

#include "core/codec/avx512.h"

/* Byte numbers that take apart and put together 64 elements held in two registers. */
static const uint8_t odd_bytes[64] = {
    1,  3,  5,   7,   9,   11,  13,  15,  17,  19,  21,  23,  25,  27,  29,  31,
    33, 35, 37,  39,  41,  43,  45,  47,  49,  51,  53,  55,  57,  59,  61,  63,
    65, 67, 69,  71,  73,  75,  77,  79,  81,  83,  85,  87,  89,  91,  93,  95,
    97, 99, 101, 103, 105, 107, 109, 111, 113, 115, 117, 119, 121, 123, 125, 127};
static const uint8_t pair_low[64] = {
    0,  64, 1,  65, 2,  66, 3,  67, 4,  68, 5,  69, 6,  70, 7,  71, 8,  72, 9,  73, 10, 74,
    11, 75, 12, 76, 13, 77, 14, 78, 15, 79, 16, 80, 17, 81, 18, 82, 19, 83, 20, 84, 21, 85,
    22, 86, 23, 87, 24, 88, 25, 89, 26, 90, 27, 91, 28, 92, 29, 93, 30, 94, 31, 95};
struct halves {
    __m512i exponents, low;
};

ALWAYS_INLINE struct halves take_apart(__m512i a, __m512i b)
{
    __m512i odd = _mm512_loadu_si512(odd_bytes);
    __m512i even = _mm512_sub_epi8(odd, _mm512_set1_epi8(1));
    a = _mm512_shldi_epi16(a, a, 1);
    b = _mm512_shldi_epi16(b, b, 1);
    return (struct halves){_mm512_permutex2var_epi8(a, odd, b),
                           _mm512_permutex2var_epi8(a, even, b)};
}

ALWAYS_INLINE struct halves load_64(const uint8_t *src)
{
    return take_apart(_mm512_loadu_si512(src), _mm512_loadu_si512(src + 64));
}

/* The elements under 'mask'; the others are zero. */
ALWAYS_INLINE struct halves load_tail(const uint8_t *src, __mmask64 mask)
{
    __m512i a = _mm512_maskz_loadu_epi16((__mmask32)mask, src);
    __m512i b = _mm512_maskz_loadu_epi16((__mmask32)(mask >> 32), src + 64);
    return take_apart(a, b);
}

/* Whole aligned vectors past the caches. */
ALWAYS_INLINE void store(uint8_t *dst, __m512i x, bool stream)
{
    if (stream)
        _mm512_stream_si512((void *)dst, x);
    else
        _mm512_storeu_si512(dst, x);
}

ALWAYS_INLINE bool is_aligned(const uint8_t *p)
{
    return (uintptr_t)p % 64 == 0;
}

ALWAYS_INLINE void store_64(uint8_t *dst, struct halves x, __mmask64 mask, bool stream)
{
    __m512i first = _mm512_loadu_si512(pair_low);
    __m512i second = _mm512_add_epi8(first, _mm512_set1_epi8(32));
    __m512i a = _mm512_permutex2var_epi8(x.low, first, x.exponents);
    __m512i b = _mm512_permutex2var_epi8(x.low, second, x.exponents);
    a = _mm512_shrdi_epi16(a, a, 1);
    b = _mm512_shrdi_epi16(b, b, 1);
    if (mask == ~0ull) {
        store(dst, a, stream);
        store(dst + 64, b, stream);
    } else {
        _mm512_mask_storeu_epi16(dst, (__mmask32)mask, a);
        if (mask >> 32)
            _mm512_mask_storeu_epi16(dst + 64, (__mmask32)(mask >> 32), b);
    }
}

/*
 * Append the bytes of 'd' under 'mask'; 64 bytes are written at most.  Compressing to a register
 * and storing it whole is many times faster than compressing to memory on Zen 4.
 */
ALWAYS_INLINE uint8_t *append(uint8_t *out, __m512i d, uint64_t mask)
{
    size_t n = (size_t)__builtin_popcountll(mask);
    __m512i packed = _mm512_maskz_compress_epi8(mask, d);
    _mm256_storeu_si256((__m256i *)out, _mm512_castsi512_si256(packed));
    if (__builtin_expect(n > 32, 0))
        _mm256_storeu_si256((__m256i *)(out + 32), _mm512_extracti64x4_epi64(packed, 1));
    return out + n;
}

#endif
