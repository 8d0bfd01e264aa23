/*
 * rings.c - forwards blocks around rings with groups of sends and receives
 *
 * A ring reduction cannot give the values: it adds in ring order and rounds at each hop, while the
 * result here is defined as rank order with one rounding.  So the two are taken apart, by decision:
 * ring steps post messages of exactly the sizes and pairs that a ring would (they carry the
 * sender's own contribution and are dropped), and the values come from the transport.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/rings.h"

#include "core/lower.h"

#include <stdlib.h>

/* The rings of one call, as this rank sees them. */
struct rings {
    uint32_t nranks, nchannels;
    size_t unit;     /* bytes that stay together when a block is cut over the rings */
    uint32_t *order; /* [nchannels * nranks] ranks along each ring, rank 0 first */
    uint32_t *at;    /* [nchannels] where this rank is in it */
};

static void rings_free(struct rings *rings)
{
    free(rings->order);
    free(rings->at);
}

static zipccl_status rings_make(const struct zipccl_transport *t, uint32_t nchannels, size_t unit,
                                struct rings *out)
{
    struct rings rings = {
        .nranks = t->nranks, .nchannels = nchannels > 0 ? nchannels : 1, .unit = unit};

    rings.order = malloc((size_t)rings.nchannels * rings.nranks * sizeof *rings.order);
    rings.at = malloc(rings.nchannels * sizeof *rings.at);
    if (rings.order == NULL || rings.at == NULL) {
        rings_free(&rings);
        return ZIPCCL_ERR_NOMEM;
    }
    for (uint32_t c = 0; c < rings.nchannels; c++) {
        uint32_t *order = rings.order + (size_t)c * rings.nranks;
        uint32_t rank = 0;

        for (uint32_t i = 0; i < rings.nranks; i++) {
            order[i] = rank;
            if (rank == t->rank)
                rings.at[c] = i;
            rank = zipccl_ring_next(t->topology, c, rank);
        }
    }
    *out = rings;
    return ZIPCCL_OK;
}

/* The rank 'hops' steps behind this one on ring c. */
static uint32_t behind(const struct rings *rings, uint32_t c, uint32_t hops)
{
    uint32_t n = rings->nranks;

    return rings->order[(size_t)c * n + (rings->at[c] + n - hops % n) % n];
}

static uint32_t ahead(const struct rings *rings, uint32_t c)
{
    return rings->order[(size_t)c * rings->nranks + (rings->at[c] + 1) % rings->nranks];
}

/* Bytes, and where they start, of ring c's part of a block of 'nbytes'. */
static size_t part_of(const struct rings *rings, size_t nbytes, uint32_t c, size_t *first)
{
    *first = rings->unit * zipccl_ring_part_offset(nbytes / rings->unit, rings->nchannels, c);
    return rings->unit * zipccl_ring_part(nbytes / rings->unit, rings->nchannels, c);
}

/* Give up for every rank: one that cannot go on must not leave the others waiting. */
static zipccl_status abort_with(struct zipccl_transport *t, zipccl_status status)
{
    t->ops->abort(t);
    return status;
}

/* Close a group whatever happened inside, so that the handle is left in order. */
static zipccl_status end_group(struct zipccl_transport *t, zipccl_status posted)
{
    zipccl_status ended;

    if (posted != ZIPCCL_OK)
        abort_with(t, posted);
    ended = t->ops->group_end(t);
    return posted != ZIPCCL_OK ? posted : ended;
}

static zipccl_status post_round(struct zipccl_transport *t, const struct rings *rings,
                                const size_t *start, uint32_t send_hops, const char *send,
                                char *recv)
{
    for (uint32_t c = 0; c < rings->nchannels; c++) {
        uint32_t out = behind(rings, c, send_hops), in = behind(rings, c, send_hops + 1);
        size_t first, n;

        n = part_of(rings, start[out + 1] - start[out], c, &first);
        if (n > 0)
            ZIPCCL_TRY(t->ops->send(t, ahead(rings, c), send + start[out] + first, n));
        n = part_of(rings, start[in + 1] - start[in], c, &first);
        if (n > 0)
            ZIPCCL_TRY(t->ops->recv(t, behind(rings, c, 1), recv + start[in] + first, n));
    }
    return ZIPCCL_OK;
}

/*
 * One round of a ring collective on all channels: block 'send_hops' behind this rank goes ahead,
 * and the block that the rank behind sends in the same round arrives.
 *
 * start  [nranks + 1] byte offsets of the blocks, the same for 'send' and 'recv'
 */
static zipccl_status ring_round(struct zipccl_transport *t, const struct rings *rings,
                                const size_t *start, uint32_t send_hops, const char *send,
                                char *recv)
{
    ZIPCCL_TRY(t->ops->group_begin(t));
    return end_group(t, post_round(t, rings, start, send_hops, send, recv));
}

/* Gather blocks in 'buf', of which this rank's own is in place: hops 0, 1, ... N-2. */
static zipccl_status ring_gather(struct zipccl_transport *t, const struct rings *rings,
                                 const size_t *start, char *buf)
{
    for (uint32_t k = 0; k + 1 < rings->nranks; k++)
        ZIPCCL_TRY(ring_round(t, rings, start, k, buf, buf));
    return ZIPCCL_OK;
}

/* The messages of a ring reduce-scatter, see the top of the file: hops 1, 2, ... N-1. */
static zipccl_status ring_scatter(struct zipccl_transport *t, const struct rings *rings,
                                  const size_t *start, const char *send, char *dropped)
{
    for (uint32_t k = 1; k < rings->nranks; k++)
        ZIPCCL_TRY(ring_round(t, rings, start, k, send, dropped));
    return ZIPCCL_OK;
}

/* Equal blocks of 'nbytes'; the caller frees. */
static size_t *equal_starts(uint32_t nblocks, size_t nbytes)
{
    size_t *start = malloc(((size_t)nblocks + 1) * sizeof *start);

    if (start != NULL)
        for (uint32_t b = 0; b <= nblocks; b++)
            start[b] = b * nbytes;
    return start;
}

static zipccl_status post_own(struct zipccl_transport *t, void *dst, const void *src, size_t nbytes)
{
    ZIPCCL_TRY(t->ops->send(t, t->rank, src, nbytes));
    return t->ops->recv(t, t->rank, dst, nbytes);
}

/* Move this rank's own block; as a message to itself, since only the transport touches payload. */
static zipccl_status copy_own(struct zipccl_transport *t, void *dst, const void *src, size_t nbytes)
{
    if (nbytes == 0 || dst == src)
        return ZIPCCL_OK;
    ZIPCCL_TRY(t->ops->group_begin(t));
    return end_group(t, post_own(t, dst, src, nbytes));
}

zipccl_status zipccl_rings_all_gather(struct zipccl_transport *t, const void *send, void *recv,
                                      size_t nbytes, size_t unit, uint32_t channels)
{
    struct rings rings;
    size_t *start = equal_starts(t->nranks, nbytes);
    char *own = (char *)recv + t->rank * nbytes;
    zipccl_status status;

    if (start == NULL)
        return abort_with(t, ZIPCCL_ERR_NOMEM);
    status = rings_make(t, channels, unit, &rings);
    if (status != ZIPCCL_OK) {
        free(start);
        return abort_with(t, status);
    }
    status = copy_own(t, own, send, nbytes);
    if (status == ZIPCCL_OK)
        status = ring_gather(t, &rings, start, recv);
    rings_free(&rings);
    free(start);
    return status;
}

/* In round k the rank k hops after the root sends to the next. */
static zipccl_status post_broadcast(struct zipccl_transport *t, const struct rings *rings,
                                    uint32_t root, uint32_t k, char *buf, size_t nbytes)
{
    for (uint32_t c = 0; c < rings->nchannels; c++) {
        size_t first, n = part_of(rings, nbytes, c, &first);

        if (n > 0 && behind(rings, c, k) == root)
            ZIPCCL_TRY(t->ops->send(t, ahead(rings, c), buf + first, n));
        if (n > 0 && behind(rings, c, k + 1) == root)
            ZIPCCL_TRY(t->ops->recv(t, behind(rings, c, 1), buf + first, n));
    }
    return ZIPCCL_OK;
}

zipccl_status zipccl_rings_broadcast(struct zipccl_transport *t, void *buf, size_t nbytes,
                                     size_t unit, uint32_t root, uint32_t channels)
{
    struct rings rings;
    zipccl_status status = rings_make(t, channels, unit, &rings);

    if (status != ZIPCCL_OK)
        return abort_with(t, status);
    for (uint32_t k = 0; k + 1 < t->nranks && status == ZIPCCL_OK; k++) {
        status = t->ops->group_begin(t);
        if (status == ZIPCCL_OK)
            status = end_group(t, post_broadcast(t, &rings, root, k, buf, nbytes));
    }
    rings_free(&rings);
    return status;
}

/* Blocks of a reduction: 'count' elements a rank, or 'count' cut over the ranks. */
static size_t *reduction_starts(const struct zipccl_native_call *call, uint32_t nranks)
{
    size_t size = zipccl_dtype_size(call->dtype);
    size_t *start;

    if (call->op == ZIPCCL_REDUCE_SCATTER)
        return equal_starts(nranks, call->count * size);
    start = malloc(((size_t)nranks + 1) * sizeof *start);
    if (start != NULL)
        for (uint32_t b = 0; b <= nranks; b++)
            start[b] = b == nranks ? call->count * size
                                   : size * zipccl_ring_part_offset(call->count, nranks, b);
    return start;
}

/*
 * Reduce-scatter into 'own', this rank's block; 'scratch' takes what the ring steps carry.  After
 * it no rank reads a send buffer any more, so an in-place all-reduce may overwrite it.
 */
static zipccl_status scatter(struct zipccl_transport *t, const struct zipccl_native_call *call,
                             const struct rings *rings, const size_t *start, char *scratch,
                             zipccl_rings_values_fn *values, void *own)
{
    size_t size = zipccl_dtype_size(call->dtype);
    size_t first = start[t->rank], end = start[t->rank + 1];

    ZIPCCL_TRY(ring_scatter(t, rings, start, call->send, scratch));
    return values(t, call, first / size, (end - first) / size, own);
}

static zipccl_status reduction(struct zipccl_transport *t, const struct zipccl_native_call *call,
                               zipccl_rings_values_fn *values)
{
    struct rings rings = {.order = NULL};
    size_t *start = reduction_starts(call, t->nranks);
    char *scratch = start == NULL ? NULL : malloc(start[t->nranks] + 1);
    zipccl_status status = ZIPCCL_ERR_NOMEM;

    if (scratch != NULL)
        status = rings_make(t, call->channels, zipccl_dtype_size(call->dtype), &rings);
    if (status != ZIPCCL_OK) {
        status = abort_with(t, status);
    } else if (call->op == ZIPCCL_REDUCE_SCATTER) {
        status = scatter(t, call, &rings, start, scratch, values, call->recv);
    } else {
        size_t own = start[t->rank], n = start[t->rank + 1] - own;

        status = scatter(t, call, &rings, start, scratch, values, scratch + own);
        if (status == ZIPCCL_OK)
            status = copy_own(t, (char *)call->recv + own, scratch + own, n);
        if (status == ZIPCCL_OK)
            status = ring_gather(t, &rings, start, call->recv);
    }
    rings_free(&rings);
    free(scratch);
    free(start);
    return status;
}

static zipccl_status native_broadcast(struct zipccl_transport *t,
                                      const struct zipccl_native_call *call)
{
    size_t size = zipccl_dtype_size(call->dtype), nbytes = call->count * size;

    if (t->rank == call->root)
        ZIPCCL_TRY(copy_own(t, call->recv, call->send, nbytes));
    return zipccl_rings_broadcast(t, call->recv, nbytes, size, call->root, call->channels);
}

/* Equal or uneven all-to-all, and sendrecv: one group of pairs, oneself included. */
static zipccl_status post_pairs(struct zipccl_transport *t, const struct zipccl_native_call *call)
{
    size_t size = zipccl_dtype_size(call->dtype);
    bool equal = call->op == ZIPCCL_ALLTOALL;

    for (uint32_t p = 0; p < t->nranks; p++) {
        size_t n = equal ? call->count : call->send_counts[p];
        size_t at = equal ? p * call->count : call->send_displs[p];

        if (n > 0)
            ZIPCCL_TRY(t->ops->send(t, p, (const char *)call->send + at * size, n * size));
        n = equal ? call->count : call->recv_counts[p];
        at = equal ? p * call->count : call->recv_displs[p];
        if (n > 0)
            ZIPCCL_TRY(t->ops->recv(t, p, (char *)call->recv + at * size, n * size));
    }
    return ZIPCCL_OK;
}

static zipccl_status pairs(struct zipccl_transport *t, const struct zipccl_native_call *call)
{
    ZIPCCL_TRY(t->ops->group_begin(t));
    return end_group(t, post_pairs(t, call));
}

zipccl_status zipccl_rings_native(struct zipccl_transport *t, const struct zipccl_native_call *call,
                                  zipccl_rings_values_fn *values)
{
    switch (call->op) {
    case ZIPCCL_ALL_GATHER: {
        size_t size = zipccl_dtype_size(call->dtype);

        return zipccl_rings_all_gather(t, call->send, call->recv, call->count * size, size,
                                       call->channels);
    }
    case ZIPCCL_REDUCE_SCATTER:
    case ZIPCCL_ALL_REDUCE: return reduction(t, call, values);
    case ZIPCCL_BROADCAST:
        return call->root < t->nranks ? native_broadcast(t, call) : ZIPCCL_ERR_ARG;
    default: return pairs(t, call);
    }
}
