/*
 * trace_writer.c - writes traces line by line into a temporary file, renamed at the end
 *
 * The JSON of a line is made in trace_gen.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/trace.h"

#include "traces/trace_gen.h"
#include "traces/trace_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define BUFFER 65536

struct zipccl_trace_writer {
    char *path, *temporary; /* 'temporary' NULL until the file exists */
    FILE *file;
    bool gzip, failed;
    z_stream z;
    struct zipccl_arena header_arena, line_arena;
    struct zipccl_trace_header header;
    struct zipccl_trace_checker checker;
    yajl_gen gen;
    uint64_t line;
    unsigned char out[BUFFER];
};

static zipccl_status write_failed(struct zipccl_trace_writer *w, struct zipccl_error *error)
{
    w->failed = true;
    return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: %s", w->path, strerror(errno));
}

/* Create PATH.PID-N.tmp: a name of its own, with the permissions that the umask gives. */
static zipccl_status create_file(struct zipccl_trace_writer *w, struct zipccl_error *error)
{
    size_t room = strlen(w->path) + 48;
    char *name = malloc(room);
    int fd = -1;

    if (name == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", w->path);
    for (unsigned i = 0; i < 100 && fd < 0; i++) {
        snprintf(name, room, "%s.%ld-%u.tmp", w->path, (long)getpid(), i);
        fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0666);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    if (fd < 0) {
        free(name);
        return write_failed(w, error);
    }
    w->temporary = name;
    w->file = fdopen(fd, "wb");
    if (w->file == NULL) {
        close(fd);
        return write_failed(w, error);
    }
    return ZIPCCL_OK;
}

/* zlib's own gzip header has time 0 and no name, so equal events give equal bytes. */
static zipccl_status put(struct zipccl_trace_writer *w, const unsigned char *bytes, size_t n,
                         int flush, struct zipccl_error *error)
{
    if (!w->gzip)
        return fwrite(bytes, 1, n, w->file) == n ? ZIPCCL_OK : write_failed(w, error);
    w->z.next_in = (z_const Bytef *)bytes;
    w->z.avail_in = (uInt)n;
    do {
        size_t have;

        w->z.next_out = w->out;
        w->z.avail_out = BUFFER;
        deflate(&w->z, flush);
        have = BUFFER - w->z.avail_out;
        if (fwrite(w->out, 1, have, w->file) != have)
            return write_failed(w, error);
    } while (w->z.avail_out == 0);
    return ZIPCCL_OK;
}

/* Write the line that the generator holds, and clear it. */
static zipccl_status put_line(struct zipccl_trace_writer *w, struct zipccl_error *error)
{
    struct zipccl_place at = {w->path, w->line, error};
    const unsigned char *text;
    size_t nbytes;

    yajl_gen_get_buf(w->gen, &text, &nbytes);
    if (!zipccl_utf8_valid((const char *)text, nbytes))
        return zipccl_place_fail(&at, "a string that is not UTF-8, expected UTF-8");
    ZIPCCL_TRY(put(w, text, nbytes, Z_NO_FLUSH, error));
    ZIPCCL_TRY(put(w, (const unsigned char *)"\n", 1, Z_NO_FLUSH, error));
    yajl_gen_clear(w->gen);
    yajl_gen_reset(w->gen, NULL);
    return ZIPCCL_OK;
}

/* The copy of the header is what a reader makes of the line, so both agree. */
static zipccl_status copy_header(struct zipccl_trace_writer *w, struct zipccl_error *error)
{
    struct zipccl_place at = {w->path, w->line, error};
    const unsigned char *text;
    struct zipccl_json *json;
    size_t nbytes;

    yajl_gen_get_buf(w->gen, &text, &nbytes);
    ZIPCCL_TRY(zipccl_json_parse(&at, &w->line_arena, (const char *)text, nbytes, &json));
    ZIPCCL_TRY(zipccl_trace_parse_header(&at, json, &w->header_arena, &w->header));
    zipccl_arena_free(&w->line_arena);
    return zipccl_trace_checker_init(&w->checker, &w->header, &at);
}

static zipccl_status start(struct zipccl_trace_writer *w, const struct zipccl_trace_header *header,
                           struct zipccl_error *error)
{
    struct zipccl_place at = {w->path, 1, error};
    size_t n = strlen(w->path);

    w->line = 1;
    w->gen = yajl_gen_alloc(NULL);
    if (w->gen == NULL)
        return zipccl_place_nomem(&at);
    ZIPCCL_TRY(zipccl_trace_check_header(&at, header));
    zipccl_trace_gen_header(w->gen, header);
    ZIPCCL_TRY(copy_header(w, error));
    if (n > 3 && strcmp(w->path + n - 3, ".gz") == 0) {
        if (deflateInit2(&w->z, 9, Z_DEFLATED, 16 + MAX_WBITS, 9, Z_DEFAULT_STRATEGY) != Z_OK)
            return zipccl_place_nomem(&at);
        w->gzip = true;
    }
    ZIPCCL_TRY(create_file(w, error));
    return put_line(w, error);
}

/* Close and free; the temporary file is removed unless it was renamed. */
static void destroy(struct zipccl_trace_writer *w)
{
    if (w->file != NULL)
        fclose(w->file);
    if (w->temporary != NULL)
        unlink(w->temporary);
    if (w->gzip)
        deflateEnd(&w->z);
    if (w->gen != NULL)
        yajl_gen_free(w->gen);
    zipccl_trace_checker_free(&w->checker);
    zipccl_arena_free(&w->header_arena);
    zipccl_arena_free(&w->line_arena);
    free(w->temporary);
    free(w->path);
    free(w);
}

zipccl_status zipccl_trace_writer_open(const char *path, const struct zipccl_trace_header *header,
                                       struct zipccl_trace_writer **out, struct zipccl_error *error)
{
    struct zipccl_trace_writer *w;
    zipccl_status status;

    if (path == NULL || header == NULL || out == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "zipccl_trace_writer_open: NULL argument");
    w = calloc(1, sizeof *w);
    if (w == NULL || (w->path = malloc(strlen(path) + 1)) == NULL) {
        free(w);
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path);
    }
    strcpy(w->path, path);
    status = start(w, header, error);
    if (status != ZIPCCL_OK) {
        destroy(w);
        return status;
    }
    *out = w;
    return ZIPCCL_OK;
}

zipccl_status zipccl_trace_write(struct zipccl_trace_writer *w, const struct zipccl_event *event,
                                 struct zipccl_error *error)
{
    struct zipccl_place at = {w->path, w->line + 1, error};
    zipccl_status status;

    if (w->failed)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "%s: written to after an error", w->path);
    status = zipccl_trace_check_event(&w->checker, &at, event);
    if (status == ZIPCCL_OK) {
        w->line++;
        zipccl_trace_gen_event(w->gen, &w->header, event);
        status = put_line(w, error);
    }
    w->failed = status != ZIPCCL_OK;
    return status;
}

static zipccl_status finish(struct zipccl_trace_writer *w, struct zipccl_error *error)
{
    struct zipccl_place at = {w->path, ++w->line, error};
    FILE *file;

    if (w->failed)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "%s: not kept, since an event failed", w->path);
    ZIPCCL_TRY(zipccl_trace_check_end(&w->checker, &at));
    zipccl_trace_gen_end(w->gen, w->checker.nevents);
    ZIPCCL_TRY(put_line(w, error));
    if (w->gzip)
        ZIPCCL_TRY(put(w, NULL, 0, Z_FINISH, error));
    file = w->file;
    w->file = NULL;
    if (fclose(file) != 0 || rename(w->temporary, w->path) != 0)
        return write_failed(w, error);
    free(w->temporary);
    w->temporary = NULL;
    return ZIPCCL_OK;
}

zipccl_status zipccl_trace_writer_finish(struct zipccl_trace_writer *writer, bool keep,
                                         struct zipccl_error *error)
{
    zipccl_status status = ZIPCCL_OK;

    if (writer == NULL)
        return ZIPCCL_OK;
    if (keep)
        status = finish(writer, error);
    destroy(writer);
    return status;
}
