/*
 * output.h - result files that appear whole or not at all
 *
 * A path is checked before the work starts; the text goes to a temporary file beside it, and only
 * when all files of a run are complete do they get their names.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_OUTPUT_H
#define ZIPCCL_EXPERIMENTS_OUTPUT_H

#include "core/status.h"

#include <stdbool.h>
#include <stdio.h>

struct zipccl_output {
    const char *path;   /* as given; NULL: not wanted, every function then does nothing */
    char target[4096];  /* links resolved, so that a rename replaces what a link points to */
    char partial[4128]; /* the temporary file, "" if there is none */
    bool direct;        /* not a regular file (a pipe, /dev/stdout): written in place */
    bool standard;      /* "-": standard output, which stays open; whoever prints to it checks it */
    FILE *file;
};

/*
 * Check that 'path' can be written, leaving nothing behind; "-" is standard output, "./-" a file.
 * ZIPCCL_ERR_IO with the reason.
 */
zipccl_status zipccl_output_check(struct zipccl_output *output, const char *path,
                                  struct zipccl_error *error);

/* True if 'output' would overwrite the file at 'path' (compared as files, not as text). */
bool zipccl_output_is(const struct zipccl_output *output, const char *path);

/* Refuse to overwrite an input: ZIPCCL_ERR_INPUT if 'output' is the file 'path' (NULL: none). */
zipccl_status zipccl_output_spare(const struct zipccl_output *output, const char *path,
                                  struct zipccl_error *error);

/* Refuse two outputs in one place, standard output included: ZIPCCL_ERR_INPUT. */
zipccl_status zipccl_output_differ(const struct zipccl_output *a, const struct zipccl_output *b,
                                   struct zipccl_error *error);

/* Open the temporary file; text goes to output->file.  ZIPCCL_ERR_IO. */
zipccl_status zipccl_output_open(struct zipccl_output *output, struct zipccl_error *error);

/* Flush and close, not yet under its name.  ZIPCCL_ERR_IO if anything was lost. */
zipccl_status zipccl_output_close(struct zipccl_output *output, struct zipccl_error *error);

/*
 * Put the name of 'output' before the reason why writing its content failed; returns 'status', or ZIPCCL_OK where
 * that was standard output, of which zipccl_finish_output() tells.
 */
zipccl_status zipccl_output_told(const struct zipccl_output *output, zipccl_status status,
                                 struct zipccl_error *error);

/* Give the closed file its name.  ZIPCCL_ERR_IO. */
zipccl_status zipccl_output_commit(struct zipccl_output *output, struct zipccl_error *error);

/* Remove what was not committed; allowed in every state. */
void zipccl_output_discard(struct zipccl_output *output);

/* The status of what wrote to 'output': a failed write names its path as well; standard output as above. */
zipccl_status zipccl_output_named(const struct zipccl_output *output, zipccl_status status,
                                  struct zipccl_error *error);

#endif
