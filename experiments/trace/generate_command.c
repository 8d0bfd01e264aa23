/*
 * generate_command.c - zipccl trace generate: a step made up from a model and a parallelism
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/trace/generate_command.h"

#include "experiments/trace/generate_options.h"
#include "experiments/trace/generate_print.h"
#include "experiments/trace/generate_set.h"
#include "experiments/program/open_cluster.h"
#include "experiments/program/on_signal.h"
#include "experiments/program/output.h"
#include "experiments/program/program.h"
#include "experiments/program/relative_path.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

static const char program[] = "zipccl";

static zipccl_status model_folder(const char *given, char *out, size_t size,
                                  struct zipccl_error *error)
{
    if (given == NULL)
        return zipccl_beside_program(ZIPCCL_MODEL_DIR, out, size, error);
    if (snprintf(out, size, "%s", given) >= (int)size)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "--model-dir: the path is too long");
    return ZIPCCL_OK;
}

static zipccl_status list_models(const char *given, struct zipccl_error *error)
{
    char folder[PATH_MAX];

    ZIPCCL_TRY(model_folder(given, folder, sizeof folder, error));
    return zipccl_generate_list(folder, stdout, error);
}

/* Of --gpus, what is left for dp; the batch where it was not given. */
static zipccl_status fill_in(struct zipccl_generate_options *o, struct zipccl_error *error)
{
    struct zipccl_workload *w = &o->workload;

    if (o->gpus > 0 && w->dp > 1)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "--gpus and --dp exclude each other");
    ZIPCCL_TRY(zipccl_generate_fill(w, (uint64_t)o->gpus, error));
    if (o->sync_given && !o->sync)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "--sync is for --workload weight-sync");
    if (o->sync && w->kind == ZIPCCL_WORKLOAD_TRAIN)
        w->kind = ZIPCCL_WORKLOAD_SYNC_BROADCAST;
    return ZIPCCL_OK;
}

static zipccl_status read_cluster(struct zipccl_generate_options *o, struct zipccl_cluster *cluster,
                                  struct zipccl_generate_place *place, struct zipccl_error *error)
{
    struct zipccl_cluster_file *file;
    char folder[PATH_MAX];
    zipccl_status status;

    place->gpu_memory = o->gpu_memory;
    if (o->cluster == NULL) {
        if (o->nsets > 0)
            return zipccl_fail(error, ZIPCCL_ERR_INPUT, "--set changes a cluster: name one");
        return ZIPCCL_OK;
    }
    ZIPCCL_TRY(zipccl_cluster_folder(o->cluster_dir, folder, sizeof folder, error));
    ZIPCCL_TRY(zipccl_cluster_open_with(o->cluster, folder, o->sets, o->nsets, &file, error));
    status = zipccl_cluster_get(file, cluster, error);
    zipccl_cluster_close(file);
    if (status != ZIPCCL_OK)
        return status;
    place->cluster = cluster;
    if (o->gpu_memory <= 0)
        place->gpu_memory = cluster->gpu_memory_bytes;
    if (o->workload.ranks_per_node == 0)
        o->workload.ranks_per_node = cluster->gpus_per_node;
    return ZIPCCL_OK;
}

/* Paths at the command line start at the current folder, in a trace at its own; "": none. */
static zipccl_status find_samples(const struct zipccl_generate_options *o, char *path,
                                  size_t path_size, char *name, size_t name_size,
                                  struct zipccl_error *error)
{
    char folder[PATH_MAX];

    path[0] = '\0';
    if (o->samples != NULL && strcmp(o->samples, "none") == 0)
        return ZIPCCL_OK;
    if (o->samples != NULL) {
        if (snprintf(path, path_size, "%s", o->samples) >= (int)path_size)
            return zipccl_fail(error, ZIPCCL_ERR_INPUT, "--samples: the path is too long");
        return zipccl_relative_path(path, o->out, name, name_size, error);
    }
    ZIPCCL_TRY(zipccl_beside_program(ZIPCCL_SAMPLES_DIR, folder, sizeof folder, error));
    if (snprintf(path, path_size, "%s/%s.safetensors", folder,
                 o->workload.model.experts > 0 ? "moe" : "dense") >= (int)path_size)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "--samples: the path is too long");
    return zipccl_relative_real_path(path, o->out, name, name_size, error);
}

static zipccl_status write_trace(const struct zipccl_generate_options *o,
                                 struct zipccl_workload_summary *summary,
                                 struct zipccl_error *error)
{
    char samples[PATH_MAX], name[PATH_MAX];
    struct zipccl_output output;

    ZIPCCL_TRY(zipccl_output_check(&output, o->out, error));
    if (output.direct)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: cannot write a trace there: no regular file",
                           o->out);
    ZIPCCL_TRY(find_samples(o, samples, sizeof samples, name, sizeof name, error));
    const char *inputs[] = {o->model, o->times, o->cluster, samples};

    for (size_t i = 0; i < sizeof inputs / sizeof *inputs; i++)
        if (inputs[i] != NULL && inputs[i][0] != '\0')
            ZIPCCL_TRY(zipccl_output_spare(&output, inputs[i], error));
    zipccl_on_signal_remove_trace(o->out);
    zipccl_status status = zipccl_workload_write(
        &o->workload, o->out, samples[0] != '\0' ? samples : NULL, name, summary, error);

    zipccl_on_signal_keep();
    return status;
}

static void warn(const struct zipccl_generate_options *o,
                 const struct zipccl_workload_estimate *estimate,
                 const struct zipccl_generate_place *place)
{
    uint64_t ranks = zipccl_workload_nranks(&o->workload);

    if (o->workload.kind == ZIPCCL_WORKLOAD_TRAIN && place->gpu_memory > 0 &&
        estimate->total > place->gpu_memory)
        fprintf(stderr,
                "%s: warning: %.1f GB a GPU do not fit into %.1f GB: more tp, pp or sharding, "
                "--recompute full, or a smaller micro-batch\n",
                program, estimate->total / 1e9, place->gpu_memory / 1e9);
    if (place->cluster != NULL &&
        ranks != (uint64_t)place->cluster->nodes * place->cluster->gpus_per_node)
        fprintf(stderr,
                "%s: warning: %" PRIu64 " ranks, cluster %s has %u x %u GPUs: replay with "
                "--set nodes=...\n",
                program, ranks, place->cluster->name, place->cluster->nodes,
                place->cluster->gpus_per_node);
}

/* Ranks that share a node, where they are asked for: a trace can only tell nodes that are full. */
static zipccl_status check_per_node(const struct zipccl_workload *w, struct zipccl_error *error)
{
    uint64_t ranks = zipccl_workload_nranks(w);

    if (w->ranks_per_node == 0 || ranks <= w->ranks_per_node || ranks % w->ranks_per_node == 0)
        return ZIPCCL_OK;
    return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                       "--ranks-per-node %" PRIu32 " does not divide %" PRIu64
                       " ranks: the last node would not be full, which a trace cannot say",
                       w->ranks_per_node, ranks);
}

static zipccl_status generate(struct zipccl_generate_options *o, struct zipccl_error *error)
{
    struct zipccl_workload_summary summary = {.lines = 0};
    struct zipccl_generate_place place = {NULL, 0};
    struct zipccl_workload_estimate estimate;
    struct zipccl_workload *w = &o->workload;
    struct zipccl_cluster cluster;
    char folder[PATH_MAX];

    ZIPCCL_TRY(model_folder(o->model_dir, folder, sizeof folder, error));
    ZIPCCL_TRY(zipccl_workload_model_open(o->model, folder, &w->model, error));
    if (o->times != NULL)
        ZIPCCL_TRY(zipccl_workload_times_open(o->times, &w->times, error));
    ZIPCCL_TRY(fill_in(o, error));
    bool per_node_given = w->ranks_per_node > 0;

    ZIPCCL_TRY(read_cluster(o, &cluster, &place, error));
    ZIPCCL_TRY(zipccl_workload_check(w, error));
    if (per_node_given)
        ZIPCCL_TRY(check_per_node(w, error));
    zipccl_workload_estimate(w, &estimate);
    if (!o->estimate)
        ZIPCCL_TRY(write_trace(o, &summary, error));
    warn(o, &estimate, &place);
    if (o->quiet)
        return ZIPCCL_OK;
    zipccl_generate_print(w, &estimate, &place, stdout);
    zipccl_generate_print_speed(w, &estimate, o->estimate ? NULL : &summary, &place, stdout);
    if (o->estimate)
        return ZIPCCL_OK;
    if (summary.unbound > 0)
        printf("samples  %" PRIu64 " kinds of calls have no captured tensors: a replay makes up "
               "data for them\n",
               summary.unbound);
    printf("wrote    %s: %" PRIu64 " lines for %" PRIu64 " compute and %" PRIu64
           " collective events; nothing in it was measured\n",
           o->out, summary.lines, summary.ncompute, summary.ncollective);
    return ZIPCCL_OK;
}

int zipccl_generate_command(int argc, char **argv)
{
    struct zipccl_generate_options options;
    struct zipccl_error error = {""};
    bool helped;
    int code = zipccl_generate_parse(argc, argv, &options, &helped);
    zipccl_status status;

    if (code != ZIPCCL_EXIT_OK || helped)
        return code;
    if (options.model == NULL)
        return zipccl_usage_error(program,
                                  "trace generate: no --model given; '--model list' lists them");
    if (strcmp(options.model, "list") == 0) {
        status = list_models(options.model_dir, &error);
        return status == ZIPCCL_OK ? ZIPCCL_EXIT_OK : zipccl_print_error(program, status, &error);
    }
    if ((options.out == NULL) != options.estimate)
        return zipccl_usage_error(program, options.estimate
                                               ? "trace generate: -o and --estimate exclude each "
                                                 "other"
                                               : "trace generate: no -o OUT given; --estimate "
                                                 "writes nothing");
    status = generate(&options, &error);
    return status == ZIPCCL_OK ? ZIPCCL_EXIT_OK : zipccl_print_error(program, status, &error);
}

int zipccl_models_command(int argc, char **argv)
{
    struct zipccl_error error = {""};
    const char *folder = NULL;

    if (argc == 3 && strcmp(argv[1], "--model-dir") == 0)
        folder = argv[2];
    else if (argc > 1)
        return zipccl_usage_error(program, "trace models: unexpected argument '%s'", argv[1]);
    zipccl_status status = list_models(folder, &error);

    return status == ZIPCCL_OK ? ZIPCCL_EXIT_OK : zipccl_print_error(program, status, &error);
}
