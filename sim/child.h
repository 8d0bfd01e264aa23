/*
 * child.h - work in child processes, results through pipes
 *
 * SimGrid holds one platform per process and its clock never goes back, so every simulation runs
 * in a child of its own.  A child inherits what the parent has in memory and hands back one block
 * of bytes; it shares nothing else.  It is killed when the thread that started it ends, by a signal
 * too: no simulation outlives its replay.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_SIM_CHILD_H
#define ZIPCCL_SIM_CHILD_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

/* One piece of work. */
struct zipccl_child_task {
    /* Runs in the child: fill 'result', [nbytes], zeroed before. */
    zipccl_status (*work)(void *context, void *result, struct zipccl_error *error);
    void *context;
    void *result; /* parent's memory, [nbytes] */
    size_t nbytes;
};

/*
 * Run 'ntasks' tasks, at most 'nprocs' at once, and wait for all.
 *
 * finished  called in the parent after each one, with how many are done; NULL if not wanted
 * The status and text of the first task that failed, which ends the others; ZIPCCL_ERR_INTERNAL if
 * a child died.
 */
zipccl_status zipccl_child_run(struct zipccl_child_task *tasks, uint32_t ntasks, uint32_t nprocs,
                               void (*finished)(void *context, uint32_t ndone), void *context,
                               struct zipccl_error *error);

/* How a task failed; ZIPCCL_OK: it did not. */
struct zipccl_child_failure {
    zipccl_status status;
    struct zipccl_error error;
};

/*
 * The same, where a task that fails or dies ends no other: how goes to 'failures' [ntasks], and the status
 * tells only whether children could be started at all.
 */
zipccl_status zipccl_child_run_each(struct zipccl_child_task *tasks, uint32_t ntasks,
                                    uint32_t nprocs, struct zipccl_child_failure *failures,
                                    void (*finished)(void *context, uint32_t ndone), void *context,
                                    struct zipccl_error *error);

#endif
