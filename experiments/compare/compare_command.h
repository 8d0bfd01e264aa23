/*
 * compare_command.h - zipccl compare: predicted and measured, before and after
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_COMPARE_COMMAND_H
#define ZIPCCL_EXPERIMENTS_COMPARE_COMMAND_H

#include "analysis/compare.h"

#include <stdio.h>

/* zipccl compare FIRST SECOND...: argv[0] is "compare". */
int zipccl_compare_command(int argc, char **argv);

/* Print sums and rows; with 'summary' the sums alone. */
void zipccl_compare_print(const struct zipccl_compare *compare, bool summary, FILE *out);

/* All of it as JSON, schema "zipccl.compare", or pairs and singles as CSV.  ZIPCCL_ERR_IO, NOMEM. */
zipccl_status zipccl_compare_json(const struct zipccl_compare *compare, FILE *out,
                                  struct zipccl_error *error);
zipccl_status zipccl_compare_csv(const struct zipccl_compare *compare, FILE *out,
                                 struct zipccl_error *error);

#endif
