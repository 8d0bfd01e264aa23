/*
 * safetensors_layout.h - which bytes of a .safetensors file hold elements of which type
 *
 * For whoever codes a file and must keep every byte of it: tensors may stand in any order, leave
 * gaps, overlap, be empty or have types that nobody here knows.  safetensors.h is the reader that
 * refuses such files.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_SAFETENSORS_LAYOUT_H
#define ZIPCCL_TRACES_SAFETENSORS_LAYOUT_H

#include "core/dtype.h"
#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

/* The longest header of the reference implementation (safetensors, MAX_HEADER_SIZE). */
#define ZIPCCL_SAFETENSORS_MAX_HEADER 100000000u

/* Bytes [begin, end) hold elements of one type that the codec covers. */
struct zipccl_element_range {
    uint64_t begin, end;
    enum zipccl_dtype dtype;
};

/*
 * Read the header, 'json' [nbytes] after the 8 bytes of its length, of the file 'path' (for
 * messages).
 *
 * ranges   [*nranges], in order, without overlaps or empty ones, neighbours of one type joined;
 *          offsets count from the first byte after the header; the caller frees it
 * end      where the last tensor ends, counted likewise
 *
 * ZIPCCL_ERR_INPUT if it is no JSON object of tensors with dtype and data_offsets; ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_safetensors_layout(const char *path, const char *json, size_t nbytes,
                                        struct zipccl_element_range **ranges, size_t *nranges,
                                        uint64_t *end, struct zipccl_error *error);

#endif
