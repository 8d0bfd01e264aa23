/*
 * import_command.c - zipccl trace import: files of other tools in, a trace out
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/trace/import_command.h"

#include "experiments/trace/foreign.h"
#include "experiments/trace/import_options.h"
#include "experiments/trace/import_print.h"
#include "experiments/program/on_signal.h"
#include "experiments/program/output.h"
#include "experiments/program/program.h"
#include "experiments/program/relative_path.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char program[] = "zipccl";

enum { MAX_FILES = 4096 };

struct options {
    const char *words[MAX_FILES + 1]; /* FORMAT, if it is given, and files */
    size_t nwords;
    const char *out;
    bool quiet;
    struct zipccl_import_options import;
};

static const struct argp_option option_table[] = {
    {"output", 'o', "OUT", 0, "the trace to write: .jsonl or .jsonl.gz", 1},
    {"quiet", 'q', NULL, 0, "print nothing", 1},
    {NULL, 0, NULL, 0, "What the file does not say:", 2},
    ZIPCCL_IMPORT_OPTIONS(2),
    {0}};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;

    switch (key) {
    case 'o':
        if (options->out != NULL) {
            zipccl_usage_error(program, "trace import: -o is given twice");
            return ECANCELED;
        }
        options->out = arg;
        return 0;
    case 'q': options->quiet = true; return 0;
    case ARGP_KEY_ARG:
        if (options->nwords > MAX_FILES) {
            zipccl_usage_error(program, "trace import: more than %d files", MAX_FILES);
            return ECANCELED;
        }
        options->words[options->nwords++] = arg;
        return 0;
    default: return zipccl_import_option(program, key, arg, &options->import);
    }
}

static bool is_format(const char *word)
{
    for (size_t i = 0; zipccl_import_format_name(i) != NULL; i++)
        if (strcmp(zipccl_import_format_name(i), word) == 0)
            return true;
    return false;
}

/* "simai" or "simai, kineto", for messages. */
static const char *format_names(char *out, size_t size)
{
    size_t n = 0;

    out[0] = '\0';
    for (size_t i = 0; zipccl_import_format_name(i) != NULL && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "%s%s", i > 0 ? ", " : "",
                              zipccl_import_format_name(i));
    return out;
}

static int check_options(const struct options *options)
{
    bool format = options->nwords > 0 && is_format(options->words[0]);
    char names[256];

    if (options->nwords == 0)
        return zipccl_usage_error(program, "trace import: name a file; --help shows how");
    if (format && options->nwords == 1)
        return zipccl_usage_error(program, "trace import: no file after the format '%s'",
                                  options->words[0]);
    if (!format && options->nwords > 1 && access(options->words[0], F_OK) != 0)
        return zipccl_usage_error(program, "trace import: '%s' is neither a format (%s) nor a file",
                                  options->words[0], format_names(names, sizeof names));
    if (options->out == NULL)
        return zipccl_usage_error(program, "trace import: no -o OUT given");
    return ZIPCCL_EXIT_OK;
}

/* 'out' can be written, and is none of the inputs. */
static zipccl_status check_output(const struct options *options, const char *const *files,
                                  size_t nfiles, struct zipccl_error *error)
{
    struct zipccl_output output;

    ZIPCCL_TRY(zipccl_output_check(&output, options->out, error));
    if (output.direct)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: cannot write a trace there: no regular file",
                           options->out);
    for (size_t i = 0; i < nfiles; i++)
        if (zipccl_output_is(&output, files[i]))
            return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: an output must not overwrite an input",
                               options->out);
    if (zipccl_output_is(&output, options->import.samples))
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: an output must not overwrite an input",
                           options->out);
    return ZIPCCL_OK;
}

static zipccl_status import_files(const struct options *options, const char *format,
                                  char *const *names, size_t n, struct zipccl_import_report *report,
                                  struct zipccl_error *error)
{
    const char *const *files = (const char *const *)names;
    struct zipccl_import_options import = options->import;
    char samples[PATH_MAX];

    ZIPCCL_TRY(check_output(options, files, n, error));
    /* At the command line paths start at the current folder, in a trace at its own. */
    if (import.samples != NULL)
        ZIPCCL_TRY(
            zipccl_relative_path(import.samples, options->out, samples, sizeof samples, error));
    if (import.samples != NULL)
        import.samples = samples;
    zipccl_on_signal_remove_trace(options->out);
    zipccl_status status = zipccl_import(format, files, n, options->out, &import, report, error);

    zipccl_on_signal_keep();
    return status;
}

static int run(const struct options *options)
{
    bool named = is_format(options->words[0]);
    struct zipccl_import_report report = {.nitems = 0};
    struct zipccl_error error = {""};
    struct zipccl_foreign_files files;
    zipccl_status status = zipccl_foreign_list(options->words + (named ? 1 : 0),
                                               options->nwords - (named ? 1 : 0), &files, &error);

    if (status == ZIPCCL_OK)
        status = import_files(options, named ? options->words[0] : NULL, files.names, files.n,
                              &report, &error);
    if (status == ZIPCCL_OK)
        status = zipccl_foreign_note(&files, &report, &error);
    if (status == ZIPCCL_OK && !options->quiet) {
        zipccl_import_print(&report, stdout);
        printf(" wrote %s (%" PRIu64 " collectives a rank, %" PRIu64 " guesses)\n", options->out,
               report.ncollectives, report.nguesses);
    }
    zipccl_import_report_free(&report);
    zipccl_foreign_free(&files);
    return status == ZIPCCL_OK ? ZIPCCL_EXIT_OK : zipccl_print_error(program, status, &error);
}

/* The formats stand in the table of the importers. */
static void make_doc(char *out, size_t size)
{
    size_t n = (size_t)snprintf(out, size,
                                "Import files of other tools as a trace. FORMAT may be left out: "
                                "then it is found by the beginning of the file.\vFormats:\n");

    for (size_t i = 0; zipccl_import_format_name(i) != NULL && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "  %-10s %s\n", zipccl_import_format_name(i),
                              zipccl_import_format_about(i));
    if (n < size)
        snprintf(out + n, size - n,
                 "\nWhat a file does not say is assumed; each assumption is printed with its "
                 "count. traces/IMPORT.md tells what is read and what such files get wrong.\n\n"
                 "Examples:\n"
                 "  zipccl trace import workload.txt -o workload.jsonl.gz\n"
                 "  zipccl trace import step/rank*.json.gz -o step.jsonl.gz\n"
                 "  zipccl trace import kineto step -o step.jsonl.gz --strict\n"
                 "  zipccl trace import simai workload.txt -o w.jsonl --ranks 128 --dtype bf16\n\n"
                 "Exit code: 0 done, 1 internal failure, 2 wrong input or usage. The trace appears "
                 "whole or not at all.");
}

int zipccl_import_command(int argc, char **argv)
{
    char doc[4096];
    const struct argp argp = {
        option_table, parse_option, "[FORMAT] FILE|FOLDER... -o OUT", doc, NULL, NULL, NULL};
    struct options *options = calloc(1, sizeof *options);
    bool helped;
    int code;

    if (options == NULL)
        return ZIPCCL_EXIT_FAILED;
    make_doc(doc, sizeof doc);
    zipccl_import_options_init(&options->import);
    code =
        zipccl_parse_options(&argp, argc, argv, program, "zipccl trace import", options, &helped);
    if (code == ZIPCCL_EXIT_OK && !helped)
        code = check_options(options);
    if (code == ZIPCCL_EXIT_OK && !helped)
        code = run(options);
    free(options);
    return code;
}
