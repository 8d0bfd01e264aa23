/*
 * coded.c - encode, exchange and decode as a software pipeline over staging slots
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/strategies/coded.h"

#include "core/split.h"
#include "core/strategies/strategies.h"

/* The steps of the chunk that used a slot last. */
struct slot {
    uint16_t sent, resolve, decoded;
    size_t rx_stride;
};

/* The part that steps name once the early one has left; 0: the chunk's messages go whole. */
static uint8_t rest_of(const struct zipccl_coded *coded, uint32_t chunk)
{
    return coded->split && chunk == 0 ? ZIPCCL_PART_REST : 0;
}

/* Code the part that leaves early, as 'encode' says for the whole, and let it leave. */
static void add_early(struct zipccl_coded *coded, const struct zipccl_step *encode,
                      uint16_t slot_free)
{
    const struct zipccl_shape *shape = &coded->shape;
    struct zipccl_step first = *encode, step;

    first.part = ZIPCCL_PART_EARLY;
    step = zipccl_shape_exchange(shape, coded->form, encode->chunk, encode->n);
    step.part = ZIPCCL_PART_EARLY;
    step.src = encode->dst;
    step.dst = zipccl_shape_rx(shape, &coded->cut, encode->chunk, coded->cut.message_stride);
    step.capacity = encode->capacity;
    zipccl_step_dep(&step, zipccl_builder_add(&coded->builder, &first));
    zipccl_step_dep(&step, slot_free);
    zipccl_builder_add(&coded->builder, &step);
}

uint16_t zipccl_coded_exchange(struct zipccl_coded *coded, const struct zipccl_coded_chunk *chunk,
                               const struct zipccl_step *step)
{
    struct zipccl_step part = *step;

    part.part = chunk->part;
    if (part.part != 0 && part.lowering == ZIPCCL_LOWER_RING) {
        part.part = ZIPCCL_PART_HEAD;
        zipccl_builder_add(&coded->builder, &part);
        part.part = ZIPCCL_PART_TAIL;
    }
    return zipccl_builder_add(&coded->builder, &part);
}

static void add_encode_and_wire(struct zipccl_coded *coded, struct slot *slot, uint32_t chunk)
{
    size_t n = zipccl_chunk_n(coded->shape.count, coded->cut.chunk_n, chunk);
    size_t step_n = coded->shape.uneven ? coded->cut.chunk_n : n;
    struct zipccl_step step =
        zipccl_step_make(ZIPCCL_STEP_ENCODE, ZIPCCL_LANE_CODEC, chunk, step_n);
    struct zipccl_coded_chunk wire = {
        .chunk = chunk, .n = step_n, .part = rest_of(coded, chunk), .slot_free = slot->decoded};

    step.pattern = coded->shape.pattern;
    step.root = coded->shape.root;
    step.form = (uint8_t)coded->form;
    step.src = zipccl_shape_send(&coded->shape, chunk * coded->cut.chunk_n);
    step.dst = zipccl_shape_tx(&coded->shape, &coded->cut, chunk);
    step.capacity = coded->encode_room(coded->call, coded->capacity_class, step_n);
    zipccl_step_dep(&step, slot->sent);
    if (wire.part != 0)
        add_early(coded, &step, slot->decoded);
    step.part = wire.part;
    wire.encoded = zipccl_builder_add(&coded->builder, &step);
    wire.sent = wire.resolve = ZIPCCL_STEP_NONE;
    wire.rx_stride = coded->cut.message_stride;
    coded->wire(coded, &wire);
    slot->sent = wire.sent;
    slot->resolve = wire.resolve;
    slot->rx_stride = wire.rx_stride;
}

static void add_decode(struct zipccl_coded *coded, struct slot *slot, uint32_t chunk)
{
    size_t n = zipccl_chunk_n(coded->shape.count, coded->cut.chunk_n, chunk);
    size_t step_n = coded->shape.uneven ? coded->cut.chunk_n : n;
    struct zipccl_step step =
        zipccl_step_make(ZIPCCL_STEP_DECODE, ZIPCCL_LANE_CODEC, chunk, step_n);

    step.pattern = coded->shape.pattern;
    step.root = coded->shape.root;
    step.form = (uint8_t)coded->form;
    step.src = zipccl_shape_rx(&coded->shape, &coded->cut, chunk, slot->rx_stride);
    step.dst = zipccl_shape_recv(&coded->shape, chunk * coded->cut.chunk_n);
    step.capacity = coded->encode_room(coded->call, coded->capacity_class, step_n);
    step.raw_of = slot->resolve;
    step.part = rest_of(coded, chunk);
    zipccl_step_dep(&step, slot->sent);
    slot->decoded = zipccl_builder_add(&coded->builder, &step);
}

bool zipccl_serves_split(const struct zipccl_call *call)
{
    return !call->whole && zipccl_dtype_compressible(call->dtype) &&
           call->count >= ZIPCCL_SPLIT_LEAST_N &&
           (zipccl_serves_direct(call) || call->op == ZIPCCL_BROADCAST);
}

uint32_t zipccl_coded_split_chunks(const struct zipccl_call *call, uint32_t nchunks)
{
    bool uneven = zipccl_is_uneven(call->op);
    size_t most = call->count / ZIPCCL_SPLIT_LEAST_N;

    /* The two ends of a pair see other counts: they agree on chunks before. */
    return !uneven && nchunks > most ? (uint32_t)most : nchunks;
}

static void add_pipeline(struct zipccl_coded *coded)
{
    uint32_t nchunks = coded->cut.nchunks, ahead = coded->cut.nslots - 1;
    struct slot slots[ZIPCCL_MAX_SLOTS];

    for (uint32_t i = 0; i < ZIPCCL_MAX_SLOTS; i++)
        slots[i] = (struct slot){ZIPCCL_STEP_NONE, ZIPCCL_STEP_NONE, ZIPCCL_STEP_NONE, 0};
    for (uint32_t tick = 0; tick < nchunks + ahead; tick++) {
        if (tick < nchunks)
            add_encode_and_wire(coded, &slots[tick % coded->cut.nslots], tick);
        if (tick == ahead) {
            /* The codec lane has nothing to decode yet: the best moment for the own block. */
            struct zipccl_step copy = zipccl_shape_copy(&coded->shape);

            zipccl_builder_add(&coded->builder, &copy);
        }
        if (tick >= ahead)
            add_decode(coded, &slots[(tick - ahead) % coded->cut.nslots], tick - ahead);
    }
}

zipccl_status zipccl_coded_build(struct zipccl_coded *coded, const char *name,
                                 const struct zipccl_call *call,
                                 const struct zipccl_topology *topology, uint32_t channels,
                                 uint32_t nchunks, uint32_t capacity_class,
                                 size_t max_staging_bytes, struct zipccl_plan **out)
{
    struct zipccl_plan *plan;

    if (topology->nranks < 2 || !zipccl_dtype_compressible(call->dtype))
        return ZIPCCL_ERR_UNSUPPORTED;
    ZIPCCL_TRY(zipccl_shape_init(&coded->shape, call, topology, channels));
    coded->call = call;
    coded->capacity_class = capacity_class;
    if (call->count > 0)
        ZIPCCL_TRY(zipccl_shape_cut(&coded->shape, call, nchunks, max_staging_bytes,
                                    coded->slot_room, capacity_class, &coded->cut));
    zipccl_builder_start(&coded->builder, call, topology, name, channels);
    plan = coded->builder.plan;
    if (plan != NULL && call->count > 0) {
        plan->chunk_n = coded->cut.chunk_n;
        plan->nchunks = coded->cut.nchunks;
        plan->nslots = coded->cut.nslots;
        plan->raw_below_n = coded->shape.uneven ? ZIPCCL_RAW_BELOW_N : 0;
        plan->capacity_class = capacity_class;
        plan->tx_bytes = coded->cut.tx_slot_bytes * coded->cut.nslots;
        plan->rx_bytes = coded->cut.rx_slot_bytes * coded->cut.nslots;
        add_pipeline(coded);
    }
    return zipccl_builder_finish(&coded->builder, out);
}
