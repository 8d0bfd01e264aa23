/*
 * engine.h - the back end that compresses, a library of its own that is loaded when it is needed
 *
 * Only mode on needs kernels and a CUDA runtime of its own; so what is preloaded has neither, and
 * libzipccl-nccl.so, which has both, is looked for beside it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_PRELOAD_ENGINE_H
#define ZIPCCL_GPU_PRELOAD_ENGINE_H

#include "gpu/preload/back_end.h"
#include "gpu/preload/comms.h"

/* True if the back end can be used; else 'why' tells what is missing. */
bool zipccl_shim_engine_available(char *why, size_t room);

/* Its functions; only after zipccl_shim_engine_available() said so. */
const struct zipccl_shim_back_end *zipccl_shim_engine_table(void);

/*
 * Create the back end's communicator over 'comm'; collective.  False, with the reason in 'error', if this
 * rank has none; others may have one.  *because: another rank failed, which has its own reason.
 */
bool zipccl_shim_engine_create(struct zipccl_shim_comm *comm, struct zipccl_error *error,
                               bool *because);

/*
 * Fold its statistics into 'comm' and destroy it; 'abort': without waiting for what is under way, its memory
 * goes with zipccl_shim_engine_reap(), and a call that stays inside NCCL for seconds keeps the engine until the
 * process ends.
 */
void zipccl_shim_engine_destroy(struct zipccl_shim_comm *comm, bool abort);

/*
 * Keep its statistics with the counts of 'comm'; by the thread that has made a call, before it lets another
 * one in.  So those who print them, at any time, need not look into a back end that works.
 */
void zipccl_shim_engine_note(struct zipccl_shim_comm *comm);

/*
 * Destroy those of 'device' that were aborted, once no communicator is left there: to free device memory is to
 * wait for the device, which another communicator, that nobody has aborted yet, may keep busy for ever.
 */
void zipccl_shim_engine_reap(int device);

/* What NCCL would call 'status'. */
ncclResult_t zipccl_shim_engine_result(zipccl_status status);

/* The same for what a call into the back end of 'comm' returned, whose text is kept for ncclGetLastError(). */
ncclResult_t zipccl_shim_engine_said(struct zipccl_shim_comm *comm, zipccl_status status);

#endif
