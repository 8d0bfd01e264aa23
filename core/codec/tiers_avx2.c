/*
 * tiers_avx2.c - the deeper tiers with AVX2
 *
 * Whole groups go through vectors, a last short one through copies of a whole one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/avx2.h"

/* The values of a tier of one or two bits, one a register. */
struct values {
    __m256i d[3];
};

ALWAYS_INLINE struct values values_of(const struct zipccl_tier *tier)
{
    return (struct values){
        {_mm256_set1_epi8(tier->d[0]), _mm256_set1_epi8(tier->d[1]), _mm256_set1_epi8(tier->d[2])}};
}

/* Which of 64 bytes equal 'value'. */
ALWAYS_INLINE uint64_t equal(__m256i x, __m256i y, __m256i value)
{
    return mask_of(_mm256_cmpeq_epi8(x, value), _mm256_cmpeq_epi8(y, value));
}

/* Planes of a group under a tier of one bit or two; returns which escape. */
ALWAYS_INLINE uint64_t code_group(__m256i x, __m256i y, const struct values *v, int width,
                                  uint64_t *plane)
{
    uint64_t escapes = ~equal(x, y, v->d[0]);
    if (width == 1) {
        plane[0] = escapes;
        return escapes;
    }
    uint64_t is1 = equal(x, y, v->d[1]), is2 = equal(x, y, v->d[2]);
    escapes &= ~(is1 | is2);
    plane[0] = is1 | escapes;
    plane[1] = is2 | escapes;
    return escapes;
}

/* Store the planes of 'len' < 64 elements and return which of them escape. */
static uint64_t store_last(const uint64_t *plane, int width, size_t len, uint8_t *planes)
{
    uint64_t inside = (1ull << len) - 1, escapes = inside;
    for (int k = 0; k < width; k++) {
        uint64_t word = plane[k] & inside;
        memcpy(planes + (size_t)k * ((len + 7) / 8), &word, 8);
        escapes &= word;
    }
    return escapes;
}

/* What codes seven values: of value d at d - ZIPCCL_LEAST_D. */
struct codes {
    __m256i below_16, from_16;
};

/* Planes of a group under a tier of three bits; returns which escape. */
ALWAYS_INLINE uint64_t look_up_group(__m256i x, __m256i y, const struct codes *c, uint64_t *plane)
{
    const __m256i least = _mm256_set1_epi8(ZIPCCL_LEAST_D),
                  last = _mm256_set1_epi8(ZIPCCL_NUM_D - 1);
    x = _mm256_min_epu8(_mm256_sub_epi8(x, least), last);
    y = _mm256_min_epu8(_mm256_sub_epi8(y, least), last);
    x = look_up(c->below_16, c->from_16, x);
    y = look_up(c->below_16, c->from_16, y);
    plane[0] = mask_of(_mm256_slli_epi16(x, 7), _mm256_slli_epi16(y, 7));
    plane[1] = mask_of(_mm256_slli_epi16(x, 6), _mm256_slli_epi16(y, 6));
    plane[2] = mask_of(_mm256_slli_epi16(x, 5), _mm256_slli_epi16(y, 5));
    return plane[0] & plane[1] & plane[2];
}

/* What a tier codes its d by: values to compare with, or of seven a table. */
struct coding {
    struct values values;
    struct codes codes;
};

static struct coding coding_of(const struct zipccl_tier *tier)
{
    uint8_t of_d[ZIPCCL_NUM_D];
    struct coding c = {.values = values_of(tier)};
    memset(of_d, 7, sizeof of_d);
    for (uint8_t k = 0; tier->width == 3 && k < 7; k++)
        of_d[tier->d[k] - ZIPCCL_LEAST_D] = k;
    c.codes = (struct codes){twice(of_d), twice(of_d + 16)};
    return c;
}

ALWAYS_INLINE uint64_t planes_of(const uint8_t *d, const struct coding *c, int width,
                                 uint64_t *plane)
{
    __m256i x = load(d), y = load(d + 32);
    return width == 3 ? look_up_group(x, y, &c->codes, plane)
                      : code_group(x, y, &c->values, width, plane);
}

/* Append what 'escapes' takes of a group at 'd', which may be what lies at 'out'. */
ALWAYS_INLINE uint8_t *move_group(uint8_t *out, const uint8_t *d, uint64_t escapes)
{
    return append(out, load(d), load(d + 32), (uint32_t)escapes, (uint32_t)(escapes >> 32));
}

/* 'width' is a constant. */
ALWAYS_INLINE size_t sift_width(uint8_t *d, size_t m, const struct zipccl_tier *tier, int width,
                                uint8_t *planes)
{
    const struct coding c = coding_of(tier);
    uint64_t plane[3];
    /* In place: what is written lies behind what is read. */
    uint8_t *out = d;
    size_t i = 0;
    for (; i + ZIPCCL_GROUP <= m; i += ZIPCCL_GROUP, planes += 8 * width) {
        uint64_t escapes = planes_of(d + i, &c, width, plane);
        memcpy(planes, plane, 8 * (size_t)width);
        out = move_group(out, d + i, escapes);
    }
    if (i < m) {
        planes_of(d + i, &c, width, plane);
        out = move_group(out, d + i, store_last(plane, width, m - i, planes));
    }
    return (size_t)(out - d);
}

size_t zipccl_sift_avx2(uint8_t *d, size_t m, const struct zipccl_tier *tier, uint8_t *planes)
{
    switch (tier->width) {
    case 1: return sift_width(d, m, tier, 1, planes);
    case 2: return sift_width(d, m, tier, 2, planes);
    default: return sift_width(d, m, tier, 3, planes);
    }
}

/* The d of half a group of codes of 'width' bits; those that escape take the next bytes. */
ALWAYS_INLINE const uint8_t *unsift_half(const uint64_t *plane, int half, int width,
                                         __m256i of_code, const uint8_t *next, uint8_t *d)
{
    uint32_t escapes = ~0u;
    __m256i all = _mm256_set1_epi8(-1), codes = _mm256_setzero_si256();
    for (int k = 0; k < width; k++) {
        uint32_t word = (uint32_t)(plane[k] >> 32 * half);
        __m256i lanes = lanes_of(word);
        escapes &= word;
        all = _mm256_and_si256(all, lanes);
        codes = _mm256_or_si256(codes, _mm256_and_si256(lanes, _mm256_set1_epi8((char)(1 << k))));
    }
    __m256i x = _mm256_shuffle_epi8(next_32(next, escapes), places_of(all));
    /* The code that escapes stands for 0. */
    store(d, _mm256_or_si256(x, width == 1 ? _mm256_andnot_si256(all, of_code)
                                           : _mm256_shuffle_epi8(of_code, codes)));
    return next + _mm_popcnt_u32(escapes);
}

/* 'width' is a constant. */
ALWAYS_INLINE size_t unsift_width(const uint8_t *planes, const uint8_t *escaped, size_t m,
                                  const struct zipccl_tier *tier, int width, uint8_t *d)
{
    uint8_t values[16] = {0};
    memcpy(values, tier->d, sizeof tier->d);
    values[(1 << width) - 1] = 0;
    const __m256i of_code = width == 1 ? _mm256_set1_epi8(tier->d[0]) : twice(values);
    const uint8_t *next = escaped;
    uint64_t plane[3];
    size_t i = 0;
    for (; i + ZIPCCL_GROUP <= m; i += ZIPCCL_GROUP, planes += 8 * width) {
        memcpy(plane, planes, 8 * (size_t)width);
        next = unsift_half(plane, 0, width, of_code, next, d + i);
        next = unsift_half(plane, 1, width, of_code, next, d + i + 32);
    }
    if (i < m) {
        size_t nbytes = (m - i + 7) / 8;
        for (int k = 0; k < width; k++) {
            plane[k] = 0;
            memcpy(&plane[k], planes + (size_t)k * nbytes, nbytes);
            plane[k] &= (1ull << (m - i)) - 1;
        }
        next = unsift_half(plane, 0, width, of_code, next, d + i);
        next = unsift_half(plane, 1, width, of_code, next, d + i + 32);
    }
    return (size_t)(next - escaped);
}

size_t zipccl_unsift_avx2(const uint8_t *planes, const uint8_t *escaped, size_t m,
                          const struct zipccl_tier *tier, uint8_t *d)
{
    switch (tier->width) {
    case 1: return unsift_width(planes, escaped, m, tier, 1, d);
    case 2: return unsift_width(planes, escaped, m, tier, 2, d);
    default: return unsift_width(planes, escaped, m, tier, 3, d);
    }
}
