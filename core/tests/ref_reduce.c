/*
 * ref_reduce.c - the reference of reductions with its inputs, for tests
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/ref_reduce.h"

#include <stdlib.h>

static void must(zipccl_status status)
{
    if (status != ZIPCCL_OK)
        abort();
}

void ref_init(struct ref_reduce *ref, const struct zipccl_plan *plan,
              const struct zipccl_topology *topology, const void *const *inputs)
{
    must(zipccl_reference_init(&ref->base, plan, topology));
    ref->inputs = inputs;
}

void ref_result(const struct ref_reduce *ref, size_t first, size_t n, void *out)
{
    must(zipccl_reference_result(&ref->base, ref->inputs, first, n, out));
}

void ref_node_sum(const struct ref_reduce *ref, uint32_t node, size_t first, size_t n, void *out)
{
    must(zipccl_reference_node_sum(&ref->base, ref->inputs, node, first, n, out));
}
