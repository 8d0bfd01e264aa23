/*
 * plan_cases.h - topologies, calls and splits that the plan tests share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_TESTS_PLAN_CASES_H
#define ZIPCCL_CORE_TESTS_PLAN_CASES_H

#include "core/plan.h"
#include "core/strategy.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static inline struct zipccl_topology *make_topology(uint32_t nnodes, uint32_t ranks_per_node)
{
    struct zipccl_topology *t = NULL;

    cr_assert_eq(zipccl_topology_create_even(nnodes, ranks_per_node, &t), ZIPCCL_OK);
    return t;
}

/* bf16, native available, the last rank as root. */
static inline struct zipccl_call make_call(enum zipccl_op op, size_t count, uint32_t nranks)
{
    return (struct zipccl_call){.op = op,
                                .dtype = ZIPCCL_BFLOAT16,
                                .redop = ZIPCCL_SUM,
                                .root = op == ZIPCCL_BROADCAST ? nranks - 1 : 0,
                                .count = count,
                                .has_native = true};
}

/*
 * Splits with zeros, small and large pairs, 'count' the largest; sendrecv: rank r sends to r + 1,
 * and every third rank nothing.  The caller frees.
 */
static inline size_t *make_splits(enum zipccl_op op, size_t count, uint32_t nranks)
{
    size_t *splits = calloc((size_t)nranks * nranks, sizeof *splits);

    cr_assert_not_null(splits);
    for (uint32_t s = 0; s < nranks; s++)
        for (uint32_t d = 0; d < nranks; d++) {
            size_t n = (s * 7 + d * 13) % 5 == 0 ? 0 : count * ((s * 3 + d * 5) % 8 + 1) / 8;

            if (op == ZIPCCL_SENDRECV)
                n = d == (s + 1) % nranks && s % 3 != 2 ? count - s % 2 * (count / 2) : 0;
            splits[s * nranks + d] = n;
        }
    if (op == ZIPCCL_ALLTOALLV)
        splits[nranks - 1] = count;
    return splits;
}

static inline struct zipccl_plan *make_plan(const char *name, const struct zipccl_call *call,
                                            const struct zipccl_topology *t, uint32_t nchunks)
{
    const struct zipccl_strategy *s = zipccl_strategy_find(name);
    struct zipccl_plan *plan = NULL;

    cr_assert_not_null(s, "no strategy %s", name);
    cr_assert(s->serves(call), "%s does not serve %s", name, zipccl_op_name(call->op));
    cr_assert_eq(s->build(call, t, 2, nchunks, 0, 0, &plan), ZIPCCL_OK);
    return plan;
}

#endif
