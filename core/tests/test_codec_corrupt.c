/*
 * test_codec_corrupt.c - bytes that no encoder wrote are refused or decoded, never followed
 *
 * Every wire buffer and every output ends where a page faults, so a read or write outside them
 * ends the test.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec.h"

#include "core/tests/codec_data.h"
#include "core/wire.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* A valid message of 'n' elements and room to decode it. */
struct victim {
    struct data_guarded wire, out;
    uint8_t *good;
    uint16_t *src, *other;
    void *scratch;
    size_t n, nbytes;
};

static struct victim victim_create(enum data_kind kind, size_t n)
{
    struct victim v = {.n = n};
    size_t bound = zipccl_bound(ZIPCCL_BFLOAT16, n);
    struct data_random random = {41};
    v.src = malloc(2 * n);
    v.other = malloc(2 * n);
    v.good = malloc(bound);
    v.scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    data_fill(kind, &random, 0.2, v.src, n);
    cr_assert_eq(zipccl_encode(ZIPCCL_ISA_SCALAR, ZIPCCL_BFLOAT16, v.src, n, v.good, bound,
                               v.scratch, &v.nbytes),
                 ZIPCCL_OK);
    v.wire = data_guard(v.nbytes);
    v.out = data_guard(2 * n);
    memcpy(v.wire.bytes, v.good, v.nbytes);
    return v;
}

static void victim_destroy(struct victim *v)
{
    data_unguard(&v->wire);
    data_unguard(&v->out);
    free(v->src);
    free(v->other);
    free(v->good);
    free(v->scratch);
}

/* Decode by every row; they must agree on the verdict and, if it is OK, on the elements. */
static zipccl_status decode_all(struct victim *v, const uint8_t *wire, size_t nbytes)
{
    zipccl_status first = ZIPCCL_OK;
    for (int isa = 0; isa < ZIPCCL_NUM_ISAS; isa++) {
        if (!zipccl_isa_usable((enum zipccl_isa)isa))
            continue;
        zipccl_status status = zipccl_decode((enum zipccl_isa)isa, ZIPCCL_BFLOAT16, wire, nbytes,
                                             v->out.bytes, v->n, v->scratch);
        if (isa == ZIPCCL_ISA_SCALAR) {
            first = status;
            memcpy(v->other, v->out.bytes, 2 * v->n);
            continue;
        }
        cr_assert_eq(status, first);
        if (status == ZIPCCL_OK)
            cr_assert(memcmp(v->other, v->out.bytes, 2 * v->n) == 0);
    }
    return first;
}

Test(codec_corrupt, truncated_messages_are_refused)
{
    static const enum data_kind kinds[] = {DATA_GAUSS, DATA_SPOILED, DATA_BITS, DATA_SPARSE,
                                           DATA_ZEROS};
    for (size_t k = 0; k < 5; k++) {
        struct victim v = victim_create(kinds[k], 3000);
        for (size_t nbytes = 0; nbytes < v.nbytes; nbytes++) {
            /* Moved to the end of the page, so that one byte too far faults. */
            uint8_t *wire = v.wire.bytes + (v.nbytes - nbytes);
            memcpy(wire, v.good, nbytes);
            cr_assert_eq(decode_all(&v, wire, nbytes), ZIPCCL_ERR_CORRUPT, "%zu of %zu bytes",
                         nbytes, v.nbytes);
        }
        victim_destroy(&v);
    }
}

Test(codec_corrupt, changed_bytes_are_refused_or_decoded)
{
    static const enum data_kind kinds[] = {DATA_GAUSS,  DATA_SPOILED, DATA_HALF_BITS,
                                           DATA_SPARSE, DATA_ROWS,    DATA_PEAKED};
    static const size_t sizes[] = {3000, 3000, 34000, 3000, 9000, 3000};
    struct data_random random = {42};
    for (size_t k = 0; k < 6; k++) {
        struct victim v = victim_create(kinds[k], sizes[k]);
        size_t step = sizes[k] > 10000 ? 29 : 1, refused = 0, decoded = 0;
        for (size_t at = 0; at < v.nbytes; at += at < 200 ? 1 : step) {
            uint8_t change = (uint8_t)(1 + data_next(&random) % 255);
            v.wire.bytes[at] ^= change;
            zipccl_status status = decode_all(&v, v.wire.bytes, v.nbytes);
            cr_assert(status == ZIPCCL_OK || status == ZIPCCL_ERR_CORRUPT);
            if (at < ZIPCCL_MESSAGE_HEADER_BYTES)
                cr_assert_eq(status, ZIPCCL_ERR_CORRUPT, "header byte %zu", at);
            *(status == ZIPCCL_OK ? &decoded : &refused) += 1;
            v.wire.bytes[at] ^= change;
        }
        cr_assert_gt(refused, ZIPCCL_MESSAGE_HEADER_BYTES);
        cr_assert_gt(decoded, 0);
        cr_assert_eq(decode_all(&v, v.wire.bytes, v.nbytes), ZIPCCL_OK);
        victim_destroy(&v);
    }
}

Test(codec_corrupt, every_bit_of_a_directory_entry_matters)
{
    /* The message ends where its parts end, and no program here has the sizes of another. */
    static const enum data_kind kinds[] = {DATA_GAUSS, DATA_SPARSE, DATA_ZEROS};
    for (size_t k = 0; k < 3; k++) {
        struct victim v = victim_create(kinds[k], 20000);
        for (size_t bit = 0; bit < 8 * 16; bit++) {
            size_t at = ZIPCCL_MESSAGE_HEADER_BYTES + bit / 8;
            v.wire.bytes[at] ^= (uint8_t)(1 << bit % 8);
            cr_assert_eq(decode_all(&v, v.wire.bytes, v.nbytes), ZIPCCL_ERR_CORRUPT,
                         "kind %d, bit %zu", (int)kinds[k], bit);
            v.wire.bytes[at] ^= (uint8_t)(1 << bit % 8);
        }
        /* The second superblock has at most four bases; others are no place to hide bytes. */
        for (size_t at = ZIPCCL_MESSAGE_HEADER_BYTES + 32 + 16 + 4; at < 96; at++) {
            v.wire.bytes[at] ^= 1;
            cr_assert_eq(decode_all(&v, v.wire.bytes, v.nbytes), ZIPCCL_ERR_CORRUPT, "byte %zu",
                         at);
            v.wire.bytes[at] ^= 1;
        }
        victim_destroy(&v);
    }
}

Test(codec_corrupt, other_programs_are_refused)
{
    static const enum data_kind kinds[] = {DATA_GAUSS, DATA_SPARSE, DATA_ZEROS, DATA_PEAKED};
    for (size_t k = 0; k < 4; k++) {
        struct victim v = victim_create(kinds[k], 20000);
        uint8_t right = v.wire.bytes[ZIPCCL_MESSAGE_HEADER_BYTES];
        for (int program = 0; program < 256; program++) {
            v.wire.bytes[ZIPCCL_MESSAGE_HEADER_BYTES] = (uint8_t)program;
            zipccl_status status = decode_all(&v, v.wire.bytes, v.nbytes);
            /* Programs 2 and 4 are the two orders of the same widths. */
            if (program != right && program != (right ^ 6))
                cr_assert_eq(status, ZIPCCL_ERR_CORRUPT, "program %d", program);
        }
        victim_destroy(&v);
    }
}

Test(codec_corrupt, a_bitmap_that_disagrees_with_its_entry_is_refused)
{
    struct victim v = victim_create(DATA_ROWS, 16384);
    const uint8_t *entry = v.good + ZIPCCL_MESSAGE_HEADER_BYTES;
    cr_assert(entry[0] & 0x80, "zeros");
    /* The bitmap starts the variable bytes: all shown groups, then their words. */
    size_t words = 8 * (4 + (size_t)zipccl_get_u16(entry + 14)), nbytes = 0, start = 0;
    for (size_t at = 64; at + 32 < v.nbytes && !start; at += 64) {
        nbytes = 0;
        for (size_t i = 0; i < 32; i++)
            nbytes += (size_t)__builtin_popcount(v.good[at + i]);
        start = nbytes == zipccl_get_u16(entry + 14) ? at : 0;
    }
    cr_assert_gt(start, 0);
    for (size_t bit = 0; bit < 8 * words; bit++) {
        v.wire.bytes[start + bit / 8] ^= (uint8_t)(1 << bit % 8);
        cr_assert_eq(decode_all(&v, v.wire.bytes, v.nbytes), ZIPCCL_ERR_CORRUPT, "bit %zu", bit);
        v.wire.bytes[start + bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    victim_destroy(&v);
}

/* Put 'x' at a header's byte 'at' and make the check valid again. */
static void forge(struct victim *v, size_t at, uint64_t x)
{
    memcpy(v->wire.bytes, v->good, ZIPCCL_MESSAGE_HEADER_BYTES);
    zipccl_put_u64(v->wire.bytes + at, x);
    zipccl_message_set_flags(v->wire.bytes, 0);
}

Test(codec_corrupt, forged_headers_are_refused)
{
    static const uint64_t wrong[] = {
        0,         1, 2999, 3001, 1ull << 31, 1ull << 32, 1ull << 62, 1ull << 63, UINT64_MAX - 31,
        UINT64_MAX};
    static const enum data_kind kinds[] = {DATA_GAUSS, DATA_BITS};
    for (size_t k = 0; k < 2; k++) {
        struct victim v = victim_create(kinds[k], 3000);
        for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
            forge(&v, 8, wrong[i]);
            cr_assert_eq(decode_all(&v, v.wire.bytes, v.nbytes), ZIPCCL_ERR_CORRUPT);
            forge(&v, 16, wrong[i]);
            cr_assert_eq(decode_all(&v, v.wire.bytes, v.nbytes), ZIPCCL_ERR_CORRUPT);
        }
        /* A body one byte longer or shorter than its parts. */
        size_t nbody = v.nbytes - ZIPCCL_MESSAGE_HEADER_BYTES;
        forge(&v, 16, nbody - 1);
        cr_assert_eq(decode_all(&v, v.wire.bytes, v.nbytes), ZIPCCL_ERR_CORRUPT);
        forge(&v, 16, nbody + 1);
        cr_assert_eq(decode_all(&v, v.wire.bytes, v.nbytes), ZIPCCL_ERR_CORRUPT);
        victim_destroy(&v);
    }
}

Test(codec_corrupt, a_count_that_the_receiver_expects_is_not_believed)
{
    /* The receiver asks for what the header says, but the body is that of 3000 elements. */
    static const size_t others[] = {1, 2936, 2944, 3009, 4096, 5000, 16384, 16385, 60000};
    struct victim v = victim_create(DATA_GAUSS, 3000);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct data_guarded out = data_guard(2 * others[i]);
        forge(&v, 8, others[i]);
        for (int isa = 0; isa < ZIPCCL_NUM_ISAS; isa++)
            if (zipccl_isa_usable((enum zipccl_isa)isa))
                cr_assert_eq(zipccl_decode((enum zipccl_isa)isa, ZIPCCL_BFLOAT16, v.wire.bytes,
                                           v.nbytes, out.bytes, others[i], v.scratch),
                             ZIPCCL_ERR_CORRUPT, "%zu elements", others[i]);
        data_unguard(&out);
    }
    victim_destroy(&v);
}

Test(codec_corrupt, sizes_that_wrap_around_are_refused)
{
    struct victim v = victim_create(DATA_BITS, 3000);
    struct zipccl_message message;
    cr_assert_eq(zipccl_message_read(v.wire.bytes, v.nbytes, &message), ZIPCCL_OK);
    cr_assert_eq(message.flags, ZIPCCL_MESSAGE_RAW);
    forge(&v, 8, (1ull << 63) + 3000); /* twice that is 6000 again */
    cr_assert_eq(zipccl_message_read(v.wire.bytes, v.nbytes, &message), ZIPCCL_ERR_CORRUPT);
    victim_destroy(&v);
}

Test(codec_corrupt, bytes_that_belong_to_no_superblock_are_refused)
{
    struct victim v = victim_create(DATA_GAUSS, 3000);
    struct data_guarded longer = data_guard(v.nbytes + 1);
    memcpy(longer.bytes, v.good, v.nbytes);
    longer.bytes[v.nbytes] = 0;
    cr_assert_eq(decode_all(&v, longer.bytes, v.nbytes + 1), ZIPCCL_OK);
    zipccl_put_u64(longer.bytes + 16, v.nbytes + 1 - ZIPCCL_MESSAGE_HEADER_BYTES);
    zipccl_message_set_flags(longer.bytes, 0);
    cr_assert_eq(decode_all(&v, longer.bytes, v.nbytes + 1), ZIPCCL_ERR_CORRUPT);
    data_unguard(&longer);
    victim_destroy(&v);
}

Test(codec_corrupt, a_superblock_that_should_be_raw_is_refused)
{
    /* The last superblock has 16 elements, for which low bytes and planes take as much as raw. */
    struct victim v = victim_create(DATA_GAUSS, 16384 + 16);
    uint8_t *entry = v.wire.bytes + ZIPCCL_MESSAGE_HEADER_BYTES + 32;
    size_t share = 128 + 20480;
    cr_assert_eq(entry[0], 0, "raw");
    memset(v.wire.bytes + share, 0, 32);
    cr_assert_eq(decode_all(&v, v.wire.bytes, v.nbytes), ZIPCCL_OK, "raw zeros");
    entry[0] = 1;
    entry[16] = 127;
    cr_assert_eq(decode_all(&v, v.wire.bytes, v.nbytes), ZIPCCL_ERR_CORRUPT);
    victim_destroy(&v);
}

Test(codec_corrupt, a_coded_message_longer_than_raw_is_refused)
{
    /* 20 elements whose codes are all 0, put together by hand, behind a header made by the codec. */
    struct victim v = victim_create(DATA_GAUSS, 20);
    struct data_guarded wire = data_guard(128);
    memset(wire.bytes, 0, 128);
    memcpy(wire.bytes, v.good, ZIPCCL_MESSAGE_HEADER_BYTES);
    wire.bytes[6] = 0;
    zipccl_put_u64(wire.bytes + 16, 128 - ZIPCCL_MESSAGE_HEADER_BYTES);
    zipccl_message_set_flags(wire.bytes, 0);
    wire.bytes[32] = 1;
    wire.bytes[44] = 20;
    cr_assert_eq(decode_all(&v, wire.bytes, 128), ZIPCCL_ERR_CORRUPT);
    data_unguard(&wire);
    victim_destroy(&v);
}

Test(codec_corrupt, another_version_type_or_flag_is_refused)
{
    /* Header bytes 4 to 7: version, dtype, flags, zero. */
    static const struct {
        size_t at;
        uint8_t value;
    } wrong[] = {{4, 1},    {4, 3},    {5, 6}, {5, 12}, {5, 255}, {6, 0x02}, {6, 0x03},
                 {6, 0x08}, {6, 0x80}, {7, 1}, {24, 1}, {27, 1},  {0, 0}};
    struct victim v = victim_create(DATA_GAUSS, 3000);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        memcpy(v.wire.bytes, v.good, ZIPCCL_MESSAGE_HEADER_BYTES);
        v.wire.bytes[wrong[i].at] = wrong[i].value;
        zipccl_message_set_flags(v.wire.bytes, 0);
        cr_assert_eq(decode_all(&v, v.wire.bytes, v.nbytes), ZIPCCL_ERR_CORRUPT, "case %zu", i);
    }
    memcpy(v.wire.bytes, v.good, ZIPCCL_MESSAGE_HEADER_BYTES);
    cr_assert_eq(zipccl_decode(ZIPCCL_ISA_SCALAR, ZIPCCL_FLOAT16, v.wire.bytes, v.nbytes,
                               v.out.bytes, v.n, v.scratch),
                 ZIPCCL_ERR_CORRUPT);
    cr_assert_eq(zipccl_decode(ZIPCCL_ISA_SCALAR, ZIPCCL_BFLOAT16, v.wire.bytes, v.nbytes,
                               v.out.bytes, v.n - 1, v.scratch),
                 ZIPCCL_ERR_CORRUPT);
    victim_destroy(&v);
}

Test(codec_corrupt, flags_can_be_added_and_bytes_may_follow)
{
    struct victim v = victim_create(DATA_GAUSS, 3000);
    struct zipccl_message message;
    uint8_t *longer = malloc(v.nbytes + 100);
    memset(longer, 0x77, v.nbytes + 100);
    memcpy(longer, v.good, v.nbytes);
    zipccl_message_set_flags(longer, ZIPCCL_MESSAGE_ANY_OVERFLOW);
    cr_assert_eq(zipccl_message_read(longer, v.nbytes + 100, &message), ZIPCCL_OK);
    cr_assert_eq(message.flags, ZIPCCL_MESSAGE_ANY_OVERFLOW);
    cr_assert_eq(message.nbytes, v.nbytes);
    cr_assert_eq(decode_all(&v, longer, v.nbytes + 100), ZIPCCL_OK);
    cr_assert(memcmp(v.other, v.src, 2 * v.n) == 0);
    free(longer);
    victim_destroy(&v);
}

Test(codec_corrupt, random_bytes_are_refused)
{
    struct victim v = victim_create(DATA_GAUSS, 3000);
    struct data_random random = {43};
    for (int round = 0; round < 300; round++) {
        for (size_t i = 0; i < v.nbytes; i++)
            v.wire.bytes[i] = (uint8_t)data_next(&random);
        cr_assert_eq(decode_all(&v, v.wire.bytes, v.nbytes), ZIPCCL_ERR_CORRUPT);
        /* Behind a valid header, too: a random directory entry is a wrong one. */
        memcpy(v.wire.bytes, v.good, ZIPCCL_MESSAGE_HEADER_BYTES);
        cr_assert_eq(decode_all(&v, v.wire.bytes, v.nbytes), ZIPCCL_ERR_CORRUPT);
        /* And random planes behind a valid directory. */
        memcpy(v.wire.bytes, v.good, 64);
        cr_assert_eq(decode_all(&v, v.wire.bytes, v.nbytes), ZIPCCL_ERR_CORRUPT);
    }
    victim_destroy(&v);
}
