/*
 * inspect.h - commands that read one file and tell what is in it, as text and as JSON
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_INSPECT_H
#define ZIPCCL_EXPERIMENTS_INSPECT_H

#include "core/status.h"

#include <stdio.h>

/* Writes what is in 'path' to 'out'. */
typedef zipccl_status zipccl_inspect_fn(const char *path, FILE *out, struct zipccl_error *error);

/*
 * Write 'path' as JSON to the file 'json_path' (NULL: not wanted), then as text to stdout.
 *
 * Both appear whole or not at all: a file that is broken at its end gives an error, no half table.
 * ZIPCCL_ERR_INPUT if the output is the input; else what the writers and the system say.
 */
zipccl_status zipccl_inspect(const char *path, const char *json_path, zipccl_inspect_fn *print,
                             zipccl_inspect_fn *json, struct zipccl_error *error);

#endif
