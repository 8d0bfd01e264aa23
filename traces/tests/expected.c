/*
 * expected.c - the public files of other tools and the numbers that were computed from them apart
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/tests/expected.h"

#include "traces/tests/scratch.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Beside the project, or beside the folder of a second working tree. */
static const char *const folders[] = {"../shared/data/traces", "../../shared/data/traces"};

const char *expected_folder(void)
{
    char path[SCRATCH_PATH];

    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/EXPECTED.json", folders[i]);
        if (access(path, R_OK) == 0)
            return folders[i];
    }
    cr_skip_test("no %s", folders[0]);
    return NULL;
}

yajl_val expected_of(const char *name)
{
    static yajl_val tree;
    char message[200], path[SCRATCH_PATH], *text;

    if (tree == NULL) {
        snprintf(path, sizeof path, "%s/EXPECTED.json", expected_folder());
        text = scratch_read(path, &(size_t){0});
        cr_assert_not_null(text, "%s", path);
        tree = yajl_tree_parse(text, message, sizeof message);
        cr_assert_not_null(tree, "%s", message);
        free(text);
    }
    return expected_get(tree, name, yajl_t_object);
}

yajl_val expected_get(yajl_val node, const char *key, yajl_type type)
{
    const char *path[] = {key, NULL};
    yajl_val value = yajl_tree_get(node, path, type);

    cr_assert_not_null(value, "EXPECTED.json lacks %s", key);
    return value;
}

uint64_t expected_uint(yajl_val node, const char *key)
{
    return (uint64_t)YAJL_GET_DOUBLE(expected_get(node, key, yajl_t_number));
}

struct zipccl_trace *expected_import(const char *name, const char *format,
                                     struct zipccl_import_report *report)
{
    char path[SCRATCH_PATH];
    const char *paths[] = {path};
    struct zipccl_trace *trace = NULL;
    struct zipccl_error error = {""};

    snprintf(path, sizeof path, "%s/%s", expected_folder(), name);
    cr_assert_eq(zipccl_import_to_memory(NULL, paths, 1, NULL, report, &trace, &error), ZIPCCL_OK,
                 "%s", error.text);
    cr_expect_str_eq(report->format, format);
    return trace;
}

uint64_t expected_counted(const struct zipccl_import_report *report, const char *what)
{
    for (size_t i = 0; i < report->nitems; i++)
        if (strcmp(report->items[i].what, what) == 0)
            return report->items[i].count;
    return 0;
}
