/*
 * raw.c - uncompressed plans of our own: one exchange, straight between the user buffers
 *
 *     codec lane | COPY own block
 *     wire lane  | EXCHANGE RAW SEND -> RECV
 *
 * A ring all-gather is one call of the transport, which writes the own block as well, so there is
 * no COPY.  On one rank only the COPY is left.
 *
 * Reductions are in reduce_direct.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/strategies/reductions.h"
#include "core/strategies/shape.h"
#include "core/strategies/strategies.h"

bool zipccl_serves_direct(const struct zipccl_call *call)
{
    return call->op == ZIPCCL_ALL_GATHER || call->op == ZIPCCL_ALLTOALL ||
           zipccl_is_uneven(call->op);
}

bool zipccl_serves_ring(const struct zipccl_call *call)
{
    return call->op == ZIPCCL_ALL_GATHER || call->op == ZIPCCL_BROADCAST;
}

static zipccl_status build(const char *name, const struct zipccl_call *call,
                           const struct zipccl_topology *topology, uint32_t channels,
                           struct zipccl_plan **out)
{
    struct zipccl_builder builder;
    struct zipccl_shape shape;
    struct zipccl_step step;
    bool writes_own = call->op == ZIPCCL_ALL_GATHER && channels > 0 && topology->nranks > 1;

    ZIPCCL_TRY(zipccl_shape_init(&shape, call, topology, channels));
    zipccl_builder_start(&builder, call, topology, name, channels);
    if (call->count > 0 && topology->nranks > 1) {
        step = zipccl_shape_exchange(&shape, ZIPCCL_FORM_RAW, 0, call->count);
        step.src = zipccl_shape_send(&shape, 0);
        step.dst = zipccl_shape_recv(&shape, 0);
        zipccl_builder_add(&builder, &step);
    }
    if (call->count > 0 && !writes_own) {
        step = zipccl_shape_copy(&shape);
        zipccl_builder_add(&builder, &step);
    }
    return zipccl_builder_finish(&builder, out);
}

static bool serves_direct(const struct zipccl_call *call)
{
    return zipccl_serves_reduction(call) || zipccl_serves_direct(call);
}

static zipccl_status build_direct(const struct zipccl_call *call,
                                  const struct zipccl_topology *topology, uint32_t channels,
                                  uint32_t nchunks, uint32_t capacity_class,
                                  size_t max_staging_bytes, struct zipccl_plan **out)
{
    (void)channels;
    if (zipccl_serves_reduction(call))
        return zipccl_reduce_direct_build("raw direct", ZIPCCL_FORM_RAW, call, topology, nchunks,
                                          capacity_class, max_staging_bytes, out);
    return build("raw direct", call, topology, 0, out);
}

static zipccl_status build_ring(const struct zipccl_call *call,
                                const struct zipccl_topology *topology, uint32_t channels,
                                uint32_t nchunks, uint32_t capacity_class, size_t max_staging_bytes,
                                struct zipccl_plan **out)
{
    (void)nchunks;
    (void)capacity_class;
    (void)max_staging_bytes;
    return build("raw ring", call, topology, channels > 0 ? channels : 1, out);
}

const struct zipccl_strategy zipccl_strategy_raw_direct = {.name = "raw direct",
                                                           .compressed = false,
                                                           .chunked = false,
                                                           .chunks_reductions = true,
                                                           .serves = serves_direct,
                                                           .build = build_direct};

const struct zipccl_strategy zipccl_strategy_raw_ring = {.name = "raw ring",
                                                         .compressed = false,
                                                         .chunked = false,
                                                         .serves = zipccl_serves_ring,
                                                         .build = build_ring};
