/*
 * two_level.c - the strategies in two levels: raw, fixed and exact between the nodes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/strategies/moves.h"
#include "core/strategies/reductions.h"
#include "core/strategies/strategies.h"

static bool serves(const struct zipccl_call *call)
{
    return zipccl_serves_reduction(call) || zipccl_serves_two_levels(call);
}

static bool serves_coded(const struct zipccl_call *call)
{
    return zipccl_dtype_compressible(call->dtype) && serves(call);
}

static zipccl_status build(const char *name, enum zipccl_form form, const struct zipccl_call *call,
                           const struct zipccl_topology *topology, uint32_t nchunks,
                           uint32_t capacity_class, size_t max_staging_bytes,
                           struct zipccl_plan **out)
{
    if (zipccl_serves_reduction(call))
        return zipccl_reduce_two_level_build(name, form, call, topology, nchunks, capacity_class,
                                             max_staging_bytes, out);
    if (zipccl_serves_two_levels(call))
        return zipccl_move_two_level_build(name, form, call, topology, nchunks, capacity_class,
                                           max_staging_bytes, out);
    return ZIPCCL_ERR_UNSUPPORTED;
}

static zipccl_status build_raw(const struct zipccl_call *call,
                               const struct zipccl_topology *topology, uint32_t channels,
                               uint32_t nchunks, uint32_t capacity_class, size_t max_staging_bytes,
                               struct zipccl_plan **out)
{
    (void)channels;
    return build("raw two-level", ZIPCCL_FORM_RAW, call, topology, nchunks, capacity_class,
                 max_staging_bytes, out);
}

static zipccl_status build_fixed(const struct zipccl_call *call,
                                 const struct zipccl_topology *topology, uint32_t channels,
                                 uint32_t nchunks, uint32_t capacity_class,
                                 size_t max_staging_bytes, struct zipccl_plan **out)
{
    (void)channels;
    return build("fixed two-level", ZIPCCL_FORM_FIXED, call, topology, nchunks, capacity_class,
                 max_staging_bytes, out);
}

static zipccl_status build_exact(const struct zipccl_call *call,
                                 const struct zipccl_topology *topology, uint32_t channels,
                                 uint32_t nchunks, uint32_t capacity_class,
                                 size_t max_staging_bytes, struct zipccl_plan **out)
{
    (void)channels;
    return build("exact two-level", ZIPCCL_FORM_EXACT, call, topology, nchunks, capacity_class,
                 max_staging_bytes, out);
}

const struct zipccl_strategy zipccl_strategy_raw_two_level = {.name = "raw two-level",
                                                              .compressed = false,
                                                              .chunked = true,
                                                              .serves = serves,
                                                              .build = build_raw};

const struct zipccl_strategy zipccl_strategy_fixed_two_level = {.name = "fixed two-level",
                                                                .compressed = true,
                                                                .chunked = true,
                                                                .serves = serves_coded,
                                                                .build = build_fixed};

const struct zipccl_strategy zipccl_strategy_exact_two_level = {.name = "exact two-level",
                                                                .compressed = true,
                                                                .chunked = true,
                                                                .serves = serves_coded,
                                                                .build = build_exact};
