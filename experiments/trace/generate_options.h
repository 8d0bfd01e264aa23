/*
 * generate_options.h - the command line of 'zipccl trace generate'
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_GENERATE_OPTIONS_H
#define ZIPCCL_EXPERIMENTS_GENERATE_OPTIONS_H

#include "models/workload.h"

enum { ZIPCCL_GENERATE_MAX_SETS = 64 };

struct zipccl_generate_options {
    const char *model, *model_dir, *out, *times, *samples;
    const char *cluster, *cluster_dir, *sets[ZIPCCL_GENERATE_MAX_SETS];
    size_t nsets;
    double gpus, gpu_memory; /* 0: not given */
    bool estimate, quiet, sync, sync_given;
    struct zipccl_workload workload; /* global_batch 0: not given */
};

/* Parse; an exit code, and '*helped' if the help was printed. */
int zipccl_generate_parse(int argc, char **argv, struct zipccl_generate_options *options,
                          bool *helped);

#endif
