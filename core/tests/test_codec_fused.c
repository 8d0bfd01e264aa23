/*
 * test_codec_fused.c - coding from and into fp32 is what separate steps compute
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec.h"

#include "core/reduce.h"
#include "core/tests/codec_data.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 70001 };

static const enum zipccl_dtype types[] = {ZIPCCL_BFLOAT16, ZIPCCL_FLOAT16, ZIPCCL_FLOAT32};
static const size_t sizes[] = {0, 1, 100, 5000, 16384, 16385, MOST};

/* Values of every size of float, halfway cases and NaNs among them. */
static void fill_values(struct data_random *random, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = data_next(random);
        uint32_t u = (uint32_t)bits;
        if (bits >> 32 & 15)
            u = (u & 0x807fffffu) | (uint32_t)(110 + (bits >> 40) % 16) << 23;
        if (bits >> 36 & 1)
            u = (u & 0xffff0000u) | 0x8000u;
        x[i] = zipccl_float_from_bits(u);
    }
}

static void round_one(enum zipccl_dtype dtype, float x, void *out)
{
    uint16_t y = dtype == ZIPCCL_FLOAT16 ? zipccl_fp16_from_float(x) : zipccl_bf16_from_float(x);
    if (dtype == ZIPCCL_FLOAT32)
        memcpy(out, &x, 4);
    else
        memcpy(out, &y, 2);
}

static float widen_one(enum zipccl_dtype dtype, const void *p)
{
    uint16_t y;
    float x;
    memcpy(&y, p, 2);
    if (dtype != ZIPCCL_FLOAT32)
        return dtype == ZIPCCL_FLOAT16 ? zipccl_fp16_to_float(y) : zipccl_bf16_to_float(y);
    memcpy(&x, p, 4);
    return x;
}

Test(codec_fused, encoding_fp32_is_rounding_and_encoding)
{
    struct data_random random = {61};
    float *x = malloc(MOST * sizeof *x);
    uint8_t *elements = malloc(4 * MOST);
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    size_t capacity = zipccl_bound(ZIPCCL_FLOAT32, MOST);
    uint8_t *expected = malloc(capacity), *wire = malloc(capacity);
    for (size_t t = 0; t < 3; t++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            size_t n = sizes[s], size = zipccl_dtype_size(types[t]), nexpected = 0;
            fill_values(&random, x, n);
            for (size_t i = 0; i < n; i++)
                round_one(types[t], x[i], elements + size * i);
            zipccl_encode(ZIPCCL_ISA_SCALAR, types[t], elements, n, expected, capacity, scratch,
                          &nexpected);
            for (int isa = 0; isa < ZIPCCL_NUM_ISAS; isa++) {
                size_t nbytes = 0;
                if (!zipccl_isa_usable((enum zipccl_isa)isa))
                    continue;
                cr_assert_eq(zipccl_encode_f32((enum zipccl_isa)isa, types[t], x, n, wire, capacity,
                                               scratch, &nbytes),
                             ZIPCCL_OK);
                cr_assert_eq(nbytes, nexpected);
                cr_assert(memcmp(wire, expected, nbytes) == 0, "%s, %zu %s",
                          zipccl_isa_name((enum zipccl_isa)isa), n, zipccl_dtype_name(types[t]));
            }
        }
    free(x);
    free(elements);
    free(scratch);
    free(expected);
    free(wire);
}

static void check_add(enum zipccl_dtype dtype, enum data_kind kind, size_t n)
{
    struct data_random random = {62};
    size_t size = zipccl_dtype_size(dtype), capacity = zipccl_bound(dtype, n), nbytes = 0;
    uint8_t *elements = malloc(size * n + 1), *wire = malloc(capacity);
    float *start = malloc(n * sizeof *start + 1);
    struct data_guarded acc = data_guard(n * sizeof(float));
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    data_fill_type(dtype, kind, &random, 0.4, elements, n);
    fill_values(&random, start, n);
    zipccl_encode(ZIPCCL_ISA_SCALAR, dtype, elements, n, wire, capacity, scratch, &nbytes);
    for (int isa = 0; isa < ZIPCCL_NUM_ISAS; isa++) {
        if (!zipccl_isa_usable((enum zipccl_isa)isa))
            continue;
        float *sum = (float *)(void *)acc.bytes;
        memcpy(sum, start, n * sizeof(float));
        cr_assert_eq(zipccl_decode_add((enum zipccl_isa)isa, dtype, wire, nbytes, sum, n, scratch),
                     ZIPCCL_OK);
        for (size_t i = 0; i < n; i++) {
            float right = start[i] + widen_one(dtype, elements + size * i);
            cr_assert(isnan(right) ? isnan(sum[i]) : memcmp(&right, &sum[i], 4) == 0,
                      "%s element %zu: %g and %g", zipccl_isa_name((enum zipccl_isa)isa), i,
                      (double)right, (double)sum[i]);
        }
    }
    data_unguard(&acc);
    free(elements);
    free(wire);
    free(start);
    free(scratch);
}

Test(codec_fused, decoding_and_adding_is_adding_what_decodes)
{
    static const enum data_kind kinds[] = {DATA_GAUSS, DATA_SPOILED, DATA_BITS, DATA_SPARSE};
    for (size_t t = 0; t < 3; t++)
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
            for (size_t k = 0; k < 4; k++)
                check_add(types[t], kinds[k], sizes[s]);
}

Test(codec_fused, other_types_are_refused)
{
    float x[4] = {0};
    uint8_t wire[64];
    size_t nbytes = 77;
    enum zipccl_isa best = zipccl_isa_best();
    cr_assert_eq(zipccl_encode_f32(best, ZIPCCL_INT32, x, 4, wire, 64, NULL, &nbytes),
                 ZIPCCL_ERR_UNSUPPORTED);
    cr_assert_eq(zipccl_encode_f32(best, ZIPCCL_FLOAT8_E4M3, x, 4, wire, 64, NULL, &nbytes),
                 ZIPCCL_ERR_UNSUPPORTED);
    cr_assert_eq(zipccl_decode_add(best, ZIPCCL_FLOAT64, wire, 64, x, 4, NULL),
                 ZIPCCL_ERR_UNSUPPORTED);
    cr_assert_eq(nbytes, 77);
}
