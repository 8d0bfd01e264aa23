/*
 * perf_sim.h - collectives of perf on a simulated cluster
 *
 * The rows that real ranks would measure, from the cost model (T0), flows (T1) or messages (T2); sizes on
 * the wire are the real codec's on the elements that are asked for.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_PERF_SIM_H
#define ZIPCCL_EXPERIMENTS_PERF_SIM_H

#include "experiments/perf/perf_rows.h"
#include "models/cluster.h"

/* zipccl perf OP --on sim: argv[0] is "perf". */
int zipccl_perf_sim_command(const char *program, int argc, char **argv);

/*
 * Price what 'options' ask for on 'cluster'; lines of the table are printed as they come, NULL: none.
 *
 * ZIPCCL_ERR_INPUT as zipccl_samples_open() and zipccl_samples_bind(), or if the root is no rank;
 * ZIPCCL_ERR_UNSUPPORTED if nothing serves a call; ZIPCCL_ERR_INTERNAL if a simulation fails.
 */
zipccl_status zipccl_perf_sim_run(const struct zipccl_perf_options *options,
                                  const struct zipccl_cluster *cluster,
                                  struct zipccl_perf_result *result, FILE *table,
                                  struct zipccl_error *error);

#endif
