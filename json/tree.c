/*
 * tree.c - a JSON text as a tree of values
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "json/yajl/yajl_tree.h"

#include "json/yajl/yajl_parse.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct builder {
    yajl_val root;
    yajl_val stack[ZIPCCL_YAJL_DEPTH]; /* containers that are open */
    unsigned depth;
    bool nomem;
};

static char *copy(const void *text, size_t nbytes)
{
    char *s = malloc(nbytes + 1);

    if (s != NULL) {
        if (nbytes > 0)
            memcpy(s, text, nbytes);
        s[nbytes] = '\0';
    }
    return s;
}

/* Make room for element 'n' of 'list', whose room is the power of two from n up. */
static void *grown(void *list, size_t n, size_t size)
{
    if ((n & (n - 1)) != 0)
        return list;
    if (n > SIZE_MAX / 2 / size)
        return NULL;
    return realloc(list, (n == 0 ? 1 : 2 * n) * size);
}

/* Append 'value' to the innermost container; in an object on_key() made its place. */
static int append(struct builder *b, yajl_val value)
{
    yajl_val parent = b->depth > 0 ? b->stack[b->depth - 1] : NULL;
    yajl_val *values;

    if (parent == NULL) {
        b->root = value;
        return 1;
    }
    if (parent->type == yajl_t_object) {
        parent->u.object.values[parent->u.object.len - 1] = value;
        return 1;
    }
    values = grown(parent->u.array.values, parent->u.array.len, sizeof *values);
    if (values == NULL) {
        b->nomem = true;
        yajl_tree_free(value);
        return 0;
    }
    parent->u.array.values = values;
    values[parent->u.array.len++] = value;
    return 1;
}

static yajl_val add(struct builder *b, yajl_type type)
{
    yajl_val value = calloc(1, sizeof *value);

    if (value == NULL) {
        b->nomem = true;
        return NULL;
    }
    value->type = type;
    return append(b, value) ? value : NULL;
}

static int on_null(void *context)
{
    return add(context, yajl_t_null) != NULL;
}

static int on_boolean(void *context, int value)
{
    return add(context, value ? yajl_t_true : yajl_t_false) != NULL;
}

static int on_string(void *context, const unsigned char *text, size_t nbytes)
{
    struct builder *b = context;
    yajl_val value = add(b, yajl_t_string);

    if (value == NULL)
        return 0;
    value->u.string = copy(text, nbytes);
    b->nomem = value->u.string == NULL;
    return !b->nomem;
}

static int on_number(void *context, const char *text, size_t nbytes)
{
    struct builder *b = context;
    yajl_val value = add(b, yajl_t_number);
    char *end, *r;

    if (value == NULL)
        return 0;
    r = value->u.number.r = copy(text, nbytes);
    if (r == NULL) {
        b->nomem = true;
        return 0;
    }
    errno = 0;
    value->u.number.i = strtoll(r, &end, 10);
    if (errno == 0 && *end == '\0')
        value->u.number.flags |= YAJL_NUMBER_INT_VALID;
    errno = 0;
    value->u.number.d = strtod(r, &end);
    if (errno == 0 && *end == '\0')
        value->u.number.flags |= YAJL_NUMBER_DOUBLE_VALID;
    return 1;
}

static int open(struct builder *b, yajl_type type)
{
    yajl_val value = add(b, type);

    if (value == NULL)
        return 0;
    b->stack[b->depth++] = value; /* the parser bounds the depth */
    return 1;
}

static int on_start_map(void *context)
{
    return open(context, yajl_t_object);
}

static int on_start_array(void *context)
{
    return open(context, yajl_t_array);
}

static int on_end(void *context)
{
    struct builder *b = context;

    b->depth--;
    return 1;
}

/* The key's value is NULL until it comes, so that yajl_tree_free() finds every key. */
static int on_key(void *context, const unsigned char *text, size_t nbytes)
{
    struct builder *b = context;
    yajl_val map = b->stack[b->depth - 1];
    size_t n = map->u.object.len;
    const char **keys = grown(map->u.object.keys, n, sizeof *keys);
    yajl_val *values;

    if (keys != NULL) {
        map->u.object.keys = keys;
        values = grown(map->u.object.values, n, sizeof *values);
        if (values != NULL) {
            map->u.object.values = values;
            values[n] = NULL;
            keys[n] = copy(text, nbytes);
            map->u.object.len += keys[n] != NULL;
        }
    }
    b->nomem = map->u.object.len == n;
    return !b->nomem;
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

static void say(char *reason, size_t size, const char *text)
{
    if (reason != NULL && size > 0)
        snprintf(reason, size, "%s", text);
}

yajl_val yajl_tree_parse(const char *text, char *reason, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)text;
    struct builder b = {.root = NULL};
    yajl_handle handle = yajl_alloc(&callbacks, NULL, &b);
    unsigned char *message;

    say(reason, size, "");
    if (handle == NULL) {
        say(reason, size, "out of memory");
        return NULL;
    }
    yajl_config(handle, yajl_allow_comments, 1);
    if (yajl_parse(handle, bytes, strlen(text)) != yajl_status_ok ||
        yajl_complete_parse(handle) != yajl_status_ok) {
        message = b.nomem ? NULL : yajl_get_error(handle, 1, bytes, strlen(text));
        say(reason, size, message != NULL ? (const char *)message : "out of memory");
        yajl_free_error(handle, message);
        yajl_tree_free(b.root);
        b.root = NULL;
    }
    yajl_free(handle);
    return b.root;
}

/* As deep as the parser allows, so the recursion is bounded. */
void yajl_tree_free(yajl_val root)
{
    if (root == NULL)
        return;
    if (root->type == yajl_t_string) {
        free(root->u.string);
    } else if (root->type == yajl_t_number) {
        free(root->u.number.r);
    } else if (root->type == yajl_t_array) {
        for (size_t i = 0; i < root->u.array.len; i++)
            yajl_tree_free(root->u.array.values[i]);
        free(root->u.array.values);
    } else if (root->type == yajl_t_object) {
        for (size_t i = 0; i < root->u.object.len; i++) {
            free((void *)root->u.object.keys[i]);
            yajl_tree_free(root->u.object.values[i]);
        }
        free(root->u.object.keys);
        free(root->u.object.values);
    }
    free(root);
}

static yajl_val member(yajl_val map, const char *key)
{
    for (size_t i = 0; i < map->u.object.len; i++)
        if (strcmp(map->u.object.keys[i], key) == 0)
            return map->u.object.values[i];
    return NULL;
}

yajl_val yajl_tree_get(yajl_val root, const char **path, yajl_type type)
{
    for (; root != NULL && path != NULL && *path != NULL; path++)
        root = root->type == yajl_t_object ? member(root, *path) : NULL;
    return root != NULL && (type == yajl_t_any || root->type == type) ? root : NULL;
}
