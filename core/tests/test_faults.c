/*
 * test_faults.c - a broken message is noticed, and no rank waits for ever
 *
 * One rank's transport drops, shortens or changes one message.  The run must end on every rank, and
 * either some rank reports an error or the comparison of the results fails: what the other tests
 * would have said.  Changes that cannot be seen are those of bytes that no decoder looks at: the
 * zeros after a fixed or a shorter exact message, and the padding bits of core/FORMAT.md.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/coll_world.h"
#include "core/tests/faulty.h"

#include <stdio.h>
#include <stdlib.h>

#define COUNT 3000u

struct job {
    const struct world *world;
    struct coll_case c;
    enum fault fault;
    uint32_t message;
    size_t byte;
    struct faulty faulty[MAX_RANKS];
    zipccl_status status[MAX_RANKS];
    bool right[MAX_RANKS];
};

static bool run_rank(void *context, uint32_t rank)
{
    struct job *job = context;
    struct zipccl_call call = case_call(&job->c);
    struct zipccl_exec *exec = job->world->exec[rank];
    struct faulty *f = &job->faulty[rank];
    struct zipccl_plan *plan;
    struct zipccl_run run;
    struct buffers b;

    if (job->c.strategy->build(&call, job->world->topology, job->c.channels, job->c.nchunks, 0, 0,
                               &plan) != ZIPCCL_OK)
        abort();
    faulty_init(f, job->world->t[rank], rank == 1 ? job->fault : FAULT_NONE, job->message,
                job->byte);
    buffers_open(&b, &job->c, job->world->nranks, rank);
    run = (struct zipccl_run){.plan = plan,
                              .send = b.send,
                              .recv = b.recv,
                              .send_counts = b.displs[0],
                              .send_displs = b.displs[1],
                              .recv_counts = b.displs[2],
                              .recv_displs = b.displs[3],
                              .tx = exec->ops->alloc(exec, plan->tx_bytes),
                              .rx = exec->ops->alloc(exec, plan->rx_bytes),
                              .tmp = exec->ops->alloc(exec, plan->tmp_bytes),
                              .acc = exec->ops->alloc(exec, plan->acc_bytes)};
    job->status[rank] = zipccl_execute(&run, &f->base, exec, NULL);
    job->right[rank] = buffers_right(&b, &job->c);
    /* A rank that is done and has dropped a message leaves, as a process would that ends. */
    if (f->hit && f->fault == FAULT_DROP)
        f->base.ops->abort(&f->base);
    exec->ops->free(exec, run.tx);
    exec->ops->free(exec, run.rx);
    exec->ops->free(exec, run.tmp);
    exec->ops->free(exec, run.acc);
    buffers_close(&b);
    faulty_close(f);
    zipccl_plan_destroy(plan);
    return true;
}

struct outcome {
    unsigned runs, errors, wrong, unseen;
};

static void run_fault(struct job *job, uint32_t nranks, struct outcome *outcome)
{
    struct world w;
    bool error = false, wrong = false;

    world_open_even(&w, 1, nranks);
    job->world = &w;
    world_run(&w, run_rank, job);
    for (uint32_t r = 0; r < nranks; r++) {
        error = error || job->status[r] != ZIPCCL_OK;
        wrong = wrong || (job->status[r] == ZIPCCL_OK && !job->right[r]);
    }
    if (job->faulty[1].hit) {
        outcome->runs++;
        outcome->errors += error;
        outcome->wrong += !error && wrong;
        outcome->unseen += !error && !wrong;
    } else if (error || wrong) {
        fprintf(stderr, "fails without a fault\n");
        case_print(&job->c, &w);
        exit(1);
    }
    world_close(&w);
}

/* Flips over the whole of each of the first messages of rank 1. */
static void run_flips(const char *strategy, enum zipccl_op op, enum kind kind, uint32_t nchunks,
                      struct outcome *outcome)
{
    struct job job = {.c = {.op = op,
                            .strategy = zipccl_strategy_find(strategy),
                            .count = COUNT,
                            .nchunks = nchunks,
                            .channels = 2,
                            .kind = kind,
                            .split = op == ZIPCCL_SENDRECV ? SPLIT_SHIFT : SPLIT_RANDOM},
                      .fault = FAULT_FLIP};

    for (job.message = 0; job.message < 6; job.message++)
        for (job.byte = 0; job.byte < 2 * COUNT;
             job.byte += (job.byte < 40 ? 1 : 331) * (RACE_CHECKED ? 5 : 1))
            run_fault(&job, 3, outcome);
}

static bool report(const char *what, struct outcome o, unsigned unseen_percent)
{
    bool ok = o.runs > 0 && 100 * o.unseen <= unseen_percent * o.runs;

    printf("%-28s %5u runs: %5u errors, %5u wrong results, %5u unseen%s\n", what, o.runs, o.errors,
           o.wrong, o.unseen, ok ? "" : "  FAILED");
    return ok;
}

static bool test_flips(void)
{
    static const struct {
        const char *strategy;
        enum zipccl_op op;
        enum kind kind;
        uint32_t nchunks;
        unsigned unseen_percent; /* at most: padding, and zeros after a message */
    } rows[] = {
        {"raw direct", ZIPCCL_ALL_GATHER, KIND_GAUSS, 1, 0},
        {"raw ring", ZIPCCL_ALL_GATHER, KIND_GAUSS, 1, 0},
        {"exact direct", ZIPCCL_ALLTOALL, KIND_GAUSS, 1, 2},
        {"exact direct", ZIPCCL_ALLTOALLV, KIND_SPECIAL, 2, 2},
        {"exact ring", ZIPCCL_BROADCAST, KIND_GAUSS, 2, 2},
        {"exact ring", ZIPCCL_ALL_GATHER, KIND_MIXED, 2, 25},
        {"fixed direct", ZIPCCL_ALLTOALL, KIND_GAUSS, 2, 25},
        {"fixed direct", ZIPCCL_ALLTOALL, KIND_RANDOM, 1, 25},
        {"fixed direct", ZIPCCL_SENDRECV, KIND_RANDOM, 2, 25},
        {"fixed ring", ZIPCCL_ALL_GATHER, KIND_MIXED, 2, 25},
    };
    bool ok = true;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct outcome outcome = {0, 0, 0, 0};

        run_flips(rows[i].strategy, rows[i].op, rows[i].kind, rows[i].nchunks, &outcome);
        ok = report(rows[i].strategy, outcome, rows[i].unseen_percent) && ok;
    }
    return ok;
}

/* Dropped and shortened messages of plans with one chunk: always an error on some rank. */
static bool test_lost(enum fault fault, const char *what)
{
    static const char *const strategies[] = {"raw direct", "fixed direct", "exact direct"};
    struct outcome outcome = {0, 0, 0, 0};

    for (size_t s = 0; s < sizeof strategies / sizeof *strategies; s++)
        for (uint32_t message = 0; message < 2; message++) {
            struct job job = {.c = {.op = ZIPCCL_ALLTOALL,
                                    .strategy = zipccl_strategy_find(strategies[s]),
                                    .count = COUNT,
                                    .nchunks = 1,
                                    .channels = 1},
                              .fault = fault,
                              .message = message};

            run_fault(&job, 3, &outcome);
        }
    return report(what, outcome, 0) && outcome.errors == outcome.runs;
}

int main(void)
{
    bool ok = test_flips();

    ok = test_lost(FAULT_DROP, "dropped messages") && ok;
    ok = test_lost(FAULT_SHORTEN, "shortened messages") && ok;
    return ok ? 0 : 1;
}
