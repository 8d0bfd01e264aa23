/*
 * test_pricing.c - the capacity class that a replay prices: where calls settle, and why
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/pricing.h"
#include "sim/sharing.h"
#include "sim/tests/toy.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define TENSORS "traces/samples/tensors/dense.safetensors"

/* A trace of all-gathers, each with a sample of its own, priced on the toy cluster. */
struct priced {
    struct toy toy;
    char *names[TOY_EVENTS];
    struct zipccl_cluster cluster;
    struct zipccl_samples *samples;
    struct zipccl_program *program;
    struct zipccl_pricing *pricing;
};

static void add(struct priced *p, enum zipccl_op op, uint64_t count, const char *sample)
{
    size_t i = p->toy.trace.nevents;
    struct zipccl_event *e = toy_collective(&p->toy, op, ZIPCCL_BFLOAT16, count, 1, i);

    if (sample == NULL)
        return;
    p->names[i] = (char *)(uintptr_t)sample;
    e->samples = &p->names[i];
    e->nsamples = 1;
}

static void price_on(struct priced *p, const struct zipccl_cluster *cluster, double ratio,
                     const struct zipccl_scenario *scenario)
{
    struct zipccl_error error = {""};

    p->cluster = *cluster;
    /* Long latencies: exact messages, whose sizes travel first, are the dearer ones. */
    p->cluster.nic_alpha_s = p->cluster.nvlink_alpha_s = 2e-3;
    cr_assert_eq(zipccl_samples_open(TENSORS, ratio, &p->samples, &error), ZIPCCL_OK, "%s",
                 error.text);
    cr_assert_eq(zipccl_program_create(&p->toy.trace, &p->cluster, p->samples, &p->program, &error),
                 ZIPCCL_OK, "%s", error.text);
    cr_assert_eq(
        zipccl_pricing_create(p->program, &p->cluster, scenario, p->samples, &p->pricing, &error),
        ZIPCCL_OK, "%s", error.text);
}

static void price(struct priced *p, double ratio, double delta)
{
    struct zipccl_cluster cluster = toy_cluster();
    struct zipccl_scenario scenario;

    zipccl_scenario_init(&scenario);
    scenario.ratio_delta = delta;
    price_on(p, &cluster, ratio, &scenario);
}

static const struct zipccl_price *compressed(const struct priced *p, size_t event)
{
    return zipccl_pricing_get(p->pricing, &p->program->events[event], 0, ZIPCCL_STEP_COMPRESSED);
}

static void done(struct priced *p)
{
    zipccl_pricing_destroy(p->pricing);
    zipccl_program_destroy(p->program);
    zipccl_samples_close(p->samples);
}

/* Priced once, with samples of one ratio: the narrowest class that holds them. */
Test(pricing, takes_the_class_that_holds_the_samples)
{
    static const struct {
        double ratio;
        int class;
        const char *name;
    } cases[] = {{1.51, ZIPCCL_CLASS_SETTLED, "settled"},
                 {1.49, 14, "tight"},
                 {1.46, 12, "medium"},
                 {1.42, 10, "loose-1"},
                 {1.30, 3, "wide-3"},
                 {1.10, ZIPCCL_NO_CLASS, "none"}};

    for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct priced p;
        const struct zipccl_price *got;

        memset(&p, 0, sizeof(p));
        toy_init(&p.toy, 8);
        add(&p, ZIPCCL_ALLTOALL, 8 << 20, NULL);
        price(&p, cases[i].ratio, 0);
        got = compressed(&p, 0);
        cr_assert_eq(got->capacity_class, cases[i].class, "ratio %.2f: class %d (%s)",
                     cases[i].ratio, got->capacity_class, got->name);
        cr_assert_str_eq(zipccl_class_name(got->capacity_class), cases[i].name);
        cr_assert_eq(got->overflows_settled, cases[i].class != ZIPCCL_CLASS_SETTLED);
        if (cases[i].class == ZIPCCL_NO_CLASS) {
            /* Messages that overflow the widest class too are no fixed ones. */
            cr_assert(strncmp(got->name, "exact", 5) == 0, "%s", got->name);
            cr_assert_eq(got->capacity_ratio, 0);
        } else {
            /* What is on the wire is the capacity. */
            cr_assert_float_eq(got->raw_bytes / got->wire_bytes, got->capacity_ratio, 1e-3);
            cr_assert_leq(got->capacity_ratio, cases[i].ratio + 1e-9);
        }
        done(&p);
    }
}

/* A ratio that falls makes the class wider. */
Test(pricing, follows_a_change_of_the_ratio)
{
    struct priced p;

    memset(&p, 0, sizeof(p));
    toy_init(&p.toy, 8);
    add(&p, ZIPCCL_ALLTOALL, 8 << 20, NULL);
    price(&p, 1.51, -0.05);
    cr_assert_str_eq(zipccl_class_name(compressed(&p, 0)->capacity_class), "medium");
    done(&p);
}

/* Calls that share a class settle in the widest that one of them needs; others do not care. */
Test(pricing, calls_of_one_count_share_a_class)
{
    struct priced p;

    memset(&p, 0, sizeof(p));
    toy_init(&p.toy, 8);
    add(&p, ZIPCCL_ALL_GATHER, 8 << 20, "allgather.param.layer0.attn.step219");
    add(&p, ZIPCCL_ALL_GATHER, 8 << 20, "reducescatter.grad.layer3.mlp.step219");
    add(&p, ZIPCCL_ALL_GATHER, 9 << 20, "allgather.param.layer0.attn.step219");
    price(&p, 0, 0);
    cr_assert_eq(compressed(&p, 2)->capacity_class, ZIPCCL_CLASS_SETTLED);
    cr_assert_lt(compressed(&p, 1)->capacity_class, ZIPCCL_CLASS_SETTLED);
    cr_assert_eq(compressed(&p, 0)->capacity_class, compressed(&p, 1)->capacity_class);
    cr_assert(compressed(&p, 1)->overflows_settled && !compressed(&p, 0)->overflows_settled);
    cr_assert_gt(compressed(&p, 0)->wire_bytes / 8, compressed(&p, 2)->wire_bytes / 9);
    done(&p);
}

/* Halves of which each has two ranks on each node: {0, 2, 4, 6} and {1, 3, 5, 7}. */
static void interleave(struct priced *p)
{
    memset(p, 0, sizeof(*p));
    toy_init(&p->toy, 8);
    for (uint32_t r = 0; r < 8; r++)
        p->toy.ranks[16 + r] = r % 4 * 2 + r / 4;
    p->toy.groups[1].ranks = p->toy.ranks + 16;
}

Test(sharing, counts_groups_of_a_set_on_the_same_nic)
{
    struct zipccl_cluster cluster = toy_cluster();
    struct priced p;
    struct zipccl_sharing sharing;

    interleave(&p);
    cr_assert_eq(zipccl_nic_sharing(&cluster, &p.toy.groups[1], &sharing), ZIPCCL_OK);
    cr_assert(sharing.nic == 2 && sharing.fabric == 2);
    /* One NIC a GPU: each group has its own, and a part of the fabric behind all. */
    cluster.nics_per_node = 4;
    zipccl_nic_sharing(&cluster, &p.toy.groups[1], &sharing);
    cr_assert(sharing.nic == 1 && sharing.fabric == 2);
    /* All ranks in one group; halves that are nodes, and use no NIC. */
    cluster.nics_per_node = 1;
    zipccl_nic_sharing(&cluster, &p.toy.groups[0], &sharing);
    cr_assert(sharing.nic == 1 && sharing.fabric == 1);
    p.toy.groups[1].ranks = p.toy.ranks;
    zipccl_nic_sharing(&cluster, &p.toy.groups[1], &sharing);
    cr_assert(sharing.nic == 1 && sharing.fabric == 1);
}

/* An all-gather of each half of the world, or of the first half alone. */
static void price_halves(struct priced *p, const struct zipccl_cluster *cluster, uint32_t nhalves,
                         bool flows)
{
    struct zipccl_scenario scenario;

    zipccl_scenario_init(&scenario);
    scenario.flows = flows;
    interleave(p);
    p->toy.groups[1].nparts = nhalves;
    add(p, ZIPCCL_ALL_GATHER, 8 << 20, NULL);
    p->toy.events[0].group = 1;
    price_on(p, cluster, 1.5, &scenario);
}

/* Two halves that share ports on 'cluster' take as long as one would alone on 'half' of it. */
static void compare_shared(const struct zipccl_cluster *cluster, const struct zipccl_cluster *half)
{
    struct priced shared, alone;

    price_halves(&shared, cluster, 2, false);
    price_halves(&alone, half, 1, false);
    for (uint32_t part = 0; part < 2; part++)
        cr_assert_float_eq(
            zipccl_pricing_get(shared.pricing, &shared.program->events[0], part, 0)->total_s,
            zipccl_pricing_get(alone.pricing, &alone.program->events[0], 0, 0)->total_s, 1e-12);
    done(&shared);
    done(&alone);
}

/* Flows see the other groups by themselves; which plan is best they do not. */
Test(sharing, flows_are_of_a_group_alone_and_plans_of_one_beside_others)
{
    struct zipccl_cluster cluster = toy_cluster();
    struct priced flows, closed, alone;

    price_halves(&flows, &cluster, 2, true);
    price_halves(&closed, &cluster, 2, false);
    price_halves(&alone, &cluster, 1, true);
    for (int mode = ZIPCCL_STEP_RAW; mode <= ZIPCCL_STEP_ADAPTIVE; mode++) {
        const struct zipccl_price *p =
            zipccl_pricing_get(flows.pricing, &flows.program->events[0], 0, mode);
        const struct zipccl_price *q =
            zipccl_pricing_get(closed.pricing, &closed.program->events[0], 0, mode);

        cr_assert_str_eq(p->name, q->name);
        cr_assert_eq(p->total_s, q->total_s);
        cr_assert_lt(p->flow->total_s, p->total_s);
    }
    cr_assert_eq(zipccl_pricing_get(flows.pricing, &flows.program->events[0], 0, 0)->flow->wire_s,
                 zipccl_pricing_get(alone.pricing, &alone.program->events[0], 0, 0)->flow->wire_s);
    done(&flows);
    done(&closed);
    done(&alone);
}

/* The closed form has no contention of its own: two groups on a NIC have half of it each. */
Test(sharing, halves_the_nic_at_t0_where_two_groups_share_it)
{
    struct zipccl_cluster cluster = toy_cluster(), half = toy_cluster();

    half.nic_Bps /= 2;
    compare_shared(&cluster, &half);
}

/* Each has NICs of its own then, but the fabric carries a quarter of them: a half of that is left to each. */
Test(sharing, halves_the_fabric_at_t0_where_it_is_slower_than_the_nics)
{
    struct zipccl_cluster cluster = toy_cluster(), half;

    cluster.nics_per_node = 4;
    cluster.fabric_oversubscription = 4;
    half = cluster;
    half.fabric_oversubscription = 8;
    compare_shared(&cluster, &half);
}
