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
#include "sim/timeline_build.h"

/* What all runs of a replay share. */
struct zipccl_run_base {
    const struct zipccl_program *program;
    const struct zipccl_cluster *cluster;
    struct zipccl_samples *samples;
    enum zipccl_fidelity fidelity;
    bool native;    /* as in a scenario, of all of them */
    uint32_t nkept; /* ranks of which runs of the cluster as it is keep all times; 0: none */
    uint32_t *kept; /* [nkept] */
};

/* One run: the caller sets 'scenario' and 'pricing' if they differ from what init gives. */
struct zipccl_run {
    const struct zipccl_run_base *base;
    struct zipccl_scenario scenario;
    const struct zipccl_pricing *pricing; /* of the scenario, or NULL: the child prices */
    int mode;                             /* ZIPCCL_STEP_... */
    struct zipccl_result_step *step;      /* results, owned by the run */
    double *row_time, *row_exposed;       /* [nrows] */
    struct zipccl_kept_times kept;        /* of the timeline's ranks, if there is one */
};

/* Set up a run of the cluster as it is; ZIPCCL_ERR_NOMEM. */
zipccl_status zipccl_run_init(struct zipccl_run *run, const struct zipccl_run_base *base, int mode);

/* The same, keeping the times of base->kept. */
zipccl_status zipccl_run_init_kept(struct zipccl_run *run, const struct zipccl_run_base *base,
                                   int mode);
void zipccl_run_release(struct zipccl_run *run);

/* The run as work for a child process; its results are valid once that has ended. */
struct zipccl_child_task zipccl_run_task(struct zipccl_run *run);

/* Take over the step and the rows of 'from', a run of the same program, and kept times if both keep. */
void zipccl_run_copy(struct zipccl_run *to, const struct zipccl_run *from);

/* Run up to four and wait. */
zipccl_status zipccl_run_execute(struct zipccl_run *runs, uint32_t nruns, uint32_t nprocs,
                                 struct zipccl_error *error);

/* Run in this process, at T0 only: SimGrid runs once per process. */
zipccl_status zipccl_run_here(struct zipccl_run *run, struct zipccl_error *error);

#endif
