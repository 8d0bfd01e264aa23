/*
 * real_world.c - the world that a command line asks for: threads, or a launcher's processes
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/real_world.h"

#include <unistd.h>

static uint32_t processors(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    return n > 2 ? (uint32_t)n : 2;
}

zipccl_status zipccl_real_world_open(const struct zipccl_real_world *wanted,
                                     struct zipccl_world **out, struct zipccl_error *error)
{
    struct zipccl_world_options options = {.kind = ZIPCCL_WORLD_THREADS,
                                           .nthreads = wanted->nthreads,
                                           .ranks_per_node = wanted->ranks_per_node,
                                           .timeout_s = wanted->timeout_s};

    if (wanted->on == ZIPCCL_ON_MPI)
        options.kind = ZIPCCL_WORLD_MPI;
    if (options.nthreads == 0)
        options.nthreads = processors();
    return zipccl_world_open(&options, out, error);
}
