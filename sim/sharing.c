/*
 * sharing.c - groups of one set that send at once over the same NICs
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/sharing.h"

#include <stdlib.h>
#include <string.h>

/* Ports that ranks of a node share: its NICs, or the one way from the node into the fabric. */
struct ports {
    const struct zipccl_cluster *cluster;
    uint32_t per_node;
};

static size_t port_of(const struct ports *ports, uint32_t rank)
{
    uint32_t gpus = ports->cluster->gpus_per_node, slot = rank % gpus;

    return (size_t)(rank / gpus) * ports->per_node +
           (size_t)((uint64_t)slot * ports->per_node / gpus);
}

static bool spans_nodes(const struct zipccl_cluster *c, const uint32_t *ranks, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        if (ranks[i] / c->gpus_per_node != ranks[0] / c->gpus_per_node)
            return true;
    return false;
}

/* Members on each port, of one part added to or taken from 'count'. */
static void count_part(const struct ports *ports, const uint32_t *ranks, uint32_t n, int by,
                       int *count)
{
    for (uint32_t i = 0; i < n; i++)
        count[port_of(ports, ranks[i])] += by;
}

static zipccl_status share_ports(const struct ports *ports, const struct zipccl_trace_group *group,
                                 double *out)
{
    size_t nports = (size_t)ports->cluster->nodes * ports->per_node;
    int *all = calloc(2 * nports + 1, sizeof(*all)), *own;
    double most = 1;

    if (all == NULL)
        return ZIPCCL_ERR_NOMEM;
    own = all + nports;
    for (uint32_t p = 0; p < group->nparts; p++) {
        const uint32_t *ranks = group->ranks + (size_t)p * group->size;

        if (spans_nodes(ports->cluster, ranks, group->size))
            count_part(ports, ranks, group->size, 1, all);
    }
    for (uint32_t p = 0; p < group->nparts; p++) {
        const uint32_t *ranks = group->ranks + (size_t)p * group->size;

        if (!spans_nodes(ports->cluster, ranks, group->size))
            continue;
        count_part(ports, ranks, group->size, 1, own);
        for (uint32_t i = 0; i < group->size; i++) {
            size_t port = port_of(ports, ranks[i]);

            if ((double)all[port] / own[port] > most)
                most = (double)all[port] / own[port];
        }
        count_part(ports, ranks, group->size, -1, own);
    }
    free(all);
    *out = most;
    return ZIPCCL_OK;
}

zipccl_status zipccl_nic_sharing(const struct zipccl_cluster *cluster,
                                 const struct zipccl_trace_group *group, struct zipccl_sharing *out)
{
    const struct ports nics = {cluster, cluster->nics_per_node}, exits = {cluster, 1};
    struct zipccl_sharing sharing;

    ZIPCCL_TRY(share_ports(&nics, group, &sharing.nic));
    ZIPCCL_TRY(share_ports(&exits, group, &sharing.fabric));
    *out = sharing;
    return ZIPCCL_OK;
}
