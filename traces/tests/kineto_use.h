/*
 * kineto_use.h - imports small profiler files in a test and looks at what comes out
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_TESTS_KINETO_USE_H
#define ZIPCCL_TRACES_TESTS_KINETO_USE_H

#include "traces/import.h"
#include "traces/tests/kineto_file.h"
#include "traces/tests/scratch.h"

#define GATHER  "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage)"
#define SCATTER "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage)"
#define REDUCE  "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage)"
#define P2P     "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage)"

/* Of the last import. */
extern struct zipccl_import_report kineto_report;
extern struct zipccl_error kineto_error;

/* End 'k' and write it to the scratch folder. */
const char *kineto_save(char path[SCRATCH_PATH], const char *name, struct kineto_text *k);

/* Import the 'n' files "r0.json", "r1.json", ... of the folder; NULL on failure. */
struct zipccl_trace *kineto_import_with(int n, const struct zipccl_import_options *options);

/* The same without options, which must succeed. */
struct zipccl_trace *kineto_import(int n);

/* How often the report counts 'what'. */
uint64_t kineto_counted(const char *what);

const struct zipccl_event *kineto_find(const struct zipccl_trace *t, enum zipccl_event_kind kind,
                                       int number);
int kineto_count(const struct zipccl_trace *t, enum zipccl_event_kind kind);

/*
 * Write a step of one of two ranks: a gather of 'gather' us beside compute that waits for it, then
 * a scatter; numbers from 'seq'.
 */
void kineto_write_step(const char *name, int rank, double clock, double gather, int seq);

#endif
