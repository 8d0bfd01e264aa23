/*
 * transport_mem.c - ranks as threads: matched pairs, byte counters, abort
 *
 * A group publishes its sends and receives under the hub's lock; whoever posts second matches a
 * pair, the receiver copies.  Both ends are inside group_end then, so a copy always happens.
 * Invariant: after an abort nothing is matched any more, so that ops left in a queue are never
 * touched again; a sender leaves only when no peer reads its buffers.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/transport_mem.h"
#include "core/transport_mem_hub.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct zipccl_mem_rank *rank_of(struct zipccl_transport *t)
{
    return (struct zipccl_mem_rank *)t;
}

static void push(struct zipccl_mem_queue *queue, struct zipccl_mem_op *op)
{
    op->next = NULL;
    if (queue->head == NULL)
        queue->head = op;
    else
        queue->tail->next = op;
    queue->tail = op;
}

static struct zipccl_mem_op *pop(struct zipccl_mem_queue *queue)
{
    struct zipccl_mem_op *op = queue->head;

    queue->head = op->next;
    return op;
}

static void wake_all(struct zipccl_mem_hub *hub)
{
    for (uint32_t r = 0; r < hub->nranks; r++)
        pthread_cond_signal(&hub->ranks[r]->wake);
    pthread_cond_broadcast(&hub->met);
}

struct zipccl_mem_deadline zipccl_mem_deadline_of(const struct zipccl_mem_hub *hub)
{
    struct zipccl_mem_deadline deadline = {.none = !(hub->limit_s > 0)};
    time_t whole = (time_t)hub->limit_s;

    if (deadline.none)
        return deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline.at);
    deadline.at.tv_sec += whole;
    deadline.at.tv_nsec += (long)((hub->limit_s - (double)whole) * 1e9);
    if (deadline.at.tv_nsec >= 1000000000L) {
        deadline.at.tv_sec++;
        deadline.at.tv_nsec -= 1000000000L;
    }
    return deadline;
}

bool zipccl_mem_wait(struct zipccl_mem_hub *hub, pthread_cond_t *cond,
                     const struct zipccl_mem_deadline *deadline)
{
    if (!deadline->none)
        return pthread_cond_timedwait(cond, &hub->lock, &deadline->at) == ETIMEDOUT;
    pthread_cond_wait(cond, &hub->lock);
    return false;
}

void zipccl_mem_abort_hub(struct zipccl_mem_hub *hub, const struct zipccl_error *error)
{
    hub->aborted = true;
    if (hub->error.text[0] == '\0')
        hub->error = *error;
    wake_all(hub);
}

/* The limit has passed: name the first op that is not done, and all that is missing. */
static void fail_late(struct zipccl_mem_rank *rank)
{
    const struct zipccl_mem_op *first = NULL;
    struct zipccl_error error;
    size_t missing = 0;

    for (size_t i = 0; i < rank->nops; i++)
        if (!rank->ops[i].done) {
            first = first == NULL ? &rank->ops[i] : first;
            missing += rank->ops[i].nbytes;
        }
    if (first == NULL)
        return;
    rank->late = true;
    zipccl_fail(&error, ZIPCCL_ERR_TIMEOUT,
                "rank %u has waited %g s for rank %u, %s %zu bytes; missing in all: %zu bytes in "
                "%zu messages",
                rank->base.rank, rank->hub->limit_s, first->peer,
                first->is_send ? "to take" : "to send", first->nbytes, missing, rank->pending);
    zipccl_mem_abort_hub(rank->hub, &error);
}

/* Both sides of a pair name different counts: they get MISMATCH, all others ABORTED. */
static void fail_pair(struct zipccl_mem_hub *hub, const struct zipccl_mem_op *send,
                      const struct zipccl_mem_op *recv)
{
    struct zipccl_error error;

    send->owner->mismatch = true;
    recv->owner->mismatch = true;
    zipccl_fail(&error, ZIPCCL_ERR_MISMATCH,
                "rank %u sends %zu bytes to rank %u, which receives %zu bytes",
                send->owner->base.rank, send->nbytes, recv->owner->base.rank, recv->nbytes);
    zipccl_mem_abort_hub(hub, &error);
}

/* Publish one op; match it if the other side is there. */
static void publish(struct zipccl_mem_rank *rank, struct zipccl_mem_op *op)
{
    struct zipccl_mem_hub *hub = rank->hub;
    uint32_t src = op->is_send ? rank->base.rank : op->peer;
    uint32_t dst = op->is_send ? op->peer : rank->base.rank;
    struct zipccl_mem_queue *queue = &hub->pairs[(size_t)src * hub->nranks + dst];
    struct zipccl_mem_op *other, *send, *recv;

    if (queue->head == NULL || queue->head->is_send == op->is_send) {
        push(queue, op);
        return;
    }
    other = pop(queue);
    send = op->is_send ? op : other;
    recv = op->is_send ? other : op;
    if (send->nbytes != recv->nbytes) {
        fail_pair(hub, send, recv);
        return;
    }
    recv->mate = send;
    push(&recv->owner->ready, recv);
    if (recv->owner != rank)
        pthread_cond_signal(&recv->owner->wake);
}

/* Copy one matched receive; called and left with the lock held. */
static void complete_one(struct zipccl_mem_rank *rank)
{
    struct zipccl_mem_hub *hub = rank->hub;
    struct zipccl_mem_op *recv = pop(&rank->ready);
    struct zipccl_mem_op *send = recv->mate;
    struct zipccl_mem_rank *sender = send->owner;

    sender->nlent++;
    pthread_mutex_unlock(&hub->lock);
    if (recv->nbytes > 0)
        memmove(recv->dst, send->src, recv->nbytes);
    pthread_mutex_lock(&hub->lock);
    if (sender != rank)
        hub->bytes[(size_t)sender->base.rank * hub->nranks + rank->base.rank] += send->nbytes;
    recv->done = send->done = true;
    rank->pending--;
    sender->pending--;
    if (--sender->nlent == 0 && sender != rank)
        pthread_cond_signal(&sender->wake);
}

static zipccl_status run_group(struct zipccl_mem_rank *rank)
{
    struct zipccl_mem_hub *hub = rank->hub;
    zipccl_status status = ZIPCCL_OK;
    struct zipccl_mem_deadline deadline;

    pthread_mutex_lock(&hub->lock);
    deadline = zipccl_mem_deadline_of(hub);
    rank->pending = rank->nops;
    for (size_t i = 0; i < rank->nops && !hub->aborted; i++)
        publish(rank, &rank->ops[i]);
    while (rank->pending > 0 && !hub->aborted)
        if (rank->ready.head != NULL)
            complete_one(rank);
        else if (zipccl_mem_wait(hub, &rank->wake, &deadline) && rank->ready.head == NULL)
            fail_late(rank);
    while (rank->nlent > 0)
        pthread_cond_wait(&rank->wake, &hub->lock);
    if (hub->aborted && (rank->pending > 0 || rank->nops == 0 || rank->mismatch))
        status = rank->mismatch ? ZIPCCL_ERR_MISMATCH
                 : rank->late   ? ZIPCCL_ERR_TIMEOUT
                                : ZIPCCL_ERR_ABORTED;
    rank->mismatch = rank->late = false;
    rank->pending = 0;
    rank->nops = 0;
    rank->ready.head = NULL;
    pthread_mutex_unlock(&hub->lock);
    return status;
}

static zipccl_status mem_group_begin(struct zipccl_transport *t)
{
    rank_of(t)->depth++;
    return ZIPCCL_OK;
}

static zipccl_status mem_group_end(struct zipccl_transport *t)
{
    struct zipccl_mem_rank *rank = rank_of(t);

    if (rank->depth == 0)
        return ZIPCCL_ERR_ARG;
    if (--rank->depth > 0)
        return ZIPCCL_OK;
    return run_group(rank);
}

/* Note an op; outside a group it is a group of its own. */
static zipccl_status post(struct zipccl_mem_rank *rank, struct zipccl_mem_op op)
{
    if (op.peer >= rank->base.nranks || (op.nbytes > 0 && op.src == NULL && op.dst == NULL))
        return ZIPCCL_ERR_ARG;
    if (rank->nops == rank->capacity) {
        size_t capacity = rank->capacity == 0 ? 16 : 2 * rank->capacity;
        struct zipccl_mem_op *ops = realloc(rank->ops, capacity * sizeof *ops);

        if (ops == NULL)
            return ZIPCCL_ERR_NOMEM;
        rank->ops = ops;
        rank->capacity = capacity;
    }
    op.owner = rank;
    rank->ops[rank->nops++] = op;
    return rank->depth == 0 ? run_group(rank) : ZIPCCL_OK;
}

static zipccl_status mem_send(struct zipccl_transport *t, uint32_t peer, const void *buf,
                              size_t nbytes)
{
    return post(rank_of(t), (struct zipccl_mem_op){
                                .peer = peer, .src = buf, .nbytes = nbytes, .is_send = true});
}

static zipccl_status mem_recv(struct zipccl_transport *t, uint32_t peer, void *buf, size_t nbytes)
{
    return post(rank_of(t), (struct zipccl_mem_op){.peer = peer, .dst = buf, .nbytes = nbytes});
}

static void mem_abort(struct zipccl_transport *t)
{
    struct zipccl_mem_hub *hub = rank_of(t)->hub;
    struct zipccl_error error;

    zipccl_fail(&error, ZIPCCL_ERR_ABORTED, "aborted by rank %u", t->rank);
    pthread_mutex_lock(&hub->lock);
    zipccl_mem_abort_hub(hub, &error);
    pthread_mutex_unlock(&hub->lock);
}

static const char *mem_error_text(const struct zipccl_transport *t)
{
    struct zipccl_mem_hub *hub = ((const struct zipccl_mem_rank *)t)->hub;
    bool failed;

    pthread_mutex_lock(&hub->lock); /* written once, so that it may be read outside */
    failed = hub->error.text[0] != '\0';
    pthread_mutex_unlock(&hub->lock);
    return failed ? hub->error.text : "";
}

static void destroy_hub(struct zipccl_mem_hub *hub)
{
    if (hub->ranks != NULL)
        for (uint32_t r = 0; r < hub->nranks; r++)
            if (hub->ranks[r] != NULL) {
                pthread_cond_destroy(&hub->ranks[r]->wake);
                free(hub->ranks[r]->ops);
                free(hub->ranks[r]);
            }
    free(hub->ranks);
    free(hub->pairs);
    free(hub->bytes);
    free(hub->call);
    pthread_cond_destroy(&hub->met);
    pthread_mutex_destroy(&hub->lock);
    free(hub);
}

/* A rank's memory goes with the hub: peers may still wake it after its owner has left. */
static void mem_destroy(struct zipccl_transport *t)
{
    struct zipccl_mem_hub *hub;
    uint32_t left;

    if (t == NULL)
        return;
    hub = rank_of(t)->hub;
    pthread_mutex_lock(&hub->lock);
    left = --hub->nhandles;
    pthread_mutex_unlock(&hub->lock);
    if (left == 0)
        destroy_hub(hub);
}

static const struct zipccl_transport_ops mem_ops = {
    .name = "threads",
    .group_begin = mem_group_begin,
    .send = mem_send,
    .recv = mem_recv,
    .group_end = mem_group_end,
    .all_gather = zipccl_mem_all_gather,
    .broadcast = zipccl_mem_broadcast,
    .native = zipccl_mem_native,
    .has_native = zipccl_mem_has_native,
    .abort = mem_abort,
    .destroy = mem_destroy,
    .error_text = mem_error_text,
};

/* Deadlines are on the clock that nobody sets. */
static void init_cond(pthread_cond_t *cond)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attributes);
    pthread_condattr_destroy(&attributes);
}

static struct zipccl_mem_hub *create_hub(const struct zipccl_topology *topology)
{
    struct zipccl_mem_hub *hub = calloc(1, sizeof *hub);
    size_t n = topology->nranks;

    if (hub == NULL)
        return NULL;
    pthread_mutex_init(&hub->lock, NULL);
    init_cond(&hub->met);
    hub->limit_s = ZIPCCL_MEM_LIMIT_S;
    hub->nranks = hub->nhandles = topology->nranks;
    hub->pairs = calloc(n * n, sizeof *hub->pairs);
    hub->bytes = calloc(n * n, sizeof *hub->bytes);
    hub->ranks = calloc(n, sizeof *hub->ranks);
    hub->call = calloc(n, sizeof *hub->call);
    if (hub->pairs == NULL || hub->bytes == NULL || hub->ranks == NULL || hub->call == NULL)
        goto fail;
    for (uint32_t r = 0; r < topology->nranks; r++) {
        struct zipccl_mem_rank *rank = calloc(1, sizeof *rank);

        if (rank == NULL)
            goto fail;
        rank->base = (struct zipccl_transport){&mem_ops, r, topology->nranks, topology};
        rank->hub = hub;
        init_cond(&rank->wake);
        hub->ranks[r] = rank;
    }
    return hub;
fail:
    destroy_hub(hub);
    return NULL;
}

zipccl_status zipccl_transport_mem_create(const struct zipccl_topology *topology,
                                          struct zipccl_transport **out)
{
    struct zipccl_mem_hub *hub;

    if (topology == NULL || out == NULL || topology->nranks == 0)
        return ZIPCCL_ERR_ARG;
    hub = create_hub(topology);
    if (hub == NULL)
        return ZIPCCL_ERR_NOMEM;
    for (uint32_t r = 0; r < topology->nranks; r++)
        out[r] = &hub->ranks[r]->base;
    return ZIPCCL_OK;
}

void zipccl_transport_mem_set_limit(struct zipccl_transport *any, double limit_s)
{
    struct zipccl_mem_hub *hub = rank_of(any)->hub;

    pthread_mutex_lock(&hub->lock);
    hub->limit_s = limit_s;
    pthread_mutex_unlock(&hub->lock);
}

uint64_t zipccl_transport_mem_bytes(const struct zipccl_transport *any, uint32_t src, uint32_t dst)
{
    struct zipccl_mem_hub *hub = ((const struct zipccl_mem_rank *)any)->hub;
    uint64_t nbytes;

    pthread_mutex_lock(&hub->lock);
    nbytes = hub->bytes[(size_t)src * hub->nranks + dst];
    pthread_mutex_unlock(&hub->lock);
    return nbytes;
}

void zipccl_transport_mem_reset_bytes(struct zipccl_transport *any)
{
    struct zipccl_mem_hub *hub = rank_of(any)->hub;

    pthread_mutex_lock(&hub->lock);
    memset(hub->bytes, 0, (size_t)hub->nranks * hub->nranks * sizeof *hub->bytes);
    pthread_mutex_unlock(&hub->lock);
}
