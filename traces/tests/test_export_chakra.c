/*
 * test_export_chakra.c - traces as Chakra files and back
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/export_chakra.h"
#include "traces/import.h"
#include "traces/tests/scratch.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

TestSuite(export_chakra, .fini = scratch_remove);

static struct zipccl_error error;
static struct zipccl_export_report report;

#define HEADER                                                                                     \
    "{\"format\":\"zipccl-trace\",\"version\":1,\"name\":\"t\",\"provenance\":\"generated\","      \
    "\"generator\":\"test\",\"nranks\":4,\"streams\":[\"compute\",\"a\",\"b\"],\"groups\":["       \
    "{\"name\":\"tp\",\"size\":2},{\"name\":\"dp\",\"size\":2,\"stride\":2}],\"splits\":[{"        \
    "\"name\":"                                                                                    \
    "\"s\",\"counts\":[[1,2],[3,4]]}]}\n"

static struct zipccl_trace *load(const char *text)
{
    char path[SCRATCH_PATH];
    struct zipccl_trace *trace;

    scratch_write(path, "t.jsonl", text, strlen(text));
    cr_assert_eq(zipccl_trace_load(path, &trace, &error), ZIPCCL_OK, "%s", error.text);
    return trace;
}

/* Out to files and back in. */
static struct zipccl_trace *round_trip(const struct zipccl_trace *trace)
{
    char prefix[SCRATCH_PATH], **paths = calloc(trace->header.nranks + 1, sizeof *paths);
    struct zipccl_trace *back = NULL;
    uint32_t n = trace->header.nranks;

    cr_assert_eq(zipccl_export_chakra(trace, scratch_path(prefix, "x"), &report, &error), ZIPCCL_OK,
                 "%s", error.text);
    for (uint32_t i = 0; i <= n; i++) {
        paths[i] = malloc(SCRATCH_PATH + 32);
        if (i < n)
            snprintf(paths[i], SCRATCH_PATH + 32, "%s.%u.et", prefix, i);
        else
            snprintf(paths[i], SCRATCH_PATH + 32, "%s.comm_group.json", prefix);
    }
    cr_assert_eq(
        zipccl_import_to_memory(NULL, (const char *const *)paths, n + 1, NULL, NULL, &back, &error),
        ZIPCCL_OK, "%s", error.text);
    zipccl_import_files_free(paths, n + 1);
    return back;
}

static const struct zipccl_event *call(const struct zipccl_trace *t, enum zipccl_op op)
{
    for (size_t i = 0; i < t->nevents; i++)
        if (t->events[i].kind == ZIPCCL_EVENT_COLLECTIVE && t->events[i].op == op)
            return &t->events[i];
    cr_assert_fail("no %s", zipccl_op_name(op));
    return NULL;
}

static size_t count(const struct zipccl_trace *t, enum zipccl_event_kind kind)
{
    size_t n = 0;

    for (size_t i = 0; i < t->nevents; i++)
        n += t->events[i].kind == kind;
    return n;
}

Test(export_chakra, calls_come_back_as_they_were)
{
    static const char text[] = HEADER
        "{\"id\":1,\"kind\":\"compute\",\"duration_by_rank_s\":[1.5e-6,2.5e-6,1.5e-6,2.5e-6]}\n"
        "{\"id\":2,\"kind\":\"collective\",\"op\":\"all_gather\",\"group\":\"tp\",\"dtype\":"
        "\"bf16\","
        "\"count\":100,\"stream\":\"a\",\"deps\":[1],\"recorded_s\":3e-6}\n"
        "{\"id\":3,\"kind\":\"collective\",\"op\":\"reduce_scatter\",\"group\":\"dp\",\"dtype\":"
        "\"fp32\",\"count\":30,\"redop\":\"avg\",\"stream\":\"b\",\"deps\":[2]}\n"
        "{\"id\":4,\"kind\":\"compute\",\"deps\":[3],\"flops\":1e9,\"hbm_bytes\":5e6}\n"
        "{\"id\":5,\"kind\":\"collective\",\"op\":\"broadcast\",\"group\":\"dp\",\"dtype\":"
        "\"int64\","
        "\"count\":7,\"root\":1,\"stream\":\"b\",\"deps\":[4]}\n"
        "{\"id\":6,\"kind\":\"communication\",\"label\":\"DeepEP\",\"stream\":\"a\",\"deps\":[4],"
        "\"duration_s\":9e-6}\n"
        "{\"id\":7,\"kind\":\"collective\",\"op\":\"alltoallv\",\"group\":\"tp\",\"dtype\":"
        "\"fp16\","
        "\"count\":4,\"splits\":\"s\",\"stream\":\"a\"}\n"
        "{\"id\":8,\"kind\":\"collective\",\"op\":\"sendrecv\",\"group\":\"dp\",\"dtype\":\"bf16\","
        "\"count\":11,\"pairs\":[[0,1]],\"stream\":\"b\"}\n"
        "{\"kind\":\"end\",\"events\":8}\n";
    struct zipccl_trace *t = load(text), *back = round_trip(t);
    const struct zipccl_event *e;

    cr_expect_eq(report.nfiles, 4);
    cr_expect_eq(report.nnodes, 32, "each rank has one end of the pair");
    cr_expect_eq(report.nuneven, 1);
    e = call(back, ZIPCCL_ALL_GATHER);
    cr_expect(e->count == 100 && e->dtype == ZIPCCL_BFLOAT16 && e->ndeps > 0);
    cr_expect_eq(back->header.groups[e->group].ranks[1], 1);
    cr_expect_float_eq(e->recorded_s, 3e-6, 1e-12);
    e = call(back, ZIPCCL_REDUCE_SCATTER);
    cr_expect(e->count == 30 && e->dtype == ZIPCCL_FLOAT32 && e->redop == ZIPCCL_AVG);
    cr_expect_eq(back->header.groups[e->group].ranks[1], 2);
    e = call(back, ZIPCCL_BROADCAST);
    cr_expect(e->root == 1 && e->dtype == ZIPCCL_INT64 && e->count == 7);
    e = call(back, ZIPCCL_ALLTOALL);
    cr_expect_eq(e->dtype, ZIPCCL_FLOAT16);
    cr_expect(e->count == 3, "(1 + 2 + 3 + 4) / 4, rounded up; to whom is lost");
    e = call(back, ZIPCCL_SENDRECV);
    cr_expect(e->count == 11 && e->npairs == 1 && e->pairs[0].dst == 1);
    /* The uneven call makes two classes of ranks, each with its own events. */
    cr_expect_eq(count(back, ZIPCCL_EVENT_COMMUNICATION), 2);
    zipccl_trace_destroy(t);
    zipccl_trace_destroy(back);
}

Test(export_chakra, loops_and_repeats_are_written_out)
{
    static const char text[] =
        HEADER "{\"kind\":\"loop_begin\",\"repeat\":3}\n"
               "{\"id\":1,\"kind\":\"compute\",\"duration_s\":0.0000004}\n"
               "{\"id\":2,\"kind\":\"collective\",\"op\":\"all_reduce\",\"group\":\"tp\",\"dtype\":"
               "\"bf16\","
               "\"count\":100,\"redop\":\"sum\",\"stream\":\"a\",\"deps\":[1],\"repeat\":2}\n"
               "{\"id\":3,\"kind\":\"compute\",\"deps\":[2],\"duration_s\":0}\n"
               "{\"kind\":\"loop_end\"}\n{\"kind\":\"end\",\"events\":5}\n";
    struct zipccl_trace *t = load(text), *back = round_trip(t);
    double seconds = 0;

    cr_expect_eq(report.nnodes, 4 * 12);
    cr_expect_eq(count(back, ZIPCCL_EVENT_COLLECTIVE), 6);
    for (size_t i = 0; i < back->nevents; i++)
        seconds += back->events[i].kind == ZIPCCL_EVENT_COMPUTE ? back->events[i].duration_s : 0;
    cr_expect_float_eq(seconds, 1.2e-6, 1e-12, "below a microsecond too");
    zipccl_trace_destroy(t);
    zipccl_trace_destroy(back);
}

/* ASTRA-sim asks for both of every kernel, and skips one that moves nothing. */
Test(export_chakra, work_has_flops_and_bytes)
{
    static const char text[] =
        HEADER "{\"id\":1,\"kind\":\"compute\",\"flops\":2e9}\n"
               "{\"id\":2,\"kind\":\"compute\",\"flops\":1e9,\"hbm_bytes\":5e6,\"deps\":[1]}\n"
               "{\"id\":3,\"kind\":\"compute\",\"flops\":0,\"deps\":[2]}\n"
               "{\"id\":4,\"kind\":\"collective\",\"op\":\"all_reduce\",\"group\":\"tp\",\"dtype\":"
               "\"bf16\",\"count\":8,\"redop\":\"sum\",\"stream\":\"a\",\"deps\":[3]}\n"
               "{\"kind\":\"end\",\"events\":4}\n";
    struct zipccl_trace *t = load(text), *back = round_trip(t);

    cr_assert_geq(back->nevents, 2);
    cr_expect(back->events[0].flops == 2e9 && back->events[0].hbm_bytes == 1);
    cr_expect(back->events[1].flops == 1e9 && back->events[1].hbm_bytes == 5e6);
    zipccl_trace_destroy(t);
    zipccl_trace_destroy(back);
}

/* Sums over a rank. */
static void sums(const struct zipccl_trace *t, double *flops, uint64_t counts[ZIPCCL_NUM_OPS])
{
    *flops = 0;
    memset(counts, 0, ZIPCCL_NUM_OPS * sizeof *counts);
    for (size_t i = 0; i < t->nevents; i++) {
        const struct zipccl_event *e = &t->events[i];

        if (e->kind == ZIPCCL_EVENT_COMPUTE && e->flops > 0)
            *flops += e->flops * (double)e->repeat;
        if (e->kind == ZIPCCL_EVENT_COLLECTIVE)
            counts[e->op] += e->count * e->repeat;
    }
}

Test(export_chakra, a_bundled_trace_has_the_same_work_and_calls)
{
    struct zipccl_trace *t, *back;
    uint64_t a[ZIPCCL_NUM_OPS], b[ZIPCCL_NUM_OPS];
    double x, y;

    cr_assert_eq(zipccl_trace_load("traces/samples/llama2-7b-fsdp64", &t, &error), ZIPCCL_OK, "%s",
                 error.text);
    back = round_trip(t);
    cr_expect_eq(back->header.nranks, 64);
    sums(back, &y, b);
    sums(t, &x, a);
    cr_expect_lt(fabs(x - y), 1e-9 * x);
    cr_expect_arr_eq(a, b, sizeof a);
    zipccl_trace_destroy(t);
    zipccl_trace_destroy(back);
}

Test(export_chakra, nothing_is_left_after_a_failure)
{
    static const char text[] =
        HEADER "{\"id\":1,\"kind\":\"collective\",\"op\":\"all_reduce\",\"group\":\"tp\",\"dtype\":"
               "\"bf16\","
               "\"count\":100,\"redop\":\"sum\",\"stream\":\"a\",\"repeat\":9000000000}\n"
               "{\"kind\":\"end\",\"events\":1}\n";
    struct zipccl_trace *t = load(HEADER "{\"id\":1,\"kind\":\"compute\",\"duration_s\":1}\n"
                                         "{\"kind\":\"end\",\"events\":1}\n");
    char prefix[SCRATCH_PATH];
    size_t before;

    cr_expect_eq(zipccl_export_chakra(t, "/nowhere/x", &report, &error), ZIPCCL_ERR_IO);
    cr_expect_not_null(strstr(error.text, "/nowhere/x.0.et: "), "%s", error.text);
    zipccl_trace_destroy(t);
    t = load(text); /* more instances than are written out */
    before = scratch_count();
    cr_expect_eq(zipccl_export_chakra(t, scratch_path(prefix, "x"), &report, &error),
                 ZIPCCL_ERR_INPUT);
    cr_expect_eq(scratch_count(), before);
    zipccl_trace_destroy(t);
}

Test(export_chakra, a_folder_in_the_way_leaves_all_files_as_they_were)
{
    struct zipccl_trace *t = load(HEADER "{\"id\":1,\"kind\":\"compute\",\"duration_s\":1}\n"
                                         "{\"kind\":\"end\",\"events\":1}\n");
    static const char *const names[] = {"x.3.et", "x.comm_group.json"};
    char prefix[SCRATCH_PATH], path[SCRATCH_PATH], *text;
    size_t before, n;

    for (size_t i = 0; i < 2; i++) {
        scratch_write(path, "x.0.et", "old", 3);
        cr_assert_eq(mkdir(scratch_path(path, names[i]), 0700), 0);
        before = scratch_count();
        cr_expect_eq(zipccl_export_chakra(t, scratch_path(prefix, "x"), &report, &error),
                     ZIPCCL_ERR_IO);
        cr_expect_not_null(strstr(error.text, names[i]), "%s", error.text);
        cr_expect_not_null(strstr(error.text, "a folder"), "%s", error.text);
        cr_expect_eq(scratch_count(), before);
        text = scratch_read(scratch_path(path, "x.0.et"), &n);
        cr_assert_not_null(text);
        cr_expect_str_eq(text, "old");
        free(text);
        rmdir(scratch_path(path, names[i]));
    }
    zipccl_trace_destroy(t);
}
