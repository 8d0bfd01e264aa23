/*
 * real_replay_result.c - what a real replay found, in the form of a simulated one
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/replay/real_replay_state.h"

#include "experiments/replay/real_world.h"
#include "sim/account.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_NOTES = 32 };

/* Where the last member of a part got to an op; members of other parts do not count. */
static double last_enter(const struct replay_job *job, int mode, uint32_t op, uint32_t part)
{
    const struct zipccl_program *p = job->program;
    const struct zipccl_program_event *e = &p->events[p->ops[op].event];
    double last = 0;

    for (uint32_t r = 0; r < p->nranks; r++) {
        double enter = job->enter[mode][(size_t)r * p->nops + op];

        if (e->part_of[r] == part && enter > last)
            last = enter;
    }
    return last;
}

/* Times of all ranks as the account takes them.  Ranks' clocks begin at a barrier. */
static void fill_times(const struct replay_job *job, int mode, struct zipccl_times *times)
{
    const struct zipccl_program *p = job->program;

    for (uint32_t op = 0; op < p->nops; op++) {
        const struct zipccl_program_event *e = &p->events[p->ops[op].event];
        uint32_t known = ZIPCCL_NO_PART;
        double last = 0;

        for (uint32_t r = 0; r < p->nranks; r++) {
            size_t at = (size_t)op * p->nranks + r, from = (size_t)r * p->nops + op;

            if (e->part_of == NULL || e->part_of[r] == ZIPCCL_NO_PART)
                continue;
            if (e->group != NULL && e->part_of[r] != known) {
                known = e->part_of[r];
                last = last_enter(job, mode, op, known);
            }
            times->ran[at] = 1;
            times->enter[at] = job->enter[mode][from];
            times->end[at] = job->end[mode][from];
            times->start[at] = e->group != NULL ? last : times->enter[at];
            /* A sender may be done before the last receiver has come. */
            if (times->start[at] > times->end[at])
                times->start[at] = times->end[at];
            if (times->end[at] > times->step_s)
                times->step_s = times->end[at];
        }
    }
}

/* Account the step of one mode; the rows' times come to 'row_time' and 'row_exposed' [nrows]. */
static zipccl_status account(const struct replay_job *job, int mode,
                             struct zipccl_result_step *step, double *row_time, double *row_exposed,
                             struct zipccl_error *error)
{
    const struct zipccl_program *p = job->program;
    struct zipccl_times *times = NULL;
    zipccl_status status = zipccl_times_create(p, &times);
    double codec_s = 0;

    if (status != ZIPCCL_OK)
        return zipccl_fail(error, status, "out of memory");
    fill_times(job, mode, times);
    status = zipccl_account(p, NULL, mode, times, step, row_time, row_exposed, error);
    zipccl_times_destroy(times);
    /* Of the busiest rank, a mean over the steps. */
    for (uint32_t r = 0; r < p->nranks; r++) {
        double sum = 0;

        for (uint32_t i = 0; i < p->nrows; i++)
            sum += job->rows[mode][(size_t)r * p->nrows + i].codec_s / job->options->steps;
        codec_s = sum > codec_s ? sum : codec_s;
    }
    step->codec_s = codec_s;
    return status;
}

/* The mode whose bytes the rows show: what a user would run. */
static int shown_mode(const struct replay_job *job)
{
    const bool *modes = job->options->modes;

    return modes[ZIPCCL_STEP_ADAPTIVE]     ? ZIPCCL_STEP_ADAPTIVE
           : modes[ZIPCCL_STEP_COMPRESSED] ? ZIPCCL_STEP_COMPRESSED
                                           : ZIPCCL_STEP_RAW;
}

static const struct replay_row *did(const struct replay_job *job, int mode, uint32_t rank,
                                    uint32_t row)
{
    return &job->rows[mode][(size_t)rank * job->program->nrows + row];
}

/* The same of all ranks that run the row: what was coded in all, what a rank sent in the mean. */
static struct replay_row all_did(const struct replay_job *job, int mode, uint32_t row)
{
    struct replay_row sum = {.calls = 0};
    double nranks = 0;

    for (uint32_t r = 0; r < job->program->nranks; r++) {
        const struct replay_row *one = did(job, mode, r, row);

        nranks += one->calls > 0;
        sum.sent_bytes += one->sent_bytes;
        sum.coded_raw += one->coded_raw;
        sum.coded_wire += one->coded_wire;
    }
    sum.sent_bytes /= nranks > 0 ? nranks : 1;
    return sum;
}

/* Where the elements of a row's first call come from; raw calls need none. */
static enum zipccl_ratio_source source_of(const struct replay_job *job, uint32_t row)
{
    const struct zipccl_program *p = job->program;

    for (size_t i = 0; i < p->nevents; i++)
        if (p->events[i].group != NULL && p->events[i].row == row)
            return zipccl_samples_source(job->samples, p->classes[p->events[i].class].set);
    return ZIPCCL_RATIO_NONE;
}

/* Names and bytes of a row, of the rank that makes most of its calls. */
static void fill_row(const struct replay_job *job, uint32_t index, struct zipccl_result_row *row,
                     enum zipccl_ratio_source *source)
{
    const struct zipccl_program_row *r = &job->program->rows[index];
    const struct zipccl_trace_header *header = &job->trace->header;
    const struct replay_row shown = all_did(job, shown_mode(job), index);
    char *const names[ZIPCCL_NUM_STEPS] = {row->strategy_raw, row->strategy_compressed,
                                           row->strategy};

    row->op = r->event->op;
    row->dtype = r->event->dtype;
    row->count = r->event->count;
    row->nranks = header->groups[r->event->group].size;
    row->calls = r->calls;
    row->time_recorded_s = r->recorded_s;
    snprintf(row->group, sizeof row->group, "%.63s", header->groups[r->event->group].name);
    snprintf(row->stream, sizeof row->stream, "%.63s", header->streams[r->event->stream]);
    for (int mode = 0; mode < ZIPCCL_NUM_STEPS; mode++)
        if (job->options->modes[mode])
            snprintf(names[mode], sizeof row->strategy, "%s",
                     did(job, mode, r->rank, index)->strategy);
    row->raw_bytes = did(job, shown_mode(job), r->rank, index)->raw_bytes / job->options->steps;
    row->sent_bytes = shown.sent_bytes / job->options->steps;
    row->ratio = shown.coded_wire > 0 ? shown.coded_raw / shown.coded_wire : 1;
    row->wire_bytes = row->raw_bytes / row->ratio;
    *source = shown.coded_wire > 0 ? source_of(job, index) : ZIPCCL_RATIO_NONE;
    row->ratio_source = zipccl_ratio_source_name(*source);
    if (job->options->modes[ZIPCCL_STEP_COMPRESSED]) {
        const struct replay_row *c = did(job, ZIPCCL_STEP_COMPRESSED, r->rank, index);

        if (c->calls > 0 && c->capacity_class != ZIPCCL_NO_CLASS)
            row->capacity_class = zipccl_class_name(c->capacity_class);
        row->capacity_ratio = row->capacity_class != NULL ? c->capacity_ratio : 0;
    }
}

static zipccl_status fill_rows(const struct replay_job *job, struct zipccl_replay_result *r,
                               struct zipccl_error *error)
{
    uint32_t nrows = job->program->nrows;
    double *times = calloc((size_t)ZIPCCL_NUM_STEPS * 2 * nrows + 1, sizeof *times);
    double *time[ZIPCCL_NUM_STEPS], *exposed[ZIPCCL_NUM_STEPS];
    zipccl_status status = ZIPCCL_OK;

    r->rows = calloc((size_t)nrows + 1, sizeof *r->rows);
    if (times == NULL || r->rows == NULL)
        status = zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    for (int mode = 0; mode < ZIPCCL_NUM_STEPS && status == ZIPCCL_OK; mode++) {
        time[mode] = times + (size_t)mode * 2 * nrows;
        exposed[mode] = time[mode] + nrows;
        if (job->options->modes[mode])
            status = account(job, mode, &r->steps[mode], time[mode], exposed[mode], error);
    }
    for (uint32_t i = 0; i < nrows && status == ZIPCCL_OK; i++) {
        struct zipccl_result_row *row = &r->rows[i];
        enum zipccl_ratio_source source;

        fill_row(job, i, row, &source);
        row->time_raw_s = time[ZIPCCL_STEP_RAW][i];
        row->time_compressed_s = time[ZIPCCL_STEP_COMPRESSED][i];
        row->time_adaptive_s = time[ZIPCCL_STEP_ADAPTIVE][i];
        row->exposed_raw_s = exposed[ZIPCCL_STEP_RAW][i];
        row->exposed_compressed_s = exposed[ZIPCCL_STEP_COMPRESSED][i];
        row->exposed_adaptive_s = exposed[ZIPCCL_STEP_ADAPTIVE][i];
        r->source_share[source] += row->raw_bytes;
        if (!zipccl_dtype_compressible(row->dtype))
            r->raw_dtype_bytes += row->raw_bytes;
    }
    free(times);
    if (status != ZIPCCL_OK)
        return status;
    r->nrows = nrows;
    qsort(r->rows, nrows, sizeof *r->rows, zipccl_result_row_order);
    return ZIPCCL_OK;
}

/* Types that the codec does not cover, each once. */
static void name_raw_types(struct zipccl_replay_result *r)
{
    bool named[ZIPCCL_NUM_DTYPES] = {false};

    for (size_t i = 0; i < r->nrows; i++) {
        enum zipccl_dtype dtype = r->rows[i].dtype;
        size_t n = strlen(r->raw_dtypes);

        if (zipccl_dtype_compressible(dtype) || named[dtype])
            continue;
        named[dtype] = true;
        snprintf(r->raw_dtypes + n, sizeof r->raw_dtypes - n, "%s%s", n > 0 ? ", " : "",
                 zipccl_dtype_name(dtype));
    }
}

static void sum_up(const struct replay_job *job, struct zipccl_replay_result *r)
{
    const struct zipccl_result_step *raw = &r->steps[ZIPCCL_STEP_RAW];
    const struct zipccl_result_step *adaptive = &r->steps[ZIPCCL_STEP_ADAPTIVE];
    double total = 0, raw_s = 0, adaptive_s = 0;

    for (int k = 0; k < ZIPCCL_NUM_RATIO_SOURCES; k++)
        total += r->source_share[k];
    for (int k = 0; k < ZIPCCL_NUM_RATIO_SOURCES && total > 0; k++)
        r->source_share[k] /= total;
    for (size_t i = 0; i < r->nrows; i++) {
        raw_s += r->rows[i].time_raw_s;
        adaptive_s += r->rows[i].time_adaptive_s;
    }
    name_raw_types(r);
    if (raw->present && raw->step_s > 0)
        r->exposed_comm_share = raw->exposed_s / raw->step_s;
    if (raw->present && adaptive->present && adaptive_s > 0 && adaptive->step_s > 0) {
        r->comm_speedup = raw_s / adaptive_s;
        r->end_to_end_speedup = raw->step_s / adaptive->step_s;
    }
    r->step_time_recorded_s =
        job->trace->header.recorded_step_s > 0 ? job->trace->header.recorded_step_s : -1;
}

static void note(struct zipccl_result_note *notes, size_t *n, const char *name, const char *unit,
                 const char *source, const char *format, ...) __attribute__((format(printf, 6, 7)));

static void note(struct zipccl_result_note *notes, size_t *n, const char *name, const char *unit,
                 const char *source, const char *format, ...)
{
    struct zipccl_result_note *to = &notes[*n];
    va_list args;

    if (*n == MAX_NOTES)
        return;
    ++*n;
    snprintf(to->name, sizeof to->name, "%s", name);
    snprintf(to->unit, sizeof to->unit, "%s", unit);
    snprintf(to->source, sizeof to->source, "%s", source);
    va_start(args, format);
    vsnprintf(to->value, sizeof to->value, format, args);
    va_end(args);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* How far the steps of a mode lie apart; it sorts them. */
static void note_steps(const struct replay_job *job, int mode, struct zipccl_replay_result *r)
{
    static const char *const names[ZIPCCL_NUM_STEPS] = {"steps.raw", "steps.compressed",
                                                        "steps.adaptive"};
    uint32_t n = job->options->steps;

    qsort(job->step_s[mode], n, sizeof(double), by_value);
    r->steps[mode].nmeasured = n;
    r->steps[mode].low_s = job->step_s[mode][(n - 1) / 4];
    r->steps[mode].least_s = job->step_s[mode][0];
    r->steps[mode].most_s = job->step_s[mode][n - 1];
    r->steps[mode].high_s = job->step_s[mode][(n - 1) - (n - 1) / 4];
    note(r->settings, &r->nsettings, names[mode], "s",
         "least, median (whose times the rows have) and largest of the steps", "%.6g, %.6g, %.6g",
         job->step_s[mode][0], job->step_s[mode][(n - 1) / 2], job->step_s[mode][n - 1]);
}

/* What plans were chosen by. */
static void note_rates(const struct replay_job *job, struct zipccl_replay_result *r)
{
    const char *source = zipccl_real_world_rates_source(job->options->cluster != NULL);
    struct zipccl_rate rates[ZIPCCL_NUM_RATES];

    zipccl_real_world_list_rates(job->options->params, rates);
    for (size_t i = 0; i < ZIPCCL_NUM_RATES; i++)
        note(r->assumptions, &r->nassumptions, rates[i].name, rates[i].unit, source, "%.6g",
             rates[i].value);
}

static zipccl_status fill_notes(const struct replay_job *job, struct zipccl_replay_result *r)
{
    static const char *const gaps[] = {"sleep", "busy", "skip"};
    static const char given[] = "command line or its default";
    const struct zipccl_real_replay_options *o = job->options;

    r->settings = calloc(MAX_NOTES, sizeof *r->settings);
    r->assumptions = calloc(MAX_NOTES, sizeof *r->assumptions);
    if (r->settings == NULL || r->assumptions == NULL)
        return ZIPCCL_ERR_NOMEM;
    note(r->settings, &r->nsettings, "on", "", given, "%s", job->world->ops->name);
    note(r->settings, &r->nsettings, "steps", "", given, "%u", o->steps);
    note(r->settings, &r->nsettings, "warmup_steps", "", given, "%u", o->warmup);
    note(r->settings, &r->nsettings, "gaps", "", given, "%s", gaps[o->gaps]);
    note(r->settings, &r->nsettings, "gap_scale", "", given, "%.6g", o->gap_scale);
    note(r->settings, &r->nsettings, "codec_threads", "", given, "%u", o->codec_threads);
    note(r->settings, &r->nsettings, "codec row", "", "best that the machine runs", "%s",
         zipccl_isa_name(zipccl_isa_best()));
    note(r->settings, &r->nsettings, "capacity_class", "", given, "%s",
         o->capacity_class == ZIPCCL_CLASS_LEARN ? "learnt"
                                                 : zipccl_class_name((int)o->capacity_class));
    if (o->state.load != NULL)
        note(r->settings, &r->nsettings, "state_load", "", given, "%s", o->state.load);
    if (o->modes[ZIPCCL_STEP_ADAPTIVE])
        note(r->settings, &r->nsettings, "state_freeze", "", given, "%s",
             o->state.freeze ? "yes" : "no");
    note(r->settings, &r->nsettings, "checked", "", given, "%s",
         o->check ? "every element of one more step of each mode" : "no");
    for (int mode = 0; mode < ZIPCCL_NUM_STEPS; mode++)
        if (o->modes[mode])
            note_steps(job, mode, r);
    if (o->cluster != NULL && job->program->scaled && o->gaps != ZIPCCL_GAPS_SKIP)
        note(r->assumptions, &r->nassumptions, "gpu.flops", "flop/s",
             "the cluster: how long work takes that the trace gives in flops", "%.6g",
             o->cluster->gpu_flops);
    note_rates(job, r);
    return ZIPCCL_OK;
}

/* Fixed messages that were still as wide as at the start. */
static zipccl_status warn_of_classes(const struct replay_job *job, struct zipccl_replay_result *r)
{
    size_t nwide = 0;

    for (size_t i = 0; i < r->nrows; i++)
        nwide += r->rows[i].capacity_class != NULL &&
                 strcmp(r->rows[i].capacity_class, zipccl_class_name(ZIPCCL_CLASS_WIDE)) == 0;
    if (nwide == 0 || job->options->capacity_class != ZIPCCL_CLASS_LEARN)
        return ZIPCCL_OK;
    r->warnings = calloc(1, sizeof *r->warnings);
    if (r->warnings == NULL)
        return ZIPCCL_ERR_NOMEM;
    snprintf(
        r->warnings[r->nwarnings++], sizeof *r->warnings,
        "%zu of %zu rows have messages of fixed size in class wide, with which learning begins "
        "(32 calls); a simulation has them where it ends: more --warmup steps, or --class",
        nwide, r->nrows);
    return ZIPCCL_OK;
}

zipccl_status replay_result(const struct replay_job *job, struct zipccl_replay_result **out,
                            struct zipccl_error *error)
{
    struct zipccl_replay_result *r = calloc(1, sizeof *r);
    const struct zipccl_trace_header *header = &job->trace->header;
    zipccl_status status;

    if (r == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    r->measured = true;
    snprintf(r->fidelity, sizeof r->fidelity, "real");
    snprintf(r->trace_name, sizeof r->trace_name, "%.127s", header->name);
    snprintf(r->trace_model, sizeof r->trace_model, "%.255s", header->model);
    snprintf(r->trace_provenance, sizeof r->trace_provenance, "%.255s", header->provenance);
    r->nranks = header->nranks;
    r->nodes = job->world->topology->nnodes;
    r->gpus_per_node = zipccl_topology_node_size(job->world->topology, 0);
    status = fill_rows(job, r, error);
    if (status == ZIPCCL_OK) {
        sum_up(job, r);
        if (fill_notes(job, r) != ZIPCCL_OK || warn_of_classes(job, r) != ZIPCCL_OK)
            status = zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    }
    if (status != ZIPCCL_OK) {
        zipccl_replay_result_destroy(r);
        return status;
    }
    *out = r;
    return ZIPCCL_OK;
}
