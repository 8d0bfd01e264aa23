/*
 * verify.h - compare compressed calls with what they should have done
 *
 * Every ZIPCCL_VERIFY-th compressed call of a communicator, counted alike on all ranks: moved data bit for
 * bit against plain NCCL; sums bit for bit against the plan's order, recomputed from the raw
 * contributions, and within the rounding bound of plain NCCL.  Of sends and receives every
 * ZIPCCL_VERIFY-th message of each pair and direction.  It waits for the device and works in windows.
 *
 * Calls whose inputs would not fit ZIPCCL_MEMORY a second time are not checked, and counted as such.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_PRELOAD_VERIFY_H
#define ZIPCCL_GPU_PRELOAD_VERIFY_H

#include "gpu/preload/call.h"

/* One check under way. */
struct zipccl_shim_check {
    void *d_input; /* copy of the input of a reduction, which may be in place */
    bool skip;
};

/* Before the call: keep what it may overwrite. */
ncclResult_t zipccl_shim_check_begin(struct zipccl_shim_check *check, struct zipccl_shim_comm *comm,
                                     const struct zipccl_shim_call *call);

/*
 * After it: 'result' is what it returned, and comes back if there is nothing to say.  A mismatch is
 * logged with communicator, op, count, rank and first index, and ends the process, or, with
 * ZIPCCL_VERIFY_ACTION=disable, compression on this communicator, on all its ranks.
 */
ncclResult_t zipccl_shim_check_end(struct zipccl_shim_check *check, struct zipccl_shim_comm *comm,
                                   const struct zipccl_shim_call *call, ncclResult_t result);

/*
 * Sends and receives: chosen messages go a second time, plain, over a communicator of their own and a
 * stream of their own, in the groups of the job.  So a check waits for no more than the job itself would;
 * it is made later, when both copies have arrived: at a later send or receive, or when the communicator
 * goes.  A mismatch ends the process in any case, since the other ranks cannot be told.
 */
struct zipccl_shim_messages;

/* True if settings ask for it and this NCCL can split communicators; alike on all ranks. */
bool zipccl_shim_messages_wanted(void);

/* What this rank needs for it; then, on all ranks, the communicator: collective over 'comm'.  False if
 * that failed; what there is goes with destroy.  All in the communicator's device. */
bool zipccl_shim_messages_prepare(struct zipccl_shim_comm *comm);
bool zipccl_shim_messages_create(struct zipccl_shim_comm *comm);
void zipccl_shim_messages_destroy(struct zipccl_shim_comm *comm, bool abort);

/* Only let those that wait for other ranks come back. */
void zipccl_shim_messages_abort(struct zipccl_shim_comm *comm);

/* After a group of messages. */
ncclResult_t zipccl_shim_check_p2p(struct zipccl_shim_comm *comm, const struct zipccl_gpu_p2p *ops,
                                   size_t nops, cudaStream_t stream);

/* A first difference, in words, for both of them; also told by ncclGetLastError(). */
struct zipccl_shim_difference {
    const char *what; /* "plain NCCL", "the plan's order" */
    const char *op;
    size_t count, index;
    int peer; /* whose data; -1: of all */
    const unsigned char *expected, *found;
    size_t size; /* bytes of an element */
};
void zipccl_shim_report_difference(struct zipccl_shim_comm *comm,
                                   const struct zipccl_shim_difference *difference);

/* The index of the first of 'n' elements of 'size' bytes that differs; n if none does. */
size_t zipccl_shim_first_difference(const void *a, const void *b, size_t n, size_t size);

#endif
