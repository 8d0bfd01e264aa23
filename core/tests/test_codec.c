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
    cr_assert_eq(
        zipccl_encode(isa, ZIPCCL_BFLOAT16, in.bytes, n, wire.bytes, bound, scratch, &nbytes),
        ZIPCCL_OK);
    cr_assert_leq(nbytes, bound);

    struct data_guarded exact = data_guard(nbytes), out = data_guard(2 * n);
    memcpy(exact.bytes, wire.bytes, nbytes);
    memset(out.bytes, 0xa5, 2 * n);
    cr_assert_eq(zipccl_decode(isa, ZIPCCL_BFLOAT16, exact.bytes, nbytes, out.bytes, n, scratch),
                 ZIPCCL_OK);
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
