/*
 * layout.c - tier programs, regions and directory entries
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/layout.h"

#include "core/wire.h"

#include <string.h>

/*
 * d = base - exponent, so d grows as values shrink.  Each octave below the peak of a Gaussian
 * is half as likely as the one above it: what escapes one tier looks like the next one's input.
 */
const struct zipccl_tier_program zipccl_programs[ZIPCCL_NUM_PROGRAMS] = {
    [ZIPCCL_PROGRAM_RAW] = {.ntiers = 0},
    [ZIPCCL_PROGRAM_2222] =
        {.ntiers = 4, .tier = {{2, {0, 1, 2}}, {2, {3, -1, 4}}, {2, {5, 6, 7}}, {2, {8, 9, -2}}}},
    [ZIPCCL_PROGRAM_21222_UP] =
        {.ntiers = 5,
         .tier = {{2, {0, 1, 2}}, {1, {3}}, {2, {4, -1, 5}}, {2, {6, 7, 8}}, {2, {9, 10, -2}}}},
    [ZIPCCL_PROGRAM_21222_DOWN] =
        {.ntiers = 5,
         .tier = {{2, {0, 1, 2}}, {1, {-1}}, {2, {3, 4, 5}}, {2, {6, 7, 8}}, {2, {9, 10, -2}}}},
};

bool zipccl_layout_of(size_t n, struct zipccl_layout *layout)
{
    /* Header, directory, planes and variable bytes together stay under 3 bytes an element. */
    if (n > ZIPCCL_MAX_CODED_N || n > SIZE_MAX / 4)
        return false;
    layout->nsuperblocks = (n + ZIPCCL_SUPERBLOCK - 1) / ZIPCCL_SUPERBLOCK;
    layout->directory = ZIPCCL_MESSAGE_HEADER_BYTES;
    layout->low = zipccl_align64(layout->directory + layout->nsuperblocks * ZIPCCL_ENTRY_BYTES);
    layout->tier1 = zipccl_align64(layout->low + n);
    layout->variable = layout->tier1 + zipccl_tier1_bytes(n);
    return true;
}

void zipccl_entry_write(uint8_t *p, const struct zipccl_entry *entry)
{
    p[0] = entry->program;
    p[1] = 0;
    for (int t = 0; t < ZIPCCL_MAX_TIERS; t++)
        zipccl_put_u16(p + 2 + 2 * t, entry->escapes[t]);
    zipccl_put_u32(p + 12, entry->offset);
    memcpy(p + 16, entry->base, ZIPCCL_SUBBLOCKS);
}

zipccl_status zipccl_entry_read(const uint8_t *p, size_t m, size_t offset,
                                struct zipccl_entry *entry, size_t *nvariable)
{
    entry->program = p[0];
    entry->offset = zipccl_get_u32(p + 12);
    memcpy(entry->base, p + 16, ZIPCCL_SUBBLOCKS);
    if (entry->program >= ZIPCCL_NUM_PROGRAMS || p[1] != 0 || entry->offset != offset)
        return ZIPCCL_ERR_CORRUPT;

    const struct zipccl_tier_program *program = &zipccl_programs[entry->program];
    size_t nbytes = program->ntiers ? 0 : zipccl_raw_variable(m);
    size_t reach = m; /* elements that reach tier t */
    for (int t = 0; t < ZIPCCL_MAX_TIERS; t++) {
        entry->escapes[t] = zipccl_get_u16(p + 2 + 2 * t);
        if (entry->escapes[t] > (t < program->ntiers ? reach : 0))
            return ZIPCCL_ERR_CORRUPT;
        if (t > 0 && t < program->ntiers)
            nbytes += zipccl_plane_bytes(reach, program->tier[t].width);
        reach = entry->escapes[t];
        if (t + 1 == program->ntiers)
            nbytes += reach;
    }
    size_t nbases = program->ntiers ? (m + ZIPCCL_SUBBLOCK - 1) / ZIPCCL_SUBBLOCK : 0;
    for (size_t i = nbases; i < ZIPCCL_SUBBLOCKS; i++)
        if (entry->base[i] != 0)
            return ZIPCCL_ERR_CORRUPT;
    /* A superblock that would not have shrunk is written raw. */
    if (program->ntiers && nbytes >= zipccl_raw_variable(m))
        return ZIPCCL_ERR_CORRUPT;
    *nvariable = nbytes;
    return ZIPCCL_OK;
}
