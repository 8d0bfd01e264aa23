/*
 * json.c - one small JSON text as a tree, and strict access to its fields
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_parse.h>

/* Bounds the memory that a hostile line can claim to about 16 times its length. */
#define MAX_NODES ((uint32_t)1 << 23)

struct parser {
    struct zipccl_arena *arena;
    struct zipccl_json *root;
    struct zipccl_json *stack[ZIPCCL_JSON_MAX_DEPTH];
    unsigned depth;
    uint32_t nnodes;
    const char *key;
    bool nomem;
    char reason[128]; /* why a callback stopped the parse; empty otherwise */
};

static int stop(struct parser *p, const char *reason)
{
    snprintf(p->reason, sizeof p->reason, "%s", reason);
    return 0;
}

static int out_of_memory(struct parser *p)
{
    p->nomem = true;
    return 0;
}

static struct zipccl_json *add(struct parser *p, enum zipccl_json_type type)
{
    struct zipccl_json *node;

    if (p->nnodes++ == MAX_NODES) {
        stop(p, "more than 8388608 values, expected fewer");
        return NULL;
    }
    node = zipccl_arena_alloc(p->arena, 1, sizeof *node);
    if (node == NULL) {
        out_of_memory(p);
        return NULL;
    }
    node->type = type;
    node->key = p->key;
    p->key = NULL;
    if (p->depth == 0) {
        p->root = node;
    } else {
        struct zipccl_json *parent = p->stack[p->depth - 1];

        if (parent->child == NULL)
            parent->child = node;
        else
            parent->value.last->next = node;
        parent->value.last = node;
        parent->n++;
    }
    return node;
}

static int on_null(void *context)
{
    return add(context, ZIPCCL_JSON_NULL) != NULL;
}

static int on_boolean(void *context, int value)
{
    struct zipccl_json *node = add(context, ZIPCCL_JSON_BOOL);

    if (node == NULL)
        return 0;
    node->value.boolean = value != 0;
    return 1;
}

static int on_number(void *context, const char *text, size_t nbytes)
{
    struct parser *p = context;
    struct zipccl_json *node;
    char copy[64];

    if (nbytes >= sizeof copy)
        return stop(p, "a number of more than 63 characters, expected fewer");
    memcpy(copy, text, nbytes);
    copy[nbytes] = '\0';
    node = add(p, ZIPCCL_JSON_REAL);
    if (node == NULL)
        return 0;
    node->real = strtod(copy, NULL);
    if (!isfinite(node->real))
        return stop(p, "a number that is out of range, expected a finite one");
    if (strpbrk(copy, ".eE") == NULL && fabs(node->real) <= (double)ZIPCCL_JSON_MAX_INTEGER) {
        long long value = strtoll(copy, NULL, 10);

        /* 2^53 + 1 rounds to 2^53 as a double, so the integer decides. */
        if (value <= (long long)ZIPCCL_JSON_MAX_INTEGER &&
            value >= -(long long)ZIPCCL_JSON_MAX_INTEGER) {
            node->type = ZIPCCL_JSON_INTEGER;
            node->value.integer = value;
            return 1;
        }
    }
    node->value.string = zipccl_arena_string(p->arena, copy, nbytes);
    return node->value.string != NULL ? 1 : out_of_memory(p);
}

static int on_string(void *context, const unsigned char *text, size_t nbytes)
{
    struct parser *p = context;
    struct zipccl_json *node;

    if (memchr(text, '\0', nbytes) != NULL)
        return stop(p, "a string that holds U+0000, expected none");
    node = add(p, ZIPCCL_JSON_STRING);
    if (node == NULL)
        return 0;
    node->value.string = zipccl_arena_string(p->arena, (const char *)text, nbytes);
    return node->value.string != NULL ? 1 : out_of_memory(p);
}

static int on_key(void *context, const unsigned char *text, size_t nbytes)
{
    struct parser *p = context;

    if (memchr(text, '\0', nbytes) != NULL)
        return stop(p, "a key that holds U+0000, expected none");
    p->key = zipccl_arena_string(p->arena, (const char *)text, nbytes);
    return p->key != NULL ? 1 : out_of_memory(p);
}

static int begin(struct parser *p, enum zipccl_json_type type)
{
    struct zipccl_json *node;

    if (p->depth == ZIPCCL_JSON_MAX_DEPTH)
        return stop(p, "values nested more than 16 deep, expected fewer");
    node = add(p, type);
    if (node == NULL)
        return 0;
    p->stack[p->depth++] = node;
    return 1;
}

static int on_start_map(void *context)
{
    return begin(context, ZIPCCL_JSON_OBJECT);
}

static int on_start_array(void *context)
{
    return begin(context, ZIPCCL_JSON_ARRAY);
}

static int on_end(void *context)
{
    struct parser *p = context;

    p->depth--;
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

static zipccl_status parse_failed(const struct zipccl_place *at, const struct parser *p,
                                  yajl_handle yajl, const char *text, size_t nbytes)
{
    size_t column = yajl_get_bytes_consumed(yajl) + 1;
    char reason[100];
    unsigned char *message;

    if (p->nomem)
        return zipccl_place_nomem(at);
    if (p->reason[0] != '\0')
        return zipccl_place_fail(at, "%s (column %zu)", p->reason, column);
    message = yajl_get_error(yajl, 0, (const unsigned char *)text, nbytes);
    snprintf(reason, sizeof reason, "%.*s",
             message != NULL ? (int)strcspn((const char *)message, "\n") : 13,
             message != NULL ? (const char *)message : "invalid JSON.");
    yajl_free_error(yajl, message);
    if (strstr(reason, "premature EOF") != NULL)
        return zipccl_place_fail(at, "JSON that is cut after %zu bytes, expected one whole object",
                                 nbytes);
    return zipccl_place_fail(at, "%s at column %zu, expected one JSON object", reason, column);
}

zipccl_status zipccl_json_parse(const struct zipccl_place *at, struct zipccl_arena *arena,
                                const char *text, size_t nbytes, struct zipccl_json **out)
{
    struct parser parser = {.arena = arena};
    zipccl_status status = ZIPCCL_OK;
    yajl_handle yajl;

    if (nbytes == 0)
        return zipccl_place_fail(at, "empty, expected one JSON object");
    if (!zipccl_utf8_valid(text, nbytes))
        return zipccl_place_fail(at, "bytes that are not UTF-8, expected one JSON object");
    yajl = yajl_alloc(&callbacks, NULL, &parser);
    if (yajl == NULL)
        return zipccl_place_nomem(at);
    if (yajl_parse(yajl, (const unsigned char *)text, nbytes) != yajl_status_ok ||
        yajl_complete_parse(yajl) != yajl_status_ok)
        status = parse_failed(at, &parser, yajl, text, nbytes);
    yajl_free(yajl);
    if (status != ZIPCCL_OK)
        return status;
    if (parser.root == NULL || parser.root->type != ZIPCCL_JSON_OBJECT)
        return zipccl_place_fail(at, "a value that is no object, expected one JSON object");
    *out = parser.root;
    return ZIPCCL_OK;
}

const struct zipccl_json *zipccl_json_get(const struct zipccl_json *object, const char *key)
{
    for (const struct zipccl_json *node = object->child; node != NULL; node = node->next)
        if (strcmp(node->key, key) == 0)
            return node;
    return NULL;
}

static zipccl_status unknown_key(const struct zipccl_place *at, const char *what, unsigned kind,
                                 const char *key, const struct zipccl_json_key *keys, size_t nkeys)
{
    char quoted[ZIPCCL_QUOTE_SIZE], list[256] = "";
    size_t used = 0;

    for (size_t i = 0; i < nkeys; i++)
        if (keys[i].allowed >> kind & 1 && used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "",
                                     keys[i].name);
    return zipccl_place_fail(at, "unknown key %s in %s, expected one of: %s",
                             zipccl_quote(quoted, key), what, list);
}

zipccl_status zipccl_json_keys(const struct zipccl_place *at, const struct zipccl_json *object,
                               const char *what, unsigned kind, const struct zipccl_json_key *keys,
                               size_t nkeys, const struct zipccl_json **values)
{
    for (size_t i = 0; i < nkeys; i++)
        values[i] = NULL;
    for (const struct zipccl_json *node = object->child; node != NULL; node = node->next) {
        size_t i = 0;

        while (i < nkeys && (!(keys[i].allowed >> kind & 1) || strcmp(keys[i].name, node->key)))
            i++;
        if (i == nkeys)
            return unknown_key(at, what, kind, node->key, keys, nkeys);
        if (values[i] != NULL)
            return zipccl_place_fail(at, "key \"%s\" twice in %s, expected once", keys[i].name,
                                     what);
        values[i] = node;
    }
    for (size_t i = 0; i < nkeys; i++)
        if (keys[i].required >> kind & 1 && values[i] == NULL)
            return zipccl_place_fail(at, "no key \"%s\" in %s, expected one", keys[i].name, what);
    return ZIPCCL_OK;
}

zipccl_status zipccl_json_uint(const struct zipccl_place *at, const struct zipccl_json *node,
                               const char *name, uint64_t min, uint64_t max, uint64_t *out)
{
    char found[ZIPCCL_QUOTE_SIZE];

    if (node->type != ZIPCCL_JSON_INTEGER || node->value.integer < 0 ||
        (uint64_t)node->value.integer < min || (uint64_t)node->value.integer > max)
        return zipccl_place_fail(at,
                                 "\"%s\" is %s, expected an integer from %" PRIu64 " to %s%" PRIu64,
                                 name, zipccl_json_describe(found, node), min,
                                 max == ZIPCCL_JSON_MAX_INTEGER ? "2^53 = " : "", max);
    *out = (uint64_t)node->value.integer;
    return ZIPCCL_OK;
}

zipccl_status zipccl_json_real(const struct zipccl_place *at, const struct zipccl_json *node,
                               const char *name, double *out)
{
    char found[ZIPCCL_QUOTE_SIZE];

    if ((node->type != ZIPCCL_JSON_INTEGER && node->type != ZIPCCL_JSON_REAL) || node->real < 0 ||
        signbit(node->real))
        return zipccl_place_fail(at, "\"%s\" is %s, expected a number from 0 up", name,
                                 zipccl_json_describe(found, node));
    *out = node->real;
    return ZIPCCL_OK;
}

zipccl_status zipccl_json_string(const struct zipccl_place *at, const struct zipccl_json *node,
                                 const char *name, const char **out)
{
    char found[ZIPCCL_QUOTE_SIZE];

    if (node->type != ZIPCCL_JSON_STRING || node->value.string[0] == '\0')
        return zipccl_place_fail(at, "\"%s\" is %s, expected a string that is not empty", name,
                                 zipccl_json_describe(found, node));
    if (!zipccl_text_printable(node->value.string))
        return zipccl_place_fail(at, "\"%s\" is %s with control characters, expected none", name,
                                 zipccl_json_describe(found, node));
    *out = node->value.string;
    return ZIPCCL_OK;
}

zipccl_status zipccl_json_array(const struct zipccl_place *at, const struct zipccl_json *node,
                                const char *name, uint32_t min)
{
    char found[ZIPCCL_QUOTE_SIZE];

    if (node->type != ZIPCCL_JSON_ARRAY || node->n < min)
        return zipccl_place_fail(at, "\"%s\" is %s, expected an array of at least %" PRIu32, name,
                                 zipccl_json_describe(found, node), min);
    return ZIPCCL_OK;
}
