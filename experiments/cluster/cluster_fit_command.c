/*
 * cluster_fit_command.c - zipccl cluster fit ROWS... -o my.yaml
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/cluster/cluster_fit.h"

#include "experiments/program/open_cluster.h"
#include "experiments/program/output.h"
#include "experiments/perf/perf_options.h"
#include "experiments/program/program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char program[] = "zipccl";

enum {
    MAX_FILES = 256,
    MAX_SETS = 64,
    KEY_BASE = 256,
    KEY_NAME,
    KEY_OP,
    KEY_SIZES,
    KEY_MODES,
    KEY_CLUSTER_DIR
};

struct options {
    const char *files[MAX_FILES], *sets[MAX_SETS];
    size_t nfiles, nsets;
    const char *base, *name, *out, *cluster_dir;
    int op;
    bool quiet;
    char *sizes, *modes; /* owned copies of the lists */
    struct zipccl_fit_filter filter;
};

static const struct argp_option option_table[] = {
    {"output", 'o', "FILE", 0, "the cluster file to write; '-' is standard output", 0},
    {"base", KEY_BASE, "NAME|FILE", 0,
     "cluster that gives all that is not fitted (default laptop; of nccl-tests: none)", 0},
    {"name", KEY_NAME, "NAME", 0, "name of the new cluster (default: BASE-fitted)", 0},
    {"set", 's', "KEY=VALUE", 0, "override a key of the base, such as nic.per_node=2; may repeat",
     0},
    {"sizes", KEY_SIZES, "LIST", 0,
     "only rows of these sizes, as nccl-tests counts them: 1M,8M,64M", 0},
    {"modes", KEY_MODES, "LIST", 0, "only rows of these modes: raw,compressed", 0},
    {"op", KEY_OP, "OP", 0, "the collective of tables of nccl-tests that do not tell it", 0},
    {"cluster-dir", KEY_CLUSTER_DIR, "DIR", 0, "where named clusters are looked for", 0},
    {"quiet", 'q', NULL, 0, "print no table", 0},
    {0}};

static const char doc[] =
    "Fit alpha and rate of the links within and between nodes, and the rates of codec and "
    "additions, to measured collectives, and write them into a cluster file."
    "\vROWS are JSON of 'zipccl perf -J', or what nccl-tests prints or writes with -J. The model "
    "is "
    "the closed form (T0) of the very plans that were measured; what the rows do not tell stays as "
    "in the base, and is named. Without -o the tables are printed and nothing is written.\n\n"
    "Examples:\n"
    "  zipccl perf all_reduce -b 1M -e 64M -f 8 -t 4 --mode all -J rows.json\n"
    "  zipccl cluster fit rows.json --name mine -o mine.yaml\n"
    "  zipccl cluster fit all_reduce.log --base h100-8x8-400g -o mine.yaml\n\n"
    "Exit code: 0 done, 1 internal failure, 2 wrong input or usage. The file appears whole or not "
    "at all.";

static int set_once(const char **slot, const char *option, const char *text)
{
    if (*slot != NULL) {
        zipccl_usage_error(program, "cluster fit: %s is given twice", option);
        return -1;
    }
    *slot = text;
    return 0;
}

/* Cut a list at its commas, in place; -1 after an error. */
static int cut_list(const char *option, const char *text, char **copy, const char **words,
                    size_t most, size_t *n)
{
    if (*copy != NULL) {
        zipccl_usage_error(program, "cluster fit: %s is given twice", option);
        return -1;
    }
    *copy = malloc(strlen(text) + 1);
    if (*copy == NULL)
        return -1;
    strcpy(*copy, text);
    for (char *word = *copy;; word++) {
        size_t length = strcspn(word, ",");
        bool last = word[length] == '\0';

        if (length == 0 || *n == most) {
            zipccl_usage_error(program,
                               "cluster fit: %s '%s': expected up to %zu words, cut by "
                               "commas",
                               option, text, most);
            return -1;
        }
        words[(*n)++] = word;
        word += length;
        *word = '\0';
        if (last)
            return 0;
    }
}

/* "64K" as in nccl-tests: powers of 1024. */
static bool parse_size(const char *text, uint64_t *out)
{
    static const char units[] = "KMG";
    size_t ndigits = strspn(text, "0123456789");
    const char *unit = strchr(units, text[ndigits]);
    unsigned long long value;

    if (ndigits == 0 || ndigits > 12 || unit == NULL ||
        (text[ndigits] != '\0' && text[ndigits + 1] != '\0'))
        return false;
    value = strtoull(text, NULL, 10);
    if (text[ndigits] != '\0')
        value <<= 10 * (unit - units + 1);
    *out = value;
    return value > 0 && value <= ZIPCCL_PERF_MAX_BYTES;
}

static int set_sizes(struct options *options, const char *text)
{
    const char *words[ZIPCCL_FIT_MAX_SIZES];
    size_t n = 0;

    if (cut_list("--sizes", text, &options->sizes, words, ZIPCCL_FIT_MAX_SIZES, &n) != 0)
        return -1;
    for (size_t i = 0; i < n; i++)
        if (!parse_size(words[i], &options->filter.sizes[i])) {
            zipccl_usage_error(program,
                               "cluster fit: --sizes '%s': expected a size up to 256G, such "
                               "as 64K or 32M",
                               words[i]);
            return -1;
        }
    options->filter.nsizes = n;
    return 0;
}

static int set_modes(struct options *options, const char *text)
{
    struct zipccl_fit_filter *filter = &options->filter;

    if (cut_list("--modes", text, &options->modes, filter->modes, ZIPCCL_NUM_PERF_MODES,
                 &filter->nmodes) != 0)
        return -1;
    for (size_t i = 0; i < filter->nmodes; i++) {
        bool known = false;

        for (int m = 0; m < ZIPCCL_NUM_PERF_MODES; m++)
            known = known || strcmp(filter->modes[i], zipccl_perf_mode_names[m]) == 0;
        if (!known) {
            zipccl_usage_error(program,
                               "cluster fit: --modes '%s': expected raw, native, compressed or "
                               "adaptive",
                               filter->modes[i]);
            return -1;
        }
    }
    return 0;
}

static int set_op(struct options *options, const char *text)
{
    options->op = zipccl_parse_op(program, "cluster fit: --op", text);
    return options->op < 0 ? -1 : 0;
}

static int add_word(const char **list, size_t *n, size_t most, const char *word, const char *what)
{
    if (*n == most) {
        zipccl_usage_error(program, "cluster fit: more than %zu %s", most, what);
        return -1;
    }
    list[(*n)++] = word;
    return 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    int failed = 0;

    switch (key) {
    case 'o': failed = set_once(&options->out, "-o", arg); break;
    case 'q': options->quiet = true; break;
    case 's':
        failed = add_word(options->sets, &options->nsets, MAX_SETS, arg, "--set options");
        break;
    case KEY_BASE: failed = set_once(&options->base, "--base", arg); break;
    case KEY_NAME: failed = set_once(&options->name, "--name", arg); break;
    case KEY_CLUSTER_DIR: failed = set_once(&options->cluster_dir, "--cluster-dir", arg); break;
    case KEY_OP: failed = set_op(options, arg); break;
    case KEY_SIZES: failed = set_sizes(options, arg); break;
    case KEY_MODES: failed = set_modes(options, arg); break;
    case ARGP_KEY_ARG:
        failed = add_word(options->files, &options->nfiles, MAX_FILES, arg, "files");
        break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return failed != 0 ? ECANCELED : 0;
}

/* Rates of GPUs' networks and those of a laptop have nothing in common. */
static zipccl_status choose_base(struct options *options, struct zipccl_rows *const *files,
                                 struct zipccl_error *error)
{
    for (size_t i = 0; options->base == NULL && i < options->nfiles; i++)
        if (files[i]->kind == ZIPCCL_ROWS_NCCL)
            return zipccl_fail(
                error, ZIPCCL_ERR_INPUT,
                "cluster fit: %s is of GPUs; expected --base, the cluster nearest to "
                "them ('zipccl cluster list')",
                files[i]->path);
    if (options->base == NULL)
        options->base = "laptop";
    return ZIPCCL_OK;
}

static zipccl_status name_cluster(const struct options *options,
                                  const struct zipccl_cluster_fit *fit,
                                  struct zipccl_cluster_file *cluster, struct zipccl_error *error)
{
    char text[300];
    struct zipccl_cluster now;

    ZIPCCL_TRY(zipccl_cluster_get(cluster, &now, error));
    if (options->name != NULL)
        snprintf(text, sizeof text, "name=%s", options->name);
    else
        snprintf(text, sizeof text, "name=%.50s-fitted", now.name);
    ZIPCCL_TRY(zipccl_cluster_set(cluster, text, error));
    snprintf(text, sizeof text,
             "description=%u node%s of %u ranks, links and codec fitted to %zu %srows; the rest of "
             "%.60s",
             now.nodes, now.nodes == 1 ? "" : "s", now.gpus_per_node, fit->nrows,
             fit->measured ? "measured " : "simulated ", now.name);
    return zipccl_cluster_set(cluster, text, error);
}

static zipccl_status write_file(const struct zipccl_cluster_file *cluster,
                                struct zipccl_output *output, struct zipccl_error *error)
{
    zipccl_status status;

    if (output->path == NULL)
        return ZIPCCL_OK;
    status = zipccl_output_open(output, error);
    if (status == ZIPCCL_OK)
        status = zipccl_cluster_write(cluster, output->file, error);
    if (status == ZIPCCL_OK)
        status = zipccl_output_close(output, error);
    if (status == ZIPCCL_OK)
        status = zipccl_output_commit(output, error);
    zipccl_output_discard(output);
    return status;
}

static zipccl_status fit_files(struct options *options, struct zipccl_rows *const *files,
                               struct zipccl_cluster_file **cluster, struct zipccl_cluster_fit *fit,
                               struct zipccl_error *error)
{
    struct zipccl_output output;
    char folder[4096];

    ZIPCCL_TRY(choose_base(options, files, error));
    ZIPCCL_TRY(zipccl_cluster_folder(options->cluster_dir, folder, sizeof folder, error));
    ZIPCCL_TRY(zipccl_cluster_open_with(options->base, folder, options->sets, options->nsets,
                                        cluster, error));
    ZIPCCL_TRY(zipccl_output_check(&output, options->out, error));
    ZIPCCL_TRY(zipccl_output_spare(&output, zipccl_cluster_path(*cluster), error));
    for (size_t i = 0; i < options->nfiles; i++)
        ZIPCCL_TRY(zipccl_output_spare(&output, options->files[i], error));
    ZIPCCL_TRY(
        zipccl_cluster_fit_run(files, options->nfiles, &options->filter, *cluster, fit, error));
    ZIPCCL_TRY(name_cluster(options, fit, *cluster, error));
    ZIPCCL_TRY(write_file(*cluster, &output, error));
    if (options->quiet || output.standard)
        return ZIPCCL_OK;
    zipccl_cluster_fit_print(fit, options->base, stdout);
    if (options->out != NULL)
        printf("  wrote %s\n", options->out);
    return ZIPCCL_OK;
}

static int run(struct options *options)
{
    struct zipccl_rows *files[MAX_FILES] = {NULL};
    struct zipccl_cluster_file *cluster = NULL;
    struct zipccl_cluster_fit fit = {.nrows = 0};
    struct zipccl_error error = {""};
    zipccl_status status = ZIPCCL_OK;

    if (options->nfiles == 0)
        return zipccl_usage_error(program, "cluster fit: no rows given; 'zipccl cluster fit "
                                           "--help' shows how");
    for (size_t i = 0; status == ZIPCCL_OK && i < options->nfiles; i++)
        status = zipccl_rows_read(options->files[i], options->op, &files[i], &error);
    if (status == ZIPCCL_OK)
        status = fit_files(options, files, &cluster, &fit, &error);
    zipccl_cluster_fit_release(&fit);
    zipccl_cluster_close(cluster);
    for (size_t i = 0; i < options->nfiles; i++)
        zipccl_rows_destroy(files[i]);
    return status == ZIPCCL_OK ? ZIPCCL_EXIT_OK : zipccl_print_error(program, status, &error);
}

int zipccl_cluster_fit_command(int argc, char **argv)
{
    static const struct argp argp = {option_table, parse_option, "ROWS...", doc, NULL, NULL, NULL};
    struct options *options = calloc(1, sizeof *options);
    bool helped;
    int code = ZIPCCL_EXIT_FAILED;

    if (options == NULL)
        return code;
    options->op = -1;
    code = zipccl_parse_options(&argp, argc, argv, program, "zipccl cluster fit", options, &helped);
    if (code == ZIPCCL_EXIT_OK && !helped)
        code = run(options);
    free(options->sizes);
    free(options->modes);
    free(options);
    return code;
}
