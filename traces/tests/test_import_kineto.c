/*
 * test_import_kineto.c - small profiler files: what becomes of calls, compute, waits and groups
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/tests/kineto_use.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

TestSuite(import_kineto, .fini = scratch_remove);

static double seconds_of(const struct zipccl_event *e, uint32_t rank)
{
    return e->duration_by_rank_s != NULL ? e->duration_by_rank_s[rank] : e->duration_s;
}

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-9;
}

Test(import_kineto, two_ranks_become_one_step_whatever_their_clocks)
{
    const struct zipccl_event *e;
    struct zipccl_trace *t;

    /* Rank 1 comes 200 us late: rank 0's gather takes 500 us, of which 300 are communication. */
    kineto_write_step("r0.json", 0, 5e12, 500, 7);
    kineto_write_step("r1.json", 1, 17.5, 300, 7);
    t = kineto_import(2);
    cr_expect_eq(t->header.nranks, 2);
    cr_expect_eq(kineto_report.ncollectives, 2);
    cr_expect_eq(kineto_count(t, ZIPCCL_EVENT_COLLECTIVE), 2);
    cr_expect_eq(kineto_count(t, ZIPCCL_EVENT_COMPUTE), 3);
    e = kineto_find(t, ZIPCCL_EVENT_COLLECTIVE, 0);
    cr_expect(e->op == ZIPCCL_ALL_GATHER && e->count == 1000 && e->dtype == ZIPCCL_BFLOAT16);
    cr_expect(near(e->recorded_s, 300e-6), "%g", e->recorded_s);
    cr_expect_eq(e->nranks, 0);
    cr_expect_eq(e->stream, 1);
    /* It waits for the first kernel, not for the one launched behind it. */
    cr_expect(e->ndeps == 1 && e->deps[0] == kineto_find(t, ZIPCCL_EVENT_COMPUTE, 0)->id);
    cr_expect(near(seconds_of(kineto_find(t, ZIPCCL_EVENT_COMPUTE, 0), 0), 40e-6));
    cr_expect(near(seconds_of(kineto_find(t, ZIPCCL_EVENT_COMPUTE, 1), 0), 60e-6));
    cr_expect_eq(kineto_find(t, ZIPCCL_EVENT_COMPUTE, 1)->ndeps, 0);
    /* What follows the wait is compute alone on both ranks: waiting for the gather is not in it. */
    cr_expect(kineto_find(t, ZIPCCL_EVENT_COMPUTE, 2)->ndeps == 1 &&
              kineto_find(t, ZIPCCL_EVENT_COMPUTE, 2)->deps[0] == e->id);
    cr_expect(near(seconds_of(kineto_find(t, ZIPCCL_EVENT_COMPUTE, 2), 0), 50e-6));
    cr_expect(near(seconds_of(kineto_find(t, ZIPCCL_EVENT_COMPUTE, 2), 1), 50e-6));
    e = kineto_find(t, ZIPCCL_EVENT_COLLECTIVE, 1);
    cr_expect(e->op == ZIPCCL_REDUCE_SCATTER && e->count == 1000 && e->redop == ZIPCCL_SUM);
    cr_expect_eq(kineto_counted("matched by order"), 0);
    cr_expect_eq(kineto_counted("awaited call"), 1);
    cr_expect_eq(kineto_counted("late ranks"), 1);
    zipccl_trace_destroy(t);
}

Test(import_kineto, sequence_numbers_match_calls_of_windows_that_differ)
{
    struct kineto_text k;
    struct zipccl_trace *t;
    char path[SCRATCH_PATH], more[64];

    for (int rank = 0; rank < 2; rank++) {
        kineto_begin(&k, rank, 2);
        for (int seq = rank; seq < 4 + rank; seq++) {
            snprintf(more, sizeof more, "\"Seq\": %d", 10 + seq);
            kineto_kernel(
                &k, REDUCE, KINETO_NCCL_STREAM, 100 * seq, 100 * seq + 10, 20,
                kineto_call("allreduce", "BFloat16", 64 + seq, 64 + seq, 2, "[0, 1]", more));
        }
        kineto_save(path, rank == 0 ? "r0.json" : "r1.json", &k);
    }
    t = kineto_import(2);
    cr_expect_eq(kineto_report.ncollectives, 3);
    cr_expect_eq(kineto_find(t, ZIPCCL_EVENT_COLLECTIVE, 0)->count, 65);
    cr_expect_eq(kineto_counted("unmatched calls"), 2);
    zipccl_trace_destroy(t);
}

Test(import_kineto, without_numbers_common_calls_are_found)
{
    struct kineto_text k;
    struct zipccl_trace *t;
    char path[SCRATCH_PATH];

    for (int rank = 0; rank < 2; rank++) {
        kineto_begin(&k, rank, 2);
        for (int i = rank; i < 4; i++)
            kineto_kernel(&k, REDUCE, KINETO_NCCL_STREAM, 100 * i, 100 * i + 10, 20,
                          kineto_call("allreduce", "Float", 64 + i, 64 + i, 2, "[0, 1]", ""));
        kineto_save(path, rank == 0 ? "r0.json" : "r1.json", &k);
    }
    t = kineto_import(2);
    cr_expect_eq(kineto_report.ncollectives, 3);
    cr_expect_eq(kineto_find(t, ZIPCCL_EVENT_COLLECTIVE, 0)->count, 65);
    cr_expect_eq(kineto_counted("unmatched calls"), 1);
    cr_expect_eq(kineto_counted("matched by order"), 3);
    zipccl_trace_destroy(t);
}

Test(import_kineto, old_files_have_sizes_in_shapes_and_may_be_a_bare_array)
{
    static const char text[] =
        "[{\"ph\":\"X\",\"cat\":\"user_annotation\",\"name\":\"nccl:_reduce_scatter_base\","
        "\"pid\":1,\"tid\":9,\"ts\":1682725898240982,\"dur\":30,\"args\":{\"External id\":4,"
        "\"Input Dims\":[[8,100],[1]],\"Input type\":[\"c10::BFloat16\",\"\"]}},\n"
        "{\"ph\":\"X\",\"cat\":\"Runtime\",\"name\":\"cudaLaunchKernel\",\"pid\":1,\"tid\":9,"
        "\"ts\":1682725898240990,\"dur\":3,\"args\":{\"correlation\":5}},\n"
        "{\"ph\":\"X\",\"cat\":\"Kernel\",\"name\":\"ncclKernel_ReduceScatter_RING_LL_Sum_half\","
        "\"pid\":0,\"tid\":\"stream 20\",\"ts\":1682725898241000,\"dur\":100,\"args\":"
        "{\"stream\":20,\"correlation\":5}}]";
    struct zipccl_import_options options;
    const struct zipccl_event *e;
    struct zipccl_trace *t;
    char path[SCRATCH_PATH];

    scratch_write(path, "r0.json", text, strlen(text));
    zipccl_import_options_init(&options);
    options.nranks = 8;
    t = kineto_import_with(1, &options);
    cr_assert_not_null(t, "%s", kineto_error.text);
    e = kineto_find(t, ZIPCCL_EVENT_COLLECTIVE, 0);
    cr_expect(e->op == ZIPCCL_REDUCE_SCATTER && e->count == 100 && e->dtype == ZIPCCL_BFLOAT16);
    cr_expect(near(e->recorded_s, 100e-6));
    cr_expect_eq(kineto_counted("size from shape"), 1);
    cr_expect_eq(kineto_counted("group"), 1);
    cr_expect_eq(kineto_counted("ranks without file"), 7);
    zipccl_trace_destroy(t);
}

Test(import_kineto, gzip_gives_the_same)
{
    char path[SCRATCH_PATH], packed[SCRATCH_PATH], a[SCRATCH_PATH], b[SCRATCH_PATH];
    const char *paths[] = {path}, *packed_paths[] = {packed};
    size_t n, m;
    char *text, *x, *y;
    gzFile file;

    kineto_write_step("x.json", 0, 3, 100, 0);
    text = scratch_read(scratch_path(path, "x.json"), &n);
    file = gzopen(scratch_path(packed, "x.json.gz"), "wb");
    cr_assert_eq(gzwrite(file, text, (unsigned)n), (int)n);
    gzclose(file);
    cr_assert_eq(
        zipccl_import(NULL, paths, 1, scratch_path(a, "a.jsonl"), NULL, NULL, &kineto_error),
        ZIPCCL_OK, "%s", kineto_error.text);
    cr_assert_eq(
        zipccl_import(NULL, packed_paths, 1, scratch_path(b, "b.jsonl"), NULL, NULL, &kineto_error),
        ZIPCCL_OK, "%s", kineto_error.text);
    x = scratch_read(a, &n);
    y = scratch_read(b, &m);
    cr_expect(n == m && memcmp(x, y, n) == 0);
    free(text);
    free(x);
    free(y);
}

Test(import_kineto, what_json_lacks_is_read_and_counted)
{
    struct kineto_text k;
    struct zipccl_trace *t;
    char path[SCRATCH_PATH];

    kineto_begin(&k, 0, 2);
    kineto_event(&k,
                 "\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"x\", \"ts\": NaN, \"dur\": 1, "
                 "\"args\": {\"est\": -Infinity, \"a\": [inf, -nan]}");
    kineto_kernel(&k, "bytes \xff\xc0 and \x01 control \t", KINETO_COMPUTE_STREAM, 1, 2, 3, "");
    kineto_kernel(&k, REDUCE, KINETO_NCCL_STREAM, 10, 20, 5,
                  kineto_call("allreduce", "BFloat16", 64, 64, 2, "[0, 1]", "\"bw\": NaN"));
    kineto_save(path, "r0.json", &k);
    t = kineto_import(1);
    cr_expect_eq(kineto_counted("no JSON"), 7);
    cr_expect_eq(kineto_counted("untimed events"), 1);
    cr_expect_eq(kineto_report.ncollectives, 1);
    zipccl_trace_destroy(t);
}

/* Two ranks that send rows of 10 elements; whole lists, or lists that the profiler cut. */
static void write_splits(int rank, const char *in_split)
{
    struct kineto_text k;
    char path[SCRATCH_PATH], more[200];

    kineto_begin(&k, rank, 2);
    snprintf(more, sizeof more, "\"In split size\": \"%s\", \"Out split size\": \"[]\"", in_split);
    kineto_kernel(&k, P2P, KINETO_NCCL_STREAM, 1, 2, 3,
                  kineto_call("all_to_allv", "BFloat16", 80, 100, 2, "[0, 1]", more));
    kineto_save(path, rank == 0 ? "r0.json" : "r1.json", &k);
}

Test(import_kineto, splits_become_a_table_unless_they_were_cut)
{
    const struct zipccl_event *e;
    struct zipccl_trace *t;

    write_splits(0, "[1, 7]");
    write_splits(1, "[5, 3]");
    t = kineto_import(2);
    e = kineto_find(t, ZIPCCL_EVENT_COLLECTIVE, 0);
    cr_assert(e->op == ZIPCCL_ALLTOALLV && e->splits == 0 && e->count == 70);
    cr_expect_eq(t->header.splits[0].counts[0], 10);
    cr_expect_eq(t->header.splits[0].counts[1], 70);
    cr_expect_eq(t->header.splits[0].counts[2], 50);
    cr_expect_eq(t->header.splits[0].counts[3], 30);
    zipccl_trace_destroy(t);
    write_splits(1, "[5, ...]");
    t = kineto_import(2);
    e = kineto_find(t, ZIPCCL_EVENT_COLLECTIVE, 0);
    cr_expect(e->op == ZIPCCL_ALLTOALL && e->count == 40);
    cr_expect_eq(kineto_counted("cut splits"), 1);
    zipccl_trace_destroy(t);
}

Test(import_kineto, communication_past_nccl_is_no_compute)
{
    struct zipccl_import_options options;
    const struct zipccl_event *e;
    struct kineto_text k;
    struct zipccl_trace *t;
    char path[SCRATCH_PATH];

    kineto_begin(&k, 0, 2);
    kineto_kernel(&k, "gemm", KINETO_COMPUTE_STREAM, 1, 10, 20, "");
    kineto_kernel(&k, "void deep_ep::intranode::dispatch<8, 768>(int4*)", 30, 2, 30, 70, "");
    kineto_kernel(&k, "void nvshmemi_transfer(int)", 30, 3, 100, 10, "");
    kineto_kernel(&k, REDUCE, KINETO_NCCL_STREAM, 4, 110, 5,
                  kineto_call("allreduce", "BFloat16", 64, 64, 2, "[0, 1]", ""));
    kineto_save(path, "r0.json", &k);
    t = kineto_import(1);
    cr_expect_eq(kineto_count(t, ZIPCCL_EVENT_COMMUNICATION), 2);
    e = kineto_find(t, ZIPCCL_EVENT_COMMUNICATION, 0);
    cr_expect_str_eq(e->label, "DeepEP");
    cr_expect(near(e->duration_s, 70e-6) && e->stream != 0 && e->ndeps == 1);
    cr_expect_str_eq(kineto_find(t, ZIPCCL_EVENT_COMMUNICATION, 1)->label, "NVSHMEM");
    cr_expect(near(kineto_find(t, ZIPCCL_EVENT_COMPUTE, 0)->duration_s, 20e-6));
    cr_expect_eq(kineto_counted("not NCCL"), 1);
    zipccl_trace_destroy(t);
    zipccl_import_options_init(&options);
    options.dispatch_bytes = 4000;
    t = kineto_import_with(1, &options);
    cr_assert_not_null(t, "%s", kineto_error.text);
    e = kineto_find(t, ZIPCCL_EVENT_COLLECTIVE, 0);
    cr_expect(e->op == ZIPCCL_ALLTOALL && e->count == 1000 && e->dtype == ZIPCCL_BFLOAT16);
    cr_expect_str_eq(e->label, "DeepEP");
    cr_expect_eq(kineto_count(t, ZIPCCL_EVENT_COMMUNICATION), 1);
    cr_expect_eq(kineto_counted("dispatch"), 1);
    zipccl_trace_destroy(t);
}

Test(import_kineto, groups_of_missing_ranks_follow_those_that_are_there)
{
    const struct zipccl_trace_group *g;
    const struct zipccl_event *e;
    struct kineto_text k;
    struct zipccl_trace *t;
    char path[SCRATCH_PATH];

    kineto_begin(&k, 5, 8);
    kineto_kernel(&k, REDUCE, KINETO_NCCL_STREAM, 1, 2, 3,
                  kineto_call("allreduce", "BFloat16", 64, 64, 2, "[4, 5]", ""));
    /* The list was cut: start and stride tell the rest. */
    kineto_kernel(&k, GATHER, 41, 4, 5, 3,
                  kineto_call("_allgather_base", "BFloat16", 10, 40, 4, "[1, 3, ...]",
                              "\"Global rank start\": 1, \"Global rank stride\": 2"));
    kineto_save(path, "r0.json", &k);
    t = kineto_import(1);
    cr_assert_eq(t->header.ngroups, 2);
    g = &t->header.groups[0];
    cr_expect(g->nparts == 4 && g->size == 2 && g->ranks[6] == 6 && g->ranks[7] == 7);
    g = &t->header.groups[1];
    cr_expect(g->nparts == 2 && g->size == 4 && g->ranks[1] == 2 && g->ranks[4] == 1);
    e = kineto_find(t, ZIPCCL_EVENT_COLLECTIVE, 0);
    cr_expect_eq(e->nranks, 0, "all groups of the set do the same");
    cr_expect_eq(kineto_counted("ranks without file"), 7);
    cr_expect_eq(kineto_counted("recorded times"), 2);
    zipccl_trace_destroy(t);
}

/* Rank 0 sends to 1 while it receives from it, in one kernel; sizes differ. */
static void write_pairs(int rank)
{
    struct kineto_text k;
    char path[SCRATCH_PATH];

    kineto_begin(&k, rank, 2);
    for (int i = 0; i < 2; i++) {
        int sends = i == rank;

        kineto_event(&k,
                     "\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"record_param_comms\", "
                     "\"pid\": 1, \"tid\": 100, \"ts\": %d, \"dur\": 2, \"args\": {%s}",
                     1 + 5 * i,
                     kineto_call(sends ? "send" : "recv", "BFloat16", i == 0 ? 300 : 100,
                                 i == 0 ? 300 : 100, 2, "[0, 1]",
                                 sends ? (rank == 0 ? "\"Dst Rank\": 1" : "\"Dst Rank\": 0")
                                       : (rank == 0 ? "\"Src Rank\": 1" : "\"Src Rank\": 0")));
    }
    kineto_kernel(&k, P2P, KINETO_NCCL_STREAM, 20, 30, 40, "");
    kineto_save(path, rank == 0 ? "r0.json" : "r1.json", &k);
}

Test(import_kineto, grouped_sends_and_receives_meet)
{
    const struct zipccl_event *e;
    struct zipccl_trace *t;

    write_pairs(0);
    write_pairs(1);
    t = kineto_import(2);
    cr_assert_eq(kineto_count(t, ZIPCCL_EVENT_COLLECTIVE), 2);
    cr_expect_eq(kineto_counted("grouped calls"), 4);
    for (int i = 0; i < 2; i++) {
        e = kineto_find(t, ZIPCCL_EVENT_COLLECTIVE, i);
        cr_assert(e->op == ZIPCCL_SENDRECV && e->npairs == 1);
        cr_expect_eq(e->count, e->pairs[0].src == 0 ? 300 : 100);
        cr_expect_eq(e->pairs[0].dst, 1 - e->pairs[0].src);
    }
    zipccl_trace_destroy(t);
}

/* Both send before they receive, in one stream: buffers made that work. */
Test(import_kineto, sends_that_go_ahead_are_ordered_by_time)
{
    struct kineto_text k;
    struct zipccl_trace *t;
    char path[SCRATCH_PATH], more[32];

    for (int rank = 0; rank < 2; rank++) {
        kineto_begin(&k, rank, 2);
        snprintf(more, sizeof more, "\"Dst Rank\": %d", 1 - rank);
        kineto_kernel(&k, P2P, KINETO_NCCL_STREAM, 1, 10, 5,
                      kineto_call("send", "BFloat16", 64, 64, 2, "[0, 1]", more));
        snprintf(more, sizeof more, "\"Src Rank\": %d", 1 - rank);
        kineto_kernel(&k, P2P, KINETO_NCCL_STREAM, 2, 20, 5,
                      kineto_call("recv", "BFloat16", 64, 64, 2, "[0, 1]", more));
        kineto_save(path, rank == 0 ? "r0.json" : "r1.json", &k);
    }
    t = kineto_import(2);
    cr_expect_eq(kineto_count(t, ZIPCCL_EVENT_COLLECTIVE), 2);
    cr_expect_eq(kineto_report.ncollectives, 2);
    cr_expect_eq(kineto_counted("order of pairs"), 1);
    zipccl_trace_destroy(t);
}

Test(import_kineto, synchronization_events_tell_who_waits)
{
    struct kineto_text k;
    struct zipccl_trace *t;
    char path[SCRATCH_PATH];

    kineto_begin(&k, 0, 2);
    kineto_kernel(&k, REDUCE, KINETO_NCCL_STREAM, 1, 10, 20,
                  kineto_call("allreduce", "BFloat16", 64, 64, 2, "[0, 1]", ""));
    kineto_wait(&k, 40);
    kineto_event(
        &k,
        "\"ph\": \"X\", \"cat\": \"cuda_sync\", \"name\": \"Stream Wait Event\", \"ts\": 41,"
        " \"dur\": 0, \"args\": {\"stream\": %d, \"wait_on_stream\": %d, \"correlation\": "
        "%d}",
        KINETO_COMPUTE_STREAM, KINETO_NCCL_STREAM, k.correlation);
    kineto_kernel(&k, "gemm", KINETO_COMPUTE_STREAM, 50, 60, 5, "");
    kineto_save(path, "r0.json", &k);
    t = kineto_import(1);
    cr_expect_eq(kineto_counted("awaited call"), 0);
    cr_expect_eq(kineto_counted("wait by time"), 0);
    cr_expect(kineto_find(t, ZIPCCL_EVENT_COMPUTE, 0)->ndeps == 1);
    zipccl_trace_destroy(t);
}

/* Compute that the host launches late waits for a call only if the host waited for the GPU. */
Test(import_kineto, a_host_that_waits_makes_compute_wait)
{
    for (int waits = 0; waits < 2; waits++) {
        struct kineto_text k;
        struct zipccl_trace *t;
        char path[SCRATCH_PATH];

        kineto_begin(&k, 0, 2);
        kineto_wait(&k, 0);
        kineto_kernel(&k, REDUCE, KINETO_NCCL_STREAM, 1, 10, 20,
                      kineto_call("allreduce", "BFloat16", 64, 64, 2, "[0, 1]", ""));
        if (waits)
            kineto_event(&k, "\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": "
                             "\"cudaStreamSynchronize\", \"tid\": 100, \"ts\": 5, \"dur\": 27");
        kineto_kernel(&k, "gemm", KINETO_COMPUTE_STREAM, 50, 60, 5, "");
        kineto_save(path, "r0.json", &k);
        t = kineto_import(1);
        cr_expect_eq(kineto_counted("wait by time"), (uint64_t)waits);
        cr_expect_eq(kineto_find(t, ZIPCCL_EVENT_COMPUTE, 0)->ndeps, (uint32_t)waits);
        /* From the call's end, or from the start of the step, to the end of the kernel. */
        cr_expect(near(kineto_find(t, ZIPCCL_EVENT_COMPUTE, 0)->duration_s, waits ? 35e-6 : 55e-6));
        zipccl_trace_destroy(t);
    }
}

Test(import_kineto, sizes_that_overflowed_are_mended_and_counted)
{
    struct kineto_text k;
    struct zipccl_trace *t;
    char path[SCRATCH_PATH];

    kineto_begin(&k, 0, 2);
    kineto_kernel(
        &k, REDUCE, KINETO_NCCL_STREAM, 1, 10, 20,
        kineto_call("allreduce", "BFloat16", -2147483648LL, -2147483648LL, 2, "[0, 1]", ""));
    kineto_save(path, "r0.json", &k);
    t = kineto_import(1);
    cr_expect_eq(kineto_find(t, ZIPCCL_EVENT_COLLECTIVE, 0)->count, 2147483648u);
    cr_expect_eq(kineto_counted("32-bit size"), 1);
    zipccl_trace_destroy(t);
}
