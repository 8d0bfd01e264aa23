/*
 * sweep_open.c - opens the models, clusters and traces that a sweep names
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/sweep/sweep_points.h"

#include "experiments/program/open_cluster.h"
#include "experiments/program/program.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static zipccl_status no_memory(struct zipccl_error *error)
{
    return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
}

static zipccl_status open_models(struct zipccl_sweep *s, const struct zipccl_sweep_axis *axis,
                                 struct zipccl_error *error)
{
    char folder[PATH_MAX];

    if (s->options.model_dir == NULL)
        ZIPCCL_TRY(zipccl_beside_program(ZIPCCL_MODEL_DIR, folder, sizeof folder, error));
    else if (snprintf(folder, sizeof folder, "%s", s->options.model_dir) >= (int)sizeof folder)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "--model-dir: the path is too long");
    s->models = calloc(axis->n, sizeof *s->models);
    if (s->models == NULL)
        return no_memory(error);
    for (size_t i = 0; i < axis->n; i++, s->nmodels++)
        ZIPCCL_TRY(zipccl_workload_model_open(axis->values[i], folder, &s->models[i], error));
    return ZIPCCL_OK;
}

/* A value of a key: see that cluster 'file' takes it, and what number it is. */
static zipccl_status try_key(struct zipccl_cluster_file *file, struct zipccl_sweep_axis *axis,
                             size_t i, struct zipccl_error *error)
{
    const struct zipccl_cluster_setting *settings;
    struct zipccl_error why = {""};
    char text[400];
    size_t n;

    snprintf(text, sizeof text, "%s=%s", axis->key, axis->values[i]);
    if (zipccl_cluster_set(file, text, &why) != ZIPCCL_OK)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: %.180s", axis->place, why.text);
    settings = zipccl_cluster_settings(file, &n);
    for (size_t k = 0; k < n; k++)
        if (strcmp(settings[k].key, axis->key) == 0) {
            axis->numbers[i] = settings[k].value;
            snprintf(axis->unit, sizeof axis->unit, "%s", settings[k].unit);
        }
    for (size_t k = 0; k < i; k++)
        if (axis->numbers[k] == axis->numbers[i])
            return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: \"%.60s\" and \"%.60s\" are the same",
                               axis->place, axis->values[k], axis->values[i]);
    return ZIPCCL_OK;
}

static zipccl_status open_clusters(struct zipccl_sweep *s, const struct zipccl_sweep_axis *axis,
                                   struct zipccl_error *error)
{
    char folder[PATH_MAX];

    ZIPCCL_TRY(zipccl_cluster_folder(s->options.cluster_dir, folder, sizeof folder, error));
    s->clusters = calloc(axis->n, sizeof(*s->clusters));
    s->own_nodes = calloc(axis->n, sizeof(*s->own_nodes));
    s->notes = calloc(axis->n, sizeof(*s->notes));
    s->noted = calloc(axis->n, sizeof(*s->noted));
    if (s->clusters == NULL || s->own_nodes == NULL || s->notes == NULL || s->noted == NULL)
        return no_memory(error);
    for (size_t i = 0; i < axis->n; i++) {
        struct zipccl_cluster cluster;

        ZIPCCL_TRY(
            zipccl_cluster_open_with(axis->values[i], folder, NULL, 0, &s->clusters[i], error));
        s->nclusters++;
        ZIPCCL_TRY(zipccl_cluster_get(s->clusters[i], &cluster, error));
        s->own_nodes[i] = cluster.nodes;
        for (size_t a = 0; a < s->spec->naxes; a++)
            for (size_t k = 0; k < s->spec->axes[a].n; k++)
                if (s->spec->axes[a].role == ZIPCCL_SWEEP_KEY)
                    ZIPCCL_TRY(try_key(s->clusters[i], &s->spec->axes[a], k, error));
    }
    return ZIPCCL_OK;
}

/* Ranks of the traces as they are; what cannot be read at all ends the sweep here. */
static zipccl_status open_traces(struct zipccl_sweep *s, const struct zipccl_sweep_axis *axis,
                                 struct zipccl_error *error)
{
    struct zipccl_import_options import;
    struct zipccl_cluster cluster;

    s->trace_ranks = calloc(axis->n, sizeof *s->trace_ranks);
    s->trace_tokens = calloc(axis->n, sizeof *s->trace_tokens);
    if (s->trace_ranks == NULL || s->trace_tokens == NULL)
        return no_memory(error);
    ZIPCCL_TRY(zipccl_sweep_set_cluster(s->spec, 0, s->own_nodes[0], s->clusters[0], error));
    ZIPCCL_TRY(zipccl_cluster_get(s->clusters[0], &cluster, error));
    zipccl_import_options_init(&import);
    for (size_t i = 0; i < axis->n; i++, s->ntraces++) {
        struct zipccl_replay_input input;

        ZIPCCL_TRY(zipccl_replay_input_load((const char *const *)&axis->values[i], 1, &import, NULL,
                                            0, (uint64_t)cluster.nodes * cluster.gpus_per_node,
                                            &input, error));
        s->trace_ranks[i] = input.trace->header.nranks;
        s->trace_tokens[i] = input.trace->header.tokens_per_step;
        zipccl_replay_input_release(&input);
    }
    return ZIPCCL_OK;
}

static zipccl_status open_times(struct zipccl_sweep *s, struct zipccl_error *error)
{
    struct zipccl_workload plain;

    zipccl_workload_init(&plain);
    s->times = plain.times;
    if (s->options.times == NULL)
        return ZIPCCL_OK;
    return zipccl_workload_times_open(s->options.times, &s->times, error);
}

zipccl_status zipccl_sweep_open(struct zipccl_sweep_spec *spec,
                                const struct zipccl_sweep_options *options,
                                struct zipccl_sweep *out, struct zipccl_error *error)
{
    const struct zipccl_sweep_axis *models = zipccl_sweep_spec_role(spec, ZIPCCL_SWEEP_MODEL);
    const struct zipccl_sweep_axis *traces = zipccl_sweep_spec_role(spec, ZIPCCL_SWEEP_TRACE);

    memset(out, 0, sizeof *out);
    out->spec = spec;
    out->options = *options;
    if (traces != NULL && (options->samples != NULL || options->times != NULL))
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s is for models, not for traces",
                           options->samples != NULL ? "--samples" : "--times");
    ZIPCCL_TRY(open_times(out, error));
    ZIPCCL_TRY(open_clusters(out, zipccl_sweep_spec_role(spec, ZIPCCL_SWEEP_CLUSTER), error));
    if (models != NULL)
        ZIPCCL_TRY(open_models(out, models, error));
    if (traces != NULL)
        ZIPCCL_TRY(open_traces(out, traces, error));
    return zipccl_sweep_look(out, error);
}

void zipccl_sweep_release(struct zipccl_sweep *s)
{
    for (size_t i = 0; i < s->nclusters; i++)
        zipccl_cluster_close(s->clusters[i]);
    for (size_t i = 0; i < s->nsteps; i++) {
        zipccl_replay_input_release(&s->steps[i].input);
        free(s->steps[i].key);
    }
    free(s->models);
    free(s->clusters);
    free(s->own_nodes);
    free(s->notes);
    free(s->noted);
    free(s->trace_ranks);
    free(s->trace_tokens);
    free(s->steps);
    free(s->points);
    memset(s, 0, sizeof *s);
}
