/*
 * codec_stat.h - `zipccl codec stat FILE.safetensors`: statistics of a file's tensors
 *
 * Reads the file, measures each tensor (models/stat.h) and writes all of them.  Options and
 * messages to people are the program's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_CODEC_STAT_H
#define ZIPCCL_EXPERIMENTS_CODEC_STAT_H

#include "core/status.h"

#include <stdio.h>

/*
 * Write the statistics of the tensors in the file 'path' to 'out', as a table or as JSON
 * ("tensors" and "total").  Nothing is written if the file cannot be read.
 *
 * ZIPCCL_ERR_IO, ZIPCCL_ERR_INPUT or ZIPCCL_ERR_NOMEM with place and reason in 'error';
 * ZIPCCL_ERR_INTERNAL if a tensor does not survive the codec.
 */
zipccl_status zipccl_codec_stat_print(const char *path, FILE *out, struct zipccl_error *error);
zipccl_status zipccl_codec_stat_json(const char *path, FILE *out, struct zipccl_error *error);

#endif
