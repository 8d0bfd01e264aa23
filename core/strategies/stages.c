/*
 * stages.c - the pipeline of stages, and the steps that they are made of
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/strategies/stages.h"

#include "core/codec.h"
#include "core/strategies/shape.h"

#include <stdint.h>

/* Chunks of a plan at most; keeps the numbers of its steps, 13 a chunk, within their 16 bits. */
#define MAX_CHUNKS 4096u

bool zipccl_has_two_levels(const struct zipccl_topology *topology)
{
    return topology->even && topology->nnodes > 1 && topology->nranks > topology->nnodes;
}

zipccl_status zipccl_stages_init(struct zipccl_stages *stages, const struct zipccl_call *call,
                                 const struct zipccl_topology *topology, enum zipccl_form form,
                                 uint32_t capacity_class)
{
    ZIPCCL_TRY(zipccl_shape_check(call, topology));
    if (form != ZIPCCL_FORM_RAW && !zipccl_dtype_compressible(call->dtype))
        return ZIPCCL_ERR_UNSUPPORTED;
    *stages =
        (struct zipccl_stages){.call = call,
                               .topology = topology,
                               .form = form,
                               .capacity_class = form == ZIPCCL_FORM_FIXED ? capacity_class : 0,
                               .size = zipccl_dtype_size(call->dtype),
                               .block_n = call->count,
                               .resolve = ZIPCCL_STEP_NONE};
    return ZIPCCL_OK;
}

/* Bytes that a message of 'n' elements takes as it is exchanged; 0 for raw ones. */
static size_t capacity(const struct zipccl_stages *s, size_t n)
{
    switch (s->form) {
    case ZIPCCL_FORM_FIXED: return zipccl_capacity(s->call->dtype, n, s->capacity_class);
    case ZIPCCL_FORM_EXACT: return zipccl_bound(s->call->dtype, n);
    default: return 0;
    }
}

static size_t align(size_t nbytes)
{
    return (nbytes + ZIPCCL_STAGING_ALIGN - 1) / ZIPCCL_STAGING_ALIGN * ZIPCCL_STAGING_ALIGN;
}

/* Add 'n' times 'nbytes' to '*sum'; false if that is more than 'limit'. */
static bool take(size_t *sum, size_t n, size_t nbytes, size_t limit)
{
    if (nbytes > 0 && n > (limit - *sum) / nbytes)
        return false;
    *sum += n * nbytes;
    return true;
}

static size_t acc_bytes(const struct zipccl_stages *s)
{
    size_t decoded = s->form == ZIPCCL_FORM_RAW ? 0 : s->chunk_n * s->size;

    return s->reduces ? align(s->chunk_n * sizeof(float)) + align(decoded) : 0;
}

/* Fill the strides for chunks of s->chunk_n elements in at most 'most_slots'; false if the staging
 * exceeds 'limit'. */
static bool fits(struct zipccl_stages *s, uint32_t most_slots, size_t limit)
{
    size_t message = capacity(s, s->chunk_n), raw = s->chunk_n * s->size, sum = 0;
    size_t nchunks = s->block_n / s->chunk_n + (s->block_n % s->chunk_n != 0);

    s->nslots = nchunks < most_slots ? (uint32_t)nchunks : most_slots;
    s->block_stride = align(raw);
    s->message_stride = align(message > raw ? message : raw);
    if (!take(&sum, 1, acc_bytes(s), limit) ||
        !take(&sum, s->nslots * s->tx_messages, s->message_stride, limit) ||
        !take(&sum, s->nslots * s->tmp_blocks, s->block_stride, limit))
        return false;
    s->tx_slot_bytes = s->tx_messages * s->message_stride;
    s->tmp_slot_bytes = s->tmp_blocks * s->block_stride;
    s->rx_slot_bytes = 0;
    if (!take(&s->rx_slot_bytes, s->rx_messages, s->message_stride, limit))
        return false;
    raw = 0;
    if (!take(&raw, s->rx_blocks, s->block_stride, limit))
        return false;
    if (raw > s->rx_slot_bytes)
        s->rx_slot_bytes = raw;
    return take(&sum, s->nslots, s->rx_slot_bytes, limit);
}

static zipccl_status cut(struct zipccl_stages *s, uint32_t nchunks, size_t max_staging_bytes)
{
    size_t limit = max_staging_bytes > 0 ? max_staging_bytes : SIZE_MAX / 2;
    /* A chunk has a slot until its last stage, and the next ones start meanwhile. */
    uint32_t least = s->nstages < 2 ? 2 : s->nstages;

    if (nchunks > s->block_n)
        nchunks = (uint32_t)s->block_n;
    if (nchunks > MAX_CHUNKS)
        nchunks = MAX_CHUNKS;
    for (uint32_t k = nchunks > 0 ? nchunks : 1; k <= MAX_CHUNKS; k *= 2) {
        s->chunk_n = zipccl_full_chunk(s->block_n, k);
        /* Rather fewer slots than smaller chunks: each chunk costs latencies anew. */
        for (uint32_t slots = ZIPCCL_MAX_SLOTS; slots >= least; slots--)
            if (fits(s, slots, limit))
                return ZIPCCL_OK;
        if (s->chunk_n == 1)
            break;
    }
    return ZIPCCL_ERR_NOMEM;
}

static void run_stage(struct zipccl_stages *s, uint32_t stage, uint32_t chunk)
{
    s->chunk = chunk;
    s->slot = chunk % s->nslots;
    s->first = chunk * s->chunk_n;
    s->n = zipccl_chunk_n(s->block_n, s->chunk_n, chunk);
    s->stage[stage](s);
}

static void add_pipeline(struct zipccl_stages *s, uint32_t nchunks)
{
    uint32_t distance = s->nstages > 1 ? (s->nslots - 1) / (s->nstages - 1) : 0;
    /* What a stage leaves for the next one of the same chunk. */
    uint16_t resolve[ZIPCCL_MAX_SLOTS];

    if (distance == 0)
        distance = 1;
    for (uint32_t i = 0; i < ZIPCCL_MAX_SLOTS; i++)
        s->last[i][0] = s->last[i][1] = resolve[i] = ZIPCCL_STEP_NONE;
    for (uint32_t tick = 0; tick < nchunks + (s->nstages - 1) * distance; tick++)
        for (uint32_t k = 0; k < s->nstages && k * distance <= tick; k++) {
            uint32_t chunk = tick - k * distance;

            if (chunk >= nchunks)
                continue;
            s->resolve = resolve[chunk % s->nslots];
            run_stage(s, k, chunk);
            resolve[chunk % s->nslots] = s->resolve;
        }
}

zipccl_status zipccl_stages_build(struct zipccl_stages *s, const char *name, uint32_t nchunks,
                                  size_t max_staging_bytes, struct zipccl_plan **out)
{
    struct zipccl_plan *plan;

    if (s->block_n > 0)
        ZIPCCL_TRY(cut(s, nchunks, max_staging_bytes));
    zipccl_builder_start(&s->builder, s->call, s->topology, name, 0);
    plan = s->builder.plan;
    if (plan != NULL && s->reduces)
        plan->redop = (uint8_t)s->call->redop;
    if (plan != NULL && s->block_n > 0) {
        plan->chunk_n = s->chunk_n;
        plan->nchunks = (uint32_t)(s->block_n / s->chunk_n + (s->block_n % s->chunk_n != 0));
        plan->nslots = s->nslots;
        plan->capacity_class = s->capacity_class;
        plan->tx_bytes = s->tx_slot_bytes * s->nslots;
        plan->rx_bytes = s->rx_slot_bytes * s->nslots;
        plan->tmp_bytes = s->tmp_slot_bytes * s->nslots;
        plan->acc_bytes = acc_bytes(s);
        plan->shard_n = s->shard_n;
        add_pipeline(s, plan->nchunks);
    }
    return zipccl_builder_finish(&s->builder, out);
}

struct zipccl_step zipccl_stages_step(const struct zipccl_stages *s, enum zipccl_step_kind kind,
                                      enum zipccl_group_kind group, enum zipccl_pattern pattern,
                                      enum zipccl_form form)
{
    bool wire =
        kind == ZIPCCL_STEP_SIZES || kind == ZIPCCL_STEP_EXCHANGE || kind == ZIPCCL_STEP_RESOLVE;
    struct zipccl_step step =
        zipccl_step_make(kind, wire ? ZIPCCL_LANE_WIRE : ZIPCCL_LANE_CODEC, s->chunk, s->n);

    step.group = (uint8_t)group;
    step.pattern = (uint8_t)pattern;
    step.form = (uint8_t)form;
    step.root = s->call->op == ZIPCCL_BROADCAST ? s->call->root : 0;
    return step;
}

uint16_t zipccl_stages_add(struct zipccl_stages *s, struct zipccl_step *step)
{
    uint16_t number;

    zipccl_step_dep(step, s->last[s->slot][1 - step->lane]);
    number = zipccl_builder_add(&s->builder, step);
    s->last[s->slot][step->lane] = number;
    return number;
}

struct zipccl_place zipccl_stages_by_rank(const struct zipccl_stages *s, enum zipccl_buf buf,
                                          size_t stride)
{
    return (struct zipccl_place){
        .buf = (uint8_t)buf, .by_rank = 1, .base = s->first, .peer_stride = stride};
}

struct zipccl_place zipccl_stages_plain(const struct zipccl_stages *s, enum zipccl_buf buf)
{
    return (struct zipccl_place){.buf = (uint8_t)buf, .base = s->first};
}

static struct zipccl_place staged(const struct zipccl_stages *s, enum zipccl_buf buf,
                                  size_t slot_bytes, size_t peer_stride, size_t block_stride)
{
    return (struct zipccl_place){.buf = (uint8_t)buf,
                                 .slot = (uint8_t)s->slot,
                                 .base = s->slot * slot_bytes,
                                 .peer_stride = peer_stride,
                                 .block_stride = block_stride};
}

struct zipccl_place zipccl_stages_tx(const struct zipccl_stages *s, size_t nblocks)
{
    return staged(s, ZIPCCL_BUF_TX, s->tx_slot_bytes,
                  s->tx_messages > 1 ? nblocks * s->message_stride : 0,
                  nblocks > 1 ? s->message_stride : 0);
}

struct zipccl_place zipccl_stages_rx(const struct zipccl_stages *s, size_t nblocks)
{
    return staged(s, ZIPCCL_BUF_RX, s->rx_slot_bytes,
                  s->rx_messages > 1 ? nblocks * s->message_stride : 0,
                  nblocks > 1 ? s->message_stride : 0);
}

struct zipccl_place zipccl_stages_raw(const struct zipccl_stages *s, enum zipccl_buf buf,
                                      size_t peer_stride, size_t block_stride)
{
    return staged(s, buf, buf == ZIPCCL_BUF_RX ? s->rx_slot_bytes : s->tmp_slot_bytes,
                  peer_stride * s->block_stride, block_stride * s->block_stride);
}

static bool is_shared(enum zipccl_pattern pattern)
{
    return pattern == ZIPCCL_PATTERN_ALL_GATHER || pattern == ZIPCCL_PATTERN_BROADCAST;
}

void zipccl_stages_send_coded(struct zipccl_stages *s, enum zipccl_group_kind group,
                              enum zipccl_pattern pattern, struct zipccl_place src,
                              uint32_t nblocks)
{
    struct zipccl_step step = zipccl_stages_step(s, ZIPCCL_STEP_ENCODE, group, pattern, s->form);
    struct zipccl_place tx = zipccl_stages_tx(s, nblocks), rx = zipccl_stages_rx(s, nblocks);

    if (is_shared(pattern))
        tx.peer_stride = 0;
    if (pattern == ZIPCCL_PATTERN_BROADCAST)
        rx.peer_stride = 0;
    step.nblocks = (uint16_t)nblocks;
    step.src = src;
    step.dst = tx;
    step.capacity = capacity(s, s->n);
    zipccl_stages_add(s, &step);
    if (s->form == ZIPCCL_FORM_EXACT) {
        step.kind = ZIPCCL_STEP_SIZES;
        step.lane = ZIPCCL_LANE_WIRE;
        step.ndeps = 0;
        step.capacity = 0;
        step.src = tx;
        step.dst = (struct zipccl_place){0};
        step.sizes_of = zipccl_stages_add(s, &step);
    }
    step.kind = ZIPCCL_STEP_EXCHANGE;
    step.lane = ZIPCCL_LANE_WIRE;
    step.ndeps = 0;
    step.capacity = capacity(s, s->n);
    step.src = tx;
    step.dst = rx;
    zipccl_stages_add(s, &step);
    s->resolve = ZIPCCL_STEP_NONE;
    if (s->form != ZIPCCL_FORM_FIXED)
        return;
    step.kind = ZIPCCL_STEP_RESOLVE;
    step.ndeps = 0;
    step.src = rx;
    step.dst = (struct zipccl_place){0};
    s->resolve = zipccl_stages_add(s, &step);
    step.kind = ZIPCCL_STEP_EXCHANGE;
    step.form = ZIPCCL_FORM_RAW;
    step.ndeps = 0;
    step.capacity = 0;
    step.src = src;
    step.dst = rx;
    step.raw_of = s->resolve;
    zipccl_stages_add(s, &step);
}

void zipccl_stages_decode(struct zipccl_stages *s, enum zipccl_group_kind group,
                          enum zipccl_pattern pattern, struct zipccl_place dst, uint32_t nblocks)
{
    struct zipccl_step step = zipccl_stages_step(s, ZIPCCL_STEP_DECODE, group, pattern, s->form);

    step.nblocks = (uint16_t)nblocks;
    step.src = zipccl_stages_rx(s, nblocks);
    if (pattern == ZIPCCL_PATTERN_BROADCAST)
        step.src.peer_stride = 0;
    step.dst = dst;
    step.capacity = capacity(s, s->n);
    step.raw_of = s->resolve;
    zipccl_stages_add(s, &step);
}

void zipccl_stages_send_raw(struct zipccl_stages *s, enum zipccl_group_kind group,
                            enum zipccl_pattern pattern, struct zipccl_place src,
                            struct zipccl_place dst, uint32_t nblocks)
{
    struct zipccl_step step =
        zipccl_stages_step(s, ZIPCCL_STEP_EXCHANGE, group, pattern, ZIPCCL_FORM_RAW);

    step.nblocks = (uint16_t)nblocks;
    step.src = src;
    step.dst = dst;
    zipccl_stages_add(s, &step);
}

void zipccl_stages_reduce(struct zipccl_stages *s, enum zipccl_group_kind group,
                          enum zipccl_redop redop, const struct zipccl_place *raw,
                          struct zipccl_place self, struct zipccl_place dst, uint32_t nblocks)
{
    struct zipccl_step step =
        zipccl_stages_step(s, ZIPCCL_STEP_REDUCE, group, ZIPCCL_PATTERN_ALL_TO_ALL,
                           raw != NULL ? ZIPCCL_FORM_RAW : s->form);

    step.nblocks = (uint16_t)nblocks;
    step.redop = (uint8_t)redop;
    step.first = step.round = 1;
    step.src = raw != NULL ? *raw : zipccl_stages_rx(s, nblocks);
    step.self = self;
    step.dst = dst;
    step.capacity = raw != NULL ? 0 : capacity(s, s->n);
    step.raw_of = raw != NULL ? ZIPCCL_STEP_NONE : s->resolve;
    zipccl_stages_add(s, &step);
}

void zipccl_stages_copy(struct zipccl_stages *s, enum zipccl_group_kind group,
                        enum zipccl_pattern pattern, struct zipccl_place src,
                        struct zipccl_place dst)
{
    struct zipccl_step step =
        zipccl_stages_step(s, ZIPCCL_STEP_COPY, group, pattern, ZIPCCL_FORM_RAW);

    step.src = src;
    step.dst = dst;
    zipccl_stages_add(s, &step);
}
