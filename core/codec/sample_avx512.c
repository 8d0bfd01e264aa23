/*
 * sample_avx512.c - sampling with AVX-512, a superblock at once
 *
 * The sums of all sub-blocks go through one tree of additions; where no sampled element is zero,
 * subnormal, infinite or NaN, as is usual, nothing is counted.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/avx512.h"
#include "core/codec/locate.h"

enum { NSUB = ZIPCCL_SUBBLOCKS };

/* The sum of the quadwords of each of 16 registers, all below 2^32, as 16 numbers. */
ALWAYS_INLINE __m512i sums_of(const __m512i *x)
{
    const __m512i in_order =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    __m512i two[8], four[4], eight[2];
    for (int i = 0; i < 8; i++)
        two[i] = _mm512_or_si512(x[i], _mm512_slli_epi64(x[i + 8], 32));
    for (int i = 0; i < 4; i++)
        four[i] = _mm512_add_epi32(_mm512_unpacklo_epi64(two[2 * i], two[2 * i + 1]),
                                   _mm512_unpackhi_epi64(two[2 * i], two[2 * i + 1]));
    for (int i = 0; i < 2; i++)
        eight[i] = _mm512_add_epi32(_mm512_shuffle_i64x2(four[2 * i], four[2 * i + 1], 0x88),
                                    _mm512_shuffle_i64x2(four[2 * i], four[2 * i + 1], 0xdd));
    __m512i all = _mm512_add_epi32(_mm512_shuffle_i64x2(eight[0], eight[1], 0x88),
                                   _mm512_shuffle_i64x2(eight[0], eight[1], 0xdd));
    return _mm512_permutexvar_epi32(in_order, all);
}

/* The bytes under 'valid' of 64 exponents, summed to 8 numbers. */
ALWAYS_INLINE __m512i sum_of(__m512i e, __mmask64 valid, bool all_valid)
{
    return _mm512_sad_epu8(all_valid ? e : _mm512_maskz_mov_epi8(valid, e), _mm512_setzero_si512());
}

ALWAYS_INLINE __mmask64 valid_of(__m512i e)
{
    return _mm512_cmplt_epu8_mask(_mm512_sub_epi8(e, _mm512_set1_epi8(1)),
                                  _mm512_set1_epi8((char)254));
}

/* Rounded quotients of 16 sums and counts, 0 for a count of 0; exact, for sums are below 2^22. */
ALWAYS_INLINE __m512i means_of(__m512i sum, __m512i count)
{
    __m512 x = _mm512_cvtepi32_ps(_mm512_add_epi32(sum, _mm512_srli_epi32(count, 1)));
    __mmask16 some = _mm512_test_epi32_mask(count, count);
    return _mm512_maskz_cvttps_epi32(some, _mm512_div_ps(x, _mm512_cvtepi32_ps(count)));
}

/* Pull the valid exponents to within 6 of their sub-block's mean, and add up what is left. */
ALWAYS_INLINE void finish(__m512i sum, __m512i nvalid, bool all_valid,
                          const struct zipccl_sample *s, struct zipccl_moments *moments)
{
    const __m512i six = _mm512_set1_epi8(6);
    __m512i part[NSUB], mean;
    if (all_valid)
        mean = _mm512_srli_epi32(_mm512_add_epi32(sum, _mm512_set1_epi32(ZIPCCL_SAMPLES / 2)), 6);
    else
        mean = means_of(sum, nvalid);
    for (int i = 0; i < NSUB; i++) {
        __m512i e = _mm512_load_si512(s[i].e);
        __m512i centre = _mm512_permutexvar_epi8(_mm512_set1_epi8((char)(4 * i)), mean);
        __m512i pulled = _mm512_min_epu8(_mm512_max_epu8(e, _mm512_subs_epu8(centre, six)),
                                         _mm512_adds_epu8(centre, six));
        part[i] = sum_of(pulled, all_valid ? 0 : valid_of(e), all_valid);
    }
    _mm512_storeu_si512(moments->sum,
                        _mm512_add_epi32(_mm512_loadu_si512(moments->sum), sums_of(part)));
    _mm512_storeu_si512(moments->nvalid,
                        _mm512_add_epi32(_mm512_loadu_si512(moments->nvalid), nvalid));
}

/* Count what is valid and what is zero first; returns the latter. */
static uint32_t finish_with_counts(const uint8_t *const *run, const struct zipccl_sample *s,
                                   struct zipccl_moments *moments)
{
    uint32_t nvalid[NSUB], nzero = 0;
    __m512i part[NSUB];
    for (int i = 0; i < NSUB; i++) {
        __m512i e = _mm512_load_si512(s[i].e), x = _mm512_loadu_si512(run[i]),
                y = _mm512_loadu_si512(run[i] + ZIPCCL_SUBBLOCK);
        uint64_t valid = valid_of(e);
        nvalid[i] = (uint32_t)__builtin_popcountll(valid);
        nzero += (uint32_t)_mm_popcnt_u32(_mm512_testn_epi16_mask(x, x)) +
                 (uint32_t)_mm_popcnt_u32(_mm512_testn_epi16_mask(y, y));
        part[i] = sum_of(e, valid, false);
    }
    finish(sums_of(part), _mm512_loadu_si512(nvalid), false, s, moments);
    return nzero;
}

/* The least and the greatest of 64 bytes each, over all looks. */
ALWAYS_INLINE void note_range(__m512i least, __m512i most, struct zipccl_moments *moments,
                              size_t look)
{
    __m256i low =
                _mm256_min_epu8(_mm512_castsi512_si256(least), _mm512_extracti64x4_epi64(least, 1)),
            high =
                _mm256_max_epu8(_mm512_castsi512_si256(most), _mm512_extracti64x4_epi64(most, 1));
    /* Both are minima: of x and of 255 - x. */
    __m128i x = _mm_min_epu8(_mm256_castsi256_si128(low), _mm256_extracti128_si256(low, 1)),
            y = _mm_max_epu8(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
    y = _mm_xor_si128(y, _mm_set1_epi8(-1));
    x = _mm_min_epu8(x, _mm_srli_epi16(x, 8));
    y = _mm_min_epu8(y, _mm_srli_epi16(y, 8));
    const __m128i byte = _mm_set1_epi16(255);
    uint8_t lo = (uint8_t)_mm_cvtsi128_si32(_mm_minpos_epu16(_mm_and_si128(x, byte)));
    uint8_t hi = (uint8_t)~_mm_cvtsi128_si32(_mm_minpos_epu16(_mm_and_si128(y, byte)));
    moments->least = look > 0 && moments->least < lo ? moments->least : lo;
    moments->most = look > 0 && moments->most > hi ? moments->most : hi;
}

uint32_t zipccl_sample_all_avx512(const uint8_t *src, size_t look, struct zipccl_sample *s,
                                  struct zipccl_moments *moments)
{
    /* Even bytes of one register to its lower half, or to its upper half. */
    const __m512i even = _mm512_setr_epi64(
        0x0e0c0a0806040200, 0x1e1c1a1816141210, 0x2e2c2a2826242220, 0x3e3c3a3836343230,
        0x0e0c0a0806040200, 0x1e1c1a1816141210, 0x2e2c2a2826242220, 0x3e3c3a3836343230);
    __m512i part[NSUB], most = _mm512_setzero_si512(), least = _mm512_set1_epi8(-1);
    const uint8_t *run[NSUB];
    for (size_t i = 0; i < NSUB; i++) {
        size_t at = i * ZIPCCL_SUBBLOCK + zipccl_sample_start(i, ZIPCCL_SUBBLOCK, look, 0);
        run[i] = src + 2 * at;
        __m512i x = _mm512_loadu_si512(run[i]), y = _mm512_loadu_si512(run[i] + ZIPCCL_SUBBLOCK);
        __m512i e = _mm512_permutexvar_epi8(even, _mm512_srli_epi16(x, 7));
        e = _mm512_mask_permutexvar_epi8(e, 0xffffffff00000000, even, _mm512_srli_epi16(y, 7));
        least = _mm512_min_epu8(least, e);
        most = _mm512_max_epu8(most, e);
        _mm512_store_si512(s[i].e, e);
        part[i] = sum_of(e, 0, true);
    }
    note_range(least, most, moments, look);
    /* A zero's exponent is not valid either. */
    if (__builtin_expect(moments->least == 0 || moments->most == 255, 0))
        return finish_with_counts(run, s, moments);
    finish(sums_of(part), _mm512_set1_epi32(ZIPCCL_SAMPLES), true, s, moments);
    return 0;
}

int zipccl_locate_avx512(struct zipccl_moments *moments)
{
    return locate(moments);
}

/* Bits of each exponent of a sample. */
ALWAYS_INLINE __m512i bits_of(const struct zipccl_sample *s, __m512i base, __m512i table)
{
    __m512i d = _mm512_sub_epi8(base, _mm512_load_si512(s->e));
    d = _mm512_min_epu8(d, _mm512_set1_epi8(ZIPCCL_NUM_D - 1));
    return _mm512_permutexvar_epi8(d, table);
}

ALWAYS_INLINE __m512i base_of(uint8_t base)
{
    return _mm512_set1_epi8((char)(base - ZIPCCL_LEAST_D));
}

ALWAYS_INLINE __m512i table_of(const uint8_t bits[ZIPCCL_NUM_D])
{
    return _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)bits));
}

uint32_t zipccl_cost_avx512(const struct zipccl_sample *sample, size_t n, const uint8_t *bases,
                            const uint8_t bits[ZIPCCL_NUM_D])
{
    const __m512i table = table_of(bits), zero = _mm512_setzero_si512();
    __m512i sum = zero;
    for (size_t i = 0; i < n; i++) {
        __m512i each = bits_of(&sample[i], base_of(bases[i]), table);
        each = _mm512_maskz_mov_epi8(sample[i].taken, each);
        sum = _mm512_add_epi64(sum, _mm512_sad_epu8(each, zero));
    }
    return (uint32_t)_mm512_reduce_add_epi64(sum);
}

/*
 * The bits of exponent e at e mod 64, for all e from 'least' on: where no two differ by 64, a
 * sample's exponents are indices as they are.
 */
ALWAYS_INLINE __m512i window_of(uint8_t least, __m512i base, __m512i table)
{
    const __m512i lane = _mm512_set_epi64(
        0x3f3e3d3c3b3a3938, 0x3736353433323130, 0x2f2e2d2c2b2a2928, 0x2726252423222120,
        0x1f1e1d1c1b1a1918, 0x1716151413121110, 0x0f0e0d0c0b0a0908, 0x0706050403020100);
    const __m512i first = _mm512_set1_epi8((char)least);
    __m512i e = _mm512_and_si512(_mm512_sub_epi8(lane, first), _mm512_set1_epi8(63));
    __m512i d = _mm512_sub_epi8(base, _mm512_add_epi8(e, first));
    return _mm512_permutexvar_epi8(_mm512_min_epu8(d, _mm512_set1_epi8(ZIPCCL_NUM_D - 1)), table);
}

enum how { ONE_BASE, BASES, WIDE };

/*
 * Sums of each sub-block over its looks; no code is longer than 18 bits, so that a byte holds four.
 * 'nlooks' and 'how' are constants; WIDE is for exponents that differ by 64 or more.
 */
ALWAYS_INLINE __m512i bits_of_looks(const struct zipccl_sample *sample, size_t nlooks,
                                    uint8_t least, const uint8_t *bases, enum how how,
                                    __m512i table)
{
    const __m512i zero = _mm512_setzero_si512();
    __m512i part[NSUB], base = base_of(bases[0]), window = window_of(least, base, table);
    for (size_t i = 0; i < NSUB; i++) {
        __m512i sum = zero;
        if (how != ONE_BASE)
            base = base_of(bases[i]);
        if (how == BASES)
            window = window_of(least, base, table);
        for (size_t k = 0; k < nlooks; k++) {
            const struct zipccl_sample *s = &sample[k * NSUB + i];
            sum = _mm512_add_epi8(
                sum, how == WIDE ? bits_of(s, base, table)
                                 : _mm512_permutexvar_epi8(_mm512_load_si512(s->e), window));
        }
        part[i] = _mm512_sad_epu8(sum, zero);
    }
    return sums_of(part);
}

uint32_t zipccl_cost_all_avx512(const struct zipccl_sample *sample,
                                const struct zipccl_moments *moments, const uint8_t *bases,
                                const uint8_t bits[ZIPCCL_NUM_D], uint32_t *each)
{
    const __m512i table = table_of(bits);
    const __m128i all = _mm_loadu_si128((const __m128i *)bases);
    uint8_t least = moments->least;
    bool one_base = _mm_cmpneq_epi8_mask(all, _mm_broadcastb_epi8(all)) == 0,
         wide = moments->most - least >= 64;
    __m512i sums;
    if (moments->nlooks == 1)
        sums = wide       ? bits_of_looks(sample, 1, least, bases, WIDE, table)
               : one_base ? bits_of_looks(sample, 1, least, bases, ONE_BASE, table)
                          : bits_of_looks(sample, 1, least, bases, BASES, table);
    else
        sums = wide       ? bits_of_looks(sample, ZIPCCL_LOOKS, least, bases, WIDE, table)
               : one_base ? bits_of_looks(sample, ZIPCCL_LOOKS, least, bases, ONE_BASE, table)
                          : bits_of_looks(sample, ZIPCCL_LOOKS, least, bases, BASES, table);
    if (each)
        _mm512_storeu_si512(each, sums);
    return (uint32_t)_mm512_reduce_add_epi32(sums);
}
