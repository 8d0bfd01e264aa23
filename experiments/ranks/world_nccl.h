/*
 * world_nccl.h - worlds whose ranks each have a GPU and talk by NCCL
 *
 * Apart from world.h, so that programs without NCCL do not link it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_WORLD_NCCL_H
#define ZIPCCL_EXPERIMENTS_WORLD_NCCL_H

#include "experiments/ranks/world.h"

/*
 * What opens such worlds, for 'open_nccl' of zipccl_world_options; NULL in programs that are not linked with
 * NCCL (world_no_nccl.c).
 *
 * Under a launcher a rank is a process, and its GPU the one of its local rank; NCCL's id comes by
 * rendezvous.h.  Without one the ranks are threads, 'nthreads' of them, 0: one a GPU.  Nodes are hosts.
 *
 * ZIPCCL_ERR_INPUT if there are fewer GPUs than ranks on this host, or none.
 */
zipccl_world_open_fn *zipccl_world_nccl_opener(void);

#endif
