/*
 * transport_simgrid.c - groups of simulated messages: matching, alpha, byte counters, abort
 *
 * A pair's posts are matched here, in posting order, so that counts can be compared and payload
 * copied; SimGrid's mailboxes, which match in the same order, give the time alone.  The copy is made
 * when the second side posts: from then on until both groups end neither side may touch its buffer.
 * Sends are never detached, and both ends wait: detached ones cost time that grows with their number.
 * Invariant: after an abort every message that was posted has a partner, so that no wait is for ever.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/transport_simgrid.h"

#include "core/rings.h"
#include "sim/transport_simgrid_hub.h"

#include <simgrid/actor.h>
#include <simgrid/comm.h>
#include <simgrid/engine.h>
#include <simgrid/mailbox.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct zipccl_simgrid_rank *rank_of(struct zipccl_transport *t)
{
    return (struct zipccl_simgrid_rank *)t;
}

void zipccl_simgrid_copy(const struct zipccl_simgrid_hub *hub, void *dst, const void *src,
                         size_t nbytes)
{
    size_t n = nbytes < hub->options.copy_bytes ? nbytes : hub->options.copy_bytes;

    if ((uintptr_t)src - (uintptr_t)hub->options.nowhere < hub->options.nowhere_bytes)
        return;
    if (n > 0 && dst != src)
        memmove(dst, src, n);
}

static struct zipccl_simgrid_pair *pair_of(struct zipccl_simgrid_hub *hub, uint32_t src,
                                           uint32_t dst)
{
    struct zipccl_simgrid_pair *pair = &hub->pairs[(size_t)src * hub->nranks + dst];
    char name[64];

    if (pair->box == NULL) {
        snprintf(name, sizeof(name), "pair-%u-%u-%u", hub->options.id, src, dst);
        pair->box = sg_mailbox_by_name(name);
    }
    return pair;
}

static void push(struct zipccl_simgrid_pair *pair, struct zipccl_simgrid_op *op)
{
    op->next = NULL;
    if (pair->head == NULL)
        pair->head = op;
    else
        pair->tail->next = op;
    pair->tail = op;
}

/* Complete what is left of 'pair' with partners of the aborting actor's own, to 'comms'. */
static size_t drain_pair(struct zipccl_simgrid_pair *pair, sg_comm_t *comms)
{
    size_t n = 0;

    while (pair->head != NULL) {
        struct zipccl_simgrid_op *op = pair->head;

        pair->head = op->next;
        op->drained = true;
        if (comms == NULL || op->owner->base.rank == op->peer)
            continue;
        comms[n++] = op->is_send ? sg_mailbox_get_async(pair->box, &op->arrived)
                                 : sg_mailbox_put_async(pair->box, op, 0);
    }
    return n;
}

static size_t count_unmatched(const struct zipccl_simgrid_hub *hub)
{
    size_t n = 0;

    for (size_t i = 0; i < (size_t)hub->nranks * hub->nranks; i++)
        for (const struct zipccl_simgrid_op *op = hub->pairs[i].head; op != NULL; op = op->next)
            n++;
    return n;
}

static void simgrid_abort(struct zipccl_transport *t)
{
    struct zipccl_simgrid_hub *hub = rank_of(t)->hub;
    sg_comm_t *comms;
    size_t n = 0;

    if (hub->aborted)
        return;
    hub->aborted = true;
    if (hub->error.text[0] == '\0')
        zipccl_fail(&hub->error, ZIPCCL_ERR_ABORTED, "aborted by rank %u", t->rank);
    comms = malloc((count_unmatched(hub) + 1) * sizeof(*comms));
    for (size_t i = 0; i < (size_t)hub->nranks * hub->nranks; i++)
        n += drain_pair(&hub->pairs[i], comms == NULL ? NULL : comms + n);
    zipccl_simgrid_abort_hops(hub);
    for (size_t i = 0; i < n; i++)
        sg_comm_wait(comms[i]);
    free(comms);
}

static void fail_pair(struct zipccl_simgrid_hub *hub, const struct zipccl_simgrid_op *send,
                      const struct zipccl_simgrid_op *recv)
{
    send->owner->mismatch = true;
    recv->owner->mismatch = true;
    if (hub->error.text[0] == '\0')
        zipccl_fail(&hub->error, ZIPCCL_ERR_MISMATCH,
                    "rank %u sends %zu bytes to rank %u, which receives %zu bytes",
                    send->owner->base.rank, send->nbytes, recv->owner->base.rank, recv->nbytes);
    simgrid_abort(&send->owner->base);
}

static bool is_far(const struct zipccl_simgrid_rank *rank, const struct zipccl_simgrid_op *op)
{
    const uint32_t *node_of = rank->hub->topology->node_of;

    return node_of[op->peer] != node_of[rank->base.rank];
}

/* What a message costs on the links: less than it has where a NIC sends ahead of its rate. */
static long charged_bytes(const struct zipccl_simgrid_rank *rank,
                          const struct zipccl_simgrid_op *op)
{
    return is_far(rank, op) ? (long)((double)op->nbytes * rank->far_scale) : (long)op->nbytes;
}

/* The NIC of a rank that is about to send to other nodes; NULL: none, or NICs without bursts. */
static struct zipccl_simgrid_nic *claim_burst(struct zipccl_simgrid_rank *rank)
{
    struct zipccl_simgrid_nics *all = rank->hub->options.nics;
    struct zipccl_simgrid_nic *nic;
    double nbytes = 0, used;
    uint32_t gpu;

    rank->far_scale = 1;
    for (size_t i = 0; all != NULL && i < rank->nops; i++)
        if (rank->ops[i].is_send && is_far(rank, &rank->ops[i]))
            nbytes += (double)rank->ops[i].nbytes;
    if (!(nbytes > 0))
        return NULL;
    gpu = rank->hub->gpus[rank->base.rank];
    nic = &all->nics[(size_t)(gpu / all->gpus_per_node) * all->nics_per_node +
                     (size_t)(gpu % all->gpus_per_node) * all->nics_per_node / all->gpus_per_node];
    if (nic->nactive++ == 0)
        nic->left_s += simgrid_get_clock() - nic->end_s;
    if (nic->left_s > all->burst_s)
        nic->left_s = all->burst_s;
    used = nic->left_s < nbytes / all->Bps ? nic->left_s : nbytes / all->Bps;
    nic->left_s -= used;
    rank->far_scale = 1 - used * all->Bps / nbytes;
    return nic;
}

/* Publish one op and start its message; false after a mismatch. */
static bool publish(struct zipccl_simgrid_rank *rank, struct zipccl_simgrid_op *op)
{
    struct zipccl_simgrid_hub *hub = rank->hub;
    uint32_t self = rank->base.rank;
    struct zipccl_simgrid_pair *pair =
        op->is_send ? pair_of(hub, self, op->peer) : pair_of(hub, op->peer, self);
    struct zipccl_simgrid_op *other = pair->head;

    if (other == NULL || other->is_send == op->is_send) {
        push(pair, op);
    } else {
        const struct zipccl_simgrid_op *send = op->is_send ? op : other;
        const struct zipccl_simgrid_op *recv = op->is_send ? other : op;

        if (send->nbytes != recv->nbytes) {
            fail_pair(hub, send, recv);
            return false;
        }
        pair->head = other->next;
        zipccl_simgrid_copy(hub, recv->dst, send->src, send->nbytes);
        if (op->peer != self) {
            pair->nbytes += send->nbytes;
            hub->nmessages++;
        }
    }
    if (op->peer == self)
        return true;
    op->comm = op->is_send ? sg_mailbox_put_async(pair->box, op, charged_bytes(rank, op))
                           : sg_mailbox_get_async(pair->box, &op->arrived);
    return true;
}

/* Alpha of a group: of its slowest message; messages to oneself have none. */
static double group_alpha(const struct zipccl_simgrid_rank *rank)
{
    double alpha = 0;

    for (size_t i = 0; i < rank->nops; i++) {
        double a = rank->ops[i].peer == rank->base.rank
                       ? 0
                       : zipccl_simgrid_alpha(rank->hub, rank->base.rank, rank->ops[i].peer);

        alpha = a > alpha ? a : alpha;
    }
    return alpha;
}

/* A message to oneself has both ends in one group, or would wait for ever. */
static void check_own(struct zipccl_simgrid_rank *rank)
{
    struct zipccl_simgrid_hub *hub = rank->hub;
    uint32_t self = rank->base.rank;

    if (hub->aborted || hub->pairs[(size_t)self * hub->nranks + self].head == NULL)
        return;
    rank->mismatch = true;
    if (hub->error.text[0] == '\0')
        zipccl_fail(&hub->error, ZIPCCL_ERR_MISMATCH,
                    "rank %u: a message to itself has one end in this group", self);
    simgrid_abort(&rank->base);
}

static zipccl_status run_group(struct zipccl_simgrid_rank *rank)
{
    struct zipccl_simgrid_hub *hub = rank->hub;
    struct zipccl_simgrid_nic *nic;
    double alpha = group_alpha(rank);
    bool cut = false;
    size_t n = 0;

    if (alpha > 0 && !hub->aborted)
        sg_actor_sleep_for(alpha);
    nic = claim_burst(rank);
    while (n < rank->nops && !hub->aborted && publish(rank, &rank->ops[n]))
        n++;
    check_own(rank);
    cut = hub->aborted && (n < rank->nops || rank->nops == 0);
    for (size_t i = 0; i < n; i++) {
        if (rank->ops[i].comm != NULL)
            sg_comm_wait(rank->ops[i].comm);
        cut = cut || rank->ops[i].drained;
    }
    rank->nops = 0;
    if (nic != NULL && --nic->nactive == 0)
        nic->end_s = simgrid_get_clock();
    if (rank->mismatch) {
        rank->mismatch = false;
        return ZIPCCL_ERR_MISMATCH;
    }
    return cut ? ZIPCCL_ERR_ABORTED : ZIPCCL_OK;
}

static zipccl_status simgrid_group_begin(struct zipccl_transport *t)
{
    rank_of(t)->depth++;
    return ZIPCCL_OK;
}

static zipccl_status simgrid_group_end(struct zipccl_transport *t)
{
    struct zipccl_simgrid_rank *rank = rank_of(t);

    if (rank->depth == 0)
        return ZIPCCL_ERR_ARG;
    return --rank->depth > 0 ? ZIPCCL_OK : run_group(rank);
}

/* Note an op; outside a group it is a group of its own. */
static zipccl_status post(struct zipccl_simgrid_rank *rank, struct zipccl_simgrid_op op)
{
    if (op.peer >= rank->base.nranks || (op.nbytes > 0 && op.src == NULL && op.dst == NULL))
        return ZIPCCL_ERR_ARG;
    if (rank->nops == rank->capacity) {
        size_t capacity = rank->capacity == 0 ? 16 : 2 * rank->capacity;
        struct zipccl_simgrid_op *ops = realloc(rank->ops, capacity * sizeof(*ops));

        if (ops == NULL)
            return ZIPCCL_ERR_NOMEM;
        rank->ops = ops;
        rank->capacity = capacity;
    }
    op.owner = rank;
    rank->ops[rank->nops++] = op;
    return rank->depth == 0 ? run_group(rank) : ZIPCCL_OK;
}

static zipccl_status simgrid_send(struct zipccl_transport *t, uint32_t peer, const void *buf,
                                  size_t nbytes)
{
    return post(rank_of(t), (struct zipccl_simgrid_op){
                                .peer = peer, .src = buf, .nbytes = nbytes, .is_send = true});
}

static zipccl_status simgrid_recv(struct zipccl_transport *t, uint32_t peer, void *buf,
                                  size_t nbytes)
{
    return post(rank_of(t), (struct zipccl_simgrid_op){.peer = peer, .dst = buf, .nbytes = nbytes});
}

static zipccl_status simgrid_all_gather(struct zipccl_transport *t, const void *send, void *recv,
                                        size_t nbytes, uint32_t channels)
{
    return zipccl_rings_all_gather(t, send, recv, nbytes, 1, channels);
}

static const char *simgrid_error_text(const struct zipccl_transport *t)
{
    return ((const struct zipccl_simgrid_rank *)t)->hub->error.text;
}

static void destroy_hub(struct zipccl_simgrid_hub *hub)
{
    zipccl_simgrid_release_native(hub);
    for (uint32_t r = 0; hub->ranks != NULL && r < hub->nranks; r++)
        if (hub->ranks[r] != NULL) {
            free(hub->ranks[r]->ops);
            free(hub->ranks[r]);
        }
    free(hub->ranks);
    free(hub->pairs);
    free(hub->gpus);
    free(hub);
}

static void simgrid_destroy(struct zipccl_transport *t)
{
    if (t != NULL && --rank_of(t)->hub->nhandles == 0)
        destroy_hub(rank_of(t)->hub);
}

static const struct zipccl_transport_ops simgrid_ops = {
    .name = "simgrid",
    .group_begin = simgrid_group_begin,
    .send = simgrid_send,
    .recv = simgrid_recv,
    .group_end = simgrid_group_end,
    .all_gather = simgrid_all_gather,
    .broadcast = zipccl_simgrid_broadcast,
    .native = zipccl_simgrid_native,
    .has_native = zipccl_simgrid_has_native,
    .abort = simgrid_abort,
    .destroy = simgrid_destroy,
    .error_text = simgrid_error_text,
};

zipccl_status zipccl_transport_simgrid_create(const struct zipccl_topology *topology,
                                              const struct zipccl_simgrid_options *options,
                                              struct zipccl_transport **out)
{
    struct zipccl_simgrid_hub *hub;
    size_t n;

    if (topology == NULL || options == NULL || out == NULL || topology->nranks == 0)
        return ZIPCCL_ERR_ARG;
    n = topology->nranks;
    hub = calloc(1, sizeof(*hub));
    if (hub == NULL)
        return ZIPCCL_ERR_NOMEM;
    hub->options = *options;
    hub->topology = topology;
    hub->nranks = hub->nhandles = topology->nranks;
    hub->gpus = malloc(n * sizeof(*hub->gpus));
    hub->pairs = calloc(n * n, sizeof(*hub->pairs));
    hub->ranks = calloc(n, sizeof(*hub->ranks));
    if (hub->gpus == NULL || hub->pairs == NULL || hub->ranks == NULL)
        goto fail;
    memcpy(hub->gpus, options->gpus, n * sizeof(*hub->gpus));
    hub->options.gpus = hub->gpus;
    for (uint32_t r = 0; r < n; r++) {
        hub->ranks[r] = calloc(1, sizeof(*hub->ranks[r]));
        if (hub->ranks[r] == NULL)
            goto fail;
        hub->ranks[r]->base = (struct zipccl_transport){&simgrid_ops, r, (uint32_t)n, topology};
        hub->ranks[r]->hub = hub;
    }
    for (uint32_t r = 0; r < n; r++)
        out[r] = &hub->ranks[r]->base;
    return ZIPCCL_OK;
fail:
    destroy_hub(hub);
    return ZIPCCL_ERR_NOMEM;
}

uint64_t zipccl_transport_simgrid_bytes(const struct zipccl_transport *any, uint32_t src,
                                        uint32_t dst)
{
    const struct zipccl_simgrid_hub *hub = ((const struct zipccl_simgrid_rank *)any)->hub;

    return hub->pairs[(size_t)src * hub->nranks + dst].nbytes;
}

uint64_t zipccl_transport_simgrid_messages(const struct zipccl_transport *any)
{
    return ((const struct zipccl_simgrid_rank *)any)->hub->nmessages;
}
