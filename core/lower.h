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
 * Which blocks an edge r -> next(r) of a ring carries:
 *   all_gather      all but next(r)'s own: block b starts at rank b and ends before it
 *   reduce_scatter  all but r's own: block b starts at b's successor and ends, reduced, at b
 *   all_reduce      'count' elements cut in N blocks by zipccl_ring_part(count, N, b), block b
 *                   belongs to rank b: the reduce_scatter edges, then the all_gather edges
 *   broadcast       everything, but for the edge into the root, which carries nothing
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_LOWER_H
#define ZIPCCL_CORE_LOWER_H

#include "core/plan.h"

/*
 * Cut of a block of 'n' units over 'channels' rings: ring 'channel' carries zipccl_ring_part()
 * units from zipccl_ring_part_offset() on; the first rings get the remainder, one unit each.
 * The unit is the byte for EXCHANGE steps and the element for NATIVE ones, which may reduce.
 * Whoever forwards around rings uses these two, so that counters match the lowering exactly.
 *
 * channels  at least 1
 */
static inline size_t zipccl_ring_part(size_t n, uint32_t channels, uint32_t channel)
{
    return n / channels + (channel < n % channels ? 1 : 0);
}

static inline size_t zipccl_ring_part_offset(size_t n, uint32_t channels, uint32_t channel)
{
    size_t rest = n % channels;

    return n / channels * channel + (channel < rest ? channel : rest);
}

/*
 * Sizes of messages that only the data decides.  'bytes' gives the message bytes of 'n' elements
 * sent from rank 'src' (to 'dst'; UINT32_MAX when one message goes to all).  Where a rank passes its
 * node's blocks on (alltoall in two levels), 'src' is the rank whose block it is.  With bytes == NULL
 * an EXACT message is taken as zipccl_bound().
 */
struct zipccl_wire_sizes {
    size_t (*bytes)(void *context, uint32_t src, uint32_t dst, size_t n);
    /* The same in plans with ZIPCCL_EFFORT_RATIO; NULL: not known, 'bytes' is taken for them. */
    size_t (*ratio_bytes)(void *context, uint32_t src, uint32_t dst, size_t n);
    void *context;
    const size_t *splits; /* [nranks * nranks] of uneven ops, elements; else NULL */
    /* Whether a FIXED message of n elements from src overflows (raw resend); NULL: only if it goes in
     * parts that do not stand. */
    int (*overflows)(void *context, uint32_t src, uint32_t dst, size_t n, size_t capacity);
    bool by_n; /* both look at n alone: many ranks are then priced in O(nranks) */
    /*
     * Told before the others are asked: elements are sums over 'nranks' ranks from here on, or one
     * rank's own, 1.  Sums have other zeros and other scales.  NULL: that does not matter.
     */
    void (*sums_of)(void *context, uint32_t nranks);
};

/* Called once per (src, dst) with nbytes > 0; src != dst. */
typedef void zipccl_flow_fn(void *context, uint32_t src, uint32_t dst, uint64_t nbytes);

/*
 * Emit the flows of one wire step, over all parts of its group; raw-resend exchanges are emitted only as 'sizes' says an
 * overflow happens.  Steps that send nothing emit nothing.
 *
 * nrounds  out: sequential message latencies on the longest path (N-1 in a ring, 1 direct,
 *          0 if nothing is sent)
 * SIZES are four bytes per message, direct.  A missing 'sizes' (NULL) is one with all fields NULL.
 * Cost: O(nranks^2) direct, O(nranks * channels^2) on rings.
 * ZIPCCL_ERR_ARG if the step is none that sends, if splits are missing or exceed plan->count;
 * ZIPCCL_ERR_UNSUPPORTED for a group that the topology does not have, or rings over one;
 * ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_lower(const struct zipccl_plan *plan, uint32_t step,
                           const struct zipccl_topology *topology,
                           const struct zipccl_wire_sizes *sizes, zipccl_flow_fn *flow,
                           void *context, uint32_t *nrounds);

/*
 * The same in O(nranks) where it can be: steps in which every member of a group exchanges with every
 * other, all at once, and the size of a message depends on one of its ends alone; within nodes and
 * rails all messages must be alike.
 *
 * nbytes     out [nranks]: bytes from (by_source) or to that rank, for each peer of its group
 * by_source  out
 * False, and nothing written, for all other steps, and for those that zipccl_lower() refuses.
 */
bool zipccl_lower_by_rank(const struct zipccl_plan *plan, uint32_t step,
                          const struct zipccl_topology *topology,
                          const struct zipccl_wire_sizes *sizes, uint64_t *nbytes, bool *by_source);

/*
 * True if some FIXED message of 'plan', which fits 'topology', overflows as sizes->overflows says, or
 * the parts of some message do not stand, as sizes->bytes says.
 *
 * Cost: O(nranks) a chunk with sizes->by_n, O(nranks^2) for pairs and without.
 */
bool zipccl_lower_overflows(const struct zipccl_plan *plan, const struct zipccl_topology *topology,
                            const struct zipccl_wire_sizes *sizes);

#endif
