/*
 * ref_reduce.h - the reference of reductions (core/reference.h) with its inputs, for tests
 *
 * Test code: what cannot be computed ends the program.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_TESTS_REF_REDUCE_H
#define ZIPCCL_CORE_TESTS_REF_REDUCE_H

#include "core/reference.h"

struct ref_reduce {
    struct zipccl_reference base;
    const void *const *inputs; /* [nranks] send buffers, borrowed */
};

void ref_init(struct ref_reduce *ref, const struct zipccl_plan *plan,
              const struct zipccl_topology *topology, const void *const *inputs);

/* Elements [first, first + n) of the send buffers, reduced over all ranks. */
void ref_result(const struct ref_reduce *ref, size_t first, size_t n, void *out);

/* The same over node 'node' alone: what the first of two levels leaves. */
void ref_node_sum(const struct ref_reduce *ref, uint32_t node, size_t first, size_t n, void *out);

#endif
