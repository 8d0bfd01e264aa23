/*
 * sweep_print.h - a sweep as table, JSON and CSV
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_SWEEP_PRINT_H
#define ZIPCCL_EXPERIMENTS_SWEEP_PRINT_H

#include "experiments/sweep/sweep_summary.h"

#include <stdio.h>

#define ZIPCCL_SWEEP_SCHEMA_NAME "zipccl.sweep"
enum { ZIPCCL_SWEEP_SCHEMA_VERSION = 1 };

/*
 * Write banner, rows and what they say together.
 *
 * rows  [nrows] in the order wanted
 * most  so many rows at most
 */
void zipccl_sweep_print(const struct zipccl_sweep *sweep,
                        const struct zipccl_sweep_summary *summary,
                        const struct zipccl_sweep_point *const *rows, size_t nrows, size_t most,
                        FILE *out);

/*
 * Write schema "zipccl.sweep" version 1 (docs/sweep.md).  The bytes depend on the points alone: no clock,
 * no host.  ZIPCCL_ERR_IO, ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_sweep_json(const struct zipccl_sweep *sweep,
                                const struct zipccl_sweep_summary *summary, FILE *out,
                                struct zipccl_error *error);

/* Write 'rows' [nrows] with a header line.  ZIPCCL_ERR_IO. */
zipccl_status zipccl_sweep_csv(const struct zipccl_sweep *sweep,
                               const struct zipccl_sweep_point *const *rows, size_t nrows,
                               FILE *out, struct zipccl_error *error);

#endif
