/*
 * mpi_world.h - some of mpirun's processes as a world of the tests
 *
 * Test code.  Each process has the handle of its own rank alone, in its place of the world's arrays;
 * world_run() calls the function for that rank and says on every rank whether all were well.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_TESTS_MPI_WORLD_H
#define ZIPCCL_CORE_TESTS_MPI_WORLD_H

#include "core/tests/coll_world.h"
#include "core/transport_mpi.h"

/* Initialise MPI for the transport; ends the program where that does not do. */
void mpi_start(int *argc, char ***argv);

/* This process in MPI_COMM_WORLD. */
uint32_t mpi_rank(void);
uint32_t mpi_size(void);

/* Wait for all processes without taking their cores. */
void mpi_meet(void);

/* Open the world of processes 0 to nranks - 1, which alone may call. */
void mpi_world_open(struct world *w, uint32_t nranks, const uint32_t *node_ids,
                    const struct zipccl_transport_mpi_config *config);
void mpi_world_close(struct world *w);

/* Bytes between all ranks since the last reset; collective over the world. */
void mpi_world_bytes(const struct world *w, uint64_t *bytes);
void mpi_world_reset_bytes(const struct world *w);

#endif
