/*
 * totals.h - counts of all communicators of this process, added up by op
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_PRELOAD_TOTALS_H
#define ZIPCCL_GPU_PRELOAD_TOTALS_H

#include "gpu/preload/comms.h"

struct zipccl_shim_totals {
    uint64_t calls[ZIPCCL_SHIM_NUM_OPS], bytes[ZIPCCL_SHIM_NUM_OPS];
    uint64_t reasons[ZIPCCL_SHIM_NUM_OPS][ZIPCCL_SHIM_NUM_REASONS];
    uint64_t checks[ZIPCCL_SHIM_NUM_OPS][ZIPCCL_SHIM_NUM_VERDICTS];
    struct zipccl_gpu_op_stats coded[ZIPCCL_NUM_OPS];
};

void zipccl_shim_totals_add(struct zipccl_shim_totals *totals, struct zipccl_shim_comm *comm);

/* Why the back end did not compress a call that it was given. */
const char *zipccl_shim_back_end_reason(enum zipccl_gpu_reason reason);

#endif
