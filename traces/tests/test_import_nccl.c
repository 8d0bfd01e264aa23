/*
 * test_import_nccl.c - debug logs of NCCL and RCCL: calls, communicators, ranks
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import.h"
#include "traces/tests/scratch.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TestSuite(import_nccl, .fini = scratch_remove);

static struct zipccl_import_report report;
static struct zipccl_error error;

/* As rank 'r' of 4 on two nodes writes it: a gather of all, a scatter of two, all-to-all by pairs. */
static void write_rank(FILE *f, int r, bool init)
{
    char who[64];

    snprintf(who, sizeof who, "[2026-03-12 13:57:49] node-%d:%d:%d [%d] NCCL INFO", r / 2, 100 + r,
             200 + r, r % 2);
    fprintf(f, "a line of the job\n");
    if (init)
        fprintf(f,
                "%s ncclCommInitRank comm 0x%x00 rank %d nranks 4 cudaDev %d busId 1000 commId "
                "0xabc - Init COMPLETE\n%s ncclCommSplit comm 0x%x11 rank %d nranks 2 cudaDev %d "
                "busId 1000 commId 0xdef%d - Init COMPLETE\n",
                who, r + 1, r, r % 2, who, r + 1, r / 2, r % 2, r % 2);
    fprintf(
        f,
        "%s AllGather: opCount %x sendbuff 0x7f recvbuff 0x8f count 1000 datatype 9 op 0 root 0 "
        "comm 0x%x00 [nranks=4] stream 0x55\n",
        who, r == 0 ? 26 : 26, r + 1);
    fprintf(
        f,
        "%s ReduceScatter: opCount 0 sendbuff 0x7f recvbuff 0x8f acc (nil) count 500 datatype 7 "
        "op 4 root 0 comm 0x%x11 [nranks=2] stream (nil)\n",
        who, r + 1);
    for (int p = 0; p < 4; p++)
        fprintf(f,
                "%s Send: opCount 1b sendbuff (nil) recvbuff 0x8f count %d datatype 9 op 0 root %d "
                "comm 0x%x00 [nranks=4] stream 0x55\n"
                "%s Recv: opCount 1b sendbuff 0x7f recvbuff 0x8f count %d datatype 9 op 0 root %d "
                "comm 0x%x00 [nranks=4] stream 0x55\n",
                who, 100 + 10 * r + p, p, r + 1, who, 100 + 10 * p + r, p, r + 1);
}

static struct zipccl_trace *import(int nfiles, bool init, bool together)
{
    static char names[4][SCRATCH_PATH];
    const char *paths[4];
    struct zipccl_trace *trace = NULL;

    for (int r = 0; r < nfiles; r++) {
        char name[16];
        FILE *f;

        snprintf(name, sizeof name, "log.%d", together ? 0 : r);
        paths[r] = scratch_path(names[r], name);
        f = fopen(paths[r], together && r > 0 ? "ab" : "wb");
        cr_assert_not_null(f);
        write_rank(f, r, init);
        fclose(f);
    }
    zipccl_import_report_free(&report);
    error.text[0] = '\0';
    cr_expect_eq(zipccl_import_to_memory(NULL, paths, together ? 1 : (size_t)nfiles, NULL, &report,
                                         &trace, &error),
                 ZIPCCL_OK, "%s", error.text);
    cr_assert_not_null(trace);
    cr_expect_str_eq(report.format, "nccl");
    return trace;
}

static uint64_t counted(const char *what)
{
    for (size_t i = 0; i < report.nitems; i++)
        if (strcmp(report.items[i].what, what) == 0)
            return report.items[i].count;
    return 0;
}

Test(import_nccl, one_file_or_one_a_rank_give_the_calls_of_all)
{
    for (int together = 0; together < 2; together++) {
        struct zipccl_trace *t = import(4, true, together != 0);

        cr_assert_eq(t->nevents, 3);
        cr_expect_eq(t->header.nranks, 4);
        cr_expect(t->header.recorded_step_s < 0);
        cr_expect(t->events[0].op == ZIPCCL_ALL_GATHER && t->events[0].count == 1000 &&
                  t->events[0].dtype == ZIPCCL_BFLOAT16 && t->events[0].recorded_s < 0);
        cr_expect(t->events[1].op == ZIPCCL_REDUCE_SCATTER && t->events[1].redop == ZIPCCL_AVG &&
                  t->events[1].dtype == ZIPCCL_FLOAT32 && t->events[1].stream == 2);
        cr_expect(t->header.groups[t->events[1].group].ranks[1] == 2, "ranks 0 and 2 are a group");
        /* Sends to and receives from everybody in one group call. */
        cr_assert(t->events[2].op == ZIPCCL_ALLTOALLV && t->events[2].splits == 0);
        cr_expect_eq(t->header.splits[0].counts[4 * 2 + 3], 123);
        cr_expect_eq(report.ncollectives, 3);
        cr_expect_eq(counted("no times"), 1);
        cr_expect_eq(counted("recorded times"), 0);
        zipccl_trace_destroy(t);
    }
}

Test(import_nccl, what_init_lines_would_tell_is_guessed_without_them)
{
    struct zipccl_trace *t = import(4, false, false);

    cr_expect_eq(t->header.nranks, 4);
    cr_expect_eq(counted("rank"), 4);
    cr_expect_gt(counted("members"), 0);
    zipccl_trace_destroy(t);
    t = import(1, true, false);
    cr_expect_eq(t->header.nranks, 4);
    cr_expect_eq(counted("ranks without file"), 3);
    cr_expect_eq(counted("balanced"), 1);
    zipccl_trace_destroy(t);
}

static void refuse(const char *text, const char *found, const char *expected)
{
    struct zipccl_trace *trace = NULL;
    char path[SCRATCH_PATH];
    const char *paths[] = {scratch_write(path, "log", text, strlen(text))};

    zipccl_import_report_free(&report);
    cr_expect_eq(zipccl_import_to_memory("nccl", paths, 1, NULL, &report, &trace, &error),
                 ZIPCCL_ERR_INPUT);
    cr_expect_not_null(strstr(error.text, found), "%s", error.text);
    cr_expect_not_null(strstr(error.text, expected), "%s", error.text);
    zipccl_trace_destroy(trace);
}

#define CALL(pid, rest)                                                                            \
    "h:" pid ":1 [0] NCCL INFO AllReduce: opCount 0 sendbuff 0x1 recvbuff 0x1 " rest

Test(import_nccl, logs_without_calls_and_ranks_twice_are_refused)
{
    refuse("", "no line with a call", "NCCL_DEBUG_SUBSYS=INIT,COLL");
    refuse("h:1:1 [0] NCCL INFO Channel 00 : 0 1\n", "no line with a call", "NCCL_DEBUG=INFO");
    refuse(CALL("1", "count 8 datatype 9\n"), "no line with a call", "NCCL_DEBUG=INFO");
    refuse(
        CALL("1", "count 8 datatype 9 op 0 root 0 comm 0x1 stream 0x2 task 0 globalrank 1\n")
            CALL("2", "count 8 datatype 9 op 0 root 0 comm 0x1 stream 0x2 task 0 globalrank 1\n"),
        "rank 1 for two processes, h:1[0] and h:2[0]", "expected one");
}

Test(import_nccl, a_log_given_twice_is_refused)
{
    static const char text[] =
        CALL("1", "count 8 datatype 9 op 0 root 0 comm 0x1 [nranks=2] stream 0x2\n");
    struct zipccl_trace *trace = NULL;
    char path[SCRATCH_PATH], copy[SCRATCH_PATH];
    const char *paths[] = {scratch_write(path, "log.0", text, strlen(text)), path};

    for (int i = 0; i < 2; i++) {
        zipccl_import_report_free(&report);
        cr_expect_eq(zipccl_import_to_memory(NULL, paths, 2, NULL, &report, &trace, &error),
                     ZIPCCL_ERR_INPUT);
        cr_expect_not_null(strstr(error.text, "rank 0, expected another than that of"), "%s",
                           error.text);
        cr_expect_not_null(strstr(error.text, i == 0 ? "log.0: " : "log.1: "), "%s", error.text);
        zipccl_trace_destroy(trace);
        trace = NULL;
        paths[1] = scratch_write(copy, "log.1", text, strlen(text));
    }
}

Test(import_nccl, lines_that_were_cut_are_counted)
{
    static const char text[] =
        CALL("1", "count 8 datatype 9 op 0 root 0 comm 0x1 [nranks=2] stream 0x2\n")
            CALL("1", "count 8 datatype 9 op 0 ro");
    struct zipccl_trace *trace = NULL;
    char path[SCRATCH_PATH];
    const char *paths[] = {scratch_write(path, "log", text, strlen(text))};

    zipccl_import_report_free(&report);
    cr_assert_eq(zipccl_import_to_memory(NULL, paths, 1, NULL, &report, &trace, &error), ZIPCCL_OK,
                 "%s", error.text);
    cr_expect_eq(counted("broken lines"), 1);
    cr_expect_eq(report.ncollectives, 1);
    zipccl_trace_destroy(trace);
}
