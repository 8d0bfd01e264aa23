/*
 * json.h - one small JSON text as a tree, and strict access to its fields
 *
 * yajl does the parsing; this keeps what it says in an arena, refuses what JSON allows but a
 * trace does not (NUL in strings, numbers out of range, deep nesting, bad UTF-8), and words the
 * errors: "FILE:LINE: what was found, what was expected".  It is not for files of any size:
 * the whole text is in memory.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_JSON_H
#define ZIPCCL_TRACES_JSON_H

#include "core/status.h"
#include "traces/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest integer that every JSON program keeps exactly. */
#define ZIPCCL_JSON_MAX_INTEGER ((uint64_t)1 << 53)

/* Nested arrays and objects. */
#define ZIPCCL_JSON_MAX_DEPTH 16

/* Where a text stands, for errors. */
struct zipccl_place {
    const char *file;
    uint64_t line; /* 0: the file as a whole */
    struct zipccl_error *error;
};

enum zipccl_json_type {
    ZIPCCL_JSON_NULL,
    ZIPCCL_JSON_BOOL,
    ZIPCCL_JSON_INTEGER, /* written without '.' or exponent, at most 2^53 in size */
    ZIPCCL_JSON_REAL,    /* any other number; 'string' has it as written */
    ZIPCCL_JSON_STRING,
    ZIPCCL_JSON_ARRAY,
    ZIPCCL_JSON_OBJECT
};

struct zipccl_json {
    enum zipccl_json_type type;
    uint32_t n; /* children */
    union {
        const char *string;
        int64_t integer;
        bool boolean;
        struct zipccl_json *last; /* while an array or object is being read */
    } value;
    const char *key;           /* in an object */
    double real;               /* of INTEGER and REAL, finite */
    struct zipccl_json *child; /* first */
    struct zipccl_json *next;  /* sibling */
};

/* A key of an object that comes in kinds: bit k of the masks stands for kind k. */
struct zipccl_json_key {
    const char *name;
    unsigned allowed, required;
};

/* Fill 'at->error' with "FILE:LINE: text" and return ZIPCCL_ERR_INPUT. */
zipccl_status zipccl_place_fail(const struct zipccl_place *at, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same for memory: ZIPCCL_ERR_NOMEM. */
zipccl_status zipccl_place_nomem(const struct zipccl_place *at);

#define ZIPCCL_QUOTE_SIZE 72

/* Write 's' in quotes to 'out', control characters replaced and cut after about 60 bytes. */
const char *zipccl_quote(char out[ZIPCCL_QUOTE_SIZE], const char *s);

/* Write what 'node' is to 'out': "string \"x\"", "1.5", "an array of 3". */
const char *zipccl_json_describe(char out[ZIPCCL_QUOTE_SIZE], const struct zipccl_json *node);

/* True if [nbytes] of 's' are UTF-8: no overlong forms, surrogates or cut sequences. */
bool zipccl_utf8_valid(const char *s, size_t nbytes);

/* True if 's' has no control characters, which a terminal would obey. */
bool zipccl_text_printable(const char *s);

/*
 * Parse [nbytes] of 'text', which must be one object, into 'arena'.
 * ZIPCCL_ERR_INPUT with the reason if it is not.
 */
zipccl_status zipccl_json_parse(const struct zipccl_place *at, struct zipccl_arena *arena,
                                const char *text, size_t nbytes, struct zipccl_json **out);

/* The member 'key' of 'object', NULL if there is none. */
const struct zipccl_json *zipccl_json_get(const struct zipccl_json *object, const char *key);

/*
 * Sort the members of 'object' into 'values' [nkeys] (NULL where absent).  Unknown, doubled,
 * missing and misplaced keys are errors; 'what' names the object in them.
 */
zipccl_status zipccl_json_keys(const struct zipccl_place *at, const struct zipccl_json *object,
                               const char *what, unsigned kind, const struct zipccl_json_key *keys,
                               size_t nkeys, const struct zipccl_json **values);

/* An integer from 'min' to 'max' (at most 2^53). */
zipccl_status zipccl_json_uint(const struct zipccl_place *at, const struct zipccl_json *node,
                               const char *name, uint64_t min, uint64_t max, uint64_t *out);

/* A number from 0 up. */
zipccl_status zipccl_json_real(const struct zipccl_place *at, const struct zipccl_json *node,
                               const char *name, double *out);

/* A string that is not empty and has no control characters; it lives in the arena of the parse. */
zipccl_status zipccl_json_string(const struct zipccl_place *at, const struct zipccl_json *node,
                                 const char *name, const char **out);

/* An array of at least 'min' elements. */
zipccl_status zipccl_json_array(const struct zipccl_place *at, const struct zipccl_json *node,
                                const char *name, uint32_t min);

#endif
