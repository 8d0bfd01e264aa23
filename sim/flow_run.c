/*
 * flow_run.c - runs flows as SimGrid parallel tasks, alone or together
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/flow.h"

#include "sim/child.h"
#include "sim/platform.h"

#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/exec.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* A parallel task while it is put together; SimGrid wants a full matrix over its hosts. */
struct task {
    size_t nhosts;
    sg_host_t *hosts; /* [nhosts] */
    double *work;     /* [nhosts] */
    double *nbytes;   /* [nhosts * nhosts] */
    uint32_t *at;     /* [nranks] index of a rank's GPU among the hosts; NOT_USED */
};

#define NOT_USED UINT32_MAX

static void release_task(struct task *t)
{
    free(t->hosts);
    free(t->work);
    free(t->nbytes);
    free(t->at);
}

static void add_host(struct task *t, sg_host_t host, double work)
{
    t->hosts[t->nhosts] = host;
    t->work[t->nhosts++] = work;
}

/* Each rank's GPU that sends, receives or codes, and where it codes its SMs and memory. */
static void add_hosts(struct task *t, const struct zipccl_flow *flow, const uint32_t *gpus,
                      const struct zipccl_platform *platform)
{
    for (uint32_t r = 0; r < flow->nranks; r++)
        t->at[r] = NOT_USED;
    for (size_t i = 0; i < flow->nedges; i++)
        t->at[flow->edges[i].src] = t->at[flow->edges[i].dst] = 0;
    for (uint32_t r = 0; r < flow->nranks; r++) {
        bool codes = flow->codec_s != NULL && flow->codec_s[r] > 0;
        double work = codes ? flow->codec_s[r] * ZIPCCL_PLATFORM_SPEED : 0;

        if (!codes && t->at[r] == NOT_USED)
            continue;
        t->at[r] = (uint32_t)t->nhosts;
        add_host(t, platform->gpu[gpus[r]], work);
        if (!codes)
            continue;
        add_host(t, platform->sm[gpus[r]], work * flow->sm_share);
        add_host(t, platform->hbm[gpus[r]], flow->hbm_bytes[r]);
    }
}

static zipccl_status run_task(const struct zipccl_flow *flow, const uint32_t *gpus,
                              const struct zipccl_platform *platform)
{
    size_t most = 3 * (size_t)flow->nranks;
    struct task t = {.hosts = malloc(most * sizeof(*t.hosts)),
                     .work = malloc(most * sizeof(*t.work)),
                     .at = malloc(flow->nranks * sizeof(*t.at))};
    sg_exec_t exec;

    if (t.hosts != NULL && t.work != NULL && t.at != NULL) {
        add_hosts(&t, flow, gpus, platform);
        t.nbytes = calloc(t.nhosts * t.nhosts, sizeof(*t.nbytes));
    }
    if (t.nbytes == NULL) {
        release_task(&t);
        return ZIPCCL_ERR_NOMEM;
    }
    for (size_t i = 0; i < flow->nedges; i++) {
        const struct zipccl_flow_edge *e = &flow->edges[i];

        t.nbytes[t.at[e->src] * t.nhosts + t.at[e->dst]] += e->nbytes;
    }
    exec = sg_actor_parallel_exec_init((int)t.nhosts, t.hosts, t.work, t.nbytes);
    sg_exec_start(exec);
    /* SimGrid has copied the matrix: do not hold it while other tasks run. */
    release_task(&t);
    sg_exec_wait(exec);
    return ZIPCCL_OK;
}

zipccl_status zipccl_flow_run(const struct zipccl_flow *flow, const uint32_t *gpus,
                              const struct zipccl_platform *platform)
{
    if (flow->extra_s > 0)
        sg_actor_sleep_for(flow->extra_s);
    if (flow->wire_s > 0 || flow->codec_max_s > 0)
        return run_task(flow, gpus, platform);
    return ZIPCCL_OK;
}

struct together {
    uint32_t nflows, next;
    const struct zipccl_flow *const *flows;
    const uint32_t *const *gpus;
    const struct zipccl_cluster *cluster;
    struct zipccl_platform platform;
    double *seconds;
    zipccl_status status;
};

/* Actors start in order of creation, so each takes the next flow. */
static void flow_actor(int argc, char **argv)
{
    struct together *t = sg_actor_self_get_data();
    uint32_t i = t->next++;
    zipccl_status status = zipccl_flow_run(t->flows[i], t->gpus[i], &t->platform);

    (void)argc;
    (void)argv;
    t->seconds[i] = simgrid_get_clock();
    if (status != ZIPCCL_OK)
        t->status = status;
}

static zipccl_status price_work(void *context, void *result, struct zipccl_error *error)
{
    struct together *t = context;

    ZIPCCL_TRY(zipccl_platform_load(t->cluster, ZIPCCL_PLATFORM_FLOWS, &t->platform, error));
    t->seconds = result;
    for (uint32_t i = 0; i < t->nflows; i++) {
        sg_actor_t actor = sg_actor_init("flow", t->platform.gpu[0]);

        sg_actor_set_data(actor, t);
        sg_actor_start_(actor, flow_actor, 0, NULL);
    }
    simgrid_run();
    if (t->status != ZIPCCL_OK)
        return zipccl_fail(error, t->status, "%s", zipccl_status_string(t->status));
    return ZIPCCL_OK;
}

zipccl_status zipccl_flow_price_together(uint32_t nflows, const struct zipccl_flow *const *flows,
                                         const uint32_t *const *gpus,
                                         const struct zipccl_cluster *cluster, double *seconds,
                                         struct zipccl_error *error)
{
    struct together t = {.nflows = nflows, .flows = flows, .gpus = gpus, .cluster = cluster};
    struct zipccl_child_task task = {price_work, &t, seconds, nflows * sizeof(double)};

    return zipccl_child_run(&task, 1, 1, NULL, NULL, error);
}

zipccl_status zipccl_flow_price(const struct zipccl_flow *flow, const uint32_t *gpus,
                                const struct zipccl_cluster *cluster, double *seconds,
                                struct zipccl_error *error)
{
    return zipccl_flow_price_together(1, &flow, &gpus, cluster, seconds, error);
}
