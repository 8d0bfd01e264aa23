/*
 * perf_check.h - compares what a collective left with what it must have left, element by element
 *
 * What is moved must have the sent bits.  A reduction by steps of our own must have those of the
 * plan's reference evaluator; a native one those of the transport's order where it is known, else it
 * must lie within what rounding in any order can do.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_PERF_CHECK_H
#define ZIPCCL_EXPERIMENTS_PERF_CHECK_H

#include "core/plan.h"
#include "core/topology.h"
#include "experiments/perf/perf_rows.h"

/* Elements [first, first + n) of what 'rank' of the communicator sent. */
typedef void zipccl_perf_sent_fn(const void *context, uint32_t rank, size_t first, size_t n,
                                 void *out);

struct zipccl_perf_check {
    const struct zipccl_perf_call *call;
    zipccl_perf_sent_fn *sent;
    const void *context;
    const struct zipccl_plan *plan; /* that served it */
    const struct zipccl_topology *topology;
    const size_t *splits; /* [nranks * nranks] elements of uneven ops, from row to column; NULL:
                             perf's own */
    uint32_t rank;        /* in the communicator */
    bool rank_order;      /* native reductions add in rank order, rounding once */
};

/*
 * Count the elements of 'recv' that are wrong.
 *
 * recv  [call->recv_n] elements
 * ZIPCCL_ERR_NOMEM; ZIPCCL_ERR_UNSUPPORTED if the plan reduces in a way that cannot be checked
 */
zipccl_status zipccl_perf_check(const struct zipccl_perf_check *check, const void *recv,
                                uint64_t *wrong);

/*
 * The block that 'src' sends to 'dst' in a call that moves: its elements, and where they lie in the
 * send buffer and in the receive buffer.  'splits' as above.
 */
size_t zipccl_perf_block(const struct zipccl_perf_call *call, const size_t *splits, uint32_t nranks,
                         uint32_t src, uint32_t dst, size_t *send_at, size_t *recv_at);

#endif
