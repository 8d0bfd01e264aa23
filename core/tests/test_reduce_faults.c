/*
 * test_reduce_faults.c - the tests of reductions would notice a lost message, byte or order
 *
 * Three mutations, each on every reduction strategy of our own: one rank drops a message; one byte of
 * a message is flipped; the executor adds two operands in the other order, which an exec between it
 * and the CPU does.  Each must end as an error on some rank or as bits that differ from the
 * reference; the swapped sums must be exactly those of the reference with these operands swapped.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/faulty.h"
#include "core/tests/reduce_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT 4000u

static const char *const strategies[] = {"raw direct",   "raw two-level",   "fixed direct",
                                         "exact direct", "fixed two-level", "exact two-level"};

struct outcome {
    unsigned runs, errors, wrong, unseen;
};

static bool report(const char *what, const char *strategy, const struct outcome *o,
                   unsigned unseen_percent)
{
    /* Of a few runs one may be unlucky. */
    unsigned most = unseen_percent * o->runs / 100 + (unseen_percent > 0);
    bool ok = o->runs > 0 && o->unseen <= most;

    printf("%-16s %-16s %5u runs: %5u errors, %5u wrong results, %5u unseen%s\n", what, strategy,
           o->runs, o->errors, o->wrong, o->unseen, ok ? "" : "  FAILED");
    return ok;
}

/* One run in which rank 1 breaks message number 'message'. */
static void run_fault(const struct reduce_case *c, enum fault fault, uint32_t message, size_t byte,
                      struct outcome *outcome)
{
    struct faulty faulty[MAX_RANKS];
    struct zipccl_transport *transports[MAX_RANKS];
    struct reduce_inputs inputs;
    struct world w;
    struct reduce_job job = {.world = &w,
                             .c = c,
                             .inputs = &inputs,
                             .transports = transports,
                             .execs = w.exec,
                             .leave = fault == FAULT_DROP};
    bool error = false, wrong = false;

    world_open_even(&w, 2, 2);
    reduce_inputs_open(&inputs, c, w.nranks);
    for (uint32_t r = 0; r < w.nranks; r++) {
        faulty_init(&faulty[r], w.t[r], r == 1 ? fault : FAULT_NONE, message, byte);
        transports[r] = &faulty[r].base;
    }
    if (!reduce_open(&job))
        abort();
    /* A dropped message leaves its receiver waiting until the others have left. */
    reduce_run(&job);
    for (uint32_t r = 0; r < w.nranks; r++) {
        error = error || job.status[r] != ZIPCCL_OK;
        wrong = wrong || (job.status[r] == ZIPCCL_OK && !job.right[r]);
    }
    if (faulty[1].hit) {
        outcome->runs++;
        outcome->errors += error;
        outcome->wrong += !error && wrong;
        outcome->unseen += !error && !wrong;
    }
    for (uint32_t r = 0; r < w.nranks; r++)
        faulty_close(&faulty[r]);
    reduce_close(&job);
    reduce_inputs_close(&inputs);
    world_close(&w);
}

static bool test_faults(const struct reduce_case *c)
{
    struct outcome dropped = {0, 0, 0, 0}, flipped = {0, 0, 0, 0};
    bool ok;

    for (uint32_t message = 0; message < 12; message++) {
        run_fault(c, FAULT_DROP, message, 0, &dropped);
        for (size_t byte = 0; byte < 2 * COUNT; byte += SANITIZED ? 2861 : 557)
            run_fault(c, FAULT_FLIP, message, byte, &flipped);
    }
    ok = report("dropped message", c->strategy->name, &dropped, 0);
    /* Nobody looks at the zeros after a fixed message, a third or so of its capacity at worst, nor
     * at padding bits; and what is lost when a bit is flipped may be rounded away. */
    unsigned unseen = strncmp(c->strategy->name, "fixed", 5) == 0 ? 25 : 5;
    return report("flipped byte", c->strategy->name, &flipped, unseen) && ok;
}

/* An exec that adds the third operand of each sum before the second. */
struct swapping {
    struct zipccl_exec base;
    struct zipccl_exec_ops ops;
    struct zipccl_exec *inner;
    uint32_t nadded; /* operands of the current sum so far */
    char *held;
};

static struct zipccl_exec *inner_of(struct zipccl_exec *e)
{
    return ((struct swapping *)e)->inner;
}

static void swapped_add(struct zipccl_exec *e, enum zipccl_dtype dtype, float *acc, const void *x,
                        size_t n, bool first)
{
    struct swapping *s = (struct swapping *)e;
    size_t nbytes = n * zipccl_dtype_size(dtype);

    s->nadded = first ? 1 : s->nadded + 1;
    if (s->nadded == 2) {
        memcpy(s->held, x, nbytes);
        return;
    }
    s->inner->ops->reduce_add(s->inner, dtype, acc, x, n, first);
    if (s->nadded == 3)
        s->inner->ops->reduce_add(s->inner, dtype, acc, s->held, n, false);
}

static void forward_round(struct zipccl_exec *e, enum zipccl_dtype dtype, const float *acc,
                          size_t n, uint32_t divisor, void *dst)
{
    inner_of(e)->ops->reduce_round(inner_of(e), dtype, acc, n, divisor, dst);
}

static zipccl_status forward_encode(struct zipccl_exec *e, enum zipccl_dtype dtype, const void *src,
                                    size_t n, void *dst, size_t capacity, size_t *nbytes)
{
    return inner_of(e)->ops->encode(inner_of(e), dtype, src, n, dst, capacity, nbytes);
}

static zipccl_status forward_decode(struct zipccl_exec *e, enum zipccl_dtype dtype,
                                    const void *wire, size_t nbytes, void *dst, size_t n)
{
    return inner_of(e)->ops->decode(inner_of(e), dtype, wire, nbytes, dst, n);
}

static zipccl_status forward_spawn(struct zipccl_exec *e, void (*fn)(void *), void *arg,
                                   struct zipccl_lane_task **task)
{
    return inner_of(e)->ops->spawn(inner_of(e), fn, arg, task);
}

static void forward_join(struct zipccl_exec *e, struct zipccl_lane_task *task)
{
    inner_of(e)->ops->join(inner_of(e), task);
}

/* The entries left as they are do not look at their exec on the CPU. */
static void swapping_init(struct swapping *s, struct zipccl_exec *inner)
{
    s->ops = *inner->ops;
    s->ops.reduce_add = swapped_add;
    s->ops.reduce_round = forward_round;
    s->ops.decode_sum = NULL;
    s->ops.encode_many = NULL;
    s->ops.encode = forward_encode;
    s->ops.decode = forward_decode;
    s->ops.spawn = forward_spawn;
    s->ops.join = forward_join;
    s->base.ops = &s->ops;
    s->inner = inner;
    s->nadded = 0;
    s->held = malloc(4 * COUNT);
    if (s->held == NULL)
        abort();
}

/* Three nodes of three ranks, so that every sum has a third operand. */
static bool test_swap(const struct reduce_case *c)
{
    struct swapping swapping[MAX_RANKS];
    struct zipccl_exec *execs[MAX_RANKS];
    struct reduce_inputs inputs;
    struct world w;
    struct reduce_job job = {.world = &w, .c = c, .inputs = &inputs, .transports = w.t};
    bool noticed, as_swapped, in_order;

    world_open_even(&w, 3, 3);
    reduce_inputs_open(&inputs, c, w.nranks);
    for (uint32_t r = 0; r < w.nranks; r++) {
        swapping_init(&swapping[r], w.exec[r]);
        execs[r] = &swapping[r].base;
    }
    if (!reduce_open(&job))
        abort();
    job.execs = w.exec;
    in_order = reduce_run(&job);
    job.execs = execs;
    noticed = !reduce_run(&job);
    job.ref.base.swap = 1;
    ref_result(&job.ref, 0, inputs.n, job.expected);
    as_swapped = reduce_run(&job);
    printf("%-16s %-16s in order %s, swapped %s, equal to the swapped reference: %s\n",
           "swapped operands", c->strategy->name, in_order ? "right" : "WRONG",
           noticed ? "wrong" : "UNSEEN", as_swapped ? "yes" : "NO");
    for (uint32_t r = 0; r < w.nranks; r++)
        free(swapping[r].held);
    reduce_close(&job);
    reduce_inputs_close(&inputs);
    world_close(&w);
    return in_order && noticed && as_swapped;
}

int main(void)
{
    bool ok = true;

    for (unsigned op = 0; op < 2; op++)
        for (size_t s = 0; s < sizeof strategies / sizeof *strategies; s++) {
            struct reduce_case c = {.op = op ? ZIPCCL_ALL_REDUCE : ZIPCCL_REDUCE_SCATTER,
                                    .dtype = ZIPCCL_BFLOAT16,
                                    .redop = op ? ZIPCCL_SUM : ZIPCCL_AVG,
                                    .strategy = zipccl_strategy_find(strategies[s]),
                                    .count = op ? COUNT : COUNT / 4,
                                    .nchunks = 2,
                                    .kind = KIND_GAUSS};

            ok = test_faults(&c) && ok;
            c.kind = KIND_CANCEL;
            ok = test_swap(&c) && ok;
        }
    return ok ? 0 : 1;
}
