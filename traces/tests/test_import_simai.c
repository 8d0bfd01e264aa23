/*
 * test_import_simai.c - small SimAI workloads in all the forms that people have, and broken ones
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import.h"
#include "traces/tests/scratch.h"
#include "traces/tests/simai_sums.h"

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

TestSuite(import_simai, .fini = scratch_remove);

#define MODE  "HYBRID_TRANSFORMER_FWD_IN_BCKWD "
#define H8    MODE "model_parallel_NPU_group: 2 ep: 2 pp: 1 ga: 1 all_gpus: 8\n"
#define NO    " 1 NONE 0"
#define EMBED "embedding_layer -1 100 ALLREDUCE 4096" NO NO " 100\n"
#define ATTN  "attention -1 200 ALLGATHER 8192 300 REDUCESCATTER 8192 400 NONE 0 100\n"
#define GRAD  "grad_param -1" NO NO " 1 REDUCESCATTER 65536 100\n"

static struct zipccl_import_report report;

static zipccl_status try_import(const char *text, const struct zipccl_import_options *options,
                                struct zipccl_trace **trace, struct zipccl_error *error)
{
    char path[SCRATCH_PATH];
    const char *paths[] = {scratch_write(path, "w.txt", text, strlen(text))};

    zipccl_import_report_free(&report);
    return zipccl_import_to_memory("simai", paths, 1, options, &report, trace, error);
}

static struct zipccl_trace *import(const char *text, const struct zipccl_import_options *options)
{
    struct zipccl_error error = {""};
    struct zipccl_trace *trace = NULL;

    cr_assert_eq(try_import(text, options, &trace, &error), ZIPCCL_OK, "%s", error.text);
    return trace;
}

static uint64_t count_of(const char *what)
{
    for (size_t i = 0; i < report.nitems; i++)
        if (strcmp(report.items[i].what, what) == 0)
            return report.items[i].count;
    return 0;
}

static const struct zipccl_event *call(const struct zipccl_trace *trace, size_t n)
{
    for (size_t i = 0; i < trace->nevents; i++)
        if (trace->events[i].kind == ZIPCCL_EVENT_COLLECTIVE && n-- == 0)
            return &trace->events[i];
    cr_assert_fail("too few calls");
    return NULL;
}

static const struct zipccl_trace_group *group_of(const struct zipccl_trace *trace,
                                                 const struct zipccl_event *e)
{
    return &trace->header.groups[e->group];
}

Test(import_simai, sizes_are_full_tensors_and_counts_are_nccls)
{
    struct zipccl_trace *t =
        import(H8 "5\n"
                  "a -1 0 ALLGATHER 4096 0 REDUCESCATTER 4096 0 REDUCESCATTER 4096 0\n"
                  "b -1 0 ALLREDUCE 4096 0 ALLTOALL_EP 4096 0 ALLGATHER_DP_EP 4096 0\n"
                  "c -1 0 BROADCAST 4096 0 ALLGATHER_EP 4096 0 ALLREDUCE 4096 0\n"
                  "d -1 0 ALLGATHER_EP 4096 0 NONE 0 0 ALLREDUCE_EP 4096 0\n"
                  "e -1 0 NONE 0 0 NONE 0 0 REDUCESCATTER_DP_EP 4096 0\n",
               NULL);
    /* Forward a b c d, then backward e d c b a, input gradients first. */
    static const struct {
        enum zipccl_op op;
        enum zipccl_dtype dtype;
        uint64_t count;
        const char *group;
    } want[] = {
        {ZIPCCL_ALL_GATHER, ZIPCCL_BFLOAT16, 1024, "tp"},
        {ZIPCCL_ALL_REDUCE, ZIPCCL_BFLOAT16, 2048, "tp"},
        {ZIPCCL_BROADCAST, ZIPCCL_INT64, 512, "tp"},
        {ZIPCCL_ALL_GATHER, ZIPCCL_INT64, 256, "ep"},
        {ZIPCCL_REDUCE_SCATTER, ZIPCCL_FLOAT32, 512, "dp_ep"},
        {ZIPCCL_ALL_REDUCE, ZIPCCL_FLOAT32, 1024, "ep"},
        {ZIPCCL_ALL_GATHER, ZIPCCL_BFLOAT16, 1024, "ep"},
        {ZIPCCL_ALL_REDUCE, ZIPCCL_FLOAT32, 1024, "dp"},
        {ZIPCCL_ALLTOALL, ZIPCCL_BFLOAT16, 1024, "ep"},
        {ZIPCCL_ALL_GATHER, ZIPCCL_BFLOAT16, 1024, "dp_ep"},
        {ZIPCCL_REDUCE_SCATTER, ZIPCCL_BFLOAT16, 1024, "tp"},
        {ZIPCCL_REDUCE_SCATTER, ZIPCCL_FLOAT32, 256, "dp"},
    };

    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        const struct zipccl_event *e = call(t, i);

        cr_expect_eq(e->op, want[i].op, "call %zu", i);
        cr_expect_eq(e->dtype, want[i].dtype, "call %zu", i);
        cr_expect_eq(e->count, want[i].count, "call %zu", i);
        cr_expect_str_eq(group_of(t, e)->name, want[i].group, "call %zu", i);
    }
    cr_assert_eq(report.ncollectives, 12);
    zipccl_trace_destroy(t);
}

Test(import_simai, ranks_are_numbered_tp_then_expert_then_data)
{
    struct zipccl_trace *t = import(H8 "1\na -1 0 ALLREDUCE 64 0 ALLTOALL_EP 64 0 "
                                       "ALLREDUCE_DP_EP 64 0\n",
                                    NULL);
    static const uint32_t tp[] = {0, 1, 2, 3}, ep[] = {0, 2, 1, 3}, dp_ep[] = {0, 4, 1, 5};
    const uint32_t *const want[] = {tp, ep, dp_ep};

    for (size_t i = 0; i < 3; i++) {
        const struct zipccl_trace_group *g = group_of(t, call(t, i));

        cr_assert_eq(g->size, 2);
        cr_assert_eq(g->nparts, 4);
        cr_assert_arr_eq(g->ranks, want[i], 4 * sizeof(uint32_t));
    }
    zipccl_trace_destroy(t);
}

Test(import_simai, irregular_headers_and_columns_are_read)
{
    static const char *const headers[] = {
        MODE "model_parallel_NPU_group: 2 ep: 2 pp: 1 vpp: 8 ga: 1 all_gpus: 8 checkpoints: 0 "
             "checkpoint_initiates: 0 pp_comm: 0\n",
        MODE "\tmodel_parallel_NPU_group: 2 ep: 2 pp: 1 ga: 1 all_gpus: 8 checkpoints: 0 "
             "checkpoint_initiates: 0 pp_comm 0\n",
        "\xef\xbb\xbf" MODE "model_parallel_NPU_group: 2   expert_parallel_npu_group: 2 pp: 1   \t "
        "ga: 1 all_gpus: 8 checkpoints: 0 checkpoint_initiates: 0\r\n",
        "HYBRID_TRANSFORMER all_gpus:8 tp:2 ep :2 pp 1\n",
    };

    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        char text[1024];
        struct zipccl_trace *t;
        struct simai_sums sums;

        snprintf(text, sizeof text,
                 "%s\n 2 \r\n\n embed\t-1   100  ALLREDUCE\t 8589934592  1 NONE 5  1 NONE 0  1 \r\n"
                 "x -1 2.5e2 NONE 0 1 ALLTOALL_EP 25165824.0 1 NONE 0 100 test more",
                 headers[i]);
        t = import(text, NULL);
        cr_assert_eq(t->header.nranks, 8, "header %zu", i);
        simai_sums_of(t, 7, &sums);
        cr_expect_eq(sums.ns[0], 350);
        cr_expect_eq(simai_sums_find(&sums, "fwd", "ALLREDUCE").nbytes, UINT64_C(8589934592));
        cr_expect_eq(simai_sums_find(&sums, "ig", "ALLTOALL_EP").nbytes, 25165824);
        cr_expect_eq(count_of("trailing words"), 1);
        cr_expect_eq(count_of("size without call"), 1);
        cr_expect_eq(count_of("header word"), 0);
        zipccl_trace_destroy(t);
    }
}

Test(import_simai, an_old_header_needs_guesses_or_options)
{
    const char *text = MODE "model_parallel_NPU_group: 8 checkpoints: 0 checkpoint_initiates: 0\n"
                            "1\n" EMBED;
    struct zipccl_import_options options;
    struct zipccl_error error = {""};
    struct zipccl_trace *t = import(text, NULL);

    cr_assert_eq(t->header.nranks, 64);
    cr_assert_eq(count_of("all_gpus"), 1);
    zipccl_trace_destroy(t);
    zipccl_import_options_init(&options);
    options.nranks = 16;
    options.ranks_per_node = 8;
    t = import(text, &options);
    cr_assert_eq(t->header.nranks, 16);
    cr_assert_eq(t->header.ranks_per_node, 8);
    cr_assert_eq(count_of("all_gpus"), 0);
    zipccl_trace_destroy(t);
    options.strict = true;
    cr_assert_eq(try_import(text, &options, &t, &error), ZIPCCL_ERR_INPUT);
    cr_assert_not_null(strstr(error.text, "w.txt:1: "), "%s", error.text);
}

Test(import_simai, strict_passes_when_nothing_is_guessed)
{
    struct zipccl_import_options options;

    zipccl_import_options_init(&options);
    options.strict = options.dtype_given = options.grad_dtype_given = true;
    options.dtype = ZIPCCL_FLOAT16;
    options.grad_dtype = ZIPCCL_BFLOAT16;
    struct zipccl_trace *t = import(H8 "2\n" ATTN GRAD, &options);

    cr_assert_eq(report.nguesses, 0);
    cr_assert_eq(call(t, 0)->dtype, ZIPCCL_FLOAT16);
    cr_assert_eq(call(t, 1)->dtype, ZIPCCL_BFLOAT16);
    cr_assert_eq(call(t, 1)->count, 65536 / 2 / 4);
    zipccl_trace_destroy(t);
}

Test(import_simai, forward_calls_block_and_gradient_calls_do_not)
{
    struct zipccl_trace *t = import(H8 "2\na -1 10 ALLREDUCE 64 20 NONE 0 30 ALLREDUCE 64 0\n"
                                       "b -1 40 NONE 0 50 ALLREDUCE 64 60 ALLREDUCE 64 0\n",
                                    NULL);
    /* 1 a fwd, 2 call, 3 b fwd, 4 b ig, 5 call, 6 b wg, 7 call, 8 a ig, 9 a wg, 10 call */
    static const uint64_t waits_for[] = {0, 1, 2, 0, 4, 5, 6, 0, 0, 9};

    cr_assert_eq(t->nevents, 10);
    for (size_t i = 0; i < 10; i++) {
        const struct zipccl_event *e = &t->events[i];

        cr_expect_eq(e->id, i + 1);
        cr_expect_eq(e->ndeps > 0 ? e->deps[0] : 0, waits_for[i], "event %zu", i + 1);
    }
    cr_expect_float_eq(t->events[5].duration_s, 60e-9, 1e-15);
    zipccl_trace_destroy(t);
}

Test(import_simai, micro_batches_become_loops_and_may_be_changed)
{
    const char *text =
        MODE "model_parallel_NPU_group: 2 ep: 1 pp: 1 ga: 3 all_gpus: 8\n8\n" GRAD EMBED ATTN EMBED
            ATTN EMBED ATTN "optimizer1 -1 0 ALLREDUCE 4" NO NO " 100\n";
    struct zipccl_import_options options;
    struct simai_sums sums;
    struct zipccl_trace *t = import(text, NULL);
    size_t nevents = t->nevents;

    simai_sums_of(t, 5, &sums);
    cr_assert_eq(simai_sums_find(&sums, "fwd", "ALLGATHER").count, 3);
    cr_assert_eq(simai_sums_find(&sums, "ig", "REDUCESCATTER").nbytes, 3 * 8192);
    cr_assert_eq(simai_sums_find(&sums, "fwd", "ALLREDUCE").count, 4);
    cr_assert_eq(simai_sums_find(&sums, "wg", "REDUCESCATTER").count, 1);
    zipccl_trace_destroy(t);
    zipccl_import_options_init(&options);
    options.micro_batches = 32768;
    t = import(text, &options);
    cr_assert_eq(t->nevents, nevents);
    simai_sums_of(t, 5, &sums);
    cr_assert_eq(simai_sums_find(&sums, "fwd", "ALLGATHER").count, 32768);
    cr_assert_eq(report.ncollectives, 3 * 32768 + 2);
    zipccl_trace_destroy(t);
}

Test(import_simai, micro_batches_that_differ_in_time_stand_alone)
{
    struct zipccl_trace *t =
        import(MODE "model_parallel_NPU_group: 2 ep: 1 pp: 1 ga: 3 all_gpus: 8\n3\n"
                    "e -1 7 ALLREDUCE 64" NO NO " 0\ne -1 9 ALLREDUCE 64" NO NO " 0\n"
                    "e -1 9 ALLREDUCE 64" NO NO " 0\n",
               NULL);
    struct simai_sums sums;

    simai_sums_of(t, 0, &sums);
    cr_assert_eq(sums.ns[0], 25);
    cr_assert_eq(simai_sums_find(&sums, "fwd", "ALLREDUCE").count, 3);
    cr_assert_eq(count_of("micro-batches"), 0);
    zipccl_trace_destroy(t);
}

Test(import_simai, stages_send_to_their_neighbours)
{
    struct zipccl_trace *t = import(MODE "model_parallel_NPU_group: 2 ep: 1 pp: 3 vpp: 8 ga: 2 "
                                         "all_gpus: 12 pp_comm: 4096.0\n4\n" EMBED ATTN EMBED ATTN,
                                    NULL);
    static const uint64_t nsends[] = {4, 8, 4};
    struct simai_sums sums;
    size_t n = 0;

    for (uint32_t stage = 0; stage < 3; stage++) {
        simai_sums_of(t, 4 * stage + 1, &sums);
        cr_assert_eq(sums.nsends, nsends[stage], "stage %" PRIu32, stage);
        cr_assert_eq(sums.send_nbytes, nsends[stage] * 4096);
        cr_assert_eq(simai_sums_find(&sums, "fwd", "ALLGATHER").count, 2);
    }
    for (size_t i = 0; i < t->nevents; i++) {
        const struct zipccl_event *e = &t->events[i];

        if (e->kind != ZIPCCL_EVENT_COLLECTIVE || e->op != ZIPCCL_SENDRECV)
            continue;
        /* Forward 0-1, 1-2 from the lower to the upper member, backward 1-2, 0-1. */
        cr_assert_eq(e->ranks[0], n == 0 || n == 3 ? 0 : 4);
        cr_assert_eq(e->nranks, 8);
        cr_assert_eq(e->pairs[0].src, n < 2 ? 0 : 1);
        cr_assert_str_eq(group_of(t, e)->name, e->ranks[0] == 0 ? "pp.even" : "pp.odd");
        n++;
    }
    cr_assert_eq(n, 4);
    zipccl_trace_destroy(t);
}

Test(import_simai, checkpoints_repeat_the_forward_pass)
{
    struct zipccl_trace *t =
        import(MODE "model_parallel_NPU_group: 2 ep: 1 pp: 1 ga: 1 all_gpus: 8 checkpoints: 2 0 2 "
                    "checkpoint_initiates: 1 3\n4\n" EMBED ATTN EMBED ATTN,
               NULL);
    size_t again = 0;

    for (size_t i = 0; i < t->nevents; i++)
        again += t->events[i].kind == ZIPCCL_EVENT_COLLECTIVE &&
                 strcmp(t->events[i].label, "embedding_layer fwd again") == 0;
    cr_assert_eq(again, 1, "layer 2, from the checkpoint to the initiating layer");
    zipccl_trace_destroy(t);
}

Test(import_simai, other_modes_have_groups_of_their_own)
{
    struct zipccl_import_options options;
    struct zipccl_trace *t;

    zipccl_import_options_init(&options);
    options.nranks = 16;
    t = import("MICRO\n2\nm -1" NO NO " 1 ALLREDUCE 64 1\nm -1" NO NO " 1 ALLTOALL 128 1\n",
               &options);
    cr_assert_eq(report.ncollectives, 2);
    cr_assert_eq(call(t, 0)->count, 32);
    cr_assert_eq(call(t, 1)->count, 4);
    cr_assert_eq(group_of(t, call(t, 0))->size, 16);
    zipccl_trace_destroy(t);
    t = import("DISTRIBUTED_INFERENCE\n1\n" ATTN, &options);
    cr_assert_eq(report.ncollectives, 1);
    cr_assert_eq(group_of(t, call(t, 0))->size, 16);
    zipccl_trace_destroy(t);
    t = import("DATA\n1\n" GRAD, &options);
    cr_assert_eq(group_of(t, call(t, 0))->size, 16);
    zipccl_trace_destroy(t);
}

Test(import_simai, single_ranks_and_combined_calls_are_told)
{
    const char *text = MODE "model_parallel_NPU_group: 1 ep: 1 pp: 1 ga: 1 all_gpus: 8\n1\n"
                            "a -1 1 ALLGATHER 130 1 NONE 0 1 ALLREDUCEALLTOALL 64 0\n";
    struct zipccl_import_options options;
    struct zipccl_trace *t = import(text, NULL);

    cr_assert_eq(count_of("single rank"), 1);
    cr_assert_eq(count_of("ALLREDUCEALLTOALL"), 1);
    cr_assert_eq(group_of(t, call(t, 0))->size, 1);
    cr_assert_eq(call(t, 1)->op, ZIPCCL_ALL_REDUCE);
    cr_assert_eq(call(t, 2)->op, ZIPCCL_ALLTOALL);
    zipccl_trace_destroy(t);
    zipccl_import_options_init(&options);
    options.single_tp_as_dp = true;
    t = import(text, &options);
    cr_assert_eq(group_of(t, call(t, 0))->size, 8);
    cr_assert_eq(call(t, 0)->count, 9, "130 bytes of 2 over 8, rounded up");
    cr_assert_eq(count_of("rounding"), 1);
    zipccl_trace_destroy(t);
}

Test(import_simai, samples_are_bound_by_class_and_type)
{
    struct zipccl_import_options options;
    struct zipccl_trace *t;

    zipccl_import_options_init(&options);
    options.samples = "traces/samples/tensors/dense.safetensors";
    t = import(H8 "2\n" ATTN GRAD, &options);
    cr_assert_eq(call(t, 0)->nsamples, 1);
    cr_assert_str_eq(call(t, 0)->samples[0], "class:allreduce.tp");
    cr_assert_str_eq(call(t, 1)->samples[0], "class:allreduce.grad_fp32");
    cr_assert_not_null(t->samples_path);
    zipccl_trace_destroy(t);
}
