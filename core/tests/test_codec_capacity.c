/*
 * test_codec_capacity.c - a message fits its capacity, or says in its header that it does not
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec.h"

#include "core/tests/codec_data.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* Encode 'n' elements of a kind at capacities 'from' to 'to' that end where a page faults. */
static void check_capacities(enum zipccl_isa isa, enum data_kind kind, size_t n, size_t exact,
                             size_t from, size_t to)
{
    uint16_t *src = malloc(2 * n + 2), *out = malloc(2 * n + 2);
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    uint8_t *expected = malloc(exact);
    struct data_random random = {31};
    data_fill(kind, &random, 0.4, src, n);
    size_t nbytes = 0;
    cr_assert_eq(zipccl_encode(ZIPCCL_ISA_SCALAR, ZIPCCL_BFLOAT16, src, n, expected, exact, scratch,
                               &nbytes),
                 ZIPCCL_OK);
    cr_assert_eq(nbytes, exact);

    struct data_guarded room = data_guard(to);
    for (size_t capacity = from; capacity <= to; capacity++) {
        uint8_t *dst = room.bytes + (to - capacity);
        memset(dst, 0xee, capacity);
        zipccl_status status =
            zipccl_encode(isa, ZIPCCL_BFLOAT16, src, n, dst, capacity, scratch, &nbytes);
        if (capacity >= exact) {
            cr_assert_eq(status, ZIPCCL_OK, "capacity %zu of %zu", capacity, exact);
            cr_assert_eq(nbytes, exact);
            cr_assert(memcmp(dst, expected, exact) == 0, "capacity %zu of %zu", capacity, exact);
            continue;
        }
        struct zipccl_message message;
        cr_assert_eq(status, ZIPCCL_ERR_OVERFLOW, "capacity %zu of %zu", capacity, exact);
        cr_assert_eq(nbytes, ZIPCCL_MESSAGE_HEADER_BYTES);
        cr_assert_eq(zipccl_message_read(dst, capacity, &message), ZIPCCL_OK);
        cr_assert_eq(message.flags, ZIPCCL_MESSAGE_OVERFLOW);
        cr_assert_eq(message.n, n);
        cr_assert_eq(message.nbytes, ZIPCCL_MESSAGE_HEADER_BYTES);
        cr_assert_eq(zipccl_decode(isa, ZIPCCL_BFLOAT16, dst, capacity, out, n, scratch),
                     ZIPCCL_ERR_OVERFLOW);
    }
    data_unguard(&room);
    free(src);
    free(out);
    free(scratch);
    free(expected);
}

static size_t exact_size(enum data_kind kind, size_t n)
{
    size_t capacity = zipccl_bound(ZIPCCL_BFLOAT16, n), nbytes = 0;
    uint16_t *src = malloc(2 * n + 2);
    uint8_t *wire = malloc(capacity);
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    struct data_random random = {31};
    data_fill(kind, &random, 0.4, src, n);
    cr_assert_eq(
        zipccl_encode(ZIPCCL_ISA_SCALAR, ZIPCCL_BFLOAT16, src, n, wire, capacity, scratch, &nbytes),
        ZIPCCL_OK);
    free(src);
    free(wire);
    free(scratch);
    return nbytes;
}

Test(codec_capacity, decides_at_the_exact_byte)
{
    static const size_t sizes[] = {1, 2000};
    for (int isa = 0; isa < ZIPCCL_NUM_ISAS; isa++) {
        if (!zipccl_isa_usable((enum zipccl_isa)isa))
            continue;
        for (int kind = 0; kind < DATA_NUM_KINDS; kind++) {
            for (size_t i = 0; i < 2; i++) {
                size_t exact = exact_size((enum data_kind)kind, sizes[i]);
                check_capacities((enum zipccl_isa)isa, (enum data_kind)kind, sizes[i], exact,
                                 ZIPCCL_MESSAGE_HEADER_BYTES,
                                 zipccl_bound(ZIPCCL_BFLOAT16, sizes[i]) + 70);
            }
            /* Several superblocks: the last ones are coded beside the message, near its end. */
            size_t exact = exact_size((enum data_kind)kind, 50001);
            check_capacities((enum zipccl_isa)isa, (enum data_kind)kind, 50001, exact, exact - 70,
                             exact + 70);
            check_capacities((enum zipccl_isa)isa, (enum data_kind)kind, 50001, exact,
                             exact + 12200, exact + 12360);
        }
    }
}

Test(codec_capacity, leaves_room_between_coded_and_raw_to_the_coded_size)
{
    /* A capacity that raw would not fit must not matter to a message that shrinks. */
    size_t exact = exact_size(DATA_GAUSS, 50001);
    cr_assert_lt(exact, 2 * 50001);
    for (size_t step = 0; step < 40; step++) {
        size_t capacity = exact + step * 997;
        check_capacities(zipccl_isa_best(), DATA_GAUSS, 50001, exact, capacity, capacity);
    }
    for (size_t capacity = 32; capacity < exact; capacity += 709)
        check_capacities(zipccl_isa_best(), DATA_GAUSS, 50001, exact, capacity, capacity);
}
