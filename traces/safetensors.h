/*
 * safetensors.h - reads .safetensors files and trusts nothing in them
 *
 * Checks header length, JSON, types, shapes against byte ranges, overlaps, holes and bounds.
 * Format: 8-byte little-endian header length, JSON header, data (the Hugging Face format).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_SAFETENSORS_H
#define ZIPCCL_TRACES_SAFETENSORS_H

#include "core/dtype.h"
#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct zipccl_tensor {
    char *name;
    bool known; /* 'dtype' is one of ours */
    enum zipccl_dtype dtype;
    char dtype_name[16]; /* as in the file, "BF16" */
    uint32_t ndim;
    uint64_t *shape;         /* [ndim] */
    uint64_t n;              /* elements */
    uint64_t offset, nbytes; /* in the file */
    const void *data;        /* mapped, valid while the file is open; any alignment */
};

struct zipccl_safetensors {
    size_t ntensors;
    struct zipccl_tensor *tensors; /* [ntensors] in file order */
    size_t data_nbytes;            /* of all tensors */
    const char *origin;            /* "origin" of the metadata, one line for people; NULL: none */
};

/*
 * Map and check 'path'.  The data must lie back to back from the end of the header to the end of
 * the file.  A file that another program cuts while it is mapped ends this one (SIGBUS).
 *
 * ZIPCCL_ERR_IO, or ZIPCCL_ERR_INPUT with file, tensor, what was found and what was expected.
 */
zipccl_status zipccl_safetensors_open(const char *path, const struct zipccl_safetensors **out,
                                      struct zipccl_error *error);

/*
 * The same for whoever reports on a file: types that are not 'known' may have any name, cut to
 * 'dtype_name' and made printable, and any size; there may be holes and bytes after the last tensor,
 * which 'data_nbytes' counts too.
 */
zipccl_status zipccl_safetensors_open_loose(const char *path, const struct zipccl_safetensors **out,
                                            struct zipccl_error *error);

/* Unmap and free; NULL is allowed. */
void zipccl_safetensors_close(const struct zipccl_safetensors *file);

/* Find a tensor by name; NULL if there is none. */
const struct zipccl_tensor *zipccl_safetensors_find(const struct zipccl_safetensors *file,
                                                    const char *name);

/*
 * Walk through the tensors that 'sample' of a trace event means: a name, or "class:PREFIX" for
 * all whose name starts with PREFIX and a dot, in file order.  Start with '*position' 0 and call
 * again until NULL.
 */
const struct zipccl_tensor *zipccl_safetensors_match(const struct zipccl_safetensors *file,
                                                     const char *sample, size_t *position);

#endif
