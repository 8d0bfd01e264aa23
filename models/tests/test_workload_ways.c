/*
 * test_workload_ways.c - experts that are split, tokens sent by nodes, calls beside products, by hand
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/tests/workload_use.h"

#include <criterion/criterion.h>
#include <string.h>

#define BF16 ZIPCCL_BFLOAT16
#define FP32 ZIPCCL_FLOAT32

static const struct zipccl_trace_group *group_of(const struct step *s, const char *name)
{
    for (uint32_t g = 0; g < s->trace->header.ngroups; g++)
        if (strcmp(s->trace->header.groups[g].name, name) == 0)
            return &s->trace->header.groups[g];
    cr_assert_fail("no group %s", name);
    return NULL;
}

/* 16 ranks: two of tp, and of etp; four of ep, every second; two copies of a pair of experts. */
Test(workload_ways, experts_split_over_tensor_parallel_ranks)
{
    struct zipccl_workload w = workload_of("mixtral-8x7b", 8);
    uint64_t rows = 4096 / 2 * 2; /* of a rank: half the tokens, two experts each */
    const struct zipccl_trace_group *g;
    struct step s;

    w.tp = w.etp = 2;
    w.sp = true;
    w.ep = 4;
    w.sharding = ZIPCCL_SHARD_DDP;
    w.bucket = (uint64_t)1 << 40;
    s = step_of(&w);
    cr_expect_eq(step_calls(&s, ZIPCCL_ALLTOALL, "ep", BF16, rows * 4096 / 4), 4 * 32);
    /* Rows gathered and outputs scattered, and backward their gradients the other way. */
    cr_expect_eq(step_calls(&s, ZIPCCL_ALL_GATHER, "etp", BF16, rows * 4096), 2 * 32);
    cr_expect_eq(step_calls(&s, ZIPCCL_REDUCE_SCATTER, "etp", BF16, rows * 4096), 2 * 32);
    cr_expect_eq(step_calls(&s, ZIPCCL_ALL_GATHER, "etp.ep", ZIPCCL_INT64, 8), 32);
    cr_expect_eq(step_elements(&s, ZIPCCL_ALL_REDUCE, "edp", BF16), 32 * 2 * 176160768ull / 2);
    g = group_of(&s, "ep");
    cr_expect(g->size == 4 && g->ranks[1] == 2 && g->ranks[3] == 6 && g->ranks[4] == 1);
    g = group_of(&s, "etp");
    cr_expect(g->size == 2 && g->nparts == 8 && g->ranks[1] == 1);
    g = group_of(&s, "edp");
    cr_expect(g->size == 2 && g->nparts == 8 && g->ranks[1] == 8);
    step_free(&s);
}

/* 64 ranks of ep on 8 nodes; a token's 8 experts are on at most 4 of them. */
Test(workload_ways, tokens_sent_once_to_each_node)
{
    struct zipccl_workload w = workload_of("deepseek-v3", 64);
    const struct zipccl_trace_group *g;
    struct step s;

    w.ep = 64;
    w.node_dispatch = true;
    cr_expect_eq(w.model.node_limit, 4);
    s = step_of(&w);
    cr_expect_eq(step_calls(&s, ZIPCCL_ALLTOALL, "ep.rail", BF16, 4096 * 4 * 7168 / 8), 4 * 58);
    cr_expect_eq(step_calls(&s, ZIPCCL_ALLTOALL, "ep.node", BF16, 4096 * 8 * 7168 / 8), 4 * 58);
    cr_expect_eq(step_calls(&s, ZIPCCL_ALLTOALL, "ep.rail", FP32, 4096 * 8 / 8), 2 * 58);
    cr_expect_eq(step_calls(&s, ZIPCCL_ALLTOALL, "ep", BF16, 0), 0);
    g = group_of(&s, "ep.rail");
    cr_expect(g->size == 8 && g->ranks[1] == 8 && g->ranks[8] == 1);
    g = group_of(&s, "ep.node");
    cr_expect(g->size == 8 && g->ranks[1] == 1 && g->ranks[8] == 8);
    /* On the way back rows are added up in the node first. */
    for (size_t i = 0, inside = 0; i < s.trace->nevents; i++) {
        const struct zipccl_event *e = &s.trace->events[i];

        if (e->kind != ZIPCCL_EVENT_COLLECTIVE || strcmp(e->label, "combine") != 0)
            continue;
        if (strcmp(s.trace->header.groups[e->group].name, "ep.node") == 0)
            inside = e->id;
        else
            cr_expect(e->ndeps == 1 && e->deps[0] == inside && inside > 0);
    }
    step_free(&s);

    w.fp8_dispatch = true; /* 56 scales a row */
    s = step_of(&w);
    cr_expect_eq(
        step_calls(&s, ZIPCCL_ALLTOALL, "ep.rail", ZIPCCL_FLOAT8_E4M3, 4096 * 4 * 7168 / 8), 58);
    cr_expect_eq(step_calls(&s, ZIPCCL_ALLTOALL, "ep.rail", FP32, 4096 * 4 * 56 / 8), 58);
    cr_expect_eq(step_calls(&s, ZIPCCL_ALLTOALL, "ep.node", FP32, 4096 * 8 * 56 / 8), 58);
    step_free(&s);

    w.ep = 16; /* two nodes: no more than these */
    cr_expect_eq(zipccl_workload_nodes_of_token(&w), 2);
}

/* Gathers and scatters of a block forward, and gathers of gradients, in four pieces each. */
Test(workload_ways, tensor_parallel_calls_beside_the_products)
{
    struct zipccl_workload w = workload_of("llama3-70b", 1);
    uint64_t part = 4096 * 8192 / 8, pieces = 0, last = 0;
    struct step s;

    w.tp = 8;
    w.sp = w.overlap_tp = true;
    s = step_of(&w);
    cr_expect_eq(step_calls(&s, ZIPCCL_ALL_GATHER, "tp", BF16, part / 4), 4 * 4 * 80);
    cr_expect_eq(step_calls(&s, ZIPCCL_ALL_GATHER, "tp", BF16, part), 2 * 80 + 3);
    cr_expect_eq(step_calls(&s, ZIPCCL_REDUCE_SCATTER, "tp", BF16, part / 4), 4 * 2 * 80);
    cr_expect_eq(step_calls(&s, ZIPCCL_REDUCE_SCATTER, "tp", BF16, part), 2 * 80 + 2);
    /* Each piece of the product waits for its own rows, which were all sent for before. */
    for (size_t i = 0; i < s.trace->nevents; i++) {
        const struct zipccl_event *e = &s.trace->events[i];

        if (e->kind == ZIPCCL_EVENT_COMPUTE && strcmp(e->label, "q, k, v forward") == 0) {
            cr_expect(e->ndeps == 1 && (pieces % 4 == 0 || e->deps[0] == last + 1));
            last = e->deps[0];
            cr_expect_lt(last, e->id - pieces % 4);
            pieces++;
        }
    }
    cr_expect(pieces > 0 && pieces % 4 == 0);
    step_free(&s);
}

/* The order of one layer's pair: each exchange has the other pass's work between start and need. */
Test(workload_ways, exchanges_of_tokens_beside_the_other_pass)
{
    static const char *const order[] = {"un-permute backward",
                                        "combine, gradients",
                                        "attention forward",
                                        "norm, router, permute forward",
                                        "tokens for each expert",
                                        "dispatch",
                                        "dispatch, router weights",
                                        "experts backward",
                                        "dispatch, gradients",
                                        "router weights, gradients",
                                        "experts forward",
                                        "combine",
                                        "permute, router, norm backward",
                                        "attention backward",
                                        "un-permute, residual forward"};
    struct zipccl_workload w = workload_of("mixtral-8x7b", 8);
    struct step s, plain;
    size_t at = 0;

    w.ep = 8;
    w.global_batch = 8 * 12;
    plain = step_of(&w);
    w.overlap_a2a = true;
    s = step_of(&w);
    cr_expect_eq(s.info.ncollective, plain.info.ncollective);
    cr_expect_eq(s.info.nbytes, plain.info.nbytes);
    cr_expect_float_eq(s.info.flops, plain.info.flops, 1e-9 * s.info.flops);
    while (at < s.trace->nevents && (s.trace->events[at].kind != ZIPCCL_EVENT_LOOP_BEGIN ||
                                     strstr(s.trace->events[at].label, "beside") == NULL))
        at++;
    cr_assert_lt(at + sizeof order / sizeof *order + 1, s.trace->nevents);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        cr_expect_str_eq(s.trace->events[at + 1 + i].label, order[i]);
    cr_expect_eq(s.trace->events[at + 1 + sizeof order / sizeof *order].kind,
                 ZIPCCL_EVENT_LOOP_END);
    step_free(&s);
    step_free(&plain);
}

/* Stage s of 4 runs 2 (3 - s) + 1 forward passes first: 7, 5, 3 and 1. */
Test(workload_ways, paired_stages_run_more_passes_ahead)
{
    struct zipccl_workload w = workload_of("mixtral-8x7b", 8);
    struct zipccl_workload_estimate e, plain;
    uint64_t before[4] = {0, 0, 0, 0};
    bool backward[4] = {false, false, false, false};
    struct step s;

    w.ep = 8;
    w.pp = 4;
    w.global_batch = 8 * 16;
    w.unroll = true;
    zipccl_workload_estimate(&w, &plain);
    w.overlap_a2a = true;
    zipccl_workload_estimate(&w, &e);
    cr_expect(plain.in_flight == 4 && e.in_flight == 8);
    s = step_of(&w);
    for (size_t i = 0; i < s.trace->nevents; i++) {
        const struct zipccl_event *event = &s.trace->events[i];
        uint32_t stage = event->nranks > 0 ? event->ranks[0] / 8 : 0;

        if (event->kind != ZIPCCL_EVENT_COMPUTE || event->nranks != 8)
            continue;
        backward[stage] |= strstr(event->label, "backward") != NULL;
        before[stage] += !backward[stage] && strcmp(event->label, "attention forward") == 0;
    }
    for (uint64_t stage = 0; stage < 4; stage++)
        cr_expect_eq(before[stage], (2 * (3 - stage) + 1) * 8, "stage %lu: %lu layers",
                     (unsigned long)stage, (unsigned long)before[stage]);
    step_free(&s);
}
