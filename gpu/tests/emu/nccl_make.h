/*
 * nccl_make.h - how the double's API functions make communicators
 *
 * Private to nccl_comm.cpp and nccl_api_comm.cpp.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_TESTS_EMU_NCCL_MAKE_H
#define ZIPCCL_GPU_TESTS_EMU_NCCL_MAKE_H

#include "gpu/tests/emu/nccl_state.h"

namespace emu
{
void list_comm(const CommRef &c);
void unlist_comm(ncclComm_t c);

/* Map and announce; the communicator counts as made when finish_joining() has seen all ranks. */
ncclResult_t make_comm(CommRef *out, const std::string &name, int rank, int nranks);
uint32_t publish_split(ncclComm *parent, int color, int key);

/* Text of the last error of 'handle', or of this thread. */
const char *last_text(ncclComm_t handle);
} // namespace emu

#endif
