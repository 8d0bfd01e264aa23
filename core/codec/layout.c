/*
 * layout.c - types, tier programs, shares and directory entries
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/layout.h"

#include "core/wire.h"

#include <string.h>

static const struct zipccl_fields fields_bf16 = {ZIPCCL_SPLIT_BF16, 2, 8, 255, 1, 0, false};
static const struct zipccl_fields fields_fp16 = {ZIPCCL_SPLIT_FP16, 2, 5, 31, 1, 3, false};
static const struct zipccl_fields fields_fp32 = {ZIPCCL_SPLIT_FP32, 4, 8, 255, 1, 2, true};
/* The largest exponent of e4m3 holds values, and one NaN. */
static const struct zipccl_fields fields_e4m3 = {ZIPCCL_SPLIT_E4M3, 1, 4, 0, 0, 4, false};
static const struct zipccl_fields fields_e5m2 = {ZIPCCL_SPLIT_E5M2, 1, 5, 31, 0, 3, false};

const struct zipccl_fields *zipccl_fields_of(enum zipccl_dtype dtype)
{
    switch (dtype) {
    case ZIPCCL_BFLOAT16: return &fields_bf16;
    case ZIPCCL_FLOAT16: return &fields_fp16;
    case ZIPCCL_FLOAT32: return &fields_fp32;
    case ZIPCCL_FLOAT8_E4M3: return &fields_e4m3;
    case ZIPCCL_FLOAT8_E5M2: return &fields_e5m2;
    default: return NULL;
    }
}

/*
 * d = base - exponent, so d grows as values shrink.  Each octave below the peak of a Gaussian
 * is half as likely as the one above it: what escapes one tier looks like the next one's input.
 * Programs 1 to 4 serve Gaussians of every phase, 5 to 7 heavier and lighter tails.
 */
const struct zipccl_tier_program zipccl_programs[ZIPCCL_NUM_PROGRAMS] = {
    [ZIPCCL_PROGRAM_RAW] = {.ntiers = 0},
    [ZIPCCL_PROGRAM_21223] = {.ntiers = 5,
                              .tier = {{2, {0, 1, 2}},
                                       {1, {3}},
                                       {2, {4, -1, 5}},
                                       {2, {6, 7, 8}},
                                       {3, {9, 10, -2, 11, 12, 13, -3}}}},
    [ZIPCCL_PROGRAM_21123_UP] = {.ntiers = 5,
                                 .tier = {{2, {0, 1, 2}},
                                          {1, {3}},
                                          {1, {4}},
                                          {2, {5, 6, -1}},
                                          {3, {7, 8, 9, 10, -2, 11, 12}}}},
    [ZIPCCL_PROGRAM_22123] = {.ntiers = 5,
                              .tier = {{2, {0, 1, 2}},
                                       {2, {3, -1, 4}},
                                       {1, {5}},
                                       {2, {6, 7, 8}},
                                       {3, {9, 10, -2, 11, 12, 13, -3}}}},
    [ZIPCCL_PROGRAM_21123_DOWN] = {.ntiers = 5,
                                   .tier = {{2, {0, 1, 2}},
                                            {1, {-1}},
                                            {1, {3}},
                                            {2, {4, 5, 6}},
                                            {3, {7, 8, -2, 9, 10, 11, 12}}}},
    [ZIPCCL_PROGRAM_2223] = {.ntiers = 4,
                             .tier = {{2, {0, 1, 2}},
                                      {2, {3, -1, 4}},
                                      {2, {5, -2, 6}},
                                      {3, {7, 8, 9, 10, -3, 11, 12}}}},
    [ZIPCCL_PROGRAM_323] = {.ntiers = 3,
                            .tier = {{3, {0, 1, 2, 3, 4, 5, 6}},
                                     {2, {7, -1, 8}},
                                     {3, {-2, 9, -3, 10, 11, 12, 13}}}},
    [ZIPCCL_PROGRAM_1222] = {.ntiers = 4,
                             .tier = {{1, {0}}, {2, {1, -1, 2}}, {2, {3, 4, -2}}, {2, {5, 6, -3}}}},
};

const uint8_t zipccl_code_lengths[ZIPCCL_NUM_PROGRAMS][ZIPCCL_NUM_D] = {
    [ZIPCCL_PROGRAM_21223] = {18, 10, 10, 5,  2,  2,  2,  3,  5,  5,  7,  7,  7,  10, 10, 10,
                              10, 10, 18, 18, 18, 18, 18, 18, 18, 18, 18, 18, 18, 18, 18, 18},
    [ZIPCCL_PROGRAM_21123_UP] = {17, 17, 9,  6,  2,  2,  2,  3,  4,  6,  6,  9,  9,  9,  9,  9,
                                 9,  17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17},
    [ZIPCCL_PROGRAM_22123] = {18, 10, 10, 4,  2,  2,  2,  4,  4,  5,  7,  7,  7,  10, 10, 10,
                              10, 10, 18, 18, 18, 18, 18, 18, 18, 18, 18, 18, 18, 18, 18, 18},
    [ZIPCCL_PROGRAM_21123_DOWN] = {17, 17, 9,  3,  2,  2,  2,  4,  6,  6,  6,  9,  9,  9,  9,  9,
                                   9,  17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17},
    [ZIPCCL_PROGRAM_2223] = {17, 9,  6,  4,  2,  2,  2,  4,  4,  6,  6,  9,  9,  9,  9,  9,
                             9,  17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17, 17},
    [ZIPCCL_PROGRAM_323] = {16, 8, 8,  5,  3,  3,  3,  3,  3,  3,  3,  5,  5,  8,  8,  8,
                            8,  8, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16},
    [ZIPCCL_PROGRAM_1222] = {15, 7,  5,  3,  1,  3,  3,  5,  5,  7,  7,  15, 15, 15, 15, 15,
                             15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15},
};

/* What a Gaussian has below its table: each octave half as likely as the one above, few above it. */
const struct zipccl_tier zipccl_ans_tiers[ZIPCCL_ANS_TIERS] = {{2, {0, 1, 2}},
                                                               {3, {3, -1, 4, 5, -2, 6, 7}}};

struct zipccl_share zipccl_ans_share_of(const struct zipccl_fields *fields, size_t m, int nplanes)
{
    struct zipccl_share share;
    share.planes = zipccl_align16(fields->low_bytes ? (7 * m + 7) / 8 : 0);
    share.plane_nbytes = fields->byte_planes ? zipccl_align16(m) : 8 * zipccl_groups(m);
    share.tier1 = share.end = zipccl_align16(share.planes + (size_t)nplanes * share.plane_nbytes);
    return share;
}

size_t zipccl_full_share(const struct zipccl_fields *fields, size_t m)
{
    return zipccl_align64(zipccl_share_of(fields, m, fields->nplanes, 2).end);
}

size_t zipccl_raw_share(const struct zipccl_fields *fields, size_t rest)
{
    size_t end = zipccl_share_of(fields, rest, fields->nplanes, 2).end, raw = rest * fields->size;
    return raw < end ? raw : end;
}

bool zipccl_layout_of(const struct zipccl_fields *fields, size_t n, struct zipccl_layout *layout)
{
    /* Header, directory, shares and variable bytes stay well under 8 bytes a byte of elements. */
    if (n > ZIPCCL_MAX_CODED_N || n > SIZE_MAX / 8 / fields->size - 1024)
        return false;
    layout->nsuperblocks = (n + ZIPCCL_SUPERBLOCK - 1) / ZIPCCL_SUPERBLOCK;
    layout->directory = ZIPCCL_MESSAGE_HEADER_BYTES;
    layout->fixed = zipccl_align64(layout->directory + layout->nsuperblocks * ZIPCCL_ENTRY_BYTES);
    return true;
}

void zipccl_entry_write(uint8_t *p, const struct zipccl_entry *entry)
{
    p[0] = entry->program;
    p[1] = entry->planes;
    for (int t = 0; t < ZIPCCL_MAX_TIERS; t++)
        zipccl_put_u16(p + 2 + 2 * t, entry->escapes[t]);
    zipccl_put_u16(p + 12, entry->rest);
    zipccl_put_u16(p + 14, entry->ngroups);
    memcpy(p + 16, entry->base, ZIPCCL_SUBBLOCKS);
}

static bool all_zero(const uint8_t *p, size_t nbytes)
{
    uint8_t any = 0;
    for (size_t i = 0; i < nbytes; i++)
        any |= p[i];
    return any == 0;
}

static int count_planes(uint8_t planes)
{
    return __builtin_popcount(planes);
}

/* The same for program ANS. */
static bool ans_sizes(const struct zipccl_fields *fields, const struct zipccl_entry *entry,
                      size_t *nshare, size_t *nvariable)
{
    size_t rest = entry->rest, reach = entry->escapes[0], nbases;
    if (entry->planes >> zipccl_ans_planes(fields) || reach > rest ||
        entry->escapes[ZIPCCL_ANS_AT_LAW] >> 8 >= ZIPCCL_ANS_SHAPES ||
        entry->escapes[ZIPCCL_ANS_AT_STREAM] > rest)
        return false;
    struct zipccl_share share = zipccl_ans_share_of(fields, rest, count_planes(entry->planes));
    *nshare = share.end - zipccl_ans_carried(&share);
    *nvariable = ZIPCCL_ANS_STATE_BYTES + entry->escapes[ZIPCCL_ANS_AT_STREAM];
    for (int t = 0; t < ZIPCCL_ANS_TIERS; t++) {
        *nvariable += zipccl_plane_bytes(reach, zipccl_ans_tiers[t].width);
        if (entry->escapes[t + 1] > reach)
            return false;
        reach = entry->escapes[t + 1];
    }
    *nvariable += reach;
    nbases = (rest + ZIPCCL_SUBBLOCK - 1) / ZIPCCL_SUBBLOCK;
    return all_zero(entry->base + nbases, ZIPCCL_SUBBLOCKS - nbases) &&
           *nshare + *nvariable < rest * fields->size;
}

/* The sizes of the part that tiers code; false if the escapes cannot be. */
static bool tier_sizes(const struct zipccl_fields *fields, const struct zipccl_entry *entry,
                       size_t *nshare, size_t *nvariable)
{
    const struct zipccl_tier_program *program =
        &zipccl_programs[entry->program & ~ZIPCCL_PROGRAM_ZEROS];
    size_t rest = entry->rest, reach = rest;
    if (entry->planes >> fields->nplanes)
        return false;
    *nshare =
        zipccl_share_of(fields, rest, count_planes(entry->planes), program->tier[0].width).end;
    *nvariable = program->tier[0].width == 3 ? 8 * zipccl_groups(rest) : 0;
    for (int t = 0; t < ZIPCCL_MAX_TIERS; t++) {
        if (entry->escapes[t] > (t < program->ntiers ? reach : 0))
            return false;
        if (t > 0 && t < program->ntiers)
            *nvariable += zipccl_plane_bytes(reach, program->tier[t].width);
        if (t + 1 == program->ntiers)
            *nvariable += entry->escapes[t];
        reach = entry->escapes[t];
    }
    size_t nbases = (rest + ZIPCCL_SUBBLOCK - 1) / ZIPCCL_SUBBLOCK;
    if (!all_zero(entry->base + nbases, ZIPCCL_SUBBLOCKS - nbases))
        return false;
    /* What would not have shrunk is raw. */
    return *nshare + *nvariable < rest * fields->size;
}

zipccl_status zipccl_entry_read(const struct zipccl_fields *fields, const uint8_t *p, size_t m,
                                struct zipccl_entry *entry, size_t *nshare, size_t *nvariable)
{
    entry->program = p[0];
    entry->planes = p[1];
    for (int t = 0; t < ZIPCCL_MAX_TIERS; t++)
        entry->escapes[t] = zipccl_get_u16(p + 2 + 2 * t);
    entry->rest = zipccl_get_u16(p + 12);
    entry->ngroups = zipccl_get_u16(p + 14);
    memcpy(entry->base, p + 16, ZIPCCL_SUBBLOCKS);

    if (entry->program == ZIPCCL_PROGRAM_CONSTANT) {
        *nshare = *nvariable = 0;
        bool right = all_zero(p + 1, 15) &&
                     all_zero(entry->base + fields->size, ZIPCCL_SUBBLOCKS - fields->size);
        return right ? ZIPCCL_OK : ZIPCCL_ERR_CORRUPT;
    }
    bool zeros = entry->program & ZIPCCL_PROGRAM_ZEROS;
    uint8_t program = entry->program & ~ZIPCCL_PROGRAM_ZEROS;
    bool ans = program == ZIPCCL_PROGRAM_ANS;
    if ((program >= ZIPCCL_NUM_PROGRAMS && !ans) || entry->rest > m || entry->rest == 0)
        return ZIPCCL_ERR_CORRUPT;
    if (zeros ? entry->ngroups == 0 || entry->ngroups > zipccl_groups(m)
              : entry->ngroups != 0 || entry->rest != m)
        return ZIPCCL_ERR_CORRUPT;
    if (program == ZIPCCL_PROGRAM_RAW) {
        if (p[1] != 0 || !all_zero(p + 2, 10) || !all_zero(entry->base, ZIPCCL_SUBBLOCKS))
            return ZIPCCL_ERR_CORRUPT;
        *nshare = zipccl_raw_share(fields, entry->rest);
        *nvariable = entry->rest * (size_t)fields->size - *nshare;
    } else if (!(ans ? ans_sizes : tier_sizes)(fields, entry, nshare, nvariable)) {
        return ZIPCCL_ERR_CORRUPT;
    }
    *nshare = zipccl_align64(*nshare);
    *nvariable += zipccl_bitmap_bytes(m, entry->ngroups);
    return ZIPCCL_OK;
}
