/*
 * kineto_use.c - imports small profiler files in a test and looks at what comes out
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/tests/kineto_use.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct zipccl_import_report kineto_report;
struct zipccl_error kineto_error;

const char *kineto_save(char path[SCRATCH_PATH], const char *name, struct kineto_text *k)
{
    kineto_end(k);
    scratch_write(path, name, k->text, k->nbytes);
    free(k->text);
    return path;
}

/* Import the 'n' files named "r0.json", "r1.json", ... of the folder; NULL on failure. */
struct zipccl_trace *kineto_import_with(int n, const struct zipccl_import_options *options)
{
    static char names[8][SCRATCH_PATH];
    const char *paths[8];
    struct zipccl_trace *trace = NULL;
    zipccl_status status;

    for (int i = 0; i < n; i++) {
        char name[32];

        snprintf(name, sizeof name, "r%d.json", i);
        paths[i] = scratch_path(names[i], name);
    }
    zipccl_import_report_free(&kineto_report);
    kineto_error.text[0] = '\0';
    status = zipccl_import_to_memory("kineto", paths, (size_t)n, options, &kineto_report, &trace,
                                     &kineto_error);
    cr_expect_eq(status == ZIPCCL_OK, trace != NULL);
    cr_expect(status == ZIPCCL_OK || status == ZIPCCL_ERR_INPUT, "%s", kineto_error.text);
    return trace;
}

struct zipccl_trace *kineto_import(int n)
{
    struct zipccl_trace *trace = kineto_import_with(n, NULL);

    cr_assert_not_null(trace, "%s", kineto_error.text);
    return trace;
}

uint64_t kineto_counted(const char *what)
{
    for (size_t i = 0; i < kineto_report.nitems; i++)
        if (strcmp(kineto_report.items[i].what, what) == 0)
            return kineto_report.items[i].count;
    return 0;
}

const struct zipccl_event *kineto_find(const struct zipccl_trace *t, enum zipccl_event_kind kind,
                                       int number)
{
    for (size_t i = 0; i < t->nevents; i++)
        if (t->events[i].kind == kind && number-- == 0)
            return &t->events[i];
    cr_assert_fail("no event of kind %d", (int)kind);
    return NULL;
}

int kineto_count(const struct zipccl_trace *t, enum zipccl_event_kind kind)
{
    int n = 0;

    for (size_t i = 0; i < t->nevents; i++)
        n += t->events[i].kind == kind;
    return n;
}

/*
 * A gather beside compute that waits for it, on a clock of its own; all times in us:
 * compute 100-200, gather 150-(150+gather) launched at 60, wait, compute from the gather's end
 * for 50, scatter 100 long launched behind that.
 */
void kineto_write_step(const char *name, int rank, double clock, double gather, int seq)
{
    struct kineto_text k;
    char path[SCRATCH_PATH], more[64];

    kineto_begin(&k, rank, 2);
    k.clock_us = clock;
    kineto_kernel(&k, "gemm", KINETO_COMPUTE_STREAM, 50, 100, 40, "");
    snprintf(more, sizeof more, "\"Seq\": %d", seq);
    kineto_kernel(&k, GATHER, KINETO_NCCL_STREAM, 60, 150, gather,
                  kineto_call("_allgather_base", "BFloat16", 1000, 2000, 2, "[0, 1]", more));
    kineto_kernel(&k, "gemm", KINETO_COMPUTE_STREAM, 70, 140, 60, "");
    kineto_wait(&k, 80);
    kineto_kernel(&k, "gemm", KINETO_COMPUTE_STREAM, 90, 150 + gather, 50, "");
    snprintf(more, sizeof more, "\"Seq\": %d", seq + 1);
    kineto_kernel(&k, SCATTER, KINETO_NCCL_STREAM, 95, 200 + gather, 100,
                  kineto_call("_reduce_scatter_base", "BFloat16", 2000, 1000, 2, "[0, 1]", more));
    kineto_save(path, name, &k);
}
