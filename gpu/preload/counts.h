/*
 * counts.h - what was called on a communicator, counted by op, type, size and what became of it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_PRELOAD_COUNTS_H
#define ZIPCCL_GPU_PRELOAD_COUNTS_H

#include "gpu/preload/comms.h"

/*
 * Count a call.
 *
 * bytes  message bytes: what one rank contributes (all_gather, broadcast, reduce, all_reduce: count;
 *        alltoall, reduce_scatter: count times ranks; alltoallv: sent to all peers)
 */
void zipccl_shim_count(struct zipccl_shim_comm *comm, enum zipccl_shim_op op,
                       enum zipccl_dtype dtype, size_t elements, size_t bytes,
                       enum zipccl_shim_reason reason);

/* Count a call that verify mode was to look at; UNCHECKED: and could not. */
void zipccl_shim_count_check(struct zipccl_shim_comm *comm, enum zipccl_shim_op op,
                             enum zipccl_shim_verdict verdict);

/* Add 'more' to 'sum'; false, and nothing is added, without memory. */
bool zipccl_shim_counts_add(struct zipccl_shim_counts *sum, const struct zipccl_shim_counts *more);

/* Add statistics of a back end. */
void zipccl_shim_coded_add(struct zipccl_gpu_op_stats *sum, const struct zipccl_gpu_op_stats *more);

const char *zipccl_shim_reason_text(enum zipccl_shim_reason reason);

#endif
