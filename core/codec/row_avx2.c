/*
 * row_avx2.c - the AVX2 row (AVX2, BMI, BMI2, POPCNT)
 *
 * Built with these instructions enabled for this file alone; called only where isa.c found them.
 * Whole groups go through vectors, a last short one through the kernels of row_common.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/row_avx2.h"

#define BIT(m, b)         ((uint64_t)((m) >> (b)&1))
#define STEP(rest, m, b)  ((rest) << 8 * BIT(m, b) | (b)*BIT(m, b))
#define PACK4(rest, m, b) STEP(STEP(STEP(STEP(rest, m, b + 3), m, b + 2), m, b + 1), m, b)
#define LOWER(m)          PACK4(PACK4((uint64_t)0, m, 4), m, 0)
#define UPPER(m)          (LOWER(m) | 0x0808080808080808ull)
#define ROW4(f, m)        f(m), f(m + 1), f(m + 2), f(m + 3)
#define ROW16(f, m)       ROW4(f, m), ROW4(f, m + 4), ROW4(f, m + 8), ROW4(f, m + 12)
#define ROW64(f, m)       ROW16(f, m), ROW16(f, m + 16), ROW16(f, m + 32), ROW16(f, m + 48)
#define TABLE(f)                                                                                   \
    {                                                                                              \
        ROW64(f, 0), ROW64(f, 64), ROW64(f, 128), ROW64(f, 192)                                    \
    }

const uint64_t zipccl_packing_avx2[2][257] = {TABLE(LOWER), TABLE(UPPER)};

#undef BIT
#undef STEP
#undef PACK4
#undef LOWER
#undef UPPER
#undef ROW4
#undef ROW16
#undef ROW64
#undef TABLE

/* Whole aligned vectors past the caches. */
ALWAYS_INLINE void store_or_stream(void *p, __m256i x, bool stream)
{
    if (stream)
        _mm256_stream_si256(p, x);
    else
        _mm256_storeu_si256(p, x);
}

static bool is_aligned(const uint8_t *p)
{
    return (uintptr_t)p % 32 == 0;
}

#include "core/codec/row_common.h"

/* Split 32 bf16: low bytes to 'low'; returns the d. */
ALWAYS_INLINE __m256i split_32(const uint8_t *src, __m256i base, bool stream, uint8_t *low)
{
    const __m256i even_then_odd = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15));
    __m256i a = load(src), b = load(src + 32);
    a = _mm256_or_si256(_mm256_add_epi16(a, a), _mm256_srli_epi16(a, 15));
    b = _mm256_or_si256(_mm256_add_epi16(b, b), _mm256_srli_epi16(b, 15));
    a = _mm256_shuffle_epi8(a, even_then_odd);
    b = _mm256_shuffle_epi8(b, even_then_odd);
    __m256i lows = _mm256_unpacklo_epi64(a, b), e = _mm256_unpackhi_epi64(a, b);
    store_or_stream(low, _mm256_permute4x64_epi64(lows, 0xd8), stream);
    return _mm256_sub_epi8(base, _mm256_permute4x64_epi64(e, 0xd8));
}

/* Tier-1 words of 32 d, those of the group's second half 4 bytes on; returns which escape. */
ALWAYS_INLINE uint32_t put_words(__m256i d, uint8_t *words)
{
    __m256i codes = _mm256_min_epu8(d, _mm256_set1_epi8(3));
    uint32_t p0 = (uint32_t)_mm256_movemask_epi8(_mm256_slli_epi16(codes, 7)),
             p1 = (uint32_t)_mm256_movemask_epi8(_mm256_slli_epi16(codes, 6));
    memcpy(words, &p0, 4);
    memcpy(words + 8, &p1, 4);
    return p0 & p1;
}

ALWAYS_INLINE size_t split_all(const uint8_t *src, size_t m, const uint8_t *bases, bool stream,
                               uint8_t *low, uint8_t *words, uint8_t *escaped)
{
    uint8_t *out = escaped;
    size_t i = 0, end = m / ZIPCCL_GROUP * ZIPCCL_GROUP;
    while (i < end) {
        __m256i base = _mm256_set1_epi8((char)bases[i / ZIPCCL_SUBBLOCK]);
        size_t stop = end - i < ZIPCCL_SUBBLOCK ? end : i + ZIPCCL_SUBBLOCK;
        for (; i < stop; i += ZIPCCL_GROUP) {
            __m256i x = split_32(src + 2 * i, base, stream, low + i),
                    y = split_32(src + 2 * i + 64, base, stream, low + i + 32);
            uint32_t escapes = put_words(x, words + i / 4);
            out = append(out, x, y, escapes, put_words(y, words + i / 4 + 4));
        }
    }
    if (i < m)
        out += common_split(src + 2 * i, m - i, &bases[i / ZIPCCL_SUBBLOCK], false, low + i,
                            words + i / 4, out);
    return (size_t)(out - escaped);
}

static size_t split(const uint8_t *src, size_t m, const uint8_t *bases, bool stream, uint8_t *low,
                    uint8_t *words, uint8_t *escaped)
{
    if (!stream || !is_aligned(low))
        return split_all(src, m, bases, false, low, words, escaped);
    size_t nescaped = split_all(src, m, bases, true, low, words, escaped);
    _mm_sfence();
    return nescaped;
}

/* Put 32 bf16 together. */
ALWAYS_INLINE void join_32(__m256i e, __m256i low, bool stream, uint8_t *dst)
{
    e = _mm256_permute4x64_epi64(e, 0xd8);
    low = _mm256_permute4x64_epi64(low, 0xd8);
    __m256i a = _mm256_unpacklo_epi8(low, e), b = _mm256_unpackhi_epi8(low, e);
    a = _mm256_or_si256(_mm256_srli_epi16(a, 1), _mm256_slli_epi16(a, 15));
    b = _mm256_or_si256(_mm256_srli_epi16(b, 1), _mm256_slli_epi16(b, 15));
    store_or_stream(dst, a, stream);
    store_or_stream(dst + 32, b, stream);
}

/*
 * Half 'half' of a group.  Lanes are -1 where a plane's bit is set: base and lanes add up to the
 * exponent, and to base - 3 where an element escapes.
 */
ALWAYS_INLINE const uint8_t *join_half(const uint8_t *low, const uint8_t *words, int half,
                                       const uint8_t *next, __m256i base, bool stream, uint8_t *dst)
{
    __m256i planes = twice(words), a = lanes_at(planes, 4 * half),
            b = lanes_at(planes, 8 + 4 * half);
    uint32_t p0, p1;
    memcpy(&p0, words + 4 * half, 4);
    memcpy(&p1, words + 8 + 4 * half, 4);
    __m256i escaped = _mm256_sub_epi8(next_32(next, p0 & p1), _mm256_set1_epi8(3));
    escaped = _mm256_shuffle_epi8(escaped, places_of(_mm256_and_si256(a, b)));
    __m256i e = _mm256_add_epi8(_mm256_add_epi8(base, a), _mm256_add_epi8(b, b));
    join_32(_mm256_sub_epi8(e, escaped), load(low + 32 * half), stream, dst + 64 * half);
    return next + _mm_popcnt_u32(p0 & p1);
}

ALWAYS_INLINE size_t join_all(const uint8_t *low, const uint8_t *words, const uint8_t *escaped,
                              size_t m, const uint8_t *bases, bool stream, uint8_t *dst)
{
    const uint8_t *next = escaped;
    size_t i = 0, end = m / ZIPCCL_GROUP * ZIPCCL_GROUP;
    while (i < end) {
        __m256i base = _mm256_set1_epi8((char)bases[i / ZIPCCL_SUBBLOCK]);
        size_t stop = end - i < ZIPCCL_SUBBLOCK ? end : i + ZIPCCL_SUBBLOCK;
        for (; i < stop; i += ZIPCCL_GROUP) {
            next = join_half(low + i, words + i / 4, 0, next, base, stream, dst + 2 * i);
            next = join_half(low + i, words + i / 4, 1, next, base, stream, dst + 2 * i);
        }
    }
    if (i < m)
        next += common_join(low + i, words + i / 4, next, m - i, &bases[i / ZIPCCL_SUBBLOCK], false,
                            dst + 2 * i);
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

const struct zipccl_row zipccl_row_avx2 = {
    .needs = ZIPCCL_BUILT_WITH,
    .sample = zipccl_sample_avx2,
    .sample_all = zipccl_sample_all_avx2,
    .locate = zipccl_locate_avx2,
    .cost = zipccl_cost_avx2,
    .cost_all = zipccl_cost_all_avx2,
    .split = split,
    .join = join,
    .take = common_take,
    .give = common_give,
    .pack = common_pack,
    .unpack = common_unpack,
    .tier1 = common_tier1,
    .untier1 = common_untier1,
    .sift = zipccl_sift_avx2,
    .unsift = zipccl_unsift_avx2,
    .compact = common_compact,
    .scatter = common_scatter,
    .add = common_add,
    .round = common_round,
    .ans = &zipccl_ans_avx2,
};
