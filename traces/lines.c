/*
 * lines.c - the lines of a text file, plain or gzip, one at a time
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/lines.h"

#include "traces/json.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifndef ZIPCCL_NO_ZLIB
#include <zlib.h>
#endif

#define BUFFER 65536

struct zipccl_lines {
    FILE *file;
    char *path;
    bool gzip, member_done, at_end;
#ifndef ZIPCCL_NO_ZLIB
    z_stream z;
#endif
    unsigned char in[BUFFER], out[BUFFER];
    size_t pos, len; /* of 'out' */
    char *line;
    size_t capacity, used;
    uint64_t number;
};

static zipccl_status read_failed(struct zipccl_lines *lines, struct zipccl_error *error)
{
    return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: %s", lines->path, strerror(errno));
}

static zipccl_status detect(struct zipccl_lines *lines, struct zipccl_error *error)
{
    size_t n = strlen(lines->path);
    bool named = n > 3 && strcmp(lines->path + n - 3, ".gz") == 0;
    struct zipccl_place at = {lines->path, 0, error};

    n = fread(lines->in, 1, BUFFER, lines->file);
    if (ferror(lines->file))
        return read_failed(lines, error);
    if (n < 2 || lines->in[0] != 0x1f || lines->in[1] != 0x8b) {
        if (named)
            return zipccl_place_fail(&at, "no gzip header, expected one by the name");
        memcpy(lines->out, lines->in, n);
        lines->len = n;
        return ZIPCCL_OK;
    }
#ifdef ZIPCCL_NO_ZLIB
    return zipccl_place_fail(&at, "a gzip stream, expected plain text: this build has no zlib "
                                  "(gunzip the file first)");
#else
    lines->z.next_in = lines->in;
    lines->z.avail_in = (uInt)n;
    if (inflateInit2(&lines->z, 16 + MAX_WBITS) != Z_OK)
        return zipccl_place_nomem(&at);
    lines->gzip = true;
    return ZIPCCL_OK;
#endif
}

zipccl_status zipccl_lines_open(const char *path, struct zipccl_lines **out,
                                struct zipccl_error *error)
{
    struct zipccl_lines *lines = calloc(1, sizeof *lines);
    zipccl_status status;

    if (lines == NULL || (lines->path = malloc(strlen(path) + 1)) == NULL) {
        free(lines);
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path);
    }
    strcpy(lines->path, path);
    lines->file = fopen(path, "rb");
    status = lines->file == NULL ? read_failed(lines, error) : detect(lines, error);
    if (status != ZIPCCL_OK) {
        zipccl_lines_close(lines);
        return status;
    }
    *out = lines;
    return ZIPCCL_OK;
}

#ifndef ZIPCCL_NO_ZLIB
static zipccl_status refill_input(struct zipccl_lines *lines, struct zipccl_error *error)
{
    struct zipccl_place at = {lines->path, lines->number + 1, error};
    size_t n = fread(lines->in, 1, BUFFER, lines->file);

    if (ferror(lines->file))
        return read_failed(lines, error);
    lines->z.next_in = lines->in;
    lines->z.avail_in = (uInt)n;
    if (n > 0)
        return ZIPCCL_OK;
    if (!lines->member_done)
        return zipccl_place_fail(&at, "the gzip stream is cut after %ld bytes, expected more of it",
                                 ftell(lines->file));
    lines->at_end = true;
    return ZIPCCL_OK;
}

static zipccl_status fill_gzip(struct zipccl_lines *lines, struct zipccl_error *error)
{
    struct zipccl_place at = {lines->path, lines->number + 1, error};

    lines->z.next_out = lines->out;
    lines->z.avail_out = BUFFER;
    while (lines->z.avail_out == BUFFER) {
        int rc;

        if (lines->z.avail_in == 0) {
            ZIPCCL_TRY(refill_input(lines, error));
            if (lines->at_end)
                break;
        }
        if (lines->member_done) {
            if (lines->z.next_in[0] != 0x1f)
                return zipccl_place_fail(&at, "bytes after the gzip stream, expected the end");
            inflateReset(&lines->z);
            lines->member_done = false;
        }
        rc = inflate(&lines->z, Z_NO_FLUSH);
        if (rc == Z_STREAM_END)
            lines->member_done = true;
        else if (rc == Z_MEM_ERROR)
            return zipccl_place_nomem(&at);
        else if (rc != Z_OK && rc != Z_BUF_ERROR)
            return zipccl_place_fail(&at, "broken gzip stream: %s",
                                     lines->z.msg != NULL ? lines->z.msg : "data error");
    }
    lines->pos = 0;
    lines->len = BUFFER - lines->z.avail_out;
    return ZIPCCL_OK;
}

#endif

static zipccl_status fill(struct zipccl_lines *lines, struct zipccl_error *error)
{
#ifndef ZIPCCL_NO_ZLIB
    if (lines->gzip)
        return fill_gzip(lines, error);
#endif
    lines->pos = 0;
    lines->len = fread(lines->out, 1, BUFFER, lines->file);
    if (ferror(lines->file))
        return read_failed(lines, error);
    lines->at_end = lines->len == 0;
    return ZIPCCL_OK;
}

static zipccl_status append(struct zipccl_lines *lines, size_t n, struct zipccl_error *error)
{
    struct zipccl_place at = {lines->path, lines->number + 1, error};

    if (n > ZIPCCL_LINES_MAX_BYTES - lines->used)
        return zipccl_place_fail(&at, "a line of more than %zu bytes, expected a shorter one",
                                 ZIPCCL_LINES_MAX_BYTES);
    if (lines->used + n > lines->capacity) {
        size_t capacity = (lines->used + n) * 2;
        char *line = realloc(lines->line, capacity);

        if (line == NULL)
            return zipccl_place_nomem(&at);
        lines->line = line;
        lines->capacity = capacity;
    }
    if (n > 0)
        memcpy(lines->line + lines->used, lines->out + lines->pos, n);
    lines->used += n;
    lines->pos += n;
    return ZIPCCL_OK;
}

zipccl_status zipccl_lines_next(struct zipccl_lines *lines, const char **line, size_t *nbytes,
                                struct zipccl_error *error)
{
    bool complete = false;

    lines->used = 0;
    while (!complete) {
        const unsigned char *newline;

        if (lines->pos == lines->len) {
            if (!lines->at_end)
                ZIPCCL_TRY(fill(lines, error));
            if (lines->at_end)
                break;
        }
        newline = memchr(lines->out + lines->pos, '\n', lines->len - lines->pos);
        complete = newline != NULL;
        ZIPCCL_TRY(append(lines,
                          complete ? (size_t)(newline - (lines->out + lines->pos))
                                   : lines->len - lines->pos,
                          error));
        lines->pos += complete;
    }
    *line = NULL;
    *nbytes = 0;
    if (!complete && lines->used == 0)
        return ZIPCCL_OK;
    lines->number++;
    *line = lines->used > 0 ? lines->line : "";
    *nbytes = lines->used;
    return ZIPCCL_OK;
}

uint64_t zipccl_lines_number(const struct zipccl_lines *lines)
{
    return lines->number;
}

void zipccl_lines_close(struct zipccl_lines *lines)
{
    if (lines == NULL)
        return;
#ifndef ZIPCCL_NO_ZLIB
    if (lines->gzip)
        inflateEnd(&lines->z);
#endif
    if (lines->file != NULL)
        fclose(lines->file);
    free(lines->line);
    free(lines->path);
    free(lines);
}
