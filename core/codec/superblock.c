/*
 * superblock.c - tiers of one superblock, the same for every row
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/superblock.h"

#include <string.h>

static size_t encode_raw(const struct zipccl_row *row, const uint8_t *src, size_t m, uint8_t *low,
                         uint8_t *tier1, uint8_t *variable, size_t room, struct zipccl_entry *entry)
{
    size_t slot = zipccl_tier1_bytes(m), rest = zipccl_raw_variable(m), first = m - rest;
    memset(entry, 0, sizeof *entry);
    row->split_raw(src, first, low, tier1);
    memset(tier1 + first, 0, slot - first);
    if (rest <= room)
        row->split_raw(src + 2 * first, rest, low + first, variable);
    return rest;
}

/*
 * Code the 'm' elements by entry->program into 'variable' [ZIPCCL_MAX_VARIABLE + ZIPCCL_SLACK].
 * Returns the variable bytes, or 'limit' as soon as it is clear that they reach it.
 */
static size_t encode_tiers(const struct zipccl_row *row, const uint8_t *src, size_t m, uint8_t *low,
                           uint8_t *tier1, uint8_t *variable, size_t limit,
                           struct zipccl_scratch *scratch, struct zipccl_entry *entry)
{
    const struct zipccl_tier_program *program = &zipccl_programs[entry->program];
    uint8_t *d = scratch->a;
    size_t used = 0, reach = row->split(src, m, entry->base, low, tier1, d);
    entry->escapes[0] = (uint16_t)reach;
    for (int t = 1; t < program->ntiers; t++) {
        size_t nbytes = zipccl_plane_bytes(reach, program->tier[t].width);
        if (used + nbytes >= limit)
            return limit;
        reach = row->sift(d, reach, &program->tier[t], variable + used);
        used += nbytes;
        entry->escapes[t] = (uint16_t)reach;
    }
    if (used + reach >= limit)
        return limit;
    memcpy(variable + used, d, reach);
    return used + reach;
}

size_t zipccl_superblock_encode(const struct zipccl_row *row, const uint8_t *src, size_t m,
                                uint8_t *low, uint8_t *tier1, uint8_t *variable, size_t room,
                                struct zipccl_scratch *scratch, struct zipccl_entry *entry)
{
    memset(entry, 0, sizeof *entry);
    zipccl_superblock_choose(row, src, m, scratch, entry);
    if (entry->program == ZIPCCL_PROGRAM_RAW)
        return encode_raw(row, src, m, low, tier1, variable, room, entry);

    /* Kernels store whole vectors, so near the end of the room they work beside it. */
    bool direct = room >= ZIPCCL_MAX_VARIABLE + ZIPCCL_SLACK;
    uint8_t *work = direct ? variable : scratch->variable;
    size_t limit = zipccl_raw_variable(m);
    size_t used = encode_tiers(row, src, m, low, tier1, work, limit, scratch, entry);
    if (used >= limit)
        return encode_raw(row, src, m, low, tier1, variable, room, entry);
    if (!direct && used <= room)
        memcpy(variable, work, used);
    return used;
}

static void decode_raw(const struct zipccl_row *row, const uint8_t *low, const uint8_t *tier1,
                       const uint8_t *variable, size_t m, uint8_t *dst)
{
    size_t rest = zipccl_raw_variable(m), first = m - rest;
    row->join_raw(low, tier1, first, dst);
    row->join_raw(low + first, variable, rest, dst + 2 * first);
}

zipccl_status zipccl_superblock_decode(const struct zipccl_row *row, const uint8_t *low,
                                       const uint8_t *tier1, const uint8_t *variable, size_t m,
                                       const struct zipccl_entry *entry,
                                       struct zipccl_scratch *scratch, uint8_t *dst)
{
    const struct zipccl_tier_program *program = &zipccl_programs[entry->program];
    if (program->ntiers == 0) {
        decode_raw(row, low, tier1, variable, m, dst);
        return ZIPCCL_OK;
    }
    const uint8_t *planes[ZIPCCL_MAX_TIERS];
    const uint8_t *p = variable;
    for (int t = 1; t < program->ntiers; t++) {
        planes[t] = p;
        p += zipccl_plane_bytes(entry->escapes[t - 1], program->tier[t].width);
    }
    /*
     * From the last tier up: each fills in what escaped the one before.  Planes may call for
     * more than there is; such reads stay inside the work buffers and are found by the count.
     */
    uint8_t *in = scratch->a, *out = scratch->b;
    memcpy(in, p, entry->escapes[program->ntiers - 1]);
    for (int t = program->ntiers - 1; t >= 1; t--) {
        size_t reach = entry->escapes[t - 1];
        if (row->unsift(planes[t], in, reach, &program->tier[t], out) != entry->escapes[t])
            return ZIPCCL_ERR_CORRUPT;
        uint8_t *swap = in;
        in = out;
        out = swap;
    }
    if (row->join(low, tier1, in, m, entry->base, dst) != entry->escapes[0])
        return ZIPCCL_ERR_CORRUPT;
    return ZIPCCL_OK;
}
