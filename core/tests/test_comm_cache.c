/*
 * test_comm_cache.c - many kinds of calls: bounded caches, evicted alike by all ranks
 *
 * Ranks make the same even calls of ever other counts, and between them pairwise calls of which each
 * has its own number.  If one rank had evicted what another still has, it would ask the others for
 * digests that they do not send.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/comm_state.h"
#include "core/tests/coll_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Smaller caches than those of users, so that the test is short. */
#define MOST_PLANS 64u
#define MOST_KINDS 32u
#define NCOUNTS    (MOST_PLANS + 70)
#define NCALLS     (NCOUNTS + 2 * MOST_KINDS)

struct job {
    const struct world *world;
};

/* Count of even call 'k': new ones, then the oldest and the newest of them by turns. */
static size_t count_of(uint32_t k)
{
    uint32_t i = k - NCOUNTS;

    if (k < NCOUNTS)
        return k + 1;
    return i % 2 == 0 ? i / 2 + 1 : NCOUNTS - i / 2;
}

/* Each pair of neighbours exchanges something else, other pairs nothing. */
static bool move_pair(struct zipccl_comm *comm, uint32_t rank, uint32_t k)
{
    int peer = (int)(rank ^ 1);
    uint16_t send[64], recv[64] = {0};
    size_t n = 1 + (k + rank / 2) % 64;

    for (unsigned i = 0; i < 64; i++)
        send[i] = (uint16_t)(k + i + rank);
    if (zipccl_sendrecv(send, n, peer, recv, n, peer, ZIPCCL_BFLOAT16, comm, NULL) != ZIPCCL_OK)
        return false;
    return recv[n - 1] == (uint16_t)(k + n - 1 + (uint32_t)peer);
}

static bool many_calls(void *context, uint32_t rank)
{
    struct job *job = context;
    uint32_t nranks = job->world->nranks;
    uint16_t *send = malloc((NCOUNTS + 1) * sizeof *send);
    uint16_t *recv = malloc((NCOUNTS + 1) * nranks * sizeof *recv);
    struct zipccl_comm *comm = NULL;
    bool ok = send != NULL && recv != NULL &&
              zipccl_comm_create(job->world->t[rank], job->world->exec[rank], NULL, &comm, NULL) ==
                  ZIPCCL_OK;

    if (!ok)
        abort();
    comm->most_plans = MOST_PLANS;
    comm->most_kinds = MOST_KINDS;
    for (uint32_t k = 0; k < NCALLS && ok; k++) {
        size_t n = count_of(k);

        send[0] = (uint16_t)(rank + k);
        send[n - 1] = (uint16_t)(rank + k);
        ok = zipccl_all_gather(send, recv, n, ZIPCCL_BFLOAT16, comm, NULL) == ZIPCCL_OK;
        for (uint32_t p = 0; p < nranks && ok; p++)
            ok = recv[p * n] == (uint16_t)(p + k) && recv[p * n + n - 1] == (uint16_t)(p + k);
        ok = ok && comm->even_plans.n <= MOST_PLANS && comm->classes.n <= MOST_KINDS;
        if (ok && k % 7 == 3 && rank / 2 == k / 7 % 2)
            ok = move_pair(comm, rank, k);
        if (!ok)
            fprintf(stderr, "rank %u, call %u: %s\n", rank, k, zipccl_comm_error(comm));
    }
    ok = ok && comm->even_plans.n == MOST_PLANS && comm->classes.n == MOST_KINDS &&
         comm->pair_plans.n > 0;
    if (!ok)
        zipccl_comm_abort(comm);
    zipccl_comm_destroy(comm);
    free(send);
    free(recv);
    return ok;
}

static bool test_order(void)
{
    struct zipccl_cache cache = {0};
    struct zipccl_cache_node nodes[4];
    bool ok;

    for (unsigned i = 0; i < 4; i++) /* two in a chain, two of one hash */
        zipccl_cache_add(&cache, &nodes[i], i < 2 ? 7 : 7 + (i - 2) * ZIPCCL_CACHE_CHAINS);
    ok = cache.oldest == &nodes[0] && cache.newest == &nodes[3] && cache.n == 4;
    zipccl_cache_use(&cache, &nodes[0]);
    zipccl_cache_use(&cache, &nodes[0]);
    ok = ok && cache.oldest == &nodes[1] && cache.newest == &nodes[0];
    ok = ok && zipccl_cache_first(&cache, 7) == &nodes[2] &&
         zipccl_cache_next(&nodes[2]) == &nodes[1] && zipccl_cache_next(&nodes[1]) == &nodes[0] &&
         zipccl_cache_next(&nodes[0]) == NULL && zipccl_cache_first(&cache, 8) == NULL;
    zipccl_cache_remove(&cache, &nodes[1]);
    ok = ok && zipccl_cache_next(&nodes[2]) == &nodes[0] && cache.oldest == &nodes[2];
    zipccl_cache_remove(&cache, &nodes[0]);
    zipccl_cache_remove(&cache, &nodes[3]);
    zipccl_cache_remove(&cache, &nodes[2]);
    return ok && cache.n == 0 && cache.newest == NULL && cache.oldest == NULL;
}

int main(void)
{
    struct world w;
    struct job job = {.world = &w};
    bool ok = test_order();

    world_open_even(&w, 1, 4);
    ok = world_run(&w, many_calls, &job) && ok;
    world_close(&w);
    printf("caches: %s\n", ok ? "ok" : "FAILED");
    return ok ? 0 : 1;
}
