/*
 * test_collectives.c - every plan moves every bit, and moves the bytes that the lowering says
 *
 * Each case runs a plan on real threads, over the memory transport alone or behind the check
 * transport: the results are compared bit by bit, with canaries around them, and the bytes between
 * each two ranks with the flows of zipccl_lower() over the plan's steps, where message sizes come
 * from encoding the same data again.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/group.h"
#include "core/lower.h"
#include "core/tests/coll_world.h"
#include "core/transport_check.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The check transports before a world's own; every other case runs over them. */
struct checked {
    struct zipccl_check_hub *hub;
    struct zipccl_transport *t[MAX_RANKS];
};

static void checked_open(struct checked *checked, const struct world *w)
{
    if (zipccl_transport_check_create(w->t, w->nranks, &checked->hub, checked->t) != ZIPCCL_OK)
        abort();
}

static void checked_close(struct checked *checked, const struct world *w)
{
    struct zipccl_error error = {""};

    for (uint32_t r = 0; r < w->nranks; r++)
        checked->t[r]->ops->destroy(checked->t[r]);
    if (zipccl_transport_check_close(checked->hub, &error) != ZIPCCL_OK) {
        fprintf(stderr, "check: %s\n", error.text);
        exit(1);
    }
}

struct job {
    const struct world *world;
    struct zipccl_transport *const *transports;
    const struct coll_case *c;
    struct zipccl_run_stats stats[MAX_RANKS];
};

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
    struct job *job = context;
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

static bool bytes_right(const struct world *w, const struct coll_case *c,
                        struct zipccl_check_hub *hub, const struct zipccl_run_stats *stats)
{
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
        uint64_t got = zipccl_transport_mem_bytes(w->t[0], i / w->nranks, i % w->nranks);
        uint64_t checked =
            hub != NULL ? zipccl_transport_check_bytes(hub, i / w->nranks, i % w->nranks) : got;

        sent += got;
        if (got != e.bytes[i] || checked != got) {
            fprintf(stderr, "%u -> %u: %llu bytes, the lowering says %llu\n", i / w->nranks,
                    i % w->nranks, (unsigned long long)got, (unsigned long long)e.bytes[i]);
            right = false;
        }
    }
    for (uint32_t r = 0; r < w->nranks; r++)
        said += stats[r].wire_bytes;
    if (said != sent) {
        fprintf(stderr, "statistics say %llu bytes, %llu were sent\n", (unsigned long long)said,
                (unsigned long long)sent);
        right = false;
    }
    free(e.block);
    free(e.message);
    free(e.scratch);
    zipccl_plan_destroy(plan);
    return right;
}

struct totals {
    unsigned cases, failures, resends;
};

static void run_case(struct world *w, struct checked *checked, const struct coll_case *c,
                     struct totals *totals)
{
    bool check = totals->cases * 2654435761u >> 31; /* about half, in place or not */
    struct job job = {.world = w, .c = c, .transports = check ? checked->t : w->t};
    bool ok;

    zipccl_transport_mem_reset_bytes(w->t[0]);
    zipccl_transport_check_reset_bytes(checked->hub);
    ok = world_run(w, run_rank, &job);
    /* Encoding all blocks again takes as long as the case: for large ones two inputs will do. */
    if (ok && (c->count < 5000 || (!SANITIZED && c->kind != KIND_SPECIAL && !c->in_place)))
        ok = bytes_right(w, c, check ? checked->hub : NULL, job.stats);
    totals->cases++;
    for (uint32_t r = 0; r < w->nranks; r++)
        totals->resends += job.stats[r].raw_resends;
    if (ok)
        return;
    totals->failures++;
    case_print(c, w);
    fprintf(stderr, "over %s\n", check ? "check" : "mem");
    exit(1); /* the transport may have been aborted */
}

static bool can_build(const struct world *w, const struct coll_case *c)
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

/* All inputs of one op, plan and count. */
static void run_inputs(struct world *w, struct checked *checked, struct coll_case c,
                       struct totals *totals)
{
    bool placeable = c.op == ZIPCCL_ALL_GATHER || c.op == ZIPCCL_BROADCAST;
    unsigned first_split = c.op == ZIPCCL_ALLTOALLV ? SPLIT_RANDOM : SPLIT_SHIFT;
    unsigned last_split = c.op == ZIPCCL_ALLTOALLV ? SPLIT_NONE : SPLIT_ONE_WAY;
    bool uneven = c.op == ZIPCCL_ALLTOALLV || c.op == ZIPCCL_SENDRECV;

    for (unsigned k = 0; k < NUM_KINDS; k++) {
        uint32_t nroots = c.op == ZIPCCL_BROADCAST && c.count < 5000 ? w->nranks : 1;

        c.kind = (enum kind)k;
        if ((c.count == 0 && k != KIND_GAUSS) ||
            (SANITIZED && (k == KIND_SPECIAL || k == KIND_RANDOM)))
            continue;
        for (c.root = 0; c.root < nroots; c.root++)
            for (unsigned s = uneven ? first_split : 0; s <= (uneven ? last_split : 0); s++) {
                c.split = (enum split)s;
                c.in_place = false;
                run_case(w, checked, &c, totals);
                c.in_place = placeable;
                if (placeable)
                    run_case(w, checked, &c, totals);
            }
    }
}

static void run_world(struct world *w, struct checked *checked, struct totals *totals)
{
    static const enum zipccl_op ops[] = {ZIPCCL_ALL_GATHER, ZIPCCL_ALLTOALL, ZIPCCL_ALLTOALLV,
                                         ZIPCCL_SENDRECV, ZIPCCL_BROADCAST};
    static const size_t counts[] = {0, 1, 31, 32, 33, 1001, 60013};
    static const size_t few_counts[] = {0, 33, 1001, 5003};
    static const uint32_t nchunks[] = {1, 2, 5};
    const size_t *list = SANITIZED ? few_counts : counts;
    size_t ncounts = SANITIZED ? 4 : 7;

    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++)
        for (size_t s = 0; zipccl_strategies[s] != NULL; s++)
            for (size_t k = 0; k < (zipccl_strategies[s]->chunked ? 3 : 1); k++)
                for (size_t n = 0; n < ncounts; n++) {
                    struct coll_case c = {.op = ops[o],
                                          .strategy = zipccl_strategies[s],
                                          .count = list[n],
                                          .nchunks = nchunks[k],
                                          .channels = nchunks[k] == 2 ? 3 : 1};

                    /* Chunks of a few elements are all alike, and large ones take long. */
                    if ((nchunks[k] > 1 && list[n] < 33) ||
                        (nchunks[k] == 2 && (SANITIZED || list[n] > 20011)))
                        continue;
                    if (can_build(w, &c))
                        run_inputs(w, checked, c, totals);
                }
}

static void run_checked(struct world *w, struct totals *totals)
{
    struct checked checked;

    checked_open(&checked, w);
    run_world(w, &checked, totals);
    checked_close(&checked, w);
}

int main(void)
{
    static const uint32_t worlds[][2] = {{1, 1}, {1, 2}, {1, 3}, {1, 4}, {1, 5}, {1, 6},
                                         {1, 7}, {1, 8}, {1, 9}, {2, 2}, {2, 4}, {3, 3}};
    static const uint32_t odd_nodes[] = ODD_NODES, mixed_nodes[] = MIXED_NODES;
    struct totals totals = {0, 0, 0};
    struct world w;

    /* Keep freed memory: faulting it in anew for each case takes most of the time. */
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    world_open(&w, sizeof odd_nodes / sizeof *odd_nodes, odd_nodes);
    run_checked(&w, &totals);
    world_close(&w);
    world_open(&w, sizeof mixed_nodes / sizeof *mixed_nodes, mixed_nodes);
    run_checked(&w, &totals);
    world_close(&w);
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        if (SANITIZED && (worlds[i][1] == 4 || worlds[i][1] >= 5))
            continue;
        world_open_even(&w, worlds[i][0], worlds[i][1]);
        run_checked(&w, &totals);
        world_close(&w);
    }
    printf("%u cases, %u failures, %u raw resends\n", totals.cases, totals.failures,
           totals.resends);
    /* Inputs that overflow must have been met, or the resends were not tested. */
    return totals.failures == 0 && totals.resends > 0 ? 0 : 1;
}
