/*
 * test_lower_sums.c - which messages are of sums, and over how many ranks
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/lower.h"

#include "core/tests/plan_cases.h"

#include <stdio.h>
#include <string.h>

enum { NNODES = 2, LOCAL = 3 };

/* What the sizes were told, as "1 3 6 ": every change. */
struct told {
    uint32_t nranks;
    char text[128];
};

static void sums_of(void *context, uint32_t nranks)
{
    ((struct told *)context)->nranks = nranks;
}

static size_t coded(void *context, uint32_t src, uint32_t dst, size_t n)
{
    struct told *told = context;
    char word[16];

    (void)src;
    (void)dst;
    snprintf(word, sizeof word, "%u ", told->nranks);
    size_t len = strlen(told->text), last = strlen(word);
    if (len < last || strcmp(told->text + len - last, word) != 0)
        snprintf(told->text + len, sizeof told->text - len, "%s", word);
    return n;
}

static void ignore(void *context, uint32_t src, uint32_t dst, uint64_t nbytes)
{
    (void)context, (void)src, (void)dst, (void)nbytes;
}

static void check(const char *strategy, enum zipccl_op op, const char *expected)
{
    struct zipccl_topology *t = make_topology(NNODES, LOCAL);
    struct zipccl_call call = make_call(op, 60000, NNODES * LOCAL);
    struct told told = {0, ""};
    struct zipccl_wire_sizes sizes = {.bytes = coded, .context = &told, .sums_of = sums_of};
    struct zipccl_plan *plan = make_plan(strategy, &call, t, 1);
    uint32_t nrounds;

    for (uint32_t i = 0; i < plan->nsteps; i++)
        if (plan->steps[i].kind == ZIPCCL_STEP_EXCHANGE)
            cr_assert_eq(zipccl_lower(plan, i, t, &sizes, ignore, NULL, &nrounds), ZIPCCL_OK);
    cr_expect_str_eq(told.text, expected, "%s %s: %s", zipccl_op_name(op), strategy, told.text);
    zipccl_plan_destroy(plan);
    zipccl_topology_destroy(t);
}

Test(lower_sums, are_over_the_levels_that_were_added_up)
{
    check("exact direct", ZIPCCL_ALL_GATHER, "1 ");
    check("exact direct", ZIPCCL_REDUCE_SCATTER, "1 ");
    check("exact direct", ZIPCCL_ALL_REDUCE, "1 6 ");
    /* Raw within the node, so that what is coded first is a sum over it. */
    check("exact two-level", ZIPCCL_REDUCE_SCATTER, "3 ");
    check("exact two-level", ZIPCCL_ALL_REDUCE, "3 6 ");
}
