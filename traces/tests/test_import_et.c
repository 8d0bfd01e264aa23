/*
 * test_import_et.c - execution traces of PyTorch: schemas, waits, groups, beside profiler files
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_et.h"
#include "traces/tests/expected.h"
#include "traces/tests/kineto_file.h"
#include "traces/tests/scratch.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(import_et, .fini = scratch_remove);

static struct zipccl_import_report report;
static struct zipccl_error error;

static const char *save(char path[SCRATCH_PATH], const char *name, const char *text)
{
    return scratch_write(path, name, text, strlen(text));
}

static zipccl_status try_import(const char *const *paths, size_t n, struct zipccl_trace **trace)
{
    *trace = NULL;
    zipccl_import_report_free(&report);
    error.text[0] = '\0';
    return zipccl_import_to_memory(NULL, paths, n, NULL, &report, trace, &error);
}

static struct zipccl_trace *import(const char *const *paths, size_t n, const char *format)
{
    struct zipccl_trace *trace;

    cr_assert_eq(try_import(paths, n, &trace), ZIPCCL_OK, "%s", error.text);
    cr_expect_str_eq(report.format, format);
    return trace;
}

#define FLAT(id, in, types)                                                                        \
    "{\"name\":\"record_param_comms\",\"id\":" id ",\"rf_id\":9,\"inputs\":" in                    \
    ",\"input_types\":" types ",\"outputs\":[]}"
#define NODE(id, in, types, attrs)                                                                 \
    "{\"id\":" id ",\"name\":\"record_param_comms\",\"ctrl_deps\":2,\"inputs\":{\"values\":" in    \
    ",\"shapes\":[],\"types\":" types "},\"outputs\":{\"values\":[],\"shapes\":[],\"types\":[]},"  \
    "\"attrs\":[{\"name\":\"rf_id\",\"type\":\"uint64\",\"value\":1}" attrs "]}"
#define FILE_OF(schema, nodes) "{\"schema\":\"" schema "\",\"pid\":1,\"nodes\":[" nodes "]}"
#define TENSOR(n)              "[4,5,0," n ",4,\"cuda:0\"]"
#define FLOAT                  "[\"Tensor(float)\"]"
#define GROUP_NODE                                                                                 \
    "{\"id\":1,\"name\":\"## process_group:init ##\",\"ctrl_deps\":0,\"inputs\":{\"values\":"      \
    "[\"[{\\\"pg_name\\\": \\\"0\\\", \\\"ranks\\\": [], \\\"group_size\\\": 2}]\"]},"             \
    "\"outputs\":{},\"attrs\":[]},"
#define ATTRIBUTE(name, type, value)                                                               \
    ",{\"name\":\"" name "\",\"type\":\"" type "\",\"value\":" value "}"

/* An all-to-all of 30 and 10 elements, awaited; then a sum of 7, whose node stands before. */
static const char *const schemas[] = {
    FILE_OF(
        "1.0.1",
        "{\"name\":\"aten::mul\",\"id\":2,\"inputs\":[[1,[2,{\"a\":3}]]]}," FLAT(
            "8", "[[" TENSOR("7") "],12,555,0,\"allreduce\",[],[]]",
            "[\"GenericList[Tensor(float)]\"]") "," FLAT("5",
                                                         "[" TENSOR("40") ",11,555,0,\"all_to_"
                                                                          "allv\",[30,10],[5,5]]",
                                                         FLOAT) "," FLAT("6",
                                                                         "[11,0,0,\"wait\",[],[]]",
                                                                         "[]")),
    FILE_OF("1.0.2-chakra.0.0.4",
            GROUP_NODE NODE(
                "5", "[" TENSOR("40") ",11,555,0,\"all_to_allv\",[3,1],[5,5],2]", FLOAT,
                "") "," NODE("6", "[11,0,0,\"wait\",[],[],1]", "[]",
                             "") "," NODE("8", "[[" TENSOR("7") "],12,555,0,\"allreduce\",[],[],2]",
                                          FLOAT, "")),
    FILE_OF("1.0.3-chakra.0.0.4",
            NODE("5",
                 "[" TENSOR("40") ",[11,false],[\"0\",\"default_pg\"],0,\"all_to_allv\",[30,10],"
                                  "[5,5],0,1,2]",
                 FLOAT, "") "," NODE("6", "[[11,false],[\"\",\"\"],0,\"wait\",[],[],-1,-1,1]", "[]",
                                     "") "," NODE("8",
                                                  "[[" TENSOR("7") "],12,[\"0\",\"default_pg\"],0,"
                                                                   "\"allreduce\",[],[],0,1,2]",
                                                  FLOAT, "")),
    FILE_OF(
        "1.1.1-chakra.1.0.0",
        GROUP_NODE NODE(
            "5",
            "[" TENSOR("1") ",11,[\"0\",\"default_pg\"],0,\"all_to_allv\",[30,10],[5,5],0,"
                            "1,2]",
            "[\"Tensor(int)\"]",
            ATTRIBUTE("collective_name", "string", "\"all_to_allv\"") ATTRIBUTE(
                "dtype", "string", "\"Float\"") ATTRIBUTE("in_msg_nelems", "uint64", "40")
                ATTRIBUTE("in_split_size", "string", "\"[30, 10]\"") ATTRIBUTE(
                    "pg_size", "uint64",
                    "2")) "," NODE("6", "[11,[\"\",\"\"],0,\"wait\",[],[],-1,-1,1]", "[]",
                                   ATTRIBUTE("collective_name", "string",
                                             "\"wait\"")) "," NODE("8",
                                                                   "[[" TENSOR(
                                                                       "7") "],12,[\"0\",\"default_"
                                                                            "pg\"],0,\"allreduce\","
                                                                            "[],[],0,1,2]",
                                                                   FLOAT, "")),
};

Test(import_et, all_schemas_tell_the_same)
{
    for (size_t i = 0; i < sizeof schemas / sizeof schemas[0]; i++) {
        char a[SCRATCH_PATH], b[SCRATCH_PATH], other[4096];
        const char *paths[] = {save(a, "rank0.json", schemas[i]), b};
        struct zipccl_trace *t;
        char *own;

        /* The other rank's own number is 1. */
        strcpy(other, schemas[i]);
        while ((own = strstr(other, ",0,\"all")) != NULL)
            own[1] = '1';
        save(b, "rank1.json", other);
        t = import(paths, 2, "pytorch-et");
        cr_assert_eq(t->nevents, 3, "%zu", i);
        cr_expect_eq(t->header.nranks, 2);
        cr_expect_eq(t->events[0].op, ZIPCCL_ALLTOALLV, "%zu", i);
        cr_expect_eq(t->events[0].dtype, ZIPCCL_FLOAT32);
        cr_expect_eq(t->header.splits[0].counts[0], 30, "%zu", i);
        cr_expect_eq(t->header.splits[0].counts[1], 10);
        cr_expect(t->events[1].kind == ZIPCCL_EVENT_COMPUTE && t->events[1].duration_s == 0 &&
                      t->events[1].deps[0] == t->events[0].id,
                  "the wait");
        cr_expect(t->events[2].op == ZIPCCL_ALL_REDUCE && t->events[2].count == 7 &&
                  t->events[2].deps[0] == t->events[1].id);
        cr_expect_eq(expected_counted(&report, "no times"), 1);
        cr_expect_eq(expected_counted(&report, "group"), i == 0 ? 4 : 0, "%zu", i);
        zipccl_trace_destroy(t);
    }
}

Test(import_et, a_rank_is_told_by_its_calls_and_groups_by_start_and_stride)
{
    static const char text[] = FILE_OF(
        "1.1.0-chakra.0.0.4",
        NODE(
            "3", "[" TENSOR("8") ",1,[\"1\",\"dp\"],1,\"_allgather_base\",[],[],1,2,2]", FLOAT,
            "") "," NODE("4", "[" TENSOR("8") ",2,[\"1\",\"dp\"],1,\"broadcast\",[],[],1,2,2]",
                         FLOAT,
                         "") "," NODE("5",
                                      "[" TENSOR("8") ",3,[\"1\",\"dp\"],0,\"reduce\",[],[],1,2,2]",
                                      FLOAT,
                                      "") "," NODE("6",
                                                   "[" TENSOR("8") ",3,[\"1\",\"dp\"],0,"
                                                                   "\"frobnicate\",[],[],1,2,2]",
                                                   FLOAT, ""));
    char path[SCRATCH_PATH];
    const char *paths[] = {save(path, "step.json", text)};
    struct zipccl_trace *t = import(paths, 1, "pytorch-et");

    cr_expect_eq(t->header.nranks, 4);
    cr_expect_eq(expected_counted(&report, "rank"), 0, "rank 3: member 1 of [1, 3]");
    cr_assert_eq(t->nevents, 2);
    cr_expect_str_eq(t->header.groups[0].name, "dp");
    cr_expect_eq(t->header.groups[0].ranks[1], 2);
    cr_expect(t->events[1].op == ZIPCCL_BROADCAST && t->events[1].root == 1);
    cr_expect_eq(expected_counted(&report, "root"), 0);
    cr_expect_eq(expected_counted(&report, "other op"), 1);
    cr_expect_eq(expected_counted(&report, "unknown call"), 1);
    zipccl_trace_destroy(t);
}

static void profile(char path[SCRATCH_PATH], const char *name, int rank, const char *split)
{
    struct kineto_text k;
    char more[200];

    kineto_begin(&k, rank, 2);
    kineto_kernel(&k, "gemm", KINETO_COMPUTE_STREAM, 1, 10, 20, "");
    snprintf(more, sizeof more, "\"In split size\":\"%s\",\"Out split size\":\"[]\"", split);
    kineto_kernel(&k, "ncclDevKernel_SendRecv(x)", KINETO_NCCL_STREAM, 4, 110, 5,
                  split[0] != '\0' ? kineto_call("all_to_allv", "Float", 40, 0, 2, "[0, 1]", more)
                                   : "");
    kineto_kernel(&k, "ncclDevKernel_AllReduce_Sum_f32(x)", KINETO_NCCL_STREAM, 5, 120, 5,
                  split[0] != '\0' ? kineto_call("allreduce", "Float", 7, 7, 2, "[0, 1]", "") : "");
    kineto_end(&k);
    scratch_write(path, name, k.text, k.nbytes);
    free(k.text);
}

Test(import_et, beside_profiles_it_completes_lists_that_those_cut)
{
    static const struct {
        const char *split; /* of the profile */
        uint64_t whole, cut;
    } cases[] = {{"[30, ...]", 2, 0}, {"[29, ...]", 0, 2}, {"[30, 10]", 0, 0}};

    for (size_t i = 0; i < 3; i++) {
        char p[4][SCRATCH_PATH], other[4096];
        const char *paths[] = {p[0], p[1], p[2], p[3]};
        struct zipccl_trace *t;
        char *own;

        strcpy(other, schemas[2]);
        while ((own = strstr(other, ",0,\"all")) != NULL)
            own[1] = '1';
        save(p[0], "a_et_0.json", schemas[2]); /* first, and the format is kineto all the same */
        save(p[1], "a_et_1.json", other);
        profile(p[2], "r0.json", 0, cases[i].split);
        profile(p[3], "r1.json", 1, cases[i].split);
        t = import(paths, 4, "kineto");
        cr_expect_eq(expected_counted(&report, "whole splits"), cases[i].whole);
        cr_expect_eq(expected_counted(&report, "cut splits"), cases[i].cut);
        cr_expect_eq(t->header.nsplits, cases[i].cut == 0);
        if (t->header.nsplits > 0)
            cr_expect_eq(t->header.splits[0].counts[2], 30, "%zu", i);
        zipccl_trace_destroy(t);
    }
}

Test(import_et, beside_profiles_it_tells_what_kernels_without_metadata_move)
{
    char p[2][SCRATCH_PATH];
    const char *paths[] = {p[0], p[1]};
    struct zipccl_trace *t;

    profile(p[0], "r0.json", 0, "");
    save(p[1], "et.json", schemas[3]);
    t = import(paths, 2, "kineto");
    cr_expect_eq(expected_counted(&report, "size from order"), 2);
    cr_expect_eq(report.ncollectives, 2);
    cr_expect_eq(t->events[t->nevents - 1].count, 7);
    cr_expect_float_eq(t->events[t->nevents - 1].recorded_s, 5e-6, 1e-9);
    zipccl_trace_destroy(t);
    /* Two of them, and no profile, though one was asked for. */
    paths[0] = p[1];
    zipccl_import_report_free(&report);
    cr_expect_eq(zipccl_import_to_memory("kineto", paths, 2, NULL, &report, &t, &error),
                 ZIPCCL_ERR_INPUT);
    cr_expect_not_null(strstr(error.text, "execution traces alone"), "%s", error.text);
    paths[0] = p[0];
    /* Another number of calls: the order tells nothing. */
    save(
        p[1], "et.json",
        FILE_OF("1.0.3", NODE("5", "[" TENSOR("40") ",1,[\"0\",\"\"],0,\"all_to_all\",[],[],0,1,2]",
                              FLOAT, "")));
    cr_expect_eq(try_import(paths, 2, &t), ZIPCCL_ERR_INPUT);
    cr_expect_not_null(strstr(error.text, "none with op, type and size"), "%s", error.text);
}

Test(import_et, wrong_files_are_refused)
{
    static const struct {
        const char *text, *found;
        zipccl_status status;
    } wrong[] = {
        {FILE_OF("2.0", ""), "schema \"2.0\", expected 1.0.1 to 1.1.1", ZIPCCL_ERR_UNSUPPORTED},
        {FILE_OF("1.0.1", "{\"name\":\"aten::mul\",\"id\":1}"), "ExecutionTraceObserver",
         ZIPCCL_ERR_INPUT},
        {"{\"schema\":\"1.0.1\",\n\"nodes\":[{\"name\":", ":2: the end of the file",
         ZIPCCL_ERR_INPUT},
        {"{\"schema\":\"1.0.1\",\n\"nodes\":[3]}", ":2: no object in the list", ZIPCCL_ERR_INPUT},
        {"{\"schema\":\"1.0.1\",\"nodes\":[\n" FLAT("5", "[1,\"wait\"]", "[]") "]}",
         ":2: a node record_param_comms without", ZIPCCL_ERR_INPUT},
        {"{\"schema\":\"1.0.1\",\"nodes\":[\nx]}", ":2: ", ZIPCCL_ERR_INPUT},
        {FILE_OF("1.0.3", NODE("5", "[" TENSOR("8") ",1,[\"0\",\"\"],0,\"allreduce\",[],[],0,1,2]",
                               "[\"Tensor(quantum)\"]", "")),
         "no call with op, type and size", ZIPCCL_ERR_INPUT},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char path[SCRATCH_PATH];
        const char *paths[] = {save(path, "et.json", wrong[i].text)};
        struct zipccl_trace *trace;

        cr_expect_eq(try_import(paths, 1, &trace), wrong[i].status, "%zu", i);
        cr_expect_not_null(strstr(error.text, wrong[i].found), "%s", error.text);
    }
}

/* How many calls of a file are as row of EXPECTED.json says: name, type, sizes. */
static void compare_calls(const struct kineto_file *f, yajl_val rows)
{
    for (size_t i = 0; i < rows->u.array.len; i++) {
        yajl_val *row = rows->u.array.values[i]->u.array.values;
        size_t last = rows->u.array.values[i]->u.array.len - 1, n = 0;

        for (size_t k = 0; k < f->nmetas; k++) {
            const struct kineto_meta *m = &f->metas[k];

            n += strcmp(m->name, row[0]->u.string) == 0 &&
                 (last == 1 ||
                  (strcmp(m->dtype, row[1]->u.string) == 0 && m->in == YAJL_GET_DOUBLE(row[2]) &&
                   m->out == YAJL_GET_DOUBLE(row[3]) && m->size == YAJL_GET_DOUBLE(row[4])));
        }
        cr_expect_eq(n, YAJL_GET_DOUBLE(row[last]), "%s", row[0]->u.string);
    }
}

Test(import_et, public_file_is_as_expected)
{
    static const char name[] = "pytorch_et/resnet_2gpu_et_1.1.0.json.gz";
    yajl_val expected = expected_of(name);
    struct zipccl_trace *trace = expected_import(name, "pytorch-et", &report);
    struct kineto_file f;
    char path[SCRATCH_PATH];

    snprintf(path, sizeof path, "%s/%s", expected_folder(), name);
    cr_assert_eq(et_read(path, &f, &error), ZIPCCL_OK, "%s", error.text);
    cr_expect_eq(f.nevents, expected_uint(expected, "nodes"));
    cr_expect_eq(f.nmetas, expected_uint(expected, "record_param_comms"));
    cr_expect_eq(f.npgs, expected_uint(expected, "pg_init"));
    cr_expect(f.rank == 1 && f.world == 2);
    compare_calls(&f, expected_get(expected, "comms", yajl_t_array));
    kineto_file_free(&f);
    cr_expect_eq(report.ncollectives, 21);
    zipccl_import_report_free(&report);
    zipccl_trace_destroy(trace);
}
