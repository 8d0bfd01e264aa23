/*
 * test_codec.c - messages come back bit for bit, at every size, alignment and pattern
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec.h"

#include "core/tests/codec_data.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Encode and decode between pages that fault one byte behind the data. */
static size_t round_trip(enum zipccl_isa isa, const uint16_t *src, size_t n)
{
    size_t bound = zipccl_bound(ZIPCCL_BFLOAT16, n), nbytes = 0;
    struct data_guarded in = data_guard(2 * n), wire = data_guard(bound);
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    if (n > 0)
        memcpy(in.bytes, src, 2 * n);
    zipccl_status status =
        zipccl_encode(isa, ZIPCCL_BFLOAT16, in.bytes, n, wire.bytes, bound, scratch, &nbytes);
    cr_assert_eq(status, ZIPCCL_OK);
    cr_assert_leq(nbytes, bound);

    struct data_guarded exact = data_guard(nbytes), out = data_guard(2 * n);
    memcpy(exact.bytes, wire.bytes, nbytes);
    memset(out.bytes, 0xa5, 2 * n);
    status = zipccl_decode(isa, ZIPCCL_BFLOAT16, exact.bytes, nbytes, out.bytes, n, scratch);
    cr_assert_eq(status, ZIPCCL_OK);
    if (n > 0)
        cr_assert(memcmp(out.bytes, src, 2 * n) == 0, "n = %zu", n);
    data_unguard(&in);
    data_unguard(&wire);
    data_unguard(&exact);
    data_unguard(&out);
    free(scratch);
    return nbytes;
}

static void round_trip_all_rows(const uint16_t *src, size_t n)
{
    for (int isa = 0; isa < ZIPCCL_NUM_ISAS; isa++)
        if (zipccl_isa_usable((enum zipccl_isa)isa))
            round_trip((enum zipccl_isa)isa, src, n);
}

Test(codec, keeps_every_bit_pattern)
{
    uint16_t *src = malloc(65536 * sizeof *src);
    for (unsigned i = 0; i < 65536; i++)
        src[i] = (uint16_t)i;
    round_trip_all_rows(src, 65536);
    /* Neighbours far apart: every superblock sees every exponent. */
    for (unsigned i = 0; i < 65536; i++)
        src[i] = (uint16_t)(i * 40503u);
    round_trip_all_rows(src, 65536);
    free(src);
}

Test(codec, keeps_every_pattern_inside_a_coded_superblock)
{
    /* A few strangers among many Gaussians: they travel through every tier. */
    enum { N = 16384 };
    uint16_t *src = malloc(N * sizeof *src);
    struct data_random random = {2};
    for (unsigned first = 0; first < 65536; first += 512) {
        data_gauss(&random, src, N, 1.0);
        for (unsigned i = 0; i < 512; i++)
            src[32 * i + first % 32] = (uint16_t)(first + i);
        round_trip_all_rows(src, N);
    }
    cr_assert_lt(round_trip(ZIPCCL_ISA_SCALAR, src, N), 2 * N);
    free(src);
}

Test(codec, keeps_every_size_and_kind)
{
    enum { LARGEST = 100003 };
    static const size_t more[] = {1023, 1024, 1025, 2049, 16383, 16384, 16385, 32768, LARGEST};
    uint16_t *src = malloc(LARGEST * sizeof *src);
    struct data_random random = {1};
    for (int kind = 0; kind < DATA_NUM_KINDS; kind++) {
        for (size_t n = 0; n <= 300; n++) {
            data_fill((enum data_kind)kind, &random, (double)n / 301, src, n);
            round_trip_all_rows(src, n);
        }
        for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
            data_fill((enum data_kind)kind, &random, 0.1 * (double)i, src, more[i]);
            round_trip_all_rows(src, more[i]);
        }
    }
    free(src);
}

Test(codec, keeps_special_values)
{
    static const uint16_t specials[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x007f, 0x807f, 0x0080,
                                        0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7f81, 0xff81, 0x7fc0,
                                        0xffc0, 0x7fff, 0xffff, 0x3f80, 0xbf80, 0x7fa5};
    enum { N = 20000, NSPECIALS = sizeof specials / sizeof specials[0] };
    uint16_t *src = malloc(N * sizeof *src);
    for (size_t s = 0; s < NSPECIALS; s++) {
        for (size_t i = 0; i < N; i++)
            src[i] = specials[s];
        size_t nbytes = round_trip(ZIPCCL_ISA_SCALAR, src, N);
        cr_expect_lt(nbytes, 2 * N, "constant %04x: %zu bytes", specials[s], nbytes);
        round_trip_all_rows(src, N);
    }
    for (size_t i = 0; i < N; i++)
        src[i] = specials[i % NSPECIALS];
    round_trip_all_rows(src, N);
    free(src);
}

Test(codec, needs_no_alignment)
{
    enum { N = 17000 };
    struct data_random random = {3};
    uint16_t *src = malloc(N * sizeof *src);
    data_gauss(&random, src, N, 0.5);
    size_t bound = zipccl_bound(ZIPCCL_BFLOAT16, N);
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    uint8_t *in = malloc(2 * N + 64), *wire = malloc(bound + 64), *out = malloc(2 * N + 64);
    for (int isa = 0; isa < ZIPCCL_NUM_ISAS; isa++) {
        if (!zipccl_isa_usable((enum zipccl_isa)isa))
            continue;
        for (size_t shift = 1; shift < 64; shift++) {
            size_t nbytes, other = 64 - shift;
            memcpy(in + shift, src, 2 * N);
            cr_assert_eq(zipccl_encode((enum zipccl_isa)isa, ZIPCCL_BFLOAT16, in + shift, N,
                                       wire + other, bound, scratch, &nbytes),
                         ZIPCCL_OK);
            cr_assert_eq(zipccl_decode((enum zipccl_isa)isa, ZIPCCL_BFLOAT16, wire + other, nbytes,
                                       out + shift, N, scratch),
                         ZIPCCL_OK);
            cr_assert(memcmp(out + shift, src, 2 * N) == 0, "shift %zu", shift);
        }
    }
    free(src);
    free(in);
    free(wire);
    free(out);
    free(scratch);
}

Test(codec, stores_other_types_raw)
{
    uint8_t src[33 * 8], out[33 * 8], wire[ZIPCCL_MESSAGE_HEADER_BYTES + sizeof src];
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    for (size_t i = 0; i < sizeof src; i++)
        src[i] = (uint8_t)(i * 7);
    for (int dtype = 0; dtype < ZIPCCL_NUM_DTYPES; dtype++) {
        if (zipccl_dtype_compressible((enum zipccl_dtype)dtype))
            continue;
        size_t nbytes = 0, raw = 33 * zipccl_dtype_size((enum zipccl_dtype)dtype);
        struct zipccl_message message;
        cr_assert_eq(zipccl_encode(zipccl_isa_best(), (enum zipccl_dtype)dtype, src, 33, wire,
                                   sizeof wire, scratch, &nbytes),
                     ZIPCCL_OK);
        cr_assert_eq(nbytes, ZIPCCL_MESSAGE_HEADER_BYTES + raw);
        cr_assert_eq(zipccl_message_read(wire, nbytes, &message), ZIPCCL_OK);
        cr_assert_eq(message.flags, ZIPCCL_MESSAGE_RAW);
        cr_assert_eq((int)message.dtype, dtype);
        cr_assert_eq(message.n, 33);
        cr_assert_eq(zipccl_decode(zipccl_isa_best(), (enum zipccl_dtype)dtype, wire, nbytes, out,
                                   33, scratch),
                     ZIPCCL_OK);
        cr_assert(memcmp(out, src, raw) == 0);
    }
    free(scratch);
}

Test(codec, never_exceeds_its_bound)
{
    /* What grows is stored raw: the bound is the raw size and one header, for any input. */
    cr_assert_eq(zipccl_bound(ZIPCCL_BFLOAT16, 0), ZIPCCL_MESSAGE_HEADER_BYTES);
    cr_assert_eq(zipccl_bound(ZIPCCL_BFLOAT16, 1000), ZIPCCL_MESSAGE_HEADER_BYTES + 2000);
    cr_assert_eq(zipccl_bound(ZIPCCL_FLOAT64, SIZE_MAX / 8), 0);
    cr_assert_eq(zipccl_bound(ZIPCCL_NUM_DTYPES, 1), 0);
    cr_assert_eq(zipccl_bound((enum zipccl_dtype) - 1, 1), 0);
    enum { N = 50000 };
    uint16_t *src = malloc(N * sizeof *src);
    struct data_random random = {4};
    data_bits(&random, src, N);
    cr_assert_eq(round_trip(zipccl_isa_best(), src, N), zipccl_bound(ZIPCCL_BFLOAT16, N));
    free(src);
}

Test(codec, refuses_wrong_arguments)
{
    uint16_t src[4] = {0};
    uint8_t wire[64];
    size_t nbytes = 77;
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    enum zipccl_isa best = zipccl_isa_best();
    cr_assert_eq(zipccl_encode(best, ZIPCCL_NUM_DTYPES, src, 4, wire, 64, scratch, &nbytes),
                 ZIPCCL_ERR_ARG);
    cr_assert_eq(zipccl_encode(best, ZIPCCL_BFLOAT16, src, 4, wire, 31, scratch, &nbytes),
                 ZIPCCL_ERR_ARG);
    cr_assert_eq(zipccl_encode(best, ZIPCCL_FLOAT64, src, SIZE_MAX / 2, wire, 64, scratch, &nbytes),
                 ZIPCCL_ERR_ARG);
    cr_assert_eq(
        zipccl_encode(ZIPCCL_NUM_ISAS, ZIPCCL_BFLOAT16, src, 4, wire, 64, scratch, &nbytes),
        ZIPCCL_ERR_ARG);
    cr_assert_eq(nbytes, 77, "results stay untouched on failure");
    cr_assert_eq(zipccl_decode(best, ZIPCCL_NUM_DTYPES, wire, 64, src, 4, scratch), ZIPCCL_ERR_ARG);
    cr_assert(zipccl_isa_usable(ZIPCCL_ISA_SCALAR));
    cr_assert(zipccl_isa_usable(best));
    cr_assert_str_eq(zipccl_isa_name(ZIPCCL_ISA_AVX512), "avx512");
    cr_assert_str_eq(zipccl_isa_name(ZIPCCL_NUM_ISAS), "?");
    free(scratch);
}

Test(codec, codes_no_elements_as_a_header)
{
    uint8_t wire[ZIPCCL_MESSAGE_HEADER_BYTES];
    size_t nbytes = 0;
    struct zipccl_message message;
    cr_assert_eq(zipccl_encode(zipccl_isa_best(), ZIPCCL_BFLOAT16, NULL, 0, wire, sizeof wire, NULL,
                               &nbytes),
                 ZIPCCL_OK);
    cr_assert_eq(nbytes, ZIPCCL_MESSAGE_HEADER_BYTES);
    cr_assert_eq(zipccl_message_read(wire, nbytes, &message), ZIPCCL_OK);
    cr_assert_eq(message.n, 0);
    cr_assert_eq(zipccl_decode(zipccl_isa_best(), ZIPCCL_BFLOAT16, wire, nbytes, NULL, 0, NULL),
                 ZIPCCL_OK);
}
