/*
 * test_exec_mem.c - pairs, mismatches and abort of the memory transport, events of the exec
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/exec.h"
#include "core/transport_mem.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#define MAX_RANKS 4

/* A few ranks, each running 'body' on its own thread. */
struct world {
    struct zipccl_topology *topology;
    struct zipccl_transport *t[MAX_RANKS];
    zipccl_status status[MAX_RANKS];
    zipccl_status (*body)(struct zipccl_transport *t);
};

struct thread_arg {
    struct world *world;
    uint32_t rank;
};

static void *run_rank(void *p)
{
    struct thread_arg *arg = p;

    arg->world->status[arg->rank] = arg->world->body(arg->world->t[arg->rank]);
    return NULL;
}

static void run_world(struct world *w, uint32_t nranks,
                      zipccl_status (*body)(struct zipccl_transport *t))
{
    pthread_t threads[MAX_RANKS];
    struct thread_arg args[MAX_RANKS];

    w->body = body;
    cr_assert_eq(zipccl_topology_create_even(1, nranks, &w->topology), ZIPCCL_OK);
    cr_assert_eq(zipccl_transport_mem_create(w->topology, w->t), ZIPCCL_OK);
    for (uint32_t r = 0; r < nranks; r++) {
        args[r] = (struct thread_arg){w, r};
        cr_assert_eq(pthread_create(&threads[r], NULL, run_rank, &args[r]), 0);
    }
    for (uint32_t r = 0; r < nranks; r++)
        pthread_join(threads[r], NULL);
}

static void end_world(struct world *w)
{
    for (uint32_t r = 0; r < w->topology->nranks; r++)
        w->t[r]->ops->destroy(w->t[r]);
    zipccl_topology_destroy(w->topology);
}

/* Receives are posted in another order than sends; two messages to each peer and to oneself. */
static zipccl_status crossed(struct zipccl_transport *t)
{
    uint32_t out[2][MAX_RANKS], in[2][MAX_RANKS];

    ZIPCCL_TRY(t->ops->group_begin(t));
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t p = t->nranks; p-- > 0;) {
            ZIPCCL_TRY(t->ops->recv(t, p, &in[i][p], sizeof in[i][p]));
        }
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t p = 0; p < t->nranks; p++) {
            out[i][p] = 100 * t->rank + 10 * p + i;
            ZIPCCL_TRY(t->ops->send(t, p, &out[i][p], sizeof out[i][p]));
        }
    ZIPCCL_TRY(t->ops->group_end(t));
    for (uint32_t i = 0; i < 2; i++)
        for (uint32_t p = 0; p < t->nranks; p++)
            if (in[i][p] != 100 * p + 10 * t->rank + i)
                return ZIPCCL_ERR_INTERNAL;
    return ZIPCCL_OK;
}

Test(mem, messages_of_a_pair_match_in_order)
{
    struct world w;

    run_world(&w, 4, crossed);
    for (uint32_t r = 0; r < 4; r++) {
        cr_assert_eq(w.status[r], ZIPCCL_OK);
        for (uint32_t p = 0; p < 4; p++)
            cr_assert_eq(zipccl_transport_mem_bytes(w.t[0], r, p), r == p ? 0 : 8);
    }
    zipccl_transport_mem_reset_bytes(w.t[0]);
    cr_assert_eq(zipccl_transport_mem_bytes(w.t[0], 0, 1), 0);
    end_world(&w);
}

/* Rank 0 sends 8 to rank 1, which expects 4; rank 2 waits for rank 3, which waits for rank 2. */
static zipccl_status unequal(struct zipccl_transport *t)
{
    char buf[8] = {0};

    if (t->rank == 0)
        return t->ops->send(t, 1, buf, 8);
    return t->ops->recv(t, t->rank == 1 ? 0 : 5 - t->rank, buf, 4);
}

Test(mem, unequal_counts_name_both_ranks_and_counts)
{
    struct world w;
    const char *text;

    run_world(&w, 4, unequal);
    cr_assert_eq(w.status[0], ZIPCCL_ERR_MISMATCH);
    cr_assert_eq(w.status[1], ZIPCCL_ERR_MISMATCH);
    cr_assert_eq(w.status[2], ZIPCCL_ERR_ABORTED, "a third rank must not wait for ever");
    cr_assert_eq(w.status[3], ZIPCCL_ERR_ABORTED);
    text = w.t[2]->ops->error_text(w.t[2]);
    cr_assert_str_eq(text, "rank 0 sends 8 bytes to rank 1, which receives 4 bytes");
    end_world(&w);
}

static zipccl_status blocked_or_aborting(struct zipccl_transport *t)
{
    char c = 0;

    if (t->rank == 0) {
        t->ops->abort(t);
        return t->ops->send(t, 1, &c, 1);
    }
    if (t->rank == 1) {
        struct zipccl_native_call call = {
            ZIPCCL_ALL_REDUCE, ZIPCCL_INT8, ZIPCCL_SUM, 0, &c, &c, 1, NULL, NULL, NULL, NULL, 1};

        return t->ops->native(t, &call);
    }
    return t->ops->recv(t, 3, &c, 1) == ZIPCCL_ERR_ABORTED
               ? t->ops->group_begin(t) != ZIPCCL_OK ? ZIPCCL_ERR_INTERNAL : t->ops->group_end(t)
               : ZIPCCL_ERR_INTERNAL;
}

Test(mem, abort_frees_blocked_and_later_calls)
{
    struct world w;

    run_world(&w, 4, blocked_or_aborting);
    for (uint32_t r = 0; r < 4; r++)
        cr_assert_eq(w.status[r], ZIPCCL_ERR_ABORTED, "rank %u: %s", r,
                     zipccl_status_string(w.status[r]));
    end_world(&w);
}

static zipccl_status differing_redops(struct zipccl_transport *t)
{
    int32_t x[4] = {1, 2, 3, 4};
    struct zipccl_native_call call = {
        .op = ZIPCCL_REDUCE_SCATTER, .dtype = ZIPCCL_INT32, .send = x, .recv = x, .count = 1};

    call.redop = t->rank == 2 ? ZIPCCL_MAX : ZIPCCL_SUM;
    return t->ops->native(t, &call);
}

Test(mem, reductions_that_differ_fail_on_every_rank)
{
    struct world w;

    run_world(&w, 4, differing_redops);
    for (uint32_t r = 0; r < 4; r++)
        cr_assert_eq(w.status[r], ZIPCCL_ERR_MISMATCH);
    cr_assert_not_null(strstr(w.t[0]->ops->error_text(w.t[0]), "rank 2"));
    end_world(&w);
}

static zipccl_status no_op(struct zipccl_transport *t)
{
    char c;

    if (t->ops->group_end(t) != ZIPCCL_ERR_ARG || t->ops->send(t, 7, &c, 1) != ZIPCCL_ERR_ARG ||
        t->ops->recv(t, 0, NULL, 1) != ZIPCCL_ERR_ARG)
        return ZIPCCL_ERR_INTERNAL;
    return ZIPCCL_OK;
}

Test(mem, bad_arguments_are_refused)
{
    struct world w;

    run_world(&w, 2, no_op);
    cr_assert(w.status[0] == ZIPCCL_OK && w.status[1] == ZIPCCL_OK);
    end_world(&w);
    cr_assert_eq(zipccl_transport_mem_create(NULL, w.t), ZIPCCL_ERR_ARG);
}

/* A message to oneself in nested groups moves when the outer one ends. */
static zipccl_status nested(struct zipccl_transport *t)
{
    int out = 7, in = 0;

    ZIPCCL_TRY(t->ops->group_begin(t));
    ZIPCCL_TRY(t->ops->group_begin(t));
    ZIPCCL_TRY(t->ops->send(t, t->rank, &out, sizeof out));
    ZIPCCL_TRY(t->ops->recv(t, t->rank, &in, sizeof in));
    ZIPCCL_TRY(t->ops->group_end(t));
    if (in != 0)
        return ZIPCCL_ERR_INTERNAL;
    ZIPCCL_TRY(t->ops->group_end(t));
    return in == 7 ? ZIPCCL_OK : ZIPCCL_ERR_INTERNAL;
}

Test(mem, nothing_moves_before_the_outer_group_ends)
{
    struct world w;

    run_world(&w, 2, nested);
    cr_assert(w.status[0] == ZIPCCL_OK && w.status[1] == ZIPCCL_OK);
    end_world(&w);
}

/* Ranks that share an aborted hub find it so in a native collective as well, however often. */
static zipccl_status native_after_abort(struct zipccl_transport *t)
{
    char in[2] = {0}, out = 1;
    struct zipccl_native_call call = {
        .op = ZIPCCL_ALL_GATHER, .send = &out, .recv = in, .count = 1, .channels = 1};
    zipccl_status status = ZIPCCL_OK;

    t->ops->abort(t);
    for (int i = 0; i < 3; i++) {
        status = t->ops->native(t, &call);
        if (status != ZIPCCL_ERR_ABORTED)
            return ZIPCCL_ERR_INTERNAL;
    }
    return status;
}

Test(mem, an_abort_lasts)
{
    struct world w;

    run_world(&w, 2, native_after_abort);
    cr_assert(w.status[0] == ZIPCCL_ERR_ABORTED && w.status[1] == ZIPCCL_ERR_ABORTED);
    end_world(&w);
}

struct signaller {
    struct zipccl_exec *exec;
    struct zipccl_event *event;
};

static void signal_three(void *p)
{
    struct signaller *s = p;

    s->exec->ops->event_signal(s->exec, s->event, 3);
    s->exec->ops->event_signal(s->exec, s->event, 1); /* never counts down */
}

Test(exec, lane_signals_the_caller)
{
    struct signaller s;
    struct zipccl_lane_task *task;
    void *p;

    cr_assert_eq(zipccl_exec_cpu_create(ZIPCCL_ISA_SCALAR, &s.exec), ZIPCCL_OK);
    cr_assert_eq(zipccl_exec_cpu_create(ZIPCCL_NUM_ISAS, &s.exec), ZIPCCL_ERR_ARG);
    cr_assert_eq(s.exec->ops->event_create(s.exec, &s.event), ZIPCCL_OK);
    cr_assert_eq(s.exec->ops->spawn(s.exec, signal_three, &s, &task), ZIPCCL_OK);
    s.exec->ops->event_wait(s.exec, s.event, 2);
    s.exec->ops->join(s.exec, task);
    s.exec->ops->event_wait(s.exec, s.event, 3);
    s.exec->ops->event_destroy(s.exec, s.event);
    p = s.exec->ops->alloc(s.exec, 0);
    cr_assert_not_null(p);
    cr_assert_eq((uintptr_t)p % 64, 0);
    s.exec->ops->free(s.exec, p);
    s.exec->ops->destroy(s.exec);
}
