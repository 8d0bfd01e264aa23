/*
 * items.h - a large JSON file whose objects stand in one array, read one object at a time
 *
 * Memory holds one object.  What JSON lacks and profilers write all the same (NaN, control
 * characters) is read as import_kineto_stream.h says.  It is not for our own traces: json.h is
 * stricter.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_ITEMS_H
#define ZIPCCL_TRACES_ITEMS_H

#include "core/status.h"
#include "traces/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum zipccl_item_type {
    ZIPCCL_ITEM_OTHER, /* null, true, false: 'text' is the word */
    ZIPCCL_ITEM_NUMBER,
    ZIPCCL_ITEM_STRING,
    ZIPCCL_ITEM_ARRAY,
    ZIPCCL_ITEM_OBJECT
};

struct zipccl_item {
    enum zipccl_item_type type;
    uint32_t n;       /* children */
    const char *key;  /* in an object, else "" */
    const char *text; /* of what has no children: as written, strings without quotes; else "" */
    struct zipccl_item *child, *last, *next;
};

struct zipccl_items {
    const char *path;
    const char *array; /* the key of the array in the file's object */
    const char *what;  /* for errors: "a PyTorch execution trace" */
    struct zipccl_error *error;
    void *context;
    /* One object of the array, valid during the call. */
    zipccl_status (*take)(void *context, const struct zipccl_item *item, uint64_t line);
    /* A number or string beside the array. */
    zipccl_status (*take_top)(void *context, const char *key, const char *text);
    /* False: an object with this text under this key is of no interest.  NULL: all are. */
    bool (*wants)(void *context, const char *key, const char *text);
    uint64_t nitems; /* seen, wanted or not */
};

/*
 * Read the file, plain or gzip.  ZIPCCL_ERR_INPUT with file and line if it is cut, no JSON, without
 * the array, or nested too deep; ZIPCCL_ERR_IO; what 'take' returns.
 */
zipccl_status zipccl_items_read(struct zipccl_items *items);

/* The child with that key, NULL if there is none or 'item' is NULL. */
const struct zipccl_item *zipccl_item_get(const struct zipccl_item *item, const char *key);

/* The i-th child, NULL if there are fewer or 'item' is NULL. */
const struct zipccl_item *zipccl_item_at(const struct zipccl_item *item, uint32_t i);

/* An integer; false if it is none or too large. */
bool zipccl_item_integer(const struct zipccl_item *item, int64_t *out);

#endif
