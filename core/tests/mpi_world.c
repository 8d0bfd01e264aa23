/*
 * mpi_world.c - some of mpirun's processes as a world of the tests
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/mpi_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What the test itself exchanges goes beside the transport. */
static MPI_Comm beside = MPI_COMM_NULL;

void mpi_start(int *argc, char ***argv)
{
    int threads;

    if (MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &threads) != MPI_SUCCESS ||
        threads < MPI_THREAD_SERIALIZED) {
        fprintf(stderr, "MPI does not start with threads\n");
        exit(1);
    }
}

uint32_t mpi_rank(void)
{
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return (uint32_t)rank;
}

uint32_t mpi_size(void)
{
    int size;

    MPI_Comm_size(MPI_COMM_WORLD, &size);
    return (uint32_t)size;
}

static void wait_for(MPI_Request *request)
{
    static const struct timespec nap = {.tv_nsec = 50000};
    int done = 0;

    for (unsigned i = 0; MPI_Test(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && !done; i++)
        if (i % 16 == 15)
            nanosleep(&nap, NULL);
}

void mpi_meet(void)
{
    MPI_Request request;

    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    wait_for(&request);
}

static bool run(const struct world *w, rank_fn *fn, void *context)
{
    int mine = fn(context, mpi_rank()), all = 0;
    MPI_Request request;

    (void)w;
    MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_LAND, beside, &request);
    wait_for(&request);
    return all != 0;
}

static void share(const struct world *w, void *array, size_t element)
{
    MPI_Request request;

    (void)w;
    MPI_Iallgather(MPI_IN_PLACE, 0, MPI_BYTE, array, (int)element, MPI_BYTE, beside, &request);
    wait_for(&request);
}

static const struct world_kind mpi_kind = {.run = run, .share = share};

void mpi_world_open(struct world *w, uint32_t nranks, const uint32_t *node_ids,
                    const struct zipccl_transport_mpi_config *config)
{
    uint32_t self = mpi_rank(), ranks[MAX_RANKS];
    MPI_Group all, some;
    int range[1][3] = {{0, (int)nranks - 1, 1}};
    struct zipccl_error error = {""};

    if (nranks > MAX_RANKS || self >= nranks)
        abort();
    memset(w, 0, sizeof *w);
    w->kind = &mpi_kind;
    w->nranks = nranks;
    memcpy(w->node_ids, node_ids, nranks * sizeof *node_ids);
    for (uint32_t r = 0; r < nranks; r++)
        ranks[r] = r;
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_range_incl(all, 1, range, &some);
    if (MPI_Comm_create_group(MPI_COMM_WORLD, some, 1, &beside) != MPI_SUCCESS)
        abort();
    MPI_Group_free(&some);
    MPI_Group_free(&all);
    if (zipccl_topology_create(nranks, node_ids, &w->topology) != ZIPCCL_OK ||
        zipccl_exec_cpu_create(zipccl_isa_best(), &w->exec[self]) != ZIPCCL_OK)
        abort();
    if (zipccl_transport_mpi_create_group(MPI_COMM_WORLD, ranks, nranks, 2, w->topology, config,
                                          &w->t[self], &error) != ZIPCCL_OK) {
        fprintf(stderr, "rank %u: %s\n", self, error.text);
        abort();
    }
}

void mpi_world_close(struct world *w)
{
    uint32_t self = mpi_rank();

    w->exec[self]->ops->destroy(w->exec[self]);
    w->t[self]->ops->destroy(w->t[self]);
    zipccl_topology_destroy(w->topology);
    MPI_Comm_free(&beside);
}

void mpi_world_bytes(const struct world *w, uint64_t *bytes)
{
    uint32_t self = mpi_rank();

    for (uint32_t dst = 0; dst < w->nranks; dst++)
        bytes[(size_t)self * w->nranks + dst] = zipccl_transport_mpi_bytes(w->t[self], dst);
    share(w, bytes, w->nranks * sizeof *bytes);
}

void mpi_world_reset_bytes(const struct world *w)
{
    zipccl_transport_mpi_reset_bytes(w->t[mpi_rank()]);
}
