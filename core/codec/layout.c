/*
 * layout.c - types, tier programs, shares and directory entries
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/layout.h"

#include <string.h>

static const struct zipccl_fields all_fields[ZIPCCL_NUM_SPLITS] = {
#include "core/codec/fields.inc"
};

const struct zipccl_fields *zipccl_fields_of(enum zipccl_dtype dtype)
{
    switch (dtype) {
    case ZIPCCL_BFLOAT16: return &all_fields[ZIPCCL_SPLIT_BF16];
    case ZIPCCL_FLOAT16: return &all_fields[ZIPCCL_SPLIT_FP16];
    case ZIPCCL_FLOAT32: return &all_fields[ZIPCCL_SPLIT_FP32];
    case ZIPCCL_FLOAT8_E4M3: return &all_fields[ZIPCCL_SPLIT_E4M3];
    case ZIPCCL_FLOAT8_E5M2: return &all_fields[ZIPCCL_SPLIT_E5M2];
    default: return NULL;
    }
}

const struct zipccl_tier_program zipccl_programs[ZIPCCL_NUM_PROGRAMS] = {
#include "core/codec/programs.inc"
};

const uint8_t zipccl_code_lengths[ZIPCCL_NUM_PROGRAMS][ZIPCCL_NUM_D] = {
#include "core/codec/code_lengths.inc"
};

/* What a Gaussian has below its table: each octave half as likely as the one above, few above it. */
const struct zipccl_tier zipccl_ans_tiers[ZIPCCL_ANS_TIERS] = {
#include "core/codec/ans_tiers.inc"
};

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
