/*
 * transport_simgrid_hub.h - what the two halves of the simulated transport share
 *
 * Private to transport_simgrid.c (pairs, groups, abort) and transport_simgrid_native.c.  All actors
 * share one thread and yield only inside calls of SimGrid, so plain memory needs no locks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_SIM_TRANSPORT_SIMGRID_HUB_H
#define ZIPCCL_SIM_TRANSPORT_SIMGRID_HUB_H

#include "sim/transport_simgrid.h"

#include <simgrid/forward.h>

struct zipccl_simgrid_rank;

/* One posted send or receive; it lives in its poster's array until the poster's group ends. */
struct zipccl_simgrid_op {
    struct zipccl_simgrid_op *next; /* in a pair's queue */
    struct zipccl_simgrid_rank *owner;
    const void *src; /* send */
    void *dst;       /* receive */
    void *arrived;   /* what SimGrid hands over: not used */
    sg_comm_t comm;  /* NULL: to oneself, or not posted */
    size_t nbytes;
    uint32_t peer;
    bool is_send, drained; /* completed by an abort instead of its peer */
};

struct zipccl_simgrid_pair {
    sg_mailbox_t box;
    struct zipccl_simgrid_op *head, *tail; /* unmatched, of one kind at a time */
    uint64_t nbytes;
};

/* Where a rank hears from the one behind it on one ring of a broadcast. */
struct zipccl_simgrid_hop {
    sg_mailbox_t box;
    sg_sem_t head, whole; /* the first byte is about to come; all of it is there */
    uint32_t nput, ngot;  /* messages sent to 'box' and taken */
    /* When the first byte was, and the last one will be, at the rank behind, plus alpha.  It is at
     * most one broadcast ahead, since it waits for its own message. */
    double head_s[2], whole_s[2];
    uint32_t nhead, nheard, nwhole, nseen;
    void *arrived;
};

/* A broadcast or reduction in progress: entered by all ranks in the same order. */
struct zipccl_simgrid_shared {
    struct zipccl_simgrid_shared *next;
    uint64_t number; /* which of this transport */
    uint32_t nentered, nleft;
    char *data;                              /* broadcast: the root's; reduction: the result */
    const struct zipccl_native_call **calls; /* [nranks] reductions */
    zipccl_status status;
};

struct zipccl_simgrid_hub {
    struct zipccl_simgrid_options options;
    const struct zipccl_topology *topology;
    uint32_t nranks, nhandles;
    uint32_t *gpus; /* [nranks] */
    bool aborted;
    struct zipccl_simgrid_pair *pairs; /* [nranks * nranks] */
    struct zipccl_simgrid_rank **ranks;
    uint32_t nhops;                   /* rings that 'hops' has room for */
    struct zipccl_simgrid_hop **hops; /* [nhops][nranks] */
    struct zipccl_simgrid_shared *shared;
    uint64_t nmessages;
    struct zipccl_error error; /* of the first failure */
};

struct zipccl_simgrid_rank {
    struct zipccl_transport base;
    struct zipccl_simgrid_hub *hub;
    struct zipccl_simgrid_op *ops; /* posted since group_begin */
    size_t nops, capacity;
    uint32_t depth;
    uint64_t nshared; /* broadcasts and reductions entered */
    double far_scale; /* of what leaves the node in this group: the part that waits for the NIC */
    bool mismatch;
};

/* Native half. */
zipccl_status zipccl_simgrid_broadcast(struct zipccl_transport *t, void *buf, size_t nbytes,
                                       uint32_t root, uint32_t channels);
zipccl_status zipccl_simgrid_native(struct zipccl_transport *t,
                                    const struct zipccl_native_call *call);
bool zipccl_simgrid_has_native(const struct zipccl_transport *t, enum zipccl_op op,
                               enum zipccl_dtype dtype, enum zipccl_redop redop);

/* Let every broadcast that was waiting when the hub was aborted end. */
void zipccl_simgrid_abort_hops(struct zipccl_simgrid_hub *hub);
void zipccl_simgrid_release_native(struct zipccl_simgrid_hub *hub);

/* Copy payload, as far as it is there. */
void zipccl_simgrid_copy(const struct zipccl_simgrid_hub *hub, void *dst, const void *src,
                         size_t nbytes);

/* Latency of a message from rank to rank. */
static inline double zipccl_simgrid_alpha(const struct zipccl_simgrid_hub *hub, uint32_t a,
                                          uint32_t b)
{
    return hub->topology->node_of[a] != hub->topology->node_of[b] ? hub->options.nic_alpha_s
                                                                  : hub->options.nvlink_alpha_s;
}

#endif
