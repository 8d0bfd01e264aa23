/*
 * test_plan_reduce.c - the validator refuses broken reductions and two-level plans
 *
 * Each case takes a valid plan of four ranks on two nodes, breaks one thing, and states which kind of
 * step breaks which rule.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/plan_cases.h"

#include <string.h>

#define NRANKS 4
#define COUNT  200003 /* six chunks of two superblocks, and a short one */

struct breakage {
    const char *what, *strategy;
    enum zipccl_op op;
    bool in_place;
    void (*make)(struct zipccl_plan *plan);
    const char *kind, *rule; /* of the step in the error; kind NULL: of the plan */
};

/* The first step of that kind in 'chunk', over 'group' and in 'form'. */
static struct zipccl_step *find(struct zipccl_plan *plan, enum zipccl_step_kind kind,
                                enum zipccl_group_kind group, enum zipccl_form form, uint32_t chunk)
{
    for (uint32_t i = 0; i < plan->nsteps; i++)
        if (plan->steps[i].kind == kind && plan->steps[i].group == group &&
            plan->steps[i].form == form && plan->steps[i].chunk == chunk)
            return &plan->steps[i];
    cr_assert_fail("no such step");
    return NULL;
}

static struct zipccl_step *sum_of_node(struct zipccl_plan *plan, uint32_t chunk)
{
    return find(plan, ZIPCCL_STEP_REDUCE, ZIPCCL_GROUP_NODE, ZIPCCL_FORM_RAW, chunk);
}

static struct zipccl_step *sum_of_rail(struct zipccl_plan *plan, uint32_t chunk)
{
    return find(plan, ZIPCCL_STEP_REDUCE, ZIPCCL_GROUP_RAIL, ZIPCCL_FORM_FIXED, chunk);
}

static struct zipccl_step *sum_of_world(struct zipccl_plan *plan, uint32_t chunk)
{
    return find(plan, ZIPCCL_STEP_REDUCE, ZIPCCL_GROUP_WORLD, ZIPCCL_FORM_FIXED, chunk);
}

static struct zipccl_step *exchange(struct zipccl_plan *plan, enum zipccl_group_kind group,
                                    enum zipccl_form form, uint32_t chunk)
{
    return find(plan, ZIPCCL_STEP_EXCHANGE, group, form, chunk);
}

static void average_twice(struct zipccl_plan *plan)
{
    plan->redop = ZIPCCL_AVG;
    sum_of_node(plan, 0)->redop = ZIPCCL_AVG;
}

static void never_average(struct zipccl_plan *plan)
{
    plan->redop = ZIPCCL_AVG;
}

static void carry_on(struct zipccl_plan *plan)
{
    sum_of_world(plan, 1)->first = 0;
}

static void never_round(struct zipccl_plan *plan)
{
    sum_of_world(plan, 1)->round = 0;
}

static void operator_elsewhere(struct zipccl_plan *plan)
{
    plan->steps[0].round = 1;
}

static void sum_too_early(struct zipccl_plan *plan)
{
    sum_of_node(plan, 2)->ndeps = 0;
}

static void sum_before_headers(struct zipccl_plan *plan)
{
    sum_of_rail(plan, 0)->ndeps = 0;
}

static void sum_blindly(struct zipccl_plan *plan)
{
    sum_of_world(plan, 0)->raw_of = ZIPCCL_STEP_NONE;
}

static void other_self(struct zipccl_plan *plan)
{
    sum_of_world(plan, 1)->self.base--;
}

static void other_node_is_self(struct zipccl_plan *plan)
{
    sum_of_rail(plan, 0)->self.peer_stride = 0;
}

static void self_from_other_rank(struct zipccl_plan *plan)
{
    sum_of_node(plan, 0)->self.peer_stride += 1;
}

static void one_message_for_two(struct zipccl_plan *plan)
{
    sum_of_world(plan, 0)->src.peer_stride = 0;
}

static void other_chunk(struct zipccl_plan *plan)
{
    sum_of_world(plan, 1)->src = sum_of_world(plan, 0)->src;
}

static void exchange_other_blocks(struct zipccl_plan *plan)
{
    struct zipccl_step *s =
        find(plan, ZIPCCL_STEP_ENCODE, ZIPCCL_GROUP_WORLD, ZIPCCL_FORM_FIXED, 0);

    s->src.base++;
    exchange(plan, ZIPCCL_GROUP_WORLD, ZIPCCL_FORM_RAW, 0)->src.base++;
}

static void resend_inputs(struct zipccl_plan *plan)
{
    exchange(plan, ZIPCCL_GROUP_RAIL, ZIPCCL_FORM_RAW, 0)->src =
        exchange(plan, ZIPCCL_GROUP_NODE, ZIPCCL_FORM_RAW, 0)->src;
}

static void one_level_only(struct zipccl_plan *plan)
{
    struct zipccl_step *s = sum_of_node(plan, 0);

    s->dst = sum_of_rail(plan, 0)->dst;
    s->dst.base = 0;
}

static void sum_elsewhere(struct zipccl_plan *plan)
{
    sum_of_rail(plan, 0)->dst.base++;
}

static void forget_a_chunk(struct zipccl_plan *plan)
{
    plan->nsteps--;
}

static void reuse_tmp_too_early(struct zipccl_plan *plan)
{
    struct zipccl_step *first = sum_of_node(plan, 0), *s = sum_of_node(plan, 1);

    s->dst = first->dst;
}

static void tmp_too_small(struct zipccl_plan *plan)
{
    plan->tmp_bytes /= 2;
}

static void acc_too_small(struct zipccl_plan *plan)
{
    plan->acc_bytes -= 64;
}

static void other_shards(struct zipccl_plan *plan)
{
    plan->shard_n++;
}

static void gather_too_early(struct zipccl_plan *plan)
{
    for (uint32_t i = 0; i < plan->nsteps; i++)
        if (plan->steps[i].pattern == ZIPCCL_PATTERN_ALL_GATHER)
            plan->steps[i].ndeps = 0;
}

static void gather_unrounded_inputs(struct zipccl_plan *plan)
{
    for (uint32_t i = 0; i < plan->nsteps; i++)
        if (plan->steps[i].pattern == ZIPCCL_PATTERN_ALL_GATHER &&
            plan->steps[i].src.buf == ZIPCCL_BUF_RECV)
            plan->steps[i].src.buf = ZIPCCL_BUF_SEND;
}

static void unknown_group(struct zipccl_plan *plan)
{
    plan->steps[0].group = 3;
}

static void too_many_blocks(struct zipccl_plan *plan)
{
    exchange(plan, ZIPCCL_GROUP_NODE, ZIPCCL_FORM_RAW, 0)->nblocks = 3;
}

static void spread_too_early(struct zipccl_plan *plan)
{
    for (uint32_t i = 0; i < plan->nsteps; i++)
        if (plan->steps[i].group == ZIPCCL_GROUP_NODE)
            plan->steps[i].ndeps = 0;
}

static void sums_in_a_gather(struct zipccl_plan *plan)
{
    struct zipccl_step *s = find(plan, ZIPCCL_STEP_DECODE, ZIPCCL_GROUP_RAIL, ZIPCCL_FORM_FIXED, 0);

    plan->acc_bytes = 1 << 20;
    s->kind = ZIPCCL_STEP_REDUCE;
    s->first = s->round = 1;
}

#define RS ZIPCCL_REDUCE_SCATTER
#define AR ZIPCCL_ALL_REDUCE
static const struct breakage breakages[] = {
    {"avg at the first level", "fixed two-level", RS, false, average_twice, "reduce", "reduce"},
    {"avg at no level", "fixed direct", RS, false, never_average, "reduce", "reduce"},
    {"a sum that goes on", "fixed direct", RS, false, carry_on, "reduce", "reduce"},
    {"a sum that is not rounded", "fixed direct", AR, false, never_round, "reduce", "reduce"},
    {"an operator elsewhere", "fixed direct", AR, false, operator_elsewhere, "encode", "form"},
    {"a sum before its contributions", "raw two-level", RS, false, sum_too_early, "reduce",
     "order"},
    {"a sum before the headers", "fixed two-level", RS, false, sum_before_headers, "reduce",
     "order"},
    {"a sum that heeds no header", "fixed direct", RS, false, sum_blindly, "reduce", "reference"},
    {"own elements beside", "fixed direct", RS, false, other_self, "reduce", "reduce"},
    {"another node's sum as the own", "fixed two-level", RS, false, other_node_is_self, "reduce",
     "reduce"},
    {"own elements of another block", "raw two-level", RS, false, self_from_other_rank, "reduce",
     "reduce"},
    {"one contribution twice", "fixed direct", RS, false, one_message_for_two, "reduce", "content"},
    {"contributions of another chunk", "fixed direct", RS, false, other_chunk, "reduce", "order"},
    {"peers that send other elements", "fixed direct", RS, false, exchange_other_blocks, "reduce",
     "reduce"},
    {"a resend of what is not summed", "fixed two-level", RS, false, resend_inputs, "reduce",
     "content"},
    {"the first level is the result", "fixed two-level", RS, false, one_level_only, "reduce",
     "output"},
    {"a sum in the wrong place", "fixed two-level", AR, false, sum_elsewhere, "reduce", "output"},
    {"the last sum is missing", "fixed direct", RS, false, forget_a_chunk, NULL, "output"},
    {"TMP is written while it is sent", "fixed two-level", RS, false, reuse_tmp_too_early, "reduce",
     "order"},
    {"TMP too short", "raw two-level", RS, false, tmp_too_small, "reduce", "staging"},
    {"no room for a decoded block", "fixed direct", RS, false, acc_too_small, NULL, "staging"},
    {"other shards", "fixed direct", AR, false, other_shards, NULL, "chunk"},
    {"shards gathered before they are summed", "raw direct", AR, false, gather_too_early,
     "exchange", "order"},
    {"shards gathered before they are summed, in place", "raw two-level", AR, true,
     gather_too_early, "exchange", "order"},
    {"inputs gathered instead of sums", "raw direct", AR, false, gather_unrounded_inputs,
     "exchange", "output"},
    {"a group that is none", "raw two-level", AR, false, unknown_group, "exchange", "form"},
    {"more blocks than nodes", "raw two-level", RS, false, too_many_blocks, "exchange", "form"},
    {"spread before it has come", "fixed two-level", ZIPCCL_ALL_GATHER, false, spread_too_early,
     "exchange", "order"},
    {"spread before it has come", "fixed two-level", ZIPCCL_BROADCAST, false, spread_too_early,
     "exchange", "order"},
    {"a sum in a gather", "fixed two-level", ZIPCCL_ALL_GATHER, false, sums_in_a_gather, "reduce",
     "reduce"},
};

Test(plan_reduce, each_breakage_is_refused_by_step_and_rule)
{
    struct zipccl_topology *t = make_topology(2, NRANKS / 2);

    for (unsigned i = 0; i < sizeof breakages / sizeof *breakages; i++) {
        const struct breakage *b = &breakages[i];
        struct zipccl_call call = make_call(b->op, COUNT, NRANKS);
        struct zipccl_plan *plan = make_plan(b->strategy, &call, t, 7);
        struct zipccl_error error = {""};
        char rule[40], kind[40] = "";

        cr_expect_eq(zipccl_plan_validate(plan, t, b->in_place, NULL, 0, &error), ZIPCCL_OK, "%s",
                     error.text);
        b->make(plan);
        cr_expect_eq(zipccl_plan_validate(plan, t, b->in_place, NULL, 0, &error), ZIPCCL_ERR_ARG,
                     "%s: accepted", b->what);
        snprintf(rule, sizeof rule, "rule '%s'", b->rule);
        if (b->kind != NULL)
            snprintf(kind, sizeof kind, "(%s) breaks", b->kind);
        cr_expect(strstr(error.text, rule) != NULL && strstr(error.text, kind) != NULL,
                  "%s:\n  got      %s\n  expected %s %s", b->what, error.text, kind, rule);
        zipccl_plan_destroy(plan);
    }
    zipccl_topology_destroy(t);
}

/* Between lanes, a step waits for one other at least wherever it uses what that one left. */
Test(plan_reduce, no_step_can_do_without_its_dependencies)
{
    static const char *const names[] = {"raw direct",    "fixed direct",    "exact direct",
                                        "raw two-level", "fixed two-level", "exact two-level"};
    struct zipccl_topology *t = make_topology(2, 2);
    struct zipccl_error error;
    unsigned refused = 0, tried = 0;

    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        for (unsigned op = 0; op < 2; op++) {
            struct zipccl_call call = make_call(op ? AR : RS, 4001, NRANKS);
            struct zipccl_plan *plan = make_plan(names[i], &call, t, 7);

            for (uint32_t s = 0; s < plan->nsteps; s++) {
                struct zipccl_step before = plan->steps[s];

                /* What a lane does in order needs no dependency: RESOLVE, resend, SIZES again. */
                if (before.ndeps == 0 || before.kind == ZIPCCL_STEP_RESOLVE ||
                    before.raw_of != ZIPCCL_STEP_NONE || before.sizes_of != ZIPCCL_STEP_NONE)
                    continue;
                plan->steps[s].ndeps = 0;
                tried++;
                refused += zipccl_plan_validate(plan, t, false, NULL, 0, &error) != ZIPCCL_OK;
                plan->steps[s] = before;
            }
            zipccl_plan_destroy(plan);
        }
    printf("%u of %u dependencies are needed one by one\n", refused, tried);
    fflush(stdout);
    cr_assert_gt(10 * refused, 6 * tried);
    zipccl_topology_destroy(t);
}

Test(plan_reduce, staging_bound_counts_all_buffers)
{
    static const char *const names[] = {"raw direct", "fixed direct", "raw two-level",
                                        "fixed two-level"};
    struct zipccl_topology *t = make_topology(2, 4);
    struct zipccl_call call = make_call(AR, 2000003, 8);
    struct zipccl_error error;

    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        for (size_t bound = 16 << 20; bound >= 256 << 10; bound /= 4) {
            struct zipccl_plan *plan = NULL;

            cr_assert_eq(zipccl_strategy_find(names[i])->build(&call, t, 1, 1, 0, bound, &plan),
                         ZIPCCL_OK);
            cr_assert_leq(zipccl_plan_staging_bytes(plan), bound);
            cr_assert_eq(zipccl_plan_validate(plan, t, true, NULL, bound, &error), ZIPCCL_OK, "%s",
                         error.text);
            cr_assert_neq(zipccl_plan_validate(plan, t, true, NULL,
                                               zipccl_plan_staging_bytes(plan) - 1, &error),
                          ZIPCCL_OK);
            zipccl_plan_destroy(plan);
        }
    zipccl_topology_destroy(t);
}

Test(plan_reduce, two_levels_need_even_nodes_of_several)
{
    static const uint32_t ids[] = {7, 3, 7, 7, 3}, scattered[] = {7, 3, 3, 7, 1, 1};
    struct zipccl_topology *uneven, *even, *flat = make_topology(1, 4), *thin = make_topology(4, 1);
    const struct zipccl_strategy *s = zipccl_strategy_find("fixed two-level");
    struct zipccl_call call = make_call(RS, 1000, 4);
    struct zipccl_plan *plan = NULL;
    struct zipccl_error error = {""};

    cr_assert_eq(zipccl_topology_create(5, ids, &uneven), ZIPCCL_OK);
    cr_assert_eq(zipccl_topology_create(6, scattered, &even), ZIPCCL_OK);
    cr_assert_eq(s->build(&call, uneven, 1, 1, 0, 0, &plan), ZIPCCL_ERR_UNSUPPORTED);
    cr_assert_eq(s->build(&call, flat, 1, 1, 0, 0, &plan), ZIPCCL_ERR_UNSUPPORTED);
    cr_assert_eq(s->build(&call, thin, 1, 1, 0, 0, &plan), ZIPCCL_ERR_UNSUPPORTED);
    for (unsigned op = 0; op < ZIPCCL_NUM_OPS; op++) {
        call = make_call((enum zipccl_op)op, 1000, 6);
        if (!s->serves(&call))
            continue;
        cr_assert_eq(s->build(&call, even, 1, 3, 0, 0, &plan), ZIPCCL_OK);
        cr_assert_eq(zipccl_plan_validate(plan, even, false, NULL, 0, &error), ZIPCCL_OK, "%s",
                     error.text);
        zipccl_plan_destroy(plan);
    }
    zipccl_topology_destroy(uneven);
    zipccl_topology_destroy(even);
    zipccl_topology_destroy(flat);
    zipccl_topology_destroy(thin);
}
