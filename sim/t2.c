/*
 * t2.c - worlds, communicators and calls at message level
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/t2.h"

#include "sim/child.h"
#include "sim/transport_simgrid.h"

#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/semaphore.h>
#include <stdlib.h>
#include <string.h>

struct zipccl_t2_world {
    struct zipccl_cluster cluster;
    struct zipccl_platform platform;
    struct zipccl_simgrid_nics nics; /* its array NULL: without bursts */
    void *scratch;                   /* of the codec: nothing yields while it is used */
    uint32_t ncomms;
};

static zipccl_status open_nics(const struct zipccl_cluster *cluster,
                               struct zipccl_simgrid_nics *out, struct zipccl_error *error)
{
    if (!(cluster->nic_burst_bytes > 0))
        return ZIPCCL_OK;
    *out = (struct zipccl_simgrid_nics){
        .Bps = cluster->nic_Bps,
        .burst_s = cluster->nic_burst_bytes / cluster->nic_Bps,
        .gpus_per_node = cluster->gpus_per_node,
        .nics_per_node = cluster->nics_per_node,
        .nics = calloc((size_t)cluster->nodes * cluster->nics_per_node, sizeof(*out->nics))};
    return out->nics != NULL ? ZIPCCL_OK : zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
}

zipccl_status zipccl_t2_open(const struct zipccl_cluster *cluster, struct zipccl_t2_world **out,
                             struct zipccl_error *error)
{
    struct zipccl_t2_world *w = calloc(1, sizeof(*w));
    zipccl_status status;

    if (w == NULL || posix_memalign(&w->scratch, 64, zipccl_codec_scratch_bytes()) != 0) {
        free(w);
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    }
    w->cluster = *cluster;
    status = open_nics(cluster, &w->nics, error);
    if (status == ZIPCCL_OK)
        status = zipccl_platform_load(cluster, ZIPCCL_PLATFORM_MESSAGES, &w->platform, error);
    if (status != ZIPCCL_OK) {
        free(w->nics.nics);
        free(w->scratch);
        free(w);
        return status;
    }
    *out = w;
    return ZIPCCL_OK;
}

void zipccl_t2_close(struct zipccl_t2_world *world)
{
    if (world == NULL)
        return;
    zipccl_platform_release(&world->platform);
    free(world->nics.nics);
    free(world->scratch);
    free(world);
}

const struct zipccl_platform *zipccl_t2_platform(const struct zipccl_t2_world *world)
{
    return &world->platform;
}

struct main_actor {
    zipccl_status (*fn)(void *context);
    void *context;
    zipccl_status status;
    bool done;
};

static void main_main(int argc, char **argv)
{
    struct main_actor *m = sg_actor_self_get_data();

    (void)argc;
    (void)argv;
    m->status = m->fn(m->context);
    m->done = true;
}

zipccl_status zipccl_t2_main(struct zipccl_t2_world *world, zipccl_status (*fn)(void *context),
                             void *context, struct zipccl_error *error)
{
    struct main_actor m = {fn, context, ZIPCCL_OK, false};
    sg_actor_t actor = sg_actor_init("main", world->platform.gpu[0]);

    sg_actor_set_data(actor, &m);
    sg_actor_start_(actor, main_main, 0, NULL);
    simgrid_run();
    if (!m.done)
        return zipccl_fail(error, ZIPCCL_ERR_INTERNAL,
                           "the simulation stopped: ranks wait for one another");
    return m.status == ZIPCCL_OK
               ? ZIPCCL_OK
               : zipccl_fail(error, m.status, "%s", zipccl_status_string(m.status));
}

/* Of one rank: outgoing, incoming, between levels, sums. */
enum { STAGING_TX, STAGING_RX, STAGING_TMP, STAGING_ACC, NUM_STAGING };

struct zipccl_t2_staging {
    void *p[NUM_STAGING];
    size_t nbytes[NUM_STAGING];
};

/* Staging of 'rank' for 'plan', kept until the communicator goes. */
static zipccl_status stage(struct zipccl_t2_comm *comm, uint32_t rank,
                           const struct zipccl_plan *plan, struct zipccl_run *run)
{
    const size_t nbytes[NUM_STAGING] = {plan->tx_bytes, plan->rx_bytes, plan->tmp_bytes,
                                        plan->acc_bytes};
    struct zipccl_t2_staging *s = &comm->staging[rank];
    struct zipccl_exec *exec = comm->execs[rank];

    for (int i = 0; i < NUM_STAGING; i++) {
        if (nbytes[i] <= s->nbytes[i])
            continue;
        exec->ops->free(exec, s->p[i]);
        s->p[i] = exec->ops->alloc(exec, nbytes[i]);
        s->nbytes[i] = s->p[i] != NULL ? nbytes[i] : 0;
        if (s->p[i] == NULL)
            return ZIPCCL_ERR_NOMEM;
    }
    run->tx = s->p[STAGING_TX];
    run->rx = s->p[STAGING_RX];
    run->tmp = s->p[STAGING_TMP];
    run->acc = s->p[STAGING_ACC];
    return ZIPCCL_OK;
}

void zipccl_t2_comm_destroy(struct zipccl_t2_comm *comm)
{
    for (uint32_t r = 0; comm->staging != NULL && comm->execs != NULL && r < comm->nranks; r++)
        for (int i = 0; i < NUM_STAGING && comm->execs[r] != NULL; i++)
            comm->execs[r]->ops->free(comm->execs[r], comm->staging[r].p[i]);
    free(comm->staging);
    for (uint32_t r = 0; r < comm->nranks; r++) {
        if (comm->execs != NULL && comm->execs[r] != NULL)
            comm->execs[r]->ops->destroy(comm->execs[r]);
        if (comm->transports != NULL && comm->transports[r] != NULL)
            comm->transports[r]->ops->destroy(comm->transports[r]);
    }
    free(comm->transports);
    free(comm->execs);
    memset(comm, 0, sizeof(*comm));
}

/* Of cores that all of 'nranks' share, each has a part of the rates, and waits for its turn to send; they
 * work at the same time. */
static struct zipccl_cluster share_cores(const struct zipccl_cluster *cluster, uint32_t nranks)
{
    struct zipccl_cluster out = *cluster;
    double sharing = zipccl_cost_sharing(cluster->shared_cores, nranks);

    out.encode_Bps /= sharing;
    out.decode_Bps /= sharing;
    out.ratio_encode_Bps /= sharing;
    out.ratio_decode_Bps /= sharing;
    out.reduce_Bps /= sharing;
    out.nvlink_alpha_s *= sharing;
    out.nic_alpha_s *= sharing;
    return out;
}

zipccl_status zipccl_t2_comm_create(struct zipccl_t2_world *world,
                                    const struct zipccl_topology *topology, const uint32_t *gpus,
                                    const struct zipccl_sim_sizes *sizes, uint32_t nsizes,
                                    struct zipccl_t2_comm *out)
{
    struct zipccl_t2_comm comm = {.nranks = topology->nranks, .topology = topology};
    uint32_t *own = malloc(topology->nranks * sizeof(*own));
    struct zipccl_cluster shared = share_cores(&world->cluster, topology->nranks);
    struct zipccl_simgrid_options options = {
        .platform = &world->platform,
        .gpus = own,
        .nvlink_alpha_s = shared.nvlink_alpha_s,
        .nic_alpha_s = shared.nic_alpha_s,
        .nics = world->nics.nics != NULL ? &world->nics : NULL,
        .copy_bytes = sizes != NULL ? ZIPCCL_MESSAGE_HEADER_BYTES : SIZE_MAX,
        .id = world->ncomms++,
    };
    zipccl_status status = ZIPCCL_ERR_NOMEM;

    comm.transports = calloc(comm.nranks, sizeof(struct zipccl_transport *));
    comm.execs = calloc(comm.nranks, sizeof(struct zipccl_exec *));
    comm.staging = calloc(comm.nranks, sizeof(*comm.staging));
    if (sizes != NULL) {
        options.nowhere = sizes->nowhere;
        options.nowhere_bytes = sizes->nowhere_bytes;
    }
    if (own != NULL && comm.transports != NULL && comm.execs != NULL && comm.staging != NULL) {
        for (uint32_t r = 0; r < comm.nranks; r++)
            own[r] = gpus != NULL ? gpus[r] : r;
        status = zipccl_transport_simgrid_create(topology, &options, comm.transports);
    }
    for (uint32_t r = 0; r < comm.nranks && status == ZIPCCL_OK; r++)
        status = zipccl_exec_sim_create(&world->platform, &shared, own[r], world->scratch,
                                        sizes == NULL ? NULL : &sizes[r % nsizes], &comm.execs[r]);
    free(own);
    if (status != ZIPCCL_OK) {
        zipccl_t2_comm_destroy(&comm);
        return status;
    }
    *out = comm;
    return ZIPCCL_OK;
}

zipccl_status zipccl_t2_execute(struct zipccl_t2_comm *comm, uint32_t rank,
                                const struct zipccl_plan *plan,
                                const struct zipccl_t2_buffers *buffers,
                                struct zipccl_run_stats *stats)
{
    struct zipccl_exec *exec = comm->execs[rank];
    struct zipccl_run run = {.plan = plan,
                             .send = buffers->send,
                             .recv = buffers->recv,
                             .send_counts = buffers->send_counts,
                             .send_displs = buffers->send_displs,
                             .recv_counts = buffers->recv_counts,
                             .recv_displs = buffers->recv_displs};
    zipccl_status status = stage(comm, rank, plan, &run);

    zipccl_exec_sim_start_call(exec);
    if (status == ZIPCCL_OK)
        status = zipccl_execute(&run, comm->transports[rank], exec, stats);
    else
        comm->transports[rank]->ops->abort(comm->transports[rank]);
    return status;
}

/* One call in progress. */
struct running {
    struct zipccl_t2_world *world;
    const struct zipccl_t2_call *call;
    struct zipccl_t2_result *result;
    struct zipccl_t2_comm comm;
    double entered_s, done_s; /* the last rank's */
    uint32_t next_rank, nleft;
    uint32_t *left; /* ranks of all calls that run */
    sg_sem_t done;
    struct zipccl_sim_sizes sizes; /* by pointer: the payload's, with our addresses for buffers */
    void *nowhere;
};

/* Bytes of the largest user buffer. */
static size_t buffer_bytes(const struct zipccl_plan *plan)
{
    return plan->count * plan->nranks * zipccl_dtype_size((enum zipccl_dtype)plan->dtype);
}

static size_t *uneven_counts(const struct running *run, uint32_t rank)
{
    size_t n = run->comm.nranks, sent = 0, received = 0;
    size_t *c = run->call->payload.splits == NULL ? NULL : malloc(4 * n * sizeof(*c));

    for (size_t p = 0; c != NULL && p < n; p++) {
        c[p] = run->call->payload.splits[rank * n + p];
        c[n + p] = sent;
        c[2 * n + p] = run->call->payload.splits[p * n + rank];
        c[3 * n + p] = received;
        sent += c[p];
        received += c[2 * n + p];
    }
    return c;
}

static zipccl_status open_buffers(const struct running *run, uint32_t rank,
                                  struct zipccl_t2_buffers *out)
{
    const struct zipccl_t2_payload *payload = &run->call->payload;
    size_t n = run->comm.nranks, *counts;

    memset(out, 0, sizeof(*out));
    if (payload->sizes == NULL)
        return payload->open(payload->context, rank, out);
    counts = uneven_counts(run, rank);
    if (payload->splits != NULL && counts == NULL)
        return ZIPCCL_ERR_NOMEM;
    out->send = run->nowhere;
    out->recv = (char *)run->nowhere + buffer_bytes(run->call->plan);
    out->owner = counts;
    if (counts == NULL)
        return ZIPCCL_OK;
    out->send_counts = counts;
    out->send_displs = counts + n;
    out->recv_counts = counts + 2 * n;
    out->recv_displs = counts + 3 * n;
    return ZIPCCL_OK;
}

static bool close_buffers(const struct running *run, uint32_t rank, struct zipccl_t2_buffers *b)
{
    const struct zipccl_t2_payload *payload = &run->call->payload;

    if (payload->sizes == NULL)
        return payload->close(payload->context, rank, b);
    free(b->owner);
    return true;
}

static void add_stats(struct zipccl_run_stats *sum, const struct zipccl_run_stats *s)
{
    sum->raw_bytes += s->raw_bytes;
    sum->wire_bytes += s->wire_bytes;
    sum->overflows += s->overflows;
    sum->raw_resends += s->raw_resends;
}

static void run_rank(struct running *run, uint32_t rank)
{
    struct zipccl_t2_result *result = run->result;
    struct zipccl_t2_buffers buffers;
    struct zipccl_run_stats stats = {0};
    zipccl_status status = open_buffers(run, rank, &buffers);

    if (run->call->enter_s != NULL && run->call->enter_s[rank] > 0)
        sg_actor_sleep_for(run->call->enter_s[rank]);
    if (simgrid_get_clock() > run->entered_s)
        run->entered_s = simgrid_get_clock();
    if (status == ZIPCCL_OK) {
        status = zipccl_t2_execute(&run->comm, rank, run->call->plan, &buffers, &stats);
        if (simgrid_get_clock() > run->done_s)
            run->done_s = simgrid_get_clock();
        if (!close_buffers(run, rank, &buffers))
            result->right = false;
    } else {
        run->comm.transports[rank]->ops->abort(run->comm.transports[rank]);
    }
    add_stats(&result->stats, &stats);
    if (status != ZIPCCL_OK &&
        (result->status == ZIPCCL_OK || result->status == ZIPCCL_ERR_ABORTED))
        result->status = status;
}

static void rank_actor(int argc, char **argv)
{
    struct running *run = sg_actor_self_get_data();

    (void)argc;
    (void)argv;
    run_rank(run, run->next_rank++); /* actors start in order of creation */
    if (--*run->left == 0)
        sg_sem_release(run->done);
}

static zipccl_status start_call(struct running *run)
{
    const struct zipccl_t2_call *call = run->call;

    if (call->payload.sizes != NULL) {
        run->nowhere = malloc(2 * buffer_bytes(call->plan) + 1);
        if (run->nowhere == NULL)
            return ZIPCCL_ERR_NOMEM;
        run->sizes = *call->payload.sizes;
        run->sizes.nowhere = run->nowhere;
        run->sizes.nowhere_bytes = 2 * buffer_bytes(call->plan) + 1;
    }
    ZIPCCL_TRY(zipccl_t2_comm_create(run->world, call->topology, call->gpus,
                                     call->payload.sizes != NULL ? &run->sizes : NULL, 1,
                                     &run->comm));
    for (uint32_t r = 0; r < run->comm.nranks; r++) {
        uint32_t gpu = call->gpus != NULL ? call->gpus[r] : r;
        sg_actor_t actor = sg_actor_init("rank", run->world->platform.gpu[gpu]);

        ++*run->left;
        sg_actor_set_data(actor, run);
        sg_actor_start_(actor, rank_actor, 0, NULL);
    }
    return ZIPCCL_OK;
}

static void finish_call(struct running *run, double start_s)
{
    struct zipccl_t2_result *result = run->result;
    uint32_t n = run->comm.nranks;

    if (run->comm.transports != NULL) {
        const struct zipccl_transport *any = run->comm.transports[0];

        result->seconds = run->done_s - run->entered_s;
        result->end_s = run->done_s - start_s;
        result->nmessages = zipccl_transport_simgrid_messages(any);
        for (size_t i = 0; result->bytes != NULL && i < (size_t)n * n; i++)
            result->bytes[i] =
                zipccl_transport_simgrid_bytes(any, (uint32_t)(i / n), (uint32_t)(i % n));
    }
    zipccl_t2_comm_destroy(&run->comm);
    free(run->nowhere);
}

zipccl_status zipccl_t2_run(struct zipccl_t2_world *world, const struct zipccl_t2_call *calls,
                            uint32_t ncalls, struct zipccl_t2_result *results)
{
    struct running *runs = calloc(ncalls + 1, sizeof(*runs));
    double start_s = simgrid_get_clock();
    zipccl_status status = runs != NULL ? ZIPCCL_OK : ZIPCCL_ERR_NOMEM;
    uint32_t left = 1, n = 0; /* this actor counts as one until all have been started */
    sg_sem_t done = sg_sem_init(0);

    while (status == ZIPCCL_OK && n < ncalls) {
        results[n] = (struct zipccl_t2_result){.right = true, .bytes = results[n].bytes};
        runs[n] = (struct running){.world = world,
                                   .call = &calls[n],
                                   .result = &results[n],
                                   .entered_s = start_s,
                                   .done_s = start_s,
                                   .left = &left,
                                   .done = done};
        status = start_call(&runs[n]);
        n++;
    }
    if (--left > 0)
        sg_sem_acquire(done);
    for (uint32_t i = 0; i < n; i++)
        finish_call(&runs[i], start_s);
    sg_sem_destroy(done);
    free(runs);
    return status;
}

/* What zipccl_t2_price() does in its child; results, then the bytes of each that wants them. */
struct pricing_job {
    const struct zipccl_cluster *cluster;
    const struct zipccl_t2_call *calls;
    uint32_t ncalls;
    struct zipccl_t2_result *results; /* the parent's, to see who wants bytes; then the child's */
    struct zipccl_t2_world *world;
};

static size_t wanted_bytes(const struct pricing_job *job)
{
    size_t nbytes = job->ncalls * sizeof(struct zipccl_t2_result);

    for (uint32_t i = 0; i < job->ncalls; i++)
        if (job->results[i].bytes != NULL)
            nbytes += (size_t)job->calls[i].topology->nranks * job->calls[i].topology->nranks *
                      sizeof(uint64_t);
    return nbytes;
}

static zipccl_status price_main(void *context)
{
    struct pricing_job *job = context;

    /* What NICs have saved up depends on what went before: the same, as at T0. */
    if (job->cluster->nic_burst_bytes > 0)
        ZIPCCL_TRY(zipccl_t2_run(job->world, job->calls, job->ncalls, job->results));
    return zipccl_t2_run(job->world, job->calls, job->ncalls, job->results);
}

static zipccl_status price_work(void *context, void *out, struct zipccl_error *error)
{
    struct pricing_job *job = context;
    struct zipccl_t2_result *results = out;
    uint64_t *bytes = (uint64_t *)(void *)(results + job->ncalls);
    zipccl_status status;

    for (uint32_t i = 0; i < job->ncalls; i++) {
        size_t n = job->calls[i].topology->nranks;

        if (job->results[i].bytes == NULL)
            continue;
        results[i].bytes = bytes;
        bytes += n * n;
    }
    job->results = results;
    ZIPCCL_TRY(zipccl_t2_open(job->cluster, &job->world, error));
    status = zipccl_t2_main(job->world, price_main, job, error);
    zipccl_t2_close(job->world);
    return status;
}

zipccl_status zipccl_t2_price(const struct zipccl_cluster *cluster,
                              const struct zipccl_t2_call *calls, uint32_t ncalls,
                              struct zipccl_t2_result *results, struct zipccl_error *error)
{
    struct pricing_job job = {cluster, calls, ncalls, results, NULL};
    size_t nbytes = wanted_bytes(&job);
    struct zipccl_t2_result *got = calloc(1, nbytes + 1);
    struct zipccl_child_task task = {price_work, &job, got, nbytes};
    zipccl_status status;

    if (got == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    status = zipccl_child_run(&task, 1, 1, NULL, NULL, error);
    if (status == ZIPCCL_OK) {
        const uint64_t *bytes = (const uint64_t *)(const void *)(got + ncalls);

        for (uint32_t i = 0; i < ncalls; i++) {
            size_t n = calls[i].topology->nranks;
            uint64_t *own = results[i].bytes;

            results[i] = got[i];
            results[i].bytes = own;
            if (own == NULL)
                continue;
            memcpy(own, bytes, n * n * sizeof(*bytes));
            bytes += n * n;
        }
    }
    free(got);
    return status;
}
