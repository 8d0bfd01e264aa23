/*
 * form.h - results that are a head and tables: what to show of them, told by tables
 *
 * The same tables say how a file is checked, so that what is shown has been checked.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_ANALYSIS_FORM_H
#define ZIPCCL_ANALYSIS_FORM_H

#include "core/status.h"

#include <stdbool.h>
#include <stdio.h>
#include <yajl/yajl_tree.h>

enum zipccl_column_kind { ZIPCCL_COLUMN_TEXT, ZIPCCL_COLUMN_NUMBER, ZIPCCL_COLUMN_BOOL };

/* A value of a row, or of the head; 'title' may hold tags. */
struct zipccl_column {
    const char *key; /* NULL ends a table; in a head "nccl.version" is a key of the object "nccl" */
    const char *title;
    enum zipccl_column_kind kind;
    bool must;
    double scale; /* of numbers */
    int decimals;
};

/* A list of objects, or with 'by_name' an object of them, whose keys are the first column. */
struct zipccl_form_table {
    const char *key, *title; /* NULL ends; "nvcomp.rows" as above */
    bool must, by_name;
    const struct zipccl_column *columns;
};

struct zipccl_form {
    const char *schema;
    const char *title; /* of a page, and of the part of one */
    const struct zipccl_column *head;
    const struct zipccl_form_table *tables;
};

/* All there are; the last has no schema. */
extern const struct zipccl_form zipccl_forms[];

/* ZIPCCL_ERR_INPUT with path and place. */
zipccl_status zipccl_form_check(const struct zipccl_form *form, yajl_val result, const char *path,
                                struct zipccl_error *error);

/* Write the part of a page, with headings of 'level'. */
void zipccl_form_section(const struct zipccl_form *form, yajl_val result, int level, FILE *out);

#endif
