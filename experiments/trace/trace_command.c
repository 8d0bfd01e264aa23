/*
 * trace_command.c - zipccl trace: info, check, and the ways to import and generate
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/trace/trace_command.h"

#include "experiments/trace/export_command.h"
#include "experiments/trace/foreign.h"
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

enum { MAX_PATHS = 4096 };

struct options {
    const char *action, *paths[MAX_PATHS], *json;
    size_t npaths;
};

static const struct argp_option option_table[] = {
    {"json", 'J', "FILE", 0, "write the same as JSON; '-': to standard output, instead of the text",
     0},
    {0}};

static const char doc[] =
    "Look at training traces, and make them from files of other tools."
    "\v  info TRACE        what it is, its groups, events and samples\n"
    "  check TRACE       whether it is whole, and what it lacks\n"
    "                    (both also take what 'import' knows, a file or a folder,\n"
    "                    and tell what had to be assumed)\n"
    "  import FILE...    make a trace of other tools' files\n"
    "  generate          make up a step from a model and a parallelism\n"
    "  models            the bundled models, with their parameters\n"
    "  rescale TRACE     the same for more or fewer ranks\n"
    "  export FORMAT     write a trace as files of other tools (chakra)\n\n"
    "'zipccl trace import --help' and so on tell more. Exit code 2: the trace is broken, or the "
    "usage is wrong.";

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
        if (options->npaths == MAX_PATHS) {
            zipccl_usage_error(program, "trace: more than %d files", MAX_PATHS);
            return ECANCELED;
        }
        if (options->action == NULL)
            options->action = arg;
        else
            options->paths[options->npaths++] = arg;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* Where the reader of traces failed, what the file is may say more than where it stopped. */
static zipccl_status explained(const struct options *options, zipccl_status status,
                               const struct zipccl_error *why, struct zipccl_error *error)
{
    return status == ZIPCCL_OK ? status
                               : zipccl_foreign_explain(options->paths[0], status, why, error);
}

static bool is_foreign(const struct options *options)
{
    return options->npaths > 1 || zipccl_foreign_is(options->paths[0]);
}

static int check_trace(const struct options *options)
{
    struct zipccl_error error = {""}, why = {""};
    zipccl_status status;

    if (options->json != NULL)
        return zipccl_usage_error(program, "trace check: -J is for 'trace info'");
    if (is_foreign(options))
        status = zipccl_foreign_inspect(options->paths, options->npaths, NULL,
                                        zipccl_trace_check_print, NULL, &error);
    else
        status = explained(options, zipccl_trace_check_print(options->paths[0], stdout, &why), &why,
                           &error);
    return status == ZIPCCL_OK ? ZIPCCL_EXIT_OK : zipccl_print_error(program, status, &error);
}

static int info_trace(const struct options *options)
{
    struct zipccl_error error = {""}, why = {""};
    zipccl_status status;

    if (is_foreign(options))
        status = zipccl_foreign_inspect(options->paths, options->npaths, options->json,
                                        zipccl_trace_info_print, zipccl_trace_info_json, &error);
    else
        status =
            explained(options,
                      zipccl_inspect(options->paths[0], options->json, zipccl_output_spare_trace,
                                     zipccl_trace_info_print, zipccl_trace_info_json, &why),
                      &why, &error);
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
    if (options.npaths == 0)
        return zipccl_usage_error(program, "trace %s: name a trace", options.action);
    if (options.npaths > 1 && !zipccl_foreign_joins(options.paths, options.npaths))
        return zipccl_usage_error(program,
                                  "trace %s: unexpected argument '%s': one trace, or the files of "
                                  "the ranks of a step, in one folder",
                                  options.action, options.paths[1]);
    if (checks)
        return check_trace(&options);
    return info_trace(&options);
}
