/*
 * test_fold.c - a folded program gives every rank the times of the unfolded one, bit for bit
 *
 * usage: test_fold TRACE...   Given traces on two clusters, then random ones with fixed seeds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/tests/toy.h"
#include "sim/times.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static int failures;

static void fail(const char *name, const char *what)
{
    if (failures++ < 20)
        printf("FAILED: %s: %s\n", name, what);
}

struct side {
    struct zipccl_program *program;
    struct zipccl_pricing *pricing;
    struct zipccl_times *times;
};

static void release(struct side *s)
{
    zipccl_times_destroy(s->times);
    zipccl_pricing_destroy(s->pricing);
    zipccl_program_destroy(s->program);
}

static bool prepare(const struct zipccl_trace *trace, const struct zipccl_cluster *cluster,
                    struct zipccl_samples *samples, bool fold, struct side *s)
{
    struct zipccl_scenario scenario;
    struct zipccl_error error = {""};

    zipccl_scenario_init(&scenario);
    scenario.flows = false;
    memset(s, 0, sizeof(*s));
    if ((fold ? zipccl_program_create_folded(trace, cluster, samples, &s->program, &error)
              : zipccl_program_create(trace, cluster, samples, &s->program, &error)) == ZIPCCL_OK &&
        zipccl_pricing_create(s->program, cluster, &scenario, samples, &s->pricing, &error) ==
            ZIPCCL_OK &&
        zipccl_times_create(s->program, &s->times) == ZIPCCL_OK)
        return true;
    fail(trace->header.name, error.text);
    return false;
}

static void compare_times(const char *name, const struct side *plain, const struct side *folded)
{
    const struct zipccl_fold *fold = folded->program->fold;

    for (size_t op = 0; op < plain->program->nops; op++)
        for (uint32_t rank = 0; rank < fold->nranks; rank++) {
            size_t i = op * fold->nranks + rank, k = op * fold->nclasses + fold->class_of[rank];
            const struct zipccl_times *a = plain->times, *b = folded->times;

            if (a->ran[i] != b->ran[k])
                fail(name, "an op runs on other ranks");
            else if (a->ran[i] && (a->enter[i] != b->enter[k] || a->start[i] != b->start[k] ||
                                   a->end[i] != b->end[k]))
                fail(name, "a rank has other times");
        }
    if (plain->times->step_s != folded->times->step_s)
        fail(name, "the step has another length");
}

static void compare_rows(const char *name, const struct zipccl_program *a,
                         const struct zipccl_program *b)
{
    if (a->nrows != b->nrows)
        fail(name, "another number of rows");
    for (uint32_t i = 0; i < a->nrows && i < b->nrows; i++)
        if (a->rows[i].calls != b->rows[i].calls || a->rows[i].recorded_s != b->rows[i].recorded_s)
            fail(name, "a row has other calls");
}

/* The classes of the folded program, 0 after a failure. */
static uint32_t compare(const struct zipccl_trace *trace, const struct zipccl_cluster *cluster)
{
    struct zipccl_samples *samples = NULL;
    struct side plain = {NULL, NULL, NULL}, folded = {NULL, NULL, NULL};
    struct zipccl_error error = {""};
    uint32_t nclasses = 0;

    if (zipccl_samples_open(trace->samples_path, 1.5, &samples, &error) != ZIPCCL_OK) {
        fail(trace->header.name, error.text);
        return 0;
    }
    if (prepare(trace, cluster, samples, false, &plain) &&
        prepare(trace, cluster, samples, true, &folded)) {
        nclasses = folded.program->nranks;
        compare_rows(trace->header.name, plain.program, folded.program);
        for (int mode = 0; mode < ZIPCCL_NUM_STEPS; mode++) {
            zipccl_step_t0_run(plain.program, plain.pricing, mode, plain.times);
            zipccl_step_t0_run(folded.program, folded.pricing, mode, folded.times);
            compare_times(trace->header.name, &plain, &folded);
        }
    }
    release(&plain);
    release(&folded);
    zipccl_samples_close(samples);
    return nclasses;
}

static void compare_file(const char *path)
{
    static const char *const clusters[] = {"a100-8x8-200g", "h100-8x8-400g"};
    struct zipccl_cluster_file *file = NULL;
    struct zipccl_trace *trace = NULL;
    struct zipccl_cluster cluster;
    struct zipccl_error error = {""};

    if (zipccl_trace_load(path, &trace, &error) != ZIPCCL_OK) {
        fail(path, error.text);
        return;
    }
    for (size_t i = 0; i < sizeof(clusters) / sizeof(*clusters); i++) {
        if (zipccl_cluster_open(clusters[i], "models/clusters", &file, &error) != ZIPCCL_OK ||
            zipccl_cluster_get(file, &cluster, &error) != ZIPCCL_OK)
            fail(clusters[i], error.text);
        else
            printf("%s on %s: %" PRIu32 " ranks, %" PRIu32 " kinds\n", trace->header.name,
                   clusters[i], trace->header.nranks, compare(trace, &cluster));
        zipccl_cluster_close(file);
        file = NULL;
    }
    zipccl_trace_destroy(trace);
}

/* xorshift64 */
static uint32_t pick(uint64_t *seed, uint32_t n)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return (uint32_t)(*seed >> 33) % n;
}

/* Two groups of four that lie alike, or not; their ranks in order; and every other rank. */
static uint32_t layouts[2][8] = {{0, 1, 2, 3, 4, 5, 6, 7}, {0, 4, 1, 5, 2, 3, 6, 7}};
static uint32_t parts[2][2][4] = {{{0, 1, 2, 3}, {4, 5, 6, 7}}, {{0, 1, 4, 5}, {2, 3, 6, 7}}};
static uint32_t odd[4] = {1, 3, 5, 7};
static double uneven[8] = {1e-3, 1e-3, 2e-3, 1e-3, 1e-3, 1e-3, 3e-3, 1e-3};
static struct zipccl_trace_pair pairs[3] = {{0, 1}, {2, 3}, {3, 2}};
static uint64_t counts[16] = {0, 9, 5, 0, 7, 0, 0, 99999, 1, 2, 3, 4, 0, 0, 70000, 0};
static struct zipccl_trace_splits splits = {"uneven", 4, counts};

static void add_random(struct toy *t, int layout, uint64_t *seed)
{
    static const enum zipccl_op ops[] = {ZIPCCL_ALL_GATHER, ZIPCCL_ALL_REDUCE, ZIPCCL_ALLTOALL,
                                         ZIPCCL_SENDRECV,   ZIPCCL_ALLTOALLV,  ZIPCCL_BROADCAST};
    uint64_t dep = t->trace.nevents > 0 ? pick(seed, (uint32_t)t->trace.nevents + 1) : 0;
    struct zipccl_event *e;

    if (pick(seed, 2) == 0) {
        e = toy_compute(t, 1e-3 * (1 + pick(seed, 3)), dep);
        if (pick(seed, 4) == 0)
            e->duration_by_rank_s = uneven;
        else if (pick(seed, 3) == 0) {
            e->nranks = 4;
            e->ranks = pick(seed, 2) ? parts[layout][0] : odd;
        }
        return;
    }
    e = toy_collective(t, ops[pick(seed, 6)], ZIPCCL_BFLOAT16, 1 + pick(seed, 1 << 20),
                       1 + pick(seed, 2), dep);
    e->group = pick(seed, 2);
    if (e->op == ZIPCCL_ALLTOALLV) {
        e->group = 1;
        e->splits = 0;
        e->count = 99999;
    }
    if (e->op == ZIPCCL_SENDRECV) {
        e->pairs = pairs;
        e->npairs = 1 + pick(seed, 3);
    }
    if (e->group == 1 && pick(seed, 3) == 0) {
        e->nranks = 4;
        e->ranks = parts[layout][pick(seed, 2)];
    }
}

static void compare_random(void)
{
    uint32_t least = 8, most = 0;

    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct zipccl_cluster cluster = toy_cluster();
        uint64_t state = seed * 0x9e3779b97f4a7c15u;
        struct toy t;
        int layout = (int)pick(&state, 2);
        uint32_t n;

        toy_init(&t, 8);
        t.groups[1].ranks = layouts[layout];
        t.trace.header.nsplits = 1;
        t.trace.header.splits = &splits;
        if (pick(&state, 2) == 0) {
            cluster.nodes = 4;
            cluster.gpus_per_node = 2;
        }
        toy_collective(&t, ZIPCCL_ALL_GATHER, ZIPCCL_BFLOAT16, 1000, 1, 0);
        for (uint32_t i = 0, events = 2 + pick(&state, TOY_EVENTS - 3); i < events; i++)
            add_random(&t, layout, &state);
        n = compare(&t.trace, &cluster);
        least = n < least ? n : least;
        most = n > most ? n : most;
    }
    printf("random traces of 8 ranks: %" PRIu32 " to %" PRIu32 " kinds\n", least, most);
    /* Else nothing was tried: all the same, or all different. */
    if (least > 1 || most < 8)
        fail("random traces", "kinds of ranks");
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        compare_file(argv[i]);
    compare_random();
    printf("%s\n", failures == 0 ? "ok" : "FAILED");
    return failures != 0;
}
