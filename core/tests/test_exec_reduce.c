/*
 * test_exec_reduce.c - conversions over all patterns, reductions against a slow reference
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/reduce.h"

#include <criterion/criterion.h>
#include <math.h>

/* The value of an fp16 pattern from its definition, by arithmetic in double. */
static double fp16_value(uint16_t x)
{
    int exponent = (x >> 10) & 0x1f, mantissa = x & 0x3ff;
    double v;

    if (exponent == 0x1f)
        v = mantissa != 0 ? (double)NAN : (double)INFINITY;
    else if (exponent == 0)
        v = ldexp(mantissa, -24);
    else
        v = ldexp(mantissa + 1024, exponent - 25);
    return x & 0x8000 ? -v : v;
}

/* Nearest fp16 by search in the neighbours of a guess: independent of the bit tricks. */
static uint16_t fp16_nearest(float f)
{
    double x = fabs((double)f);
    uint16_t sign = signbit(f) ? 0x8000 : 0;
    uint32_t low = 0, high = 0x7c00;

    if (isnan(f))
        return ZIPCCL_FP16_NAN;
    if (x >= 65520) /* halfway between 65504 and the next power of two rounds away */
        return (uint16_t)(sign | 0x7c00);
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;

        if (fp16_value((uint16_t)middle) <= x)
            low = middle;
        else
            high = middle;
    }
    double a = fp16_value((uint16_t)low), b = low == 0x7bff ? 65536 : fp16_value((uint16_t)high);

    if (x - a > b - x || (x - a == b - x && (low & 1)))
        low++;
    return (uint16_t)(sign | low);
}

Test(reduce, every_fp16_widens_to_its_value_and_back)
{
    for (uint32_t i = 0; i < 65536; i++) {
        uint16_t x = (uint16_t)i;
        float f = zipccl_fp16_to_float(x);

        if (isnan(fp16_value(x))) {
            cr_assert(isnan(f), "%04x", i);
            cr_assert_eq(zipccl_float_to_bits(f) >> 13 & 0x3ff, i & 0x3ff, "payload of %04x", i);
            cr_assert_eq(zipccl_fp16_from_float(f), ZIPCCL_FP16_NAN);
        } else {
            cr_assert_eq((double)f, fp16_value(x), "%04x", i);
            cr_assert_eq(zipccl_fp16_from_float(f), x, "%04x", i);
        }
    }
}

Test(reduce, every_bf16_widens_and_comes_back)
{
    for (uint32_t i = 0; i < 65536; i++) {
        float f = zipccl_bf16_to_float((uint16_t)i);

        cr_assert_eq(zipccl_float_to_bits(f), i << 16);
        cr_assert_eq(zipccl_bf16_from_float(f), isnan(f) ? ZIPCCL_BF16_NAN : i, "%04x", i);
    }
}

/* All 65536 upper halves with lower halves around the ties. */
Test(reduce, narrowing_rounds_to_nearest_even)
{
    static const uint32_t low[] = {0, 1, 0xfff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0xffff};

    for (uint32_t i = 0; i < 65536; i++)
        for (size_t k = 0; k < sizeof low / sizeof *low; k++) {
            uint32_t bits = i << 16 | low[k];
            float f = zipccl_float_from_bits(bits);
            uint16_t expected = (uint16_t)i;

            cr_assert_eq(zipccl_fp16_from_float(f), fp16_nearest(f), "%08x", bits);
            if (isnan(f))
                expected = ZIPCCL_BF16_NAN;
            else if (low[k] > 0x8000 || (low[k] == 0x8000 && (i & 1)))
                expected++;
            cr_assert_eq(zipccl_bf16_from_float(f), expected, "%08x", bits);
        }
}

Test(reduce, small_floats_round_once)
{
    /* 1 + 2^-8 + 2^-8: rounding at each step would stay at 1. */
    const uint16_t one[1] = {0x3f80}, tiny[1] = {0x3b80};
    const void *sources[3] = {one, tiny, tiny};
    uint16_t out[1];

    cr_assert_eq(zipccl_reduce(ZIPCCL_BFLOAT16, ZIPCCL_SUM, sources, 3, 1, out), ZIPCCL_OK);
    cr_assert_eq(out[0], 0x3f81);
    cr_assert_eq(zipccl_reduce(ZIPCCL_BFLOAT16, ZIPCCL_AVG, sources, 3, 1, out), ZIPCCL_OK);
    cr_assert_eq(out[0], zipccl_bf16_from_float(1.0078125f / 3));
}

Test(reduce, special_values)
{
    const uint16_t a[6] = {0xffff, 0x7f80, 0x8000, 0x8000, 0x0001, 0x7f81};
    const uint16_t b[6] = {0x3f80, 0xff80, 0x8000, 0x0000, 0x0001, 0x7f81};
    const uint16_t sum[6] = {0x7fc0, 0x7fc0, 0x8000, 0x0000, 0x0002, 0x7fc0};
    const uint16_t max[6] = {0x7fc0, 0x7f80, 0x8000, 0x8000, 0x0001, 0x7fc0};
    const void *sources[2] = {a, b}, *swapped[2] = {b, a};
    uint16_t out[6];

    cr_assert_eq(zipccl_reduce(ZIPCCL_BFLOAT16, ZIPCCL_SUM, sources, 2, 6, out), ZIPCCL_OK);
    cr_assert_arr_eq(out, sum, sizeof sum);
    cr_assert_eq(zipccl_reduce(ZIPCCL_BFLOAT16, ZIPCCL_MAX, sources, 2, 6, out), ZIPCCL_OK);
    cr_assert_arr_eq(out, max, sizeof max);
    cr_assert_eq(zipccl_reduce(ZIPCCL_BFLOAT16, ZIPCCL_MIN, swapped, 2, 1, out), ZIPCCL_OK);
    cr_assert_eq(out[0], ZIPCCL_BF16_NAN);
    cr_assert_eq(zipccl_reduce(ZIPCCL_BFLOAT16, ZIPCCL_SUM, sources, 1, 6, out), ZIPCCL_OK);
    cr_assert_arr_eq(out, a, sizeof a, "one rank copies bits");
}

Test(reduce, integers_wrap_and_average_truncates)
{
    const int8_t a[3] = {127, -128, -3}, b[3] = {1, -1, -4};
    const void *sources[2] = {a, b};
    int8_t out[3];

    cr_assert_eq(zipccl_reduce(ZIPCCL_INT8, ZIPCCL_SUM, sources, 2, 3, out), ZIPCCL_OK);
    cr_assert(out[0] == -128 && out[1] == 127 && out[2] == -7);
    cr_assert_eq(zipccl_reduce(ZIPCCL_INT8, ZIPCCL_AVG, sources, 2, 3, out), ZIPCCL_OK);
    cr_assert(out[0] == -64 && out[1] == 63 && out[2] == -3);
    cr_assert_eq(zipccl_reduce(ZIPCCL_INT8, ZIPCCL_MAX, sources, 2, 3, out), ZIPCCL_OK);
    cr_assert(out[0] == 127 && out[1] == -1 && out[2] == -3);
    cr_assert_eq(zipccl_reduce(ZIPCCL_UINT8, ZIPCCL_MAX, sources, 2, 3, out), ZIPCCL_OK);
    cr_assert(out[0] == 127 && (uint8_t)out[1] == 255 && (uint8_t)out[2] == 253);
    cr_assert_eq(zipccl_reduce(ZIPCCL_FLOAT8_E4M3, ZIPCCL_SUM, sources, 2, 3, out),
                 ZIPCCL_ERR_UNSUPPORTED);
}
