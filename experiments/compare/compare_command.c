/*
 * compare_command.c - zipccl compare FIRST SECOND...: options in, table and files out
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/compare/compare_command.h"

#include "experiments/compare/compare_predict.h"
#include "experiments/program/open_cluster.h"
#include "experiments/program/output.h"
#include "experiments/program/program.h"
#include "models/units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char program[] = "zipccl";

enum {
    MAX_FILES = 256,
    MAX_SETS = 64,
    KEY_CSV = 256,
    KEY_HTML,
    KEY_SVG,
    KEY_MAX_ERROR,
    KEY_MAX_MEDIAN,
    KEY_MIN_BYTES,
    KEY_ANY_STRATEGY,
    KEY_OP,
    KEY_SUMMARY,
    KEY_CLUSTER_DIR
};
enum { FILE_JSON, FILE_CSV, FILE_HTML, FILE_SVG, NUM_OUTPUTS };

struct options {
    const char *files[MAX_FILES], *sets[MAX_SETS];
    size_t nfiles, nsets;
    const char *cluster, *cluster_dir; /* that predicts; NULL: the first file does */
    const char *outputs[NUM_OUTPUTS];
    double max_error, max_median; /* %; < 0: not asked for */
    int op;
    bool summary, quiet;
    struct zipccl_compare_options compare;
};

static const struct argp_option option_table[] = {
    {NULL, 0, NULL, 0, "What to compare:", 1},
    {"min-bytes", KEY_MIN_BYTES, "BYTES", 0,
     "leave out rows of less, such as 1MiB (of steps: raw bytes a call)", 1},
    {"any-strategy", KEY_ANY_STRATEGY, NULL, 0,
     "match rows of one mode also where they name different strategies or chunks", 1},
    {"op", KEY_OP, "OP", 0, "the collective of tables of nccl-tests that do not tell it", 1},
    {"cluster", 'c', "NAME|FILE", 0,
     "predict the files' rows on this cluster, by the closed form (T0) of the plans that they "
     "name, "
     "instead of reading a first file",
     1},
    {"set", 's', "KEY=VALUE", 0, "override a key of the cluster; may repeat", 1},
    {"cluster-dir", KEY_CLUSTER_DIR, "DIR", 0, "where named clusters are looked for", 1},
    {NULL, 0, NULL, 0, "When it fails (exit code 1):", 2},
    {"max-error", KEY_MAX_ERROR, "PERCENT", 0, "if the worst row differs by more", 2},
    {"max-median", KEY_MAX_MEDIAN, "PERCENT", 0, "if the median over all rows is more", 2},
    {NULL, 0, NULL, 0, "What to write:", 3},
    {"json", 'J', "FILE", 0,
     "everything as JSON, schema zipccl.compare; '-' for one of these files is standard output, "
     "where the table then is left out",
     3},
    {"csv", KEY_CSV, "FILE", 0, "the rows as CSV", 3},
    {"html", KEY_HTML, "FILE", 0, "one self-contained page: picture, sums, rows", 3},
    {"svg", KEY_SVG, "FILE", 0, "the picture alone", 3},
    {"summary", KEY_SUMMARY, NULL, 0, "print no rows", 3},
    {"quiet", 'q', NULL, 0, "print nothing", 3},
    {0}};

static const char doc[] =
    "Compare results row by row: a prediction with what was measured, or the same before and after "
    "a change."
    "\vFiles are JSON of 'zipccl perf' or 'zipccl replay' (-J), or what nccl-tests prints or "
    "writes "
    "with -J. Of a prediction (--on sim, or a simulated replay) 'off' is predicted over measured, "
    "less 1; of two measured or two simulated files 'change' is after over before, less 1. Rows "
    "are "
    "the same call if op, type, count, ranks, nodes, mode, strategy and, of steps, group and "
    "stream "
    "agree; those without a partner are listed with what the nearest differs in.\n\n"
    "Examples:\n"
    "  zipccl compare predicted.json measured.json --html compare.html\n"
    "  zipccl compare predicted.json run1.json run2.json --min-bytes 1MiB --max-median 5\n"
    "  zipccl compare before.json after.json --max-error 3\n"
    "  zipccl compare --cluster fitted.yaml --set nic.rate=1Gbps measured.json\n\n"
    "Exit code: 0 done, 1 no row matches or a limit is exceeded, 2 wrong input or usage. A result "
    "file appears whole or not at all.";

static int set_once(const char **slot, const char *option, const char *text)
{
    if (*slot != NULL) {
        zipccl_usage_error(program, "compare: %s is given twice", option);
        return -1;
    }
    *slot = text;
    return 0;
}

static int set_number(const char *option, const char *text, enum zipccl_unit unit, double min,
                      double max, double *out)
{
    struct zipccl_error error = {""};

    if (zipccl_parse_quantity(text, unit, min, max, out, &error) == ZIPCCL_OK)
        return 0;
    zipccl_usage_error(program, "compare: %s: %s", option, error.text);
    return -1;
}

static int add_file(struct options *options, const char *path)
{
    if (options->nfiles == MAX_FILES) {
        zipccl_usage_error(program, "compare: more than %d files", MAX_FILES);
        return -1;
    }
    options->files[options->nfiles++] = path;
    return 0;
}

static int add_set(struct options *options, const char *text)
{
    if (options->nsets == MAX_SETS) {
        zipccl_usage_error(program, "compare: more than %d --set options", MAX_SETS);
        return -1;
    }
    options->sets[options->nsets++] = text;
    return 0;
}

static int set_op(struct options *options, const char *text)
{
    options->op = zipccl_parse_op(program, "compare: --op", text);
    return options->op < 0 ? -1 : 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;
    int failed = 0;

    switch (key) {
    case 'c': failed = set_once(&o->cluster, "--cluster", arg); break;
    case 's': failed = add_set(o, arg); break;
    case KEY_CLUSTER_DIR: failed = set_once(&o->cluster_dir, "--cluster-dir", arg); break;
    case 'J': failed = set_once(&o->outputs[FILE_JSON], "-J", arg); break;
    case KEY_CSV: failed = set_once(&o->outputs[FILE_CSV], "--csv", arg); break;
    case KEY_HTML: failed = set_once(&o->outputs[FILE_HTML], "--html", arg); break;
    case KEY_SVG: failed = set_once(&o->outputs[FILE_SVG], "--svg", arg); break;
    case KEY_MAX_ERROR:
        failed = set_number("--max-error", arg, ZIPCCL_UNIT_NONE, 0, 1e6, &o->max_error);
        break;
    case KEY_MAX_MEDIAN:
        failed = set_number("--max-median", arg, ZIPCCL_UNIT_NONE, 0, 1e6, &o->max_median);
        break;
    case KEY_MIN_BYTES:
        failed =
            set_number("--min-bytes", arg, ZIPCCL_UNIT_BYTES, 1, 1e15, &o->compare.least_bytes);
        break;
    case KEY_ANY_STRATEGY: o->compare.any_strategy = true; break;
    case KEY_OP: failed = set_op(o, arg); break;
    case KEY_SUMMARY: o->summary = true; break;
    case 'q': o->quiet = true; break;
    case ARGP_KEY_ARG: failed = add_file(o, arg); break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return failed != 0 ? ECANCELED : 0;
}

static zipccl_status check_outputs(const struct options *options, struct zipccl_output *outputs,
                                   struct zipccl_error *error)
{
    for (int i = 0; i < NUM_OUTPUTS; i++)
        ZIPCCL_TRY(zipccl_output_check(&outputs[i], options->outputs[i], error));
    for (int i = 0; i < NUM_OUTPUTS; i++) {
        for (size_t f = 0; f < options->nfiles; f++)
            ZIPCCL_TRY(zipccl_output_spare(&outputs[i], options->files[f], error));
        for (int k = 0; k < i; k++)
            ZIPCCL_TRY(zipccl_output_differ(&outputs[i], &outputs[k], error));
    }
    return ZIPCCL_OK;
}

static zipccl_status write_one(const struct zipccl_compare *compare, int which,
                               struct zipccl_output *output, struct zipccl_error *error)
{
    zipccl_status status = ZIPCCL_OK;

    ZIPCCL_TRY(zipccl_output_open(output, error));
    switch (which) {
    case FILE_JSON: status = zipccl_compare_json(compare, output->file, error); break;
    case FILE_CSV: status = zipccl_compare_csv(compare, output->file, error); break;
    case FILE_HTML: status = zipccl_compare_html(compare, output->file, error); break;
    default: zipccl_compare_svg(compare, true, output->file);
    }
    ZIPCCL_TRY(zipccl_output_named(output, status, error));
    return zipccl_output_close(output, error);
}

static zipccl_status write_files(const struct zipccl_compare *compare,
                                 struct zipccl_output *outputs, struct zipccl_error *error)
{
    zipccl_status status = ZIPCCL_OK;

    for (int i = 0; i < NUM_OUTPUTS && status == ZIPCCL_OK; i++)
        if (outputs[i].path != NULL)
            status = write_one(compare, i, &outputs[i], error);
    for (int i = 0; i < NUM_OUTPUTS && status == ZIPCCL_OK; i++)
        if (outputs[i].path != NULL)
            status = zipccl_output_commit(&outputs[i], error);
    for (int i = 0; i < NUM_OUTPUTS; i++)
        zipccl_output_discard(&outputs[i]);
    return status;
}

/* A time of wrong elements is none, whether the row has a partner or not. */
static bool tell_wrong(const struct zipccl_rows *file)
{
    size_t nrows = 0;
    const struct zipccl_row *first = NULL;

    for (size_t i = 0; i < file->n; i++)
        if (file->rows[i].wrong > 0) {
            first = first != NULL ? first : &file->rows[i];
            nrows++;
        }
    if (first == NULL)
        return false;
    fprintf(stderr, "%s: compare: %s: row %u: %.0f wrong elements in %s of %.0f bytes, %s", program,
            file->path, first->place, first->wrong, zipccl_op_name(first->op),
            zipccl_compare_bytes(first), first->strategy);
    if (nrows > 1)
        fprintf(stderr, ", and in %zu more rows", nrows - 1);
    fputc('\n', stderr);
    return true;
}

/* The verdict: all results are right, something was compared, and within the limits. */
static int judge(const struct options *options, const struct zipccl_compare *c)
{
    double worst = 100 * c->all.worst, median = 100 * c->all.median;
    bool wrong = tell_wrong(c->first);

    for (size_t i = 0; i < c->nseconds; i++)
        wrong = tell_wrong(c->seconds[i]) || wrong;
    if (c->npairs == 0) {
        fprintf(stderr,
                "%s: compare: no row of %s matches one of %s%s; the nearest differs in %s\n",
                program, c->seconds[0]->path, c->first->path,
                c->nseconds > 1 ? ", nor of the others" : "",
                c->nsingles > 0 ? c->singles[0].why : "size: all are under --min-bytes");
        return ZIPCCL_EXIT_FAILED;
    }
    if (options->max_error >= 0 && worst > options->max_error) {
        fprintf(stderr, "%s: compare: the worst row differs by %.1f %%, more than --max-error %g\n",
                program, worst, options->max_error);
        return ZIPCCL_EXIT_FAILED;
    }
    if (options->max_median >= 0 && median > options->max_median) {
        fprintf(stderr, "%s: compare: the median is %.1f %%, more than --max-median %g\n", program,
                median, options->max_median);
        return ZIPCCL_EXIT_FAILED;
    }
    return wrong ? ZIPCCL_EXIT_FAILED : ZIPCCL_EXIT_OK;
}

static void print_result(const struct options *options, const struct zipccl_compare *compare,
                         const struct zipccl_output *outputs)
{
    static const char *const what[NUM_OUTPUTS] = {"JSON, schema zipccl.compare", "rows as CSV",
                                                  "page with picture and rows", "picture"};

    if (options->quiet)
        return;
    for (int i = 0; i < NUM_OUTPUTS; i++)
        if (outputs[i].standard)
            return;
    zipccl_compare_print(compare, options->summary, stdout);
    for (int i = 0; i < NUM_OUTPUTS; i++)
        if (outputs[i].path != NULL)
            printf("  wrote %s (%s)\n", outputs[i].path, what[i]);
}

/* The prediction: rows made for those of all files, or the first file. */
static zipccl_status find_first(const struct options *options, struct zipccl_rows **files,
                                struct zipccl_error *error)
{
    struct zipccl_cluster_file *file = NULL;
    struct zipccl_cluster cluster;
    char folder[4096];
    zipccl_status status;

    if (options->cluster == NULL)
        return ZIPCCL_OK;
    ZIPCCL_TRY(zipccl_cluster_folder(options->cluster_dir, folder, sizeof folder, error));
    ZIPCCL_TRY(zipccl_cluster_open_with(options->cluster, folder, options->sets, options->nsets,
                                        &file, error));
    status = zipccl_cluster_get(file, &cluster, error);
    if (status == ZIPCCL_OK)
        status = zipccl_predict_rows(files + 1, options->nfiles, &cluster, &files[0], error);
    zipccl_cluster_close(file);
    return status;
}

/* files[0] is the first, the others follow. */
static zipccl_status compare_files(const struct options *options, struct zipccl_rows **files,
                                   size_t nfiles, int *code, struct zipccl_error *error)
{
    struct zipccl_output outputs[NUM_OUTPUTS];
    struct zipccl_compare compare;
    zipccl_status status;

    ZIPCCL_TRY(check_outputs(options, outputs, error));
    ZIPCCL_TRY(find_first(options, files, error));
    ZIPCCL_TRY(
        zipccl_compare_rows(files[0], files + 1, nfiles - 1, &options->compare, &compare, error));
    /* With nothing to show there are no files either. */
    status = compare.npairs > 0 ? write_files(&compare, outputs, error) : ZIPCCL_OK;
    if (status == ZIPCCL_OK && compare.npairs > 0)
        print_result(options, &compare, outputs);
    if (status == ZIPCCL_OK)
        *code = judge(options, &compare);
    zipccl_compare_release(&compare);
    return status;
}

static int check_options(const struct options *options)
{
    if (options->cluster == NULL && (options->nsets > 0 || options->cluster_dir != NULL))
        return zipccl_usage_error(program, "compare: --%s is of a --cluster, which is not given",
                                  options->nsets > 0 ? "set" : "cluster-dir");
    if (options->cluster == NULL && options->nfiles < 2)
        return zipccl_usage_error(program,
                                  "compare: give two result files or more; 'zipccl compare "
                                  "--help' shows how");
    if (options->nfiles < 1)
        return zipccl_usage_error(program, "compare: give a result file to predict");
    return ZIPCCL_EXIT_OK;
}

static int run(const struct options *options)
{
    struct zipccl_rows *files[MAX_FILES + 1] = {NULL};
    size_t first = options->cluster != NULL, n = options->nfiles + first;
    struct zipccl_error error = {""};
    zipccl_status status = ZIPCCL_OK;
    int code = check_options(options);

    if (code != ZIPCCL_EXIT_OK)
        return code;
    for (size_t i = first; status == ZIPCCL_OK && i < n; i++)
        status = zipccl_rows_read(options->files[i - first], options->op, &files[i], &error);
    if (status == ZIPCCL_OK)
        status = compare_files(options, files, n, &code, &error);
    for (size_t i = 0; i < n; i++)
        zipccl_rows_destroy(files[i]);
    return status == ZIPCCL_OK ? code : zipccl_print_error(program, status, &error);
}

int zipccl_compare_command(int argc, char **argv)
{
    static const struct argp argp = {option_table, parse_option, "[FIRST] SECOND...", doc, NULL,
                                     NULL,         NULL};
    struct options *options = calloc(1, sizeof *options);
    bool helped;
    int code = ZIPCCL_EXIT_FAILED;

    if (options == NULL)
        return code;
    options->op = -1;
    options->max_error = options->max_median = -1;
    code = zipccl_parse_options(&argp, argc, argv, program, "zipccl compare", options, &helped);
    if (code == ZIPCCL_EXIT_OK && !helped)
        code = run(options);
    free(options);
    return code;
}
