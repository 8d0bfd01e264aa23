/*
 * json_notes.h - lists of settings and assumptions as JSON, the same in every result
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_JSON_NOTES_H
#define ZIPCCL_EXPERIMENTS_JSON_NOTES_H

#include "sim/result.h"

#include <yajl/yajl_gen.h>

/* Put 'key' with an array of notes; a value that is a plain number is written as one. */
void zipccl_put_notes(yajl_gen gen, const char *key, const struct zipccl_result_note *notes,
                      size_t n);

#endif
