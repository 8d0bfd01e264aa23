/*
 * sharing.c - groups of one set that send at once over the same NICs
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/sharing.h"

#include <stdlib.h>
#include <string.h>

static size_t nic_of(const struct zipccl_cluster *c, uint32_t rank)
{
    uint32_t slot = rank % c->gpus_per_node;

    return (size_t)(rank / c->gpus_per_node) * c->nics_per_node +
           (size_t)((uint64_t)slot * c->nics_per_node / c->gpus_per_node);
}

static bool spans_nodes(const struct zipccl_cluster *c, const uint32_t *ranks, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        if (ranks[i] / c->gpus_per_node != ranks[0] / c->gpus_per_node)
            return true;
    return false;
}

/* Members on each NIC, of one part added to or taken from 'count'. */
static void count_part(const struct zipccl_cluster *c, const uint32_t *ranks, uint32_t n, int by,
                       int *count)
{
    for (uint32_t i = 0; i < n; i++)
        count[nic_of(c, ranks[i])] += by;
}

zipccl_status zipccl_nic_sharing(const struct zipccl_cluster *c,
                                 const struct zipccl_trace_group *group, double *out)
{
    size_t nnics = (size_t)c->nodes * c->nics_per_node;
    int *all = calloc(2 * nnics + 1, sizeof(*all)), *own = all + nnics;
    double most = 1;

    if (all == NULL)
        return ZIPCCL_ERR_NOMEM;
    for (uint32_t p = 0; p < group->nparts; p++) {
        const uint32_t *ranks = group->ranks + (size_t)p * group->size;

        if (spans_nodes(c, ranks, group->size))
            count_part(c, ranks, group->size, 1, all);
    }
    for (uint32_t p = 0; p < group->nparts; p++) {
        const uint32_t *ranks = group->ranks + (size_t)p * group->size;

        if (!spans_nodes(c, ranks, group->size))
            continue;
        count_part(c, ranks, group->size, 1, own);
        for (uint32_t i = 0; i < group->size; i++) {
            size_t nic = nic_of(c, ranks[i]);

            if ((double)all[nic] / own[nic] > most)
                most = (double)all[nic] / own[nic];
        }
        count_part(c, ranks, group->size, -1, own);
    }
    free(all);
    *out = most;
    return ZIPCCL_OK;
}
