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

/* Symbols of 64 exponents and halves; which escape, and their far values. */
ALWAYS_INLINE __m512i symbols_of(const struct octaves *o, __m512i exponents, __mmask64 half,
                                 __mmask64 *outside, __m512i *far)
{
    const __m512i escape = _mm512_set1_epi8(ZIPCCL_ANS_ESCAPE), one = _mm512_set1_epi8(1);
    __m512i d = _mm512_sub_epi8(o->top, exponents);
    __mmask64 out = _mm512_cmpge_epu8_mask(d, o->count);
    __m512i u = _mm512_mask_mov_epi8(_mm512_add_epi8(d, d), out, escape);
    /* Octaves above the top are negative. */
    *far = _mm512_mask_sub_epi8(d, (__mmask64)~_mm512_movepi8_mask(d), d, o->count);
    *outside = out;
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
        __mmask64 outside;
        __m512i far, u = symbols_of(&o, _mm512_loadu_si512(exponents + i), half, &outside, &far);
        _mm512_storeu_si512(out + i, u);
        next = append(next, far, outside & mask_of(m - i));
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

/* 64 bf16, or those in 'lanes', and what they become. */
struct parts {
    __m512i symbols, packed, far;
    __mmask64 outside;
};

ALWAYS_INLINE struct parts parts_of(const struct octaves *o, const uint8_t *src, __mmask64 lanes)
{
    struct halves x = lanes == ~0ull ? load_64(src) : load_tail(src, lanes);
    struct parts p;
    p.symbols = symbols_of(o, x.exponents, _mm512_movepi8_mask(x.low), &p.outside, &p.far);
    p.outside &= lanes;
    p.packed = pack_64(x.low);
    return p;
}

static size_t split(const uint8_t *src, size_t m, uint8_t top, uint8_t octaves, uint8_t *packed,
                    uint8_t *out, uint8_t *escaped)
{
    const struct octaves o = octaves_of(top, octaves);
    uint8_t *next = escaped;
    for (size_t i = 0; i < m; i += ZIPCCL_GROUP, packed += 56) {
        struct parts p = parts_of(&o, src + 2 * i, mask_of(m - i));
        _mm512_storeu_si512(out + i, p.symbols);
        _mm512_storeu_si512(packed, p.packed);
        next = append(next, p.far, p.outside);
    }
    return (size_t)(next - escaped);
}

/* The elements of symbols 'u' with the low parts at 'packed'. */
ALWAYS_INLINE struct halves halves_of(const struct octaves *o, __m512i u, const uint8_t *packed,
                                      __mmask64 lanes, const uint8_t **escaped)
{
    __mmask64 half;
    struct halves x;
    x.exponents = exponents_of(o, u, lanes, escaped, &half);
    x.low = unpack_64(_mm512_loadu_si512(packed));
    x.low = _mm512_mask_sub_epi8(x.low, half, x.low, _mm512_set1_epi8(-128));
    return x;
}

ALWAYS_INLINE size_t join_all(const uint8_t *in, const uint8_t *packed, const uint8_t *escaped,
                              size_t m, uint8_t top, uint8_t octaves, bool stream, uint8_t *dst)
{
    const struct octaves o = octaves_of(top, octaves);
    const uint8_t *next = escaped;
    for (size_t i = 0; i < m; i += ZIPCCL_GROUP, packed += 56) {
        __mmask64 lanes = mask_of(m - i);
        __m512i u = _mm512_loadu_si512(in + i);
        store_64(dst + 2 * i, halves_of(&o, u, packed, lanes, &next), lanes, stream);
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
    __m512i frequency, start, inverse;
};

/* The even bytes of 'even' and, above them, the even bytes of 'odd'. */
ALWAYS_INLINE __m512i merge_bytes(__m512i even, __m512i odd)
{
    return _mm512_ternarylogic_epi32(_mm512_set1_epi16(255), even, _mm512_slli_epi16(odd, 8), 0xca);
}

/*
 * Code the symbols 'u' of one group; returns where the stream starts now.  Words of low and high
 * bytes, y, are divided by the frequency f, where y < 256 f: floor(65535 / f) falls short by one at
 * most, and the rest is less than 2 f and fits a byte.
 */
ALWAYS_INLINE uint8_t *encode_group(__m512i u, __mmask64 lanes, const struct coding *c,
                                    __m512i *low, __m512i *high, uint8_t *end)
{
    const __m512i byte = _mm512_set1_epi16(255);
    __m512i f = _mm512_permutexvar_epi8(u, c->frequency);
    __mmask64 give = _mm512_mask_cmpge_epu8_mask(lanes, *high, f);
    unsigned n = (unsigned)__builtin_popcountll(give);
    end -= n;
    _mm512_mask_storeu_epi8(end, _bzhi_u64(~0ull, n), _mm512_maskz_compress_epi8(give, *low));
    __m512i lo = _mm512_mask_mov_epi8(*low, give, *high);
    __m512i hi = _mm512_mask_mov_epi8(*high, give, _mm512_setzero_si512());

    /* An index of 16 bits counts by its lowest five. */
    __m512i even_inverse = _mm512_permutexvar_epi16(u, c->inverse);
    __m512i odd_inverse = _mm512_permutexvar_epi16(_mm512_srli_epi16(u, 8), c->inverse);
    __m512i odd = _mm512_ternarylogic_epi32(byte, _mm512_srli_epi16(lo, 8), hi, 0xca);
    __m512i even_q = _mm512_mulhi_epu16(merge_bytes(lo, hi), even_inverse);
    __m512i odd_q = _mm512_slli_epi16(_mm512_mulhi_epu16(odd, odd_inverse), 8);
    hi = _mm512_or_si512(even_q, odd_q);
    /* In each pair of bytes one is 0; frequencies are less than 128. */
    __m512i even_product = _mm512_maddubs_epi16(even_q, f);
    __m512i odd_product = _mm512_maddubs_epi16(odd_q, f);
    lo = _mm512_sub_epi8(lo, merge_bytes(even_product, odd_product));
    __mmask64 short_by_one = _mm512_cmpge_epu8_mask(lo, f);
    hi = _mm512_mask_sub_epi8(hi, short_by_one, hi, _mm512_set1_epi8(-1));
    lo = _mm512_mask_sub_epi8(lo, short_by_one, lo, f);
    lo = _mm512_add_epi8(lo, _mm512_permutexvar_epi8(u, c->start));
    *high = _mm512_mask_mov_epi8(*high, lanes, hi);
    *low = _mm512_mask_mov_epi8(*low, lanes, lo);
    return end;
}

static uint8_t *encode(const uint8_t *in, size_t m, const struct zipccl_ans_table *table,
                       struct zipccl_ans_states *states, uint8_t *end)
{
    const struct coding c = {_mm512_loadu_si512(table->frequency), _mm512_loadu_si512(table->start),
                             _mm512_loadu_si512(table->inverse)};
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

ALWAYS_INLINE struct decoding decoding_of(const struct zipccl_ans_table *table)
{
    struct decoding t = {.frequency = _mm512_loadu_si512(table->frequency),
                         .start = _mm512_loadu_si512(table->start)};
    for (int k = 0; k < 4; k++)
        t.symbol[k] = _mm512_loadu_si512(table->symbol + 64 * k);
    return t;
}

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
    /* In each pair of bytes one is 0; frequencies are less than 128. */
    __m512i even = _mm512_maddubs_epi16(_mm512_and_si512(*high, byte), f);
    __m512i odd = _mm512_maddubs_epi16(_mm512_andnot_si512(byte, *high), f);
    even = _mm512_add_epi16(even, _mm512_and_si512(more, byte));
    odd = _mm512_add_epi16(odd, _mm512_srli_epi16(more, 8));
    __m512i lo = merge_bytes(even, odd);
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
    const struct decoding t = decoding_of(table);
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

/* One group of encode_bf16. */
ALWAYS_INLINE void encode_part(const struct octaves *o, const struct coding *c, const uint8_t *src,
                               size_t len, __m512i *low, __m512i *high, uint8_t **stream,
                               uint8_t **escaped, uint8_t *packed)
{
    struct parts p = parts_of(o, src, mask_of(len));
    /* What follows is there already, of the share and of what escapes. */
    _mm512_mask_storeu_epi8(packed, mask_of((7 * len + 7) / 8), p.packed);
    unsigned n = (unsigned)__builtin_popcountll(p.outside);
    *escaped -= n;
    _mm512_mask_storeu_epi8(*escaped, _bzhi_u64(~0ull, n),
                            _mm512_maskz_compress_epi8(p.outside, p.far));
    *stream = encode_group(p.symbols, mask_of(len), c, low, high, *stream);
}

/* As row_avx512.c's, but coding goes backwards: one superblock ahead is far enough (measured). */
enum { SOURCE_AHEAD = 2 * ZIPCCL_SUPERBLOCK };

static void encode_bf16(const uint8_t *src, size_t m, uint8_t top,
                        const struct zipccl_ans_table *table, struct zipccl_ans_cursor *at,
                        bool stream, uint8_t *packed)
{
    const struct octaves o = octaves_of(top, table->octaves);
    const struct coding c = {_mm512_loadu_si512(table->frequency), _mm512_loadu_si512(table->start),
                             _mm512_loadu_si512(table->inverse)};
    __m512i low = _mm512_loadu_si512(at->states.low), high = _mm512_loadu_si512(at->states.high);
    uint8_t *next = at->stream, *escaped = at->escaped;
    size_t g = m / ZIPCCL_GROUP;
    if (m % ZIPCCL_GROUP)
        encode_part(&o, &c, src + 128 * g, m % ZIPCCL_GROUP, &low, &high, &next, &escaped,
                    packed + 56 * g);
    while (g-- > 0) {
        if (stream) {
            __builtin_prefetch(src + 128 * g + SOURCE_AHEAD, 0, 2);
            __builtin_prefetch(src + 128 * g + SOURCE_AHEAD + 64, 0, 2);
        }
        encode_part(&o, &c, src + 128 * g, ZIPCCL_GROUP, &low, &high, &next, &escaped,
                    packed + 56 * g);
    }
    at->stream = next;
    at->escaped = escaped;
    _mm512_storeu_si512(at->states.low, low);
    _mm512_storeu_si512(at->states.high, high);
}

ALWAYS_INLINE void decode_all(const uint8_t *packed, size_t m, uint8_t top,
                              const struct zipccl_ans_table *table, struct zipccl_ans_cursor *at,
                              bool stream, uint8_t *dst)
{
    const struct octaves o = octaves_of(top, table->octaves);
    const struct decoding t = decoding_of(table);
    __m512i low = _mm512_loadu_si512(at->states.low), high = _mm512_loadu_si512(at->states.high);
    const uint8_t *in = at->stream, *next = at->escaped;
    size_t i = 0;
    for (; i + ZIPCCL_GROUP <= m; i += ZIPCCL_GROUP, packed += 56) {
        __m512i u = decode_group(~0ull, &t, &low, &high, &in);
        store_64(dst + 2 * i, halves_of(&o, u, packed, ~0ull, &next), ~0ull, stream);
    }
    if (i < m) {
        __mmask64 lanes = mask_of(m - i);
        __m512i u = decode_group(lanes, &t, &low, &high, &in);
        store_64(dst + 2 * i, halves_of(&o, u, packed, lanes, &next), lanes, stream);
    }
    at->stream += in - at->stream;
    at->escaped += next - at->escaped;
    _mm512_storeu_si512(at->states.low, low);
    _mm512_storeu_si512(at->states.high, high);
}

static void decode_bf16(const uint8_t *packed, size_t m, uint8_t top,
                        const struct zipccl_ans_table *table, struct zipccl_ans_cursor *at,
                        bool stream, uint8_t *dst)
{
    if (!stream || !is_aligned(dst)) {
        decode_all(packed, m, top, table, at, false, dst);
    } else {
        decode_all(packed, m, top, table, at, true, dst);
        _mm_sfence();
    }
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
    .encode_bf16 = encode_bf16,
    .decode_bf16 = decode_bf16,
};
