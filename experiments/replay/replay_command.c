/*
 * replay_command.c - zipccl-sim replay: options in, table and result files out
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/replay/replay_command.h"

#include "analysis/report_html.h"
#include "experiments/trace/import_options.h"
#include "experiments/trace/foreign.h"
#include "experiments/trace/import_print.h"
#include "experiments/program/open_cluster.h"
#include "experiments/program/output.h"
#include "experiments/program/program.h"
#include "experiments/program/progress.h"
#include "experiments/replay/replay_input.h"
#include "experiments/replay/replay_interval.h"
#include "experiments/report/report.h"
#include "experiments/trace/spare_trace.h"
#include "models/units.h"
#include "sim/replay.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    MAX_TRACES = 4096, /* files of the ranks of a step among them */
    MAX_SETS = 64,
    MAX_MAPS = 16,
    KEY_CSV = 256,
    KEY_HTML,
    KEY_PERFETTO,
    KEY_PERFETTO_MODE,
    KEY_PERFETTO_RANKS,
    KEY_SUMMARY,
    KEY_CLUSTER_DIR,
    KEY_MAP,
    KEY_BASELINE,
    KEY_STEPS_ONLY
};
enum { FILE_JSON, FILE_CSV, FILE_HTML, FILE_PERFETTO, NUM_FILES };

struct options {
    const char *program; /* begins each error */
    const char *traces[MAX_TRACES], *sets[MAX_SETS], *maps[MAX_MAPS];
    size_t ntraces, nsets, nmaps;
    const char *cluster, *cluster_dir;
    const char *files[NUM_FILES];
    bool quiet, summary, steps_only;
    bool joined;                        /* 'traces' are the ranks of one step */
    bool perfetto_mode, perfetto_ranks; /* given */
    struct zipccl_replay_options replay;
    struct zipccl_import_options import;
};

static const struct argp_option option_table[] = {
    {NULL, 0, NULL, 0, "What to replay:", 1},
    {"cluster", 'c', "NAME|FILE", 0, "bundled cluster ('zipccl cluster list') or a YAML file", 1},
    {"set", 's', "KEY=VALUE", 0,
     "override a key of the cluster, such as nic.rate=800Gbps; may repeat", 1},
    {"cluster-dir", KEY_CLUSTER_DIR, "DIR", 0, "where named clusters are looked for", 1},
    {NULL, 0, NULL, 0, "How:", 2},
    {"map", KEY_MAP, "GROUP=SIZE", 0,
     "take the trace to other ranks first: members of a group there, as 'trace rescale' does; may "
     "repeat",
     2},
    {"mode", 'm', "MODE", 0,
     "raw, compressed, adaptive or all (default). Speedups are over raw, so compressed and "
     "adaptive "
     "run raw too; sensitivities and break-evens need adaptive",
     2},
    {"baseline", KEY_BASELINE, "best|native", 0,
     "what raw is: the best uncompressed plan of each call (default), or NCCL's own algorithms "
     "alone; adaptive chooses from all plans either way",
     2},
    {"fidelity", 'f', "TIER", 0,
     "t1: flows in SimGrid (default); t0: closed form; t2: every message of every rank, slow, "
     "without sensitivities and break-evens",
     2},
    {"steps-only", KEY_STEPS_ONLY, NULL, 0,
     "leave out sensitivities and break-evens, which take most of the time", 2},
    {"ratio", 'r', "X", 0,
     "assume this compression ratio, 1 to 2, instead of running the codec on the trace's samples",
     2},
    {"jobs", 'j', "N", 0, "simulations at once (default: one per core)", 2},
    {NULL, 0, NULL, 0, "What to write:", 3},
    {"json", 'J', "FILE", 0,
     "the result as JSON, schema zipccl.replay; '-' for one of these files is standard output, "
     "where the table then is left out",
     3},
    {"csv", KEY_CSV, "FILE", 0, "the rows as CSV", 3},
    {"html", KEY_HTML, "FILE", 0, "one self-contained page: picture, table, settings, assumptions",
     3},
    {"perfetto", KEY_PERFETTO, "FILE", 0,
     "the step as Chrome trace events for ui.perfetto.dev: a process a rank, a thread a stream; "
     "gzip if FILE ends in .gz",
     3},
    {"perfetto-mode", KEY_PERFETTO_MODE, "MODE", 0,
     "raw, compressed or adaptive (default: the last of these that is run)", 3},
    {"perfetto-ranks", KEY_PERFETTO_RANKS, "N|all", 0,
     "if there are more than N ranks (default 64), show the first of each node, or of every k-th "
     "so that they are at most N",
     3},
    {"summary", KEY_SUMMARY, NULL, 0, "print the summary lines only", 3},
    {"quiet", 'q', NULL, 0, "print no table and no progress", 3},
    {NULL, 0, NULL, 0, "If the file is of another tool, what it does not say:", 4},
    ZIPCCL_IMPORT_OPTIONS(4),
    {0}};

static const char doc[] =
    "Replay a training trace on a simulated cluster: the time of each collective and of the whole "
    "step, raw (best uncompressed plan), always compressed, and adaptive."
    "\vExamples:\n"
    "  zipccl replay traces/samples/moe64 --cluster a100-8x8-200g\n"
    "  zipccl replay traces/samples/moe64 --cluster h100-8x8-400g --html moe64.html\n"
    "  zipccl replay traces/samples/moe64 --cluster a100-8x8-200g --perfetto step.json.gz\n"
    "  zipccl replay my.jsonl.gz --cluster my.yaml --set nic.rate=800Gbps\n"
    "  zipccl replay workload.txt --cluster a100-8x8-200g --set nodes=16\n"
    "  zipccl replay rank0.pt.trace.json.gz --cluster a100-8x8-200g --set nodes=1\n"
    "  zipccl replay folder_of_profiler_files --cluster h100-8x8-400g\n\n"
    "A trace is a .jsonl or .jsonl.gz file, or a folder that holds trace.jsonl[.gz]. A file of "
    "another tool ('zipccl trace import --help' lists formats), or a folder with the profiler's "
    "file of each rank, is imported first, and what had to be assumed is printed. Files of the "
    "ranks of a step, given by name, are one step if they stand in one folder. Other traces are "
    "replayed one after the other; -J, --csv, --html and --perfetto then are refused, since each "
    "file holds one result.\n\n"
    "Exit code: 0 done, 1 internal failure, 2 wrong input or usage. A result file appears whole or "
    "not at all.";

static int set_mode(struct options *options, const char *text)
{
    static const char *const names[] = {"raw", "compressed", "adaptive", "all", NULL};
    struct zipccl_replay_options *replay = &options->replay;

    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(text, names[i]) == 0) {
            replay->raw = true;
            replay->compressed = i == 1 || i == 3;
            replay->adaptive = i >= 2;
            replay->sensitivities = i >= 2;
            return 0;
        }
    zipccl_usage_error(options->program, "--mode '%s': expected raw, compressed, adaptive or all",
                       text);
    return -1;
}

static int set_baseline(struct options *options, const char *text)
{
    options->replay.native = strcmp(text, "native") == 0;
    if (options->replay.native || strcmp(text, "best") == 0)
        return 0;
    zipccl_usage_error(options->program, "--baseline '%s': expected best or native", text);
    return -1;
}

static int set_perfetto_mode(struct options *options, const char *text)
{
    for (int i = 0; i < ZIPCCL_NUM_STEPS; i++)
        if (strcmp(text, zipccl_step_names[i]) == 0) {
            options->replay.timeline_mode = i;
            options->perfetto_mode = true;
            return 0;
        }
    zipccl_usage_error(options->program,
                       "--perfetto-mode '%s': expected raw, compressed or adaptive", text);
    return -1;
}

static int set_fidelity(struct options *options, const char *text)
{
    if (strcmp(text, "t0") == 0 || strcmp(text, "T0") == 0)
        options->replay.fidelity = ZIPCCL_FIDELITY_T0;
    else if (strcmp(text, "t1") == 0 || strcmp(text, "T1") == 0)
        options->replay.fidelity = ZIPCCL_FIDELITY_T1;
    else if (strcmp(text, "t2") == 0 || strcmp(text, "T2") == 0)
        options->replay.fidelity = ZIPCCL_FIDELITY_T2;
    else {
        zipccl_usage_error(options->program, "--fidelity '%s': expected t0, t1 or t2", text);
        return -1;
    }
    return 0;
}

static int set_number(const struct options *options, const char *option, const char *text,
                      enum zipccl_unit unit, double min, double max, double *out)
{
    struct zipccl_error error = {""};

    if (zipccl_parse_quantity(text, unit, min, max, out, &error) == ZIPCCL_OK)
        return 0;
    zipccl_usage_error(options->program, "%s: %s", option, error.text);
    return -1;
}

static int set_perfetto_ranks(struct options *options, const char *text)
{
    double number = UINT32_MAX;
    int failed = 0;

    if (strcmp(text, "all") != 0)
        failed =
            set_number(options, "--perfetto-ranks", text, ZIPCCL_UNIT_COUNT, 1, 1 << 20, &number);
    options->replay.timeline_ranks = (uint32_t)number;
    options->perfetto_ranks = true;
    return failed;
}

static int add_word(const struct options *options, const char **list, size_t *n, size_t max,
                    const char *word, const char *what)
{
    if (*n >= max) {
        zipccl_usage_error(options->program, "more than %zu %s", max, what);
        return -1;
    }
    list[(*n)++] = word;
    return 0;
}

static int set_once(const struct options *options, const char **slot, const char *option,
                    const char *text)
{
    if (*slot != NULL) {
        zipccl_usage_error(options->program, "%s is given twice", option);
        return -1;
    }
    *slot = text;
    return 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    double number = 0;
    int failed = 0;

    switch (key) {
    case 'c': failed = set_once(options, &options->cluster, "--cluster", arg); break;
    case 's':
        failed = add_word(options, options->sets, &options->nsets, MAX_SETS, arg, "--set options");
        break;
    case KEY_CLUSTER_DIR:
        failed = set_once(options, &options->cluster_dir, "--cluster-dir", arg);
        break;
    case 'm': failed = set_mode(options, arg); break;
    case 'f': failed = set_fidelity(options, arg); break;
    case 'r':
        failed =
            set_number(options, "--ratio", arg, ZIPCCL_UNIT_NONE, 1, 2, &options->replay.ratio);
        break;
    case 'j':
        failed = set_number(options, "--jobs", arg, ZIPCCL_UNIT_COUNT, 1, 1024, &number);
        options->replay.nprocs = (uint32_t)number;
        break;
    case 'J': failed = set_once(options, &options->files[FILE_JSON], "-J", arg); break;
    case KEY_CSV: failed = set_once(options, &options->files[FILE_CSV], "--csv", arg); break;
    case KEY_HTML: failed = set_once(options, &options->files[FILE_HTML], "--html", arg); break;
    case KEY_PERFETTO:
        failed = set_once(options, &options->files[FILE_PERFETTO], "--perfetto", arg);
        break;
    case KEY_PERFETTO_MODE: failed = set_perfetto_mode(options, arg); break;
    case KEY_PERFETTO_RANKS: failed = set_perfetto_ranks(options, arg); break;
    case KEY_STEPS_ONLY: options->steps_only = true; break;
    case KEY_BASELINE: failed = set_baseline(options, arg); break;
    case KEY_MAP:
        failed = add_word(options, options->maps, &options->nmaps, MAX_MAPS, arg, "--map options");
        break;
    case KEY_SUMMARY: options->summary = true; break;
    case 'q': options->quiet = true; break;
    case ARGP_KEY_ARG:
        failed = add_word(options, options->traces, &options->ntraces, MAX_TRACES, arg, "traces");
        break;
    default: return zipccl_import_option(options->program, key, arg, &options->import);
    }
    return failed != 0 ? ECANCELED : 0;
}

/* The timeline shows what a person would run, unless a mode is named. */
static int check_perfetto(struct options *options)
{
    struct zipccl_replay_options *replay = &options->replay;
    bool runs[ZIPCCL_NUM_STEPS] = {replay->raw, replay->compressed, replay->adaptive};

    replay->timeline = options->files[FILE_PERFETTO] != NULL;
    if (!replay->timeline && (options->perfetto_mode || options->perfetto_ranks))
        return zipccl_usage_error(options->program, "replay: --perfetto-%s without --perfetto FILE",
                                  options->perfetto_mode ? "mode" : "ranks");
    if (options->perfetto_mode && !runs[replay->timeline_mode])
        return zipccl_usage_error(options->program,
                                  "replay: --perfetto-mode %s, which --mode does not run",
                                  zipccl_step_names[replay->timeline_mode]);
    while (!runs[replay->timeline_mode])
        replay->timeline_mode--;
    return ZIPCCL_EXIT_OK;
}

static int check_options(struct options *options)
{
    bool files = false;

    for (int i = 0; i < NUM_FILES; i++)
        files = files || options->files[i] != NULL;
    if (options->steps_only)
        options->replay.sensitivities = false;
    if (options->ntraces == 0)
        return zipccl_usage_error(options->program, "replay: no trace given; --help shows how");
    if (options->cluster == NULL)
        return zipccl_usage_error(options->program,
                                  "replay: no --cluster given; 'zipccl cluster list' names some");
    options->joined = zipccl_foreign_joins(options->traces, options->ntraces);
    if (options->ntraces > 1 && !options->joined && files)
        return zipccl_usage_error(
            options->program,
            "replay: -J, --csv, --html and --perfetto hold one result: give one trace at a time");
    if (options->quiet && options->summary)
        return zipccl_usage_error(options->program,
                                  "replay: --quiet and --summary exclude each other");
    return check_perfetto(options);
}

static zipccl_status open_cluster(const struct options *options, struct zipccl_cluster_file **out,
                                  struct zipccl_error *error)
{
    char folder[4096];

    ZIPCCL_TRY(zipccl_cluster_folder(options->cluster_dir, folder, sizeof folder, error));
    return zipccl_cluster_open_with(options->cluster, folder, options->sets, options->nsets, out,
                                    error);
}

/* What is imported from a folder is an input as well; a result of before in it is not. */
static zipccl_status spare_imported(const struct zipccl_output *output, const char *path,
                                    struct zipccl_error *error)
{
    char format[ZIPCCL_IMPORT_NAME_SIZE], **files;
    zipccl_status status = ZIPCCL_OK;
    size_t n;

    zipccl_import_files(path, &files, &n, NULL); /* who reads it tells what fails */
    for (size_t i = 0; i < n && status == ZIPCCL_OK; i++)
        if (zipccl_output_is(output, files[i]) &&
            zipccl_import_detect(files[i], format, sizeof format, NULL) == ZIPCCL_OK)
            status = zipccl_output_spare(output, files[i], error);
    zipccl_import_files_free(files, n);
    return status;
}

/*
 * No output may overwrite the trace, its samples, the cluster file or another output.  What an
 * import reads besides is known, and checked, once it is loaded.
 */
static zipccl_status check_outputs(const struct options *options,
                                   const struct zipccl_cluster_file *cluster,
                                   struct zipccl_output *outputs, struct zipccl_error *error)
{
    for (int i = 0; i < NUM_FILES; i++)
        ZIPCCL_TRY(zipccl_output_check(&outputs[i], options->files[i], error));
    for (int i = 0; i < NUM_FILES; i++) {
        ZIPCCL_TRY(zipccl_output_spare(&outputs[i], zipccl_cluster_path(cluster), error));
        for (size_t k = 0; k < options->ntraces; k++) {
            ZIPCCL_TRY(zipccl_output_spare_trace(&outputs[i], options->traces[k], error));
            ZIPCCL_TRY(spare_imported(&outputs[i], options->traces[k], error));
        }
        for (int k = 0; k < i; k++)
            ZIPCCL_TRY(zipccl_output_differ(&outputs[i], &outputs[k], error));
    }
    return ZIPCCL_OK;
}

static zipccl_status write_json(const struct zipccl_replay_result *result, char **text,
                                size_t *nbytes, struct zipccl_error *error)
{
    FILE *memory = open_memstream(text, nbytes);

    if (memory == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "result: out of memory");
    zipccl_status status = zipccl_report_json(result, memory, error);
    if (fclose(memory) != 0 && status == ZIPCCL_OK)
        status = zipccl_fail(error, ZIPCCL_ERR_NOMEM, "result: out of memory");
    return status;
}

static zipccl_status fill_files(const struct zipccl_replay_result *result, const char *json,
                                size_t nbytes, struct zipccl_output *outputs,
                                struct zipccl_error *error)
{
    for (int i = 0; i < NUM_FILES; i++)
        ZIPCCL_TRY(zipccl_output_open(&outputs[i], error));
    if (outputs[FILE_JSON].file != NULL)
        fwrite(json, 1, nbytes, outputs[FILE_JSON].file);
    if (outputs[FILE_CSV].file != NULL)
        ZIPCCL_TRY(zipccl_output_told(
            &outputs[FILE_CSV], zipccl_report_csv(result, outputs[FILE_CSV].file, error), error));
    if (outputs[FILE_HTML].file != NULL)
        ZIPCCL_TRY(zipccl_output_named(
            &outputs[FILE_HTML], zipccl_report_html(json, nbytes, outputs[FILE_HTML].file, error),
            error));
    if (outputs[FILE_PERFETTO].file != NULL)
        ZIPCCL_TRY(zipccl_report_perfetto(result, outputs[FILE_PERFETTO].path,
                                          outputs[FILE_PERFETTO].file, error));
    for (int i = 0; i < NUM_FILES; i++)
        ZIPCCL_TRY(zipccl_output_close(&outputs[i], error));
    for (int i = 0; i < NUM_FILES; i++)
        ZIPCCL_TRY(zipccl_output_commit(&outputs[i], error));
    return ZIPCCL_OK;
}

static zipccl_status write_files(const struct zipccl_replay_result *result,
                                 struct zipccl_output *outputs, struct zipccl_error *error)
{
    char *json = NULL;
    size_t nbytes = 0;
    zipccl_status status = write_json(result, &json, &nbytes, error);

    if (status == ZIPCCL_OK)
        status = fill_files(result, json, nbytes, outputs, error);
    for (int i = 0; i < NUM_FILES; i++)
        zipccl_output_discard(&outputs[i]);
    free(json);
    return status;
}

/* What the file holds, and which ranks it leaves out. */
static void print_timeline(const struct zipccl_timeline *t, const char *path)
{
    uint32_t step = t->nranks > 1 ? (t->ranks[1] - t->ranks[0]) / t->gpus_per_node : 0;
    char which[80] = "all ranks";

    if (!t->all_ranks && step > 1)
        snprintf(which, sizeof which, "%" PRIu32 " ranks, the first of every %" PRIu32 " nodes",
                 t->nranks, step);
    else if (!t->all_ranks)
        snprintf(which, sizeof which, "%" PRIu32 " rank%s, the first of each node", t->nranks,
                 t->nranks > 1 ? "s" : "");
    printf(" wrote %s (timeline, %s, %s; open it in ui.perfetto.dev)\n", path,
           zipccl_step_names[t->mode], which);
}

static void print_result(const struct options *options, const struct zipccl_replay_input *input,
                         const struct zipccl_replay_result *result,
                         const struct zipccl_output *outputs)
{
    static const char *const what[FILE_PERFETTO] = {"JSON, schema zipccl.replay", "rows as CSV",
                                                    "picture, settings, assumptions"};

    if (options->quiet)
        return;
    for (int i = 0; i < NUM_FILES; i++)
        if (outputs[i].standard)
            return;
    if (input->imported) {
        zipccl_import_print(&input->report, stdout);
        putchar('\n');
    }
    zipccl_report_table(result, options->summary, stdout);
    for (int i = 0; i < FILE_PERFETTO; i++)
        if (outputs[i].path != NULL)
            printf(" wrote %s (%s)\n", outputs[i].path, what[i]);
    if (result->timeline != NULL)
        print_timeline(result->timeline, outputs[FILE_PERFETTO].path);
}

static zipccl_status simulate(const struct options *options, const struct zipccl_trace *trace,
                              const struct zipccl_cluster_file *cluster,
                              struct zipccl_replay_result **result, struct zipccl_error *error)
{
    struct zipccl_replay_options replay = options->replay;
    struct zipccl_progress progress;

    zipccl_progress_start(&progress, "replay", !options->quiet);
    replay.progress = progress.wanted ? zipccl_progress_update : NULL;
    replay.progress_context = &progress;
    zipccl_status status = zipccl_replay(trace, cluster, &replay, result, error);
    zipccl_progress_end(&progress);
    return status;
}

static zipccl_status replay_one(const struct options *options, const char *const *paths,
                                size_t npaths, const struct zipccl_cluster_file *file,
                                struct zipccl_output *outputs, struct zipccl_error *error)
{
    struct zipccl_replay_result *result = NULL;
    struct zipccl_replay_input input;
    struct zipccl_cluster cluster;
    zipccl_status status = ZIPCCL_OK;

    ZIPCCL_TRY(zipccl_cluster_get(file, &cluster, error));
    ZIPCCL_TRY(
        zipccl_replay_input_load(paths, npaths, &options->import, options->maps, options->nmaps,
                                 (uint64_t)cluster.nodes * cluster.gpus_per_node, &input, error));
    for (int i = 0; status == ZIPCCL_OK && i < NUM_FILES; i++)
        status = zipccl_output_spare(&outputs[i], input.trace->samples_path, error);
    if (status == ZIPCCL_OK)
        status = simulate(options, input.trace, file, &result, error);
    if (status == ZIPCCL_OK)
        status = zipccl_replay_input_note(&input, result, error);
    if (status == ZIPCCL_OK)
        status = zipccl_replay_interval(&input, file, &options->replay, result, error);
    if (status == ZIPCCL_OK)
        status = write_files(result, outputs, error);
    if (status == ZIPCCL_OK)
        print_result(options, &input, result, outputs);
    zipccl_replay_result_destroy(result);
    zipccl_replay_input_release(&input);
    return status;
}

static int run(const struct options *options)
{
    struct zipccl_output outputs[NUM_FILES];
    struct zipccl_cluster_file *cluster = NULL;
    struct zipccl_error error = {""};
    zipccl_status status = open_cluster(options, &cluster, &error);

    if (status == ZIPCCL_OK)
        status = check_outputs(options, cluster, outputs, &error);
    size_t n = options->joined ? options->ntraces : 1;

    for (size_t i = 0; status == ZIPCCL_OK && i < options->ntraces; i += n) {
        if (i > 0 && !options->quiet)
            putchar('\n');
        status = replay_one(options, &options->traces[i], n, cluster, outputs, &error);
    }
    zipccl_cluster_close(cluster);
    return status == ZIPCCL_OK ? ZIPCCL_EXIT_OK
                               : zipccl_print_error(options->program, status, &error);
}

int zipccl_replay_command(const char *program, int argc, char **argv)
{
    static const struct argp argp = {option_table, parse_option, "TRACE...", doc, NULL, NULL, NULL};
    struct options *options = calloc(1, sizeof *options);
    bool helped;

    if (options == NULL)
        return ZIPCCL_EXIT_FAILED;
    options->program = program;
    zipccl_replay_options_init(&options->replay);
    zipccl_import_options_init(&options->import);
    set_mode(options, "all");
    int code = zipccl_parse_options(&argp, argc, argv, program, "zipccl replay", options, &helped);
    if (code == ZIPCCL_EXIT_OK && !helped)
        code = check_options(options);
    if (code == ZIPCCL_EXIT_OK && !helped)
        code = run(options);
    free(options);
    return code;
}
