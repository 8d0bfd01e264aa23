/*
 * exact.c - compressed plans whose messages are as long as they are
 *
 * Wire part of a chunk: SIZES (a small exchange and a host fence), EXCHANGE EXACT.  Nothing
 * overflows: a slot holds the largest message there can be.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/split.h"
#include "core/strategies/coded.h"
#include "core/strategies/reductions.h"
#include "core/strategies/strategies.h"

static size_t bound(const struct zipccl_call *call, uint32_t capacity_class, size_t n)
{
    (void)capacity_class;
    return zipccl_bound(call->dtype, n);
}

/* A message in parts that do not stand lies whole behind its early part. */
static size_t split_room(const struct zipccl_call *call, uint32_t capacity_class, size_t n)
{
    struct zipccl_split_cut split = zipccl_split_of(call->dtype, n);

    return split.head + split.early + bound(call, capacity_class, n);
}

static void wire(struct zipccl_coded *coded, struct zipccl_coded_chunk *chunk)
{
    const struct zipccl_shape *shape = &coded->shape;
    size_t room = zipccl_bound(coded->call->dtype, chunk->n);
    struct zipccl_step step =
        zipccl_step_make(ZIPCCL_STEP_SIZES, ZIPCCL_LANE_WIRE, chunk->chunk, chunk->n);
    uint16_t sizes;

    step.pattern = shape->pattern;
    step.form = ZIPCCL_FORM_EXACT;
    step.lowering = ZIPCCL_LOWER_DIRECT;
    step.root = shape->root;
    step.part = chunk->part;
    step.src = zipccl_shape_tx(shape, &coded->cut, chunk->chunk);
    zipccl_step_dep(&step, chunk->encoded);
    sizes = zipccl_builder_add(&coded->builder, &step);

    step = zipccl_shape_exchange(shape, ZIPCCL_FORM_EXACT, chunk->chunk, chunk->n);
    step.src = zipccl_shape_tx(shape, &coded->cut, chunk->chunk);
    step.dst = zipccl_shape_rx(shape, &coded->cut, chunk->chunk, chunk->rx_stride);
    step.capacity = room;
    step.sizes_of = sizes;
    zipccl_step_dep(&step, chunk->encoded);
    zipccl_step_dep(&step, chunk->slot_free);
    zipccl_step_dep(&step, sizes);
    chunk->sent = zipccl_coded_exchange(coded, chunk, &step);
}

static zipccl_status build(const char *name, bool split, const struct zipccl_call *call,
                           const struct zipccl_topology *topology, uint32_t channels,
                           uint32_t nchunks, size_t max_staging_bytes, struct zipccl_plan **out)
{
    struct zipccl_coded coded = {.form = ZIPCCL_FORM_EXACT,
                                 .split = split,
                                 .encode_room = bound,
                                 .slot_room = split ? split_room : bound,
                                 .wire = wire};

    return zipccl_coded_build(&coded, name, call, topology, channels, nchunks, 0, max_staging_bytes,
                              out);
}

static zipccl_status build_direct(const struct zipccl_call *call,
                                  const struct zipccl_topology *topology, uint32_t channels,
                                  uint32_t nchunks, uint32_t capacity_class,
                                  size_t max_staging_bytes, struct zipccl_plan **out)
{
    (void)channels;
    if (zipccl_serves_reduction(call))
        return zipccl_reduce_direct_build("exact direct", ZIPCCL_FORM_EXACT, call, topology,
                                          nchunks, capacity_class, max_staging_bytes, out);
    return build("exact direct", false, call, topology, 0, nchunks, max_staging_bytes, out);
}

static zipccl_status build_ring(const struct zipccl_call *call,
                                const struct zipccl_topology *topology, uint32_t channels,
                                uint32_t nchunks, uint32_t capacity_class, size_t max_staging_bytes,
                                struct zipccl_plan **out)
{
    (void)capacity_class;
    return build("exact ring", false, call, topology, channels > 0 ? channels : 1, nchunks,
                 max_staging_bytes, out);
}

static zipccl_status build_split(const struct zipccl_call *call,
                                 const struct zipccl_topology *topology, uint32_t channels,
                                 uint32_t nchunks, uint32_t capacity_class,
                                 size_t max_staging_bytes, struct zipccl_plan **out)
{
    bool ring = call->op == ZIPCCL_BROADCAST;

    (void)capacity_class;
    if (call->effort != ZIPCCL_EFFORT_FAST)
        return ZIPCCL_ERR_UNSUPPORTED;
    return build("exact split", true, call, topology,
                 !ring          ? 0
                 : channels > 0 ? channels
                                : 1,
                 zipccl_coded_split_chunks(call, nchunks), max_staging_bytes, out);
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

const struct zipccl_strategy zipccl_strategy_exact_direct = {.name = "exact direct",
                                                             .exact_sizes = true,
                                                             .compressed = true,
                                                             .chunked = true,
                                                             .serves = serves_direct,
                                                             .build = build_direct};

const struct zipccl_strategy zipccl_strategy_exact_ring = {.name = "exact ring",
                                                           .exact_sizes = true,
                                                           .compressed = true,
                                                           .chunked = true,
                                                           .serves = serves_ring,
                                                           .build = build_ring};

const struct zipccl_strategy zipccl_strategy_exact_split = {.name = "exact split",
                                                            .exact_sizes = true,
                                                            .compressed = true,
                                                            .chunked = true,
                                                            .serves = zipccl_serves_split,
                                                            .build = build_split};
