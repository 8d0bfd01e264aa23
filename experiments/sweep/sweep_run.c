/*
 * sweep_run.c - runs the points of a sweep: each distinct step made once, replayed on all its clusters
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/sweep/sweep_run.h"

#include "experiments/program/on_signal.h"
#include "experiments/program/program.h"
#include "experiments/program/progress.h"
#include "experiments/program/relative_path.h"
#include "traces/import.h"
#include "traces/safetensors.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A wave ends once its steps have so many events: about 1 GB, at some hundred bytes each. */
#define WAVE_EVENTS ((size_t)4 << 20)

/* And with so many steps, for children wait meanwhile. */
#define WAVE_STEPS 64

struct job {
    struct zipccl_sweep *sweep;
    struct zipccl_sweep_point *point;
};

struct waves {
    struct zipccl_sweep *sweep;
    struct zipccl_progress progress;
    size_t ndone; /* before this wave */
    double start;
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static uint32_t cores(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    return n < 1 ? 1 : n > 64 ? 64 : (uint32_t)n;
}

/* The tensors of a made-up step, as 'trace generate' finds them; "": none. */
static zipccl_status find_samples(const struct zipccl_sweep *s,
                                  const struct zipccl_sweep_step *step, char *path, size_t size,
                                  struct zipccl_error *error)
{
    char folder[PATH_MAX];

    path[0] = '\0';
    if (s->options.samples != NULL && strcmp(s->options.samples, "none") == 0)
        return ZIPCCL_OK;
    if (s->options.samples == NULL)
        ZIPCCL_TRY(zipccl_beside_program(ZIPCCL_SAMPLES_DIR, folder, sizeof folder, error));
    if ((s->options.samples != NULL
             ? snprintf(path, size, "%s", s->options.samples)
             : snprintf(path, size, "%s/%s.safetensors", folder,
                        step->workload.model.experts > 0 ? "moe" : "dense")) >= (int)size)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "--samples: the path is too long");
    return ZIPCCL_OK;
}

static zipccl_status replace(char **text, const char *with)
{
    char *copy = malloc(strlen(with) + 1);

    if (copy == NULL)
        return ZIPCCL_ERR_NOMEM;
    strcpy(copy, with);
    free(*text);
    *text = copy;
    return ZIPCCL_OK;
}

static zipccl_status write_and_load(struct zipccl_sweep *s, struct zipccl_sweep_step *step,
                                    const char *path, struct zipccl_error *error)
{
    char samples[PATH_MAX + 64], name[PATH_MAX] = "";
    struct zipccl_workload_summary summary;

    ZIPCCL_TRY(find_samples(s, step, samples, sizeof samples, error));
    if (samples[0] != '\0')
        ZIPCCL_TRY(zipccl_relative_real_path(samples, path, name, sizeof name, error));
    ZIPCCL_TRY(zipccl_workload_write(&step->workload, path, samples[0] != '\0' ? samples : NULL,
                                     name, &summary, error));
    ZIPCCL_TRY(zipccl_trace_load(path, &step->input.trace, error));
    /* The folder of 'path' goes: tensors are found without it, and messages name the step. */
    if (replace(&step->input.trace->path, step->input.trace->header.name) != ZIPCCL_OK ||
        (samples[0] != '\0' && replace(&step->input.trace->samples_path, samples) != ZIPCCL_OK))
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    return ZIPCCL_OK;
}

/* A step made up exactly as 'trace generate' does, by way of a file. */
static zipccl_status make_up(struct zipccl_sweep *s, struct zipccl_sweep_step *step,
                             struct zipccl_error *error)
{
    char folder[] = "/tmp/zipccl-sweep-XXXXXX", path[sizeof folder + 16];
    zipccl_status status;

    if (mkdtemp(folder) == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: %s", folder, strerror(errno));
    zipccl_on_signal_remove_scratch(folder);
    snprintf(path, sizeof path, "%s/trace.jsonl", folder);
    status = write_and_load(s, step, path, error);
    unlink(path);
    rmdir(folder);
    zipccl_on_signal_keep();
    return status;
}

static zipccl_status load(struct zipccl_sweep *s, struct zipccl_sweep_step *step,
                          struct zipccl_error *error)
{
    const struct zipccl_sweep_axis *axis = zipccl_sweep_spec_role(s->spec, ZIPCCL_SWEEP_TRACE);
    uint64_t ranks = s->trace_ranks != NULL ? s->trace_ranks[step->source] : 0;
    struct zipccl_import_options import;

    if (axis == NULL)
        return make_up(s, step, error);
    zipccl_import_options_init(&import);
    import.nranks = (uint32_t)step->ngpus;
    return zipccl_replay_input_load((const char *const *)&axis->values[step->source], 1, &import,
                                    NULL, 0, step->ngpus > 0 ? step->ngpus : ranks, &step->input,
                                    error);
}

/* Remember what the tensors of a step are, once a file. */
static void note_tensors(struct zipccl_sweep *s, const struct zipccl_trace *trace)
{
    struct zipccl_sweep_tensors *tensors = &s->tensors[s->ntensors];
    const struct zipccl_safetensors *file;

    if (trace->samples_path == NULL || s->ntensors == ZIPCCL_SWEEP_MAX_TENSORS)
        return;
    snprintf(tensors->path, sizeof tensors->path, "%.511s", trace->samples_path);
    for (size_t i = 0; i < s->ntensors; i++)
        if (strcmp(s->tensors[i].path, tensors->path) == 0)
            return;
    /* What is wrong with the file the points tell. */
    if (zipccl_safetensors_open(trace->samples_path, &file, NULL) != ZIPCCL_OK)
        return;
    snprintf(tensors->origin, sizeof tensors->origin, "%.255s",
             file->origin != NULL ? file->origin : "");
    zipccl_safetensors_close(file);
    s->ntensors++;
}

/* In the child, which has the step in memory and clusters of its own. */
static zipccl_status prepare(void *context, const struct zipccl_trace **trace,
                             const struct zipccl_cluster_file **cluster, double *ratio,
                             struct zipccl_error *error)
{
    struct job *job = context;
    const struct zipccl_sweep_spec *spec = job->sweep->spec;
    size_t index = job->point->index;
    struct zipccl_cluster_file *file = job->sweep->clusters[zipccl_sweep_cluster_of(spec, index)];
    const struct zipccl_sweep_axis *axis = zipccl_sweep_spec_role(spec, ZIPCCL_SWEEP_RATIO);

    ZIPCCL_TRY(zipccl_sweep_set_cluster(spec, index, job->point->nodes, file, error));
    *trace = job->sweep->steps[job->point->step].input.trace;
    *cluster = file;
    if (axis != NULL)
        *ratio = axis->numbers[zipccl_sweep_spec_choice(spec, index, (size_t)(axis - spec->axes))];
    return ZIPCCL_OK;
}

static void done(void *context, uint32_t ndone)
{
    struct waves *w = context;
    size_t n = w->ndone + ndone, left = w->sweep->nruns - n;
    double seconds = n > 0 ? (now() - w->start) / (double)n * (double)left : 0;
    char what[80];

    if (seconds >= 90)
        snprintf(what, sizeof what, "%zu of %zu, %.0f min left", n, w->sweep->nruns, seconds / 60);
    else
        snprintf(what, sizeof what, "%zu of %zu, %.0f s left", n, w->sweep->nruns, seconds);
    zipccl_progress_update(&w->progress, n, w->sweep->nruns, what);
}

static void set_failed(struct zipccl_sweep *s, struct zipccl_sweep_point *p,
                       const struct zipccl_error *why)
{
    p->failed = true;
    snprintf(p->error, sizeof p->error, "%s", why->text);
    s->nfailed++;
}

/* A trace that cannot be taken to so many ranks is no point; what else fails is one with an error. */
static bool is_loaded(struct zipccl_sweep *s, struct zipccl_sweep_point *p)
{
    struct zipccl_sweep_step *step = &s->steps[p->step];

    if (step->status == ZIPCCL_OK)
        return true;
    if (s->nmodels == 0 && step->status == ZIPCCL_ERR_INPUT) {
        p->skip = ZIPCCL_SWEEP_NO_RESCALE;
        snprintf(p->reason, sizeof p->reason, "%.250s", step->error.text);
        s->nskipped[p->skip]++;
        s->nruns--;
    } else {
        set_failed(s, p, &step->error);
    }
    return false;
}

static zipccl_status run_jobs(struct waves *w, struct zipccl_sweep_job *jobs, struct job *contexts,
                              size_t n, struct zipccl_error *error)
{
    struct zipccl_sweep *s = w->sweep;
    struct zipccl_replay_options options = s->options.replay;

    for (size_t i = 0; i < n; i++) {
        size_t c = zipccl_sweep_cluster_of(s->spec, contexts[i].point->index);

        jobs[i] = (struct zipccl_sweep_job){.prepare = prepare,
                                            .context = &contexts[i],
                                            .outcome = &contexts[i].point->outcome,
                                            .notes = s->noted[c] ? NULL : &s->notes[c]};
        s->noted[c] = true;
    }
    if (options.nprocs == 0)
        options.nprocs = cores();
    ZIPCCL_TRY(zipccl_sweep_run(jobs, (uint32_t)n, &options, done, w, error));
    for (size_t i = 0; i < n; i++) {
        if (jobs[i].failure.status == ZIPCCL_OK)
            continue;
        set_failed(s, contexts[i].point, &jobs[i].failure.error);
        /* Another point of the cluster then tells what it rests on. */
        if (jobs[i].notes != NULL)
            s->noted[zipccl_sweep_cluster_of(s->spec, contexts[i].point->index)] = false;
    }
    return ZIPCCL_OK;
}

/* The points of steps ['first', 'end'), which are loaded. */
static zipccl_status run_wave(struct waves *w, size_t first, size_t end, struct zipccl_error *error)
{
    struct zipccl_sweep *s = w->sweep;
    struct zipccl_sweep_job *jobs = calloc(s->npoints, sizeof(*jobs));
    struct job *contexts = calloc(s->npoints, sizeof *contexts);
    zipccl_status status;
    size_t n = 0;

    for (size_t i = 0; jobs != NULL && contexts != NULL && i < s->npoints; i++) {
        struct zipccl_sweep_point *p = &s->points[i];

        if (p->skip == ZIPCCL_SWEEP_RUNS && p->step >= first && p->step < end && is_loaded(s, p))
            contexts[n++] = (struct job){s, p};
    }
    if (jobs == NULL || contexts == NULL)
        status = zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    else
        status = run_jobs(w, jobs, contexts, n, error);
    free(jobs);
    free(contexts);
    w->ndone += n;
    return status;
}

static zipccl_status run_all(struct waves *w, struct zipccl_error *error)
{
    struct zipccl_sweep *s = w->sweep;

    for (size_t first = 0, end; first < s->nsteps; first = end) {
        size_t nevents = 0;

        for (end = first; end < s->nsteps && end - first < WAVE_STEPS && nevents < WAVE_EVENTS;
             end++) {
            struct zipccl_sweep_step *step = &s->steps[end];

            step->status = load(s, step, &step->error);
            if (step->status != ZIPCCL_OK)
                continue;
            note_tensors(s, step->input.trace);
            nevents += step->input.trace->nevents;
        }
        ZIPCCL_TRY(run_wave(w, first, end, error));
        for (size_t i = first; i < end; i++)
            zipccl_replay_input_release(&s->steps[i].input);
    }
    return ZIPCCL_OK;
}

zipccl_status zipccl_sweep_points_run(struct zipccl_sweep *s, bool progress,
                                      struct zipccl_error *error)
{
    struct waves w = {.sweep = s, .start = now()};
    zipccl_status status;

    zipccl_progress_start(&w.progress, "sweep", progress);
    status = run_all(&w, error);
    zipccl_progress_end(&w.progress);
    s->wall_s = now() - w.start;
    return status;
}
