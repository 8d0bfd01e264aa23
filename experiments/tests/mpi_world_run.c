/*
 * mpi_world_run.c - a world of MPI's processes: nodes, groups, failures, exit codes
 *
 * Run by test_world_mpi.sh under mpirun: "mpi_world_run MODE", where MODE is what happens: ok (all is
 * well; prints what rank 0 sees), fail (rank 1's function fails), leave (rank 1 exits with its world
 * open), late (rank 1 does not come, limit 0.3 s).
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/ranks/world_mpi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *mode;

static zipccl_status fn(struct zipccl_transport *t, void *arg)
{
    uint32_t *all = arg, mine = 100 + t->rank;

    if (t->rank == 1 && strcmp(mode, "fail") == 0)
        return ZIPCCL_ERR_CORRUPT;
    if (t->rank == 1 && strcmp(mode, "leave") == 0)
        exit(0);
    if (t->rank == 1 && strcmp(mode, "late") == 0)
        for (;;) /* until the job ends */
            pause();
    return zipccl_world_gather(t, &mine, sizeof mine, all);
}

/* The odd ranks in falling order, as a group of their own. */
static zipccl_status odd_group(struct zipccl_world *world, struct zipccl_error *error)
{
    struct zipccl_transport *mine;
    uint32_t ranks[16], n = 0, all[16], self = world->first;

    for (uint32_t r = world->nranks; r-- > 0;)
        if (r % 2 == 1)
            ranks[n++] = r;
    if (n == 0)
        return ZIPCCL_OK;
    ZIPCCL_TRY(zipccl_world_group(world, ranks, n, &mine, error));
    if ((mine != NULL) != (self % 2 == 1))
        return zipccl_fail(error, ZIPCCL_ERR_INTERNAL, "rank %u: member or not?", self);
    if (mine == NULL)
        return ZIPCCL_OK;
    if (mine->nranks != n || ranks[mine->rank] != self)
        return zipccl_fail(error, ZIPCCL_ERR_INTERNAL, "rank %u is %u in its group", self,
                           mine->rank);
    ZIPCCL_TRY(zipccl_world_gather(mine, &self, sizeof self, all));
    return memcmp(all, ranks, n * sizeof *all) == 0
               ? ZIPCCL_OK
               : zipccl_fail(error, ZIPCCL_ERR_INTERNAL, "rank %u: wrong data in a group", self);
}

int main(int argc, char **argv)
{
    struct zipccl_world_options options = {
        .kind = ZIPCCL_WORLD_MPI, .timeout_s = 60, .open_mpi = zipccl_world_open_mpi};
    struct zipccl_world *world;
    struct zipccl_error error = {""};
    uint32_t all[16];
    zipccl_status status;

    mode = argc > 1 ? argv[1] : "ok";
    if (strcmp(mode, "late") == 0)
        options.timeout_s = 0.3;
    if (argc > 2)
        options.ranks_per_node = (uint32_t)strtoul(argv[2], NULL, 10);
    status = zipccl_world_open(&options, &world, &error);
    if (status != ZIPCCL_OK) {
        fprintf(stderr, "mpi_world_run: %s\n", error.text);
        return 2;
    }
    status = zipccl_world_run(world, fn, all, &error);
    for (uint32_t r = 0; status == ZIPCCL_OK && r < world->nranks; r++)
        if (all[r] != 100 + r)
            status = zipccl_fail(&error, ZIPCCL_ERR_INTERNAL, "wrong data from rank %u", r);
    if (status == ZIPCCL_OK)
        status = odd_group(world, &error);
    if (status != ZIPCCL_OK)
        fprintf(stderr, "mpi_world_run: %s\n", error.text);
    else if (world->first == 0)
        printf("%u ranks on %u nodes\n", world->nranks, world->topology->nnodes);
    zipccl_world_close(world);
    return status == ZIPCCL_OK ? 0 : 1;
}
