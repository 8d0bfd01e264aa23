/*
 * items.c - a large JSON file whose objects stand in one array, read one object at a time
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/items.h"

#include "traces/import_kineto_stream.h"
#include "traces/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

#define MAX_DEPTH 64

/* Values of one object, so that memory is bounded. */
#define MAX_VALUES ((uint64_t)1 << 22)

enum where { START, TOP, LIST, INSIDE, DONE };

struct reader {
    struct zipccl_items *items;
    struct zipccl_arena arena;
    yajl_handle yajl;
    struct kineto_filter filter;
    enum where where;
    unsigned skip, depth; /* depth: of 'stack' */
    struct zipccl_item *stack[MAX_DEPTH];
    const char *key;
    char top_key[64];
    uint64_t line, nvalues;
    size_t counted;
    const char *piece;
    bool unwanted, seen;
    uint64_t item_line;
    zipccl_status status;
};

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
    struct zipccl_place at = {r->items->path, line_now(r), r->items->error};

    r->status = zipccl_place_fail(&at, "%s", what);
    return 0;
}

static int nomem(struct reader *r)
{
    struct zipccl_place at = {r->items->path, 0, r->items->error};

    r->status = zipccl_place_nomem(&at);
    return 0;
}

/* Hang a new value into the object that is being read. */
static struct zipccl_item *add(struct reader *r, enum zipccl_item_type type, const char *text,
                               size_t n)
{
    struct zipccl_item *item = zipccl_arena_alloc(&r->arena, 1, sizeof *item);
    struct zipccl_item *parent = r->depth > 0 ? r->stack[r->depth - 1] : NULL;

    if (++r->nvalues > MAX_VALUES) {
        fail(r, "an object of more than 2^22 values, expected fewer");
        return NULL;
    }
    if (item != NULL)
        item->text = n > 0 ? zipccl_arena_string(&r->arena, text, n) : "";
    if (item == NULL || item->text == NULL) {
        nomem(r);
        return NULL;
    }
    item->type = type;
    item->key = r->key != NULL ? r->key : "";
    r->key = NULL;
    if (parent == NULL)
        return item;
    if (parent->last != NULL)
        parent->last->next = item;
    else
        parent->child = item;
    parent->last = item;
    parent->n++;
    return item;
}

static int scalar(struct reader *r, enum zipccl_item_type type, const char *text, size_t n)
{
    struct zipccl_item *item;
    char copy[256];

    if (r->skip > 0 || r->unwanted)
        return 1;
    if (r->where == TOP && r->items->take_top != NULL) {
        snprintf(copy, sizeof copy, "%.*s", (int)(n < 255 ? n : 255), text);
        r->status = r->items->take_top(r->items->context, r->top_key, copy);
        return r->status == ZIPCCL_OK;
    }
    if (r->where == LIST)
        return fail(r, "no object in the list, expected objects alone");
    if (r->where != INSIDE)
        return 1;
    item = add(r, type, text, n);
    if (item == NULL)
        return 0;
    if (r->depth == 1 && r->items->wants != NULL)
        r->unwanted = !r->items->wants(r->items->context, item->key, item->text);
    return 1;
}

static int on_null(void *context)
{
    return scalar(context, ZIPCCL_ITEM_OTHER, "null", 4);
}

static int on_boolean(void *context, int value)
{
    return scalar(context, ZIPCCL_ITEM_OTHER, value ? "true" : "false", value ? 4 : 5);
}

static int on_number(void *context, const char *text, size_t n)
{
    return scalar(context, ZIPCCL_ITEM_NUMBER, text, n);
}

static int on_string(void *context, const unsigned char *text, size_t n)
{
    return scalar(context, ZIPCCL_ITEM_STRING, (const char *)text, n);
}

static int on_key(void *context, const unsigned char *text, size_t n)
{
    struct reader *r = context;

    if (r->where == TOP && r->skip == 0)
        snprintf(r->top_key, sizeof r->top_key, "%.*s", (int)(n < 63 ? n : 63), (const char *)text);
    if (r->where != INSIDE || r->unwanted)
        return 1;
    r->key = zipccl_arena_string(&r->arena, (const char *)text, n);
    return r->key != NULL ? 1 : nomem(r);
}

/* An array or object inside an object; deeper than needed, or of no interest, it is not kept. */
static int open_value(struct reader *r, enum zipccl_item_type type)
{
    struct zipccl_item *item;

    if (r->unwanted || r->skip > 0) {
        r->skip++;
        return 1;
    }
    if (r->depth == MAX_DEPTH)
        return fail(r, "values nested more than 64 deep, expected fewer");
    item = add(r, type, "", 0);
    if (item == NULL)
        return 0;
    r->stack[r->depth++] = item;
    return 1;
}

static int on_start_map(void *context)
{
    struct reader *r = context;

    if (r->where == START) {
        r->where = TOP;
        return 1;
    }
    if (r->where == LIST) {
        zipccl_arena_reset(&r->arena);
        r->nvalues = 0;
        r->key = NULL;
        r->unwanted = false;
        r->where = INSIDE;
        r->item_line = line_now(r);
        return open_value(r, ZIPCCL_ITEM_OBJECT);
    }
    if (r->where == INSIDE)
        return open_value(r, ZIPCCL_ITEM_OBJECT);
    r->skip++;
    return 1;
}

static int on_start_array(void *context)
{
    struct reader *r = context;

    if (r->where == START)
        return fail(r, "a list, expected an object");
    if (r->where == TOP && r->skip == 0 && strcmp(r->top_key, r->items->array) == 0) {
        r->where = LIST;
        r->seen = true;
        return 1;
    }
    if (r->where == LIST)
        return fail(r, "a list in the list, expected objects alone");
    if (r->where == INSIDE)
        return open_value(r, ZIPCCL_ITEM_ARRAY);
    r->skip++;
    return 1;
}

static int end_item(struct reader *r)
{
    r->where = LIST;
    r->items->nitems++;
    if (r->unwanted)
        return 1;
    r->status = r->items->take(r->items->context, r->stack[0], r->item_line);
    return r->status == ZIPCCL_OK;
}

static int on_end(void *context)
{
    struct reader *r = context;

    if (r->skip > 0) {
        r->skip--;
        return 1;
    }
    if (r->where == INSIDE) {
        r->key = NULL;
        return --r->depth == 0 ? end_item(r) : 1;
    }
    r->where = r->where == LIST ? TOP : DONE;
    return 1;
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
    struct zipccl_place at = {r->items->path, line_now(r), r->items->error};
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
    return zipccl_place_fail(&at, "%s, expected JSON of %s", reason, r->items->what);
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
    struct zipccl_place at = {r->items->path, 0, r->items->error};

    ZIPCCL_TRY(kineto_stream(r->items->path, &r->filter, feed, r, r->items->error));
    r->piece = "";
    r->counted = SIZE_MAX;
    if (yajl_complete_parse(r->yajl) != yajl_status_ok)
        return parse_failed(r, "", 0);
    if (!r->seen)
        return zipccl_place_fail(&at, "no \"%s\", expected %s", r->items->array, r->items->what);
    return ZIPCCL_OK;
}

zipccl_status zipccl_items_read(struct zipccl_items *items)
{
    struct reader r = {.items = items, .line = 1};
    zipccl_status status;

    r.yajl = yajl_alloc(&callbacks, NULL, &r);
    if (r.yajl == NULL)
        return zipccl_fail(items->error, ZIPCCL_ERR_NOMEM, "%s: out of memory", items->path);
    yajl_config(r.yajl, yajl_dont_validate_strings, 1);
    status = read_all(&r);
    yajl_free(r.yajl);
    zipccl_arena_free(&r.arena);
    return status;
}

const struct zipccl_item *zipccl_item_get(const struct zipccl_item *item, const char *key)
{
    for (item = item != NULL ? item->child : NULL; item != NULL; item = item->next)
        if (strcmp(item->key, key) == 0)
            return item;
    return NULL;
}

const struct zipccl_item *zipccl_item_at(const struct zipccl_item *item, uint32_t i)
{
    for (item = item != NULL ? item->child : NULL; item != NULL && i > 0; i--)
        item = item->next;
    return item;
}

bool zipccl_item_integer(const struct zipccl_item *item, int64_t *out)
{
    char *end;
    long long value;

    if (item == NULL || item->type != ZIPCCL_ITEM_NUMBER)
        return false;
    errno = 0;
    value = strtoll(item->text, &end, 10);
    if (errno != 0 || *end != '\0' || end == item->text)
        return false;
    *out = value;
    return true;
}
