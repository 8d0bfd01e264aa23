/*
 * row_scalar.c - the row that defines the bytes, in portable C11
 *
 * It is written for reading first; eight lanes at a time where that is plain.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/row.h"

#include "core/wire.h"

#include <string.h>

#define ONES 0x0101010101010101ull

/* A bf16 rotated left by one has the exponent as its high byte, mantissa and sign as its low one. */
static uint16_t rotate(uint16_t x)
{
    return (uint16_t)(x << 1 | x >> 15);
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The lowest 'len' bits set, 1 <= len <= 64. */
static uint64_t low_mask(size_t len)
{
    return ~0ull >> (64 - len);
}

static uint64_t lanes_load(const uint8_t *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* Gather bit 'bit' of 64 bytes into one word; the multiplication collects one bit of 8 lanes. */
static uint64_t plane_of(const uint8_t *codes, int bit)
{
    uint64_t plane = 0;
    for (int k = 0; k < 8; k++) {
        uint64_t bits = lanes_load(codes + 8 * k) >> bit & ONES;
        plane |= (bits * 0x0102040810204080ull >> 56) << (8 * k);
    }
    return plane;
}

/* Spread 8 bits over 8 lanes, 0xff where the bit is set. */
static uint64_t lanes_of(uint8_t bits)
{
    uint64_t picked = bits * ONES & 0x8040201008040201ull;
    uint64_t set = (picked + 0x7f7f7f7f7f7f7f7full) >> 7 & ONES;
    return set * 0xff;
}

static int first_bit(uint64_t x)
{
#if defined(__GNUC__)
    return __builtin_ctzll(x);
#else
    int i = 0;
    while (!(x >> i & 1))
        i++;
    return i;
#endif
}

/* Append d[i] for each bit i of 'mask'; returns how many. */
static size_t compress(const uint8_t *d, uint64_t mask, uint8_t *out)
{
    size_t n = 0;
    for (; mask; mask &= mask - 1)
        out[n++] = d[first_bit(mask)];
    return n;
}

/* Put in[0], in[1], ... at d[i] for each bit i of 'mask'; returns how many. */
static size_t expand(const uint8_t *in, uint64_t mask, uint8_t *d)
{
    size_t n = 0;
    for (; mask; mask &= mask - 1)
        d[first_bit(mask)] = in[n++];
    return n;
}

static void sample(const uint8_t *src, size_t i, size_t m, size_t look, struct zipccl_sample *s)
{
    uint32_t nvalid = 0, sum = 0;
    s->taken = 0;
    s->nsampled = 0;
    memset(s->e, 0, sizeof s->e);
    for (size_t run = 0; run < 2; run++) {
        size_t start = zipccl_sample_start(i, m, look, run), len = min_size(32, m - start);
        s->taken |= low_mask(len) << 32 * run;
        s->nsampled += (uint32_t)len;
        for (size_t j = start; j < start + len; j++) {
            uint8_t e = (uint8_t)(rotate(zipccl_get_u16(src + 2 * j)) >> 8);
            bool valid = e != 0 && e != 255;
            s->e[32 * run + j - start] = e;
            nvalid += valid;
            sum += valid ? e : 0;
        }
    }
    uint32_t mean = nvalid ? (sum + nvalid / 2) / nvalid : 0;
    uint32_t low = mean > 6 ? mean - 6 : 0, high = mean + 6;
    sum = 0;
    for (size_t j = 0; j < ZIPCCL_SAMPLES; j++) {
        uint32_t e = s->e[j], pulled = e < low ? low : e > high ? high : e;
        sum += e != 0 && e != 255 ? pulled : 0;
    }
    s->nvalid = nvalid;
    s->sum = sum;
}

static uint32_t cost(const struct zipccl_sample *sample, size_t n, const uint8_t *bases,
                     const uint8_t bits[16])
{
    uint8_t of_d[256];
    memset(of_d, bits[15], sizeof of_d);
    for (int k = 0; k < 15; k++)
        of_d[(uint8_t)(k + ZIPCCL_LEAST_D)] = bits[k];
    uint32_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < ZIPCCL_SAMPLES; j++)
            sum += of_d[(uint8_t)(bases[i] - sample[i].e[j])];
        /* Exponents that were not taken are 0. */
        sum -= (ZIPCCL_SAMPLES - sample[i].nsampled) * of_d[bases[i]];
    }
    return sum;
}

static size_t split(const uint8_t *src, size_t m, const uint8_t *bases, uint8_t *low,
                    uint8_t *planes, uint8_t *escaped)
{
    size_t nescaped = 0;
    for (size_t i = 0; i < m; i += ZIPCCL_GROUP) {
        uint8_t base = bases[i / ZIPCCL_SUBBLOCK], d[ZIPCCL_GROUP], codes[ZIPCCL_GROUP];
        size_t len = min_size(ZIPCCL_GROUP, m - i);
        for (size_t j = 0; j < len; j++) {
            uint16_t x = rotate(zipccl_get_u16(src + 2 * (i + j)));
            low[i + j] = (uint8_t)x;
            d[j] = (uint8_t)(base - (x >> 8));
        }
        memset(d + len, 0, ZIPCCL_GROUP - len);
        for (size_t j = 0; j < ZIPCCL_GROUP; j++)
            codes[j] = d[j] < 3 ? d[j] : 3;
        uint64_t p0 = plane_of(codes, 0), p1 = plane_of(codes, 1);
        zipccl_put_u64(planes, p0);
        zipccl_put_u64(planes + 8, p1);
        planes += 16;
        nescaped += compress(d, p0 & p1, escaped + nescaped);
    }
    return nescaped;
}

static void put_word(uint8_t *p, uint64_t word, size_t nbytes)
{
    for (size_t k = 0; k < nbytes; k++)
        p[k] = (uint8_t)(word >> (8 * k));
}

static uint64_t get_word(const uint8_t *p, size_t nbytes)
{
    if (nbytes == 8)
        return zipccl_get_u64(p);
    uint64_t word = 0;
    for (size_t k = 0; k < nbytes; k++)
        word |= (uint64_t)p[k] << (8 * k);
    return word;
}

static size_t sift(uint8_t *d, size_t m, const struct zipccl_tier *tier, uint8_t *planes)
{
    uint8_t escape = (uint8_t)((1 << tier->width) - 1), lut[256];
    memset(lut, escape, sizeof lut);
    for (uint8_t k = 0; k < escape; k++)
        lut[(uint8_t)tier->d[k]] = k;

    size_t nescaped = 0;
    for (size_t i = 0; i < m; i += ZIPCCL_GROUP) {
        size_t len = min_size(ZIPCCL_GROUP, m - i), nbytes = (len + 7) / 8;
        uint8_t codes[ZIPCCL_GROUP];
        for (size_t j = 0; j < len; j++)
            codes[j] = lut[d[i + j]];
        memset(codes + len, 0, ZIPCCL_GROUP - len);
        uint64_t escapes = ~0ull;
        for (int bit = 0; bit < tier->width; bit++) {
            uint64_t plane = plane_of(codes, bit);
            put_word(planes, plane, nbytes);
            planes += nbytes;
            escapes &= plane;
        }
        /* In place: what is written lies behind what is read. */
        nescaped += compress(d + i, escapes, d + nescaped);
    }
    return nescaped;
}

static void split_raw(const uint8_t *src, size_t m, uint8_t *low, uint8_t *exponents)
{
    for (size_t i = 0; i < m; i++) {
        uint16_t x = rotate(zipccl_get_u16(src + 2 * i));
        low[i] = (uint8_t)x;
        exponents[i] = (uint8_t)(x >> 8);
    }
}

static void put_element(uint8_t *dst, uint8_t exponent, uint8_t low)
{
    uint16_t x = (uint16_t)(exponent << 8 | low);
    zipccl_put_u16(dst, (uint16_t)(x >> 1 | x << 15));
}

static size_t join(const uint8_t *low, const uint8_t *planes, const uint8_t *escaped, size_t m,
                   const uint8_t *bases, uint8_t *dst)
{
    const uint8_t *next = escaped;
    for (size_t i = 0; i < m; i += ZIPCCL_GROUP) {
        uint8_t base = bases[i / ZIPCCL_SUBBLOCK], d[ZIPCCL_GROUP];
        size_t len = min_size(ZIPCCL_GROUP, m - i);
        uint64_t p0 = zipccl_get_u64(planes), p1 = zipccl_get_u64(planes + 8);
        planes += 16;
        for (int k = 0; k < 8; k++) {
            uint64_t lanes = (lanes_of((uint8_t)(p0 >> 8 * k)) & ONES) |
                             (lanes_of((uint8_t)(p1 >> 8 * k)) & 2 * ONES);
            memcpy(d + 8 * k, &lanes, 8);
        }
        next += expand(next, p0 & p1 & low_mask(len), d);
        for (size_t j = 0; j < len; j++)
            put_element(dst + 2 * (i + j), (uint8_t)(base - d[j]), low[i + j]);
    }
    return (size_t)(next - escaped);
}

static size_t unsift(const uint8_t *planes, const uint8_t *escaped, size_t m,
                     const struct zipccl_tier *tier, uint8_t *d)
{
    uint64_t d0 = (uint8_t)tier->d[0] * ONES, d1 = (uint8_t)tier->d[1] * ONES,
             d2 = (uint8_t)tier->d[2] * ONES;
    const uint8_t *next = escaped;
    for (size_t i = 0; i < m; i += ZIPCCL_GROUP) {
        size_t len = min_size(ZIPCCL_GROUP, m - i), nbytes = (len + 7) / 8;
        uint64_t p0 = get_word(planes, nbytes), p1 = 0;
        if (tier->width == 2)
            p1 = get_word(planes + nbytes, nbytes);
        planes += (size_t)tier->width * nbytes;
        for (int k = 0; k < 8; k++) {
            uint64_t a = lanes_of((uint8_t)(p0 >> 8 * k)), b = lanes_of((uint8_t)(p1 >> 8 * k));
            uint64_t lanes = (~a & ~b & d0) | (a & ~b & d1) | (~a & b & d2);
            memcpy(d + i + 8 * k, &lanes, 8);
        }
        uint64_t escapes = (tier->width == 2 ? p0 & p1 : p0) & low_mask(len);
        next += expand(next, escapes, d + i);
    }
    return (size_t)(next - escaped);
}

static void join_raw(const uint8_t *low, const uint8_t *exponents, size_t m, uint8_t *dst)
{
    for (size_t i = 0; i < m; i++)
        put_element(dst + 2 * i, exponents[i], low[i]);
}

const struct zipccl_row zipccl_row_scalar = {
    .sample = sample,
    .cost = cost,
    .split = split,
    .sift = sift,
    .split_raw = split_raw,
    .join = join,
    .unsift = unsift,
    .join_raw = join_raw,
};
