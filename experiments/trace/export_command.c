/*
 * export_command.c - zipccl trace export: a trace in, files of other tools out
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/trace/export_command.h"

#include "experiments/trace/foreign.h"
#include "experiments/program/on_signal.h"
#include "experiments/program/program.h"
#include "traces/export_chakra.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char program[] = "zipccl";

struct options {
    const char *format, *path, *prefix;
    bool quiet;
};

static const struct argp_option option_table[] = {
    {"output", 'o', "PREFIX", 0,
     "files are PREFIX.0.et, PREFIX.1.et, ... PREFIX.comm_group.json; "
     "its last folder is made if missing",
     0},
    {"quiet", 'q', NULL, 0, "print nothing", 0},
    {0}};

static const char doc[] =
    "Write a trace as files of other tools. FORMAT is chakra: execution traces of MLCommons "
    "Chakra, "
    "which ASTRA-sim reads, one file a rank.\v"
    "Loops and repeats are written out; a call depends on the one before it in its stream, as such "
    "files have no streams. What they cannot say is printed; traces/IMPORT.md has the rest. "
    "'zipccl "
    "trace import' reads them back.\n\n"
    "Example:\n"
    "  zipccl trace export chakra step.jsonl -o out/step";

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;

    switch (key) {
    case 'o':
        if (options->prefix != NULL) {
            zipccl_usage_error(program, "trace export: -o is given twice");
            return ECANCELED;
        }
        options->prefix = arg;
        return 0;
    case 'q': options->quiet = true; return 0;
    case ARGP_KEY_ARG:
        if (options->path != NULL) {
            zipccl_usage_error(program, "trace export: unexpected argument '%s'", arg);
            return ECANCELED;
        }
        if (options->format == NULL)
            options->format = arg;
        else
            options->path = arg;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static int check_options(const struct options *options)
{
    if (options->format == NULL || strcmp(options->format, "chakra") != 0)
        return zipccl_usage_error(program, "trace export: expected the format 'chakra', found '%s'",
                                  options->format != NULL ? options->format : "nothing");
    if (options->path == NULL)
        return zipccl_usage_error(program, "trace export: name a trace");
    if (options->prefix == NULL || options->prefix[0] == '\0')
        return zipccl_usage_error(program, "trace export: no -o PREFIX given");
    return ZIPCCL_EXIT_OK;
}

static void print(const struct options *options, const struct zipccl_export_report *report)
{
    printf("export   chakra: %" PRIu64 " files %s.RANK.et, %" PRIu64
           " nodes; groups in %s.comm_group.json\n",
           report->nfiles, options->prefix, report->nnodes, options->prefix);
    if (report->nuneven > 0)
        printf(" lost    %" PRIu64 " uneven all-to-alls: the files have what a rank sends in all, "
               "not to whom\n",
               report->nuneven);
    if (report->nsamples > 0)
        printf(" lost    %" PRIu64 " calls with samples: the files cannot name tensors\n",
               report->nsamples);
}

/* Make the last folder of the files; its name if it was missing, malloc. */
static char *make_folder(const char *prefix)
{
    const char *slash = strrchr(prefix, '/');
    char *folder = slash != NULL && slash > prefix ? strdup(prefix) : NULL;

    if (folder == NULL)
        return NULL;
    folder[slash - prefix] = '\0';
    if (mkdir(folder, 0777) == 0)
        return folder;
    free(folder); /* it is there, or opening the files tells what is wrong */
    return NULL;
}

static zipccl_status export_files(const struct options *options, const struct zipccl_trace *trace,
                                  struct zipccl_export_report *report, struct zipccl_error *error)
{
    char *made = make_folder(options->prefix);
    zipccl_status status;

    zipccl_on_signal_remove_export(options->prefix, trace->header.nranks, made);
    status = zipccl_export_chakra(trace, options->prefix, report, error);
    zipccl_on_signal_keep();
    if (status != ZIPCCL_OK && made != NULL)
        rmdir(made);
    free(made);
    return status;
}

static int run(const struct options *options)
{
    struct zipccl_export_report report;
    struct zipccl_error error = {""};
    struct zipccl_trace *trace;
    zipccl_status status = zipccl_foreign_load(options->path, &trace, &error);

    if (status != ZIPCCL_OK)
        return zipccl_print_error(program, status, &error);
    status = export_files(options, trace, &report, &error);
    zipccl_trace_destroy(trace);
    if (status != ZIPCCL_OK)
        return zipccl_print_error(program, status, &error);
    if (!options->quiet)
        print(options, &report);
    return ZIPCCL_EXIT_OK;
}

int zipccl_export_command(int argc, char **argv)
{
    static const struct argp argp = {
        option_table, parse_option, "FORMAT TRACE -o PREFIX", doc, NULL, NULL, NULL};
    struct options options = {0};
    bool helped;
    int code =
        zipccl_parse_options(&argp, argc, argv, program, "zipccl trace export", &options, &helped);

    if (code != ZIPCCL_EXIT_OK || helped)
        return code;
    code = check_options(&options);
    return code == ZIPCCL_EXIT_OK ? run(&options) : code;
}
