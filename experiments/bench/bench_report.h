/*
 * bench_report.h - what codec bench measured, as a table, as JSON and as CSV
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_BENCH_REPORT_H
#define ZIPCCL_EXPERIMENTS_BENCH_REPORT_H

#include "experiments/bench/codec_bench.h"
#include "experiments/program/machine.h"

#include <stdio.h>

/* A run: what it was, and its rows as they come. */
struct zipccl_bench_run {
    const struct zipccl_bench_options *options;
    const char *input;             /* as given: "gauss", ..., or a path */
    const char *command;           /* the command line */
    char date[32];                 /* of the start, UTC, ISO 8601 */
    struct zipccl_machine machine; /* at the start */
    double load_after;
    FILE *table; /* rows are printed as they come; NULL: not */
    size_t nrows;
    struct zipccl_bench_row *rows; /* [nrows], owned */
    bool lost;                     /* a row did not fit into memory */
};

/* Print what comes before the rows: what runs, where, and the columns. */
void zipccl_bench_print_head(const struct zipccl_bench_run *run);

/* Keep and print one row; a zipccl_bench_report_fn whose context is the run. */
void zipccl_bench_add(void *run, const struct zipccl_bench_row *row);

/* Print what comes after them. */
void zipccl_bench_print_tail(const struct zipccl_bench_run *run);

/* All of it as JSON, schema "zipccl.codec-bench", or its rows as CSV.  ZIPCCL_ERR_IO, NOMEM. */
zipccl_status zipccl_bench_json(const struct zipccl_bench_run *run, FILE *out,
                                struct zipccl_error *error);
zipccl_status zipccl_bench_csv(const struct zipccl_bench_run *run, FILE *out,
                               struct zipccl_error *error);

#endif
