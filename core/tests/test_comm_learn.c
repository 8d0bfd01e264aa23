/*
 * test_comm_learn.c - what even calls learn of ratios and times: agreement, bounds, bits
 *
 * Each rank's exec has a clock of its own that says what a scenario wants.  After each call each rank
 * notes digests of its plan and of what arrived: plans must be those of all other ranks, and what
 * arrived what had arrived before.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/comm_state.h"
#include "core/tests/coll_world.h"
#include "core/transport_check.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NRANKS    4u
#define PERIOD    ZIPCCL_CLASS_PERIOD
#define MAX_CALLS 800u
#define MAX_KINDS 6u /* of calls */

struct job;

/* An exec's function table whose clock lies. */
struct liar {
    struct zipccl_exec_ops ops; /* first: an exec's 'ops' points to it */
    const struct job *job;
    uint32_t rank, nreads;
    uint64_t now;
};

/* A call of 'kind' that is timed, 'n' after the first and 'ntrials' trials of such calls. */
struct timed {
    uint32_t rank, n;
    int kind;
    uint64_t ntrials;
};

/* Nanoseconds that it is to have taken. */
typedef uint64_t time_fn(const struct timed *call);

struct job {
    const struct world *world;
    struct zipccl_transport *const *transports;
    struct zipccl_comm_config config;
    struct zipccl_call calls[MAX_KINDS];
    uint32_t ncalls, nkinds;
    time_fn *time;
    bool uneven;  /* an alltoallv of other splits on each rank after each call */
    bool special; /* elements of other than Gaussian values: zeros but for one in eight */
    struct zipccl_comm *comms[NRANKS];
    struct liar liars[NRANKS];
    uint64_t plans[NRANKS][MAX_CALLS], results[NRANKS][MAX_CALLS];
    int8_t kinds[NRANKS][MAX_CALLS];
};

static uint32_t mix(uint32_t a, uint32_t b)
{
    uint32_t x = a * 2654435761u ^ b * 40503u;

    x ^= x >> 15;
    x *= 2246822519u;
    return x ^ x >> 13;
}

static uint64_t lying_clock(struct zipccl_exec *e)
{
    struct liar *liar = (struct liar *)(uintptr_t)e->ops;
    const struct zipccl_comm *comm = liar->job->comms[liar->rank];
    const struct zipccl_even_class *last = (struct zipccl_even_class *)comm->classes.newest;
    struct timed call = {liar->rank, liar->nreads / 2, zipccl_comm_kind_of(comm->last),
                         last->trials.ntrials};

    if (liar->nreads % 2 == 1)
        liar->now += liar->job->time(&call);
    liar->nreads++;
    return liar->now;
}

/* nbytes  what is after the last multiple of 8 is left out */
static uint64_t digest(const void *bytes, size_t nbytes)
{
    uint64_t hash = ZIPCCL_COMM_HASH_START, word;

    for (size_t i = 0; i + 8 <= nbytes; i += 8) {
        memcpy(&word, (const char *)bytes + i, 8);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    return hash;
}

static void fill(const struct job *job, uint32_t rank, size_t n, uint16_t *out)
{
    struct coll_case c = {.kind = KIND_GAUSS};

    case_block(&c, rank, 1, 0, n, out);
    for (size_t i = 0; i < n && job->special; i++)
        out[i] = i % 8 == 0 ? out[i] : 0;
}

static zipccl_status make_call(struct zipccl_comm *comm, const struct zipccl_call *c,
                               const void *send, void *recv)
{
    switch (c->op) {
    case ZIPCCL_ALL_GATHER: return zipccl_all_gather(send, recv, c->count, c->dtype, comm, NULL);
    case ZIPCCL_REDUCE_SCATTER:
        return zipccl_reduce_scatter(send, recv, c->count, c->dtype, c->redop, comm, NULL);
    case ZIPCCL_ALL_REDUCE:
        return zipccl_all_reduce(send, recv, c->count, c->dtype, c->redop, comm, NULL);
    case ZIPCCL_BROADCAST:
        return zipccl_broadcast(send, recv, c->count, c->dtype, c->root, comm, NULL);
    default: return zipccl_alltoall(send, recv, c->count, c->dtype, comm, NULL);
    }
}

/* True if what arrived in a call that only moves data is what was sent. */
static bool arrived(const struct job *job, const struct zipccl_call *c, uint32_t rank,
                    const uint16_t *recv)
{
    size_t n = c->count, room = n * NRANKS;
    uint16_t *sent = malloc(room * sizeof *sent);
    bool ok = true;

    if (sent == NULL)
        abort();
    for (uint32_t p = 0; p < NRANKS; p++) {
        fill(job, p, room, sent);
        if (c->op == ZIPCCL_ALL_GATHER)
            ok = ok && memcmp(recv + p * n, sent, n * sizeof *sent) == 0;
        else if (c->op == ZIPCCL_ALLTOALL)
            ok = ok && memcmp(recv + p * n, sent + rank * n, n * sizeof *sent) == 0;
        else if (c->op == ZIPCCL_BROADCAST && p == c->root)
            ok = ok && memcmp(recv, sent, n * sizeof *sent) == 0;
    }
    free(sent);
    return ok;
}

/* An alltoallv in which every pair moves another number of elements, other ones in each call. */
static bool move_pairs(const struct job *job, uint32_t rank, uint32_t k)
{
    size_t counts[4][NRANKS], nsend = 0, nrecv = 0;
    uint16_t *send, *recv, *want;
    bool ok = true;

    for (uint32_t p = 0; p < NRANKS; p++) {
        counts[0][p] = mix(rank * NRANKS + p, k) % 1500;
        counts[2][p] = mix(p * NRANKS + rank, k) % 1500;
        counts[1][p] = nsend;
        counts[3][p] = nrecv;
        nsend += counts[0][p];
        nrecv += counts[2][p];
    }
    send = malloc((nsend + 1) * sizeof *send);
    recv = malloc((nrecv + 1) * sizeof *recv);
    want = malloc(1500 * sizeof *want);
    if (send == NULL || recv == NULL || want == NULL)
        abort();
    for (uint32_t p = 0; p < NRANKS; p++)
        fill(job, rank, counts[0][p], send + counts[1][p]);
    ok = zipccl_alltoallv(send, counts[0], counts[1], recv, counts[2], counts[3], ZIPCCL_BFLOAT16,
                          job->comms[rank], NULL) == ZIPCCL_OK;
    for (uint32_t p = 0; p < NRANKS && ok; p++) {
        fill(job, p, counts[2][p], want);
        ok = memcmp(recv + counts[3][p], want, counts[2][p] * sizeof *want) == 0;
    }
    free(send);
    free(recv);
    free(want);
    return ok;
}

static bool one_call(struct job *job, uint32_t rank, uint32_t k)
{
    const struct zipccl_call *c = &job->calls[k % job->nkinds];
    struct zipccl_comm *comm = job->comms[rank];
    size_t size = zipccl_dtype_size(c->dtype), room = c->count * NRANKS * size;
    uint16_t *send = calloc(1, room + 8), *recv = calloc(1, room + 8);
    const struct zipccl_plan *plan;
    bool ok;

    if (send == NULL || recv == NULL)
        abort();
    fill(job, rank, room / 2, send);
    for (uint32_t i = mix(rank, k) % 32; i > 28; i--)
        sched_yield();
    ok = make_call(comm, c, send, recv) == ZIPCCL_OK &&
         (c->dtype != ZIPCCL_BFLOAT16 || arrived(job, c, rank, recv));
    if (ok) {
        plan = zipccl_comm_last_plan(comm);
        job->plans[rank][k] = zipccl_plan_digest(plan);
        job->kinds[rank][k] = (int8_t)zipccl_comm_kind_of(plan);
        job->results[rank][k] = digest(recv, room + 8);
        ok = !job->uneven || k % (SANITIZED ? 5 : 1) != 0 || move_pairs(job, rank, k);
    }
    if (!ok)
        fprintf(stderr, "rank %u, call %u: %s\n", rank, k, zipccl_comm_error(comm));
    free(send);
    free(recv);
    return ok;
}

static bool all_calls(void *context, uint32_t rank)
{
    struct job *job = context;

    if (zipccl_comm_create(job->transports[rank], job->world->exec[rank], &job->config,
                           &job->comms[rank], NULL) != ZIPCCL_OK)
        abort();
    for (uint32_t k = 0; k < job->ncalls; k++)
        if (!one_call(job, rank, k)) {
            zipccl_comm_abort(job->comms[rank]);
            return false;
        }
    return true;
}

static bool close_one(void *context, uint32_t rank)
{
    zipccl_comm_destroy(((struct job *)context)->comms[rank]);
    return true;
}

/* All ranks had the same plans, and each the same results whenever it made the same call. */
static bool agreed(const struct job *job)
{
    for (uint32_t k = 0; k < job->ncalls; k++)
        for (uint32_t r = 0; r < NRANKS; r++) {
            uint32_t before = k < job->nkinds ? k : k - job->nkinds;

            if (job->plans[r][k] != job->plans[0][k]) {
                fprintf(stderr, "call %u: rank %u has another plan\n", k, r);
                return false;
            }
            if (job->results[r][k] != job->results[r][before]) {
                fprintf(stderr, "call %u: other bits on rank %u\n", k, r);
                return false;
            }
        }
    return true;
}

/* Rates at which raw and compressed plans take about as long, nearly all of it for bytes. */
static void set_rates(struct zipccl_comm_config *config)
{
    zipccl_comm_config_init(config);
    config->params.nvlink_Bps = config->params.nic_Bps = 1e9;
    config->params.nvlink_alpha_s = config->params.nic_alpha_s = 1e-7;
    config->params.codec_launch_s = config->params.fence_s = 1e-7;
    config->params.encode_Bps = config->params.decode_Bps = 6e9;
}

/* Run the job's calls and look at what all ranks noted; 'look' at the communicators before they go. */
static bool run(struct job *job, uint32_t nodes, bool native, bool checked,
                bool (*look)(const struct job *job))
{
    struct zipccl_transport *checks[NRANKS];
    struct zipccl_check_hub *hub = NULL;
    struct zipccl_transport_ops ops;
    struct zipccl_error error = {""};
    struct world w;
    bool ok;

    world_open_even(&w, nodes, NRANKS / nodes);
    job->world = &w;
    job->transports = w.t;
    ops = *w.t[0]->ops;
    if (!native) {
        ops.native = NULL;
        ops.has_native = NULL;
    }
    for (uint32_t r = 0; r < NRANKS; r++) {
        w.t[r]->ops = &ops;
        job->liars[r] = (struct liar){.ops = *w.exec[r]->ops, .job = job, .rank = r};
        if (job->time != NULL)
            job->liars[r].ops.clock_ns = lying_clock;
        w.exec[r]->ops = &job->liars[r].ops;
    }
    if (checked) {
        if (zipccl_transport_check_create(w.t, w.nranks, &hub, checks) != ZIPCCL_OK)
            abort();
        job->transports = checks;
    }
    ok = world_run(&w, all_calls, job) && agreed(job) && (look == NULL || look(job));
    world_run(&w, close_one, job);
    for (uint32_t r = 0; checked && r < NRANKS; r++)
        checks[r]->ops->destroy(checks[r]);
    if (checked && zipccl_transport_check_close(hub, &error) != ZIPCCL_OK) {
        fprintf(stderr, "%s\n", error.text);
        ok = false;
    }
    world_close(&w);
    return ok;
}

/* The only kind of calls of 'job' has been 'kind' from call 'first' on. */
static bool kind_from(const struct job *job, uint32_t first, int kind)
{
    for (uint32_t k = first; k < job->ncalls; k++)
        if (job->kinds[0][k] != kind && k % PERIOD >= ZIPCCL_TRIAL_CALLS) {
            fprintf(stderr, "call %u: %s\n", k, zipccl_kind_name(job->kinds[0][k]));
            return false;
        }
    return true;
}

/* Rank 1 says anything, rank 2 that all took ages, rank 3 that its clock stands still. */
static uint64_t chaos(const struct timed *c)
{
    if (c->rank == 3)
        return 0;
    return (c->rank == 2 ? 1000000 : 1) *
           (1 + mix(c->rank * 8 + (uint32_t)(c->kind + 1), c->n) % 20000);
}

/* Trials took place. */
static bool tried(const struct job *job)
{
    struct zipccl_comm_learnt learnt;
    uint64_t ntrials = 0;

    for (size_t i = 0; zipccl_comm_get_learnt(job->comms[0], i, &learnt); i++)
        ntrials += learnt.ntrials;
    return ntrials > 0 && !zipccl_comm_get_learnt(job->comms[0], job->nkinds, &learnt);
}

static bool test_agreement(uint32_t nodes, bool native, bool checked)
{
    static struct job job;
    bool ok;

    memset(&job, 0, sizeof job);
    job.calls[0] =
        (struct zipccl_call){.op = ZIPCCL_ALL_GATHER, .dtype = ZIPCCL_BFLOAT16, .count = 4097};
    job.calls[1] = (struct zipccl_call){
        .op = ZIPCCL_ALL_REDUCE, .dtype = ZIPCCL_BFLOAT16, .redop = ZIPCCL_AVG, .count = 8191};
    job.calls[2] = (struct zipccl_call){
        .op = ZIPCCL_REDUCE_SCATTER, .dtype = ZIPCCL_FLOAT32, .redop = ZIPCCL_SUM, .count = 2049};
    job.calls[3] =
        (struct zipccl_call){.op = ZIPCCL_ALLTOALL, .dtype = ZIPCCL_BFLOAT16, .count = 1025};
    job.calls[4] = (struct zipccl_call){
        .op = ZIPCCL_BROADCAST, .dtype = ZIPCCL_BFLOAT16, .root = 2, .count = 4500};
    job.nkinds = SANITIZED ? 3 : 5;
    job.ncalls = job.nkinds * PERIOD * (SANITIZED ? 3 : 5);
    job.time = chaos;
    job.uneven = true;
    set_rates(&job.config);
    ok = run(&job, nodes, native, checked, tried);
    if (!ok)
        fprintf(stderr, "agreement, %u nodes%s%s\n", nodes, native ? ", native" : "",
                checked ? ", checked" : "");
    return ok;
}

static uint64_t slow_codec(const struct timed *c)
{
    return (c->kind == ZIPCCL_PLAN_COMPRESSED ? 900000 : 500000) + c->rank;
}

static uint64_t fast_codec(const struct timed *c)
{
    return (c->kind == ZIPCCL_PLAN_COMPRESSED ? 200000 : 500000) + c->rank;
}

/* Ten percent, of this kind or of that one, from one trial to the next. */
static uint64_t noise(const struct timed *c)
{
    return (c->kind == ZIPCCL_PLAN_COMPRESSED) == (c->ntrials % 2 == 1) ? 500000 : 450000;
}

static struct zipccl_call a_call(enum zipccl_op op)
{
    return (struct zipccl_call){
        .op = op, .dtype = ZIPCCL_BFLOAT16, .redop = ZIPCCL_SUM, .count = 8192};
}

/* Run calls of 'op' that are compressed first if the codec is as fast as 'codec_Bps' says. */
static bool run_one(struct job *job, enum zipccl_op op, double codec_Bps, uint32_t nperiods,
                    time_fn *time)
{
    memset(job, 0, sizeof *job);
    job->calls[0] = a_call(op);
    job->nkinds = 1;
    job->ncalls = nperiods * PERIOD;
    job->time = time;
    set_rates(&job->config);
    job->config.params.encode_Bps = job->config.params.decode_Bps = codec_Bps;
    return run(job, 1, false, false, tried);
}

/* What is compressed first and proves to be slower is not from the fifth call on. */
static bool test_slower(enum zipccl_op op)
{
    static struct job job;
    bool ok = run_one(&job, op, 6e9, SANITIZED ? 3 : 5, slow_codec);

    for (uint32_t k = 0; k < ZIPCCL_TRIAL_OPENING_CALLS; k++)
        ok = ok && job.kinds[0][k] == (k % 2 == 0 ? ZIPCCL_PLAN_COMPRESSED : ZIPCCL_PLAN_RAW);
    for (uint32_t k = ZIPCCL_TRIAL_OPENING_CALLS; k < PERIOD; k++)
        ok = ok && job.kinds[0][k] == ZIPCCL_PLAN_RAW;
    ok = ok && kind_from(&job, PERIOD, ZIPCCL_PLAN_RAW);
    if (!ok)
        fprintf(stderr, "%s: a codec that is slower than said stays in use\n", zipccl_op_name(op));
    return ok;
}

/* What clocks show to be faster by far is in use after its second trial, whatever was predicted. */
static bool test_faster(enum zipccl_op op)
{
    static struct job job;
    uint32_t nperiods = 15;
    bool ok = run_one(&job, op, op == ZIPCCL_ALL_GATHER ? 1e9 : 1.3e9, nperiods, fast_codec) &&
              job.kinds[0][0] == ZIPCCL_PLAN_RAW &&
              kind_from(&job, (nperiods - 1) * PERIOD, ZIPCCL_PLAN_COMPRESSED);

    if (!ok)
        fprintf(stderr, "%s: a codec that is faster than said is not in use\n", zipccl_op_name(op));
    return ok;
}

static bool kept(const struct job *job)
{
    struct zipccl_comm_learnt learnt;

    return zipccl_comm_get_learnt(job->comms[0], 0, &learnt) && learnt.changes == 0 &&
           learnt.ntrials >= 3 && learnt.kind == ZIPCCL_PLAN_COMPRESSED;
}

static bool test_noise(void)
{
    static struct job job;

    memset(&job, 0, sizeof job);
    job.calls[0] = a_call(ZIPCCL_ALL_GATHER);
    job.nkinds = 1;
    job.ncalls = 14 * PERIOD;
    job.time = noise;
    set_rates(&job.config);
    job.config.params.fence_s = 5e-6; /* messages of fixed size */
    if (!run(&job, 1, false, false, kept) || !kind_from(&job, 0, ZIPCCL_PLAN_COMPRESSED))
        return fprintf(stderr, "noise changed the kind of plan\n") < 0;
    /* The class has narrowed after the opening, and once more after the period. */
    return (job.plans[0][0] == job.plans[0][2] && job.plans[0][2] != job.plans[0][4] &&
            job.plans[0][4] == job.plans[0][31] && job.plans[0][31] != job.plans[0][50]) ||
           fprintf(stderr, "classes do not narrow\n") < 0;
}

/* Nothing is compared, however long it is said to take: all plans are those of the raw mode. */
static bool untouched(const struct job *job)
{
    struct zipccl_comm_learnt learnt;
    uint64_t plans[MAX_KINDS];

    for (size_t i = 0; zipccl_comm_get_learnt(job->comms[0], i, &learnt); i++)
        if (learnt.times)
            return false;
    for (uint32_t i = 0; i < job->nkinds; i++) {
        struct zipccl_call call = job->calls[i];
        struct zipccl_plan *plan;

        call.has_native = true;
        if (zipccl_choose(&call, &job->comms[0]->placement, &job->comms[0]->config.params, NULL,
                          ZIPCCL_MODE_RAW, ZIPCCL_CLASS_WIDE,
                          job->comms[0]->config.max_staging_bytes, &plan, NULL) != ZIPCCL_OK)
            abort();
        plans[i] = zipccl_plan_digest(plan);
        zipccl_plan_destroy(plan);
    }
    for (uint32_t k = 0; k < job->ncalls; k++)
        if (job->plans[0][k] != plans[k % job->nkinds])
            return false;
    return job->liars[0].nreads == 0;
}

static bool test_stays_raw(void)
{
    static struct job job;

    memset(&job, 0, sizeof job);
    job.calls[0] = a_call(ZIPCCL_ALL_GATHER);
    job.calls[0].count = 100;
    job.calls[1] = a_call(ZIPCCL_ALL_REDUCE);
    job.calls[1].redop = ZIPCCL_PROD;
    job.calls[2] = a_call(ZIPCCL_ALL_GATHER);
    job.calls[2].dtype = ZIPCCL_INT32;
    job.calls[3] = a_call(ZIPCCL_REDUCE_SCATTER);
    job.calls[3].redop = ZIPCCL_MAX;
    job.calls[4] = a_call(ZIPCCL_ALL_REDUCE);
    job.calls[4].redop = ZIPCCL_MIN;
    job.calls[5] = a_call(ZIPCCL_ALL_REDUCE);
    job.calls[5].count = 200;
    job.nkinds = 6;
    job.ncalls = 6 * (SANITIZED ? 10 : 40);
    job.time = fast_codec;
    zipccl_comm_config_init(&job.config);
    if (run(&job, 1, true, false, untouched))
        return true;
    fprintf(stderr, "a call that is to stay raw did not\n");
    return false;
}

/* One rank without a clock is enough: no rank takes times. */
static bool test_no_clock(void)
{
    static struct job job;
    struct world w;
    bool ok;

    memset(&job, 0, sizeof job);
    job.calls[0] = a_call(ZIPCCL_ALL_GATHER);
    job.nkinds = 1;
    job.ncalls = 2 * PERIOD;
    set_rates(&job.config);
    world_open_even(&w, 1, NRANKS);
    job.world = &w;
    job.transports = w.t;
    job.liars[2] = (struct liar){.ops = *w.exec[2]->ops};
    job.liars[2].ops.clock_ns = NULL;
    w.exec[2]->ops = &job.liars[2].ops;
    ok = world_run(&w, all_calls, &job) && agreed(&job);
    for (uint32_t r = 0; r < NRANKS; r++)
        ok = ok && !job.comms[r]->times;
    ok = ok && kind_from(&job, 0, ZIPCCL_PLAN_COMPRESSED);
    world_run(&w, close_one, &job);
    world_close(&w);
    return ok;
}

/* Sizes seen make exact messages the cheaper ones where the data shrink by more than classes give. */
static bool ratio_seen(const struct job *job)
{
    struct zipccl_comm_learnt learnt;

    if (!zipccl_comm_get_learnt(job->comms[0], 0, &learnt) || learnt.ratio < 2)
        return false;
    return strncmp(zipccl_comm_last_plan(job->comms[0])->strategy, "exact", 5) == 0;
}

static bool test_ratio(enum zipccl_learning learning)
{
    static struct job job;
    bool ok;

    memset(&job, 0, sizeof job);
    job.calls[0] = a_call(ZIPCCL_ALL_GATHER);
    job.nkinds = 1;
    job.ncalls = 2 * PERIOD;
    job.special = true;
    set_rates(&job.config);
    job.config.params.fence_s = 1e-6; /* exact sizes only pay if they are small */
    job.config.learning = learning;
    job.time = slow_codec;
    if (learning == ZIPCCL_LEARN_NOTHING)
        ok = run(&job, 1, false, false, NULL) && job.plans[0][job.ncalls - 1] == job.plans[0][0];
    else
        ok = run(&job, 1, false, false, ratio_seen);
    if (!ok)
        fprintf(stderr, "ratio, learning %d\n", (int)learning);
    return ok;
}

int main(void)
{
    bool ok = true;

    for (unsigned i = 0; i < 4; i += SANITIZED ? 3 : 1)
        ok = test_agreement(1 + i % 2, i / 2, i != 1) && ok;
    for (unsigned i = SANITIZED; i < 2; i++) {
        enum zipccl_op op = i == 0 ? ZIPCCL_ALL_GATHER : ZIPCCL_ALL_REDUCE;

        ok = test_slower(op) && ok;
        ok = test_faster(op) && ok;
    }
    ok = (SANITIZED || test_noise()) && ok;
    ok = test_stays_raw() && ok;
    ok = test_no_clock() && ok;
    ok = test_ratio(ZIPCCL_LEARN_SIZES) && ok;
    ok = test_ratio(ZIPCCL_LEARN_NOTHING) && ok;
    printf("ratios and times: %s\n", ok ? "ok" : "FAILED");
    return ok ? 0 : 1;
}
