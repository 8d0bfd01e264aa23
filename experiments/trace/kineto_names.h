/*
 * kineto_names.h - a collective in the words of PyTorch's profiler
 *
 * Key names and values as libkineto writes them for NCCL kernels, so that programs that read its
 * traces (HTA, TraceLens) find what they look for.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_KINETO_NAMES_H
#define ZIPCCL_EXPERIMENTS_KINETO_NAMES_H

#include "traces/trace.h"

#include <yajl/yajl_gen.h>

/* Room for the name of a process group and for that of a kernel. */
#define ZIPCCL_KINETO_NAME_SIZE 160

/* "dp", or "dp.3" where the set has several groups. */
const char *zipccl_kineto_group(char out[ZIPCCL_KINETO_NAME_SIZE],
                                const struct zipccl_trace_group *group, uint32_t part);

/* "ncclDevKernel_AllGather", with "_compressed" behind it if the plan compresses. */
const char *zipccl_kineto_kernel(char out[ZIPCCL_KINETO_NAME_SIZE],
                                 const struct zipccl_event *event, bool compressed);

/* Put Kineto's keys about 'event' as world rank 'rank' of part 'part' calls it. */
void zipccl_kineto_put(yajl_gen gen, const struct zipccl_trace_header *header,
                       const struct zipccl_event *event, uint32_t part, uint32_t rank);

#endif
