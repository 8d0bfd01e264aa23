/*
 * dtype.c - tables of element types, operations and reduction operators
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/dtype.h"

#include <string.h>

static const struct {
    const char *name, *alias;
    size_t size;
} dtypes[ZIPCCL_NUM_DTYPES] = {
    [ZIPCCL_INT8] = {"int8", "char", 1},
    [ZIPCCL_UINT8] = {"uint8", "byte", 1},
    [ZIPCCL_INT32] = {"int32", "int", 4},
    [ZIPCCL_UINT32] = {"uint32", "uint", 4},
    [ZIPCCL_INT64] = {"int64", "long", 8},
    [ZIPCCL_UINT64] = {"uint64", "ulong", 8},
    [ZIPCCL_FLOAT16] = {"fp16", "half", 2},
    [ZIPCCL_FLOAT32] = {"fp32", "float", 4},
    [ZIPCCL_FLOAT64] = {"fp64", "double", 8},
    [ZIPCCL_BFLOAT16] = {"bf16", "bfloat16", 2},
    [ZIPCCL_FLOAT8_E4M3] = {"fp8_e4m3", "f8e4m3", 1},
    [ZIPCCL_FLOAT8_E5M2] = {"fp8_e5m2", "f8e5m2", 1},
};

static const char *const redops[ZIPCCL_NUM_REDOPS] = {"sum", "prod", "max", "min", "avg"};

static const char *const ops[ZIPCCL_NUM_OPS] = {
    [ZIPCCL_ALL_GATHER] = "all_gather", [ZIPCCL_REDUCE_SCATTER] = "reduce_scatter",
    [ZIPCCL_ALL_REDUCE] = "all_reduce", [ZIPCCL_ALLTOALL] = "alltoall",
    [ZIPCCL_ALLTOALLV] = "alltoallv",   [ZIPCCL_SENDRECV] = "sendrecv",
    [ZIPCCL_BROADCAST] = "broadcast",
};

size_t zipccl_dtype_size(enum zipccl_dtype dtype)
{
    return (unsigned)dtype < ZIPCCL_NUM_DTYPES ? dtypes[dtype].size : 0;
}

bool zipccl_dtype_compressible(enum zipccl_dtype dtype)
{
    switch (dtype) {
    case ZIPCCL_BFLOAT16:
    case ZIPCCL_FLOAT16:
    case ZIPCCL_FLOAT32:
    case ZIPCCL_FLOAT8_E4M3:
    case ZIPCCL_FLOAT8_E5M2: return true;
    default: return false;
    }
}

const char *zipccl_dtype_name(enum zipccl_dtype dtype)
{
    return (unsigned)dtype < ZIPCCL_NUM_DTYPES ? dtypes[dtype].name : "?";
}

const char *zipccl_redop_name(enum zipccl_redop redop)
{
    return (unsigned)redop < ZIPCCL_NUM_REDOPS ? redops[redop] : "?";
}

const char *zipccl_op_name(enum zipccl_op op)
{
    return (unsigned)op < ZIPCCL_NUM_OPS ? ops[op] : "?";
}

bool zipccl_dtype_parse(const char *name, enum zipccl_dtype *out)
{
    for (unsigned i = 0; i < ZIPCCL_NUM_DTYPES; i++)
        if (strcmp(name, dtypes[i].name) == 0 || strcmp(name, dtypes[i].alias) == 0) {
            *out = (enum zipccl_dtype)i;
            return true;
        }
    return false;
}

bool zipccl_redop_parse(const char *name, enum zipccl_redop *out)
{
    for (unsigned i = 0; i < ZIPCCL_NUM_REDOPS; i++)
        if (strcmp(name, redops[i]) == 0) {
            *out = (enum zipccl_redop)i;
            return true;
        }
    return false;
}

bool zipccl_op_parse(const char *name, enum zipccl_op *out)
{
    for (unsigned i = 0; i < ZIPCCL_NUM_OPS; i++)
        if (strcmp(name, ops[i]) == 0) {
            *out = (enum zipccl_op)i;
            return true;
        }
    return false;
}
