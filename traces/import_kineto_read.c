/*
 * import_kineto_read.c - reads a profiler file event by event, without a tree of it
 *
 * yajl's callbacks keep a stack of where they are; what has no meaning is skipped by depth.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_kineto_read.h"

#include "traces/import_kineto_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

/* Longest text that is kept of a value; lists of ranks and splits may be long. */
#define MAX_TEXT ((size_t)1 << 20)

#define MAX_DEPTH 512

enum where {
    START,
    TOP,
    EVENTS,
    EVENT,
    ARGS,
    DIMS,
    DIMS_FIRST,
    TYPES,
    DIST,
    PGS,
    PG,
    PG_RANKS,
    DONE
};

struct reader {
    struct kineto_file *file;
    struct zipccl_error *error;
    struct kineto_texts texts;
    struct kineto_event event;
    yajl_handle yajl;
    struct kineto_filter filter;
    enum where where;
    unsigned skip, depth;
    enum kineto_key key; /* of the value that comes next */
    char name[32];       /* the key itself in TOP, DIST and PG */
    uint64_t line;
    size_t counted; /* bytes of the piece whose lines are in 'line' */
    const char *piece;
    struct kineto_pg pg;
    size_t rank_room;
    bool events_seen;
    zipccl_status status;
};

static const struct {
    const char *name;
    enum kineto_key key;
} event_keys[] = {{"ph", KINETO_KEY_PH},   {"cat", KINETO_KEY_CAT},  {"name", KINETO_KEY_NAME},
                  {"ts", KINETO_KEY_TS},   {"dur", KINETO_KEY_DUR},  {"pid", KINETO_KEY_PID},
                  {"tid", KINETO_KEY_TID}, {"args", KINETO_KEY_ARGS}},
  arg_keys[] = {{"correlation", KINETO_KEY_CORRELATION},
                {"stream", KINETO_KEY_STREAM},
                {"wait_on_stream", KINETO_KEY_WAIT_ON},
                {"Collective name", KINETO_KEY_COLL},
                {"dtype", KINETO_KEY_DTYPE},
                {"In msg nelems", KINETO_KEY_IN},
                {"Out msg nelems", KINETO_KEY_OUT},
                {"Group size", KINETO_KEY_SIZE},
                {"In split size", KINETO_KEY_IN_SPLIT},
                {"Process Group Name", KINETO_KEY_PG_NAME},
                {"Process Group ID", KINETO_KEY_PG_NAME},
                {"Process Group Description", KINETO_KEY_PG_DESC},
                {"Process Group Ranks", KINETO_KEY_PG_RANKS},
                {"Global rank start", KINETO_KEY_FIRST},
                {"Global rank stride", KINETO_KEY_STRIDE},
                {"Seq", KINETO_KEY_SEQ},
                {"Src Rank", KINETO_KEY_SRC},
                {"Dst Rank", KINETO_KEY_DST},
                {"Input Dims", KINETO_KEY_DIMS},
                {"Input dims", KINETO_KEY_DIMS},
                {"Input type", KINETO_KEY_TYPES}};

/* Line of the value that was read last. */
static uint64_t line_now(struct reader *r)
{
    size_t consumed = yajl_get_bytes_consumed(r->yajl);

    while (r->counted < consumed) {
        const char *newline = memchr(r->piece + r->counted, '\n', consumed - r->counted);

        r->counted = newline != NULL ? (size_t)(newline - r->piece) + 1 : consumed;
        r->line += newline != NULL;
    }
    return r->line;
}

static int fail(struct reader *r, const char *what)
{
    struct zipccl_place at = {r->file->path, line_now(r), r->error};

    r->status = zipccl_place_fail(&at, "%s", what);
    return 0;
}

static int nomem(struct reader *r)
{
    struct zipccl_place at = {r->file->path, 0, r->error};

    r->status = zipccl_place_nomem(&at);
    return 0;
}

static int keep(struct reader *r, enum kineto_key key, const char *text, size_t n, bool number)
{
    struct kineto_value *v = &r->event.values[key];

    if (n > MAX_TEXT)
        return fail(r, "a text of more than 1 MiB, expected a shorter one");
    if (v->room < n + 1) {
        char *more = realloc(v->text, 2 * n + 64);

        if (more == NULL)
            return nomem(r);
        v->text = more;
        v->room = 2 * n + 64;
    }
    memcpy(v->text, text, n);
    v->text[n] = '\0';
    v->nbytes = n;
    v->number = number;
    v->given = true;
    return 1;
}

static int keep_pg(struct reader *r, const char *text, size_t n, bool number)
{
    char copy[256];

    if (n >= sizeof copy)
        n = sizeof copy - 1;
    memcpy(copy, text, n);
    copy[n] = '\0';
    if (strcmp(r->name, "pg_name") == 0)
        r->pg.name = kineto_intern(&r->texts, copy);
    else if (strcmp(r->name, "pg_desc") == 0)
        r->pg.desc = kineto_intern(&r->texts, copy);
    else if (strcmp(r->name, "pg_size") == 0 && number)
        r->pg.size = (uint32_t)strtoul(copy, NULL, 10);
    return r->pg.name != NULL && r->pg.desc != NULL ? 1 : nomem(r);
}

static int add_pg_rank(struct reader *r, const char *text)
{
    if (!kineto_grow(&r->pg.ranks, &r->rank_room, r->pg.nranks, sizeof *r->pg.ranks))
        return nomem(r);
    r->pg.ranks[r->pg.nranks++] = (uint32_t)strtoul(text, NULL, 10);
    return 1;
}

static int value(struct reader *r, const char *text, size_t n, bool number)
{
    char copy[40];

    if (r->skip > 0)
        return 1;
    snprintf(copy, sizeof copy, "%.*s", (int)(n < 39 ? n : 39), text);
    switch (r->where) {
    case EVENT:
    case ARGS:
        return r->key != KINETO_KEY_NONE && r->key != KINETO_KEY_ARGS &&
                       r->key != KINETO_KEY_DIMS && r->key != KINETO_KEY_TYPES
                   ? keep(r, r->key, text, n, number)
                   : 1;
    case DIMS_FIRST:
        if (number)
            r->event.dims *= strtoull(copy, NULL, 10);
        return 1;
    case TYPES:
        if (r->event.type[0] == '\0')
            snprintf(r->event.type, sizeof r->event.type, "%.31s", copy);
        return 1;
    case DIST:
        if (strcmp(r->name, "rank") == 0)
            r->file->rank = strtoll(copy, NULL, 10);
        else if (strcmp(r->name, "world_size") == 0)
            r->file->world = strtoll(copy, NULL, 10);
        else if (strcmp(r->name, "backend") == 0)
            snprintf(r->file->backend, sizeof r->file->backend, "%.31s", copy);
        return 1;
    case PG: return keep_pg(r, text, n, number);
    case PG_RANKS: return number ? add_pg_rank(r, copy) : 1;
    case START: return fail(r, "a value alone, expected an object with \"traceEvents\"");
    default: return 1;
    }
}

static int on_null(void *context)
{
    return value(context, "", 0, false);
}

static int on_boolean(void *context, int b)
{
    return value(context, b ? "1" : "0", 1, false);
}

static int on_number(void *context, const char *text, size_t n)
{
    return value(context, text, n, true);
}

static int on_string(void *context, const unsigned char *text, size_t n)
{
    return value(context, (const char *)text, n, false);
}

static int on_key(void *context, const unsigned char *text, size_t n)
{
    struct reader *r = context;

    if (r->skip > 0)
        return 1;
    r->key = KINETO_KEY_NONE;
    if (r->where == EVENT) {
        for (size_t i = 0; i < sizeof event_keys / sizeof event_keys[0]; i++)
            if (event_keys[i].name[0] == (char)text[0] && strlen(event_keys[i].name) == n &&
                memcmp(event_keys[i].name, text, n) == 0)
                r->key = event_keys[i].key;
    } else if (r->where == ARGS) {
        for (size_t i = 0; i < sizeof arg_keys / sizeof arg_keys[0]; i++)
            if (n > 0 && arg_keys[i].name[0] == (char)text[0] && strlen(arg_keys[i].name) == n &&
                memcmp(arg_keys[i].name, text, n) == 0)
                r->key = arg_keys[i].key;
    } else {
        snprintf(r->name, sizeof r->name, "%.*s", (int)(n < 31 ? n : 31), (const char *)text);
    }
    return 1;
}

static void reset_event(struct kineto_event *e)
{
    for (int i = 0; i < KINETO_NUM_KEYS; i++)
        e->values[i].given = false;
    e->dims = 0;
    e->has_dims = e->first_dims_done = false;
    e->type[0] = '\0';
}

static int enter(struct reader *r, enum where where)
{
    r->where = where;
    return 1;
}

static int skip(struct reader *r)
{
    r->skip++;
    return 1;
}

static int on_start_map(void *context)
{
    struct reader *r = context;

    if (++r->depth > MAX_DEPTH)
        return fail(r, "values nested more than 512 deep, expected fewer");
    if (r->skip > 0)
        return skip(r);
    switch (r->where) {
    case START: return enter(r, TOP);
    case TOP: return strcmp(r->name, "distributedInfo") == 0 ? enter(r, DIST) : skip(r);
    case EVENTS:
        reset_event(&r->event);
        r->event.line = line_now(r);
        return enter(r, EVENT);
    case EVENT: return r->key == KINETO_KEY_ARGS ? enter(r, ARGS) : skip(r);
    case PGS:
        memset(&r->pg, 0, sizeof r->pg);
        r->pg.name = r->pg.desc = "";
        r->rank_room = 0;
        return enter(r, PG);
    default: return skip(r);
    }
}

static int on_start_array(void *context)
{
    struct reader *r = context;

    if (++r->depth > MAX_DEPTH)
        return fail(r, "values nested more than 512 deep, expected fewer");
    if (r->skip > 0)
        return skip(r);
    switch (r->where) {
    case START: r->events_seen = true; return enter(r, EVENTS); /* an old file: a bare array */
    case TOP:
        if (strcmp(r->name, "traceEvents") != 0)
            return skip(r);
        r->events_seen = true;
        return enter(r, EVENTS);
    case ARGS:
        if (r->key == KINETO_KEY_DIMS)
            return enter(r, DIMS);
        return r->key == KINETO_KEY_TYPES ? enter(r, TYPES) : skip(r);
    case DIMS:
        if (r->event.first_dims_done)
            return skip(r);
        r->event.first_dims_done = r->event.has_dims = true;
        r->event.dims = 1;
        return enter(r, DIMS_FIRST);
    case DIST: return strcmp(r->name, "pg_config") == 0 ? enter(r, PGS) : skip(r);
    case PG: return strcmp(r->name, "ranks") == 0 ? enter(r, PG_RANKS) : skip(r);
    default: return skip(r);
    }
}

static int end_event(struct reader *r)
{
    r->file->nevents++;
    r->status = kineto_take_event(r->file, &r->texts, &r->event, r->error);
    return r->status == ZIPCCL_OK;
}

/* The process group that was read; its ranks move to the arena. */
static int end_pg(struct reader *r)
{
    struct kineto_file *f = r->file;
    uint32_t *ranks = zipccl_arena_alloc(&f->arena, r->pg.nranks, sizeof *ranks);

    if (ranks == NULL || !kineto_grow(&f->pgs, &f->pg_room, f->npgs, sizeof *f->pgs))
        return nomem(r);
    if (r->pg.nranks > 0)
        memcpy(ranks, r->pg.ranks, r->pg.nranks * sizeof *ranks);
    free(r->pg.ranks);
    r->pg.ranks = NULL;
    f->pgs[f->npgs] = r->pg;
    f->pgs[f->npgs++].ranks = ranks;
    return 1;
}

static int on_end(void *context)
{
    static const enum where parent[] = {
        [TOP] = DONE,        [EVENTS] = TOP, [EVENT] = EVENTS, [ARGS] = EVENT, [DIMS] = ARGS,
        [DIMS_FIRST] = DIMS, [TYPES] = ARGS, [DIST] = TOP,     [PGS] = DIST,   [PG] = PGS,
        [PG_RANKS] = PG,     [START] = DONE, [DONE] = DONE};
    struct reader *r = context;
    enum where where = r->where;

    r->depth--;
    if (r->skip > 0) {
        r->skip--;
        return 1;
    }
    r->where = r->depth == 0 ? DONE : parent[where];
    r->key = KINETO_KEY_NONE;
    if (where == EVENT)
        return end_event(r);
    return where == PG ? end_pg(r) : 1;
}

static const yajl_callbacks callbacks = {
    .yajl_null = on_null,
    .yajl_boolean = on_boolean,
    .yajl_number = on_number,
    .yajl_string = on_string,
    .yajl_start_map = on_start_map,
    .yajl_map_key = on_key,
    .yajl_end_map = on_end,
    .yajl_start_array = on_start_array,
    .yajl_end_array = on_end,
};

static zipccl_status parse_failed(struct reader *r, const char *bytes, size_t n)
{
    struct zipccl_place at = {r->file->path, line_now(r), r->error};
    unsigned char *message;
    char reason[100];

    if (r->status != ZIPCCL_OK)
        return r->status;
    message = yajl_get_error(r->yajl, 0, (const unsigned char *)bytes, n);
    snprintf(reason, sizeof reason, "%.*s",
             message != NULL ? (int)strcspn((const char *)message, "\n") : 13,
             message != NULL ? (const char *)message : "invalid JSON.");
    yajl_free_error(r->yajl, message);
    if (strstr(reason, "premature") != NULL)
        return zipccl_place_fail(&at, "the end of the file inside a value, expected more of it: "
                                      "the file is cut");
    return zipccl_place_fail(&at, "%s, expected JSON of the PyTorch profiler", reason);
}

static zipccl_status feed(void *context, const char *bytes, size_t n)
{
    struct reader *r = context;

    if (n == 0) /* yajl would still tell of the piece before */
        return ZIPCCL_OK;
    r->piece = bytes;
    r->counted = 0;
    if (yajl_parse(r->yajl, (const unsigned char *)bytes, n) != yajl_status_ok)
        return parse_failed(r, bytes, n);
    line_now(r);
    return ZIPCCL_OK;
}

static zipccl_status read_all(struct reader *r)
{
    struct zipccl_place at = {r->file->path, 0, r->error};
    zipccl_status status = kineto_stream(r->file->path, &r->filter, feed, r, r->error);

    r->file->nreplaced = r->filter.nreplaced;
    ZIPCCL_TRY(status);
    r->piece = "";
    r->counted = SIZE_MAX;
    if (yajl_complete_parse(r->yajl) != yajl_status_ok)
        return parse_failed(r, "", 0);
    if (!r->events_seen)
        return zipccl_place_fail(&at,
                                 "no \"traceEvents\", expected a file of the PyTorch profiler");
    return ZIPCCL_OK;
}

zipccl_status kineto_read(const char *path, struct kineto_file *file, struct zipccl_error *error)
{
    struct reader r = {.file = file, .error = error, .line = 1};
    zipccl_status status;

    memset(file, 0, sizeof *file);
    file->path = path;
    file->rank = file->world = -1;
    r.texts.arena = &file->arena;
    r.yajl = yajl_alloc(&callbacks, NULL, &r);
    if (r.yajl == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path);
    /* Names of kernels may hold any bytes; what reaches a trace is checked there. */
    yajl_config(r.yajl, yajl_dont_validate_strings, 1);
    status = read_all(&r);
    yajl_free(r.yajl);
    for (int i = 0; i < KINETO_NUM_KEYS; i++)
        free(r.event.values[i].text);
    free(r.pg.ranks);
    kineto_texts_free(&r.texts);
    return status;
}

void kineto_file_free(struct kineto_file *file)
{
    free(file->gpu);
    free(file->launches);
    free(file->syncs);
    free(file->blocks);
    free(file->metas);
    free(file->ordered);
    free(file->streams);
    free(file->threads);
    free(file->pgs);
    zipccl_arena_free(&file->arena);
    memset(file, 0, sizeof *file);
}
