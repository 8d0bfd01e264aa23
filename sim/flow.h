/*
 * flow.h - T1: one collective as one parallel task
 *
 * The bytes of all its exchanges, the codec's work on each GPU and the SMs and memory that takes
 * advance in step, as in a well pipelined collective; what a pipeline cannot hide (alpha, fill and
 * drain, launches, fences) is a delay before it, taken from T0.  So a flow that meets nothing else
 * lasts exactly as long as T0 says, and one that does shares max-min.
 * NCCL's own SMs and memory traffic are not charged, compressed or not.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_SIM_FLOW_H
#define ZIPCCL_SIM_FLOW_H

#include "core/cost.h"
#include "core/plan.h"
#include "models/cluster.h"

struct zipccl_flow_edge {
    uint32_t src, dst; /* ranks of the communicator */
    double nbytes;
};

struct zipccl_flow {
    uint32_t nranks;
    size_t nedges;
    struct zipccl_flow_edge *edges; /* [nedges] put the same load on every link as the plan does */
    double *codec_s;                /* [nranks] seconds of codec and additions; NULL: neither */
    double *hbm_bytes;              /* [nranks] read and written by them; NULL: neither */
    double sm_share;                /* SMs the codec takes while it runs */
    double wire_s;                  /* busiest link, alone */
    double codec_max_s;             /* busiest codec, alone */
    double extra_s;                 /* before the task: T0's total less the larger of the two */
    double total_s;                 /* T0, and T1 alone */
};

/*
 * Turn 'plan' into a flow.
 *
 * cost    as priced by zipccl_cost_plan() with the same arguments
 * ZIPCCL_ERR_NOMEM; ZIPCCL_ERR_ARG as zipccl_lower().  The caller destroys '*out'.
 */
zipccl_status zipccl_flow_create(const struct zipccl_plan *plan,
                                 const struct zipccl_placement *placement,
                                 const struct zipccl_cost_params *params,
                                 const struct zipccl_wire_sizes *sizes,
                                 const struct zipccl_cost *cost, struct zipccl_flow **out);
void zipccl_flow_destroy(struct zipccl_flow *flow);

struct zipccl_platform;

/*
 * Run 'flow' to its end; inside a simulated actor.
 *
 * gpus  [nranks] GPU of each rank on the platform
 *
 * Cost: the square of the ranks that send, receive or code in doubles, nine times that with a codec,
 * because SimGrid takes a full matrix: under 1 ms at 64 ranks, about 0.1 s at 1024.
 * ZIPCCL_ERR_NOMEM
 */
zipccl_status zipccl_flow_run(const struct zipccl_flow *flow, const uint32_t *gpus,
                              const struct zipccl_platform *platform);

/*
 * Simulated seconds of 'flow' alone on 'cluster', in a child process (T1).
 * ZIPCCL_ERR_INTERNAL if the child fails.
 */
zipccl_status zipccl_flow_price(const struct zipccl_flow *flow, const uint32_t *gpus,
                                const struct zipccl_cluster *cluster, double *seconds,
                                struct zipccl_error *error);

/* The same for several flows that start together: when each ends. */
zipccl_status zipccl_flow_price_together(uint32_t nflows, const struct zipccl_flow *const *flows,
                                         const uint32_t *const *gpus,
                                         const struct zipccl_cluster *cluster, double *seconds,
                                         struct zipccl_error *error);

#endif
