/*
 * test_split.c - messages whose first part leaves early: cuts, bits of every type, bytes, voids
 *
 * A plain program.  Blocks of every type and of kinds that stand, that do not (constants first, zeros)
 * and that do not shrink go through both split strategies over the check transport, with the CPU's
 * exec and with one that knows no parts; results are compared bit by bit, bytes with the lowering.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/lower.h"
#include "core/split.h"
#include "core/tests/coll_world.h"
#include "core/transport_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_RANKS 4u

enum data { SMOOTH, CONSTANT_FIRST, ZEROS, NOISE, BY_SOURCE, NUM_DATA };

static const enum zipccl_dtype dtypes[] = {ZIPCCL_BFLOAT16, ZIPCCL_FLOAT16, ZIPCCL_FLOAT32,
                                           ZIPCCL_FLOAT8_E4M3, ZIPCCL_FLOAT8_E5M2};

static unsigned failures;

static void fail(const char *what)
{
    fprintf(stderr, "FAILED: %s\n", what);
    failures++;
}

struct test {
    struct world *world;
    struct zipccl_check_hub *hub;
    struct zipccl_transport *t[MOST_RANKS];
    struct zipccl_exec *exec[MOST_RANKS];
    const struct zipccl_strategy *strategy;
    struct zipccl_call call;
    enum data data;
    bool in_place, check_bytes;
    uint32_t nchunks, capacity_class;
    size_t splits[MOST_RANKS * MOST_RANKS];
    struct zipccl_run_stats stats[MOST_RANKS];
};

static uint32_t next(uint32_t *x)
{
    return *x = *x * 1664525u + 1013904223u;
}

/* A bell curve in the exponent's neighbourhood, any bits below it. */
static uint64_t smooth(enum zipccl_dtype dtype, uint32_t *x)
{
    uint32_t r = next(x) >> 8, octaves = 0, low = next(x) >> 7;

    while (octaves < 12 && (r >> octaves & 1) != 0)
        octaves++;
    switch (dtype) {
    case ZIPCCL_BFLOAT16: return (120u - octaves) << 7 | (low & 0x807f);
    case ZIPCCL_FLOAT16: return (16u - octaves) << 10 | (low & 0x83ff);
    case ZIPCCL_FLOAT32: return (uint64_t)(120u - octaves) << 23 | (low & 0x7fffff);
    case ZIPCCL_FLOAT8_E4M3: return (12u - octaves) << 3 | (low & 0x87);
    default: return (20u - octaves) << 2 | (low & 0x83);
    }
}

/* Elements [0, n) of what 'src' has for 'dst'. */
static void fill(const struct test *t, uint32_t src, uint32_t dst, size_t n, char *out)
{
    enum zipccl_dtype dtype = t->call.dtype;
    bool shared = t->call.op == ZIPCCL_ALL_GATHER || t->call.op == ZIPCCL_BROADCAST;
    uint32_t x = 77 + 31 * src + (shared ? 0 : 7 * dst);
    size_t size = zipccl_dtype_size(dtype);
    enum data data = t->data;

    if (data == BY_SOURCE)
        data = src % 2 == 0 ? NOISE : SMOOTH;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits = smooth(dtype, &x);

        if (data == NOISE)
            bits = (uint64_t)next(&x) << 16 ^ next(&x) >> 9;
        if (data == ZEROS || (data == CONSTANT_FIRST && i < n * 3 / 4))
            bits = data == ZEROS ? 0 : 1;
        memcpy(out + i * size, &bits, size);
    }
}

static size_t pair_n(const struct test *t, uint32_t src, uint32_t dst)
{
    return t->splits[src * t->world->nranks + dst];
}

/* Buffers of one rank. */
struct sides {
    char *send, *recv, *want;
    size_t counts[4][MOST_RANKS], send_n, recv_n;
};

static void open_uneven(const struct test *t, uint32_t rank, struct sides *s)
{
    for (uint32_t p = 0; p < t->world->nranks; p++) {
        s->counts[0][p] = pair_n(t, rank, p);
        s->counts[1][p] = s->send_n;
        s->counts[2][p] = pair_n(t, p, rank);
        s->counts[3][p] = s->recv_n;
        s->send_n += s->counts[0][p];
        s->recv_n += s->counts[2][p];
    }
}

static void open_sides(const struct test *t, uint32_t rank, struct sides *s)
{
    size_t n = t->call.count, size = zipccl_dtype_size(t->call.dtype), nranks = t->world->nranks;
    bool uneven = zipccl_is_uneven(t->call.op);
    bool gathers = t->call.op == ZIPCCL_ALL_GATHER, casts = t->call.op == ZIPCCL_BROADCAST;

    memset(s, 0, sizeof *s);
    if (uneven)
        open_uneven(t, rank, s);
    else
        s->send_n = gathers || casts ? n : n * nranks, s->recv_n = casts ? n : n * nranks;
    s->send = malloc(s->send_n * size + 1);
    s->recv = calloc(s->recv_n + 1, size);
    s->want = malloc(s->recv_n * size + 1);
    if (s->send == NULL || s->recv == NULL || s->want == NULL)
        abort();
    for (uint32_t p = 0; p < nranks; p++)
        if (uneven) {
            fill(t, rank, p, s->counts[0][p], s->send + s->counts[1][p] * size);
            fill(t, p, rank, s->counts[2][p], s->want + s->counts[3][p] * size);
        } else if (casts) {
            fill(t, t->call.root, 0, n, s->want);
        } else {
            fill(t, p, rank, n, s->want + p * n * size);
            if (!gathers)
                fill(t, rank, p, n, s->send + p * n * size);
        }
    if (gathers || casts)
        fill(t, rank, 0, n, s->send);
    if (t->in_place && gathers)
        memcpy(s->recv + rank * n * size, s->send, n * size);
    else if (t->in_place)
        memcpy(s->recv, s->send, n * size);
}

static bool run_rank(void *context, uint32_t rank)
{
    struct test *t = context;
    struct zipccl_exec *exec = t->exec[rank];
    size_t size = zipccl_dtype_size(t->call.dtype);
    struct zipccl_plan *plan = NULL;
    struct zipccl_run run;
    struct sides s;
    zipccl_status status;
    bool right;

    if (t->strategy->build(&t->call, t->world->topology, 2, t->nchunks, t->capacity_class, 0,
                           &plan) != ZIPCCL_OK)
        return false;
    open_sides(t, rank, &s);
    run = (struct zipccl_run){.plan = plan,
                              .send = s.send,
                              .recv = s.recv,
                              .send_counts = s.counts[0],
                              .send_displs = s.counts[1],
                              .recv_counts = s.counts[2],
                              .recv_displs = s.counts[3],
                              .tx = exec->ops->alloc(exec, plan->tx_bytes),
                              .rx = exec->ops->alloc(exec, plan->rx_bytes)};
    if (t->in_place && t->call.op == ZIPCCL_ALL_GATHER)
        run.send = s.recv + rank * t->call.count * size;
    else if (t->in_place)
        run.send = s.recv;
    memset(run.tx, 0x5a, plan->tx_bytes);
    memset(run.rx, 0x5a, plan->rx_bytes);
    status = zipccl_execute(&run, t->t[rank], exec, &t->stats[rank]);
    right = status == ZIPCCL_OK && memcmp(s.recv, s.want, s.recv_n * size) == 0;
    exec->ops->free(exec, run.tx);
    exec->ops->free(exec, run.rx);
    zipccl_plan_destroy(plan);
    free(s.send);
    free(s.recv);
    free(s.want);
    return right;
}

/* Sizes of whole messages, for the lowering. */
struct sizing {
    const struct test *t;
    const struct zipccl_plan *plan;
    uint32_t chunk;
    uint64_t bytes[MOST_RANKS * MOST_RANKS];
};

static zipccl_status encode_again(const struct sizing *s, uint32_t src, uint32_t dst, size_t n,
                                  size_t capacity, size_t *nbytes)
{
    enum zipccl_dtype dtype = s->t->call.dtype;
    size_t first = s->chunk * s->plan->chunk_n, size = zipccl_dtype_size(dtype);
    uint32_t peer = dst == UINT32_MAX ? 0 : dst;
    bool uneven = zipccl_is_uneven(s->t->call.op);
    size_t all = uneven ? pair_n(s->t, src, peer) : s->t->call.count;
    char *block = malloc(all * size), *wire = malloc(zipccl_bound(dtype, n));
    void *scratch = aligned_alloc(64, (zipccl_codec_scratch_bytes() + 63) / 64 * 64);
    zipccl_status status;

    if (block == NULL || wire == NULL || scratch == NULL)
        abort();
    fill(s->t, src, peer, all, block);
    status = zipccl_encode(zipccl_isa_best(), dtype, block + first * size, n, wire, capacity,
                           scratch, nbytes);
    free(block);
    free(wire);
    free(scratch);
    return status;
}

static size_t message_bytes(void *context, uint32_t src, uint32_t dst, size_t n)
{
    const struct sizing *s = context;
    size_t nbytes = 0;

    encode_again(s, src, dst, n, zipccl_bound(s->t->call.dtype, n), &nbytes);
    return nbytes;
}

static int message_overflows(void *context, uint32_t src, uint32_t dst, size_t n, size_t capacity)
{
    size_t nbytes;

    return encode_again(context, src, dst, n, capacity, &nbytes) == ZIPCCL_ERR_OVERFLOW;
}

static void add_flow(void *context, uint32_t src, uint32_t dst, uint64_t nbytes)
{
    struct sizing *s = context;

    s->bytes[src * s->t->world->nranks + dst] += nbytes;
}

static bool bytes_right(struct test *t, const struct zipccl_plan *plan)
{
    struct sizing s = {.t = t, .plan = plan};
    struct zipccl_wire_sizes sizes = {
        .bytes = message_bytes, .context = &s, .splits = t->splits, .overflows = message_overflows};
    uint32_t rounds, nranks = t->world->nranks;
    bool right = true;

    for (uint32_t i = 0; i < plan->nsteps; i++) {
        s.chunk = plan->steps[i].chunk;
        if (plan->steps[i].kind != ZIPCCL_STEP_EXCHANGE && plan->steps[i].kind != ZIPCCL_STEP_SIZES)
            continue;
        if (zipccl_lower(plan, i, t->world->topology, &sizes, add_flow, &s, &rounds) != ZIPCCL_OK)
            return false;
    }
    for (uint32_t i = 0; i < nranks * nranks; i++) {
        uint64_t got = zipccl_transport_mem_bytes(t->world->t[0], i / nranks, i % nranks);

        if (got != s.bytes[i])
            fprintf(stderr, "%u -> %u: %llu bytes, the lowering says %llu\n", i / nranks,
                    i % nranks, (unsigned long long)got, (unsigned long long)s.bytes[i]);
        right = right && got == s.bytes[i];
    }
    return right;
}

static void run_test(struct test *t)
{
    uint32_t nranks = t->world->nranks;
    struct zipccl_plan *plan = NULL;
    struct zipccl_error error = {""};
    bool ok;

    for (uint32_t i = 0; i < nranks * nranks; i++)
        t->splits[i] = t->call.op == ZIPCCL_SENDRECV && i % nranks != (i / nranks + 1) % nranks ? 0
                       : i % 3 == 2 ? t->call.count / 90 /* too short for parts, or for a message */
                                    : t->call.count - 1000 * (i / nranks);
    if (!t->strategy->serves(&t->call) ||
        t->strategy->build(&t->call, t->world->topology, 2, t->nchunks, t->capacity_class, 0,
                           &plan) != ZIPCCL_OK) {
        fail("a split plan");
        return;
    }
    if (plan->steps[0].part != ZIPCCL_PART_EARLY ||
        zipccl_plan_validate(plan, t->world->topology, t->in_place, t->splits, 0, &error) !=
            ZIPCCL_OK) {
        fprintf(stderr, "%s\n", error.text);
        fail("it is valid");
    }
    zipccl_transport_mem_reset_bytes(t->world->t[0]);
    ok = world_run(t->world, run_rank, t);
    ok = (!t->check_bytes || bytes_right(t, plan)) && ok;
    if (!ok) {
        fprintf(stderr, "%s %s, %s, data %d, %u chunks, class %u%s: ", zipccl_op_name(t->call.op),
                zipccl_dtype_name(t->call.dtype), plan->strategy, (int)t->data, t->nchunks,
                t->capacity_class, t->in_place ? ", in place" : "");
        fail("bits and bytes");
    }
    zipccl_plan_destroy(plan);
}

static void run_cases(struct test *t)
{
    static const enum zipccl_op ops[] = {ZIPCCL_ALL_GATHER, ZIPCCL_ALLTOALL, ZIPCCL_ALLTOALLV,
                                         ZIPCCL_SENDRECV, ZIPCCL_BROADCAST};
    static const char *const names[] = {"fixed split", "exact split"};

    for (unsigned k = 0; k < 5 * 2 * 5 * NUM_DATA; k++) {
        /* Types and data by turns: each case codes its blocks several times. */
        if ((k / 10 + k) % (SANITIZED ? 5 : 2) != 0)
            continue;
        t->call = (struct zipccl_call){.op = ops[k % 5],
                                       .dtype = dtypes[k / 10 % 5],
                                       .root = t->world->nranks - 1,
                                       .count = k % 4 == 3 ? 70001 : 32769};
        t->strategy = zipccl_strategy_find(names[k / 5 % 2]);
        t->data = (enum data)(k / 50);
        t->nchunks = k % 4 == 3 ? 2 : 1;
        t->capacity_class = k * 5 % ZIPCCL_NUM_CLASSES;
        t->in_place =
            (t->call.op == ZIPCCL_ALL_GATHER || t->call.op == ZIPCCL_BROADCAST) && k / 10 % 2 == 0;
        run_test(t);
    }
}

static void test_world(uint32_t nnodes, uint32_t ranks_per_node)
{
    struct zipccl_exec_ops plain;
    struct zipccl_error error = {""};
    struct test t = {.check_bytes = true};
    struct world w;

    world_open_even(&w, nnodes, ranks_per_node);
    t.world = &w;
    memcpy(t.exec, w.exec, w.nranks * sizeof *t.exec);
    if (zipccl_transport_check_create(w.t, w.nranks, &t.hub, t.t) != ZIPCCL_OK)
        abort();
    run_cases(&t);
    /* An exec that knows no parts: the same bits, though what is void may differ. */
    plain = *w.exec[0]->ops;
    plain.encode_early = NULL;
    plain.encode_rest = NULL;
    for (uint32_t r = 0; r < w.nranks; r++)
        w.exec[r]->ops = &plain;
    t.check_bytes = false;
    run_cases(&t);
    for (uint32_t r = 0; r < w.nranks; r++)
        t.t[r]->ops->destroy(t.t[r]);
    if (zipccl_transport_check_close(t.hub, &error) != ZIPCCL_OK)
        fail(error.text);
    world_close(&w);
}

/* Cuts lie within messages and grow with n; short messages have none. */
static void test_cuts(void)
{
    for (unsigned d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (size_t n = 1; n < 3000000; n += n < 40000 ? 997 : 77777) {
            struct zipccl_split_cut cut = zipccl_split_of(dtypes[d], n);
            size_t most = zipccl_capacity(dtypes[d], n, ZIPCCL_NUM_CLASSES - 1);

            if ((cut.early > 0) != (n >= ZIPCCL_SPLIT_LEAST_N) || (cut.head > 0) != (cut.early > 0))
                fail("messages of two superblocks are cut");
            if (cut.head + cut.early >= most || 2 * cut.early_n > n)
                fail("a cut lies within the message");
        }
    if (zipccl_split_of(ZIPCCL_INT32, 1 << 20).early != 0)
        fail("what is not coded is not cut");
}

int main(void)
{
    test_cuts();
    test_world(1, 2);
    test_world(2, SANITIZED ? 1 : 2);
    printf("%u failures\n", failures);
    return failures != 0;
}
