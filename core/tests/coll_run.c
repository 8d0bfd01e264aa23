/*
 * coll_run.c - one plan on all ranks: buffers, staging, and the bytes that the lowering says
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/coll_run.h"

#include "core/group.h"
#include "core/lower.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *staging(struct zipccl_exec *exec, size_t nbytes)
{
    void *p = exec->ops->alloc(exec, nbytes);

    if (p == NULL)
        abort();
    memset(p, 0x5a, nbytes); /* stale memory must not matter */
    return p;
}

/*
 * True if what follows each fixed message, up to its capacity, is zero.  Staging began as 0x5a; the
 * messages of a slot's last chunk are still there after the run.
 */
static bool zeros_in_step(const struct zipccl_plan *plan, const struct zipccl_step *step,
                          const struct zipccl_group *g, const uint8_t *tx)
{
    bool shared = zipccl_step_shares_message(step);

    for (uint32_t k = 0; k < g->size * g->nblocks; k++) {
        uint32_t p = k / g->nblocks, b = k % g->nblocks;
        const uint8_t *wire = tx + zipccl_place_offset(&step->dst, g, p, b);
        struct zipccl_split_cut split = {0, 0, 0};
        struct zipccl_message message;

        if ((shared ? p != g->self : p == g->self) ||
            zipccl_group_n(plan, step, g, g->self, p, b) == 0)
            continue;
        if (zipccl_message_read(wire, step->capacity, &message) != ZIPCCL_OK)
            return false;
        /* Of one in parts that overflowed, the early one may hold what was coded of it. */
        if (step->part != 0)
            split = zipccl_split_of((enum zipccl_dtype)plan->dtype,
                                    zipccl_group_n(plan, step, g, g->self, p, b));
        for (size_t i = message.nbytes; i < step->capacity; i++)
            if (wire[i] != 0 && (i < split.head || i >= split.head + split.early))
                return false;
    }
    return true;
}

static bool zeros_right(const struct zipccl_plan *plan, const struct zipccl_topology *t,
                        const uint8_t *tx, uint32_t rank)
{
    for (uint32_t i = 0; i < plan->nsteps; i++) {
        const struct zipccl_step *step = &plan->steps[i];
        struct zipccl_group g = zipccl_group_of(t, step, rank);

        if (step->kind != ZIPCCL_STEP_ENCODE || step->form != ZIPCCL_FORM_FIXED ||
            (step->pattern == ZIPCCL_PATTERN_BROADCAST && g.self != g.root) ||
            step->pattern == ZIPCCL_PATTERN_PAIRS || step->chunk + plan->nslots < plan->nchunks)
            continue;
        if (!zeros_in_step(plan, step, &g, tx))
            return false;
    }
    return true;
}

static bool run_rank(void *context, uint32_t rank)
{
    struct coll_job *job = context;
    const struct coll_case *c = job->c;
    const struct world *w = job->world;
    struct zipccl_call call = case_call(c);
    struct zipccl_exec *exec = w->exec[rank];
    struct zipccl_plan *plan;
    struct zipccl_run run;
    struct buffers b;
    zipccl_status status;
    bool right;

    if (c->strategy->build(&call, w->topology, c->channels, c->nchunks, case_class(c), 0, &plan) !=
        ZIPCCL_OK)
        abort();
    buffers_open(&b, c, w->nranks, rank);
    run = (struct zipccl_run){.plan = plan,
                              .send = b.send,
                              .recv = b.recv,
                              .send_counts = b.displs[0],
                              .send_displs = b.displs[1],
                              .recv_counts = b.displs[2],
                              .recv_displs = b.displs[3],
                              .tx = staging(exec, plan->tx_bytes),
                              .rx = staging(exec, plan->rx_bytes),
                              .tmp = staging(exec, plan->tmp_bytes),
                              .acc = staging(exec, plan->acc_bytes)};
    status = zipccl_execute(&run, job->transports[rank], exec, &job->stats[rank]);
    right = buffers_right(&b, c) &&
            (status != ZIPCCL_OK || zeros_right(plan, w->topology, run.tx, rank));
    if (status != ZIPCCL_OK || !right)
        fprintf(stderr, "rank %u: %s, buffers %s\n", rank, zipccl_status_string(status),
                right ? "right" : "wrong");
    exec->ops->free(exec, run.tx);
    exec->ops->free(exec, run.rx);
    exec->ops->free(exec, run.tmp);
    exec->ops->free(exec, run.acc);
    buffers_close(&b);
    zipccl_plan_destroy(plan);
    return status == ZIPCCL_OK && right;
}

/* What the lowering is asked about: the messages of one chunk. */
struct expected {
    const struct coll_case *c;
    const struct zipccl_plan *plan;
    uint32_t nranks, chunk;
    uint64_t bytes[MAX_RANKS * MAX_RANKS];
    uint16_t *block;
    uint8_t *message;
    void *scratch;
};

static zipccl_status encode_again(struct expected *e, uint32_t src, uint32_t dst, size_t n,
                                  size_t capacity, size_t *nbytes)
{
    case_block(e->c, src, dst, e->chunk * e->plan->chunk_n, n, e->block);
    return zipccl_encode(ZIPCCL_ISA_SCALAR, ZIPCCL_BFLOAT16, e->block, n, e->message, capacity,
                         e->scratch, nbytes);
}

static size_t message_bytes(void *context, uint32_t src, uint32_t dst, size_t n)
{
    size_t nbytes = 0;

    if (encode_again(context, src, dst, n, zipccl_bound(ZIPCCL_BFLOAT16, n), &nbytes) != ZIPCCL_OK)
        abort();
    return nbytes;
}

static int message_overflows(void *context, uint32_t src, uint32_t dst, size_t n, size_t capacity)
{
    size_t nbytes;

    return encode_again(context, src, dst, n, capacity, &nbytes) == ZIPCCL_ERR_OVERFLOW;
}

static void add_flow(void *context, uint32_t src, uint32_t dst, uint64_t nbytes)
{
    struct expected *e = context;

    e->bytes[src * e->nranks + dst] += nbytes;
}

static void expect_flows(struct expected *e, const struct world *w, const size_t *splits)
{
    struct zipccl_wire_sizes sizes = {
        .bytes = message_bytes, .context = e, .splits = splits, .overflows = message_overflows};
    uint32_t nrounds;

    for (uint32_t i = 0; i < e->plan->nsteps; i++) {
        const struct zipccl_step *step = &e->plan->steps[i];

        if (step->kind != ZIPCCL_STEP_EXCHANGE && step->kind != ZIPCCL_STEP_SIZES &&
            step->kind != ZIPCCL_STEP_NATIVE)
            continue;
        e->chunk = step->chunk;
        if (zipccl_lower(e->plan, i, w->topology, &sizes, add_flow, e, &nrounds) != ZIPCCL_OK)
            abort();
    }
}

bool coll_run(struct coll_job *job)
{
    bool ok = world_run(job->world, run_rank, job);

    world_share(job->world, job->stats, sizeof *job->stats);
    return ok;
}

bool coll_can_build(const struct world *w, const struct coll_case *c)
{
    struct zipccl_call call = case_call(c);
    struct zipccl_plan *plan;

    if (!c->strategy->serves(&call) ||
        c->strategy->build(&call, w->topology, c->channels, c->nchunks, case_class(c), 0, &plan) !=
            ZIPCCL_OK)
        return false;
    zipccl_plan_destroy(plan);
    return true;
}

bool coll_bytes_right(const struct coll_job *job, const uint64_t *bytes)
{
    const struct world *w = job->world;
    const struct coll_case *c = job->c;
    struct zipccl_call call = case_call(c);
    struct zipccl_plan *plan;
    struct expected e = {.c = c, .nranks = w->nranks};
    size_t splits[MAX_RANKS * MAX_RANKS];
    uint64_t sent = 0, said = 0;
    bool right = true;

    for (uint32_t i = 0; i < w->nranks * w->nranks; i++)
        splits[i] = case_split(c, w->nranks, i / w->nranks, i % w->nranks);
    if (c->strategy->build(&call, w->topology, c->channels, c->nchunks, case_class(c), 0, &plan) !=
        ZIPCCL_OK)
        abort();
    e.plan = plan;
    e.block = malloc((plan->chunk_n + 1) * sizeof *e.block);
    e.message = malloc(zipccl_bound(ZIPCCL_BFLOAT16, plan->chunk_n));
    e.scratch = aligned_alloc(64, (zipccl_codec_scratch_bytes() + 63) / 64 * 64);
    if (e.block == NULL || e.message == NULL || e.scratch == NULL)
        abort();
    expect_flows(&e, w, splits);
    for (uint32_t i = 0; i < w->nranks * w->nranks; i++) {
        sent += bytes[i];
        if (bytes[i] == e.bytes[i])
            continue;
        fprintf(stderr, "%u -> %u: %llu bytes, the lowering says %llu\n", i / w->nranks,
                i % w->nranks, (unsigned long long)bytes[i], (unsigned long long)e.bytes[i]);
        right = false;
    }
    for (uint32_t r = 0; r < w->nranks; r++)
        said += job->stats[r].wire_bytes;
    if (said != sent)
        fprintf(stderr, "statistics say %llu bytes, %llu were sent\n", (unsigned long long)said,
                (unsigned long long)sent);
    free(e.block);
    free(e.message);
    free(e.scratch);
    zipccl_plan_destroy(plan);
    return right && said == sent;
}
