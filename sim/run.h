/*
 * run.h - one replay of a program under one mode and one scenario, in a child process
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_SIM_RUN_H
#define ZIPCCL_SIM_RUN_H

#include "sim/child.h"
#include "sim/pricing.h"
#include "sim/replay.h"

/* What all runs of a replay share. */
struct zipccl_run_base {
    const struct zipccl_program *program;
    const struct zipccl_cluster *cluster;
    struct zipccl_samples *samples;
    enum zipccl_fidelity fidelity;
};

/* One run: filled in by the caller down to 'mode', then by zipccl_runs_execute(). */
struct zipccl_run {
    const struct zipccl_run_base *base;
    struct zipccl_scenario scenario;
    const struct zipccl_pricing *pricing; /* of the scenario, or NULL: the child prices */
    int mode;                             /* ZIPCCL_STEP_... */
    struct zipccl_result_step step;
    double *row_time, *row_exposed; /* [nrows] owned by the run */
};

/* Set up a run of the cluster as it is; ZIPCCL_ERR_NOMEM. */
zipccl_status zipccl_run_init(struct zipccl_run *run, const struct zipccl_run_base *base, int mode);
void zipccl_run_release(struct zipccl_run *run);

/* Execute 'nruns' runs, 'nprocs' at once. */
zipccl_status zipccl_runs_execute(struct zipccl_run *runs, uint32_t nruns, uint32_t nprocs,
                                  void (*finished)(void *context, uint32_t ndone), void *context,
                                  struct zipccl_error *error);

/*
 * The step of 'mode' under 'scenario' at T0, in this process; for searches.
 * step_s  [ZIPCCL_NUM_STEPS] all three
 */
zipccl_status zipccl_run_t0(const struct zipccl_run_base *base,
                            const struct zipccl_scenario *scenario, double *step_s,
                            struct zipccl_error *error);

#endif
