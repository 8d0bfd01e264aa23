/*
 * transport_simgrid_native.c - broadcasts that stream through rings, and values of reductions
 *
 * All simulated ranks share one address space.  A broadcast's bytes are copied from what its root
 * brought; a reduction is computed once, when the last rank has entered and while nobody can have
 * left, and each rank takes its part.  The messages are those of a ring all the same.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/lower.h"
#include "core/reduce.h"
#include "core/rings.h"
#include "sim/transport_simgrid_hub.h"

#include <simgrid/actor.h>
#include <simgrid/comm.h>
#include <simgrid/engine.h>
#include <simgrid/mailbox.h>
#include <simgrid/semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct zipccl_simgrid_rank *rank_of(struct zipccl_transport *t)
{
    return (struct zipccl_simgrid_rank *)t;
}

static zipccl_status abort_with(struct zipccl_transport *t, zipccl_status status)
{
    t->ops->abort(t);
    return status;
}

/* The next shared call of this rank: the ranks' n-th ones are the same. */
static struct zipccl_simgrid_shared *enter_shared(struct zipccl_simgrid_rank *rank)
{
    struct zipccl_simgrid_hub *hub = rank->hub;
    struct zipccl_simgrid_shared *s = hub->shared;
    uint64_t number = rank->nshared++;

    while (s != NULL && s->number != number)
        s = s->next;
    if (s == NULL) {
        s = calloc(1, sizeof(*s));
        if (s == NULL)
            return NULL;
        s->calls = calloc(hub->nranks, sizeof(*s->calls));
        if (s->calls == NULL) {
            free(s);
            return NULL;
        }
        s->number = number;
        s->next = hub->shared;
        hub->shared = s;
    }
    s->nentered++;
    return s;
}

static void free_shared(struct zipccl_simgrid_shared *s)
{
    free(s->data);
    free(s->calls);
    free(s);
}

static void leave_shared(struct zipccl_simgrid_hub *hub, struct zipccl_simgrid_shared *s)
{
    struct zipccl_simgrid_shared **at = &hub->shared;

    if (++s->nleft < hub->nranks)
        return;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    free_shared(s);
}

/* One ring of a broadcast on one rank. */
struct stream {
    struct zipccl_simgrid_rank *rank;
    uint32_t channel, root;
    size_t nbytes;
    sg_sem_t done; /* NULL: run by the rank's own actor */
};

static struct zipccl_simgrid_hop *hop_of(struct zipccl_simgrid_hub *hub, uint32_t channel,
                                         uint32_t rank)
{
    return &hub->hops[channel][rank];
}

static void sleep_until(double when_s)
{
    if (when_s > simgrid_get_clock())
        sg_actor_sleep_until(when_s);
}

/* Send on to 'next', whose first byte comes alpha from now. */
static sg_comm_t forward(const struct stream *s, uint32_t next)
{
    struct zipccl_simgrid_hub *hub = s->rank->hub;
    struct zipccl_simgrid_hop *hop = hop_of(hub, s->channel, next);
    uint32_t self = s->rank->base.rank;
    sg_comm_t comm;

    hub->pairs[(size_t)self * hub->nranks + next].nbytes += s->nbytes;
    hub->nmessages++;
    hop->nput++;
    hop->head_s[hop->nhead++ % 2] = simgrid_get_clock() + zipccl_simgrid_alpha(hub, self, next);
    comm = sg_mailbox_put_async(hop->box, hop, (long)s->nbytes);
    sg_sem_release(hop->head);
    return comm;
}

/* Wait for the first byte and take the message; NULL after an abort. */
static sg_comm_t receive(struct zipccl_simgrid_hub *hub, struct zipccl_simgrid_hop *hop)
{
    sg_sem_acquire(hop->head);
    if (!hub->aborted)
        sleep_until(hop->head_s[hop->nheard++ % 2]);
    if (hop->nput == hop->ngot)
        return NULL;
    hop->ngot++;
    return sg_mailbox_get_async(hop->box, &hop->arrived);
}

/* One ring: what arrives is sent on at once; its last byte cannot be here before it was behind. */
static void run_stream(const struct stream *s)
{
    struct zipccl_simgrid_hub *hub = s->rank->hub;
    uint32_t self = s->rank->base.rank, next = zipccl_ring_next(hub->topology, s->channel, self);
    struct zipccl_simgrid_hop *hop = hop_of(hub, s->channel, self);
    sg_comm_t in = NULL, out = NULL;

    if (self != s->root)
        in = receive(hub, hop);
    if (next != s->root && !hub->aborted)
        out = forward(s, next);
    if (in != NULL)
        sg_comm_wait(in);
    if (self != s->root && !hub->aborted) {
        sg_sem_acquire(hop->whole);
        sleep_until(hop->whole_s[hop->nseen++ % 2]);
    }
    if (next != s->root) {
        struct zipccl_simgrid_hop *to = hop_of(hub, s->channel, next);

        to->whole_s[to->nwhole++ % 2] = simgrid_get_clock() + zipccl_simgrid_alpha(hub, self, next);
        sg_sem_release(to->whole);
    }
    if (out != NULL)
        sg_comm_wait(out);
}

static void stream_actor(int argc, char **argv)
{
    const struct stream *s = sg_actor_self_get_data();

    (void)argc;
    (void)argv;
    run_stream(s);
    sg_sem_release(s->done);
}

static void free_hops(struct zipccl_simgrid_hop *hops, uint32_t nranks)
{
    for (uint32_t r = 0; hops != NULL && r < nranks; r++) {
        sg_sem_destroy(hops[r].head);
        sg_sem_destroy(hops[r].whole);
    }
    free(hops);
}

static struct zipccl_simgrid_hop *create_hops(const struct zipccl_simgrid_hub *hub,
                                              uint32_t channel)
{
    struct zipccl_simgrid_hop *hops = calloc(hub->nranks, sizeof(*hops));
    char name[64];

    for (uint32_t r = 0; hops != NULL && r < hub->nranks; r++) {
        snprintf(name, sizeof(name), "hop-%u-%u-%u", hub->options.id, channel, r);
        hops[r].box = sg_mailbox_by_name(name);
        hops[r].head = sg_sem_init(0);
        hops[r].whole = sg_sem_init(0);
    }
    return hops;
}

static zipccl_status make_hops(struct zipccl_simgrid_hub *hub, uint32_t channels)
{
    while (hub->nhops < channels) {
        uint32_t channel = hub->nhops;
        struct zipccl_simgrid_hop *hops = create_hops(hub, channel), **more;

        if (hops == NULL)
            return ZIPCCL_ERR_NOMEM;
        /* Naming a mailbox yields: another rank may have come first. */
        if (hub->nhops != channel) {
            free_hops(hops, hub->nranks);
            continue;
        }
        more = realloc(hub->hops, ((size_t)channel + 1) * sizeof(*more));
        if (more == NULL) {
            free_hops(hops, hub->nranks);
            return ZIPCCL_ERR_NOMEM;
        }
        hub->hops = more;
        hub->hops[hub->nhops++] = hops;
    }
    return ZIPCCL_OK;
}

void zipccl_simgrid_abort_hops(struct zipccl_simgrid_hub *hub)
{
    for (size_t i = 0; i < (size_t)hub->nhops * hub->nranks; i++) {
        struct zipccl_simgrid_hop *hop =
            hop_of(hub, (uint32_t)(i / hub->nranks), (uint32_t)(i % hub->nranks));

        while (hop->nput > hop->ngot) {
            hop->ngot++;
            sg_comm_wait(sg_mailbox_get_async(hop->box, &hop->arrived));
        }
        sg_sem_release(hop->head);
        sg_sem_release(hop->whole);
    }
}

void zipccl_simgrid_release_native(struct zipccl_simgrid_hub *hub)
{
    for (uint32_t c = 0; c < hub->nhops; c++)
        free_hops(hub->hops[c], hub->nranks);
    free(hub->hops);
    while (hub->shared != NULL) {
        struct zipccl_simgrid_shared *s = hub->shared;

        hub->shared = s->next;
        free_shared(s);
    }
}

/* One actor a ring, since a rank may lie far along one and near along another. */
static void run_streams(struct zipccl_simgrid_rank *rank, struct stream *streams, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        sg_actor_t actor = sg_actor_init(
            "ring", rank->hub->options.platform->gpu[rank->hub->gpus[rank->base.rank]]);

        streams[i].done = sg_sem_init(0);
        sg_actor_set_data(actor, &streams[i]);
        sg_actor_start_(actor, stream_actor, 0, NULL);
    }
    if (n > 0)
        run_stream(&streams[0]);
    for (uint32_t i = 1; i < n; i++) {
        sg_sem_acquire(streams[i].done);
        sg_sem_destroy(streams[i].done);
    }
}

static zipccl_status broadcast(struct zipccl_transport *t, void *buf, size_t nbytes, size_t unit,
                               uint32_t root, uint32_t channels)
{
    struct zipccl_simgrid_rank *rank = rank_of(t);
    struct zipccl_simgrid_hub *hub = rank->hub;
    size_t kept = nbytes < hub->options.copy_bytes ? nbytes : hub->options.copy_bytes;
    struct zipccl_simgrid_shared *shared;
    struct stream *streams;
    uint32_t n = 0;

    if (hub->aborted)
        return ZIPCCL_ERR_ABORTED;
    if (nbytes == 0 || t->nranks == 1)
        return ZIPCCL_OK;
    shared = enter_shared(rank);
    streams = calloc(channels, sizeof(*streams));
    if (shared != NULL && t->rank == root)
        shared->data = malloc(kept);
    if (shared == NULL || streams == NULL || make_hops(hub, channels) != ZIPCCL_OK ||
        (t->rank == root && shared->data == NULL)) {
        free(streams);
        return abort_with(t, ZIPCCL_ERR_NOMEM);
    }
    if (t->rank == root)
        memcpy(shared->data, buf, kept);
    for (uint32_t c = 0; c < channels; c++) {
        size_t part = unit * zipccl_ring_part(nbytes / unit, channels, c);

        if (part > 0)
            streams[n++] = (struct stream){rank, c, root, part, NULL};
    }
    run_streams(rank, streams, n);
    free(streams);
    if (hub->aborted)
        return ZIPCCL_ERR_ABORTED;
    if (t->rank != root)
        memcpy(buf, shared->data, kept);
    leave_shared(hub, shared);
    return ZIPCCL_OK;
}

zipccl_status zipccl_simgrid_broadcast(struct zipccl_transport *t, void *buf, size_t nbytes,
                                       uint32_t root, uint32_t channels)
{
    if (root >= t->nranks)
        return ZIPCCL_ERR_ARG;
    return broadcast(t, buf, nbytes, 1, root, channels > 0 ? channels : 1);
}

static zipccl_status native_broadcast(struct zipccl_transport *t,
                                      const struct zipccl_native_call *call)
{
    size_t size = zipccl_dtype_size(call->dtype), nbytes = call->count * size;

    if (call->root >= t->nranks)
        return ZIPCCL_ERR_ARG;
    if (t->rank == call->root)
        zipccl_simgrid_copy(rank_of(t)->hub, call->recv, call->send, nbytes);
    return broadcast(t, call->recv, nbytes, size, call->root,
                     call->channels > 0 ? call->channels : 1);
}

/* Elements that a reduction gives in all. */
static size_t result_n(const struct zipccl_native_call *call, uint32_t nranks)
{
    return call->op == ZIPCCL_REDUCE_SCATTER ? call->count * nranks : call->count;
}

/* What the last rank to enter does for all. */
static zipccl_status reduce_all(struct zipccl_simgrid_hub *hub, struct zipccl_simgrid_shared *s)
{
    const struct zipccl_native_call *a = s->calls[0];
    size_t n = result_n(a, hub->nranks);
    const void **sources = malloc(hub->nranks * sizeof(*sources));
    zipccl_status status = ZIPCCL_ERR_NOMEM;

    s->data = malloc(n * zipccl_dtype_size(a->dtype) + 1);
    if (sources != NULL && s->data != NULL) {
        for (uint32_t r = 0; r < hub->nranks; r++)
            sources[r] = s->calls[r]->send;
        status = zipccl_reduce(a->dtype, a->redop, sources, hub->nranks, n, s->data);
    }
    free(sources);
    return status;
}

static bool same_call(const struct zipccl_native_call *a, const struct zipccl_native_call *b)
{
    return a->op == b->op && a->dtype == b->dtype && a->redop == b->redop && a->count == b->count;
}

/* Enter a reduction; every rank learns of calls that differ. */
static zipccl_status enter_reduction(struct zipccl_simgrid_rank *rank,
                                     const struct zipccl_native_call *call)
{
    struct zipccl_simgrid_hub *hub = rank->hub;
    struct zipccl_simgrid_shared *s = enter_shared(rank);

    if (s == NULL)
        return ZIPCCL_ERR_NOMEM;
    s->calls[rank->base.rank] = call;
    if (s->nentered < hub->nranks)
        return ZIPCCL_OK;
    for (uint32_t r = 1; r < hub->nranks; r++) {
        const struct zipccl_native_call *a = s->calls[0], *b = s->calls[r];

        if (same_call(a, b))
            continue;
        zipccl_fail(&hub->error, ZIPCCL_ERR_MISMATCH,
                    "rank 0 calls %s %s %s of %zu elements, rank %u %s %s %s of %zu",
                    zipccl_op_name(a->op), zipccl_dtype_name(a->dtype), zipccl_redop_name(a->redop),
                    a->count, r, zipccl_op_name(b->op), zipccl_dtype_name(b->dtype),
                    zipccl_redop_name(b->redop), b->count);
        for (uint32_t i = 0; i < hub->nranks; i++)
            hub->ranks[i]->mismatch = true;
        return ZIPCCL_ERR_MISMATCH;
    }
    return reduce_all(hub, s);
}

/* This rank's part of the reduction that it entered last. */
static zipccl_status take_values(struct zipccl_transport *t, const struct zipccl_native_call *call,
                                 size_t first, size_t n, void *dst)
{
    struct zipccl_simgrid_rank *rank = rank_of(t);
    struct zipccl_simgrid_shared *s = rank->hub->shared;
    size_t size = zipccl_dtype_size(call->dtype);

    if (rank->hub->options.copy_bytes != SIZE_MAX)
        return ZIPCCL_OK;
    while (s != NULL && s->number != rank->nshared - 1)
        s = s->next;
    if (s == NULL || s->data == NULL)
        return ZIPCCL_ERR_INTERNAL;
    if (n > 0)
        memcpy(dst, s->data + first * size, n * size);
    leave_shared(rank->hub, s);
    return ZIPCCL_OK;
}

bool zipccl_simgrid_has_native(const struct zipccl_transport *t, enum zipccl_op op,
                               enum zipccl_dtype dtype, enum zipccl_redop redop)
{
    (void)t;
    if (zipccl_dtype_size(dtype) == 0 || (unsigned)op >= ZIPCCL_NUM_OPS)
        return false;
    if (zipccl_is_reduction(op))
        return zipccl_reduce_serves(dtype, redop);
    return true;
}

zipccl_status zipccl_simgrid_native(struct zipccl_transport *t,
                                    const struct zipccl_native_call *call)
{
    struct zipccl_simgrid_rank *rank = rank_of(t);
    zipccl_status status = ZIPCCL_OK;

    if (!zipccl_simgrid_has_native(t, call->op, call->dtype, call->redop))
        return ZIPCCL_ERR_UNSUPPORTED;
    if (rank->hub->aborted)
        return ZIPCCL_ERR_ABORTED;
    if (call->op == ZIPCCL_BROADCAST)
        return native_broadcast(t, call);
    if (zipccl_is_reduction(call->op) && rank->hub->options.copy_bytes == SIZE_MAX)
        status = enter_reduction(rank, call);
    if (status != ZIPCCL_OK) {
        t->ops->abort(t);
        rank->mismatch = false;
        return status;
    }
    return zipccl_rings_native(t, call, take_values);
}
