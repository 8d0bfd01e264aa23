/*
 * capacity.h - room for messages of a fixed size, as both ends compute it
 *
 * The settled capacity: what a class of messages narrows to once its data have shown that they
 * are near-Gaussian.  A table made by models/make_capacity_table and integer interpolation, so that
 * every rank gets the same number.  Wider classes give back a part of what it saves.  When a class
 * changes is decided elsewhere (classes.h).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_CAPACITY_H
#define ZIPCCL_CORE_CAPACITY_H

#include "core/dtype.h"

#include <stddef.h>
#include <stdint.h>

/*
 * Bytes that a message of 'n' independent Gaussian elements of any one scale exceeds with a
 * probability of about 1e-9, headers included: the worst phase of log2(sigma) with what the
 * encoder's sample may make it choose.  zipccl_bound() where that is smaller and for types that the
 * codec does not cover, so 0 if 'n' elements do not fit size_t.
 *
 * Scales at which many elements are subnormal or infinite in 'dtype' are not meant.
 */
size_t zipccl_capacity_settled(enum zipccl_dtype dtype, size_t n);

/* Capacity classes, wide to narrow. */
enum {
    ZIPCCL_NO_CLASS = -1, /* not compressed */
    ZIPCCL_CLASS_WIDE = 0,
    ZIPCCL_CLASS_SETTLED = 16, /* that of the settled capacity */
    ZIPCCL_NUM_CLASSES = 33
};

/*
 * "wide", "loose", "medium", "tight", "settled", and with a number, as in "medium-1", the classes that
 * follow them: so many narrower; "none" for all other numbers.
 */
const char *zipccl_class_name(int capacity_class);

/*
 * Bytes of a FIXED message of 'n' elements: a pure function, computed by both ends.
 *
 * Up to ZIPCCL_CLASS_SETTLED the settled capacity and a part of what that saves: 0.4 for wide, 0.142 for
 * loose, 0.068, 0.026 and 0 for settled, which are ratios of 1.25, 1.40, 1.45, 1.48 and 1.50 in long bf16
 * messages, and others between them, each 1.0 to 1.3 % above the one before.  Then parts of the settled
 * capacity, for messages shorter than the worst of Gaussian data: twelve 1.2 % apart, then 0.8, 0.7, 0.6 and
 * 0.5 of it.  Rounded up to cache lines.  zipccl_bound() where that is smaller, for types that the codec does
 * not cover, and for higher numbers: such a message never overflows.
 */
size_t zipccl_capacity(enum zipccl_dtype dtype, size_t n, uint32_t capacity_class);

/* Narrowest class whose capacity for 'n' elements holds 'nbytes'; ZIPCCL_NO_CLASS if none does. */
int zipccl_class_fit(enum zipccl_dtype dtype, size_t n, size_t nbytes);

/*
 * Narrowest class with more room for 'n' elements than 'cls' has, for which they were too long; ZIPCCL_NO_CLASS
 * if there is none.  Of long messages the next wider one; some classes of short ones share a cache line's end.
 */
int zipccl_class_roomier(enum zipccl_dtype dtype, size_t n, int cls);

/* Narrowest class that is of use for messages of 'n' elements: narrower ones have its capacity. */
int zipccl_class_narrowest(enum zipccl_dtype dtype, size_t n);

#endif
