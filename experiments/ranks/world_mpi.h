/*
 * world_mpi.h - worlds whose ranks are the processes of an MPI job
 *
 * Apart from world.h, so that programs without MPI do not link it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_WORLD_MPI_H
#define ZIPCCL_EXPERIMENTS_WORLD_MPI_H

#include "experiments/ranks/world.h"

/*
 * Open the world of all processes; for 'open_mpi' of zipccl_world_options.  Initialises MPI, once a
 * program.  Nodes are the hosts that processes run on, as MPI and the host's name tell.
 *
 * A process that ends without having closed its world, or after a failure in it, ends the whole job
 * by MPI_Abort when it exits, after its output is written: no other process waits for it.
 *
 * ZIPCCL_ERR_INPUT if the variables of a launcher and MPI's world do not fit.
 */
zipccl_status zipccl_world_open_mpi(const struct zipccl_world_options *options,
                                    struct zipccl_world **out, struct zipccl_error *error);

#endif
