/*
 * nccl_linked.c - the table of the NCCL that a program is linked with
 *
 * Apart from the rest, so that a shim does not link it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/nccl_api.h"

static const struct zipccl_nccl_api linked = {
    .GetVersion = ncclGetVersion,
    .GetErrorString = ncclGetErrorString,
    .GetLastError = ncclGetLastError,
    .CommCount = ncclCommCount,
    .CommUserRank = ncclCommUserRank,
    .CommCuDevice = ncclCommCuDevice,
    .CommGetAsyncError = ncclCommGetAsyncError,
    .CommAbort = ncclCommAbort,
    .CommDestroy = ncclCommDestroy,
    .GroupStart = ncclGroupStart,
    .GroupEnd = ncclGroupEnd,
    .Send = ncclSend,
    .Recv = ncclRecv,
    .AllGather = ncclAllGather,
    .ReduceScatter = ncclReduceScatter,
    .AllReduce = ncclAllReduce,
    .Broadcast = ncclBroadcast,
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 28, 0)
    .AlltoAll = ncclAlltoAll,
#endif
    .CommSplit = ncclCommSplit,
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
    .MemAlloc = ncclMemAlloc,
    .MemFree = ncclMemFree,
    .CommRegister = ncclCommRegister,
    .CommDeregister = ncclCommDeregister,
#endif
};

const struct zipccl_nccl_api *zipccl_nccl_linked(void)
{
    return &linked;
}
