/*
 * test_rows.c - result files of every kind are read, broken ones refused with the place
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "analysis/rows.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PERF_HEAD                                                                                  \
    "{\"schema\": {\"name\": \"zipccl.perf\", \"version\": 1}, \"kind\": \"measured\", \"on\": "   \
    "\"mpi\", \"nranks\": 4, \"nodes\": 2, \"cluster\": null, \"settings\": [], "                  \
    "\"assumptions\": [], \"rows\": ["
#define PERF_ROW                                                                                   \
    "{\"op\": \"all_reduce\", \"dtype\": \"bf16\", \"redop\": \"sum\", \"root\": null, "           \
    "\"count\": 1024, \"size_bytes\": 2048, \"nranks\": 4, \"nodes\": 2, \"mode\": "               \
    "\"compressed\", \"strategy\": \"exact direct\", \"nchunks\": 2, \"effort\": \"fast\", "       \
    "\"in_place\": true, \"input\": \"gaussian\", \"iters\": 20, \"time_s\": 0.5, "                \
    "\"time_min_s\": 0.4, \"time_q1_s\": 0.45, \"time_q3_s\": 0.6, \"time_max_s\": 1, "            \
    "\"ratio\": 1.5, \"raw_bytes\": 3072, \"wire_bytes\": 2060, \"encode_s\": 1e-3, "              \
    "\"decode_s\": null, \"wrong\": 0}"

static struct zipccl_rows *parse(const char *text, int op)
{
    struct zipccl_rows *rows = NULL;
    struct zipccl_error error = {""};

    cr_assert_eq(zipccl_rows_parse("x", text, strlen(text), op, &rows, &error), ZIPCCL_OK, "%s",
                 error.text);
    return rows;
}

static void refuses(const char *text, int op, const char *reason)
{
    struct zipccl_rows *rows = NULL;
    struct zipccl_error error = {""};

    cr_assert_eq(zipccl_rows_parse("x", text, strlen(text), op, &rows, &error), ZIPCCL_ERR_INPUT);
    cr_assert(strstr(error.text, reason) != NULL, "no '%s' in: %s", reason, error.text);
    cr_assert(strncmp(error.text, "x: ", 3) == 0, "no file in: %s", error.text);
}

Test(rows, reads_perf)
{
    struct zipccl_rows *rows = parse(PERF_HEAD PERF_ROW "]}", -1);
    const struct zipccl_row *r = rows->rows;

    cr_assert_eq(rows->kind, ZIPCCL_ROWS_PERF);
    cr_assert(rows->measured && rows->n == 1);
    cr_assert_str_eq(rows->on, "mpi");
    cr_assert(r->op == ZIPCCL_ALL_REDUCE && r->dtype == ZIPCCL_BFLOAT16 && r->count == 1024);
    cr_assert(r->nranks == 4 && r->nodes == 2 && r->nchunks == 2 && r->in_place);
    cr_assert_str_eq(r->mode, "compressed");
    cr_assert_str_eq(r->strategy, "exact direct");
    cr_assert(r->time_s == 0.5 && r->q1_s == 0.45 && r->q3_s == 0.6 && r->wire_bytes == 2060);
    cr_assert(r->encode_s == 1e-3 && isnan(r->decode_s) && r->wrong == 0);
    zipccl_rows_destroy(rows);
}

/* A row with one value replaced is refused, naming row and key. */
static void refuses_edited(const char *from, const char *to, const char *reason)
{
    static const char good[] = PERF_HEAD PERF_ROW ", " PERF_ROW "]}";
    char text[sizeof good + 200];
    const char *second = strstr(good, PERF_ROW) + sizeof PERF_ROW, *at = strstr(second, from);

    cr_assert(at != NULL, "no '%s'", from);
    snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
    refuses(text, -1, reason);
}

Test(rows, refuses_broken_perf)
{
    static const char good[] = PERF_HEAD PERF_ROW "]}";
    char text[sizeof good];

    refuses_edited("\"time_s\": 0.5", "\"time_s\": -1", "row 2: key \"time_s\": found -1");
    refuses_edited("\"time_s\": 0.5", "\"time_s\": \"x\"", "row 2: key \"time_s\": found a text");
    refuses_edited("\"time_s\": 0.5", "\"time_s\": 1e999", "row 2: key \"time_s\": found 1e999");
    refuses_edited("\"time_s\": 0.5", "\"time_s\": NaN", "not JSON at line 1, byte ");
    refuses_edited("\"time_s\": 0.5", "\"time_s\": null", "row 2: key \"time_s\": found null");
    refuses_edited("\"count\": 1024", "\"count\": 1.5", "row 2: key \"count\": found 1.5");
    refuses_edited("\"all_reduce\"", "\"all_reuse\"", "there is no collective \"all_reuse\"");
    refuses_edited("\"bf16\"", "\"bf17\"", "there is no type \"bf17\"");
    refuses_edited("\"in_place\": true", "\"in_place\": 1", "true or false");
    refuses_edited("exact direct", "exact\\u001b[1mdirect", "control characters");
    refuses_edited("\"nodes\": 2, \"mode\"", "\"mode\"", "row 2: key \"nodes\": found nothing");
    /* Cut anywhere it is no result; a NUL and other schemas are none either. */
    for (size_t n = 0; n + 1 < sizeof good; n++) {
        memcpy(text, good, n);
        text[n] = '\0';
        refuses(text, -1, n == 0 ? "empty" : "not JSON");
    }
    refuses("{}", -1, "JSON without a schema");
    refuses("{\"schema\": {\"name\": \"zipccl.codec-bench\", \"version\": 1}}", -1,
            "schema \"zipccl.codec-bench\", expected schema zipccl.perf or zipccl.replay");
    refuses("{\"schema\": {\"name\": \"zipccl.perf\", \"version\": 2}}", -1,
            "version 2, expected 1");
    refuses("{\"schema\": {\"name\": \"zipccl.perf\", \"version\": 1}, \"kind\": \"guessed\"}", -1,
            "found \"guessed\"");
    refuses("{\"schema\": {\"name\": \"zipccl.perf\", \"version\": 1}, \"kind\": \"measured\"}", -1,
            "key \"rows\"");
    refuses(PERF_HEAD "]}", -1, "no row has a time");
    refuses(" \n\t ", -1, "empty");
}

/* zipccl perf writes one where the size is too small for the ranks. */
Test(rows, leaves_out_calls_of_nothing)
{
    static const char nothing[] =
        "{\"op\": \"all_gather\", \"dtype\": \"bf16\", \"count\": 0, \"size_bytes\": 0, "
        "\"nranks\": 4, \"nodes\": 2, \"mode\": \"raw\", \"strategy\": \"-\", \"nchunks\": 0, "
        "\"time_s\": 2e-6}, ";
    char text[4096];

    snprintf(text, sizeof text, "%s%s%s]}", PERF_HEAD, nothing, PERF_ROW);
    struct zipccl_rows *rows = parse(text, -1);

    cr_assert(rows->n == 1 && rows->nskipped == 1 && rows->rows[0].count == 1024);
    zipccl_rows_destroy(rows);
}

Test(rows, refuses_rows_that_contradict_themselves)
{
    refuses_edited("\"time_s\": 0.5", "\"time_s\": 0", "row 2: key \"time_s\": found 0");
    refuses_edited("\"time_s\": 0.5, ", "", "row 2: key \"time_s\": found nothing");
    refuses_edited("\"time_q1_s\": 0.45", "\"time_q1_s\": 0.55",
                   "row 2: key \"time_s\": found 0.5, expected at least time_q1_s, 0.55");
    refuses_edited("\"time_min_s\": 0.4", "\"time_min_s\": 0.46",
                   "row 2: key \"time_q1_s\": found 0.45");
    refuses_edited("\"time_max_s\": 1", "\"time_max_s\": 0.5", "row 2: key \"time_max_s\"");
    refuses_edited("\"time_max_s\": 1", "\"time_max_s\": 1e7", "expected at most 1000000 s");
    refuses_edited("\"encode_s\": 1e-3", "\"encode_s\": 1e7", "row 2: key \"encode_s\"");
    refuses_edited("\"wire_bytes\": 2060", "\"wire_bytes\": 1e19", "expected less than 2^63");
    refuses_edited("\"mode\": \"compressed\"", "\"mode\": \"zipped\"",
                   "row 2: key \"mode\": found \"zipped\", expected raw, native");
    refuses_edited("\"nchunks\": 2", "\"nchunks\": 0", "row 2: key \"nchunks\": found 0");
    refuses_edited("\"size_bytes\": 2048", "\"size_bytes\": 4096",
                   "row 2: key \"size_bytes\": found 4096, expected 2048 for all_reduce");
    refuses_edited("\"all_reduce\"", "\"all_gather\"", "expected 8192 for all_gather");
}

Test(rows, tells_where_text_is_no_json)
{
    refuses("{\"schema\": {},\n\"rows\": [NaN]}", -1, "not JSON at line 2, byte 25: lexical error");
    refuses("{\n\n\"rows\": [}", -1, "not JSON at line 3, byte ");
    refuses("{\"schema\": {\"name\": \"zipccl.perf\", \"version\": null}}", -1,
            "version: found null, expected 1");
    refuses("{\"schema\": {\"name\": \"zipccl.perf\", \"version\": \"1\"}}", -1,
            "version: found a text, expected 1");
    refuses("{\"schema\": {\"name\": \"zipccl.perf\"}}", -1, "version: found nothing");
}

Test(rows, a_step_gives_a_row_for_each_mode_that_ran)
{
    struct zipccl_rows *rows = parse(
        "{\"schema\": {\"name\": \"zipccl.replay\", \"version\": 1}, \"kind\": \"simulated\", "
        "\"cluster\": {\"name\": \"c\"}, \"rows\": [{\"op\": \"alltoall\", \"group\": \"ep\", "
        "\"dtype\": \"bf16\", \"count\": 8, \"nranks\": 4, \"stream\": \"s\", \"calls\": 3, "
        "\"strategy_raw\": \"raw direct\", \"strategy\": \"exact direct\", \"time_raw_s\": 2, "
        "\"time_compressed_s\": null, \"time_adaptive_s\": 1.5}]}",
        -1);

    cr_assert_eq(rows->kind, ZIPCCL_ROWS_REPLAY);
    cr_assert(!rows->measured && rows->n == 2 && rows->nskipped == 1);
    cr_assert_str_eq(rows->on, "sim");
    cr_assert_str_eq(rows->cluster, "c");
    cr_assert_str_eq(rows->rows[0].mode, "raw");
    cr_assert_str_eq(rows->rows[1].mode, "adaptive");
    cr_assert_str_eq(rows->rows[1].strategy, "exact direct");
    cr_assert(rows->rows[1].time_s == 1.5 && rows->rows[1].calls == 3);
    cr_assert_str_eq(rows->rows[1].group, "ep");
    zipccl_rows_destroy(rows);
}

/* As nccl-tests 2.17 writes it: a name, redop and root, #wrong. */
#define TABLE_HEAD                                                                                 \
    "# nccl-tests version 2.17.6 nccl-headers=22807 nccl-library=22807\n"                          \
    "# Collective test starting: reduce_scatter_perf\n"                                            \
    "# nThread 1 nGpus 1 minBytes 8 maxBytes 128 step: 2(factor) warmup iters: 1 iters: 20\n"      \
    "#\n# Using devices\n"                                                                         \
    "#  Rank  0 Group  0 Pid     12 on      node1 device  0 [0000:1b:00] NVIDIA H100\n"            \
    "#  Rank  1 Group  0 Pid     13 on      node2 device  0 [0000:1b:00] NVIDIA H100\n#\n"         \
    "#                                                     out-of-place           in-place\n"      \
    "#       size         count      type   redop    root     time   algbw   busbw  #wrong     "   \
    "time   algbw   busbw  #wrong\n"                                                               \
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            "    \
    "(us)  (GB/s)  (GB/s)        \n"
#define TABLE_ROW                                                                                  \
    "     4194304        524288     float     sum      -1    100.7   41.64   36.43       0    "    \
    "99.56   42.13   36.86      N/A\n"
#define TABLE_END "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 1\n#\n"

Test(rows, reads_a_table_of_nccl_tests)
{
    struct zipccl_rows *rows = parse(
        TABLE_HEAD "node1:12:12 [0] NCCL INFO Launch mode Parallel\n" TABLE_ROW TABLE_END, -1);
    const struct zipccl_row *r = rows->rows;

    cr_assert_eq(rows->kind, ZIPCCL_ROWS_NCCL);
    cr_assert_eq(rows->n, 2);
    cr_assert(r->op == ZIPCCL_REDUCE_SCATTER && r->dtype == ZIPCCL_FLOAT32 && r->nranks == 2);
    cr_assert(r->nodes == 2 && r->count == 524288 && !r->in_place && r[1].in_place);
    cr_assert_float_eq(r->time_s, 100.7e-6, 1e-12);
    cr_assert_float_eq(r[1].time_s, 99.56e-6, 1e-12);
    cr_assert(r->wrong == 0 && isnan(r[1].wrong));
    cr_assert_str_eq(r->strategy, "native");
    zipccl_rows_destroy(rows);
}

Test(rows, refuses_broken_tables)
{
    refuses("hello\nworld\n", -1, "neither JSON nor a table");
    refuses("4194304 524288 float\n", -1, "neither JSON nor a table");
    refuses(TABLE_HEAD TABLE_ROW, -1, "without '# Out of bounds values': cut off");
    refuses(TABLE_HEAD "     4194304        524288     float     sum      -1    100.7\n" TABLE_END,
            -1, "line 12: a row that does not fit the head of the table; cut off?");
    refuses(TABLE_HEAD "4194304 524288 float sum -1 nan 1 1 0 1 1 1 0\n" TABLE_END, -1,
            "line 12: a time that is no number");
    refuses(TABLE_HEAD "4194304 524288 float sum -1 inf 1 1 0 1 1 1 0\n" TABLE_END, -1,
            "a time that is no number");
    refuses(TABLE_HEAD "4194304 524288 float sum -1 1 1 1 bad 1 1 1 0\n" TABLE_END, -1,
            "#wrong is neither");
    refuses(TABLE_HEAD "4194304 524288 float sum -1 0.00 1 1 0 1 1 1 0\n" TABLE_END, -1,
            "line 12: a time of 0");
    refuses(TABLE_HEAD "4194304 524288 quad sum -1 1 1 1 0 1 1 1 0\n" TABLE_END, -1, "a type");
    refuses(TABLE_HEAD "4194304 1048576 float sum -1 1 1 1 0 1 1 1 0\n" TABLE_END, -1,
            "another collective?");
    refuses(TABLE_HEAD TABLE_ROW TABLE_END, ZIPCCL_ALL_GATHER, "than --op says");
    refuses("# Collective test starting: gather_perf\n", -1, "that we do not have");
    refuses("#  Rank  0 Pid 1 on a device 0\n#  Rank  0 Pid 2 on a device 0\n", -1,
            "line 2: rank 0, expected rank 1; several runs in one");
    refuses("# size count type time algbw busbw error\n8 2 float 1 1 1 0\n" TABLE_END, -1,
            "the number of ranks is not known");
}

#define NCCL_JSON(time, args)                                                                      \
    "{\"version\": 2, \"args\": [" args "], \"env\": [\"SECRET=1\"], \"nccl_version\": 22807, "    \
    "\"config\": {\"nthreads\": 1, \"ngpus\": 4, \"devices\": [{\"rank\": 0, \"hostname\": "       \
    "\"a\"}, {\"rank\": 4, \"hostname\": \"b\"}]}, \"results\": [{\"size\": 2097152, \"count\": "  \
    "524288, \"type\": \"float\", \"redop\": \"sum\", \"root\": \"    -1\", \"out_of_place\": "    \
    "{\"time\": " time ", \"alg_bw\": 1, \"bus_bw\": 1, \"nwrong\": null}, \"in_place\": null, "   \
    "\"actual_iterations\": 20, \"experiment_name\": \"x\"}]}"

Test(rows, reads_json_of_nccl_tests)
{
    struct zipccl_rows *rows = parse(NCCL_JSON("123.5", "\"build/all_reduce_perf\", \"-g\""), -1);

    cr_assert_eq(rows->n, 1);
    cr_assert(rows->rows[0].op == ZIPCCL_ALL_REDUCE && rows->rows[0].nranks == 8);
    cr_assert(rows->rows[0].nodes == 2 && isnan(rows->rows[0].wrong));
    cr_assert_float_eq(rows->rows[0].time_s, 123.5e-6, 1e-12);
    zipccl_rows_destroy(rows);
    rows = parse(NCCL_JSON("123.5", ""), ZIPCCL_BROADCAST);
    cr_assert_eq(rows->rows[0].op, ZIPCCL_BROADCAST);
    zipccl_rows_destroy(rows);
    refuses(NCCL_JSON("123.5", ""), -1, "does not say which collective");
    refuses(NCCL_JSON("\"nan\"", "\"all_reduce_perf\""), -1, "row 1: key \"time\": found a text");
    refuses(NCCL_JSON("123.5", "\"all_reduce_perf\""), ZIPCCL_ALL_GATHER, "than --op says");
}

/* Logs of 8 A100, as an operator keeps them; without a name, two without redop or root. */
Test(rows, reads_logs_of_others)
{
    static const struct {
        const char *name;
        int op;
        double last_s; /* of 8 GiB */
    } logs[] = {{"nccl_allreduce.log", -1, 63896e-6},
                {"nccl_reducescatter.log", -1, 32464e-6},
                {"nccl_allgather.log", ZIPCCL_ALL_GATHER, 33646e-6}};

    for (size_t i = 0; i < sizeof logs / sizeof *logs; i++) {
        struct zipccl_rows *rows = NULL;
        struct zipccl_error error = {""};
        char path[128];

        snprintf(path, sizeof path, "../shared/data/traces/nccl_tests/%s", logs[i].name);
        if (access(path, R_OK) != 0) {
            cr_skip_test("%s is not here", path);
            return;
        }
        cr_assert_eq(zipccl_rows_read(path, logs[i].op, &rows, &error), ZIPCCL_OK, "%s",
                     error.text);
        cr_assert_eq(rows->n + rows->nskipped, 68);
        cr_assert(rows->rows[0].nranks == 8 && rows->rows[0].nodes == 1);
        cr_assert_float_eq(rows->rows[rows->n - 2].time_s, logs[i].last_s, 1e-9);
        for (size_t k = 0; k < rows->n; k++)
            cr_assert(rows->rows[k].time_s > 30e-6 && rows->rows[k].count > 0);
        zipccl_rows_destroy(rows);
        if (logs[i].op >= 0) {
            cr_assert_eq(zipccl_rows_read(path, -1, &rows, &error), ZIPCCL_ERR_INPUT);
            cr_assert(strstr(error.text, "expected --op OP") != NULL, "%s", error.text);
        }
    }
}
