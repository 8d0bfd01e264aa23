/*
 * codec_stat_command.c - zipccl codec stat
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/codec/codec_command.h"
#include "experiments/codec/codec_stat.h"
#include "experiments/trace/inspect.h"
#include "experiments/program/program.h"

#include <errno.h>
#include <gsl/gsl_errno.h>
#include <string.h>

static const char program[] = "zipccl";

struct options {
    const char *path, *json;
};

static const struct argp_option option_table[] = {
    {"json", 'J', "FILE", 0, "write the same as JSON; '-': to standard output, instead of the text",
     0},
    {0}};

static const char doc[] =
    "What the codec makes of the tensors of a file, per tensor and in total: n, type, sigma, the "
    "law that fits, entropy of the exponents, the ratio that the entropy, Huffman's code and the "
    "fitted law promise, the ratio measured, the worst block, and the tier programs taken. Every "
    "tensor is decoded and compared bit for bit."
    "\vExamples:\n"
    "  zipccl codec stat model.safetensors\n"
    "  zipccl codec stat model.safetensors -J stat.json";

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;

    switch (key) {
    case 'J':
        if (options->json != NULL) {
            zipccl_usage_error(program, "codec stat: -J is given twice");
            return ECANCELED;
        }
        options->json = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (options->path != NULL) {
            zipccl_usage_error(program, "codec stat: unexpected argument '%s'", arg);
            return ECANCELED;
        }
        options->path = arg;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

int zipccl_codec_stat_command(int argc, char **argv)
{
    static const struct argp argp = {option_table, parse_option, "FILE.safetensors", doc, NULL,
                                     NULL,         NULL};
    struct options options = {0};
    struct zipccl_error error = {""};
    bool helped;
    int code =
        zipccl_parse_options(&argp, argc, argv, program, "zipccl codec stat", &options, &helped);

    if (code != ZIPCCL_EXIT_OK || helped)
        return code;
    if (options.path == NULL)
        return zipccl_usage_error(program, "codec stat: name a .safetensors file");
    /* GSL aborts the process at an error unless told to return it. */
    gsl_set_error_handler_off();
    zipccl_status status = zipccl_inspect(options.path, options.json, zipccl_output_spare,
                                          zipccl_codec_stat_print, zipccl_codec_stat_json, &error);
    return status == ZIPCCL_OK ? ZIPCCL_EXIT_OK : zipccl_print_error(program, status, &error);
}
