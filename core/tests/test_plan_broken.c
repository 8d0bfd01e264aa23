/*
 * test_plan_broken.c - the validator refuses broken plans and names the step and the rule
 *
 * Each case takes a valid plan, breaks one thing, and states what must be said.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/plan_cases.h"

#include <string.h>

#define NRANKS 4
#define COUNT  100003 /* four chunks: three of two superblocks, and a short one */

struct breakage {
    const char *what, *strategy;
    enum zipccl_op op;
    bool in_place;
    void (*make)(struct zipccl_plan *plan);
    const char *expected; /* start of the error text */
};

/* Fixed plans: chunk c is steps 4c (encode), 4c+1 (exchange), 4c+2 (resolve), 4c+3 (resend); then
 * 16 copies and 17 + c decodes.  Exact plans: 3c, 3c+1 (sizes), 3c+2; then 12 and 13 + c. */
static void drop_encode_dep(struct zipccl_plan *plan)
{
    plan->steps[5].ndeps = 0;
}

static void decode_before_resend(struct zipccl_plan *plan)
{
    plan->steps[18].deps[0] = 6;
}

static void decode_before_resolve(struct zipccl_plan *plan)
{
    plan->steps[18].ndeps = 0;
}

static void exact_before_sizes(struct zipccl_plan *plan)
{
    plan->steps[13].ndeps = 0;
}

static void dep_on_later(struct zipccl_plan *plan)
{
    plan->steps[1].deps[0] = 7;
}

static void too_many_deps(struct zipccl_plan *plan)
{
    plan->steps[1].ndeps = ZIPCCL_STEP_MAX_DEPS + 1;
}

static void swap_slots(struct zipccl_plan *plan)
{
    struct zipccl_place first = plan->steps[17].src;

    plan->steps[17].src = plan->steps[18].src;
    plan->steps[18].src = first;
}

static void decode_twice(struct zipccl_plan *plan)
{
    plan->steps[14].src = plan->steps[13].src;
}

static void rename_slot(struct zipccl_plan *plan)
{
    plan->steps[5].dst.slot = 2;
}

static void unknown_slot(struct zipccl_plan *plan)
{
    plan->steps[5].dst.slot = 4;
}

static void reuse_slot_too_early(struct zipccl_plan *plan)
{
    plan->steps[4].dst = plan->steps[0].dst;
    plan->steps[5].src = plan->steps[1].src;
}

static void receive_too_early(struct zipccl_plan *plan)
{
    plan->steps[5].dst = plan->steps[1].dst;
    plan->steps[6].src = plan->steps[2].src;
    plan->steps[7].dst = plan->steps[3].dst;
    plan->steps[18].src = plan->steps[17].src;
}

static void wrong_n(struct zipccl_plan *plan)
{
    plan->steps[9].n--;
}

static void wrong_capacity(struct zipccl_plan *plan)
{
    plan->steps[9].capacity -= 64;
}

static void wrong_chunk(struct zipccl_plan *plan)
{
    plan->steps[0].chunk = 4;
}

static void chunks_too_few(struct zipccl_plan *plan)
{
    plan->nchunks--;
}

static void missing_block(struct zipccl_plan *plan)
{
    plan->nsteps--;
}

static void missing_copy(struct zipccl_plan *plan)
{
    plan->steps[1] = plan->steps[0];
    plan->nsteps--;
}

static void double_write(struct zipccl_plan *plan)
{
    plan->steps[18].dst = plan->steps[17].dst;
}

static void write_elsewhere(struct zipccl_plan *plan)
{
    struct zipccl_place first = plan->steps[17].dst;

    plan->steps[17].dst = plan->steps[18].dst;
    plan->steps[18].dst = first;
}

static void encode_other_chunk(struct zipccl_plan *plan)
{
    plan->steps[4].src.base = 0;
}

static void encode_other_exact(struct zipccl_plan *plan)
{
    plan->steps[3].src.base = 0;
}

static void resend_other_chunk(struct zipccl_plan *plan)
{
    plan->steps[7].src.base = 0;
}

static void staging_too_small(struct zipccl_plan *plan)
{
    plan->rx_bytes -= 256;
}

static void copy_shifted(struct zipccl_plan *plan)
{
    plan->steps[16].src.base = 1;
    plan->steps[16].n = plan->count;
}

static void wrong_lane(struct zipccl_plan *plan)
{
    plan->steps[2].lane = ZIPCCL_LANE_CODEC;
}

static void resend_always(struct zipccl_plan *plan)
{
    plan->steps[3].raw_of = ZIPCCL_STEP_NONE;
}

static void resend_of_other_chunk(struct zipccl_plan *plan)
{
    plan->steps[7].raw_of = 2;
}

static void decode_blindly(struct zipccl_plan *plan)
{
    plan->steps[17].raw_of = ZIPCCL_STEP_NONE;
}

static void sizes_of_other_chunk(struct zipccl_plan *plan)
{
    plan->steps[5].sizes_of = 1;
}

static void ring_stride(struct zipccl_plan *plan)
{
    plan->steps[1].dst.peer_stride += 64;
}

static void no_rings(struct zipccl_plan *plan)
{
    plan->steps[1].channels = 0;
}

static void wrong_root(struct zipccl_plan *plan)
{
    plan->steps[1].root = 0;
}

static void wrong_pattern(struct zipccl_plan *plan)
{
    plan->steps[1].pattern = ZIPCCL_PATTERN_ALL_TO_ALL;
}

static void send_from_recv(struct zipccl_plan *plan)
{
    plan->steps[0].src.buf = ZIPCCL_BUF_RECV;
}

static void even_places(struct zipccl_plan *plan)
{
    plan->steps[0].src.uneven = 0;
}

/* Split plans: 0 (encode early), 1 (exchange early), 2 (encode rest), 3 (sizes or exchange rest). */
static void early_without_encode(struct zipccl_plan *plan)
{
    plan->steps[1].ndeps = 0;
}

static void rest_without_encode(struct zipccl_plan *plan)
{
    plan->steps[3].deps[0] = 0;
}

static void early_twice(struct zipccl_plan *plan)
{
    plan->steps[3].part = ZIPCCL_PART_EARLY;
}

static void never_the_rest(struct zipccl_plan *plan)
{
    plan->steps[3].part = 0;
}

static void parts_of_raw(struct zipccl_plan *plan)
{
    plan->steps[0].part = ZIPCCL_PART_REST;
}

static void half_a_resolve(struct zipccl_plan *plan)
{
    plan->steps[4].part = ZIPCCL_PART_TAIL;
}

static void nothing(struct zipccl_plan *plan)
{
    (void)plan;
}

static const struct breakage breakages[] = {
    {"exchange does not wait for its encode", "fixed direct", ZIPCCL_ALL_GATHER, false,
     drop_encode_dep, "step 5 (exchange) breaks rule 'order': rank 0: no dependency on step 4"},
    {"decode does not wait for the resend", "fixed direct", ZIPCCL_ALL_GATHER, false,
     decode_before_resend, "step 18 (decode) breaks rule 'order': rank 0: no dependency on step 7"},
    {"decode does not wait for headers", "fixed direct", ZIPCCL_ALLTOALL, false,
     decode_before_resolve, "step 18 (decode) breaks rule 'order': it may run before step 6"},
    {"decode of an exact message does not wait", "exact direct", ZIPCCL_ALLTOALL, false,
     exact_before_sizes, "step 13 (decode) breaks rule 'order': rank 0: no dependency on step 2"},
    {"waits for a later step", "fixed ring", ZIPCCL_BROADCAST, false, dep_on_later,
     "step 1 (exchange) breaks rule 'reference': it waits for step 7"},
    {"more dependencies than there is room", "fixed ring", ZIPCCL_BROADCAST, false, too_many_deps,
     "step 1 (exchange) breaks rule 'reference': 7 dependencies"},
    {"two decodes swap their slots", "fixed ring", ZIPCCL_ALL_GATHER, false, swap_slots,
     "step 17 (decode) breaks rule 'order': rank 0: no dependency on step 7"},
    {"one message is decoded twice", "exact direct", ZIPCCL_ALLTOALL, false, decode_twice,
     "step 14 (decode) breaks rule 'content': rank 0: finds another message, left by step 2"},
    {"a slot of another name", "fixed direct", ZIPCCL_ALL_GATHER, false, rename_slot,
     "step 5 (exchange) breaks rule 'staging': rank 1: bytes"},
    {"a slot that is not there", "fixed direct", ZIPCCL_ALL_GATHER, false, unknown_slot,
     "step 5 (exchange) breaks rule 'form'"},
    {"a TX slot is filled while it is sent", "fixed direct", ZIPCCL_ALL_GATHER, false,
     reuse_slot_too_early, "step 4 (encode) breaks rule 'order': rank 0: no dependency on step 1"},
    {"an RX slot is filled while it is decoded", "fixed direct", ZIPCCL_ALLTOALL, false,
     receive_too_early, "step 17 (decode) breaks rule 'order': rank 0: no dependency on step"},
    {"n of an exchange", "fixed direct", ZIPCCL_ALL_GATHER, false, wrong_n,
     "step 9 (exchange) breaks rule 'agree': n is 32767, chunk 2 has 32768"},
    {"capacity of an exchange", "fixed direct", ZIPCCL_ALL_GATHER, false, wrong_capacity,
     "step 9 (exchange) breaks rule 'agree': capacity"},
    {"a chunk too far", "fixed direct", ZIPCCL_ALL_GATHER, false, wrong_chunk,
     "step 0 (encode) breaks rule 'chunk': chunk 4 of 4"},
    {"a chunk too few", "fixed direct", ZIPCCL_ALL_GATHER, false, chunks_too_few, "rule 'chunk'"},
    {"the last decode is missing", "fixed direct", ZIPCCL_ALL_GATHER, false, missing_block,
     "rule 'output': rank 0 gets "},
    {"the last decode is missing, in place", "fixed ring", ZIPCCL_BROADCAST, true, missing_block,
     "rule 'output': rank 0 gets "},
    {"the own block is missing", "raw direct", ZIPCCL_ALLTOALL, false, missing_copy,
     "rule 'output': rank 0 gets 600018 bytes of 800024"},
    {"two chunks go to one place", "fixed direct", ZIPCCL_ALL_GATHER, false, double_write,
     "step 18 (decode) breaks rule 'output': rank 0: byte 200006 is written by step 17 too"},
    {"two chunks change places", "fixed direct", ZIPCCL_ALL_GATHER, false, write_elsewhere,
     "step 17 (decode) breaks rule 'output': rank 0: bytes"},
    {"an early write, in place", "fixed direct", ZIPCCL_ALLTOALL, true, write_elsewhere,
     "step 17 (decode) breaks rule 'in place': rank 0: overwrites bytes that step 7 may"},
    {"received where it is still sent from", "raw direct", ZIPCCL_ALLTOALL, true, nothing,
     "step 0 (exchange) breaks rule 'in place': rank 0: overwrites bytes that step 0 may"},
    {"the wrong chunk is encoded", "fixed direct", ZIPCCL_ALL_GATHER, false, encode_other_chunk,
     "step 18 (decode) breaks rule 'content': rank 0: the resend of member 1 is not what"},
    {"the wrong chunk is encoded, exact", "exact direct", ZIPCCL_ALL_GATHER, false,
     encode_other_exact, "step 14 (decode) breaks rule 'output': rank 0: bytes"},
    {"the wrong chunk is sent again", "fixed direct", ZIPCCL_ALL_GATHER, false, resend_other_chunk,
     "step 18 (decode) breaks rule 'content': rank 0: the resend of member 1 is not what"},
    {"a slot too short", "fixed direct", ZIPCCL_ALL_GATHER, false, staging_too_small,
     "step 3 (exchange) breaks rule 'staging': rank 0"},
    {"the own block is shifted", "fixed direct", ZIPCCL_ALL_GATHER, false, copy_shifted,
     "step 16 (copy) breaks rule 'content': rank 0: reads bytes 2 to 200008 of a send buffer"},
    {"the own block is shifted, in place", "fixed direct", ZIPCCL_ALL_GATHER, true, copy_shifted,
     "step 16 (copy) breaks rule 'in place': rank 0: overwrites bytes"},
    {"a lane that it cannot use", "fixed direct", ZIPCCL_ALL_GATHER, false, wrong_lane,
     "step 2 (resolve) breaks rule 'lane'"},
    {"a resend that always runs", "fixed direct", ZIPCCL_ALL_GATHER, false, resend_always,
     "step 2 (resolve) breaks rule 'reference': no exchange sends again"},
    {"a resend for another chunk", "fixed direct", ZIPCCL_ALL_GATHER, false, resend_of_other_chunk,
     "step 6 (resolve) breaks rule 'reference'"},
    {"a decode that heeds no header", "fixed direct", ZIPCCL_ALL_GATHER, false, decode_blindly,
     "step 17 (decode) breaks rule 'reference': no RESOLVE"},
    {"sizes of another chunk", "exact ring", ZIPCCL_ALL_GATHER, false, sizes_of_other_chunk,
     "step 5 (exchange) breaks rule 'reference': step 1"},
    {"blocks of a ring apart", "fixed ring", ZIPCCL_ALL_GATHER, false, ring_stride,
     "step 1 (exchange) breaks rule 'agree': blocks"},
    {"no rings", "fixed ring", ZIPCCL_ALL_GATHER, false, no_rings,
     "step 1 (exchange) breaks rule 'agree': root or channels"},
    {"another root", "fixed ring", ZIPCCL_BROADCAST, false, wrong_root,
     "step 1 (exchange) breaks rule 'agree': root or channels"},
    {"another pattern", "fixed direct", ZIPCCL_ALL_GATHER, false, wrong_pattern,
     "step 1 (exchange) breaks rule 'form': its pattern"},
    {"another buffer", "fixed direct", ZIPCCL_ALL_GATHER, false, send_from_recv,
     "step 0 (encode) breaks rule 'form': its kind and buffers"},
    {"an early part leaves before it is coded", "fixed split", ZIPCCL_ALLTOALL, false,
     early_without_encode,
     "step 1 (exchange) breaks rule 'order': rank 0: no dependency on step 0"},
    {"the rest leaves before it is coded", "fixed split", ZIPCCL_ALL_GATHER, false,
     rest_without_encode, "step 3 (exchange) breaks rule 'order': rank 0: no dependency on step 2"},
    {"the sizes of what is not coded", "exact split", ZIPCCL_ALLTOALL, false, rest_without_encode,
     "step 3 (sizes) breaks rule 'order': rank 0: no dependency on step 2"},
    {"the early part twice", "fixed split", ZIPCCL_ALLTOALL, false, early_twice,
     "step 4 (resolve) breaks rule 'content': rank 0: reads what no step has written"},
    {"all of a message in parts", "fixed split", ZIPCCL_ALLTOALL, false, never_the_rest,
     "step 3 (exchange) breaks rule 'content': rank 0: finds another message"},
    {"parts of what has none", "raw direct", ZIPCCL_ALLTOALL, false, parts_of_raw,
     "step 0 (exchange) breaks rule 'form': it cannot be of part 5"},
    {"a header in a tail", "fixed split", ZIPCCL_ALLTOALL, false, half_a_resolve,
     "step 4 (resolve) breaks rule 'form': it cannot be of part 4"},
    {"no peer table", "fixed direct", ZIPCCL_ALLTOALLV, false, even_places,
     "step 0 (encode) breaks rule 'form': a place"},
};

Test(plan_broken, each_breakage_is_refused_by_step_and_rule)
{
    struct zipccl_topology *t = make_topology(2, NRANKS / 2);

    for (unsigned i = 0; i < sizeof breakages / sizeof *breakages; i++) {
        const struct breakage *b = &breakages[i];
        struct zipccl_call call = make_call(b->op, COUNT, NRANKS);
        struct zipccl_plan *plan = make_plan(b->strategy, &call, t, 4);
        size_t *splits = zipccl_is_uneven(b->op) ? make_splits(b->op, COUNT, NRANKS) : NULL;
        struct zipccl_error error = {""};

        cr_expect_eq(zipccl_plan_validate(plan, t, false, splits, 0, &error), ZIPCCL_OK);
        b->make(plan);
        cr_expect_eq(zipccl_plan_validate(plan, t, b->in_place, splits, 0, &error), ZIPCCL_ERR_ARG,
                     "%s: accepted", b->what);
        cr_expect_eq(strncmp(error.text, b->expected, strlen(b->expected)), 0,
                     "%s:\n  got      %s\n  expected %s", b->what, error.text, b->expected);
        free(splits);
        zipccl_plan_destroy(plan);
    }
    zipccl_topology_destroy(t);
}

/* Every dependency that no lane order implies must matter. */
Test(plan_broken, no_needed_dependency_can_be_dropped)
{
    static const char *const names[] = {"fixed direct", "fixed ring",  "exact direct",
                                        "exact ring",   "fixed split", "exact split"};
    struct zipccl_topology *t = make_topology(1, 3);
    struct zipccl_call call = make_call(ZIPCCL_ALL_GATHER, 1001, 3);
    struct zipccl_error error;

    for (unsigned i = 0; i < 4; i++) {
        struct zipccl_plan *plan = make_plan(names[i], &call, t, 7);
        unsigned refused = 0;

        for (uint32_t s = 0; s < plan->nsteps; s++) {
            struct zipccl_step before = plan->steps[s];

            /* Encode to wire, and wire to decode: one each per chunk. */
            plan->steps[s].ndeps = 0;
            if (before.ndeps > 0 &&
                zipccl_plan_validate(plan, t, false, NULL, 0, &error) != ZIPCCL_OK)
                refused++;
            plan->steps[s] = before;
        }
        cr_assert_eq(refused, 2 * plan->nchunks, "%s: %u", names[i], refused);
        zipccl_plan_destroy(plan);
    }
    zipccl_topology_destroy(t);
}

/* One random byte of one step: accepted or refused, and never more than that (sanitizers). */
Test(plan_broken, random_damage_is_survived)
{
    struct zipccl_topology *t = make_topology(2, 2);
    uint64_t random = 88172645463325252u;
    unsigned refused = 0, tried = 0;

    for (unsigned op = 0; op < ZIPCCL_NUM_OPS; op++)
        for (unsigned i = 0; zipccl_strategies[i] != NULL; i++) {
            struct zipccl_call call = make_call((enum zipccl_op)op, 5001, 4);
            size_t *splits = make_splits(call.op, 5001, 4);
            struct zipccl_plan *plan = NULL;

            if (zipccl_strategies[i]->serves(&call))
                plan = make_plan(zipccl_strategies[i]->name, &call, t, 6);
            for (unsigned k = 0; plan != NULL && k < 300; k++) {
                struct zipccl_step *step, before;
                struct zipccl_error error;

                random = random * 6364136223846793005u + 1442695040888963407u;
                step = &plan->steps[(random >> 40) % plan->nsteps];
                before = *step;
                ((unsigned char *)step)[(random >> 20) % sizeof before] ^= 1u << (random >> 60) % 8;
                refused += zipccl_plan_validate(plan, t, k % 2, splits, 0, &error) != ZIPCCL_OK;
                tried++;
                *step = before;
            }
            zipccl_plan_destroy(plan);
            free(splits);
        }
    cr_assert_gt(refused, tried / 3);
    zipccl_topology_destroy(t);
}

Test(plan_broken, plans_of_another_world_are_refused)
{
    struct zipccl_topology *t = make_topology(1, 3), *other = make_topology(1, 4);
    struct zipccl_call call = make_call(ZIPCCL_ALLTOALLV, 1001, 3);
    struct zipccl_plan *plan = make_plan("raw direct", &call, t, 1);
    size_t *splits = make_splits(ZIPCCL_ALLTOALLV, 1001, 3);
    struct zipccl_error error;

    cr_assert_eq(zipccl_plan_validate(plan, t, false, splits, 0, &error), ZIPCCL_OK);
    cr_assert_eq(zipccl_plan_validate(plan, other, false, splits, 0, &error), ZIPCCL_ERR_ARG);
    cr_assert_eq(zipccl_plan_validate(plan, t, false, NULL, 0, &error), ZIPCCL_ERR_ARG);
    splits[1]++;
    splits[2]++;
    cr_assert_eq(zipccl_plan_validate(plan, t, false, splits, 0, NULL), ZIPCCL_ERR_ARG);
    free(splits);
    zipccl_plan_destroy(plan);
    zipccl_topology_destroy(other);
    zipccl_topology_destroy(t);
}
