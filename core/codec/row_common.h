/*
 * row_common.h - kernels in plain C that every row compiles with its own instructions
 *
 * A template: it defines static functions, of which a row takes those that it has nothing better
 * for.  Before it is included, the row defines, for one group of 64 lanes in memory,
 *
 *   group_planes(codes, nbits, planes)  bits 0 to nbits - 1 of codes [64] into planes [nbits]
 *   group_codes(planes, nbits, codes)   the inverse
 *   compress(d, mask, out)              append d[i] for each bit i of 'mask', return how many;
 *                                       may write 64 bytes
 *   expand(in, mask, d)                 put in[0], in[1], ... at d[i] for each bit i of 'mask',
 *                                       return how many; may read 64 bytes
 *   fill(in, mask, d)                   the same where all these d[i] are 0
 *
 * What these kernels write is the format; they are no model of speed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_CODEC_ROW_COMMON_H
#define ZIPCCL_CORE_CODEC_ROW_COMMON_H

#include "core/codec/row.h"
#include "core/reduce.h"
#include "core/wire.h"

#include <string.h>

static inline size_t common_min(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The lowest 'len' bits set, 1 <= len. */
static inline uint64_t common_mask(size_t len)
{
    return len < 64 ? (1ull << len) - 1 : ~0ull;
}

static inline uint16_t common_u16(const uint8_t *p)
{
    uint16_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

static inline uint32_t common_u32(const uint8_t *p)
{
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

static inline uint64_t common_word(const uint8_t *p, size_t nbytes)
{
    uint64_t word = 0;
    memcpy(&word, p, nbytes);
    return word;
}

/* Exponents of 'n' <= 64 elements; returns how many elements have no bit set. */
static inline uint32_t common_exponents(const struct zipccl_fields *fields, const uint8_t *src,
                                        size_t n, uint8_t *e)
{
    /* As wide as the elements are, so that compilers count in vectors. */
    uint16_t nzero = 0;
    uint32_t nzero32 = 0;
    switch (fields->split) {
    case ZIPCCL_SPLIT_BF16:
        for (size_t j = 0; j < n; j++) {
            uint16_t x = common_u16(src + 2 * j);
            e[j] = (uint8_t)(x >> 7);
            nzero = (uint16_t)(nzero + (x == 0));
        }
        break;
    case ZIPCCL_SPLIT_FP16:
        for (size_t j = 0; j < n; j++) {
            uint16_t x = common_u16(src + 2 * j);
            e[j] = x >> 10 & 31;
            nzero = (uint16_t)(nzero + (x == 0));
        }
        break;
    case ZIPCCL_SPLIT_FP32:
        for (size_t j = 0; j < n; j++) {
            uint32_t x = common_u32(src + 4 * j);
            e[j] = (uint8_t)(x >> 23);
            nzero32 += x == 0;
        }
        break;
    default:
        for (size_t j = 0; j < n; j++) {
            e[j] = fields->split == ZIPCCL_SPLIT_E4M3 ? src[j] >> 3 & 15 : src[j] >> 2 & 31;
            nzero32 += src[j] == 0;
        }
        break;
    }
    return nzero + nzero32;
}

/* 'full', whether there is a whole sub-block, is a constant. */
static inline void sample_runs(const struct zipccl_fields *fields, const uint8_t *src, size_t i,
                               size_t m, size_t look, bool full, struct zipccl_sample *s)
{
    s->taken = 0;
    s->nsampled = s->nzero = 0;
    for (size_t run = 0; run < 2; run++) {
        size_t start = zipccl_sample_start(i, m, look, run),
               len = full ? 32 : common_min(32, m - start);
        memset(s->e + 32 * run, 0, 32);
        s->taken |= common_mask(len) << 32 * run;
        s->nsampled += (uint32_t)len;
        s->nzero += common_exponents(fields, src + fields->size * start, len, s->e + 32 * run);
    }
}

static inline void common_sample(const struct zipccl_fields *fields, const uint8_t *src, size_t i,
                                 size_t m, size_t look, struct zipccl_sample *s)
{
    uint8_t special = fields->special ? fields->special : 255, nvalid = 0;
    uint16_t sum = 0; /* at most 64 * 254 */
    if (m == ZIPCCL_SUBBLOCK)
        sample_runs(fields, src, i, m, look, true, s);
    else
        sample_runs(fields, src, i, m, look, false, s);
    for (size_t j = 0; j < ZIPCCL_SAMPLES; j++) {
        uint8_t e = s->e[j], valid = (e != 0) & (e != special);
        nvalid = (uint8_t)(nvalid + valid);
        sum = (uint16_t)(sum + (valid ? e : 0));
    }
    uint8_t low, high;
    zipccl_pull(sum, nvalid, &low, &high);
    sum = 0;
    for (size_t j = 0; j < ZIPCCL_SAMPLES; j++) {
        uint8_t e = s->e[j], pulled = e < low ? low : e > high ? high : e;
        uint8_t valid = (e != 0) & (e != special);
        sum = (uint16_t)(sum + (valid ? pulled : 0));
    }
    s->nvalid = nvalid;
    s->sum = sum;
}

/* Low bytes, d and words of one group; 'len' is a constant for all but the last. */
static inline void split_group(const uint8_t *src, size_t len, uint8_t base, uint8_t *low,
                               uint8_t *words, uint8_t *d)
{
    uint8_t codes[ZIPCCL_GROUP];
    uint64_t plane[2];
    for (size_t j = 0; j < len; j++) {
        uint16_t x = common_u16(src + 2 * j);
        low[j] = (uint8_t)(x << 1 | x >> 15);
        d[j] = (uint8_t)(base - (x >> 7));
    }
    memset(d + len, 0, ZIPCCL_GROUP - len);
    for (size_t j = 0; j < ZIPCCL_GROUP; j++)
        codes[j] = d[j] < 3 ? d[j] : 3;
    group_planes(codes, 2, plane);
    memcpy(words, plane, sizeof plane);
}

/* Which elements of a group escape by both words. */
static inline uint64_t escapes_of(const uint8_t *words)
{
    uint64_t plane[2];
    memcpy(plane, words, sizeof plane);
    return plane[0] & plane[1];
}

/* A sub-block at a time: what compress() asks for is long known then (measured). */
static inline size_t common_split(const uint8_t *src, size_t m, const uint8_t *bases, bool stream,
                                  uint8_t *low, uint8_t *words, uint8_t *escaped)
{
    uint8_t d[ZIPCCL_SUBBLOCK], *out = escaped;
    (void)stream;
    for (size_t i = 0; i < m; i += ZIPCCL_SUBBLOCK) {
        size_t len = common_min(ZIPCCL_SUBBLOCK, m - i), k = 0;
        uint8_t base = bases[i / ZIPCCL_SUBBLOCK], *w = words + i / 4;
        for (; k + ZIPCCL_GROUP <= len; k += ZIPCCL_GROUP)
            split_group(src + 2 * (i + k), ZIPCCL_GROUP, base, low + i + k, w + k / 4, d + k);
        if (k < len)
            split_group(src + 2 * (i + k), len - k, base, low + i + k, w + k / 4, d + k);
        for (k = 0; k < len; k += ZIPCCL_GROUP)
            out += compress(d + k, escapes_of(w + k / 4), out);
    }
    return (size_t)(out - escaped);
}

static inline void join_group(const uint8_t *low, const uint8_t *d, size_t len, uint8_t base,
                              uint8_t *dst)
{
    for (size_t j = 0; j < len; j++) {
        uint8_t e = (uint8_t)(base - d[j]);
        uint16_t x = (uint16_t)(e << 7 | low[j] >> 1 | low[j] << 15);
        memcpy(dst + 2 * j, &x, 2);
    }
}

/* A sub-block at a time: what fill() stores in pieces is best left alone before it is loaded whole. */
static inline size_t common_join(const uint8_t *low, const uint8_t *words, const uint8_t *escaped,
                                 size_t m, const uint8_t *bases, bool stream, uint8_t *dst)
{
    uint8_t d[ZIPCCL_SUBBLOCK];
    const uint8_t *next = escaped;
    (void)stream;
    for (size_t i = 0; i < m; i += ZIPCCL_SUBBLOCK) {
        size_t len = common_min(ZIPCCL_SUBBLOCK, m - i), k = 0;
        for (; k < len; k += ZIPCCL_GROUP) {
            uint64_t plane[2];
            memcpy(plane, words + (i + k) / 4, sizeof plane);
            uint64_t escapes = plane[0] & plane[1];
            plane[0] &= ~escapes;
            plane[1] &= ~escapes;
            group_codes(plane, 2, d + k);
            next += fill(next, escapes & common_mask(len - k), d + k);
        }
        uint8_t base = bases[i / ZIPCCL_SUBBLOCK];
        for (k = 0; k + ZIPCCL_GROUP <= len; k += ZIPCCL_GROUP)
            join_group(low + i + k, d + k, ZIPCCL_GROUP, base, dst + 2 * (i + k));
        if (k < len)
            join_group(low + i + k, d + k, len - k, base, dst + 2 * (i + k));
    }
    return (size_t)(next - escaped);
}

static inline uint32_t common_take(const struct zipccl_fields *fields, const uint8_t *src, size_t m,
                                   uint8_t *low, uint8_t *planes, size_t stride, uint8_t *bits,
                                   uint8_t *exponents)
{
    uint8_t *plane1 = planes + stride;
    uint32_t any = 0;
    switch (fields->split) {
    case ZIPCCL_SPLIT_BF16:
        for (size_t i = 0; i < m; i++) {
            uint16_t x = common_u16(src + 2 * i);
            low[i] = (uint8_t)(x << 1 | x >> 15);
            exponents[i] = (uint8_t)(x >> 7);
        }
        break;
    case ZIPCCL_SPLIT_FP16:
        for (size_t i = 0; i < m; i++) {
            uint16_t x = common_u16(src + 2 * i);
            low[i] = (uint8_t)((x >> 2 & 0xfe) | x >> 15);
            exponents[i] = x >> 10 & 31;
            bits[i] = x & 7;
            any |= x & 7;
        }
        break;
    case ZIPCCL_SPLIT_FP32:
        for (size_t i = 0; i < m; i++) {
            uint32_t x = common_u32(src + 4 * i);
            low[i] = (uint8_t)((x >> 15 & 0xfe) | x >> 31);
            exponents[i] = (uint8_t)(x >> 23);
            planes[i] = (uint8_t)x;
            plane1[i] = (uint8_t)(x >> 8);
            any |= x & 0xffff;
        }
        break;
    case ZIPCCL_SPLIT_E4M3:
        for (size_t i = 0; i < m; i++) {
            exponents[i] = src[i] >> 3 & 15;
            bits[i] = (uint8_t)((src[i] & 7) << 1 | src[i] >> 7);
            any |= bits[i];
        }
        break;
    default:
        for (size_t i = 0; i < m; i++) {
            exponents[i] = src[i] >> 2 & 31;
            bits[i] = (uint8_t)((src[i] & 3) << 1 | src[i] >> 7);
            any |= bits[i];
        }
        break;
    }
    return any;
}

static inline void give_fp32(const uint8_t *low, const uint8_t *plane0, const uint8_t *plane1,
                             const uint8_t *exponents, size_t m, uint8_t *dst)
{
    for (size_t i = 0; i < m; i++) {
        uint32_t x = (uint32_t)exponents[i] << 23 | (uint32_t)(low[i] >> 1) << 16 |
                     (uint32_t)(low[i] & 1) << 31;
        x |= plane0 ? plane0[i] : 0;
        x |= plane1 ? (uint32_t)plane1[i] << 8 : 0;
        memcpy(dst + 4 * i, &x, 4);
    }
}

static inline void common_give(const struct zipccl_fields *fields, const uint8_t *low,
                               const uint8_t *plane0, const uint8_t *plane1, const uint8_t *bits,
                               const uint8_t *exponents, size_t m, uint8_t *dst)
{
    switch (fields->split) {
    case ZIPCCL_SPLIT_BF16:
        for (size_t i = 0; i < m; i++) {
            uint16_t x = (uint16_t)(exponents[i] << 7 | low[i] >> 1 | low[i] << 15);
            memcpy(dst + 2 * i, &x, 2);
        }
        break;
    case ZIPCCL_SPLIT_FP16:
        for (size_t i = 0; i < m; i++) {
            uint16_t x = (uint16_t)((exponents[i] & 31) << 10 | (low[i] & 0xfe) << 2 |
                                    low[i] << 15 | bits[i]);
            memcpy(dst + 2 * i, &x, 2);
        }
        break;
    case ZIPCCL_SPLIT_FP32: give_fp32(low, plane0, plane1, exponents, m, dst); break;
    case ZIPCCL_SPLIT_E4M3:
        for (size_t i = 0; i < m; i++)
            dst[i] = (uint8_t)((exponents[i] & 15) << 3 | bits[i] >> 1 | bits[i] << 7);
        break;
    default:
        for (size_t i = 0; i < m; i++)
            dst[i] = (uint8_t)((exponents[i] & 31) << 2 | bits[i] >> 1 | bits[i] << 7);
        break;
    }
}

static inline void common_pack(uint8_t *x, size_t m, uint32_t mask, uint8_t *planes)
{
    size_t ngroups = zipccl_groups(m);
    memset(x + m, 0, 64 * ngroups - m);
    for (size_t g = 0; g < ngroups; g++) {
        uint64_t plane[ZIPCCL_MAX_PLANES];
        uint8_t *out = planes + 8 * g;
        group_planes(x + 64 * g, ZIPCCL_MAX_PLANES, plane);
        for (int k = 0; k < ZIPCCL_MAX_PLANES; k++) {
            if (!(mask >> k & 1))
                continue;
            memcpy(out, &plane[k], 8);
            out += 8 * ngroups;
        }
    }
}

static inline void common_unpack(const uint8_t *planes, size_t m, uint32_t mask, uint8_t *x)
{
    size_t ngroups = zipccl_groups(m);
    for (size_t g = 0; g < ngroups; g++) {
        uint64_t plane[ZIPCCL_MAX_PLANES] = {0};
        const uint8_t *in = planes + 8 * g;
        for (int k = 0; k < ZIPCCL_MAX_PLANES; k++) {
            if (!(mask >> k & 1))
                continue;
            memcpy(&plane[k], in, 8);
            in += 8 * ngroups;
        }
        group_codes(plane, ZIPCCL_MAX_PLANES, x + 64 * g);
    }
}

static inline size_t common_tier1(uint8_t *exponents, size_t m, const uint8_t *bases, int width,
                                  uint8_t *words, uint8_t *third)
{
    uint8_t most = (uint8_t)((1 << width) - 1), *out = exponents;
    for (size_t i = 0; i < m; i += ZIPCCL_GROUP) {
        uint8_t base = bases[i / ZIPCCL_SUBBLOCK], d[ZIPCCL_GROUP], codes[ZIPCCL_GROUP];
        uint64_t plane[3] = {0}, inside = common_mask(m - i), escapes = inside;
        for (size_t j = 0; j < ZIPCCL_GROUP; j++) {
            d[j] = (uint8_t)(base - exponents[i + j]);
            codes[j] = d[j] < most ? d[j] : most;
        }
        group_planes(codes, width, plane);
        for (int k = 0; k < width; k++) {
            plane[k] &= inside;
            escapes &= plane[k];
        }
        memcpy(words, plane, width == 1 ? 8 : 16);
        words += width == 1 ? 8 : 16;
        if (width == 3)
            memcpy(third + i / 8, &plane[2], 8);
        /* In place: what is written lies behind what is read. */
        out += compress(d, escapes, out);
    }
    return (size_t)(out - exponents);
}

static inline size_t common_untier1(const uint8_t *words, const uint8_t *third,
                                    const uint8_t *escaped, size_t m, const uint8_t *bases,
                                    int width, uint8_t *exponents)
{
    const uint8_t *next = escaped;
    for (size_t i = 0; i < m; i += ZIPCCL_GROUP) {
        uint8_t base = bases[i / ZIPCCL_SUBBLOCK], d[ZIPCCL_GROUP];
        uint64_t plane[3] = {0}, escapes = common_mask(m - i);
        memcpy(plane, words, width == 1 ? 8 : 16);
        words += width == 1 ? 8 : 16;
        if (width == 3)
            memcpy(&plane[2], third + i / 8, 8);
        for (int k = 0; k < width; k++)
            escapes &= plane[k];
        for (int k = 0; k < width; k++)
            plane[k] &= ~escapes;
        group_codes(plane, width, d);
        next += fill(next, escapes, d);
        for (size_t j = 0; j < ZIPCCL_GROUP; j++)
            exponents[i + j] = (uint8_t)(base - d[j]);
    }
    return (size_t)(next - escaped);
}

/*
 * Codes of a group's d.  Of three values or one each is compared with, which compilers turn into
 * vectors; of seven they are looked up.
 */
static inline void codes_of_tier(const uint8_t *d, const uint8_t lut[256], const uint8_t *values,
                                 int width, uint8_t *codes)
{
    uint8_t d0 = values[0], d1 = values[1], d2 = values[2];
    if (width == 1)
        for (size_t j = 0; j < ZIPCCL_GROUP; j++)
            codes[j] = d[j] != d0;
    else if (width == 2)
        for (size_t j = 0; j < ZIPCCL_GROUP; j++) {
            uint8_t code = d[j] == d0 ? 0 : 3;
            code = d[j] == d1 ? 1 : code;
            codes[j] = d[j] == d2 ? 2 : code;
        }
    else
        for (size_t j = 0; j < ZIPCCL_GROUP; j++)
            codes[j] = lut[d[j]];
}

/* Returns which escape; 'len' and 'width' are constants where it matters. */
static inline uint64_t sift_group(const uint8_t *d, size_t len, const uint8_t lut[256],
                                  const uint8_t *values, int width, uint8_t *planes)
{
    uint8_t codes[ZIPCCL_GROUP];
    uint64_t plane[3], escapes = common_mask(len);
    size_t nbytes = (len + 7) / 8;
    codes_of_tier(d, lut, values, width, codes);
    group_planes(codes, width, plane);
    for (int k = 0; k < width; k++) {
        plane[k] &= common_mask(len);
        escapes &= plane[k];
        memcpy(planes + (size_t)k * nbytes, &plane[k], 8);
    }
    return escapes;
}

/* A sub-block's worth at a time, as common_split(). */
static inline size_t sift_width(uint8_t *d, size_t m, const uint8_t lut[256], const uint8_t *values,
                                int width, uint8_t *planes)
{
    /* In place: what is written lies behind what is read. */
    uint8_t *out = d;
    for (size_t i = 0; i < m; i += ZIPCCL_SUBBLOCK) {
        uint64_t escapes[ZIPCCL_SUBBLOCK / ZIPCCL_GROUP];
        size_t len = common_min(ZIPCCL_SUBBLOCK, m - i), k = 0;
        for (; k + ZIPCCL_GROUP <= len; k += ZIPCCL_GROUP, planes += 8 * width)
            escapes[k / ZIPCCL_GROUP] =
                sift_group(d + i + k, ZIPCCL_GROUP, lut, values, width, planes);
        if (k < len)
            escapes[k / ZIPCCL_GROUP] = sift_group(d + i + k, len - k, lut, values, width, planes);
        for (k = 0; k < len; k += ZIPCCL_GROUP)
            out += compress(d + i + k, escapes[k / ZIPCCL_GROUP], out);
    }
    return (size_t)(out - d);
}

static inline size_t common_sift(uint8_t *d, size_t m, const struct zipccl_tier *tier,
                                 uint8_t *planes)
{
    uint8_t lut[256], values[sizeof tier->d];
    memcpy(values, tier->d, sizeof tier->d);
    if (tier->width == 1)
        return sift_width(d, m, lut, values, 1, planes);
    if (tier->width == 2)
        return sift_width(d, m, lut, values, 2, planes);
    memset(lut, 7, sizeof lut);
    for (uint8_t k = 0; k < 7; k++)
        lut[values[k]] = k;
    return sift_width(d, m, lut, values, 3, planes);
}

static inline size_t unsift_group(const uint8_t *planes, const uint8_t *next, size_t len,
                                  const uint8_t of_code[8], int width, uint8_t *d)
{
    uint64_t plane[3], escapes = common_mask(len);
    size_t nbytes = (len + 7) / 8;
    uint8_t codes[ZIPCCL_GROUP];
    for (int k = 0; k < width; k++) {
        plane[k] = common_word(planes + (size_t)k * nbytes, nbytes);
        escapes &= plane[k];
    }
    if (width == 1) {
        memset(d, of_code[0], ZIPCCL_GROUP);
        return expand(next, escapes, d);
    }
    group_codes(plane, width, codes);
    uint8_t d0 = of_code[0], d1 = of_code[1], d2 = of_code[2];
    if (width == 2)
        for (size_t j = 0; j < ZIPCCL_GROUP; j++)
            d[j] = codes[j] == 0 ? d0 : codes[j] == 1 ? d1 : codes[j] == 2 ? d2 : 0;
    else
        for (size_t j = 0; j < ZIPCCL_GROUP; j++)
            d[j] = of_code[codes[j]];
    return fill(next, escapes, d);
}

static inline size_t unsift_width(const uint8_t *planes, const uint8_t *escaped, size_t m,
                                  const uint8_t of_code[8], int width, uint8_t *d)
{
    const uint8_t *next = escaped;
    size_t i = 0;
    for (; i + ZIPCCL_GROUP <= m; i += ZIPCCL_GROUP, planes += 8 * width)
        next += unsift_group(planes, next, ZIPCCL_GROUP, of_code, width, d + i);
    if (i < m)
        next += unsift_group(planes, next, m - i, of_code, width, d + i);
    return (size_t)(next - escaped);
}

static inline size_t common_unsift(const uint8_t *planes, const uint8_t *escaped, size_t m,
                                   const struct zipccl_tier *tier, uint8_t *d)
{
    uint8_t of_code[8] = {0};
    memcpy(of_code, tier->d, sizeof tier->d);
    switch (tier->width) {
    case 1: return unsift_width(planes, escaped, m, of_code, 1, d);
    case 2: return unsift_width(planes, escaped, m, of_code, 2, d);
    default: return unsift_width(planes, escaped, m, of_code, 3, d);
    }
}

static inline size_t common_compact(size_t size, const uint8_t *src, size_t m, uint64_t *words,
                                    uint8_t *rest)
{
    const uint8_t *start = rest;
    for (size_t i = 0; i < m; i += ZIPCCL_GROUP) {
        uint64_t word = 0;
        for (size_t j = 0; j < common_min(ZIPCCL_GROUP, m - i); j++) {
            uint64_t x = common_word(src + size * (i + j), size);
            memcpy(rest, &x, size);
            rest += x != 0 ? size : 0;
            word |= (uint64_t)(x != 0) << j;
        }
        words[i / ZIPCCL_GROUP] = word;
    }
    return (size_t)(rest - start) / size;
}

static inline void common_scatter(size_t size, const uint64_t *words, const uint8_t *rest, size_t m,
                                  uint8_t *dst)
{
    memset(dst, 0, size * m);
    for (size_t g = 0; g < zipccl_groups(m); g++)
        for (uint64_t word = words[g]; word; word &= word - 1) {
            size_t at = 64 * g + (size_t)__builtin_ctzll(word);
            memcpy(dst + size * at, rest, size);
            rest += size;
        }
}

static inline void common_add(const struct zipccl_fields *fields, const uint8_t *elements, size_t m,
                              float *acc)
{
    if (fields->split == ZIPCCL_SPLIT_BF16)
        for (size_t i = 0; i < m; i++)
            acc[i] += zipccl_bf16_to_float(common_u16(elements + 2 * i));
    else if (fields->split == ZIPCCL_SPLIT_FP16)
        for (size_t i = 0; i < m; i++)
            acc[i] += zipccl_fp16_to_float(common_u16(elements + 2 * i));
    else
        for (size_t i = 0; i < m; i++)
            acc[i] += zipccl_float_from_bits(common_u32(elements + 4 * i));
}

static inline void common_round(const struct zipccl_fields *fields, const float *x, size_t m,
                                uint8_t *elements)
{
    for (size_t i = 0; i < m; i++) {
        uint16_t y = fields->split == ZIPCCL_SPLIT_BF16 ? zipccl_bf16_from_float(x[i])
                                                        : zipccl_fp16_from_float(x[i]);
        memcpy(elements + 2 * i, &y, 2);
    }
}

#endif
