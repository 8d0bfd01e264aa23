/*
 * import_options.h - options of the importers, the same for 'trace import' and 'replay'
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_IMPORT_OPTIONS_H
#define ZIPCCL_EXPERIMENTS_IMPORT_OPTIONS_H

#include "traces/import.h"

#include <argp.h>

enum zipccl_import_key {
    ZIPCCL_IMPORT_KEY_STRICT = 0x1000,
    ZIPCCL_IMPORT_KEY_SAMPLES,
    ZIPCCL_IMPORT_KEY_RANKS,
    ZIPCCL_IMPORT_KEY_RANKS_PER_NODE,
    ZIPCCL_IMPORT_KEY_DTYPE,
    ZIPCCL_IMPORT_KEY_GRAD_DTYPE,
    ZIPCCL_IMPORT_KEY_MICRO_BATCHES,
    ZIPCCL_IMPORT_KEY_SINGLE_TP,
    ZIPCCL_IMPORT_KEY_NAME,
    ZIPCCL_IMPORT_KEY_DISPATCH
};

/* Entries for a table of options, shown as group 'g'. */
/* clang-format off */
#define ZIPCCL_IMPORT_OPTIONS(g)                                                                   \
    {"strict", ZIPCCL_IMPORT_KEY_STRICT, NULL, 0, "a guess is an error", g},                       \
    {"samples", ZIPCCL_IMPORT_KEY_SAMPLES, "FILE", 0,                                              \
     ".safetensors file whose tensors stand for the payload", g},                                  \
    {"ranks", ZIPCCL_IMPORT_KEY_RANKS, "N", 0, "world size where the file does not say it; replay takes a trace to so many ranks, as 'trace "     \
     "rescale' does", g},    \
    {"ranks-per-node", ZIPCCL_IMPORT_KEY_RANKS_PER_NODE, "N", 0, "to be noted in the trace", g},   \
    {"dtype", ZIPCCL_IMPORT_KEY_DTYPE, "TYPE", 0, "of activations and parameters", g},             \
    {"grad-dtype", ZIPCCL_IMPORT_KEY_GRAD_DTYPE, "TYPE", 0,                                        \
     "of gradients while they are reduced", g},                                                    \
    {"micro-batches", ZIPCCL_IMPORT_KEY_MICRO_BATCHES, "N", 0,                                     \
     "run the loop over micro-batches so often", g},                                               \
    {"single-tp-as-dp", ZIPCCL_IMPORT_KEY_SINGLE_TP, NULL, 0,                                      \
     "simai: calls of tensor-parallel groups of one rank are data parallel", g},                   \
    {"dispatch-bytes", ZIPCCL_IMPORT_KEY_DISPATCH, "N", 0,                                         \
     "kineto: bytes that a rank sends in each dispatch or combine of DeepEP, HybridEP or NVSHMEM, " \
     "which then is replayed as all-to-all; a plain number, or with a unit (64MB)", g},            \
    {"name", ZIPCCL_IMPORT_KEY_NAME, "NAME", 0, "of the trace (default: of the file)", g}
/* clang-format on */

/*
 * Take one option; texts are borrowed.  0 if it was one of these and right, ARGP_ERR_UNKNOWN if it
 * is none, ECANCELED if it is wrong, which then has been told.
 */
error_t zipccl_import_option(const char *program, int key, char *arg,
                             struct zipccl_import_options *options);

/* The first option that is set, as it is written ("--strict"); NULL if none is. */
const char *zipccl_import_first_given(const struct zipccl_import_options *options);

#endif
