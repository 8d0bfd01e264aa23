/*
 * test_plan.c - every strategy builds valid plans, at every size and on every topology
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/plan_cases.h"

#include <string.h>

static const size_t counts[] = {0, 1, 31, 32, 33, 1001, 100003};
static const uint32_t chunks[] = {1, 2, 3, 5, 16};

#define LENGTH(a) (sizeof(a) / sizeof *(a))

/* Ops whose plans also hold when the buffers are the same, as NCCL defines in place. */
static bool has_in_place(const struct zipccl_call *call)
{
    return call->op != ZIPCCL_ALLTOALL && !zipccl_is_uneven(call->op);
}

static bool refuses(const struct zipccl_strategy *s, const struct zipccl_topology *t)
{
    bool two_levels = t->even && t->nnodes > 1 && t->nranks > t->nnodes;

    return (s->compressed && t->nranks < 2) || (strstr(s->name, "two-level") && !two_levels);
}

/* Build, check and build again; a plan of '*before' chunks has been checked, and '*before' becomes
 * what this one has. */
static unsigned check_case(const struct zipccl_strategy *s, const struct zipccl_call *call,
                           const struct zipccl_topology *t, uint32_t nchunks, uint32_t *before)
{
    struct zipccl_plan *plan = NULL, *again = NULL;
    struct zipccl_error error = {""};
    size_t *splits =
        zipccl_is_uneven(call->op) ? make_splits(call->op, call->count, t->nranks) : NULL;
    zipccl_status status = s->build(call, t, 3, nchunks, 0, 0, &plan);

    if (refuses(s, t)) {
        cr_assert_eq(status, ZIPCCL_ERR_UNSUPPORTED);
        free(splits);
        return 0;
    }
    cr_assert_eq(status, ZIPCCL_OK);
    if (plan->nchunks == *before) {
        zipccl_plan_destroy(plan);
        free(splits);
        return 0;
    }
    *before = plan->nchunks;
    for (int in_place = 0; in_place <= has_in_place(call); in_place++) {
        status = zipccl_plan_validate(plan, t, in_place, splits, 0, &error);
        if (status != ZIPCCL_OK)
            zipccl_plan_print(plan, stderr);
        cr_assert_eq(status, ZIPCCL_OK, "%s, in place %d: %s", plan->strategy, in_place,
                     error.text);
    }
    cr_assert_eq(s->build(call, t, 3, nchunks, 0, 0, &again), ZIPCCL_OK);
    cr_assert_eq(zipccl_plan_digest(plan), zipccl_plan_digest(again));
    cr_assert_eq((bool)plan->compressed, s->compressed && call->count > 0);
    cr_assert_eq(strncmp(plan->strategy, s->name, strlen(s->name)), 0);
    if (!zipccl_strategy_chunks(s, call))
        cr_assert_leq(plan->nchunks, 1);
    zipccl_plan_destroy(plan);
    zipccl_plan_destroy(again);
    free(splits);
    return 1;
}

static unsigned check_topology(const struct zipccl_topology *t)
{
    unsigned nplans = 0;

    for (unsigned i = 0; zipccl_strategies[i] != NULL; i++)
        for (unsigned op = 0; op < ZIPCCL_NUM_OPS; op++)
            for (unsigned n = 0; n < LENGTH(counts); n++) {
                uint32_t before = UINT32_MAX;

                for (unsigned k = 0; k < LENGTH(chunks); k++) {
                    struct zipccl_call call = make_call((enum zipccl_op)op, counts[n], t->nranks);

                    if (zipccl_strategies[i]->serves(&call) &&
                        (k == 0 || zipccl_strategy_chunks(zipccl_strategies[i], &call)))
                        nplans += check_case(zipccl_strategies[i], &call, t, chunks[k], &before);
                }
            }
    return nplans;
}

static void check_shapes(const uint32_t (*shapes)[2], unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct zipccl_topology *t = make_topology(shapes[i][0], shapes[i][1]);

        cr_assert_gt(check_topology(t), 0);
        zipccl_topology_destroy(t);
    }
}

Test(plan, every_strategy_is_valid_on_one_to_seven_ranks)
{
    static const uint32_t shapes[][2] = {{1, 1}, {1, 2}, {1, 3}, {1, 4}, {1, 5}, {1, 6}, {1, 7}};

    check_shapes(shapes, LENGTH(shapes));
}

Test(plan, every_strategy_is_valid_on_eight_and_nine_ranks)
{
    static const uint32_t shapes[][2] = {{1, 8}, {1, 9}};

    check_shapes(shapes, LENGTH(shapes));
}

Test(plan, every_strategy_is_valid_on_several_nodes)
{
    static const uint32_t shapes[][2] = {{2, 2}, {2, 4}, {3, 3}};

    check_shapes(shapes, LENGTH(shapes));
}

Test(plan, every_strategy_is_valid_on_scattered_nodes)
{
    static const uint32_t ids[] = {7, 3, 7, 7, 3};
    struct zipccl_topology *t;

    cr_assert_eq(zipccl_topology_create(5, ids, &t), ZIPCCL_OK);
    cr_assert_gt(check_topology(t), 0);
    zipccl_topology_destroy(t);
}

Test(plan, large_chunks_are_whole_superblocks)
{
    struct zipccl_topology *t = make_topology(2, 4);
    struct zipccl_call call = make_call(ZIPCCL_ALL_GATHER, 10000019, 8);

    for (uint32_t k = 2; k <= 64; k *= 2) {
        struct zipccl_plan *plan = make_plan("fixed ring", &call, t, k);

        cr_assert_eq(plan->chunk_n % ZIPCCL_CHUNK_ALIGN_N, 0);
        cr_assert_leq(plan->nchunks, k);
        cr_assert_gt(2 * plan->nchunks, k);
        zipccl_plan_destroy(plan);
    }
    zipccl_topology_destroy(t);
}

Test(plan, staging_bound_makes_chunks_smaller_or_fails)
{
    static const char *const names[] = {"fixed direct", "fixed ring", "exact direct", "exact ring"};
    struct zipccl_topology *t = make_topology(2, 4);
    struct zipccl_call call = make_call(ZIPCCL_ALL_GATHER, 200003, 8);
    struct zipccl_error error;

    for (unsigned i = 0; i < LENGTH(names); i++) {
        const struct zipccl_strategy *s = zipccl_strategy_find(names[i]);
        struct zipccl_plan *plan = NULL;
        uint32_t before = 1;

        for (size_t bound = 8 << 20; bound >= 128 << 10; bound /= 4) {
            cr_assert_eq(s->build(&call, t, 2, 1, 0, bound, &plan), ZIPCCL_OK);
            cr_assert_leq(plan->tx_bytes + plan->rx_bytes, bound);
            cr_assert_eq(zipccl_plan_validate(plan, t, true, NULL, bound, &error), ZIPCCL_OK);
            cr_assert_neq(zipccl_plan_validate(plan, t, true, NULL, 1000, &error), ZIPCCL_OK);
            cr_assert_geq(plan->nchunks, before);
            before = plan->nchunks;
            zipccl_plan_destroy(plan);
        }
        cr_assert_eq(s->build(&call, t, 2, 1, 0, 2048, &plan), ZIPCCL_ERR_NOMEM);
    }
    zipccl_topology_destroy(t);
}

Test(plan, fewer_slots_come_before_smaller_chunks)
{
    static const char *const names[] = {"fixed direct", "fixed ring", "fixed two-level",
                                        "exact two-level"};
    struct zipccl_topology *t = make_topology(2, 4);
    struct zipccl_call call = make_call(ZIPCCL_ALL_GATHER, 2000003, 8);
    struct zipccl_error error;

    for (unsigned i = 0; i < LENGTH(names); i++) {
        const struct zipccl_strategy *s = zipccl_strategy_find(names[i]);
        struct zipccl_plan *wide = NULL, *tight = NULL;
        size_t slot;

        cr_assert_eq(s->build(&call, t, 2, 8, 0, 0, &wide), ZIPCCL_OK);
        slot = (wide->tx_bytes + wide->rx_bytes) / wide->nslots;
        for (uint32_t slots = 4; slots >= 1; slots--) {
            cr_assert_eq(s->build(&call, t, 2, 8, 0, slots * slot, &tight), ZIPCCL_OK);
            if (slots > 1) {
                cr_assert(tight->nslots == slots && tight->chunk_n == wide->chunk_n);
            } else {
                cr_assert(tight->nslots >= 2 && tight->chunk_n < wide->chunk_n);
            }
            cr_assert_eq(zipccl_plan_validate(tight, t, true, NULL, slots * slot, &error),
                         ZIPCCL_OK, "%s", error.text);
            zipccl_plan_destroy(tight);
        }
        zipccl_plan_destroy(wide);
    }
    zipccl_topology_destroy(t);
}

Test(plan, digests_differ_where_plans_do)
{
    struct zipccl_topology *t = make_topology(2, 2);
    uint64_t seen[600];
    unsigned n = 0;

    for (unsigned i = 0; zipccl_strategies[i] != NULL; i++)
        for (unsigned op = 0; op < ZIPCCL_NUM_OPS; op++)
            for (uint32_t k = 1; k <= 4; k *= 2) {
                struct zipccl_call call = make_call((enum zipccl_op)op, 100003, 4);
                struct zipccl_plan *plan;

                if (!zipccl_strategies[i]->serves(&call) ||
                    (k > 1 && !zipccl_strategy_chunks(zipccl_strategies[i], &call)))
                    continue;
                plan = make_plan(zipccl_strategies[i]->name, &call, t, k);
                seen[n] = zipccl_plan_digest(plan);
                for (unsigned j = 0; j < n; j++)
                    cr_assert_neq(seen[j], seen[n], "%s %s", plan->strategy,
                                  zipccl_op_name(call.op));
                n++;
                zipccl_plan_destroy(plan);
            }
    cr_assert_gt(n, 20);
    zipccl_topology_destroy(t);
}

Test(plan, digest_sees_every_field_of_a_step)
{
    struct zipccl_topology *t = make_topology(1, 4);
    struct zipccl_call call = make_call(ZIPCCL_ALL_GATHER, 1001, 4);
    struct zipccl_plan *plan = make_plan("fixed direct", &call, t, 2);
    struct zipccl_step *s = &plan->steps[1], before = *s;
    uint64_t digest = zipccl_plan_digest(plan);

#define CHANGED(field)                                                                             \
    s->field++;                                                                                    \
    cr_assert_neq(zipccl_plan_digest(plan), digest, #field);                                       \
    *s = before
    CHANGED(kind);
    CHANGED(lane);
    CHANGED(pattern);
    CHANGED(form);
    CHANGED(lowering);
    CHANGED(group);
    CHANGED(chunk);
    CHANGED(channels);
    CHANGED(root);
    CHANGED(src.base);
    CHANGED(src.slot);
    CHANGED(src.buf);
    CHANGED(src.uneven);
    CHANGED(dst.peer_stride);
    CHANGED(dst.self_stride);
    CHANGED(n);
    CHANGED(capacity);
    CHANGED(sizes_of);
    CHANGED(raw_of);
    CHANGED(deps[0]);
    CHANGED(nblocks);
    CHANGED(remote);
    CHANGED(redop);
    CHANGED(first);
    CHANGED(round);
    CHANGED(src.by_rank);
    CHANGED(src.block_stride);
    CHANGED(self.base);
#undef CHANGED
    cr_assert_eq(zipccl_plan_digest(plan), digest);
    zipccl_plan_destroy(plan);
    zipccl_topology_destroy(t);
}

Test(plan, invalid_calls_are_refused)
{
    struct zipccl_topology *t = make_topology(2, 2);
    struct zipccl_plan *plan = NULL;

    for (unsigned i = 0; zipccl_strategies[i] != NULL; i++) {
        const struct zipccl_strategy *s = zipccl_strategies[i];
        struct zipccl_call call = make_call(ZIPCCL_BROADCAST, 100, 4);

        call.root = 4;
        if (s->serves(&call))
            cr_assert_eq(s->build(&call, t, 1, 1, 0, 0, &plan), ZIPCCL_ERR_ARG);
        call = make_call(ZIPCCL_ALL_GATHER, SIZE_MAX / 8, 4);
        if (s->serves(&call))
            cr_assert_eq(s->build(&call, t, 1, 1, 0, 0, &plan), ZIPCCL_ERR_ARG);
        call = make_call(ZIPCCL_ALL_GATHER, 100, 4);
        call.dtype = ZIPCCL_FLOAT64;
        cr_assert_eq(s->serves(&call), !s->compressed);
        call = make_call(ZIPCCL_REDUCE_SCATTER, 100, 4);
        call.has_native = false;
        call.redop = ZIPCCL_MAX;
        cr_assert_not(s->serves(&call));
        call.redop = ZIPCCL_AVG;
        call.dtype = ZIPCCL_FLOAT64;
        cr_assert_not(s->serves(&call));
        call.dtype = ZIPCCL_FLOAT32;
        bool reduces = strstr(s->name, "direct") || strstr(s->name, "two-level");
        cr_assert_eq(s->serves(&call), reduces, "%s", s->name);
    }
    cr_assert_null(plan);
    cr_assert_null(zipccl_strategy_find("no such"));
    zipccl_plan_destroy(NULL);
    zipccl_topology_destroy(t);
    zipccl_topology_destroy(NULL);
}

Test(plan, capacity_follows_its_class)
{
    static const struct {
        const char *name;
        double ratio;
    } named[] = {{"wide", 1.25},  {"loose", 1.40},   {"medium", 1.45},
                 {"tight", 1.48}, {"settled", 1.50}, {"settled-12", 1.737}};
    const size_t n = 1 << 20, raw = 2 * n;

    for (size_t k = 0; k < 3000; k += k < 100 ? 1 : 37)
        for (int c = 0; c < ZIPCCL_NUM_CLASSES; c++) {
            size_t capacity = zipccl_capacity(ZIPCCL_BFLOAT16, k, (uint32_t)c);

            cr_assert_leq(capacity, 2 * k + 32);
            cr_assert(c > ZIPCCL_CLASS_SETTLED ||
                      capacity >= zipccl_capacity_settled(ZIPCCL_BFLOAT16, k));
            cr_assert_geq(capacity, (size_t)ZIPCCL_MESSAGE_HEADER_BYTES);
            cr_assert(c == 0 || capacity <= zipccl_capacity(ZIPCCL_BFLOAT16, k, (uint32_t)c - 1));
        }
    for (unsigned i = 0, c = 0; i < sizeof named / sizeof *named; i++) {
        while (strcmp(zipccl_class_name((int)c), named[i].name) != 0)
            c++;
        cr_assert_float_eq((double)raw / (double)zipccl_capacity(ZIPCCL_BFLOAT16, n, c),
                           named[i].ratio, 4e-3, "class %u", c);
    }
    cr_assert_str_eq(zipccl_class_name(ZIPCCL_CLASS_SETTLED), "settled");
    cr_assert_eq(zipccl_capacity(ZIPCCL_BFLOAT16, n, ZIPCCL_NUM_CLASSES), raw + 32);
    cr_assert_eq(zipccl_capacity(ZIPCCL_FLOAT64, 1000, 0), 8032);
}

/* What lies between two classes costs less than the 1.5 % of the ratio that fixed messages may lose. */
Test(plan, neighbouring_classes_are_close)
{
    static const size_t lengths[] = {40704, 40960, 130944, 1 << 20, 1 << 26};

    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (uint32_t c = 1; c <= ZIPCCL_CLASS_SETTLED + 12; c++) {
            double wider = (double)zipccl_capacity(ZIPCCL_BFLOAT16, lengths[i], c - 1);
            double narrower = (double)zipccl_capacity(ZIPCCL_BFLOAT16, lengths[i], c);

            cr_assert_gt(narrower / wider, 0.986, "class %u of %zu", c, lengths[i]);
            cr_assert_lt(narrower / wider, 0.995, "class %u of %zu", c, lengths[i]);
        }
}

Test(plan, what_overflowed_fits_the_next_class_with_more_room)
{
    static const size_t lengths[] = {8, 512, 1000, 1024, 1536, 4096, 1 << 16};
    static const enum zipccl_dtype types[] = {ZIPCCL_BFLOAT16, ZIPCCL_FLOAT32, ZIPCCL_FLOAT8_E4M3};
    unsigned nequal = 0;

    for (size_t i = 0; i < 3 * sizeof lengths / sizeof *lengths; i++)
        for (int c = 0; c < ZIPCCL_NUM_CLASSES; c++) {
            enum zipccl_dtype dtype = types[i % 3];
            size_t n = lengths[i / 3], room = zipccl_capacity(dtype, n, (uint32_t)c);
            int next = zipccl_class_roomier(dtype, n, c);

            cr_assert(next < c && next >= ZIPCCL_NO_CLASS);
            if (next >= 0)
                cr_assert_gt(zipccl_capacity(dtype, n, (uint32_t)next), room);
            cr_assert_eq(zipccl_capacity(dtype, n, (uint32_t)(next + 1)), room);
            nequal += next < c - 1;
        }
    cr_expect_gt(nequal, 50, "short messages have many");
    cr_assert_eq(zipccl_class_roomier(ZIPCCL_BFLOAT16, 8, ZIPCCL_NUM_CLASSES), ZIPCCL_NO_CLASS);
}

Test(plan, a_message_fits_the_narrowest_class_that_holds_it)
{
    const size_t n = 1 << 16;

    for (int c = 0; c < ZIPCCL_NUM_CLASSES; c++) {
        size_t capacity = zipccl_capacity(ZIPCCL_BFLOAT16, n, (uint32_t)c);

        cr_assert_eq(zipccl_class_fit(ZIPCCL_BFLOAT16, n, capacity), c);
        cr_assert_eq(zipccl_class_fit(ZIPCCL_BFLOAT16, n, capacity + 1), c - 1);
        cr_assert_str_neq(zipccl_class_name(c), "none");
    }
    cr_assert_eq(zipccl_class_narrowest(ZIPCCL_BFLOAT16, n), ZIPCCL_NUM_CLASSES - 1);
    /* All classes of a short message are its bound, so the first is the only one of use. */
    cr_assert_eq(zipccl_class_narrowest(ZIPCCL_BFLOAT16, 8), ZIPCCL_CLASS_WIDE);
    cr_assert_eq(zipccl_class_fit(ZIPCCL_BFLOAT16, 8, 48), ZIPCCL_NUM_CLASSES - 1);
    cr_assert_eq(zipccl_class_fit(ZIPCCL_BFLOAT16, 8, 49), ZIPCCL_NO_CLASS);
    cr_assert_str_eq(zipccl_class_name(ZIPCCL_NO_CLASS), "none");
    cr_assert_str_eq(zipccl_class_name(ZIPCCL_NUM_CLASSES), "none");
}
