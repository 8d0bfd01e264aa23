/*
 * shim.h - the process's own state: settings, mode, the thread's guard against calling itself
 *
 * NCCL functions that are taken over look like this: off, or within a call of ours (a real library calls
 * some of its own functions by their public names), they forward; else they count, decide and act.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_PRELOAD_SHIM_H
#define ZIPCCL_GPU_PRELOAD_SHIM_H

#include "gpu/preload/real.h"
#include "gpu/preload/settings.h"

#define ZIPCCL_SHIM_EXPORT __attribute__((visibility("default")))

struct zipccl_shim {
    struct zipccl_shim_settings settings;
    uint64_t digest;
    bool active; /* a mode other than OFF, and nobody else does the work */
    int pid; /* of the process that made communicators, not of one that it forked; 0: none yet */
};

/* Filled before main(); not changed afterwards but for 'active'. */
extern struct zipccl_shim zipccl_shim;

/* What this thread is doing; initial-exec, since it is read on every call. */
struct zipccl_shim_thread {
    int inside; /* calls of ours on the stack */
    int depth;  /* groups that are open */
};
extern __thread struct zipccl_shim_thread zipccl_shim_thread
    __attribute__((tls_model("initial-exec")));

/* True if a function that is taken over should only forward. */
static inline bool zipccl_shim_forwards(void)
{
    return !zipccl_shim.active || zipccl_shim_thread.inside > 0;
}

/* The line at the start of the process, when the first communicator is made; later calls do nothing. */
void zipccl_shim_say_hello(void);

/* Called by a preloaded copy of this library that found this one to be the NCCL it forwards to. */
ZIPCCL_SHIM_EXPORT void zipccl_shim_stand_aside(void);

#endif
