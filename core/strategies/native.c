/*
 * native.c - the transport's own collective on the user buffers
 *
 * One step.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/strategies/strategies.h"

#include "core/plan_builder.h"

static bool serves(const struct zipccl_call *call)
{
    return call->has_native;
}

static enum zipccl_pattern pattern_of(enum zipccl_op op)
{
    switch (op) {
    case ZIPCCL_ALLTOALL: return ZIPCCL_PATTERN_ALL_TO_ALL;
    case ZIPCCL_ALLTOALLV:
    case ZIPCCL_SENDRECV: return ZIPCCL_PATTERN_PAIRS;
    case ZIPCCL_BROADCAST: return ZIPCCL_PATTERN_BROADCAST;
    default: return ZIPCCL_PATTERN_ALL_GATHER;
    }
}

static bool on_rings(enum zipccl_op op)
{
    return op == ZIPCCL_ALL_GATHER || op == ZIPCCL_REDUCE_SCATTER || op == ZIPCCL_ALL_REDUCE ||
           op == ZIPCCL_BROADCAST;
}

static zipccl_status build(const struct zipccl_call *call, const struct zipccl_topology *topology,
                           uint32_t channels, uint32_t nchunks, uint32_t capacity_class,
                           size_t max_staging_bytes, struct zipccl_plan **out)
{
    struct zipccl_builder builder;
    struct zipccl_step step =
        zipccl_step_make(ZIPCCL_STEP_NATIVE, ZIPCCL_LANE_WIRE, 0, call->count);
    bool ring = on_rings(call->op);
    size_t size = zipccl_dtype_size(call->dtype);

    (void)nchunks;
    (void)capacity_class;
    (void)max_staging_bytes;
    if (!call->has_native)
        return ZIPCCL_ERR_UNSUPPORTED;
    if (size == 0 || (unsigned)call->op >= ZIPCCL_NUM_OPS || channels > UINT16_MAX ||
        (call->op == ZIPCCL_BROADCAST && call->root >= topology->nranks) ||
        call->count > SIZE_MAX / 2 / size / topology->nranks)
        return ZIPCCL_ERR_ARG;
    if (channels == 0)
        channels = 1;
    zipccl_builder_start(&builder, call, topology, "native", ring ? channels : 0);
    step.pattern = (uint8_t)pattern_of(call->op);
    step.lowering = ring ? ZIPCCL_LOWER_RING : ZIPCCL_LOWER_DIRECT;
    step.channels = (uint16_t)(ring ? channels : 1);
    step.src.buf = ZIPCCL_BUF_SEND;
    step.dst.buf = ZIPCCL_BUF_RECV;
    step.src.uneven = step.dst.uneven = step.pattern == ZIPCCL_PATTERN_PAIRS;
    if (call->op == ZIPCCL_BROADCAST)
        step.root = call->root;
    if (call->count > 0)
        zipccl_builder_add(&builder, &step);
    if (builder.status == ZIPCCL_OK && zipccl_is_reduction(call->op))
        builder.plan->redop = (uint8_t)call->redop;
    return zipccl_builder_finish(&builder, out);
}

const struct zipccl_strategy zipccl_strategy_native = {
    .name = "native", .compressed = false, .chunked = false, .serves = serves, .build = build};
