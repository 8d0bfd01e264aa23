/*
 * inspect.h - commands that read one file and tell what is in it, as text and as JSON
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_INSPECT_H
#define ZIPCCL_EXPERIMENTS_INSPECT_H

#include "experiments/program/output.h"

/* Writes what is in 'path' to 'out'. */
typedef zipccl_status zipccl_inspect_fn(const char *path, FILE *out, struct zipccl_error *error);

/* Refuses 'output' if it is one of the files that 'path' means: ZIPCCL_ERR_INPUT. */
typedef zipccl_status zipccl_spare_fn(const struct zipccl_output *output, const char *path,
                                      struct zipccl_error *error);

/*
 * Write 'path' as JSON to the file 'json_path' (NULL: not wanted), then as text to stdout; with
 * "-" the JSON goes to stdout and the text nowhere.
 *
 * Both appear whole or not at all: a file that is broken at its end gives an error, no half table.
 * ZIPCCL_ERR_INPUT if the output is an input, which 'spare' knows; else what the writers and the system say.
 */
zipccl_status zipccl_inspect(const char *path, const char *json_path, zipccl_spare_fn *spare,
                             zipccl_inspect_fn *print, zipccl_inspect_fn *json,
                             struct zipccl_error *error);

#endif
