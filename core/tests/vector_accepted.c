/*
 * vector_accepted.c - test vectors that are valid although the reference encoder writes others
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec.h"

#include "core/tests/codec_data.h"
#include "core/tests/vector_odd.h"
#include "core/tests/vector_set.h"
#include "core/wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Elements that the messages share; each set is written once, as the first that has it. */
enum elements { GAUSS, SPARSE, TWO_EXPONENTS, FP16, FP16_SHORT, FP32_SHORT, E4M3, E5M2 };

enum { N = 700 };

struct accepted {
    const char *name;
    enum elements elements;
    struct odd odd;
    const char *about;
};

#define BF16                       ZIPCCL_BFLOAT16
#define CHOICE(type, id, distance) .dtype = (type), .program = (id), .base = (distance)
#define CODED(type, id, distance)                                                                  \
    {                                                                                              \
        CHOICE(type, id, distance)                                                                 \
    }

/* Bases stand here as distances from the most common exponent. */
static const struct accepted accepted[] = {
    {"program_1",
     GAUSS,
     {CHOICE(BF16, 1, 1), .store = 45},
     "program 1; some stored d are listed by tiers"},
    {"program_2",
     GAUSS,
     {CHOICE(BF16, 2, 1), .store = 45},
     "program 2; some stored d are listed by tiers"},
    {"program_3",
     GAUSS,
     {CHOICE(BF16, 3, 1), .store = 45},
     "program 3; some stored d are listed by tiers"},
    {"program_4",
     GAUSS,
     {CHOICE(BF16, 4, 0), .store = 45},
     "program 4; some stored d are listed by tiers"},
    {"program_5",
     GAUSS,
     {CHOICE(BF16, 5, 0), .store = 45},
     "program 5; some stored d are listed by tiers"},
    {"program_6",
     GAUSS,
     {CHOICE(BF16, 6, 1), .store = 45},
     "program 6; some stored d are listed by tiers"},
    {"program_7",
     GAUSS,
     {CHOICE(BF16, 7, 0), .store = 45},
     "program 7; some stored d are listed by tiers"},
    {"other_base", GAUSS, CODED(BF16, 6, 3), "a base that serves badly"},
    {"gaps",
     GAUSS,
     {CHOICE(BF16, 6, 1), .fill = 0xff},
     "gaps and bits beyond the elements are not 0, and not looked at"},
    {"exponent_wraps", TWO_EXPONENTS, CODED(BF16, 5, 2),
     "base less d passes 0: exponents 255 and 254 at base 1"},
    {"bitmap", SPARSE, {CHOICE(BF16, 1, 1), .bitmap = true}, "a bitmap, then program 1"},
    {"bitmap_gaps",
     SPARSE,
     {CHOICE(BF16, 6, 1), .bitmap = true, .fill = 0xff},
     "bits of the bitmap beyond groups and elements are not 0, and not looked at"},
    {"bitmap_empty_group",
     SPARSE,
     {CHOICE(BF16, 1, 1), .bitmap = true, .all_groups = true},
     "the bitmap shows groups that have no bit set"},
    {"bitmap_some_zeros",
     SPARSE,
     {CHOICE(BF16, 1, 1), .bitmap = true, .keep_zeros = true},
     "the bitmap leaves some zeros among the rest"},
    {"bitmap_raw",
     SPARSE,
     {CHOICE(BF16, 0, 0), .bitmap = true, .fill = 0xff},
     "a bitmap, then raw"},
    {"fp16_planes", FP16, CODED(ZIPCCL_FLOAT16, 1, 1), "three bit-planes"},
    {"fp16_wide_base",
     FP16,
     {CHOICE(ZIPCCL_FLOAT16, 2, 1 + 96), .store = 50},
     "exponents wider than their field are cut to it"},
    {"fp16_empty_planes",
     FP16_SHORT,
     {CHOICE(ZIPCCL_FLOAT16, 1, 1), .planes = 5, .fill = 0xff},
     "planes 0 and 2 are there, and all 0; gaps are not 0"},
    {"fp32_second_plane", FP32_SHORT, CODED(ZIPCCL_FLOAT32, 1, 1), "byte-plane 1 alone"},
    {"fp32_empty_plane",
     FP32_SHORT,
     {CHOICE(ZIPCCL_FLOAT32, 7, 0), .planes = 1, .fill = 0xff},
     "byte-plane 0 is there, and all 0; gaps are not 0"},
    {"e4m3_planes", E4M3, CODED(ZIPCCL_FLOAT8_E4M3, 7, 0), "program 7"},
    {"e4m3_wide_base",
     E4M3,
     {CHOICE(ZIPCCL_FLOAT8_E4M3, 1, 1 + 128), .fill = 0xff, .store = 100},
     "a wide base, stored bytes, gaps that are not 0"},
    {"e5m2_gaps", E5M2, {CHOICE(ZIPCCL_FLOAT8_E5M2, 6, 1), .fill = 0xff}, "gaps that are not 0"},
};

/* The most common exponent of elements [N] that are not 0, from 'shift' on. */
static uint8_t peak(const uint32_t *elements, size_t size, int shift, unsigned mask)
{
    unsigned counts[256] = {0}, best = 0;
    for (size_t i = 0; i < N; i++) {
        uint32_t x = 0;
        memcpy(&x, (const uint8_t *)elements + size * i, size);
        if (x != 0)
            counts[x >> shift & mask]++;
    }
    for (unsigned e = 1; e < 256; e++)
        best = counts[e] > counts[best] ? e : best;
    return (uint8_t)best;
}

static uint8_t peak_of(enum zipccl_dtype dtype, const uint32_t *elements)
{
    switch (dtype) {
    case ZIPCCL_FLOAT16: return peak(elements, 2, 10, 31);
    case ZIPCCL_FLOAT32: return peak(elements, 4, 23, 255);
    case ZIPCCL_FLOAT8_E4M3: return peak(elements, 1, 3, 15);
    case ZIPCCL_FLOAT8_E5M2: return peak(elements, 1, 2, 31);
    default: return peak(elements, 2, 7, 255);
    }
}

static void fill(enum elements which, enum zipccl_dtype dtype, uint32_t *to)
{
    struct data_random random = {7000 + which};
    uint8_t *bytes = (uint8_t *)to;
    uint16_t *half = (uint16_t *)to;
    if (which == GAUSS || which == SPARSE)
        data_gauss(&random, half, N, 1.0);
    else
        data_fill_type(dtype, DATA_GAUSS, &random, 0.3, to, N);
    for (size_t i = 0; i < N; i++) {
        if (which == SPARSE && (i / 64 % 2 == 0 || i % 3 == 0))
            half[i] = 0;
        if (which == TWO_EXPONENTS)
            half[i] = (uint16_t)((half[i] & 0x807f) | (i % 3 ? 0x7f80 : 0x7f00));
        if (which == FP16_SHORT)
            half[i] &= (uint16_t)~5u;
        if (which == FP32_SHORT)
            bytes[4 * i] = 0;
    }
}

static void add_one(struct vector_set *set, const struct accepted *a, const char *first,
                    void *scratch)
{
    static uint32_t elements[N];
    static uint8_t wire[64 + 16 * N + 1024], out[4 * N];
    memset(elements, 0, sizeof elements);
    fill(a->elements, a->odd.dtype, elements);
    struct odd odd = a->odd;
    char name[64];
    snprintf(name, sizeof name, "accepted/%s", a->name);
    if (odd.program != 0)
        odd.base = (uint8_t)(odd.base + peak_of(odd.dtype, elements));
    size_t nbytes = odd_message(&odd, elements, N, wire);
    /* What the codec does not read back is a fault here or there. */
    if (zipccl_decode(ZIPCCL_ISA_SCALAR, a->odd.dtype, wire, nbytes, out, N, scratch) !=
            ZIPCCL_OK ||
        memcmp(out, elements, N * zipccl_dtype_size(a->odd.dtype)) != 0) {
        fprintf(stderr, "make_vectors: the codec does not read %s\n", a->name);
        exit(1);
    }
    if (first)
        set_add_same(set, name, first, wire, nbytes, a->about);
    else
        set_add(set, name, a->odd.dtype, elements, N, wire, nbytes, a->about);
}

/* Messages of every type that are the elements as they are. */
static void add_raw(struct vector_set *set)
{
    static const uint8_t elements[16] = {1, 2, 3, 250, 5, 6, 0, 8, 9, 10, 0, 0x80, 0xff, 14, 15, 0};
    uint8_t wire[ZIPCCL_MESSAGE_HEADER_BYTES + sizeof elements];
    char name[64];
    memcpy(wire + ZIPCCL_MESSAGE_HEADER_BYTES, elements, sizeof elements);
    for (int dtype = 0; dtype < ZIPCCL_NUM_DTYPES; dtype++) {
        size_t n = sizeof elements / zipccl_dtype_size((enum zipccl_dtype)dtype);
        snprintf(name, sizeof name, "accepted/raw_%s", zipccl_dtype_name((enum zipccl_dtype)dtype));
        zipccl_message_write_header(wire, (enum zipccl_dtype)dtype, ZIPCCL_MESSAGE_RAW, n,
                                    sizeof wire);
        set_add(set, name, (enum zipccl_dtype)dtype, elements, n, wire, sizeof wire,
                "the elements as they are");
    }
}

void add_odd_vectors(struct vector_set *set)
{
    const char *first[E5M2 + 1] = {NULL}; /* vector with these elements */
    void *scratch = aligned_alloc(64, zipccl_codec_scratch_bytes());
    if (!scratch)
        exit(1);
    for (size_t i = 0; i < sizeof accepted / sizeof accepted[0]; i++) {
        add_one(set, &accepted[i], first[accepted[i].elements], scratch);
        if (!first[accepted[i].elements])
            first[accepted[i].elements] = set->vectors[set->count - 1].name;
    }
    free(scratch);
    add_raw(set);

    const struct vector *v = set_find(set, "accepted/program_1");
    uint8_t *longer = calloc(v->nbytes + 100, 1);
    if (!longer)
        exit(1);
    memcpy(longer, v->wire, v->nbytes);
    memset(longer + v->nbytes, 0xa5, 100);
    set_add_same(set, "accepted/bytes_follow", v->name, longer, v->nbytes + 100,
                 "bytes after the message belong to none");
    zipccl_message_set_flags(longer, ZIPCCL_MESSAGE_ANY_OVERFLOW);
    set_add_same(set, "accepted/any_overflow", v->name, longer, v->nbytes,
                 "flag ANY_OVERFLOW changes nothing");
    free(longer);
}
