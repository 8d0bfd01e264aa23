/*
 * codec_file_print.h - what came of a file: a line for people, JSON for programs
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_CODEC_FILE_PRINT_H
#define ZIPCCL_EXPERIMENTS_CODEC_FILE_PRINT_H

#include "experiments/codec/codec_file.h"

#include <stdbool.h>

struct zipccl_file_result {
    bool encode;
    const char *in_name, *out_name;
    struct zipccl_file_stats stats;
    double seconds; /* from the first byte read to the last one written */
};

/* Write a line, and one for each type if there is more than one. */
void zipccl_file_print(const struct zipccl_file_result *result, FILE *out);

/* Write schema "zipccl.codec-file" version 1.  ZIPCCL_ERR_IO, ZIPCCL_ERR_NOMEM. */
zipccl_status zipccl_file_json(const struct zipccl_file_result *result, FILE *out,
                               struct zipccl_error *error);

#endif
