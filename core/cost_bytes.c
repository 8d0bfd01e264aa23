/*
 * cost_bytes.c - what a plan codes: raw bytes, and bytes on the wire
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/cost.h"

#include "core/group.h"

#include <stdlib.h>

static void add_bytes(void *context, uint32_t src, uint32_t dst, uint64_t nbytes)
{
    (void)src;
    (void)dst;
    *(double *)context += (double)nbytes;
}

/* Add the bytes of one step over all ranks.  by_rank: [nranks], scratch */
static zipccl_status step_bytes(const struct zipccl_plan *plan, uint32_t step,
                                const struct zipccl_topology *topology,
                                const struct zipccl_wire_sizes *sizes, uint64_t *by_rank,
                                double *nbytes)
{
    struct zipccl_group g;
    uint32_t rounds;
    bool by_source;

    if (!zipccl_lower_by_rank(plan, step, topology, sizes, by_rank, &by_source))
        return zipccl_lower(plan, step, topology, sizes, add_bytes, nbytes, &rounds);
    g = zipccl_group_of(topology, &plan->steps[step], 0);
    for (uint32_t r = 0; r < plan->nranks; r++)
        *nbytes += (double)(g.size - 1) * (double)by_rank[r];
    return ZIPCCL_OK;
}

zipccl_status zipccl_cost_coded_bytes(const struct zipccl_plan *plan,
                                      const struct zipccl_topology *topology,
                                      const struct zipccl_wire_sizes *sizes, double *raw,
                                      double *coded)
{
    uint64_t *by_rank = calloc(plan->nranks, sizeof *by_rank);
    zipccl_status status = by_rank != NULL ? ZIPCCL_OK : ZIPCCL_ERR_NOMEM;

    *raw = *coded = 0;
    for (uint32_t i = 0; i < plan->nsteps && status == ZIPCCL_OK; i++) {
        const struct zipccl_step *s = &plan->steps[i];
        bool messages = s->kind == ZIPCCL_STEP_EXCHANGE && s->form != ZIPCCL_FORM_RAW;
        bool resend = s->kind == ZIPCCL_STEP_EXCHANGE && s->raw_of != ZIPCCL_STEP_NONE;
        struct zipccl_step as_raw = *s;
        struct zipccl_plan alone = *plan;

        if (!messages && !resend && s->kind != ZIPCCL_STEP_SIZES)
            continue;
        status = step_bytes(plan, i, topology, sizes, by_rank, coded);
        as_raw.form = ZIPCCL_FORM_RAW;
        /* Elements count once, with the last part of their messages. */
        messages = messages && (s->part == 0 || (s->part & ZIPCCL_PART_TAIL) != 0);
        alone.nsteps = 1;
        alone.steps = &as_raw;
        if (messages && status == ZIPCCL_OK)
            status = step_bytes(&alone, 0, topology, sizes, by_rank, raw);
    }
    free(by_rank);
    return status;
}
