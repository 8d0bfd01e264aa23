/*
 * real_replay_command.c - zipccl-perf replay: a trace's step on real ranks, table and files out
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/replay/real_replay_command.h"

#include "core/codec_mt.h"
#include "experiments/trace/import_print.h"
#include "experiments/ranks/launch.h"
#include "experiments/program/machine.h"
#include "experiments/program/open_cluster.h"
#include "experiments/program/output.h"
#include "experiments/program/program.h"
#include "experiments/replay/real_replay.h"
#include "experiments/replay/real_world.h"
#include "experiments/replay/replay_input.h"
#include "experiments/report/report.h"
#include "experiments/trace/spare_trace.h"
#include "models/units.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_SETS = 64,
    MAX_MAPS = 16,
    KEY_ON = 256,
    KEY_GAPS,
    KEY_GAP_SCALE,
    KEY_CLASS,
    KEY_CLUSTER,
    KEY_CLUSTER_DIR,
    KEY_THREADS,
    KEY_RANKS_PER_NODE,
    KEY_RANKS,
    KEY_MAP,
    KEY_CSV,
    KEY_SUMMARY,
    KEY_HTML,
    KEY_PERFETTO,
    KEY_STATE_LOAD,
    KEY_STATE_SAVE,
    KEY_STATE_FREEZE
};
enum { FILE_JSON, FILE_CSV, NUM_FILES };

struct options {
    const char *program; /* begins each error */
    const char *trace, *cluster, *cluster_dir, *sets[MAX_SETS];
    size_t nsets;
    const char *map[MAX_MAPS];
    size_t nmap;
    uint32_t nranks; /* that the trace is taken to; 0: those it has */
    const char *files[NUM_FILES];
    bool quiet, summary;
    struct zipccl_real_world world;
    struct zipccl_real_replay_options replay;
};

static const struct argp_option option_table[] = {
    {NULL, 0, NULL, 0, "Ranks, as many as the trace has:", 1},
    {"on", KEY_ON, "KIND", 0,
     "threads (of this process), mpi (processes of mpirun, or of srun --mpi=pmix; torchrun "
     "brings up no MPI and is refused) or nccl (GPUs: processes of any launcher, or threads of "
     "this "
     "one, a rank a GPU; not run on a GPU yet); without it replay simulates",
     1},
    {"nthreads", 't', "N", 0, "threads (default: the trace's ranks)", 1},
    {"ranks", KEY_RANKS, "N", 0,
     "take the trace to N ranks first, a multiple or a divisor of those it has, along data "
     "parallelism; of a file to import: ranks of the world, where it does not say",
     1},
    {"map", KEY_MAP, "GROUP=SIZE", 0,
     "instead: members of a group of the trace, as 'trace rescale' does; may repeat", 1},
    {"ranks-per-node", KEY_RANKS_PER_NODE, "N", 0,
     "take N ranks after each other for one node (default: threads as the trace says, processes as "
     "their hosts)",
     1},
    {"threads", KEY_THREADS, "N", 0, "threads that each communicator codes with (default 1)", 1},
    {"timeout", 'T', "SECONDS", 0,
     "longest that a call may wait for another rank (default 60; 0: no limit); a rank's own work "
     "does not count",
     1},
    {NULL, 0, NULL, 0, "What is run:", 2},
    {"mode", 'm', "MODE", 0,
     "raw, compressed, adaptive or all (default); speedups are over raw, so compressed and "
     "adaptive "
     "run raw too",
     2},
    {"gaps", KEY_GAPS, "HOW", 0,
     "while the trace computes: sleep (default), busy (a processor works as long) or skip", 2},
    {"gap-scale", KEY_GAP_SCALE, "X", 0, "times what compute takes (default 1)", 2},
    {"iters", 'n', "N", 0, "steps of each mode, taking turns (default 5); rows are of the median",
     2},
    {"warmup_iters", 'w', "N", 0, "steps before these (default 1)", 2},
    {"check", 'c', "0|1", 0, "compare every element of one more step of each mode (default 1)", 2},
    {"class", KEY_CLASS, "CLASS", 0,
     "capacity of messages of fixed size: learn (default), wide, loose, medium, tight or settled, "
     "or "
     "one after those: wide-1 to -8, loose-1 and -2, medium-1, tight-1, settled-1 to -16",
     2},
    {"cluster", KEY_CLUSTER, "NAME|FILE", 0,
     "how long work takes that the trace gives in flops, and the chooser's rates", 2},
    {"set", 's', "KEY=VALUE", 0, "override a key of the cluster; may repeat", 2},
    {"cluster-dir", KEY_CLUSTER_DIR, "DIR", 0, "where named clusters are looked for", 2},
    {"state-load", KEY_STATE_LOAD, "DIR", 0,
     "mode adaptive begins with what a replay of this trace with the same settings has saved in "
     "DIR",
     2},
    {"state-save", KEY_STATE_SAVE, "DIR", 0,
     "save what mode adaptive has learnt at the end, a file for each communicator of each rank "
     "(core/STATE.md); DIR is made if it is not there",
     2},
    {"state-freeze", KEY_STATE_FREEZE, NULL, 0,
     "mode adaptive learns nothing in this run: plans follow from the rates, and from "
     "--state-load",
     2},
    {NULL, 0, NULL, 0, "What to write:", 3},
    {"json", 'J', "FILE", 0,
     "the result as JSON, schema zipccl.replay; '-' for one of these files is standard output, "
     "where the table then is left out",
     3},
    {"csv", KEY_CSV, "FILE", 0, "the rows as CSV", 3},
    {"summary", KEY_SUMMARY, NULL, 0, "print the summary lines only", 3},
    {"quiet", 'q', NULL, 0, "print no table", 3},
    {"html", KEY_HTML, "FILE", OPTION_HIDDEN, NULL, 3},
    {"perfetto", KEY_PERFETTO, "FILE", OPTION_HIDDEN, NULL, 3},
    {0}};

static const char doc[] =
    "Run the step of a training trace on real ranks: its collectives, of its captured tensors, "
    "with "
    "its compute slept or spun; raw, always compressed and adaptive, in turns."
    "\vExamples:\n"
    "  zipccl replay traces/samples/moe4 --on threads --cluster laptop\n"
    "  zipccl replay traces/samples/moe4 --on threads --gaps skip -n 9 --class settled\n"
    "  mpirun --oversubscribe -np 4 zipccl replay traces/samples/moe4 --on mpi --cluster laptop -J "
    "moe4.json\n\n"
    "The result has the form of a simulated one, kind \"measured\", so two files compare row by "
    "row. 'zipccl replay --help' is of the simulation.\n\n"
    "Exit code: 0 done, 1 wrong elements or a failure, 2 wrong input or usage. A result file "
    "appears "
    "whole or not at all.";

static int refuse_simulated(const struct options *options, const char *name)
{
    zipccl_usage_error(options->program,
                       "replay: %s is for simulations, of replays without --on; a real one writes "
                       "-J and --csv",
                       name);
    return -1;
}

static int set_mode(struct options *options, const char *text)
{
    static const char *const names[] = {"raw", "compressed", "adaptive", "all", NULL};

    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(text, names[i]) == 0) {
            options->replay.modes[ZIPCCL_STEP_RAW] = true;
            options->replay.modes[ZIPCCL_STEP_COMPRESSED] = i == 1 || i == 3;
            options->replay.modes[ZIPCCL_STEP_ADAPTIVE] = i >= 2;
            return 0;
        }
    zipccl_usage_error(options->program,
                       "replay: --mode '%s': expected raw, compressed, adaptive or all", text);
    return -1;
}

static int set_on(struct options *options, const char *text)
{
    static const struct {
        const char *name;
        enum zipccl_perf_on on;
    } kinds[] = {{"threads", ZIPCCL_ON_THREADS}, {"mpi", ZIPCCL_ON_MPI}, {"nccl", ZIPCCL_ON_NCCL}};

    for (int i = 0; i < 3; i++)
        if (strcmp(text, kinds[i].name) == 0) {
            options->world.on = kinds[i].on;
            return 0;
        }
    zipccl_usage_error(options->program, "replay: --on '%s': expected threads, mpi or nccl", text);
    return -1;
}

static int set_gaps(struct options *options, const char *text)
{
    static const char *const names[] = {"sleep", "busy", "skip"};

    for (int i = 0; i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            options->replay.gaps = (enum zipccl_gaps)i;
            return 0;
        }
    zipccl_usage_error(options->program, "replay: --gaps '%s': expected sleep, busy or skip", text);
    return -1;
}

static int set_number(const struct options *options, const char *option, const char *text,
                      enum zipccl_unit unit, double min, double max, double *out)
{
    struct zipccl_error error = {""};

    if (zipccl_parse_quantity(text, unit, min, max, out, &error) == ZIPCCL_OK)
        return 0;
    zipccl_usage_error(options->program, "replay: %s: %s", option, error.text);
    return -1;
}

static int set_whole(const struct options *options, const char *option, const char *text,
                     double min, double max, uint32_t *out)
{
    double number = 0;
    int failed = set_number(options, option, text, ZIPCCL_UNIT_COUNT, min, max, &number);

    *out = (uint32_t)number;
    return failed;
}

static int set_class(struct options *options, const char *text)
{
    options->replay.capacity_class = ZIPCCL_CLASS_LEARN;
    for (int c = 0; c < ZIPCCL_NUM_CLASSES; c++)
        if (strcmp(text, zipccl_class_name(c)) == 0)
            options->replay.capacity_class = (uint32_t)c;
    if (options->replay.capacity_class != ZIPCCL_CLASS_LEARN || strcmp(text, "learn") == 0)
        return 0;
    zipccl_usage_error(
        options->program,
        "replay: --class '%s': expected learn, wide, loose, medium, tight or settled, or one after "
        "those, as in tight-1",
        text);
    return -1;
}

static int set_check(struct options *options, const char *text)
{
    if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0) {
        zipccl_usage_error(options->program, "replay: -c '%s': expected 0 or 1", text);
        return -1;
    }
    options->replay.check = text[0] == '1';
    return 0;
}

static int set_once(const struct options *options, const char **slot, const char *option,
                    const char *text)
{
    if (*slot != NULL) {
        zipccl_usage_error(options->program, "replay: %s is given twice", option);
        return -1;
    }
    *slot = text;
    return 0;
}

static int add_set(struct options *options, const char *text)
{
    if (options->nsets == MAX_SETS) {
        zipccl_usage_error(options->program, "replay: more than %d --set options", MAX_SETS);
        return -1;
    }
    options->sets[options->nsets++] = text;
    return 0;
}

static int add_map(struct options *options, const char *text)
{
    if (options->nmap == MAX_MAPS) {
        zipccl_usage_error(options->program, "replay: more than %d --map options", MAX_MAPS);
        return -1;
    }
    options->map[options->nmap++] = text;
    return 0;
}

static int set_trace(struct options *options, const char *text)
{
    if (options->trace == NULL) {
        options->trace = text;
        return 0;
    }
    zipccl_usage_error(options->program, "replay: on real ranks one trace at a time");
    return -1;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;
    uint32_t number = 0;
    int failed = 0;

    switch (key) {
    case KEY_ON: failed = set_on(o, arg); break;
    case 't': failed = set_whole(o, "-t", arg, 1, 1024, &o->world.nthreads); break;
    case KEY_MAP: failed = add_map(o, arg); break;
    case KEY_RANKS: failed = set_whole(o, "--ranks", arg, 1, 1u << 20, &o->nranks); break;
    case KEY_RANKS_PER_NODE:
        failed = set_whole(o, "--ranks-per-node", arg, 1, 65535, &o->world.ranks_per_node);
        break;
    case KEY_THREADS:
        failed = set_whole(o, "--threads", arg, 1, ZIPCCL_MAX_THREADS, &o->replay.codec_threads);
        break;
    case 'T':
        failed = set_whole(o, "-T", arg, 0, 86400, &number);
        o->world.timeout_s = number;
        break;
    case 'm': failed = set_mode(o, arg); break;
    case KEY_GAPS: failed = set_gaps(o, arg); break;
    case KEY_GAP_SCALE:
        failed = set_number(o, "--gap-scale", arg, ZIPCCL_UNIT_NONE, 0, 1e6, &o->replay.gap_scale);
        break;
    case 'n': failed = set_whole(o, "-n", arg, 1, 100000, &o->replay.steps); break;
    case 'w': failed = set_whole(o, "-w", arg, 0, 100000, &o->replay.warmup); break;
    case 'c': failed = set_check(o, arg); break;
    case KEY_CLASS: failed = set_class(o, arg); break;
    case KEY_CLUSTER: failed = set_once(o, &o->cluster, "--cluster", arg); break;
    case 's': failed = add_set(o, arg); break;
    case KEY_CLUSTER_DIR: failed = set_once(o, &o->cluster_dir, "--cluster-dir", arg); break;
    case KEY_STATE_LOAD: failed = set_once(o, &o->replay.state.load, "--state-load", arg); break;
    case KEY_STATE_SAVE: failed = set_once(o, &o->replay.state.save, "--state-save", arg); break;
    case KEY_STATE_FREEZE: o->replay.state.freeze = true; break;
    case 'J': failed = set_once(o, &o->files[FILE_JSON], "-J", arg); break;
    case KEY_CSV: failed = set_once(o, &o->files[FILE_CSV], "--csv", arg); break;
    case KEY_SUMMARY: o->summary = true; break;
    case 'q': o->quiet = true; break;
    case KEY_HTML: failed = refuse_simulated(o, "--html"); break;
    case KEY_PERFETTO: failed = refuse_simulated(o, "--perfetto"); break;
    case ARGP_KEY_ARG: failed = set_trace(o, arg); break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return failed != 0 ? ECANCELED : 0;
}

static int check_state(const struct options *options)
{
    const struct zipccl_real_replay_options *o = &options->replay;
    const char *option = o->state.load != NULL   ? "load"
                         : o->state.save != NULL ? "save"
                         : o->state.freeze       ? "freeze"
                                                 : NULL;

    if (option == NULL)
        return ZIPCCL_EXIT_OK;
    if (!o->modes[ZIPCCL_STEP_ADAPTIVE])
        return zipccl_usage_error(
            options->program, "replay: --state-%s is of --mode adaptive, which is not run", option);
    if (o->capacity_class != ZIPCCL_CLASS_LEARN)
        return zipccl_usage_error(options->program,
                                  "replay: --state-%s: with --class %s nothing is learnt", option,
                                  zipccl_class_name((int)o->capacity_class));
    if (o->state.save != NULL && o->state.freeze)
        return zipccl_usage_error(options->program,
                                  "replay: with --state-freeze nothing is learnt that "
                                  "--state-save could save");
    return ZIPCCL_EXIT_OK;
}

static int check_options(const struct options *options)
{
    if (options->trace == NULL)
        return zipccl_usage_error(options->program, "replay: no trace given; --help shows how");
    if (options->cluster == NULL && (options->nsets > 0 || options->cluster_dir != NULL))
        return zipccl_usage_error(options->program,
                                  "replay: --set and --cluster-dir are of a --cluster");
    if (options->quiet && options->summary)
        return zipccl_usage_error(options->program,
                                  "replay: --quiet and --summary exclude each other");
    return check_state(options);
}

static zipccl_status open_cluster(const struct options *options, struct zipccl_cluster_file **out,
                                  struct zipccl_error *error)
{
    char folder[4096];

    if (options->cluster == NULL)
        return ZIPCCL_OK;
    ZIPCCL_TRY(zipccl_cluster_folder(options->cluster_dir, folder, sizeof folder, error));
    return zipccl_cluster_open_with(options->cluster, folder, options->sets, options->nsets, out,
                                    error);
}

static zipccl_status check_outputs(const struct options *options,
                                   const struct zipccl_cluster_file *cluster,
                                   struct zipccl_output *outputs, struct zipccl_error *error)
{
    for (int i = 0; i < NUM_FILES; i++) {
        ZIPCCL_TRY(zipccl_output_check(&outputs[i], options->files[i], error));
        ZIPCCL_TRY(zipccl_output_spare(
            &outputs[i], cluster != NULL ? zipccl_cluster_path(cluster) : NULL, error));
        ZIPCCL_TRY(zipccl_output_spare_trace(&outputs[i], options->trace, error));
    }
    return zipccl_output_differ(&outputs[FILE_JSON], &outputs[FILE_CSV], error);
}

static zipccl_status write_files(const struct zipccl_replay_result *result,
                                 struct zipccl_output *outputs, struct zipccl_error *error)
{
    for (int i = 0; i < NUM_FILES; i++) {
        ZIPCCL_TRY(zipccl_output_open(&outputs[i], error));
        if (outputs[i].file != NULL)
            ZIPCCL_TRY(zipccl_output_told(&outputs[i],
                                          i == FILE_JSON
                                              ? zipccl_report_json(result, outputs[i].file, error)
                                              : zipccl_report_csv(result, outputs[i].file, error),
                                          error));
        ZIPCCL_TRY(zipccl_output_close(&outputs[i], error));
    }
    for (int i = 0; i < NUM_FILES; i++)
        ZIPCCL_TRY(zipccl_output_commit(&outputs[i], error));
    return ZIPCCL_OK;
}

/* Where it ran, for people. */
static void describe(const struct options *options, const struct zipccl_world *world,
                     const struct zipccl_cluster *cluster, struct zipccl_replay_result *result)
{
    static const char *const names[] = {[ZIPCCL_WORLD_THREADS] = "threads",
                                        [ZIPCCL_WORLD_MPI] = "MPI processes",
                                        [ZIPCCL_WORLD_NCCL] = "GPUs over NCCL"};
    struct zipccl_machine machine;
    uint32_t nodes = result->nodes;

    zipccl_machine_read(&machine);
    snprintf(result->cluster_name, sizeof result->cluster_name, "%s",
             cluster != NULL ? cluster->name : world->ops->name);
    snprintf(result->cluster_line, sizeof result->cluster_line,
             "%u ranks as %s on %u node%s%s; rank 0's machine: %.100s, %ld cores, load %.1f",
             result->nranks, names[world->kind], nodes, nodes != 1 ? "s" : "",
             options->world.ranks_per_node > 0 ? " (pretended)" : "", machine.cpu, machine.cores,
             machine.load);
    snprintf(result->codec_line, sizeof result->codec_line, "%s row, %u thread%s a communicator",
             zipccl_isa_name(zipccl_isa_best()), options->replay.codec_threads,
             options->replay.codec_threads != 1 ? "s" : "");
}

static void print_result(const struct options *options, const struct zipccl_replay_input *input,
                         const struct zipccl_replay_result *result,
                         const struct zipccl_output *outputs)
{
    if (options->quiet || outputs[FILE_JSON].standard || outputs[FILE_CSV].standard)
        return;
    if (input->imported) {
        zipccl_import_print(&input->report, stdout);
        putchar('\n');
    }
    zipccl_report_table(result, options->summary, stdout);
    if (outputs[FILE_JSON].path != NULL)
        printf(" wrote %s (JSON, schema zipccl.replay)\n", outputs[FILE_JSON].path);
    if (outputs[FILE_CSV].path != NULL)
        printf(" wrote %s (rows as CSV)\n", outputs[FILE_CSV].path);
}

/* Replay on an open world; rank 0's process prints and writes. */
static zipccl_status replay(struct options *options, const struct zipccl_replay_input *input,
                            const struct zipccl_cluster_file *file, struct zipccl_world *world,
                            struct zipccl_output *outputs, uint64_t *wrong,
                            struct zipccl_error *error)
{
    struct zipccl_replay_result *result = NULL;
    struct zipccl_cost_params params;
    struct zipccl_cluster cluster;
    zipccl_status status;

    zipccl_real_world_rates(world, &params);
    options->replay.params = &params;
    if (file != NULL) {
        ZIPCCL_TRY(zipccl_cluster_get(file, &cluster, error));
        zipccl_cluster_cost_params(&cluster, &params);
        params.gpus_per_node = 0; /* as many as the ranks' topology has */
        options->replay.cluster = &cluster;
    }
    status = zipccl_real_replay(input->trace, &options->replay, world, &result, wrong, error);
    if (status != ZIPCCL_OK || result == NULL)
        return status;
    describe(options, world, options->replay.cluster, result);
    status = zipccl_replay_input_note(input, result, error);
    if (status == ZIPCCL_OK)
        status = write_files(result, outputs, error);
    if (status == ZIPCCL_OK)
        print_result(options, input, result, outputs);
    zipccl_replay_result_destroy(result);
    return status;
}

/* Threads are as many as the trace has ranks, on its nodes, unless told otherwise. */
static void take_from_trace(struct options *options, const struct zipccl_trace *trace)
{
    struct zipccl_launch launch;
    struct zipccl_error error;

    if (options->world.on != ZIPCCL_ON_THREADS && options->world.on != ZIPCCL_ON_NCCL)
        return;
    /* Ranks of NCCL are a launcher's processes if there is one. */
    if (options->world.on == ZIPCCL_ON_NCCL &&
        (zipccl_launch_from_environment(&launch, &error) != ZIPCCL_OK || launch.launcher != NULL))
        return;
    if (options->world.nthreads == 0)
        options->world.nthreads = trace->header.nranks;
    if (options->world.ranks_per_node == 0)
        options->world.ranks_per_node = trace->header.ranks_per_node;
}

static int run(struct options *options)
{
    struct zipccl_output outputs[NUM_FILES] = {{.path = NULL}, {.path = NULL}};
    struct zipccl_import_options import;
    struct zipccl_cluster_file *cluster = NULL;
    struct zipccl_replay_input input = {.trace = NULL};
    struct zipccl_world *world = NULL;
    struct zipccl_error error = {""};
    uint64_t wrong = 0;
    zipccl_status status = open_cluster(options, &cluster, &error);

    zipccl_import_options_init(&import);
    import.nranks = options->nranks;
    if (status == ZIPCCL_OK && zipccl_real_world_writes())
        status = check_outputs(options, cluster, outputs, &error);
    if (status == ZIPCCL_OK)
        status = zipccl_state_files_check(&options->replay.state, &error);
    if (status == ZIPCCL_OK)
        status = zipccl_replay_input_load(&options->trace, 1, &import, options->map, options->nmap,
                                          0, &input, &error);
    if (status == ZIPCCL_OK) {
        take_from_trace(options, input.trace);
        status = zipccl_real_world_open(&options->world, &world, &error);
    }
    if (status == ZIPCCL_OK)
        status = replay(options, &input, cluster, world, outputs, &wrong, &error);
    for (int i = 0; i < NUM_FILES; i++)
        zipccl_output_discard(&outputs[i]);
    zipccl_replay_input_release(&input);
    zipccl_cluster_close(cluster);
    int code = ZIPCCL_EXIT_OK;
    if (status != ZIPCCL_OK)
        code = zipccl_print_error(options->program, status, &error);
    else if (wrong > 0) {
        fprintf(stderr, "%s: replay: %" PRIu64 " elements came out wrong\n", options->program,
                wrong);
        code = ZIPCCL_EXIT_FAILED;
    }
    zipccl_world_close(world);
    return code;
}

int zipccl_real_replay_command(const char *program, int argc, char **argv)
{
    static const struct argp argp = {option_table, parse_option, "TRACE", doc, NULL, NULL, NULL};
    struct options *options = calloc(1, sizeof *options);
    bool helped;

    if (options == NULL)
        return ZIPCCL_EXIT_FAILED;
    options->program = program;
    options->world.timeout_s = 60;
    options->replay = (struct zipccl_real_replay_options){.gap_scale = 1,
                                                          .steps = 5,
                                                          .warmup = 1,
                                                          .check = true,
                                                          .codec_threads = 1,
                                                          .capacity_class = ZIPCCL_CLASS_LEARN};
    set_mode(options, "all");
    int code = zipccl_parse_options(&argp, argc, argv, program, "zipccl replay", options, &helped);
    if (code == ZIPCCL_EXIT_OK && !helped)
        code = check_options(options);
    if (code == ZIPCCL_EXIT_OK && !helped)
        code = run(options);
    free(options);
    return code;
}
