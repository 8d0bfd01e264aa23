/*
 * plan_check.h - what the two halves of the validator share
 *
 * Private to core.  plan_validate.c checks each step by itself; plan_trace.c follows the bytes of
 * one rank through all steps.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_PLAN_CHECK_H
#define ZIPCCL_CORE_PLAN_CHECK_H

#include "core/plan.h"

struct zipccl_check {
    const struct zipccl_plan *plan;
    size_t size; /* of an element */
    bool in_place;
    const size_t *splits;                    /* [nranks * nranks], uneven ops */
    const size_t *send_displs, *recv_displs; /* [nranks * nranks] packed, uneven ops */
    /* [nsteps] steps of each lane below this number have ended before the step starts. */
    uint32_t (*before)[2];
    struct zipccl_error *error;
};

/* Whether step 'a' has ended when step 'b' starts, in every run. */
static inline bool zipccl_check_ordered(const struct zipccl_check *c, uint32_t a, uint32_t b)
{
    return a < c->before[b][c->plan->steps[a].lane];
}

/* Fail with "step N (kind) breaks rule 'rule': ..."; returns ZIPCCL_ERR_ARG. */
zipccl_status zipccl_check_fail(const struct zipccl_check *c, uint32_t step, const char *rule,
                                const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Follow the bytes of 'rank'; every step has passed the checks of its own. */
zipccl_status zipccl_check_rank(const struct zipccl_check *c, uint32_t rank);

#endif
