/*
 * perf_sim_command.c - zipccl-sim perf: options in, table and result files out
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/perf/perf_sim.h"

#include "core/codec.h"
#include "experiments/ranks/launch.h"
#include "experiments/program/open_cluster.h"
#include "experiments/program/output.h"
#include "experiments/perf/perf_report.h"
#include "experiments/program/program.h"
#include "sim/platform.h"

#include <math.h>
#include <string.h>

/* What a simulation has not is refused. */
static int check_options(const char *program, const struct zipccl_perf_options *o)
{
    const struct {
        bool given;
        const char *what, *why;
    } refused[] = {
        {o->given.check, "-c", "no element moves, so none can be wrong"},
        {o->given.iters, "-n", "a simulated call takes the same time every time"},
        {o->given.warmup, "-w", "a simulated call takes the same time every time"},
        {o->given.threads, "-t",
         "the cluster says how many ranks there are: --set nodes=, --set "
         "gpus_per_node="},
        {o->ranks_per_node != 0, "--ranks-per-node", "the cluster says it: --set gpus_per_node="},
        {o->agg_iters != 1, "-m", "a simulated call takes the same time every time"},
        {o->cycles != 1, "-N", "a simulated call takes the same time every time"},
        {o->codec_threads != 1, "--threads", "the cluster has the codec's rates"},
        {o->split != ZIPCCL_SPLIT_NONE, "NCCL_TESTS_SPLIT", "all ranks are one communicator"},
        {o->unalign != 0, "-u", "no buffers are there"},
        {o->average != ZIPCCL_AVERAGE_MAX, "-a", "a call lasts until the last rank is done"},
        {o->cputime, "-C", "no processor works"},
        {o->timestamps, "-S", "nothing takes time"},
        {o->per_iteration, "-I", "there are no iterations"},
        {o->all_iterations, "-K", "there are no iterations"},
        {o->memory, "-M", "no buffers are there"},
        {o->data == ZIPCCL_DATA_MIXTURE, "--input mixture", "expected gauss, or FILE.safetensors"},
    };

    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (refused[i].given)
            return zipccl_usage_error(program, "perf: %s is not of --on sim: %s", refused[i].what,
                                      refused[i].why);
    if (o->cluster == NULL)
        return zipccl_usage_error(program,
                                  "perf: --on sim needs a --cluster; 'zipccl cluster list' "
                                  "names some");
    if (o->ratio > 0 && o->given.input)
        return zipccl_usage_error(program, "perf: --ratio and --input exclude each other");
    return ZIPCCL_EXIT_OK;
}

static const char *const tier_texts[] = {
    "closed form: port loads, the longest path of the plan",
    "flows: parallel tasks that share links and GPUs max-min",
    "messages: every rank runs its plan; payload by pointer, sizes from the samples"};

static zipccl_status note_run(const struct zipccl_perf_options *o, struct zipccl_perf_result *r)
{
    static const char given[] = "command line or its default";
    struct zipccl_result_note **to = &r->settings;
    const struct zipccl_result_note *platform;
    size_t *n = &r->nsettings, nplatform = 0;

    ZIPCCL_TRY(zipccl_perf_note(to, n, "tier", "", tier_texts[o->tier], "t%u", o->tier));
    platform = zipccl_platform_settings(
        o->tier == 2 ? ZIPCCL_PLATFORM_MESSAGES : ZIPCCL_PLATFORM_FLOWS, &nplatform);
    for (size_t i = 0; i < nplatform && o->tier > 0; i++)
        ZIPCCL_TRY(zipccl_perf_note(to, n, platform[i].name, platform[i].unit, platform[i].source,
                                    "%s", platform[i].value));
    ZIPCCL_TRY(zipccl_perf_note(to, n, "isa", "",
                                "instruction set that measured the sizes; all write the same bytes",
                                "%s", zipccl_isa_name(zipccl_isa_best())));
    ZIPCCL_TRY(zipccl_perf_note(to, n, "strategy", "", given, "%s",
                                o->strategy != NULL ? o->strategy : "chosen"));
    if (o->ratio > 0)
        ZIPCCL_TRY(zipccl_perf_note(to, n, "ratio", "", "--ratio", "%.6g", o->ratio));
    return zipccl_perf_note(to, n, "capacity_class", "", given, "%s",
                            o->capacity_class == ZIPCCL_CLASS_LEARN
                                ? "the narrowest that fits"
                                : zipccl_class_name((int)o->capacity_class));
}

static zipccl_status note_cluster(const struct zipccl_cluster_file *file,
                                  struct zipccl_perf_result *r)
{
    size_t n;
    const struct zipccl_cluster_setting *s = zipccl_cluster_settings(file, &n);

    for (size_t i = 0; i < n; i++) {
        char number[32];

        snprintf(number, sizeof number, "%.10g", s[i].value);
        ZIPCCL_TRY(zipccl_perf_note(&r->assumptions, &r->nassumptions, s[i].key, s[i].unit,
                                    s[i].source, "%s", isnan(s[i].value) ? s[i].text : number));
    }
    return ZIPCCL_OK;
}

static zipccl_status check_outputs(const struct zipccl_perf_options *o,
                                   const struct zipccl_cluster_file *cluster,
                                   struct zipccl_output outputs[ZIPCCL_PERF_NUM_FILES],
                                   struct zipccl_error *error)
{
    const char *const paths[ZIPCCL_PERF_NUM_FILES] = {o->json, o->csv};

    for (int i = 0; i < ZIPCCL_PERF_NUM_FILES; i++) {
        ZIPCCL_TRY(zipccl_output_check(&outputs[i], paths[i], error));
        ZIPCCL_TRY(zipccl_output_spare(&outputs[i], zipccl_cluster_path(cluster), error));
        ZIPCCL_TRY(zipccl_output_spare(&outputs[i],
                                       o->data == ZIPCCL_DATA_FILE ? o->input_path : NULL, error));
    }
    return zipccl_output_differ(&outputs[ZIPCCL_PERF_JSON], &outputs[ZIPCCL_PERF_CSV], error);
}

static zipccl_status simulate(const struct zipccl_perf_options *o,
                              const struct zipccl_cluster_file *file,
                              struct zipccl_output outputs[ZIPCCL_PERF_NUM_FILES],
                              struct zipccl_perf_result *result, bool *good,
                              struct zipccl_error *error)
{
    struct zipccl_cluster cluster;

    ZIPCCL_TRY(check_outputs(o, file, outputs, error));
    bool standard = outputs[ZIPCCL_PERF_JSON].standard || outputs[ZIPCCL_PERF_CSV].standard;
    FILE *table = o->quiet || standard ? NULL : stdout;

    ZIPCCL_TRY(zipccl_cluster_get(file, &cluster, error));
    if (o->effort == ZIPCCL_EFFORT_RATIO && !(cluster.ratio_encode_Bps > 0))
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "--effort ratio: cluster \"%.60s\" has no codec rates for it",
                           cluster.name);
    result->on = "sim";
    result->input = o->ratio > 0 ? "a given ratio" : o->input;
    snprintf(result->cluster, sizeof result->cluster, "%s", cluster.name);
    if (note_run(o, result) != ZIPCCL_OK || note_cluster(file, result) != ZIPCCL_OK)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "result: out of memory");
    ZIPCCL_TRY(zipccl_perf_sim_run(o, &cluster, result, table, error));
    *good = zipccl_perf_print_tail(o, result, table);
    return zipccl_perf_write(result, outputs, error);
}

/* A launcher's processes would each simulate the same; a script of sbatch looks like rank 0 of them. */
static zipccl_status check_alone(struct zipccl_error *error)
{
    struct zipccl_launch launch;

    ZIPCCL_TRY(zipccl_launch_from_environment(&launch, error));
    if (launch.size == 1 || (launch.rank == 0 && strcmp(launch.launcher, "Slurm") == 0))
        return ZIPCCL_OK;
    return zipccl_fail(
        error, ZIPCCL_ERR_INPUT,
        "%s has started %u processes (%s), and each of them would simulate the same: "
        "start --on sim once",
        launch.launcher, launch.size, launch.size_name);
}

int zipccl_perf_sim_command(const char *program, int argc, char **argv)
{
    struct zipccl_output outputs[ZIPCCL_PERF_NUM_FILES] = {{.path = NULL}, {.path = NULL}};
    struct zipccl_perf_result result = {.rows = NULL};
    struct zipccl_perf_options options;
    struct zipccl_cluster_file *file = NULL;
    struct zipccl_error error = {""};
    char folder[4096];
    bool helped, good = true;
    int code = zipccl_perf_parse(program, argc, argv, &options, &helped);

    if (code != ZIPCCL_EXIT_OK || helped)
        return code;
    if (options.on != ZIPCCL_ON_SIM)
        return zipccl_usage_error(program, "perf: zipccl-sim runs --on sim alone; 'zipccl perf' "
                                           "finds the program");
    code = check_options(program, &options);
    if (code != ZIPCCL_EXIT_OK)
        return code;
    zipccl_status status = check_alone(&error);
    if (status == ZIPCCL_OK)
        status = zipccl_cluster_folder(options.cluster_dir, folder, sizeof folder, &error);
    if (status == ZIPCCL_OK)
        status = zipccl_cluster_open_with(options.cluster, folder, options.sets, options.nsets,
                                          &file, &error);
    if (status == ZIPCCL_OK)
        status = simulate(&options, file, outputs, &result, &good, &error);
    for (int i = 0; i < ZIPCCL_PERF_NUM_FILES; i++)
        zipccl_output_discard(&outputs[i]);
    if (status != ZIPCCL_OK)
        code = zipccl_print_error(program, status, &error);
    else if (!good)
        code = zipccl_print_error(
            program, ZIPCCL_ERR_INTERNAL,
            &(struct zipccl_error){"perf: less bandwidth than NCCL_TESTS_MIN_BW asks for"});
    zipccl_perf_release(&result);
    zipccl_cluster_close(file);
    return code;
}
