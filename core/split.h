/*
 * split.h - messages whose first part leaves before the rest is coded
 *
 * Private to core and its execs.  A message of n elements is cut in three, as both ends compute it
 * from type and n:
 *
 *     head   [0, head)              header and directory, known last
 *     early  [head, head + early)   low bytes and first tiers of the first superblocks: of a size that
 *                                   n gives, final while the superblocks behind are still to be coded
 *     tail   from head + early on   everything else, as long as it is
 *
 * The parts put together are the message.  They do not stand if it is raw, or if its fixed region ends
 * before head + early (constants, zeros, planes left out): what left early is then void.  A FIXED
 * message counts as one that overflowed, an EXACT one travels whole in the place of its tail.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_SPLIT_H
#define ZIPCCL_CORE_SPLIT_H

#include "core/codec.h"

#include <stdbool.h>

struct zipccl_split_cut {
    size_t head, early; /* bytes; both 0: the message is not cut, all of it is tail */
    size_t early_n;     /* elements of the superblocks whose bytes leave early */
};

/* Elements of the shortest message that is cut: two superblocks. */
#define ZIPCCL_SPLIT_LEAST_N 32768u

/*
 * How a message of 'n' elements is cut: the first quarter of its superblocks, at least one, leaves
 * early.  Not cut below ZIPCCL_SPLIT_LEAST_N elements and for types that are not coded.
 */
struct zipccl_split_cut zipccl_split_of(enum zipccl_dtype dtype, size_t n);

/*
 * Whether the parts of a message of 'nbytes' stand, as far as sizes tell: it is not raw and reaches beyond
 * the early part.  Who has the elements knows for sure.
 */
bool zipccl_split_stands(const struct zipccl_split_cut *split, enum zipccl_dtype dtype, size_t n,
                         size_t nbytes);

/*
 * Start a message and code what leaves early: arguments as zipccl_encode_begin() with
 * ZIPCCL_EFFORT_FAST.  encoder->final_end is below head + early if the parts will not stand.
 */
zipccl_status zipccl_split_begin(struct zipccl_encoder *encoder, enum zipccl_isa isa,
                                 enum zipccl_dtype dtype, const void *src, size_t n, void *dst,
                                 size_t capacity, void *scratch);

/*
 * Code the rest; 'scratch' may be another one.  Nothing is written to the early part.
 * ZIPCCL_ERR_OVERFLOW if the parts do not stand or the message does not fit; then it is not finished.
 */
zipccl_status zipccl_split_end(struct zipccl_encoder *encoder, void *scratch, size_t *nbytes);

#endif
