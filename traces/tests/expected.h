/*
 * expected.h - the public files of other tools and the numbers that were computed from them apart
 *
 * They are other people's and no part of the project: without them tests skip.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_TESTS_EXPECTED_H
#define ZIPCCL_TRACES_TESTS_EXPECTED_H

#include "traces/import.h"

#include <yajl/yajl_tree.h>

/* The folder of the files; skips the test if there is none. */
const char *expected_folder(void);

/* The numbers of file 'name' in EXPECTED.json; the tree lives until the program ends. */
yajl_val expected_of(const char *name);

yajl_val expected_get(yajl_val node, const char *key, yajl_type type);
uint64_t expected_uint(yajl_val node, const char *key);

/* Import 'name' of the folder, which must succeed as 'format'; the report is freed by the caller. */
struct zipccl_trace *expected_import(const char *name, const char *format,
                                     struct zipccl_import_report *report);

/* How often the report counts 'what'. */
uint64_t expected_counted(const struct zipccl_import_report *report, const char *what);

#endif
