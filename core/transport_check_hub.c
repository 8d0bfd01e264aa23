/*
 * transport_check_hub.c - rules between ranks: counts, order of collectives, bytes, leaks
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/transport_check_hub.h"

#include "core/lower.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

zipccl_status zipccl_check_break(struct zipccl_check_hub *hub, zipccl_status status,
                                 const char *rule, const char *format, ...)
{
    char text[256];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    pthread_mutex_lock(&hub->lock);
    if (hub->status == ZIPCCL_OK) {
        hub->status = status;
        zipccl_fail(&hub->error, status, "rule '%s': %s", rule, text);
    }
    pthread_mutex_unlock(&hub->lock);
    return status;
}

/* Take the oldest end off its queue if it is of the other kind, else append a new one. */
static struct zipccl_check_end *meet(struct zipccl_check_end **queue, size_t nbytes, bool is_send,
                                     bool *nomem)
{
    struct zipccl_check_end *end = *queue;

    if (end != NULL && end->is_send != is_send) {
        *queue = end->next;
        return end;
    }
    while (*queue != NULL)
        queue = &(*queue)->next;
    *queue = malloc(sizeof **queue);
    *nomem = *queue == NULL;
    if (*queue != NULL)
        **queue = (struct zipccl_check_end){NULL, nbytes, is_send};
    return NULL;
}

zipccl_status zipccl_check_match(struct zipccl_check_hub *hub, uint32_t src, uint32_t dst,
                                 size_t nbytes, bool is_send)
{
    struct zipccl_check_end *other;
    size_t theirs = nbytes;
    bool nomem = false;

    if (!hub->local[src] || !hub->local[dst])
        return ZIPCCL_OK;
    pthread_mutex_lock(&hub->lock);
    other = meet(&hub->pairs[(size_t)src * hub->nranks + dst], nbytes, is_send, &nomem);
    pthread_mutex_unlock(&hub->lock);
    if (nomem)
        return ZIPCCL_ERR_NOMEM;
    if (other == NULL)
        return ZIPCCL_OK;
    theirs = other->nbytes;
    free(other);
    if (theirs == nbytes)
        return ZIPCCL_OK;
    return zipccl_check_break(hub, ZIPCCL_ERR_MISMATCH, "count",
                              "rank %u sends %zu bytes to rank %u, which receives %zu", src,
                              is_send ? nbytes : theirs, dst, is_send ? theirs : nbytes);
}

static bool alike(const struct zipccl_check_call *a, const struct zipccl_check_call *b)
{
    bool uneven = zipccl_is_uneven(a->op);

    return a->kind == b->kind && a->op == b->op && a->dtype == b->dtype && a->redop == b->redop &&
           a->root == b->root && a->channels == b->channels && (uneven || a->count == b->count);
}

/* Forget the collectives that all ranks have called. */
static void retire(struct zipccl_check_hub *hub)
{
    while (hub->calls != NULL && hub->calls->ncalled == hub->nlocal) {
        struct zipccl_check_entry *done = hub->calls;

        hub->calls = done->next;
        free(done);
    }
}

/* The entry of collective 'number', made from 'call' if this rank is the first; NULL: no memory. */
static struct zipccl_check_entry *entry_of(struct zipccl_check_hub *hub, uint64_t number,
                                           const struct zipccl_check_call *call)
{
    struct zipccl_check_entry **at = &hub->calls;

    while (*at != NULL && (*at)->number != number)
        at = &(*at)->next;
    if (*at == NULL) {
        *at = malloc(sizeof **at);
        if (*at != NULL)
            **at = (struct zipccl_check_entry){NULL, *call, 0, number};
    }
    return *at;
}

zipccl_status zipccl_check_compare(struct zipccl_check_hub *hub, uint32_t rank, uint64_t number,
                                   const struct zipccl_check_call *call)
{
    static const char *const kinds[] = {"all_gather", "broadcast", "native"};
    struct zipccl_check_call first;
    struct zipccl_check_entry *entry;

    pthread_mutex_lock(&hub->lock);
    entry = entry_of(hub, number, call);
    if (entry == NULL) {
        pthread_mutex_unlock(&hub->lock);
        return ZIPCCL_ERR_NOMEM;
    }
    first = entry->call;
    entry->ncalled++;
    retire(hub);
    pthread_mutex_unlock(&hub->lock);
    if (alike(&first, call))
        return ZIPCCL_OK;
    return zipccl_check_break(hub, ZIPCCL_ERR_MISMATCH, "order",
                              "collective %llu is %s %s of %zu on rank %u, %s %s of %zu elsewhere",
                              (unsigned long long)number, kinds[call->kind],
                              zipccl_op_name(call->op), call->count, rank, kinds[first.kind],
                              zipccl_op_name(first.op), first.count);
}

void zipccl_check_count(struct zipccl_check_hub *hub, uint32_t src, uint32_t dst, uint64_t nbytes)
{
    if (src == dst)
        return;
    pthread_mutex_lock(&hub->lock);
    hub->bytes[(size_t)src * hub->nranks + dst] += nbytes;
    pthread_mutex_unlock(&hub->lock);
}

struct counting {
    struct zipccl_check_hub *hub;
    uint32_t rank;
};

static void count_own(void *context, uint32_t src, uint32_t dst, uint64_t nbytes)
{
    const struct counting *c = context;

    if (src == c->rank)
        zipccl_check_count(c->hub, src, dst, nbytes);
}

void zipccl_check_count_call(struct zipccl_check_hub *hub, uint32_t rank,
                             const struct zipccl_check_call *call)
{
    bool native = call->kind == ZIPCCL_CHECK_NATIVE;
    bool direct = native && call->op == ZIPCCL_ALLTOALL;
    struct counting counting = {hub, rank};
    /* The collective as a plan of one step, for the lowering. */
    struct zipccl_step step = {.kind = native ? ZIPCCL_STEP_NATIVE : ZIPCCL_STEP_EXCHANGE,
                               .pattern = direct ? ZIPCCL_PATTERN_ALL_TO_ALL
                                          : call->op == ZIPCCL_BROADCAST
                                              ? ZIPCCL_PATTERN_BROADCAST
                                              : ZIPCCL_PATTERN_ALL_GATHER,
                               .lowering = direct ? ZIPCCL_LOWER_DIRECT : ZIPCCL_LOWER_RING,
                               .channels = (uint16_t)(call->channels > 0 ? call->channels : 1),
                               .root = call->root,
                               .n = call->count,
                               .nblocks = 1,
                               .sizes_of = ZIPCCL_STEP_NONE,
                               .raw_of = ZIPCCL_STEP_NONE};
    struct zipccl_plan plan = {.op = (uint8_t)call->op,
                               .dtype = (uint8_t)call->dtype,
                               .nranks = hub->nranks,
                               .root = call->root,
                               .count = call->count,
                               .chunk_n = call->count,
                               .nchunks = 1,
                               .nsteps = 1,
                               .steps = &step};
    uint32_t nrounds;

    (void)zipccl_lower(&plan, 0, hub->topology, NULL, count_own, &counting, &nrounds);
}

uint64_t zipccl_transport_check_bytes(struct zipccl_check_hub *hub, uint32_t src, uint32_t dst)
{
    uint64_t nbytes;

    pthread_mutex_lock(&hub->lock);
    nbytes = hub->bytes[(size_t)src * hub->nranks + dst];
    pthread_mutex_unlock(&hub->lock);
    return nbytes;
}

void zipccl_transport_check_reset_bytes(struct zipccl_check_hub *hub)
{
    pthread_mutex_lock(&hub->lock);
    memset(hub->bytes, 0, (size_t)hub->nranks * hub->nranks * sizeof *hub->bytes);
    pthread_mutex_unlock(&hub->lock);
}

zipccl_status zipccl_transport_check_error(struct zipccl_check_hub *hub, struct zipccl_error *error)
{
    zipccl_status status;

    pthread_mutex_lock(&hub->lock);
    status = hub->status;
    if (status != ZIPCCL_OK)
        zipccl_fail(error, status, "%s", hub->error.text);
    pthread_mutex_unlock(&hub->lock);
    return status;
}
