/*
 * yaml_file.h - what a YAML file has to be before libcyaml sees it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_MODELS_YAML_FILE_H
#define ZIPCCL_MODELS_YAML_FILE_H

#include "core/status.h"

#define ZIPCCL_YAML_MAX_SIZE ((long long)16 << 20)

/*
 * A regular file of at most ZIPCCL_YAML_MAX_SIZE bytes with one document: libcyaml reads the first
 * and would leave others out without a word.
 *
 * what, one  name the content in errors: "a cluster", "one cluster"
 *
 * ZIPCCL_ERR_IO, or ZIPCCL_ERR_INPUT with what was found and what was expected.
 */
zipccl_status zipccl_yaml_check_file(const char *path, const char *what, const char *one,
                                     struct zipccl_error *error);

#endif
