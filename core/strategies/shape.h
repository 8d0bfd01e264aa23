/*
 * shape.h - how a collective's blocks and chunks lie; shared by the strategies
 *
 * Private to core.  A shape is what the algorithms (raw, fixed, exact) need to know of a collective:
 * its pattern, the distance between the blocks of two peers, and how many messages a slot holds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_STRATEGIES_SHAPE_H
#define ZIPCCL_CORE_STRATEGIES_SHAPE_H

#include "core/plan_builder.h"

struct zipccl_shape {
    uint8_t pattern;  /* enum zipccl_pattern */
    uint8_t lowering; /* enum zipccl_lowering */
    uint16_t channels;
    uint32_t root;
    bool uneven;
    size_t count;                      /* elements per block; uneven: of the largest pair */
    size_t send_stride, recv_stride;   /* elements between the blocks of two peers */
    uint32_t tx_messages, rx_messages; /* in one staging slot */
};

/* How a call is cut into chunks, and the staging that takes. */
struct zipccl_cut {
    size_t chunk_n;
    uint32_t nchunks, nslots;
    size_t message_stride; /* bytes between two messages of a slot */
    size_t tx_slot_bytes, rx_slot_bytes;
};

/*
 * Describe 'call' on 'topology'.
 *
 * channels  > 0: on that many rings; 0: direct
 * ZIPCCL_ERR_ARG for an invalid call, ZIPCCL_ERR_UNSUPPORTED if the op has no such plan.
 */
zipccl_status zipccl_shape_init(struct zipccl_shape *shape, const struct zipccl_call *call,
                                const struct zipccl_topology *topology, uint32_t channels);

/*
 * Cut the blocks in about 'nchunks' chunks, more if staging would exceed 'max_staging_bytes'
 * (0: no bound).  Chunks above ZIPCCL_CHUNK_ALIGN_N elements are a multiple of it.
 *
 * room  bytes that a message of n elements may need in a slot
 * ZIPCCL_ERR_NOMEM if no cut fits.
 */
zipccl_status zipccl_shape_cut(const struct zipccl_shape *shape, const struct zipccl_call *call,
                               uint32_t nchunks, size_t max_staging_bytes,
                               size_t (*room)(const struct zipccl_call *call,
                                              uint32_t capacity_class, size_t n),
                               uint32_t capacity_class, struct zipccl_cut *cut);

/*
 * Elements of a full chunk when 'count' is cut in about 'nchunks', as zipccl_shape_cut() does.
 */
size_t zipccl_full_chunk(size_t count, uint32_t nchunks);

/* Bytes between messages in staging are a multiple of this: cache lines, and what GPUs like. */
#define ZIPCCL_STAGING_ALIGN 64u

/* Check what every call must satisfy: type, root, and offsets within size_t; else ERR_ARG. */
zipccl_status zipccl_shape_check(const struct zipccl_call *call,
                                 const struct zipccl_topology *topology);

/* Places of chunk 'chunk': user buffers, and messages in its slot. */
struct zipccl_place zipccl_shape_send(const struct zipccl_shape *shape, size_t first);
struct zipccl_place zipccl_shape_recv(const struct zipccl_shape *shape, size_t first);
struct zipccl_place zipccl_shape_tx(const struct zipccl_shape *shape, const struct zipccl_cut *cut,
                                    uint32_t chunk);

/* message_stride  distance of two messages in the slot; rings write them end to end */
struct zipccl_place zipccl_shape_rx(const struct zipccl_shape *shape, const struct zipccl_cut *cut,
                                    uint32_t chunk, size_t message_stride);

/* An EXCHANGE of 'shape', without places. */
struct zipccl_step zipccl_shape_exchange(const struct zipccl_shape *shape, enum zipccl_form form,
                                         uint32_t chunk, size_t n);

/* The COPY of the caller's own block, whole. */
struct zipccl_step zipccl_shape_copy(const struct zipccl_shape *shape);

#endif
