/*
 * cost.h - T0: the time of a plan from port loads, alpha and codec rates
 *
 * Plain arithmetic, no simulator: each exchange costs max over ports of load / rate plus rounds
 * times alpha; the plan costs the longest path over its two lanes.  The chooser and the sweeps
 * use it; T1 is checked against it.  It knows no contention between collectives.  A step costs
 *
 *     EXCHANGE, NATIVE  max(NVLink, NIC and fabric load / rate) + rounds * alpha, the NICs' alpha if
 *                       a flow leaves its node.  A broadcast streams through its rings, each hop
 *                       starting alpha after the one before, as soon as the rank is there
 *     SIZES             its small exchange, and the fence
 *     ENCODE, DECODE    the launch, and the raw bytes of the busiest rank / rate
 *     REDUCE            as DECODE, for the messages that it decodes; raw elements cost nothing
 *     COPY              the bytes of the busiest rank / rate
 *     RESOLVE           nothing
 *
 * where a load counts every flow through a port in one direction.  The additions of a reduction are
 * charged to nobody, neither to a native collective nor to our REDUCE steps, coded or raw: a library
 * adds while it copies, at the rates above.  A broadcast is
 * followed rank by rank, since ranks do different things; else all do as the busiest of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_COST_H
#define ZIPCCL_CORE_COST_H

#include "core/lower.h"
#include "core/plan.h"

/* Rates of the machine under a communicator, all effective (achievable), bytes are raw bytes. */
struct zipccl_cost_params {
    uint32_t gpus_per_node; /* slots per node; places a rank on a NIC */
    uint32_t nics_per_node; /* NIC of a rank = slot * nics_per_node / gpus_per_node */
    double nvlink_Bps;      /* per GPU and direction */
    double nvlink_alpha_s;  /* per message inside a node */
    double nic_Bps;         /* per NIC and direction */
    double nic_alpha_s;     /* per message between nodes */
    double fabric_Bps;      /* per node and direction above the NICs; 0: not a limit */
    double encode_Bps;      /* raw bytes a GPU encodes per second, codec alone */
    double decode_Bps;      /* raw bytes a GPU decodes per second */
    double codec_launch_s;  /* start of one encode or decode step */
    double fence_s;         /* device-to-host wait of a SIZES step */
    double copy_Bps;        /* device-local copy */
    uint32_t channels;      /* rings of native collectives */
    double codec_sm_share;  /* part of the GPU the codec takes while it runs, 0..1 */
};

/* A communicator's ranks placed on the machine: port numbers for the load sums. */
struct zipccl_placement {
    const struct zipccl_topology *topology;
    const uint32_t *slot_of; /* [nranks] GPU slot within the node, or NULL: topology->local_of */
};

/* The price of one call. */
struct zipccl_cost {
    double total_s; /* longest path over both lanes */
    double wire_s;  /* sum over exchanges of max port load / rate, without alpha */
    double alpha_s; /* sum of rounds * alpha */
    double codec_s; /* encode + decode seconds of the busiest rank, launches excluded */
    double fence_s;
    uint64_t wire_bytes; /* payload of exchanges and sizes per rank, mean over ranks, peers only */
    uint64_t raw_bytes;  /* the same for the uncompressed call */
};

/*
 * Price 'plan'.
 *
 * Uneven ops need sizes->splits.
 * Cost: one lowering for chunks of the same size; pairs are lowered chunk by chunk.
 * ZIPCCL_ERR_ARG if rates are not positive or the topology does not match, and as zipccl_lower();
 * ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_cost_plan(const struct zipccl_plan *plan,
                               const struct zipccl_placement *placement,
                               const struct zipccl_cost_params *params,
                               const struct zipccl_wire_sizes *sizes, struct zipccl_cost *out);

/*
 * What 'plan' codes, over all ranks: raw size, and size on the wire with headers, sizes and resends;
 * both 0 if it codes nothing.  Levels that a two-level plan sends raw are in neither, so that
 * raw / coded is the codec's ratio, not the algorithm's.
 *
 * Errors as zipccl_lower(); ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_cost_coded_bytes(const struct zipccl_plan *plan,
                                      const struct zipccl_topology *topology,
                                      const struct zipccl_wire_sizes *sizes, double *raw,
                                      double *coded);

/*
 * Elements that 'rank' encodes, decodes or copies in 'step'; of a REDUCE those that it decodes.
 *
 * topology  one that the step's group fits
 * splits    [nranks * nranks] of uneven ops; NULL else
 * Cost: O(1); O(nranks) for pairs and for the chunks in which the shards of an all_reduce end.
 */
double zipccl_cost_local_n(const struct zipccl_plan *plan, const struct zipccl_step *step,
                           const struct zipccl_topology *topology, const size_t *splits,
                           uint32_t rank);

#endif
