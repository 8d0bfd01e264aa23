/*
 * json_put.h - keys and values for yajl's generator that every JSON reader takes
 *
 * Names are UTF-8 whatever the inputs held; a number that is missing or not finite is null.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_JSON_PUT_H
#define ZIPCCL_EXPERIMENTS_JSON_PUT_H

#include "core/status.h"

#include <yajl/yajl_gen.h>

#include <stdbool.h>
#include <stdio.h>

/* Put a string, bytes that are no UTF-8 replaced and cut after about 500. */
void zipccl_put_text(yajl_gen gen, const char *text);

/* Put a key, which is ASCII; with a value of one kind or another. */
void zipccl_put_key(yajl_gen gen, const char *key);
void zipccl_put_string(yajl_gen gen, const char *key, const char *value);
void zipccl_put_integer(yajl_gen gen, const char *key, unsigned long long value);

/* The key "schema" of a result file: {"name": name, "version": version}. */
void zipccl_put_schema(yajl_gen gen, const char *name, unsigned version);

/* The shortest digits that read back as 'value'; null if it is not 'present' or not finite. */
void zipccl_put_number(yajl_gen gen, const char *key, double value, bool present);

/*
 * A document in 'out', indented by two: start a generator, which the end frees.  Errors begin with 'what'.
 *
 * ZIPCCL_ERR_NOMEM; ZIPCCL_ERR_IO if anything could not be written.
 */
zipccl_status zipccl_json_start(const char *what, FILE *out, yajl_gen *gen,
                                struct zipccl_error *error);
zipccl_status zipccl_json_end(yajl_gen gen, const char *what, FILE *out,
                              struct zipccl_error *error);

/* The error if anything could not be written to 'out', which begins with 'what'. */
zipccl_status zipccl_written(FILE *out, const char *what, struct zipccl_error *error);

#endif
