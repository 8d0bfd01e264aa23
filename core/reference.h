/*
 * reference.h - the bits that a plan of a reduction must give, computed apart from the executor
 *
 * For tests and for programs that check results; no part of the library that users link.  It reads a
 * plan's REDUCE steps for order, levels and roundings, takes the inputs of all ranks, and does the
 * arithmetic on values (double, then one conversion to float an operation), not on bits; it shares
 * no code with the library but the topology.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_REFERENCE_H
#define ZIPCCL_CORE_REFERENCE_H

#include "core/plan.h"

struct zipccl_reference {
    enum zipccl_dtype dtype;                /* bf16, fp16 or fp32 */
    const struct zipccl_topology *topology; /* borrowed */
    uint32_t nlevels;
    struct {
        enum zipccl_group_kind group;
        enum zipccl_redop redop;
    } level[2];
    uint32_t swap; /* mutation: operands 'swap' and swap + 1 of each sum change places; NO_SWAP */
};

#define ZIPCCL_REFERENCE_NO_SWAP UINT32_MAX

/*
 * Read 'plan', one of a reduction by steps of our own.  ZIPCCL_ERR_UNSUPPORTED if it reduces in
 * another way: natively, or in groups that are neither the world nor node and rail.
 */
zipccl_status zipccl_reference_init(struct zipccl_reference *ref, const struct zipccl_plan *plan,
                                    const struct zipccl_topology *topology);

/*
 * Elements [first, first + n) of the send buffers, reduced over all ranks.
 *
 * inputs  [nranks] send buffers
 * out     [n] elements
 * ZIPCCL_ERR_NOMEM
 */
zipccl_status zipccl_reference_result(const struct zipccl_reference *ref, const void *const *inputs,
                                      size_t first, size_t n, void *out);

/* The same over node 'node' alone: what the first of two levels leaves. */
zipccl_status zipccl_reference_node_sum(const struct zipccl_reference *ref,
                                        const void *const *inputs, uint32_t node, size_t first,
                                        size_t n, void *out);

#endif
