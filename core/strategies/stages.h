/*
 * stages.h - chunks that go through several exchanges, as a software pipeline
 *
 * Private to core.  A chunk passes the stages one after the other; a stage is what one lane hands
 * to the other once: codec steps that end in wire steps.  Chunks follow each other 'distance' ticks
 * apart, so that both lanes have work although each runs its steps in order; for three stages:
 *
 *     tick 0: stage 0 of chunk 0
 *     tick 1: stage 0 of chunk 1, stage 1 of chunk 0
 *     tick 2: stage 0 of chunk 2, stage 1 of chunk 1, stage 2 of chunk 0
 *
 * A chunk keeps its staging slot from its first stage to its last.  Every step waits for the last
 * step of the other lane on the same slot; that orders a chunk's own steps and the reuse of its slot.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_STRATEGIES_STAGES_H
#define ZIPCCL_CORE_STRATEGIES_STAGES_H

#include "core/plan_builder.h"

#define ZIPCCL_MAX_STAGES ZIPCCL_MAX_SLOTS

struct zipccl_stages;

/* Add the steps of one stage of the current chunk. */
typedef void zipccl_stage_fn(struct zipccl_stages *stages);

struct zipccl_stages {
    struct zipccl_builder builder;
    const struct zipccl_call *call;
    const struct zipccl_topology *topology;
    enum zipccl_form form; /* of the messages that are coded, RAW: none are */
    uint32_t capacity_class;
    size_t size; /* of an element */
    /* Messages that a slot must hold, set by the strategy before zipccl_stages_build(). */
    size_t tx_messages, rx_messages; /* coded, with room for the raw elements */
    size_t rx_blocks, tmp_blocks;    /* of raw elements; RX: instead of the messages */
    bool reduces;                    /* needs an accumulator */
    size_t block_n;                  /* elements that are cut in chunks */
    size_t shard_n;                  /* see struct zipccl_plan */
    zipccl_stage_fn *stage[ZIPCCL_MAX_STAGES];
    uint32_t nstages;
    /* Current chunk. */
    uint32_t chunk, slot;
    size_t first, n;  /* its elements within the block */
    uint16_t resolve; /* of the last coded exchange, or NONE */
    /* Cut. */
    size_t chunk_n, message_stride, block_stride;
    size_t tx_slot_bytes, rx_slot_bytes, tmp_slot_bytes;
    uint32_t nslots;
    uint16_t last[ZIPCCL_MAX_SLOTS][2]; /* last step of each lane on a slot, or NONE */
};

/*
 * Start to describe a plan for 'call' in 'form'; every other field is zero.
 *
 * ZIPCCL_ERR_ARG for an invalid call; ZIPCCL_ERR_UNSUPPORTED if the type cannot be coded.
 */
zipccl_status zipccl_stages_init(struct zipccl_stages *stages, const struct zipccl_call *call,
                                 const struct zipccl_topology *topology, enum zipccl_form form,
                                 uint32_t capacity_class);

/* Cut the block and build the plan; arguments as zipccl_strategy.build. */
zipccl_status zipccl_stages_build(struct zipccl_stages *stages, const char *name, uint32_t nchunks,
                                  size_t max_staging_bytes, struct zipccl_plan **out);

/* A step of the current chunk; without places. */
struct zipccl_step zipccl_stages_step(const struct zipccl_stages *stages,
                                      enum zipccl_step_kind kind, enum zipccl_group_kind group,
                                      enum zipccl_pattern pattern, enum zipccl_form form);

/* Append 'step'; it waits for the other lane's last step on the slot. */
uint16_t zipccl_stages_add(struct zipccl_stages *stages, struct zipccl_step *step);

/* Places of the current chunk.  User buffers: blocks of all ranks 'stride' elements apart. */
struct zipccl_place zipccl_stages_by_rank(const struct zipccl_stages *stages, enum zipccl_buf buf,
                                          size_t stride);
/* The same without ranks: a buffer that holds one block. */
struct zipccl_place zipccl_stages_plain(const struct zipccl_stages *stages, enum zipccl_buf buf);
/* Messages of each peer, 'nblocks' of them end to end. */
struct zipccl_place zipccl_stages_tx(const struct zipccl_stages *stages, size_t nblocks);
struct zipccl_place zipccl_stages_rx(const struct zipccl_stages *stages, size_t nblocks);
/* Raw blocks in the TMP slot or the RX slot; the distances between peers and blocks in blocks. */
struct zipccl_place zipccl_stages_raw(const struct zipccl_stages *stages, enum zipccl_buf buf,
                                      size_t peer_stride, size_t block_stride);

/*
 * Encode what lies in 'src' and exchange it: ENCODE, and EXCHANGE with SIZES or with RESOLVE and
 * the raw resend.  Fills the RX slot; stages->resolve is set.
 *
 * nblocks  > 1: messages per peer, all blocks of the group
 */
void zipccl_stages_send_coded(struct zipccl_stages *stages, enum zipccl_group_kind group,
                              enum zipccl_pattern pattern, struct zipccl_place src,
                              uint32_t nblocks);

/* DECODE what the last coded exchange brought into 'dst'. */
void zipccl_stages_decode(struct zipccl_stages *stages, enum zipccl_group_kind group,
                          enum zipccl_pattern pattern, struct zipccl_place dst, uint32_t nblocks);

/* One raw EXCHANGE. */
void zipccl_stages_send_raw(struct zipccl_stages *stages, enum zipccl_group_kind group,
                            enum zipccl_pattern pattern, struct zipccl_place src,
                            struct zipccl_place dst, uint32_t nblocks);

/*
 * REDUCE over 'group' what the last exchange brought, coded or, from 'raw', as it is.
 *
 * raw     place of raw contributions; NULL: messages in the RX slot
 * redop   ZIPCCL_AVG divides by the number of ranks: only at the last level
 */
void zipccl_stages_reduce(struct zipccl_stages *stages, enum zipccl_group_kind group,
                          enum zipccl_redop redop, const struct zipccl_place *raw,
                          struct zipccl_place self, struct zipccl_place dst, uint32_t nblocks);

/* COPY the caller's own blocks; on the root alone for a broadcast. */
void zipccl_stages_copy(struct zipccl_stages *stages, enum zipccl_group_kind group,
                        enum zipccl_pattern pattern, struct zipccl_place src,
                        struct zipccl_place dst);

/* True if 'topology' has two levels: more than one node, and several ranks on each, equally. */
bool zipccl_has_two_levels(const struct zipccl_topology *topology);

#endif
