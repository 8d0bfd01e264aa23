/*
 * flat_yaml.h - a YAML file of keys and single values or lists, all read as text
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_MODELS_FLAT_YAML_H
#define ZIPCCL_MODELS_FLAT_YAML_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>

#define ZIPCCL_FLAT_YAML_MAX_KEYS 64

struct zipccl_flat_yaml {
    size_t n;
    char **values; /* [n] in the order of the keys; NULL: not in the file */
};

/*
 * Read 'path', a mapping of some of 'keys' [n] to texts of at most 255 characters.
 *
 * what  names the content in errors: "a model"
 *
 * Release with zipccl_flat_yaml_free().  ZIPCCL_ERR_IO, or ZIPCCL_ERR_INPUT with file, line, what
 * was found and what was expected; unknown and doubled keys are errors.
 */
zipccl_status zipccl_flat_yaml_load(const char *path, const char *what, const char *const *keys,
                                    size_t n, struct zipccl_flat_yaml *out,
                                    struct zipccl_error *error);
void zipccl_flat_yaml_free(struct zipccl_flat_yaml *yaml);

#define ZIPCCL_LIST_YAML_MAX_KEYS   80
#define ZIPCCL_LIST_YAML_MAX_VALUES 1000

/* What stands behind one key. */
struct zipccl_list_yaml_entry {
    size_t n; /* values; 0 where 'given': an empty list */
    char **values;
    bool given;
    unsigned line; /* of the key; 0: it begins no line */
};

struct zipccl_list_yaml {
    size_t n;
    struct zipccl_list_yaml_entry *entries; /* [n] in the order of the keys */
};

/*
 * The same of a mapping to lists of texts, "[64, 128]" or in lines of "- 64"; a single text is a list of
 * one.  Empty lists are the caller's to refuse.
 *
 * docs  where the keys are told, for the error of an unknown one
 * Release with zipccl_list_yaml_free().
 */
zipccl_status zipccl_list_yaml_load(const char *path, const char *what, const char *docs,
                                    const char *const *keys, size_t n, struct zipccl_list_yaml *out,
                                    struct zipccl_error *error);
void zipccl_list_yaml_free(struct zipccl_list_yaml *yaml);

/* Line of 'path' that begins with 'key', which may be indented or in quotes; 0 if none does. */
unsigned zipccl_flat_yaml_line(const char *path, const char *key);

#endif
