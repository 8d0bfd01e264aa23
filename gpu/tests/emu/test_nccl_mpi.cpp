/*
 * test_nccl_mpi.cpp - the NCCL double between processes; MPI only starts them and carries the id
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include "gpu/tests/emu/check.h"
#include "gpu/tests/emu/nccl_rank.h"

int main(int argc, char **argv)
{
    int rank, n;
    ncclUniqueId id;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &n);
    if (rank == 0) {
        CHECK_OK(ncclGetUniqueId(&id));
    }
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    nccl_rank(rank, n, &id);
    int mine = check_failures, all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return rank == 0 ? check_result("nccl between processes") : all != 0;
}
