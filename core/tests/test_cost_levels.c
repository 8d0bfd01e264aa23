/*
 * test_cost_levels.c - T0 of reductions and two-level plans against computations by hand
 *
 * The test prints them.  8 nodes x 8 GPUs, NVLink 450 GB/s and 2 us; the nodes have one NIC of
 * 24.2 GB/s that their GPUs share, or one of 50 GB/s per GPU, 5 us; 250 GB/s of codec, 5 us to start
 * it; copies at 2 TB/s.  S = 1e9 bytes is what a rank reduces, gathers or exchanges in all.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/cost.h"

#include "core/tests/plan_cases.h"

#include <stdio.h>

#define S       1e9
#define NVLINK  450e9
#define SHARED  24.2e9
#define RAILS   50e9
#define CODEC   250e9
#define DEVICE  2e12
#define NEAR_S  2e-6
#define FAR_S   5e-6
#define START_S 5e-6

static struct zipccl_cost_params machine(bool shared)
{
    return (struct zipccl_cost_params){.gpus_per_node = 8,
                                       .nics_per_node = shared ? 1 : 8,
                                       .nvlink_Bps = NVLINK,
                                       .nvlink_alpha_s = NEAR_S,
                                       .nic_Bps = shared ? SHARED : RAILS,
                                       .nic_alpha_s = FAR_S,
                                       .encode_Bps = CODEC,
                                       .decode_Bps = CODEC,
                                       .codec_launch_s = START_S,
                                       .fence_s = 10e-6,
                                       .copy_Bps = DEVICE,
                                       .channels = 8};
}

/* Elements as the NCCL argument, so that S bytes are handled in all. */
static size_t count_of(enum zipccl_op op)
{
    return op == ZIPCCL_ALL_REDUCE || op == ZIPCCL_BROADCAST ? 500000000 : 500000000 / 64;
}

static double price(const char *strategy, enum zipccl_op op, size_t count, bool shared,
                    uint32_t nchunks, struct zipccl_cost *cost)
{
    struct zipccl_topology *t = make_topology(8, 8);
    struct zipccl_placement placement = {t, NULL};
    struct zipccl_cost_params params = machine(shared);
    struct zipccl_call call = make_call(op, count, 64);
    struct zipccl_plan *plan = NULL;

    call.root = 0;
    cr_assert_eq(zipccl_strategy_find(strategy)->build(&call, t, 8, nchunks, 0, 0, &plan),
                 ZIPCCL_OK);
    cr_assert_leq(plan->nchunks, nchunks);
    cr_assert_eq(zipccl_cost_plan(plan, &placement, &params, NULL, cost), ZIPCCL_OK);
    zipccl_plan_destroy(plan);
    zipccl_topology_destroy(t);
    return cost->total_s;
}

static void compare(const char *what, bool shared, const char *formula, double got_s,
                    double expected_s)
{
    printf("%-31s %s %-52s = %9.4f ms, T0 %9.4f ms\n", what, shared ? "1 NIC" : "rails", formula,
           expected_s * 1e3, got_s * 1e3);
    fflush(stdout);
    cr_expect_float_eq(got_s, expected_s, 1e-6 * expected_s, "%s", what);
}

/* One step each: everyone to everyone; within the node; along the rails.  A node sends 8 times what a
 * rank does on its shared NIC. */
static double flat_s(bool shared)
{
    return (shared ? 8 * 7. / 8 * S / SHARED : 7. / 8 * S / RAILS) + FAR_S;
}

static double node_s(void)
{
    return 7. / 8 * S / NVLINK + NEAR_S;
}

static double rail_s(bool shared)
{
    return (shared ? 8 * 7. / 64 * S / SHARED : 7. / 64 * S / RAILS) + FAR_S;
}

Test(cost_levels, uncompressed_reductions_agree_with_hand_computation)
{
    for (int shared = 1; shared >= 0; shared--) {
        double nic = shared ? SHARED / 8 : RAILS;
        struct zipccl_cost cost;
        enum zipccl_op op = ZIPCCL_REDUCE_SCATTER;

        compare("reduce_scatter, native, 8 rings", shared, "63*(5us + S/512/NIC or S/64/NIC)",
                price("native", op, count_of(op), shared, 1, &cost), 63 * (FAR_S + S / 512 / nic));
        compare("reduce_scatter, raw direct", shared, "56/64*S/NIC (8 share it) + 5us",
                price("raw direct", op, count_of(op), shared, 1, &cost), flat_s(shared));
        compare("reduce_scatter, raw two-level", shared,
                "7/8*S/450e9 + 2us + 7/64*S/NIC (8 share it) + 5us",
                price("raw two-level", op, count_of(op), shared, 1, &cost),
                node_s() + rail_s(shared));
        op = ZIPCCL_ALL_REDUCE;
        compare("all_reduce, native, 8 rings", shared, "2*63*(5us + S/512/NIC or S/64/NIC)",
                price("native", op, count_of(op), shared, 1, &cost),
                2 * 63 * (FAR_S + S / 512 / nic));
        compare("all_reduce, raw direct", shared, "2*(56/64*S/NIC + 5us)",
                price("raw direct", op, count_of(op), shared, 1, &cost), 2 * flat_s(shared));
        compare("all_reduce, raw two-level", shared, "2*(7/8*S/450e9 + 2us + 7/64*S/NIC + 5us)",
                price("raw two-level", op, count_of(op), shared, 1, &cost),
                2 * (node_s() + rail_s(shared)));
        cr_expect_float_eq((double)cost.raw_bytes, 2 * S * 63 / 64, 1);
    }
}

Test(cost_levels, uncompressed_moves_agree_with_hand_computation)
{
    for (int shared = 1; shared >= 0; shared--) {
        double nic = shared ? SHARED : RAILS, sharers = shared ? 8 : 1;
        struct zipccl_cost cost;
        enum zipccl_op op = ZIPCCL_ALL_GATHER;

        compare("all_gather, raw two-level", shared,
                "7/64*S/NIC + 5us + 7/8*S/450e9 + 2us + S/64/2e12",
                price("raw two-level", op, count_of(op), shared, 1, &cost),
                rail_s(shared) + node_s() + S / 64 / DEVICE);
        op = ZIPCCL_ALLTOALL;
        compare("alltoall, raw two-level", shared,
                "8/64*S/2e12 + 56/64*S/450e9 + 4us + 56/64*S/NIC + 5us",
                price("raw two-level", op, count_of(op), shared, 1, &cost),
                8. / 64 * S / DEVICE + 56. / 64 * S / NVLINK + 2 * NEAR_S +
                    sharers * 56 / 64 * S / nic + FAR_S);
        op = ZIPCCL_BROADCAST;
        compare("broadcast, raw two-level", shared, "7*S/NIC + 5us + S/2e12 + 7*S/450e9 + 2us",
                price("raw two-level", op, count_of(op), shared, 1, &cost),
                7 * S / nic + FAR_S + S / DEVICE + 7 * S / NVLINK + NEAR_S);
    }
}

/* Blocks of 2^23 elements in four chunks.  X1: within the node, X2: along the rail, E and D: seven
 * blocks.  The wire is never idle, so that of the codec only the last sum shows, and nothing of it in
 * an all_reduce, which ends on the wire. */
Test(cost_levels, compressed_two_level_reductions_hide_the_codec)
{
    const size_t n = 1 << 21;
    const double raw = 2. * (double)n;
    const double coded = (double)zipccl_capacity(ZIPCCL_BFLOAT16, n, 0);
    const double codec = START_S + 7 * raw / CODEC;

    for (int shared = 1; shared >= 0; shared--) {
        double x1 = 7 * 8 * raw / NVLINK + NEAR_S;
        double x2 = (shared ? 8 * 7 * coded / SHARED : 7 * coded / RAILS) + FAR_S;
        double x2_raw = (shared ? 8 * 7 * raw / SHARED : 7 * raw / RAILS) + FAR_S;
        struct zipccl_cost cost, uncompressed;

        cr_assert_lt(codec, x1 + x2);
        compare("reduce_scatter, fixed two-level", shared, "4*(X1 + X2) + D",
                price("fixed two-level", ZIPCCL_REDUCE_SCATTER, 4 * n, shared, 4, &cost),
                4 * (x1 + x2) + codec);
        cr_expect_float_eq(cost.codec_s, 8 * 7 * raw / CODEC, 1e-9);
        price("raw two-level", ZIPCCL_REDUCE_SCATTER, 4 * n, shared, 4, &uncompressed);
        compare("reduce_scatter, raw two-level", shared, "4*(X1 + raw X2)", uncompressed.total_s,
                4 * (x1 + x2_raw));
        printf("  raw / compressed: %.3f; bytes %.3f\n", uncompressed.total_s / cost.total_s,
               (double)uncompressed.wire_bytes / (double)cost.wire_bytes);
        price("fixed two-level", ZIPCCL_ALL_REDUCE, 4 * n * 64, shared, 4, &cost);
        price("raw two-level", ZIPCCL_ALL_REDUCE, 4 * n * 64, shared, 4, &uncompressed);
        compare("all_reduce, raw two-level", shared, "2 * 4*(X1 + raw X2)", uncompressed.total_s,
                8 * (x1 + x2_raw));
        compare("all_reduce, fixed two-level", shared, "2 * 4*(X1 + X2)", cost.total_s,
                8 * (x1 + x2));
        printf("  raw / compressed: %.3f\n", uncompressed.total_s / cost.total_s);
        fflush(stdout);
    }
}

/* The last ranks' shards are short or empty: what they do not have costs nothing. */
Test(cost_levels, short_shards_count_as_they_are)
{
    struct zipccl_topology *t = make_topology(1, 4);
    struct zipccl_placement placement = {t, NULL};
    struct zipccl_cost_params params = machine(true);
    struct zipccl_call call = make_call(ZIPCCL_ALL_REDUCE, 9, 4); /* 3, 3, 3, 0 */
    struct zipccl_plan *plan = NULL;
    struct zipccl_cost cost;

    cr_assert_eq(zipccl_strategy_find("raw direct")->build(&call, t, 1, 1, 0, 0, &plan), ZIPCCL_OK);
    cr_assert_eq(plan->shard_n, 3);
    cr_assert_eq(zipccl_cost_plan(plan, &placement, &params, NULL, &cost), ZIPCCL_OK);
    /* Into shards: 9 of the three others each way but one's own; out of them the same. */
    cr_assert_eq(cost.wire_bytes, (2 * 3 * 9 * 2 + 2) / 4);
    zipccl_plan_destroy(plan);
    zipccl_topology_destroy(t);
}
