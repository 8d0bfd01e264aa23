/*
 * test_codec_parts.c - messages whose fixed region leaves while the rest is coded
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec.h"

#include "core/tests/codec_data.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 100003 };

static const size_t sizes[] = {0, 1, 1000, 16384, 16385, 32769, MOST};

struct room {
    uint8_t *elements, *whole, *received;
    void *scratch;
    enum zipccl_effort effort;
};

static struct room room_open(void)
{
    size_t capacity = zipccl_bound(ZIPCCL_FLOAT32, MOST);
    return (struct room){malloc(4 * MOST), malloc(capacity), malloc(capacity),
                         aligned_alloc(64, zipccl_codec_scratch_bytes()), ZIPCCL_EFFORT_FAST};
}

static void room_close(struct room *room)
{
    free(room->elements);
    free(room->whole);
    free(room->received);
    free(room->scratch);
}

/* Move what is final of the fixed region in pieces that both ends can compute. */
static size_t move_pieces(const struct zipccl_encoder *e, const uint8_t *wire, size_t piece,
                          size_t moved, uint8_t *received)
{
    for (; e->first + (moved + 1) * piece <= e->final_end; moved++)
        memcpy(received + e->first + moved * piece, wire + e->first + moved * piece, piece);
    return moved;
}

/*
 * Encode in steps, moving pieces as they become final; then the rest.  What has arrived must be
 * the message that zipccl_encode() writes.  Returns the pieces that left early.
 */
static size_t check(struct room *room, enum zipccl_isa isa, enum zipccl_dtype dtype, size_t n,
                    size_t capacity)
{
    struct data_guarded wire = data_guard(capacity);
    size_t nwhole = 0, nbytes = 0, moved = 0, first, end;
    size_t piece = zipccl_early_superblock(dtype);
    zipccl_status right =
        zipccl_encode_effort(ZIPCCL_ISA_SCALAR, room->effort, dtype, room->elements, n, room->whole,
                             capacity, room->scratch, &nwhole);
    struct zipccl_encoder e;
    bool was_certain = false;
    zipccl_early_region(dtype, n, &first, &end);
    cr_assert_eq(zipccl_encode_begin(&e, isa, room->effort, dtype, room->elements, n, wire.bytes,
                                     capacity, room->scratch),
                 ZIPCCL_OK);
    cr_assert(e.first == 0 || e.first == first);
    memset(room->received, 0xee, nwhole);
    for (;;) {
        size_t before = e.final_end;
        bool more = zipccl_encode_step(&e);
        cr_assert(!was_certain || e.certain, "what is certain stays so");
        was_certain = e.certain;
        if (!more)
            break;
        cr_assert_geq(e.final_end, before);
        cr_assert_leq(e.final_end, end);
        moved = move_pieces(&e, wire.bytes, piece, moved, room->received);
        memset(room->scratch, 0x77, zipccl_codec_scratch_bytes());
    }
    cr_assert_eq(zipccl_encode_finish(&e, &nbytes), right);
    cr_assert_eq(nbytes, nwhole);
    struct zipccl_message message;
    cr_assert_eq(zipccl_message_read(wire.bytes, nbytes, &message), ZIPCCL_OK);
    bool coded = !(message.flags & (ZIPCCL_MESSAGE_RAW | ZIPCCL_MESSAGE_OVERFLOW));
    cr_assert(coded || !was_certain, "certain, but not coded");
    if (!coded)
        moved = 0; /* the header says so; the body is sent in full */
    size_t early = moved ? first + moved * piece : nbytes;
    memcpy(room->received, wire.bytes, moved ? first : nbytes);
    memcpy(room->received + early, wire.bytes + early, nbytes - early);
    cr_assert(memcmp(room->received, room->whole, nbytes) == 0, "%zu %s", n,
              zipccl_dtype_name(dtype));
    data_unguard(&wire);
    return moved;
}

Test(codec_parts, are_the_whole_message)
{
    struct room room = room_open();
    struct data_random random = {81};
    for (int isa = 0; isa < ZIPCCL_NUM_ISAS; isa++)
        for (size_t t = 0; t < DATA_NUM_TYPES; t++)
            for (int kind = 0; kind < DATA_NUM_KINDS; kind++)
                for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
                    size_t n = sizes[s], bound = zipccl_bound(data_types[t], n);
                    if (!zipccl_isa_usable((enum zipccl_isa)isa))
                        continue;
                    data_fill_type(data_types[t], (enum data_kind)kind, &random, 0.3, room.elements,
                                   n);
                    check(&room, (enum zipccl_isa)isa, data_types[t], n, bound);
                    check(&room, (enum zipccl_isa)isa, data_types[t], n,
                          bound / 2 > 32 ? bound / 2 : 32);
                    check(&room, (enum zipccl_isa)isa, data_types[t], n,
                          bound - bound / 4 > 32 ? bound - bound / 4 : 32);
                }
    room_close(&room);
}

Test(codec_parts, are_the_whole_message_that_is_coded_for_ratio)
{
    struct room room = room_open();
    struct data_random random = {85};
    room.effort = ZIPCCL_EFFORT_RATIO;
    for (size_t t = 0; t < DATA_NUM_TYPES; t++)
        for (int kind = 0; kind < DATA_NUM_KINDS; kind++) {
            size_t bound = zipccl_bound(data_types[t], MOST);
            data_fill_type(data_types[t], (enum data_kind)kind, &random, 0.3, room.elements, MOST);
            check(&room, zipccl_isa_best(), data_types[t], MOST, bound);
            check(&room, zipccl_isa_best(), data_types[t], MOST, bound - bound / 4);
        }
    room_close(&room);
}

Test(codec_parts, leave_early_for_gaussians)
{
    struct room room = room_open();
    struct data_random random = {82};
    data_fill_type(ZIPCCL_BFLOAT16, DATA_GAUSS, &random, 0.5, room.elements, MOST);
    /* Six full superblocks; the short one after them is no full piece. */
    cr_assert_eq(
        check(&room, zipccl_isa_best(), ZIPCCL_BFLOAT16, MOST, zipccl_bound(ZIPCCL_BFLOAT16, MOST)),
        6);
    room_close(&room);
}

Test(codec_parts, are_certain_once_enough_is_saved)
{
    struct room room = room_open();
    struct data_random random = {83};
    struct zipccl_encoder e;
    size_t bound = zipccl_bound(ZIPCCL_BFLOAT16, MOST);
    data_fill_type(ZIPCCL_BFLOAT16, DATA_GAUSS, &random, 0.5, room.elements, MOST);
    zipccl_encode_begin(&e, zipccl_isa_best(), ZIPCCL_EFFORT_FAST, ZIPCCL_BFLOAT16, room.elements,
                        MOST, room.whole, bound, room.scratch);
    cr_assert_not(e.certain);
    cr_assert(zipccl_encode_step(&e));
    cr_assert(e.certain, "one superblock in three pays for all that may be raw");
    /* Three quarters of the room: what remains may not fit until the end is near. */
    zipccl_encode_begin(&e, zipccl_isa_best(), ZIPCCL_EFFORT_FAST, ZIPCCL_BFLOAT16, room.elements,
                        MOST, room.whole, bound - bound / 4, room.scratch);
    cr_assert(zipccl_encode_step(&e));
    cr_assert_not(e.certain);
    while (zipccl_encode_step(&e))
        ;
    cr_assert(e.certain);
    room_close(&room);
}

Test(codec_parts, of_what_is_not_coded_are_none)
{
    struct room room = room_open();
    struct data_random random = {84};
    struct zipccl_encoder e;
    size_t first = 7, end = 7;
    zipccl_early_region(ZIPCCL_INT32, MOST, &first, &end);
    cr_assert(first == 0 && end == 0 && zipccl_early_superblock(ZIPCCL_INT32) == 0);
    zipccl_early_region(ZIPCCL_BFLOAT16, 0, &first, &end);
    cr_assert(first == 0 && end == 0);
    data_fill_type(ZIPCCL_BFLOAT16, DATA_BITS, &random, 0, room.elements, MOST);
    zipccl_encode_begin(&e, zipccl_isa_best(), ZIPCCL_EFFORT_FAST, ZIPCCL_BFLOAT16, room.elements,
                        MOST, room.whole, zipccl_bound(ZIPCCL_BFLOAT16, MOST), room.scratch);
    /* The first superblock being raw, all are looked at: the message will be RAW. */
    cr_assert(!zipccl_encode_step(&e) && !e.certain);
    cr_assert_eq(zipccl_encode_begin(&e, zipccl_isa_best(), ZIPCCL_EFFORT_FAST, ZIPCCL_BFLOAT16,
                                     room.elements, 4, room.whole, 31, room.scratch),
                 ZIPCCL_ERR_ARG);
    cr_assert_eq(zipccl_encode_begin(&e, ZIPCCL_NUM_ISAS, ZIPCCL_EFFORT_FAST, ZIPCCL_BFLOAT16,
                                     room.elements, 4, room.whole, 100, room.scratch),
                 ZIPCCL_ERR_ARG);
    room_close(&room);
}
