/*
 * test_pair_classes.c - capacity classes of pairs: both ends agree, pairs differ, some calls skip some
 *
 * Each pair of ranks has data of its own: random bits, Gaussian values, or values of which one in some
 * is random.  Both ends note the class of their pair after each call; nobody else knows it.
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

#define NRANKS    4
#define PERIOD    ZIPCCL_CLASS_PERIOD
#define MAX_CALLS (14 * PERIOD)

/* Of the messages from one rank to another. */
struct pair {
    size_t count;         /* elements, one more in odd calls */
    uint32_t every;       /* one element in so many is random; 0: none */
    uint32_t first, last; /* calls that are random altogether */
    uint32_t skip;        /* one call in so many has no elements; 0: none */
};

struct job {
    const struct world *world;
    struct zipccl_transport *const *transports;
    struct zipccl_comm_config config;
    enum zipccl_op op;
    uint32_t ncalls;
    struct pair pairs[NRANKS][NRANKS];
    struct zipccl_comm *comms[NRANKS];
    struct zipccl_comm_class out[NRANKS][NRANKS][MAX_CALLS], in[NRANKS][NRANKS][MAX_CALLS];
    uint64_t wire_bytes[NRANKS][MAX_CALLS];
};

static size_t count_of(const struct job *job, uint32_t src, uint32_t dst, uint32_t k)
{
    const struct pair *p = &job->pairs[src][dst];

    if (p->count == 0 || (p->skip > 0 && k % p->skip == 0))
        return 0;
    return p->count + k % 2;
}

static void fill(const struct job *job, uint32_t src, uint32_t dst, uint32_t k, uint16_t *out)
{
    const struct pair *p = &job->pairs[src][dst];
    size_t n = count_of(job, src, dst, k);
    struct coll_case c = {.kind = KIND_GAUSS};
    uint16_t noise[MAX_CALLS];

    if (k >= p->first && k < p->last)
        c.kind = KIND_RANDOM;
    /* The same in all calls, but for the signs: what has fitted once fits again. */
    case_block(&c, src, dst, c.kind == KIND_RANDOM ? k : 0, n, out);
    for (size_t i = 0; i < n && k % 2 == 1; i++)
        out[i] ^= 0x8000;
    if (p->every == 0)
        return;
    c.kind = KIND_RANDOM;
    case_block(&c, dst, src, 0, MAX_CALLS, noise);
    for (size_t i = 0; i < n; i += p->every)
        out[i] = noise[i / p->every % MAX_CALLS];
}

/* Room for what one rank sends or receives, and where each peer's part is. */
struct side {
    uint16_t *buf;
    size_t counts[NRANKS], displs[NRANKS], n;
};

static void open_side(const struct job *job, struct side *s, uint32_t rank, uint32_t k, bool out)
{
    s->n = 0;
    for (uint32_t p = 0; p < NRANKS; p++) {
        s->counts[p] = out ? count_of(job, rank, p, k) : count_of(job, p, rank, k);
        s->displs[p] = s->n;
        s->n += s->counts[p] + 3;
    }
    s->buf = calloc(s->n, sizeof *s->buf);
    if (s->buf == NULL)
        abort();
}

static zipccl_status call(const struct job *job, uint32_t rank, uint32_t k, const struct side *send,
                          const struct side *recv)
{
    struct zipccl_comm *comm = job->comms[rank];
    uint32_t to = (rank + 1) % NRANKS, from = (rank + NRANKS - 1) % NRANKS;

    if (job->op == ZIPCCL_ALLTOALLV)
        return zipccl_alltoallv(send->buf, send->counts, send->displs, recv->buf, recv->counts,
                                recv->displs, ZIPCCL_BFLOAT16, comm, NULL);
    /* Who exchanges nothing need not call. */
    if (count_of(job, rank, to, k) == 0 && count_of(job, from, rank, k) == 0)
        return ZIPCCL_OK;
    return zipccl_sendrecv(send->buf + send->displs[to], send->counts[to], (int)to,
                           recv->buf + recv->displs[from], recv->counts[from], (int)from,
                           ZIPCCL_BFLOAT16, comm, NULL);
}

static void note(struct job *job, uint32_t rank, uint32_t k)
{
    struct zipccl_comm_class c;
    struct zipccl_comm_stats stats;

    for (size_t i = 0; zipccl_comm_get_class(job->comms[rank], i, &c); i++) {
        if (c.op != job->op || c.peer < 0 || c.count != 0)
            abort();
        *(c.incoming ? &job->in[c.peer][rank][k] : &job->out[rank][c.peer][k]) = c;
    }
    zipccl_comm_get_stats(job->comms[rank], &stats);
    job->wire_bytes[rank][k] = stats.wire_bytes;
}

static bool one_call(struct job *job, uint32_t rank, uint32_t k)
{
    struct side send, recv, want;
    zipccl_status status;
    bool ok;

    open_side(job, &send, rank, k, true);
    open_side(job, &recv, rank, k, false);
    open_side(job, &want, rank, k, false);
    for (uint32_t p = 0; p < NRANKS; p++) {
        bool moves = job->op == ZIPCCL_ALLTOALLV || p == (rank + NRANKS - 1) % NRANKS;

        fill(job, rank, p, k, send.buf + send.displs[p]);
        if (moves)
            fill(job, p, rank, k, want.buf + want.displs[p]);
    }
    for (uint32_t i = (rank * 7 + k * 3) % 23; i > 17; i--)
        sched_yield();
    status = call(job, rank, k, &send, &recv);
    ok = status == ZIPCCL_OK && memcmp(recv.buf, want.buf, recv.n * sizeof *recv.buf) == 0;
    if (!ok)
        fprintf(stderr, "rank %u, call %u: %s %s\n", rank, k, zipccl_status_string(status),
                zipccl_comm_error(job->comms[rank]));
    note(job, rank, k);
    free(send.buf);
    free(recv.buf);
    free(want.buf);
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

static bool ends_agree(const struct job *job)
{
    for (uint32_t src = 0; src < NRANKS; src++)
        for (uint32_t dst = 0; dst < NRANKS; dst++)
            for (uint32_t k = 0; k < job->ncalls; k++) {
                const struct zipccl_comm_class *a = &job->out[src][dst][k];
                const struct zipccl_comm_class *b = &job->in[src][dst][k];

                if (a->now != b->now || a->calls != b->calls || a->reason != b->reason ||
                    a->overflow_calls != b->overflow_calls ||
                    memcmp(a->class_calls, b->class_calls, sizeof a->class_calls) != 0) {
                    fprintf(stderr, "call %u, %u to %u: class %d at one end, %d at the other\n", k,
                            src, dst, a->now, b->now);
                    return false;
                }
            }
    return true;
}

static bool run(struct job *job, bool checked)
{
    struct zipccl_transport *checks[NRANKS];
    struct zipccl_check_hub *hub = NULL;
    struct zipccl_error error = {""};
    struct world w;
    bool ok;

    world_open_even(&w, 2, 2);
    job->world = &w;
    job->transports = w.t;
    if (checked) {
        if (zipccl_transport_check_create(w.t, w.nranks, &hub, checks) != ZIPCCL_OK)
            abort();
        job->transports = checks;
    }
    zipccl_comm_config_init(&job->config);
    job->config.strategy = "fixed direct";
    ok = world_run(&w, all_calls, job) && ends_agree(job);
    for (uint32_t r = 0; r < NRANKS; r++) {
        zipccl_comm_destroy(job->comms[r]);
        if (checked)
            checks[r]->ops->destroy(checks[r]);
    }
    if (checked && zipccl_transport_check_close(hub, &error) != ZIPCCL_OK) {
        fprintf(stderr, "%s\n", error.text);
        ok = false;
    }
    world_close(&w);
    return ok;
}

/* Class of 'src' to 'dst' after call 'k' is 'now'. */
static bool is(const struct job *job, uint32_t src, uint32_t dst, uint32_t k, int now)
{
    if (job->out[src][dst][k].now == now)
        return true;
    fprintf(stderr, "call %u, %u to %u: class %d, not %d\n", k, src, dst, job->out[src][dst][k].now,
            now);
    return false;
}

/* The class that all messages of a pair up to call 'last' would have fitted, from the codec itself. */
static int fit(const struct job *job, uint32_t src, uint32_t dst, uint32_t last)
{
    static uint8_t wire[1 << 20];
    uint16_t *x = malloc((job->pairs[src][dst].count + 1) * sizeof *x);
    void *scratch = NULL;
    int narrowest = ZIPCCL_NUM_CLASSES - 1;

    if (x == NULL || posix_memalign(&scratch, 64, zipccl_codec_scratch_bytes()) != 0)
        abort();
    for (uint32_t k = 0; k < last; k++) {
        size_t n = count_of(job, src, dst, k), nbytes = 0;
        int c;

        fill(job, src, dst, k, x);
        if (n == 0 || zipccl_encode(ZIPCCL_ISA_SCALAR, ZIPCCL_BFLOAT16, x, n, wire, sizeof wire,
                                    scratch, &nbytes) != ZIPCCL_OK)
            continue;
        c = zipccl_class_fit(ZIPCCL_BFLOAT16, n, nbytes);
        narrowest = c < narrowest ? c : narrowest;
    }
    free(x);
    free(scratch);
    return narrowest;
}

static bool test_alltoallv(bool checked)
{
    static struct job job;
    bool ok;
    int gauss;

    memset(&job, 0, sizeof job);
    job.op = ZIPCCL_ALLTOALLV;
    job.ncalls = MAX_CALLS;
    for (uint32_t src = 0; src < NRANKS; src++)
        for (uint32_t dst = 0; dst < NRANKS; dst++)
            job.pairs[src][dst].count = 4001 + 64 * src + dst;
    job.pairs[0][1].last = MAX_CALLS; /* random for ever */
    job.pairs[1][0].every = 20;       /* less than the others gain */
    job.pairs[3][0].count = 100;      /* never coded */
    job.pairs[2][3].first = 40;       /* one call overflows */
    job.pairs[2][3].last = 41;
    job.pairs[3][2].skip = 2; /* half of the calls */
    ok = run(&job, checked);
    ok = ok && is(&job, 0, 1, 30, 0) && is(&job, 0, 1, 31, ZIPCCL_NO_CLASS) &&
         is(&job, 0, 1, MAX_CALLS - 1, ZIPCCL_NO_CLASS);
    ok = ok && is(&job, 0, 2, 30, 0) && is(&job, 0, 2, 31, fit(&job, 0, 2, 32)) &&
         fit(&job, 0, 2, 32) >= ZIPCCL_CLASS_SETTLED;
    ok = ok && fit(&job, 1, 0, 32) > 0 && fit(&job, 1, 0, 32) < ZIPCCL_CLASS_SETTLED &&
         is(&job, 1, 0, 31, fit(&job, 1, 0, 32));
    ok = ok && job.out[3][0][MAX_CALLS - 1].calls == 0;
    gauss = fit(&job, 2, 3, 32);
    ok = ok && is(&job, 2, 3, 31, gauss) && is(&job, 2, 3, 62, gauss) &&
         is(&job, 2, 3, 63, gauss - 1) && is(&job, 2, 3, 318, gauss - 1) &&
         is(&job, 2, 3, 319, gauss) && job.out[2][3][MAX_CALLS - 1].overflow_calls == 1;
    ok = ok && is(&job, 3, 2, 62, 0) && is(&job, 3, 2, 63, fit(&job, 3, 2, 64));
    if (!ok)
        fprintf(stderr, "alltoallv%s\n", checked ? ", checked" : "");
    return ok;
}

/* Pairs of a shift make different numbers of calls; one direction is random, the others are not. */
static bool test_sendrecv(bool checked)
{
    static struct job job;
    bool ok;

    memset(&job, 0, sizeof job);
    job.op = ZIPCCL_SENDRECV;
    job.ncalls = 5 * PERIOD;
    for (uint32_t src = 0; src < NRANKS; src++)
        job.pairs[src][(src + 1) % NRANKS] = (struct pair){.count = 9001, .skip = src + 1};
    job.pairs[0][1] = (struct pair){.count = 7777, .last = MAX_CALLS};
    job.pairs[3][0].count = 0;
    ok = run(&job, checked);
    ok = ok && is(&job, 0, 1, 31, ZIPCCL_NO_CLASS) && is(&job, 1, 2, 62, 0) &&
         is(&job, 1, 2, 63, fit(&job, 1, 2, 64)) && is(&job, 2, 3, 46, 0) &&
         is(&job, 2, 3, 47, fit(&job, 2, 3, 48));
    /* A pair without a class sends its elements and nothing else. */
    ok = ok && job.wire_bytes[0][41] - job.wire_bytes[0][40] == 7778 * 2;
    if (!ok)
        fprintf(stderr, "sendrecv%s\n", checked ? ", checked" : "");
    return ok;
}

static bool open_one(void *context, uint32_t rank)
{
    struct job *job = context;

    return zipccl_comm_create(job->transports[rank], job->world->exec[rank], &job->config,
                              &job->comms[rank], NULL) == ZIPCCL_OK;
}

/* Ranks 0 and 1 exchange more than the plan given is for, which rank 2 cannot see; rank 3 exchanges nothing. */
static bool too_much(void *context, uint32_t rank)
{
    struct job *job = context;
    struct side send, recv;
    zipccl_status status;

    open_side(job, &send, rank, 0, true);
    open_side(job, &recv, rank, 0, false);
    status = call(job, rank, 0, &send, &recv);
    free(send.buf);
    free(recv.buf);
    return rank == 3 || status == ZIPCCL_ERR_ABORTED ||
           (status == ZIPCCL_ERR_UNSUPPORTED && rank < 2);
}

static bool test_given(void)
{
    static struct job job;
    struct zipccl_call for_call = {.op = ZIPCCL_ALLTOALLV, .dtype = ZIPCCL_BFLOAT16, .count = 1000};
    struct zipccl_plan *plan;
    struct world w;
    bool ok;

    job = (struct job){.world = &w, .op = ZIPCCL_ALLTOALLV};
    job.pairs[0][1].count = 2000;
    job.pairs[0][2].count = 500;
    world_open_even(&w, 1, NRANKS);
    job.transports = w.t;
    if (zipccl_strategy_find("raw direct")
            ->build(&for_call, w.t[0]->topology, 1, 1, 0, 1 << 20, &plan) != ZIPCCL_OK)
        abort();
    zipccl_comm_config_init(&job.config);
    job.config.plan = plan;
    ok = world_run(&w, open_one, &job) && world_run(&w, too_much, &job);
    for (uint32_t r = 0; r < NRANKS; r++)
        zipccl_comm_destroy(job.comms[r]);
    zipccl_plan_destroy(plan);
    world_close(&w);
    if (!ok)
        fprintf(stderr, "more than the plan given is for\n");
    return ok;
}

int main(void)
{
    bool ok = true;

    for (int checked = 0; checked < 2; checked++) {
        ok = test_alltoallv(checked) && ok;
        ok = test_sendrecv(checked) && ok;
    }
    ok = test_given() && ok;
    printf("classes of pairs: %s\n", ok ? "ok" : "FAILED");
    return ok ? 0 : 1;
}
