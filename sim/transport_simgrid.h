/*
 * transport_simgrid.h - ranks as simulated actors: every message is a simulated one
 *
 * The payload goes by memcpy when both ends have posted, the time by SimGrid's mailboxes: a group
 * waits alpha (the NICs' if one of its messages leaves the node), then all its messages share the
 * links.  Native collectives are rings of such messages (core/rings.h) or groups of pairs; a
 * broadcast streams through its rings, each hop starting alpha after the one before.  Reductions
 * take rank order, fp32, one rounding, as the memory transport's.
 *
 * It knows no plan and no cost model: its times come from what is posted.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_SIM_TRANSPORT_SIMGRID_H
#define ZIPCCL_SIM_TRANSPORT_SIMGRID_H

#include "core/transport.h"
#include "sim/platform.h"

/* Token bucket of one NIC: what it may send ahead of its rate, in seconds of that. */
struct zipccl_simgrid_nic {
    double left_s, end_s; /* saved up; when it was busy last */
    uint32_t nactive;     /* groups that send on it now */
};

/* The NICs of a platform, if they have bursts; all transports on it share them. */
struct zipccl_simgrid_nics {
    double Bps, burst_s; /* of each; full bucket */
    uint32_t gpus_per_node, nics_per_node;
    struct zipccl_simgrid_nic *nics; /* [nodes * nics_per_node] */
};

struct zipccl_simgrid_options {
    const struct zipccl_platform *platform; /* borrowed, loaded for messages */
    const uint32_t *gpus;                   /* [nranks] GPU of each rank; copied */
    double nvlink_alpha_s, nic_alpha_s;     /* per group inside a node, across nodes */
    struct zipccl_simgrid_nics *nics;       /* borrowed; NULL: without bursts */
    /* Bytes that really move at the start of a message: SIZE_MAX, or the header's when payload goes
     * by pointer.  Reductions then give no values. */
    size_t copy_bytes;
    const char *nowhere;  /* by pointer: from here on */
    size_t nowhere_bytes; /* so far nothing moves at all */
    uint32_t id;          /* no two transports of a process share one */
};

/*
 * Create handles for all ranks of 'topology'; used by actors on the hosts of 'gpus' alone.
 *
 * topology  borrowed; outlives the handles
 * out       [topology->nranks]; each is destroyed by its owner, the hub with the last
 *
 * Counts that differ are ZIPCCL_ERR_MISMATCH for both ends and abort the others, as for 'mem'.
 */
zipccl_status zipccl_transport_simgrid_create(const struct zipccl_topology *topology,
                                              const struct zipccl_simgrid_options *options,
                                              struct zipccl_transport **out);

/* Payload bytes that 'src' has sent to 'dst' so far, over all calls; 0 for src == dst. */
uint64_t zipccl_transport_simgrid_bytes(const struct zipccl_transport *any, uint32_t src,
                                        uint32_t dst);

/* Messages that were posted so far, over all pairs. */
uint64_t zipccl_transport_simgrid_messages(const struct zipccl_transport *any);

#endif
