/*
 * codec_conform.h - runs the format's test vectors through any decoder
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_CODEC_CONFORM_H
#define ZIPCCL_EXPERIMENTS_CODEC_CONFORM_H

#include "experiments/codec/codec_vectors.h"

#include <stdio.h>

/* What came of one vector. */
struct zipccl_verdict {
    const struct zipccl_vector *vector;
    bool passed;
    int exit_code;    /* -1 if it was ended by a signal or by us */
    char reason[400]; /* why it failed; "" if it passed */
};

struct zipccl_conform_result {
    char *const *command; /* NULL ends it */
    double timeout_s;
    size_t count, nfailed;
    struct zipccl_verdict *verdicts; /* [count] */
};

/*
 * Run 'command' on each vector: its elements on standard output for a valid one, and an exit code
 * that is not 0 for all others.  A crash is no refusal.  'out' gets a line a vector and a total;
 * NULL: nothing.
 *
 * ZIPCCL_ERR_INPUT if the command cannot be started, ZIPCCL_ERR_IO, ZIPCCL_ERR_NOMEM.
 * The caller frees result->verdicts, in any case.
 */
zipccl_status zipccl_conform_run(const struct zipccl_vectors *vectors,
                                 struct zipccl_conform_result *result, FILE *out,
                                 struct zipccl_error *error);

/* Write schema "zipccl.codec-conform" version 1.  ZIPCCL_ERR_IO, ZIPCCL_ERR_NOMEM. */
zipccl_status zipccl_conform_json(const struct zipccl_conform_result *result, FILE *out,
                                  struct zipccl_error *error);

#endif
