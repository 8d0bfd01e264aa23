/*
 * row_avx2.c - the AVX2 row (AVX2, BMI, POPCNT)
 *
 * Built with these instructions enabled for this file alone; called only where isa.c found them.
 * Whole groups go through vectors, a last short one through the kernels of row_common.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/row.h"

#include <immintrin.h>
#include <string.h>

/* Constants stay in registers only where the helpers are part of the loop. */
#define ALWAYS_INLINE static inline __attribute__((always_inline))

/* Numbers of the set bits of m, one a byte, lowest first: a shuffle that compresses 8 bytes. */
#define BIT(m, b)         ((uint64_t)((m) >> (b)&1))
#define STEP(rest, m, b)  ((rest) << 8 * BIT(m, b) | (b)*BIT(m, b))
#define PACK4(rest, m, b) STEP(STEP(STEP(STEP(rest, m, b + 3), m, b + 2), m, b + 1), m, b)
#define PACKING(m)        PACK4(PACK4((uint64_t)0, m, 4), m, 0)
/* The inverse: for each set bit how many lie below it, for others 128, which makes a zero. */
#define BELOW4(m)          (BIT(m, 0) + BIT(m, 1) + BIT(m, 2) + BIT(m, 3))
#define PLACE(m, b, below) ((BIT(m, b) ? (uint64_t)(below) : 128) << 8 * (b))
#define SPREAD4(m, b, below)                                                                       \
    (PLACE(m, b, below) | PLACE(m, b + 1, (below) + BIT(m, b)) |                                   \
     PLACE(m, b + 2, (below) + BIT(m, b) + BIT(m, b + 1)) |                                        \
     PLACE(m, b + 3, (below) + BIT(m, b) + BIT(m, b + 1) + BIT(m, b + 2)))
#define SPREADING(m) (SPREAD4(m, 0, 0) | SPREAD4(m, 4, BELOW4(m)))
#define ROW4(f, m)   f(m), f(m + 1), f(m + 2), f(m + 3)
#define ROW16(f, m)  ROW4(f, m), ROW4(f, m + 4), ROW4(f, m + 8), ROW4(f, m + 12)
#define ROW64(f, m)  ROW16(f, m), ROW16(f, m + 16), ROW16(f, m + 32), ROW16(f, m + 48)
#define TABLE(f)                                                                                   \
    {                                                                                              \
        ROW64(f, 0), ROW64(f, 64), ROW64(f, 128), ROW64(f, 192)                                    \
    }

static const uint64_t packing[256] = TABLE(PACKING);
static const uint64_t spreading[256] = TABLE(SPREADING);

#undef BIT
#undef STEP
#undef PACK4
#undef PACKING
#undef BELOW4
#undef PLACE
#undef SPREAD4
#undef SPREADING
#undef ROW4
#undef ROW16
#undef ROW64
#undef TABLE

ALWAYS_INLINE __m256i load(const void *p)
{
    return _mm256_loadu_si256(p);
}

ALWAYS_INLINE void store(void *p, __m256i x)
{
    _mm256_storeu_si256(p, x);
}

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

ALWAYS_INLINE __m128i load_8(const void *p)
{
    return _mm_loadl_epi64(p);
}

/* Append d[i] for each bit i of 'mask'; 8 bytes are written beyond them at most. */
ALWAYS_INLINE size_t compress(const uint8_t *d, uint64_t mask, uint8_t *out)
{
    uint8_t *start = out;
    for (int k = 0; k < 8; k++) {
        unsigned m = mask >> 8 * k & 255;
        _mm_storel_epi64((void *)out, _mm_shuffle_epi8(load_8(d + 8 * k), load_8(&packing[m])));
        out += _mm_popcnt_u32(m);
    }
    return (size_t)(out - start);
}

/* 32 bytes: in[0], in[1], ... where 'mask' has a bit, else zero. */
ALWAYS_INLINE __m256i spread(const uint8_t *in, uint32_t mask)
{
    __m128i part[4];
    for (int k = 0; k < 4; k++) {
        unsigned m = mask >> 8 * k & 255;
        part[k] = _mm_shuffle_epi8(load_8(in), load_8(&spreading[m]));
        in += _mm_popcnt_u32(m);
    }
    return _mm256_set_m128i(_mm_unpacklo_epi64(part[2], part[3]),
                            _mm_unpacklo_epi64(part[0], part[1]));
}

/* 32 bytes of all ones where 'mask' has a bit, else zero. */
ALWAYS_INLINE __m256i lanes_of(uint32_t mask)
{
    const __m256i byte = _mm256_setr_epi64x(0, 0x0101010101010101ll, 0x0202020202020202ll,
                                            0x0303030303030303ll),
                  bit = _mm256_set1_epi64x((long long)0x8040201008040201ull);
    __m256i x = _mm256_shuffle_epi8(_mm256_set1_epi32((int)mask), byte);
    return _mm256_cmpeq_epi8(_mm256_and_si256(x, bit), bit);
}

ALWAYS_INLINE uint64_t mask_of(__m256i a, __m256i b)
{
    return (uint32_t)_mm256_movemask_epi8(a) | (uint64_t)(uint32_t)_mm256_movemask_epi8(b) << 32;
}

ALWAYS_INLINE size_t expand(const uint8_t *in, uint64_t mask, uint8_t *d)
{
    size_t first = (size_t)_mm_popcnt_u32((uint32_t)mask);
    for (int k = 0; k < 2; k++) {
        uint32_t half = (uint32_t)(mask >> 32 * k);
        __m256i x = _mm256_andnot_si256(lanes_of(half), load(d + 32 * k));
        store(d + 32 * k, _mm256_or_si256(x, spread(in + (k ? first : 0), half)));
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

#include "core/codec/row_ans.h"

/* Entries 'at' < 32 of a table in two registers, each twice the same 16 bytes. */
ALWAYS_INLINE __m256i look_up(__m256i below_16, __m256i from_16, __m256i at)
{
    return _mm256_blendv_epi8(_mm256_shuffle_epi8(below_16, at), _mm256_shuffle_epi8(from_16, at),
                              _mm256_slli_epi16(at, 3));
}

ALWAYS_INLINE __m256i twice(const uint8_t *p)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const void *)p));
}

ALWAYS_INLINE uint32_t sum_of(__m256i sad)
{
    __m128i half = _mm_add_epi64(_mm256_castsi256_si128(sad), _mm256_extracti128_si256(sad, 1));
    return (uint32_t)(_mm_cvtsi128_si64(half) + _mm_extract_epi64(half, 1));
}

/* What common_sample() does, for a full sub-block of bf16. */
static void sample(const struct zipccl_fields *fields, const uint8_t *src, size_t i, size_t m,
                   size_t look, struct zipccl_sample *s)
{
    if (fields->split != ZIPCCL_SPLIT_BF16 || m < ZIPCCL_SUBBLOCK) {
        common_sample(fields, src, i, m, look, s);
        return;
    }
    const __m256i zero = _mm256_setzero_si256(), all = _mm256_set1_epi8(-1),
                  byte = _mm256_set1_epi16(255);
    __m256i e[2], valid[2], sum = zero;
    uint32_t nvalid = 0;
    s->taken = ~0ull;
    s->nsampled = ZIPCCL_SAMPLES;
    s->nzero = 0;
    for (size_t run = 0; run < 2; run++) {
        const uint8_t *p = src + 2 * zipccl_sample_start(i, m, look, run);
        __m256i a = load(p), b = load(p + 32);
        __m256i none = _mm256_packs_epi16(_mm256_cmpeq_epi16(a, zero), _mm256_cmpeq_epi16(b, zero));
        s->nzero += (uint32_t)_mm_popcnt_u32((uint32_t)_mm256_movemask_epi8(none));
        a = _mm256_and_si256(_mm256_srli_epi16(a, 7), byte);
        b = _mm256_and_si256(_mm256_srli_epi16(b, 7), byte);
        e[run] = _mm256_permute4x64_epi64(_mm256_packus_epi16(a, b), 0xd8);
        store(s->e + 32 * run, e[run]);
        valid[run] = _mm256_andnot_si256(
            _mm256_or_si256(_mm256_cmpeq_epi8(e[run], zero), _mm256_cmpeq_epi8(e[run], all)), all);
        nvalid += (uint32_t)_mm_popcnt_u32((uint32_t)_mm256_movemask_epi8(valid[run]));
        sum = _mm256_add_epi64(sum, _mm256_sad_epu8(_mm256_and_si256(e[run], valid[run]), zero));
    }
    uint32_t mean = nvalid ? (sum_of(sum) + nvalid / 2) / nvalid : 0;
    __m256i low = _mm256_set1_epi8((char)(mean > 6 ? mean - 6 : 0)),
            high = _mm256_set1_epi8((char)(mean + 6 < 255 ? mean + 6 : 255));
    sum = zero;
    for (int run = 0; run < 2; run++) {
        __m256i pulled = _mm256_min_epu8(_mm256_max_epu8(e[run], low), high);
        sum = _mm256_add_epi64(sum, _mm256_sad_epu8(_mm256_and_si256(pulled, valid[run]), zero));
    }
    s->nvalid = nvalid;
    s->sum = sum_of(sum);
}

static uint32_t cost(const struct zipccl_sample *sample, size_t n, const uint8_t *bases,
                     const uint8_t bits[ZIPCCL_NUM_D])
{
    const __m256i below_16 = twice(bits), from_16 = twice(bits + 16), zero = _mm256_setzero_si256(),
                  last = _mm256_set1_epi8(ZIPCCL_NUM_D - 1);
    __m256i sum = zero;
    uint32_t extra = 0;
    for (size_t i = 0; i < n; i++) {
        uint8_t base = (uint8_t)(bases[i] - ZIPCCL_LEAST_D);
        for (int k = 0; k < 2; k++) {
            __m256i at = _mm256_sub_epi8(_mm256_set1_epi8((char)base), load(sample[i].e + 32 * k));
            at = _mm256_min_epu8(at, last);
            sum = _mm256_add_epi64(sum, _mm256_sad_epu8(look_up(below_16, from_16, at), zero));
        }
        /* Exponents that were not taken are 0. */
        extra += (ZIPCCL_SAMPLES - sample[i].nsampled) * bits[base < 31 ? base : 31];
    }
    return sum_of(sum) - extra;
}

/* Split 32 bf16: low bytes to 'low', d to 'd'; returns the d. */
ALWAYS_INLINE __m256i split_32(const uint8_t *src, __m256i base, bool stream, uint8_t *low,
                               uint8_t *d)
{
    const __m256i low_byte = _mm256_set1_epi16(255);
    __m256i a = load(src), b = load(src + 32);
    a = _mm256_or_si256(_mm256_slli_epi16(a, 1), _mm256_srli_epi16(a, 15));
    b = _mm256_or_si256(_mm256_slli_epi16(b, 1), _mm256_srli_epi16(b, 15));
    __m256i lows =
        _mm256_packus_epi16(_mm256_and_si256(a, low_byte), _mm256_and_si256(b, low_byte));
    __m256i e = _mm256_packus_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8));
    store_or_stream(low, _mm256_permute4x64_epi64(lows, 0xd8), stream);
    e = _mm256_sub_epi8(base, _mm256_permute4x64_epi64(e, 0xd8));
    store(d, e);
    return e;
}

ALWAYS_INLINE size_t split_all(const uint8_t *src, size_t m, const uint8_t *bases, bool stream,
                               uint8_t *low, uint8_t *words, uint8_t *escaped)
{
    const __m256i three = _mm256_set1_epi8(3);
    uint8_t d[ZIPCCL_GROUP], *out = escaped;
    size_t i = 0;
    for (; i + ZIPCCL_GROUP <= m; i += ZIPCCL_GROUP) {
        __m256i base = _mm256_set1_epi8((char)bases[i / ZIPCCL_SUBBLOCK]);
        __m256i x = _mm256_min_epu8(split_32(src + 2 * i, base, stream, low + i, d), three);
        __m256i y =
            _mm256_min_epu8(split_32(src + 2 * i + 64, base, stream, low + i + 32, d + 32), three);
        uint64_t plane[2] = {mask_of(_mm256_slli_epi16(x, 7), _mm256_slli_epi16(y, 7)),
                             mask_of(_mm256_slli_epi16(x, 6), _mm256_slli_epi16(y, 6))};
        memcpy(words + i / 4, plane, sizeof plane);
        out += compress(d, plane[0] & plane[1], out);
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

ALWAYS_INLINE size_t join_all(const uint8_t *low, const uint8_t *words, const uint8_t *escaped,
                              size_t m, const uint8_t *bases, bool stream, uint8_t *dst)
{
    const __m256i one = _mm256_set1_epi8(1), two = _mm256_set1_epi8(2);
    const uint8_t *next = escaped;
    size_t i = 0;
    for (; i + ZIPCCL_GROUP <= m; i += ZIPCCL_GROUP) {
        __m256i base = _mm256_set1_epi8((char)bases[i / ZIPCCL_SUBBLOCK]);
        for (int k = 0; k < 2; k++) {
            uint32_t p0, p1;
            memcpy(&p0, words + i / 4 + 4 * k, 4);
            memcpy(&p1, words + i / 4 + 8 + 4 * k, 4);
            __m256i a = lanes_of(p0), b = lanes_of(p1), both = _mm256_and_si256(a, b);
            __m256i d = _mm256_or_si256(_mm256_and_si256(a, one), _mm256_and_si256(b, two));
            d = _mm256_or_si256(_mm256_andnot_si256(both, d), spread(next, p0 & p1));
            next += _mm_popcnt_u32(p0 & p1);
            join_32(_mm256_sub_epi8(base, d), load(low + i + 32 * k), stream, dst + 2 * i + 64 * k);
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

/* Which of 64 bytes equal 'value'. */
ALWAYS_INLINE uint64_t equal(__m256i x, __m256i y, __m256i value)
{
    return mask_of(_mm256_cmpeq_epi8(x, value), _mm256_cmpeq_epi8(y, value));
}

/* Planes of a group under a tier of one bit or two, which compares; returns which escape. */
ALWAYS_INLINE uint64_t compare_group(const uint8_t *d, int width, const __m256i value[3],
                                     uint64_t *plane)
{
    __m256i x = load(d), y = load(d + 32);
    uint64_t escapes = ~equal(x, y, value[0]);
    if (width == 1) {
        plane[0] = escapes;
        return escapes;
    }
    uint64_t is1 = equal(x, y, value[1]), is2 = equal(x, y, value[2]);
    escapes &= ~(is1 | is2);
    plane[0] = is1 | escapes;
    plane[1] = is2 | escapes;
    return escapes;
}

/* 'width' is a constant, 1 or 2. */
ALWAYS_INLINE size_t sift_comparing(uint8_t *d, size_t m, const struct zipccl_tier *tier, int width,
                                    uint8_t *planes)
{
    const __m256i value[3] = {_mm256_set1_epi8(tier->d[0]), _mm256_set1_epi8(tier->d[1]),
                              _mm256_set1_epi8(tier->d[2])};
    uint8_t *out = d;
    size_t i = 0;
    for (; i + ZIPCCL_GROUP <= m; i += ZIPCCL_GROUP, planes += 8 * width) {
        uint64_t plane[2], escapes = compare_group(d + i, width, value, plane);
        memcpy(planes, plane, 8 * (size_t)width);
        /* In place: what is written lies behind what is read. */
        out += compress(d + i, escapes, out);
    }
    if (i < m) {
        size_t more = common_sift(d + i, m - i, tier, planes);
        memmove(out, d + i, more);
        out += more;
    }
    return (size_t)(out - d);
}

static size_t sift(uint8_t *d, size_t m, const struct zipccl_tier *tier, uint8_t *planes)
{
    if (tier->width == 1)
        return sift_comparing(d, m, tier, 1, planes);
    if (tier->width == 2)
        return sift_comparing(d, m, tier, 2, planes);
    uint8_t escape = (uint8_t)((1 << tier->width) - 1), of_d[ZIPCCL_NUM_D], *out = d;
    memset(of_d, escape, sizeof of_d);
    for (uint8_t k = 0; k < escape; k++)
        of_d[tier->d[k] - ZIPCCL_LEAST_D] = k;
    const __m256i below_16 = twice(of_d), from_16 = twice(of_d + 16),
                  least = _mm256_set1_epi8(ZIPCCL_LEAST_D),
                  last = _mm256_set1_epi8(ZIPCCL_NUM_D - 1);
    size_t i = 0;
    for (; i + ZIPCCL_GROUP <= m; i += ZIPCCL_GROUP) {
        __m256i x = _mm256_sub_epi8(load(d + i), least);
        __m256i y = _mm256_sub_epi8(load(d + i + 32), least);
        x = look_up(below_16, from_16, _mm256_min_epu8(x, last));
        y = look_up(below_16, from_16, _mm256_min_epu8(y, last));
        uint64_t escapes = ~0ull;
        for (int k = 0; k < tier->width; k++) {
            __m128i by = _mm_cvtsi32_si128(7 - k);
            uint64_t plane = mask_of(_mm256_sll_epi16(x, by), _mm256_sll_epi16(y, by));
            memcpy(planes, &plane, 8);
            planes += 8;
            escapes &= plane;
        }
        /* In place: what is written lies behind what is read. */
        out += compress(d + i, escapes, out);
    }
    if (i < m) {
        size_t more = common_sift(d + i, m - i, tier, planes);
        memmove(out, d + i, more);
        out += more;
    }
    return (size_t)(out - d);
}

static size_t unsift(const uint8_t *planes, const uint8_t *escaped, size_t m,
                     const struct zipccl_tier *tier, uint8_t *d)
{
    uint8_t values[16] = {0};
    memcpy(values, tier->d, sizeof tier->d);
    /* The code that escapes adds nothing to what is spread. */
    values[(1 << tier->width) - 1] = 0;
    const __m256i of_code = twice(values);
    const uint8_t *next = escaped;
    size_t i = 0;
    for (; i + ZIPCCL_GROUP <= m; i += ZIPCCL_GROUP) {
        uint64_t plane[3], escapes = ~0ull;
        for (int k = 0; k < tier->width; k++) {
            memcpy(&plane[k], planes, 8);
            planes += 8;
            escapes &= plane[k];
        }
        for (int half = 0; half < 2; half++) {
            uint32_t mask = (uint32_t)(escapes >> 32 * half);
            __m256i x = _mm256_shuffle_epi8(of_code, codes_of(plane, tier->width, half));
            store(d + i + 32 * half, _mm256_or_si256(x, spread(next, mask)));
            next += _mm_popcnt_u32(mask);
        }
    }
    if (i < m)
        next += common_unsift(planes, next, m - i, tier, d + i);
    return (size_t)(next - escaped);
}

const struct zipccl_ans_kernels zipccl_ans_avx2 = {
    .symbols = ans_symbols,
    .exponents = ans_exponents,
    .encode = ans_encode,
    .decode = ans_decode,
    .pack = ans_pack,
    .unpack = ans_unpack,
};

const struct zipccl_row zipccl_row_avx2 = {
    .needs = ZIPCCL_BUILT_WITH,
    .sample = sample,
    .cost = cost,
    .split = split,
    .join = join,
    .take = common_take,
    .give = common_give,
    .pack = common_pack,
    .unpack = common_unpack,
    .tier1 = common_tier1,
    .untier1 = common_untier1,
    .sift = sift,
    .unsift = unsift,
    .compact = common_compact,
    .scatter = common_scatter,
    .add = common_add,
    .round = common_round,
    .ans = &zipccl_ans_avx2,
};
