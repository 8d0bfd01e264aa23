/*
 * vector_refused.c - test vectors that break one rule of core/FORMAT.md each
 *
 * Made from valid ones; where a header is changed its check is put right, so that the rule itself
 * is what a decoder meets.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/layout.h"
#include "core/tests/codec_data.h"
#include "core/tests/vector_odd.h"
#include "core/tests/vector_set.h"
#include "core/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Offsets: the header, and the first directory entry. */
enum {
    VERSION = 4,
    DTYPE = 5,
    FLAGS = 6,
    COUNT = 8,
    BODY = 16,
    RESERVED = 24,
    CHECK = 28,
    ENTRY = 32,
    PLANES = ENTRY + 1,
    ESCAPES = ENTRY + 2,
    REST = ENTRY + 12,
    GROUPS = ENTRY + 14,
    BASE = ENTRY + 16
};

/* Put 'value' at a byte; 'nbytes' 0: nothing. */
struct change {
    uint8_t at, nbytes;
    uint64_t value;
};

struct refused {
    const char *name, *from;
    struct change change[3];
    int grow;   /* bytes by which body and header's nbody grow */
    int cut;    /* bytes missing at the end */
    bool stale; /* the header's check is left as it was */
    const char *about;
};

#define P1 "accepted/program_1"
#define P5 "accepted/program_5"
#define PB "accepted/bitmap"
#define PR "accepted/bitmap_raw"
#define PH "accepted/fp16_planes"

static const struct refused refused[] = {
    {"no_bytes", P1, {{0}}, 0, -1, 0, "no byte at all"},
    {"short_header", "empty", {{0}}, 0, 1, 0, "31 bytes of a header"},
    {"magic", P1, {{0, 1, 'z'}}, 0, 0, 0, "another magic"},
    {"version_0", P1, {{VERSION, 1, 0}}, 0, 0, 0, "version 0"},
    {"version_1", P1, {{VERSION, 1, 1}}, 0, 0, 0, "version 1"},
    {"version_255", P1, {{VERSION, 1, 255}}, 0, 0, 0, "version 255"},
    {"dtype_12", "bits", {{DTYPE, 1, 12}}, 0, 0, 0, "no such dtype"},
    {"dtype_255", "empty", {{DTYPE, 1, 255}}, 0, 0, 0, "no such dtype"},
    {"flag_8", P1, {{FLAGS, 1, 8}}, 0, 0, 0, "an unknown flag"},
    {"flag_128", "bits", {{FLAGS, 1, 129}}, 0, 0, 0, "an unknown flag"},
    {"zero_7", P1, {{7, 1, 1}}, 0, 0, 0, "header byte 7 is not 0"},
    {"reserved_24", P1, {{RESERVED, 1, 1}}, 0, 0, 0, "header byte 24 is not 0"},
    {"reserved_27", "bits", {{RESERVED + 3, 1, 128}}, 0, 0, 0, "header byte 27 is not 0"},
    {"check", P1, {{CHECK, 1, 0x77}}, 0, 0, true, "another check"},
    {"check_n", "bits", {{COUNT, 1, 0}}, 0, 0, true, "n changed, the check not"},
    {"check_dtype", "bits", {{DTYPE, 1, 6}}, 0, 0, true, "dtype changed, the check not"},
    {"cut_1", P1, {{0}}, 0, 1, 0, "the last byte is missing"},
    {"cut_directory", P1, {{0}}, 0, -48, 0, "cut inside the directory"},
    {"cut_share", P1, {{0}}, 0, -300, 0, "cut inside the share"},
    {"cut_header", P1, {{0}}, 0, -32, 0, "a header alone"},
    {"cut_raw", "bits", {{0}}, 0, 2, 0, "an element of a raw body is missing"},
    {"body_huge", "bits", {{BODY, 8, UINT64_MAX}}, 0, 0, 0, "32 + nbody passes 2^64"},
    {"raw_short", "bits", {{0}}, -2, 0, 0, "a raw body of one element less"},
    {"raw_long", "bits", {{0}}, 2, 0, 0, "a raw body of one element more"},
    {"raw_odd", "bits", {{0}}, 1, 0, 0, "a raw body with half an element more"},
    {"raw_wraps", "bits", {{COUNT, 8, (1ull << 63) + 300}}, 0, 0, 0, "n * 2 passes 2^64"},
    {"raw_empty", "bits", {{COUNT, 8, 0}}, 0, 0, 0, "a raw body without elements"},
    {"raw_overflow", "bits", {{FLAGS, 1, 3}}, 0, 0, 0, "RAW and OVERFLOW"},
    {"overflow_raw_empty", "empty", {{FLAGS, 1, 3}}, 0, 0, 0, "RAW and OVERFLOW, no elements"},
    {"overflow_body", P1, {{FLAGS, 1, 2}}, 0, 0, 0, "OVERFLOW with a body"},
    {"coded_int64", P1, {{DTYPE, 1, 4}}, 0, 0, 0, "a coded message of int64"},
    {"coded_fp64", P1, {{DTYPE, 1, 8}}, 0, 0, 0, "a coded message of fp64"},
    {"coded_empty", "empty", {{FLAGS, 1, 0}}, 0, 0, 0, "a coded message without elements"},
    {"coded_n_0", P1, {{COUNT, 8, 0}}, 0, 0, 0, "a coded message of no elements"},
    {"coded_n_2_32", P1, {{COUNT, 8, 1ull << 32}}, 0, 0, 0, "a coded message of 2^32 elements"},
    {"coded_n_more", P1, {{COUNT, 8, 701}}, 0, 0, 0, "an element more than the entry says"},
    {"coded_n_less", P1, {{COUNT, 8, 699}}, 0, 0, 0, "an element less than the entry says"},
    {"coded_n_next", P1, {{COUNT, 8, 16384 + 700}}, 0, 0, 0, "two superblocks, one entry"},
    {"body_longer", P1, {{0}}, 1, 0, 0, "a byte of the body after the variable bytes"},
    {"body_64_longer", P1, {{0}}, 64, 0, 0, "64 bytes after the variable bytes"},
    {"body_shorter", P1, {{0}}, -1, 0, 0, "a variable byte is missing"},
    {"body_in_directory", P1, {{0}}, -500, 0, 0, "the body ends before the share does"},
    {"constant_longer", "constant", {{0}}, 1, 0, 0, "a byte after constants"},
    {"program_10", P1, {{ENTRY, 1, 10}}, 0, 0, 0, "no such program"},
    {"program_127", P1, {{ENTRY, 1, 127}}, 0, 0, 0, "no such program"},
    {"program_136", PB, {{ENTRY, 1, 136}}, 0, 0, 0, "a bitmap before a constant"},
    {"program_138", PB, {{ENTRY, 1, 138}}, 0, 0, 0, "no such program after a bitmap"},
    {"program_255", PB, {{ENTRY, 1, 255}}, 0, 0, 0, "no such program after a bitmap"},
    {"program_other", P1, {{ENTRY, 1, 6}}, 0, 0, 0, "a program of other sizes"},
    {"planes_bf16", P1, {{PLANES, 1, 1}}, 0, 0, 0, "a plane that bf16 does not have"},
    {"planes_fp16", PH, {{PLANES, 1, 15}}, 0, 0, 0, "a plane that fp16 does not have"},
    {"planes_fp32",
     "accepted/fp32_second_plane",
     {{PLANES, 1, 6}},
     0,
     0,
     0,
     "a plane that fp32 does not have"},
    {"planes_e4m3",
     "accepted/e4m3_planes",
     {{PLANES, 1, 0x8f}},
     0,
     0,
     0,
     "a plane that e4m3 does not have"},
    {"planes_less", PH, {{PLANES, 1, 3}}, 0, 0, 0, "a plane is there, the entry lacks it"},
    {"escapes_1", P1, {{ESCAPES, 2, 701}}, 0, 0, 0, "more escapes than elements"},
    {"escapes_grow", P1, {{ESCAPES + 2, 2, 700}}, 0, 0, 0, "more escapes than reach the tier"},
    {"escapes_last",
     P1,
     {{ESCAPES + 8, 2, 65535}},
     0,
     0,
     0,
     "more escapes than reach the last tier"},
    {"escapes_beyond", P5, {{ESCAPES + 8, 2, 1}}, 0, 0, 0, "escapes beyond the last of 4 tiers"},
    {"escapes_beyond_3",
     "accepted/program_6",
     {{ESCAPES + 6, 2, 1}},
     0,
     0,
     0,
     "escapes beyond the last of 3 tiers"},
    {"rest_less", P1, {{REST, 2, 699}}, 0, 0, 0, "rest is not m, without a bitmap"},
    {"rest_0", P1, {{REST, 2, 0}}, 0, 0, 0, "rest is 0, without a bitmap"},
    {"groups_alone", P1, {{GROUPS, 2, 1}}, 0, 0, 0, "groups without a bitmap"},
    {"base_beyond", P1, {{BASE + 1, 1, 1}}, 0, 0, 0, "a base beyond the last sub-block"},
    {"base_last", P1, {{BASE + 15, 1, 128}}, 0, 0, 0, "a base beyond the last sub-block"},
    {"raw_planes", PR, {{PLANES, 1, 1}}, 0, 0, 0, "planes of a raw superblock"},
    {"raw_escapes", PR, {{ESCAPES, 2, 1}}, 0, 0, 0, "escapes of a raw superblock"},
    {"raw_escapes_5", PR, {{ESCAPES + 8, 2, 1}}, 0, 0, 0, "escapes of a raw superblock"},
    {"raw_base", PR, {{BASE, 1, 1}}, 0, 0, 0, "a base of a raw superblock"},
    {"raw_base_15", PR, {{BASE + 15, 1, 1}}, 0, 0, 0, "a base of a raw superblock"},
    {"raw_rest", PR, {{REST, 2, 1}}, 0, 0, 0, "rest is not what the bitmap shows"},
    {"constant_planes", "constant", {{PLANES, 1, 1}}, 0, 0, 0, "planes of a constant"},
    {"constant_escapes", "constant", {{ESCAPES, 2, 1}}, 0, 0, 0, "escapes of a constant"},
    {"constant_rest", "constant", {{REST, 2, 16384}}, 0, 0, 0, "rest of a constant"},
    {"constant_groups", "constant", {{GROUPS, 2, 1}}, 0, 0, 0, "groups of a constant"},
    {"constant_base",
     "constant",
     {{BASE + 2, 1, 1}},
     0,
     0,
     0,
     "more than one element of a constant"},
    {"constant_base_15",
     "constant",
     {{BASE + 15, 1, 1}},
     0,
     0,
     0,
     "more than one element of a constant"},
    {"bitmap_groups_0", PB, {{GROUPS, 2, 0}}, 0, 0, 0, "a bitmap that shows no groups"},
    {"bitmap_groups_12", PB, {{GROUPS, 2, 12}}, 0, 0, 0, "more groups than there are"},
    {"bitmap_rest_more", PB, {{REST, 2, 701}}, 0, 0, 0, "more rest than elements"},
};

static uint8_t *duplicate(const uint8_t *bytes, size_t nbytes)
{
    uint8_t *to = calloc(nbytes + 1, 1);
    if (!to)
        exit(1);
    memcpy(to, bytes, nbytes);
    return to;
}

static void save(struct vector_set *set, const char *name, const uint8_t *wire, size_t nbytes,
                 const char *about)
{
    char path[80];
    snprintf(path, sizeof path, "refused/%s", name);
    set_add_refused(set, path, VERDICT_CORRUPT, wire, nbytes, about);
}

static void add_change(struct vector_set *set, const struct refused *r)
{
    const struct vector *v = set_find(set, r->from);
    size_t nbytes = (size_t)((long)v->nbytes + r->grow);
    uint8_t *wire = calloc(v->nbytes + 128, 1);
    if (!wire)
        exit(1);
    memcpy(wire, v->wire, v->nbytes);
    zipccl_put_u64(wire + BODY, nbytes - ZIPCCL_MESSAGE_HEADER_BYTES);
    for (int k = 0; k < 3; k++)
        for (int i = 0; i < r->change[k].nbytes; i++)
            wire[r->change[k].at + i] = (uint8_t)(r->change[k].value >> 8 * i);
    if (!r->stale)
        zipccl_message_set_flags(wire, 0);
    /* A negative cut is where the bytes end; -1 means that there are none. */
    size_t end = r->cut == -1 ? 0 : r->cut < 0 ? (size_t)-r->cut : nbytes - (size_t)r->cut;
    save(set, r->name, wire, end, r->about);
    free(wire);
}

/* Where the variable bytes of a message of one superblock start. */
static size_t variable_at(const struct vector *v, struct zipccl_entry *entry)
{
    size_t nshare, nvariable;
    const struct zipccl_fields *fields = zipccl_fields_of(v->dtype);
    if (zipccl_entry_read(fields, v->wire + ENTRY, v->n, entry, &nshare, &nvariable) != ZIPCCL_OK)
        exit(1);
    return 64 + nshare;
}

/* The bits of the code of element 'i' of a tier: where each lies, in bits from 'wire'. */
static void locate(const struct vector *v, int t, size_t i, size_t at[3])
{
    struct zipccl_entry entry;
    size_t variable = variable_at(v, &entry);
    const struct zipccl_tier *tier = zipccl_programs[entry.program].tier;
    size_t groups = zipccl_groups(v->n), nwords = tier[0].width == 1 ? 1 : 2;
    if (t == 0) {
        size_t words = 64 + zipccl_align16(v->n);
        for (size_t b = 0; b < 3; b++)
            at[b] = b < 2 ? 8 * (words + 8 * (nwords * (i / 64) + b)) + i % 64 : 8 * variable + i;
        return;
    }
    size_t byte = variable + (tier[0].width == 3 ? 8 * groups : 0);
    for (int k = 1; k < t; k++)
        byte += zipccl_plane_bytes(entry.escapes[k - 1], tier[k].width);
    size_t first = i / 64 * 64, left = entry.escapes[t - 1] - first, g = left < 64 ? left : 64;
    byte += tier[t].width * first / 8;
    for (size_t b = 0; b < 3; b++)
        at[b] = 8 * (byte + b * ((g + 7) / 8)) + i % 64;
}

static unsigned bit_at(const uint8_t *p, size_t i)
{
    return p[i / 8] >> i % 8 & 1u;
}

/* Make one code of tier 't' (from 0) an escape that is none, or the other way round. */
static void add_count(struct vector_set *set, int program, int t, bool more)
{
    static char abouts[32][80];
    static size_t used;
    char from[64], name[64];
    snprintf(from, sizeof from, "accepted/program_%d", program);
    snprintf(name, sizeof name, "program_%d_tier_%d_%s", program, t + 1, more ? "more" : "fewer");
    const struct vector *v = set_find(set, from);
    struct zipccl_entry entry;
    variable_at(v, &entry);
    int width = zipccl_programs[program].tier[t].width;
    uint8_t *wire = duplicate(v->wire, v->nbytes);
    for (size_t i = 0; i < (t == 0 ? v->n : entry.escapes[t - 1]); i++) {
        size_t at[3];
        bool escapes = true;
        locate(v, t, i, at);
        for (int b = 0; b < width; b++)
            escapes = escapes && bit_at(wire, at[b]);
        if (escapes == more)
            continue;
        for (int b = 0; b < width; b++)
            if (more || b == 0)
                wire[at[b] / 8] =
                    (uint8_t)((wire[at[b] / 8] & ~(1u << at[b] % 8)) | (unsigned)more << at[b] % 8);
        snprintf(abouts[used], sizeof abouts[0], "one escape code %s in tier %d of program %d",
                 more ? "more" : "fewer", t + 1, program);
        save(set, name, wire, v->nbytes, abouts[used++]);
        free(wire);
        return;
    }
    fprintf(stderr, "make_vectors: %s: no code to change\n", name);
    exit(1);
}

static void add_bitmaps(struct vector_set *set)
{
    static const struct {
        const char *name, *about;
        size_t byte; /* of the bitmap; from 16 on in the words */
        uint8_t change;
    } cases[] = {
        {"bitmap_shows_less", "the bitmap shows a group less than the entry says", 0, 0x02},
        {"bitmap_shows_more", "the bitmap shows a group more than the entry says", 0, 0x01},
        {"bitmap_word_more", "an element more in a word of the bitmap", 8, 0x01},
        {"bitmap_word_less", "an element less in a word of the bitmap", 8, 0x01},
    };
    const struct vector *v = set_find(set, "accepted/bitmap_empty_group");
    struct zipccl_entry entry;
    size_t variable = variable_at(v, &entry);
    /* Group 10, the last, is empty. */
    uint8_t *last = duplicate(v->wire, v->nbytes);
    last[variable + 1] ^= 0x04;
    save(set, "bitmap_last_group", last, v->nbytes,
         "the bitmap shows a group less than the entry says, one without elements");
    free(last);
    v = set_find(set, PB);
    variable = variable_at(v, &entry);
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        uint8_t *wire = duplicate(v->wire, v->nbytes), *byte = wire + variable + cases[k].byte;
        /* In a word, the first bit that is clear, or the first that is set. */
        uint8_t change = cases[k].change;
        while (k >= 2 && (*byte & change ? 1 : 0) != (k == 3))
            change = (uint8_t)(change << 1);
        *byte ^= change;
        save(set, cases[k].name, wire, v->nbytes, cases[k].about);
        free(wire);
    }
}

/* Messages put together by hand: entries, and zeros, behind a header with the right check. */
static void add_made(struct vector_set *set, const char *name, enum zipccl_dtype dtype, size_t n,
                     const uint8_t *entries, size_t nentries, size_t nbytes, const char *about)
{
    uint8_t wire[1024] = {0};
    zipccl_message_write_header(wire, dtype, 0, n, ZIPCCL_MESSAGE_HEADER_BYTES);
    zipccl_put_u64(wire + BODY, nbytes - ZIPCCL_MESSAGE_HEADER_BYTES);
    zipccl_message_set_flags(wire, 0);
    memcpy(wire + ENTRY, entries, 32 * nentries);
    save(set, name, wire, nbytes, about);
}

static void add_by_hand(struct vector_set *set)
{
    /* Byte 0 is the program, 1 the planes, 12 the rest, 14 the groups, 16 the base. */
    static const uint8_t sixteen[32] = {[0] = 1, [12] = 16, [16] = 127};
    static const uint8_t sixty_four[32] = {[0] = 1, [12] = 64, [16] = 127};
    static const uint8_t second[64] = {
        [0] = 8, [16] = 0x80, [17] = 0x3f, [32] = 1, [44] = 16, [48] = 127};
    static const uint8_t no_rest[32] = {[0] = 128, [14] = 1};
    static const uint8_t no_groups[32] = {[0] = 128};
    static const uint8_t one_plane[32] = {[0] = 1, [1] = 1, [13] = 2, [16] = 127};
    static const uint8_t four_planes[32] = {[0] = 1, [1] = 15, [13] = 2, [16] = 15};
    static const uint8_t five_planes[32] = {[0] = 1, [1] = 31, [13] = 2, [16] = 7};
    enum zipccl_dtype bf16 = ZIPCCL_BFLOAT16;
    add_made(set, "coded_no_shorter", bf16, 64, sixty_four, 1, 64 + 128,
             "a coded message longer than raw, whose superblock is shorter");
    add_made(set, "superblock_alone", bf16, 16, sixteen, 1, 64 + 64,
             "a coded message and superblock longer than raw");
    add_made(set, "superblock_no_shorter", bf16, 16400, second, 2, 128 + 64,
             "a superblock that takes as much as raw and is not raw");
    add_made(set, "planes_bf16_there", bf16, 512, one_plane, 1, 64 + 704,
             "a plane that bf16 does not have, with its bytes");
    add_made(set, "planes_fp16_there", ZIPCCL_FLOAT16, 512, four_planes, 1, 64 + 896,
             "a plane that fp16 does not have, with its bytes");
    add_made(set, "planes_e4m3_there", ZIPCCL_FLOAT8_E4M3, 512, five_planes, 1, 64 + 448,
             "a plane that e4m3 does not have, with its bytes");
    add_made(set, "bitmap_rest_0", bf16, 1000, no_rest, 1, 64 + 16, "a bitmap that leaves nothing");
    add_made(set, "bitmap_nothing", bf16, 1000, no_groups, 1, 64 + 8,
             "a bitmap of no groups, no rest");
    uint8_t wire[ZIPCCL_MESSAGE_HEADER_BYTES];
    zipccl_message_write_header(wire, ZIPCCL_BFLOAT16, ZIPCCL_MESSAGE_OVERFLOW, 700, sizeof wire);
    set_add_refused(set, "refused/overflow", VERDICT_OVERFLOW, wire, sizeof wire,
                    "OVERFLOW: valid, but without elements");
}

void add_refused_vectors(struct vector_set *set)
{
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        add_change(set, &refused[i]);
    for (int more = 0; more < 2; more++) {
        for (int t = 0; t < 5; t++)
            add_count(set, 1, t, more);
        for (int t = 0; t < 3; t++)
            add_count(set, 6, t, more);
        for (int t = 0; t < 2; t++)
            add_count(set, 7, t, more);
    }
    add_bitmaps(set);
    add_by_hand(set);
}
