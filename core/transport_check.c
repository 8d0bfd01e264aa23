/*
 * transport_check.c - one rank's rules: groups, buffer lifetime; and the handles' creation
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/transport_check.h"

#include "core/transport_check_hub.h"

#include <stdlib.h>
#include <string.h>

/* What a posted receive buffer holds until its message arrives. */
#define POISON 0xdb

/* A send or receive of the open group. */
struct post {
    const unsigned char *start;
    unsigned char *dst; /* receive */
    bool is_send;
    size_t nbytes;
    uint64_t hash; /* send */
    uint32_t peer;
};

struct zipccl_check_rank {
    struct zipccl_transport base;
    struct zipccl_transport *inner;
    struct zipccl_check_hub *hub;
    struct post *posts;
    size_t nposts, room;
    uint32_t depth;
    uint64_t ncalls;
};

static struct zipccl_check_rank *rank_of(struct zipccl_transport *t)
{
    return (struct zipccl_check_rank *)t;
}

/* FNV-1a over words, then over what is left. */
static uint64_t hash_bytes(const unsigned char *p, size_t nbytes)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325), word;

    for (; nbytes >= sizeof word; p += sizeof word, nbytes -= sizeof word) {
        memcpy(&word, p, sizeof word);
        hash = (hash ^ word) * UINT64_C(0x100000001b3);
        hash ^= hash >> 32;
    }
    while (nbytes-- > 0)
        hash = (hash ^ *p++) * UINT64_C(0x100000001b3);
    return hash;
}

static bool is_poisoned(const unsigned char *p, size_t nbytes)
{
    for (size_t i = 0; i < nbytes; i++)
        if (p[i] != POISON)
            return false;
    return true;
}

/* A rule is broken: nobody may wait for this rank. */
static zipccl_status give_up(struct zipccl_check_rank *rank, zipccl_status status)
{
    rank->base.ops->abort(&rank->base);
    return status;
}

#define BREAK(rank, rule, ...)                                                                     \
    give_up(rank, zipccl_check_break((rank)->hub, ZIPCCL_ERR_ARG, rule, __VA_ARGS__))

static zipccl_status check_group_begin(struct zipccl_transport *t)
{
    struct zipccl_check_rank *rank = rank_of(t);

    ZIPCCL_TRY(rank->inner->ops->group_begin(rank->inner));
    rank->depth++;
    return ZIPCCL_OK;
}

/* A receive may share no byte with another buffer of the group. */
static const struct post *overlapping(const struct zipccl_check_rank *rank, const struct post *post)
{
    for (size_t i = 0; i < rank->nposts; i++) {
        const struct post *other = &rank->posts[i];

        if ((!post->is_send || !other->is_send) &&
            (uintptr_t)post->start < (uintptr_t)other->start + other->nbytes &&
            (uintptr_t)other->start < (uintptr_t)post->start + post->nbytes)
            return other;
    }
    return NULL;
}

static zipccl_status keep(struct zipccl_check_rank *rank, struct post post)
{
    const char *verb = post.is_send ? "sends to" : "receives from";
    const struct post *other;

    if (post.peer >= rank->base.nranks || (post.nbytes > 0 && post.start == NULL))
        return ZIPCCL_ERR_ARG;
    if (rank->depth == 0)
        return BREAK(rank, "group", "rank %u %s rank %u outside a group", rank->base.rank, verb,
                     post.peer);
    other = overlapping(rank, &post);
    if (other != NULL)
        return BREAK(rank, "lifetime",
                     "rank %u %s rank %u in a buffer that it %s rank %u in the same group",
                     rank->base.rank, verb, post.peer,
                     other->is_send ? "sends to" : "receives from", other->peer);
    if (rank->nposts == rank->room) {
        size_t room = rank->room == 0 ? 16 : 2 * rank->room;
        struct post *posts = realloc(rank->posts, room * sizeof *posts);

        if (posts == NULL)
            return ZIPCCL_ERR_NOMEM;
        rank->posts = posts;
        rank->room = room;
    }
    if (post.is_send)
        post.hash = hash_bytes(post.start, post.nbytes);
    else if (post.nbytes > 0)
        memset(post.dst, POISON, post.nbytes);
    rank->posts[rank->nposts++] = post;
    return ZIPCCL_OK;
}

static zipccl_status check_send(struct zipccl_transport *t, uint32_t peer, const void *buf,
                                size_t nbytes)
{
    struct zipccl_check_rank *rank = rank_of(t);

    ZIPCCL_TRY(
        keep(rank, (struct post){.start = buf, .is_send = true, .nbytes = nbytes, .peer = peer}));
    return rank->inner->ops->send(rank->inner, peer, buf, nbytes);
}

static zipccl_status check_recv(struct zipccl_transport *t, uint32_t peer, void *buf, size_t nbytes)
{
    struct zipccl_check_rank *rank = rank_of(t);

    ZIPCCL_TRY(keep(rank, (struct post){.start = buf, .dst = buf, .nbytes = nbytes, .peer = peer}));
    return rank->inner->ops->recv(rank->inner, peer, buf, nbytes);
}

static zipccl_status check_untouched(struct zipccl_check_rank *rank, bool sends)
{
    for (size_t i = 0; i < rank->nposts; i++) {
        const struct post *post = &rank->posts[i];

        if (sends && post->is_send && hash_bytes(post->start, post->nbytes) != post->hash)
            return BREAK(rank, "lifetime", "rank %u: the buffer sent to rank %u has changed",
                         rank->base.rank, post->peer);
        if (!sends && !post->is_send && !is_poisoned(post->start, post->nbytes))
            return BREAK(rank, "lifetime",
                         "rank %u: the buffer for rank %u's message was written before group_end",
                         rank->base.rank, post->peer);
    }
    return ZIPCCL_OK;
}

static zipccl_status match_posts(struct zipccl_check_rank *rank)
{
    uint32_t self = rank->base.rank;

    for (size_t i = 0; i < rank->nposts; i++) {
        const struct post *post = &rank->posts[i];
        bool is_send = post->is_send;
        zipccl_status status =
            zipccl_check_match(rank->hub, is_send ? self : post->peer, is_send ? post->peer : self,
                               post->nbytes, is_send);

        if (status != ZIPCCL_OK)
            return give_up(rank, status);
    }
    return ZIPCCL_OK;
}

static zipccl_status check_group_end(struct zipccl_transport *t)
{
    struct zipccl_check_rank *rank = rank_of(t);
    zipccl_status status, inner;

    if (rank->depth == 0)
        return BREAK(rank, "group", "rank %u ends a group that it has not begun", t->rank);
    if (--rank->depth > 0)
        return rank->inner->ops->group_end(rank->inner);
    status = check_untouched(rank, false);
    if (status == ZIPCCL_OK)
        status = match_posts(rank);
    inner = rank->inner->ops->group_end(rank->inner);
    if (status == ZIPCCL_OK)
        status = inner;
    if (status == ZIPCCL_OK)
        status = check_untouched(rank, true);
    for (size_t i = 0; status == ZIPCCL_OK && i < rank->nposts; i++)
        if (rank->posts[i].is_send)
            zipccl_check_count(rank->hub, t->rank, rank->posts[i].peer, rank->posts[i].nbytes);
    rank->nposts = 0;
    return status;
}

/* Before a collective: it stands outside groups, and is what the other ranks call. */
static zipccl_status begin_call(struct zipccl_check_rank *rank,
                                const struct zipccl_check_call *call)
{
    zipccl_status status;

    if (rank->depth > 0)
        return BREAK(rank, "group", "rank %u calls a collective inside a group", rank->base.rank);
    status = zipccl_check_compare(rank->hub, rank->base.rank, rank->ncalls++, call);
    return status == ZIPCCL_OK ? status : give_up(rank, status);
}

/* After it: the send buffer is what it was. */
static zipccl_status end_call(struct zipccl_check_rank *rank, const struct zipccl_check_call *call,
                              const void *send, size_t nbytes, uint64_t hash)
{
    if (nbytes > 0 && hash_bytes(send, nbytes) != hash)
        return BREAK(rank, "lifetime", "rank %u: the send buffer of a collective has changed",
                     rank->base.rank);
    zipccl_check_count_call(rank->hub, rank->base.rank, call);
    return ZIPCCL_OK;
}

static zipccl_status check_all_gather(struct zipccl_transport *t, const void *send, void *recv,
                                      size_t nbytes, uint32_t channels)
{
    struct zipccl_check_rank *rank = rank_of(t);
    struct zipccl_check_call call = {.kind = ZIPCCL_CHECK_ALL_GATHER,
                                     .op = ZIPCCL_ALL_GATHER,
                                     .dtype = ZIPCCL_UINT8,
                                     .channels = channels,
                                     .count = nbytes};
    bool in_place = send == (char *)recv + t->rank * nbytes;
    uint64_t hash = hash_bytes(send, nbytes);

    ZIPCCL_TRY(begin_call(rank, &call));
    for (uint32_t p = 0; nbytes > 0 && p < t->nranks; p++)
        if (p != t->rank || !in_place)
            memset((char *)recv + p * nbytes, POISON, nbytes);
    ZIPCCL_TRY(rank->inner->ops->all_gather(rank->inner, send, recv, nbytes, channels));
    return end_call(rank, &call, send, nbytes, hash);
}

static zipccl_status check_broadcast(struct zipccl_transport *t, void *buf, size_t nbytes,
                                     uint32_t root, uint32_t channels)
{
    struct zipccl_check_rank *rank = rank_of(t);
    struct zipccl_check_call call = {.kind = ZIPCCL_CHECK_BROADCAST,
                                     .op = ZIPCCL_BROADCAST,
                                     .dtype = ZIPCCL_UINT8,
                                     .root = root,
                                     .channels = channels,
                                     .count = nbytes};
    size_t sent = t->rank == root ? nbytes : 0;
    uint64_t hash = hash_bytes(buf, sent);

    ZIPCCL_TRY(begin_call(rank, &call));
    if (t->rank != root && nbytes > 0)
        memset(buf, POISON, nbytes);
    ZIPCCL_TRY(rank->inner->ops->broadcast(rank->inner, buf, nbytes, root, channels));
    return end_call(rank, &call, buf, sent, hash);
}

/* Bytes of the send buffer of a native call; 0 if the receive buffer may lie in them. */
static size_t native_sent(const struct zipccl_transport *t, const struct zipccl_native_call *call)
{
    size_t nbytes = call->count * zipccl_dtype_size(call->dtype);
    uintptr_t send = (uintptr_t)call->send, recv = (uintptr_t)call->recv;

    switch (call->op) {
    case ZIPCCL_ALLTOALL:
    case ZIPCCL_REDUCE_SCATTER: nbytes *= t->nranks; break;
    case ZIPCCL_ALL_GATHER:
    case ZIPCCL_ALL_REDUCE: break;
    case ZIPCCL_BROADCAST: nbytes = t->rank == call->root ? nbytes : 0; break;
    default: return 0;
    }
    return recv >= send && recv < send + nbytes ? 0 : nbytes;
}

static zipccl_status check_native(struct zipccl_transport *t, const struct zipccl_native_call *call)
{
    struct zipccl_check_rank *rank = rank_of(t);
    bool uneven = zipccl_is_uneven(call->op);
    struct zipccl_check_call said = {
        ZIPCCL_CHECK_NATIVE,     call->op, call->dtype, call->redop, call->root, call->channels,
        uneven ? 0 : call->count};
    size_t sent = native_sent(t, call);
    uint64_t hash = hash_bytes(call->send, sent);

    if (rank->inner->ops->native == NULL)
        return ZIPCCL_ERR_UNSUPPORTED;
    /* A sendrecv concerns its two ends alone. */
    if (call->op != ZIPCCL_SENDRECV)
        ZIPCCL_TRY(begin_call(rank, &said));
    ZIPCCL_TRY(rank->inner->ops->native(rank->inner, call));
    for (uint32_t p = 0; uneven && p < t->nranks; p++)
        zipccl_check_count(rank->hub, t->rank, p,
                           call->send_counts[p] * zipccl_dtype_size(call->dtype));
    return end_call(rank, &said, call->send, sent, hash);
}

static bool check_has_native(const struct zipccl_transport *t, enum zipccl_op op,
                             enum zipccl_dtype dtype, enum zipccl_redop redop)
{
    const struct zipccl_transport *inner = ((const struct zipccl_check_rank *)t)->inner;

    return inner->ops->native != NULL && inner->ops->has_native != NULL &&
           inner->ops->has_native(inner, op, dtype, redop);
}

static void check_abort(struct zipccl_transport *t)
{
    struct zipccl_check_rank *rank = rank_of(t);

    pthread_mutex_lock(&rank->hub->lock);
    rank->hub->aborted = true;
    pthread_mutex_unlock(&rank->hub->lock);
    rank->inner->ops->abort(rank->inner);
}

static const char *check_error_text(const struct zipccl_transport *t)
{
    const struct zipccl_check_rank *rank = (const struct zipccl_check_rank *)t;
    bool broken;

    pthread_mutex_lock(&rank->hub->lock);
    broken = rank->hub->status != ZIPCCL_OK;
    pthread_mutex_unlock(&rank->hub->lock);
    if (broken)
        return rank->hub->error.text; /* written once */
    return rank->inner->ops->error_text != NULL ? rank->inner->ops->error_text(rank->inner) : "";
}

static void check_destroy(struct zipccl_transport *t)
{
    struct zipccl_check_rank *rank = rank_of(t);

    if (t == NULL)
        return;
    if (rank->depth > 0 && !rank->hub->aborted)
        zipccl_check_break(rank->hub, ZIPCCL_ERR_INTERNAL, "leak",
                           "rank %u is destroyed inside a group with %zu messages", t->rank,
                           rank->nposts);
    free(rank->posts);
    rank->posts = NULL;
    pthread_mutex_lock(&rank->hub->lock);
    rank->hub->nleft--;
    pthread_mutex_unlock(&rank->hub->lock);
}

#define ENTRIES                                                                                    \
    .name = "check", .group_begin = check_group_begin, .send = check_send, .recv = check_recv,     \
    .group_end = check_group_end, .native = check_native, .has_native = check_has_native,          \
    .abort = check_abort, .destroy = check_destroy, .error_text = check_error_text

/* With and without the ring collectives, which a transport need not have. */
static const struct zipccl_transport_ops check_ops = {ENTRIES, .all_gather = check_all_gather,
                                                      .broadcast = check_broadcast};
static const struct zipccl_transport_ops check_pair_ops = {ENTRIES};

static void free_hub(struct zipccl_check_hub *hub)
{
    for (size_t i = 0; hub->pairs != NULL && i < (size_t)hub->nranks * hub->nranks; i++)
        while (hub->pairs[i] != NULL) {
            struct zipccl_check_end *end = hub->pairs[i];

            hub->pairs[i] = end->next;
            free(end);
        }
    while (hub->calls != NULL) {
        struct zipccl_check_entry *entry = hub->calls;

        hub->calls = entry->next;
        free(entry);
    }
    for (uint32_t i = 0; hub->ranks != NULL && i < hub->nlocal; i++)
        free(hub->ranks[i].posts);
    pthread_mutex_destroy(&hub->lock);
    free(hub->local);
    free(hub->ranks);
    free(hub->pairs);
    free(hub->bytes);
    free(hub);
}

zipccl_status zipccl_transport_check_create(struct zipccl_transport *const *inner, uint32_t n,
                                            struct zipccl_check_hub **out_hub,
                                            struct zipccl_transport **out)
{
    struct zipccl_check_hub *hub;
    size_t nranks;

    if (inner == NULL || n == 0 || out_hub == NULL || out == NULL || n > inner[0]->nranks)
        return ZIPCCL_ERR_ARG;
    nranks = inner[0]->nranks;
    hub = calloc(1, sizeof *hub);
    if (hub == NULL)
        return ZIPCCL_ERR_NOMEM;
    pthread_mutex_init(&hub->lock, NULL);
    hub->nranks = (uint32_t)nranks;
    hub->nlocal = hub->nleft = n;
    hub->topology = inner[0]->topology;
    hub->local = calloc(nranks, sizeof *hub->local);
    hub->ranks = calloc(n, sizeof *hub->ranks);
    hub->pairs = calloc(nranks * nranks, sizeof *hub->pairs);
    hub->bytes = calloc(nranks * nranks, sizeof *hub->bytes);
    if (hub->local == NULL || hub->ranks == NULL || hub->pairs == NULL || hub->bytes == NULL) {
        free_hub(hub);
        return ZIPCCL_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < n; i++) {
        bool rings = inner[i]->ops->all_gather != NULL && inner[i]->ops->broadcast != NULL;

        hub->ranks[i].base =
            (struct zipccl_transport){rings ? &check_ops : &check_pair_ops, inner[i]->rank,
                                      inner[i]->nranks, inner[i]->topology};
        hub->ranks[i].inner = inner[i];
        hub->ranks[i].hub = hub;
        hub->local[inner[i]->rank] = true;
        out[i] = &hub->ranks[i].base;
    }
    *out_hub = hub;
    return ZIPCCL_OK;
}

/* The first message that never met its other end. */
static void find_leaks(struct zipccl_check_hub *hub)
{
    for (uint32_t src = 0; src < hub->nranks; src++)
        for (uint32_t dst = 0; dst < hub->nranks; dst++) {
            const struct zipccl_check_end *end = hub->pairs[(size_t)src * hub->nranks + dst];

            if (end != NULL)
                zipccl_check_break(hub, ZIPCCL_ERR_INTERNAL, "leak",
                                   "%zu bytes from rank %u to rank %u were never %s", end->nbytes,
                                   src, dst, end->is_send ? "received" : "sent");
        }
    if (hub->calls != NULL)
        zipccl_check_break(hub, ZIPCCL_ERR_INTERNAL, "leak",
                           "collective %llu (%s) was called by %u of %u ranks",
                           (unsigned long long)hub->calls->number,
                           zipccl_op_name(hub->calls->call.op), hub->calls->ncalled, hub->nlocal);
}

zipccl_status zipccl_transport_check_close(struct zipccl_check_hub *hub, struct zipccl_error *error)
{
    zipccl_status status;

    if (hub == NULL)
        return ZIPCCL_OK;
    if (!hub->aborted)
        find_leaks(hub);
    if (hub->nleft > 0)
        zipccl_check_break(hub, ZIPCCL_ERR_INTERNAL, "leak", "%u of %u handles are not destroyed",
                           hub->nleft, hub->nlocal);
    status = hub->status;
    if (status != ZIPCCL_OK)
        zipccl_fail(error, ZIPCCL_ERR_INTERNAL, "%s", hub->error.text);
    free_hub(hub);
    return status == ZIPCCL_OK ? ZIPCCL_OK : ZIPCCL_ERR_INTERNAL;
}
