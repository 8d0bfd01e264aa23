/*
 * sink.c - text that goes to a file as it is, or through gzip
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/program/sink.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { BUFFER = 65536 };

struct zipccl_sink {
    FILE *file;
    const char *path;
    bool gzip, failed;
    int reason;
    z_stream z;
    unsigned char out[BUFFER];
};

static bool ends_in_gz(const char *path)
{
    size_t n = strlen(path);

    return n > 3 && strcmp(path + n - 3, ".gz") == 0;
}

zipccl_status zipccl_sink_open(FILE *file, const char *path, struct zipccl_sink **out,
                               struct zipccl_error *error)
{
    struct zipccl_sink *sink = calloc(1, sizeof *sink);

    if (sink == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path);
    sink->file = file;
    sink->path = path;
    sink->gzip = ends_in_gz(path);
    /* 16 more than the window asks for a gzip wrapper. */
    if (sink->gzip && deflateInit2(&sink->z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8,
                                   Z_DEFAULT_STRATEGY) != Z_OK) {
        free(sink);
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path);
    }
    *out = sink;
    return ZIPCCL_OK;
}

static void put_bytes(struct zipccl_sink *sink, const void *bytes, size_t n)
{
    if (n == 0 || sink->failed || fwrite(bytes, 1, n, sink->file) == n)
        return;
    sink->failed = true;
    sink->reason = errno;
}

static void deflate_all(struct zipccl_sink *sink, const char *text, size_t n, int flush)
{
    sink->z.next_in = (z_const Bytef *)text;
    sink->z.avail_in = (uInt)n;
    do {
        sink->z.next_out = sink->out;
        sink->z.avail_out = BUFFER;
        deflate(&sink->z, flush);
        put_bytes(sink, sink->out, BUFFER - sink->z.avail_out);
    } while (sink->z.avail_out == 0);
}

void zipccl_sink_put(void *context, const char *text, size_t n)
{
    struct zipccl_sink *sink = context;

    if (!sink->gzip) {
        put_bytes(sink, text, n);
        return;
    }
    /* zlib counts in unsigned int. */
    for (size_t most = (size_t)1 << 30, part; n > 0; text += part, n -= part) {
        part = n < most ? n : most;
        deflate_all(sink, text, part, Z_NO_FLUSH);
    }
}

zipccl_status zipccl_sink_close(struct zipccl_sink *sink, struct zipccl_error *error)
{
    zipccl_status status = ZIPCCL_OK;

    if (sink->gzip) {
        deflate_all(sink, "", 0, Z_FINISH);
        deflateEnd(&sink->z);
    }
    if (sink->failed)
        status = zipccl_fail(error, ZIPCCL_ERR_IO, "%s: cannot write: %s", sink->path,
                             strerror(sink->reason));
    free(sink);
    return status;
}
