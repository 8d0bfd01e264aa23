/*
 * test_reduce_plans.c - reductions of our own have the reference's bits, and the lowering's bytes
 *
 * Every strategy without a native reduction, over the memory transport alone and behind the check
 * transport: sum and avg of bf16, fp16 and fp32, in place and not, with inputs that compress, that
 * are full of special values, and that overflow everywhere.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/reduce_run.h"
#include "core/transport_check.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct totals {
    unsigned cases, failures, resends, special;
};

/* The transports of one world: as they are, and checked. */
struct pair {
    struct world w;
    struct zipccl_check_hub *hub;
    struct zipccl_transport *checked[MAX_RANKS];
};

static void pair_open(struct pair *p)
{
    if (zipccl_transport_check_create(p->w.t, p->w.nranks, &p->hub, p->checked) != ZIPCCL_OK)
        abort();
}

static bool pair_close(struct pair *p)
{
    struct zipccl_error error = {""};
    zipccl_status status;

    for (uint32_t r = 0; r < p->w.nranks; r++)
        p->checked[r]->ops->destroy(p->checked[r]);
    status = zipccl_transport_check_close(p->hub, &error);
    if (status != ZIPCCL_OK)
        fprintf(stderr, "check: %s\n", error.text);
    world_close(&p->w);
    return status == ZIPCCL_OK;
}

static void reset_bytes(struct pair *p)
{
    zipccl_transport_mem_reset_bytes(p->w.t[0]);
    zipccl_transport_check_reset_bytes(p->hub);
}

static void get_bytes(struct pair *p, bool checked, uint64_t *bytes)
{
    uint32_t n = p->w.nranks;

    for (uint32_t i = 0; i < n * n; i++)
        bytes[i] = checked ? zipccl_transport_check_bytes(p->hub, i / n, i % n)
                           : zipccl_transport_mem_bytes(p->w.t[0], i / n, i % n);
}

static void run_case(struct pair *p, const struct reduce_case *c,
                     const struct reduce_inputs *inputs, bool checked, struct totals *totals)
{
    struct reduce_job job = {.world = &p->w,
                             .c = c,
                             .inputs = inputs,
                             .transports = checked ? p->checked : p->w.t,
                             .execs = p->w.exec};
    uint64_t bytes[MAX_RANKS * MAX_RANKS];
    bool ok;

    if (!reduce_open(&job))
        return;
    reset_bytes(p);
    ok = reduce_run(&job);
    if (ok && c->count < 5000) {
        get_bytes(p, checked, bytes);
        ok = reduce_bytes_right(&job, bytes);
        if (checked) { /* both count the same messages */
            get_bytes(p, false, bytes);
            ok = ok && reduce_bytes_right(&job, bytes);
        }
    }
    totals->cases++;
    for (uint32_t r = 0; r < p->w.nranks; r++)
        totals->resends += job.stats[r].raw_resends;
    totals->special += c->kind == KIND_SPECIAL;
    if (!ok) {
        totals->failures++;
        reduce_print(&job);
        fprintf(stderr, "  over %s\n", checked ? "check" : "mem");
        exit(1);
    }
    reduce_close(&job);
}

/* All plans of one call and input; 'k' varies what need not be crossed with everything. */
static void run_plans(struct pair *p, struct reduce_case c, unsigned k, struct totals *totals)
{
    static const uint32_t nchunks[] = {1, 2, 5, 7};
    struct reduce_inputs inputs;

    reduce_inputs_open(&inputs, &c, p->w.nranks);
    for (size_t s = 0; zipccl_strategies[s] != NULL; s++) {
        unsigned nvariants = c.count < 33 ? 1 : c.count > 5000 || SANITIZED ? 2 : 3;

        c.strategy = zipccl_strategies[s];
        if (strncmp(c.strategy->name, "native", 6) == 0)
            continue;
        for (unsigned v = 0; v < nvariants; v++) {
            c.nchunks = nchunks[(v + k) % 4];
            c.capacity_class = (v + k) * 5 % ZIPCCL_NUM_CLASSES;
            c.in_place = (v + k / 2) % 2;
            run_case(p, &c, &inputs, (v + k) % 3 != 0, totals);
        }
    }
    reduce_inputs_close(&inputs);
}

static void run_world(struct pair *p, struct totals *totals)
{
    static const enum zipccl_dtype dtypes[] = {ZIPCCL_BFLOAT16, ZIPCCL_FLOAT16, ZIPCCL_FLOAT32};
    static const size_t counts[] = {0, 1, 31, 32, 33, 1001, 40009};
    static const size_t few_counts[] = {1, 33, 701};
    const size_t *list = SANITIZED ? few_counts : counts;
    size_t ncounts = SANITIZED ? 3 : 7;
    unsigned k = 0;

    for (unsigned op = 0; op < 2; op++)
        for (unsigned d = 0; d < 3; d++)
            for (unsigned redop = 0; redop < 2; redop++)
                for (unsigned kind = 0; kind <= KIND_CANCEL; kind++)
                    for (size_t n = 0; n < ncounts; n++, k++) {
                        struct reduce_case c = {.op =
                                                    op ? ZIPCCL_ALL_REDUCE : ZIPCCL_REDUCE_SCATTER,
                                                .dtype = dtypes[d],
                                                .redop = redop ? ZIPCCL_AVG : ZIPCCL_SUM,
                                                .count = list[n],
                                                .kind = (enum kind)kind};

                        /* A third, of every count; for ThreadSanitizer fewer. */
                        if (SANITIZED && k / 3 % (RACE_CHECKED ? 7 : 3) != 0)
                            continue;
                        /* Large ones: a few, on bf16 and several nodes. */
                        if (c.count > 5000 &&
                            (d > 0 || p->w.topology->nnodes == 1 || (kind + redop + op) % 2))
                            continue;
                        run_plans(p, c, k, totals);
                    }
}

/* Run all cases in an open world and close it. */
static void run_open(struct pair *p, struct totals *totals)
{
    pair_open(p);
    run_world(p, totals);
    if (!pair_close(p))
        totals->failures++;
}

int main(void)
{
    static const uint32_t worlds[][2] = {{1, 1}, {1, 2}, {1, 3}, {1, 4}, {1, 5}, {1, 6},
                                         {1, 7}, {1, 8}, {1, 9}, {2, 2}, {2, 4}, {3, 3}};
    static const uint32_t odd_nodes[] = ODD_NODES, mixed_nodes[] = MIXED_NODES;
    struct totals totals = {0, 0, 0, 0};
    struct pair p;

    /* Keep freed memory: faulting it in anew for each case takes most of the time. */
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
    world_open(&p.w, sizeof odd_nodes / sizeof *odd_nodes, odd_nodes);
    run_open(&p, &totals);
    world_open(&p.w, sizeof mixed_nodes / sizeof *mixed_nodes, mixed_nodes);
    run_open(&p, &totals);
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        if (SANITIZED && (worlds[i][1] == 5 || worlds[i][1] > 6 || (RACE_CHECKED && i % 3 != 0)))
            continue;
        world_open_even(&p.w, worlds[i][0], worlds[i][1]);
        run_open(&p, &totals);
    }
    printf("%u cases (%u with special values), %u failures, %u raw resends\n", totals.cases,
           totals.special, totals.failures, totals.resends);
    return totals.failures == 0 && totals.resends > 0 && totals.special > 0 ? 0 : 1;
}
