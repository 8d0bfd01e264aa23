/*
 * check.c - whether a trace is whole, and what it lacks
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/check.h"

#include "traces/info.h"
#include "traces/iterate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What some event uses. */
struct use {
    unsigned char *ranks, *streams, *groups;
    bool all_ranks;
};

static void mark_collective(const struct zipccl_trace *t, const struct zipccl_event *e,
                            struct use *use)
{
    const struct zipccl_trace_group *g = &t->header.groups[e->group];

    use->groups[e->group] = 1;
    for (size_t i = 0; e->nranks == 0 && i < (size_t)g->nparts * g->size; i++)
        use->ranks[g->ranks[i]] = 1;
}

static void mark(const struct zipccl_trace *t, struct use *use)
{
    for (size_t i = 0; i < t->nevents; i++) {
        const struct zipccl_event *e = &t->events[i];

        if (!zipccl_event_runs(e))
            continue;
        use->streams[e->stream] = 1;
        for (uint32_t k = 0; k < e->nranks; k++)
            use->ranks[e->ranks[k]] = 1;
        if (e->kind == ZIPCCL_EVENT_COLLECTIVE)
            mark_collective(t, e, use);
        else
            use->all_ranks |= e->nranks == 0;
    }
}

static void print_unused(const struct zipccl_trace *t, FILE *out, const struct use *use)
{
    uint32_t idle = 0;

    for (uint32_t i = 0; i < t->header.nranks; i++)
        idle += !use->all_ranks && !use->ranks[i];
    if (idle > 0)
        fprintf(out, "  idle      %" PRIu32 " of %" PRIu32 " ranks run no event\n", idle,
                t->header.nranks);
    for (uint32_t i = 0; i < t->header.nstreams; i++)
        if (!use->streams[i])
            fprintf(out, "  unused    stream %s\n", t->header.streams[i]);
    for (uint32_t i = 0; i < t->header.ngroups; i++)
        if (!use->groups[i])
            fprintf(out, "  unused    group %s\n", t->header.groups[i].name);
}

static zipccl_status report_use(const struct zipccl_trace *t, FILE *out, struct zipccl_error *error)
{
    const struct zipccl_trace_header *h = &t->header;
    struct use use = {calloc(h->nranks, 1), calloc(h->nstreams, 1), calloc(h->ngroups + 1, 1),
                      false};
    zipccl_status status = ZIPCCL_OK;

    if (use.ranks == NULL || use.streams == NULL || use.groups == NULL) {
        status = zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%.200s: out of memory", t->path);
    } else {
        mark(t, &use);
        print_unused(t, out, &use);
    }
    free(use.ranks);
    free(use.streams);
    free(use.groups);
    return status;
}

static void report_missing(const struct zipccl_trace_header *h,
                           const struct zipccl_trace_info *info, FILE *out)
{
    uint64_t bound = 0;

    for (size_t i = 0; i < info->nrows; i++)
        bound += info->rows[i].ncalls_with_samples;
    if (info->ncompute == 0)
        fprintf(out, "  missing   no compute events: a replay is of communication alone\n");
    if (info->ncollective == 0)
        fprintf(out, "  missing   no collectives: nothing to compress\n");
    if (info->ncommunication > 0)
        fprintf(out,
                "  opaque    %" PRIu64 " communication events of which only the time is known "
                "(%.6g s)\n",
                info->ncommunication, info->communication_s);
    if (h->ranks_per_node == 0)
        fprintf(out, "  missing   ranks_per_node: the cluster of a replay decides\n");
    if (h->recorded_step_s < 0)
        fprintf(out, "  missing   recorded_step_s: nothing to compare a replay with\n");
    if (bound < info->ncollective)
        fprintf(out,
                "  missing   samples of %" PRIu64 " of %" PRIu64
                " collectives: a replay makes up their payload\n",
                info->ncollective - bound, info->ncollective);
    if (info->nmissing > 0)
        fprintf(out, "  missing   %zu of %zu names bound are not in the samples file\n",
                info->nmissing, info->nsamples);
}

static zipccl_status check(const struct zipccl_trace *t, const struct zipccl_trace_info *info,
                           FILE *out, struct zipccl_error *error)
{
    struct zipccl_error why = {""};
    uint64_t n;

    if (zipccl_trace_expand(t, NULL, NULL, &n, &why) != ZIPCCL_OK)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%.200s: %.250s", t->path, why.text);
    fprintf(out,
            "%s: ok: %s, %" PRIu32 " ranks, %" PRIu64 " lines, %" PRIu64 " compute and %" PRIu64
            " collective events after loops and repeats, %s\n",
            t->path, t->header.name, t->header.nranks, info->nevents, info->ncompute,
            info->ncollective, t->header.provenance);
    report_missing(&t->header, info, out);
    ZIPCCL_TRY(report_use(t, out, error));
    if (ferror(out) || fflush(out) != 0)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "writing the report: %s", strerror(errno));
    return ZIPCCL_OK;
}

zipccl_status zipccl_trace_check_print(const char *path, FILE *out, struct zipccl_error *error)
{
    struct zipccl_trace_reader *reader;
    struct zipccl_trace_info info;
    struct zipccl_trace *trace;
    zipccl_status status;

    if (path == NULL || out == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "zipccl_trace_check_print: NULL argument");
    ZIPCCL_TRY(zipccl_trace_open(path, &reader, error));
    status = zipccl_trace_info_read(reader, &info, error);
    zipccl_trace_close(reader);
    if (status != ZIPCCL_OK)
        return status;
    status = zipccl_trace_load(path, &trace, error);
    if (status == ZIPCCL_OK) {
        status = check(trace, &info, out, error);
        zipccl_trace_destroy(trace);
    }
    zipccl_trace_info_free(&info);
    return status;
}
