/*
 * kernels.h - T1: compute kernels on the SMs and memory of simulated GPUs
 *
 * A kernel that has its GPU to itself ends when its time is over: nothing has to be solved for that,
 * and kernels of one op that start together share one timer.  Only one that meets another kernel or
 * codec work becomes a parallel task, from there on, for the work that is left.
 * It times no collective.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_SIM_KERNELS_H
#define ZIPCCL_SIM_KERNELS_H

#include "core/status.h"
#include "sim/platform.h"

#include <simgrid/semaphore.h>
#include <stddef.h>
#include <stdint.h>

struct zipccl_kernels;

/* What a kernel does. */
struct zipccl_kernel_work {
    double sm_s;      /* all SMs for so long */
    double hbm_bytes; /* memory traffic */
    double alone_s;   /* the longer of the two, > 0 */
};

/* 'platform' must outlive it.  ZIPCCL_ERR_NOMEM */
zipccl_status zipccl_kernels_create(const struct zipccl_platform *platform, size_t nops,
                                    struct zipccl_kernels **out);
void zipccl_kernels_destroy(struct zipccl_kernels *kernels);

/*
 * Run 'work' of op 'op' on 'gpu' to its end; inside a simulated actor.
 *
 * wake  of the actor, at 0 and used by nothing else meanwhile; at 0 again afterwards
 * ZIPCCL_ERR_NOMEM
 */
zipccl_status zipccl_kernels_run(struct zipccl_kernels *kernels, size_t op, uint32_t gpu,
                                 const struct zipccl_kernel_work *work, sg_sem_t wake);

/* Codec work on 'gpu' is about to begin, and has ended; they nest. */
void zipccl_kernels_disturb(struct zipccl_kernels *kernels, uint32_t gpu);
void zipccl_kernels_calm(struct zipccl_kernels *kernels, uint32_t gpu);

#endif
