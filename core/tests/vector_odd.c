/*
 * vector_odd.c - valid messages that the reference encoder would not write
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/vector_odd.h"

#include "core/codec/layout.h"
#include "core/wire.h"

#include <string.h>

/* An element, taken apart. */
struct parts {
    uint8_t exponent, low;
    uint8_t plane[ZIPCCL_MAX_PLANES];
};

/* A message being written. */
struct writer {
    const struct odd *odd;
    const struct zipccl_fields *fields;
    struct zipccl_entry entry;
    size_t n, nrest;
    struct parts rest[ZIPCCL_SUPERBLOCK];
    const uint8_t *raw[ZIPCCL_SUPERBLOCK]; /* the elements of the rest as they are */
    uint64_t words[ZIPCCL_SUPERBLOCK / 64];
    uint8_t code[ZIPCCL_MAX_TIERS][ZIPCCL_SUPERBLOCK]; /* of those that reach the tier */
    size_t reach[ZIPCCL_MAX_TIERS + 1];
    uint8_t stored[ZIPCCL_SUPERBLOCK];
};

static struct parts take_apart(enum zipccl_split split, uint32_t x)
{
    uint8_t bit[4] = {x & 1, x >> 1 & 1, x >> 2 & 1, x >> 7 & 1};
    switch (split) {
    case ZIPCCL_SPLIT_FP16:
        return (struct parts){
            x >> 10 & 31, (uint8_t)((x >> 3 & 127) << 1 | x >> 15), {bit[0], bit[1], bit[2]}};
    case ZIPCCL_SPLIT_FP32:
        return (struct parts){(uint8_t)(x >> 23),
                              (uint8_t)((x >> 16 & 127) << 1 | x >> 31),
                              {(uint8_t)x, (uint8_t)(x >> 8)}};
    case ZIPCCL_SPLIT_E4M3: return (struct parts){x >> 3 & 15, 0, {bit[3], bit[0], bit[1], bit[2]}};
    case ZIPCCL_SPLIT_E5M2: return (struct parts){x >> 2 & 31, 0, {bit[3], bit[0], bit[1]}};
    default: return (struct parts){(uint8_t)(x >> 7), (uint8_t)(x << 1 | x >> 15), {0}};
    }
}

static uint32_t load(const uint8_t *p, size_t size)
{
    uint32_t x = 0;
    for (size_t i = 0; i < size; i++)
        x |= (uint32_t)p[i] << 8 * i;
    return x;
}

static void put_bit(uint8_t *p, size_t i, unsigned bit)
{
    p[i / 8] = (uint8_t)((p[i / 8] & ~(1u << i % 8)) | (bit & 1u) << i % 8);
}

/* Which elements are coded, and the parts of those. */
static void take_rest(struct writer *w, const uint8_t *elements)
{
    size_t size = w->fields->size;
    for (size_t i = 0; i < w->n; i++) {
        uint32_t x = load(elements + i * size, size);
        if (w->odd->bitmap && x == 0 && !(w->odd->keep_zeros && i % 23 == 0))
            continue;
        w->words[i / 64] |= 1ull << i % 64;
        w->raw[w->nrest] = elements + i * size;
        w->rest[w->nrest++] = take_apart(w->fields->split, x);
    }
}

/* The first code of the tier that gives the exponent, which is cut to its field. */
static uint8_t find_code(const struct zipccl_tier *tier, uint8_t base, uint8_t exponent,
                         unsigned mask)
{
    uint8_t k = 0;
    for (; k < (1u << tier->width) - 1; k++)
        if ((((unsigned)base - (unsigned)tier->d[k]) & 255 & mask) == exponent)
            break;
    return k;
}

static void code_tiers(struct writer *w)
{
    const struct zipccl_tier_program *program = &zipccl_programs[w->odd->program];
    unsigned mask = (1u << w->fields->exponent_bits) - 1;
    for (size_t i = 0; i < w->nrest; i++) {
        bool store = w->odd->store > 0 && i % w->odd->store == 0;
        int t = 0;
        for (; t < program->ntiers; t++) {
            uint8_t escape = (uint8_t)((1u << program->tier[t].width) - 1);
            uint8_t k = store
                            ? escape
                            : find_code(&program->tier[t], w->odd->base, w->rest[i].exponent, mask);
            w->code[t][w->reach[t]++] = k;
            if (k != escape)
                break;
        }
        if (t == program->ntiers)
            w->stored[w->reach[t]++] = (uint8_t)(w->odd->base - w->rest[i].exponent);
    }
    for (int t = 0; t < program->ntiers; t++)
        w->entry.escapes[t] = (uint16_t)w->reach[t + 1];
    for (size_t k = 0; k < (w->nrest + ZIPCCL_SUBBLOCK - 1) / ZIPCCL_SUBBLOCK; k++)
        w->entry.base[k] = w->odd->base;
}

/* Write low bytes, planes and the first two bits of tier 1; returns the bytes. */
static size_t write_share(struct writer *w, uint8_t *p)
{
    size_t groups = zipccl_groups(w->nrest), at = zipccl_align16(w->fields->low_bytes * w->nrest);
    for (size_t i = 0; i < w->nrest && w->fields->low_bytes; i++)
        p[i] = w->rest[i].low;
    w->entry.planes = w->odd->planes;
    for (int k = 0; k < w->fields->nplanes; k++)
        for (size_t i = 0; i < w->nrest; i++)
            if (w->rest[i].plane[k])
                w->entry.planes |= (uint8_t)(1 << k);
    for (int k = 0; k < w->fields->nplanes; k++) {
        if (!(w->entry.planes >> k & 1))
            continue;
        for (size_t i = 0; i < w->nrest; i++)
            if (w->fields->byte_planes)
                p[at + i] = w->rest[i].plane[k];
            else
                put_bit(p + at, i, w->rest[i].plane[k]);
        at += w->fields->byte_planes ? zipccl_align16(w->nrest) : 8 * groups;
    }
    at = zipccl_align16(at);
    int nwords = zipccl_programs[w->odd->program].tier[0].width == 1 ? 1 : 2;
    for (size_t i = 0; i < w->nrest; i++)
        for (int b = 0; b < nwords; b++)
            put_bit(p + at + 8 * ((size_t)nwords * (i / 64) + (size_t)b), i % 64,
                    w->code[0][i] >> b);
    return zipccl_align64(at + 8 * (size_t)nwords * groups);
}

static size_t write_bitmap(struct writer *w, uint8_t *p)
{
    size_t groups = zipccl_groups(w->n), at = 8 * zipccl_groups(groups);
    w->entry.program |= ZIPCCL_PROGRAM_ZEROS;
    for (size_t g = 0; g < groups; g++) {
        bool shown = w->odd->all_groups || w->words[g] != 0;
        put_bit(p, g, shown);
        if (!shown)
            continue;
        for (size_t i = 0; i < 64 && 64 * g + i < w->n; i++)
            put_bit(p + at, i, w->words[g] >> i & 1);
        at += 8;
        w->entry.ngroups++;
    }
    return at;
}

/* Write the rest of tier 1, the deeper tiers and what is stored; returns the bytes. */
static size_t write_variable(struct writer *w, uint8_t *p)
{
    const struct zipccl_tier_program *program = &zipccl_programs[w->odd->program];
    size_t at = 0;
    if (program->tier[0].width == 3) {
        for (size_t i = 0; i < w->nrest; i++)
            put_bit(p, i, w->code[0][i] >> 2);
        at = 8 * zipccl_groups(w->nrest);
    }
    for (int t = 1; t < program->ntiers; t++)
        for (size_t first = 0; first < w->reach[t]; first += 64) {
            size_t g = w->reach[t] - first < 64 ? w->reach[t] - first : 64;
            for (int b = 0; b < program->tier[t].width; b++, at += (g + 7) / 8)
                for (size_t i = 0; i < g; i++)
                    put_bit(p + at, i, w->code[t][first + i] >> b);
        }
    memcpy(p + at, w->stored, w->reach[program->ntiers]);
    return at + w->reach[program->ntiers];
}

/* The rest as it is: as much as fits a share, then what remains. */
static size_t write_raw(struct writer *w, uint8_t *share, size_t *nshare, uint8_t *variable)
{
    size_t size = w->fields->size, r = w->nrest, groups = zipccl_groups(r);
    size_t each = w->fields->byte_planes ? zipccl_align16(r) : 8 * groups;
    size_t first = zipccl_align16(w->fields->low_bytes * r) +
                   zipccl_align16(w->fields->nplanes * each) + 16 * groups;
    first = first < r * size ? first : r * size;
    for (size_t k = 0; k < r * size; k++)
        *(k < first ? share + k : variable + (k - first)) = w->raw[k / size][k % size];
    *nshare = zipccl_align64(first);
    return r * size - first;
}

size_t odd_message(const struct odd *odd, const void *elements, size_t n, uint8_t *wire)
{
    static struct writer w;
    static uint8_t variable[16 * ZIPCCL_SUPERBLOCK];
    uint8_t *share = wire + 64;
    size_t nshare = 0, nvariable = 0;
    memset(&w, 0, sizeof w);
    memset(share, odd->fill, 8 * n + 1024);
    memset(variable, odd->fill, sizeof variable);
    w.odd = odd;
    w.fields = zipccl_fields_of(odd->dtype);
    w.n = n;
    w.entry.program = odd->program;
    take_rest(&w, elements);
    w.entry.rest = (uint16_t)w.nrest;
    if (odd->bitmap)
        nvariable = write_bitmap(&w, variable);
    if (odd->program == ZIPCCL_PROGRAM_RAW) {
        nvariable += write_raw(&w, share, &nshare, variable + nvariable);
    } else {
        code_tiers(&w);
        nshare = write_share(&w, share);
        nvariable += write_variable(&w, variable + nvariable);
    }
    memcpy(share + nshare, variable, nvariable);
    zipccl_entry_write(wire + ZIPCCL_MESSAGE_HEADER_BYTES, &w.entry);
    /* zipccl_message_write_header() would set RAW on one that is as long as raw. */
    zipccl_message_write_header(wire, odd->dtype, 0, n, ZIPCCL_MESSAGE_HEADER_BYTES);
    zipccl_put_u64(wire + 16, 64 + nshare + nvariable - ZIPCCL_MESSAGE_HEADER_BYTES);
    zipccl_message_set_flags(wire, 0);
    return 64 + nshare + nvariable;
}
