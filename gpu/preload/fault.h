/*
 * fault.h - the text of a failure that was this library's own, for ncclGetLastError()
 *
 * As NCCL has one text of the last thing that went wrong, each thread has one here, and each communicator.  It
 * is gone as soon as NCCL itself fails in that thread or on that communicator, since NCCL's text is then the
 * last one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_PRELOAD_FAULT_H
#define ZIPCCL_GPU_PRELOAD_FAULT_H

#include "gpu/preload/comms.h"

/* Keep a text; 'comm' may be NULL.  Returns 'result'. */
ncclResult_t zipccl_shim_fault(struct zipccl_shim_comm *comm, ncclResult_t result,
                               const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The failure of 'comm' that it keeps is this thread's last one too.  Returns 'result'. */
ncclResult_t zipccl_shim_fault_again(struct zipccl_shim_comm *comm, ncclResult_t result);

/* NCCL returned 'result' for a call on 'comm' (may be NULL).  Returns it. */
ncclResult_t zipccl_shim_nccl_said(struct zipccl_shim_comm *comm, ncclResult_t result);

/*
 * The text of the last failure, if that was ours; else NULL.  Of 'comm', or, if that is NULL, of this thread.
 * Valid until this thread's next call.
 */
const char *zipccl_shim_fault_text(struct zipccl_shim_comm *comm);

#endif
