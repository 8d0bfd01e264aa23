/*
 * generate_print.h - what 'zipccl trace generate' tells of a step it made up
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_GENERATE_PRINT_H
#define ZIPCCL_EXPERIMENTS_GENERATE_PRINT_H

#include "models/cluster.h"
#include "models/workload.h"

#include <stdio.h>

struct zipccl_generate_place {
    const struct zipccl_cluster *cluster; /* NULL: none given */
    double gpu_memory;                    /* bytes; 0: unknown */
};

void zipccl_generate_print(const struct zipccl_workload *workload,
                           const struct zipccl_workload_estimate *estimate,
                           const struct zipccl_generate_place *place, FILE *out);

/* Bounds of the step's time, where rates are known; 'summary' NULL: nothing was written. */
void zipccl_generate_print_speed(const struct zipccl_workload *workload,
                                 const struct zipccl_workload_estimate *estimate,
                                 const struct zipccl_workload_summary *summary,
                                 const struct zipccl_generate_place *place, FILE *out);

/* A line for each model in 'folder'. */
zipccl_status zipccl_generate_list(const char *folder, FILE *out, struct zipccl_error *error);

#endif
