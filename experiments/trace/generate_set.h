/*
 * generate_set.h - how a made-up step is run, set by the names that options have
 *
 * One table of names and values for the command line of 'trace generate' and for sweeps, and what
 * follows from them.  It prints nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_GENERATE_SET_H
#define ZIPCCL_EXPERIMENTS_GENERATE_SET_H

#include "models/workload.h"

/* Names that zipccl_generate_set() knows: "tp", "micro-batch", ...; NULL ends them. */
extern const char *const zipccl_generate_names[];

/*
 * Set 'name' of 'w' to what 'text' says.
 *
 * ZIPCCL_ERR_ARG if there is no such name; ZIPCCL_ERR_INPUT with what was found, in quotes, and what was
 * expected.
 */
zipccl_status zipccl_generate_set(struct zipccl_workload *w, const char *name, const char *text,
                                  struct zipccl_error *error);

/*
 * Of 'gpus' ranks, what is left for dp (0: dp stays); the batch where it is 0.
 * ZIPCCL_ERR_INPUT if ranks do not divide.
 */
zipccl_status zipccl_generate_fill(struct zipccl_workload *w, uint64_t gpus,
                                   struct zipccl_error *error);

/* Dense bf16 peak of the datasheet of a GPU by its name's beginning, flop/s; 0: unknown. */
double zipccl_generate_peak(const char *gpu_name);

#endif
