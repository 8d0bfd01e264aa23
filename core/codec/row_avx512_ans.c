/*
 * row_avx512_ans.c - program ANS with AVX-512 (F, BW, VL, DQ, VBMI, VBMI2)
 *
 * The low and the high bytes of all 64 states are one register each: a slot is a low byte, so four
 * registers hold the table of symbols, and what a state gives or takes is a byte, moved by one
 * compress or expand.  Built and called as row_avx512.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/row_avx512.h"

/* Bytes 0 to 6 of each quadword, one after the other, and back. */
static const uint8_t seven_of_eight[64] = {
    0,  1,  2,  3,  4,  5,  6,  8,  9,  10, 11, 12, 13, 14, 16, 17, 18, 19, 20, 21, 22, 24,
    25, 26, 27, 28, 29, 30, 32, 33, 34, 35, 36, 37, 38, 40, 41, 42, 43, 44, 45, 46, 48, 49,
    50, 51, 52, 53, 54, 56, 57, 58, 59, 60, 61, 62, 7,  15, 23, 31, 39, 47, 55, 63};
static const uint8_t eight_of_seven[64] = {
    0,  1,  2,  3,  4,  5,  6,  6,  7,  8,  9,  10, 11, 12, 13, 13, 14, 15, 16, 17, 18, 19,
    20, 20, 21, 22, 23, 24, 25, 26, 27, 27, 28, 29, 30, 31, 32, 33, 34, 34, 35, 36, 37, 38,
    39, 40, 41, 41, 42, 43, 44, 45, 46, 47, 48, 48, 49, 50, 51, 52, 53, 54, 55, 55};

/* What a sub-block's table says about exponents, in all lanes. */
struct octaves {
    __m512i top, count;
};

ALWAYS_INLINE struct octaves octaves_of(uint8_t top, uint8_t octaves)
{
    return (struct octaves){_mm512_set1_epi8((char)top), _mm512_set1_epi8((char)octaves)};
}

/* Symbols of 64 exponents and halves; appends what escapes, of those in 'lanes'. */
ALWAYS_INLINE __m512i symbols_of(const struct octaves *o, __m512i exponents, __mmask64 half,
                                 __mmask64 lanes, uint8_t **escaped)
{
    const __m512i escape = _mm512_set1_epi8(ZIPCCL_ANS_ESCAPE), one = _mm512_set1_epi8(1);
    __m512i d = _mm512_sub_epi8(o->top, exponents);
    __mmask64 outside = _mm512_cmpge_epu8_mask(d, o->count);
    __m512i u = _mm512_mask_mov_epi8(_mm512_add_epi8(d, d), outside, escape);
    /* Octaves above the top are negative. */
    d = _mm512_mask_sub_epi8(d, (__mmask64)~_mm512_movepi8_mask(d), d, o->count);
    *escaped = append(*escaped, d, outside & lanes);
    return _mm512_mask_add_epi8(u, half, u, one);
}

/* Inverse: the exponents, and the halves. */
ALWAYS_INLINE __m512i exponents_of(const struct octaves *o, __m512i u, __mmask64 lanes,
                                   const uint8_t **escaped, __mmask64 *half)
{
    const __m512i escape = _mm512_set1_epi8(ZIPCCL_ANS_ESCAPE), seven = _mm512_set1_epi8(127);
    __mmask64 outside = _mm512_mask_cmpge_epu8_mask(lanes, u, escape);
    __m512i d = _mm512_and_si512(_mm512_srli_epi16(u, 1), seven);
    __m512i far = _mm512_loadu_si512(*escaped);
    far = _mm512_mask_add_epi8(far, (__mmask64)~_mm512_movepi8_mask(far), far, o->count);
    d = _mm512_mask_expand_epi8(d, outside, far);
    *escaped += __builtin_popcountll(outside);
    *half = _mm512_test_epi8_mask(u, _mm512_set1_epi8(1));
    return _mm512_sub_epi8(o->top, d);
}

static size_t symbols(const uint8_t *exponents, const uint8_t *bits, int lead, size_t m,
                      uint8_t top, uint8_t octaves, uint8_t *out, uint8_t *escaped)
{
    const struct octaves o = octaves_of(top, octaves);
    const __m512i leading = _mm512_set1_epi8((char)(1 << lead));
    uint8_t *next = escaped;
    for (size_t i = 0; i < m; i += ZIPCCL_GROUP) {
        __mmask64 half = _mm512_test_epi8_mask(_mm512_loadu_si512(bits + i), leading);
        __m512i u = symbols_of(&o, _mm512_loadu_si512(exponents + i), half, mask_of(m - i), &next);
        _mm512_storeu_si512(out + i, u);
    }
    return (size_t)(next - escaped);
}

static size_t exponents(const uint8_t *in, const uint8_t *escaped, size_t m, uint8_t top,
                        uint8_t octaves, int lead, uint8_t *bits, uint8_t *out)
{
    const struct octaves o = octaves_of(top, octaves);
    const __m512i leading = _mm512_set1_epi8((char)(1 << lead));
    const uint8_t *next = escaped;
    for (size_t i = 0; i < m; i += ZIPCCL_GROUP) {
        __mmask64 half;
        __m512i u = _mm512_loadu_si512(in + i), low = _mm512_loadu_si512(bits + i);
        _mm512_storeu_si512(out + i, exponents_of(&o, u, mask_of(m - i), &next, &half));
        low = _mm512_or_si512(low, _mm512_maskz_mov_epi8(half, leading));
        _mm512_storeu_si512(bits + i, low);
    }
    return (size_t)(next - escaped);
}

/* The seven lowest bits of 64 bytes in 56. */
ALWAYS_INLINE __m512i pack_64(__m512i x)
{
    const __m512i by_7 = _mm512_set1_epi16((short)0x8001),
                  by_14 = _mm512_set1_epi32(16384 << 16 | 1), first = _mm512_set1_epi64(0x0fffffff);
    x = _mm512_maddubs_epi16(by_7, _mm512_and_si512(x, _mm512_set1_epi8(127)));
    x = _mm512_madd_epi16(x, by_14);
    x = _mm512_ternarylogic_epi64(first, x, _mm512_srli_epi64(x, 4), 0xca);
    return _mm512_permutexvar_epi8(_mm512_loadu_si512(seven_of_eight), x);
}

ALWAYS_INLINE __m512i unpack_64(__m512i x)
{
    const __m512i shifts = _mm512_set1_epi64(0x312a231c150e0700);
    x = _mm512_permutexvar_epi8(_mm512_loadu_si512(eight_of_seven), x);
    return _mm512_and_si512(_mm512_multishift_epi64_epi8(shifts, x), _mm512_set1_epi8(127));
}

static void pack(const uint8_t *low, size_t m, uint8_t *packed)
{
    for (size_t i = 0; i < m; i += ZIPCCL_GROUP, packed += 56) {
        /* What follows may be in use already. */
        size_t len = m - i < ZIPCCL_GROUP ? m - i : ZIPCCL_GROUP;
        __m512i x = pack_64(_mm512_maskz_loadu_epi8(mask_of(len), low + i));
        _mm512_mask_storeu_epi8(packed, mask_of((7 * len + 7) / 8), x);
    }
}

static void unpack(const uint8_t *packed, size_t m, uint8_t *low)
{
    for (size_t i = 0; i < m; i += ZIPCCL_GROUP, packed += 56)
        _mm512_storeu_si512(low + i, unpack_64(_mm512_loadu_si512(packed)));
}

static size_t split(const uint8_t *src, size_t m, uint8_t top, uint8_t octaves, uint8_t *packed,
                    uint8_t *out, uint8_t *escaped)
{
    const struct octaves o = octaves_of(top, octaves);
    uint8_t *next = escaped;
    size_t i = 0;
    for (; i + ZIPCCL_GROUP <= m; i += ZIPCCL_GROUP, packed += 56) {
        struct halves x = load_64(src + 2 * i);
        __mmask64 half = _mm512_movepi8_mask(x.low);
        _mm512_storeu_si512(out + i, symbols_of(&o, x.exponents, half, ~0ull, &next));
        _mm512_storeu_si512(packed, pack_64(x.low));
    }
    if (i < m) {
        __mmask64 lanes = mask_of(m - i);
        struct halves x = load_tail(src + 2 * i, lanes);
        __mmask64 half = _mm512_movepi8_mask(x.low);
        _mm512_storeu_si512(out + i, symbols_of(&o, x.exponents, half, lanes, &next));
        _mm512_storeu_si512(packed, pack_64(x.low));
    }
    return (size_t)(next - escaped);
}

ALWAYS_INLINE size_t join_all(const uint8_t *in, const uint8_t *packed, const uint8_t *escaped,
                              size_t m, uint8_t top, uint8_t octaves, bool stream, uint8_t *dst)
{
    const struct octaves o = octaves_of(top, octaves);
    const uint8_t *next = escaped;
    for (size_t i = 0; i < m; i += ZIPCCL_GROUP, packed += 56) {
        __mmask64 half, lanes = mask_of(m - i);
        struct halves x;
        x.exponents = exponents_of(&o, _mm512_loadu_si512(in + i), lanes, &next, &half);
        x.low = unpack_64(_mm512_loadu_si512(packed));
        x.low = _mm512_mask_sub_epi8(x.low, half, x.low, _mm512_set1_epi8(-128));
        store_64(dst + 2 * i, x, lanes, stream);
    }
    return (size_t)(next - escaped);
}

static size_t join(const uint8_t *in, const uint8_t *packed, const uint8_t *escaped, size_t m,
                   uint8_t top, uint8_t octaves, bool stream, uint8_t *dst)
{
    if (!stream || !is_aligned(dst))
        return join_all(in, packed, escaped, m, top, octaves, false, dst);
    size_t nescaped = join_all(in, packed, escaped, m, top, octaves, true, dst);
    _mm_sfence();
    return nescaped;
}

/* What coding a group needs of a table. */
struct coding {
    __m512i frequency, start, inverse_low, inverse_high;
};

/* The even bytes of 'even' and those of 'odd' above them. */
ALWAYS_INLINE __m512i join_bytes(__m512i even, __m512i odd)
{
    return _mm512_mask_mov_epi8(even, 0xaaaaaaaaaaaaaaaaull, _mm512_slli_epi16(odd, 8));
}

/* Divide y by f in 16-bit lanes, y < 256 f: floor(65535 / f) falls short by one at most. */
ALWAYS_INLINE __m512i divide(__m512i y, __m512i f, __m512i inverse, __m512i *remainder)
{
    __m512i q = _mm512_mulhi_epu16(y, inverse);
    __m512i r = _mm512_sub_epi16(y, _mm512_mullo_epi16(q, f));
    __mmask32 short_by_one = _mm512_cmpge_epu16_mask(r, f);
    *remainder = _mm512_mask_sub_epi16(r, short_by_one, r, f);
    return _mm512_mask_sub_epi16(q, short_by_one, q, _mm512_set1_epi16(-1));
}

/* Code the symbols 'u' of one group; returns where the stream starts now. */
ALWAYS_INLINE uint8_t *encode_group(__m512i u, __mmask64 lanes, const struct coding *c,
                                    __m512i *low, __m512i *high, uint8_t *end)
{
    const __m512i byte = _mm512_set1_epi16(255);
    __m512i f = _mm512_permutexvar_epi8(u, c->frequency),
            start = _mm512_permutexvar_epi8(u, c->start);
    __m512i il = _mm512_permutexvar_epi8(u, c->inverse_low),
            ih = _mm512_permutexvar_epi8(u, c->inverse_high);
    __mmask64 give = _mm512_mask_cmpge_epu8_mask(lanes, *high, f);
    size_t n = (size_t)__builtin_popcountll(give);
    end -= n;
    _mm512_mask_storeu_epi8(end, mask_of(n), _mm512_maskz_compress_epi8(give, *low));
    __m512i lo = _mm512_mask_mov_epi8(*low, give, *high);
    __m512i hi = _mm512_maskz_mov_epi8((__mmask64)~give, *high);

    __m512i even = _mm512_ternarylogic_epi32(byte, lo, _mm512_slli_epi16(hi, 8), 0xca);
    __m512i odd = _mm512_ternarylogic_epi32(byte, _mm512_srli_epi16(lo, 8), hi, 0xca);
    __m512i even_inverse = _mm512_ternarylogic_epi32(byte, il, _mm512_slli_epi16(ih, 8), 0xca);
    __m512i odd_inverse = _mm512_ternarylogic_epi32(byte, _mm512_srli_epi16(il, 8), ih, 0xca);
    __m512i even_rest, odd_rest;
    even = divide(even, _mm512_and_si512(f, byte), even_inverse, &even_rest);
    odd = divide(odd, _mm512_srli_epi16(f, 8), odd_inverse, &odd_rest);
    hi = _mm512_or_si512(even, _mm512_slli_epi16(odd, 8));
    lo = _mm512_or_si512(even_rest, _mm512_slli_epi16(odd_rest, 8));
    lo = _mm512_add_epi8(lo, start);
    *high = _mm512_mask_mov_epi8(*high, lanes, hi);
    *low = _mm512_mask_mov_epi8(*low, lanes, lo);
    return end;
}

static uint8_t *encode(const uint8_t *in, size_t m, const struct zipccl_ans_table *table,
                       struct zipccl_ans_states *states, uint8_t *end)
{
    const struct coding c = {_mm512_loadu_si512(table->frequency), _mm512_loadu_si512(table->start),
                             _mm512_loadu_si512(table->inverse_low),
                             _mm512_loadu_si512(table->inverse_high)};
    __m512i low = _mm512_loadu_si512(states->low), high = _mm512_loadu_si512(states->high);
    size_t i = m / ZIPCCL_GROUP * ZIPCCL_GROUP;
    if (i < m)
        end = encode_group(_mm512_loadu_si512(in + i), mask_of(m - i), &c, &low, &high, end);
    for (; i > 0; i -= ZIPCCL_GROUP)
        end = encode_group(_mm512_loadu_si512(in + i - ZIPCCL_GROUP), ~0ull, &c, &low, &high, end);
    _mm512_storeu_si512(states->low, low);
    _mm512_storeu_si512(states->high, high);
    return end;
}

/* What decoding a group needs of a table. */
struct decoding {
    __m512i symbol[4], frequency, start;
};

/* Decode a group; returns its symbols. */
ALWAYS_INLINE __m512i decode_group(__mmask64 lanes, const struct decoding *t, __m512i *low,
                                   __m512i *high, const uint8_t **in)
{
    const __m512i byte = _mm512_set1_epi16(255);
    __m512i first = _mm512_permutex2var_epi8(t->symbol[0], *low, t->symbol[1]);
    __m512i second = _mm512_permutex2var_epi8(t->symbol[2], *low, t->symbol[3]);
    __m512i u = _mm512_mask_mov_epi8(first, _mm512_movepi8_mask(*low), second);
    __m512i f = _mm512_permutexvar_epi8(u, t->frequency);
    __m512i more = _mm512_sub_epi8(*low, _mm512_permutexvar_epi8(u, t->start));
    __m512i even = _mm512_mullo_epi16(_mm512_and_si512(*high, byte), _mm512_and_si512(f, byte));
    __m512i odd = _mm512_mullo_epi16(_mm512_srli_epi16(*high, 8), _mm512_srli_epi16(f, 8));
    even = _mm512_add_epi16(even, _mm512_and_si512(more, byte));
    odd = _mm512_add_epi16(odd, _mm512_srli_epi16(more, 8));
    __m512i lo = _mm512_ternarylogic_epi32(byte, even, _mm512_slli_epi16(odd, 8), 0xca);
    __m512i hi = _mm512_ternarylogic_epi32(byte, _mm512_srli_epi16(even, 8), odd, 0xca);
    __mmask64 take = _mm512_mask_testn_epi8_mask(lanes, hi, hi);
    hi = _mm512_mask_mov_epi8(hi, take, lo);
    lo = _mm512_mask_expand_epi8(lo, take, _mm512_loadu_si512(*in));
    *in += __builtin_popcountll(take);
    *high = _mm512_mask_mov_epi8(*high, lanes, hi);
    *low = _mm512_mask_mov_epi8(*low, lanes, lo);
    return u;
}

static const uint8_t *decode(const uint8_t *in, size_t m, const struct zipccl_ans_table *table,
                             struct zipccl_ans_states *states, uint8_t *out)
{
    struct decoding t = {.frequency = _mm512_loadu_si512(table->frequency),
                         .start = _mm512_loadu_si512(table->start)};
    for (int k = 0; k < 4; k++)
        t.symbol[k] = _mm512_loadu_si512(table->symbol + 64 * k);
    __m512i low = _mm512_loadu_si512(states->low), high = _mm512_loadu_si512(states->high);
    size_t i = 0;
    for (; i + ZIPCCL_GROUP <= m; i += ZIPCCL_GROUP)
        _mm512_storeu_si512(out + i, decode_group(~0ull, &t, &low, &high, &in));
    if (i < m)
        _mm512_storeu_si512(out + i, decode_group(mask_of(m - i), &t, &low, &high, &in));
    _mm512_storeu_si512(states->low, low);
    _mm512_storeu_si512(states->high, high);
    return in;
}

const struct zipccl_ans_kernels zipccl_ans_avx512 = {
    .symbols = symbols,
    .exponents = exponents,
    .encode = encode,
    .decode = decode,
    .pack = pack,
    .unpack = unpack,
    .split = split,
    .join = join,
};
