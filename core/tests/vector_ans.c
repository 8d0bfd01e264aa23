/*
 * vector_ans.c - test vectors of program 9 that no encoder of ours writes, and broken ones
 *
 * Few elements, one for each of some states, whose states are picked so that decoding them takes
 * no byte of a stream: such a message needs no encoder.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec.h"

#include "core/tests/vector_set.h"
#include "core/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEW = 60, LANES = 64, STATES = 64, FEW_BYTES = STATES + 2 * LANES, ROOM = 512 };

/* Table 0 0 of core/FORMAT.md: where some symbols start, and a high byte that keeps states in range. */
static const struct {
    uint8_t first, count, high;
} slots[] = {{40, 49, 6}, {89, 33, 8}, {122, 33, 8}, {155, 30, 9}};

/* fp32 without planes: the low bytes are all in the states, the share is empty. */
static void fill_few(uint8_t *wire)
{
    memset(wire, 0, ROOM);
    zipccl_message_write_header(wire, ZIPCCL_FLOAT32, 0, FEW, FEW_BYTES);
    wire[32] = 9;
    wire[32 + 8] = 130; /* the lowest top; shape 0 */
    wire[32 + 12] = FEW;
    for (int l = 0; l < LANES; l++) {
        size_t k = (size_t)l % 4;
        bool used = l < FEW;
        wire[STATES + l] = (uint8_t)(used ? slots[k].first + 7 * l % slots[k].count : 0xa0 + l);
        wire[STATES + LANES + l] = used ? slots[k].high : 1;
    }
}

static void add_few(struct vector_set *set)
{
    uint8_t wire[ROOM], elements[4 * FEW];
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    fill_few(wire);
    if (!scratch || zipccl_decode(ZIPCCL_ISA_SCALAR, ZIPCCL_FLOAT32, wire, FEW_BYTES, elements, FEW,
                                  scratch) != ZIPCCL_OK) {
        fprintf(stderr, "make_vectors: the codec does not read accepted/ans_few\n");
        exit(1);
    }
    set_add(set, "accepted/ans_few", ZIPCCL_FLOAT32, elements, FEW, wire, FEW_BYTES,
            "program 9 without a stream, with states that code nothing and end at any byte");
    free(scratch);
}

static void save(struct vector_set *set, const char *name, const uint8_t *wire, size_t nbytes,
                 const char *about)
{
    char path[80];
    snprintf(path, sizeof path, "refused/ans_%s", name);
    set_add_refused(set, path, VERDICT_CORRUPT, wire, nbytes, about);
}

/* A byte put over one of the message above, and bytes (0) after it. */
static void add_broken_few(struct vector_set *set)
{
    static const struct {
        const char *name;
        uint8_t at, value;
        size_t more;
        const char *about;
    } cases[] = {
        {"shape_6", 41, 6, 0, "program 9: shape 6"},
        {"shape_255", 41, 255, 0, "program 9: shape 255"},
        {"base_beyond", 49, 1, 0, "program 9: a table beyond the last sub-block"},
        {"planes", 33, 4, 0, "program 9: a plane that fp32 does not have"},
        {"state_0", 128, 0, 0, "program 9: a state below 256"},
        {"unused_state_0", 191, 0, 0, "program 9: an unused state below 256"},
        {"last_state", 128, 12, 0, "program 9: a last state above 511"},
        {"unused_state", 191, 2, 0, "program 9: an unused state above 511"},
        {"stream_ends", 128, 2, 0, "program 9: a state needs a byte, there is none"},
        {"stream_left", 42, 1, 1, "program 9: a byte of the stream is not taken"},
        {"stream_long", 42, 61, 61, "program 9: a stream longer than the rest"},
        {"escapes_1", 34, 1, 2, "program 9: an escape that no symbol tells"},
        {"escapes_2", 36, 1, 3, "program 9: more escapes from a tier than reach it"},
        {"escapes_3", 38, 1, 1, "program 9: more escapes from a tier than reach it"},
        {"rest", 44, 59, 0, "program 9: rest is not m, without a bitmap"},
        {"groups", 46, 1, 0, "program 9: groups without a bitmap"},
        {"longer", 32, 9, 1, "program 9: a byte after the far values"},
    };
    uint8_t wire[ROOM];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t nbytes = FEW_BYTES + cases[i].more;
        fill_few(wire);
        memset(wire + FEW_BYTES, 0, cases[i].more);
        wire[cases[i].at] = cases[i].value;
        zipccl_put_u64(wire + 16, nbytes - ZIPCCL_MESSAGE_HEADER_BYTES);
        zipccl_message_set_flags(wire, 0);
        save(set, cases[i].name, wire, nbytes, cases[i].about);
    }
    /* A constant superblock, then 32 elements that take as much as raw: nothing but states. */
    fill_few(wire);
    memmove(wire + 128, wire + STATES, 2 * LANES);
    memmove(wire + 64, wire + 32, 32);
    memset(wire + 32, 0, 32);
    memset(wire + 96, 0, 32);
    wire[32] = 8;
    wire[64 + 12] = 32;
    zipccl_put_u64(wire + 8, 16384 + 32);
    zipccl_put_u64(wire + 16, 256 - ZIPCCL_MESSAGE_HEADER_BYTES);
    memset(wire + 128 + 64 + 32, 1, 32); /* the states that code nothing now */
    zipccl_message_set_flags(wire, 0);
    save(set, "no_shorter", wire, 256, "program 9: a superblock that takes as much as raw");
}

/* Change the codes of far values of an encoded message: those of the first tier, then the second. */
static void add_broken_far(struct vector_set *set)
{
    const struct vector *v = set_find(set, "ratio_1500");
    const uint8_t *entry = v->wire + ZIPCCL_MESSAGE_HEADER_BYTES;
    size_t c1 = zipccl_get_u16(entry + 2), c2 = zipccl_get_u16(entry + 4);
    size_t c3 = zipccl_get_u16(entry + 6), nplane = (c1 + 7) / 8;
    size_t second = v->nbytes - c3 - 3 * ((c2 + 7) / 8), first = second - 2 * nplane;
    uint8_t *wire = malloc(v->nbytes);
    if (!wire || entry[0] != 9 || c1 > 64 || c2 == 0 || c2 == c1) {
        fprintf(stderr, "make_vectors: ratio_1500 is not what vector_ans.c expects\n");
        exit(1);
    }
    for (int more = 0; more < 2; more++) {
        memcpy(wire, v->wire, v->nbytes);
        size_t i = 0;
        while (((wire[first + i / 8] & wire[first + nplane + i / 8]) >> i % 8 & 1) == more)
            i++;
        wire[first + i / 8] = (uint8_t)((wire[first + i / 8] & ~(1 << i % 8)) | more << i % 8);
        wire[first + nplane + i / 8] = (uint8_t)(wire[first + nplane + i / 8] | 1 << i % 8);
        save(set, more ? "far_more" : "far_fewer", wire, v->nbytes,
             more ? "program 9: an escape code more in the first tier of far values"
                  : "program 9: an escape code fewer in the first tier of far values");
    }
    memcpy(wire, v->wire, v->nbytes);
    for (size_t b = 0; b < 3; b++)
        wire[second + b * ((c2 + 7) / 8)] |= 1;
    save(set, "far_second", wire, v->nbytes,
         "program 9: an escape code more in the second tier of far values");
    free(wire);
}

void add_ans_vectors(struct vector_set *set)
{
    add_few(set);
    add_broken_few(set);
    add_broken_far(set);
    /* The last plane of e4m3 is coded with the exponent: it cannot be there. */
    const struct vector *v = set_find(set, "ratio_e4m3");
    uint8_t *wire = malloc(v->nbytes);
    if (!wire)
        exit(1);
    memcpy(wire, v->wire, v->nbytes);
    wire[33] = 15;
    save(set, "planes_e4m3", wire, v->nbytes, "program 9: the plane that is in the symbols");
    free(wire);
}
