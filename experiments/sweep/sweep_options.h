/*
 * sweep_options.h - the command line of 'zipccl sweep'
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_SWEEP_OPTIONS_H
#define ZIPCCL_EXPERIMENTS_SWEEP_OPTIONS_H

#include "experiments/sweep/sweep_points.h"

enum { ZIPCCL_SWEEP_JSON, ZIPCCL_SWEEP_CSV, ZIPCCL_SWEEP_HTML, ZIPCCL_SWEEP_NUM_FILES };

struct zipccl_sweep_arguments {
    const char *program; /* begins each error */
    const char *spec_path;
    const char *files[ZIPCCL_SWEEP_NUM_FILES];
    int sort; /* of zipccl_sweep_sorts */
    bool sort_given;
    double top;       /* rows printed; 0: all */
    bool quiet, list; /* list: show the points, run none */
    struct zipccl_sweep_options options;
    struct zipccl_sweep_spec spec;
    size_t nparallel;
    const char *parallel[ZIPCCL_SWEEP_MAX_VALUES]; /* --parallel, in order */
};

/* Parse, reading the SPEC file too; an exit code, and '*helped' if the help was printed. */
int zipccl_sweep_parse(int argc, char **argv, struct zipccl_sweep_arguments *out, bool *helped);

#endif
