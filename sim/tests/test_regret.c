/*
 * test_regret.c - the chooser's plan is near the best candidate, each run message by message
 *
 * A plain program; a small part of the grid of experiments/e06_regret, with a line for each point that
 * is more than 2 % behind.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/coll_world.h"
#include "sim/regret.h"
#include "sim/tests/toy.h"

#include <stdio.h>
#include <stdlib.h>

#define MEDIAN_GOAL 0.02
#define WORST_GOAL  0.10

/* Under sanitizers messages take ten times as long. */
enum { NUM_CASES = SANITIZED ? 7 : 14 };

static double regrets[64];
static unsigned npoints, failures;

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Each op once at two sizes of block, the smaller of which does not pay everywhere. */
static void fill_cases(struct zipccl_regret_case *cases, unsigned turn)
{
    static const double ratios[] = {1.5, 1.3};

    for (unsigned i = 0; i < NUM_CASES; i++)
        cases[i] = (struct zipccl_regret_case){
            .call = {.op = (enum zipccl_op)(i % 7),
                     .dtype = ZIPCCL_BFLOAT16,
                     .redop = ZIPCCL_SUM,
                     .count = (i < 7 ? (size_t)1 << 20 : (size_t)1 << 14) + 13 * i,
                     .has_native = true},
            .ratio = ratios[(i + turn) % 2],
            .ratio_gain = 1.009};
}

static void run(const char *name, uint32_t nodes, uint32_t gpus, double nic_Bps, double codec_Bps)
{
    struct zipccl_cluster c = toy_cluster();
    struct zipccl_regret_case cases[NUM_CASES];
    struct zipccl_regret found[NUM_CASES];
    struct zipccl_error error = {""};

    c.nodes = nodes;
    c.gpus_per_node = gpus;
    c.nic_Bps = nic_Bps;
    c.nic_alpha_s = 10e-6;
    c.nvlink_alpha_s = 2e-6;
    c.encode_Bps = c.decode_Bps = codec_Bps;
    c.ratio_encode_Bps = c.ratio_decode_Bps = codec_Bps / 8;
    c.codec_launch_s = c.fence_s = 3e-6;
    c.channels = gpus;
    c.nics_per_node = gpus;
    fill_cases(cases, npoints);
    if (zipccl_regret_measure(&c, cases, NUM_CASES, found, &error) != ZIPCCL_OK) {
        printf("FAILED: %s: %s\n", name, error.text);
        failures++;
        return;
    }
    for (unsigned i = 0; i < NUM_CASES; i++) {
        const struct zipccl_regret *r = &found[i];

        regrets[npoints++] = r->regret;
        if (r->regret > MEDIAN_GOAL)
            printf("%s, %s of %zu: \"%s\" x%u takes %.3f ms (T0 %.3f), \"%s\" x%u %.3f (T0 %.3f): "
                   "%.1f %%\n",
                   name, zipccl_op_name(cases[i].call.op), cases[i].call.count, r->chosen.name,
                   r->chosen.nchunks, 1e3 * r->chosen.t2_s, 1e3 * r->chosen.t0_s, r->best.name,
                   r->best.nchunks, 1e3 * r->best.t2_s, 1e3 * r->best.t0_s, 100 * r->regret);
        if (!(r->regret <= WORST_GOAL) || r->nrun < 2)
            failures++;
    }
}

int main(void)
{
    run("2 nodes of 2, 1 GB/s", 2, 2, 1e9, 4e9);
    if (!SANITIZED) {
        run("8 nodes of 1, 0.1 GB/s", 8, 1, 0.1e9, 4e9);
        run("2 nodes of 4, 10 GB/s", 2, 4, 10e9, 100e9);
    }
    if (npoints == 0)
        return 1;
    qsort(regrets, npoints, sizeof(*regrets), compare);
    printf("%u points: regret %.2f %% at the median, %.2f %% at worst; %u failures\n", npoints,
           100 * regrets[npoints / 2], 100 * regrets[npoints - 1], failures);
    return failures != 0 || !(regrets[npoints / 2] <= MEDIAN_GOAL);
}
