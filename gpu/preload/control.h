/*
 * control.h - a file that switches compression off in a running job
 *
 * After every ZIPCCL_CONTROL_EVERY collectives of a communicator its rank 0 reads the file and starts a
 * broadcast of what it says; the others learn it as many calls later, when it has long arrived, and
 * all ranks stop compressing at that call.  Sends and receives are not counted, since not all ranks make
 * the same; a communicator that has nothing else is not switched.  There is no way back on.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_PRELOAD_CONTROL_H
#define ZIPCCL_GPU_PRELOAD_CONTROL_H

#include "gpu/preload/comms.h"

/* Stream and memory for it, if there is a file; false if this rank has none.  What there is goes with destroy. */
bool zipccl_shim_control_create(struct zipccl_shim_comm *comm);

/* After a collective, outside of groups; does something once in ZIPCCL_CONTROL_EVERY.  What fails
 * here fails the communicator, since the other ranks do not know of it. */
ncclResult_t zipccl_shim_control_step(struct zipccl_shim_comm *comm);

/* Release what it holds, in the communicator's device; 'abort': without waiting for the device. */
void zipccl_shim_control_destroy(struct zipccl_shim_comm *comm, bool abort);

#endif
