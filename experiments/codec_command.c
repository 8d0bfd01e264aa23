/*
 * codec_command.c - zipccl codec stat
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/codec_command.h"

#include "experiments/codec_stat.h"
#include "experiments/inspect.h"
#include "experiments/program.h"

#include <errno.h>
#include <gsl/gsl_errno.h>
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
    "Look at what the codec makes of tensors."
    "\v  stat FILE.safetensors   per tensor: n, type, sigma, the law that fits, entropy of the "
    "exponents, the bound 16/(8+H) of a coder of exponents, the ratio that the fitted law "
    "predicts and the ratio measured; every tensor is decoded and compared bit for bit";

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;

    switch (key) {
    case 'J':
        if (options->json != NULL) {
            zipccl_usage_error(program, "codec: -J is given twice");
            return ECANCELED;
        }
        options->json = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (options->path != NULL) {
            zipccl_usage_error(program, "codec: unexpected argument '%s'", arg);
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

int zipccl_codec_command(int argc, char **argv)
{
    static const struct argp argp = {option_table, parse_option, "stat FILE.safetensors", doc, NULL,
                                     NULL,         NULL};
    struct options options = {0};
    struct zipccl_error error = {""};
    bool helped;
    int code = zipccl_parse_options(&argp, argc, argv, program, "zipccl codec", &options, &helped);

    if (code != ZIPCCL_EXIT_OK || helped)
        return code;
    if (options.action == NULL || strcmp(options.action, "stat") != 0)
        return zipccl_usage_error(program, "codec: expected 'stat', found '%s'",
                                  options.action != NULL ? options.action : "nothing");
    if (options.path == NULL)
        return zipccl_usage_error(program, "codec stat: name a .safetensors file");
    /* GSL aborts the process at an error unless told to return it. */
    gsl_set_error_handler_off();
    zipccl_status status = zipccl_inspect(options.path, options.json, zipccl_output_spare,
                                          zipccl_codec_stat_print, zipccl_codec_stat_json, &error);
    return status == ZIPCCL_OK ? ZIPCCL_EXIT_OK : zipccl_print_error(program, status, &error);
}
