/*
 * perf_run.h - measures one collective over the sizes, types and modes that are asked for
 *
 * Every rank of a world runs the same program; the process that holds rank 0 keeps the rows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_PERF_RUN_H
#define ZIPCCL_EXPERIMENTS_PERF_RUN_H

#include "experiments/perf/perf_rows.h"
#include "experiments/ranks/world.h"

/*
 * Run what 'options' ask for on 'world'.  Collective over the world's processes.
 *
 * params  rates that the chooser goes by
 * result  gets the rows, in the process with rank 0
 * table   lines are printed as they come; NULL: none; only used by rank 0
 *
 * ZIPCCL_ERR_INPUT if the options do not fit the ranks or the data; ZIPCCL_ERR_UNSUPPORTED if
 * nothing serves what is asked for; ZIPCCL_ERR_NOMEM, also if buffers would not fit the machine;
 * else what a call failed with.
 */
zipccl_status zipccl_perf_run(const struct zipccl_perf_options *options, struct zipccl_world *world,
                              const struct zipccl_cost_params *params,
                              struct zipccl_perf_result *result, FILE *table,
                              struct zipccl_error *error);

#endif
