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
 *     REDUCE            as DECODE, for the messages that it decodes, and the bytes of the sums / the
 *                       rate of additions, if there is one; no launch for those
 *     COPY              the bytes of the busiest rank / rate
 *     RESOLVE           nothing
 *
 * where a load counts every flow through a port in one direction.  With a burst the NICs' load of an
 * exchange is less by what has gathered in their token buckets: at most the burst, and no more than
 * the NIC's rate times how long it rested, since the last exchange of this call or, before the first,
 * of one like it that went before.  Broadcasts get no burst here.  Without a rate of additions those
 * of our REDUCE steps, coded or raw, cost nothing, as on a GPU, which adds while it copies.  Those of
 * a native collective never do: they are in the rates above.  A broadcast is followed rank by rank,
 * since ranks do different things; else all do as the busiest of them.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_COST_H
#define ZIPCCL_CORE_COST_H

#include "core/codec.h"
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
    /* The same codec rates with ZIPCCL_EFFORT_RATIO; 0: not known, and then no plan has it. */
    double ratio_encode_Bps, ratio_decode_Bps;
    /* Bytes of sums that a rank makes, of however many terms; 0: additions cost nothing. */
    double reduce_Bps;
    double nic_burst_bytes; /* that a rested NIC sends at once, ahead of its rate; 0: none */
    /* Cores of the one machine that carries all ranks: where those are more, codec, additions and
     * alphas take ranks / cores times as long.  0: each has its own. */
    uint32_t shared_cores;
};

/* How many ranks share a core while all of 'nranks' work. */
static inline double zipccl_cost_sharing(uint32_t shared_cores, uint32_t nranks)
{
    return shared_cores > 0 && nranks > shared_cores ? (double)nranks / shared_cores : 1;
}

/* Rates of the effort of 'plan', all its ranks at work. */
static inline double zipccl_cost_encode_Bps(const struct zipccl_cost_params *params,
                                            const struct zipccl_plan *plan)
{
    double Bps =
        plan->effort == ZIPCCL_EFFORT_RATIO ? params->ratio_encode_Bps : params->encode_Bps;

    return Bps / zipccl_cost_sharing(params->shared_cores, plan->nranks);
}

static inline double zipccl_cost_decode_Bps(const struct zipccl_cost_params *params,
                                            const struct zipccl_plan *plan)
{
    double Bps =
        plan->effort == ZIPCCL_EFFORT_RATIO ? params->ratio_decode_Bps : params->decode_Bps;

    return Bps / zipccl_cost_sharing(params->shared_cores, plan->nranks);
}

static inline double zipccl_cost_reduce_Bps(const struct zipccl_cost_params *params,
                                            const struct zipccl_plan *plan)
{
    return params->reduce_Bps / zipccl_cost_sharing(params->shared_cores, plan->nranks);
}

/* A communicator's ranks placed on the machine: port numbers for the load sums. */
struct zipccl_placement {
    const struct zipccl_topology *topology;
    const uint32_t *slot_of; /* [nranks] GPU slot within the node, or NULL: topology->local_of */
};

/* The price of one call. */
struct zipccl_cost {
    double total_s;  /* longest path over both lanes */
    double wire_s;   /* sum over exchanges of max port load / rate, without alpha */
    double alpha_s;  /* sum of rounds * alpha */
    double codec_s;  /* encode + decode seconds of the busiest rank, launches excluded */
    double reduce_s; /* its additions */
    double fence_s;
    double burst_s;      /* less on the NICs, thanks to bursts; 'wire_s' is without it */
    uint64_t wire_bytes; /* payload of exchanges and sizes per rank, mean over ranks, peers only */
    uint64_t raw_bytes;  /* the same for the uncompressed call */
};

/*
 * Price 'plan'.
 *
 * Uneven ops need sizes->splits.
 * Cost: one lowering for chunks of the same size; pairs are lowered chunk by chunk.
 * ZIPCCL_ERR_ARG if rates that 'plan' needs are not positive or the topology does not match, and as
 * zipccl_lower();
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

/* Elements of the sums that 'rank' makes in 'step', however many it adds up; 0 if not a REDUCE. */
double zipccl_cost_summed_n(const struct zipccl_plan *plan, const struct zipccl_step *step,
                            const struct zipccl_topology *topology, uint32_t rank);

/* Seconds of that, 0 without a rate of additions. */
double zipccl_cost_summed_s(const struct zipccl_plan *plan, const struct zipccl_step *step,
                            const struct zipccl_topology *topology,
                            const struct zipccl_cost_params *params, uint32_t rank);

#endif
