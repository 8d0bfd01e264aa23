/*
 * trace_command.c - zipccl trace: info, check, and the ways to import and generate
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/trace/trace_command.h"

#include "experiments/trace/export_command.h"
#include "experiments/trace/generate_command.h"
#include "experiments/trace/import_command.h"
#include "experiments/trace/inspect.h"
#include "experiments/program/program.h"
#include "experiments/trace/rescale_command.h"
#include "experiments/trace/spare_trace.h"
#include "traces/check.h"
#include "traces/info.h"

#include <errno.h>
#include <string.h>

static const char program[] = "zipccl";

struct options {
    const char *action, *path, *json;
};

static const struct argp_option option_table[] = {
    {"json", 'J', "FILE", 0, "write the same as JSON; '-': to standard output, instead of the text",
     0},
    {0}};

static const char doc[] =
    "Look at training traces, and make them from files of other tools."
    "\v  info TRACE               what it is, its groups, events and samples; the whole "
    "trace is read and checked\n"
    "  check TRACE              whether it is whole, and what it lacks; exit code 2 if it is "
    "broken\n"
    "  generate ... -o OUT      make up a step from a model and a parallelism; 'zipccl trace "
    "generate --help'\n"
    "  models                   the bundled models, with their parameters\n"
    "  import FILE... -o OUT    make a trace; 'zipccl trace import --help' lists formats and "
    "options\n"
    "  export FORMAT TRACE -o PREFIX\n"
    "                           write a trace as files of other tools (chakra)\n"
    "  rescale TRACE --ranks N -o OUT\n"
    "                           the same for more or fewer data-parallel ranks";

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;

    switch (key) {
    case 'J':
        if (options->json != NULL) {
            zipccl_usage_error(program, "trace: -J is given twice");
            return ECANCELED;
        }
        options->json = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (options->path != NULL) {
            zipccl_usage_error(program, "trace: unexpected argument '%s'", arg);
            return ECANCELED;
        }
        if (options->action == NULL)
            options->action = arg;
        else
            options->path = arg;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static int check_trace(const struct options *options)
{
    struct zipccl_error error = {""};

    if (options->json != NULL)
        return zipccl_usage_error(program, "trace check: -J is for 'trace info'");
    zipccl_status status = zipccl_trace_check_print(options->path, stdout, &error);
    return status == ZIPCCL_OK ? ZIPCCL_EXIT_OK : zipccl_print_error(program, status, &error);
}

int zipccl_trace_command(int argc, char **argv)
{
    static const struct argp argp = {
        option_table,
        parse_option,
        "info TRACE | check TRACE | import FILE... -o OUT | generate ... -o OUT | models | "
        "export FORMAT TRACE -o PREFIX | rescale TRACE --ranks N -o OUT",
        doc,
        NULL,
        NULL,
        NULL};
    struct options options = {0};
    struct zipccl_error error = {""};
    bool helped;

    if (argc > 1 && strcmp(argv[1], "export") == 0)
        return zipccl_export_command(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "rescale") == 0)
        return zipccl_rescale_command(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "import") == 0)
        return zipccl_import_command(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "generate") == 0)
        return zipccl_generate_command(argc - 1, argv + 1);
    if (argc > 1 && strcmp(argv[1], "models") == 0)
        return zipccl_models_command(argc - 1, argv + 1);
    int code = zipccl_parse_options(&argp, argc, argv, program, "zipccl trace", &options, &helped);

    if (code != ZIPCCL_EXIT_OK || helped)
        return code;
    bool checks = options.action != NULL && strcmp(options.action, "check") == 0;

    if (!checks && (options.action == NULL || strcmp(options.action, "info") != 0))
        return zipccl_usage_error(
            program,
            "trace: expected 'info', 'check', 'import', 'generate', 'models', "
            "'export' or 'rescale', found '%s'",
            options.action != NULL ? options.action : "nothing");
    if (options.path == NULL)
        return zipccl_usage_error(program, "trace %s: name a trace", options.action);
    if (checks)
        return check_trace(&options);
    zipccl_status status = zipccl_inspect(options.path, options.json, zipccl_output_spare_trace,
                                          zipccl_trace_info_print, zipccl_trace_info_json, &error);
    return status == ZIPCCL_OK ? ZIPCCL_EXIT_OK : zipccl_print_error(program, status, &error);
}
