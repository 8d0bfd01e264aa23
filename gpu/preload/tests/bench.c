/*
 * bench.c - what a call costs that the preloaded library only passes on or counts
 *
 * bench [CALLS]   ncclAllGather on a library that does nothing (null_nccl.c), ns a call: eleven rounds,
 *                 median and spread.  Run it with and without the preloaded library; bench.sh does.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 11 };

static double now(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
    long calls = argc > 1 ? atol(argv[1]) : 1000000;
    double ns[ROUNDS], start;
    ncclUniqueId id;
    ncclComm_t comm;

    if (calls < 1 || ncclGetUniqueId(&id) != ncclSuccess ||
        ncclCommInitRank(&comm, 2, id, 0) != ncclSuccess)
        return 2;
    for (int r = 0; r < ROUNDS; r++) {
        start = now();
        for (long i = 0; i < calls; i++)
            (void)ncclAllGather(NULL, NULL, 1 << 20, ncclBfloat16, comm, NULL);
        ns[r] = (now() - start) / (double)calls;
    }
    qsort(ns, ROUNDS, sizeof ns[0], by_value);
    printf("%.1f ns a call (median of %d rounds of %ld; %.1f to %.1f)\n", ns[ROUNDS / 2], ROUNDS,
           calls, ns[0], ns[ROUNDS - 1]);
    return ncclCommDestroy(comm) != ncclSuccess;
}
