/*
 * check.h - whether a trace is whole, and what it lacks
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_CHECK_H
#define ZIPCCL_TRACES_CHECK_H

#include "core/status.h"

#include <stdio.h>

/*
 * Read the whole trace at 'path' as a replay would, and write to 'out' one line that it is well and
 * one for each thing it lacks or does not use: times, samples, nodes; ranks, streams, groups.
 *
 * Anything wrong is the reader's error; nothing is written then.
 */
zipccl_status zipccl_trace_check_print(const char *path, FILE *out, struct zipccl_error *error);

#endif
