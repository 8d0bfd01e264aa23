/*
 * launch.c - variables of launchers, in the order in which they are asked
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/ranks/launch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct variables {
    const char *launcher, *rank, *size, *local_rank;
    bool may_be_outer; /* its variables are inherited by what another launcher starts under it */
};

static const struct variables launchers[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", false},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     false},
    {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", false},
    {"MVAPICH", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK", false},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", true},
};

struct environment {
    zipccl_launch_lookup_fn *lookup;
    void *context;
};

static const char *get(const struct environment *env, const char *name)
{
    const char *value = env->lookup(env->context, name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* A whole number that fits 31 bits, digits alone. */
static zipccl_status parse(const char *name, const char *text, uint32_t *out,
                           struct zipccl_error *error)
{
    char *end;
    unsigned long value;

    errno = 0;
    value = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value > INT32_MAX)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s=\"%.40s\": expected a whole number", name,
                           text);
    *out = (uint32_t)value;
    return ZIPCCL_OK;
}

/* '*out' with a launcher if its variables are there. */
static zipccl_status read_one(const struct environment *env, const struct variables *v,
                              struct zipccl_launch *out, struct zipccl_error *error)
{
    const char *rank = get(env, v->rank), *size = get(env, v->size), *local;
    struct zipccl_launch launch = {.launcher = v->launcher, .size_name = v->size};

    *out = (struct zipccl_launch){.size = 1};
    /* Slurm tells the number of tasks to a batch script as well, which is none of them. */
    if (rank == NULL && (size == NULL || v->may_be_outer))
        return ZIPCCL_OK;
    if (rank == NULL || size == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s is set, but %s is not: %s sets both",
                           rank != NULL ? v->rank : v->size, rank != NULL ? v->size : v->rank,
                           v->launcher);
    ZIPCCL_TRY(parse(v->rank, rank, &launch.rank, error));
    ZIPCCL_TRY(parse(v->size, size, &launch.size, error));
    if (launch.rank >= launch.size)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s=%u is none of the ranks of %s=%u", v->rank,
                           launch.rank, v->size, launch.size);
    local = get(env, v->local_rank);
    if (local != NULL) {
        ZIPCCL_TRY(parse(v->local_rank, local, &launch.local_rank, error));
        launch.has_local = true;
    }
    *out = launch;
    return ZIPCCL_OK;
}

zipccl_status zipccl_launch_read(zipccl_launch_lookup_fn *lookup, void *context,
                                 struct zipccl_launch *out, struct zipccl_error *error)
{
    struct environment env = {lookup, context};
    struct zipccl_launch found = {.size = 1};

    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        struct zipccl_launch one;

        if (launchers[i].may_be_outer && found.launcher != NULL)
            continue;
        ZIPCCL_TRY(read_one(&env, &launchers[i], &one, error));
        if (one.launcher == NULL)
            continue;
        if (found.launcher != NULL && (found.rank != one.rank || found.size != one.size))
            return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                               "%s says rank %u of %u, but %s says rank %u of %u; unset the "
                               "variables of the one that did not start this process",
                               found.launcher, found.rank, found.size, one.launcher, one.rank,
                               one.size);
        if (found.launcher == NULL)
            found = one;
    }
    *out = found;
    return ZIPCCL_OK;
}

static const char *from_environment(void *context, const char *name)
{
    (void)context;
    return getenv(name);
}

zipccl_status zipccl_launch_from_environment(struct zipccl_launch *out, struct zipccl_error *error)
{
    return zipccl_launch_read(from_environment, NULL, out, error);
}

/* How to start this program so that MPI sees what the launcher has started. */
static const char *remedy(const struct zipccl_launch *launch)
{
    if (strcmp(launch->launcher, "torchrun") == 0)
        return "torchrun cannot bring up MPI's ranks: start them with mpirun, or with srun "
               "--mpi=pmix";
    if (strcmp(launch->launcher, "Slurm") == 0)
        return "srun has to bring up MPI: use srun --mpi=pmix, or mpirun inside the allocation";
    if (strcmp(launch->launcher, "Open MPI") == 0)
        return "this program is built with another Open MPI than the mpirun that started it, or "
               "was started by a process of its own";
    return "this program is built with Open MPI: start it with Open MPI's mpirun";
}

zipccl_status zipccl_launch_check_mpi(const struct zipccl_launch *launch, uint32_t rank,
                                      uint32_t size, struct zipccl_error *error)
{
    if (launch->launcher == NULL || (launch->size == size && launch->rank == rank))
        return ZIPCCL_OK;
    if (launch->size != size)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%s has started %u processes (%s), but MPI sees a world of %u; %s",
                           launch->launcher, launch->size, launch->size_name, size, remedy(launch));
    return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                       "%s says that this is rank %u of %u, MPI that it is rank %u",
                       launch->launcher, launch->rank, size, rank);
}

zipccl_status zipccl_launch_check_alone(const struct zipccl_launch *launch,
                                        struct zipccl_error *error)
{
    if (launch->launcher == NULL || launch->size == 1)
        return ZIPCCL_OK;
    return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                       "%s has started %u processes (%s), and each of them would run all ranks as "
                       "threads: give --on mpi, or start it once",
                       launch->launcher, launch->size, launch->size_name);
}
