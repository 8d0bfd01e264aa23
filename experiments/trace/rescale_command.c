/*
 * rescale_command.c - zipccl trace rescale: a trace of other ranks
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/trace/rescale_command.h"

#include "experiments/trace/foreign.h"
#include "experiments/program/on_signal.h"
#include "experiments/program/output.h"
#include "experiments/program/program.h"
#include "experiments/program/relative_path.h"
#include "experiments/trace/spare_trace.h"
#include "traces/rescale.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const char program[] = "zipccl";

enum { MAX_SCALED = 64, KEY_RANKS = 0x100, KEY_SCALE, KEY_MAP };

struct options {
    const char *path, *out;
    bool quiet;
    struct zipccl_rescale_options rescale;
    const char *scaled[MAX_SCALED], *map[MAX_SCALED];
    bool *grows; /* [ngroups] of the trace */
};

static const struct argp_option option_table[] = {
    {"ranks", KEY_RANKS, "N", 0, "ranks of the new trace: a multiple or a divisor of the old ones",
     0},
    {"map", KEY_MAP, "GROUP=SIZE", 0,
     "members of a group in the new trace, may be repeated; ranks follow from it. Its old size: it "
     "stays. Groups that are not named go by the default of --scale; if one that is not of data "
     "parallelism changes, only those do that contain all that change",
     0},
    {"scale", KEY_SCALE, "GROUP", 0,
     "groups that grow or shrink, may be repeated; default: those named dp, ddp, fsdp, edp, zero, "
     "data or world, and such of all ranks that are not named after another parallelism; with "
     "copies of shards (HSDP) those named replicas or replicate, and not the shards",
     0},
    {"output", 'o', "OUT", 0, "the trace to write: .jsonl or .jsonl.gz", 0},
    {"quiet", 'q', NULL, 0, "print nothing", 0},
    {0}};

static const char doc[] =
    "Take a trace to another number of ranks, along its data-parallel groups: each rank computes "
    "what "
    "it did, those groups have more or fewer members, all others stay as they are and are copied."
    "\vShards of parameters and gradients become smaller or larger, sums do not. Recorded times of "
    "calls in these groups, and that of the step, are dropped. What was extrapolated is "
    "printed.\n\n"
    "Example:\n"
    "  zipccl trace rescale step.jsonl --ranks 512 -o step512.jsonl\n"
    "  zipccl trace rescale step.jsonl --map dp=16 -o dp16.jsonl";

static error_t set_ranks(struct options *options, const char *arg)
{
    char *end;
    unsigned long n = strtoul(arg, &end, 10);

    if (arg[0] < '0' || arg[0] > '9' || *end != '\0' || n == 0 || n > 1u << 20) {
        zipccl_usage_error(program, "trace rescale: --ranks '%s', expected 1 to 1048576", arg);
        return ECANCELED;
    }
    options->rescale.nranks = (uint32_t)n;
    return 0;
}

/* One more of a list that may be given several times. */
static error_t append(const char *option, const char **list, size_t *n, const char *arg)
{
    if (*n == MAX_SCALED) {
        zipccl_usage_error(program, "trace rescale: more than %d times %s", MAX_SCALED, option);
        return ECANCELED;
    }
    list[(*n)++] = arg;
    return 0;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;

    switch (key) {
    case KEY_RANKS: return set_ranks(options, arg);
    case KEY_SCALE: return append("--scale", options->scaled, &options->rescale.nscaled, arg);
    case KEY_MAP: return append("--map", options->map, &options->rescale.nmap, arg);
    case 'o': options->out = arg; return 0;
    case 'q': options->quiet = true; return 0;
    case ARGP_KEY_ARG:
        if (options->path != NULL) {
            zipccl_usage_error(program, "trace rescale: unexpected argument '%s'", arg);
            return ECANCELED;
        }
        options->path = arg;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void print(const struct options *options, const struct zipccl_trace *trace,
                  const struct zipccl_rescale_report *report)
{
    const struct zipccl_trace_header *h = &trace->header;

    printf("rescale  %" PRIu32 " to %" PRIu32 " ranks; extrapolated:\n", report->from, report->to);
    printf(" work    each rank computes and holds what it did: the batch goes with the ranks\n");
    for (uint32_t g = 0; g < h->ngroups; g++) {
        uint32_t size = h->groups[g].size;

        if (options->grows[g])
            printf(" group   %s: %" PRIu32 " members become %" PRIu64 "\n", h->groups[g].name, size,
                   (uint64_t)size * report->to / report->from);
        else
            printf(" group   %s: %" PRIu32 " members, as before, in %" PRIu64 " groups\n",
                   h->groups[g].name, size,
                   (uint64_t)h->groups[g].nparts * report->to / report->from);
    }
    printf(" counts  %" PRIu64 " calls move other shards (%" PRIu64 " rounded up)\n",
           report->nshards, report->nrounded);
    if (report->ntables > 0)
        printf(" tables  %" PRIu64 " of uneven calls: each entry in equal parts to the copies of "
               "its member\n",
               report->ntables);
    if (report->ntimes > 0)
        printf(" times   %" PRIu64 " recorded times of calls in other groups are dropped\n",
               report->ntimes);
    printf(" wrote %s\n", options->out);
}

static zipccl_status rescale(struct options *options, const struct zipccl_trace *trace,
                             struct zipccl_rescale_report *report, struct zipccl_error *error)
{
    struct zipccl_output output;
    char samples[PATH_MAX];
    uint32_t nranks;

    ZIPCCL_TRY(zipccl_output_check(&output, options->out, error));
    if (output.direct)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: cannot write a trace there: no regular file",
                           options->out);
    ZIPCCL_TRY(zipccl_output_spare_trace(&output, options->path, error));
    if (trace->samples_path != NULL) {
        ZIPCCL_TRY(zipccl_relative_path(trace->samples_path, options->out, samples, sizeof samples,
                                        error));
        options->rescale.samples = samples;
    }
    ZIPCCL_TRY(zipccl_rescale_choose(trace, &options->rescale, options->grows, &nranks, error));
    zipccl_on_signal_remove_trace(options->out);
    zipccl_status status =
        zipccl_trace_rescale(trace, &options->rescale, options->out, report, error);

    zipccl_on_signal_keep();
    return status;
}

static int run(struct options *options)
{
    struct zipccl_rescale_report report;
    struct zipccl_error error = {""};
    struct zipccl_trace *trace;
    zipccl_status status = zipccl_foreign_load(options->path, &trace, &error);

    if (status != ZIPCCL_OK)
        return zipccl_print_error(program, status, &error);
    options->rescale.scaled = options->scaled;
    options->rescale.map = options->map;
    options->grows = calloc((size_t)trace->header.ngroups + 1, sizeof *options->grows);
    status = options->grows != NULL
                 ? rescale(options, trace, &report, &error)
                 : zipccl_fail(&error, ZIPCCL_ERR_NOMEM, "%s: out of memory", options->path);
    if (status == ZIPCCL_OK && !options->quiet)
        print(options, trace, &report);
    zipccl_trace_destroy(trace);
    free(options->grows);
    return status == ZIPCCL_OK ? ZIPCCL_EXIT_OK : zipccl_print_error(program, status, &error);
}

int zipccl_rescale_command(int argc, char **argv)
{
    static const struct argp argp = {
        option_table, parse_option, "TRACE --ranks N|--map GROUP=SIZE -o OUT", doc, NULL,
        NULL,         NULL};
    struct options options = {0};
    bool helped;
    int code =
        zipccl_parse_options(&argp, argc, argv, program, "zipccl trace rescale", &options, &helped);

    if (code != ZIPCCL_EXIT_OK || helped)
        return code;
    if (options.path == NULL)
        return zipccl_usage_error(program, "trace rescale: name a trace");
    if (options.rescale.nranks == 0 && options.rescale.nmap == 0)
        return zipccl_usage_error(program, "trace rescale: no --ranks N or --map GROUP=SIZE given");
    if (options.out == NULL)
        return zipccl_usage_error(program, "trace rescale: no -o OUT given");
    return run(&options);
}
