/*
 * row_avx512.c - the AVX-512 row (F, BW, VL, DQ, VBMI, VBMI2, GFNI)
 *
 * Built with these instructions enabled for this file alone; called only where isa.c found them.
 * Tails use masked loads and stores, which touch no byte outside their mask.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/row.h"

#include <immintrin.h>
#include <string.h>

/* Byte i of each quadword is 1 << i: as data it picks columns, as a matrix it reverses bits. */
#define DIAGONAL 0x8040201008040201ll

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
/* Byte q * 8 + 2 * g + p, plane p of group g for elements 8q to 8q + 7, goes to 16 * g + 8 * p + q. */
static const uint8_t planes_of_4[64] = {
    0,  8,  16, 24, 32, 40, 48, 56, 1,  9,  17, 25, 33, 41, 49, 57, 2,  10, 18, 26, 34, 42,
    50, 58, 3,  11, 19, 27, 35, 43, 51, 59, 4,  12, 20, 28, 36, 44, 52, 60, 5,  13, 21, 29,
    37, 45, 53, 61, 6,  14, 22, 30, 38, 46, 54, 62, 7,  15, 23, 31, 39, 47, 55, 63};

/* Constants stay in registers only where the helpers are part of the loop. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

struct halves {
    __m512i exponents, low;
};

ALWAYS_INLINE __mmask64 mask_of(size_t len)
{
    return len < 64 ? (1ull << len) - 1 : ~0ull;
}

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

static bool is_aligned(const uint8_t *p)
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

/* What row_common.h asks for. */
ALWAYS_INLINE void group_planes(const uint8_t *codes, int nbits, uint64_t *planes)
{
    __m512i x = _mm512_loadu_si512(codes);
    for (int k = 0; k < nbits; k++)
        planes[k] = _mm512_test_epi8_mask(x, _mm512_set1_epi8((char)(1 << k)));
}

ALWAYS_INLINE __m512i codes_of(const uint64_t *planes, int nbits)
{
    __m512i x = _mm512_maskz_set1_epi8(planes[0], 1);
    for (int k = 1; k < nbits; k++)
        x = _mm512_or_si512(x, _mm512_maskz_set1_epi8(planes[k], (char)(1 << k)));
    return x;
}

ALWAYS_INLINE void group_codes(const uint64_t *planes, int nbits, uint8_t *codes)
{
    _mm512_storeu_si512(codes, codes_of(planes, nbits));
}

ALWAYS_INLINE size_t compress(const uint8_t *d, uint64_t mask, uint8_t *out)
{
    return (size_t)(append(out, _mm512_loadu_si512(d), mask) - out);
}

ALWAYS_INLINE size_t expand(const uint8_t *in, uint64_t mask, uint8_t *d)
{
    __m512i x = _mm512_mask_expand_epi8(_mm512_loadu_si512(d), mask, _mm512_loadu_si512(in));
    _mm512_storeu_si512(d, x);
    return (size_t)__builtin_popcountll(mask);
}

#include "core/codec/row_common.h"

static void sample(const struct zipccl_fields *fields, const uint8_t *src, size_t i, size_t m,
                   size_t look, struct zipccl_sample *s)
{
    if (fields->split != ZIPCCL_SPLIT_BF16) {
        common_sample(fields, src, i, m, look, s);
        return;
    }
    __m256i runs[2];
    s->taken = 0;
    s->nsampled = s->nzero = 0;
    for (size_t run = 0; run < 2; run++) {
        size_t start = zipccl_sample_start(i, m, look, run), len = m - start < 32 ? m - start : 32;
        __m512i x = _mm512_maskz_loadu_epi16((__mmask32)mask_of(len), src + 2 * start);
        s->nzero += (uint32_t)len - (uint32_t)_mm_popcnt_u32(_mm512_test_epi16_mask(x, x));
        x = _mm512_and_si512(_mm512_srli_epi16(x, 7), _mm512_set1_epi16(255));
        runs[run] = _mm512_cvtepi16_epi8(x);
        s->taken |= (uint64_t)mask_of(len) << 32 * run;
        s->nsampled += (uint32_t)len;
    }
    __m512i e = _mm512_inserti64x4(_mm512_castsi256_si512(runs[0]), runs[1], 1);
    _mm512_storeu_si512(s->e, e);

    __m512i zero = _mm512_setzero_si512();
    __mmask64 valid = _mm512_cmplt_epu8_mask(_mm512_sub_epi8(e, _mm512_set1_epi8(1)),
                                             _mm512_set1_epi8((char)254));
    uint32_t nvalid = (uint32_t)__builtin_popcountll(valid);
    uint32_t sum =
        (uint32_t)_mm512_reduce_add_epi64(_mm512_sad_epu8(_mm512_maskz_mov_epi8(valid, e), zero));
    uint32_t mean = sum / 64 + (sum % 64 >= 32); /* the usual count needs no division */
    if (__builtin_expect(nvalid != ZIPCCL_SAMPLES, 0))
        mean = nvalid ? (sum + nvalid / 2) / nvalid : 0;
    uint32_t low = mean > 6 ? mean - 6 : 0, high = mean + 6 < 255 ? mean + 6 : 255;
    __m512i pulled = _mm512_min_epu8(_mm512_max_epu8(e, _mm512_set1_epi8((char)low)),
                                     _mm512_set1_epi8((char)high));
    s->nvalid = nvalid;
    s->sum = (uint32_t)_mm512_reduce_add_epi64(
        _mm512_sad_epu8(_mm512_maskz_mov_epi8(valid, pulled), zero));
}

static uint32_t cost(const struct zipccl_sample *sample, size_t n, const uint8_t *bases,
                     const uint8_t bits[ZIPCCL_NUM_D])
{
    const __m512i table = _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)bits)),
                  last = _mm512_set1_epi8(ZIPCCL_NUM_D - 1), zero = _mm512_setzero_si512();
    __m512i sum = zero, bytes = zero;
    for (size_t i = 0; i < n; i++) {
        __m512i base = _mm512_set1_epi8((char)(bases[i] - ZIPCCL_LEAST_D));
        __m512i at = _mm512_min_epu8(_mm512_sub_epi8(base, _mm512_loadu_si512(sample[i].e)), last);
        bytes = _mm512_add_epi8(bytes, _mm512_maskz_permutexvar_epi8(sample[i].taken, at, table));
        /* No code is longer than 18 bits: eight of them fit a byte. */
        if (i % 8 == 7 || i + 1 == n) {
            sum = _mm512_add_epi64(sum, _mm512_sad_epu8(bytes, zero));
            bytes = zero;
        }
    }
    return (uint32_t)_mm512_reduce_add_epi64(sum);
}

/* Split 256 elements: four groups share one register of 2-bit codes, transposed into planes. */
ALWAYS_INLINE uint8_t *split_256(const uint8_t *src, __m512i base, bool stream, uint8_t *low,
                                 uint8_t *planes, uint8_t *out)
{
    const __m512i three = _mm512_set1_epi8(3), diagonal = _mm512_set1_epi64(DIAGONAL);
    __m512i d[4], codes[4];
    for (int g = 0; g < 4; g++) {
        struct halves x = load_64(src + 128 * g);
        store(low + 64 * g, x.low, stream);
        d[g] = _mm512_sub_epi8(base, x.exponents);
        codes[g] = _mm512_min_epu8(d[g], three);
    }
    __m512i all = _mm512_or_si512(
        _mm512_or_si512(codes[0], _mm512_slli_epi16(codes[1], 2)),
        _mm512_or_si512(_mm512_slli_epi16(codes[2], 4), _mm512_slli_epi16(codes[3], 6)));
    all = _mm512_gf2p8affine_epi64_epi8(diagonal, all, 0);
    all = _mm512_permutexvar_epi8(_mm512_loadu_si512(planes_of_4), all);
    all = _mm512_gf2p8affine_epi64_epi8(all, diagonal, 0);
    store(planes, all, stream);
    for (int g = 0; g < 4; g++)
        out = append(out, d[g], _mm512_cmpeq_epi8_mask(codes[g], three));
    return out;
}

ALWAYS_INLINE size_t split_all(const uint8_t *src, size_t m, const uint8_t *bases, bool stream,
                               uint8_t *low, uint8_t *words, uint8_t *escaped)
{
    uint8_t *out = escaped;
    size_t i = 0;
    for (; i + 256 <= m; i += 256)
        out = split_256(src + 2 * i, _mm512_set1_epi8((char)bases[i / ZIPCCL_SUBBLOCK]), stream,
                        low + i, words + i / 4, out);
    for (; i < m; i += ZIPCCL_GROUP) {
        __mmask64 mask = mask_of(m - i);
        struct halves x = load_tail(src + 2 * i, mask);
        _mm512_mask_storeu_epi8(low + i, mask, x.low);
        __m512i d =
            _mm512_sub_epi8(_mm512_set1_epi8((char)bases[i / ZIPCCL_SUBBLOCK]), x.exponents);
        uint64_t escapes = _mm512_mask_cmpgt_epu8_mask(mask, d, _mm512_set1_epi8(2));
        uint64_t word[2] = {escapes | _mm512_mask_cmpeq_epi8_mask(mask, d, _mm512_set1_epi8(1)),
                            escapes | _mm512_mask_cmpeq_epi8_mask(mask, d, _mm512_set1_epi8(2))};
        memcpy(words + i / 4, word, sizeof word);
        out = append(out, d, escapes);
    }
    return (size_t)(out - escaped);
}

static size_t split(const uint8_t *src, size_t m, const uint8_t *bases, bool stream, uint8_t *low,
                    uint8_t *words, uint8_t *escaped)
{
    if (!stream || !is_aligned(low) || !is_aligned(words))
        return split_all(src, m, bases, false, low, words, escaped);
    size_t nescaped = split_all(src, m, bases, true, low, words, escaped);
    _mm_sfence();
    return nescaped;
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

static size_t sift(uint8_t *d, size_t m, const struct zipccl_tier *tier, uint8_t *planes)
{
    if (tier->width == 3)
        return sift3(d, m, tier, planes);
    const __m512i d0 = _mm512_set1_epi8(tier->d[0]), d1 = _mm512_set1_epi8(tier->d[1]),
                  d2 = _mm512_set1_epi8(tier->d[2]);
    /* In place: what is written lies behind what is read. */
    uint8_t *out = d;
    for (size_t i = 0; i < m; i += ZIPCCL_GROUP) {
        uint64_t mask = mask_of(m - i);
        size_t nbytes = m - i < ZIPCCL_GROUP ? (m - i + 7) / 8 : 8;
        __m512i x = _mm512_loadu_si512(d + i);
        uint64_t escapes = mask & ~_mm512_cmpeq_epi8_mask(x, d0);
        if (tier->width == 1) {
            memcpy(planes, &escapes, 8);
        } else {
            uint64_t is1 = mask & _mm512_cmpeq_epi8_mask(x, d1);
            uint64_t is2 = mask & _mm512_cmpeq_epi8_mask(x, d2);
            escapes &= ~(is1 | is2);
            is1 |= escapes;
            is2 |= escapes;
            memcpy(planes, &is1, 8);
            memcpy(planes + nbytes, &is2, 8);
            planes += nbytes;
        }
        planes += nbytes;
        out = append(out, x, escapes);
    }
    return (size_t)(out - d);
}

/* The d of 64 codes in two planes; lanes under both take the next bytes of 'escaped'. */
ALWAYS_INLINE __m512i lanes_of(uint64_t p0, uint64_t p1, __m512i d0, __m512i d1, __m512i d2,
                               __m512i escaped)
{
    __m512i x = _mm512_mask_blend_epi8(p0, d0, d1);
    x = _mm512_mask_mov_epi8(x, p1, d2);
    return _mm512_mask_expand_epi8(x, p0 & p1, escaped);
}

ALWAYS_INLINE size_t join_all(const uint8_t *low, const uint8_t *words, const uint8_t *escaped,
                              size_t m, const uint8_t *bases, bool stream, uint8_t *dst)
{
    const __m512i zero = _mm512_setzero_si512(), one = _mm512_set1_epi8(1),
                  two = _mm512_set1_epi8(2);
    const uint8_t *next = escaped;
    for (size_t i = 0; i < m; i += ZIPCCL_GROUP) {
        __mmask64 mask = mask_of(m - i);
        uint64_t word[2];
        memcpy(word, words + i / 4, sizeof word);
        word[0] &= mask;
        __m512i d = lanes_of(word[0], word[1], zero, one, two, _mm512_loadu_si512(next));
        next += __builtin_popcountll(word[0] & word[1]);
        struct halves x = {_mm512_sub_epi8(_mm512_set1_epi8((char)bases[i / ZIPCCL_SUBBLOCK]), d),
                           mask == ~0ull ? _mm512_loadu_si512(low + i)
                                         : _mm512_maskz_loadu_epi8(mask, low + i)};
        store_64(dst + 2 * i, x, mask, stream);
    }
    return (size_t)(next - escaped);
}

static size_t join(const uint8_t *low, const uint8_t *words, const uint8_t *escaped, size_t m,
                   const uint8_t *bases, bool stream, uint8_t *dst)
{
    if (!stream || !is_aligned(dst))
        return join_all(low, words, escaped, m, bases, false, dst);
    size_t nescaped = join_all(low, words, escaped, m, bases, true, dst);
    _mm_sfence();
    return nescaped;
}

static size_t unsift3(const uint8_t *planes, const uint8_t *escaped, size_t m,
                      const struct zipccl_tier *tier, uint8_t *d)
{
    uint8_t of_code[16] = {0};
    memcpy(of_code, tier->d, sizeof tier->d);
    const __m512i table = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)of_code));
    const uint8_t *next = escaped;
    for (size_t i = 0; i < m; i += ZIPCCL_GROUP) {
        uint64_t escapes = mask_of(m - i), plane[3];
        size_t nbytes = m - i < ZIPCCL_GROUP ? (m - i + 7) / 8 : 8;
        for (int k = 0; k < 3; k++) {
            plane[k] = common_word(planes, nbytes);
            planes += nbytes;
            escapes &= plane[k];
        }
        __m512i x = _mm512_shuffle_epi8(table, codes_of(plane, 3));
        x = _mm512_mask_expand_epi8(x, escapes, _mm512_loadu_si512(next));
        _mm512_storeu_si512(d + i, x);
        next += __builtin_popcountll(escapes);
    }
    return (size_t)(next - escaped);
}

static size_t unsift(const uint8_t *planes, const uint8_t *escaped, size_t m,
                     const struct zipccl_tier *tier, uint8_t *d)
{
    if (tier->width == 3)
        return unsift3(planes, escaped, m, tier, d);
    const __m512i d0 = _mm512_set1_epi8(tier->d[0]), d1 = _mm512_set1_epi8(tier->d[1]),
                  d2 = _mm512_set1_epi8(tier->d[2]);
    const uint8_t *next = escaped;
    for (size_t i = 0; i < m; i += ZIPCCL_GROUP) {
        uint64_t mask = mask_of(m - i), p0 = 0, p1 = 0;
        size_t nbytes = 8;
        if (mask == ~0ull) {
            memcpy(&p0, planes, 8);
            memcpy(&p1, tier->width == 2 ? planes + 8 : planes, 8);
        } else {
            nbytes = (m - i + 7) / 8;
            memcpy(&p0, planes, nbytes);
            memcpy(&p1, tier->width == 2 ? planes + nbytes : planes, nbytes);
            p0 &= mask;
        }
        planes += (size_t)tier->width * nbytes;
        _mm512_storeu_si512(d + i, lanes_of(p0, p1, d0, d1, d2, _mm512_loadu_si512(next)));
        next += __builtin_popcountll(p0 & p1);
    }
    return (size_t)(next - escaped);
}

static size_t tier1(uint8_t *exponents, size_t m, const uint8_t *bases, int width, uint8_t *words,
                    uint8_t *third)
{
    const __m512i most = _mm512_set1_epi8((char)((1 << width) - 1));
    size_t nbytes = width == 1 ? 8 : 16;
    uint8_t *out = exponents;
    for (size_t i = 0; i < m; i += ZIPCCL_GROUP, words += nbytes) {
        uint64_t mask = mask_of(m - i), plane[3];
        __m512i d = _mm512_sub_epi8(_mm512_set1_epi8((char)bases[i / ZIPCCL_SUBBLOCK]),
                                    _mm512_loadu_si512(exponents + i));
        __m512i codes = _mm512_maskz_min_epu8(mask, d, most);
        for (int k = 0; k < 3; k++)
            plane[k] = _mm512_test_epi8_mask(codes, _mm512_set1_epi8((char)(1 << k)));
        memcpy(words, plane, nbytes);
        if (width == 3)
            memcpy(third + i / 8, &plane[2], 8);
        out = append(out, d, _mm512_mask_cmpeq_epi8_mask(mask, codes, most));
    }
    return (size_t)(out - exponents);
}

/* Compressing to a register, for elements of 'size' bytes in 64 bytes. */
ALWAYS_INLINE size_t compact_64(size_t size, __m512i x, uint64_t *word, uint8_t *rest)
{
    if (size == 1) {
        *word = _mm512_test_epi8_mask(x, x);
        _mm512_storeu_si512(rest, _mm512_maskz_compress_epi8(*word, x));
    } else if (size == 2) {
        *word = _mm512_test_epi16_mask(x, x);
        _mm512_storeu_si512(rest, _mm512_maskz_compress_epi16((__mmask32)*word, x));
    } else {
        *word = _mm512_test_epi32_mask(x, x);
        _mm512_storeu_si512(rest, _mm512_maskz_compress_epi32((__mmask16)*word, x));
    }
    return size * (size_t)__builtin_popcountll(*word);
}

static size_t compact(size_t size, const uint8_t *src, size_t m, uint64_t *words, uint8_t *rest)
{
    const uint8_t *start = rest;
    size_t per = 64 / size;
    memset(words, 0, 8 * zipccl_groups(m));
    for (size_t i = 0; i < m; i += per) {
        uint64_t word, inside = mask_of(size * (m - i));
        rest += compact_64(size, _mm512_maskz_loadu_epi8(inside, src + size * i), &word, rest);
        words[i / ZIPCCL_GROUP] |= word << i % ZIPCCL_GROUP;
    }
    return (size_t)(rest - start) / size;
}

static void scatter(size_t size, const uint64_t *words, const uint8_t *rest, size_t m, uint8_t *dst)
{
    size_t per = 64 / size;
    for (size_t i = 0; i < m; i += per) {
        uint64_t word = words[i / ZIPCCL_GROUP] >> i % ZIPCCL_GROUP & mask_of(per);
        __m512i x = _mm512_loadu_si512(rest);
        if (size == 1)
            x = _mm512_maskz_expand_epi8(word, x);
        else if (size == 2)
            x = _mm512_maskz_expand_epi16((__mmask32)word, x);
        else
            x = _mm512_maskz_expand_epi32((__mmask16)word, x);
        _mm512_mask_storeu_epi8(dst + size * i, mask_of(size * (m - i)), x);
        rest += size * (size_t)__builtin_popcountll(word);
    }
}

const struct zipccl_row zipccl_row_avx512 = {
    .sample = sample,
    .cost = cost,
    .split = split,
    .join = join,
    .take = common_take,
    .give = common_give,
    .pack = common_pack,
    .unpack = common_unpack,
    .tier1 = tier1,
    .untier1 = common_untier1,
    .sift = sift,
    .unsift = unsift,
    .compact = compact,
    .scatter = scatter,
    .add = common_add,
    .round = common_round,
};
