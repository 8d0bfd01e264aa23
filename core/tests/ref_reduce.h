/*
 * ref_reduce.h - the bits that a plan of a reduction must give, computed apart from the executor
 *
 * Test code.  It reads a plan's REDUCE steps for order, levels and roundings, takes the inputs of all
 * ranks, and does the arithmetic on values (double, then one conversion to float an operation),
 * not on bits; it shares no code with the library but the topology.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_TESTS_REF_REDUCE_H
#define ZIPCCL_CORE_TESTS_REF_REDUCE_H

#include "core/plan.h"

#define REF_MAX_RANKS 64

struct ref_reduce {
    enum zipccl_dtype dtype;
    const struct zipccl_topology *topology;
    const void *const *inputs; /* [nranks] send buffers, borrowed */
    /* Filled by ref_init() from the plan. */
    uint32_t nlevels;
    struct {
        enum zipccl_group_kind group;
        enum zipccl_redop redop;
    } level[2];
    uint32_t swap; /* mutation: operands 'swap' and swap + 1 of each sum change places; NONE */
};

#define REF_NO_SWAP UINT32_MAX

void ref_init(struct ref_reduce *ref, const struct zipccl_plan *plan,
              const struct zipccl_topology *topology, const void *const *inputs);

/* Elements [first, first + n) of the send buffers, reduced over all ranks. */
void ref_result(const struct ref_reduce *ref, size_t first, size_t n, void *out);

/* The same over node 'node' alone: what the first of two levels leaves. */
void ref_node_sum(const struct ref_reduce *ref, uint32_t node, size_t first, size_t n, void *out);

#endif
