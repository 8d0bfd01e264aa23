/*
 * driver.h - what the parts of the driver share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_JSON_TESTS_DRIVER_H
#define ZIPCCL_JSON_TESTS_DRIVER_H

#include <stddef.h>
#include <yajl/yajl_gen.h>

/* A growing text. */
struct text {
    char *bytes;
    size_t n, room;
};

/* Append bytes, a string, or bytes in printable form; exits without memory. */
void append(struct text *t, const void *bytes, size_t n);
void append_text(struct text *t, const char *s);
void append_quoted(struct text *t, const void *bytes, size_t n);

/* A generator that appends to 'out'; in lines if 'indent' is not NULL. */
yajl_gen calls_generator(struct text *out, const char *indent);

/* Print the results of calls of the generator, and what it wrote. */
void calls_generate(const char *indent);

/* The same of calls where yajl writes what is no JSON, or ends by an error of memory. */
void calls_misuse(void);

#endif
