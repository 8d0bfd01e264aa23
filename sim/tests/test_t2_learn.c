/*
 * test_t2_learn.c - communicators of simulated ranks learn simulated times
 *
 * The rates that a communicator chooses by are those of the simulated cluster, or not: what calls take in
 * the simulation decides.  Each case is a child process of its own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/zipccl.h"
#include "sim/child.h"
#include "sim/t2.h"

#include <simgrid/actor.h>
#include <simgrid/semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NRANKS 4
#define COUNT  20000u
#define NCALLS (5 * ZIPCCL_CLASS_PERIOD)

struct seen {
    bool ok, compressed_first, compressed_last;
    struct zipccl_comm_learnt learnt;
};

/* Rates of the codec that the communicator believes in, and those that it has. */
struct scene {
    double believed_Bps, real_Bps;
    struct zipccl_t2_world *world;
    struct zipccl_t2_comm comm;
    struct seen *out; /* [NRANKS] */
    uint32_t next, left;
    sg_sem_t done;
};

static struct zipccl_cluster cluster(double codec_Bps)
{
    struct zipccl_cluster c = {.name = "test",
                               .nodes = 2,
                               .gpus_per_node = 2,
                               .gpu_sms = 100,
                               .gpu_hbm_Bps = 3000e9,
                               .gpu_flops = 4e14,
                               .nvlink_Bps = 400e9,
                               .nvlink_alpha_s = 2e-7,
                               .nics_per_node = 1,
                               .nic_Bps = 1e9,
                               .nic_alpha_s = 5e-7,
                               .fabric_oversubscription = 1,
                               .channels = 1,
                               .encode_Bps = codec_Bps,
                               .decode_Bps = codec_Bps,
                               .codec_sms = 25};
    return c;
}

static bool calls(struct zipccl_comm *comm, struct seen *out)
{
    uint16_t *send = calloc(COUNT, 2), *recv = calloc(COUNT * NRANKS, 2);
    bool ok = send != NULL && recv != NULL;

    for (size_t i = 0; ok && i < COUNT; i++)
        send[i] = (uint16_t)(0x3c00 + i * 40503u % 512);
    for (unsigned k = 0; k < NCALLS && ok; k++) {
        ok = zipccl_all_gather(send, recv, COUNT, ZIPCCL_BFLOAT16, comm, NULL) == ZIPCCL_OK &&
             memcmp(recv + (NRANKS - 1) * COUNT, send, 2 * COUNT) == 0;
        out->compressed_last = ok && zipccl_comm_last_plan(comm)->compressed;
        out->compressed_first = k == 0 ? out->compressed_last : out->compressed_first;
    }
    ok = ok && zipccl_comm_get_learnt(comm, 0, &out->learnt);
    free(send);
    free(recv);
    return ok;
}

static void rank_actor(int argc, char **argv)
{
    struct scene *s = sg_actor_self_get_data();
    uint32_t rank = s->next++;
    struct zipccl_cluster believed = cluster(s->believed_Bps);
    struct zipccl_comm_config config;
    struct zipccl_comm *comm = NULL;

    (void)argc;
    (void)argv;
    zipccl_comm_config_init(&config);
    zipccl_cluster_cost_params(&believed, &config.params);
    s->out[rank].ok = zipccl_comm_create(s->comm.transports[rank], s->comm.execs[rank], &config,
                                         &comm, NULL) == ZIPCCL_OK &&
                      calls(comm, &s->out[rank]);
    zipccl_comm_destroy(comm);
    if (--s->left == 0)
        sg_sem_release(s->done);
}

static zipccl_status scene_main(void *context)
{
    struct scene *s = context;
    struct zipccl_topology *topology;

    ZIPCCL_TRY(zipccl_topology_create_even(2, 2, &topology));
    ZIPCCL_TRY(zipccl_t2_comm_create(s->world, topology, NULL, NULL, 1, &s->comm));
    s->done = sg_sem_init(0);
    s->left = NRANKS;
    for (uint32_t r = 0; r < NRANKS; r++) {
        sg_actor_t actor = sg_actor_init("rank", zipccl_t2_platform(s->world)->gpu[r]);

        sg_actor_set_data(actor, s);
        sg_actor_start_(actor, rank_actor, 0, NULL);
    }
    sg_sem_acquire(s->done);
    zipccl_t2_comm_destroy(&s->comm);
    zipccl_topology_destroy(topology);
    return ZIPCCL_OK;
}

static zipccl_status scene_work(void *context, void *result, struct zipccl_error *error)
{
    struct scene *s = context;
    struct zipccl_cluster c = cluster(s->real_Bps);
    zipccl_status status;

    s->out = result;
    ZIPCCL_TRY(zipccl_t2_open(&c, &s->world, error));
    status = zipccl_t2_main(s->world, scene_main, s, error);
    zipccl_t2_close(s->world);
    return status;
}

/* Compressed first, as believed; last, as it really pays. */
static bool play(const char *what, double believed_Bps, double real_Bps, bool pays)
{
    struct scene s = {.believed_Bps = believed_Bps, .real_Bps = real_Bps};
    struct seen seen[NRANKS];
    struct zipccl_child_task task = {scene_work, &s, seen, sizeof seen};
    struct zipccl_error error = {""};
    zipccl_status status;
    bool ok;

    memset(seen, 0, sizeof seen);
    status = zipccl_child_run(&task, 1, 1, NULL, NULL, &error);
    ok = status == ZIPCCL_OK;
    for (uint32_t r = 0; r < NRANKS; r++) {
        const struct zipccl_comm_learnt *l = &seen[r].learnt;

        ok = ok && seen[r].ok && seen[r].compressed_first && seen[r].compressed_last == pays &&
             memcmp(l->seen_s, seen[0].learnt.seen_s, sizeof l->seen_s) == 0 && l->ntrials > 0;
    }
    printf("%-24s compressed %.1f us, raw %.1f us, %u changes%s%s\n", what,
           1e6 * seen[0].learnt.seen_s[ZIPCCL_PLAN_COMPRESSED],
           1e6 * seen[0].learnt.seen_s[ZIPCCL_PLAN_RAW], seen[0].learnt.changes,
           ok ? "" : "  FAILED ", error.text);
    return ok;
}

int main(void)
{
    bool ok = play("codec as believed", 400e9, 400e9, true);

    return play("codec slower by far", 400e9, 0.2e9, false) && ok ? 0 : 1;
}
