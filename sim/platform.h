/*
 * platform.h - a cluster as a SimGrid platform: engines, memory and links of every GPU
 *
 * SimGrid holds one platform per process, so this is called once, in a child process.  Each GPU is
 * three hosts: 'gpu' sends, receives and is the codec's private engine (one codec second a second),
 * 'sm' its streaming multiprocessors (one whole-GPU second a second), 'hbm' its memory (bytes).
 * Links have no latency; alpha is charged by whoever starts a transfer.  All settings of SimGrid
 * that matter are set here and can be listed.  Flows (T1) and messages (T2) see the same hosts and
 * links under another model of SimGrid.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_SIM_PLATFORM_H
#define ZIPCCL_SIM_PLATFORM_H

#include "models/cluster.h"
#include "sim/result.h"

#include <simgrid/forward.h>

/* Work on 'gpu' and 'sm' hosts is given in seconds times this (SimGrid's precision is absolute). */
#define ZIPCCL_PLATFORM_SPEED 1e12

/* What runs on the platform, which decides SimGrid's model. */
enum zipccl_platform_kind {
    ZIPCCL_PLATFORM_FLOWS,   /* parallel tasks: ptask_L07 */
    ZIPCCL_PLATFORM_MESSAGES /* messages and kernels of their own: CM02 */
};

struct zipccl_platform {
    uint32_t ngpus;
    sg_host_t *gpu, *sm, *hbm; /* [ngpus] borrowed from SimGrid */
};

/*
 * Start SimGrid and load 'cluster'.  Once per process.
 * ZIPCCL_ERR_IO if the platform cannot be written to memory; ZIPCCL_ERR_NOMEM.
 */
zipccl_status zipccl_platform_load(const struct zipccl_cluster *cluster,
                                   enum zipccl_platform_kind kind, struct zipccl_platform *out,
                                   struct zipccl_error *error);
void zipccl_platform_release(struct zipccl_platform *platform);

/* The settings above, with SimGrid's version; 'n' entries, valid for ever. */
const struct zipccl_result_note *zipccl_platform_settings(enum zipccl_platform_kind kind,
                                                          size_t *n);

#endif
