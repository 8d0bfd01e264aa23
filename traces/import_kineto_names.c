/*
 * import_kineto_names.c - names of kernels, collectives and types as the profiler writes them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_kineto.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Parts of kernel names of communication that goes past NCCL, and whose they are. */
static const char *const foreign[][2] = {
    {"deep_ep::", "DeepEP"},
    {"hybrid_ep", "HybridEP"},
    {"nvshmem", "NVSHMEM"},
    {"symm_mem", "symmetric memory"},
    {"multimem_all_reduce", "symmetric memory"},
    {"multimem_one_shot", "symmetric memory"},
    {"multimem_all_gather", "symmetric memory"},
    {"one_shot_all_reduce", "symmetric memory"},
    {"two_shot_all_reduce", "symmetric memory"},
    {"cross_device_reduce", "custom all-reduce"},
    {"allreduce_fusion_kernel", "custom all-reduce"},
};

#define NFOREIGN (sizeof foreign / sizeof foreign[0])

static const struct {
    const char *name;
    enum kineto_coll coll;
} colls[] = {
    {"allreduce", KINETO_ALL_REDUCE},
    {"all_reduce", KINETO_ALL_REDUCE},
    {"allreduce_coalesced", KINETO_ALL_REDUCE},
    {"all_reduce_barrier", KINETO_BARRIER},
    {"allgather", KINETO_ALL_GATHER},
    {"all_gather", KINETO_ALL_GATHER},
    {"_allgather_base", KINETO_ALL_GATHER},
    {"_all_gather_base", KINETO_ALL_GATHER},
    {"all_gather_into_tensor", KINETO_ALL_GATHER},
    {"allgather_into_tensor_coalesced", KINETO_ALL_GATHER},
    {"all_gather_into_tensor_coalesced", KINETO_ALL_GATHER},
    {"reduce_scatter", KINETO_REDUCE_SCATTER},
    {"_reduce_scatter_base", KINETO_REDUCE_SCATTER},
    {"reduce_scatter_tensor", KINETO_REDUCE_SCATTER},
    {"reduce_scatter_tensor_coalesced", KINETO_REDUCE_SCATTER},
    {"broadcast", KINETO_BROADCAST},
    {"_broadcast_oop", KINETO_BROADCAST},
    {"all_to_all", KINETO_ALL_TO_ALL},
    {"all_to_allv", KINETO_ALL_TO_ALLV},
    {"alltoall", KINETO_ALL_TO_ALL},
    {"alltoall_base", KINETO_ALL_TO_ALL},
    {"all_to_all_single", KINETO_ALL_TO_ALL},
    {"send", KINETO_SEND},
    {"recv", KINETO_RECV},
    {"barrier", KINETO_BARRIER},
    {"reduce", KINETO_OTHER},
    {"_reduce_oop", KINETO_OTHER},
    {"gather", KINETO_OTHER},
    {"scatter", KINETO_OTHER},
    {"wait", KINETO_WAIT},
    {"init", KINETO_INIT},
};

static const struct {
    const char *name;
    enum zipccl_dtype dtype;
    uint32_t factor;
} dtypes[] = {
    {"Float", ZIPCCL_FLOAT32, 1},
    {"float", ZIPCCL_FLOAT32, 1},
    {"BFloat16", ZIPCCL_BFLOAT16, 1},
    {"c10::BFloat16", ZIPCCL_BFLOAT16, 1},
    {"Half", ZIPCCL_FLOAT16, 1},
    {"c10::Half", ZIPCCL_FLOAT16, 1},
    {"Double", ZIPCCL_FLOAT64, 1},
    {"double", ZIPCCL_FLOAT64, 1},
    {"Long", ZIPCCL_INT64, 1},
    {"long", ZIPCCL_INT64, 1},
    {"long int", ZIPCCL_INT64, 1},
    {"Int", ZIPCCL_INT32, 1},
    {"int", ZIPCCL_INT32, 1},
    {"Short", ZIPCCL_UINT8, 2},
    {"short", ZIPCCL_UINT8, 2},
    {"short int", ZIPCCL_UINT8, 2},
    {"Char", ZIPCCL_INT8, 1},
    {"signed char", ZIPCCL_INT8, 1},
    {"Byte", ZIPCCL_UINT8, 1},
    {"unsigned char", ZIPCCL_UINT8, 1},
    {"Bool", ZIPCCL_UINT8, 1},
    {"bool", ZIPCCL_UINT8, 1},
    {"UInt16", ZIPCCL_UINT8, 2},
    {"UInt32", ZIPCCL_UINT32, 1},
    {"UInt64", ZIPCCL_UINT64, 1},
    {"ComplexFloat", ZIPCCL_FLOAT32, 2},
    {"ComplexDouble", ZIPCCL_FLOAT64, 2},
    {"Float8_e4m3fn", ZIPCCL_FLOAT8_E4M3, 1},
    {"Float8_e4m3fnuz", ZIPCCL_FLOAT8_E4M3, 1},
    {"Float8_e5m2", ZIPCCL_FLOAT8_E5M2, 1},
    {"Float8_e5m2fnuz", ZIPCCL_FLOAT8_E5M2, 1},
    {"Float8_e8m0fnu", ZIPCCL_UINT8, 1},
    {"c10::Float8_e4m3fn", ZIPCCL_FLOAT8_E4M3, 1},
    {"c10::Float8_e5m2", ZIPCCL_FLOAT8_E5M2, 1},
};

enum kineto_kind kineto_kernel_kind(const char *name)
{
    /* ncclKernel_..., ncclDevKernel_..., ncclSymkDevKernel_..., RCCL's too. */
    if (strncasecmp(name, "nccl", 4) == 0 || strncasecmp(name, "rccl", 4) == 0 ||
        strstr(name, "ncclKernel") != NULL || strstr(name, "ncclDevKernel") != NULL)
        return KINETO_NCCL;
    return kineto_foreign_name(name) != NULL ? KINETO_FOREIGN : KINETO_COMPUTE;
}

const char *kineto_foreign_name(const char *kernel)
{
    /* Layout computations of DeepEP and its kin move nothing. */
    if (strstr(kernel, "get_dispatch_layout") != NULL)
        return NULL;
    for (size_t i = 0; i < NFOREIGN; i++)
        if (strstr(kernel, foreign[i][0]) != NULL)
            return foreign[i][1];
    return NULL;
}

enum kineto_coll kineto_coll_of(const char *name)
{
    size_t n;

    if (strncmp(name, "nccl:", 5) == 0)
        name += 5;
    /* "send 0->1" and "recv 1<-0" name the ends too. */
    n = strcspn(name, " ");
    for (size_t i = 0; i < sizeof colls / sizeof colls[0]; i++)
        if (strlen(colls[i].name) == n && memcmp(colls[i].name, name, n) == 0)
            return colls[i].coll;
    return KINETO_UNKNOWN;
}

enum kineto_coll kineto_coll_of_kernel(const char *kernel)
{
    if (strstr(kernel, "AllReduce") != NULL)
        return KINETO_ALL_REDUCE;
    if (strstr(kernel, "AllGather") != NULL)
        return KINETO_ALL_GATHER;
    if (strstr(kernel, "ReduceScatter") != NULL)
        return KINETO_REDUCE_SCATTER;
    return strstr(kernel, "Broadcast") != NULL ? KINETO_BROADCAST : KINETO_UNKNOWN;
}

enum zipccl_redop kineto_redop_of_kernel(const char *kernel, bool *known)
{
    static const struct {
        const char *name;
        enum zipccl_redop redop;
    } words[] = {{"_SumPostDiv", ZIPCCL_AVG}, {"_PreMulSum", ZIPCCL_AVG}, {"_Sum", ZIPCCL_SUM},
                 {"_Prod", ZIPCCL_PROD},      {"_MinMax", ZIPCCL_MAX},    {"_Max", ZIPCCL_MAX},
                 {"_Min", ZIPCCL_MIN}};

    *known = true;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strstr(kernel, words[i].name) != NULL)
            return words[i].redop;
    *known = false;
    return ZIPCCL_SUM;
}

bool kineto_dtype_of(const char *name, enum zipccl_dtype *dtype, uint32_t *factor)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
        if (strcmp(dtypes[i].name, name) == 0) {
            *dtype = dtypes[i].dtype;
            *factor = dtypes[i].factor;
            return true;
        }
    return false;
}

size_t kineto_list(const char *text, uint64_t *out, size_t max, bool *cut)
{
    size_t n = 0;

    *cut = strstr(text, "...") != NULL;
    while (*text != '\0' && n < max) {
        if (isdigit((unsigned char)*text)) {
            char *end;

            out[n++] = strtoull(text, &end, 10);
            text = end;
        } else {
            text++;
        }
    }
    return n;
}
