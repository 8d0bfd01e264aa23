/*
 * sweep.c - many replays, each in a child process
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/sweep.h"

#include <stdio.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* What a child hands back; without 'notes' where none are wanted. */
struct found {
    struct zipccl_sweep_outcome outcome;
    struct zipccl_sweep_notes notes;
};

struct work {
    const struct zipccl_sweep_job *job;
    struct zipccl_replay_options options;
};

const char *zipccl_sweep_limit_name(enum zipccl_sweep_limit limit)
{
    static const char *const names[] = {"compute", "NVLink", "NIC"};

    return names[limit];
}

/* Whether a part of the groups called 'name', cut as rows cut it, has ranks on two nodes. */
static bool spans_nodes(const struct zipccl_trace *trace, const char *name, uint32_t per_node)
{
    const size_t most = sizeof(((struct zipccl_result_row *)0)->group) - 1;

    for (uint32_t g = 0; g < trace->header.ngroups; g++) {
        const struct zipccl_trace_group *group = &trace->header.groups[g];

        if (strncmp(group->name, name, most) != 0)
            continue;
        for (size_t i = 0; i < (size_t)group->nparts * group->size; i++)
            if (group->ranks[i] / per_node != group->ranks[i - i % group->size] / per_node)
                return true;
    }
    return false;
}

/* Exposed raw time of all rows of the op and group of row 'i', or -1 if an earlier row has both. */
static double exposed_of(const struct zipccl_replay_result *r, size_t i)
{
    double sum = 0;

    for (size_t k = 0; k < r->nrows; k++) {
        if (r->rows[k].op != r->rows[i].op || strcmp(r->rows[k].group, r->rows[i].group) != 0)
            continue;
        if (k < i)
            return -1;
        sum += r->rows[k].exposed_raw_s;
    }
    return sum;
}

static void find_limit(const struct zipccl_trace *trace, const struct zipccl_replay_result *r,
                       struct zipccl_sweep_outcome *out)
{
    double most = 0, all = 0;

    for (size_t i = 0; i < r->nrows; i++) {
        double sum = exposed_of(r, i);

        all += r->rows[i].exposed_raw_s;
        if (sum <= most)
            continue;
        most = sum;
        out->limit_op = r->rows[i].op;
        snprintf(out->limit_group, sizeof(out->limit_group), "%s", r->rows[i].group);
    }
    out->limit_share = all > 0 ? most / all : 0;
    if (r->exposed_comm_share < ZIPCCL_SWEEP_LEAST_SHARE || most <= 0)
        out->limit = ZIPCCL_LIMIT_COMPUTE;
    else
        out->limit = spans_nodes(trace, out->limit_group, r->gpus_per_node) ? ZIPCCL_LIMIT_NIC
                                                                            : ZIPCCL_LIMIT_NVLINK;
}

static void take_outcome(const struct zipccl_trace *trace, const struct zipccl_replay_result *r,
                         struct zipccl_sweep_outcome *out)
{
    memcpy(out->steps, r->steps, sizeof(out->steps));
    out->comm_speedup = r->comm_speedup;
    out->end_to_end_speedup = r->end_to_end_speedup;
    out->exposed_comm_share = r->exposed_comm_share;
    for (size_t i = 0; i < r->nrows; i++) {
        out->raw_bytes += r->rows[i].raw_bytes;
        out->wire_bytes += r->rows[i].wire_bytes;
    }
    memcpy(out->source_share, r->source_share, sizeof(out->source_share));
    snprintf(out->adaptive_note, sizeof(out->adaptive_note), "%s", r->adaptive_note);
    find_limit(trace, r, out);
    for (size_t i = 0; i < r->nwarnings && out->nwarnings < 4; i++)
        memcpy(out->warnings[out->nwarnings++], r->warnings[i], sizeof(out->warnings[0]));
}

static void take_notes(const struct zipccl_replay_result *r, struct zipccl_sweep_notes *out)
{
    snprintf(out->trace_name, sizeof(out->trace_name), "%s", r->trace_name);
    snprintf(out->trace_model, sizeof(out->trace_model), "%s", r->trace_model);
    snprintf(out->trace_provenance, sizeof(out->trace_provenance), "%s", r->trace_provenance);
    snprintf(out->cluster_line, sizeof(out->cluster_line), "%s", r->cluster_line);
    snprintf(out->codec_line, sizeof(out->codec_line), "%s", r->codec_line);
    for (size_t i = 0; i < r->nsettings && out->nsettings < 64; i++)
        out->settings[out->nsettings++] = r->settings[i];
    for (size_t i = 0; i < r->nassumptions && out->nassumptions < 64; i++)
        out->assumptions[out->nassumptions++] = r->assumptions[i];
}

/* In a child, where simulations run one after another: other jobs have the other cores. */
static zipccl_status replay_work(void *context, void *result, struct zipccl_error *error)
{
    struct work *work = context;
    struct found *found = result;
    const struct zipccl_cluster_file *cluster;
    struct zipccl_replay_result *r;
    const struct zipccl_trace *trace;

    work->options.ratio = 0;
    work->options.nprocs = 1;
    work->options.sensitivities = work->options.timeline = false;
    work->options.progress = NULL;
    ZIPCCL_TRY(
        work->job->prepare(work->job->context, &trace, &cluster, &work->options.ratio, error));
    ZIPCCL_TRY(zipccl_replay(trace, cluster, &work->options, &r, error));
    take_outcome(trace, r, &found->outcome);
    if (work->job->notes != NULL)
        take_notes(r, &found->notes);
    zipccl_replay_result_destroy(r);
    return ZIPCCL_OK;
}

/* What the children of 'jobs' work on; all [njobs]. */
struct run {
    struct zipccl_child_failure *failures;
    struct zipccl_child_task *tasks;
    struct work *work;
    struct found **found; /* without notes where none are wanted */
};

static void release(struct run *run, uint32_t njobs)
{
    for (uint32_t i = 0; run->found != NULL && i < njobs; i++)
        free(run->found[i]);
    free(run->failures);
    free(run->tasks);
    free(run->work);
    free((void *)run->found);
}

static zipccl_status set_up(struct run *run, struct zipccl_sweep_job *jobs, uint32_t njobs,
                            const struct zipccl_replay_options *options)
{
    run->failures = calloc((size_t)njobs + 1, sizeof(*run->failures));
    run->tasks = calloc((size_t)njobs + 1, sizeof(*run->tasks));
    run->work = calloc((size_t)njobs + 1, sizeof(*run->work));
    run->found = calloc((size_t)njobs + 1, sizeof(*run->found));
    if (run->failures == NULL || run->tasks == NULL || run->work == NULL || run->found == NULL)
        return ZIPCCL_ERR_NOMEM;
    for (uint32_t i = 0; i < njobs; i++) {
        size_t nbytes =
            jobs[i].notes != NULL ? sizeof(struct found) : offsetof(struct found, notes);

        run->found[i] = calloc(1, nbytes);
        if (run->found[i] == NULL)
            return ZIPCCL_ERR_NOMEM;
        run->work[i] = (struct work){&jobs[i], *options};
        run->tasks[i] =
            (struct zipccl_child_task){replay_work, &run->work[i], run->found[i], nbytes};
    }
    return ZIPCCL_OK;
}

zipccl_status zipccl_sweep_run(struct zipccl_sweep_job *jobs, uint32_t njobs,
                               const struct zipccl_replay_options *options,
                               void (*finished)(void *context, uint32_t ndone), void *context,
                               struct zipccl_error *error)
{
    struct run run = {.found = NULL};
    zipccl_status status = set_up(&run, jobs, njobs, options);

    if (status != ZIPCCL_OK)
        zipccl_fail(error, status, "out of memory");
    else
        status = zipccl_child_run_each(run.tasks, njobs, options->nprocs, run.failures, finished,
                                       context, error);
    for (uint32_t i = 0; status == ZIPCCL_OK && i < njobs; i++) {
        jobs[i].failure = run.failures[i];
        *jobs[i].outcome = run.found[i]->outcome;
        if (jobs[i].notes != NULL)
            *jobs[i].notes = run.found[i]->notes;
    }
    release(&run, njobs);
    return status;
}
