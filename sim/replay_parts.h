/*
 * replay_parts.h - the pieces of a replay; private to replay*.c
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_SIM_REPLAY_PARTS_H
#define ZIPCCL_SIM_REPLAY_PARTS_H

#include "sim/adapt.h"
#include "sim/replay.h"
#include "sim/run.h"
#include "sim/search.h"

/* Changed inputs, in the order of the result. */
enum {
    ZIPCCL_SENS_NIC_DOWN,
    ZIPCCL_SENS_NIC_UP,
    ZIPCCL_SENS_RATIO,
    ZIPCCL_SENS_CODEC,
    ZIPCCL_NUM_SENS
};

/* A step under a changed input. */
struct zipccl_replay_sens {
    const struct zipccl_run_base *base;
    struct zipccl_scenario scenario;
    const struct zipccl_run *raw; /* known: the change leaves it as it is; else NULL */
    struct zipccl_adapted_step step;
};

struct zipccl_replay_state {
    const struct zipccl_trace *trace;
    const struct zipccl_cluster_file *file;
    struct zipccl_replay_options options;
    struct zipccl_cluster cluster;
    struct zipccl_samples *samples;
    struct zipccl_program *program;
    struct zipccl_pricing *pricing;
    struct zipccl_run_base base;
    struct zipccl_adapted adapted; /* the cluster as it is */
    struct zipccl_replay_sens sens[ZIPCCL_NUM_SENS];
    struct zipccl_search searches[2];
    uint32_t ndone, ntasks;
};

/* Rows, sorted by exposed time saved, and the sums over them; ZIPCCL_ERR_NOMEM. */
zipccl_status zipccl_replay_rows(const struct zipccl_replay_state *state,
                                 struct zipccl_replay_result *result);

/* Settings, assumptions with their sources, warnings, lines for people; ZIPCCL_ERR_NOMEM. */
zipccl_status zipccl_replay_notes(const struct zipccl_replay_state *state,
                                  struct zipccl_replay_result *result);

#endif
