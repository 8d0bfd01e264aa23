/*
 * test_perf.c - perf: calls as nccl-tests derives them, statistics, elements, checks, options, files
 *
 * Nothing here depends on how long anything takes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/strategy.h"
#include "experiments/perf/perf_check.h"
#include "experiments/perf/perf_data.h"
#include "experiments/perf/perf_report.h"
#include "experiments/program/program.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yajl/yajl_tree.h>

Test(perf, calls_are_those_of_nccl_tests)
{
    static const struct {
        enum zipccl_op op;
        size_t count, send_n, recv_n;
        uint64_t size;
        double factor;
        bool in_place;
    } want[] = {
        /* 1000 bytes, bf16, 4 ranks: 500 elements, a share of 125, cut to 16 bytes: 120 */
        {ZIPCCL_ALL_GATHER, 120, 120, 480, 960, 0.75, true},
        {ZIPCCL_REDUCE_SCATTER, 120, 480, 120, 960, 0.75, true},
        {ZIPCCL_ALL_REDUCE, 500, 500, 500, 1000, 1.5, true},
        {ZIPCCL_ALLTOALL, 120, 480, 480, 960, 0.75, false},
        {ZIPCCL_ALLTOALLV, 120, 480, 480, 960, 0.75, false},
        {ZIPCCL_SENDRECV, 500, 500, 500, 1000, 1, false},
        {ZIPCCL_BROADCAST, 500, 500, 500, 1000, 1, true},
    };

    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        struct zipccl_perf_call call;

        zipccl_perf_call_init(&call, want[i].op, ZIPCCL_BFLOAT16, ZIPCCL_SUM, 0, 1000, 4);
        cr_expect(call.count == want[i].count && call.send_n == want[i].send_n &&
                      call.recv_n == want[i].recv_n && call.size == want[i].size &&
                      call.has_in_place == want[i].in_place,
                  "%s: %zu %zu %zu", zipccl_op_name(want[i].op), call.count, call.send_n,
                  call.recv_n);
        cr_expect_float_eq(zipccl_perf_algbw(&call, 1e-6), (double)call.size * 1e-3, 1e-12);
        cr_expect_float_eq(zipccl_perf_busbw(&call, 4, 1e-6),
                           want[i].factor * (double)call.size * 1e-3, 1e-12);
    }
}

Test(perf, uneven_blocks_fill_both_buffers)
{
    for (uint32_t n = 1; n < 8; n++)
        for (size_t count = 0; count < 100; count += 13) {
            struct zipccl_perf_call call;
            size_t rows = 0, columns = 0, send_at, recv_at;

            zipccl_perf_call_init(&call, ZIPCCL_ALLTOALLV, ZIPCCL_INT8, ZIPCCL_SUM, 0, count * n,
                                  n);
            for (uint32_t p = 0; p < n; p++) {
                size_t block = zipccl_perf_block(&call, NULL, n, 1 % n, p, &send_at, &recv_at);

                cr_expect_eq(send_at, rows);
                rows += block;
                block = zipccl_perf_block(&call, NULL, n, p, 1 % n, &send_at, &recv_at);
                cr_expect_eq(recv_at, columns);
                columns += block;
            }
            cr_expect(rows == call.send_n && columns == call.recv_n, "%u ranks, %zu", n, count);
        }
}

Test(perf, times_have_quartiles_and_pairs_an_interval)
{
    double times[] = {5e-6, 1e-6, 4e-6, 2e-6, 3e-6}, scratch[100], raw[100], own[100];
    struct zipccl_perf_row row = {.iters = 0};

    zipccl_perf_row_times(&row, times, 5);
    cr_expect(row.iters == 5 && row.time_s == 3e-6 && row.time_min_s == 1e-6 &&
              row.time_q1_s == 2e-6 && row.time_q3_s == 4e-6 && row.time_max_s == 5e-6);
    cr_expect_float_eq(row.time_mean_s, 3e-6, 1e-12);
    cr_expect_float_eq(row.time_cv, sqrt(2) / 3, 1e-9);
    for (int i = 0; i < 100; i++) {
        own[i] = 1 + i; /* whatever else happens, each pair is 2 +- 0.5 */
        raw[i] = own[i] * (1.5 + i / 99.0);
    }
    zipccl_perf_row_pairs(&row, raw, own, 100, scratch);
    cr_expect_float_eq(row.to_raw, 2, 1e-9);
    /* The 40th and the 61st of 100, as tables of the binomial have it. */
    cr_expect_float_eq(row.to_raw_low, 1.5 + 39 / 99.0, 0.011);
    cr_expect_float_eq(row.to_raw_high, 1.5 + 60 / 99.0, 0.011);
    zipccl_perf_row_pairs(&row, raw, own, 2, scratch);
    cr_expect(row.to_raw_low == 1.5 && row.to_raw_high > 1.5, "few pairs: all of them");
}

static struct zipccl_perf_options gauss = {.data = ZIPCCL_DATA_GAUSS, .input = "gauss"};

Test(perf, elements_differ_by_rank_and_call_and_repeat)
{
    static const enum zipccl_dtype dtypes[] = {ZIPCCL_BFLOAT16, ZIPCCL_FLOAT64, ZIPCCL_INT32,
                                               ZIPCCL_FLOAT8_E4M3};

    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
        size_t size = zipccl_dtype_size(dtypes[d]);
        unsigned char *a = malloc(3000 * size), *b = malloc(3000 * size);
        struct zipccl_perf_pool pool;

        cr_assert_eq(zipccl_perf_pool_open(&pool, &gauss, dtypes[d], 1001, NULL), ZIPCCL_OK);
        cr_expect_eq(pool.n, 1001);
        zipccl_perf_pool_copy(&pool, 3, 1, 0, 3000, a);
        cr_expect_eq(memcmp(a, a + 1001 * size, 1001 * size), 0, "the pool repeats");
        zipccl_perf_pool_copy(&pool, 3, 1, 1717, 900, b);
        cr_expect_eq(memcmp(a + 1717 * size, b, 900 * size), 0, "a part is that of the whole");
        zipccl_perf_pool_copy(&pool, 4, 1, 0, 3000, b);
        cr_expect_neq(memcmp(a, b, 3000 * size), 0, "another rank");
        zipccl_perf_pool_copy(&pool, 3, 2, 0, 3000, b);
        cr_expect_neq(memcmp(a, b, 3000 * size), 0, "another call");
        zipccl_perf_pool_close(&pool);
        free(a);
        free(b);
    }
}

static void copy_sent(const void *pool, uint32_t rank, size_t first, size_t n, void *out)
{
    zipccl_perf_pool_copy(pool, rank, 7, first, n, out);
}

/* What rank 'rank' must receive in a call that moves. */
static void fill_moved(const struct zipccl_perf_check *c, unsigned char *recv)
{
    size_t size = zipccl_dtype_size(c->call->dtype), send_at, recv_at;

    for (uint32_t p = 0; p < c->topology->nranks; p++) {
        size_t n =
            zipccl_perf_block(c->call, NULL, c->topology->nranks, p, c->rank, &send_at, &recv_at);

        c->sent(c->context, p, send_at, n, recv + recv_at * size);
    }
}

Test(perf, every_wrong_element_that_was_moved_is_counted)
{
    static const enum zipccl_op ops[] = {ZIPCCL_ALL_GATHER, ZIPCCL_ALLTOALL, ZIPCCL_ALLTOALLV,
                                         ZIPCCL_SENDRECV, ZIPCCL_BROADCAST};
    struct zipccl_topology *topology;
    struct zipccl_perf_pool pool;

    cr_assert_eq(zipccl_topology_create_even(1, 3, &topology), ZIPCCL_OK);
    cr_assert_eq(zipccl_perf_pool_open(&pool, &gauss, ZIPCCL_BFLOAT16, 5003, NULL), ZIPCCL_OK);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        struct zipccl_perf_call call;
        struct zipccl_perf_check check = {
            .call = &call, .sent = copy_sent, .context = &pool, .topology = topology, .rank = 2};
        uint64_t wrong = 0;

        zipccl_perf_call_init(&call, ops[i], ZIPCCL_BFLOAT16, ZIPCCL_SUM, 1, 60000, 3);
        unsigned char *recv = calloc(call.recv_n, 2);
        fill_moved(&check, recv);
        cr_assert_eq(zipccl_perf_check(&check, recv, &wrong), ZIPCCL_OK);
        cr_expect_eq(wrong, 0, "%s", zipccl_op_name(ops[i]));
        recv[0] ^= 1;
        recv[2 * (call.recv_n / 2) + 1] ^= 0x80;
        recv[2 * call.recv_n - 1] ^= 1;
        cr_assert_eq(zipccl_perf_check(&check, recv, &wrong), ZIPCCL_OK);
        cr_expect_eq(wrong, 3, "%s: %llu", zipccl_op_name(ops[i]), (unsigned long long)wrong);
        free(recv);
    }
    zipccl_perf_pool_close(&pool);
    zipccl_topology_destroy(topology);
}

/* A native plan of an all_reduce on 'topology'. */
static struct zipccl_plan *native_plan(const struct zipccl_topology *topology, size_t count)
{
    struct zipccl_call call = {.op = ZIPCCL_ALL_REDUCE,
                               .dtype = ZIPCCL_FLOAT32,
                               .redop = ZIPCCL_SUM,
                               .count = count,
                               .has_native = true};
    struct zipccl_plan *plan = NULL;

    cr_assert_eq(zipccl_strategy_find("native")->build(&call, topology, 1, 1, 0, 0, &plan),
                 ZIPCCL_OK);
    return plan;
}

/* Sums of 4 ranks' fp32 elements, last rank first: another order, so other roundings. */
static void fill_backwards(const struct zipccl_perf_pool *pool, size_t n, float *out)
{
    float *x = malloc(n * sizeof *x);

    memset(out, 0, n * sizeof *out);
    for (uint32_t r = 4; r-- > 0;) {
        copy_sent(pool, r, 0, n, x);
        for (size_t i = 0; i < n; i++)
            out[i] += x[i];
    }
    free(x);
}

Test(perf, native_sums_in_an_unknown_order_may_differ_by_roundings_alone)
{
    struct zipccl_topology *topology;
    struct zipccl_perf_call call;
    struct zipccl_perf_pool pool;
    uint64_t wrong = 0;

    cr_assert_eq(zipccl_topology_create_even(1, 4, &topology), ZIPCCL_OK);
    cr_assert_eq(zipccl_perf_pool_open(&pool, &gauss, ZIPCCL_FLOAT32, 20000, NULL), ZIPCCL_OK);
    zipccl_perf_call_init(&call, ZIPCCL_ALL_REDUCE, ZIPCCL_FLOAT32, ZIPCCL_SUM, 0, 80000, 4);
    struct zipccl_plan *plan = native_plan(topology, call.count);
    struct zipccl_perf_check check = {
        .call = &call, .sent = copy_sent, .context = &pool, .plan = plan, .topology = topology};
    float *recv = malloc(call.count * sizeof *recv);
    fill_backwards(&pool, call.count, recv);
    cr_assert_eq(zipccl_perf_check(&check, recv, &wrong), ZIPCCL_OK);
    cr_expect_eq(wrong, 0, "%llu outside the bound", (unsigned long long)wrong);
    check.rank_order = true;
    cr_assert_eq(zipccl_perf_check(&check, recv, &wrong), ZIPCCL_OK);
    cr_expect_gt(wrong, 100, "the other order shows where the order is known");
    check.rank_order = false;
    wrong = 0;
    recv[5] += 1e-6f * fabsf(recv[5]) + 1e-6f;
    recv[19999] = NAN;
    cr_assert_eq(zipccl_perf_check(&check, recv, &wrong), ZIPCCL_OK);
    cr_expect_eq(wrong, 2, "%llu", (unsigned long long)wrong);
    free(recv);
    zipccl_plan_destroy(plan);
    zipccl_perf_pool_close(&pool);
    zipccl_topology_destroy(topology);
}

static int parse(struct zipccl_perf_options *out, const char *words)
{
    static char text[400];
    char *argv[40] = {(char *)"perf"}, *save = NULL;
    int argc = 1;
    bool helped;

    snprintf(text, sizeof text, "%s", words);
    for (char *w = strtok_r(text, " ", &save); w != NULL; w = strtok_r(NULL, " ", &save))
        argv[argc++] = w;
    return zipccl_perf_parse("test", argc, argv, out, &helped);
}

Test(perf, sizes_follow_each_other)
{
    struct zipccl_perf_options o;

    cr_assert_eq(parse(&o, "all_gather -b 8 -e 1K -f 4"), ZIPCCL_EXIT_OK);
    cr_expect_eq(zipccl_perf_next_size(&o, 8), 32);
    cr_expect_eq(zipccl_perf_next_size(&o, 512), 0);
    cr_assert_eq(parse(&o, "all_gather -b 1M -e 3M -i 1M"), ZIPCCL_EXIT_OK);
    cr_expect_eq(zipccl_perf_next_size(&o, 1 << 20), 2 << 20);
    cr_expect_eq(zipccl_perf_next_size(&o, 3 << 20), 0);
    cr_assert_eq(parse(&o, "all_gather -e 1K"), ZIPCCL_EXIT_OK);
    cr_expect(o.min_bytes == 1024 && o.max_bytes == 1024, "-e alone is one size");
    cr_assert_eq(parse(&o, "all_gather"), ZIPCCL_EXIT_OK);
    cr_expect(o.min_bytes == 32 << 20 && o.max_bytes == 32 << 20 && o.modes[ZIPCCL_PERF_ADAPTIVE] &&
              !o.modes[ZIPCCL_PERF_RAW]);
}

Test(perf, the_environment_splits_ranks)
{
    struct zipccl_perf_options o;

    setenv("NCCL_TESTS_SPLIT", "mod 3", 1);
    cr_assert_eq(parse(&o, "all_gather"), ZIPCCL_EXIT_OK);
    cr_expect_eq(zipccl_perf_colour(&o, 7), 1);
    setenv("NCCL_TESTS_SPLIT", "DIV4", 1);
    cr_assert_eq(parse(&o, "all_gather"), ZIPCCL_EXIT_OK);
    cr_expect_eq(zipccl_perf_colour(&o, 7), 1);
    setenv("NCCL_TESTS_SPLIT", "& 0x6", 1);
    cr_assert_eq(parse(&o, "all_gather"), ZIPCCL_EXIT_OK);
    cr_expect_eq(zipccl_perf_colour(&o, 7), 6);
    setenv("NCCL_TESTS_SPLIT_MASK", "7", 1);
    cr_assert_eq(parse(&o, "all_gather"), ZIPCCL_EXIT_OK);
    cr_expect_eq(zipccl_perf_colour(&o, 12), 4, "the mask goes before, as in nccl-tests");
    unsetenv("NCCL_TESTS_SPLIT_MASK");
    setenv("NCCL_TESTS_SPLIT", "MOD 0", 1);
    cr_expect_eq(parse(&o, "all_gather"), ZIPCCL_EXIT_USAGE);
    setenv("NCCL_TESTS_SPLIT", "XOR 3", 1);
    cr_expect_eq(parse(&o, "all_gather"), ZIPCCL_EXIT_USAGE);
}

/* The value at 'key' of the first row of a JSON text. */
static yajl_val row_value(yajl_val root, const char *key)
{
    const char *path[] = {"rows", NULL}, *at[] = {key, NULL};
    yajl_val rows = yajl_tree_get(root, path, yajl_t_array);

    return rows != NULL && rows->u.array.len == 1
               ? yajl_tree_get(rows->u.array.values[0], at, yajl_t_any)
               : NULL;
}

Test(perf, json_holds_null_where_nothing_is_known)
{
    struct zipccl_perf_result result = {
        .measured = true, .on = "threads", .input = "gauss", .nranks = 4, .nodes = 2};
    struct zipccl_perf_row row = {.nranks = 4,
                                  .nodes = 2,
                                  .iters = 1,
                                  .time_s = 1e-3,
                                  .raw_bytes = 600,
                                  .coded_raw = 300,
                                  .coded_wire = 200,
                                  .wire_bytes = 500,
                                  .encode_s = -1,
                                  .decode_s = -1,
                                  .capacity_class = ZIPCCL_NO_CLASS,
                                  .wrong = -1};
    const char *kind[] = {"kind", NULL}, *cluster[] = {"cluster", NULL};
    char *text = NULL, reason[100];
    size_t nbytes;

    zipccl_perf_call_init(&row.call, ZIPCCL_ALL_GATHER, ZIPCCL_BFLOAT16, ZIPCCL_SUM, 0, 1 << 20, 4);
    cr_assert_eq(zipccl_perf_add(&result, &row), ZIPCCL_OK);
    FILE *out = open_memstream(&text, &nbytes);
    cr_assert_eq(zipccl_perf_json(&result, out, NULL), ZIPCCL_OK);
    fclose(out);
    yajl_val root = yajl_tree_parse(text, reason, sizeof reason);
    cr_assert_not_null(root, "%s", reason);
    cr_expect_str_eq(YAJL_GET_STRING(yajl_tree_get(root, kind, yajl_t_string)), "measured");
    cr_expect(YAJL_IS_NULL(yajl_tree_get(root, cluster, yajl_t_any)));
    cr_expect(YAJL_IS_NULL(row_value(root, "redop")) && YAJL_IS_NULL(row_value(root, "root")));
    cr_expect(YAJL_IS_NULL(row_value(root, "wrong")) && YAJL_IS_NULL(row_value(root, "encode_s")));
    cr_expect_float_eq(YAJL_GET_DOUBLE(row_value(root, "ratio")), 1.5, 1e-12);
    cr_expect_float_eq(YAJL_GET_DOUBLE(row_value(root, "busbw_GBps")), 0.75 * 1048576e-6, 1e-9);
    cr_expect_float_eq(YAJL_GET_DOUBLE(row_value(root, "wire_busbw_GBps")), 0.75 * 1048576e-6 / 1.5,
                       1e-9);
    yajl_tree_free(root);
    free(text);
    zipccl_perf_release(&result);
}
