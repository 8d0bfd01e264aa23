/*
 * test_comm_reduce.c - reductions through the calls, on a transport that has none of its own
 *
 * Whatever plan a communicator takes, the bits are those of the reference evaluator for that plan, the
 * staging is bounded, and the plan is the pinned one where it serves.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/reduce_run.h"
#include "core/zipccl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STAGING_BYTES ((size_t)512 << 10)

struct job {
    const struct world *world;
    struct zipccl_comm_config config;
    struct zipccl_comm *comms[MAX_RANKS];
    struct reduce_case c;
    struct reduce_inputs inputs;
};

static bool open_one(void *context, uint32_t rank)
{
    struct job *job = context;

    return zipccl_comm_create(job->world->t[rank], job->world->exec[rank], &job->config,
                              &job->comms[rank], NULL) == ZIPCCL_OK;
}

static bool plan_right(const struct job *job, const struct zipccl_plan *plan)
{
    const char *pinned = job->config.strategy;
    struct zipccl_call call = reduce_call(&job->c);

    if (zipccl_plan_staging_bytes(plan) > STAGING_BYTES ||
        strncmp(plan->strategy, "native", 6) == 0)
        return false;
    return pinned == NULL || !zipccl_strategy_find(pinned)->serves(&call) ||
           strcmp(plan->strategy, pinned) == 0;
}

static bool reduce_one(void *context, uint32_t rank)
{
    struct job *job = context;
    const struct reduce_case *c = &job->c;
    struct zipccl_comm *comm = job->comms[rank];
    size_t size = zipccl_dtype_size(c->dtype), nbytes = job->inputs.n * size;
    size_t own = c->op == ZIPCCL_REDUCE_SCATTER ? rank * c->count * size : 0;
    char *send = malloc(nbytes + 1), *recv = malloc(nbytes + 1), *want = malloc(nbytes + 1);
    char *out = c->in_place ? send + own : recv;
    struct ref_reduce ref;
    zipccl_status status;
    bool ok;

    if (send == NULL || recv == NULL || want == NULL)
        abort();
    memcpy(send, job->inputs.of[rank], nbytes);
    status = c->op == ZIPCCL_REDUCE_SCATTER
                 ? zipccl_reduce_scatter(send, out, c->count, c->dtype, c->redop, comm, NULL)
                 : zipccl_all_reduce(send, out, c->count, c->dtype, c->redop, comm, NULL);
    ok = status == ZIPCCL_OK;
    if (!ok)
        fprintf(stderr, "rank %u: %s\n", rank, zipccl_comm_error(comm));
    if (ok && c->count > 0) {
        const struct zipccl_plan *plan = zipccl_comm_last_plan(comm);

        ref_init(&ref, plan, job->world->topology, (const void *const *)(void *)job->inputs.of);
        ref_result(&ref, own / size, c->count, want);
        ok = memcmp(out, want, c->count * size) == 0 && plan_right(job, plan);
        if (!ok)
            fprintf(stderr, "rank %u: plan \"%s\": wrong bits or plan\n", rank, plan->strategy);
    }
    free(send);
    free(recv);
    free(want);
    return ok;
}

static bool run_calls(struct job *job, unsigned *ncalls)
{
    static const size_t counts[] = {0, 1, 5, 1000, 70001};
    bool ok = true;

    for (unsigned k = 0; k < 2 * 2 * 2 * 2 * 5 && ok; k++) {
        if (RACE_CHECKED && k / 16 != 3 && k % 7 != 0)
            continue;
        job->c = (struct reduce_case){.op = k & 1 ? ZIPCCL_ALL_REDUCE : ZIPCCL_REDUCE_SCATTER,
                                      .dtype = k & 2 ? ZIPCCL_FLOAT32 : ZIPCCL_BFLOAT16,
                                      .redop = k & 4 ? ZIPCCL_AVG : ZIPCCL_SUM,
                                      .in_place = k & 8,
                                      .count = counts[k / 16],
                                      .kind = k % 3 == 0 ? KIND_CANCEL : KIND_MIXED};
        reduce_inputs_open(&job->inputs, &job->c, job->world->nranks);
        ok = world_run(job->world, reduce_one, job);
        reduce_inputs_close(&job->inputs);
        ++*ncalls;
    }
    return ok;
}

int main(void)
{
    static const char *const strategies[] = {NULL, "fixed direct", "exact two-level",
                                             "fixed two-level"};
    unsigned ncalls = 0;
    bool ok = true;

    for (unsigned i = 0; i < 4 * 2; i++) {
        struct zipccl_transport_ops ops;
        struct world w;
        struct job job = {.world = &w};

        if (i % 2)
            world_open_even(&w, 2, 2);
        else
            world_open_even(&w, 1, 3);
        ops = *w.t[0]->ops;
        ops.native = NULL;
        ops.has_native = NULL;
        for (uint32_t r = 0; r < w.nranks; r++)
            w.t[r]->ops = &ops;
        zipccl_comm_config_init(&job.config);
        job.config.max_staging_bytes = STAGING_BYTES;
        job.config.strategy = strategies[i / 2];
        job.config.nchunks = 3;
        /* On one node the two-level strategies do not serve: the mode chooses. */
        ok = world_run(&w, open_one, &job) && ok;
        if (i % 2 == 0 && i / 2 >= 2)
            job.config.strategy = NULL;
        ok = ok && run_calls(&job, &ncalls);
        for (uint32_t r = 0; r < w.nranks; r++)
            zipccl_comm_destroy(job.comms[r]);
        world_close(&w);
    }
    printf("%u reductions through communicators: %s\n", ncalls, ok ? "ok" : "FAILED");
    return ok ? 0 : 1;
}
