/*
 * nccl_api.h - the functions of an NCCL library, as a table
 *
 * So that a program takes those it is linked with, and a shim, which stands in front of NCCL and
 * must not call itself, takes those it has looked up.  Types are nccl.h's; what came after
 * NCCL 2.18 is optional.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_NCCL_API_H
#define ZIPCCL_GPU_NCCL_API_H

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <stddef.h>

/* Each as its namesake in nccl.h, without the prefix "nccl". */
struct zipccl_nccl_api {
    ncclResult_t (*GetVersion)(int *version);
    const char *(*GetErrorString)(ncclResult_t result);
    const char *(*GetLastError)(ncclComm_t comm);
    ncclResult_t (*CommCount)(const ncclComm_t comm, int *count);
    ncclResult_t (*CommUserRank)(const ncclComm_t comm, int *rank);
    ncclResult_t (*CommCuDevice)(const ncclComm_t comm, int *device);
    ncclResult_t (*CommGetAsyncError)(ncclComm_t comm, ncclResult_t *error);
    ncclResult_t (*CommAbort)(ncclComm_t comm);
    ncclResult_t (*CommDestroy)(ncclComm_t comm);
    ncclResult_t (*GroupStart)(void);
    ncclResult_t (*GroupEnd)(void);
    ncclResult_t (*Send)(const void *send, size_t count, ncclDataType_t type, int peer,
                         ncclComm_t comm, cudaStream_t stream);
    ncclResult_t (*Recv)(void *recv, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                         cudaStream_t stream);
    ncclResult_t (*AllGather)(const void *send, void *recv, size_t count, ncclDataType_t type,
                              ncclComm_t comm, cudaStream_t stream);
    ncclResult_t (*ReduceScatter)(const void *send, void *recv, size_t count, ncclDataType_t type,
                                  ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
    ncclResult_t (*AllReduce)(const void *send, void *recv, size_t count, ncclDataType_t type,
                              ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream);
    ncclResult_t (*Broadcast)(const void *send, void *recv, size_t count, ncclDataType_t type,
                              int root, ncclComm_t comm, cudaStream_t stream);
    /* NULL if the library has none: */
    ncclResult_t (*AlltoAll)(const void *send, void *recv, size_t count, ncclDataType_t type,
                             ncclComm_t comm, cudaStream_t stream); /* grouped send and recv */
    ncclResult_t (*CommSplit)(ncclComm_t comm, int color, int key, ncclComm_t *out,
                              ncclConfig_t *config);   /* two levels on the one comm */
    ncclResult_t (*MemAlloc)(void **p, size_t nbytes); /* cudaMalloc */
    ncclResult_t (*MemFree)(void *p);
    ncclResult_t (*CommRegister)(const ncclComm_t comm, void *buf, size_t nbytes, void **handle);
    ncclResult_t (*CommDeregister)(const ncclComm_t comm, void *handle);
};

/* The functions that this program is linked with; in a library of its own, zipccl_nccl_linked. */
const struct zipccl_nccl_api *zipccl_nccl_linked(void);

#endif
