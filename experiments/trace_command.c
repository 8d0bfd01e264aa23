/*
 * trace_command.c - zipccl trace: info, and the way to import
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/trace_command.h"

#include "experiments/import_command.h"
#include "experiments/output.h"
#include "experiments/program.h"
#include "traces/info.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char program[] = "zipccl";

struct options {
    const char *action, *path, *json;
};

static const struct argp_option option_table[] = {
    {"json", 'J', "FILE", 0, "write the same as JSON", 0}, {0}};

static const char doc[] =
    "Look at training traces, and make them from files of other tools."
    "\v  info TRACE               what it is, its groups, events and samples; the whole "
    "trace is read and checked\n"
    "  import FILE... -o OUT    make a trace; 'zipccl trace import --help' lists formats and "
    "options";

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;

    switch (key) {
    case 'J': options->json = arg; return 0;
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

static zipccl_status write_json(const struct options *options, struct zipccl_error *error)
{
    struct zipccl_output output;
    zipccl_status status;

    ZIPCCL_TRY(zipccl_output_check(&output, options->json, error));
    if (zipccl_output_is(&output, options->path))
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: an output must not overwrite an input",
                           output.path);
    status = zipccl_output_open(&output, error);
    if (status == ZIPCCL_OK && output.file != NULL)
        status = zipccl_trace_info_json(options->path, output.file, error);
    if (status == ZIPCCL_OK)
        status = zipccl_output_close(&output, error);
    if (status == ZIPCCL_OK)
        status = zipccl_output_commit(&output, error);
    zipccl_output_discard(&output);
    return status;
}

/* Into memory first: a trace that is broken at its end prints an error, not half a table. */
static zipccl_status print_info(const struct options *options, struct zipccl_error *error)
{
    char *text = NULL;
    size_t n = 0;
    FILE *memory = open_memstream(&text, &n);

    if (memory == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "trace: out of memory");
    zipccl_status status = zipccl_trace_info_print(options->path, memory, error);
    if (fclose(memory) != 0 && status == ZIPCCL_OK)
        status = zipccl_fail(error, ZIPCCL_ERR_NOMEM, "trace: out of memory");
    if (status == ZIPCCL_OK)
        fwrite(text, 1, n, stdout);
    free(text);
    return status;
}

int zipccl_trace_command(int argc, char **argv)
{
    static const struct argp argp = {
        option_table, parse_option, "info TRACE | import FILE... -o OUT", doc, NULL, NULL, NULL};
    struct options options = {0};
    struct zipccl_error error = {""};
    bool helped;

    if (argc > 1 && strcmp(argv[1], "import") == 0)
        return zipccl_import_command(argc - 1, argv + 1);
    int code = zipccl_parse_options(&argp, argc, argv, program, "zipccl trace", &options, &helped);

    if (code != ZIPCCL_EXIT_OK || helped)
        return code;
    if (options.action == NULL || strcmp(options.action, "info") != 0)
        return zipccl_usage_error(program, "trace: expected 'info' or 'import', found '%s'",
                                  options.action != NULL ? options.action : "nothing");
    if (options.path == NULL)
        return zipccl_usage_error(program, "trace info: name a trace");
    zipccl_status status = write_json(&options, &error);
    if (status == ZIPCCL_OK)
        status = print_info(&options, &error);
    return status == ZIPCCL_OK ? ZIPCCL_EXIT_OK : zipccl_print_error(program, status, &error);
}
