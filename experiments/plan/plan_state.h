/*
 * plan_state.h - what a rank had learnt of the call that 'zipccl plan' is asked about
 *
 * From a file that --state-save of a real run has written (core/STATE.md).  It explains what that run came
 * to beside what is predicted; predictions do not follow from it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_PLAN_STATE_H
#define ZIPCCL_EXPERIMENTS_PLAN_STATE_H

#include "core/state.h"

struct zipccl_plan_learnt {
    const char *path;
    struct zipccl_state state;            /* owned */
    const struct zipccl_state_even *call; /* of 'state'; NULL: nothing is known of the call */
    /* alltoallv, sendrecv: directions of pairs in each class, those without one first. */
    size_t npairs, pairs_in[1 + ZIPCCL_NUM_CLASSES];
};

/*
 * Read 'path' and find calls of 'count' elements, or of pairs, on 'nranks' ranks.  'out' is to be released
 * whatever the status.
 * ZIPCCL_ERR_INPUT naming file, line, what was found and expected, also if it is of other ranks;
 * ZIPCCL_ERR_IO, ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_plan_learnt_read(const char *path, enum zipccl_op op, enum zipccl_dtype dtype,
                                      size_t count, uint32_t nranks, struct zipccl_plan_learnt *out,
                                      struct zipccl_error *error);
void zipccl_plan_learnt_release(struct zipccl_plan_learnt *learnt);

#endif
