/*
 * vector_set.h - test vectors in memory, and as files with a manifest
 *
 * Test support.  A vector is a message, the verdict on it, and where it is valid its elements.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_TESTS_VECTOR_SET_H
#define ZIPCCL_CORE_TESTS_VECTOR_SET_H

#include "core/dtype.h"

#include <stddef.h>
#include <stdint.h>

enum verdict {
    VERDICT_VALID,
    VERDICT_CORRUPT,
    VERDICT_OVERFLOW /* a valid header, but the elements come by another way */
};

struct vector {
    char name[64]; /* "gauss_1000" or "refused/magic" */
    enum verdict verdict;
    enum zipccl_dtype dtype;
    size_t n; /* elements of a valid one */
    uint8_t *wire;
    size_t nbytes;
    char elements[64]; /* name of the vector whose elements it has */
    const char *about; /* a line for people */
};

enum { VECTORS = 256 };

struct vector_set {
    size_t count;
    struct vector vectors[VECTORS];
    uint8_t *raw[VECTORS]; /* elements of a vector that has its own, else NULL */
};

/* Add a valid vector with elements [n] of its own; all bytes are copied.  Ends the program on failure. */
void set_add(struct vector_set *set, const char *name, enum zipccl_dtype dtype, const void *raw,
             size_t n, const void *wire, size_t nbytes, const char *about);

/* Add a valid vector that has the elements of 'other'. */
void set_add_same(struct vector_set *set, const char *name, const char *other, const void *wire,
                  size_t nbytes, const char *about);

/* Add one without elements. */
void set_add_refused(struct vector_set *set, const char *name, enum verdict verdict,
                     const void *wire, size_t nbytes, const char *about);

/* The vector 'name'; ends the program if there is none. */
const struct vector *set_find(const struct vector_set *set, const char *name);

/* Its elements. */
const uint8_t *set_elements(const struct vector_set *set, const struct vector *vector);

/*
 * Write NAME.zccl for each, NAME.raw for those with elements of their own, and MANIFEST.tsv, into
 * 'directory', whose folders must be there.  Ends the program on failure.
 */
void set_save(const struct vector_set *set, const char *directory);

void set_destroy(struct vector_set *set);

/* Add what other encoders may write, and what no decoder may accept. */
void add_odd_vectors(struct vector_set *set);
void add_refused_vectors(struct vector_set *set);

/* The same of program 9. */
void add_ans_vectors(struct vector_set *set);

#endif
