/*
 * gaussian.h - Gaussian test data for messages of which no sample exists
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_SIM_GAUSSIAN_H
#define ZIPCCL_SIM_GAUSSIAN_H

#include "core/dtype.h"
#include "core/status.h"

#include <stddef.h>

/*
 * Fill 'data' with 'n' draws from N(0, 0.02^2), seed 1, rounded to 'dtype' (bf16 or fp32); in fp8
 * (e4m3, e5m2) with a scale for each 128 values that takes the largest to the type's largest.
 * The same bytes on every machine, up to the last bit of libm.
 * ZIPCCL_ERR_UNSUPPORTED for other types.
 */
zipccl_status zipccl_gaussian_fill(enum zipccl_dtype dtype, void *data, size_t n,
                                   struct zipccl_error *error);

#endif
