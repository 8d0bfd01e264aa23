/*
 * test_step.c - small steps against their hand computation, at T0 and T1
 *
 * 8 ranks on 2 nodes; a NIC of 10 GB/s per node, no alpha.  An alltoall of B bytes per peer puts
 * 4 * 4 * B on each NIC.  A plain program that prints what it reckons.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/run.h"
#include "sim/tests/toy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int failures;

/* Bytes per peer of an alltoall that takes 10 ms raw: 16 B / 10e9 = 0.010. */
#define B10MS 6250000u

static void check_to(double tolerance, const char *what, double got, double hand)
{
    int bad = !(fabs(got - hand) <= tolerance * (hand > 1e-3 ? hand : 1e-3));

    printf("  %-44s hand %10.6f ms  got %10.6f ms%s\n", what, hand * 1e3, got * 1e3,
           bad ? "  FAILED" : "");
    failures += bad;
}

static void check(const char *what, double got, double hand)
{
    check_to(1e-6, what, got, hand);
}

static void expect_error(const char *what, zipccl_status got, zipccl_status want,
                         const struct zipccl_error *error, const char *says)
{
    int bad = got != want || strstr(error->text, says) == NULL;

    printf("  %-28s %s%s\n", what, error->text, bad ? "  FAILED" : "");
    failures += bad;
}

struct setup {
    struct zipccl_cluster cluster;
    struct zipccl_samples *samples;
    struct zipccl_program *program;
    struct zipccl_run run;
    struct zipccl_run_base base;
};

static zipccl_status start(struct setup *s, const struct toy *t, double ratio,
                           struct zipccl_error *error)
{
    ZIPCCL_TRY(zipccl_samples_open(NULL, ratio, &s->samples, error));
    return zipccl_program_create(&t->trace, &s->cluster, s->samples, &s->program, error);
}

static void stop(struct setup *s)
{
    zipccl_run_release(&s->run);
    zipccl_program_destroy(s->program);
    zipccl_samples_close(s->samples);
    s->program = NULL;
    s->samples = NULL;
}

/* Run 't'; the caller looks at s->run and calls stop(). */
static const struct zipccl_result_step *run(struct setup *s, const struct toy *t, int mode,
                                            enum zipccl_fidelity fidelity, double ratio)
{
    static const struct zipccl_result_step none;
    struct zipccl_error error = {""};
    zipccl_status status = start(s, t, ratio, &error);

    s->base = (struct zipccl_run_base){
        .program = s->program, .cluster = &s->cluster, .samples = s->samples, .fidelity = fidelity};
    if (status == ZIPCCL_OK)
        status = zipccl_run_init(&s->run, &s->base, mode);
    if (status == ZIPCCL_OK)
        status = zipccl_run_execute(&s->run, 1, 1, &error);
    if (status != ZIPCCL_OK) {
        printf("  FAILED: %s %s\n", zipccl_status_string(status), error.text);
        failures++;
        return &none;
    }
    return s->run.step;
}

static void test_overlap(enum zipccl_fidelity fidelity)
{
    struct setup s = {.cluster = toy_cluster()};
    const struct zipccl_result_step *step;
    struct toy t;

    printf("an alltoall of 10 ms beside 12 ms of compute is hidden\n");
    toy_init(&t, 8);
    toy_compute(&t, 0.012, 0);
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_UINT8, B10MS, 1, 0);
    toy_compute(&t, 0.003, 2);
    step = run(&s, &t, ZIPCCL_STEP_RAW, fidelity, 0);
    check("step", step->step_s, 0.015);
    check("compute", step->compute_s, 0.015);
    check("exposed", step->exposed_s, 0);
    check("communication", step->comm_s, 0.010);
    stop(&s);

    printf("beside 4 ms of compute 6 ms of it are exposed\n");
    t.events[0].duration_s = 0.004;
    step = run(&s, &t, ZIPCCL_STEP_RAW, fidelity, 0);
    check("step", step->step_s, 0.013);
    check("exposed", step->exposed_s, 0.006);
    check("exposed, of the row", s.run.row_exposed[0], 0.006);
    stop(&s);
}

static void test_late(enum zipccl_fidelity fidelity)
{
    struct setup s = {.cluster = toy_cluster()};
    const struct zipccl_result_step *step;
    struct toy t;

    printf("rank 5 comes 3 ms late: wait, not communication\n");
    toy_init(&t, 8);
    for (int r = 0; r < 8; r++)
        t.by_rank[r] = r == 5 ? 0.005 : 0.002;
    toy_compute(&t, 0, 0)->duration_by_rank_s = t.by_rank;
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_UINT8, B10MS, 1, 1);
    toy_compute(&t, 0.001, 2);
    step = run(&s, &t, ZIPCCL_STEP_RAW, fidelity, 0);
    check("step", step->step_s, 0.016);
    check("compute", step->compute_s, 0.003);
    check("wait", step->wait_s, 0.003);
    check("exposed", step->exposed_s, 0.010);
    check("time of the row", s.run.row_time[0], 0.010);
    stop(&s);
}

/*
 * Compressed alltoall at ratio 2 (given): 5 ms of wire; the codec encodes and decodes 7 blocks at
 * 100 GB/s, 2 * 7 * 6.25e6 / 100e9 = 0.875 ms, on half of the SMs, so compute beside it takes
 * 0.4375 ms more, wherever in the flow the codec runs.
 */
static void test_codec(enum zipccl_fidelity fidelity)
{
    struct setup s = {.cluster = toy_cluster()};
    const struct zipccl_result_step *step;
    double lost = 0.5 * 2 * 7 * 6.25e6 / 100e9;
    struct toy t;

    printf("the codec takes its share of the SMs from compute\n");
    toy_init(&t, 8);
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_BFLOAT16, B10MS / 2, 1, 0);
    toy_compute(&t, 0.020, 0);
    step = run(&s, &t, ZIPCCL_STEP_COMPRESSED, fidelity, 2);
    check("codec", step->codec_s, 2 * lost);
    check("codec slows compute", step->codec_slow_s, lost);
    check("compute", step->compute_s, 0.020);
    check("step", step->step_s, 0.020 + lost);
    stop(&s);
    printf("compute bound by memory has SMs to spare\n");
    t.events[1].duration_s = -1;
    t.events[1].flops = 0.004 * 1e14;
    t.events[1].hbm_bytes = 0.010 * 2000e9;
    step = run(&s, &t, ZIPCCL_STEP_RAW, fidelity, 2);
    check("compute alone", step->compute_s, 0.010);
    stop(&s);
    printf("work that is given as memory traffic alone takes bytes / HBM rate\n");
    t.events[1].flops = -1;
    step = run(&s, &t, ZIPCCL_STEP_RAW, fidelity, 2);
    check("compute alone", step->compute_s, 0.010);
    stop(&s);
}

/*
 * A kernel of 1e9 bytes takes 10 ms of HBM at 100 GB/s.  The codec of the alltoall above reads and
 * writes 2 * 7 * 6.25e6 raw bytes and half as many of wire, 131.25e6 in all, which HBM must carry
 * too: 11.3125 ms until both are done, however they share it.
 */
static void test_codec_memory(void)
{
    struct setup s = {.cluster = toy_cluster()};
    const struct zipccl_result_step *step;
    double lost = 1.5 * 2 * 7 * 6.25e6 / 100e9;
    struct toy t;

    printf("the codec takes its share of HBM from compute (T1)\n");
    s.cluster.gpu_hbm_Bps = 100e9;
    toy_init(&t, 8);
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_BFLOAT16, B10MS / 2, 1, 0);
    toy_compute(&t, -1, 0);
    t.events[1].flops = 0.001 * 1e14;
    t.events[1].hbm_bytes = 0.010 * 100e9;
    step = run(&s, &t, ZIPCCL_STEP_COMPRESSED, ZIPCCL_FIDELITY_T1, 2);
    check("compute", step->compute_s, 0.010);
    /* The wire's part has message sizes in it. */
    check_to(1e-4, "codec slows compute", step->codec_slow_s, lost);
    check_to(1e-4, "step", step->step_s, 0.010 + lost);
    stop(&s);
}

/* 'seconds' of fixed time in stream 1 or 2 before what comes next there. */
static void delay(struct toy *t, double seconds, uint32_t stream)
{
    toy_add(t, ZIPCCL_EVENT_COMMUNICATION, stream, 0)->duration_s = seconds;
}

/*
 * Kernels that start together are timed together until one meets other work.  The alltoall of half
 * the ranks inside a node, 3 blocks to encode and 3 to decode, takes half of the SMs for
 * 6 * 6.25e6 / 100e9 s.
 */
static void test_meetings(void)
{
    struct setup s = {.cluster = toy_cluster()};
    double lost = 0.5 * 6 * 6.25e6 / 100e9;
    struct zipccl_event *e;
    struct toy t;

    printf("codec work on ranks 0 to 3, in the middle of a kernel of all, delays their kernels\n");
    toy_init(&t, 8);
    toy_compute(&t, 0.020, 0);
    delay(&t, 0.004, 1);
    e = toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_BFLOAT16, B10MS / 2, 1, 0);
    e->group = 1;
    e->ranks = t.ranks;
    e->nranks = 4;
    check("step", run(&s, &t, ZIPCCL_STEP_COMPRESSED, ZIPCCL_FIDELITY_T1, 2)->step_s, 0.020 + lost);
    check("slowed", s.run.step->codec_slow_s, lost);
    stop(&s);
    printf("and not those of the others, whose next kernel takes 1 ms\n");
    e = toy_compute(&t, 0.001, 1);
    e->ranks = t.ranks + 4;
    e->nranks = 4;
    check("step", run(&s, &t, ZIPCCL_STEP_COMPRESSED, ZIPCCL_FIDELITY_T1, 2)->step_s, 0.021);
    check("slowed", s.run.step->codec_slow_s, 0);
    stop(&s);

    printf("a kernel of 4 ms, 3 ms after one of 10 ms: each has half until 11 ms, all is over at "
           "14\n");
    toy_init(&t, 8);
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_UINT8, B10MS, 1, 0)->group = 1;
    toy_compute(&t, 0.010, 0);
    delay(&t, 0.003, 2);
    toy_compute(&t, 0.004, 0)->stream = 2;
    check("step", run(&s, &t, ZIPCCL_STEP_RAW, ZIPCCL_FIDELITY_T1, 0)->step_s, 0.014);
    stop(&s);
    printf("the same on rank 0 alone, and a kernel of 2 ms on each rank after the first\n");
    t.events[3].ranks = t.ranks;
    t.events[3].nranks = 1;
    toy_compute(&t, 0.002, 0);
    check("step", run(&s, &t, ZIPCCL_STEP_RAW, ZIPCCL_FIDELITY_T1, 0)->step_s, 0.016);
    stop(&s);
    printf("one that starts when the other ends meets nobody\n");
    t.events[2].duration_s = 0.010;
    t.events[3].nranks = 0;
    t.events[3].ranks = NULL;
    t.trace.nevents = 4;
    check("step", run(&s, &t, ZIPCCL_STEP_RAW, ZIPCCL_FIDELITY_T1, 0)->step_s, 0.014);
    stop(&s);
}

static void test_order(enum zipccl_fidelity fidelity)
{
    struct setup s = {.cluster = toy_cluster()};
    const struct zipccl_result_step *step;
    struct toy t;

    printf("loops and repeats run as often as they say, dependencies mean the same iteration\n");
    toy_init(&t, 8);
    toy_add(&t, ZIPCCL_EVENT_LOOP_BEGIN, 0, 0)->repeat = 3;
    toy_compute(&t, 0.002, 0)->repeat = 2;
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_UINT8, B10MS, 1, 2);
    toy_compute(&t, 0.001, 3);
    toy_add(&t, ZIPCCL_EVENT_LOOP_END, 0, 0);
    step = run(&s, &t, ZIPCCL_STEP_RAW, fidelity, 0);
    check("step", step->step_s, 3 * 0.015);
    check("compute", step->compute_s, 3 * 0.005);
    check("exposed", step->exposed_s, 3 * 0.010);
    stop(&s);

    printf("groups of 4 within a node: 3 * 6.25e6 / 200e9 a call; parts do not meet\n");
    toy_init(&t, 8);
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_UINT8, B10MS, 1, 0)->group = 1;
    step = run(&s, &t, ZIPCCL_STEP_RAW, fidelity, 0);
    check("step", step->step_s, 3 * 6.25e6 / 200e9);
    stop(&s);

    printf("only the ranks named run an event\n");
    toy_init(&t, 8);
    t.events[0].nranks = 0;
    toy_compute(&t, 0.007, 0);
    t.events[0].nranks = 4;
    t.events[0].ranks = t.ranks;
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_UINT8, B10MS, 1, 1);
    step = run(&s, &t, ZIPCCL_STEP_RAW, fidelity, 0);
    check("step", step->step_s, 0.017);
    stop(&s);
}

/* Pairs, uneven splits, a broadcast, and calls that move nothing. */
static void test_ops(enum zipccl_fidelity fidelity)
{
    struct setup s = {.cluster = toy_cluster()};
    struct zipccl_trace_pair pairs[] = {{0, 4}, {1, 5}};
    uint64_t counts[64] = {0};
    char name[] = "table";
    struct zipccl_trace_splits splits = {name, 8, counts};
    const struct zipccl_result_step *step;
    struct zipccl_event *e;
    struct toy t;

    printf("two pairs over one NIC: 2 * 10e6 / 10e9; other ranks go on\n");
    toy_init(&t, 8);
    e = toy_collective(&t, ZIPCCL_SENDRECV, ZIPCCL_UINT8, 10000000, 1, 0);
    e->pairs = pairs;
    e->npairs = 2;
    step = run(&s, &t, ZIPCCL_STEP_RAW, fidelity, 0);
    check("step", step->step_s, 0.002);
    stop(&s);

    printf("uneven: 0 sends 30e6 to 7, 3 sends 10e6 to 4; the NIC carries 40e6\n");
    toy_init(&t, 8);
    t.trace.header.nsplits = 1;
    t.trace.header.splits = &splits;
    counts[7] = 30000000;
    counts[3 * 8 + 4] = 10000000;
    toy_collective(&t, ZIPCCL_ALLTOALLV, ZIPCCL_UINT8, 30000000, 1, 0)->splits = 0;
    step = run(&s, &t, ZIPCCL_STEP_RAW, fidelity, 0);
    check("step", step->step_s, 0.004);
    stop(&s);

    printf("a broadcast of 50e6 crosses the NIC once; empty calls take no time\n");
    toy_init(&t, 8);
    toy_collective(&t, ZIPCCL_BROADCAST, ZIPCCL_UINT8, 50000000, 1, 0);
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_UINT8, 0, 1, 0);
    step = run(&s, &t, ZIPCCL_STEP_RAW, fidelity, 0);
    check("step", step->step_s, 0.005);
    stop(&s);
}

/* Communication of which only the time is known: it holds up what waits for it, and nothing else. */
static void test_communication(enum zipccl_fidelity fidelity)
{
    struct setup s = {.cluster = toy_cluster()};
    const struct zipccl_result_step *step;
    struct zipccl_event *e;
    struct toy t;

    printf(
        "7 ms of other communication beside 3 ms of compute, 2 ms after it, an alltoall of 10 ms "
        "beside all\n");
    toy_init(&t, 8);
    toy_compute(&t, 0.003, 0);
    e = toy_add(&t, ZIPCCL_EVENT_COMMUNICATION, 2, 0);
    e->duration_s = 0.007;
    toy_compute(&t, 0.002, 2);
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_UINT8, B10MS, 1, 0);
    step = run(&s, &t, ZIPCCL_STEP_RAW, fidelity, 0);
    check("step", step->step_s, 0.010);
    check("compute", step->compute_s, 0.005);
    check("exposed: 4 ms of the other, 1 ms of the alltoall", step->exposed_s, 0.005);
    check("exposed, of the row", s.run.row_exposed[0], 0.001);
    stop(&s);
}

/* Two alltoalls of 10 ms on two streams share the NIC: T1 alone knows. */
static void test_contention(void)
{
    struct setup s = {.cluster = toy_cluster()};
    const struct zipccl_result_step *step;
    struct toy t;

    printf("two alltoalls at once share the NICs (T1)\n");
    toy_init(&t, 8);
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_UINT8, B10MS, 1, 0);
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_UINT8, 2 * B10MS, 2, 0);
    step = run(&s, &t, ZIPCCL_STEP_RAW, ZIPCCL_FIDELITY_T1, 0);
    check("step", step->step_s, 0.030);
    check("the shorter one", s.run.row_time[0], 0.020);
    check("the longer one", s.run.row_time[1], 0.030);
    stop(&s);
}

static void refuse(const char *what, struct toy *t, zipccl_status want, const char *says)
{
    struct setup s = {.cluster = toy_cluster()};
    struct zipccl_error error = {""};

    expect_error(what, start(&s, t, 0, &error), want, &error, says);
    stop(&s);
}

static void test_refusals(void)
{
    char name[] = "no.such.tensor";
    char *names[] = {name};
    struct toy t;

    printf("what cannot be replayed is refused with the reason\n");
    toy_init(&t, 8);
    toy_compute(&t, 0.001, 0);
    refuse("no collectives", &t, ZIPCCL_ERR_INPUT, "no collectives");
    toy_init(&t, 16);
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_UINT8, 1, 1, 0);
    refuse("another world", &t, ZIPCCL_ERR_INPUT, "--set nodes=4");
    toy_init(&t, 6);
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_UINT8, 1, 1, 0);
    refuse("a world that no nodes fit", &t, ZIPCCL_ERR_INPUT, "gpus_per_node");
    toy_init(&t, 8);
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_UINT8, 1, 1, 77);
    refuse("unknown dependency", &t, ZIPCCL_ERR_INPUT, "77");
    toy_init(&t, 8);
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_UINT8, 1, 1, 2);
    toy_compute(&t, 0.001, 1);
    refuse("a cycle", &t, ZIPCCL_ERR_INPUT, "comes later");
    toy_init(&t, 8);
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_UINT8, 1, 1, 0);
    toy_compute(&t, -1, 0)->hbm_bytes = -1;
    refuse("compute without a time", &t, ZIPCCL_ERR_INPUT, "no duration");
    toy_init(&t, 8);
    toy_collective(&t, ZIPCCL_ALLTOALL, ZIPCCL_BFLOAT16, 1, 1, 0);
    t.events[0].samples = names;
    t.events[0].nsamples = 1;
    refuse("a sample without a file", &t, ZIPCCL_ERR_INPUT, "no.such.tensor");
}

int main(void)
{
    static const enum zipccl_fidelity both[] = {ZIPCCL_FIDELITY_T0, ZIPCCL_FIDELITY_T1};

    for (int i = 0; i < 2; i++) {
        printf("--- T%d\n", i);
        test_overlap(both[i]);
        test_late(both[i]);
        test_codec(both[i]);
        test_order(both[i]);
        test_ops(both[i]);
        test_communication(both[i]);
    }
    test_contention();
    test_codec_memory();
    test_meetings();
    test_refusals();
    printf("%s\n", failures == 0 ? "ok" : "FAILED");
    return failures != 0;
}
