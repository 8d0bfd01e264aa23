/*
 * test_import_aicb.c - AICB's lists of calls: columns, types, groups, times, public files
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_aicb.h"
#include "traces/tests/expected.h"
#include "traces/tests/scratch.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(import_aicb, .fini = scratch_remove);

#define RANKS "[rank0 ~ rank15]\n"
#define COLUMNS                                                                                    \
    "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,"  \
    "busbw,count\n"
#define TAIL ",None,None,,None,None,None,1\n"

static struct zipccl_import_report report;
static struct zipccl_error error;

static zipccl_status try_import(const char *text, const struct zipccl_import_options *options,
                                struct zipccl_trace **trace)
{
    char path[SCRATCH_PATH];
    const char *paths[] = {scratch_write(path, "calls.csv", text, strlen(text))};

    *trace = NULL;
    zipccl_import_report_free(&report);
    error.text[0] = '\0';
    return zipccl_import_to_memory(NULL, paths, 1, options, &report, trace, &error);
}

static struct zipccl_trace *import(const char *text)
{
    struct zipccl_trace *trace;

    cr_assert_eq(try_import(text, NULL, &trace), ZIPCCL_OK, "%s", error.text);
    cr_expect_str_eq(report.format, "aicb");
    return trace;
}

Test(import_aicb, sizes_are_those_of_the_full_tensor)
{
    struct zipccl_trace *t =
        import(RANKS COLUMNS "CommType.broadcast,CommGroup.dp_group,4,4096,init.model,None,0" TAIL
                             "CommType.all_gather,CommGroup.tp_group,4,8192,forward.column" TAIL
                             "CommType.reduce_scatter,CommGroup.dp_group,4,6400,step" TAIL
                             "CommType.all_gather,CommGroup.dp_group,4,3200,step" TAIL
                             "CommType.all_to_all,CommGroup.ep_group,2,800,forward.moe" TAIL
                             "CommType.all_reduce,CommGroup.ep_dp_group,2,200,step" TAIL
                             "CommType.barrier,CommGroup.all,16,77,step" TAIL
                             "CommType.epoch_end,None,None,0," TAIL);
    static const struct {
        enum zipccl_op op;
        enum zipccl_dtype dtype;
        uint64_t count;
        uint32_t second; /* member of the first group */
    } want[] = {{ZIPCCL_ALL_GATHER, ZIPCCL_BFLOAT16, 1024, 1},
                {ZIPCCL_REDUCE_SCATTER, ZIPCCL_FLOAT32, 400, 4},
                {ZIPCCL_ALL_GATHER, ZIPCCL_BFLOAT16, 400, 4},
                {ZIPCCL_ALLTOALL, ZIPCCL_BFLOAT16, 200, 4},
                {ZIPCCL_ALL_REDUCE, ZIPCCL_FLOAT32, 50, 8},
                {ZIPCCL_ALL_REDUCE, ZIPCCL_UINT8, 1, 1}};

    cr_assert_eq(t->nevents, 6);
    cr_expect_eq(t->header.nranks, 16);
    cr_expect_str_eq(t->header.name, "calls");
    for (size_t i = 0; i < 6; i++) {
        const struct zipccl_event *e = &t->events[i];

        cr_expect(e->op == want[i].op && e->dtype == want[i].dtype && e->count == want[i].count,
                  "event %zu", i);
        cr_expect_eq(t->header.groups[e->group].ranks[1], want[i].second, "event %zu", i);
        cr_expect_eq(e->ndeps, i > 0, "all wait for what stands before");
    }
    cr_expect_eq(expected_counted(&report, "initialization"), 1);
    cr_expect_eq(expected_counted(&report, "no times"), 1);
    cr_expect_eq(report.ncollectives, 6);
    zipccl_trace_destroy(t);
}

/* The unquoted tuple has commas; a measured file has no line of ranks. */
Test(import_aicb, measured_files_have_times_and_compute)
{
    struct zipccl_trace *t = import(
        COLUMNS
        "CommType.computation,None,None,((2048, 1, 512), (512, 256)),forward.attention,None,None,,"
        "1.5,None,None,1\n"
        "CommType.computation,None,None,\"((4, 3), (3, 2))\",forward.mlp,None,None,,None,None,None,"
        "1\n"
        "CommType.all_reduce,CommGroup.tp_group,8,1048576.0,forward,None,None,overlap,0.25,1,2,3\n"
        "CommType.computation,None,None,None,forward.head,None,None,,None,None,None,1\n"
        "CommType.all_reduce,CommGroup.tp_group,8,8.0,forward_step,None,None,,0.5,1,2,1\n");

    cr_assert_eq(t->nevents, 4);
    cr_expect_eq(t->header.nranks, 8);
    cr_expect_float_eq(t->events[0].duration_s, 1.5e-3, 1e-12);
    cr_expect(t->events[0].flops < 0, "a time that was measured stands alone");
    cr_expect_float_eq(t->events[1].flops, 2.0 * 4 * 3 * 2, 0);
    cr_expect_eq(t->events[2].count, 524288);
    cr_expect_eq(t->events[2].repeat, 3);
    cr_expect_float_eq(t->events[2].recorded_s, 0.25e-3, 1e-12);
    cr_expect_eq(t->events[3].deps[0], t->events[1].id, "nothing waits for what overlaps");
    cr_expect_eq(t->events[3].dtype, ZIPCCL_FLOAT32);
    cr_expect_eq(report.ncollectives, 4);
    cr_expect_eq(expected_counted(&report, "world"), 1);
    cr_expect_eq(expected_counted(&report, "untimed compute"), 1);
    zipccl_trace_destroy(t);
}

Test(import_aicb, sends_of_a_stage_are_those_of_all_neighbours)
{
    struct zipccl_trace *t = import(
        RANKS COLUMNS "CommType.all_reduce,CommGroup.tp_group,2,800,forward" TAIL
                      "CommType.all_reduce,CommGroup.dp_group,2,800,step" TAIL
                      "CommType.irecv,CommGroup.pp_group,1,600,forward_step,None,None,recv_prev,"
                      "None,None,None,1\n"
                      "CommType.isend,CommGroup.pp_group,1,600,forward_step,None,None,send_next,"
                      "None,None,None,1\n"
                      "CommType.isend,CommGroup.pp_group,1,600,backward_step,None,None,send_prev,"
                      "None,None,None,1\n");
    const struct zipccl_event *e = &t->events[2];

    cr_assert_eq(t->nevents, 4);
    cr_expect(e->op == ZIPCCL_SENDRECV && e->count == 300 && e->npairs == 3);
    cr_expect(e->pairs[2].src == 2 && e->pairs[2].dst == 3);
    cr_expect(e[1].pairs[0].src == 1 && e[1].pairs[0].dst == 0);
    cr_expect_eq(t->header.groups[e->group].ranks[1], 4);
    cr_expect_eq(expected_counted(&report, "pipeline"), 3);
    zipccl_trace_destroy(t);
}

Test(import_aicb, given_types_replace_those_assumed)
{
    struct zipccl_import_options options;
    struct zipccl_trace *t;

    zipccl_import_options_init(&options);
    options.strict = options.dtype_given = true;
    options.dtype = ZIPCCL_FLOAT16;
    cr_expect_eq(try_import(RANKS COLUMNS
                            "CommType.all_gather,CommGroup.tp_group,4,8192,forward" TAIL,
                            &options, &t),
                 ZIPCCL_OK, "%s", error.text);
    cr_assert_not_null(t);
    cr_expect_eq(t->events[0].dtype, ZIPCCL_FLOAT16);
    zipccl_trace_destroy(t);
    options.dtype_given = false;
    cr_expect_eq(try_import(RANKS COLUMNS
                            "CommType.all_gather,CommGroup.tp_group,4,8192,forward" TAIL,
                            &options, &t),
                 ZIPCCL_ERR_INPUT);
    cr_expect_not_null(strstr(error.text, "expected none (strict)"), "%s", error.text);
}

Test(import_aicb, wrong_rows_are_refused_by_line)
{
    static const struct {
        const char *text, *found;
    } wrong[] = {
        {RANKS COLUMNS "CommType.sendto,CommGroup.tp_group,4,8,x" TAIL, ":3: comm_type"},
        {RANKS COLUMNS "CommType.all_reduce,CommGroup.cp_group,4,8,x" TAIL, ":3: comm_group "},
        {RANKS COLUMNS "CommType.all_reduce,CommGroup.tp_group,four,8,x" TAIL, ":3: comm_group_s"},
        {RANKS COLUMNS "CommType.all_reduce,CommGroup.tp_group,4,-8,x" TAIL, ":3: msg_size"},
        {RANKS COLUMNS "CommType.all_reduce,CommGroup.tp_group,4,8,x,None,None,,slow,1,1,1\n",
         ":3: _elapsed_time"},
        {RANKS COLUMNS "CommType.all_reduce,CommGroup.tp_group,4,8,x,None,None,,1,1,1,0\n",
         ":3: count"},
        {RANKS COLUMNS "CommType.all_reduce,CommGroup.tp_gr", ":3: 2 columns, expected 12"},
        {RANKS COLUMNS "CommType.all_reduce,CommGroup.tp_group,4,8,x" TAIL
                       "CommType.all_reduce,CommGroup.tp_group,2,8,x" TAIL,
         ":4: tp_group of 2 ranks, expected 4 as in line 3"},
        {RANKS COLUMNS "CommType.all_reduce,CommGroup.tp_group,3,8,x" TAIL, "divide the world"},
        {RANKS COLUMNS, "no row after the initialization"},
        {"[rank5 ~ rank2]\n" COLUMNS, ":1: "},
    };

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct zipccl_trace *trace;

        cr_expect_eq(try_import(wrong[i].text, NULL, &trace), ZIPCCL_ERR_INPUT, "%zu", i);
        cr_expect_not_null(strstr(error.text, wrong[i].found), "%s", error.text);
    }
}

/* Rows and bytes by type and group, the initialization too. */
static void compare(const char *name)
{
    yajl_val expected = expected_of(name), types = expected_get(expected, "types", yajl_t_object);
    yajl_val bytes = expected_get(expected, "bytes", yajl_t_object);
    struct zipccl_import_options options;
    char path[SCRATCH_PATH];
    const char *paths[] = {path};
    struct zipccl_importer importer = {paths, 1, "", &options, &report, &error};
    struct aicb_file f = {.importer = &importer};

    zipccl_import_options_init(&options);
    snprintf(path, sizeof path, "%s/%s", expected_folder(), name);
    cr_assert_eq(aicb_read(&f), ZIPCCL_OK, "%s", error.text);
    cr_expect_eq(f.nrows, expected_uint(expected, "rows"));
    cr_expect_eq(f.world, 128);
    for (size_t i = 0; i < types->u.object.len; i++) {
        uint64_t n = 0;

        for (size_t r = 0; r < f.nrows; r++)
            n += strcmp(types->u.object.keys[i] + 9, aicb_type_name(f.rows[r].type)) == 0;
        cr_expect_eq(n, YAJL_GET_DOUBLE(types->u.object.values[i]), "%s", types->u.object.keys[i]);
    }
    for (size_t i = 0; i < bytes->u.object.len; i++) {
        double sum = 0;

        for (size_t r = 0; r < f.nrows; r++) {
            char key[96];

            snprintf(key, sizeof key, "CommType.%s|CommGroup.%s|%u", aicb_type_name(f.rows[r].type),
                     aicb_group_name(f.rows[r].group),
                     f.rows[r].group < AICB_GROUPS ? f.sizes[f.rows[r].group] : 0);
            sum += strcmp(key, bytes->u.object.keys[i]) == 0 ? (double)f.rows[r].bytes : 0;
        }
        cr_expect_eq(sum, YAJL_GET_DOUBLE(bytes->u.object.values[i]), "%s",
                     bytes->u.object.keys[i]);
    }
    aicb_free(&f);
}

Test(import_aicb, public_files_are_as_expected)
{
    static const char *const names[] = {"aicb_csv/G13B-M1-C02_GPT13B_megatron_tp8_pp1_mbs1_sp.csv",
                                        "aicb_csv/L7B-D1-C01_Llama7B_zero2_mbs1.csv",
                                        "aicb_csv/L7B-D1-C02_Llama7B_zero3_mbs1.csv"};
    static const uint64_t ncalls[] = {412, 14, 656};

    for (size_t i = 0; i < 3; i++) {
        struct zipccl_trace *trace;

        compare(names[i]);
        trace = expected_import(names[i], "aicb", &report);
        cr_expect_eq(trace->nevents, ncalls[i]);
        cr_expect_eq(trace->header.nranks, 128);
        zipccl_import_report_free(&report);
        zipccl_trace_destroy(trace);
    }
}
