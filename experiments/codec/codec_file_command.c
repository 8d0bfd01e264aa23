/*
 * codec_file_command.c - zipccl codec encode and decode
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/codec_mt.h"
#include "experiments/codec/codec_command.h"
#include "experiments/codec/codec_file_print.h"
#include "experiments/program/on_signal.h"
#include "experiments/program/output.h"
#include "experiments/program/program.h"
#include "experiments/program/progress.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char program[] = "zipccl";

_Static_assert(ZIPCCL_MAX_THREADS == 256, "what -t is said to take");

struct options {
    bool encode, force, quiet;
    const char *action; /* "codec encode", for messages */
    const char *in, *out, *json, *dtype_name;
    enum zipccl_dtype dtype;
    enum zipccl_effort effort;
    const char *threads; /* as given */
    uint32_t nthreads;
};

enum { KEY_DTYPE = 0x100, KEY_EFFORT };

static const struct argp_option encode_options[] = {
    {"output", 'o', "OUT", 0, "the coded file; '-': standard output", 0},
    {"dtype", KEY_DTYPE, "TYPE", 0,
     "FILE is no .safetensors but elements of TYPE: bf16, fp16, fp32, fp8_e4m3, fp8_e5m2; any "
     "other type "
     "is stored as it is",
     0},
    {"effort", KEY_EFFORT, "EFFORT", 0,
     "fast (default), or ratio: somewhat smaller, several times slower to encode and to decode", 0},
    {"nthreads", 't', "N", 0, "threads that code a segment together (default 1); same bytes", 0},
    {"force", 'f', NULL, 0, "replace OUT if it exists", 0},
    {"json", 'J', "JSON", 0,
     "write sizes, ratio and speed as JSON; '-': to standard output, "
     "instead of the text",
     0},
    {"quiet", 'q', NULL, 0, "print nothing but errors", 0},
    {0}};

static const struct argp_option decode_options[] = {
    {"output", 'o', "OUT", 0, "the file as it was; '-': standard output", 0},
    {"nthreads", 't', "N", 0, "threads that decode a segment together (default 1)", 0},
    {"force", 'f', NULL, 0, "replace OUT if it exists", 0},
    {"json", 'J', "JSON", 0,
     "write sizes, ratio and speed as JSON; '-': to standard output, "
     "instead of the text",
     0},
    {"quiet", 'q', NULL, 0, "print nothing but errors", 0},
    {0}};

static const char encode_doc[] =
    "Compress a file without loss; 'zipccl codec decode' restores it bit for bit."
    "\vFILE is a .safetensors file, or with --dtype any file; '-' is standard input.  The tensors "
    "of a floating type are coded, all other bytes stored.  Each segment is decoded again and "
    "compared before it is written, and carries a checksum.  OUT appears when it is complete.\n\n"
    "Examples:\n"
    "  zipccl codec encode model.safetensors -o model.zcf\n"
    "  zipccl codec encode grads.bin --dtype bf16 -o grads.zcf -J sizes.json\n"
    "  zipccl codec encode - -o - <model.safetensors | ssh host 'cat >m.zcf'";

static const char decode_doc[] =
    "Restore a file that 'zipccl codec encode' made, bit for bit."
    "\vFILE is the coded file; '-' is standard input.  Every segment's checksum is compared before "
    "its bytes are used, and the checksum of the whole file at the end; damage is told with its "
    "place, and OUT appears only if there is none.  With '-o -' what stands before the damage has "
    "been written when it is found.\n\n"
    "Examples:\n"
    "  zipccl codec decode model.zcf -o model.safetensors\n"
    "  zipccl codec decode model.zcf -o - | sha256sum";

static error_t refuse(const struct options *options, const char *what, const char *value)
{
    zipccl_usage_error(program, "%s: %s%s%s%s", options->action, what, value != NULL ? " '" : "",
                       value != NULL ? value : "", value != NULL ? "'" : "");
    return ECANCELED;
}

static error_t set_once(const struct options *options, const char **to, char *value,
                        const char *name)
{
    if (*to != NULL)
        return refuse(options, "given twice:", name);
    *to = value;
    return 0;
}

static error_t set_threads(struct options *options, char *text)
{
    char *end;
    errno = 0;
    unsigned long n = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || n < 1 ||
        n > ZIPCCL_MAX_THREADS)
        return refuse(options, "-t: expected a number from 1 to 256, found", text);
    options->nthreads = (uint32_t)n;
    return set_once(options, &options->threads, text, "-t");
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;

    switch (key) {
    case 'o': return set_once(options, &options->out, arg, "-o");
    case 'J': return set_once(options, &options->json, arg, "-J");
    case 't': return set_threads(options, arg);
    case 'f': options->force = true; return 0;
    case 'q': options->quiet = true; return 0;
    case KEY_DTYPE:
        if (!zipccl_dtype_parse(arg, &options->dtype))
            return refuse(options,
                          "--dtype: expected bf16, fp16, fp32, fp8_e4m3, fp8_e5m2 "
                          "or another type's name, found",
                          arg);
        return set_once(options, &options->dtype_name, arg, "--dtype");
    case KEY_EFFORT:
        if (strcmp(arg, "fast") != 0 && strcmp(arg, "ratio") != 0)
            return refuse(options, "--effort: expected fast or ratio, found", arg);
        options->effort = arg[0] == 'f' ? ZIPCCL_EFFORT_FAST : ZIPCCL_EFFORT_RATIO;
        return 0;
    case ARGP_KEY_ARG:
        if (options->in != NULL)
            return refuse(options, "unexpected argument", arg);
        options->in = arg;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static zipccl_status open_input(const char *path, struct zipccl_file_job *job,
                                struct zipccl_error *error)
{
    struct stat info;

    job->in_name = strcmp(path, "-") == 0 ? "standard input" : path;
    job->in = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (job->in == NULL || fstat(fileno(job->in), &info) != 0)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: %s", job->in_name, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: cannot read: it is a folder", path);
    if (S_ISREG(info.st_mode) && job->in != stdin)
        job->in_bytes = (uint64_t)info.st_size;
    return ZIPCCL_OK;
}

/* Where results may go: no input, no two of one name, nothing that exists unless asked for. */
static zipccl_status check_outputs(const struct options *options, struct zipccl_output *out,
                                   struct zipccl_output *json, struct zipccl_error *error)
{
    struct stat info;

    ZIPCCL_TRY(zipccl_output_check(out, options->out, error));
    ZIPCCL_TRY(zipccl_output_check(json, options->json, error));
    ZIPCCL_TRY(zipccl_output_spare(out, options->in, error));
    ZIPCCL_TRY(zipccl_output_spare(json, options->in, error));
    ZIPCCL_TRY(zipccl_output_differ(out, json, error));
    if (!out->direct && !options->force && stat(out->target, &info) == 0)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: exists; --force replaces it",
                           options->out);
    if (out->standard && isatty(STDOUT_FILENO))
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "standard output is a terminal; name a file or a pipe");
    return ZIPCCL_OK;
}

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Code the file, into a temporary one that gets its name if all went well. */
static zipccl_status transfer(const struct options *options, struct zipccl_file_job *job,
                              struct zipccl_output *out, struct zipccl_file_result *result,
                              struct zipccl_error *error)
{
    struct zipccl_progress progress;
    double start = now();

    ZIPCCL_TRY(zipccl_output_open(out, error));
    if (out->partial[0] != '\0')
        zipccl_on_signal_remove(out->partial);
    zipccl_progress_start(&progress, options->encode ? "encode" : "decode",
                          !options->quiet && job->in_bytes > 0);
    job->effort = options->effort;
    job->nthreads = options->nthreads;
    job->out = out->file;
    job->out_name = out->standard ? "standard output" : options->out;
    job->progress = progress.wanted ? zipccl_progress_update : NULL;
    job->progress_context = &progress;
    zipccl_status status = options->encode
                               ? zipccl_file_encode(job, options->dtype, &result->stats, error)
                               : zipccl_file_decode(job, &result->stats, error);
    zipccl_progress_end(&progress);
    if (status == ZIPCCL_OK && fflush(out->file) != 0)
        status = zipccl_fail(error, ZIPCCL_ERR_IO, "%s: cannot write: %s", job->out_name,
                             strerror(errno));
    if (status == ZIPCCL_OK)
        status = zipccl_output_close(out, error);
    result->seconds = now() - start;
    return status;
}

/* The summary as JSON, then both files get their names, then the summary as text. */
static zipccl_status report(const struct options *options, struct zipccl_output *out,
                            struct zipccl_output *json, const struct zipccl_file_result *result,
                            struct zipccl_error *error)
{
    ZIPCCL_TRY(zipccl_output_open(json, error));
    if (json->file != NULL)
        ZIPCCL_TRY(zipccl_file_json(result, json->file, error));
    ZIPCCL_TRY(zipccl_output_close(json, error));
    ZIPCCL_TRY(zipccl_output_commit(out, error));
    ZIPCCL_TRY(zipccl_output_commit(json, error));
    if (!options->quiet && !json->standard)
        zipccl_file_print(result, out->standard ? stderr : stdout);
    return ZIPCCL_OK;
}

static int run(const struct options *options)
{
    struct zipccl_file_job job = {0};
    struct zipccl_output out = {0}, json = {0};
    struct zipccl_file_result result = {.encode = options->encode};
    struct zipccl_error error = {""};
    zipccl_status status = open_input(options->in, &job, &error);

    if (status == ZIPCCL_OK)
        status = check_outputs(options, &out, &json, &error);
    result.in_name = job.in_name;
    result.out_name = options->out;
    if (status == ZIPCCL_OK)
        status = transfer(options, &job, &out, &result, &error);
    if (status == ZIPCCL_OK)
        status = report(options, &out, &json, &result, &error);
    zipccl_output_discard(&out);
    zipccl_output_discard(&json);
    zipccl_on_signal_keep();
    if (job.in != NULL && job.in != stdin)
        fclose(job.in);
    return status == ZIPCCL_OK ? ZIPCCL_EXIT_OK : zipccl_print_error(program, status, &error);
}

static int command(const struct argp *argp, struct options *options, int argc, char **argv)
{
    bool helped;
    char usage[64];

    snprintf(usage, sizeof usage, "zipccl %s", options->action);
    int code = zipccl_parse_options(argp, argc, argv, program, usage, options, &helped);
    if (code != ZIPCCL_EXIT_OK || helped)
        return code;
    if (options->in == NULL)
        return zipccl_usage_error(program, "%s: name a file; '-' is standard input",
                                  options->action);
    if (options->out == NULL)
        return zipccl_usage_error(program, "%s: -o names the file to write; '-' is standard output",
                                  options->action);
    return run(options);
}

int zipccl_codec_encode_command(int argc, char **argv)
{
    static const struct argp argp = {encode_options, parse_option, "FILE -o OUT", encode_doc,
                                     NULL,           NULL,         NULL};
    struct options options = {
        .encode = true, .action = "codec encode", .dtype = ZIPCCL_FILE_SAFETENSORS};

    return command(&argp, &options, argc, argv);
}

int zipccl_codec_decode_command(int argc, char **argv)
{
    static const struct argp argp = {decode_options, parse_option, "FILE -o OUT", decode_doc,
                                     NULL,           NULL,         NULL};
    struct options options = {.action = "codec decode"};

    return command(&argp, &options, argc, argv);
}
