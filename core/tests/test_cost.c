/*
 * test_cost.c - T0 against computations by hand, which the test prints
 *
 * The machine of the ring figures in notes/simgrid, section 2: 8 nodes x 8 GPUs, NVLink 450 GB/s and
 * 2 us, NICs 50 GB/s and 5 us.  S = 1e9 bytes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/cost.h"

#include "core/codec.h"
#include "core/tests/plan_cases.h"

#include <stdio.h>

#define S      1000000000u
#define NRANKS 64u

static const struct zipccl_cost_params machine = {.gpus_per_node = 8,
                                                  .nics_per_node = 8,
                                                  .nvlink_Bps = 450e9,
                                                  .nvlink_alpha_s = 2e-6,
                                                  .nic_Bps = 50e9,
                                                  .nic_alpha_s = 5e-6,
                                                  .encode_Bps = 250e9,
                                                  .decode_Bps = 250e9,
                                                  .codec_launch_s = 5e-6,
                                                  .fence_s = 10e-6,
                                                  .copy_Bps = 2e12,
                                                  .channels = 1};

struct hand {
    const char *what, *strategy;
    enum zipccl_op op;
    uint32_t channels, nics_per_node;
    double fabric_Bps;
    size_t count; /* bytes */
    double expected_s;
    const char *formula;
    double from_notes_ms; /* 0: none */
};

static const struct hand hands[] = {
    {"all_gather, 1 ring", "native", ZIPCCL_ALL_GATHER, 1, 8, 0, S / 64,
     63 * (5e-6 + 1e9 / 64 / 50e9), "63*(5us + S/64/50e9)", 20.0025},
    {"all_gather, 1 ring, own", "raw ring", ZIPCCL_ALL_GATHER, 1, 8, 0, S / 64,
     63 * (5e-6 + 1e9 / 64 / 50e9), "63*(5us + S/64/50e9)", 20.0025},
    {"all_gather, 8 rings", "native", ZIPCCL_ALL_GATHER, 8, 8, 0, S / 64,
     63 * (5e-6 + 1e9 / 512 / 50e9), "63*(5us + S/512/50e9)", 2.7759},
    {"reduce_scatter, 1 ring", "native", ZIPCCL_REDUCE_SCATTER, 1, 8, 0, S / 64,
     63 * (5e-6 + 1e9 / 64 / 50e9), "63*(5us + S/64/50e9)", 20.0025},
    {"reduce_scatter, 8 rings", "native", ZIPCCL_REDUCE_SCATTER, 8, 8, 0, S / 64,
     63 * (5e-6 + 1e9 / 512 / 50e9), "63*(5us + S/512/50e9)", 2.7759},
    {"all_reduce, 1 ring", "native", ZIPCCL_ALL_REDUCE, 1, 8, 0, S,
     2 * 63 * (5e-6 + 1e9 / 64 / 50e9), "2*63*(5us + S/64/50e9)", 2 * 20.0025},
    {"all_reduce, 8 rings", "native", ZIPCCL_ALL_REDUCE, 8, 8, 0, S,
     2 * 63 * (5e-6 + 1e9 / 512 / 50e9), "2*63*(5us + S/512/50e9)", 2 * 2.7759},
    {"alltoall, direct", "raw direct", ZIPCCL_ALLTOALL, 1, 8, 0, S / 64,
     56.0 / 64 * 1e9 / 50e9 + 5e-6, "56/64*S/50e9 + 5us", 17.505},
    {"all_gather, direct", "raw direct", ZIPCCL_ALL_GATHER, 1, 8, 0, S / 64,
     56.0 / 64 * 1e9 / 50e9 + 5e-6, "56/64*S/50e9 + 5us", 0},
    {"broadcast, 1 ring", "native", ZIPCCL_BROADCAST, 1, 8, 0, S, 1e9 / 50e9 + 7 * 5e-6 + 56 * 2e-6,
     "S/50e9 + 7*5us + 56*2us", 0},
    {"broadcast, 8 rings", "raw ring", ZIPCCL_BROADCAST, 8, 8, 0, S,
     1e9 / 8 / 50e9 + 8 * 5e-6 + 55 * 2e-6, "S/8/50e9 + 8*5us + 55*2us", 0},
    {"all_gather, 8 rings, 1 NIC a node", "native", ZIPCCL_ALL_GATHER, 8, 1, 0, S / 64,
     63 * (5e-6 + 1e9 / 64 / 50e9), "63*(5us + 8*S/512/50e9)", 0},
    {"alltoall, 1 NIC a node", "raw direct", ZIPCCL_ALLTOALL, 1, 1, 0, S / 64,
     8 * 56.0 / 64 * 1e9 / 50e9 + 5e-6, "8*56/64*S/50e9 + 5us", 0},
    {"alltoall, 4 NICs a node", "raw direct", ZIPCCL_ALLTOALL, 1, 4, 0, S / 64,
     2 * 56.0 / 64 * 1e9 / 50e9 + 5e-6, "2*56/64*S/50e9 + 5us", 0},
    {"alltoall, fabric 100 GB/s a node", "raw direct", ZIPCCL_ALLTOALL, 1, 8, 100e9, S / 64,
     8 * 56.0 / 64 * 1e9 / 100e9 + 5e-6, "8*56/64*S/100e9 + 5us", 0},
    {"all_gather, 8 rings, fabric 100 GB/s", "native", ZIPCCL_ALL_GATHER, 8, 8, 100e9, S / 64,
     63 * (5e-6 + 1e9 / 64 / 100e9), "63*(5us + S/64/100e9)", 0},
};

static struct zipccl_plan *byte_plan(const char *name, enum zipccl_op op, size_t count,
                                     const struct zipccl_topology *t, uint32_t channels)
{
    struct zipccl_call call = {
        .op = op, .dtype = ZIPCCL_UINT8, .redop = ZIPCCL_SUM, .count = count, .has_native = true};
    struct zipccl_plan *plan = NULL;

    cr_assert_eq(zipccl_strategy_find(name)->build(&call, t, channels, 1, 0, 0, &plan), ZIPCCL_OK);
    return plan;
}

static void compare(const char *what, const char *formula, double got_s, double expected_s)
{
    printf("%-40s %-26s = %10.4f ms, T0 %10.4f ms\n", what, formula, expected_s * 1e3, got_s * 1e3);
    fflush(stdout);
    cr_expect_float_eq(got_s, expected_s, 1e-6 * expected_s, "%s", what);
}

Test(cost, agrees_with_hand_computation)
{
    struct zipccl_topology *t = make_topology(8, 8);
    struct zipccl_placement placement = {t, NULL};

    for (unsigned i = 0; i < sizeof hands / sizeof *hands; i++) {
        const struct hand *h = &hands[i];
        struct zipccl_cost_params params = machine;
        struct zipccl_plan *plan = byte_plan(h->strategy, h->op, h->count, t, h->channels);
        struct zipccl_cost cost;

        params.nics_per_node = h->nics_per_node;
        params.fabric_Bps = h->fabric_Bps;
        cr_assert_eq(zipccl_cost_plan(plan, &placement, &params, NULL, &cost), ZIPCCL_OK);
        compare(h->what, h->formula, cost.total_s, h->expected_s);
        if (h->from_notes_ms > 0)
            cr_expect_float_eq(cost.total_s * 1e3, h->from_notes_ms, 1e-3 * h->from_notes_ms);
        cr_expect_float_eq(cost.wire_s + cost.alpha_s, cost.total_s, 1e-9);
        cr_expect_eq(cost.raw_bytes, cost.wire_bytes, "%s: %lu, %lu", h->what,
                     (unsigned long)cost.raw_bytes, (unsigned long)cost.wire_bytes);
        zipccl_plan_destroy(plan);
    }
    zipccl_topology_destroy(t);
}

/* One pair of 1e9 bytes, and an uneven alltoallv with zero peers. */
Test(cost, pairs_load_the_ports_they_use)
{
    struct zipccl_topology *t = make_topology(8, 8);
    struct zipccl_placement placement = {t, NULL};
    size_t *splits = calloc(NRANKS * NRANKS, sizeof *splits);
    struct zipccl_wire_sizes sizes = {.splits = splits};
    struct zipccl_plan *plan = byte_plan("raw direct", ZIPCCL_SENDRECV, S, t, 1);
    struct zipccl_cost cost;

    splits[0 * NRANKS + 8] = S;
    cr_assert_eq(zipccl_cost_plan(plan, &placement, &machine, &sizes, &cost), ZIPCCL_OK);
    compare("sendrecv 0 to 8, across nodes", "S/50e9 + 5us", cost.total_s, 1e9 / 50e9 + 5e-6);
    cr_assert_eq(cost.wire_bytes, S / NRANKS);
    splits[0 * NRANKS + 8] = 0;
    splits[0 * NRANKS + 7] = S;
    cr_assert_eq(zipccl_cost_plan(plan, &placement, &machine, &sizes, &cost), ZIPCCL_OK);
    compare("sendrecv 0 to 7, inside a node", "S/450e9 + 2us", cost.total_s, 1e9 / 450e9 + 2e-6);
    splits[0 * NRANKS + 7] = 0;
    cr_assert_eq(zipccl_cost_plan(plan, &placement, &machine, &sizes, &cost), ZIPCCL_OK);
    cr_assert_eq(cost.total_s, 0);
    zipccl_plan_destroy(plan);

    /* Ranks 1, 9 and 17 send to rank 0, which receives 1.75 S on one NIC; rank 2 sends S to 3. */
    plan = byte_plan("raw direct", ZIPCCL_ALLTOALLV, S, t, 1);
    splits[1 * NRANKS] = S / 2;
    splits[9 * NRANKS] = S;
    splits[17 * NRANKS] = S / 4 * 3;
    splits[2 * NRANKS + 3] = S;
    cr_assert_eq(zipccl_cost_plan(plan, &placement, &machine, &sizes, &cost), ZIPCCL_OK);
    compare("alltoallv, 1.75 S into rank 0", "1.75*S/50e9 + 5us", cost.total_s,
            1.75e9 / 50e9 + 5e-6);
    cr_assert_eq(zipccl_cost_plan(plan, &placement, &machine, NULL, &cost), ZIPCCL_ERR_ARG);
    zipccl_plan_destroy(plan);
    free(splits);
    zipccl_topology_destroy(t);
}

/* Four ranks on two nodes of eight slots: two ranks share a NIC, or have one each. */
Test(cost, slots_decide_which_nic)
{
    static const uint32_t together[] = {2, 3, 2, 3}, apart[] = {0, 7, 0, 7},
                          outside[] = {0, 8, 0, 1};
    struct zipccl_topology *t = make_topology(2, 2);
    struct zipccl_plan *plan = byte_plan("raw direct", ZIPCCL_ALLTOALL, S, t, 1);
    struct zipccl_placement placement = {t, together};
    struct zipccl_cost_params params = machine;
    struct zipccl_cost cost;

    params.nics_per_node = 4;
    cr_assert_eq(zipccl_cost_plan(plan, &placement, &params, NULL, &cost), ZIPCCL_OK);
    compare("alltoall 2x2, slots 2 and 3 of 4 NICs", "4*S/50e9 + 5us", cost.total_s,
            4e9 / 50e9 + 5e-6);
    placement.slot_of = apart;
    cr_assert_eq(zipccl_cost_plan(plan, &placement, &params, NULL, &cost), ZIPCCL_OK);
    compare("alltoall 2x2, slots 0 and 7 of 4 NICs", "2*S/50e9 + 5us", cost.total_s,
            2e9 / 50e9 + 5e-6);
    placement.slot_of = outside;
    cr_assert_eq(zipccl_cost_plan(plan, &placement, &params, NULL, &cost), ZIPCCL_ERR_ARG);
    zipccl_plan_destroy(plan);
    zipccl_topology_destroy(t);
}

static size_t two_thirds(void *context, uint32_t src, uint32_t dst, size_t n)
{
    (void)context;
    (void)src;
    (void)dst;
    return 2 * n * 2 / 3;
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

/* Two ranks on two nodes, 4 chunks of n = 3 * 2^18 elements each way; wire-bound, so that only the
 * first encode and the last decode show. */
Test(cost, pipeline_hides_the_codec_behind_the_wire)
{
    const size_t n = 3 << 18;
    const double raw = 2.0 * (double)n, codec = 5e-6 + raw / 250e9;
    struct zipccl_topology *t = make_topology(2, 1);
    struct zipccl_placement placement = {t, NULL};
    struct zipccl_call call = make_call(ZIPCCL_ALLTOALL, 4 * n, 2);
    struct zipccl_wire_sizes sizes = {.bytes = two_thirds};
    struct zipccl_plan *plan = make_plan("fixed direct", &call, t, 4);
    double wire = 5e-6 + (double)zipccl_plan_fixed_bytes(plan, n) / 50e9;
    struct zipccl_cost cost;

    cr_assert_eq(plan->nchunks, 4);
    cr_assert_gt(wire, 2 * codec);
    cr_assert_eq(zipccl_cost_plan(plan, &placement, &machine, &sizes, &cost), ZIPCCL_OK);
    compare("fixed alltoall, 4 chunks", "E + 4*X + D", cost.total_s, codec + 4 * wire + codec);
    cr_assert_float_eq(cost.codec_s, 8 * raw / 250e9, 1e-12);
    cr_assert_eq(cost.raw_bytes, 8 * n);

    sizes.overflows = always;
    cr_assert_eq(zipccl_cost_plan(plan, &placement, &machine, &sizes, &cost), ZIPCCL_OK);
    compare("the same, all chunks overflow", "E + 4*(X + raw) + D", cost.total_s,
            codec + 4 * (wire + 5e-6 + raw / 50e9) + codec);
    zipccl_plan_destroy(plan);

    plan = make_plan("exact direct", &call, t, 4);
    wire = 5e-6 + 4 / 50e9 + 10e-6 + 5e-6 + raw * 2 / 3 / 50e9;
    cr_assert_eq(zipccl_cost_plan(plan, &placement, &machine, &sizes, &cost), ZIPCCL_OK);
    compare("exact alltoall, 4 chunks", "E + 4*(sizes + X) + D", cost.total_s,
            codec + 4 * wire + codec);
    cr_assert_float_eq(cost.fence_s, 40e-6, 1e-12);
    zipccl_plan_destroy(plan);
    zipccl_topology_destroy(t);
}

static double price_pair(const char *strategy, enum zipccl_op op, size_t count,
                         const struct zipccl_cost_params *params)
{
    struct zipccl_topology *t = make_topology(2, 1);
    struct zipccl_placement placement = {t, NULL};
    struct zipccl_call call = make_call(op, count, 2);
    struct zipccl_wire_sizes sizes = {.bytes = two_thirds};
    struct zipccl_plan *plan = make_plan(strategy, &call, t, 1);
    struct zipccl_cost cost;

    cr_assert_eq(zipccl_cost_plan(plan, &placement, params, &sizes, &cost), ZIPCCL_OK);
    zipccl_plan_destroy(plan);
    zipccl_topology_destroy(t);
    return cost.total_s;
}

/* Two ranks on two nodes, blocks of b bytes: each makes the sums of one. */
Test(cost, additions_take_their_rate_and_ranks_share_cores)
{
    const size_t n = 3 << 18;
    const double b = 2.0 * (double)n, wire = 5e-6 + b / 50e9, added = b / 50e9;
    const double exact = 5e-6 + 4 / 50e9 + 10e-6 + 5e-6 + b * 2 / 3 / 50e9, codec = b / 250e9;
    struct zipccl_cost_params params = machine;

    params.reduce_Bps = 50e9;
    compare("raw reduce_scatter", "X + A",
            price_pair("raw direct", ZIPCCL_REDUCE_SCATTER, n, &params), wire + added);
    compare("raw all_reduce", "X + A + X",
            price_pair("raw direct", ZIPCCL_ALL_REDUCE, 2 * n, &params), 2 * wire + added);
    compare("exact reduce_scatter", "E + X + D + A",
            price_pair("exact direct", ZIPCCL_REDUCE_SCATTER, n, &params),
            exact + 2 * (5e-6 + codec) + added);
    params.shared_cores = 1;
    compare("the same, one core for both", "2*E + X + 2*D + 2*A + 10us",
            price_pair("exact direct", ZIPCCL_REDUCE_SCATTER, n, &params),
            exact + 2 * (5e-6 + 2 * codec) + 2 * added + 10e-6);
    params.shared_cores = 2;
    params.reduce_Bps = 0;
    compare("exact reduce_scatter, two cores, A = 0", "E + X + D",
            price_pair("exact direct", ZIPCCL_REDUCE_SCATTER, n, &params),
            exact + 2 * (5e-6 + codec));
}

/* A NIC that rested for a time sends that much ahead, up to its burst. */
Test(cost, bursts_hide_what_the_wire_rests)
{
    const size_t n = 3 << 18;
    const double b = 2.0 * (double)n, added = b / 500e9, burst = 20e-6;
    struct zipccl_cost_params params = machine;

    params.reduce_Bps = 500e9;
    params.nic_burst_bytes = burst * params.nic_Bps;
    compare("raw alltoall, alpha within the burst", "b/50e9",
            price_pair("raw direct", ZIPCCL_ALLTOALL, n, &params), b / 50e9);
    compare("raw reduce_scatter, A within the burst", "b/50e9",
            price_pair("raw direct", ZIPCCL_REDUCE_SCATTER, n, &params), b / 50e9);
    params.reduce_Bps = 50e9;
    compare("raw reduce_scatter, A beyond it", "5us + b/50e9 + A - burst",
            price_pair("raw direct", ZIPCCL_REDUCE_SCATTER, n, &params),
            5e-6 + b / 50e9 + 10 * added - burst);
    compare("raw all_reduce, A beyond it", "b/50e9 + 5us + b/50e9 + A - burst",
            price_pair("raw direct", ZIPCCL_ALL_REDUCE, 2 * n, &params),
            5e-6 + 2 * b / 50e9 + 10 * added - burst);
    params.nic_burst_bytes = 4 * b;
    compare("nothing is left of a short message", "A + 5us",
            price_pair("raw direct", ZIPCCL_REDUCE_SCATTER, n, &params), 5e-6 + 10 * added);
}

Test(cost, invalid_machines_are_refused)
{
    struct zipccl_topology *t = make_topology(2, 2), *other = make_topology(2, 1);
    struct zipccl_placement placement = {t, NULL};
    struct zipccl_plan *plan = byte_plan("raw direct", ZIPCCL_ALLTOALL, S, t, 1);
    struct zipccl_cost_params params = machine;
    struct zipccl_cost cost;

#define REFUSED(field, value)                                                                      \
    params.field = value;                                                                          \
    cr_assert_eq(zipccl_cost_plan(plan, &placement, &params, NULL, &cost), ZIPCCL_ERR_ARG);        \
    params = machine
    REFUSED(nic_Bps, 0);
    REFUSED(nvlink_Bps, -1);
    REFUSED(encode_Bps, 0.0 / params.fabric_Bps);
    REFUSED(nic_alpha_s, -1e-6);
    REFUSED(reduce_Bps, -1);
    REFUSED(nic_burst_bytes, -1);
    REFUSED(gpus_per_node, 1);
    REFUSED(nics_per_node, 0);
    REFUSED(nics_per_node, UINT32_MAX);
#undef REFUSED
    placement.topology = other;
    cr_assert_eq(zipccl_cost_plan(plan, &placement, &machine, NULL, &cost), ZIPCCL_ERR_ARG);
    zipccl_plan_destroy(plan);
    zipccl_topology_destroy(t);
    zipccl_topology_destroy(other);
}
