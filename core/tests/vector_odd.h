/*
 * vector_odd.h - valid messages that the reference encoder would not write
 *
 * Test support: core/FORMAT.md leaves an encoder choices, and a decoder must accept all of them.
 * One superblock, coded bit by bit as the document says, without the codec's own code.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_TESTS_VECTOR_ODD_H
#define ZIPCCL_CORE_TESTS_VECTOR_ODD_H

#include "core/dtype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an encoder may choose. */
struct odd {
    enum zipccl_dtype dtype;
    uint8_t program; /* 0 to 7 */
    uint8_t base;    /* of every sub-block */
    uint8_t planes;  /* those that are there although all 0, beside those that are not */
    bool bitmap;     /* takes zeros out */
    bool keep_zeros; /* but not all of them */
    bool all_groups; /* the bitmap shows groups without a bit set, too */
    uint8_t fill;    /* what stands in gaps and in bits beyond the elements */
    unsigned store;  /* 1 of so many elements escapes every tier; 0: none that need not */
};

/*
 * Write the message of elements [n], n <= 16384, to 'wire' and return its bytes; at most
 * 64 + 16 n.  It may be longer than raw, and then is not valid.
 */
size_t odd_message(const struct odd *odd, const void *elements, size_t n, uint8_t *wire);

#endif
