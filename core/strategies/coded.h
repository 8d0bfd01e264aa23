/*
 * coded.h - the pipeline that compressed strategies share
 *
 * Private to core.  Chunks go through slots; the codec lane runs 'nslots' - 1 chunks ahead of its
 * own decoding, so that both lanes stay busy although each runs its steps in order:
 *
 *     codec lane | E0 E1 E2 E3 COPY D0 E4 D1 E5 D2 ...
 *     wire lane  | X0 X1 X2 X3 X4 ...
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_STRATEGIES_CODED_H
#define ZIPCCL_CORE_STRATEGIES_CODED_H

#include "core/strategies/shape.h"

/* The wire part of one chunk, to be added by the algorithm. */
struct zipccl_coded_chunk {
    uint32_t chunk;
    size_t n;
    uint16_t encoded; /* step that filled the TX slot, of messages in parts all but the early one */
    uint8_t part;     /* of the steps that follow, enum zipccl_part; 0: not in parts */
    uint16_t slot_free; /* step that last read the RX slot, NONE in the first round */
    /* out */
    uint16_t sent;    /* last wire step: its end frees the TX slot and fills the RX slot */
    uint16_t resolve; /* RESOLVE of the messages, or NONE */
    size_t rx_stride; /* bytes between messages as they arrive in the RX slot */
};

struct zipccl_coded {
    struct zipccl_builder builder;
    const struct zipccl_call *call;
    uint32_t capacity_class;
    struct zipccl_shape shape;
    struct zipccl_cut cut;
    /* Room of a message of n elements: what ENCODE may write and a slot must hold. */
    size_t (*encode_room)(const struct zipccl_call *call, uint32_t capacity_class, size_t n);
    size_t (*slot_room)(const struct zipccl_call *call, uint32_t capacity_class, size_t n);
    enum zipccl_form form;
    bool split; /* the first chunk's messages in parts, see core/split.h: the encoding of later ones
                   hides behind the wire anyway, and each part costs a latency */
    void (*wire)(struct zipccl_coded *coded, struct zipccl_coded_chunk *chunk);
};

/* What plans in parts serve: ops that only move data, from the shortest message on that is cut. */
bool zipccl_serves_split(const struct zipccl_call *call);

/* At most so many chunks that full ones are still cut in parts; for uneven ops as many as asked. */
uint32_t zipccl_coded_split_chunks(const struct zipccl_call *call, uint32_t nchunks);

/*
 * EXCHANGE of the chunk's messages, of which 'step' says all but the part: on rings in parts two steps, else
 * one.  Returns the last one.
 */
uint16_t zipccl_coded_exchange(struct zipccl_coded *coded, const struct zipccl_coded_chunk *chunk,
                               const struct zipccl_step *step);

/*
 * Build the plan of 'name' with coded->{form, encode_room, slot_room, wire} set by the caller;
 * the other arguments as zipccl_strategy.build, 'channels' 0 for a direct exchange.
 */
zipccl_status zipccl_coded_build(struct zipccl_coded *coded, const char *name,
                                 const struct zipccl_call *call,
                                 const struct zipccl_topology *topology, uint32_t channels,
                                 uint32_t nchunks, uint32_t capacity_class,
                                 size_t max_staging_bytes, struct zipccl_plan **out);

#endif
