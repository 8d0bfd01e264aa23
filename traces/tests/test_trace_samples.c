/*
 * test_trace_samples.c - the bundled traces against hand formulas, and what is bound in them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/info.h"
#include "traces/safetensors.h"
#include "traces/trace.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

/* Llama-2-7B: 4 h^2 + 3 h f + 2 h with h 4096, f 11008; 2 v h + h with v 32000; over 64. */
#define LLAMA_BLOCK 202383360u
#define LLAMA_ROOT  262148096u
/* MoE: 2 h^2 + 2 h 1024 + 64 h + 2 h, and the same root. */
#define MOE_DENSE  42213376u
#define MOE_TOKENS ((uint64_t)4096 * 2 * 4096) /* tokens, top-2, hidden */

struct row {
    enum zipccl_op op;
    const char *group;
    enum zipccl_dtype dtype;
    uint64_t count, calls, nbytes_a_call;
};

static void expect_rows(const char *path, const struct row *rows, size_t nrows, uint64_t ncompute,
                        double flops)
{
    struct zipccl_trace_reader *reader;
    struct zipccl_trace_info info;
    struct zipccl_error error = {""};
    uint64_t calls = 0;

    cr_assert_eq(zipccl_trace_open(path, &reader, &error), ZIPCCL_OK, "%s", error.text);
    cr_assert_eq(zipccl_trace_info_read(reader, &info, &error), ZIPCCL_OK, "%s", error.text);
    cr_assert_eq(info.nrows, nrows);
    for (size_t i = 0; i < nrows; i++) {
        const struct zipccl_trace_info_row *r = &info.rows[i];
        const char *group = zipccl_trace_header(reader)->groups[r->group].name;

        cr_expect(r->op == rows[i].op && strcmp(group, rows[i].group) == 0 &&
                      r->dtype == rows[i].dtype,
                  "%s row %zu", path, i);
        cr_expect_eq(r->count, rows[i].count, "%s row %zu", path, i);
        cr_expect_eq(r->calls, rows[i].calls, "%s row %zu", path, i);
        cr_expect_eq(r->nbytes, rows[i].calls * rows[i].nbytes_a_call, "%s row %zu", path, i);
        /* All that the codec could compress is bound to tensors. */
        cr_expect_eq(r->ncalls_with_samples, r->nbytes > 100000 * r->calls ? r->calls : 0);
        calls += r->calls;
    }
    cr_expect_eq(info.ncollective, calls);
    cr_expect_eq(info.ncompute, ncompute);
    cr_expect_float_eq(info.flops / flops, 1.0, 1e-3, "%s: %g flops", path, info.flops);
    cr_expect(info.nmissing == 0 && info.nsamples > 0);
    cr_expect_lt(zipccl_trace_header(reader)->recorded_step_s, 0);
    zipccl_trace_info_free(&info);
    zipccl_trace_close(reader);
}

/* 6 flops a parameter and token (embedding: none), and 6 t s h a block for causal attention. */
static double llama_flops(void)
{
    double matrices = 32.0 * LLAMA_BLOCK + 32000.0 * 4096;

    return 6 * matrices * 4096 + 32 * 6 * 4096.0 * 4096 * 4096;
}

static void expect_fsdp(const char *path, enum zipccl_dtype gradients)
{
    uint64_t wide = zipccl_dtype_size(gradients);
    const struct row rows[] = {
        {ZIPCCL_ALL_GATHER, "world", ZIPCCL_BFLOAT16, LLAMA_BLOCK / 64, 63, 2 * LLAMA_BLOCK},
        {ZIPCCL_ALL_GATHER, "world", ZIPCCL_BFLOAT16, LLAMA_ROOT / 64, 1, 2 * LLAMA_ROOT},
        {ZIPCCL_REDUCE_SCATTER, "world", gradients, LLAMA_BLOCK / 64, 32, wide * LLAMA_BLOCK},
        {ZIPCCL_REDUCE_SCATTER, "world", gradients, LLAMA_ROOT / 64, 1, wide * LLAMA_ROOT},
        {ZIPCCL_ALL_REDUCE, "world", ZIPCCL_FLOAT32, 1, 3, 4},
    };

    expect_rows(path, rows, sizeof rows / sizeof rows[0], 70, llama_flops());
}

Test(samples, fsdp_has_the_counts_of_its_formula)
{
    expect_fsdp("traces/samples/llama2-7b-fsdp64", ZIPCCL_BFLOAT16);
    expect_fsdp("traces/samples/llama2-7b-fsdp64-fp32", ZIPCCL_FLOAT32);
}

Test(samples, moe_has_the_counts_of_its_formula)
{
    const struct row rows[] = {
        {ZIPCCL_ALL_GATHER, "ep", ZIPCCL_INT64, 64, 16, 8 * 64 * 64},
        {ZIPCCL_ALL_GATHER, "dp", ZIPCCL_BFLOAT16, MOE_DENSE / 64, 16, 2 * MOE_DENSE},
        {ZIPCCL_ALL_GATHER, "dp", ZIPCCL_BFLOAT16, LLAMA_ROOT / 64, 1, 2 * LLAMA_ROOT},
        {ZIPCCL_REDUCE_SCATTER, "dp", ZIPCCL_BFLOAT16, MOE_DENSE / 64, 16, 2 * MOE_DENSE},
        {ZIPCCL_REDUCE_SCATTER, "dp", ZIPCCL_BFLOAT16, LLAMA_ROOT / 64, 1, 2 * LLAMA_ROOT},
        {ZIPCCL_ALL_REDUCE, "dp", ZIPCCL_FLOAT32, 64, 16, 4 * 64},
        {ZIPCCL_ALL_REDUCE, "world", ZIPCCL_FLOAT32, 1, 2, 4},
        {ZIPCCL_ALLTOALL, "ep", ZIPCCL_BFLOAT16, MOE_TOKENS / 64, 64, 2 * MOE_TOKENS},
    };
    /* dense and two experts a token, the head, and attention of 4096 wide heads */
    double flops = 6 * 4096.0 * (16 * (MOE_DENSE + 2 * 3 * 4096.0 * 14336) + 32000.0 * 4096) +
                   16 * 6 * 4096.0 * 4096 * 4096;

    expect_rows("traces/samples/moe64", rows, sizeof rows / sizeof rows[0], 134, flops);
}

static const char *const paths[] = {"traces/samples/llama2-7b-fsdp64",
                                    "traces/samples/llama2-7b-fsdp64-fp32", "traces/samples/moe64",
                                    "traces/samples/moe4"};

Test(samples, bound_tensors_have_the_type_of_the_call)
{
    for (int i = 0; i < 4; i++) {
        const struct zipccl_safetensors *file;
        struct zipccl_trace *trace;
        struct zipccl_error error = {""};

        cr_assert_eq(zipccl_trace_load(paths[i], &trace, &error), ZIPCCL_OK, "%s", error.text);
        cr_assert_eq(zipccl_safetensors_open(trace->samples_path, &file, &error), ZIPCCL_OK, "%s",
                     error.text);
        for (size_t k = 0; k < trace->nevents; k++)
            for (uint32_t s = 0; s < trace->events[k].nsamples; s++) {
                const struct zipccl_tensor *t =
                    zipccl_safetensors_find(file, trace->events[k].samples[s]);

                cr_assert_not_null(t, "%s", trace->events[k].samples[s]);
                cr_expect(t->known && t->dtype == trace->events[k].dtype, "%s", t->name);
            }
        zipccl_safetensors_close(file);
        zipccl_trace_destroy(trace);
    }
}

/* A compute event waits for the collective whose data it needs; gathers wait for a free buffer. */
Test(samples, fsdp_keeps_two_gathered_blocks)
{
    const struct zipccl_event *forward[32];
    struct zipccl_trace *trace;
    struct zipccl_error error = {""};
    int nforward = 0, ngather = 0;

    cr_assert_eq(zipccl_trace_load(paths[0], &trace, &error), ZIPCCL_OK, "%s", error.text);
    for (size_t i = 0; i < trace->nevents; i++) {
        const struct zipccl_event *e = &trace->events[i];

        if (e->label != NULL && strcmp(e->label, "block parameters, forward") == 0) {
            cr_expect_eq(e->ndeps, ngather >= 2);
            if (ngather >= 2)
                cr_expect_eq(e->deps[0], forward[ngather - 2]->id);
            ngather++;
        } else if (e->label != NULL && strcmp(e->label, "block forward") == 0) {
            cr_assert(e->ndeps == 1 && nforward < 32);
            cr_expect_eq(e->deps[0], trace->events[i - 1].id, "its own gather, the line before");
            forward[nforward++] = e;
        }
    }
    cr_expect(nforward == 32 && ngather == 32);
    zipccl_trace_destroy(trace);
}

Test(samples, moe_tokens_are_exposed)
{
    struct zipccl_trace *trace;
    struct zipccl_error error = {""};
    uint64_t last_compute = 0;
    size_t exchanges = 0;

    cr_assert_eq(zipccl_trace_load(paths[2], &trace, &error), ZIPCCL_OK, "%s", error.text);
    for (size_t i = 0; i + 1 < trace->nevents; i++) {
        const struct zipccl_event *e = &trace->events[i], *next = e + 1;

        if (e->kind == ZIPCCL_EVENT_COMPUTE)
            last_compute = e->id;
        if (e->kind != ZIPCCL_EVENT_COLLECTIVE || e->op != ZIPCCL_ALLTOALL)
            continue;
        exchanges++;
        cr_expect(e->ndeps >= 1 && e->deps[0] == last_compute);
        cr_expect(next->kind == ZIPCCL_EVENT_COMPUTE && next->ndeps == 1 && next->deps[0] == e->id);
    }
    cr_expect_eq(exchanges, 64);
    zipccl_trace_destroy(trace);
}

/* The small one is for real runs: 4 ranks, every operation but the uneven exchange, all bound. */
Test(samples, the_small_one_has_one_of_each)
{
    struct zipccl_trace *trace;
    struct zipccl_error error = {""};
    size_t calls[ZIPCCL_NUM_OPS] = {0};
    double compute_s = 0;

    cr_assert_eq(zipccl_trace_load(paths[3], &trace, &error), ZIPCCL_OK, "%s", error.text);
    cr_expect(trace->header.nranks == 4 && trace->header.ranks_per_node == 2);
    for (size_t i = 0; i < trace->nevents; i++) {
        const struct zipccl_event *e = &trace->events[i];

        if (e->kind == ZIPCCL_EVENT_COMPUTE) {
            cr_expect(e->duration_s > 0 && e->flops < 0, "no cluster is needed to run it");
            compute_s += e->duration_s;
            continue;
        }
        calls[e->op]++;
        cr_expect_eq(e->nsamples, zipccl_trace_event_nbytes(&trace->header, e) > 1000);
    }
    cr_expect(calls[ZIPCCL_ALLTOALL] == 8 && calls[ZIPCCL_ALL_GATHER] == 4 &&
              calls[ZIPCCL_REDUCE_SCATTER] == 2 && calls[ZIPCCL_ALL_REDUCE] == 2 &&
              calls[ZIPCCL_SENDRECV] == 1 && calls[ZIPCCL_BROADCAST] == 1);
    cr_expect_float_eq(compute_s, 0.072, 1e-9);
    zipccl_trace_destroy(trace);
}
