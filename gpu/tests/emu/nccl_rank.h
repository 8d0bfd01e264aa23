/*
 * nccl_rank.h - what one rank does to try the NCCL double; the same in threads and in processes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_TESTS_EMU_NCCL_RANK_H
#define ZIPCCL_GPU_TESTS_EMU_NCCL_RANK_H

#include <nccl.h>

/*
 * Every collective and grouped sends and receives on int32, eager and captured, in place and not,
 * a split communicator, and the bytes on the wire.  Failures are counted by check.h.
 */
void nccl_rank(int rank, int nranks, const ncclUniqueId *id);

/* Reductions of every type: sum, product, max, min, average and PreMulSum against known values. */
void nccl_rank_types(int rank, int nranks, const ncclUniqueId *id);

#endif
