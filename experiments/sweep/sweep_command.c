/*
 * sweep_command.c - zipccl-sim sweep: axes in, table and result files out
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/sweep/sweep_command.h"

#include "analysis/sweep_html.h"
#include "experiments/program/output.h"
#include "experiments/program/program.h"
#include "experiments/sweep/sweep_options.h"
#include "experiments/sweep/sweep_print.h"
#include "experiments/sweep/sweep_run.h"
#include "experiments/trace/spare_trace.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* What is printed and written. */
struct found {
    struct zipccl_sweep_summary summary;
    const struct zipccl_sweep_point **rows; /* [nrows] */
    size_t nrows;
};

/* No output may overwrite what the sweep reads, or another output. */
static zipccl_status check_outputs(const struct zipccl_sweep_arguments *a,
                                   const struct zipccl_sweep *s, struct zipccl_output *outputs,
                                   struct zipccl_error *error)
{
    const char *const inputs[] = {a->spec_path, a->options.samples, a->options.times};

    for (int i = 0; i < ZIPCCL_SWEEP_NUM_FILES; i++)
        ZIPCCL_TRY(zipccl_output_check(&outputs[i], a->files[i], error));
    for (int i = 0; i < ZIPCCL_SWEEP_NUM_FILES; i++) {
        for (int k = 0; k < i; k++)
            ZIPCCL_TRY(zipccl_output_differ(&outputs[i], &outputs[k], error));
        for (size_t k = 0; k < sizeof inputs / sizeof *inputs; k++)
            ZIPCCL_TRY(zipccl_output_spare(&outputs[i], inputs[k], error));
        for (size_t k = 0; k < s->nclusters; k++)
            ZIPCCL_TRY(
                zipccl_output_spare(&outputs[i], zipccl_cluster_path(s->clusters[k]), error));
        for (size_t k = 0; k < a->spec.naxes; k++)
            for (size_t v = 0; v < a->spec.axes[k].n; v++)
                if (a->spec.axes[k].role == ZIPCCL_SWEEP_TRACE)
                    ZIPCCL_TRY(
                        zipccl_output_spare_trace(&outputs[i], a->spec.axes[k].values[v], error));
                else if (a->spec.axes[k].role == ZIPCCL_SWEEP_MODEL)
                    ZIPCCL_TRY(zipccl_output_spare(&outputs[i], a->spec.axes[k].values[v], error));
    }
    return ZIPCCL_OK;
}

static zipccl_status make_json(const struct zipccl_sweep *s, const struct found *f, char **text,
                               size_t *nbytes, struct zipccl_error *error)
{
    FILE *memory = open_memstream(text, nbytes);

    if (memory == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "result: out of memory");
    zipccl_status status = zipccl_sweep_json(s, &f->summary, memory, error);
    if (fclose(memory) != 0 && status == ZIPCCL_OK)
        status = zipccl_fail(error, ZIPCCL_ERR_NOMEM, "result: out of memory");
    return status;
}

static zipccl_status fill_files(const struct zipccl_sweep *s, const struct found *f,
                                const char *json, size_t nbytes, struct zipccl_output *outputs,
                                struct zipccl_error *error)
{
    for (int i = 0; i < ZIPCCL_SWEEP_NUM_FILES; i++)
        ZIPCCL_TRY(zipccl_output_open(&outputs[i], error));
    if (outputs[ZIPCCL_SWEEP_JSON].file != NULL)
        fwrite(json, 1, nbytes, outputs[ZIPCCL_SWEEP_JSON].file);
    if (outputs[ZIPCCL_SWEEP_CSV].file != NULL)
        ZIPCCL_TRY(zipccl_output_told(
            &outputs[ZIPCCL_SWEEP_CSV],
            zipccl_sweep_csv(s, f->rows, f->nrows, outputs[ZIPCCL_SWEEP_CSV].file, error), error));
    if (outputs[ZIPCCL_SWEEP_HTML].file != NULL)
        ZIPCCL_TRY(zipccl_sweep_html(json, nbytes, outputs[ZIPCCL_SWEEP_HTML].file, error));
    for (int i = 0; i < ZIPCCL_SWEEP_NUM_FILES; i++)
        ZIPCCL_TRY(zipccl_output_close(&outputs[i], error));
    for (int i = 0; i < ZIPCCL_SWEEP_NUM_FILES; i++)
        ZIPCCL_TRY(zipccl_output_commit(&outputs[i], error));
    return ZIPCCL_OK;
}

static zipccl_status write_files(const struct zipccl_sweep *s, const struct found *f,
                                 struct zipccl_output *outputs, struct zipccl_error *error)
{
    char *json = NULL;
    size_t nbytes = 0;
    zipccl_status status = make_json(s, f, &json, &nbytes, error);

    if (status == ZIPCCL_OK)
        status = fill_files(s, f, json, nbytes, outputs, error);
    for (int i = 0; i < ZIPCCL_SWEEP_NUM_FILES; i++)
        zipccl_output_discard(&outputs[i]);
    free(json);
    return status;
}

static void print(const struct zipccl_sweep_arguments *a, const struct zipccl_sweep *s,
                  const struct found *f, const struct zipccl_output *outputs)
{
    static const char *const what[] = {"JSON, schema zipccl.sweep", "points as CSV",
                                       "pictures, table, assumptions"};

    for (int i = 0; i < ZIPCCL_SWEEP_NUM_FILES; i++)
        if (outputs[i].standard)
            return;
    if (a->quiet)
        return;
    zipccl_sweep_print(s, &f->summary, f->rows, f->nrows, a->top > 0 ? (size_t)a->top : SIZE_MAX,
                       stdout);
    for (int i = 0; i < ZIPCCL_SWEEP_NUM_FILES; i++)
        if (outputs[i].path != NULL)
            printf(" wrote %s (%s)\n", outputs[i].path, what[i]);
}

static zipccl_status run_points(const struct zipccl_sweep_arguments *a, struct zipccl_sweep *s,
                                struct zipccl_output *outputs, struct zipccl_error *error)
{
    struct found f = {.rows = NULL};
    zipccl_status status;

    ZIPCCL_TRY(check_outputs(a, s, outputs, error));
    ZIPCCL_TRY(zipccl_sweep_points_run(s, !a->quiet, error));
    if (s->nruns == 0)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "sweep: none of %zu combinations can be run, such as: %.250s",
                           s->npoints, s->points[0].reason);
    status = zipccl_sweep_summarize(s, &f.summary, error);
    if (status == ZIPCCL_OK)
        status = zipccl_sweep_order(s, a->sort, &f.rows, &f.nrows, error);
    if (status == ZIPCCL_OK)
        status = write_files(s, &f, outputs, error);
    if (status == ZIPCCL_OK)
        print(a, s, &f, outputs);
    free(f.summary.crossings);
    free((void *)f.rows);
    return status;
}

/* One line for each combination; nothing is run. */
static void list(const struct zipccl_sweep *s)
{
    for (size_t i = 0; i < s->npoints; i++) {
        const struct zipccl_sweep_point *p = &s->points[i];
        char which[240];

        zipccl_sweep_spec_describe(s->spec, i, which, sizeof which);
        printf("%s: ", which);
        if (p->skip != ZIPCCL_SWEEP_RUNS)
            printf("skipped, %s: %s\n", zipccl_sweep_skip_name(p->skip), p->reason);
        else if (p->memory > 0)
            printf("%u x %u GPUs, %.1f of %.1f GB a GPU\n", p->nodes, p->gpus_per_node,
                   p->memory / 1e9, p->gpu_memory / 1e9);
        else
            printf("%u x %u GPUs\n", p->nodes, p->gpus_per_node);
    }
    printf("%zu combinations, %zu to run, of %zu distinct steps\n", s->npoints, s->nruns,
           s->nsteps);
}

static int run(struct zipccl_sweep_arguments *a)
{
    struct zipccl_output outputs[ZIPCCL_SWEEP_NUM_FILES];
    struct zipccl_error error = {""};
    struct zipccl_sweep sweep;
    zipccl_status status = zipccl_sweep_open(&a->spec, &a->options, &sweep, &error);
    int code = ZIPCCL_EXIT_OK;

    if (status == ZIPCCL_OK && a->list)
        list(&sweep);
    else if (status == ZIPCCL_OK)
        status = run_points(a, &sweep, outputs, &error);
    if (status != ZIPCCL_OK)
        code = zipccl_print_error(a->program, status, &error);
    else if (sweep.nfailed > 0) {
        fprintf(stderr, "%s: sweep: %zu of %zu points failed; the result tells how\n", a->program,
                sweep.nfailed, sweep.nruns);
        code = ZIPCCL_EXIT_FAILED;
    }
    zipccl_sweep_release(&sweep);
    return code;
}

int zipccl_sweep_command(const char *program, int argc, char **argv)
{
    struct zipccl_sweep_arguments *arguments = calloc(1, sizeof *arguments);
    bool helped;
    int code;

    if (arguments == NULL)
        return ZIPCCL_EXIT_FAILED;
    arguments->program = program;
    code = zipccl_sweep_parse(argc, argv, arguments, &helped);
    if (code == ZIPCCL_EXIT_OK && !helped)
        code = run(arguments);
    zipccl_sweep_spec_release(&arguments->spec);
    free(arguments);
    return code;
}
