/*
 * moves.h - all_gather, alltoall and broadcast in two levels, for the strategies that offer them
 *
 * Private to core.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_STRATEGIES_MOVES_H
#define ZIPCCL_CORE_STRATEGIES_MOVES_H

#include "core/strategy.h"

/* Ops that only move data and have a plan in two levels. */
bool zipccl_serves_two_levels(const struct zipccl_call *call);

/* Arguments as zipccl_strategy.build; ZIPCCL_ERR_UNSUPPORTED on other than even nodes of several. */
zipccl_status zipccl_move_two_level_build(const char *name, enum zipccl_form form,
                                          const struct zipccl_call *call,
                                          const struct zipccl_topology *topology, uint32_t nchunks,
                                          uint32_t capacity_class, size_t max_staging_bytes,
                                          struct zipccl_plan **out);

#endif
