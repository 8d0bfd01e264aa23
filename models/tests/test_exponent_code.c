/*
 * test_exponent_code.c - entropy and Huffman's code of exponents, against counts by hand
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/exponent_code.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static struct zipccl_exponent_histogram of(enum zipccl_dtype dtype, const void *src, uint64_t n)
{
    struct zipccl_exponent_histogram h;
    cr_assert(zipccl_exponent_histogram_of(dtype, src, n, &h));
    return h;
}

Test(exponent_code, finds_the_exponent_of_every_type)
{
    /* 1.0, -1.5, the same times 2, zero of either sign. */
    static const uint16_t bf16[] = {0x3f80, 0xbfc0, 0x4000, 0xc040, 0, 0x8000};
    static const uint16_t fp16[] = {0x3c00, 0xbe00, 0x4000, 0xc200, 0, 0x8000};
    static const uint32_t fp32[] = {0x3f800000, 0xbfc00000, 0x40000000, 0xc0400000, 0, 0x80000000u};
    static const uint8_t e4m3[] = {0x38, 0xbc, 0x40, 0xc4, 0, 0x80};
    static const uint8_t e5m2[] = {0x3c, 0xbe, 0x40, 0xc2, 0, 0x80};
    static const struct {
        enum zipccl_dtype dtype;
        const void *src;
        unsigned size, bits, one;
    } cases[] = {{ZIPCCL_BFLOAT16, bf16, 2, 8, 127},
                 {ZIPCCL_FLOAT16, fp16, 2, 5, 15},
                 {ZIPCCL_FLOAT32, fp32, 4, 8, 127},
                 {ZIPCCL_FLOAT8_E4M3, e4m3, 1, 4, 7},
                 {ZIPCCL_FLOAT8_E5M2, e5m2, 1, 5, 15}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct zipccl_exponent_histogram h = of(cases[i].dtype, cases[i].src, 6);
        cr_expect_eq(h.size, cases[i].size);
        cr_expect_eq(h.exponent_bits, cases[i].bits);
        cr_expect_eq(h.count[cases[i].one], (uint64_t)2);
        cr_expect_eq(h.count[cases[i].one + 1], (uint64_t)2);
        cr_expect_eq(h.count[0], (uint64_t)2);
        cr_expect_eq(h.zeros, (uint64_t)2);
        cr_expect_float_eq(zipccl_histogram_entropy(&h), log2(3), 1e-12);
        /* Three of equal weight: one has one bit, two have two. */
        cr_expect_eq(zipccl_histogram_huffman(&h), 2 * 1 + 4 * 2);
        double other = 6.0 * (8.0 * cases[i].size - cases[i].bits);
        cr_expect_float_eq(zipccl_histogram_bound_bytes(&h), (other + 6 * log2(3)) / 8, 1e-9);
        cr_expect_float_eq(zipccl_histogram_huffman_bytes(&h), (other + 10) / 8, 1e-9);
    }
}

Test(exponent_code, huffman_lengths_are_those_of_a_textbook)
{
    /* Cormen et al., section 16.3: a..f with 45, 13, 12, 16, 9, 5 cost 224 bits. */
    static const uint64_t counts[6] = {45, 13, 12, 16, 9, 5};
    struct zipccl_exponent_histogram h = {.size = 2, .exponent_bits = 8, .n = 100};
    for (int i = 0; i < 6; i++)
        h.count[100 + i] = counts[i];
    cr_expect_eq(zipccl_histogram_huffman(&h), 224);
    cr_expect_lt(100 * zipccl_histogram_entropy(&h), 224);
    cr_expect_gt(100 * zipccl_histogram_entropy(&h) + 100, 224);
}

Test(exponent_code, one_exponent_or_no_element_takes_no_bit)
{
    uint16_t src[100];
    for (int i = 0; i < 100; i++)
        src[i] = 0x3f80;
    struct zipccl_exponent_histogram h = of(ZIPCCL_BFLOAT16, src, 100);
    cr_expect_eq(zipccl_histogram_entropy(&h), 0);
    cr_expect_eq(zipccl_histogram_huffman(&h), 0);
    cr_expect_eq(zipccl_histogram_bound_bytes(&h), 100);
    h = of(ZIPCCL_BFLOAT16, src, 0);
    cr_expect_eq(zipccl_histogram_bound_bytes(&h), 0);
    cr_expect_eq(zipccl_histogram_huffman_bytes(&h), 0);
}

Test(exponent_code, types_that_the_codec_does_not_cover_have_none)
{
    struct zipccl_exponent_histogram h;
    double x = 1;
    cr_expect_not(zipccl_exponent_histogram_of(ZIPCCL_FLOAT64, &x, 1, &h));
    cr_expect_not(zipccl_exponent_histogram_of(ZIPCCL_INT8, &x, 8, &h));
}
