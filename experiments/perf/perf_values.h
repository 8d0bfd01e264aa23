/*
 * perf_values.h - values of perf's options: sizes, numbers, names and lists of them
 *
 * Each returns 0, or prints "PROGRAM: perf: OPTION 'TEXT': ..." and returns -1.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_PERF_VALUES_H
#define ZIPCCL_EXPERIMENTS_PERF_VALUES_H

#include "experiments/perf/perf_options.h"

/* "64K" as in nccl-tests: powers of 1024; 1 to ZIPCCL_PERF_MAX_BYTES. */
int zipccl_perf_size(const char *program, const char *option, const char *text, uint64_t *out);

int zipccl_perf_number(const char *program, const char *option, const char *text, uint32_t least,
                       uint32_t most, uint32_t *out);

/* "0" or "1". */
int zipccl_perf_switch(const char *program, const char *option, const char *text, bool *out);

int zipccl_perf_dtypes(const char *program, const char *text, struct zipccl_perf_options *out);
int zipccl_perf_redops(const char *program, const char *text, struct zipccl_perf_options *out);
int zipccl_perf_root(const char *program, const char *text, struct zipccl_perf_options *out);
int zipccl_perf_modes(const char *program, const char *text, struct zipccl_perf_options *out);
int zipccl_perf_on(const char *program, const char *text, struct zipccl_perf_options *out);
int zipccl_perf_input(const char *program, const char *text, struct zipccl_perf_options *out);
int zipccl_perf_effort(const char *program, const char *text, struct zipccl_perf_options *out);
int zipccl_perf_class(const char *program, const char *text, struct zipccl_perf_options *out);
int zipccl_perf_gate(const char *program, const char *text, struct zipccl_perf_options *out);
int zipccl_perf_strategy(const char *program, const char *text, struct zipccl_perf_options *out);

int zipccl_perf_tier(const char *program, const char *text, struct zipccl_perf_options *out);
int zipccl_perf_ratio_value(const char *program, const char *text, struct zipccl_perf_options *out);

/* What the environment says. */
int zipccl_perf_environment(const char *program, struct zipccl_perf_options *out);

#endif
