/*
 * test_max_ratio.c - max-ratio mode is taken where the link is slow, at T0, T1 and T2 alike
 *
 * A plain program.  One alltoall, priced as a replay does, on a slow link and on a fast one; then its
 * plan alone at all three tiers, and, with real elements, the bits that arrive at T2.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/coll_world.h"
#include "sim/pricing.h"
#include "sim/t2.h"
#include "sim/tests/toy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define NRANKS 8u
#define COUNT  ((size_t)1 << 18)

static int failures;

static void check(bool ok, const char *what)
{
    if (ok)
        return;
    printf("FAILED: %s\n", what);
    failures++;
}

static void need(zipccl_status status, const struct zipccl_error *error)
{
    if (status == ZIPCCL_OK)
        return;
    printf("%s: %s\n", zipccl_status_string(status), error->text);
    exit(1);
}

/* A CPU cluster: the codec is slow, and in max-ratio mode ten times slower. */
static struct zipccl_cluster cluster_of(double nic_Bps, bool offered)
{
    struct zipccl_cluster c = toy_cluster();

    c.nic_Bps = nic_Bps;
    c.nvlink_Bps = 20e9;
    c.nic_alpha_s = c.nvlink_alpha_s = 2e-6;
    c.encode_Bps = c.decode_Bps = 5e9;
    if (offered)
        c.ratio_encode_Bps = c.ratio_decode_Bps = 0.5e9;
    return c;
}

struct sizing {
    struct zipccl_samples *samples;
    uint32_t set;
};

static void sample_bytes(void *context, enum zipccl_effort effort, size_t n, uint32_t nsummed,
                         size_t *mean, size_t *longest)
{
    const struct sizing *s = context;

    zipccl_samples_bytes(s->samples, s->set, effort, n, nsummed, mean, longest);
}

/* T2 by pointer and T1 against T0. */
static void compare_tiers(const struct zipccl_cluster *c, const struct zipccl_priced_call *call,
                          struct sizing *sizing)
{
    const struct zipccl_sim_sizes sizes = {.bytes = sample_bytes, .context = sizing};
    const struct zipccl_price *p = &call->compressed;
    struct zipccl_t2_call t2 = {
        .plan = p->plan, .topology = call->topology, .payload = {.sizes = &sizes}};
    struct zipccl_t2_result result = {.bytes = NULL};
    struct zipccl_error error = {""};
    uint32_t gpus[NRANKS];
    double t1_s;

    for (uint32_t r = 0; r < NRANKS; r++)
        gpus[r] = r;
    need(zipccl_flow_price(p->flow, gpus, c, &t1_s, &error), &error);
    need(zipccl_t2_price(c, &t2, 1, &result, &error), &error);
    need(result.status, &error);
    printf("%-24s T0 %9.6f T1 %9.6f T2 %9.6f ms\n", p->name, 1e3 * p->total_s, 1e3 * t1_s,
           1e3 * result.seconds);
    check(fabs(t1_s / p->total_s - 1) < 1e-3, "T1 and T0 agree");
    check(fabs(result.seconds / p->total_s - 1) < 1e-3, "T2 and T0 agree");
}

static zipccl_status open_case(void *context, uint32_t rank, struct zipccl_t2_buffers *out)
{
    struct buffers *b = malloc(sizeof(*b));

    if (b == NULL)
        return ZIPCCL_ERR_NOMEM;
    buffers_open(b, context, NRANKS, rank);
    *out = (struct zipccl_t2_buffers){.send = b->send, .recv = b->recv, .owner = b};
    return ZIPCCL_OK;
}

static bool close_case(void *context, uint32_t rank, struct zipccl_t2_buffers *buffers)
{
    bool right = buffers_right(buffers->owner, context);

    (void)rank;
    buffers_close(buffers->owner);
    free(buffers->owner);
    return right;
}

/* Real elements, some of which do not shrink. */
static void check_bits(const struct zipccl_cluster *c, const struct zipccl_priced_call *call)
{
    struct coll_case values = {.op = ZIPCCL_ALLTOALL, .count = COUNT, .kind = KIND_MIXED};
    struct zipccl_t2_call t2 = {
        .plan = call->compressed.plan,
        .topology = call->topology,
        .payload = {.open = open_case, .close = close_case, .context = &values}};
    struct zipccl_t2_result result = {.bytes = NULL};
    struct zipccl_error error = {""};

    need(zipccl_t2_price(c, &t2, 1, &result, &error), &error);
    check(result.status == ZIPCCL_OK && result.right, "every bit arrives at T2");
}

static void run(double nic_Bps, bool offered, bool wins)
{
    struct zipccl_cluster c = cluster_of(nic_Bps, offered);
    struct zipccl_samples *samples = NULL;
    struct zipccl_program *program = NULL;
    struct zipccl_pricing *pricing = NULL;
    struct zipccl_scenario scenario;
    struct zipccl_error error = {""};
    const struct zipccl_price *p;
    struct sizing sizing;
    struct toy toy;
    bool taken;

    toy_init(&toy, NRANKS);
    toy_collective(&toy, ZIPCCL_ALLTOALL, ZIPCCL_BFLOAT16, COUNT, 1, 0);
    zipccl_scenario_init(&scenario);
    scenario.plans = true;
    need(zipccl_samples_open(NULL, 0, &samples, &error), &error);
    need(zipccl_program_create(&toy.trace, &c, samples, &program, &error), &error);
    need(zipccl_pricing_create(program, &c, &scenario, samples, &pricing, &error), &error);
    p = &pricing->calls[0].compressed;
    taken = p->plan->effort == ZIPCCL_EFFORT_RATIO;
    printf("NIC %6.3f GB/s, max ratio %s: %s, ratio %.4f\n", nic_Bps / 1e9,
           offered ? "offered" : "not offered", p->name, p->raw_bytes / p->wire_bytes);
    check(taken == wins, "max-ratio mode is taken where it pays, and only where it is offered");
    check((strstr(p->name, " max-ratio") != NULL) == taken, "its name says so");
    sizing = (struct sizing){samples, program->classes[0].set};
    compare_tiers(&c, &pricing->calls[0], &sizing);
    if (taken)
        check_bits(&c, &pricing->calls[0]);
    zipccl_pricing_destroy(pricing);
    zipccl_program_destroy(program);
    zipccl_samples_close(samples);
}

int main(void)
{
    run(20e6, true, true);
    run(20e6, false, false);
    run(2e9, true, false);
    printf("%d failures\n", failures);
    return failures != 0;
}
