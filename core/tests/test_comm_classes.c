/*
 * test_comm_classes.c - capacity classes of calls with equal counts: agreement, timing, bits
 *
 * Every rank sends other data, in its own time.  After each call each rank notes the class it has
 * come to; all must have noted the same, and changed it at the calls that core/classes.h says.  What
 * arrives is compared with what was sent, and sums with those of an uncompressed communicator.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/comm_state.h"
#include "core/tests/coll_world.h"
#include "core/transport_check.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PERIOD    ZIPCCL_CLASS_PERIOD
#define MAX_CALLS (2 * PERIOD + ZIPCCL_CLASS_RETRY + 2 * PERIOD)

/* Calls [first, last) of 'rank' that carry random bits; all others carry Gaussian values. */
struct trouble {
    uint32_t first, last, rank;
};

/* From call 'first' on, the class is 'now'; NARROWEST: the one that the data fit, which every call has anew;
 * NEXT: the next wider one with more room; NEXT + 1: the one after that. */
enum { NARROWEST = 100, NEXT };
struct expected {
    uint32_t first;
    int now;
};

struct scenario {
    const char *name;
    uint32_t ncalls;
    struct trouble troubles[4];
    struct expected expected[8]; /* ends before a 'first' of 0, but for its first entry */
};

static const struct scenario scenarios[] = {
    {"narrows, widens, narrows",
     13 * PERIOD,
     {{40, 41, 1}, {360, 361, 2}},
     /* An overflow in calls 32 to 63 counts from 64 on and bars for 256 calls, then for 512. */
     {{0, 0}, {32, NARROWEST}, {64, NEXT}, {320, NARROWEST}, {384, NEXT}}},
    {"gives up, tries again",
     MAX_CALLS,
     {{0, 40, 1}},
     {{0, 0}, {32, -1}, {32 + 4096, 0}, {64 + 4096, NARROWEST}}},
    {"gives up for what several ranks saw a part of",
     3 * PERIOD,
     {{0, 3, 0}, {3, 6, 1}, {6, 8, 2}, {7, 8, 1}},
     {{0, 0}, {32, -1}}},
    {"bears a little",
     3 * PERIOD,
     {{0, 3, 0}, {3, 5, 1}, {5, 7, 2}, {6, 7, 1}},
     {{0, 0}, {64, NARROWEST}}},
};

struct job {
    const struct world *world;
    struct zipccl_transport *const *transports;
    const struct scenario *scenario;
    struct zipccl_comm_config config;
    enum zipccl_op op;
    size_t count;
    struct zipccl_comm *comms[MAX_RANKS], *plain[MAX_RANKS];
    bool whole;                   /* messages are of 'count' elements */
    int8_t (*seen)[MAX_CALLS];    /* [MAX_RANKS] */
    uint32_t first_out, last_out; /* calls that no class is worth compressing for; 0: none */
    atomic_uint nnamed;           /* ranks that were told which one differs */
};

static uint32_t mix(uint32_t a, uint32_t b)
{
    uint32_t x = a * 2654435761u ^ b * 40503u;

    x ^= x >> 15;
    return x * 2246822519u;
}

/* What 'src' sends in call 'k', 'n' elements: the same ones but for their signs, so that sizes and sums repeat. */
static void fill(const struct job *job, uint32_t src, uint32_t k, size_t n, uint16_t *out)
{
    struct coll_case c = {.kind = KIND_GAUSS};

    for (unsigned i = 0; i < 4; i++) {
        const struct trouble *t = &job->scenario->troubles[i];

        if (k >= t->first && k < t->last && t->rank == src)
            c.kind = KIND_RANDOM;
    }
    case_block(&c, src, c.kind == KIND_RANDOM ? k : 0, 0, n, out);
    for (size_t i = 0; i < n && k % 2 == 1; i++)
        out[i] ^= 0x8000;
}

static size_t send_n(const struct job *job)
{
    bool whole = job->op == ZIPCCL_REDUCE_SCATTER || job->op == ZIPCCL_ALLTOALL;

    return whole ? job->count * job->world->nranks : job->count;
}

static size_t recv_n(const struct job *job)
{
    bool whole = job->op == ZIPCCL_ALL_GATHER || job->op == ZIPCCL_ALLTOALL;

    return whole ? job->count * job->world->nranks : job->count;
}

static zipccl_status call(const struct job *job, struct zipccl_comm *comm, uint32_t k,
                          const uint16_t *send, uint16_t *recv)
{
    enum zipccl_redop redop = k % 3 == 0 ? ZIPCCL_AVG : ZIPCCL_SUM;

    switch (job->op) {
    case ZIPCCL_ALL_GATHER:
        return zipccl_all_gather(send, recv, job->count, ZIPCCL_BFLOAT16, comm, NULL);
    case ZIPCCL_REDUCE_SCATTER:
        return zipccl_reduce_scatter(send, recv, job->count, ZIPCCL_BFLOAT16, redop, comm, NULL);
    case ZIPCCL_ALL_REDUCE:
        return zipccl_all_reduce(send, recv, job->count, ZIPCCL_BFLOAT16, redop, comm, NULL);
    case ZIPCCL_BROADCAST:
        return zipccl_broadcast(send, recv, job->count, ZIPCCL_BFLOAT16, 1, comm, NULL);
    default: return zipccl_alltoall(send, recv, job->count, ZIPCCL_BFLOAT16, comm, NULL);
    }
}

/* What must arrive at 'rank' in call 'k'. */
static zipccl_status expect(const struct job *job, uint32_t rank, uint32_t k, const uint16_t *send,
                            uint16_t *want)
{
    size_t n = job->count;
    uint16_t *all = malloc((send_n(job) + 1) * sizeof *all);

    if (all == NULL)
        abort();
    if (job->op == ZIPCCL_BROADCAST)
        fill(job, 1, k, n, want);
    for (uint32_t p = 0; p < job->world->nranks; p++) {
        fill(job, p, k, send_n(job), all);
        if (job->op == ZIPCCL_ALL_GATHER)
            memcpy(want + p * n, all, n * sizeof *all);
        else if (job->op == ZIPCCL_ALLTOALL)
            memcpy(want + p * n, all + rank * n, n * sizeof *all);
    }
    free(all);
    return zipccl_is_reduction(job->op) ? call(job, job->plain[rank], k, send, want) : ZIPCCL_OK;
}

static bool one_call(struct job *job, uint32_t rank, uint32_t k)
{
    size_t ns = send_n(job), nr = recv_n(job), own = 0;
    uint16_t *sent = malloc((ns + 1) * sizeof *sent), *buf = malloc((ns + nr + 1) * sizeof *buf);
    uint16_t *want = malloc((nr + 1) * sizeof *want), *send = buf, *recv = buf + ns;
    zipccl_status status;
    bool ok;

    if (sent == NULL || buf == NULL || want == NULL)
        abort();
    if (k % 2 == 1 && job->op != ZIPCCL_ALLTOALL) { /* in place */
        own = job->op == ZIPCCL_ALL_GATHER || job->op == ZIPCCL_REDUCE_SCATTER ? rank * job->count
                                                                               : 0;
        recv = buf + (job->op == ZIPCCL_REDUCE_SCATTER ? own : 0);
        send = buf + (job->op == ZIPCCL_ALL_GATHER ? own : 0);
    }
    fill(job, rank, k, ns, sent);
    memcpy(send, sent, ns * sizeof *sent);
    for (uint32_t i = mix(rank, k) % 64; i > 48; i--) /* now and then one is late */
        sched_yield();
    status = call(job, job->comms[rank], k, send, recv);
    ok = status == ZIPCCL_OK && expect(job, rank, k, sent, want) == ZIPCCL_OK;
    if (!ok)
        fprintf(stderr, "rank %u, call %u: %s\n", rank, k, zipccl_comm_error(job->comms[rank]));
    if (ok && memcmp(recv, want, nr * sizeof *want) != 0) {
        fprintf(stderr, "rank %u, call %u: wrong bits\n", rank, k);
        ok = false;
    }
    free(sent);
    free(buf);
    free(want);
    return ok;
}

static bool open_one(void *context, uint32_t rank)
{
    struct job *job = context;
    struct zipccl_comm_config plain = job->config;

    plain.mode = ZIPCCL_MODE_RAW;
    plain.strategy = job->config.strategy == NULL                ? NULL
                     : strstr(job->config.strategy, "two-level") ? "raw two-level"
                                                                 : "raw direct";
    return zipccl_comm_create(job->transports[rank], job->world->exec[rank], &job->config,
                              &job->comms[rank], NULL) == ZIPCCL_OK &&
           zipccl_comm_create(job->transports[rank], job->world->exec[rank], &plain,
                              &job->plain[rank], NULL) == ZIPCCL_OK;
}

/* Only the calls that do not pay are priced out, and those are not compressed. */
static bool price_right(const struct job *job, uint32_t rank, uint32_t k,
                        const struct zipccl_comm_class *c)
{
    const struct zipccl_plan *plan = zipccl_comm_last_plan(job->comms[rank]);
    bool out = k >= job->first_out && k < job->last_out;

    if (c->priced_out == out && !(out && plan->compressed))
        return true;
    fprintf(stderr, "rank %u, call %u, class %d: plan \"%s\"\n", rank, k, c->now, plan->strategy);
    return false;
}

static bool all_calls(void *context, uint32_t rank)
{
    struct job *job = context;
    struct zipccl_comm_class c;

    for (uint32_t k = 0; k < job->scenario->ncalls; k++) {
        if (!one_call(job, rank, k) || !zipccl_comm_get_class(job->comms[rank], 0, &c)) {
            zipccl_comm_abort(job->comms[rank]);
            return false;
        }
        job->seen[rank][k] = (int8_t)c.now;
        if (!price_right(job, rank, k, &c)) {
            zipccl_comm_abort(job->comms[rank]);
            return false;
        }
    }
    return c.op == job->op && c.count == job->count && c.peer == -1 &&
           c.calls == job->scenario->ncalls && !zipccl_comm_get_class(job->comms[rank], 1, &c);
}

/* The class after 'narrowest' and wider ones, 'times', have overflowed; 'first' is the one that came first. */
static int next_of(const struct job *job, int narrowest, int times, int first)
{
    if (!job->whole)
        return first < narrowest && first >= narrowest - ZIPCCL_CLASS_STRIDE ? first
                                                                             : narrowest - 1;
    for (int cls = narrowest;; cls = zipccl_class_roomier(ZIPCCL_BFLOAT16, job->count, cls))
        if (times-- == 0)
            return cls;
}

/* The classes that all ranks noted are equal and those of the scenario; 'root' decides a broadcast. */
static bool classes_right(const struct job *job)
{
    const struct expected *e = job->scenario->expected;
    int narrowest = ZIPCCL_NO_CLASS, next = ZIPCCL_NO_CLASS;

    for (uint32_t k = 0; k < job->scenario->ncalls; k++) {
        int now;

        if (e[1].first != 0 && k == e[1].first)
            e++;
        if (e->now == NARROWEST && narrowest == ZIPCCL_NO_CLASS) {
            narrowest = job->seen[0][k];
            if (narrowest < ZIPCCL_CLASS_SETTLED)
                return false;
        }
        if (e->now == NEXT && next == ZIPCCL_NO_CLASS)
            next = job->seen[0][k];
        now = e->now < NARROWEST    ? e->now
              : e->now == NARROWEST ? narrowest
                                    : next_of(job, narrowest, e->now - NARROWEST, next);
        for (uint32_t r = 0; r < job->world->nranks; r++)
            if (job->seen[r][k] != now) {
                fprintf(stderr, "call %u: class %d on rank %u, not %d\n", k, job->seen[r][k], r,
                        now);
                return false;
            }
    }
    return true;
}

static bool close_one(void *context, uint32_t rank)
{
    struct job *job = context;

    zipccl_comm_destroy(job->comms[rank]);
    zipccl_comm_destroy(job->plain[rank]);
    return true;
}

/* How the calls travel. */
struct path {
    enum zipccl_op op;
    const char *strategy;
    size_t count;
    uint32_t nchunks, nodes, per_node;
};

static const struct path paths[] = {
    {ZIPCCL_ALL_GATHER, "fixed ring", 3001, 1, 1, 3},
    {ZIPCCL_ALL_GATHER, "fixed two-level", 3001, 2, 2, 2},
    {ZIPCCL_ALL_GATHER, "fixed direct", 4097, 3, 1, 3},
    {ZIPCCL_ALLTOALL, "fixed direct", 2049, 1, 1, 3},
    {ZIPCCL_ALLTOALL, "fixed two-level", 2049, 1, 2, 2},
    {ZIPCCL_REDUCE_SCATTER, "fixed two-level", 2047, 1, 2, 2},
    {ZIPCCL_REDUCE_SCATTER, "fixed direct", 2047, 2, 1, 3},
    {ZIPCCL_ALL_REDUCE, "fixed two-level", 8191, 1, 2, 2},
    {ZIPCCL_ALL_REDUCE, "fixed direct", 6001, 1, 1, 3},
};

static bool run_scenario(const struct path *path, const struct scenario *scenario, bool checked)
{
    static int8_t seen[MAX_RANKS][MAX_CALLS];
    struct zipccl_transport *checks[MAX_RANKS];
    struct zipccl_check_hub *hub = NULL;
    struct world w;
    struct job job = {.world = &w,
                      .transports = w.t,
                      .scenario = scenario,
                      .op = path->op,
                      .count = path->count,
                      .whole = path->nchunks == 1 && path->nodes == 1 &&
                               (path->op == ZIPCCL_ALL_GATHER || path->op == ZIPCCL_ALLTOALL),
                      .seen = seen};
    struct zipccl_error error = {""};
    bool ok;

    world_open_even(&w, path->nodes, path->per_node);
    if (checked) {
        if (zipccl_transport_check_create(w.t, w.nranks, &hub, checks) != ZIPCCL_OK)
            abort();
        job.transports = checks;
    }
    zipccl_comm_config_init(&job.config);
    job.config.strategy = path->strategy;
    job.config.nchunks = path->nchunks;
    ok = world_run(&w, open_one, &job) && world_run(&w, all_calls, &job) && classes_right(&job);
    world_run(&w, close_one, &job);
    for (uint32_t r = 0; checked && r < w.nranks; r++)
        checks[r]->ops->destroy(checks[r]);
    if (checked && zipccl_transport_check_close(hub, &error) != ZIPCCL_OK) {
        fprintf(stderr, "%s\n", error.text);
        ok = false;
    }
    world_close(&w);
    if (!ok)
        fprintf(stderr, "%s, \"%s\", %s%s\n", zipccl_op_name(path->op), path->strategy,
                scenario->name, checked ? ", checked" : "");
    return ok;
}

/* A long run for one path only. */
static bool test_scenarios(unsigned *nruns)
{
    bool ok = true;

    for (unsigned i = 0; i < sizeof paths / sizeof *paths; i++)
        for (unsigned k = 0; k < sizeof scenarios / sizeof *scenarios; k++) {
            if (scenarios[k].ncalls > 1000 && i % 5 != SANITIZED)
                continue;
            if (SANITIZED && (i + k) % 3 != 0)
                continue;
            ok = run_scenario(&paths[i], &scenarios[k], (i + k) % 2) && ok;
            ++*nruns;
        }
    return ok;
}

/*
 * Where the codec takes some of the raw time, ratios above 1 / (1 - it) pay: here those of the class before settled
 * and narrower ones.  Once all of them are barred calls go uncompressed, until the last bar has passed.
 */
static bool test_price(enum zipccl_op op)
{
    static const struct scenario down = {
        "is not worth it",
        14 * PERIOD,
        {{40, 41, 1}, {70, 71, 0}, {100, 101, 2}},
        {{0, 0}, {32, NARROWEST}, {64, NEXT}, {96, NEXT + 1}, {128, NEXT + 2}, {416, NARROWEST}}};
    static int8_t seen[MAX_RANKS][MAX_CALLS];
    struct world w;
    struct job job = {.world = &w,
                      .transports = w.t,
                      .scenario = &down,
                      .op = op,
                      .count = 40001,
                      .whole = true,
                      .seen = seen,
                      .first_out = 128,
                      .last_out = 384};
    double room = 0, codec;
    bool ok;

    for (uint32_t c = ZIPCCL_CLASS_SETTLED - 2; c < ZIPCCL_CLASS_SETTLED; c++)
        room += (double)zipccl_capacity(ZIPCCL_BFLOAT16, job.count, c) / 2;
    codec = 1 - room / (2.0 * (double)job.count);
    world_open_even(&w, 1, 3);
    zipccl_comm_config_init(&job.config);
    /* Two blocks to receive, one or two to encode and two to decode; one chunk, direct. */
    job.config.params.nvlink_Bps = 1e9;
    job.config.params.nvlink_alpha_s = 1;
    job.config.params.codec_launch_s = 0;
    job.config.params.copy_Bps = 1e15;
    job.config.params.encode_Bps = op == ZIPCCL_ALL_GATHER ? 1e9 / codec : 2e9 / codec;
    job.config.params.decode_Bps = 2e9 / codec;
    ok = world_run(&w, open_one, &job) && world_run(&w, all_calls, &job) && classes_right(&job);
    world_run(&w, close_one, &job);
    world_close(&w);
    if (!ok)
        fprintf(stderr, "%s, %s\n", zipccl_op_name(op), down.name);
    return ok;
}

/* Calls until a period has ended, of which rank 1 alone sees overflows. */
static bool one_period(struct job *job, uint32_t rank)
{
    for (uint32_t k = 0; k < PERIOD; k++)
        if (!one_call(job, rank, k))
            return false;
    return true;
}

static struct zipccl_even_class *newest(struct zipccl_comm *comm)
{
    return (struct zipccl_even_class *)comm->classes.newest;
}

/* A rank that decides from what it has seen alone is found out at the next call, on every rank. */
static bool decides_alone(void *context, uint32_t rank)
{
    struct job *job = context;
    struct zipccl_comm *comm = job->comms[rank];
    uint16_t *x = calloc(job->count * MAX_RANKS, sizeof *x);
    zipccl_status status;

    if (x == NULL || !one_period(job, rank))
        abort();
    if (rank == 1)
        zipccl_class_decide(&newest(comm)->state, newest(comm)->state.seen);
    status = call(job, comm, PERIOD, x + rank * job->count, x);
    free(x);
    return status != ZIPCCL_OK;
}

/* A class that differs without a decision is named at the next one. */
static bool differs(void *context, uint32_t rank)
{
    struct job *job = context;
    struct zipccl_comm *comm = job->comms[rank];
    uint16_t *x = calloc(job->count * MAX_RANKS, sizeof *x);
    zipccl_status status;

    if (x == NULL || !one_period(job, rank))
        abort();
    if (rank == 1)
        newest(comm)->state.bar[2] *= 2;
    status = call(job, comm, PERIOD, x + rank * job->count, x);
    free(x);
    /* Whoever finds out first aborts the others, who may not have looked yet. */
    if (status == ZIPCCL_ERR_MISMATCH && strstr(zipccl_comm_error(comm), "rank 1 ") != NULL)
        atomic_fetch_add(&job->nnamed, 1);
    else if (status != ZIPCCL_ERR_ABORTED)
        return false;
    return true;
}

static bool test_found_out(rank_fn *fn, unsigned least_named)
{
    static const struct scenario quiet = {"one rank", PERIOD, {{3, 4, 1}}, {{0, 0}}};
    struct world w;
    struct job job = {
        .world = &w, .transports = w.t, .scenario = &quiet, .op = ZIPCCL_ALL_GATHER, .count = 3001};
    bool ok;

    world_open_even(&w, 1, 3);
    zipccl_comm_config_init(&job.config);
    job.config.strategy = "fixed ring";
    ok = world_run(&w, open_one, &job) && world_run(&w, fn, &job) && job.nnamed >= least_named;
    world_run(&w, close_one, &job);
    world_close(&w);
    return ok;
}

/* Of rank 1: a call before the period of which nothing is compressed ends in the midst of it. */
static bool ends_late(struct zipccl_exec *exec, const void *owner, struct zipccl_ended_call *out)
{
    static const void *told;

    (void)exec;
    if (told == owner || newest((struct zipccl_comm *)(uintptr_t)owner) == NULL)
        return false;
    told = owner;
    *out = (struct zipccl_ended_call){.op = ZIPCCL_ALL_GATHER,
                                      .dtype = ZIPCCL_BFLOAT16,
                                      .count = 3001,
                                      .even = true,
                                      .fixed = true,
                                      .stats = {.fit = ZIPCCL_CLASS_SETTLED}};
    return true;
}

/* What one rank hears late decides nothing by itself. */
static bool test_late(void)
{
    static const struct scenario quiet = {"late", PERIOD + 2, {{0, 0, 0}}, {{0, 0}}};
    static int8_t seen[MAX_RANKS][MAX_CALLS];
    struct world w;
    struct job job = {.world = &w,
                      .transports = w.t,
                      .scenario = &quiet,
                      .op = ZIPCCL_ALL_GATHER,
                      .count = 3001,
                      .seen = seen,
                      .last_out = PERIOD + 2};
    struct zipccl_exec_ops ops;
    const struct zipccl_exec_ops *own;
    bool ok;

    world_open_even(&w, 1, 3);
    own = w.exec[1]->ops;
    ops = *own;
    ops.ended = ends_late;
    w.exec[1]->ops = &ops;
    zipccl_comm_config_init(&job.config);
    job.config.strategy = "raw direct";
    job.config.learning = ZIPCCL_LEARN_SIZES;
    ok = world_run(&w, open_one, &job) && world_run(&w, all_calls, &job) && classes_right(&job);
    world_run(&w, close_one, &job);
    w.exec[1]->ops = own;
    world_close(&w);
    if (!ok)
        fprintf(stderr, "what one rank heard late\n");
    return ok;
}

int main(void)
{
    unsigned nruns = 0;
    bool ok = test_scenarios(&nruns);

    ok = test_price(ZIPCCL_ALL_GATHER) && ok;
    ok = (RACE_CHECKED || test_price(ZIPCCL_ALLTOALL)) && ok;
    ok = test_late() && ok;
    ok = test_found_out(decides_alone, 0) && ok;
    ok = test_found_out(differs, 1) && ok;
    printf("%u runs of capacity classes: %s\n", nruns, ok ? "ok" : "FAILED");
    return ok ? 0 : 1;
}
