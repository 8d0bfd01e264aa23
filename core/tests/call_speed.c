/*
 * call_speed.c - what a call costs beside its plan: adaptive, raw, and the plan alone, on 'mem'
 *
 * A program to run by hand: call_speed [RANKS [ROUNDS]].  Each round runs some calls of each kind after
 * each other; the figures are medians and quartiles of the rounds, and of the differences within a
 * round, on rank 0.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/executor.h"
#include "core/tests/coll_world.h"
#include "core/zipccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CALLS = 64, DIRECT = 0, RAW, ADAPTIVE, NUM_KINDS_OF_CALL };

static const size_t counts[] = {4, 64, 1024, 16384};

struct bench {
    struct world w;
    size_t count;
    unsigned nrounds;
    double *times[NUM_KINDS_OF_CALL]; /* [nrounds] seconds a call */
    bool native[MAX_RANKS];           /* both communicators chose it */
};

struct rank {
    struct zipccl_comm *raw, *adaptive;
    uint16_t *send, *recv;
    struct zipccl_plan *plan;
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void must(zipccl_status status)
{
    if (status == ZIPCCL_OK)
        return;
    fprintf(stderr, "call_speed: %s\n", zipccl_status_string(status));
    exit(1);
}

static void call(const struct bench *b, const struct rank *r, uint32_t rank, int kind)
{
    struct zipccl_run run = {.plan = r->plan, .send = r->send, .recv = r->recv};

    if (kind == DIRECT)
        must(zipccl_execute(&run, b->w.t[rank], b->w.exec[rank], NULL));
    else
        must(zipccl_all_gather(r->send, r->recv, b->count, ZIPCCL_BFLOAT16,
                               kind == RAW ? r->raw : r->adaptive, NULL));
}

static void open_rank(struct bench *b, struct rank *r, uint32_t rank)
{
    struct zipccl_call native = {
        .op = ZIPCCL_ALL_GATHER, .dtype = ZIPCCL_BFLOAT16, .count = b->count, .has_native = true};
    struct zipccl_comm_config config;

    zipccl_comm_config_init(&config);
    config.params.nvlink_alpha_s = 5e-5; /* so dear that one collective beats any of steps */
    must(zipccl_comm_create(b->w.t[rank], b->w.exec[rank], &config, &r->adaptive, NULL));
    config.mode = ZIPCCL_MODE_RAW;
    must(zipccl_comm_create(b->w.t[rank], b->w.exec[rank], &config, &r->raw, NULL));
    must(zipccl_strategy_find("native")->build(&native, b->w.topology, 1, 1, 0, 0, &r->plan));
    r->send = calloc(b->count, sizeof *r->send);
    r->recv = calloc(b->count * b->w.nranks, sizeof *r->recv);
    if (r->send == NULL || r->recv == NULL)
        must(ZIPCCL_ERR_NOMEM);
}

static bool run_rank(void *context, uint32_t rank)
{
    struct bench *b = context;
    struct rank r;

    open_rank(b, &r, rank);
    for (unsigned round = 0; round < b->nrounds + 5; round++)
        for (int k = 0; k < NUM_KINDS_OF_CALL; k++) {
            int kind = (k + (int)round) % NUM_KINDS_OF_CALL;
            double start = now();

            for (int i = 0; i < CALLS; i++)
                call(b, &r, rank, kind);
            if (rank == 0 && round >= 5)
                b->times[kind][round - 5] = (now() - start) / CALLS;
        }
    b->native[rank] = strncmp(zipccl_comm_last_plan(r.raw)->strategy, "native", 6) == 0 &&
                      strncmp(zipccl_comm_last_plan(r.adaptive)->strategy, "native", 6) == 0;
    zipccl_plan_destroy(r.plan);
    zipccl_comm_destroy(r.raw);
    zipccl_comm_destroy(r.adaptive);
    free(r.send);
    free(r.recv);
    return true;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

static void print_quartiles(const char *what, double *x, unsigned n)
{
    qsort(x, n, sizeof *x, by_value);
    printf("  %-22s %8.3f us (%.3f to %.3f)\n", what, 1e6 * x[n / 2], 1e6 * x[n / 4],
           1e6 * x[3 * n / 4]);
}

static void report(struct bench *b)
{
    double *differences[2];

    for (int d = 0; d < 2; d++) {
        differences[d] = malloc(b->nrounds * sizeof(double));
        if (differences[d] == NULL)
            must(ZIPCCL_ERR_NOMEM);
        for (unsigned i = 0; i < b->nrounds; i++)
            differences[d][i] = b->times[ADAPTIVE][i] - b->times[d == 0 ? RAW : DIRECT][i];
    }
    printf("all_gather of %zu bf16 on %u ranks%s\n", b->count, b->w.nranks,
           b->native[0] ? ", native chosen" : ", native NOT chosen");
    print_quartiles("the plan alone", b->times[DIRECT], b->nrounds);
    print_quartiles("raw call", b->times[RAW], b->nrounds);
    print_quartiles("adaptive call", b->times[ADAPTIVE], b->nrounds);
    print_quartiles("adaptive - raw", differences[0], b->nrounds);
    print_quartiles("adaptive - plan alone", differences[1], b->nrounds);
    free(differences[0]);
    free(differences[1]);
}

int main(int argc, char **argv)
{
    struct bench b = {.nrounds = argc > 2 ? (unsigned)atoi(argv[2]) : 2000};
    int nranks = argc > 1 ? atoi(argv[1]) : 2;

    if (nranks < 1 || nranks > MAX_RANKS || b.nrounds < 4) {
        fprintf(stderr, "call_speed [RANKS [ROUNDS]]: 1 to %d ranks, 4 rounds or more\n",
                MAX_RANKS);
        return 2;
    }
    for (int k = 0; k < NUM_KINDS_OF_CALL; k++) {
        b.times[k] = malloc(b.nrounds * sizeof(double));
        if (b.times[k] == NULL)
            must(ZIPCCL_ERR_NOMEM);
    }
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        b.count = counts[i];
        world_open_even(&b.w, 1, (uint32_t)nranks);
        world_run(&b.w, run_rank, &b);
        report(&b);
        world_close(&b.w);
    }
    for (int k = 0; k < NUM_KINDS_OF_CALL; k++)
        free(b.times[k]);
    return 0;
}
