/*
 * rates.h - what the cost model takes for links and codec: assumed, or from the file ZIPCCL_CLUSTER
 *
 * The file has a line "name value" for each member of struct zipccl_cost_params that differs, in
 * bytes per second and seconds, and lines with '#'; 'zipccl cluster rates NAME' prints one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_PRELOAD_RATES_H
#define ZIPCCL_GPU_PRELOAD_RATES_H

#include "core/cost.h"

#include <stdbool.h>
#include <stdio.h>

/* Read 'path', "" for none; false if it cannot be used, with file, line and what was expected. */
bool zipccl_shim_rates_read(const char *path, char *problem, size_t room);

/* The rates, and in words where they are from ('source' may be NULL). */
void zipccl_shim_rates(struct zipccl_cost_params *params, const char **source);

/* Print them, one a line. */
void zipccl_shim_rates_print(FILE *out);

#endif
