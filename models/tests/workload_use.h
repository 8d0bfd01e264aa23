/*
 * workload_use.h - makes up a step for a test and reads the trace back
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_MODELS_TESTS_WORKLOAD_USE_H
#define ZIPCCL_MODELS_TESTS_WORKLOAD_USE_H

#include "models/workload.h"
#include "traces/info.h"

struct step {
    struct zipccl_trace *trace;
    struct zipccl_trace_info info;
    struct zipccl_workload_summary summary;
};

/* A workload of the bundled model 'name', one micro-batch, dp ranks. */
struct zipccl_workload workload_of(const char *name, uint32_t dp);

/* Write and read back; asserts that both work.  Release with step_free(). */
struct step step_of(const struct zipccl_workload *workload);
void step_free(struct step *step);

/* Calls of 'op' in 'group' with 'dtype' and 'count' elements (0: any). */
uint64_t step_calls(const struct step *step, enum zipccl_op op, const char *group,
                    enum zipccl_dtype dtype, uint64_t count);

/* Sum of count over those calls. */
uint64_t step_elements(const struct step *step, enum zipccl_op op, const char *group,
                       enum zipccl_dtype dtype);

#endif
