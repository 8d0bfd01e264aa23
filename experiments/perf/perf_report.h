/*
 * perf_report.h - perf's table: that of nccl-tests, with our columns on the right
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_PERF_REPORT_H
#define ZIPCCL_EXPERIMENTS_PERF_REPORT_H

#include "experiments/perf/perf_rows.h"

/* Print what comes before the rows. */
void zipccl_perf_print_head(const struct zipccl_perf_options *options,
                            const struct zipccl_perf_result *result, FILE *out);

/* Print one line; 'in_place' NULL: NCCL does not define the op in place. */
void zipccl_perf_print_row(const struct zipccl_perf_options *options,
                           const struct zipccl_perf_row *out_of_place,
                           const struct zipccl_perf_row *in_place, FILE *out);

/*
 * Print what comes after them; true if all is well: nothing wrong, and the average bandwidth not
 * more than a tenth under options->min_bw.
 */
bool zipccl_perf_print_tail(const struct zipccl_perf_options *options,
                            const struct zipccl_perf_result *result, FILE *out);

/* The type as nccl-tests spells it. */
const char *zipccl_perf_type_name(enum zipccl_dtype dtype);

#endif
