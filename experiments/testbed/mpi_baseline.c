/*
 * mpi_baseline.c - MPI's blocking collectives, timed without any code of zipccl's transports
 *
 * mpi_baseline OP BYTES ITERATIONS: what each rank sends is BYTES (of all_gather: its block).  For
 * measure.sh: the nonblocking collectives that the transport offers as native have other algorithms,
 * and the comparison is with the better of both.  bf16 sums by an operator that converts and rounds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/reduce.h"

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_bf16(void *in, void *inout, int *n, MPI_Datatype *type)
{
    const void *sources[2] = {in, inout};

    (void)type;
    zipccl_reduce(ZIPCCL_BFLOAT16, ZIPCCL_SUM, sources, 2, (size_t)*n, inout);
}

static int call(const char *op, void *send, void *recv, int nbytes, int nranks, MPI_Op add)
{
    if (strcmp(op, "all_gather") == 0)
        return MPI_Allgather(send, nbytes, MPI_BYTE, recv, nbytes, MPI_BYTE, MPI_COMM_WORLD);
    if (strcmp(op, "alltoall") == 0)
        return MPI_Alltoall(send, nbytes / nranks, MPI_BYTE, recv, nbytes / nranks, MPI_BYTE,
                            MPI_COMM_WORLD);
    if (strcmp(op, "reduce_scatter") == 0)
        return MPI_Reduce_scatter_block(send, recv, nbytes / 2 / nranks, MPI_UINT16_T, add,
                                        MPI_COMM_WORLD);
    if (strcmp(op, "all_reduce") == 0)
        return MPI_Allreduce(send, recv, nbytes / 2, MPI_UINT16_T, add, MPI_COMM_WORLD);
    return MPI_ERR_ARG;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

/* A whole number from 1 to 'most', or 0. */
static int parse(const char *text, long most)
{
    char *end;
    long n = strtol(text, &end, 10);

    return *end == '\0' && n >= 1 && n <= most ? (int)n : 0;
}

/* Times of the slowest rank; the first call is not counted. */
static int measure(const char *op, int nbytes, int niters, double *times)
{
    int rank, nranks, rc = MPI_SUCCESS;
    char *send, *recv;
    MPI_Op add;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    send = malloc((size_t)nbytes);
    recv = malloc((size_t)nbytes * (size_t)nranks);
    if (send == NULL || recv == NULL)
        return MPI_ERR_NO_MEM;
    for (int i = 0; i < nbytes; i++)
        send[i] = (char)(i * 7 + rank);
    memset(recv, 0, (size_t)nbytes * (size_t)nranks);
    MPI_Op_create(add_bf16, 1, &add);
    for (int i = -1; i < niters && rc == MPI_SUCCESS; i++) {
        double start, took, slowest;

        MPI_Barrier(MPI_COMM_WORLD);
        start = MPI_Wtime();
        rc = call(op, send, recv, nbytes, nranks, add);
        took = MPI_Wtime() - start;
        MPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        if (i >= 0)
            times[i] = slowest;
    }
    MPI_Op_free(&add);
    free(send);
    free(recv);
    return rc;
}

int main(int argc, char **argv)
{
    int nbytes = argc == 4 ? parse(argv[2], 1L << 30) : 0;
    int niters = argc == 4 ? parse(argv[3], 1000) : 0, rank, nranks;
    double times[1000];

    if (nbytes == 0 || niters == 0) {
        fprintf(stderr, "usage: mpi_baseline OP BYTES ITERATIONS, at most 2^30 and 1000\n");
        return 2;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    if (nbytes % (2 * nranks) != 0 || measure(argv[1], nbytes, niters, times) != MPI_SUCCESS) {
        fprintf(stderr, "mpi_baseline: %s of %d bytes on %d ranks cannot be measured\n", argv[1],
                nbytes, nranks);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    qsort(times, (size_t)niters, sizeof *times, by_value);
    if (rank == 0)
        printf("{\"op\": \"%s\", \"nbytes\": %d, \"nranks\": %d, \"iters\": %d, \"time_s\": %.6f, "
               "\"time_min_s\": %.6f, \"time_max_s\": %.6f}\n",
               argv[1], nbytes, nranks, niters, times[niters / 2], times[0], times[niters - 1]);
    MPI_Finalize();
    return 0;
}
