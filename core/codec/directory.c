/*
 * directory.c - what a message's directory says of its superblocks
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec/directory.h"

zipccl_status zipccl_directory_open(const void *wire, size_t nbytes, struct zipccl_directory *out)
{
    struct zipccl_message message;
    ZIPCCL_TRY(zipccl_message_read(wire, nbytes, &message));
    struct zipccl_directory directory = {.n = (size_t)message.n};
    if (message.n > 0 && !(message.flags & (ZIPCCL_MESSAGE_RAW | ZIPCCL_MESSAGE_OVERFLOW))) {
        struct zipccl_layout layout;
        directory.fields = zipccl_fields_of(message.dtype);
        if (!directory.fields || !zipccl_layout_of(directory.fields, directory.n, &layout) ||
            layout.fixed > message.nbytes)
            return ZIPCCL_ERR_CORRUPT;
        directory.entries = (const uint8_t *)wire + layout.directory;
        directory.nsuperblocks = layout.nsuperblocks;
    }
    *out = directory;
    return ZIPCCL_OK;
}

zipccl_status zipccl_directory_read(const struct zipccl_directory *directory, size_t s,
                                    struct zipccl_superblock_mode *out)
{
    if (s >= directory->nsuperblocks)
        return ZIPCCL_ERR_ARG;
    struct zipccl_entry entry;
    size_t n = zipccl_superblock_n(directory->n, s), nshare, nvariable;
    ZIPCCL_TRY(zipccl_entry_read(directory->fields, directory->entries + s * ZIPCCL_ENTRY_BYTES, n,
                                 &entry, &nshare, &nvariable));
    out->zeros = entry.program & ZIPCCL_PROGRAM_ZEROS;
    out->program = entry.program & (uint8_t)~ZIPCCL_PROGRAM_ZEROS;
    out->n = n;
    out->nbytes = ZIPCCL_ENTRY_BYTES + nshare + nvariable;
    return ZIPCCL_OK;
}

const char *zipccl_program_name(uint8_t program)
{
    static const char *const names[] = {
        [ZIPCCL_PROGRAM_RAW] = "raw",
        [ZIPCCL_PROGRAM_21223] = "21223",
        [ZIPCCL_PROGRAM_21123_UP] = "21123 up",
        [ZIPCCL_PROGRAM_22123] = "22123",
        [ZIPCCL_PROGRAM_21123_DOWN] = "21123 down",
        [ZIPCCL_PROGRAM_2223] = "2223",
        [ZIPCCL_PROGRAM_323] = "323",
        [ZIPCCL_PROGRAM_1222] = "1222",
        [ZIPCCL_PROGRAM_CONSTANT] = "constant",
        [ZIPCCL_PROGRAM_ANS] = "ans",
    };
    return program < sizeof names / sizeof names[0] && names[program] ? names[program] : "?";
}
