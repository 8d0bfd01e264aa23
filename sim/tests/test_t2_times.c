/*
 * test_t2_times.c - the three tiers side by side: hand computation, T0, T1 and T2
 *
 * A plain program: it prints each row and fails where tiers that must agree differ by 0.1 %.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/strategy.h"
#include "sim/flow.h"
#include "sim/t2.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MAX_RANKS 64

static int failures;

static void fail(const char *what)
{
    printf("FAILED: %s\n", what);
    failures++;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

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

/* Two thirds of bf16, and a header: what the codec makes of Gaussian data, near enough. */
static size_t coded_bytes(size_t n)
{
    return 32 + 4 * n / 3;
}

static size_t lowered_bytes(void *context, uint32_t src, uint32_t dst, size_t n)
{
    (void)context;
    (void)src;
    (void)dst;
    return coded_bytes(n);
}

static void sim_bytes(void *context, enum zipccl_effort effort, size_t n, uint32_t nsummed,
                      size_t *mean, size_t *longest)
{
    (void)context;
    (void)effort;
    (void)nsummed;
    *mean = *longest = coded_bytes(n);
}

static const struct zipccl_sim_sizes sim_sizes = {.bytes = sim_bytes};

/* One plan at the three tiers. */
struct priced {
    char name[48];
    uint32_t nchunks;
    double t0_s, t1_s, t2_s, alpha_s, wall_s;
    uint64_t nmessages;
};

struct setup {
    const struct zipccl_cluster *cluster;
    struct zipccl_topology *topology;
    struct zipccl_plan *plan;
    struct zipccl_cost cost;
    struct zipccl_flow *flow;
    uint32_t gpus[MAX_RANKS];
};

static void setup_close(struct setup *s)
{
    zipccl_flow_destroy(s->flow);
    zipccl_plan_destroy(s->plan);
    zipccl_topology_destroy(s->topology);
}

/* Build and price at T0; false if the strategy does not serve the call. */
static bool setup_open(struct setup *s, const struct zipccl_cluster *c,
                       const struct zipccl_call *call, const struct zipccl_strategy *strategy,
                       uint32_t nchunks, const size_t *splits)
{
    struct zipccl_wire_sizes sizes = {.bytes = lowered_bytes, .splits = splits};
    struct zipccl_cost_params params;
    struct zipccl_placement placement;
    zipccl_status status;

    *s = (struct setup){.cluster = c};
    if (!strategy->serves(call))
        return false;
    for (uint32_t r = 0; r < MAX_RANKS; r++)
        s->gpus[r] = r;
    zipccl_cluster_cost_params(c, &params);
    status = zipccl_topology_create_even(c->nodes, c->gpus_per_node, &s->topology);
    placement = (struct zipccl_placement){s->topology, NULL};
    if (status == ZIPCCL_OK)
        status = strategy->build(call, s->topology, c->channels, nchunks, 0, 0, &s->plan);
    if (status == ZIPCCL_OK)
        status = zipccl_cost_plan(s->plan, &placement, &params, &sizes, &s->cost);
    if (status == ZIPCCL_OK)
        status = zipccl_flow_create(s->plan, &placement, &params, &sizes, &s->cost, &s->flow);
    if (status == ZIPCCL_OK)
        return true;
    setup_close(s);
    if (status != ZIPCCL_ERR_UNSUPPORTED)
        fail(zipccl_status_string(status));
    return false;
}

static struct zipccl_t2_call t2_call(const struct setup *s, const size_t *splits)
{
    return (struct zipccl_t2_call){.plan = s->plan,
                                   .topology = s->topology,
                                   .payload = {.sizes = &sim_sizes, .splits = splits}};
}

static bool price(const struct zipccl_cluster *c, const struct zipccl_call *call,
                  const struct zipccl_strategy *strategy, uint32_t nchunks, const size_t *splits,
                  struct priced *out)
{
    struct zipccl_t2_result result = {.bytes = NULL};
    struct zipccl_error error = {""};
    struct zipccl_t2_call t2;
    struct setup s;
    double start;

    if (!setup_open(&s, c, call, strategy, nchunks, splits))
        return false;
    memset(out, 0, sizeof(*out));
    memcpy(out->name, s.plan->strategy, sizeof(out->name));
    out->nchunks = s.plan->nchunks;
    out->t0_s = s.cost.total_s;
    out->alpha_s = s.cost.alpha_s;
    if (zipccl_flow_price(s.flow, s.gpus, c, &out->t1_s, &error) != ZIPCCL_OK)
        fail(error.text);
    t2 = t2_call(&s, splits);
    start = now();
    if (zipccl_t2_price(c, &t2, 1, &result, &error) != ZIPCCL_OK)
        fail(error.text);
    if (result.status != ZIPCCL_OK)
        fail(zipccl_status_string(result.status));
    out->wall_s = now() - start;
    out->t2_s = result.seconds;
    out->nmessages = result.nmessages;
    setup_close(&s);
    return true;
}

static void print_row(const char *what, const struct priced *p)
{
    printf(
        "%-24s %-18s x%-3u T0 %11.6f  T1 %11.6f  T2 %11.6f ms  T2/T0 %+8.4f %%  %8llu messages\n",
        what, p->name, p->nchunks, 1e3 * p->t0_s, 1e3 * p->t1_s, 1e3 * p->t2_s,
        100 * (p->t2_s / p->t0_s - 1), (unsigned long long)p->nmessages);
}

/* A ring all-gather as one of our plans, 64 ranks, 1e9 bytes of output. */
static void test_alpha_beta(uint32_t channels, double hand_s)
{
    struct zipccl_cluster c = cluster_of(8, 8, 8);
    struct zipccl_call call = {
        .op = ZIPCCL_ALL_GATHER, .dtype = ZIPCCL_UINT8, .count = 1000000000 / 64};
    struct priced p;

    c.channels = channels;
    if (!price(&c, &call, zipccl_strategy_find("raw ring"), 1, NULL, &p)) {
        fail("raw ring");
        return;
    }
    print_row("1e9 B all_gather, 64", &p);
    printf("    alpha-beta %.6f ms (T2 %+.4f %%); %.0f messages/s\n", 1e3 * hand_s,
           100 * (p.t2_s / hand_s - 1), (double)p.nmessages / p.wall_s);
    if (!(fabs(p.t2_s / hand_s - 1) <= 1e-3))
        fail("alpha-beta");
}

/*
 * Several rings of a broadcast over several nodes reach a NIC one after the other, so that alphas of
 * one hide behind bytes of another; T0 adds them all.  That is real, and less than the alphas.
 */
static bool rings_overlap(const struct zipccl_cluster *c, enum zipccl_op op)
{
    return op == ZIPCCL_BROADCAST && c->channels > 1 && c->nodes > 1;
}

static void check(const struct zipccl_cluster *c, enum zipccl_op op, const struct priced *p)
{
    double tolerance = 1e-3 * p->t0_s, lead = rings_overlap(c, op) ? p->alpha_s : 0;

    /* T0 gives broadcasts no burst; T2 does where they send to peers one by one. */
    if (op == ZIPCCL_BROADCAST)
        lead += c->nic_burst_bytes / c->nic_Bps;

    if (!(p->t2_s <= p->t0_s + tolerance) || !(p->t2_s >= p->t0_s - lead - tolerance))
        fail("T2 and T0 agree");
    if (!(fabs(p->t1_s - p->t0_s) <= tolerance))
        fail("T1 and T0 agree");
    if (fabs(p->t2_s - p->t0_s) > tolerance)
        printf("    ^ T2 is ahead by %.1f us of the %.1f us of alphas or bursts that rings and "
               "NICs hide\n",
               1e6 * (p->t0_s - p->t2_s), 1e6 * lead);
}

static const enum zipccl_op ops[] = {ZIPCCL_ALL_GATHER, ZIPCCL_REDUCE_SCATTER, ZIPCCL_ALL_REDUCE,
                                     ZIPCCL_ALLTOALL,   ZIPCCL_ALLTOALLV,      ZIPCCL_SENDRECV,
                                     ZIPCCL_BROADCAST};

/* Every op and strategy where nothing else uses the links; equal pairs. */
static void test_agreement(const char *name, struct zipccl_cluster c, uint32_t channels,
                           size_t count)
{
    uint32_t nranks = c.nodes * c.gpus_per_node, shift = c.nodes > 1 ? c.gpus_per_node : 1;
    size_t *splits = calloc((size_t)nranks * nranks, sizeof(*splits));
    static const uint32_t nchunks[] = {1, 4, 16};
    struct priced p;

    c.channels = channels;
    printf("%s, %u rings, %zu elements:\n", name, channels, count);
    for (size_t o = 0; o < sizeof(ops) / sizeof(*ops); o++) {
        bool uneven = ops[o] == ZIPCCL_ALLTOALLV || ops[o] == ZIPCCL_SENDRECV;
        struct zipccl_call call = {.op = ops[o],
                                   .dtype = ZIPCCL_BFLOAT16,
                                   .redop = ZIPCCL_SUM,
                                   .count = count,
                                   .has_native = true};

        for (size_t i = 0; i < (size_t)nranks * nranks; i++)
            splits[i] = ops[o] == ZIPCCL_ALLTOALLV                    ? count
                        : i % nranks == (i / nranks + shift) % nranks ? count
                                                                      : 0;
        for (size_t s = 0; zipccl_strategies[s] != NULL; s++)
            for (size_t k = 0; k < (zipccl_strategies[s]->chunked ? 3 : 1); k++) {
                if (!price(&c, &call, zipccl_strategies[s], nchunks[k], uneven ? splits : NULL, &p))
                    continue;
                print_row(zipccl_op_name(ops[o]), &p);
                check(&c, ops[o], &p);
            }
    }
    free(splits);
}

/* Two calls at once on the same ranks, at T1 and at T2. */
static void test_two(const char *name, const struct zipccl_cluster *c, const char *first,
                     enum zipccl_op first_op, const char *second, enum zipccl_op second_op,
                     uint32_t nchunks)
{
    struct zipccl_call call = {.dtype = ZIPCCL_BFLOAT16, .count = 4000000, .has_native = true};
    const enum zipccl_op both[2] = {first_op, second_op};
    const char *const names[2] = {first, second};
    struct zipccl_t2_result results[2] = {{.bytes = NULL}, {.bytes = NULL}};
    const struct zipccl_flow *flows[2];
    const uint32_t *gpus[2];
    struct zipccl_t2_call calls[2];
    struct zipccl_error error = {""};
    struct setup s[2];
    double t1[2] = {0, 0};

    for (int i = 0; i < 2; i++) {
        call.op = both[i];
        if (!setup_open(&s[i], c, &call, zipccl_strategy_find(names[i]), nchunks, NULL))
            return;
        flows[i] = s[i].flow;
        gpus[i] = s[i].gpus;
        calls[i] = t2_call(&s[i], NULL);
    }
    if (zipccl_flow_price_together(2, flows, gpus, c, t1, &error) != ZIPCCL_OK ||
        zipccl_t2_price(c, calls, 2, results, &error) != ZIPCCL_OK)
        fail(error.text);
    for (int i = 0; i < 2; i++) {
        printf("%-34s %-18s x%-3u alone %9.6f  together T1 %9.6f  T2 %9.6f ms  T2/T1 %+7.2f %%\n",
               name, s[i].plan->strategy, s[i].plan->nchunks, 1e3 * s[i].cost.total_s, 1e3 * t1[i],
               1e3 * results[i].end_s, 100 * (results[i].end_s / t1[i] - 1));
        if (!(results[i].end_s >= s[i].cost.total_s * (1 - 1e-3)) ||
            !(results[i].end_s <= 1.01 * (s[0].cost.total_s + s[1].cost.total_s)))
            fail("together is no faster than alone and no slower than in turn");
        setup_close(&s[i]);
    }
}

/* Uneven splits: each rank ends with its own last message, T0 takes the worst of every step. */
static void test_uneven(void)
{
    struct zipccl_cluster c = cluster_of(2, 4, 1);
    struct zipccl_call call = {
        .op = ZIPCCL_ALLTOALLV, .dtype = ZIPCCL_BFLOAT16, .count = 4000000, .has_native = true};
    size_t splits[64];
    struct priced p;

    for (size_t i = 0; i < 64; i++)
        splits[i] = call.count * ((i / 8 * 3 + i % 8 * 5) % 8 + 1) / 8;
    for (size_t s = 0; zipccl_strategies[s] != NULL; s++)
        for (uint32_t k = 1; k <= (zipccl_strategies[s]->chunked ? 16u : 1u); k *= 4)
            if (price(&c, &call, zipccl_strategies[s], k, splits, &p)) {
                print_row("uneven alltoallv", &p);
                if (!(p.t2_s <= p.t0_s * 1.02) || !(p.t2_s >= p.t0_s * 0.8))
                    fail("T0 is near T2 for uneven splits");
            }
}

/* Ranks that come late: time counts from the last. */
static void test_late(void)
{
    struct zipccl_cluster c = cluster_of(1, 8, 8);
    struct zipccl_call call = {
        .op = ZIPCCL_ALLTOALL, .dtype = ZIPCCL_BFLOAT16, .count = 4000000, .has_native = true};
    double enter_s[8] = {0, 0, 0, 1e-3, 0, 0, 0, 0};
    struct zipccl_t2_result result = {.bytes = NULL};
    struct zipccl_error error = {""};
    struct zipccl_t2_call t2;
    struct setup s;

    if (!setup_open(&s, &c, &call, zipccl_strategy_find("exact direct"), 1, NULL))
        return;
    t2 = t2_call(&s, NULL);
    t2.enter_s = enter_s;
    if (zipccl_t2_price(&c, &t2, 1, &result, &error) != ZIPCCL_OK)
        fail(error.text);
    printf("a rank comes 1 ms late: %.6f ms from then on, all at once %.6f ms\n",
           1e3 * result.seconds, 1e3 * s.cost.total_s);
    if (fabs(result.seconds / s.cost.total_s - 1) > 1e-3)
        fail("time counts from when the last rank enters");
    setup_close(&s);
}

/* The same simulation gives the same times, to the last bit. */
static void test_repeat(void)
{
    struct zipccl_cluster c = cluster_of(2, 4, 1);
    struct zipccl_call call = {
        .op = ZIPCCL_ALL_GATHER, .dtype = ZIPCCL_BFLOAT16, .count = 1000000, .has_native = true};
    struct priced a, b;

    c.channels = 4;
    if (!price(&c, &call, zipccl_strategy_find("fixed ring"), 8, NULL, &a) ||
        !price(&c, &call, zipccl_strategy_find("fixed ring"), 8, NULL, &b) ||
        memcmp(&a.t2_s, &b.t2_s, sizeof(a.t2_s)) != 0)
        fail("two runs give equal times");
}

int main(void)
{
    struct zipccl_cluster two = cluster_of(2, 4, 1), testbed = cluster_of(2, 2, 2);

    testbed.reduce_Bps = 300e9;
    testbed.shared_cores = 3;
    testbed.nic_burst_bytes = 30e-6 * testbed.nic_Bps;
    setvbuf(stdout, NULL, _IOLBF, 0);
    two.channels = 4;
    test_alpha_beta(1, 63 * (5e-6 + 1e9 / 64 / 50e9));
    test_alpha_beta(8, 63 * (5e-6 + 1e9 / 64 / 8 / 50e9));
    test_agreement("2 x 4, NIC each", cluster_of(2, 4, 4), 4, 4000000);
    test_agreement("2 x 4, shared NIC", two, 4, 4000000);
    test_agreement("1 x 8", cluster_of(1, 8, 8), 8, 4000000);
    test_agreement("8 x 1", cluster_of(8, 1, 1), 1, 4000000);
    test_agreement("2 x 4, 2 NICs", cluster_of(2, 4, 2), 1, 4000000);
    test_agreement("3 x 3, shared NIC", cluster_of(3, 3, 1), 3, 100003);
    test_agreement("2 x 2, additions, 3 cores for all, bursts", testbed, 1, 400000);
    test_two("two native all_gathers", &two, "native", ZIPCCL_ALL_GATHER, "native",
             ZIPCCL_ALL_GATHER, 1);
    test_two("native and fixed all_gather", &two, "native", ZIPCCL_ALL_GATHER, "fixed ring",
             ZIPCCL_ALL_GATHER, 4);
    test_two("two fixed all_gathers", &two, "fixed ring", ZIPCCL_ALL_GATHER, "fixed ring",
             ZIPCCL_ALL_GATHER, 4);
    test_two("native and fixed alltoall", &two, "native", ZIPCCL_ALLTOALL, "fixed direct",
             ZIPCCL_ALLTOALL, 4);
    test_two("two exact alltoalls", &two, "exact direct", ZIPCCL_ALLTOALL, "exact direct",
             ZIPCCL_ALLTOALL, 4);
    /* T1 shares a link by collectives, T2 by messages, of which an alltoall has more at once. */
    test_two("alltoall and reduce_scatter", &two, "native", ZIPCCL_ALLTOALL, "native",
             ZIPCCL_REDUCE_SCATTER, 1);
    test_uneven();
    test_late();
    test_repeat();
    printf("%s\n", failures == 0 ? "ok" : "FAILED");
    return failures != 0;
}
