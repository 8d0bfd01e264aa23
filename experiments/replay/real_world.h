/*
 * real_world.h - the world that a command line asks for: threads, or a launcher's processes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_REAL_WORLD_H
#define ZIPCCL_EXPERIMENTS_REAL_WORLD_H

#include "experiments/perf/perf_options.h"
#include "experiments/ranks/world.h"

/* Ranks that one process runs as threads, at most. */
#define ZIPCCL_MAX_RANK_THREADS 256

struct zipccl_real_world {
    enum zipccl_perf_on on; /* AUTO, THREADS or MPI */
    uint32_t nthreads;      /* 0: as many as processors, at least 2; not with MPI, where 1 is one */
    uint32_t ranks_per_node; /* 0: as they are */
    double timeout_s;
    enum zipccl_gate_mode gate; /* of NCCL */
};

/*
 * Open it.  AUTO is MPI under a launcher, else threads.
 *
 * ZIPCCL_ERR_INPUT if a launcher's variables and what is asked for do not fit; else as
 * zipccl_world_open().
 */
zipccl_status zipccl_real_world_open(const struct zipccl_real_world *wanted,
                                     struct zipccl_world **out, struct zipccl_error *error);

/*
 * The chooser's rates where no cluster is named: those of the device, else the library's round figures.
 * Nodes that are pretended on one machine have no network between them, so there it is as fast as memory.
 */
void zipccl_real_world_rates(const struct zipccl_world *world, struct zipccl_cost_params *params);

/* The rates as results list them among their assumptions. */
struct zipccl_rate {
    const char *name, *unit;
    double value;
};
enum { ZIPCCL_NUM_RATES = 10 };
void zipccl_real_world_list_rates(const struct zipccl_cost_params *params,
                                  struct zipccl_rate out[ZIPCCL_NUM_RATES]);

/* Where they come from. */
const char *zipccl_real_world_rates_source(bool cluster);

/* True if this process writes what comes out: unless a launcher says that it is not rank 0. */
bool zipccl_real_world_writes(void);

#endif
