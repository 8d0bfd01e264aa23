/*
 * group.h - what happens between a thread's ncclGroupStart and the outermost ncclGroupEnd
 *
 * Calls that stay plain go to NCCL's own group at once.  Those that are compressed wait: collectives run
 * one after another, in the order of the calls, after NCCL's group; then all sends and receives of a
 * communicator together, compressed and plain ones, since they may need each other to progress.
 * Communicators take turns in an order that all ranks share.  All ranks of a communicator split their
 * calls into groups alike, as NCCL wants it, so none waits for another that has chosen otherwise.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_PRELOAD_GROUP_H
#define ZIPCCL_GPU_PRELOAD_GROUP_H

#include "gpu/preload/agree.h"
#include "gpu/preload/call.h"

/* Keep a collective for the end of the group. */
ncclResult_t zipccl_shim_group_add(struct zipccl_shim_comm *comm,
                                   const struct zipccl_shim_call *call);

/* Note that 'comm' had a collective in this group, for the control file. */
void zipccl_shim_group_touch(struct zipccl_shim_comm *comm);

/* A send or receive, in a group or not. */
ncclResult_t zipccl_shim_group_p2p(struct zipccl_shim_comm *comm,
                                   const struct zipccl_shim_call *call);

/* A communicator was asked for; it is settled now, or with the outermost GroupEnd. */
ncclResult_t zipccl_shim_group_birth(const struct zipccl_shim_birth *birth);

#endif
