/*
 * topology.c - ranks sorted by node, and the rings over them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/topology.h"

#include <stdlib.h>

void zipccl_topology_destroy(struct zipccl_topology *topology)
{
    if (topology == NULL)
        return;
    free(topology->node_of);
    free(topology->local_of);
    free(topology->node_start);
    free(topology->members);
    free(topology);
}

static struct zipccl_topology *allocate(uint32_t nranks)
{
    struct zipccl_topology *t = calloc(1, sizeof *t);

    if (t == NULL)
        return NULL;
    t->node_of = calloc(nranks, sizeof *t->node_of);
    t->local_of = calloc(nranks, sizeof *t->local_of);
    t->node_start = calloc((size_t)nranks + 1, sizeof *t->node_start);
    t->members = calloc(nranks, sizeof *t->members);
    if (t->node_of == NULL || t->local_of == NULL || t->node_start == NULL || t->members == NULL) {
        zipccl_topology_destroy(t);
        return NULL;
    }
    t->nranks = nranks;
    return t;
}

struct pair {
    uint32_t id, rank;
};

static int by_id_then_rank(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;

    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Number the nodes in the order of their first rank: t->node_of and t->nnodes. */
static zipccl_status renumber(struct zipccl_topology *t, const uint32_t *node_ids)
{
    struct pair *sorted = malloc(t->nranks * sizeof *sorted);

    if (sorted == NULL)
        return ZIPCCL_ERR_NOMEM;
    for (uint32_t r = 0; r < t->nranks; r++)
        sorted[r] = (struct pair){node_ids[r], r};
    qsort(sorted, t->nranks, sizeof *sorted, by_id_then_rank);
    /* First the lowest rank of each node, then, in rank order, that rank's number. */
    for (uint32_t i = 0, first = 0; i < t->nranks; i++) {
        if (i == 0 || sorted[i].id != sorted[i - 1].id)
            first = sorted[i].rank;
        t->node_of[sorted[i].rank] = first;
    }
    free(sorted);
    for (uint32_t r = 0; r < t->nranks; r++)
        t->node_of[r] = t->node_of[r] == r ? t->nnodes++ : t->node_of[t->node_of[r]];
    return ZIPCCL_OK;
}

/* From node_of: everything else. */
static void sort_members(struct zipccl_topology *t)
{
    for (uint32_t r = 0; r < t->nranks; r++)
        t->local_of[r] = t->node_start[t->node_of[r] + 1]++;
    for (uint32_t v = 0; v < t->nnodes; v++)
        t->node_start[v + 1] += t->node_start[v];
    for (uint32_t r = 0; r < t->nranks; r++)
        t->members[t->node_start[t->node_of[r]] + t->local_of[r]] = r;
    t->even = true;
    for (uint32_t v = 1; v < t->nnodes; v++)
        if (zipccl_topology_node_size(t, v) != zipccl_topology_node_size(t, 0))
            t->even = false;
}

zipccl_status zipccl_topology_create(uint32_t nranks, const uint32_t *node_ids,
                                     struct zipccl_topology **out)
{
    struct zipccl_topology *t;
    zipccl_status status;

    if (nranks == 0 || node_ids == NULL || out == NULL)
        return ZIPCCL_ERR_ARG;
    t = allocate(nranks);
    if (t == NULL)
        return ZIPCCL_ERR_NOMEM;
    status = renumber(t, node_ids);
    if (status != ZIPCCL_OK) {
        zipccl_topology_destroy(t);
        return status;
    }
    sort_members(t);
    *out = t;
    return ZIPCCL_OK;
}

zipccl_status zipccl_topology_create_group(const struct zipccl_topology *whole,
                                           const uint32_t *ranks, uint32_t n,
                                           struct zipccl_topology **out)
{
    uint32_t *nodes = malloc((n > 0 ? n : 1) * sizeof *nodes);
    zipccl_status status;

    if (nodes == NULL)
        return ZIPCCL_ERR_NOMEM;
    for (uint32_t i = 0; i < n; i++)
        nodes[i] = whole->node_of[ranks[i]];
    status = zipccl_topology_create(n, nodes, out);
    free(nodes);
    return status;
}

zipccl_status zipccl_topology_create_even(uint32_t nnodes, uint32_t ranks_per_node,
                                          struct zipccl_topology **out)
{
    struct zipccl_topology *t;

    if (nnodes == 0 || ranks_per_node == 0 || nnodes > UINT32_MAX / ranks_per_node || out == NULL)
        return ZIPCCL_ERR_ARG;
    t = allocate(nnodes * ranks_per_node);
    if (t == NULL)
        return ZIPCCL_ERR_NOMEM;
    t->nnodes = nnodes;
    for (uint32_t r = 0; r < t->nranks; r++)
        t->node_of[r] = r / ranks_per_node;
    sort_members(t);
    *out = t;
    return ZIPCCL_OK;
}

uint32_t zipccl_ring_next(const struct zipccl_topology *t, uint32_t channel, uint32_t rank)
{
    uint32_t node = t->node_of[rank], local = t->local_of[rank];
    uint32_t size = zipccl_topology_node_size(t, node), first = channel % size;
    uint32_t next = local + 1 == size ? 0 : local + 1;

    if (next != first)
        return t->members[t->node_start[node] + next];
    node = node + 1 == t->nnodes ? 0 : node + 1;
    return t->members[t->node_start[node] + channel % zipccl_topology_node_size(t, node)];
}
