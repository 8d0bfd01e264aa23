/*
 * row_avx512.c - the AVX-512 row (F, BW, VL, DQ, VBMI, VBMI2, GFNI)
 *
 * Built with these instructions enabled for this file alone; called only where isa.c found them.
 * Tails use masked loads and stores, which touch no byte outside their mask.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/row_avx512.h"

#include <string.h>

/* Byte i of each quadword is 1 << i: as data it picks columns, as a matrix it reverses bits. */
#define DIAGONAL 0x8040201008040201ll

/* Of three operands, whatever has a bit in any. */
#define OR3 0xfe

/* Byte numbers that take 32 elements apart, one half or the other first. */
static const uint8_t odd_then_even[64] = {
    1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31, 33, 35, 37, 39, 41, 43,
    45, 47, 49, 51, 53, 55, 57, 59, 61, 63, 0,  2,  4,  6,  8,  10, 12, 14, 16, 18, 20, 22,
    24, 26, 28, 30, 32, 34, 36, 38, 40, 42, 44, 46, 48, 50, 52, 54, 56, 58, 60, 62};
static const uint8_t even_then_odd[64] = {
    0,  2,  4,  6,  8,  10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36, 38, 40, 42,
    44, 46, 48, 50, 52, 54, 56, 58, 60, 62, 1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23,
    25, 27, 29, 31, 33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63};
/* Byte q * 8 + 2 * g + p, plane p of group g for elements 8q to 8q + 7, goes to 16 * g + 8 * p + q. */
static const uint8_t planes_of_4[64] = {
    0,  8,  16, 24, 32, 40, 48, 56, 1,  9,  17, 25, 33, 41, 49, 57, 2,  10, 18, 26, 34, 42,
    50, 58, 3,  11, 19, 27, 35, 43, 51, 59, 4,  12, 20, 28, 36, 44, 52, 60, 5,  13, 21, 29,
    37, 45, 53, 61, 6,  14, 22, 30, 38, 46, 54, 62, 7,  15, 23, 31, 39, 47, 55, 63};

/* The inverse. */
static const uint8_t groups_of_planes[64] = {
    0,  8,  16, 24, 32, 40, 48, 56, 1,  9,  17, 25, 33, 41, 49, 57, 2,  10, 18, 26, 34, 42,
    50, 58, 3,  11, 19, 27, 35, 43, 51, 59, 4,  12, 20, 28, 36, 44, 52, 60, 5,  13, 21, 29,
    37, 45, 53, 61, 6,  14, 22, 30, 38, 46, 54, 62, 7,  15, 23, 31, 39, 47, 55, 63};
/* Two halves byte by byte, one half or the other first. */
static const uint8_t upper_and_lower[64] = {
    32, 0,  33, 1,  34, 2,  35, 3,  36, 4,  37, 5,  38, 6,  39, 7,  40, 8,  41, 9,  42, 10,
    43, 11, 44, 12, 45, 13, 46, 14, 47, 15, 48, 16, 49, 17, 50, 18, 51, 19, 52, 20, 53, 21,
    54, 22, 55, 23, 56, 24, 57, 25, 58, 26, 59, 27, 60, 28, 61, 29, 62, 30, 63, 31};
static const uint8_t lower_and_upper[64] = {
    0,  32, 1,  33, 2,  34, 3,  35, 4,  36, 5,  37, 6,  38, 7,  39, 8,  40, 9,  41, 10, 42,
    11, 43, 12, 44, 13, 45, 14, 46, 15, 47, 16, 48, 17, 49, 18, 50, 19, 51, 20, 52, 21, 53,
    22, 54, 23, 55, 24, 56, 25, 57, 26, 58, 27, 59, 28, 60, 29, 61, 30, 62, 31, 63};

/* The matrix that moves the bits of group g of 4 to bits 0 and 1. */
#define PICK(g) (long long)(1ull << (63 - 2 * (g)) | 1ull << (54 - 2 * (g)))

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

ALWAYS_INLINE size_t fill(const uint8_t *in, uint64_t mask, uint8_t *d)
{
    return expand(in, mask, d);
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

static uint32_t sample_all(const struct zipccl_fields *fields, const uint8_t *src, size_t look,
                           struct zipccl_sample *s, struct zipccl_moments *moments)
{
    uint32_t nzero = 0;
    if (fields->split == ZIPCCL_SPLIT_BF16)
        return zipccl_sample_all_avx512(src, look, s, moments);
    for (size_t i = 0; i < ZIPCCL_SUBBLOCKS; i++) {
        common_sample(fields, src + i * ZIPCCL_SUBBLOCK * fields->size, i, ZIPCCL_SUBBLOCK, look,
                      &s[i]);
        nzero += s[i].nzero;
        moments->sum[i] += s[i].sum;
        moments->nvalid[i] += zipccl_sample_located(fields, &s[i]);
    }
    moments->least = 0;
    moments->most = 255;
    return nzero;
}

/*
 * Store the low bytes of 64 elements and return their exponents: each half is permuted once, to
 * [exponents, low bytes] and [low bytes, exponents], so that a blend brings the exponents together
 * and the low bytes leave as they are.
 */
ALWAYS_INLINE __m512i split_64(const uint8_t *src, bool stream, uint8_t *low)
{
    const __m512i first = _mm512_loadu_si512(odd_then_even),
                  second = _mm512_loadu_si512(even_then_odd);
    __m512i a = _mm512_loadu_si512(src), b = _mm512_loadu_si512(src + 64);
    a = _mm512_permutexvar_epi8(first, _mm512_shldi_epi16(a, a, 1));
    b = _mm512_permutexvar_epi8(second, _mm512_shldi_epi16(b, b, 1));
    if (stream) {
        store(low, _mm512_shuffle_i64x2(a, b, 0x4e), true);
    } else {
        _mm256_storeu_si256((__m256i *)low, _mm512_extracti64x4_epi64(a, 1));
        _mm256_storeu_si256((__m256i *)(low + 32), _mm512_castsi512_si256(b));
    }
    return _mm512_mask_blend_epi64(0xf0, a, b);
}

/* Processors fetch ahead what is read better than what is written; these many bytes do (measured). */
enum { LOW_AHEAD = 1024, PLANES_AHEAD = 256 };
/*
 * From memory, the elements of the superblock after next are asked for while this one is split:
 * else memory rests while a superblock is chosen for and its deep tiers are coded.
 */
enum { SOURCE_AHEAD = 4 * ZIPCCL_SUPERBLOCK };

ALWAYS_INLINE void fetch_source(const uint8_t *p)
{
    __builtin_prefetch(p, 0, 2);
    __builtin_prefetch(p + 64, 0, 2);
}

ALWAYS_INLINE void fetch_for_writing(const uint8_t *p)
{
    __builtin_prefetch(p, 1, 3);
}

/* Split 256 elements: four groups share one register of 2-bit codes, transposed into planes. */
ALWAYS_INLINE uint8_t *split_256(const uint8_t *src, __m512i base, bool stream, uint8_t *low,
                                 uint8_t *planes, uint8_t *out)
{
    const __m512i three = _mm512_set1_epi8(3), diagonal = _mm512_set1_epi64(DIAGONAL);
    __m512i d[4], codes[4];
    if (!stream)
        fetch_for_writing(planes + PLANES_AHEAD);
    for (int g = 0; g < 4; g++) {
        if (stream)
            fetch_source(src + 128 * g + SOURCE_AHEAD);
        else
            fetch_for_writing(low + 64 * g + LOW_AHEAD);
        d[g] = _mm512_sub_epi8(base, split_64(src + 128 * g, stream, low + 64 * g));
        codes[g] = _mm512_min_epu8(d[g], three);
    }
    __m512i all = _mm512_ternarylogic_epi64(codes[0], _mm512_slli_epi16(codes[1], 2),
                                            _mm512_slli_epi16(codes[2], 4), OR3);
    all = _mm512_or_si512(all, _mm512_slli_epi16(codes[3], 6));
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

/* The last group, of fewer than 64 elements. */
static size_t join_tail(const uint8_t *low, const uint8_t *words, const uint8_t *escaped, size_t m,
                        uint8_t base, uint8_t *dst)
{
    const __m512i first = _mm512_loadu_si512(pair_low),
                  second = _mm512_add_epi8(first, _mm512_set1_epi8(32));
    __mmask64 mask = mask_of(m);
    uint64_t word[2];
    memcpy(word, words, sizeof word);
    word[0] &= mask;
    uint64_t escapes = word[0] & word[1];
    __m512i d = _mm512_mask_expand_epi8(codes_of(word, 2), escapes, _mm512_loadu_si512(escaped));
    __m512i e = _mm512_sub_epi8(_mm512_set1_epi8((char)base), d),
            x = _mm512_maskz_loadu_epi8(mask, low);
    __m512i a = _mm512_permutex2var_epi8(x, first, e), b = _mm512_permutex2var_epi8(x, second, e);
    _mm512_mask_storeu_epi16(dst, (__mmask32)mask, _mm512_shrdi_epi16(a, a, 1));
    if (mask >> 32)
        _mm512_mask_storeu_epi16(dst + 64, (__mmask32)(mask >> 32), _mm512_shrdi_epi16(b, b, 1));
    return (size_t)__builtin_popcountll(escapes);
}

/* Put 64 exponents and low bytes together: 32 of each come into either register first. */
ALWAYS_INLINE void join_64(__m512i e, const uint8_t *low, bool stream, uint8_t *dst)
{
    const __m512i first = _mm512_loadu_si512(upper_and_lower),
                  second = _mm512_loadu_si512(lower_and_upper);
    __m512i a = _mm512_inserti64x4(e, _mm256_loadu_si256((const __m256i *)low), 1),
            b = _mm512_inserti64x4(e, _mm256_loadu_si256((const __m256i *)(low + 32)), 0);
    a = _mm512_permutexvar_epi8(first, a);
    b = _mm512_permutexvar_epi8(second, b);
    store(dst, _mm512_shrdi_epi16(a, a, 1), stream);
    store(dst + 64, _mm512_shrdi_epi16(b, b, 1), stream);
}

/*
 * Join 256 elements: the inverse of split_256, a matrix a group that picks its two bits.  Returns
 * the place behind what was taken from 'next'.
 */
ALWAYS_INLINE const uint8_t *join_256(const uint8_t *low, const uint8_t *planes,
                                      const uint8_t *next, __m512i base, bool stream, uint8_t *dst)
{
    const __m512i three = _mm512_set1_epi8(3), diagonal = _mm512_set1_epi64(DIAGONAL);
    __m512i all =
        _mm512_permutexvar_epi8(_mm512_loadu_si512(groups_of_planes), _mm512_loadu_si512(planes));
    all = _mm512_gf2p8affine_epi64_epi8(diagonal, all, 0);
    for (int g = 0; g < 4; g++) {
        uint64_t word[2];
        memcpy(word, planes + 16 * g, sizeof word);
        __m512i d = _mm512_gf2p8affine_epi64_epi8(all, _mm512_set1_epi64(PICK(g)), 0);
        d = _mm512_mask_expand_epi8(d, _mm512_cmpeq_epi8_mask(d, three), _mm512_loadu_si512(next));
        next += __builtin_popcountll(word[0] & word[1]);
        join_64(_mm512_sub_epi8(base, d), low + 64 * g, stream, dst + 128 * g);
    }
    return next;
}

ALWAYS_INLINE size_t join_all(const uint8_t *low, const uint8_t *words, const uint8_t *escaped,
                              size_t m, const uint8_t *bases, bool stream, uint8_t *dst)
{
    const uint8_t *next = escaped;
    size_t i = 0;
    for (; i + 256 <= m; i += 256)
        next = join_256(low + i, words + i / 4, next,
                        _mm512_set1_epi8((char)bases[i / ZIPCCL_SUBBLOCK]), stream, dst + 2 * i);
    for (; i < m; i += ZIPCCL_GROUP)
        next +=
            join_tail(low + i, words + i / 4, next, m - i, bases[i / ZIPCCL_SUBBLOCK], dst + 2 * i);
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
    .needs = ZIPCCL_BUILT_WITH,
    .sample = sample,
    .sample_all = sample_all,
    .locate = zipccl_locate_avx512,
    .cost = zipccl_cost_avx512,
    .cost_all = zipccl_cost_all_avx512,
    .split = split,
    .join = join,
    .take = common_take,
    .give = common_give,
    .pack = common_pack,
    .unpack = common_unpack,
    .tier1 = tier1,
    .untier1 = common_untier1,
    .sift = zipccl_sift_avx512,
    .unsift = zipccl_unsift_avx512,
    .compact = compact,
    .scatter = scatter,
    .add = common_add,
    .round = common_round,
    .ans = &zipccl_ans_avx512,
};
