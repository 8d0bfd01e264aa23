/*
 * import_defaults.c - options and reports of imports, for builds that import nothing too
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import.h"

#include <stdlib.h>
#include <string.h>

void zipccl_import_options_init(struct zipccl_import_options *options)
{
    memset(options, 0, sizeof *options);
    options->dtype = ZIPCCL_BFLOAT16;
    options->grad_dtype = ZIPCCL_FLOAT32;
}

void zipccl_import_report_free(struct zipccl_import_report *report)
{
    if (report == NULL)
        return;
    free(report->items);
    memset(report, 0, sizeof *report);
}
