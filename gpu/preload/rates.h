/*
 * rates.h - what the cost model takes for links and codec: assumed, or from the file ZIPCCL_CLUSTER
 *
 * The file is a cluster as plain text, as 'zipccl cluster plain NAME' prints it and models/ reads it.  It is
 * read whole, and none but a regular file is waited for.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_PRELOAD_RATES_H
#define ZIPCCL_GPU_PRELOAD_RATES_H

#include "core/cost.h"

#include <stdbool.h>
#include <stdio.h>

/* Read 'path', "" for none; false if it cannot be used, with file, line or key, and what was expected. */
bool zipccl_shim_rates_read(const char *path, char *problem, size_t room);

/* The rates, and in words where they are from ('source' may be NULL). */
void zipccl_shim_rates(struct zipccl_cost_params *params, const char **source);

/* Print them, one a line. */
void zipccl_shim_rates_print(FILE *out);

#endif
