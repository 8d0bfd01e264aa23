/*
 * real_replay.h - runs the step of a training trace on real ranks, and times it
 *
 * Every stream of a rank is a thread with its queue; what a trace calls compute is slept, spun or
 * left out; collectives are real ones, of the trace's own tensors.  The result is the one that a
 * simulation gives (sim/result.h), measured.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_REAL_REPLAY_H
#define ZIPCCL_EXPERIMENTS_REAL_REPLAY_H

#include "core/zipccl.h"
#include "experiments/perf/state_files.h"
#include "experiments/ranks/world.h"
#include "models/cluster.h"
#include "sim/result.h"
#include "traces/trace.h"

/* What a rank does for as long as the trace says it computes. */
enum zipccl_gaps { ZIPCCL_GAPS_SLEEP, ZIPCCL_GAPS_BUSY, ZIPCCL_GAPS_SKIP };

struct zipccl_real_replay_options {
    bool modes[ZIPCCL_NUM_STEPS];
    enum zipccl_gaps gaps;
    double gap_scale;       /* times what the trace says */
    uint32_t steps, warmup; /* of each mode; steps at least 1 */
    bool check;             /* one more step of each mode, in which every element is compared */
    uint32_t codec_threads;
    uint32_t capacity_class;                 /* or ZIPCCL_CLASS_LEARN */
    struct zipccl_state_files state;         /* of mode adaptive */
    const struct zipccl_cost_params *params; /* of the chooser */
    const struct zipccl_cluster *cluster; /* how long work given in flops takes; NULL: not known */
};

/*
 * Replay 'trace' on 'world', whose ranks are the trace's.  Collective over the world's processes.
 *
 * out    the result, in the process with rank 0; NULL in the others.  Names of cluster and codec are
 *        left to the caller
 * wrong  elements that came out wrong in the checked steps, of all ranks; there as well
 * ZIPCCL_ERR_INPUT with the reason: another number of ranks, work without a duration and without a
 * cluster, samples that do not fit, more memory than the machine has; ZIPCCL_ERR_UNSUPPORTED for a
 * sendrecv in which a member has several peers a side; else what a call failed with.
 */
zipccl_status zipccl_real_replay(const struct zipccl_trace *trace,
                                 const struct zipccl_real_replay_options *options,
                                 struct zipccl_world *world, struct zipccl_replay_result **out,
                                 uint64_t *wrong, struct zipccl_error *error);

#endif
