/*
 * verify_sums.h - the arithmetic of checking a reduction, on host copies
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_PRELOAD_VERIFY_SUMS_H
#define ZIPCCL_GPU_PRELOAD_VERIFY_SUMS_H

#include "core/reference.h"
#include "gpu/preload/comms.h"

struct zipccl_shim_sums {
    const struct zipccl_reference *reference;
    const char *inputs; /* [nranks][n] contributions */
    const char *ours;   /* [n] the compressed call's result */
    const char *plain;  /* [n] plain NCCL's */
    size_t n, nranks;
    bool avg;
};

/*
 * True if 'ours' has the bits of the plan's order and lies within the rounding bound of 'plain'; else the
 * first difference is reported, as of element first + its index.
 *
 * The bound: each of the two sums rounds at most nranks times, each time by at most half a unit in the
 * last place of the largest partial sum, which is at most the sum of the magnitudes.
 */
bool zipccl_shim_check_sums(struct zipccl_shim_comm *comm, const struct zipccl_shim_sums *sums,
                            enum zipccl_shim_op op, size_t count, size_t first);

#endif
