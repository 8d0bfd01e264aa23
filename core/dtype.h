/*
 * dtype.h - element types, collective operations and reduction operators by number and name
 *
 * The numbers of types and reduction operators are NCCL's (nccl.h 2.28), so that a shim can
 * pass them through.  Op names are one list everywhere: library, traces, tables, options.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_DTYPE_H
#define ZIPCCL_CORE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>

enum zipccl_dtype {
    ZIPCCL_INT8 = 0,
    ZIPCCL_UINT8 = 1,
    ZIPCCL_INT32 = 2,
    ZIPCCL_UINT32 = 3,
    ZIPCCL_INT64 = 4,
    ZIPCCL_UINT64 = 5,
    ZIPCCL_FLOAT16 = 6,
    ZIPCCL_FLOAT32 = 7,
    ZIPCCL_FLOAT64 = 8,
    ZIPCCL_BFLOAT16 = 9,
    ZIPCCL_FLOAT8_E4M3 = 10,
    ZIPCCL_FLOAT8_E5M2 = 11,
    ZIPCCL_NUM_DTYPES = 12
};

enum zipccl_redop {
    ZIPCCL_SUM = 0,
    ZIPCCL_PROD = 1,
    ZIPCCL_MAX = 2,
    ZIPCCL_MIN = 3,
    ZIPCCL_AVG = 4,
    ZIPCCL_NUM_REDOPS = 5
};

enum zipccl_op {
    ZIPCCL_ALL_GATHER = 0,
    ZIPCCL_REDUCE_SCATTER = 1,
    ZIPCCL_ALL_REDUCE = 2,
    ZIPCCL_ALLTOALL = 3,
    ZIPCCL_ALLTOALLV = 4,
    ZIPCCL_SENDRECV = 5,
    ZIPCCL_BROADCAST = 6,
    ZIPCCL_NUM_OPS = 7
};

/* True if 'op' adds up what ranks bring. */
static inline bool zipccl_is_reduction(enum zipccl_op op)
{
    return op == ZIPCCL_REDUCE_SCATTER || op == ZIPCCL_ALL_REDUCE;
}

/* True if every pair of ranks has a count of its own, which only its two ends know. */
static inline bool zipccl_is_uneven(enum zipccl_op op)
{
    return op == ZIPCCL_ALLTOALLV || op == ZIPCCL_SENDRECV;
}

/* Bytes of one element; 0 if 'dtype' is no valid number. */
size_t zipccl_dtype_size(enum zipccl_dtype dtype);

/* True if the codec of this version compresses 'dtype'; all others travel raw. */
bool zipccl_dtype_compressible(enum zipccl_dtype dtype);

/* Short names as used in traces and tables ("bf16", "fp32", "int64", ...); "?" if invalid. */
const char *zipccl_dtype_name(enum zipccl_dtype dtype);
const char *zipccl_redop_name(enum zipccl_redop redop);
const char *zipccl_op_name(enum zipccl_op op);

/*
 * Find the number of 'name'; nccl-tests' spellings ("bfloat16", "half", "float") are accepted
 * for types.  False, and '*out' untouched, if there is none.
 */
bool zipccl_dtype_parse(const char *name, enum zipccl_dtype *out);
bool zipccl_redop_parse(const char *name, enum zipccl_redop *out);
bool zipccl_op_parse(const char *name, enum zipccl_op *out);

#endif
