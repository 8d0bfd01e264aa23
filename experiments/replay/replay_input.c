/*
 * replay_input.c - what a replay is given: a trace, or a file of another tool imported on the way
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/replay/replay_input.h"

#include "experiments/trace/foreign.h"
#include "experiments/trace/import_options.h"
#include "experiments/program/program.h"
#include "experiments/program/relative_path.h"
#include "experiments/report/report.h"
#include "traces/info.h"
#include "traces/rescale.h"
#include "traces/safetensors.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bytes of calls that have a class in 'file'. */
static double covered(const struct zipccl_trace *trace, const struct zipccl_safetensors *file)
{
    double nbytes = 0;

    for (size_t i = 0; i < trace->nevents; i++) {
        const struct zipccl_event *e = &trace->events[i];

        if (e->kind == ZIPCCL_EVENT_COLLECTIVE && zipccl_dtype_compressible(e->dtype) &&
            zipccl_import_class(file, e->op, e->dtype) != NULL)
            nbytes += (double)zipccl_trace_event_nbytes(&trace->header, e);
    }
    return nbytes;
}

static void bind(struct zipccl_replay_input *input, const struct zipccl_safetensors *file)
{
    for (size_t i = 0; i < input->trace->nevents; i++) {
        struct zipccl_event *e = &input->trace->events[i];
        const char *class;

        if (e->kind != ZIPCCL_EVENT_COLLECTIVE || !zipccl_dtype_compressible(e->dtype))
            continue;
        class = zipccl_import_class(file, e->op, e->dtype);
        if (class == NULL)
            continue;
        input->classes[e->op][e->dtype] = (char *)class;
        e->samples = &input->classes[e->op][e->dtype];
        e->nsamples = 1;
    }
}

/* Give an imported trace the bundled tensors that cover more of its bytes. */
static zipccl_status bind_bundled(struct zipccl_replay_input *input, struct zipccl_error *error)
{
    static const char *const names[] = {"dense.safetensors", "moe.safetensors"};
    char folder[4096], path[4200], best[4200] = "";
    const struct zipccl_safetensors *file;
    double most = 0;

    ZIPCCL_TRY(zipccl_beside_program(ZIPCCL_SAMPLES_DIR, folder, sizeof folder, error));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        double nbytes;

        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        if (zipccl_safetensors_open(path, &file, NULL) != ZIPCCL_OK)
            continue; /* not installed: generated data stand in, and the result says so */
        nbytes = covered(input->trace, file);
        zipccl_safetensors_close(file);
        if (nbytes > most)
            strcpy(best, path);
        most = nbytes > most ? nbytes : most;
    }
    if (best[0] == '\0')
        return ZIPCCL_OK;
    ZIPCCL_TRY(zipccl_safetensors_open(best, &file, error));
    bind(input, file);
    zipccl_safetensors_close(file);
    input->trace->samples_path = malloc(strlen(best) + 1);
    if (input->trace->samples_path == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", best);
    strcpy(input->trace->samples_path, best);
    input->bundled = true;
    return ZIPCCL_OK;
}

static zipccl_status import_paths(const char *const *paths, size_t npaths,
                                  const struct zipccl_import_options *options,
                                  struct zipccl_replay_input *input, struct zipccl_error *error)
{
    struct zipccl_foreign_files files;
    zipccl_status status = zipccl_foreign_list(paths, npaths, &files, error);

    if (status == ZIPCCL_OK)
        status = zipccl_import_to_memory(NULL, (const char *const *)files.names, files.n, options,
                                         &input->report, &input->trace, error);
    if (status == ZIPCCL_OK)
        status = zipccl_foreign_note(&files, &input->report, error);
    zipccl_foreign_free(&files);
    if (status == ZIPCCL_OK && options->samples == NULL)
        status = bind_bundled(input, error);
    return status;
}

/* Tensors that a trace names and that are not there: told here, where it is known who names them. */
static zipccl_status check_samples(const struct zipccl_trace *trace, struct zipccl_error *error)
{
    if (trace->samples_path == NULL || access(trace->samples_path, F_OK) == 0)
        return ZIPCCL_OK;
    return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                       "%.160s:1: samples '%.120s', expected the tensors at %.160s: %s; move them "
                       "together with the trace, or write it again",
                       trace->path, trace->header.samples, trace->samples_path, strerror(errno));
}

/* A folder may hold a trace or profiler files; the reader of traces knows of the former alone. */
static zipccl_status load_trace(const char *path, struct zipccl_trace **out,
                                struct zipccl_error *error)
{
    struct zipccl_error why = {""};
    zipccl_status status;

    ZIPCCL_TRY(zipccl_foreign_explain(path, ZIPCCL_OK, &why, error));
    status = zipccl_trace_load(path, out, &why);
    return status == ZIPCCL_OK ? status : zipccl_foreign_explain(path, status, &why, error);
}

static void swap(char **a, char **b)
{
    char *c = *a;

    *a = *b;
    *b = c;
}

/* 'trace' for other ranks as 'zipccl trace rescale' writes it, through the file 'path'. */
static zipccl_status rescale_through(const char *path, struct zipccl_rescale_options options,
                                     struct zipccl_trace **trace, struct zipccl_error *error)
{
    struct zipccl_rescale_report report;
    struct zipccl_trace *out;
    char samples[4096];
    zipccl_status status;

    if ((*trace)->samples_path != NULL) {
        ZIPCCL_TRY(zipccl_relative_real_path((*trace)->samples_path, path, samples, sizeof samples,
                                             error));
        options.samples = samples;
    }
    ZIPCCL_TRY(zipccl_trace_rescale(*trace, &options, path, &report, error));
    status = zipccl_trace_load(path, &out, error);
    unlink(path);
    if (status != ZIPCCL_OK)
        return status;
    /* Messages name what was given, and the folder of 'path' goes. */
    swap(&out->path, &(*trace)->path);
    swap(&out->samples_path, &(*trace)->samples_path);
    zipccl_trace_destroy(*trace);
    *trace = out;
    return ZIPCCL_OK;
}

static zipccl_status rescale(const struct zipccl_rescale_options *options,
                             struct zipccl_trace **trace, struct zipccl_error *error)
{
    char folder[] = "/tmp/zipccl-replay-XXXXXX", path[sizeof folder + 16];
    zipccl_status status;

    if (options->nmap == 0 && (options->nranks == 0 || options->nranks == (*trace)->header.nranks))
        return ZIPCCL_OK;
    if (mkdtemp(folder) == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: %s", folder, strerror(errno));
    snprintf(path, sizeof path, "%s/trace.jsonl", folder);
    status = rescale_through(path, *options, trace, error);
    rmdir(folder);
    return status;
}

/* A trace of our own format, taken to the ranks that were asked for. */
static zipccl_status load_own(const char *path, const struct zipccl_import_options *options,
                              const char *const *map, size_t nmap,
                              struct zipccl_replay_input *input, struct zipccl_error *error)
{
    struct zipccl_rescale_options ranks = {.nranks = options->nranks, .map = map, .nmap = nmap};
    struct zipccl_import_options others = *options;
    const char *given;
    zipccl_status status;

    others.nranks = 0; /* means something here too */
    given = zipccl_import_first_given(&others);
    ZIPCCL_TRY(load_trace(path, &input->trace, error));
    status = given == NULL
                 ? check_samples(input->trace, error)
                 : zipccl_fail(error, ZIPCCL_ERR_INPUT,
                               "%.300s: is a trace; %s is for files to import", path, given);
    if (status == ZIPCCL_OK)
        status = rescale(&ranks, &input->trace, error);
    if (status != ZIPCCL_OK)
        zipccl_replay_input_release(input);
    return status;
}

zipccl_status zipccl_replay_input_load(const char *const *paths, size_t npaths,
                                       const struct zipccl_import_options *options,
                                       const char *const *map, size_t nmap, uint64_t ngpus,
                                       struct zipccl_replay_input *input,
                                       struct zipccl_error *error)
{
    struct zipccl_rescale_options ranks = {.map = map, .nmap = nmap};
    struct zipccl_import_options import = *options;

    memset(input, 0, sizeof *input);
    if (npaths == 1 && !zipccl_foreign_is(paths[0]))
        return load_own(paths[0], options, map, nmap, input, error);
    input->imported = true;
    /* The cluster is as large as what the map makes of the trace, and says nothing of the file. */
    import.likely_nranks = nmap > 0 ? 0 : ngpus <= UINT32_MAX ? (uint32_t)ngpus : 0;
    zipccl_status status = import_paths(paths, npaths, &import, input, error);

    if (status == ZIPCCL_OK)
        status = rescale(&ranks, &input->trace, error);
    if (status != ZIPCCL_OK)
        zipccl_replay_input_release(input);
    return status;
}

void zipccl_replay_input_release(struct zipccl_replay_input *input)
{
    zipccl_trace_destroy(input->trace);
    zipccl_import_report_free(&input->report);
    memset(input, 0, sizeof *input);
}
