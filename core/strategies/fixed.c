/*
 * fixed.c - compressed plans with messages of a size that both ends compute
 *
 * Wire part of a chunk: EXCHANGE FIXED, RESOLVE, and the raw resend that runs only if some header
 * says overflow.  The resend reads the user's send buffer and fills the same RX slot, so slots hold
 * a chunk raw as well as coded.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/strategies/coded.h"
#include "core/strategies/reductions.h"
#include "core/strategies/strategies.h"

static size_t capacity(const struct zipccl_call *call, uint32_t capacity_class, size_t n)
{
    return zipccl_capacity(call->dtype, n, capacity_class);
}

static size_t capacity_or_raw(const struct zipccl_call *call, uint32_t capacity_class, size_t n)
{
    size_t coded = zipccl_capacity(call->dtype, n, capacity_class);
    size_t raw = n * zipccl_dtype_size(call->dtype);

    return coded > raw ? coded : raw;
}

static void wire(struct zipccl_coded *coded, struct zipccl_coded_chunk *chunk)
{
    const struct zipccl_shape *shape = &coded->shape;
    size_t wire_bytes = zipccl_capacity(coded->call->dtype, chunk->n, coded->capacity_class);
    size_t raw_bytes = chunk->n * zipccl_dtype_size(coded->call->dtype);
    bool ring = shape->lowering == ZIPCCL_LOWER_RING;
    size_t stride = coded->cut.message_stride;
    struct zipccl_step step =
        zipccl_shape_exchange(shape, ZIPCCL_FORM_FIXED, chunk->chunk, chunk->n);
    uint16_t sent;

    chunk->rx_stride = ring ? wire_bytes : stride;
    step.src = zipccl_shape_tx(shape, &coded->cut, chunk->chunk);
    step.dst = zipccl_shape_rx(shape, &coded->cut, chunk->chunk, chunk->rx_stride);
    step.capacity = wire_bytes;
    zipccl_step_dep(&step, chunk->encoded);
    zipccl_step_dep(&step, chunk->slot_free);
    sent = zipccl_coded_exchange(coded, chunk, &step);

    step = zipccl_step_make(ZIPCCL_STEP_RESOLVE, ZIPCCL_LANE_WIRE, chunk->chunk, chunk->n);
    step.pattern = shape->pattern;
    step.form = ZIPCCL_FORM_FIXED;
    step.root = shape->root;
    step.src = zipccl_shape_rx(shape, &coded->cut, chunk->chunk, chunk->rx_stride);
    step.capacity = wire_bytes;
    step.part = chunk->part;
    zipccl_step_dep(&step, sent);
    chunk->resolve = zipccl_builder_add(&coded->builder, &step);

    step = zipccl_shape_exchange(shape, ZIPCCL_FORM_RAW, chunk->chunk, chunk->n);
    step.src = zipccl_shape_send(shape, chunk->chunk * coded->cut.chunk_n);
    step.dst = zipccl_shape_rx(shape, &coded->cut, chunk->chunk, ring ? raw_bytes : stride);
    step.raw_of = chunk->resolve;
    zipccl_step_dep(&step, chunk->resolve);
    chunk->sent = zipccl_builder_add(&coded->builder, &step);
}

static zipccl_status build(const char *name, bool split, const struct zipccl_call *call,
                           const struct zipccl_topology *topology, uint32_t channels,
                           uint32_t nchunks, uint32_t capacity_class, size_t max_staging_bytes,
                           struct zipccl_plan **out)
{
    struct zipccl_coded coded = {.form = ZIPCCL_FORM_FIXED,
                                 .split = split,
                                 .encode_room = capacity,
                                 .slot_room = capacity_or_raw,
                                 .wire = wire};

    return zipccl_coded_build(&coded, name, call, topology, channels, nchunks, capacity_class,
                              max_staging_bytes, out);
}

static zipccl_status build_direct(const struct zipccl_call *call,
                                  const struct zipccl_topology *topology, uint32_t channels,
                                  uint32_t nchunks, uint32_t capacity_class,
                                  size_t max_staging_bytes, struct zipccl_plan **out)
{
    (void)channels;
    if (zipccl_serves_reduction(call))
        return zipccl_reduce_direct_build("fixed direct", ZIPCCL_FORM_FIXED, call, topology,
                                          nchunks, capacity_class, max_staging_bytes, out);
    return build("fixed direct", false, call, topology, 0, nchunks, capacity_class,
                 max_staging_bytes, out);
}

static zipccl_status build_ring(const struct zipccl_call *call,
                                const struct zipccl_topology *topology, uint32_t channels,
                                uint32_t nchunks, uint32_t capacity_class, size_t max_staging_bytes,
                                struct zipccl_plan **out)
{
    return build("fixed ring", false, call, topology, channels > 0 ? channels : 1, nchunks,
                 capacity_class, max_staging_bytes, out);
}

static zipccl_status build_split(const struct zipccl_call *call,
                                 const struct zipccl_topology *topology, uint32_t channels,
                                 uint32_t nchunks, uint32_t capacity_class,
                                 size_t max_staging_bytes, struct zipccl_plan **out)
{
    bool ring = call->op == ZIPCCL_BROADCAST;

    if (call->effort != ZIPCCL_EFFORT_FAST)
        return ZIPCCL_ERR_UNSUPPORTED;
    return build("fixed split", true, call, topology,
                 !ring          ? 0
                 : channels > 0 ? channels
                                : 1,
                 zipccl_coded_split_chunks(call, nchunks), capacity_class, max_staging_bytes, out);
}

static bool serves_direct(const struct zipccl_call *call)
{
    return zipccl_dtype_compressible(call->dtype) &&
           (zipccl_serves_reduction(call) || zipccl_serves_direct(call));
}

static bool serves_ring(const struct zipccl_call *call)
{
    return zipccl_dtype_compressible(call->dtype) && zipccl_serves_ring(call);
}

const struct zipccl_strategy zipccl_strategy_fixed_direct = {.name = "fixed direct",
                                                             .compressed = true,
                                                             .chunked = true,
                                                             .serves = serves_direct,
                                                             .build = build_direct};

const struct zipccl_strategy zipccl_strategy_fixed_ring = {.name = "fixed ring",
                                                           .compressed = true,
                                                           .chunked = true,
                                                           .serves = serves_ring,
                                                           .build = build_ring};

const struct zipccl_strategy zipccl_strategy_fixed_split = {.name = "fixed split",
                                                            .compressed = true,
                                                            .chunked = true,
                                                            .serves = zipccl_serves_split,
                                                            .build = build_split};
