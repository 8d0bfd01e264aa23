/*
 * topology.h - which ranks of a communicator share a node
 *
 * A topology belongs to one communicator: ranks are 0..nranks-1 of that communicator, nodes are
 * numbered in the order of their first rank.  Maps need not be contiguous or even.  It knows no
 * rates; those are cost.h's.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_TOPOLOGY_H
#define ZIPCCL_CORE_TOPOLOGY_H

#include "core/status.h"

#include <stdbool.h>
#include <stdint.h>

struct zipccl_topology {
    uint32_t nranks, nnodes;
    uint32_t *node_of;    /* [nranks] node of a rank */
    uint32_t *local_of;   /* [nranks] index of a rank within its node, in rank order */
    uint32_t *node_start; /* [nnodes + 1] into 'members' */
    uint32_t *members;    /* [nranks] ranks sorted by (node, rank) */
    bool even;            /* every node holds the same number of ranks */
};

/*
 * Build a topology from the node number of each rank; any numbers, they are renumbered.
 *
 * node_ids  [nranks]
 * ZIPCCL_ERR_ARG if nranks is 0; ZIPCCL_ERR_NOMEM.  The caller destroys '*out'.
 */
zipccl_status zipccl_topology_create(uint32_t nranks, const uint32_t *node_ids,
                                     struct zipccl_topology **out);

/* The same of ranks [n] of 'whole', each on its node there. */
zipccl_status zipccl_topology_create_group(const struct zipccl_topology *whole,
                                           const uint32_t *ranks, uint32_t n,
                                           struct zipccl_topology **out);

/* Build nnodes x ranks_per_node with contiguous ranks. */
zipccl_status zipccl_topology_create_even(uint32_t nnodes, uint32_t ranks_per_node,
                                          struct zipccl_topology **out);
void zipccl_topology_destroy(struct zipccl_topology *topology);

/* Ranks on node 'node'. */
static inline uint32_t zipccl_topology_node_size(const struct zipccl_topology *t, uint32_t node)
{
    return t->node_start[node + 1] - t->node_start[node];
}

/*
 * Successor of 'rank' in ring number 'channel' over all ranks: node after node in node order, and
 * inside a node starting at local index 'channel' modulo the node's size, so that each channel
 * leaves a node from another rank (rail) and crosses each node boundary once.
 * Source: NCCL's rings on rail-optimised nodes, and the eight rotated rings of notes/simgrid.
 */
uint32_t zipccl_ring_next(const struct zipccl_topology *t, uint32_t channel, uint32_t rank);

#endif
