/*
 * codec_conform_command.c - zipccl codec conform
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/codec/codec_command.h"
#include "experiments/codec/codec_conform.h"
#include "experiments/program/output.h"
#include "experiments/program/program.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static const char program[] = "zipccl";

struct options {
    const char *vectors, *json;
    bool quiet;
    double timeout_s;
    char **command; /* [nwords] of NULL-ended words */
    int nwords;
};

enum { KEY_VECTORS = 0x100, KEY_TIMEOUT };

static const struct argp_option option_table[] = {
    {"vectors", KEY_VECTORS, "DIR", 0, "a folder with MANIFEST.tsv; default: zipccl's own", 0},
    {"timeout", KEY_TIMEOUT, "SECONDS", 0, "for each vector; default: 10", 0},
    {"json", 'J', "FILE", 0,
     "write the verdicts as JSON; '-': to standard output, instead of the "
     "text",
     0},
    {"quiet", 'q', NULL, 0, "print nothing but errors", 0},
    {0}};

static const char doc[] =
    "Run the format's test vectors through another decoder."
    "\vCOMMAND is started once a vector.  It reads a message from standard input, writes its "
    "elements "
    "to standard output and ends with exit code 0; a message that breaks a rule of core/FORMAT.md, "
    "or has no elements (OVERFLOW), it refuses with another exit code.  A crash is no refusal.  "
    "Exit code 1 if a vector failed.\n\n"
    "Examples:\n"
    "  zipccl codec conform -- python3 core/tests/decoder.py\n"
    "  zipccl codec conform --timeout 60 -J verdicts.json -- ./my_decoder --strict";

static error_t parse_timeout(struct options *options, const char *arg)
{
    char *end;

    options->timeout_s = strtod(arg, &end);
    if (end == arg || *end != '\0' || !isfinite(options->timeout_s) || options->timeout_s <= 0 ||
        options->timeout_s > 86400) {
        zipccl_usage_error(
            program, "codec conform: --timeout '%s', expected seconds above 0, at most 86400", arg);
        return ECANCELED;
    }
    return 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;

    switch (key) {
    case 'J': options->json = arg; return 0;
    case 'q': options->quiet = true; return 0;
    case KEY_VECTORS: options->vectors = arg; return 0;
    case KEY_TIMEOUT: return parse_timeout(options, arg);
    case ARGP_KEY_ARG: options->command[options->nwords++] = arg; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* The vectors of the source tree that this program was built from. */
static zipccl_status find_vectors(const struct options *options, char path[4096],
                                  struct zipccl_error *error)
{
    if (options->vectors == NULL)
        return zipccl_beside_program(ZIPCCL_VECTORS_DIR, path, 4096, error);
    if (snprintf(path, 4096, "%s", options->vectors) >= 4096)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "--vectors: the path is too long");
    return ZIPCCL_OK;
}

/* The verdicts must not overwrite what they are about. */
static zipccl_status spare(const struct zipccl_output *json, const char *directory,
                           const struct zipccl_vectors *vectors, struct zipccl_error *error)
{
    char path[4096 + 64];

    snprintf(path, sizeof path, "%s/MANIFEST.tsv", directory);
    ZIPCCL_TRY(zipccl_output_spare(json, path, error));
    for (size_t i = 0; i < vectors->count; i++) {
        snprintf(path, sizeof path, "%s/%.60s", directory, vectors->vectors[i].name);
        ZIPCCL_TRY(zipccl_output_spare(json, path, error));
    }
    return ZIPCCL_OK;
}

static zipccl_status write_json(const struct zipccl_conform_result *result,
                                struct zipccl_output *json, struct zipccl_error *error)
{
    ZIPCCL_TRY(zipccl_output_open(json, error));
    if (json->file != NULL) {
        errno = 0;
        zipccl_status status = zipccl_conform_json(result, json->file, error);
        if (status == ZIPCCL_ERR_IO)
            return zipccl_fail(error, status, "%s: cannot write: %s", json->path, strerror(errno));
        ZIPCCL_TRY(status);
    }
    ZIPCCL_TRY(zipccl_output_close(json, error));
    return zipccl_output_commit(json, error);
}

static zipccl_status run(const struct options *options, struct zipccl_conform_result *result,
                         struct zipccl_error *error)
{
    struct zipccl_vectors vectors = {0};
    struct zipccl_output json;
    char path[4096];

    ZIPCCL_TRY(find_vectors(options, path, error));
    ZIPCCL_TRY(zipccl_output_check(&json, options->json, error));
    ZIPCCL_TRY(zipccl_vectors_load(path, &vectors, error));
    /* A decoder that does not read its input to the end is no reason to die. */
    signal(SIGPIPE, SIG_IGN);
    zipccl_status status = spare(&json, path, &vectors, error);
    if (status == ZIPCCL_OK)
        status = zipccl_conform_run(&vectors, result,
                                    options->quiet || json.standard ? NULL : stdout, error);
    if (status == ZIPCCL_OK)
        status = write_json(result, &json, error);
    zipccl_output_discard(&json);
    zipccl_vectors_destroy(&vectors);
    return status;
}

int zipccl_codec_conform_command(int argc, char **argv)
{
    static const struct argp argp = {
        option_table, parse_option, "-- COMMAND [ARGUMENT...]", doc, NULL, NULL, NULL};
    struct options options = {.timeout_s = 10};
    struct zipccl_error error = {""};
    bool helped;

    options.command = calloc((size_t)argc + 1, sizeof *options.command);
    if (options.command == NULL)
        return zipccl_usage_error(program, "out of memory");
    int code =
        zipccl_parse_options(&argp, argc, argv, program, "zipccl codec conform", &options, &helped);
    if (code == ZIPCCL_EXIT_OK && !helped && options.nwords == 0)
        code = zipccl_usage_error(program, "codec conform: name the decoder's command after '--'");
    if (code == ZIPCCL_EXIT_OK && !helped) {
        struct zipccl_conform_result result = {.command = options.command,
                                               .timeout_s = options.timeout_s};
        zipccl_status status = run(&options, &result, &error);

        if (status != ZIPCCL_OK)
            code = zipccl_print_error(program, status, &error);
        else if (result.nfailed > 0)
            code = ZIPCCL_EXIT_FAILED;
        free(result.verdicts);
    }
    free(options.command);
    return code;
}
