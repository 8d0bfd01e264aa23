/*
 * capacity.h - room for messages of Gaussian data, as both ends compute it
 *
 * The settled capacity: what a class of messages narrows to once its data have shown that they
 * are near-Gaussian.  It does not decide when that is.  A table made by models/make_capacity_table
 * and integer interpolation, so that every rank gets the same number.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_CAPACITY_H
#define ZIPCCL_CORE_CAPACITY_H

#include "core/dtype.h"

#include <stddef.h>

/*
 * Bytes that a message of 'n' independent Gaussian elements of any one scale exceeds with a
 * probability of about 1e-9, headers included: the worst phase of log2(sigma) with what the
 * encoder's sample may make it choose.  zipccl_bound() where that is smaller and for types that the
 * codec does not cover, so 0 if 'n' elements do not fit size_t.
 *
 * Scales at which many elements are subnormal or infinite in 'dtype' are not meant.
 */
size_t zipccl_capacity_settled(enum zipccl_dtype dtype, size_t n);

#endif
