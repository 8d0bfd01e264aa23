/*
 * test_import_simai_files.c - SimAI and AICB files against numbers that were computed apart
 *
 * The files are other people's and no part of the project: without them the tests skip.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import.h"
#include "traces/tests/scratch.h"
#include "traces/tests/simai_sums.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <yajl/yajl_tree.h>

/* Beside the project, or beside the folder of a second working tree. */
static const char *const folders[] = {"../shared/data/traces", "../../shared/data/traces"};

static const char *folder(void)
{
    char path[SCRATCH_PATH];

    for (size_t i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/EXPECTED.json", folders[i]);
        if (access(path, R_OK) == 0)
            return folders[i];
    }
    cr_skip_test("no %s", folders[0]);
    return NULL;
}

static yajl_val read_expected(char **text)
{
    char message[200], path[SCRATCH_PATH];
    yajl_val tree;

    snprintf(path, sizeof path, "%s/EXPECTED.json", folder());
    *text = scratch_read(path, &(size_t){0});
    cr_assert_not_null(*text, "%s", path);
    tree = yajl_tree_parse(*text, message, sizeof message);
    cr_assert_not_null(tree, "%s", message);
    return tree;
}

static yajl_val get(yajl_val node, const char *key, yajl_type type)
{
    const char *path[] = {key, NULL};
    yajl_val value = yajl_tree_get(node, path, type);

    cr_assert_not_null(value, "EXPECTED.json lacks %s", key);
    return value;
}

static uint64_t get_uint(yajl_val node, const char *key)
{
    return (uint64_t)YAJL_GET_INTEGER(get(node, key, yajl_t_number));
}

/* Bytes that rounding up to whole counts may have added to each call. */
static void compare_rank(yajl_val expected, const struct zipccl_trace *trace, uint32_t rank,
                         uint64_t most_rounded)
{
    yajl_val comm = get(expected, "comm", yajl_t_array),
             ns = get(expected, "compute_ns", yajl_t_object);
    struct simai_sums sums;

    simai_sums_of(trace, rank, &sums);
    cr_assert_eq(sums.ns[0], get_uint(ns, "fwd"));
    cr_assert_eq(sums.ns[1], get_uint(ns, "ig"));
    cr_assert_eq(sums.ns[2], get_uint(ns, "wg"));
    cr_assert_eq(sums.n, comm->u.array.len);
    for (size_t i = 0; i < comm->u.array.len; i++) {
        yajl_val row = comm->u.array.values[i];
        const char *phase = YAJL_GET_STRING(get(row, "phase", yajl_t_string));
        const char *type = YAJL_GET_STRING(get(row, "type", yajl_t_string));
        struct simai_sum found = simai_sums_find(&sums, phase, type);
        uint64_t nbytes = get_uint(row, "bytes");

        cr_expect_eq(found.count, get_uint(row, "count"), "%s %s", phase, type);
        cr_expect_geq(found.nbytes, nbytes, "%s %s", phase, type);
        cr_expect_leq(found.nbytes - nbytes, found.count * most_rounded, "%s %s", phase, type);
    }
}

/* Import folder/name, compare ranks of the first, a middle and the last stage. */
static struct zipccl_trace *compare(const char *name, uint32_t nranks, uint64_t most_rounded)
{
    struct zipccl_import_options options;
    struct zipccl_import_report report;
    struct zipccl_trace *trace;
    struct zipccl_error error = {""};
    char path[SCRATCH_PATH], format[ZIPCCL_IMPORT_NAME_SIZE], *text;
    const char *paths[] = {path};
    yajl_val tree = read_expected(&text), expected = get(tree, name, yajl_t_object);
    zipccl_status status;

    snprintf(path, sizeof path, "%s/%s", folder(), name);
    cr_assert_eq(zipccl_import_detect(path, format, sizeof format, &error), ZIPCCL_OK, "%s",
                 error.text);
    cr_assert_str_eq(format, "simai");
    zipccl_import_options_init(&options);
    options.nranks = nranks;
    status = zipccl_import_to_memory(NULL, paths, 1, &options, &report, &trace, &error);
    cr_assert_eq(status, ZIPCCL_OK, "%s", error.text);
    cr_assert_eq(report.nlayers, get_uint(expected, "rows"));
    cr_assert_eq(report.nlayers, get_uint(expected, "declared_layers"));
    cr_assert_str_eq(trace->path, path);
    compare_rank(expected, trace, 0, most_rounded);
    compare_rank(expected, trace, trace->header.nranks / 2 + 1, most_rounded);
    compare_rank(expected, trace, trace->header.nranks - 1, most_rounded);
    zipccl_import_report_free(&report);
    yajl_tree_free(tree);
    free(text);
    return trace;
}

Test(simai_files, micro_all_reduce_is_as_expected)
{
    struct zipccl_trace *trace = compare("simai/microAllReduce.txt", 0, 0);

    cr_assert_eq(trace->header.nranks, 8);
    zipccl_trace_destroy(trace);
}

Test(simai_files, moe_of_9216_ranks_is_as_expected_and_small)
{
    struct zipccl_trace *trace = compare("simai/workload_analytical.txt", 0, 0);
    struct simai_sums sums;
    size_t nloops = 0;

    cr_assert_eq(trace->header.nranks, 9216);
    for (size_t i = 0; i < trace->nevents; i++) {
        if (trace->events[i].kind != ZIPCCL_EVENT_LOOP_BEGIN)
            continue;
        nloops++;
        /* AICB gives the first micro-batch's embedding another time. */
        cr_assert_eq(trace->events[i].repeat, 23);
    }
    cr_assert_eq(nloops, 2, "forward and backward micro-batches");
    cr_assert_lt(trace->nevents, 15000, "%zu events", trace->nevents);
    /* The first stage has one neighbour, the second has two. */
    simai_sums_of(trace, 0, &sums);
    cr_assert_eq(sums.nsends, 2 * 24);
    cr_assert_eq(sums.send_nbytes, 2 * 24 * (uint64_t)50331648);
    simai_sums_of(trace, 768, &sums);
    cr_assert_eq(sums.nsends, 4 * 24);
    zipccl_trace_destroy(trace);
}

/* 13B: TP 8 of 128 ranks, as AICB's own log of that model says. */
Test(simai_files, gpt_13b_with_an_old_header_is_as_expected)
{
    struct zipccl_trace *trace =
        compare("aicb_simai/G13B-M1-C01_GPT13B_megatron_tp8_pp1_mbs1_A100.txt", 128, 0);

    cr_assert_eq(trace->header.nranks, 128);
    zipccl_trace_destroy(trace);
}

/* Odd sizes: the largest part is 4 bytes for each of 128 ranks. */
Test(simai_files, llama_7b_with_odd_sizes_is_as_expected)
{
    struct zipccl_trace *trace =
        compare("aicb_simai/L7B-D1-C02_Llama7B_deepspeed_zero3_A100.txt", 128, 4 * 128 - 1);

    zipccl_trace_destroy(trace);
}
