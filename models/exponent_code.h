/*
 * exponent_code.h - what a code of a tensor's exponents could reach: entropy and Huffman's code
 *
 * For every float type that the codec covers.  Sign and mantissa are counted as they are, whatever
 * they hold; one distribution or code serves a whole tensor, and its table costs nothing.  A codec
 * that follows scales within a tensor, takes zeros out or leaves out planes can be better.
 * It needs no GSL: see exponent.h for laws.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_MODELS_EXPONENT_CODE_H
#define ZIPCCL_MODELS_EXPONENT_CODE_H

#include "core/dtype.h"

#include <stdint.h>

/* Exponents of one tensor. */
struct zipccl_exponent_histogram {
    unsigned size;          /* bytes of an element */
    unsigned exponent_bits; /* of its exponent field */
    uint64_t n;
    uint64_t zeros; /* elements of value 0, of either sign */
    uint64_t count[256];
};

/* Count the exponents of 'n' elements at 'src', any alignment; false if 'dtype' is not covered. */
bool zipccl_exponent_histogram_of(enum zipccl_dtype dtype, const void *src, uint64_t n,
                                  struct zipccl_exponent_histogram *out);

/* Entropy of the exponents, in bits an element; 0 for no element. */
double zipccl_histogram_entropy(const struct zipccl_exponent_histogram *histogram);

/*
 * Bits of all exponents in Huffman's code.  Exponents that are all alike take none: a coder
 * stores them once.
 */
double zipccl_histogram_huffman(const struct zipccl_exponent_histogram *histogram);

/* Bytes of the tensor if exponents took their entropy, or Huffman's code. */
double zipccl_histogram_bound_bytes(const struct zipccl_exponent_histogram *histogram);
double zipccl_histogram_huffman_bytes(const struct zipccl_exponent_histogram *histogram);

#endif
