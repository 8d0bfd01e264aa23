/*
 * report_command.c - zipccl report: result files as one page
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/report/report_command.h"

#include "analysis/report_page.h"
#include "experiments/program/output.h"
#include "experiments/program/program.h"

#include <errno.h>
#include <stdlib.h>

static const char program[] = "zipccl";

enum { MAX_FILES = 256, KEY_TITLE = 256 };

struct options {
    const char *files[MAX_FILES];
    size_t nfiles;
    const char *output, *title;
    bool quiet;
};

static const struct argp_option option_table[] = {
    {"output", 'o', "PAGE", 0, "the page to write; '-' is standard output", 1},
    {"title", KEY_TITLE, "TEXT", 0, "of the page (default: trace and cluster, or what is in it)",
     1},
    {"quiet", 'q', NULL, 0, "print nothing", 1},
    {0}};

static const char doc[] =
    "Make one self-contained page of result files, to look at or to hand on."
    "\vA RESULT is JSON of 'zipccl replay' (simulated or on real ranks), 'sweep', 'perf', "
    "'compare', 'plan' or 'codec bench' (-J), of gpu/device_check.sh, or what nccl-tests prints or "
    "writes; what it is the file says. The page of one replay or sweep is that of its --html. Of "
    "several results a table comes first, then a part for each. The page needs no other file and "
    "no network.\n\n"
    "Examples:\n"
    "  zipccl report step.json -o step.html\n"
    "  zipccl report a100.json h100.json perf.json --title 'Which cluster?' -o page.html\n\n"
    "Exit code: 0 done, 1 internal failure, 2 wrong input or usage. The page appears whole or not "
    "at all.";

static int set_once(const char **slot, const char *option, const char *text)
{
    if (*slot != NULL) {
        zipccl_usage_error(program, "report: %s is given twice", option);
        return -1;
    }
    *slot = text;
    return 0;
}

static int add_file(struct options *options, const char *path)
{
    if (options->nfiles == MAX_FILES) {
        zipccl_usage_error(program, "report: more than %d results", MAX_FILES);
        return -1;
    }
    options->files[options->nfiles++] = path;
    return 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;
    int failed = 0;

    switch (key) {
    case 'o': failed = set_once(&o->output, "-o", arg); break;
    case KEY_TITLE: failed = set_once(&o->title, "--title", arg); break;
    case 'q': o->quiet = true; break;
    case ARGP_KEY_ARG: failed = add_file(o, arg); break;
    default: return ARGP_ERR_UNKNOWN;
    }
    return failed != 0 ? ECANCELED : 0;
}

static zipccl_status write_page(const struct options *options,
                                struct zipccl_report_file *const *files,
                                struct zipccl_output *output, struct zipccl_error *error)
{
    ZIPCCL_TRY(zipccl_output_open(output, error));
    ZIPCCL_TRY(zipccl_output_named(
        output, zipccl_report_page(files, options->nfiles, options->title, output->file, error),
        error));
    ZIPCCL_TRY(zipccl_output_close(output, error));
    return zipccl_output_commit(output, error);
}

static zipccl_status make(const struct options *options, struct zipccl_report_file **files,
                          struct zipccl_output *output, struct zipccl_error *error)
{
    zipccl_status status;

    ZIPCCL_TRY(zipccl_output_check(output, options->output, error));
    for (size_t i = 0; i < options->nfiles; i++)
        ZIPCCL_TRY(zipccl_output_spare(output, options->files[i], error));
    for (size_t i = 0; i < options->nfiles; i++)
        ZIPCCL_TRY(zipccl_report_read(options->files[i], &files[i], error));
    status = write_page(options, files, output, error);
    zipccl_output_discard(output);
    return status;
}

static int run(const struct options *options)
{
    struct zipccl_report_file *files[MAX_FILES] = {NULL};
    struct zipccl_output output = {.path = NULL};
    struct zipccl_error error = {""};
    zipccl_status status;

    if (options->nfiles == 0)
        return zipccl_usage_error(program, "report: no result given; --help shows how");
    if (options->output == NULL)
        return zipccl_usage_error(program, "report: no page given; -o PAGE writes it");
    status = make(options, files, &output, &error);
    for (size_t i = 0; i < options->nfiles; i++)
        zipccl_report_destroy(files[i]);
    if (status != ZIPCCL_OK)
        return zipccl_print_error(program, status, &error);
    if (!options->quiet && !output.standard)
        printf("wrote %s (page of %zu result%s)\n", options->output, options->nfiles,
               options->nfiles == 1 ? "" : "s");
    return ZIPCCL_EXIT_OK;
}

int zipccl_report_command(int argc, char **argv)
{
    static const struct argp argp = {option_table, parse_option, "RESULT... -o PAGE", doc, NULL,
                                     NULL,         NULL};
    struct options *options = calloc(1, sizeof *options);
    bool helped;
    int code = ZIPCCL_EXIT_FAILED;

    if (options == NULL)
        return code;
    code = zipccl_parse_options(&argp, argc, argv, program, "zipccl report", options, &helped);
    if (code == ZIPCCL_EXIT_OK && !helped)
        code = run(options);
    free(options);
    return code;
}
