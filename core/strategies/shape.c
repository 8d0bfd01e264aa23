/*
 * shape.c - the collectives as patterns, strides and chunks
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/strategies/shape.h"

#include <stdint.h>

/* Chunks of a plan at most; keeps step numbers within their 16 bits. */
#define MAX_CHUNKS 8192u

/* Slots of a chunked plan at least. */
#define MIN_SLOTS 2u

zipccl_status zipccl_shape_check(const struct zipccl_call *call,
                                 const struct zipccl_topology *topology)
{
    size_t size = zipccl_dtype_size(call->dtype);

    if (size == 0 || topology->nranks == 0)
        return ZIPCCL_ERR_ARG;
    if (call->op == ZIPCCL_BROADCAST && call->root >= topology->nranks)
        return ZIPCCL_ERR_ARG;
    /* Half of size_t, so that sums of two offsets cannot wrap either. */
    return call->count > SIZE_MAX / 2 / size / topology->nranks ? ZIPCCL_ERR_ARG : ZIPCCL_OK;
}

zipccl_status zipccl_shape_init(struct zipccl_shape *shape, const struct zipccl_call *call,
                                const struct zipccl_topology *topology, uint32_t channels)
{
    uint32_t nranks = topology->nranks;
    bool ring = channels > 0;

    ZIPCCL_TRY(zipccl_shape_check(call, topology));
    *shape = (struct zipccl_shape){.lowering = ring ? ZIPCCL_LOWER_RING : ZIPCCL_LOWER_DIRECT,
                                   .channels = (uint16_t)(ring ? channels : 1),
                                   .count = call->count,
                                   .tx_messages = 1,
                                   .rx_messages = nranks};
    if (channels > UINT16_MAX)
        return ZIPCCL_ERR_ARG;
    switch (call->op) {
    case ZIPCCL_ALL_GATHER:
        shape->pattern = ZIPCCL_PATTERN_ALL_GATHER;
        shape->recv_stride = call->count;
        return ZIPCCL_OK;
    case ZIPCCL_BROADCAST:
        shape->pattern = ZIPCCL_PATTERN_BROADCAST;
        shape->root = call->root;
        shape->rx_messages = 1;
        return ring || nranks == 1 ? ZIPCCL_OK : ZIPCCL_ERR_UNSUPPORTED;
    case ZIPCCL_ALLTOALL:
        shape->pattern = ZIPCCL_PATTERN_ALL_TO_ALL;
        shape->send_stride = shape->recv_stride = call->count;
        break;
    case ZIPCCL_SENDRECV:
        /* One peer to send to and one to receive from: one message each. */
        shape->pattern = ZIPCCL_PATTERN_PAIRS;
        shape->uneven = true;
        shape->rx_messages = 1;
        return ring ? ZIPCCL_ERR_UNSUPPORTED : ZIPCCL_OK;
    case ZIPCCL_ALLTOALLV:
        shape->pattern = ZIPCCL_PATTERN_PAIRS;
        shape->uneven = true;
        break;
    default: return ZIPCCL_ERR_UNSUPPORTED;
    }
    shape->tx_messages = nranks;
    return ring ? ZIPCCL_ERR_UNSUPPORTED : ZIPCCL_OK;
}

static size_t divide_up(size_t a, size_t b)
{
    return a / b + (a % b != 0);
}

size_t zipccl_full_chunk(size_t count, uint32_t nchunks)
{
    size_t n = divide_up(count, nchunks);

    if (n > ZIPCCL_CHUNK_ALIGN_N)
        n = divide_up(n, ZIPCCL_CHUNK_ALIGN_N) * ZIPCCL_CHUNK_ALIGN_N;
    return n < count ? n : count;
}

/* Fill 'cut' for chunks of cut->chunk_n elements in at most 'most_slots'; false if the staging does not
 * fit 'limit'. */
static bool fits(const struct zipccl_shape *shape, size_t message_bytes, size_t limit,
                 uint32_t most_slots, struct zipccl_cut *cut)
{
    size_t messages = (size_t)shape->tx_messages + shape->rx_messages;

    cut->nchunks = (uint32_t)divide_up(shape->count, cut->chunk_n);
    cut->nslots = cut->nchunks < most_slots ? cut->nchunks : most_slots;
    if (message_bytes == 0 || message_bytes > SIZE_MAX / 2 - ZIPCCL_STAGING_ALIGN)
        return false;
    cut->message_stride = divide_up(message_bytes, ZIPCCL_STAGING_ALIGN) * ZIPCCL_STAGING_ALIGN;
    if (messages * cut->nslots > limit / cut->message_stride)
        return false;
    cut->tx_slot_bytes = cut->message_stride * shape->tx_messages;
    cut->rx_slot_bytes = cut->message_stride * shape->rx_messages;
    return true;
}

zipccl_status zipccl_shape_cut(const struct zipccl_shape *shape, const struct zipccl_call *call,
                               uint32_t nchunks, size_t max_staging_bytes,
                               size_t (*room)(const struct zipccl_call *call,
                                              uint32_t capacity_class, size_t n),
                               uint32_t capacity_class, struct zipccl_cut *cut)
{
    size_t limit = max_staging_bytes > 0 ? max_staging_bytes : SIZE_MAX / 2;
    size_t most = shape->count;

    /* Pair chunks below ZIPCCL_RAW_BELOW_N would travel raw: do not ask for such. */
    if (shape->uneven)
        most /= ZIPCCL_RAW_BELOW_N;
    if (nchunks > most)
        nchunks = (uint32_t)most;
    if (nchunks > MAX_CHUNKS)
        nchunks = MAX_CHUNKS;
    for (uint32_t k = nchunks > 0 ? nchunks : 1; k <= MAX_CHUNKS; k *= 2) {
        cut->chunk_n = zipccl_full_chunk(shape->count, k);
        /* Rather fewer slots than smaller chunks: two are enough to encode and decode beside the
         * wire, and each chunk costs latencies anew. */
        for (uint32_t slots = ZIPCCL_MAX_SLOTS; slots >= MIN_SLOTS; slots--)
            if (fits(shape, room(call, capacity_class, cut->chunk_n), limit, slots, cut))
                return ZIPCCL_OK;
        if (cut->chunk_n == 1)
            break;
    }
    return ZIPCCL_ERR_NOMEM;
}

struct zipccl_place zipccl_shape_send(const struct zipccl_shape *shape, size_t first)
{
    return (struct zipccl_place){.buf = ZIPCCL_BUF_SEND,
                                 .uneven = shape->uneven,
                                 .base = first,
                                 .peer_stride = shape->send_stride};
}

struct zipccl_place zipccl_shape_recv(const struct zipccl_shape *shape, size_t first)
{
    return (struct zipccl_place){.buf = ZIPCCL_BUF_RECV,
                                 .uneven = shape->uneven,
                                 .base = first,
                                 .peer_stride = shape->recv_stride};
}

struct zipccl_place zipccl_shape_tx(const struct zipccl_shape *shape, const struct zipccl_cut *cut,
                                    uint32_t chunk)
{
    uint32_t slot = chunk % cut->nslots;

    return (struct zipccl_place){.buf = ZIPCCL_BUF_TX,
                                 .slot = (uint8_t)slot,
                                 .base = slot * cut->tx_slot_bytes,
                                 .peer_stride = shape->tx_messages > 1 ? cut->message_stride : 0};
}

struct zipccl_place zipccl_shape_rx(const struct zipccl_shape *shape, const struct zipccl_cut *cut,
                                    uint32_t chunk, size_t message_stride)
{
    uint32_t slot = chunk % cut->nslots;

    return (struct zipccl_place){.buf = ZIPCCL_BUF_RX,
                                 .slot = (uint8_t)slot,
                                 .base = slot * cut->rx_slot_bytes,
                                 .peer_stride = shape->rx_messages > 1 ? message_stride : 0};
}

struct zipccl_step zipccl_shape_exchange(const struct zipccl_shape *shape, enum zipccl_form form,
                                         uint32_t chunk, size_t n)
{
    struct zipccl_step step = zipccl_step_make(ZIPCCL_STEP_EXCHANGE, ZIPCCL_LANE_WIRE, chunk, n);

    step.pattern = shape->pattern;
    step.form = (uint8_t)form;
    step.lowering = shape->lowering;
    step.channels = shape->channels;
    step.root = shape->root;
    return step;
}

struct zipccl_step zipccl_shape_copy(const struct zipccl_shape *shape)
{
    struct zipccl_step step =
        zipccl_step_make(ZIPCCL_STEP_COPY, ZIPCCL_LANE_CODEC, 0, shape->count);

    step.pattern = shape->pattern;
    step.root = shape->root;
    step.src = zipccl_shape_send(shape, 0);
    step.dst = zipccl_shape_recv(shape, 0);
    return step;
}
