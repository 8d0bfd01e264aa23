/*
 * sharing.h - groups of one set that send at once over the same NICs
 *
 * All groups of a set (tensor-parallel training has as many data-parallel groups on a node as it has
 * GPUs) run the same call at about the same time.  Where they share a NIC, each has a part of it.
 * Flows (T1) see that by themselves; the closed form, which plans are chosen by at each tier,
 * prices a group alone and has to be told.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_SIM_SHARING_H
#define ZIPCCL_SIM_SHARING_H

#include "models/cluster.h"
#include "traces/trace.h"

/*
 * How many times less of a port a group of the set has than it would alone: over the ports of groups that
 * span nodes, the largest ratio of all members behind one to the group's own.  1: no two groups share one.
 */
struct zipccl_sharing {
    double nic;    /* of its NICs */
    double fabric; /* of what a node can send into a fabric slower than its NICs */
};

/*
 * Find the sharing of the groups of one set.
 *
 * group  with world ranks, which lie in order
 * ZIPCCL_ERR_NOMEM.  Cost: two passes.
 */
zipccl_status zipccl_nic_sharing(const struct zipccl_cluster *cluster,
                                 const struct zipccl_trace_group *group,
                                 struct zipccl_sharing *out);

#endif
