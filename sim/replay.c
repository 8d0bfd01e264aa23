/*
 * replay.c - runs a trace raw, compressed and adaptive, then under changed inputs
 *
 * The parent prices the calls of the cluster as it is; children simulate.  Sensitivities and
 * searches choose plans anew, each in its own child.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/replay.h"

#include "sim/replay_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* SimGrid's matrix of a collective takes 72 bytes times the square of its ranks. */
#define T1_MAX_GROUP 4096

/*
 * A simulation at T1 takes about this long times events times ranks squared: 0.15 to 0.3 us for a
 * SimAI trace of 450 events on 128 to 512 ranks (zipccl replay --mode raw, one Xeon core).
 */
#define T1_COST_S 0.2e-6

/* Longer than this is refused, and longer than that is told while it runs. */
#define T1_MAX_S  7200.0
#define T1_LONG_S 60.0

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void zipccl_replay_options_init(struct zipccl_replay_options *options)
{
    memset(options, 0, sizeof(*options));
    options->raw = options->compressed = options->adaptive = true;
    options->fidelity = ZIPCCL_FIDELITY_T1;
    options->sensitivities = true;
    options->timeline_mode = ZIPCCL_STEP_ADAPTIVE;
    options->timeline_ranks = ZIPCCL_TIMELINE_RANKS;
}

static uint32_t cores(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    return n < 1 ? 1 : n > 64 ? 64 : (uint32_t)n;
}

static void report(struct zipccl_replay_state *s, const char *what)
{
    if (s->options.progress != NULL)
        s->options.progress(s->options.progress_context, s->ndone, s->ntasks, what);
}

static double t1_seconds(const struct zipccl_replay_state *s)
{
    double nranks = s->program->nranks;

    return T1_COST_S * (double)s->program->nops * nranks * nranks;
}

/* What can be replayed in sensible time at T1. */
static zipccl_status check_t1(const struct zipccl_replay_state *s, struct zipccl_error *error)
{
    static const char advice[] = "--fidelity t0 replays ranks that do the same once";
    uint32_t largest = 0;

    for (size_t i = 0; i < s->program->nevents; i++) {
        const struct zipccl_program_event *e = &s->program->events[i];

        if (e->group != NULL && e->group->size > largest)
            largest = e->group->size;
    }
    if (largest > T1_MAX_GROUP)
        return zipccl_fail(error, ZIPCCL_ERR_UNSUPPORTED,
                           "a group has %u ranks, at most %d at T1; %s", largest, T1_MAX_GROUP,
                           advice);
    if (t1_seconds(s) > T1_MAX_S)
        return zipccl_fail(error, ZIPCCL_ERR_UNSUPPORTED,
                           "%zu events on %u ranks take about %.0f hours a simulation at T1; %s",
                           s->program->nops, s->program->nranks, t1_seconds(s) / 3600, advice);
    return ZIPCCL_OK;
}

static void report_steps(struct zipccl_replay_state *s)
{
    char what[64] = "steps";

    if (s->options.fidelity == ZIPCCL_FIDELITY_T1 && t1_seconds(s) > T1_LONG_S)
        snprintf(what, sizeof(what), "steps, ~%.0f min each (t0 is quick)", t1_seconds(s) / 60);
    report(s, what);
}

static void base_done(void *context, uint32_t ndone)
{
    struct zipccl_replay_state *s = context;

    s->ndone = ndone;
    report_steps(s);
}

static void extra_done(void *context, uint32_t ndone)
{
    struct zipccl_replay_state *s = context;

    s->ndone = ZIPCCL_NUM_RUNS + ndone;
    report(s, "sensitivities");
}

/* What is wrong with a trace starts with its file. */
static zipccl_status name_trace(const struct zipccl_trace *trace, zipccl_status status,
                                const struct zipccl_error *why, struct zipccl_error *error)
{
    if ((status != ZIPCCL_ERR_INPUT && status != ZIPCCL_ERR_UNSUPPORTED) || trace->path == NULL)
        return zipccl_fail(error, status, "%s", why->text);
    return zipccl_fail(error, status, "%.180s: %.320s", trace->path, why->text);
}

static zipccl_status prepare(struct zipccl_replay_state *s, struct zipccl_error *error)
{
    struct zipccl_scenario scenario;
    struct zipccl_error why = {""};
    zipccl_status status;

    ZIPCCL_TRY(zipccl_cluster_get(s->file, &s->cluster, error));
    ZIPCCL_TRY(zipccl_samples_open(s->trace->samples_path, s->options.ratio, &s->samples, error));
    status =
        s->options.fidelity == ZIPCCL_FIDELITY_T0
            ? zipccl_program_create_folded(s->trace, &s->cluster, s->samples, &s->program, &why)
            : zipccl_program_create(s->trace, &s->cluster, s->samples, &s->program, &why);
    if (status == ZIPCCL_OK && s->options.fidelity == ZIPCCL_FIDELITY_T1)
        status = check_t1(s, &why);
    if (status != ZIPCCL_OK)
        return name_trace(s->trace, status, &why, error);
    s->base = (struct zipccl_run_base){.program = s->program,
                                       .cluster = &s->cluster,
                                       .samples = s->samples,
                                       .fidelity = s->options.fidelity,
                                       .native = s->options.native};
    if (s->options.timeline &&
        zipccl_timeline_choose(s->trace->header.nranks, s->cluster.gpus_per_node,
                               s->options.timeline_ranks, &s->base.kept,
                               &s->base.nkept) != ZIPCCL_OK)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    zipccl_scenario_init(&scenario);
    scenario.flows = s->options.fidelity == ZIPCCL_FIDELITY_T1;
    scenario.plans = s->options.fidelity == ZIPCCL_FIDELITY_T2;
    scenario.native = s->options.native;
    return zipccl_pricing_create(s->program, &s->cluster, &scenario, s->samples, &s->pricing,
                                 error);
}

/* The steps of the cluster as it is. */
static zipccl_status run_steps(struct zipccl_replay_state *s, struct zipccl_replay_result *r,
                               struct zipccl_error *error)
{
    struct zipccl_adapt_options options = {
        .nprocs = s->options.nprocs, .keep = true, .finished = base_done, .context = s};

    report_steps(s);
    ZIPCCL_TRY(zipccl_adapt(&s->base, s->pricing, &options, &s->adapted, error));
    zipccl_adapted_describe(&s->adapted, r->adaptive_note, sizeof(r->adaptive_note));
    for (int mode = 0; mode < ZIPCCL_NUM_STEPS; mode++)
        r->steps[mode] =
            *s->adapted.runs[mode == ZIPCCL_STEP_ADAPTIVE ? s->adapted.best : mode].step;
    r->steps[ZIPCCL_STEP_RAW].present = s->options.raw;
    r->steps[ZIPCCL_STEP_COMPRESSED].present = s->options.compressed;
    r->steps[ZIPCCL_STEP_ADAPTIVE].present = s->options.adaptive;
    return ZIPCCL_OK;
}

static struct zipccl_scenario changed(int which)
{
    struct zipccl_scenario scenario;

    zipccl_scenario_init(&scenario);
    switch (which) {
    case ZIPCCL_SENS_NIC_DOWN: scenario.nic_factor = 0.9; break;
    case ZIPCCL_SENS_NIC_UP: scenario.nic_factor = 1.1; break;
    case ZIPCCL_SENS_RATIO: scenario.ratio_delta = -0.05; break;
    default: scenario.codec_factor = 0.5; break;
    }
    return scenario;
}

/* Of two times; 1 if nothing takes time. */
static double speedup(double before_s, double after_s)
{
    return after_s > 0 ? before_s / after_s : 1;
}

static void fill_sensitivities(const struct zipccl_replay_state *s, struct zipccl_replay_result *r)
{
    static const char *const names[] = {"nic.rate -10 %", "nic.rate +10 %", "ratio -0.05",
                                        "codec at half rate"};

    r->nsensitivities = ZIPCCL_NUM_SENS;
    for (int i = 0; i < ZIPCCL_NUM_SENS; i++) {
        const struct zipccl_adapted_step *step = &s->sens[i].step;
        struct zipccl_result_sensitivity *out = &r->sensitivities[i];

        snprintf(out->name, sizeof(out->name), "%s", names[i]);
        out->step_raw_s = step->raw_s;
        out->step_adaptive_s = step->adaptive_s;
        out->end_to_end_speedup = speedup(step->raw_s, step->adaptive_s);
        out->comm_speedup = speedup(step->raw_comm_s, step->adaptive_comm_s);
    }
}

/* In a child. */
static zipccl_status sens_work(void *context, void *result, struct zipccl_error *error)
{
    const struct zipccl_replay_sens *sens = context;

    return zipccl_adapt_step(sens->base, &sens->scenario, sens->raw, result, error);
}

/* Sensitivities and the two searches, side by side; the longest pieces first. */
static zipccl_status run_extras(struct zipccl_replay_state *s, struct zipccl_replay_result *r,
                                struct zipccl_error *error)
{
    struct zipccl_child_task tasks[2 + ZIPCCL_NUM_SENS];
    uint32_t n = 0;

    r->sensitivities = calloc(ZIPCCL_NUM_SENS, sizeof(*r->sensitivities));
    if (r->sensitivities == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    for (int k = 0; k < 2; k++) {
        s->searches[k].base = &s->base;
        s->searches[k].kind = k == 0 ? ZIPCCL_SEARCH_BREAK_EVEN : ZIPCCL_SEARCH_RAW_MATCH;
        s->searches[k].raw_s = r->steps[ZIPCCL_STEP_RAW].step_s;
        s->searches[k].adaptive_s = r->steps[ZIPCCL_STEP_ADAPTIVE].step_s;
        tasks[n++] = zipccl_search_task(&s->searches[k]);
    }
    for (int i = 0; i < ZIPCCL_NUM_SENS; i++) {
        struct zipccl_replay_sens *sens = &s->sens[i];
        bool nic = i == ZIPCCL_SENS_NIC_DOWN || i == ZIPCCL_SENS_NIC_UP;

        *sens = (struct zipccl_replay_sens){
            .base = &s->base,
            .scenario = changed(i),
            /* Codec and ratio leave the raw step as it is. */
            .raw = nic ? NULL : &s->adapted.runs[ZIPCCL_STEP_RAW],
        };
        tasks[n++] = (struct zipccl_child_task){sens_work, sens, &sens->step, sizeof(sens->step)};
    }
    ZIPCCL_TRY(zipccl_child_run(tasks, n, s->options.nprocs, extra_done, s, error));
    fill_sensitivities(s, r);
    r->break_even_nic_Bps = s->searches[0].result.nic_Bps;
    r->raw_match_nic_Bps = s->searches[1].result.nic_Bps;
    memcpy(r->break_even_note, s->searches[0].result.note, sizeof(r->break_even_note));
    memcpy(r->raw_match_note, s->searches[1].result.note, sizeof(r->raw_match_note));
    return ZIPCCL_OK;
}

/* Of the run that stands behind the mode: adaptive may be another. */
static zipccl_status keep_timeline(const struct zipccl_replay_state *s,
                                   struct zipccl_replay_result *r)
{
    int mode = s->options.timeline_mode;
    int run = mode == ZIPCCL_STEP_ADAPTIVE ? s->adapted.best : mode;

    ZIPCCL_TRY(zipccl_timeline_create(s->program, s->pricing, run, &s->adapted.runs[run].kept,
                                      &r->timeline));
    r->timeline->mode = mode;
    return ZIPCCL_OK;
}

static zipccl_status fill(struct zipccl_replay_state *s, struct zipccl_replay_result *r,
                          struct zipccl_error *error)
{
    static const char *const names[] = {"t0", "t1", "t2"};
    bool extras = s->options.sensitivities && s->options.raw && s->options.adaptive &&
                  s->options.fidelity != ZIPCCL_FIDELITY_T2;
    double raw_s;

    s->ntasks = ZIPCCL_NUM_RUNS + (extras ? 2 + ZIPCCL_NUM_SENS : 0);
    ZIPCCL_TRY(run_steps(s, r, error));
    if (extras)
        ZIPCCL_TRY(run_extras(s, r, error));
    snprintf(r->fidelity, sizeof(r->fidelity), "%s", names[s->options.fidelity]);
    r->native = s->options.native;
    r->nranks = s->trace->header.nranks;
    r->nodes = s->cluster.nodes;
    r->gpus_per_node = s->cluster.gpus_per_node;
    r->codec_sms = s->cluster.codec_sms;
    r->step_time_recorded_s =
        s->trace->header.recorded_step_s > 0 ? s->trace->header.recorded_step_s : -1;
    raw_s = r->steps[ZIPCCL_STEP_RAW].step_s;
    if (s->options.raw && s->options.adaptive)
        r->end_to_end_speedup = speedup(raw_s, r->steps[ZIPCCL_STEP_ADAPTIVE].step_s);
    if (s->options.raw && raw_s > 0)
        r->exposed_comm_share = r->steps[ZIPCCL_STEP_RAW].exposed_s / raw_s;
    if (zipccl_replay_rows(s, r) != ZIPCCL_OK || zipccl_replay_notes(s, r) != ZIPCCL_OK ||
        (s->options.timeline && keep_timeline(s, r) != ZIPCCL_OK))
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    return ZIPCCL_OK;
}

static void release(struct zipccl_replay_state *s)
{
    zipccl_adapted_release(&s->adapted);
    zipccl_pricing_destroy(s->pricing);
    zipccl_program_destroy(s->program);
    zipccl_samples_close(s->samples);
    free(s->base.kept);
}

static bool timeline_runs(const struct zipccl_replay_options *o)
{
    bool runs[ZIPCCL_NUM_STEPS] = {o->raw, o->compressed, o->adaptive};

    return !o->timeline || (o->timeline_mode >= 0 && o->timeline_mode < ZIPCCL_NUM_STEPS &&
                            runs[o->timeline_mode] && o->timeline_ranks > 0);
}

zipccl_status zipccl_replay(const struct zipccl_trace *trace,
                            const struct zipccl_cluster_file *cluster,
                            const struct zipccl_replay_options *options,
                            struct zipccl_replay_result **out, struct zipccl_error *error)
{
    struct zipccl_replay_state *s;
    struct zipccl_replay_result *r;
    zipccl_status status;
    double start = now();

    if (trace == NULL || cluster == NULL || out == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "zipccl_replay: no trace or no cluster");
    if (options != NULL && !timeline_runs(options))
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "zipccl_replay: a timeline of nothing");
    s = calloc(1, sizeof(*s));
    r = calloc(1, sizeof(*r));
    if (s == NULL || r == NULL) {
        free(s);
        free(r);
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    }
    s->trace = trace;
    s->file = cluster;
    if (options != NULL)
        s->options = *options;
    else
        zipccl_replay_options_init(&s->options);
    if (s->options.nprocs == 0)
        s->options.nprocs = cores();
    status = prepare(s, error);
    if (status == ZIPCCL_OK)
        status = fill(s, r, error);
    release(s);
    free(s);
    if (status != ZIPCCL_OK) {
        zipccl_replay_result_destroy(r);
        return status;
    }
    r->wall_s = now() - start;
    *out = r;
    return ZIPCCL_OK;
}
