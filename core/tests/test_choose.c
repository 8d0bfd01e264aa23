/*
 * test_choose.c - the cheapest plan follows size, links and mode
 *
 * 64 ranks, 8 nodes x 8 GPUs.  Rates are examples, not measurements.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/plan_cases.h"

#include <stdio.h>
#include <string.h>

/* One 24 GB/s NIC for the eight GPUs of a node. */
static const struct zipccl_cost_params slow = {.gpus_per_node = 8,
                                               .nics_per_node = 1,
                                               .nvlink_Bps = 360e9,
                                               .nvlink_alpha_s = 2e-6,
                                               .nic_Bps = 24e9,
                                               .nic_alpha_s = 5e-6,
                                               .encode_Bps = 250e9,
                                               .decode_Bps = 250e9,
                                               .codec_launch_s = 5e-6,
                                               .fence_s = 10e-6,
                                               .copy_Bps = 1.5e12,
                                               .channels = 8};

static struct zipccl_cost_params rails(void)
{
    struct zipccl_cost_params p = slow;

    p.nics_per_node = 8;
    p.nic_Bps = 48e9;
    return p;
}

struct chosen {
    char name[48];
    bool compressed;
    uint8_t effort;
    double seconds;
    uint64_t digest;
};

static struct chosen choose(const struct zipccl_call *call, const struct zipccl_cost_params *params,
                            enum zipccl_mode mode)
{
    struct zipccl_topology *t = make_topology(8, 8);
    struct zipccl_placement placement = {t, NULL};
    struct zipccl_plan *plan = NULL;
    struct zipccl_cost cost;
    struct chosen c = {"", false, 0, 0, 0};

    cr_assert_eq(
        zipccl_choose(call, &placement, params, NULL, mode, ZIPCCL_CLASS_WIDE + 1, 0, &plan, &cost),
        ZIPCCL_OK);
    memcpy(c.name, plan->strategy, sizeof c.name);
    c.compressed = plan->compressed;
    c.effort = plan->effort;
    c.seconds = cost.total_s;
    c.digest = zipccl_plan_digest(plan);
    printf("%-10s count %9zu, %u x %2.0f GB/s: %-16s %3u chunks %10.4f ms\n",
           zipccl_op_name(call->op), call->count, params->nics_per_node, params->nic_Bps / 1e9,
           plan->strategy, plan->nchunks, cost.total_s * 1e3);
    fflush(stdout);
    zipccl_plan_destroy(plan);
    zipccl_topology_destroy(t);
    return c;
}

Test(choose, tiny_calls_stay_uncompressed)
{
    static const enum zipccl_op ops[] = {ZIPCCL_ALL_GATHER, ZIPCCL_ALLTOALL, ZIPCCL_ALLTOALLV,
                                         ZIPCCL_SENDRECV, ZIPCCL_BROADCAST};

    for (unsigned i = 0; i < 5; i++)
        for (int native = 0; native < 2; native++) {
            struct zipccl_call call = make_call(ops[i], 32, 64);

            call.has_native = native;
            cr_assert_not(choose(&call, &slow, ZIPCCL_MODE_ADAPTIVE).compressed);
        }
}

Test(choose, large_calls_on_a_shared_slow_nic_compress)
{
    static const enum zipccl_op ops[] = {ZIPCCL_ALL_GATHER, ZIPCCL_ALLTOALL, ZIPCCL_ALLTOALLV,
                                         ZIPCCL_SENDRECV};

    for (unsigned i = 0; i < 4; i++) {
        struct zipccl_call call = make_call(ops[i], 8 << 20, 64);
        struct chosen raw = choose(&call, &slow, ZIPCCL_MODE_RAW);
        struct chosen best = choose(&call, &slow, ZIPCCL_MODE_ADAPTIVE);

        cr_assert(best.compressed);
        cr_assert_lt(best.seconds, raw.seconds / 1.25);
        cr_assert_gt(best.seconds, raw.seconds / 1.51);
    }
}

/* The raw side is the faster of native and our own two levels. */
Test(choose, large_reductions_compress_between_slow_nodes_only)
{
    static const enum zipccl_op ops[] = {ZIPCCL_REDUCE_SCATTER, ZIPCCL_ALL_REDUCE};
    struct zipccl_cost_params fast = rails();

    for (unsigned i = 0; i < 2; i++) {
        struct zipccl_call call = make_call(ops[i], i == 0 ? 8 << 20 : 512 << 20, 64);
        struct chosen raw = choose(&call, &slow, ZIPCCL_MODE_RAW);
        struct chosen best = choose(&call, &slow, ZIPCCL_MODE_ADAPTIVE);

        cr_assert_str_eq(raw.name, "raw two-level");
        cr_assert(strstr(best.name, "two-level") != NULL && best.compressed);
        cr_assert_lt(best.seconds, raw.seconds / 1.25);
        cr_assert_gt(best.seconds, raw.seconds / 1.51);
        cr_assert_not(choose(&call, &fast, ZIPCCL_MODE_ADAPTIVE).compressed);
        call.redop = ZIPCCL_MAX;
        cr_assert_eq(strncmp(choose(&call, &slow, ZIPCCL_MODE_ADAPTIVE).name, "native", 6), 0);
    }
}

/* The ring loads each NIC with an eighth; 63 blocks must be decoded for it. */
Test(choose, all_gather_over_rails_stays_uncompressed)
{
    struct zipccl_cost_params params = rails();
    struct zipccl_call call = make_call(ZIPCCL_ALL_GATHER, 8 << 20, 64);

    cr_assert_not(choose(&call, &params, ZIPCCL_MODE_ADAPTIVE).compressed);
    cr_assert(choose(&call, &params, ZIPCCL_MODE_COMPRESSED).compressed);
}

/* Ranks of one CPU core each: rates of experiments/codec_log.md. */
Test(choose, coding_for_ratio_pays_on_slow_links_whose_codec_rates_are_known)
{
    struct zipccl_cost_params params = slow;
    struct zipccl_call call = make_call(ZIPCCL_ALLTOALL, 8 << 20, 64);
    double fast;

    params.encode_Bps = 17e9;
    params.decode_Bps = 22e9;
    params.nic_Bps = 0.1e9;
    fast = choose(&call, &params, ZIPCCL_MODE_ADAPTIVE).seconds;
    cr_assert_eq(choose(&call, &params, ZIPCCL_MODE_ADAPTIVE).effort, ZIPCCL_EFFORT_FAST);
    params.ratio_encode_Bps = 6e9;
    params.ratio_decode_Bps = 8e9;
    struct chosen best = choose(&call, &params, ZIPCCL_MODE_ADAPTIVE);
    cr_assert_eq(best.effort, ZIPCCL_EFFORT_RATIO);
    cr_assert_eq(strncmp(best.name, "exact", 5), 0);
    cr_assert_lt(best.seconds, 0.994 * fast);
    cr_assert_eq(choose(&call, &params, ZIPCCL_MODE_RAW).effort, ZIPCCL_EFFORT_FAST);
    /* The codec is the slower part: then the fast one. */
    params.nic_Bps = 100e9;
    cr_assert_eq(choose(&call, &params, ZIPCCL_MODE_COMPRESSED).effort, ZIPCCL_EFFORT_FAST);
    call.effort = ZIPCCL_EFFORT_RATIO;
    cr_assert_eq(choose(&call, &params, ZIPCCL_MODE_COMPRESSED).effort, ZIPCCL_EFFORT_RATIO);
}

/* Encoding takes about as long as a latency: too short to be worth chunks of its own. */
Test(choose, an_early_part_hides_the_first_encoding)
{
    struct zipccl_cost_params params = rails();
    struct zipccl_call call = make_call(ZIPCCL_ALLTOALL, 1 << 20, 64);

    params.encode_Bps = params.decode_Bps = 1000e9;
    cr_assert_eq(strncmp(choose(&call, &params, ZIPCCL_MODE_ADAPTIVE).name, "exact split", 11), 0);
    call.effort = ZIPCCL_EFFORT_RATIO;
    params.ratio_encode_Bps = params.ratio_decode_Bps = 1000e9;
    cr_assert_null(strstr(choose(&call, &params, ZIPCCL_MODE_COMPRESSED).name, "split"));
    /* What is shorter than two superblocks is never split. */
    call = make_call(ZIPCCL_ALLTOALL, 32767, 64);
    cr_assert_null(strstr(choose(&call, &params, ZIPCCL_MODE_COMPRESSED).name, "split"));
}

Test(choose, modes_restrict_the_choice)
{
    struct zipccl_cost_params params = rails();

    for (unsigned op = 0; op < ZIPCCL_NUM_OPS; op++) {
        bool reduces = zipccl_is_reduction(op);
        struct zipccl_call call = make_call((enum zipccl_op)op, 1 << 20, 64);
        struct chosen raw = choose(&call, &params, ZIPCCL_MODE_RAW);
        struct chosen coded = choose(&call, &params, ZIPCCL_MODE_COMPRESSED);
        struct chosen best = choose(&call, &params, ZIPCCL_MODE_ADAPTIVE);

        cr_assert_not(raw.compressed);
        cr_assert(coded.compressed);
        cr_assert_eq(best.seconds, raw.seconds < coded.seconds ? raw.seconds : coded.seconds);
        cr_assert_eq(best.digest, choose(&call, &params, ZIPCCL_MODE_ADAPTIVE).digest);
        call.redop = ZIPCCL_MAX;
        if (reduces)
            cr_assert_eq(strncmp(choose(&call, &params, ZIPCCL_MODE_COMPRESSED).name, "native", 6),
                         0);
        call.dtype = ZIPCCL_FLOAT64;
        cr_assert_not(choose(&call, &params, ZIPCCL_MODE_COMPRESSED).compressed);
    }
}

Test(choose, ties_go_to_the_earlier_strategy)
{
    struct zipccl_call call = make_call(ZIPCCL_ALLTOALL, 1 << 20, 64);

    cr_assert_str_eq(choose(&call, &slow, ZIPCCL_MODE_RAW).name, "native");
    call.has_native = false;
    cr_assert_str_eq(choose(&call, &slow, ZIPCCL_MODE_RAW).name, "raw direct");
}

static int always(void *context, uint32_t src, uint32_t dst, size_t n, size_t capacity)
{
    (void)context;
    (void)src;
    (void)dst;
    (void)n;
    (void)capacity;
    return 1;
}

/* Data that no longer fits: bytes unset makes exact messages as long as raw ones. */
Test(choose, incompressible_data_go_raw)
{
    struct zipccl_topology *t = make_topology(8, 8);
    struct zipccl_placement placement = {t, NULL};
    struct zipccl_wire_sizes sizes = {.overflows = always};
    struct zipccl_call call = make_call(ZIPCCL_ALLTOALL, 8 << 20, 64);
    struct zipccl_plan *plan = NULL;

    cr_assert_eq(zipccl_choose(&call, &placement, &slow, &sizes, ZIPCCL_MODE_ADAPTIVE,
                               ZIPCCL_CLASS_SETTLED, 0, &plan, NULL),
                 ZIPCCL_OK);
    cr_assert_not(plan->compressed);
    zipccl_plan_destroy(plan);
    zipccl_topology_destroy(t);
}

/* Messages as long as the capacity of one class. */
static int longer_than(void *context, uint32_t src, uint32_t dst, size_t n, size_t capacity)
{
    (void)src;
    (void)dst;
    return zipccl_capacity(ZIPCCL_BFLOAT16, n, *(const uint32_t *)context) > capacity;
}

Test(choose, takes_the_narrowest_class_that_holds)
{
    static const enum zipccl_op ops[] = {ZIPCCL_ALL_GATHER, ZIPCCL_ALLTOALL, ZIPCCL_ALL_REDUCE,
                                         ZIPCCL_BROADCAST};
    struct zipccl_topology *t = make_topology(2, 4);
    struct zipccl_placement placement = {t, NULL};

    for (unsigned i = 0; i < sizeof ops / sizeof *ops; i++)
        for (uint32_t c = 0; c < ZIPCCL_NUM_CLASSES; c += 3)
            for (uint32_t most = 0; most < ZIPCCL_NUM_CLASSES; most += 5) {
                struct zipccl_wire_sizes sizes = {
                    .overflows = longer_than, .context = &c, .by_n = i % 2};
                struct zipccl_call call = make_call(ops[i], 8 << 20, 8);
                struct zipccl_plan *plan = NULL;

                cr_assert_eq(zipccl_choose(&call, &placement, &slow, &sizes, ZIPCCL_MODE_COMPRESSED,
                                           most, 0, &plan, NULL),
                             ZIPCCL_OK);
                /* Exact messages are as long as raw ones here, so fixed ones are cheaper. */
                cr_assert(zipccl_plan_is_fixed(plan));
                cr_assert_eq(plan->capacity_class, c < most ? c : most);
                zipccl_plan_destroy(plan);
            }
    zipccl_topology_destroy(t);
}

Test(choose, staging_bound_holds_or_is_reported)
{
    struct zipccl_topology *t = make_topology(8, 8);
    struct zipccl_placement placement = {t, NULL};
    struct zipccl_call call = make_call(ZIPCCL_ALL_GATHER, 8 << 20, 64);
    struct zipccl_plan *plan = NULL;
    struct zipccl_error error = {""};

    cr_assert_eq(zipccl_choose(&call, &placement, &slow, NULL, ZIPCCL_MODE_COMPRESSED, 0, 64 << 20,
                               &plan, NULL),
                 ZIPCCL_OK);
    cr_assert(plan->compressed);
    cr_assert_eq(zipccl_plan_validate(plan, t, true, NULL, 64 << 20, &error), ZIPCCL_OK, "%s",
                 error.text);
    zipccl_plan_destroy(plan);
    /* Nothing compressed fits: raw needs no staging. */
    cr_assert_eq(
        zipccl_choose(&call, &placement, &slow, NULL, ZIPCCL_MODE_COMPRESSED, 0, 4096, &plan, NULL),
        ZIPCCL_OK);
    cr_assert_not(plan->compressed);
    zipccl_plan_destroy(plan);
    plan = NULL;
    call.op = ZIPCCL_ALL_REDUCE;
    call.redop = ZIPCCL_PROD;
    call.has_native = false;
    cr_assert_eq(
        zipccl_choose(&call, &placement, &slow, NULL, ZIPCCL_MODE_ADAPTIVE, 0, 0, &plan, NULL),
        ZIPCCL_ERR_UNSUPPORTED);
    cr_assert_null(plan);
    zipccl_topology_destroy(t);
}
