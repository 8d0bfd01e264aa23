/*
 * row_avx2_ans.c - program ANS with AVX2
 *
 * The low and the high bytes of all 64 states are two registers each.  A slot's symbol is counted:
 * how many symbols start at or below it.  What a group gives or takes moves as what escapes does in the
 * other programs.  A last short group goes through the kernels of row_ans.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/row_avx2.h"

#include "core/codec/row_ans.h"

/* Lanes where x >= y. */
ALWAYS_INLINE __m256i at_least(__m256i x, __m256i y)
{
    return _mm256_cmpeq_epi8(_mm256_max_epu8(x, y), x);
}

/* 'yes' where the mask is set, else 'no'. */
ALWAYS_INLINE __m256i choose(__m256i mask, __m256i yes, __m256i no)
{
    return _mm256_or_si256(_mm256_and_si256(mask, yes), _mm256_andnot_si256(mask, no));
}

/* The even bytes of 'even' and, above them, the even bytes of 'odd'. */
ALWAYS_INLINE __m256i merge_bytes(__m256i even, __m256i odd)
{
    return _mm256_or_si256(_mm256_and_si256(even, _mm256_set1_epi16(255)),
                           _mm256_slli_epi16(odd, 8));
}

/* Their odd bytes, likewise. */
ALWAYS_INLINE __m256i merge_upper(__m256i even, __m256i odd)
{
    return _mm256_or_si256(_mm256_srli_epi16(even, 8),
                           _mm256_andnot_si256(_mm256_set1_epi16(255), odd));
}

/* 32 bytes by number, in halves. */
struct table {
    __m256i below_16, from_16;
};

ALWAYS_INLINE struct table table_of(const uint8_t *p)
{
    return (struct table){twice(p), twice(p + 16)};
}

/* Numbers below 32 as shuffles for either half, which make zeros of the other's. */
struct numbers {
    __m256i below_16, from_16;
};

ALWAYS_INLINE struct numbers numbers_of(__m256i u)
{
    return (struct numbers){_mm256_adds_epu8(u, _mm256_set1_epi8(0x70)),
                            _mm256_sub_epi8(u, _mm256_set1_epi8(16))};
}

ALWAYS_INLINE __m256i entry_of(const struct table *t, const struct numbers *at)
{
    return _mm256_or_si256(_mm256_shuffle_epi8(t->below_16, at->below_16),
                           _mm256_shuffle_epi8(t->from_16, at->from_16));
}

static size_t symbols(const uint8_t *exponents, const uint8_t *bits, int lead, size_t m,
                      uint8_t top, uint8_t octaves, uint8_t *out, uint8_t *escaped)
{
    const __m256i tops = _mm256_set1_epi8((char)top), count = _mm256_set1_epi8((char)octaves),
                  one = _mm256_set1_epi8(1), escape = _mm256_set1_epi8(ZIPCCL_ANS_ESCAPE);
    const __m128i by = _mm_cvtsi32_si128(lead);
    uint8_t *next = escaped;
    size_t i = 0;
    for (; i + ZIPCCL_GROUP <= m; i += ZIPCCL_GROUP) {
        __m256i far[2];
        uint32_t mask[2];
        for (int h = 0; h < 2; h++) {
            __m256i d = _mm256_sub_epi8(tops, load(exponents + i + 32 * h));
            __m256i half = _mm256_and_si256(_mm256_srl_epi16(load(bits + i + 32 * h), by), one);
            __m256i outside = at_least(d, count);
            /* Octaves above the top are negative. */
            __m256i above = _mm256_cmpgt_epi8(_mm256_setzero_si256(), d);
            far[h] = _mm256_sub_epi8(d, _mm256_andnot_si256(above, count));
            d = choose(outside, escape, _mm256_add_epi8(d, d));
            store(out + i + 32 * h, _mm256_or_si256(d, half));
            mask[h] = (uint32_t)_mm256_movemask_epi8(outside);
        }
        next = append(next, far[0], far[1], mask[0], mask[1]);
    }
    if (i < m)
        next += ans_symbols(exponents + i, bits + i, lead, m - i, top, octaves, out + i, next);
    return (size_t)(next - escaped);
}

static size_t exponents(const uint8_t *in, const uint8_t *escaped, size_t m, uint8_t top,
                        uint8_t octaves, int lead, uint8_t *bits, uint8_t *out)
{
    const __m256i tops = _mm256_set1_epi8((char)top), count = _mm256_set1_epi8((char)octaves),
                  one = _mm256_set1_epi8(1), below = _mm256_set1_epi8(ZIPCCL_ANS_ESCAPE - 1);
    const __m128i by = _mm_cvtsi32_si128(lead);
    const uint8_t *next = escaped;
    size_t i = 0, end = m / ZIPCCL_GROUP * ZIPCCL_GROUP;
    for (; i < end; i += 32) {
        __m256i u = load(in + i), outside = _mm256_cmpgt_epi8(u, below), half;
        uint32_t mask = (uint32_t)_mm256_movemask_epi8(outside);
        __m256i far = next_32(next, mask), d = _mm256_srli_epi16(_mm256_andnot_si256(one, u), 1);
        next += _mm_popcnt_u32(mask);
        far = _mm256_add_epi8(
            far, _mm256_andnot_si256(_mm256_cmpgt_epi8(_mm256_setzero_si256(), far), count));
        far = _mm256_shuffle_epi8(far, places_of(outside));
        d = _mm256_or_si256(_mm256_andnot_si256(outside, d), far);
        store(out + i, _mm256_sub_epi8(tops, d));
        half = _mm256_sll_epi16(_mm256_and_si256(u, one), by);
        store(bits + i, _mm256_or_si256(load(bits + i), half));
    }
    if (i < m)
        next += ans_exponents(in + i, next, m - i, top, octaves, lead, bits + i, out + i);
    return (size_t)(next - escaped);
}

/* The seven lowest bits of 32 bytes in 28, 14 at the start of either half. */
ALWAYS_INLINE __m256i pack_32(__m256i x)
{
    const __m256i by_7 = _mm256_set1_epi16((short)0x8001),
                  by_14 = _mm256_set1_epi32(16384 << 16 | 1),
                  first = _mm256_set1_epi64x(0x0fffffff),
                  seven = _mm256_broadcastsi128_si256(
                      _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, -1, -1));
    x = _mm256_maddubs_epi16(by_7, _mm256_and_si256(x, _mm256_set1_epi8(127)));
    x = _mm256_madd_epi16(x, by_14);
    return _mm256_shuffle_epi8(choose(first, x, _mm256_srli_epi64(x, 4)), seven);
}

static void pack(const uint8_t *low, size_t m, uint8_t *packed)
{
    size_t i = 0;
    /* Two bytes more are written, which the next ones overwrite; what follows may be in use already. */
    for (; i + 40 <= m; i += 32, packed += 28) {
        __m256i x = pack_32(load(low + i));
        _mm_storeu_si128((void *)packed, _mm256_castsi256_si128(x));
        _mm_storeu_si128((void *)(packed + 14), _mm256_extracti128_si256(x, 1));
    }
    ans_pack(low + i, m - i, packed);
}

static void unpack(const uint8_t *packed, size_t m, uint8_t *low)
{
    const __m256i eight = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, -1, 7, 8, 9, 10, 11, 12, 13, -1));
    for (size_t i = 0; i < m; i += 32, packed += 28) {
        __m256i x =
            _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)packed)),
                                    _mm_loadu_si128((const void *)(packed + 14)), 1);
        x = _mm256_shuffle_epi8(x, eight);
        x = choose(_mm256_set1_epi64x(0x0fffffff), x, _mm256_slli_epi64(x, 4));
        x = choose(_mm256_set1_epi32(0x3fff), x, _mm256_slli_epi32(x, 2));
        x = choose(_mm256_set1_epi16(0x7f), x, _mm256_slli_epi16(x, 1));
        store(low + i, _mm256_and_si256(x, _mm256_set1_epi8(127)));
    }
}

/* What coding a group needs of a table; the inverses by low and by high byte. */
struct coding {
    struct table frequency, start, inverse_low, inverse_high;
};

static struct coding coding_of(const struct zipccl_ans_table *table)
{
    uint8_t low[ZIPCCL_ANS_SYMBOLS], high[ZIPCCL_ANS_SYMBOLS];
    for (int u = 0; u < ZIPCCL_ANS_SYMBOLS; u++) {
        low[u] = (uint8_t)table->inverse[u];
        high[u] = (uint8_t)(table->inverse[u] >> 8);
    }
    return (struct coding){table_of(table->frequency), table_of(table->start), table_of(low),
                           table_of(high)};
}

/*
 * Code the symbols 'u' of half a group; returns which states give their low byte, which is left in
 * 'given'.  Words of low and high bytes, y, are divided by the frequency f, where y < 256 f:
 * floor(65535 / f) falls short by one at most, and the rest is less than 2 f and fits a byte.
 */
ALWAYS_INLINE uint32_t encode_half(__m256i u, const struct coding *c, __m256i *low, __m256i *high,
                                   __m256i *given)
{
    const struct numbers at = numbers_of(u);
    __m256i f = entry_of(&c->frequency, &at), give = at_least(*high, f);
    __m256i lo = choose(give, *high, *low), hi = _mm256_andnot_si256(give, *high);
    __m256i inverse_low = entry_of(&c->inverse_low, &at),
            inverse_high = entry_of(&c->inverse_high, &at);
    *given = *low;
    __m256i even_q =
        _mm256_mulhi_epu16(merge_bytes(lo, hi), merge_bytes(inverse_low, inverse_high));
    __m256i odd_q = _mm256_slli_epi16(
        _mm256_mulhi_epu16(merge_upper(lo, hi), merge_upper(inverse_low, inverse_high)), 8);
    hi = _mm256_or_si256(even_q, odd_q);
    /* In each pair of bytes one is 0; frequencies are less than 128. */
    lo = _mm256_sub_epi8(
        lo, merge_bytes(_mm256_maddubs_epi16(even_q, f), _mm256_maddubs_epi16(odd_q, f)));
    __m256i short_by_one = at_least(lo, f);
    *high = _mm256_sub_epi8(hi, short_by_one);
    lo = _mm256_sub_epi8(lo, _mm256_and_si256(short_by_one, f));
    *low = _mm256_add_epi8(lo, entry_of(&c->start, &at));
    return (uint32_t)_mm256_movemask_epi8(give);
}

static uint8_t *encode(const uint8_t *in, size_t m, const struct zipccl_ans_table *table,
                       struct zipccl_ans_states *states, uint8_t *end)
{
    const struct coding c = coding_of(table);
    size_t i = m / ZIPCCL_GROUP * ZIPCCL_GROUP;
    if (i < m)
        end = ans_encode(in + i, m - i, table, states, end);
    __m256i low[2] = {load(states->low), load(states->low + 32)},
            high[2] = {load(states->high), load(states->high + 32)};
    for (; i > 0; i -= ZIPCCL_GROUP) {
        __m256i given[2];
        uint32_t mask[2];
        uint64_t after;
        for (int h = 0; h < 2; h++)
            mask[h] = encode_half(load(in + i - 64 + 32 * h), &c, &low[h], &high[h], &given[h]);
        /* Eight bytes behind what is appended are written, of the stream so far. */
        memcpy(&after, end, 8);
        uint8_t *start = end - _mm_popcnt_u32(mask[0]) - _mm_popcnt_u32(mask[1]);
        append(start, given[0], given[1], mask[0], mask[1]);
        memcpy(end, &after, 8);
        end = start;
    }
    for (int h = 0; h < 2; h++) {
        store(states->low + 32 * h, low[h]);
        store(states->high + 32 * h, high[h]);
    }
    return end;
}

/* Symbols in order of their slots: the octaves' and the two escapes. */
enum { MOST_STARTS = ZIPCCL_ANS_SYMBOLS };

/* What decoding a group needs of a table. */
struct decoding {
    /* The last slot before each symbol but the first, less 128; 127, which none is beyond, to fill up. */
    __m256i before[MOST_STARTS];
    int nbefore; /* a multiple of 4 */
    struct table frequency, start;
    __m256i last, more; /* number of the last octave's symbol, and what is added to higher ones */
};

static void decoding_of(const struct zipccl_ans_table *table, struct decoding *t)
{
    uint8_t frequency[32] = {0}, start[32] = {0};
    int n = 2 * table->octaves;
    for (int k = 0; k < n + 2; k++) {
        int u = k < n ? k : ZIPCCL_ANS_ESCAPE + k - n;
        frequency[k] = table->frequency[u];
        start[k] = table->start[u];
    }
    t->nbefore = 0;
    for (int k = 1; k < n + 2; k++)
        t->before[t->nbefore++] = _mm256_set1_epi8((char)(start[k] - 1 - 128));
    while (t->nbefore % 4)
        t->before[t->nbefore++] = _mm256_set1_epi8(127);
    t->frequency = table_of(frequency);
    t->start = table_of(start);
    t->last = _mm256_set1_epi8((char)(n - 1));
    t->more = _mm256_set1_epi8((char)(ZIPCCL_ANS_ESCAPE - n));
}

/* Numbers of the symbols of 64 slots. */
ALWAYS_INLINE void count_starts(const struct decoding *t, const __m256i slot[2], __m256i number[2])
{
    const __m256i bias = _mm256_set1_epi8(-128);
    __m256i x = _mm256_xor_si256(slot[0], bias), y = _mm256_xor_si256(slot[1], bias), n[4];
    for (int k = 0; k < 4; k++)
        n[k] = _mm256_setzero_si256();
    for (int k = 0; k < t->nbefore; k += 4)
        for (int j = 0; j < 4; j += 2) {
            n[0] = _mm256_sub_epi8(n[0], _mm256_cmpgt_epi8(x, t->before[k + j]));
            n[1] = _mm256_sub_epi8(n[1], _mm256_cmpgt_epi8(y, t->before[k + j]));
            n[2] = _mm256_sub_epi8(n[2], _mm256_cmpgt_epi8(x, t->before[k + j + 1]));
            n[3] = _mm256_sub_epi8(n[3], _mm256_cmpgt_epi8(y, t->before[k + j + 1]));
        }
    number[0] = _mm256_add_epi8(n[0], n[2]);
    number[1] = _mm256_add_epi8(n[1], n[3]);
}

/* Decode half a group, whose symbols have these numbers; returns where the next bytes lie. */
ALWAYS_INLINE const uint8_t *decode_half(const struct decoding *t, __m256i number, __m256i *low,
                                         __m256i *high, const uint8_t *in)
{
    const __m256i byte = _mm256_set1_epi16(255);
    const struct numbers at = numbers_of(number);
    __m256i f = entry_of(&t->frequency, &at),
            more = _mm256_sub_epi8(*low, entry_of(&t->start, &at));
    /* In each pair of bytes one is 0; frequencies are less than 128. */
    __m256i even = _mm256_maddubs_epi16(_mm256_and_si256(*high, byte), f);
    __m256i odd = _mm256_maddubs_epi16(_mm256_andnot_si256(byte, *high), f);
    even = _mm256_add_epi16(even, _mm256_and_si256(more, byte));
    odd = _mm256_add_epi16(odd, _mm256_srli_epi16(more, 8));
    __m256i lo = merge_bytes(even, odd), hi = merge_upper(even, odd);
    __m256i take = _mm256_cmpeq_epi8(hi, _mm256_setzero_si256());
    uint32_t mask = (uint32_t)_mm256_movemask_epi8(take);
    __m256i bytes = _mm256_shuffle_epi8(next_32(in, mask), places_of(take));
    *high = _mm256_or_si256(hi, _mm256_and_si256(take, lo));
    *low = _mm256_or_si256(_mm256_andnot_si256(take, lo), bytes);
    return in + _mm_popcnt_u32(mask);
}

static const uint8_t *decode(const uint8_t *in, size_t m, const struct zipccl_ans_table *table,
                             struct zipccl_ans_states *states, uint8_t *out)
{
    struct decoding t;
    decoding_of(table, &t);
    __m256i low[2] = {load(states->low), load(states->low + 32)},
            high[2] = {load(states->high), load(states->high + 32)};
    size_t i = 0;
    for (; i + ZIPCCL_GROUP <= m; i += ZIPCCL_GROUP) {
        __m256i number[2];
        count_starts(&t, low, number);
        for (int h = 0; h < 2; h++) {
            __m256i more = _mm256_and_si256(_mm256_cmpgt_epi8(number[h], t.last), t.more);
            store(out + i + 32 * h, _mm256_add_epi8(number[h], more));
            in = decode_half(&t, number[h], &low[h], &high[h], in);
        }
    }
    for (int h = 0; h < 2; h++) {
        store(states->low + 32 * h, low[h]);
        store(states->high + 32 * h, high[h]);
    }
    return i < m ? ans_decode(in, m - i, table, states, out + i) : in;
}

const struct zipccl_ans_kernels zipccl_ans_avx2 = {
    .symbols = symbols,
    .exponents = exponents,
    .encode = encode,
    .decode = decode,
    .pack = pack,
    .unpack = unpack,
};
