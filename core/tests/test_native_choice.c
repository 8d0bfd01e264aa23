/*
 * test_native_choice.c - below the crossover an adaptive call runs the plan of a raw one, bit by bit
 *
 * Every op on every rank of 'mem': sizes from a few bytes up, with rates at which compression pays
 * from some size on.  Where adaptive is uncompressed its plan must be raw's, and what never pays must
 * never be compressed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/coll_world.h"
#include "core/zipccl.h"

#include <stdio.h>
#include <stdlib.h>

enum { NUM_SIZES = 9, LARGEST_N = 1 << 19 };

/* Plans that the ranks had, by size; the digests of raw and adaptive. */
struct seen {
    uint64_t raw[NUM_SIZES], adaptive[NUM_SIZES];
    bool compressed[NUM_SIZES];
};

struct job {
    struct world w;
    enum zipccl_op op;
    enum zipccl_dtype dtype;
    struct seen seen[MAX_RANKS];
};

static size_t count_of(int size)
{
    static const size_t counts[NUM_SIZES] = {1, 4, 33, 512, 2048, 8192, 40000, 1 << 17, LARGEST_N};

    return counts[size];
}

static zipccl_status call(const struct job *j, uint32_t rank, size_t n, const void *send,
                          void *recv, struct zipccl_comm *comm)
{
    uint32_t nranks = j->w.nranks;

    switch (j->op) {
    case ZIPCCL_ALL_GATHER:
        return zipccl_all_gather(send, recv, n / nranks + 1, j->dtype, comm, NULL);
    case ZIPCCL_REDUCE_SCATTER:
        return zipccl_reduce_scatter(send, recv, n / nranks + 1, j->dtype, ZIPCCL_SUM, comm, NULL);
    case ZIPCCL_ALL_REDUCE:
        return zipccl_all_reduce(send, recv, n, j->dtype, ZIPCCL_SUM, comm, NULL);
    case ZIPCCL_ALLTOALL: return zipccl_alltoall(send, recv, n / nranks + 1, j->dtype, comm, NULL);
    case ZIPCCL_BROADCAST: return zipccl_broadcast(send, recv, n, j->dtype, 1, comm, NULL);
    default:
        return zipccl_sendrecv(send, n, (int)((rank + 1) % nranks), recv, n,
                               (int)((rank + nranks - 1) % nranks), j->dtype, comm, NULL);
    }
}

static bool run_rank(void *context, uint32_t rank)
{
    struct job *j = context;
    struct zipccl_comm *raw = NULL, *adaptive = NULL;
    struct zipccl_comm_config config;
    size_t nbytes = (LARGEST_N + 64) * zipccl_dtype_size(j->dtype);
    void *send = calloc(1, nbytes), *recv = calloc(1, nbytes);
    bool ok = send != NULL && recv != NULL;

    zipccl_comm_config_init(&config);
    config.params.nic_Bps = 1e8; /* slow: compression pays between the nodes */
    ok = ok &&
         zipccl_comm_create(j->w.t[rank], j->w.exec[rank], &config, &adaptive, NULL) == ZIPCCL_OK;
    config.mode = ZIPCCL_MODE_RAW;
    ok = ok && zipccl_comm_create(j->w.t[rank], j->w.exec[rank], &config, &raw, NULL) == ZIPCCL_OK;
    for (int s = 0; s < NUM_SIZES && ok; s++) {
        ok = call(j, rank, count_of(s), send, recv, raw) == ZIPCCL_OK &&
             call(j, rank, count_of(s), send, recv, adaptive) == ZIPCCL_OK;
        if (!ok)
            break;
        j->seen[rank].raw[s] = zipccl_plan_digest(zipccl_comm_last_plan(raw));
        j->seen[rank].adaptive[s] = zipccl_plan_digest(zipccl_comm_last_plan(adaptive));
        j->seen[rank].compressed[s] = zipccl_comm_last_plan(adaptive)->compressed;
    }
    zipccl_comm_destroy(raw);
    zipccl_comm_destroy(adaptive);
    free(send);
    free(recv);
    return ok;
}

/* Uncompressed sizes have raw's plan; the smallest is one and the largest is none, but of integers. */
static unsigned check(const struct job *j)
{
    unsigned failures = 0;
    bool integers = j->dtype == ZIPCCL_INT32;

    for (uint32_t r = 0; r < j->w.nranks; r++)
        for (int s = 0; s < NUM_SIZES; s++) {
            const struct seen *seen = &j->seen[r];
            bool must = s == NUM_SIZES - 1 && !integers, must_not = s < 2 || integers;

            if ((seen->compressed[s] || seen->raw[s] == seen->adaptive[s]) &&
                !(must && !seen->compressed[s]) && !(must_not && seen->compressed[s]))
                continue;
            fprintf(stderr, "%s %s, rank %u, count %zu: adaptive is %s, plans %s\n",
                    zipccl_op_name(j->op), zipccl_dtype_name(j->dtype), r, count_of(s),
                    seen->compressed[s] ? "compressed" : "uncompressed",
                    seen->raw[s] == seen->adaptive[s] ? "equal" : "differ");
            failures++;
        }
    return failures;
}

int main(void)
{
    static const enum zipccl_op ops[] = {ZIPCCL_ALL_GATHER, ZIPCCL_REDUCE_SCATTER,
                                         ZIPCCL_ALL_REDUCE, ZIPCCL_ALLTOALL,
                                         ZIPCCL_BROADCAST,  ZIPCCL_SENDRECV};
    static const enum zipccl_dtype dtypes[] = {ZIPCCL_BFLOAT16, ZIPCCL_INT32};
    unsigned failures = 0;

    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++)
        for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
            static struct job j;

            j = (struct job){.op = ops[o], .dtype = dtypes[d]};
            world_open_even(&j.w, 2, 2);
            if (!world_run(&j.w, run_rank, &j))
                failures++;
            else if (j.op != ZIPCCL_SENDRECV ||
                     j.dtype == ZIPCCL_INT32) /* pairs: see comm_state.h */
                failures += check(&j);
            world_close(&j.w);
        }
    printf("%u failures\n", failures);
    return failures == 0 ? 0 : 1;
}
