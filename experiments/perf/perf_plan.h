/*
 * perf_plan.h - perf of one plan made elsewhere: zipccl perf OP --plan FILE
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_PERF_PLAN_H
#define ZIPCCL_EXPERIMENTS_PERF_PLAN_H

#include "core/plan.h"
#include "experiments/perf/perf_rows.h"

/*
 * Read the file of options->plan_path, and let 'options' ask for its call, in the mode that it
 * belongs to if none is given.  The caller destroys '*plan', which the options borrow.
 *
 * As zipccl_plan_file_read(); ZIPCCL_ERR_INPUT also if it is a plan of another op or of a mode that
 * is not run.
 */
zipccl_status zipccl_perf_plan_open(struct zipccl_perf_options *options, struct zipccl_plan **plan,
                                    struct zipccl_error *error);

/* The mode that its rows are of: raw, native or compressed. */
enum zipccl_perf_mode zipccl_perf_plan_mode(const struct zipccl_plan *plan);

/* The call that 'plan' is for; of an alltoallv the one whose largest pair it serves. */
void zipccl_perf_plan_call(const struct zipccl_plan *plan, struct zipccl_perf_call *call);

/*
 * Validate the plan for the ranks that are here.
 *
 * in_place  out: it also serves calls in place, where NCCL defines the op so
 * ZIPCCL_ERR_INPUT with the step and the rule that is broken; ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_perf_plan_check(const struct zipccl_perf_options *options,
                                     const struct zipccl_topology *topology, bool *in_place,
                                     struct zipccl_error *error);

#endif
