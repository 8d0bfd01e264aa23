/*
 * test_flow.c - collectives against their hand computation, at T0 and T1
 *
 * A plain program: it prints each computation and fails on the first that differs by 0.1 %.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/flow.h"

#include "core/strategy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures;

static struct zipccl_cluster cluster_of(uint32_t nodes, uint32_t gpus_per_node, uint32_t nics)
{
    struct zipccl_cluster c = {.name = "test",
                               .nodes = nodes,
                               .gpus_per_node = gpus_per_node,
                               .gpu_sms = 100,
                               .gpu_hbm_Bps = 3000e9,
                               .gpu_flops = 4e14,
                               .nvlink_Bps = 400e9,
                               .nvlink_alpha_s = 2e-6,
                               .nics_per_node = nics,
                               .nic_Bps = 50e9,
                               .nic_alpha_s = 5e-6,
                               .fabric_oversubscription = 1,
                               .channels = 1,
                               .encode_Bps = 400e9,
                               .decode_Bps = 400e9,
                               .codec_sms = 25,
                               .codec_launch_s = 5e-6,
                               .fence_s = 10e-6,
                               .compute_hbm_share = 0.4};
    return c;
}

/* A call, priced at T0 and run at T1. */
struct priced {
    struct zipccl_cost cost;
    struct zipccl_flow *flow;
    char name[48];
    double t1_s;
};

static void fail(const char *what)
{
    printf("FAILED: %s\n", what);
    failures++;
}

static void all_gpus(uint32_t *gpus, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        gpus[i] = i;
}

static int price(const struct zipccl_cluster *c, const struct zipccl_call *call,
                 const char *strategy, uint32_t nchunks, const struct zipccl_wire_sizes *sizes,
                 struct priced *out)
{
    const struct zipccl_strategy *s = zipccl_strategy_find(strategy);
    struct zipccl_topology *topology = NULL;
    struct zipccl_cost_params params;
    struct zipccl_placement placement;
    struct zipccl_plan *plan = NULL;
    struct zipccl_error error = {""};
    uint32_t gpus[1024];
    zipccl_status status;

    zipccl_cluster_cost_params(c, &params);
    status = s == NULL ? ZIPCCL_ERR_ARG
                       : zipccl_topology_create_even(c->nodes, c->gpus_per_node, &topology);
    placement = (struct zipccl_placement){topology, NULL};
    if (status == ZIPCCL_OK)
        status = s->build(call, topology, c->channels, nchunks, 0, 0, &plan);
    if (status == ZIPCCL_OK)
        status = zipccl_cost_plan(plan, &placement, &params, sizes, &out->cost);
    if (status == ZIPCCL_OK)
        status = zipccl_flow_create(plan, &placement, &params, sizes, &out->cost, &out->flow);
    if (status == ZIPCCL_OK) {
        snprintf(out->name, sizeof(out->name), "%s", plan->strategy);
        all_gpus(gpus, topology->nranks);
        status = zipccl_flow_price(out->flow, gpus, c, &out->t1_s, &error);
    }
    zipccl_plan_destroy(plan);
    zipccl_topology_destroy(topology);
    if (status != ZIPCCL_OK) {
        printf("%s: %s %s\n", strategy, zipccl_status_string(status), error.text);
        fail(strategy);
    }
    return status == ZIPCCL_OK;
}

static void expect(const char *what, double hand_s, const struct priced *p, double tolerance)
{
    double d0 = p->cost.total_s / hand_s - 1, d1 = p->t1_s / hand_s - 1;

    printf("%-34s %-16s hand %10.6f ms  T0 %10.6f (%+.4f %%)  T1 %10.6f (%+.4f %%)\n", what,
           p->name, hand_s * 1e3, p->cost.total_s * 1e3, 100 * d0, p->t1_s * 1e3, 100 * d1);
    if (!(fabs(d0) <= tolerance) || !(fabs(d1) <= tolerance))
        fail(what);
}

static void native_case(const char *what, struct zipccl_cluster c, struct zipccl_call call,
                        const struct zipccl_wire_sizes *sizes, double hand_s)
{
    struct priced p = {.flow = NULL};

    call.has_native = true;
    call.dtype = ZIPCCL_UINT8;
    if (price(&c, &call, "native", 1, sizes, &p))
        expect(what, hand_s, &p, 1e-3);
    zipccl_flow_destroy(p.flow);
}

/* 64 ranks on 8 nodes; S bytes of output; one 50 GB/s NIC per GPU unless said. */
static void test_native(void)
{
    struct zipccl_cluster one = cluster_of(8, 8, 8), eight = one, shared = cluster_of(8, 8, 1);
    size_t S = 1000000000, block = S / 64;
    double alpha = 5e-6, nic = 50e9;

    eight.channels = 8;
    native_case("all_gather, 1 ring", one,
                (struct zipccl_call){.op = ZIPCCL_ALL_GATHER, .count = block}, NULL,
                63 * (alpha + (double)block / nic));
    native_case("all_gather, 8 rings", eight,
                (struct zipccl_call){.op = ZIPCCL_ALL_GATHER, .count = block}, NULL,
                63 * (alpha + (double)block / 8 / nic));
    native_case("reduce_scatter, 8 rings", eight,
                (struct zipccl_call){.op = ZIPCCL_REDUCE_SCATTER, .count = block}, NULL,
                63 * (alpha + (double)block / 8 / nic));
    native_case("all_reduce, 8 rings", eight,
                (struct zipccl_call){.op = ZIPCCL_ALL_REDUCE, .count = S}, NULL,
                2 * 63 * (alpha + (double)S / 64 / 8 / nic));
    native_case("broadcast, 8 rings", eight,
                (struct zipccl_call){.op = ZIPCCL_BROADCAST, .count = S}, NULL,
                8 * alpha + 55 * 2e-6 + (double)S / 8 / nic);
    /* 8 GPUs share a NIC: 8 rings cross it, each with its eighth. */
    shared.channels = 8;
    native_case("all_gather, shared NIC", shared,
                (struct zipccl_call){.op = ZIPCCL_ALL_GATHER, .count = block}, NULL,
                63 * (alpha + (double)block / nic));
    native_case("alltoall, NIC per GPU", one,
                (struct zipccl_call){.op = ZIPCCL_ALLTOALL, .count = block}, NULL,
                alpha + 56 * (double)block / nic);
    native_case("alltoall, shared NIC", shared,
                (struct zipccl_call){.op = ZIPCCL_ALLTOALL, .count = block}, NULL,
                alpha + 8 * 56 * (double)block / nic);
    shared.fabric_oversubscription = 4;
    native_case("alltoall, shared NIC, 4:1 fabric", shared,
                (struct zipccl_call){.op = ZIPCCL_ALLTOALL, .count = block}, NULL,
                alpha + 8 * 56 * (double)block / (nic / 4));
}

static void test_pairs(void)
{
    struct zipccl_cluster one = cluster_of(8, 8, 8);
    size_t S = 1000000000, block = S / 64;
    size_t *splits = calloc(64 * 64, sizeof(*splits));
    struct zipccl_wire_sizes uneven = {.splits = splits};
    double alpha = 5e-6, nic = 50e9;

    /* Rank 0 sends 3 blocks to rank 63, everybody else one block to the next node. */
    for (size_t r = 0; r < 64; r++)
        splits[r * 64 + (r + 8) % 64] = block;
    splits[63] = 3 * block;
    native_case("alltoallv, one large pair", one,
                (struct zipccl_call){.op = ZIPCCL_ALLTOALLV, .count = 3 * block}, &uneven,
                alpha + 4 * (double)block / nic);
    memset(splits, 0, 64 * 64 * sizeof(*splits));
    for (size_t r = 0; r < 8; r++)
        splits[r * 64 + r + 8] = S;
    native_case("sendrecv, 8 pairs, NIC each", one,
                (struct zipccl_call){.op = ZIPCCL_SENDRECV, .count = S}, &uneven,
                alpha + (double)S / nic);
    memset(splits, 0, 64 * 64 * sizeof(*splits));
    splits[1] = S;
    native_case("sendrecv, one pair, NVLink", one,
                (struct zipccl_call){.op = ZIPCCL_SENDRECV, .count = S}, &uneven,
                2e-6 + (double)S / 400e9);
    free(splits);
}

static size_t two_thirds(void *context, uint32_t src, uint32_t dst, size_t n)
{
    (void)context;
    (void)src;
    (void)dst;
    return 4 * n / 3; /* of 2 n */
}

/*
 * Compressed all-to-all, 1 chunk, exact: encode 63 blocks, sizes, exchange, decode 63 blocks, one
 * after the other.
 */
static void test_compressed(void)
{
    struct zipccl_cluster c = cluster_of(8, 8, 1);
    size_t n = 6000000;
    double block = 2.0 * (double)n, wire = 8 * 56 * block * 2 / 3 / 50e9;
    double codec = 63 * block / 400e9;
    struct zipccl_wire_sizes sizes = {.bytes = two_thirds};
    struct zipccl_call call = {.op = ZIPCCL_ALLTOALL, .dtype = ZIPCCL_BFLOAT16, .count = n};
    struct priced p = {.flow = NULL}, q = {.flow = NULL};
    double serial = 2 * (codec + 5e-6) + wire + 5e-6 + (5e-6 + 8 * 56 * 4 / 50e9) + 10e-6;

    if (price(&c, &call, "exact direct", 1, &sizes, &p))
        expect("alltoall, exact, 1 chunk", serial, &p, 2e-3);
    /* 8 chunks: fill and drain shrink to an eighth of the codec; never below the wire alone. */
    if (price(&c, &call, "exact direct", 8, &sizes, &q)) {
        printf("%-34s %-16s wire alone %.6f ms  T0 %.6f  T1 %.6f\n", "alltoall, exact, 8 chunks",
               q.name, wire * 1e3, q.cost.total_s * 1e3, q.t1_s * 1e3);
        if (fabs(q.t1_s / q.cost.total_s - 1) > 1e-6 || q.t1_s < wire || q.t1_s >= p.t1_s)
            fail("8 chunks");
    }
    zipccl_flow_destroy(p.flow);
    zipccl_flow_destroy(q.flow);
}

/* Two flows on the same links take twice as long; on other links they do not meet. */
static void test_sharing(void)
{
    struct zipccl_cluster c = cluster_of(8, 8, 8);
    struct zipccl_call call = {.op = ZIPCCL_ALL_GATHER,
                               .dtype = ZIPCCL_UINT8,
                               .count = 1000000000 / 64,
                               .has_native = true};
    struct priced p = {.flow = NULL};
    uint32_t gpus[64];
    double t[2], hand;

    c.channels = 8;
    if (!price(&c, &call, "native", 1, NULL, &p))
        return;
    all_gpus(gpus, 64);
    if (zipccl_flow_price_together(2, (const struct zipccl_flow *[]){p.flow, p.flow},
                                   (const uint32_t *[]){gpus, gpus}, &c, t, NULL) != ZIPCCL_OK)
        fail("together");
    hand = 63 * (5e-6 + 2 * 1e9 / 64 / 8 / 50e9);
    printf("two all_gathers at once: hand %.6f ms, T1 %.6f and %.6f\n", hand * 1e3, t[0] * 1e3,
           t[1] * 1e3);
    if (fabs(t[0] / hand - 1) > 1e-3 || fabs(t[1] / hand - 1) > 1e-3)
        fail("fair sharing");
    zipccl_flow_destroy(p.flow);
}

int main(void)
{
    test_native();
    test_pairs();
    test_compressed();
    test_sharing();
    printf("%s\n", failures == 0 ? "ok" : "FAILED");
    return failures != 0;
}
