/*
 * launch.h - which rank a launcher has made of this process, from the variables it sets
 *
 * torchrun, Open MPI's mpirun, MPICH and PMI, Slurm's srun, MVAPICH.  It starts nothing and asks no MPI:
 * it tells what the launcher believes, so that a program that sees something else can say so.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_LAUNCH_H
#define ZIPCCL_EXPERIMENTS_LAUNCH_H

#include "core/status.h"

#include <stdbool.h>
#include <stdint.h>

struct zipccl_launch {
    const char *launcher;  /* "torchrun", "Open MPI", ...; NULL: started without one */
    const char *size_name; /* the variable that 'size' is from */
    uint32_t rank, size;   /* without a launcher 0 of 1 */
    bool has_local;        /* the launcher says which process of its host this is: */
    uint32_t local_rank;
};

/* As getenv(); NULL if 'name' is not set. */
typedef const char *zipccl_launch_lookup_fn(void *context, const char *name);

/*
 * Read the variables.  Where several launchers have set theirs they must agree; Slurm's may differ
 * beside another launcher's, which srun or sbatch has then started.
 *
 * ZIPCCL_ERR_INPUT if a variable is no number, is missing beside its partner, or disagrees.
 */
zipccl_status zipccl_launch_read(zipccl_launch_lookup_fn *lookup, void *context,
                                 struct zipccl_launch *out, struct zipccl_error *error);

/* The same from this process's environment. */
zipccl_status zipccl_launch_from_environment(struct zipccl_launch *out, struct zipccl_error *error);

/*
 * Compare with the world that MPI has made: ZIPCCL_ERR_INPUT, and what to do, if the launcher has
 * started other ranks than MPI sees.
 */
zipccl_status zipccl_launch_check_mpi(const struct zipccl_launch *launch, uint32_t rank,
                                      uint32_t size, struct zipccl_error *error);

/* ZIPCCL_ERR_INPUT if the launcher has started several processes for a program that makes its ranks
 * itself, each of which would then do the whole work. */
zipccl_status zipccl_launch_check_alone(const struct zipccl_launch *launch,
                                        struct zipccl_error *error);

#endif
