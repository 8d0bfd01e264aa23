/*
 * test_launch.c - which rank the variables of a launcher say, and what is refused
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/ranks/launch.h"

#include <criterion/criterion.h>
#include <string.h>

/* Variables as "NAME=value" strings, up to NULL. */
static const char *look_up(void *context, const char *name)
{
    size_t length = strlen(name);

    for (const char *const *v = context; *v != NULL; v++)
        if (strncmp(*v, name, length) == 0 && (*v)[length] == '=')
            return *v + length + 1;
    return NULL;
}

#define MAX_VARIABLES 8

struct row {
    const char *variables[MAX_VARIABLES];
    const char *launcher; /* NULL: none */
    uint32_t rank, size;
    int local_rank; /* -1: not told */
};

Test(launch, reads_the_variables_of_each_launcher)
{
    static const struct row rows[] = {
        {{"HOME=/root"}, NULL, 0, 1, -1},
        {{"RANK=3", "WORLD_SIZE=4", "LOCAL_RANK=1"}, "torchrun", 3, 4, 1},
        {{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_RANK=0"},
         "Open MPI",
         1,
         2,
         0},
        {{"PMI_RANK=5", "PMI_SIZE=8", "MPI_LOCALRANKID=5"}, "PMI", 5, 8, 5},
        {{"MV2_COMM_WORLD_RANK=0", "MV2_COMM_WORLD_SIZE=2", "MV2_COMM_WORLD_LOCAL_RANK=0"},
         "MVAPICH",
         0,
         2,
         0},
        {{"SLURM_PROCID=7", "SLURM_NTASKS=16", "SLURM_LOCALID=3"}, "Slurm", 7, 16, 3},
        /* A shell of salloc is no task. */
        {{"SLURM_NTASKS=16"}, NULL, 0, 1, -1},
        /* Two that agree. */
        {{"RANK=1", "WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2"},
         "torchrun",
         1,
         2,
         -1},
        /* srun has started mpirun's daemon, mpirun this process. */
        {{"SLURM_PROCID=0", "SLURM_NTASKS=2", "OMPI_COMM_WORLD_RANK=9", "OMPI_COMM_WORLD_SIZE=16"},
         "Open MPI",
         9,
         16,
         -1},
        {{"RANK=", "WORLD_SIZE="}, NULL, 0, 1, -1},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct zipccl_launch launch;
        struct zipccl_error error = {""};

        cr_assert_eq(
            zipccl_launch_read(look_up, (void *)(uintptr_t)rows[i].variables, &launch, &error),
            ZIPCCL_OK, "row %zu: %s", i, error.text);
        cr_expect_eq(launch.launcher == NULL, rows[i].launcher == NULL, "row %zu", i);
        if (launch.launcher != NULL && rows[i].launcher != NULL)
            cr_expect_str_eq(launch.launcher, rows[i].launcher, "row %zu", i);
        cr_expect(launch.rank == rows[i].rank && launch.size == rows[i].size, "row %zu: %u of %u",
                  i, launch.rank, launch.size);
        cr_expect_eq(launch.has_local ? (int)launch.local_rank : -1, rows[i].local_rank, "row %zu",
                     i);
    }
}

Test(launch, refuses_what_does_not_fit)
{
    static const struct {
        const char *variables[MAX_VARIABLES];
        const char *text; /* in the error */
    } rows[] = {
        {{"RANK=0"}, "WORLD_SIZE is not"},
        {{"WORLD_SIZE=4"}, "RANK is not"},
        {{"SLURM_PROCID=1"}, "SLURM_NTASKS is not"},
        {{"PMI_RANK=x", "PMI_SIZE=2"}, "PMI_RANK=\"x\""},
        {{"PMI_RANK=1", "PMI_SIZE=2.0"}, "PMI_SIZE=\"2.0\""},
        {{"PMI_RANK=-1", "PMI_SIZE=2"}, "PMI_RANK=\"-1\""},
        {{"PMI_RANK=1", "PMI_SIZE=99999999999"}, "whole number"},
        {{"RANK=4", "WORLD_SIZE=4"}, "RANK=4 is none of the ranks"},
        {{"RANK=0", "WORLD_SIZE=0"}, "none of the ranks"},
        {{"RANK=0", "WORLD_SIZE=1", "LOCAL_RANK=?"}, "LOCAL_RANK=\"?\""},
        {{"RANK=0", "WORLD_SIZE=4", "OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4"},
         "torchrun says rank 0 of 4, but Open MPI says rank 1 of 4"},
        {{"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=4", "PMI_RANK=1", "PMI_SIZE=2"},
         "Open MPI says rank 1 of 4, but PMI says rank 1 of 2"},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct zipccl_launch launch = {.size = 77};
        struct zipccl_error error = {""};

        cr_expect_eq(
            zipccl_launch_read(look_up, (void *)(uintptr_t)rows[i].variables, &launch, &error),
            ZIPCCL_ERR_INPUT, "row %zu", i);
        cr_expect(strstr(error.text, rows[i].text) != NULL, "row %zu: %s", i, error.text);
        cr_expect_eq(launch.size, 77, "row %zu: the result was touched", i);
    }
}

Test(launch, compares_with_the_world_that_mpi_sees)
{
    struct zipccl_launch alone = {.size = 1};
    struct zipccl_launch torchrun = {
        .launcher = "torchrun", .size_name = "WORLD_SIZE", .rank = 2, .size = 4};
    struct zipccl_error error = {""};

    cr_expect_eq(zipccl_launch_check_mpi(&alone, 3, 8, &error), ZIPCCL_OK);
    cr_expect_eq(zipccl_launch_check_mpi(&torchrun, 2, 4, &error), ZIPCCL_OK);
    cr_expect_eq(zipccl_launch_check_mpi(&torchrun, 0, 1, &error), ZIPCCL_ERR_INPUT);
    cr_expect(strstr(error.text, "torchrun has started 4 processes (WORLD_SIZE), but MPI sees a "
                                 "world of 1; torchrun cannot bring up MPI's ranks") != NULL,
              "%s", error.text);
    cr_expect_eq(zipccl_launch_check_mpi(&torchrun, 1, 4, &error), ZIPCCL_ERR_INPUT);
    cr_expect(strstr(error.text, "MPI that it is rank 1") != NULL, "%s", error.text);
    cr_expect_eq(zipccl_launch_check_alone(&alone, &error), ZIPCCL_OK);
    cr_expect_eq(zipccl_launch_check_alone(&torchrun, &error), ZIPCCL_ERR_INPUT);
    cr_expect(strstr(error.text, "--on mpi") != NULL, "%s", error.text);
    torchrun.size = 1;
    cr_expect_eq(zipccl_launch_check_alone(&torchrun, &error), ZIPCCL_OK);
}
