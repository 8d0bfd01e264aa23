/*
 * perf_command.c - zipccl-perf perf: options in, table and result files out
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/perf/perf_command.h"

#include "core/codec.h"
#include "experiments/program/machine.h"
#include "experiments/program/open_cluster.h"
#include "experiments/program/output.h"
#include "experiments/perf/perf_plan.h"
#include "experiments/perf/perf_report.h"
#include "experiments/perf/perf_run.h"
#include "experiments/program/program.h"
#include "experiments/replay/real_world.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>

/* Plans of --effort ratio are priced by rates of their own, which nobody has measured on GPUs yet. */
static zipccl_status check_effort(const struct zipccl_perf_options *o,
                                  const struct zipccl_cost_params *params, const char *cluster,
                                  struct zipccl_error *error)
{
    if (o->effort != ZIPCCL_EFFORT_RATIO ||
        (params->ratio_encode_Bps > 0 && params->ratio_decode_Bps > 0))
        return ZIPCCL_OK;
    return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                       "--effort ratio: cluster \"%.60s\" has no codec rates for it, "
                       "codec.ratio_encode_rate and codec.ratio_decode_rate: give a --cluster "
                       "that has, or --set them beside one",
                       cluster);
}

/* Rates that the chooser goes by, and what to call them. */
static zipccl_status find_rates(const struct zipccl_perf_options *o,
                                const struct zipccl_world *world, struct zipccl_perf_result *result,
                                struct zipccl_cost_params *params, struct zipccl_error *error)
{
    struct zipccl_cluster_file *file = NULL;
    struct zipccl_cluster cluster;
    char folder[4096];

    zipccl_real_world_rates(world, params);
    if (o->cluster == NULL)
        return check_effort(o, params, "(default)", error);
    ZIPCCL_TRY(zipccl_cluster_folder(o->cluster_dir, folder, sizeof folder, error));
    ZIPCCL_TRY(zipccl_cluster_open_with(o->cluster, folder, o->sets, o->nsets, &file, error));
    zipccl_status status = zipccl_cluster_get(file, &cluster, error);
    if (status == ZIPCCL_OK) {
        zipccl_cluster_cost_params(&cluster, params);
        params->gpus_per_node = 0; /* as many as the ranks' topology has */
        snprintf(result->cluster, sizeof result->cluster, "%s", cluster.name);
    }
    zipccl_cluster_close(file);
    return status == ZIPCCL_OK ? check_effort(o, params, result->cluster, error) : status;
}

static const char given[] = "command line or its default";

static zipccl_status note_run(const struct zipccl_perf_options *o, struct zipccl_perf_result *r)
{
    static const char *const averages[] = {"rank 0", "mean", "min", "max"};
    struct zipccl_result_note **to = &r->settings;
    size_t *n = &r->nsettings;

    ZIPCCL_TRY(zipccl_perf_note(to, n, "iters", "", given, "%u", o->iters));
    ZIPCCL_TRY(zipccl_perf_note(to, n, "warmup_iters", "", given, "%u", o->warmup));
    ZIPCCL_TRY(zipccl_perf_note(to, n, "agg_iters", "", given, "%u", o->agg_iters));
    ZIPCCL_TRY(zipccl_perf_note(to, n, "check_iters", "", given, "%u", o->check_iters));
    ZIPCCL_TRY(zipccl_perf_note(to, n, "clock", "", given, "%s",
                                o->cputime ? "processor time" : "wall time"));
    ZIPCCL_TRY(
        zipccl_perf_note(to, n, "average", "", given, "%s of the ranks", averages[o->average]));
    ZIPCCL_TRY(zipccl_perf_note(to, n, "codec_threads", "", given, "%u", o->codec_threads));
    ZIPCCL_TRY(zipccl_perf_note(to, n, "isa", "", "best that the machine runs", "%s",
                                zipccl_isa_name(zipccl_isa_best())));
    ZIPCCL_TRY(zipccl_perf_note(to, n, "strategy", "", given, "%s",
                                o->plan != NULL       ? "of the plan"
                                : o->strategy != NULL ? o->strategy
                                                      : "chosen"));
    if (o->plan != NULL) {
        ZIPCCL_TRY(zipccl_perf_note(to, n, "plan", "", given, "%s", o->plan_path));
        ZIPCCL_TRY(zipccl_perf_note(to, n, "plan_digest", "", "the plan", "%016" PRIx64,
                                    zipccl_plan_digest(o->plan)));
    }
    ZIPCCL_TRY(zipccl_perf_note(to, n, "capacity_class", "", given, "%s",
                                o->capacity_class == ZIPCCL_CLASS_LEARN
                                    ? "learnt"
                                    : zipccl_class_name((int)o->capacity_class)));
    if (o->state.load != NULL)
        ZIPCCL_TRY(zipccl_perf_note(to, n, "state_load", "", given, "%s", o->state.load));
    if (o->modes[ZIPCCL_PERF_ADAPTIVE])
        ZIPCCL_TRY(zipccl_perf_note(to, n, "state_freeze", "", given, "%s",
                                    o->state.freeze ? "yes" : "no"));
    if (o->on == ZIPCCL_ON_NCCL)
        ZIPCCL_TRY(
            zipccl_perf_note(to, n, "gate", "", given, "%s", zipccl_gate_mode_name(o->gate)));
    return zipccl_perf_note(to, n, "timeout", "s", given, "%g", o->timeout_s);
}

static zipccl_status note_machine(struct zipccl_perf_result *r)
{
    static const char source[] = "the system, at the start";
    struct zipccl_result_note **to = &r->settings;
    struct zipccl_machine m;

    zipccl_machine_read(&m);
    ZIPCCL_TRY(zipccl_perf_note(to, &r->nsettings, "machine.cpu", "", source, "%s", m.cpu));
    ZIPCCL_TRY(zipccl_perf_note(to, &r->nsettings, "machine.cores", "", source, "%ld", m.cores));
    ZIPCCL_TRY(zipccl_perf_note(to, &r->nsettings, "machine.load", "", source, "%.2f", m.load));
    return zipccl_perf_note(to, &r->nsettings, "compiler", "", "the build", "%s", m.compiler);
}

static zipccl_status note_rates(const struct zipccl_cost_params *p, struct zipccl_perf_result *r)
{
    const char *source = zipccl_real_world_rates_source(r->cluster[0] != '\0');
    struct zipccl_rate rates[ZIPCCL_NUM_RATES];

    zipccl_real_world_list_rates(p, rates);
    for (size_t i = 0; i < ZIPCCL_NUM_RATES; i++)
        ZIPCCL_TRY(zipccl_perf_note(&r->assumptions, &r->nassumptions, rates[i].name, rates[i].unit,
                                    source, "%.6g", rates[i].value));
    return ZIPCCL_OK;
}

static zipccl_status check_outputs(const struct zipccl_perf_options *o,
                                   struct zipccl_output outputs[ZIPCCL_PERF_NUM_FILES],
                                   struct zipccl_error *error)
{
    const char *const paths[ZIPCCL_PERF_NUM_FILES] = {o->json, o->csv};

    for (int i = 0; i < ZIPCCL_PERF_NUM_FILES; i++) {
        ZIPCCL_TRY(zipccl_output_check(&outputs[i], paths[i], error));
        ZIPCCL_TRY(zipccl_output_spare(&outputs[i],
                                       o->data == ZIPCCL_DATA_FILE ? o->input_path : NULL, error));
        ZIPCCL_TRY(zipccl_output_spare(&outputs[i], o->plan_path, error));
    }
    return zipccl_output_differ(&outputs[ZIPCCL_PERF_JSON], &outputs[ZIPCCL_PERF_CSV], error);
}

static void print_memory(const struct zipccl_world *world, FILE *out)
{
    struct rusage usage;

    if (getrusage(RUSAGE_SELF, &usage) == 0)
        fprintf(out, "# Memory: %.1f MiB at most in rank 0's process, of %u rank%s\n",
                (double)usage.ru_maxrss / 1024, world->nlocal, world->nlocal != 1 ? "s" : "");
}

/* Run on an open world, print and write; '*good' false if something was wrong or too slow. */
static zipccl_status run(const struct zipccl_perf_options *o, struct zipccl_world *world,
                         struct zipccl_perf_result *result, struct zipccl_output *outputs,
                         bool *good, struct zipccl_error *error)
{
    bool speaks = world->first == 0;
    bool standard = outputs[ZIPCCL_PERF_JSON].standard || outputs[ZIPCCL_PERF_CSV].standard;
    FILE *table = !speaks || o->quiet || standard ? NULL : stdout;
    struct zipccl_cost_params params;

    result->measured = true;
    result->on = world->ops->name;
    result->input = o->input;
    ZIPCCL_TRY(find_rates(o, world, result, &params, error));
    if (note_run(o, result) != ZIPCCL_OK || note_machine(result) != ZIPCCL_OK ||
        note_rates(&params, result) != ZIPCCL_OK)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "result: out of memory");
    ZIPCCL_TRY(zipccl_perf_run(o, world, &params, result, table, error));
    if (!speaks)
        return ZIPCCL_OK;
    *good = zipccl_perf_print_tail(o, result, table);
    if (o->memory && table != NULL)
        print_memory(world, table);
    return zipccl_perf_write(result, outputs, error);
}

/* What made the run fail although everything ran. */
static int blame(const char *program, const struct zipccl_perf_result *result)
{
    uint64_t wrong = zipccl_perf_wrong(result);

    if (wrong > 0)
        fprintf(stderr, "%s: perf: %llu elements came out wrong, see #wrong\n", program,
                (unsigned long long)wrong);
    else
        fprintf(stderr, "%s: perf: less bandwidth than NCCL_TESTS_MIN_BW asks for\n", program);
    return ZIPCCL_EXIT_FAILED;
}

int zipccl_perf_command(const char *program, int argc, char **argv)
{
    struct zipccl_output outputs[ZIPCCL_PERF_NUM_FILES] = {{.path = NULL}, {.path = NULL}};
    struct zipccl_perf_result result = {.rows = NULL};
    struct zipccl_perf_options options;
    struct zipccl_plan *plan = NULL;
    struct zipccl_world *world = NULL;
    struct zipccl_error error = {""};
    bool helped, good = true;
    int code = zipccl_perf_parse(program, argc, argv, &options, &helped);

    if (code != ZIPCCL_EXIT_OK || helped)
        return code;
    if (options.on == ZIPCCL_ON_SIM)
        return zipccl_usage_error(program, "perf: --on sim is of zipccl-sim, which 'zipccl perf' "
                                           "runs");
    struct zipccl_real_world wanted = {options.on, options.nthreads, options.ranks_per_node,
                                       options.timeout_s, options.gate};
    zipccl_status status = ZIPCCL_OK;

    if (zipccl_real_world_writes())
        status = check_outputs(&options, outputs, &error);
    if (status == ZIPCCL_OK)
        status = zipccl_state_files_check(&options.state, &error);
    if (status == ZIPCCL_OK && options.plan_path != NULL)
        status = zipccl_perf_plan_open(&options, &plan, &error);
    if (status == ZIPCCL_OK)
        status = zipccl_real_world_open(&wanted, &world, &error);
    if (status == ZIPCCL_OK)
        status = run(&options, world, &result, outputs, &good, &error);
    for (int i = 0; i < ZIPCCL_PERF_NUM_FILES; i++)
        zipccl_output_discard(&outputs[i]);
    if (status != ZIPCCL_OK)
        code = zipccl_print_error(program, status, &error);
    else if (!good)
        code = blame(program, &result);
    zipccl_perf_release(&result);
    zipccl_world_close(world);
    zipccl_plan_destroy(plan);
    return code;
}
