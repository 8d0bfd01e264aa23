/*
 * sample_avx2.c - sampling with AVX2, a superblock at once
 *
 * The sums of all sub-blocks go through one tree of additions; where no sampled element is zero,
 * subnormal, infinite or NaN, as is usual, nothing is counted.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/avx2.h"
#include "core/codec/locate.h"

enum { NSUB = ZIPCCL_SUBBLOCKS };

ALWAYS_INLINE uint32_t sum_of(__m256i sad)
{
    __m128i half = _mm_add_epi64(_mm256_castsi256_si128(sad), _mm256_extracti128_si256(sad, 1));
    return (uint32_t)(_mm_cvtsi128_si64(half) + _mm_extract_epi64(half, 1));
}

void zipccl_sample_avx2(const struct zipccl_fields *fields, const uint8_t *src, size_t i, size_t m,
                        size_t look, struct zipccl_sample *s)
{
    if (fields->split != ZIPCCL_SPLIT_BF16 || m < ZIPCCL_SUBBLOCK) {
        zipccl_row_scalar.sample(fields, src, i, m, look, s);
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

uint32_t zipccl_cost_avx2(const struct zipccl_sample *sample, size_t n, const uint8_t *bases,
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

/* Add the sums of the quadwords of each of 16 registers, all below 2^32, to sums [16]. */
ALWAYS_INLINE void add_sums(const __m256i *x, uint32_t *sums)
{
    __m256i two[8], four[4], eight[2];
    for (int i = 0; i < 8; i++)
        two[i] = _mm256_or_si256(x[i], _mm256_slli_epi64(x[i + 8], 32));
    for (int i = 0; i < 4; i++)
        four[i] = _mm256_add_epi32(_mm256_unpacklo_epi64(two[2 * i], two[2 * i + 1]),
                                   _mm256_unpackhi_epi64(two[2 * i], two[2 * i + 1]));
    for (int i = 0; i < 2; i++)
        eight[i] = _mm256_add_epi32(_mm256_permute2x128_si256(four[2 * i], four[2 * i + 1], 0x20),
                                    _mm256_permute2x128_si256(four[2 * i], four[2 * i + 1], 0x31));
    __m256 a = _mm256_castsi256_ps(eight[0]), b = _mm256_castsi256_ps(eight[1]);
    __m256i lower = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88)),
            upper = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xdd));
    store(sums, _mm256_add_epi32(load(sums), _mm256_permute4x64_epi64(lower, 0xd8)));
    store(sums + 8, _mm256_add_epi32(load(sums + 8), _mm256_permute4x64_epi64(upper, 0xd8)));
}

/* The least of 32 bytes. */
static uint8_t least_of(__m256i x)
{
    __m128i y = _mm_min_epu8(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    y = _mm_and_si128(_mm_min_epu8(y, _mm_srli_epi16(y, 8)), _mm_set1_epi16(255));
    return (uint8_t)_mm_cvtsi128_si32(_mm_minpos_epu16(y));
}

/* Exponents of the 32 bf16 of one run. */
ALWAYS_INLINE __m256i exponents_of(const uint8_t *run)
{
    const __m256i byte = _mm256_set1_epi16(255);
    __m256i a = _mm256_and_si256(_mm256_srli_epi16(load(run), 7), byte),
            b = _mm256_and_si256(_mm256_srli_epi16(load(run + 32), 7), byte);
    return _mm256_permute4x64_epi64(_mm256_packus_epi16(a, b), 0xd8);
}

/* Pull the exponents, all valid, to within 6 of their sub-block's mean, and add up what is left. */
static void add_pulled(const struct zipccl_sample *s, const uint32_t *sums,
                       struct zipccl_moments *moments)
{
    const __m256i zero = _mm256_setzero_si256(), six = _mm256_set1_epi8(6);
    __m256i part[NSUB];
    for (int i = 0; i < NSUB; i++) {
        __m256i mean = _mm256_set1_epi8((char)((sums[i] + ZIPCCL_SAMPLES / 2) / ZIPCCL_SAMPLES));
        __m256i low = _mm256_subs_epu8(mean, six), high = _mm256_adds_epu8(mean, six);
        __m256i a = _mm256_min_epu8(_mm256_max_epu8(load(s[i].e), low), high),
                b = _mm256_min_epu8(_mm256_max_epu8(load(s[i].e + 32), low), high);
        part[i] = _mm256_add_epi64(_mm256_sad_epu8(a, zero), _mm256_sad_epu8(b, zero));
        moments->nvalid[i] += ZIPCCL_SAMPLES;
    }
    add_sums(part, moments->sum);
}

/* The same for any data and type, a sub-block at a time; returns how many have no bit set. */
static uint32_t sample_each(const struct zipccl_fields *fields, const uint8_t *src, size_t look,
                            struct zipccl_sample *s, struct zipccl_moments *moments)
{
    uint32_t nzero = 0;
    for (size_t i = 0; i < NSUB; i++) {
        zipccl_sample_avx2(fields, src + i * ZIPCCL_SUBBLOCK * fields->size, i, ZIPCCL_SUBBLOCK,
                           look, &s[i]);
        nzero += s[i].nzero;
        moments->sum[i] += s[i].sum;
        moments->nvalid[i] += zipccl_sample_located(fields, &s[i]);
    }
    return nzero;
}

uint32_t zipccl_sample_all_avx2(const struct zipccl_fields *fields, const uint8_t *src, size_t look,
                                struct zipccl_sample *s, struct zipccl_moments *moments)
{
    uint32_t sums[NSUB] = {0};
    __m256i part[NSUB], least = _mm256_set1_epi8(-1), most = _mm256_setzero_si256();
    uint8_t lo = 0, hi = 255;
    if (fields->split == ZIPCCL_SPLIT_BF16) {
        const __m256i zero = _mm256_setzero_si256();
        for (size_t i = 0; i < NSUB; i++) {
            size_t at = i * ZIPCCL_SUBBLOCK + zipccl_sample_start(i, ZIPCCL_SUBBLOCK, look, 0);
            __m256i a = exponents_of(src + 2 * at),
                    b = exponents_of(src + 2 * at + ZIPCCL_SUBBLOCK);
            store(s[i].e, a);
            store(s[i].e + 32, b);
            least = _mm256_min_epu8(least, _mm256_min_epu8(a, b));
            most = _mm256_max_epu8(most, _mm256_max_epu8(a, b));
            part[i] = _mm256_add_epi64(_mm256_sad_epu8(a, zero), _mm256_sad_epu8(b, zero));
        }
        lo = least_of(least);
        hi = (uint8_t)~least_of(_mm256_xor_si256(most, _mm256_set1_epi8(-1)));
    }
    moments->least = look > 0 && moments->least < lo ? moments->least : lo;
    moments->most = look > 0 && moments->most > hi ? moments->most : hi;
    /* A zero's exponent is not valid either. */
    if (lo == 0 || hi == 255)
        return sample_each(fields, src, look, s, moments);
    add_sums(part, sums);
    add_pulled(s, sums, moments);
    return 0;
}

int zipccl_locate_avx2(struct zipccl_moments *moments)
{
    return locate(moments);
}

/* A code's bits by d - ZIPCCL_LEAST_D, twice the same 16 in either register. */
struct lengths {
    __m256i below_16, from_16;
};

ALWAYS_INLINE __m256i bits_of(const struct lengths *t, __m256i e, uint8_t base)
{
    __m256i at = _mm256_sub_epi8(_mm256_set1_epi8((char)(base - ZIPCCL_LEAST_D)), e);
    return look_up(t->below_16, t->from_16,
                   _mm256_min_epu8(at, _mm256_set1_epi8(ZIPCCL_NUM_D - 1)));
}

/*
 * The bits of exponent e at e mod 16, for all e from 'least' on: where no two differ by 16, a sample's
 * exponents are indices.
 */
ALWAYS_INLINE __m256i window_of(const struct lengths *t, uint8_t least, uint8_t base)
{
    const __m256i lane = _mm256_broadcastsi128_si256(
                      _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)),
                  first = _mm256_set1_epi8((char)least);
    __m256i e = _mm256_and_si256(_mm256_sub_epi8(lane, first), _mm256_set1_epi8(15));
    return bits_of(t, _mm256_add_epi8(e, first), base);
}

/*
 * Sums of each sub-block over its looks; of four the codes are short, so that a byte holds all eight.
 * 'nlooks' and 'wide', for exponents that differ by 16 or more, are constants.
 */
ALWAYS_INLINE void bits_of_looks(const struct zipccl_sample *sample, size_t nlooks, bool wide,
                                 uint8_t least, const uint8_t *bases, const struct lengths *t,
                                 __m256i *part)
{
    const __m256i zero = _mm256_setzero_si256(), index = _mm256_set1_epi8(15);
    __m256i window = window_of(t, least, bases[0]);
    for (size_t i = 0; i < NSUB; i++) {
        __m256i sum[2] = {zero, zero};
        if (!wide && bases[i] != bases[i ? i - 1 : 0])
            window = window_of(t, least, bases[i]);
        for (size_t k = 0; k < 2 * nlooks; k++) {
            __m256i e = load(sample[k / 2 * NSUB + i].e + 32 * (k % 2));
            __m256i bits = wide ? bits_of(t, e, bases[i])
                                : _mm256_shuffle_epi8(window, _mm256_and_si256(e, index));
            sum[k % 2] = _mm256_add_epi8(sum[k % 2], bits);
        }
        part[i] = _mm256_add_epi64(_mm256_sad_epu8(sum[0], zero), _mm256_sad_epu8(sum[1], zero));
    }
}

uint32_t zipccl_cost_all_avx2(const struct zipccl_sample *sample,
                              const struct zipccl_moments *moments, const uint8_t *bases,
                              const uint8_t bits[ZIPCCL_NUM_D], uint32_t *each)
{
    const struct lengths t = {twice(bits), twice(bits + 16)};
    bool wide = moments->most - moments->least >= 16;
    __m256i part[NSUB], sum = _mm256_setzero_si256();
    if (moments->nlooks == 1 && !wide)
        bits_of_looks(sample, 1, false, moments->least, bases, &t, part);
    else if (moments->nlooks == 1)
        bits_of_looks(sample, 1, true, moments->least, bases, &t, part);
    else if (!wide)
        bits_of_looks(sample, ZIPCCL_LOOKS, false, moments->least, bases, &t, part);
    else
        bits_of_looks(sample, ZIPCCL_LOOKS, true, moments->least, bases, &t, part);
    if (each) {
        memset(each, 0, NSUB * sizeof *each);
        add_sums(part, each);
    }
    for (int i = 0; i < NSUB; i++)
        sum = _mm256_add_epi64(sum, part[i]);
    return sum_of(sum);
}
