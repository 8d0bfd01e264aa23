/*
 * spare_trace.h - keeps outputs off the files that a trace consists of
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_SPARE_TRACE_H
#define ZIPCCL_EXPERIMENTS_SPARE_TRACE_H

#include "experiments/program/output.h"

/*
 * Refuse 'output' if it would overwrite the trace at 'path': that file, the trace in that folder,
 * or the samples file that the trace names.  A path that holds no readable trace is spared as a
 * file: its reader tells what is wrong with it.
 *
 * ZIPCCL_ERR_INPUT.
 */
zipccl_status zipccl_output_spare_trace(const struct zipccl_output *output, const char *path,
                                        struct zipccl_error *error);

#endif
