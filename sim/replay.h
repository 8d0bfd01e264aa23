/*
 * replay.h - runs a training trace on a simulated cluster
 *
 * Raw, compressed and adaptive step, per-collective times, sensitivities and break-evens.  Wire
 * sizes come from the real codec on the trace's samples.  Each simulation runs in a child process
 * (SimGrid holds one platform and its clock never goes back).  It prints nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_SIM_REPLAY_H
#define ZIPCCL_SIM_REPLAY_H

#include "models/cluster.h"
#include "sim/result.h"
#include "sim/timeline.h"
#include "traces/trace.h"

/* T2 plays every message: for small traces, and to check T1.  It searches nothing. */
enum zipccl_fidelity { ZIPCCL_FIDELITY_T0, ZIPCCL_FIDELITY_T1, ZIPCCL_FIDELITY_T2 };

struct zipccl_replay_options {
    bool raw, compressed, adaptive; /* modes to run; default all */
    enum zipccl_fidelity fidelity;  /* default T1 */
    bool native;                    /* raw is NCCL's own algorithms; default: the best plans */
    double ratio;                   /* > 0: given instead of samples; 0: from samples */
    bool sensitivities;             /* default true; needs raw and adaptive; not at T2 */
    uint32_t nprocs;                /* child processes at once; 0: number of cores */
    bool timeline;                  /* keep a timeline; 'trace' then must outlive the result */
    int timeline_mode;              /* ZIPCCL_STEP_..., one of the modes that run */
    uint32_t timeline_ranks;        /* at most so many; default ZIPCCL_TIMELINE_RANKS */
    /* Called from the parent with work done and work in all; NULL if not wanted. */
    void (*progress)(void *context, uint64_t done, uint64_t total, const char *what);
    void *progress_context;
};

void zipccl_replay_options_init(struct zipccl_replay_options *options);

/*
 * Replay 'trace' on 'cluster'.  The caller destroys '*out'.
 *
 * ZIPCCL_ERR_ARG also for a timeline of a mode that is not run.
 * ZIPCCL_ERR_INPUT with the reason: no collectives, a world that does not fit the cluster, a
 * sample that is missing, of another dtype or broken, a dependency that is unknown.
 */
zipccl_status zipccl_replay(const struct zipccl_trace *trace,
                            const struct zipccl_cluster_file *cluster,
                            const struct zipccl_replay_options *options,
                            struct zipccl_replay_result **out, struct zipccl_error *error);

#endif
