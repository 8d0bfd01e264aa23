/*
 * sweep.h - many replays, each in a child process: what-if questions in bulk
 *
 * A job names a trace and a cluster; its outcome is what a replay of these finds, without
 * sensitivities and rows.  Jobs share nothing, so outcomes do not depend on how many run at once, and
 * one that fails or dies ends no other.  It makes up no steps and chooses no points.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_SIM_SWEEP_H
#define ZIPCCL_SIM_SWEEP_H

#include "sim/child.h"
#include "sim/replay.h"
#include "sim/samples.h"

/* A share of exposed communication in the raw step under which nothing can be gained: 2 %. */
#define ZIPCCL_SWEEP_LEAST_SHARE 0.02

/* What the raw step would have to be rid of to be shorter. */
enum zipccl_sweep_limit {
    ZIPCCL_LIMIT_COMPUTE, /* less than ZIPCCL_SWEEP_LEAST_SHARE of the step is exposed */
    ZIPCCL_LIMIT_NVLINK,  /* most exposed: calls of groups inside nodes */
    ZIPCCL_LIMIT_NIC      /* of groups over nodes */
};

const char *zipccl_sweep_limit_name(enum zipccl_sweep_limit limit);

struct zipccl_sweep_outcome {
    struct zipccl_result_step steps[ZIPCCL_NUM_STEPS];
    double comm_speedup, end_to_end_speedup; /* adaptive over raw; 0 if either was not run */
    double exposed_comm_share;               /* of the raw step */
    double raw_bytes, wire_bytes;            /* sums over rows; per rank */
    double source_share[ZIPCCL_NUM_RATIO_SOURCES];
    enum zipccl_sweep_limit limit;
    enum zipccl_op limit_op; /* op and group with most exposed time, raw */
    char limit_group[64];    /* "": nothing is exposed */
    double limit_share;      /* of the exposed time of all rows */
    char adaptive_note[160];
    uint32_t nwarnings;
    char warnings[4][256];
};

/* What an outcome rests on, as the result of a replay has it. */
struct zipccl_sweep_notes {
    char trace_name[128], trace_model[256], trace_provenance[256], cluster_line[256],
        codec_line[256];
    uint32_t nsettings, nassumptions;
    struct zipccl_result_note settings[64], assumptions[64];
};

struct zipccl_sweep_job {
    /* Called in the child: what to replay; both stay the caller's. */
    zipccl_status (*prepare)(void *context, const struct zipccl_trace **trace,
                             const struct zipccl_cluster_file **cluster, double *ratio,
                             struct zipccl_error *error);
    void *context;
    struct zipccl_sweep_outcome *outcome;
    struct zipccl_sweep_notes *notes; /* NULL if not wanted */
    struct zipccl_child_failure failure;
};

/*
 * Run 'jobs' [njobs], at most options->nprocs at once; each tells its failure in itself.
 *
 * options   mode and fidelity; ratio, sensitivities and timeline are ignored
 * finished  in the parent after each job, with how many are done; NULL if not wanted
 * ZIPCCL_ERR_IO, ZIPCCL_ERR_NOMEM where no child can be started.
 */
zipccl_status zipccl_sweep_run(struct zipccl_sweep_job *jobs, uint32_t njobs,
                               const struct zipccl_replay_options *options,
                               void (*finished)(void *context, uint32_t ndone), void *context,
                               struct zipccl_error *error);

#endif
