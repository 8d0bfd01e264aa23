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
#include <stdlib.h>
#include <string.h>

/* Hosts of the task: each rank's GPU, and with a codec its SMs and memory behind that. */
static zipccl_status run_task(const struct zipccl_flow *flow, const uint32_t *gpus,
                              const struct zipccl_platform *platform)
{
    size_t n = flow->nranks, nhosts = flow->codec_s != NULL ? 3 * n : n;
    sg_host_t *hosts = malloc(nhosts * sizeof(*hosts));
    double *work = calloc(nhosts, sizeof(*work)), *nbytes = calloc(nhosts * nhosts, sizeof(double));
    sg_exec_t task;

    if (hosts == NULL || work == NULL || nbytes == NULL) {
        free(hosts);
        free(work);
        free(nbytes);
        return ZIPCCL_ERR_NOMEM;
    }
    for (size_t r = 0; r < n; r++) {
        hosts[r] = platform->gpu[gpus[r]];
        if (flow->codec_s == NULL)
            continue;
        hosts[n + r] = platform->sm[gpus[r]];
        hosts[2 * n + r] = platform->hbm[gpus[r]];
        work[r] = flow->codec_s[r] * ZIPCCL_PLATFORM_SPEED;
        work[n + r] = work[r] * flow->sm_share;
        work[2 * n + r] = flow->hbm_bytes[r];
    }
    for (size_t i = 0; i < flow->nedges; i++)
        nbytes[flow->edges[i].src * nhosts + flow->edges[i].dst] += flow->edges[i].nbytes;
    task = sg_actor_parallel_exec_init((int)nhosts, hosts, work, nbytes);
    sg_exec_start(task);
    sg_exec_wait(task);
    free(hosts);
    free(work);
    free(nbytes);
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
