/*
 * codec_file.h - whole files through the codec and back, bit for bit
 *
 * The bytes are those of core/FORMAT-FILE.md, for every number of threads.  Both ways are streams: memory does not grow with
 * the file, and neither end need be seekable.  Names of files, options and messages to people are
 * the program's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_CODEC_FILE_H
#define ZIPCCL_EXPERIMENTS_CODEC_FILE_H

#include "core/codec.h"
#include "core/status.h"

#include <stdint.h>
#include <stdio.h>

#define ZIPCCL_FILE_VERSION 1

/* Most bytes of elements in a segment: as written, and as accepted. */
#define ZIPCCL_FILE_SEGMENT ((size_t)4 << 20)
#define ZIPCCL_FILE_LIMIT   ((size_t)16 << 20)

enum {
    ZIPCCL_FILE_HEADER_BYTES = 16,
    ZIPCCL_FILE_SUM_BYTES = 8, /* after each segment */
    ZIPCCL_FILE_TRAILER_BYTES = 40
};

/* Take the elements of a .safetensors file for what its header says. */
#define ZIPCCL_FILE_SAFETENSORS ZIPCCL_NUM_DTYPES

/* What goes where; streams are the caller's, and are neither sought nor closed. */
struct zipccl_file_job {
    FILE *in, *out;
    const char *in_name, *out_name; /* for messages */
    uint64_t in_bytes;              /* of the input; 0 if it is not known */
    enum zipccl_effort effort;      /* of the encoder */
    uint32_t nthreads;              /* that code a segment together; 0 is one */
    /* Called with the input's bytes done; NULL: not wanted. */
    void (*progress)(void *context, uint64_t done, uint64_t total, const char *what);
    void *progress_context;
};

struct zipccl_file_stats {
    uint64_t raw_bytes;  /* of the original */
    uint64_t file_bytes; /* of the coded file */
    uint64_t nsegments;
    uint64_t sum; /* XXH3, 64 bits, of the original */
    struct {
        uint64_t raw_bytes, wire_bytes; /* of messages, without sums */
    } types[ZIPCCL_NUM_DTYPES];
};

/*
 * Encode a file.  'dtype' is the type of all its elements, or ZIPCCL_FILE_SAFETENSORS.  Each
 * segment is decoded again and compared before it is written.
 *
 * ZIPCCL_ERR_INPUT for a header that does not fit the file, ZIPCCL_ERR_IO, ZIPCCL_ERR_NOMEM;
 * ZIPCCL_ERR_INTERNAL for a segment that does not survive.  Then 'out' holds a part.
 */
zipccl_status zipccl_file_encode(const struct zipccl_file_job *job, enum zipccl_dtype dtype,
                                 struct zipccl_file_stats *stats, struct zipccl_error *error);

/*
 * Decode a file.  A segment is written after its checksum was found right; that nothing is missing
 * is known at the end.
 *
 * ZIPCCL_ERR_CORRUPT with file, offset, what was found and expected; ZIPCCL_ERR_UNSUPPORTED for
 * another version, ZIPCCL_ERR_IO, ZIPCCL_ERR_NOMEM.  Then 'out' holds a part.
 */
zipccl_status zipccl_file_decode(const struct zipccl_file_job *job, struct zipccl_file_stats *stats,
                                 struct zipccl_error *error);

#endif
