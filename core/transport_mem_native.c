/*
 * transport_mem_native.c - the memory transport's own collectives
 *
 * all_gather and broadcast forward their data around rings.  A reduction cannot: a ring adds in
 * ring order and rounds at each hop, while the result here is defined as rank order with one
 * rounding.  So the two are taken apart, by decision: ring steps post messages of exactly the sizes
 * and pairs that a ring would (they carry the sender's own contribution and are dropped), and the
 * values are read from the peers' send buffers, since all ranks share one address space.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/lower.h"
#include "core/reduce.h"
#include "core/transport_mem.h"
#include "core/transport_mem_hub.h"

#include <stdlib.h>
#include <string.h>

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

/* 'nbytes' per rank, cut over the rings in whole units. */
static zipccl_status all_gather(struct zipccl_transport *t, const void *send, void *recv,
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
    if (nbytes > 0 && own != send)
        memcpy(own, send, nbytes);
    status = ring_gather(t, &rings, start, recv);
    rings_free(&rings);
    free(start);
    return status;
}

zipccl_status zipccl_mem_all_gather(struct zipccl_transport *t, const void *send, void *recv,
                                    size_t nbytes, uint32_t channels)
{
    return all_gather(t, send, recv, nbytes, 1, channels);
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

static zipccl_status broadcast(struct zipccl_transport *t, void *buf, size_t nbytes, size_t unit,
                               uint32_t root, uint32_t channels)
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

zipccl_status zipccl_mem_broadcast(struct zipccl_transport *t, void *buf, size_t nbytes,
                                   uint32_t root, uint32_t channels)
{
    if (root >= t->nranks)
        return ZIPCCL_ERR_ARG;
    return broadcast(t, buf, nbytes, 1, root, channels);
}

/*
 * Meet all ranks with this rank's call; from then on until part() every rank may read every
 * other's send buffer.  MISMATCH on all ranks if the calls differ.
 */
static zipccl_status meet(struct zipccl_mem_rank *rank, const struct zipccl_native_call *call)
{
    struct zipccl_mem_hub *hub = rank->hub;
    zipccl_status status = ZIPCCL_OK;
    uint64_t meeting;

    pthread_mutex_lock(&hub->lock);
    meeting = hub->meeting;
    hub->call[rank->base.rank] = call;
    if (hub->aborted) {
        status = ZIPCCL_ERR_ABORTED;
    } else if (++hub->narrived == hub->nranks) {
        hub->narrived = 0;
        hub->nreaders = hub->nranks;
        hub->meeting++;
        pthread_cond_broadcast(&hub->met);
    } else {
        while (hub->meeting == meeting && !hub->aborted)
            pthread_cond_wait(&hub->met, &hub->lock);
        if (hub->meeting == meeting)
            status = ZIPCCL_ERR_ABORTED;
    }
    pthread_mutex_unlock(&hub->lock);
    return status;
}

/* Leave a meeting; returns when no rank reads any more.  Readers never block, so it ends. */
static void part(struct zipccl_mem_rank *rank)
{
    struct zipccl_mem_hub *hub = rank->hub;

    pthread_mutex_lock(&hub->lock);
    if (--hub->nreaders == 0)
        pthread_cond_broadcast(&hub->met);
    else
        while (hub->nreaders > 0)
            pthread_cond_wait(&hub->met, &hub->lock);
    pthread_mutex_unlock(&hub->lock);
}

/* All ranks see the same calls, so all find the same difference. */
static zipccl_status compare_calls(struct zipccl_mem_rank *rank)
{
    struct zipccl_mem_hub *hub = rank->hub;
    const struct zipccl_native_call *a = hub->call[0];

    for (uint32_t r = 1; r < hub->nranks; r++) {
        const struct zipccl_native_call *b = hub->call[r];

        if (a->op == b->op && a->dtype == b->dtype && a->redop == b->redop && a->count == b->count)
            continue;
        pthread_mutex_lock(&hub->lock);
        if (hub->error.text[0] == '\0')
            zipccl_fail(&hub->error, ZIPCCL_ERR_MISMATCH,
                        "rank 0 calls %s %s %s of %zu elements, rank %u %s %s %s of %zu",
                        zipccl_op_name(a->op), zipccl_dtype_name(a->dtype),
                        zipccl_redop_name(a->redop), a->count, r, zipccl_op_name(b->op),
                        zipccl_dtype_name(b->dtype), zipccl_redop_name(b->redop), b->count);
        pthread_mutex_unlock(&hub->lock);
        return ZIPCCL_ERR_MISMATCH;
    }
    return ZIPCCL_OK;
}

/* Reduce elements [first, first + n) of every rank's send buffer into 'dst'. */
static zipccl_status reduce_shared(struct zipccl_mem_rank *rank,
                                   const struct zipccl_native_call *call, size_t first, size_t n,
                                   void *dst)
{
    struct zipccl_mem_hub *hub = rank->hub;
    const void **sources = malloc(hub->nranks * sizeof *sources);
    size_t offset = first * zipccl_dtype_size(call->dtype);
    zipccl_status status;

    if (sources == NULL)
        return abort_with(&rank->base, ZIPCCL_ERR_NOMEM);
    status = meet(rank, call);
    if (status == ZIPCCL_OK) {
        status = compare_calls(rank);
        for (uint32_t r = 0; r < hub->nranks; r++)
            sources[r] = (const char *)hub->call[r]->send + offset;
        if (status == ZIPCCL_OK)
            status = zipccl_reduce(call->dtype, call->redop, sources, hub->nranks, n, dst);
        part(rank);
    }
    free(sources);
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
static zipccl_status scatter(struct zipccl_mem_rank *rank, const struct zipccl_native_call *call,
                             const struct rings *rings, const size_t *start, char *scratch,
                             void *own)
{
    size_t size = zipccl_dtype_size(call->dtype);
    size_t first = start[rank->base.rank], end = start[rank->base.rank + 1];

    ZIPCCL_TRY(ring_scatter(&rank->base, rings, start, call->send, scratch));
    return reduce_shared(rank, call, first / size, (end - first) / size, own);
}

static zipccl_status reduction(struct zipccl_mem_rank *rank, const struct zipccl_native_call *call)
{
    struct zipccl_transport *t = &rank->base;
    struct rings rings = {.order = NULL};
    size_t *start = reduction_starts(call, t->nranks);
    char *scratch = start == NULL ? NULL : malloc(start[t->nranks] + 1);
    zipccl_status status = ZIPCCL_ERR_NOMEM;

    if (scratch != NULL)
        status = rings_make(t, call->channels, zipccl_dtype_size(call->dtype), &rings);
    if (status != ZIPCCL_OK) {
        status = abort_with(t, status);
    } else if (call->op == ZIPCCL_REDUCE_SCATTER) {
        status = scatter(rank, call, &rings, start, scratch, call->recv);
    } else {
        size_t own = start[t->rank], n = start[t->rank + 1] - own;

        status = scatter(rank, call, &rings, start, scratch, scratch + own);
        if (status == ZIPCCL_OK && n > 0)
            memcpy((char *)call->recv + own, scratch + own, n);
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

    if (t->rank == call->root && nbytes > 0 && call->recv != call->send)
        memcpy(call->recv, call->send, nbytes);
    return broadcast(t, call->recv, nbytes, size, call->root, call->channels);
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

bool zipccl_mem_has_native(const struct zipccl_transport *t, enum zipccl_op op,
                           enum zipccl_dtype dtype, enum zipccl_redop redop)
{
    (void)t;
    if (zipccl_dtype_size(dtype) == 0 || (unsigned)op >= ZIPCCL_NUM_OPS)
        return false;
    if (op == ZIPCCL_REDUCE_SCATTER || op == ZIPCCL_ALL_REDUCE)
        return zipccl_reduce_serves(dtype, redop);
    return true;
}

zipccl_status zipccl_mem_native(struct zipccl_transport *t, const struct zipccl_native_call *call)
{
    if (!zipccl_mem_has_native(t, call->op, call->dtype, call->redop))
        return ZIPCCL_ERR_UNSUPPORTED;
    switch (call->op) {
    case ZIPCCL_ALL_GATHER: {
        size_t size = zipccl_dtype_size(call->dtype);

        return all_gather(t, call->send, call->recv, call->count * size, size, call->channels);
    }
    case ZIPCCL_REDUCE_SCATTER:
    case ZIPCCL_ALL_REDUCE: return reduction((struct zipccl_mem_rank *)t, call);
    case ZIPCCL_BROADCAST:
        return call->root < t->nranks ? native_broadcast(t, call) : ZIPCCL_ERR_ARG;
    default: return pairs(t, call);
    }
}
