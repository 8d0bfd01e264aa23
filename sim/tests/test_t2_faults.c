/*
 * test_t2_faults.c - what goes wrong over simulated messages ends in an error, never in a hang
 *
 * A plain program; each case is a child process of its own.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/strategy.h"
#include "sim/child.h"
#include "sim/t2.h"

#include <simgrid/actor.h>
#include <simgrid/semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NRANKS 4

static int failures;

static void expect(const char *what, bool ok, const char *text)
{
    printf("%-52s %s%s\n", what, text, ok ? "" : "  FAILED");
    failures += !ok;
}

static struct zipccl_cluster cluster(void)
{
    struct zipccl_cluster c = {.name = "test",
                               .nodes = 2,
                               .gpus_per_node = 2,
                               .gpu_sms = 100,
                               .gpu_hbm_Bps = 3000e9,
                               .gpu_flops = 4e14,
                               .nvlink_Bps = 400e9,
                               .nvlink_alpha_s = 2e-6,
                               .nics_per_node = 1,
                               .nic_Bps = 50e9,
                               .nic_alpha_s = 5e-6,
                               .fabric_oversubscription = 1,
                               .channels = 1,
                               .encode_Bps = 400e9,
                               .decode_Bps = 400e9,
                               .codec_sms = 25};
    return c;
}

/* What each rank does, and what became of it. */
struct scene {
    zipccl_status (*act)(struct zipccl_transport *t);
    struct zipccl_t2_world *world;
    struct zipccl_t2_comm comm;
    struct {
        zipccl_status status[NRANKS];
        char text[256];
    } * out;
    uint32_t next, left;
    sg_sem_t done;
};

static void rank_actor(int argc, char **argv)
{
    struct scene *s = sg_actor_self_get_data();
    uint32_t rank = s->next++;

    (void)argc;
    (void)argv;
    s->out->status[rank] = s->act(s->comm.transports[rank]);
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
    snprintf(s->out->text, sizeof(s->out->text), "%s",
             s->comm.transports[0]->ops->error_text(s->comm.transports[0]));
    zipccl_t2_comm_destroy(&s->comm);
    zipccl_topology_destroy(topology);
    return ZIPCCL_OK;
}

static zipccl_status scene_work(void *context, void *result, struct zipccl_error *error)
{
    struct zipccl_cluster c = cluster();
    struct scene *s = context;
    zipccl_status status;

    s->out = result;
    ZIPCCL_TRY(zipccl_t2_open(&c, &s->world, error));
    status = zipccl_t2_main(s->world, scene_main, s, error);
    zipccl_t2_close(s->world);
    return status;
}

/* Run 'act' on every rank; statuses to 'status', the transport's text to 'text'. */
static zipccl_status play(zipccl_status (*act)(struct zipccl_transport *t), zipccl_status *status,
                          char *text, struct zipccl_error *error)
{
    struct scene s = {.act = act};
    struct zipccl_child_task task = {scene_work, &s, NULL, sizeof(*s.out)};
    zipccl_status result;

    task.result = calloc(1, task.nbytes);
    result = zipccl_child_run(&task, 1, 1, NULL, NULL, error);
    s.out = task.result;
    memcpy(status, s.out->status, sizeof(s.out->status));
    memcpy(text, s.out->text, sizeof(s.out->text));
    free(task.result);
    return result;
}

/* Rank 1 names another count than rank 0; ranks 2 and 3 wait for rank 0. */
static zipccl_status act_mismatch(struct zipccl_transport *t)
{
    char a[64] = {0}, b[64];

    switch (t->rank) {
    case 0: return t->ops->send(t, 1, a, 64);
    case 1: return t->ops->recv(t, 0, b, 32);
    default: return t->ops->recv(t, 0, b, 8);
    }
}

static zipccl_status act_abort(struct zipccl_transport *t)
{
    char a[64] = {0};

    if (t->rank == 3) {
        sg_actor_sleep_for(1e-3);
        t->ops->abort(t);
        return t->ops->send(t, 0, a, 8);
    }
    if (t->rank == 2)
        return t->ops->broadcast(t, a, 64, 1, 2);
    return t->rank == 1 ? t->ops->send(t, 0, a, 64) : t->ops->recv(t, 3, a, 64);
}

/* Nobody answers and nobody aborts. */
static zipccl_status act_deadlock(struct zipccl_transport *t)
{
    char a[64];

    return t->rank == 0 ? t->ops->recv(t, 1, a, 64) : ZIPCCL_OK;
}

static zipccl_status act_lonely(struct zipccl_transport *t)
{
    char a[64] = {0};

    return t->rank == 0 ? t->ops->send(t, 0, a, 64) : t->ops->recv(t, 0, a, 64);
}

static void test_transport(void)
{
    zipccl_status status[NRANKS];
    struct zipccl_error error = {""};
    char text[256];
    bool ok;

    ok = play(act_mismatch, status, text, &error) == ZIPCCL_OK;
    expect("both ends of a mismatch say so, the others abort",
           ok && status[0] == ZIPCCL_ERR_MISMATCH && status[1] == ZIPCCL_ERR_MISMATCH &&
               status[2] == ZIPCCL_ERR_ABORTED && status[3] == ZIPCCL_ERR_ABORTED &&
               strstr(text, "rank 0 sends 64 bytes to rank 1, which receives 32") != NULL,
           text);
    ok = play(act_abort, status, text, &error) == ZIPCCL_OK;
    expect("an abort frees blocked ranks",
           ok && status[0] == ZIPCCL_ERR_ABORTED && status[1] == ZIPCCL_ERR_ABORTED &&
               status[2] == ZIPCCL_ERR_ABORTED && status[3] == ZIPCCL_ERR_ABORTED &&
               strstr(text, "rank 3") != NULL,
           text);
    ok = play(act_lonely, status, text, &error) == ZIPCCL_OK;
    expect("a message to oneself needs both ends in a group",
           ok && status[0] == ZIPCCL_ERR_MISMATCH && status[1] == ZIPCCL_ERR_ABORTED, text);
    ok = play(act_deadlock, status, text, &error) == ZIPCCL_ERR_INTERNAL;
    expect("a deadlock is an error", ok, error.text);
}

struct payload {
    uint16_t data[NRANKS * 4096];
};

static zipccl_status open_broken(void *context, uint32_t rank, struct zipccl_t2_buffers *out)
{
    struct payload *p = context;

    out->send = p[rank].data;
    out->recv = p[NRANKS + rank].data;
    return rank == 2 ? ZIPCCL_ERR_NOMEM : ZIPCCL_OK;
}

static bool close_broken(void *context, uint32_t rank, struct zipccl_t2_buffers *buffers)
{
    (void)context;
    (void)buffers;
    return rank != 1; /* as if it had got wrong data */
}

static void test_calls(void)
{
    struct zipccl_call call = {.op = ZIPCCL_ALLTOALL, .dtype = ZIPCCL_BFLOAT16, .count = 4096};
    struct payload *payload = calloc((size_t)2 * NRANKS, sizeof(*payload));
    struct zipccl_t2_call t2 = {
        .payload = {.open = open_broken, .close = close_broken, .context = payload}};
    struct zipccl_t2_result result = {.bytes = NULL};
    struct zipccl_cluster c = cluster();
    struct zipccl_error error = {""};
    struct zipccl_topology *topology;
    struct zipccl_plan *plan;

    if (payload == NULL || zipccl_topology_create_even(2, 2, &topology) != ZIPCCL_OK ||
        zipccl_strategy_find("fixed direct")->build(&call, topology, 1, 2, 0, 0, &plan) !=
            ZIPCCL_OK)
        abort();
    t2.plan = plan;
    t2.topology = topology;
    expect("a rank that cannot start ends the call",
           zipccl_t2_price(&c, &t2, 1, &result, &error) == ZIPCCL_OK &&
               result.status == ZIPCCL_ERR_NOMEM && !result.right,
           zipccl_status_string(result.status));
    zipccl_plan_destroy(plan);
    zipccl_topology_destroy(topology);
    free(payload);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    test_transport();
    test_calls();
    printf("%s\n", failures == 0 ? "ok" : "FAILED");
    return failures != 0;
}
