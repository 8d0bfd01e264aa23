/*
 * regret.c - builds, prices and runs all candidates for a call
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/regret.h"

#include "sim/child.h"
#include "sim/t2.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Staging that a call may use, as the communicator's default. */
#define MAX_STAGING_BYTES ((size_t)256 << 20)

#define MAX_CANDIDATES 256u

/* T0 less latencies beyond so much of the least T0 is out of reach. */
#define REACH 1.5

/* Powers of two are the chooser's. */
static const uint32_t chunk_counts[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};

struct candidate {
    struct zipccl_plan *plan;
    struct zipccl_cost cost;
    uint64_t digest;
};

/* One case in progress. */
struct job {
    const struct zipccl_regret_case *c;
    const struct zipccl_cluster *cluster;
    struct zipccl_topology *topology;
    struct zipccl_placement placement;
    struct zipccl_cost_params params;
    struct zipccl_wire_sizes sizes;
    size_t *splits; /* uneven ops */
    struct candidate list[MAX_CANDIDATES];
    uint32_t n;
};

static size_t message_bytes(const struct zipccl_regret_case *c, size_t n, double ratio)
{
    size_t bound = zipccl_bound(c->call.dtype, n);
    double nbytes =
        ZIPCCL_MESSAGE_HEADER_BYTES + (double)(n * zipccl_dtype_size(c->call.dtype)) / ratio;

    return nbytes < (double)bound ? (size_t)nbytes : bound;
}

static size_t fast_bytes(void *context, uint32_t src, uint32_t dst, size_t n)
{
    const struct zipccl_regret_case *c = context;

    (void)src;
    (void)dst;
    return message_bytes(c, n, c->ratio);
}

static size_t ratio_bytes(void *context, uint32_t src, uint32_t dst, size_t n)
{
    const struct zipccl_regret_case *c = context;

    (void)src;
    (void)dst;
    return message_bytes(c, n, c->ratio * c->ratio_gain);
}

static int overflows(void *context, uint32_t src, uint32_t dst, size_t n, size_t capacity)
{
    return fast_bytes(context, src, dst, n) > capacity;
}

static void sim_bytes(void *context, enum zipccl_effort effort, size_t n, uint32_t nsummed,
                      size_t *mean, size_t *longest)
{
    (void)nsummed;
    *mean = *longest = effort == ZIPCCL_EFFORT_RATIO ? ratio_bytes(context, 0, 0, n)
                                                     : fast_bytes(context, 0, 0, n);
}

/* As the chooser assumes them: every pair, or a shift to the next node. */
static zipccl_status make_splits(struct job *job)
{
    size_t n = job->topology->nranks,
           shift = job->cluster->nodes > 1 ? job->cluster->gpus_per_node : 1;
    enum zipccl_op op = job->c->call.op;

    if (!zipccl_is_uneven(op))
        return ZIPCCL_OK;
    job->splits = calloc(n * n, sizeof(*job->splits));
    if (job->splits == NULL)
        return ZIPCCL_ERR_NOMEM;
    for (size_t i = 0; i < n * n; i++)
        if (op == ZIPCCL_ALLTOALLV || i % n == (i / n + shift) % n)
            job->splits[i] = job->c->call.count;
    return ZIPCCL_OK;
}

static zipccl_status open_job(struct job *job, const struct zipccl_cluster *cluster,
                              const struct zipccl_regret_case *c)
{
    memset(job, 0, sizeof(*job));
    job->c = c;
    job->cluster = cluster;
    zipccl_cluster_cost_params(cluster, &job->params);
    ZIPCCL_TRY(zipccl_topology_create_even(cluster->nodes, cluster->gpus_per_node, &job->topology));
    job->placement = (struct zipccl_placement){job->topology, NULL};
    ZIPCCL_TRY(make_splits(job));
    job->sizes = (struct zipccl_wire_sizes){.bytes = fast_bytes,
                                            .ratio_bytes = ratio_bytes,
                                            .context = (void *)(uintptr_t)c,
                                            .splits = job->splits,
                                            .overflows = overflows,
                                            .by_n = true};
    return ZIPCCL_OK;
}

static void close_job(struct job *job)
{
    for (uint32_t i = 0; i < job->n; i++)
        zipccl_plan_destroy(job->list[i].plan);
    zipccl_topology_destroy(job->topology);
    free(job->splits);
}

/* Price 'plan' and keep it if it is not there yet; takes it. */
static zipccl_status add_plan(struct job *job, struct zipccl_plan *plan)
{
    struct candidate c = {.plan = plan, .digest = zipccl_plan_digest(plan)};
    zipccl_status status = ZIPCCL_OK;
    bool known = job->n == MAX_CANDIDATES;

    for (uint32_t i = 0; i < job->n; i++)
        known = known || job->list[i].digest == c.digest;
    if (!known)
        status = zipccl_cost_plan(plan, &job->placement, &job->params, &job->sizes, &c.cost);
    if (known || status != ZIPCCL_OK) {
        zipccl_plan_destroy(plan);
        return status;
    }
    job->list[job->n++] = c;
    return ZIPCCL_OK;
}

/* One strategy with one number of chunks, in the narrowest class that all messages fit. */
static zipccl_status add_candidate(struct job *job, const struct zipccl_strategy *strategy,
                                   const struct zipccl_call *call, uint32_t nchunks)
{
    for (int cls = ZIPCCL_CLASS_SETTLED; cls >= ZIPCCL_CLASS_WIDE; cls--) {
        struct zipccl_plan *plan = NULL;
        zipccl_status status = strategy->build(call, job->topology, job->params.channels, nchunks,
                                               (uint32_t)cls, MAX_STAGING_BYTES, &plan);

        if (status == ZIPCCL_ERR_UNSUPPORTED || status == ZIPCCL_ERR_NOMEM)
            return ZIPCCL_OK; /* no candidate */
        ZIPCCL_TRY(status);
        if (!zipccl_lower_overflows(plan, job->topology, &job->sizes))
            return add_plan(job, plan);
        zipccl_plan_destroy(plan);
    }
    return ZIPCCL_OK;
}

static zipccl_status add_candidates(struct job *job)
{
    bool ratio = job->params.ratio_encode_Bps > 0;

    for (unsigned s = 0; zipccl_strategies[s] != NULL; s++)
        for (unsigned k = 0; k < sizeof(chunk_counts) / sizeof(*chunk_counts); k++)
            for (unsigned e = 0; e < (ratio ? 2u : 1u); e++) {
                const struct zipccl_strategy *strategy = zipccl_strategies[s];
                struct zipccl_call call = job->c->call;

                call.effort = (enum zipccl_effort)e;
                if (!strategy->serves(&call) || (e > 0 && !strategy->exact_sizes) ||
                    (k > 0 && !zipccl_strategy_chunks(strategy, &call)))
                    continue;
                ZIPCCL_TRY(add_candidate(job, strategy, &call, chunk_counts[k]));
            }
    return job->n > 0 ? ZIPCCL_OK : ZIPCCL_ERR_UNSUPPORTED;
}

static bool is_split(const struct zipccl_plan *plan)
{
    return plan->nsteps > 0 && plan->steps[0].part != 0;
}

static zipccl_status run_plan(const struct job *job, struct zipccl_t2_world *world,
                              const struct candidate *c, struct zipccl_regret_plan *out)
{
    const struct zipccl_sim_sizes sizes = {.bytes = sim_bytes,
                                           .context = (void *)(uintptr_t)job->c};
    struct zipccl_t2_call call = {.plan = c->plan,
                                  .topology = job->topology,
                                  .payload = {.sizes = &sizes, .splits = job->splits}};
    struct zipccl_t2_result result = {.bytes = NULL};

    ZIPCCL_TRY(zipccl_t2_run(world, &call, 1, &result));
    *out = (struct zipccl_regret_plan){.nchunks = c->plan->nchunks,
                                       .compressed = c->plan->compressed,
                                       .split = is_split(c->plan),
                                       .t0_s = c->cost.total_s,
                                       .t2_s = result.seconds};
    snprintf(out->name, sizeof(out->name), "%.36s%s", c->plan->strategy,
             c->plan->compressed && c->plan->effort == ZIPCCL_EFFORT_RATIO ? " max-ratio" : "");
    return result.status;
}

/* Take 'plan' if it is faster than what is there. */
static void keep_faster(struct zipccl_regret_plan *best, const struct zipccl_regret_plan *plan)
{
    if (best->name[0] == 0 || plan->t2_s < best->t2_s)
        *best = *plan;
}

static zipccl_status run_case(struct job *job, struct zipccl_t2_world *world,
                              struct zipccl_regret *out)
{
    struct candidate chosen = {NULL, {0}, 0};
    double least = -1;
    zipccl_status status;

    ZIPCCL_TRY(add_candidates(job));
    ZIPCCL_TRY(zipccl_choose(&job->c->call, &job->placement, &job->params, &job->sizes,
                             ZIPCCL_MODE_ADAPTIVE, ZIPCCL_CLASS_SETTLED, MAX_STAGING_BYTES,
                             &chosen.plan, &chosen.cost));
    status = run_plan(job, world, &chosen, &out->chosen);
    out->best = out->chosen;
    keep_faster(out->chosen.compressed ? &out->best : &out->raw, &out->chosen);
    if (!out->chosen.split)
        keep_faster(&out->unsplit, &out->chosen);
    for (uint32_t i = 0; i < job->n; i++)
        if (least < 0 || job->list[i].cost.total_s < least)
            least = job->list[i].cost.total_s;
    out->ncandidates = job->n;
    for (uint32_t i = 0; i < job->n && status == ZIPCCL_OK; i++) {
        struct zipccl_regret_plan plan;

        if (job->list[i].cost.total_s - job->list[i].cost.alpha_s > REACH * least &&
            job->list[i].plan->compressed)
            continue;
        status = run_plan(job, world, &job->list[i], &plan);
        out->nrun++;
        keep_faster(&out->best, &plan);
        if (!plan.compressed)
            keep_faster(&out->raw, &plan);
        if (!plan.split)
            keep_faster(&out->unsplit, &plan);
    }
    out->regret = out->best.t2_s > 0 ? out->chosen.t2_s / out->best.t2_s - 1 : 0;
    zipccl_plan_destroy(chosen.plan);
    return status;
}

struct measuring {
    const struct zipccl_cluster *cluster;
    const struct zipccl_regret_case *cases;
    uint32_t ncases;
    struct zipccl_regret *out;
    struct zipccl_t2_world *world;
};

static zipccl_status measure_main(void *context)
{
    struct measuring *m = context;
    struct job *job = malloc(sizeof(*job));
    zipccl_status status = job != NULL ? ZIPCCL_OK : ZIPCCL_ERR_NOMEM;

    for (uint32_t i = 0; i < m->ncases && status == ZIPCCL_OK; i++) {
        status = open_job(job, m->cluster, &m->cases[i]);
        if (status == ZIPCCL_OK)
            status = run_case(job, m->world, &m->out[i]);
        close_job(job);
    }
    free(job);
    return status;
}

/* In a child. */
static zipccl_status measure_work(void *context, void *result, struct zipccl_error *error)
{
    struct measuring *m = context;
    zipccl_status status;

    m->out = result;
    ZIPCCL_TRY(zipccl_t2_open(m->cluster, &m->world, error));
    status = zipccl_t2_main(m->world, measure_main, m, error);
    zipccl_t2_close(m->world);
    return status;
}

zipccl_status zipccl_regret_measure(const struct zipccl_cluster *cluster,
                                    const struct zipccl_regret_case *cases, uint32_t ncases,
                                    struct zipccl_regret *out, struct zipccl_error *error)
{
    struct measuring m = {cluster, cases, ncases, NULL, NULL};
    struct zipccl_child_task task = {measure_work, &m, out, ncases * sizeof(*out)};

    memset(out, 0, ncases * sizeof(*out));
    return zipccl_child_run(&task, 1, 1, NULL, NULL, error);
}
