/*
 * directory.h - what a message's directory says of its superblocks, without decoding them
 *
 * For statistics and for people: which program each superblock took and what it costs.  Nothing
 * that decodes needs it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_CODEC_DIRECTORY_H
#define ZIPCCL_CORE_CODEC_DIRECTORY_H

#include "core/codec/layout.h"

/* A coded message's directory; borrows the message. */
struct zipccl_directory {
    const uint8_t *entries;
    const struct zipccl_fields *fields; /* NULL if there is no directory */
    size_t n, nsuperblocks;
};

/* What one superblock became. */
struct zipccl_superblock_mode {
    uint8_t program; /* an enum zipccl_program_id, without ZIPCCL_PROGRAM_ZEROS */
    bool zeros;      /* a bitmap takes the zeros out first */
    size_t n;        /* elements */
    size_t nbytes;   /* entry, share and variable bytes */
};

/*
 * Find the directory of the message 'wire' [nbytes].  A RAW or OVERFLOW message has none: it has 0
 * superblocks.  ZIPCCL_ERR_CORRUPT if 'wire' is no message or too short for its directory.
 */
zipccl_status zipccl_directory_open(const void *wire, size_t nbytes, struct zipccl_directory *out);

/* Tell about superblock 's' < nsuperblocks.  ZIPCCL_ERR_CORRUPT if its entry breaks a rule. */
zipccl_status zipccl_directory_read(const struct zipccl_directory *directory, size_t s,
                                    struct zipccl_superblock_mode *out);

/* "21223", "21123 up", ... "raw", "constant": core/FORMAT.md's names; "?" for another id. */
const char *zipccl_program_name(uint8_t program);

#endif
