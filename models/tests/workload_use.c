/*
 * workload_use.c - makes up a step for a test and reads the trace back
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/tests/workload_use.h"

#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

struct zipccl_workload workload_of(const char *name, uint32_t dp)
{
    struct zipccl_error error = {""};
    struct zipccl_workload w;

    zipccl_workload_init(&w);
    cr_assert_eq(zipccl_workload_model_open(name, "models/workloads", &w.model, &error), ZIPCCL_OK,
                 "%s", error.text);
    w.dp = dp;
    w.global_batch = dp;
    w.ranks_per_node = 8;
    return w;
}

struct step step_of(const struct zipccl_workload *w)
{
    char path[] = "/tmp/zipccl-workload-XXXXXX";
    struct zipccl_error error = {""};
    struct zipccl_trace_reader *reader;
    struct step step;
    int fd = mkstemp(path);

    cr_assert(fd >= 0);
    close(fd);
    cr_assert_eq(zipccl_workload_write(w, path, NULL, NULL, &step.summary, &error), ZIPCCL_OK, "%s",
                 error.text);
    cr_assert_eq(zipccl_trace_load(path, &step.trace, &error), ZIPCCL_OK, "%s", error.text);
    cr_assert_eq(zipccl_trace_open(path, &reader, &error), ZIPCCL_OK, "%s", error.text);
    cr_assert_eq(zipccl_trace_info_read(reader, &step.info, &error), ZIPCCL_OK, "%s", error.text);
    zipccl_trace_close(reader);
    unlink(path);
    cr_expect_eq(step.summary.lines, step.info.nevents);
    cr_expect_eq(step.summary.ncompute, step.info.ncompute);
    cr_expect_eq(step.summary.ncollective, step.info.ncollective);
    return step;
}

void step_free(struct step *step)
{
    zipccl_trace_info_free(&step->info);
    zipccl_trace_destroy(step->trace);
}

static bool matches(const struct step *step, const struct zipccl_trace_info_row *r,
                    enum zipccl_op op, const char *group, enum zipccl_dtype dtype)
{
    return r->op == op && r->dtype == dtype &&
           strcmp(step->trace->header.groups[r->group].name, group) == 0;
}

uint64_t step_calls(const struct step *step, enum zipccl_op op, const char *group,
                    enum zipccl_dtype dtype, uint64_t count)
{
    uint64_t n = 0;

    for (size_t i = 0; i < step->info.nrows; i++) {
        const struct zipccl_trace_info_row *r = &step->info.rows[i];

        if (matches(step, r, op, group, dtype) && (count == 0 || r->count == count))
            n += r->calls;
    }
    return n;
}

uint64_t step_elements(const struct step *step, enum zipccl_op op, const char *group,
                       enum zipccl_dtype dtype)
{
    uint64_t n = 0;

    for (size_t i = 0; i < step->info.nrows; i++)
        if (matches(step, &step->info.rows[i], op, group, dtype))
            n += step->info.rows[i].calls * step->info.rows[i].count;
    return n;
}
