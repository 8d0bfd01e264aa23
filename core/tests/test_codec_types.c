/*
 * test_codec_types.c - every type that the codec covers comes back bit for bit, by every row
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec.h"

#include "core/tests/codec_data.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* Encode and decode by every row between pages that fault; returns the message's bytes. */
static size_t round_trip(enum zipccl_dtype dtype, const void *src, size_t n)
{
    size_t raw = n * zipccl_dtype_size(dtype), bound = zipccl_bound(dtype, n), nexpected = 0;
    struct data_guarded in = data_guard(raw), out = data_guard(raw), wire = data_guard(bound);
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    uint8_t *expected = malloc(bound);
    memcpy(in.bytes, src, raw);
    cr_assert_eq(
        zipccl_encode(ZIPCCL_ISA_SCALAR, dtype, src, n, expected, bound, scratch, &nexpected),
        ZIPCCL_OK);
    for (int isa = 0; isa < ZIPCCL_NUM_ISAS; isa++) {
        if (!zipccl_isa_usable((enum zipccl_isa)isa))
            continue;
        size_t nbytes = 0;
        memset(wire.bytes, isa, bound);
        cr_assert_eq(zipccl_encode((enum zipccl_isa)isa, dtype, in.bytes, n, wire.bytes, bound,
                                   scratch, &nbytes),
                     ZIPCCL_OK);
        cr_assert_eq(nbytes, nexpected, "%s", zipccl_isa_name((enum zipccl_isa)isa));
        cr_assert(memcmp(wire.bytes, expected, nbytes) == 0, "%s %s, n = %zu",
                  zipccl_isa_name((enum zipccl_isa)isa), zipccl_dtype_name(dtype), n);
        /* The message at its page's end, so that one byte too far faults. */
        uint8_t *end = wire.bytes + bound - nbytes;
        memmove(end, wire.bytes, nbytes);
        memset(out.bytes, 0xa5, raw);
        cr_assert_eq(zipccl_decode((enum zipccl_isa)isa, dtype, end, nbytes, out.bytes, n, scratch),
                     ZIPCCL_OK);
        cr_assert(memcmp(out.bytes, src, raw) == 0, "%s %s, n = %zu",
                  zipccl_isa_name((enum zipccl_isa)isa), zipccl_dtype_name(dtype), n);
    }
    data_unguard(&in);
    data_unguard(&out);
    data_unguard(&wire);
    free(expected);
    free(scratch);
    return nexpected;
}

Test(codec_types, come_back_at_every_size_and_kind)
{
    enum { LARGEST = 40003 };
    static const size_t sizes[] = {1, 2, 63, 64, 65, 1000, 1024, 4097, 16384, 16447, LARGEST};
    uint8_t *src = malloc(4 * LARGEST);
    struct data_random random = {51};
    for (int t = 0; t < DATA_NUM_TYPES; t++)
        for (int kind = 0; kind < DATA_NUM_KINDS; kind++)
            for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
                data_fill_type(data_types[t], (enum data_kind)kind, &random, 0.1 * (double)i, src,
                               sizes[i]);
                round_trip(data_types[t], src, sizes[i]);
            }
    free(src);
}

Test(codec_types, keep_every_pattern_of_a_byte_and_of_fp16)
{
    uint16_t *src = malloc(65536 * sizeof *src);
    for (unsigned i = 0; i < 65536; i++)
        src[i] = (uint16_t)i;
    round_trip(ZIPCCL_FLOAT16, src, 65536);
    round_trip(ZIPCCL_FLOAT8_E4M3, src, 131072);
    round_trip(ZIPCCL_FLOAT8_E5M2, src, 131072);
    /* Strangers among values that shrink. */
    struct data_random random = {52};
    for (unsigned first = 0; first < 65536; first += 2048) {
        data_fill_type(ZIPCCL_FLOAT16, DATA_GAUSS, &random, 0, src, 32768);
        for (unsigned i = 0; i < 2048; i++)
            src[16 * i] = (uint16_t)(first + i);
        cr_assert_lt(round_trip(ZIPCCL_FLOAT16, src, 32768), 65536);
    }
    free(src);
}

Test(codec_types, shrink_by_their_exponents)
{
    /* 16 / (11 + 2.6), 32 / (24 + 2.6), 8 / (4 + 2.6) and 8 / (3 + 2.6), less the headers. */
    static const double least[DATA_NUM_TYPES] = {1.50, 1.17, 1.195, 1.19, 1.41};
    enum { N = 262144 };
    uint8_t *src = malloc(4 * N);
    struct data_random random = {53};
    for (int t = 0; t < DATA_NUM_TYPES; t++) {
        data_fill_type(data_types[t], DATA_GAUSS, &random, 0, src, N);
        double raw = N * (double)zipccl_dtype_size(data_types[t]);
        double ratio = raw / (double)round_trip(data_types[t], src, N);
        cr_expect_geq(ratio, least[t], "%s: %.4f", zipccl_dtype_name(data_types[t]), ratio);
    }
    free(src);
}

Test(codec_types, leave_out_mantissa_bits_that_are_zero)
{
    enum { N = 65536 };
    uint16_t *bf16 = malloc(2 * N), *fp16 = malloc(2 * N);
    uint32_t *fp32 = malloc(4 * N);
    struct data_random random = {54};
    data_gauss(&random, bf16, N, 0.02);
    for (size_t i = 0; i < N; i++)
        fp32[i] = (uint32_t)bf16[i] << 16;
    size_t as_bf16 = round_trip(ZIPCCL_BFLOAT16, bf16, N);
    cr_expect_eq(round_trip(ZIPCCL_FLOAT32, fp32, N), as_bf16, "the same planes");
    for (size_t i = 0; i < N; i++)
        fp32[i] |= (uint32_t)(data_next(&random) & 0xff) << 8;
    cr_expect_eq(round_trip(ZIPCCL_FLOAT32, fp32, N), as_bf16 + N, "one plane more");
    for (size_t i = 0; i < N; i++)
        fp32[i] = (fp32[i] & 0xffff0000u) | (uint32_t)(data_next(&random) & 0xff);
    cr_expect_eq(round_trip(ZIPCCL_FLOAT32, fp32, N), as_bf16 + N, "the other one");
    data_fill_type(ZIPCCL_FLOAT16, DATA_GAUSS, &random, 0, fp16, N);
    size_t all = round_trip(ZIPCCL_FLOAT16, fp16, N);
    for (size_t i = 0; i < N; i++)
        fp16[i] &= 0xfffa;
    cr_expect_eq(round_trip(ZIPCCL_FLOAT16, fp16, N), all - 2 * N / 8, "bits 0 and 2");
    free(bf16);
    free(fp16);
    free(fp32);
}

Test(codec_types, of_one_value_take_an_entry_a_superblock)
{
    enum { N = 50000 };
    uint8_t *src = malloc(4 * N);
    struct data_random random = {55};
    for (int t = 0; t < DATA_NUM_TYPES; t++) {
        size_t size = zipccl_dtype_size(data_types[t]);
        data_bits(&random, (uint16_t *)src, 2);
        for (size_t i = 1; i < N; i++)
            memcpy(src + size * i, src, size);
        cr_assert_eq(round_trip(data_types[t], src, N), 32 + 4 * 32 + 32);
        /* And zeros but for one element. */
        memset(src, 0, size * N);
        src[size * 20000] = 1;
        cr_assert_lt(round_trip(data_types[t], src, N), 500);
    }
    free(src);
}

Test(codec_types, fit_any_capacity_that_is_enough)
{
    enum { N = 40000 };
    static const enum data_kind kinds[] = {DATA_GAUSS, DATA_SPARSE, DATA_ROWS, DATA_HALF_BITS};
    uint8_t *src = malloc(4 * N);
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    struct data_random random = {56};
    for (int t = 0; t < DATA_NUM_TYPES; t++)
        for (int k = 0; k < 4; k++) {
            data_fill_type(data_types[t], kinds[k], &random, 0.3, src, N);
            size_t exact = round_trip(data_types[t], src, N), nbytes;
            size_t bound = zipccl_bound(data_types[t], N);
            struct data_guarded room = data_guard(bound);
            uint8_t *expected = malloc(exact);
            zipccl_encode(ZIPCCL_ISA_SCALAR, data_types[t], src, N, expected, exact, scratch,
                          &nbytes);
            for (size_t capacity = 32; capacity <= bound; capacity += 1 + bound / 199) {
                uint8_t *dst = room.bytes + bound - capacity;
                zipccl_status status = zipccl_encode(zipccl_isa_best(), data_types[t], src, N, dst,
                                                     capacity, scratch, &nbytes);
                cr_assert_eq(status, capacity < exact ? ZIPCCL_ERR_OVERFLOW : ZIPCCL_OK);
                if (status == ZIPCCL_OK)
                    cr_assert(nbytes == exact && memcmp(dst, expected, exact) == 0);
            }
            data_unguard(&room);
            free(expected);
        }
    free(src);
    free(scratch);
}
