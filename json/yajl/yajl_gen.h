/*
 * yajl_gen.h - write JSON: the part of yajl's interface that this tree calls
 *
 * Names, values and output are yajl 2.1's, the code is ours.  Differences: text goes to a print callback only,
 * no buffer is kept; a container is closed only as what it was opened, and never after a key.
 * Strings are written as given: the caller has checked that they are UTF-8.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_JSON_YAJL_GEN_H
#define ZIPCCL_JSON_YAJL_GEN_H

#include <stddef.h>

/* A generator writes fewer nested containers than this. */
#define YAJL_MAX_DEPTH 128

typedef enum {
    yajl_gen_status_ok = 0,
    yajl_gen_keys_must_be_strings = 1, /* an object's key is due */
    yajl_max_depth_exceeded = 2,
    yajl_gen_in_error_state = 3,      /* after yajl_max_depth_exceeded, and what fits nowhere */
    yajl_gen_generation_complete = 4, /* the document has ended */
    yajl_gen_invalid_number = 5,      /* infinity or NaN */
    yajl_gen_no_buf = 6               /* no print callback has been set */
} yajl_gen_status;

typedef enum {
    yajl_gen_beautify = 1,       /* int: lines and indents; off at first */
    yajl_gen_indent_string = 2,  /* const char *: white space, kept by the caller; four spaces */
    yajl_gen_print_callback = 4, /* yajl_print_t, void *: where text goes */
} yajl_gen_option;

typedef struct yajl_gen_t *yajl_gen;
typedef struct yajl_alloc_funcs yajl_alloc_funcs;
typedef void (*yajl_print_t)(void *context, const char *text, size_t nbytes);

/* Make a generator; 'functions' must be NULL (malloc is used).  NULL without memory. */
yajl_gen yajl_gen_alloc(const yajl_alloc_funcs *functions);

/* Free 'gen', which may be NULL. */
void yajl_gen_free(yajl_gen gen);

/* Set 'option' to the arguments that follow; 0 if they are no valid ones. */
int yajl_gen_config(yajl_gen gen, yajl_gen_option option, ...);

/* Write one value, or one end of a container; a string is a key where one is due. */
yajl_gen_status yajl_gen_null(yajl_gen gen);
yajl_gen_status yajl_gen_bool(yajl_gen gen, int value);
yajl_gen_status yajl_gen_integer(yajl_gen gen, long long value);
yajl_gen_status yajl_gen_double(yajl_gen gen, double value);
yajl_gen_status yajl_gen_number(yajl_gen gen, const char *text, size_t nbytes);
yajl_gen_status yajl_gen_string(yajl_gen gen, const unsigned char *text, size_t nbytes);
yajl_gen_status yajl_gen_map_open(yajl_gen gen);
yajl_gen_status yajl_gen_map_close(yajl_gen gen);
yajl_gen_status yajl_gen_array_open(yajl_gen gen);
yajl_gen_status yajl_gen_array_close(yajl_gen gen);

#endif
