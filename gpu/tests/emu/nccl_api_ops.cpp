/*
 * nccl_api_ops.cpp - NCCL 2.28's operations and groups
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/emu/nccl_api.h"
#include "gpu/tests/emu/nccl_state.h"

using namespace emu;

extern "C" {
NCCL_API(ncclResult_t, GroupStart, ())
{
    return group_start();
}
NCCL_ALIAS(ncclResult_t, GroupStart, ())

NCCL_API(ncclResult_t, GroupEnd, ())
{
    return group_end();
}
NCCL_ALIAS(ncclResult_t, GroupEnd, ())

NCCL_API(ncclResult_t, GroupSimulateEnd, (ncclSimInfo_t *))
{
    return group_drop();
}
NCCL_ALIAS(ncclResult_t, GroupSimulateEnd, (ncclSimInfo_t * info))

NCCL_API(ncclResult_t, Send,
         (const void *send, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t s))
{
    return submit("ncclSend",
                  {POINT_TO_POINT, send, nullptr, n, t, ncclSum, peer, find_comm(c), s, true});
}
NCCL_ALIAS(ncclResult_t, Send,
           (const void *send, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t s))

NCCL_API(ncclResult_t, Recv,
         (void *recv, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t s))
{
    return submit("ncclRecv",
                  {POINT_TO_POINT, nullptr, recv, n, t, ncclSum, peer, find_comm(c), s, false});
}
NCCL_ALIAS(ncclResult_t, Recv,
           (void *recv, size_t n, ncclDataType_t t, int peer, ncclComm_t c, cudaStream_t s))

NCCL_API(ncclResult_t, AllGather,
         (const void *send, void *recv, size_t n, ncclDataType_t t, ncclComm_t c, cudaStream_t s))
{
    return submit("ncclAllGather",
                  {ALL_GATHER, send, recv, n, t, ncclSum, 0, find_comm(c), s, true});
}
NCCL_ALIAS(ncclResult_t, AllGather,
           (const void *send, void *recv, size_t n, ncclDataType_t t, ncclComm_t c, cudaStream_t s))

NCCL_API(ncclResult_t, ReduceScatter,
         (const void *send, void *recv, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c,
          cudaStream_t s))
{
    return submit("ncclReduceScatter",
                  {REDUCE_SCATTER, send, recv, n, t, op, 0, find_comm(c), s, true});
}
NCCL_ALIAS(ncclResult_t, ReduceScatter,
           (const void *send, void *recv, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c,
            cudaStream_t s))

NCCL_API(ncclResult_t, AllReduce,
         (const void *send, void *recv, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c,
          cudaStream_t s))
{
    return submit("ncclAllReduce", {ALL_REDUCE, send, recv, n, t, op, 0, find_comm(c), s, true});
}
NCCL_ALIAS(ncclResult_t, AllReduce,
           (const void *send, void *recv, size_t n, ncclDataType_t t, ncclRedOp_t op, ncclComm_t c,
            cudaStream_t s))

NCCL_API(ncclResult_t, Reduce,
         (const void *send, void *recv, size_t n, ncclDataType_t t, ncclRedOp_t op, int root,
          ncclComm_t c, cudaStream_t s))
{
    return submit("ncclReduce", {REDUCE, send, recv, n, t, op, root, find_comm(c), s, true});
}
NCCL_ALIAS(ncclResult_t, Reduce,
           (const void *send, void *recv, size_t n, ncclDataType_t t, ncclRedOp_t op, int root,
            ncclComm_t c, cudaStream_t s))

NCCL_API(ncclResult_t, Broadcast,
         (const void *send, void *recv, size_t n, ncclDataType_t t, int root, ncclComm_t c,
          cudaStream_t s))
{
    return submit("ncclBroadcast",
                  {BROADCAST, send, recv, n, t, ncclSum, root, find_comm(c), s, true});
}
NCCL_ALIAS(ncclResult_t, Broadcast,
           (const void *send, void *recv, size_t n, ncclDataType_t t, int root, ncclComm_t c,
            cudaStream_t s))

NCCL_API(ncclResult_t, Bcast,
         (void *buffer, size_t n, ncclDataType_t t, int root, ncclComm_t c, cudaStream_t s))
{
    return submit("ncclBcast",
                  {BROADCAST, buffer, buffer, n, t, ncclSum, root, find_comm(c), s, true});
}
NCCL_ALIAS(ncclResult_t, Bcast,
           (void *buffer, size_t n, ncclDataType_t t, int root, ncclComm_t c, cudaStream_t s))

NCCL_API(ncclResult_t, AlltoAll,
         (const void *send, void *recv, size_t n, ncclDataType_t t, ncclComm_t c, cudaStream_t s))
{
    return submit("ncclAlltoAll", {ALLTOALL, send, recv, n, t, ncclSum, 0, find_comm(c), s, true});
}
NCCL_ALIAS(ncclResult_t, AlltoAll,
           (const void *send, void *recv, size_t n, ncclDataType_t t, ncclComm_t c, cudaStream_t s))

NCCL_API(ncclResult_t, Gather,
         (const void *send, void *recv, size_t n, ncclDataType_t t, int root, ncclComm_t c,
          cudaStream_t s))
{
    return submit("ncclGather", {GATHER, send, recv, n, t, ncclSum, root, find_comm(c), s, true});
}
NCCL_ALIAS(ncclResult_t, Gather,
           (const void *send, void *recv, size_t n, ncclDataType_t t, int root, ncclComm_t c,
            cudaStream_t s))

NCCL_API(ncclResult_t, Scatter,
         (const void *send, void *recv, size_t n, ncclDataType_t t, int root, ncclComm_t c,
          cudaStream_t s))
{
    return submit("ncclScatter", {SCATTER, send, recv, n, t, ncclSum, root, find_comm(c), s, true});
}
NCCL_ALIAS(ncclResult_t, Scatter,
           (const void *send, void *recv, size_t n, ncclDataType_t t, int root, ncclComm_t c,
            cudaStream_t s))
}
