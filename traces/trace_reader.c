/*
 * trace_reader.c - reads traces line by line
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/trace.h"

#include "traces/lines.h"
#include "traces/trace_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct zipccl_trace_reader {
    char *path, *samples_path;
    struct zipccl_lines *lines;
    struct zipccl_arena header_arena, event_arena, line_arena;
    struct zipccl_trace_header header;
    struct zipccl_trace_checker checker;
    struct zipccl_event event;
    bool ended, failed;
};

static char *join(const char *folder, size_t nbytes, const char *name)
{
    char *path = malloc(nbytes + strlen(name) + 2);

    if (path != NULL)
        sprintf(path, "%.*s/%s", (int)nbytes, folder, name);
    return path;
}

/* The file that 'path' means: itself, or the trace in the folder. */
static zipccl_status find_file(const char *path, char **out, struct zipccl_error *error)
{
    static const char *const names[] = {"trace.jsonl", "trace.jsonl.gz"};
    struct stat info;
    char *found = NULL;
    size_t nbytes = strlen(path);

    if (stat(path, &info) != 0)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: %s", path, strerror(errno));
    if (!S_ISDIR(info.st_mode)) {
        found = malloc(nbytes + 1);
        if (found == NULL)
            return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path);
        memcpy(found, path, nbytes + 1);
    }
    while (nbytes > 1 && path[nbytes - 1] == '/')
        nbytes--;
    for (unsigned i = 0; i < 2 && S_ISDIR(info.st_mode); i++) {
        struct stat file;
        char *name = join(path, nbytes, names[i]);

        if (name == NULL || stat(name, &file) != 0) {
            free(name);
        } else if (found != NULL) {
            free(found);
            free(name);
            return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                               "%s: both trace.jsonl and trace.jsonl.gz, expected one", path);
        } else {
            found = name;
        }
    }
    if (found == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%s: a folder without trace.jsonl or trace.jsonl.gz, expected one",
                           path);
    *out = found;
    return ZIPCCL_OK;
}

static zipccl_status resolve_samples(struct zipccl_trace_reader *r, const struct zipccl_place *at)
{
    const char *samples = r->header.samples, *slash = strrchr(r->path, '/');

    if (samples == NULL)
        return ZIPCCL_OK;
    if (samples[0] == '/')
        r->samples_path = join("", 0, samples + 1);
    else if (slash == NULL)
        r->samples_path = join(".", 1, samples);
    else
        r->samples_path = join(r->path, (size_t)(slash - r->path), samples);
    return r->samples_path != NULL ? ZIPCCL_OK : zipccl_place_nomem(at);
}

/* Read and parse the next line; '*json' NULL at the end of the file. */
static zipccl_status next_json(struct zipccl_trace_reader *r, struct zipccl_json **json,
                               struct zipccl_error *error)
{
    struct zipccl_place at = {r->path, 0, error};
    const char *line;
    size_t nbytes;

    *json = NULL;
    ZIPCCL_TRY(zipccl_lines_next(r->lines, &line, &nbytes, error));
    if (line == NULL)
        return ZIPCCL_OK;
    at.line = zipccl_lines_number(r->lines);
    zipccl_arena_reset(&r->line_arena);
    return zipccl_json_parse(&at, &r->line_arena, line, nbytes, json);
}

static zipccl_status read_header(struct zipccl_trace_reader *r, struct zipccl_error *error)
{
    struct zipccl_place at = {r->path, 1, error};
    struct zipccl_json *json;

    ZIPCCL_TRY(zipccl_lines_open(r->path, &r->lines, error));
    ZIPCCL_TRY(next_json(r, &json, error));
    if (json == NULL)
        return zipccl_place_fail(&at, "an empty file, expected the header of a trace");
    ZIPCCL_TRY(zipccl_trace_parse_header(&at, json, &r->header_arena, &r->header));
    ZIPCCL_TRY(resolve_samples(r, &at));
    return zipccl_trace_checker_init(&r->checker, &r->header, &at);
}

zipccl_status zipccl_trace_open(const char *path, struct zipccl_trace_reader **out,
                                struct zipccl_error *error)
{
    struct zipccl_trace_reader *r;
    zipccl_status status;
    char *file;

    if (path == NULL || out == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "zipccl_trace_open: NULL argument");
    ZIPCCL_TRY(find_file(path, &file, error));
    r = calloc(1, sizeof *r);
    if (r == NULL) {
        free(file);
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path);
    }
    r->path = file;
    status = read_header(r, error);
    if (status != ZIPCCL_OK) {
        zipccl_trace_close(r);
        return status;
    }
    *out = r;
    return ZIPCCL_OK;
}

const struct zipccl_trace_header *zipccl_trace_header(const struct zipccl_trace_reader *reader)
{
    return &reader->header;
}

const char *zipccl_trace_path(const struct zipccl_trace_reader *reader)
{
    return reader->path;
}

const char *zipccl_trace_samples_path(const struct zipccl_trace_reader *reader)
{
    return reader->samples_path;
}

uint64_t zipccl_trace_line(const struct zipccl_trace_reader *reader)
{
    return zipccl_lines_number(reader->lines);
}

/* After the end record nothing may follow. */
static zipccl_status read_end(struct zipccl_trace_reader *r, struct zipccl_place *at,
                              uint64_t nevents)
{
    const char *line;
    size_t nbytes;

    ZIPCCL_TRY(zipccl_trace_check_end(&r->checker, at));
    if (nevents != r->checker.nevents)
        return zipccl_place_fail(
            at, "an end record of %" PRIu64 " events after %" PRIu64 ", expected the same", nevents,
            r->checker.nevents);
    ZIPCCL_TRY(zipccl_lines_next(r->lines, &line, &nbytes, at->error));
    if (line != NULL) {
        at->line = zipccl_lines_number(r->lines);
        return zipccl_place_fail(at, "a line after the end record, expected the end of the file");
    }
    r->ended = true;
    return ZIPCCL_OK;
}

static zipccl_status read_event(struct zipccl_trace_reader *r, struct zipccl_arena *arena,
                                struct zipccl_event *event, struct zipccl_error *error)
{
    struct zipccl_place at = {r->path, 0, error};
    struct zipccl_json *json;
    uint64_t nevents = 0;
    unsigned kind = 0;

    ZIPCCL_TRY(next_json(r, &json, error));
    at.line = zipccl_lines_number(r->lines);
    if (json == NULL) {
        at.line++;
        return zipccl_place_fail(&at,
                                 "the end of the file after %" PRIu64
                                 " events, expected an end record: the file is cut",
                                 r->checker.nevents);
    }
    ZIPCCL_TRY(zipccl_trace_parse_line(&at, json, &r->header, arena, event, &kind, &nevents));
    if (kind == ZIPCCL_TRACE_LINE_END)
        return read_end(r, &at, nevents);
    return zipccl_trace_check_event(&r->checker, &at, event);
}

zipccl_status zipccl_trace_read_into(struct zipccl_trace_reader *r, struct zipccl_arena *arena,
                                     struct zipccl_event *event, bool *end,
                                     struct zipccl_error *error)
{
    if (r->failed)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: read on after an error", r->path);
    if (!r->ended) {
        zipccl_status status = read_event(r, arena, event, error);

        if (status != ZIPCCL_OK) {
            r->failed = true;
            return status;
        }
    }
    *end = r->ended;
    return ZIPCCL_OK;
}

zipccl_status zipccl_trace_next(struct zipccl_trace_reader *reader,
                                const struct zipccl_event **event, struct zipccl_error *error)
{
    bool end;

    zipccl_arena_reset(&reader->event_arena);
    ZIPCCL_TRY(zipccl_trace_read_into(reader, &reader->event_arena, &reader->event, &end, error));
    *event = end ? NULL : &reader->event;
    return ZIPCCL_OK;
}

void zipccl_trace_reader_give(struct zipccl_trace_reader *r, struct zipccl_arena *arena,
                              struct zipccl_trace_header *header, char **path, char **samples_path)
{
    *arena = r->header_arena;
    *header = r->header;
    *path = r->path;
    *samples_path = r->samples_path;
    r->header_arena.head = NULL;
    r->path = r->samples_path = NULL;
}

void zipccl_trace_close(struct zipccl_trace_reader *reader)
{
    if (reader == NULL)
        return;
    zipccl_trace_checker_free(&reader->checker);
    zipccl_lines_close(reader->lines);
    zipccl_arena_free(&reader->header_arena);
    zipccl_arena_free(&reader->event_arena);
    zipccl_arena_free(&reader->line_arena);
    free(reader->path);
    free(reader->samples_path);
    free(reader);
}
