/*
 * agree.h - what the ranks of a new communicator tell each other before anything may be compressed
 *
 * One ncclAllGather of a small record when a communicator is made: settings, host, number in the job.
 * A rank joins only where it knows that all do: the rank that made the unique id has put a mark into
 * its last bytes, which NCCL leaves zero, and a child's members are those of a communicator that has
 * agreed.  A rank of this library that is off joins too, to say so, and forgets the communicator.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_PRELOAD_AGREE_H
#define ZIPCCL_GPU_PRELOAD_AGREE_H

#include "gpu/preload/comms.h"

/* A communicator that was asked for and may not exist before the outermost GroupEnd. */
struct zipccl_shim_birth {
    ncclComm_t *handle;            /* where NCCL puts it */
    uint64_t uid;                  /* 0: no mark */
    enum zipccl_shim_reason plain; /* known before: NONBLOCKING, STRANGER, of the parent */
    char name[64];
    int rank, nranks, device; /* as far as known: of one that does not block yet */
};

/* Put the mark of this process into 'id', made by this rank; nothing if its last bytes are in use. */
void zipccl_shim_mark(ncclUniqueId *id);

/* The number in the marks of 'ids' [n]; 0 if one has none. */
uint64_t zipccl_shim_marked(const ncclUniqueId *ids, int n);

/* A number that no other communicator has, from one that the ranks share and how it came about. */
uint64_t zipccl_shim_derive(uint64_t uid, uint64_t step, uint64_t detail);

/*
 * Take in the births of this thread that NCCL has finished: records, and agreement where there can be.
 * Each call moves data on all of them at once; the result is what the caller of NCCL gets.
 */
ncclResult_t zipccl_shim_settle(const struct zipccl_shim_birth *births, size_t n);

#endif
