/*
 * test_lower.c - every rank receives what the op says, on the edges that the header promises
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/lower.h"

#include "core/split.h"
#include "core/tests/plan_cases.h"

#include <stdlib.h>
#include <string.h>

#define MAX_RANKS 12

/* Bytes of each pair. */
struct matrix {
    uint64_t nbytes[MAX_RANKS][MAX_RANKS];
    unsigned ncalls[MAX_RANKS][MAX_RANKS];
};

static void add_flow(void *context, uint32_t src, uint32_t dst, uint64_t nbytes)
{
    struct matrix *m = context;

    cr_assert_neq(src, dst);
    cr_assert_gt(nbytes, 0);
    m->nbytes[src][dst] += nbytes;
    cr_assert_eq(++m->ncalls[src][dst], 1, "(%u, %u) is emitted twice", src, dst);
}

static bool are_peers(const struct zipccl_topology *t, uint8_t group, uint32_t a, uint32_t b)
{
    return group == ZIPCCL_GROUP_WORLD ||
           (group == ZIPCCL_GROUP_NODE ? t->node_of[a] == t->node_of[b]
                                       : t->local_of[a] == t->local_of[b]);
}

/* What the step says by rank is what it says pair by pair. */
static bool agrees_by_rank(const struct zipccl_plan *plan, uint32_t step,
                           const struct zipccl_topology *t, const struct zipccl_wire_sizes *sizes)
{
    struct matrix *m = calloc(1, sizeof *m);
    uint64_t nbytes[MAX_RANKS];
    uint32_t rounds;
    bool by_source, served = zipccl_lower_by_rank(plan, step, t, sizes, nbytes, &by_source);

    cr_assert_eq(zipccl_lower(plan, step, t, sizes, add_flow, m, &rounds), ZIPCCL_OK);
    for (uint32_t src = 0; src < t->nranks && served; src++)
        for (uint32_t dst = 0; dst < t->nranks; dst++)
            if (src != dst)
                cr_assert_eq(m->nbytes[src][dst],
                             are_peers(t, plan->steps[step].group, src, dst)
                                 ? nbytes[by_source ? src : dst]
                                 : 0,
                             "%s %s step %u, %u to %u: %lu bytes, by rank %lu",
                             zipccl_op_name((enum zipccl_op)plan->op), plan->strategy, step, src,
                             dst, m->nbytes[src][dst], nbytes[by_source ? src : dst]);
    free(m);
    return served;
}

/* Sum of all wire steps of a plan; '*nrounds' is that of the last step that sent. */
static void lower_all(const struct zipccl_plan *plan, const struct zipccl_topology *t,
                      const struct zipccl_wire_sizes *sizes, struct matrix *m, uint32_t *nrounds)
{
    memset(m, 0, sizeof *m);
    *nrounds = 0;
    for (uint32_t i = 0; i < plan->nsteps; i++) {
        uint8_t kind = plan->steps[i].kind;
        uint32_t rounds = 99;

        memset(m->ncalls, 0, sizeof m->ncalls);
        if (kind != ZIPCCL_STEP_EXCHANGE && kind != ZIPCCL_STEP_SIZES &&
            kind != ZIPCCL_STEP_NATIVE) {
            cr_assert_eq(zipccl_lower(plan, i, t, sizes, add_flow, m, &rounds), ZIPCCL_ERR_ARG);
            continue;
        }
        cr_assert_eq(zipccl_lower(plan, i, t, sizes, add_flow, m, &rounds), ZIPCCL_OK);
        cr_assert_neq(rounds, 99);
        agrees_by_rank(plan, i, t, sizes);
        if (rounds > 0)
            *nrounds = rounds;
    }
}

static uint64_t received(const struct matrix *m, uint32_t rank)
{
    uint64_t sum = 0;

    for (uint32_t src = 0; src < MAX_RANKS; src++)
        sum += m->nbytes[src][rank];
    return sum;
}

/* Bytes on the wire of a message of n elements in 'form', as the header of plan.h says. */
static uint64_t wire_bytes(const struct zipccl_plan *plan, uint32_t chunk, size_t n)
{
    struct zipccl_split_cut split = {0, 0, 0};
    uint8_t form = plan->steps[0].form;

    if (n == 0)
        return 0;
    if (!plan->compressed || n < plan->raw_below_n)
        return 2 * n;
    if (form == ZIPCCL_FORM_FIXED)
        return zipccl_plan_fixed_bytes(plan, n);
    /* Without sizes a message is raw: what left early is void, and all of it follows the head. */
    split = chunk == 0 && plan->steps[0].part != 0 ? zipccl_split_of(ZIPCCL_BFLOAT16, n) : split;
    return 2 * n + 32 + 4 + split.head + split.early;
}

/* Wire bytes of a block of 'n' elements, chunk by chunk. */
static uint64_t block_bytes(const struct zipccl_plan *plan, size_t n)
{
    uint64_t sum = 0;

    for (uint32_t c = 0; c < plan->nchunks; c++)
        sum += wire_bytes(plan, c, zipccl_chunk_n(n, plan->chunk_n, c));
    return sum;
}

/* Bytes of the messages about rank r's shard, chunk by chunk; gathered EXACT ones are as long as the
 * longest, which without sizes is the first rank's. */
static uint64_t shard_bytes(const struct zipccl_plan *plan, uint32_t r, bool gathered)
{
    bool longest = gathered && plan->steps[0].form == ZIPCCL_FORM_EXACT;
    uint64_t sum = 0;

    for (uint32_t c = 0; c < plan->nchunks; c++)
        if (zipccl_plan_owner_n(plan, c, r) > 0)
            sum += wire_bytes(plan, c, zipccl_plan_owner_n(plan, c, longest ? 0 : r));
    return sum;
}

/* Elements of all_reduce's block 'b'. */
static uint64_t part(size_t count, uint32_t nranks, uint32_t b)
{
    return zipccl_ring_part(count, nranks, b);
}

static uint64_t expected(const struct zipccl_plan *plan, const struct zipccl_topology *t,
                         const size_t *splits, uint32_t rank)
{
    uint32_t nranks = t->nranks;
    uint64_t sum = 0;

    switch (plan->op) {
    case ZIPCCL_REDUCE_SCATTER:
    case ZIPCCL_ALL_GATHER:
    case ZIPCCL_ALLTOALL: return (nranks - 1) * block_bytes(plan, plan->count);
    case ZIPCCL_BROADCAST: return rank == plan->root ? 0 : block_bytes(plan, plan->count);
    case ZIPCCL_ALLTOALLV:
    case ZIPCCL_SENDRECV:
        for (uint32_t src = 0; src < nranks; src++)
            if (src != rank)
                sum += block_bytes(plan, splits[src * nranks + rank]);
        return sum;
    default: break;
    }
    if (plan->nsteps > 0 && plan->steps[0].kind != ZIPCCL_STEP_NATIVE) {
        /* Our own, flat: contributions to my shard, then the shards of the others. */
        for (uint32_t src = 0; src < nranks; src++)
            if (src != rank)
                sum += shard_bytes(plan, rank, false) + shard_bytes(plan, src, true);
        return sum;
    }
    /* native all_reduce: all blocks but the sender's own, then all but mine. One ring, so that the
     * sender is the one whose successor I am. */
    for (uint32_t src = 0; src < nranks && nranks > 1; src++)
        if (zipccl_ring_next(t, 0, src) == rank)
            sum = 2 * (2 * plan->count - part(plan->count, nranks, src) -
                       part(plan->count, nranks, rank));
    return sum;
}

static void check_conservation(const struct zipccl_topology *t)
{
    static const size_t counts[] = {0, 1, 7, 600, 100003};
    struct matrix m;

    for (unsigned i = 0; zipccl_strategies[i] != NULL; i++)
        for (unsigned op = 0; op < ZIPCCL_NUM_OPS; op++)
            for (unsigned k = 0; k < sizeof counts / sizeof *counts; k++) {
                struct zipccl_call call = make_call((enum zipccl_op)op, counts[k], t->nranks);
                size_t *splits = make_splits(call.op, counts[k], t->nranks);
                struct zipccl_wire_sizes sizes = {.splits = splits};
                struct zipccl_plan *plan = NULL;
                uint32_t nrounds, channels = op == ZIPCCL_ALL_REDUCE ? 1 : 3;

                if (zipccl_strategies[i]->serves(&call) &&
                    strstr(zipccl_strategies[i]->name, "two-level") == NULL &&
                    zipccl_strategies[i]->build(&call, t, channels, 4, 0, 0, &plan) == ZIPCCL_OK) {
                    lower_all(plan, t, &sizes, &m, &nrounds);
                    for (uint32_t r = 0; r < t->nranks; r++)
                        cr_assert_eq(received(&m, r), expected(plan, t, splits, r),
                                     "%s %s count %zu: rank %u of %u receives %lu", plan->strategy,
                                     zipccl_op_name(call.op), counts[k], r, t->nranks,
                                     (unsigned long)received(&m, r));
                }
                zipccl_plan_destroy(plan);
                free(splits);
            }
}

static size_t tiny(void *context, uint32_t src, uint32_t dst, size_t n)
{
    (void)src;
    (void)dst;
    return 100 + n * *(const size_t *)context / 16;
}

/* Messages shorter than their early parts: fixed ones are sent again, of exact ones the chooser hears. */
Test(lower, parts_that_do_not_stand_are_told)
{
    static const char *const names[] = {"fixed split", "exact split"};
    struct zipccl_topology *t = make_topology(2, 2);
    size_t sixteenths = 1;
    struct zipccl_wire_sizes sizes = {.bytes = tiny, .context = &sixteenths};

    for (unsigned i = 0; i < 2; i++) {
        struct zipccl_call call = make_call(ZIPCCL_ALLTOALL, 100003, 4);
        struct zipccl_plan *plan = NULL;
        struct matrix stands, falls;
        uint32_t rounds;

        cr_assert_eq(
            zipccl_strategy_find(names[i])->build(&call, t, 1, 1, ZIPCCL_CLASS_SETTLED, 0, &plan),
            ZIPCCL_OK);
        sixteenths = 21;
        cr_assert_not(zipccl_lower_overflows(plan, t, &sizes));
        lower_all(plan, t, &sizes, &stands, &rounds);
        sixteenths = 1;
        cr_assert(zipccl_lower_overflows(plan, t, &sizes));
        lower_all(plan, t, &sizes, &falls, &rounds);
        if (i == 0) /* all of it again, raw */
            cr_assert_eq(falls.nbytes[0][1], stands.nbytes[0][1] + 2 * call.count);
        else /* what left early was in vain */
            cr_assert_eq(falls.nbytes[0][1],
                         tiny(&sixteenths, 0, 0, call.count) + 4 +
                             zipccl_split_of(ZIPCCL_BFLOAT16, call.count).head +
                             zipccl_split_of(ZIPCCL_BFLOAT16, call.count).early);
        zipccl_plan_destroy(plan);
    }
    zipccl_topology_destroy(t);
}

Test(lower, every_rank_receives_what_the_op_says)
{
    static const uint32_t shapes[][2] = {{1, 1}, {1, 2}, {1, 5}, {2, 2}, {2, 4}, {3, 3}, {4, 1}};
    static const uint32_t ids[] = {7, 3, 7, 7, 3, 1};
    struct zipccl_topology *t;

    for (unsigned i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        t = make_topology(shapes[i][0], shapes[i][1]);
        check_conservation(t);
        zipccl_topology_destroy(t);
    }
    cr_assert_eq(zipccl_topology_create(6, ids, &t), ZIPCCL_OK);
    check_conservation(t);
    zipccl_topology_destroy(t);
}

Test(lower, ring_parts_cover_the_block)
{
    for (size_t n = 0; n < 40; n++)
        for (uint32_t channels = 1; channels < 12; channels++) {
            size_t at = 0;

            for (uint32_t c = 0; c < channels; c++) {
                cr_assert_eq(zipccl_ring_part_offset(n, channels, c), at);
                at += zipccl_ring_part(n, channels, c);
            }
            cr_assert_eq(at, n);
        }
}

/* 2 x 2 ranks, two rings 0>1>2>3>0 and 1>0>3>2>1, 5 bf16 elements a rank: parts of 3 and 2 elements
 * in a native collective, of 5 bytes each in an exchange. */
Test(lower, rings_are_cut_on_elements_or_bytes)
{
    struct zipccl_topology *t = make_topology(2, 2);
    struct zipccl_call call = make_call(ZIPCCL_ALL_GATHER, 5, 4);
    struct zipccl_plan *native = make_plan("native", &call, t, 1);
    struct zipccl_plan *raw = make_plan("raw ring", &call, t, 1);
    struct matrix m;
    uint32_t nrounds;

    lower_all(native, t, NULL, &m, &nrounds);
    cr_assert_eq(nrounds, 3);
    cr_assert_eq(m.nbytes[0][1], 3 * 3 * 2);
    cr_assert_eq(m.nbytes[1][2], 3 * 3 * 2);
    cr_assert_eq(m.nbytes[1][0], 3 * 2 * 2);
    cr_assert_eq(m.nbytes[0][3], 3 * 2 * 2);
    lower_all(raw, t, NULL, &m, &nrounds);
    cr_assert_eq(nrounds, 3);
    cr_assert_eq(m.nbytes[0][1], 3 * 5);
    cr_assert_eq(m.nbytes[0][3], 3 * 5);
    cr_assert_eq(m.nbytes[0][2], 0);
    zipccl_plan_destroy(native);
    zipccl_plan_destroy(raw);
    zipccl_topology_destroy(t);
}

/* Blocks of 2, 2, 1, 1 elements; the edge out of r carries all but r's, then all but its end's. */
Test(lower, all_reduce_goes_round_twice_with_uneven_blocks)
{
    struct zipccl_topology *t = make_topology(1, 4);
    struct zipccl_call call = make_call(ZIPCCL_ALL_REDUCE, 6, 4);
    struct zipccl_plan *plan = NULL;
    struct matrix m;
    uint32_t nrounds;

    cr_assert_eq(zipccl_strategy_find("native")->build(&call, t, 1, 1, 0, 0, &plan), ZIPCCL_OK);
    lower_all(plan, t, NULL, &m, &nrounds);
    cr_assert_eq(nrounds, 6);
    cr_assert_eq(m.nbytes[0][1], 2 * ((6 - 2) + (6 - 2)));
    cr_assert_eq(m.nbytes[1][2], 2 * ((6 - 2) + (6 - 1)));
    cr_assert_eq(m.nbytes[2][3], 2 * ((6 - 1) + (6 - 1)));
    cr_assert_eq(m.nbytes[3][0], 2 * ((6 - 1) + (6 - 2)));
    zipccl_plan_destroy(plan);
    zipccl_topology_destroy(t);
}

/* Sizes for the tests below: rank 2 has the longest message; pair 1 to 0 overflows. */
static size_t sized(void *context, uint32_t src, uint32_t dst, size_t n)
{
    (void)context;
    (void)dst;
    return src == 2 ? n + 100 : n;
}

static int overflowing(void *context, uint32_t src, uint32_t dst, size_t n, size_t capacity)
{
    cr_assert_lt(capacity, 2 * n);
    return src == 1 && (dst == 0 || dst == UINT32_MAX) && n >= *(const size_t *)context;
}

Test(lower, exact_all_gathers_send_the_longest)
{
    struct zipccl_topology *t = make_topology(1, 4);
    struct zipccl_call call = make_call(ZIPCCL_ALL_GATHER, 1000, 4);
    struct zipccl_plan *ring = make_plan("exact ring", &call, t, 1);
    struct zipccl_plan *direct = make_plan("exact direct", &call, t, 1);
    struct zipccl_plan *pairs;
    struct zipccl_wire_sizes sizes = {.bytes = sized};
    struct matrix m;
    uint32_t nrounds;

    lower_all(direct, t, &sizes, &m, &nrounds);
    cr_assert_eq(m.nbytes[0][1], 1100 + 4);
    lower_all(ring, t, &sizes, &m, &nrounds);
    cr_assert_eq(m.nbytes[0][1], 3 * 1100 + 4);
    call.op = ZIPCCL_ALLTOALL;
    pairs = make_plan("exact direct", &call, t, 1);
    lower_all(pairs, t, &sizes, &m, &nrounds);
    cr_assert_eq(m.nbytes[0][1], 1000 + 4);
    cr_assert_eq(m.nbytes[2][1], 1100 + 4);
    zipccl_plan_destroy(ring);
    zipccl_plan_destroy(direct);
    zipccl_plan_destroy(pairs);
    zipccl_topology_destroy(t);
}

Test(lower, overflow_repeats_the_message_or_the_broadcast)
{
    struct zipccl_topology *t = make_topology(1, 4);
    size_t from = 40000; /* only full chunks overflow */
    struct zipccl_wire_sizes sizes = {.overflows = overflowing, .context = &from};
    struct zipccl_call call = make_call(ZIPCCL_ALLTOALL, 65536 + 1000, 4);
    struct zipccl_plan *plan = make_plan("fixed direct", &call, t, 2);
    uint64_t coded = zipccl_plan_fixed_bytes(plan, plan->chunk_n) +
                     zipccl_plan_fixed_bytes(plan, call.count - plan->chunk_n);
    uint64_t raw = 2 * plan->chunk_n;
    size_t splits[16];
    struct matrix m;
    uint32_t nrounds;

    lower_all(plan, t, &sizes, &m, &nrounds);
    for (uint32_t src = 0; src < 4; src++)
        for (uint32_t dst = 0; dst < 4; dst++)
            cr_assert_eq(m.nbytes[src][dst], src == dst             ? 0
                                             : src == 1 && dst == 0 ? coded + raw
                                                                    : coded);
    zipccl_plan_destroy(plan);

    for (int i = 0; i < 16; i++)
        splits[i] = call.count;
    sizes.splits = splits;
    call.op = ZIPCCL_ALLTOALLV;
    plan = make_plan("fixed direct", &call, t, 2);
    lower_all(plan, t, &sizes, &m, &nrounds);
    cr_assert_eq(m.nbytes[1][0], coded + raw);
    cr_assert_eq(m.nbytes[0][1], coded);
    cr_assert_eq(m.nbytes[1][2], coded);
    zipccl_plan_destroy(plan);

    call.op = ZIPCCL_BROADCAST; /* root 0, which does not overflow, then root 1 */
    for (call.root = 0; call.root < 2; call.root++) {
        plan = make_plan("fixed ring", &call, t, 2);
        lower_all(plan, t, &sizes, &m, &nrounds);
        cr_assert_eq(received(&m, 3), call.root == 1 ? coded + raw : coded);
        cr_assert_eq(received(&m, call.root), 0);
        zipccl_plan_destroy(plan);
    }
    zipccl_topology_destroy(t);
}

Test(lower, invalid_arguments_are_refused)
{
    struct zipccl_topology *t = make_topology(1, 4), *other = make_topology(1, 5);
    struct zipccl_call call = make_call(ZIPCCL_SENDRECV, 100, 4);
    struct zipccl_plan *plan = make_plan("raw direct", &call, t, 1);
    size_t *splits = make_splits(ZIPCCL_SENDRECV, 101, 4);
    struct zipccl_wire_sizes sizes = {.splits = splits};
    struct matrix m = {{{0}}, {{0}}};
    uint32_t nrounds = 7;

    cr_assert_eq(zipccl_lower(plan, 0, t, NULL, add_flow, &m, &nrounds), ZIPCCL_ERR_ARG);
    cr_assert_eq(zipccl_lower(plan, 0, t, &sizes, add_flow, &m, &nrounds), ZIPCCL_ERR_ARG);
    cr_assert_eq(zipccl_lower(plan, 9, t, &sizes, add_flow, &m, &nrounds), ZIPCCL_ERR_ARG);
    cr_assert_eq(zipccl_lower(plan, 0, other, &sizes, add_flow, &m, &nrounds), ZIPCCL_ERR_ARG);
    plan->steps[0].group = ZIPCCL_GROUP_NODE;
    cr_assert_eq(zipccl_lower(plan, 0, t, &sizes, add_flow, &m, &nrounds), ZIPCCL_ERR_UNSUPPORTED);
    cr_assert_eq(nrounds, 7);
    free(splits);
    zipccl_plan_destroy(plan);
    zipccl_topology_destroy(t);
    zipccl_topology_destroy(other);
}

static size_t by_n_bytes(void *context, uint32_t src, uint32_t dst, size_t n)
{
    (void)context, (void)src, (void)dst;
    return 40 + n;
}

static int by_n_overflows(void *context, uint32_t src, uint32_t dst, size_t n, size_t capacity)
{
    (void)context, (void)src, (void)dst, (void)capacity;
    return n % 2 == 1;
}

Test(lower, by_rank_serves_what_depends_on_one_end)
{
    static const size_t counts[] = {1, 33, 1000, 1003};
    struct zipccl_wire_sizes sizes = {
        .bytes = by_n_bytes, .overflows = by_n_overflows, .by_n = true};
    struct zipccl_topology *t;
    unsigned nserved = 0;

    cr_assert_eq(zipccl_topology_create_even(2, 3, &t), ZIPCCL_OK);
    for (unsigned op = 0; op < ZIPCCL_NUM_OPS; op++)
        for (unsigned k = 0; k < sizeof counts / sizeof *counts; k++)
            for (uint32_t i = 0; zipccl_strategies[i] != NULL; i++) {
                struct zipccl_call call = {.op = (enum zipccl_op)op,
                                           .dtype = ZIPCCL_BFLOAT16,
                                           .count = counts[k],
                                           .has_native = true};
                struct zipccl_plan *plan;

                if (zipccl_is_uneven(op) || !zipccl_strategies[i]->serves(&call) ||
                    zipccl_strategies[i]->build(&call, t, 2, 2, 0, 0, &plan) != ZIPCCL_OK)
                    continue;
                for (uint32_t step = 0; step < plan->nsteps; step++) {
                    uint8_t kind = plan->steps[step].kind;

                    if (kind == ZIPCCL_STEP_EXCHANGE || kind == ZIPCCL_STEP_SIZES ||
                        kind == ZIPCCL_STEP_NATIVE)
                        nserved += agrees_by_rank(plan, step, t, &sizes);
                }
                zipccl_plan_destroy(plan);
            }
    /* Not all steps: rings are none. */
    cr_assert_gt(nserved, 200, "only %u steps were served", nserved);
    zipccl_topology_destroy(t);
}

/* The message of one rank, or of one pair, overflows. */
static int ends_overflow(void *context, uint32_t src, uint32_t dst, size_t n, size_t capacity)
{
    const uint32_t *ends = context;

    (void)n;
    (void)capacity;
    return src == ends[0] && (dst == ends[1] || dst == UINT32_MAX || ends[1] == UINT32_MAX);
}

static int short_overflows(void *context, uint32_t src, uint32_t dst, size_t n, size_t capacity)
{
    (void)src;
    (void)dst;
    (void)capacity;
    return n <= *(const uint32_t *)context;
}

static void count_flow(void *context, uint32_t src, uint32_t dst, uint64_t nbytes)
{
    (void)src;
    (void)dst;
    *(uint64_t *)context += nbytes;
}

/* A plan overflows if and only if something of it is sent again. */
static bool resends(const struct zipccl_plan *plan, const struct zipccl_topology *t,
                    const struct zipccl_wire_sizes *sizes)
{
    uint64_t total = 0;
    uint32_t nrounds;

    for (uint32_t i = 0; i < plan->nsteps; i++)
        if (plan->steps[i].kind == ZIPCCL_STEP_EXCHANGE &&
            plan->steps[i].raw_of != ZIPCCL_STEP_NONE)
            cr_assert_eq(zipccl_lower(plan, i, t, sizes, count_flow, &total, &nrounds), ZIPCCL_OK);
    return total > 0;
}

Test(lower, a_plan_overflows_if_some_message_is_sent_again)
{
    static const uint32_t ends[][2] = {{0, UINT32_MAX}, {4, UINT32_MAX}, {5, 2}, {9, 9}};
    static const uint32_t limits[] = {0, 20, 334, 335, 1003};
    size_t splits[36];
    struct zipccl_topology *t;
    unsigned nover = 0, nquiet = 0;

    cr_assert_eq(zipccl_topology_create_even(2, 3, &t), ZIPCCL_OK);
    for (unsigned i = 0; i < 36; i++)
        splits[i] = i * 37 % 1004;
    for (unsigned op = 0; op < ZIPCCL_NUM_OPS; op++)
        for (uint32_t i = 0; zipccl_strategies[i] != NULL; i++) {
            struct zipccl_call call = {
                .op = (enum zipccl_op)op, .dtype = ZIPCCL_BFLOAT16, .count = 1003};
            struct zipccl_plan *plan;

            if (!zipccl_strategies[i]->serves(&call) ||
                zipccl_strategies[i]->build(&call, t, 2, 3, 0, 0, &plan) != ZIPCCL_OK)
                continue;
            for (unsigned k = 0; k < 9; k++) {
                struct zipccl_wire_sizes sizes = {.splits = splits, .by_n = k >= 4};
                bool over;

                sizes.overflows = k < 4 ? ends_overflow : short_overflows;
                sizes.context = (void *)(uintptr_t)(k < 4 ? ends[k] : &limits[k - 4]);
                over = zipccl_lower_overflows(plan, t, &sizes);
                cr_assert_eq(over, resends(plan, t, &sizes), "%s of %s, %u", plan->strategy,
                             zipccl_op_name(call.op), k);
                nover += over;
                nquiet += !over;
            }
            cr_assert_not(zipccl_lower_overflows(plan, t, NULL));
            zipccl_plan_destroy(plan);
        }
    cr_assert(nover > 20 && nquiet > 20, "%u and %u", nover, nquiet);
    zipccl_topology_destroy(t);
}
