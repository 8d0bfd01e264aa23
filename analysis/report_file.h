/*
 * report_file.h - a result file that was read and checked
 *
 * Private to report_file.c and report_page.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_ANALYSIS_REPORT_FILE_H
#define ZIPCCL_ANALYSIS_REPORT_FILE_H

#include "analysis/form.h"
#include "analysis/report_page.h"
#include "analysis/rows.h"

#include <stdbool.h>
#include <yajl/yajl_tree.h>

struct zipccl_report_file {
    const char *path;
    yajl_val root;                  /* NULL: no JSON */
    struct zipccl_rows *rows;       /* of single collectives; NULL: another kind */
    const struct zipccl_form *form; /* NULL: rows, a replay or a sweep */
    bool sweep;
};

#endif
