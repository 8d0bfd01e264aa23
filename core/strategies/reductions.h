/*
 * reductions.h - reductions of our own, for the strategies that offer them
 *
 * Private to core.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_STRATEGIES_REDUCTIONS_H
#define ZIPCCL_CORE_STRATEGIES_REDUCTIONS_H

#include "core/strategy.h"

/* True for sum and avg of bf16, fp16 and fp32: what REDUCE steps compute. */
bool zipccl_serves_reduction(const struct zipccl_call *call);

/* Elements of a full shard of an all_reduce. */
size_t zipccl_shard_n(size_t count, uint32_t nranks);

/* Plans of one level and of two; arguments as zipccl_strategy.build. */
zipccl_status zipccl_reduce_direct_build(const char *name, enum zipccl_form form,
                                         const struct zipccl_call *call,
                                         const struct zipccl_topology *topology, uint32_t nchunks,
                                         uint32_t capacity_class, size_t max_staging_bytes,
                                         struct zipccl_plan **out);
zipccl_status zipccl_reduce_two_level_build(const char *name, enum zipccl_form form,
                                            const struct zipccl_call *call,
                                            const struct zipccl_topology *topology,
                                            uint32_t nchunks, uint32_t capacity_class,
                                            size_t max_staging_bytes, struct zipccl_plan **out);

#endif
