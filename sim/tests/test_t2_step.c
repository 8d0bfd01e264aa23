/*
 * test_t2_step.c - small steps at T1 and T2: what must be equal, and how much the rest differs
 *
 * 8 ranks on 2 nodes; a NIC of 10 GB/s per node, no alpha.  A plain program that prints both tiers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/run.h"
#include "sim/tests/toy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Bytes per peer of an alltoall that takes 10 ms raw: 16 B / 10e9 = 0.010. */
#define B10MS 6250000u

static int failures;

static struct zipccl_result_step run(const struct toy *t, int mode, enum zipccl_fidelity fidelity,
                                     double ratio)
{
    struct zipccl_cluster cluster = toy_cluster();
    struct zipccl_result_step step = {.step_s = -1};
    struct zipccl_samples *samples = NULL;
    struct zipccl_program *program = NULL;
    struct zipccl_error error = {""};
    struct zipccl_run_base base;
    struct zipccl_run r = {.base = NULL};
    zipccl_status status;

    status = zipccl_samples_open(NULL, ratio, &samples, &error);
    if (status == ZIPCCL_OK)
        status = zipccl_program_create(&t->trace, &cluster, samples, &program, &error);
    base = (struct zipccl_run_base){
        .program = program, .cluster = &cluster, .samples = samples, .fidelity = fidelity};
    if (status == ZIPCCL_OK)
        status = zipccl_run_init(&r, &base, mode);
    if (status == ZIPCCL_OK)
        status = zipccl_run_execute(&r, 1, 1, &error);
    if (status == ZIPCCL_OK)
        step = *r.step;
    else
        printf("  %s\n", error.text);
    zipccl_run_release(&r);
    zipccl_program_destroy(program);
    zipccl_samples_close(samples);
    return step;
}

/* Run at both tiers; 'tolerance' is of the step. */
static void compare(const char *what, const struct toy *t, int mode, double ratio, double tolerance)
{
    struct zipccl_result_step t1 = run(t, mode, ZIPCCL_FIDELITY_T1, ratio);
    struct zipccl_result_step t2 = run(t, mode, ZIPCCL_FIDELITY_T2, ratio);
    double difference = t2.step_s / t1.step_s - 1;
    int bad = !(t1.step_s > 0) || !(fabs(difference) <= tolerance);

    printf("%-52s T1 %9.4f  T2 %9.4f ms  %+7.3f %%%s\n", what, 1e3 * t1.step_s, 1e3 * t2.step_s,
           100 * difference, bad ? "  FAILED" : "");
    printf("    exposed %9.4f %9.4f  codec slows compute %8.4f %8.4f  wait %8.4f %8.4f\n",
           1e3 * t1.exposed_s, 1e3 * t2.exposed_s, 1e3 * t1.codec_slow_s, 1e3 * t2.codec_slow_s,
           1e3 * t1.wait_s, 1e3 * t2.wait_s);
    failures += bad;
}

static void test_raw(void)
{
    struct toy t;

    toy_init(&t, 8);
    toy_compute(&t, 0.004, 0);
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_UINT8, B10MS, 1, 0);
    toy_compute(&t, 0.003, 2);
    compare("alltoall beside compute", &t, ZIPCCL_STEP_RAW, 0, 1e-6);
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_UINT8, B10MS, 2, 0);
    compare("two alltoalls and compute", &t, ZIPCCL_STEP_RAW, 0, 1e-6);

    toy_init(&t, 8);
    for (int r = 0; r < 8; r++)
        t.by_rank[r] = r == 5 ? 0.005 : 0.002;
    toy_compute(&t, 0, 0)->duration_by_rank_s = t.by_rank;
    toy_collective(&t, ZIPCCL_ALL_GATHER, ZIPCCL_UINT8, B10MS, 1, 1);
    toy_compute(&t, 0.001, 2);
    /* Messages among the ranks that are there start before the last one comes; T1 waits.  In a
     * two-level plan that is all but the late rank's rail. */
    compare("a rank comes late to an all_gather", &t, ZIPCCL_STEP_RAW, 0, 0.15);
    t.events[1].op = ZIPCCL_ALLTOALL;
    compare("a rank comes late to an alltoall", &t, ZIPCCL_STEP_RAW, 0, 0.3);

    toy_init(&t, 8);
    toy_collective(&t, ZIPCCL_ALL_REDUCE, ZIPCCL_FLOAT32, B10MS, 1, 0)->group = 1;
    toy_collective(&t, ZIPCCL_REDUCE_SCATTER, ZIPCCL_BFLOAT16, B10MS / 8, 2, 0);
    toy_collective(&t, ZIPCCL_BROADCAST, ZIPCCL_BFLOAT16, B10MS, 1, 2);
    compare("halves and the world", &t, ZIPCCL_STEP_RAW, 0, 0.1);
}

static void test_compressed(void)
{
    struct toy t;

    toy_init(&t, 8);
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_BFLOAT16, B10MS / 2, 1, 0);
    compare("compressed alltoall alone", &t, ZIPCCL_STEP_COMPRESSED, 1.5, 1e-3);
    toy_compute(&t, 0.020, 0);
    compare("compressed alltoall, compute hides it", &t, ZIPCCL_STEP_COMPRESSED, 1.5, 0.03);
    t.events[1].duration_s = 0.004;
    compare("compressed alltoall, compute ends first", &t, ZIPCCL_STEP_COMPRESSED, 1.5, 0.03);
    toy_collective(&t, ZIPCCL_ALL_GATHER, ZIPCCL_BFLOAT16, B10MS / 2, 2, 0);
    compare("and a compressed all_gather at once", &t, ZIPCCL_STEP_COMPRESSED, 1.5, 0.05);
    compare("the same, adaptive", &t, ZIPCCL_STEP_ADAPTIVE, 1.5, 0.05);
}

static void test_repeat(void)
{
    struct zipccl_result_step a, b;
    struct toy t;

    toy_init(&t, 8);
    toy_compute(&t, 0.004, 0);
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_BFLOAT16, B10MS / 2, 1, 0);
    toy_collective(&t, ZIPCCL_ALL_GATHER, ZIPCCL_BFLOAT16, B10MS / 2, 2, 0);
    a = run(&t, ZIPCCL_STEP_COMPRESSED, ZIPCCL_FIDELITY_T2, 1.5);
    b = run(&t, ZIPCCL_STEP_COMPRESSED, ZIPCCL_FIDELITY_T2, 1.5);
    if (a.step_s != b.step_s || a.exposed_s != b.exposed_s || a.wait_s != b.wait_s ||
        a.codec_slow_s != b.codec_slow_s) {
        printf("two runs differ  FAILED\n");
        failures++;
    }
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    test_raw();
    test_compressed();
    test_repeat();
    printf("%s\n", failures == 0 ? "ok" : "FAILED");
    return failures != 0;
}
