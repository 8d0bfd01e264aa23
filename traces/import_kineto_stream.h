/*
 * import_kineto_stream.h - the bytes of a profiler file, made fit for a strict JSON parser
 *
 * Profilers write NaN and infinities, which JSON lacks, and control characters inside strings,
 * which it forbids.  The former become null, the latter spaces; both are counted.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_IMPORT_KINETO_STREAM_H
#define ZIPCCL_TRACES_IMPORT_KINETO_STREAM_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kineto_filter {
    bool in_string, escaped;
    size_t nword;
    char word[16]; /* letters outside strings, and the sign before them */
    uint64_t nreplaced;
};

/* Room that the output needs for 'n' bytes of input. */
#define KINETO_FILTER_ROOM(n) (2 * (n) + 32)

/* Copy [n] of 'in' to 'out' and return how many bytes that gave. */
size_t kineto_filter(struct kineto_filter *f, const char *in, size_t n, char *out);

/* What the last word left. */
size_t kineto_filter_end(struct kineto_filter *f, char *out);

/*
 * Read 'path', plain or gzip, and hand its filtered bytes to 'feed' piece by piece until that
 * fails.  ZIPCCL_ERR_IO; ZIPCCL_ERR_INPUT for broken gzip.
 */
zipccl_status kineto_stream(const char *path, struct kineto_filter *filter,
                            zipccl_status (*feed)(void *context, const char *bytes, size_t n),
                            void *context, struct zipccl_error *error);

#endif
