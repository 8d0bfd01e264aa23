/*
 * sweep_run.h - runs the points of a sweep: each distinct step made once, replayed on all its clusters
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_SWEEP_RUN_H
#define ZIPCCL_EXPERIMENTS_SWEEP_RUN_H

#include "experiments/sweep/sweep_points.h"

/*
 * Run all points that can be run; those that fail say so in themselves (sweep->nfailed).
 *
 * progress  a bar, where standard error is a terminal
 * Memory: steps are made and dropped again in waves, see sweep_run.c.  What it writes besides is a
 * folder in /tmp while a step is made up, which a signal removes too.
 * ZIPCCL_ERR_IO, ZIPCCL_ERR_NOMEM where nothing can be run.
 */
zipccl_status zipccl_sweep_points_run(struct zipccl_sweep *sweep, bool progress,
                                      struct zipccl_error *error);

#endif
