/*
 * import_options.c - options of the importers, the same for 'trace import' and 'replay'
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/trace/import_options.h"

#include "experiments/program/program.h"
#include "models/units.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

/* More ranks or micro-batches than these are a mistake; the importer has limits of its own. */
#define MAX_RANKS         (1 << 20)
#define MAX_MICRO_BATCHES (1 << 30)
#define MAX_BYTES         1e15

static error_t set_count(const char *program, const char *option, const char *text, double max,
                         double *out)
{
    struct zipccl_error error = {""};

    if (zipccl_parse_quantity(text, ZIPCCL_UNIT_COUNT, 1, max, out, &error) == ZIPCCL_OK)
        return 0;
    zipccl_usage_error(program, "%s: %s", option, error.text);
    return ECANCELED;
}

/* A plain number is one of bytes. */
static error_t set_bytes(const char *program, const char *option, const char *text, double *out)
{
    size_t n = strlen(text);
    bool plain = n > 0 && isdigit((unsigned char)text[n - 1]);
    enum zipccl_unit unit = plain ? ZIPCCL_UNIT_COUNT : ZIPCCL_UNIT_BYTES;
    struct zipccl_error error = {""};

    if (zipccl_parse_quantity(text, unit, 1, MAX_BYTES, out, &error) == ZIPCCL_OK)
        return 0;
    zipccl_usage_error(program, "%s: %s", option, error.text);
    return ECANCELED;
}

static error_t set_dtype(const char *program, const char *option, const char *text, bool *given,
                         enum zipccl_dtype *out)
{
    *given = true;
    if (zipccl_dtype_parse(text, out))
        return 0;
    zipccl_usage_error(program, "%s '%s': expected a type such as bf16, fp16, fp32 or fp8_e4m3",
                       option, text);
    return ECANCELED;
}

/* Where an empty text could only be a slip. */
static error_t set_text(const char *program, const char *option, const char *text, const char **out)
{
    *out = text;
    if (text[0] != '\0')
        return 0;
    zipccl_usage_error(program, "%s: empty", option);
    return ECANCELED;
}

error_t zipccl_import_option(const char *program, int key, char *arg,
                             struct zipccl_import_options *options)
{
    double number = 0;
    error_t failed = 0;

    switch (key) {
    case ZIPCCL_IMPORT_KEY_STRICT: options->strict = true; return 0;
    case ZIPCCL_IMPORT_KEY_SINGLE_TP: options->single_tp_as_dp = true; return 0;
    case ZIPCCL_IMPORT_KEY_SAMPLES: return set_text(program, "--samples", arg, &options->samples);
    case ZIPCCL_IMPORT_KEY_NAME: return set_text(program, "--name", arg, &options->name);
    case ZIPCCL_IMPORT_KEY_RANKS:
        failed = set_count(program, "--ranks", arg, MAX_RANKS, &number);
        options->nranks = (uint32_t)number;
        return failed;
    case ZIPCCL_IMPORT_KEY_RANKS_PER_NODE:
        failed = set_count(program, "--ranks-per-node", arg, MAX_RANKS, &number);
        options->ranks_per_node = (uint32_t)number;
        return failed;
    case ZIPCCL_IMPORT_KEY_MICRO_BATCHES:
        failed = set_count(program, "--micro-batches", arg, MAX_MICRO_BATCHES, &number);
        options->micro_batches = (uint64_t)number;
        return failed;
    case ZIPCCL_IMPORT_KEY_DISPATCH:
        failed = set_bytes(program, "--dispatch-bytes", arg, &number);
        options->dispatch_bytes = (uint64_t)number;
        return failed;
    case ZIPCCL_IMPORT_KEY_DTYPE:
        return set_dtype(program, "--dtype", arg, &options->dtype_given, &options->dtype);
    case ZIPCCL_IMPORT_KEY_GRAD_DTYPE:
        return set_dtype(program, "--grad-dtype", arg, &options->grad_dtype_given,
                         &options->grad_dtype);
    default: return ARGP_ERR_UNKNOWN;
    }
}

const char *zipccl_import_first_given(const struct zipccl_import_options *options)
{
    return options->strict               ? "--strict"
           : options->samples != NULL    ? "--samples"
           : options->nranks > 0         ? "--ranks"
           : options->ranks_per_node > 0 ? "--ranks-per-node"
           : options->dtype_given        ? "--dtype"
           : options->grad_dtype_given   ? "--grad-dtype"
           : options->micro_batches > 0  ? "--micro-batches"
           : options->single_tp_as_dp    ? "--single-tp-as-dp"
           : options->dispatch_bytes > 0 ? "--dispatch-bytes"
           : options->name != NULL       ? "--name"
                                         : NULL;
}
