/*
 * yajl_parse.h - read JSON in pieces: the part of yajl's interface that this tree calls
 *
 * Names and values are yajl 2.1's, the code is ours.  The text must be RFC 8259 to the letter: only its four
 * kinds of white space, UTF-8 without overlong forms or surrogates, escaped surrogates in pairs,
 * one value and nothing behind it.  Values nested deeper than ZIPCCL_YAJL_DEPTH are refused.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_JSON_YAJL_PARSE_H
#define ZIPCCL_JSON_YAJL_PARSE_H

#include <stddef.h>

/* Nested arrays and objects that are read. */
#define ZIPCCL_YAJL_DEPTH 512

typedef enum {
    yajl_status_ok = 0,
    yajl_status_client_canceled = 1, /* a callback returned 0 */
    yajl_status_error = 2
} yajl_status;

typedef enum {
    yajl_allow_comments =
        1 /* int: slash-star and slash-slash comments are white space; off at first */
} yajl_option;

/* What is told, in the text's order; each may be NULL; text is not terminated, and valid during the call. */
typedef struct {
    int (*yajl_null)(void *context);
    int (*yajl_boolean)(void *context, int value);
    int (*yajl_number)(void *context, const char *text, size_t nbytes);
    int (*yajl_string)(void *context, const unsigned char *text, size_t nbytes);
    int (*yajl_start_map)(void *context);
    int (*yajl_map_key)(void *context, const unsigned char *text, size_t nbytes);
    int (*yajl_end_map)(void *context);
    int (*yajl_start_array)(void *context);
    int (*yajl_end_array)(void *context);
} yajl_callbacks;

typedef struct yajl_handle_t *yajl_handle;
typedef struct yajl_alloc_funcs yajl_alloc_funcs;

/*
 * Make a parser.  'callbacks' may be NULL, to check only, and is kept by the caller; 'functions' must
 * be NULL (malloc is used).  NULL without memory.
 */
yajl_handle yajl_alloc(const yajl_callbacks *callbacks, yajl_alloc_funcs *functions, void *context);

/* Free 'handle', which may be NULL. */
void yajl_free(yajl_handle handle);

/* Set 'option' to the argument that follows; 0 if there is no such option. */
int yajl_config(yajl_handle handle, yajl_option option, ...);

/* Read the next [nbytes] of 'text'.  After an error every further call returns it again. */
yajl_status yajl_parse(yajl_handle handle, const unsigned char *text, size_t nbytes);

/* Say that the text has ended: an error if the value has not. */
yajl_status yajl_complete_parse(yajl_handle handle);

/* Where in the last piece reading stands; after an error the offset of the byte that is wrong. */
size_t yajl_get_bytes_consumed(yajl_handle handle);

/*
 * Return what is wrong, a line of text; if 'verbose', a second line has the offset in the whole text, and what
 * stands there if 'text' [nbytes], the last piece, has it.  Free it by yajl_free_error().  NULL without memory.
 */
unsigned char *yajl_get_error(yajl_handle handle, int verbose, const unsigned char *text,
                              size_t nbytes);
void yajl_free_error(yajl_handle handle, unsigned char *message);

#endif
