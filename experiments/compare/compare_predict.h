/*
 * compare_predict.h - a prediction of measured rows, plan by plan
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_COMPARE_PREDICT_H
#define ZIPCCL_EXPERIMENTS_COMPARE_PREDICT_H

#include "analysis/rows.h"
#include "models/cluster.h"
#include "models/link.h"

/* Rows that the model has a plan for: equal counts on every rank, and none that MPI itself chose. */
bool zipccl_row_has_plan(const struct zipccl_rows *file, const struct zipccl_row *row);

/* 'row' as the model takes it. */
void zipccl_row_to_link(const struct zipccl_row *row, struct zipccl_link_row *out);

/*
 * Make the rows that 'cluster' predicts for those of 'files' [nfiles]: the time, at T0, of the very plan
 * that each names, with the bytes that it put on the wire.  Rows without a plan have no prediction.
 *
 * ZIPCCL_ERR_INPUT with file and row: a step's rows, or as zipccl_link_predict(); ZIPCCL_ERR_NOMEM.  The
 * caller destroys '*out'.
 */
zipccl_status zipccl_predict_rows(struct zipccl_rows *const *files, size_t nfiles,
                                  const struct zipccl_cluster *cluster, struct zipccl_rows **out,
                                  struct zipccl_error *error);

#endif
