/*
 * lower.h - what an exchange or a native collective puts on each (source, destination) pair
 *
 * One function feeds the closed-form cost model, the flow simulator and the byte tests, and the
 * memory transport forwards the same way, so that all four agree.  It knows no rates.
 *
 * Lowerings of native collectives: all_gather and reduce_scatter ring over 'channels' rings, each
 * edge carries (N-1)/N of a ring's share in N-1 rounds; all_reduce is both, one after the other;
 * alltoall, alltoallv, sendrecv are direct, one round; broadcast is a ring pipelined in N-1 rounds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_LOWER_H
#define ZIPCCL_CORE_LOWER_H

#include "core/plan.h"

/*
 * Sizes of messages that only the data decides.  'bytes' gives the message bytes of 'n' elements
 * sent from rank 'src' (to 'dst'; UINT32_MAX when one message goes to all).  With bytes == NULL
 * an EXACT message is taken as zipccl_bound().
 */
struct zipccl_wire_sizes {
    size_t (*bytes)(void *context, uint32_t src, uint32_t dst, size_t n);
    void *context;
    const size_t *splits; /* [nranks * nranks] of uneven ops, elements; else NULL */
    /* Whether a FIXED message of n elements from src overflows (raw resend); NULL: never. */
    int (*overflows)(void *context, uint32_t src, uint32_t dst, size_t n, size_t capacity);
};

/* Called once per (src, dst) with nbytes > 0; src != dst. */
typedef void zipccl_flow_fn(void *context, uint32_t src, uint32_t dst, uint64_t nbytes);

/*
 * Emit the flows of one wire step; raw-resend exchanges are emitted only as 'sizes' says an
 * overflow happens.  Steps that send nothing emit nothing.
 *
 * nrounds  out: sequential message latencies on the longest path (N-1 in a ring, 1 direct,
 *          0 if nothing is sent)
 * ZIPCCL_ERR_ARG if the step is none that sends, or splits are missing.
 */
zipccl_status zipccl_lower(const struct zipccl_plan *plan, uint32_t step,
                           const struct zipccl_topology *topology,
                           const struct zipccl_wire_sizes *sizes, zipccl_flow_fn *flow,
                           void *context, uint32_t *nrounds);

#endif
