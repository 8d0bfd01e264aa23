/*
 * test_workload_trace.c - sizes and numbers of the collectives of made-up steps, by hand
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/tests/workload_use.h"

#include "traces/iterate.h"
#include "traces/rescale.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#define BF16 ZIPCCL_BFLOAT16
#define FP32 ZIPCCL_FLOAT32

Test(workload_trace, fsdp_of_llama3_70b_on_8)
{
    struct zipccl_workload w = workload_of("llama3-70b", 8);
    struct step s;

    w.sharding = ZIPCCL_SHARD_FSDP;
    s = step_of(&w);
    cr_expect_eq(step_calls(&s, ZIPCCL_ALL_GATHER, "dp", BF16, 106956800), 2 * 80 - 1);
    cr_expect_eq(step_calls(&s, ZIPCCL_ALL_GATHER, "dp", BF16, 262669312), 1);
    /* A rank receives an eighth of the 855,654,400 elements that it puts in. */
    cr_expect_eq(step_calls(&s, ZIPCCL_REDUCE_SCATTER, "dp", BF16, 855654400 / 8), 80);
    cr_expect_eq(step_calls(&s, ZIPCCL_REDUCE_SCATTER, "dp", BF16, 262669312), 1);
    cr_expect_eq(s.info.ncollective, 159 + 1 + 80 + 1 + 2);
    cr_expect_eq(s.trace->header.tokens_per_step, 4096);
    cr_expect(strncmp(s.trace->header.provenance, "generated", 9) == 0);
    cr_expect(strstr(s.trace->header.provenance, "nothing measured") != NULL);
    step_free(&s);

    w.sharding = ZIPCCL_SHARD_NORESHARD;
    w.fp32_reduce = true;
    w.global_batch = 4 * 8; /* every one of four micro-batches gathers and reduces */
    s = step_of(&w);
    cr_expect_eq(step_calls(&s, ZIPCCL_ALL_GATHER, "dp", BF16, 106956800), 4 * 80);
    cr_expect_eq(step_calls(&s, ZIPCCL_REDUCE_SCATTER, "dp", FP32, 106956800), 4 * 80);
    cr_expect_lt(s.info.nevents, 600);
    step_free(&s);
}

/* Shards over 8 ranks as above, an eighth of each block summed over 4 copies; ranks 0, 8, 16, 24. */
Test(workload_trace, hsdp_reduces_inside_then_across)
{
    struct zipccl_workload w = workload_of("llama3-70b", 32);
    struct step s;

    w.sharding = ZIPCCL_SHARD_FSDP;
    w.shard = 8;
    s = step_of(&w);
    cr_expect_eq(step_calls(&s, ZIPCCL_ALL_GATHER, "dp", BF16, 106956800), 2 * 80 - 1);
    cr_expect_eq(step_calls(&s, ZIPCCL_REDUCE_SCATTER, "dp", BF16, 106956800), 80);
    cr_expect_eq(step_calls(&s, ZIPCCL_ALL_REDUCE, "replicas", BF16, 106956800), 80);
    cr_expect_eq(step_calls(&s, ZIPCCL_ALL_REDUCE, "replicas", BF16, 262669312), 1);
    cr_expect_eq(s.info.ncollective, 159 + 1 + 80 + 1 + 80 + 1 + 2);
    for (uint32_t g = 0; g < s.trace->header.ngroups; g++) {
        const struct zipccl_trace_group *group = &s.trace->header.groups[g];
        bool dp = strcmp(group->name, "dp") == 0;

        if (!dp && strcmp(group->name, "replicas") != 0)
            continue;
        cr_expect_eq(group->size, dp ? 8 : 4);
        cr_expect_eq(group->nparts, dp ? 4 : 8);
        cr_expect_eq(group->ranks[1], dp ? 1 : 8);
        cr_expect_eq(group->ranks[group->size], dp ? 8 : 1);
    }
    step_free(&s);
}

/* 'trace' taken to 'nranks', along the groups that grow when nobody says which. */
static struct zipccl_trace *rescaled(const struct zipccl_trace *trace, uint32_t nranks)
{
    struct zipccl_rescale_options options = {.nranks = nranks};
    char path[] = "/tmp/zipccl-workload-XXXXXX";
    struct zipccl_error error = {""};
    struct zipccl_trace *out;
    int fd = mkstemp(path);

    cr_assert(fd >= 0);
    close(fd);
    cr_assert_eq(zipccl_trace_rescale(trace, &options, path, NULL, &error), ZIPCCL_OK, "%s",
                 error.text);
    cr_assert_eq(zipccl_trace_load(path, &out, &error), ZIPCCL_OK, "%s", error.text);
    unlink(path);
    return out;
}

static void expect_same_step(const struct zipccl_trace *a, const struct zipccl_trace *b)
{
    cr_assert_eq(a->header.ngroups, b->header.ngroups);
    for (uint32_t i = 0; i < a->header.ngroups; i++) {
        const struct zipccl_trace_group *g = &a->header.groups[i], *h = &b->header.groups[i];

        cr_assert(strcmp(g->name, h->name) == 0 && g->size == h->size && g->nparts == h->nparts,
                  "%s: %u of %u, %s: %u of %u", g->name, g->nparts, g->size, h->name, h->nparts,
                  h->size);
        cr_expect_arr_eq(g->ranks, h->ranks, (size_t)g->size * g->nparts * sizeof *g->ranks);
    }
    cr_assert_eq(a->nevents, b->nevents);
    for (size_t i = 0; i < a->nevents; i++) {
        const struct zipccl_event *e = &a->events[i], *f = &b->events[i];

        cr_expect(e->kind == f->kind && e->op == f->op && e->dtype == f->dtype &&
                      e->group == f->group && e->count == f->count,
                  "event %zu", i);
    }
}

/* More or fewer copies of 8 shards are what is made up with as many. */
Test(workload_trace, hsdp_rescaled_is_hsdp_of_more_copies)
{
    static const uint32_t nranks[] = {128, 32};
    struct zipccl_workload w = workload_of("llama3-70b", 64);
    struct zipccl_trace *other;
    struct step s, t;

    w.sharding = ZIPCCL_SHARD_FSDP;
    w.shard = 8;
    s = step_of(&w);
    for (size_t i = 0; i < 2; i++) {
        w.dp = w.global_batch = nranks[i];
        t = step_of(&w);
        other = rescaled(s.trace, nranks[i]);
        expect_same_step(other, t.trace);
        zipccl_trace_destroy(other);
        step_free(&t);
    }
    /* One copy is left: its groups have one rank, and the shards are whole. */
    other = rescaled(s.trace, 8);
    cr_expect_eq(other->header.nranks, 8);
    for (uint32_t g = 0; g < other->header.ngroups; g++)
        cr_expect_eq(other->header.groups[g].size,
                     strcmp(other->header.groups[g].name, "replicas") == 0 ? 1 : 8);
    zipccl_trace_destroy(other);
    step_free(&s);
}

/* More data parallelism inside each stage of a pipeline, and of experts, is numbered as made up. */
Test(workload_trace, pipelines_rescaled_keep_their_stages)
{
    static const char *const names[] = {"llama3-8b", "qwen3-30b-a3b"};

    for (size_t i = 0; i < 2; i++) {
        struct zipccl_workload w = workload_of(names[i], 4);
        struct zipccl_trace *other;
        struct step s, t;

        w.tp = 2;
        w.sp = true;
        w.pp = 4;
        w.ep = i == 1 ? 4 : 1;
        w.global_batch = 4 * 6;
        s = step_of(&w);
        w.dp = 8;
        w.global_batch = 8 * 6;
        t = step_of(&w);
        other = rescaled(s.trace, 64);
        expect_same_step(other, t.trace);
        zipccl_trace_destroy(other);
        other = rescaled(t.trace, 32);
        expect_same_step(other, s.trace);
        zipccl_trace_destroy(other);
        step_free(&s);
        step_free(&t);
    }
}

/* Every all-reduce over copies waits for its own reduce-scatter, and the norm for the last one. */
Test(workload_trace, hsdp_waits_for_the_shard)
{
    struct zipccl_workload w = workload_of("llama3-70b", 32);
    uint64_t scattered = 0, summed = 0;
    bool norm = false;
    struct step s;

    w.sharding = ZIPCCL_SHARD_NORESHARD;
    w.shard = 16;
    s = step_of(&w);
    for (size_t i = 0; i < s.trace->nevents; i++) {
        const struct zipccl_event *e = &s.trace->events[i];

        if (e->kind == ZIPCCL_EVENT_COLLECTIVE && e->op == ZIPCCL_REDUCE_SCATTER)
            scattered = e->id;
        if (e->kind == ZIPCCL_EVENT_COLLECTIVE && e->op == ZIPCCL_ALL_REDUCE &&
            strcmp(s.trace->header.groups[e->group].name, "replicas") == 0) {
            cr_expect(e->ndeps == 1 && e->deps[0] == scattered);
            summed = e->id;
        }
        if (e->kind == ZIPCCL_EVENT_COMPUTE && strcmp(e->label, "gradient norm") == 0)
            for (uint32_t d = 0; d < e->ndeps; d++)
                norm |= e->deps[d] == summed;
    }
    cr_expect(summed > 0 && norm);
    step_free(&s);
}

Test(workload_trace, tensor_parallel_sizes)
{
    struct zipccl_workload w = workload_of("llama3-70b", 1);
    uint64_t all = 4096 * 8192, part = all / 8;
    struct step s;

    w.tp = 8;
    s = step_of(&w);
    /* Two forward and two backward a layer; embedding forward; head backward. */
    cr_expect_eq(step_calls(&s, ZIPCCL_ALL_REDUCE, "tp", BF16, all), 4 * 80 + 2);
    cr_expect_eq(step_calls(&s, ZIPCCL_ALL_REDUCE, "tp", FP32, 4096), 3);
    cr_expect_eq(s.info.ncollective, 322 + 3 + 2);
    step_free(&s);

    w.sp = true;
    s = step_of(&w);
    /* A layer: two forward, two of gradients, two of inputs again; the same of embedding and head. */
    cr_expect_eq(step_calls(&s, ZIPCCL_ALL_GATHER, "tp", BF16, part), 6 * 80 + 3);
    cr_expect_eq(step_calls(&s, ZIPCCL_REDUCE_SCATTER, "tp", BF16, part), 4 * 80 + 2);
    cr_expect_eq(step_calls(&s, ZIPCCL_ALL_REDUCE, "tp", BF16, 80 * 2 * 8192 + 8192), 1);
    cr_expect_eq(s.info.ncollective, 483 + 322 + 1 + 3 + 2);
    step_free(&s);

    w.recompute = ZIPCCL_RECOMPUTE_FULL; /* the forward set once more */
    s = step_of(&w);
    cr_expect_eq(step_calls(&s, ZIPCCL_ALL_GATHER, "tp", BF16, part), 8 * 80 + 3);
    cr_expect_eq(step_calls(&s, ZIPCCL_REDUCE_SCATTER, "tp", BF16, part), 6 * 80 + 2);
    step_free(&s);
}

Test(workload_trace, latent_attention_gathers_the_latents)
{
    struct zipccl_workload w = workload_of("deepseek-v3", 8);
    struct step s;

    w.tp = 2;
    w.sp = true;
    w.ep = 16;
    s = step_of(&w);
    /* q, kv and rotary parts: 1536 + 512 + 64; forward, and again for the weights' gradient. */
    cr_expect_eq(step_calls(&s, ZIPCCL_ALL_GATHER, "tp", BF16, 4096 * 2112 / 2), 2 * 61);
    cr_expect_eq(step_calls(&s, ZIPCCL_REDUCE_SCATTER, "tp", BF16, 4096 * 2112 / 2), 61);
    step_free(&s);
}

Test(workload_trace, pipeline_sizes)
{
    struct zipccl_workload w = workload_of("llama3-70b", 1);
    struct step s;

    w.pp = 4;
    w.global_batch = 8;
    s = step_of(&w);
    cr_expect_eq(step_calls(&s, ZIPCCL_SENDRECV, "pp", BF16, 4096 * 8192), 2 * 3 * 8);
    cr_expect_eq(s.info.ncollective, 48 + 2);
    step_free(&s);

    w.vpp = 2;
    w.tp = 2;
    w.sp = true;
    s = step_of(&w);
    cr_expect_eq(step_calls(&s, ZIPCCL_SENDRECV, "pp", BF16, 4096 * 8192 / 2), 2 * 7 * 8);
    step_free(&s);

    w = workload_of("qwen3-4b", 1); /* embedding and head are one, on two stages */
    w.pp = 2;
    s = step_of(&w);
    cr_expect_eq(step_calls(&s, ZIPCCL_ALL_REDUCE, "embedding", BF16, 151936 * 2560), 1);
    step_free(&s);
}

Test(workload_trace, expert_parallel_sizes)
{
    struct zipccl_workload w = workload_of("mixtral-8x7b", 8);
    uint64_t rows = 4096 * 2, to_each = rows * 4096 / 8;
    struct step s;

    w.ep = 8;
    s = step_of(&w);
    cr_expect_eq(step_calls(&s, ZIPCCL_ALLTOALL, "ep", BF16, to_each), 4 * 32);
    cr_expect_eq(step_calls(&s, ZIPCCL_ALLTOALL, "ep", FP32, rows / 8), 2 * 32);
    cr_expect_eq(step_calls(&s, ZIPCCL_ALL_GATHER, "ep", ZIPCCL_INT64, 8), 32);
    step_free(&s);

    w.fp8_dispatch = true; /* a scale for each 128 of the 4096 elements of a row */
    s = step_of(&w);
    cr_expect_eq(step_calls(&s, ZIPCCL_ALLTOALL, "ep", ZIPCCL_FLOAT8_E4M3, to_each), 32);
    cr_expect_eq(step_calls(&s, ZIPCCL_ALLTOALL, "ep", BF16, to_each), 3 * 32);
    cr_expect_eq(step_calls(&s, ZIPCCL_ALLTOALL, "ep", FP32, rows * 32 / 8), 32);
    step_free(&s);
}

Test(workload_trace, experts_are_reduced_over_their_own_copies)
{
    struct zipccl_workload w = workload_of("mixtral-8x7b", 8);
    struct step s;

    w.ep = 4;
    w.sharding = ZIPCCL_SHARD_DDP;
    w.bucket = (uint64_t)1 << 40;
    s = step_of(&w);
    /* Two experts a rank and layer, held twice; the rest is held by all. */
    cr_expect_eq(step_elements(&s, ZIPCCL_ALL_REDUCE, "edp", BF16), 32 * 2 * 176160768ull);
    cr_expect_eq(step_elements(&s, ZIPCCL_ALL_REDUCE, "dp", BF16),
                 32 * (41943040ull + 32768 + 8192) + 262148096);
    step_free(&s);
}

Test(workload_trace, an_imbalance_moves_tokens_and_loses_none)
{
    struct zipccl_workload w = workload_of("mixtral-8x7b", 8);
    const struct zipccl_trace_splits *t;
    uint64_t sum = 0, most = 0;
    struct step s;

    w.ep = 8;
    w.imbalance = 2;
    s = step_of(&w);
    cr_assert_eq(s.trace->header.nsplits, 2);
    t = &s.trace->header.splits[0];
    for (int to = 0; to < 8; to++) {
        sum += t->counts[to];
        most = t->counts[to] > most ? t->counts[to] : most;
        for (int from = 0; from < 8; from++)
            cr_expect_eq(t->counts[from * 8 + to], s.trace->header.splits[1].counts[to * 8 + from]);
    }
    cr_expect_eq(sum, 4096ull * 2 * 4096);
    cr_expect_float_eq((double)most * 8 / (double)sum, 2, 2e-3);
    cr_expect_eq(step_calls(&s, ZIPCCL_ALLTOALLV, "ep", BF16, 0), 4 * 32);
    step_free(&s);
}

Test(workload_trace, context_parallel_sizes)
{
    struct zipccl_workload w = workload_of("llama3-8b", 1);
    struct step s;

    w.cp = 4;
    s = step_of(&w);
    /* Keys and values of 8 heads of 128, of a quarter of the tokens, three times round. */
    cr_expect_eq(step_calls(&s, ZIPCCL_SENDRECV, "cp", BF16, 1024 * 2 * 8 * 128), 3 * 32);
    cr_expect_eq(step_calls(&s, ZIPCCL_SENDRECV, "cp", BF16, 2 * 1024 * 2 * 8 * 128), 3 * 32);
    step_free(&s);
}

Test(workload_trace, every_gradient_is_reduced_once_a_step)
{
    static const uint64_t buckets[] = {0, 1000000, 50000000, (uint64_t)1 << 40};
    const uint64_t total = 596049920;

    for (int i = 0; i < 4; i++) {
        struct zipccl_workload w = workload_of("qwen3-0.6b", 8);
        struct step s;

        w.bucket = buckets[i];
        w.global_batch = 8 * 5;
        w.sharding = ZIPCCL_SHARD_DDP;
        w.fp32_reduce = i % 2 == 1;
        s = step_of(&w);
        cr_expect_eq(step_elements(&s, ZIPCCL_ALL_REDUCE, "dp", i % 2 == 1 ? FP32 : BF16), total);
        step_free(&s);

        w.sharding = ZIPCCL_SHARD_ZERO1;
        w.overlap_grad = i > 1;
        w.overlap_param = i == 2;
        w.fp32_reduce = false;
        s = step_of(&w);
        /* Rounded up in each bucket. */
        uint64_t rs = 8 * step_elements(&s, ZIPCCL_REDUCE_SCATTER, "dp", BF16);
        uint64_t ag = 8 * step_elements(&s, ZIPCCL_ALL_GATHER, "dp", BF16);

        cr_expect(rs >= total && rs < total + 8 * 1000, "%lu", (unsigned long)rs);
        cr_expect(ag >= total && ag < total + 8 * 1000, "%lu", (unsigned long)ag);
        step_free(&s);

        w.sharding = ZIPCCL_SHARD_ZERO2; /* once a micro-batch */
        w.overlap_param = false;
        s = step_of(&w);
        cr_expect_eq(8 * step_elements(&s, ZIPCCL_REDUCE_SCATTER, "dp", BF16), 5 * rs);
        step_free(&s);
    }
}

Test(workload_trace, weight_sync_sends_all_parameters)
{
    struct zipccl_workload w = workload_of("llama3-8b", 8);
    struct step s;

    w.kind = ZIPCCL_WORKLOAD_SYNC_BROADCAST;
    s = step_of(&w);
    cr_expect_eq(step_elements(&s, ZIPCCL_BROADCAST, "dp", BF16), 8030261248);
    cr_expect_eq(step_calls(&s, ZIPCCL_BROADCAST, "dp", BF16, 218112000), 32);
    step_free(&s);
    w.kind = ZIPCCL_WORKLOAD_SYNC_GATHER;
    s = step_of(&w);
    cr_expect_eq(8 * step_elements(&s, ZIPCCL_ALL_GATHER, "dp", BF16), 8030261248);
    step_free(&s);
}

struct flops {
    const struct zipccl_trace *trace;
    double sum;
};

static zipccl_status add_flops(void *context, const struct zipccl_event *e, uint64_t number)
{
    struct flops *f = context;
    uint32_t n = e->nranks > 0 ? e->nranks : f->trace->header.nranks;

    (void)number;
    if (e->kind == ZIPCCL_EVENT_COMPUTE && e->flops > 0 && strncmp(e->label, "optimizer", 9) != 0 &&
        strcmp(e->label, "gradient norm") != 0)
        f->sum += e->flops * n;
    return ZIPCCL_OK;
}

/* Ways of one model in parallel; loops and copies hold the same, and all the model's work. */
static const struct {
    const char *model;
    uint32_t tp, pp, dp, cp, ep, vpp, batches;
    double imbalance;
    uint32_t etp;
    bool nodes, tp_overlap, a2a;
} ways[] = {
    {"qwen3-0.6b", 1, 1, 4, 1, 1, 1, 6, 1, 1, false, false, false},
    {"qwen3-0.6b", 2, 4, 1, 1, 1, 1, 9, 1, 1, false, false, false},
    {"qwen3-0.6b", 1, 4, 1, 2, 1, 2, 16, 1, 1, false, false, false},
    {"qwen3-0.6b", 1, 3, 2, 1, 1, 1, 2, 1, 1, false, false, false},
    {"qwen3-0.6b", 1, 2, 1, 1, 1, 3, 4, 1, 1, false, false, false},
    {"qwen3-30b-a3b", 1, 2, 4, 1, 4, 1, 5, 1, 1, false, false, false},
    {"qwen3-30b-a3b", 2, 1, 2, 1, 4, 1, 3, 1.5, 1, false, false, false},
    {"deepseek-v3", 1, 4, 4, 1, 4, 2, 8, 1, 1, false, false, false},
    {"deepseek-v3", 1, 1, 16, 1, 16, 1, 3, 1, 1, true, false, false},
    {"qwen3-30b-a3b", 2, 1, 4, 1, 2, 1, 3, 1, 2, false, true, false},
    {"qwen3-0.6b", 2, 2, 1, 2, 1, 1, 6, 1, 1, false, true, false},
    {"qwen3-30b-a3b", 1, 1, 4, 1, 4, 1, 7, 1, 1, false, false, true},
    {"deepseek-v3", 1, 4, 4, 1, 4, 1, 19, 1, 1, false, false, true},
};

Test(workload_trace, loops_stand_for_copies_and_hold_the_models_work)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct zipccl_workload w = workload_of(ways[i].model, ways[i].dp);
        struct zipccl_workload_estimate e;
        struct step looped, copied;
        struct flops f = {NULL, 0};

        w.tp = ways[i].tp;
        w.sp = w.tp > 1;
        w.pp = ways[i].pp;
        w.cp = ways[i].cp;
        w.ep = ways[i].ep;
        w.etp = ways[i].etp;
        w.node_dispatch = ways[i].nodes;
        w.overlap_tp = ways[i].tp_overlap;
        w.overlap_a2a = ways[i].a2a;
        w.vpp = ways[i].vpp;
        w.imbalance = ways[i].imbalance;
        w.global_batch = ways[i].dp * ways[i].batches;
        w.overlap_param = i % 2 == 1;
        looped = step_of(&w);
        w.unroll = true;
        copied = step_of(&w);
        cr_expect_eq(looped.info.ncollective, copied.info.ncollective, "%zu", i);
        cr_expect_eq(looped.info.nbytes, copied.info.nbytes, "%zu", i);
        cr_expect_eq(looped.info.nrows, copied.info.nrows, "%zu", i);
        cr_expect_float_eq(looped.info.flops, copied.info.flops, looped.info.flops * 1e-9, "%zu",
                           i);
        cr_expect_lt(looped.info.nevents, copied.info.nevents, "%zu", i);
        f.trace = looped.trace;
        cr_expect_eq(zipccl_trace_expand(looped.trace, add_flops, &f, NULL, NULL), ZIPCCL_OK);
        zipccl_workload_estimate(&w, &e);
        cr_expect_float_eq(f.sum, e.model_flops, e.model_flops * 1e-9, "%zu: %g of %g", i, f.sum,
                           e.model_flops);
        step_free(&looped);
        step_free(&copied);
    }
}

Test(workload_trace, more_micro_batches_are_no_more_lines)
{
    struct zipccl_workload w = workload_of("llama3-8b", 2);
    struct step few, many;

    w.pp = 4;
    w.global_batch = 2 * 16;
    few = step_of(&w);
    w.global_batch = 2 * 1024;
    many = step_of(&w);
    cr_expect_eq(few.info.nevents, many.info.nevents);
    cr_expect_eq(many.info.ncollective - few.info.ncollective, 6 * (1024 - 16));
    step_free(&few);
    step_free(&many);
}

Test(workload_trace, nothing_is_left_behind_by_a_refusal)
{
    struct zipccl_workload w = workload_of("llama3-8b", 2);
    char path[] = "/tmp/zipccl-refused-XXXXXX";
    struct zipccl_error error = {""};

    cr_assert(mkdtemp(path) != NULL);
    char file[64];

    snprintf(file, sizeof file, "%s/t.jsonl", path);
    w.tp = 5;
    cr_expect_eq(zipccl_workload_write(&w, file, NULL, NULL, NULL, &error), ZIPCCL_ERR_INPUT);
    w.tp = 1;
    cr_expect_eq(zipccl_workload_write(&w, file, "/nowhere.safetensors", "x", NULL, &error),
                 ZIPCCL_ERR_IO);
    cr_expect_eq(rmdir(path), 0);
}

Test(workload_trace, classes_of_the_bundled_samples_are_bound)
{
    static const char *const models[] = {"llama3-8b", "mixtral-8x7b"};
    static const char *const samples[] = {"traces/samples/tensors/dense.safetensors",
                                          "traces/samples/tensors/moe.safetensors"};

    for (int i = 0; i < 2; i++) {
        struct zipccl_workload w = workload_of(models[i], 2);
        char path[] = "/tmp/zipccl-bound-XXXXXX";
        struct zipccl_workload_summary summary;
        struct zipccl_error error = {""};
        int fd = mkstemp(path);

        cr_assert(fd >= 0);
        close(fd);
        w.tp = 2;
        w.sp = true;
        w.pp = 2;
        w.cp = 2;
        w.ep = i == 1 ? 4 : 1;
        cr_assert_eq(zipccl_workload_write(&w, path, samples[i], samples[i], &summary, &error),
                     ZIPCCL_OK, "%s", error.text);
        cr_expect_eq(summary.unbound, 0);
        w.fp32_reduce = true;
        cr_assert_eq(zipccl_workload_write(&w, path, samples[i], samples[i], &summary, &error),
                     ZIPCCL_OK, "%s", error.text);
        /* The file of the mixture of experts has no gradients in fp32: of blocks, experts,
         * embedding and head. */
        cr_expect_eq(summary.unbound, i == 1 ? 4 : 0);
        unlink(path);
    }
}
