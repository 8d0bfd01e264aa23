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
#include "core/tests/coll_run.h"
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

static void get_bytes(const struct world *w, struct zipccl_check_hub *hub, uint64_t *bytes)
{
    for (uint32_t i = 0; i < w->nranks * w->nranks; i++)
        bytes[i] = hub != NULL ? zipccl_transport_check_bytes(hub, i / w->nranks, i % w->nranks)
                               : zipccl_transport_mem_bytes(w->t[0], i / w->nranks, i % w->nranks);
}

struct totals {
    unsigned cases, failures, resends;
};

static void run_case(struct world *w, struct checked *checked, const struct coll_case *c,
                     struct totals *totals)
{
    bool check = totals->cases * 2654435761u >> 31; /* about half, in place or not */
    struct coll_job job = {.world = w, .c = c, .transports = check ? checked->t : w->t};
    uint64_t bytes[MAX_RANKS * MAX_RANKS], again[MAX_RANKS * MAX_RANKS];
    bool ok;

    zipccl_transport_mem_reset_bytes(w->t[0]);
    zipccl_transport_check_reset_bytes(checked->hub);
    ok = coll_run(&job);
    /* Encoding all blocks again takes as long as the case: for large ones two inputs will do. */
    if (ok && (c->count < 5000 || (!SANITIZED && c->kind != KIND_SPECIAL && !c->in_place))) {
        get_bytes(w, NULL, bytes);
        get_bytes(w, check ? checked->hub : NULL, again);
        ok = coll_bytes_right(&job, bytes) &&
             memcmp(bytes, again, (size_t)w->nranks * w->nranks * sizeof *bytes) == 0;
    }
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

/* All inputs of one op, plan and count. */
static void run_inputs(struct world *w, struct checked *checked, struct coll_case c,
                       struct totals *totals)
{
    bool placeable = c.op == ZIPCCL_ALL_GATHER || c.op == ZIPCCL_BROADCAST;
    unsigned first_split = c.op == ZIPCCL_ALLTOALLV ? SPLIT_RANDOM : SPLIT_SHIFT;
    unsigned last_split = c.op == ZIPCCL_ALLTOALLV ? SPLIT_NONE : SPLIT_ONE_WAY;
    bool uneven = zipccl_is_uneven(c.op);

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
                    if ((nchunks[k] > 1 && list[n] < 33) || (RACE_CHECKED && list[n] == 1001) ||
                        (nchunks[k] == 2 && (SANITIZED || list[n] > 20011)))
                        continue;
                    if (coll_can_build(w, &c))
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
        if (SANITIZED && (worlds[i][1] == 4 || worlds[i][1] >= 5 || (RACE_CHECKED && i % 3 != 0)))
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
