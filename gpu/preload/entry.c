/*
 * entry.c - the functions of nccl.h that move data, taken over
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/preload/call.h"
#include "gpu/preload/shim.h"

/* Forward, or hand a description of the call to zipccl_shim_submit(). */
#define ZIPCCL_ENTER(name, arguments, ...)                                                         \
    const struct zipccl_nccl *nccl = zipccl_nccl_get();                                            \
                                                                                                   \
    if (nccl->name == NULL)                                                                        \
        return zipccl_nccl_missing(#name);                                                         \
    if (zipccl_shim_forwards())                                                                    \
        return nccl->name arguments;                                                               \
    return zipccl_shim_submit(&(struct zipccl_shim_call){__VA_ARGS__});

ZIPCCL_SHIM_EXPORT ncclResult_t ncclAllGather(const void *send, void *recv, size_t count,
                                              ncclDataType_t dtype, ncclComm_t comm,
                                              cudaStream_t stream){
    ZIPCCL_ENTER(ncclAllGather, (send, recv, count, dtype, comm, stream), ZIPCCL_SHIM_FN_ALL_GATHER,
                 send, recv, count, dtype, ncclSum, 0, comm, stream)}

ZIPCCL_SHIM_EXPORT ncclResult_t
    ncclAlltoAll(const void *send, void *recv, size_t count, ncclDataType_t dtype, ncclComm_t comm,
                 cudaStream_t stream){
        ZIPCCL_ENTER(ncclAlltoAll, (send, recv, count, dtype, comm, stream),
                     ZIPCCL_SHIM_FN_ALLTOALL, send, recv, count, dtype, ncclSum, 0, comm, stream)}

ZIPCCL_SHIM_EXPORT ncclResult_t ncclBroadcast(const void *send, void *recv, size_t count,
                                              ncclDataType_t dtype, int root, ncclComm_t comm,
                                              cudaStream_t stream){
    ZIPCCL_ENTER(ncclBroadcast, (send, recv, count, dtype, root, comm, stream),
                 ZIPCCL_SHIM_FN_BROADCAST, send, recv, count, dtype, ncclSum, root, comm, stream)}

ZIPCCL_SHIM_EXPORT ncclResult_t ncclBcast(void *buff, size_t count, ncclDataType_t dtype, int root,
                                          ncclComm_t comm, cudaStream_t stream){
    ZIPCCL_ENTER(ncclBcast, (buff, count, dtype, root, comm, stream), ZIPCCL_SHIM_FN_BCAST, buff,
                 buff, count, dtype, ncclSum, root, comm, stream)}

ZIPCCL_SHIM_EXPORT ncclResult_t
    ncclReduceScatter(const void *send, void *recv, size_t count, ncclDataType_t dtype,
                      ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream){
        ZIPCCL_ENTER(ncclReduceScatter, (send, recv, count, dtype, op, comm, stream),
                     ZIPCCL_SHIM_FN_REDUCE_SCATTER, send, recv, count, dtype, op, 0, comm, stream)}

ZIPCCL_SHIM_EXPORT ncclResult_t
    ncclAllReduce(const void *send, void *recv, size_t count, ncclDataType_t dtype, ncclRedOp_t op,
                  ncclComm_t comm, cudaStream_t stream){
        ZIPCCL_ENTER(ncclAllReduce, (send, recv, count, dtype, op, comm, stream),
                     ZIPCCL_SHIM_FN_ALL_REDUCE, send, recv, count, dtype, op, 0, comm, stream)}

ZIPCCL_SHIM_EXPORT ncclResult_t
    ncclReduce(const void *send, void *recv, size_t count, ncclDataType_t dtype, ncclRedOp_t op,
               int root, ncclComm_t comm, cudaStream_t stream){
        ZIPCCL_ENTER(ncclReduce, (send, recv, count, dtype, op, root, comm, stream),
                     ZIPCCL_SHIM_FN_REDUCE, send, recv, count, dtype, op, root, comm, stream)}

ZIPCCL_SHIM_EXPORT ncclResult_t
    ncclGather(const void *send, void *recv, size_t count, ncclDataType_t dtype, int root,
               ncclComm_t comm, cudaStream_t stream){
        ZIPCCL_ENTER(ncclGather, (send, recv, count, dtype, root, comm, stream),
                     ZIPCCL_SHIM_FN_GATHER, send, recv, count, dtype, ncclSum, root, comm, stream)}

ZIPCCL_SHIM_EXPORT ncclResult_t
    ncclScatter(const void *send, void *recv, size_t count, ncclDataType_t dtype, int root,
                ncclComm_t comm, cudaStream_t stream){
        ZIPCCL_ENTER(ncclScatter, (send, recv, count, dtype, root, comm, stream),
                     ZIPCCL_SHIM_FN_SCATTER, send, recv, count, dtype, ncclSum, root, comm, stream)}

ZIPCCL_SHIM_EXPORT ncclResult_t ncclSend(const void *send, size_t count, ncclDataType_t dtype,
                                         int peer, ncclComm_t comm, cudaStream_t stream){
    ZIPCCL_ENTER(ncclSend, (send, count, dtype, peer, comm, stream), ZIPCCL_SHIM_FN_SEND, send,
                 NULL, count, dtype, ncclSum, peer, comm, stream)}

ZIPCCL_SHIM_EXPORT ncclResult_t ncclRecv(void *recv, size_t count, ncclDataType_t dtype, int peer,
                                         ncclComm_t comm, cudaStream_t stream)
{
    ZIPCCL_ENTER(ncclRecv, (recv, count, dtype, peer, comm, stream), ZIPCCL_SHIM_FN_RECV, NULL,
                 recv, count, dtype, ncclSum, peer, comm, stream)
}
