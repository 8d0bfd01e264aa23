/*
 * codec_vectors.h - reads the format's test vectors by their manifest, and checks them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_CODEC_VECTORS_H
#define ZIPCCL_EXPERIMENTS_CODEC_VECTORS_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct zipccl_vector {
    char *name;    /* file of the message, relative to the folder */
    char *about;   /* a line for people */
    bool valid;    /* else a decoder must refuse it: corrupt, or without elements */
    char *verdict; /* as in the manifest */
    char *dtype;   /* of a valid one */
    uint8_t *wire, *elements;
    size_t wire_nbytes, elements_nbytes;
};

struct zipccl_vectors {
    size_t count;
    struct zipccl_vector *vectors; /* [count] */
};

/*
 * Read 'directory'/MANIFEST.tsv and all files that it names, which must have the sums given there.
 *
 * ZIPCCL_ERR_IO, ZIPCCL_ERR_INPUT with file, line, what was found and expected; ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_vectors_load(const char *directory, struct zipccl_vectors *vectors,
                                  struct zipccl_error *error);

/* An empty one (all 0) is allowed. */
void zipccl_vectors_destroy(struct zipccl_vectors *vectors);

#endif
