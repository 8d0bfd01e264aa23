/*
 * strategies.h - the strategies of this directory, for the table in strategy.c
 *
 * Private to core.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_STRATEGIES_STRATEGIES_H
#define ZIPCCL_CORE_STRATEGIES_STRATEGIES_H

#include "core/strategy.h"

extern const struct zipccl_strategy zipccl_strategy_native;
extern const struct zipccl_strategy zipccl_strategy_raw_direct;
extern const struct zipccl_strategy zipccl_strategy_raw_ring;
extern const struct zipccl_strategy zipccl_strategy_fixed_direct;
extern const struct zipccl_strategy zipccl_strategy_fixed_ring;
extern const struct zipccl_strategy zipccl_strategy_exact_direct;
extern const struct zipccl_strategy zipccl_strategy_exact_ring;
extern const struct zipccl_strategy zipccl_strategy_fixed_split;
extern const struct zipccl_strategy zipccl_strategy_exact_split;
extern const struct zipccl_strategy zipccl_strategy_raw_two_level;
extern const struct zipccl_strategy zipccl_strategy_fixed_two_level;
extern const struct zipccl_strategy zipccl_strategy_exact_two_level;

/* Ops that only move data and have a plan of our own, direct or on rings. */
bool zipccl_serves_direct(const struct zipccl_call *call);
bool zipccl_serves_ring(const struct zipccl_call *call);

#endif
