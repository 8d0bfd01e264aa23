/*
 * world.c - worlds of threads, and what all kinds share
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/ranks/world.h"

#include "core/transport_mem.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Groups made so far: each has a topology of its own and the handles of its members. */
struct group {
    struct group *next;
    struct zipccl_topology *topology;
    struct zipccl_transport **handles; /* [topology->nranks] */
};

struct threads_world {
    struct zipccl_world base;
    struct zipccl_topology *topology;
    struct zipccl_transport **whole; /* [nranks] */
    struct group *groups;
    double limit_s;
};

/* One rank of a run. */
struct rank_job {
    pthread_t thread;
    struct zipccl_transport *transport;
    zipccl_world_fn *fn;
    void *arg;
    zipccl_status status;
};

static void *rank_main(void *p)
{
    struct rank_job *job = p;

    job->status = job->fn(job->transport, job->arg);
    if (job->status != ZIPCCL_OK)
        job->transport->ops->abort(job->transport);
    return NULL;
}

/* The rank that failed by itself is told, not one that was aborted because of it. */
static zipccl_status first_failure(const struct rank_job *jobs, uint32_t n,
                                   struct zipccl_error *error)
{
    const struct rank_job *failed = NULL;

    for (uint32_t r = 0; r < n; r++)
        if (jobs[r].status != ZIPCCL_OK &&
            (failed == NULL ||
             (failed->status == ZIPCCL_ERR_ABORTED && jobs[r].status != ZIPCCL_ERR_ABORTED)))
            failed = &jobs[r];
    if (failed == NULL)
        return ZIPCCL_OK;
    const char *text = zipccl_transport_text(failed->transport);
    return zipccl_fail(error, failed->status, "rank %u: %s%s%s", failed->transport->rank,
                       zipccl_status_string(failed->status), text[0] != '\0' ? "; " : "", text);
}

static zipccl_status threads_run(struct zipccl_world *base, zipccl_world_fn *fn, void *arg,
                                 struct zipccl_error *error)
{
    struct threads_world *world = (struct threads_world *)base;
    struct rank_job *jobs = calloc(base->nranks, sizeof *jobs);
    zipccl_status status = ZIPCCL_OK;
    uint32_t nstarted = 0;

    if (jobs == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "no memory for %u ranks", base->nranks);
    for (; nstarted < base->nranks; nstarted++) {
        struct rank_job *job = &jobs[nstarted];

        *job = (struct rank_job){.transport = world->whole[nstarted], .fn = fn, .arg = arg};
        if (pthread_create(&job->thread, NULL, rank_main, job) != 0)
            break;
    }
    if (nstarted < base->nranks) {
        world->whole[0]->ops->abort(world->whole[0]);
        status = zipccl_fail(error, ZIPCCL_ERR_NOMEM, "rank %u of %u: cannot start its thread",
                             nstarted, base->nranks);
    }
    for (uint32_t r = 0; r < nstarted; r++)
        pthread_join(jobs[r].thread, NULL);
    if (status == ZIPCCL_OK)
        status = first_failure(jobs, nstarted, error);
    free(jobs);
    return status;
}

static void destroy_group(struct group *group)
{
    if (group->handles != NULL && group->topology != NULL)
        for (uint32_t r = 0; r < group->topology->nranks; r++)
            if (group->handles[r] != NULL)
                group->handles[r]->ops->destroy(group->handles[r]);
    free(group->handles);
    zipccl_topology_destroy(group->topology);
    free(group);
}

/* Topology and transports of 'group' from the nodes that its members have in the world. */
static zipccl_status build_group(struct group *group, const struct zipccl_topology *whole,
                                 const uint32_t *ranks, uint32_t n)
{
    group->handles = calloc(n, sizeof *group->handles);
    if (group->handles == NULL)
        return ZIPCCL_ERR_NOMEM;
    ZIPCCL_TRY(zipccl_topology_create_group(whole, ranks, n, &group->topology));
    return zipccl_transport_mem_create(group->topology, group->handles);
}

static zipccl_status threads_group(struct zipccl_world *base, const uint32_t *ranks, uint32_t n,
                                   struct zipccl_transport **mine, struct zipccl_error *error)
{
    struct threads_world *world = (struct threads_world *)base;
    struct group *group = calloc(1, sizeof *group);
    zipccl_status status =
        group != NULL ? build_group(group, base->topology, ranks, n) : ZIPCCL_ERR_NOMEM;

    if (status != ZIPCCL_OK) {
        if (group != NULL)
            destroy_group(group);
        return zipccl_fail(error, status, "a group of %u ranks: %s", n,
                           zipccl_status_string(status));
    }
    for (uint32_t r = 0; r < base->nlocal; r++)
        mine[r] = NULL;
    for (uint32_t i = 0; i < n; i++)
        mine[ranks[i]] = group->handles[i];
    zipccl_transport_mem_set_limit(group->handles[0], world->limit_s);
    group->next = world->groups;
    world->groups = group;
    return ZIPCCL_OK;
}

static void threads_close(struct zipccl_world *base)
{
    struct threads_world *world = (struct threads_world *)base;

    while (world->groups != NULL) {
        struct group *next = world->groups->next;

        destroy_group(world->groups);
        world->groups = next;
    }
    if (world->whole != NULL)
        for (uint32_t r = 0; r < base->nranks; r++)
            if (world->whole[r] != NULL)
                world->whole[r]->ops->destroy(world->whole[r]);
    free(world->whole);
    zipccl_topology_destroy(world->topology);
    free(world);
}

static const struct zipccl_world_ops threads_ops = {
    .name = "threads", .run = threads_run, .group = threads_group, .close = threads_close};

static zipccl_status threads_topology(const struct zipccl_world_options *options,
                                      struct zipccl_topology **out)
{
    uint32_t n = options->nthreads;
    uint32_t per_node = options->ranks_per_node != 0 ? options->ranks_per_node : n;
    uint32_t *nodes = malloc(n * sizeof *nodes);
    zipccl_status status;

    if (nodes == NULL)
        return ZIPCCL_ERR_NOMEM;
    for (uint32_t r = 0; r < n; r++)
        nodes[r] = r / per_node;
    status = zipccl_topology_create(n, nodes, out);
    free(nodes);
    return status;
}

static zipccl_status threads_open(const struct zipccl_world_options *options,
                                  struct zipccl_world **out, struct zipccl_error *error)
{
    struct threads_world *world;
    zipccl_status status;

    if (options->nthreads == 0)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "a world of threads needs at least one");
    world = calloc(1, sizeof *world);
    if (world == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "no memory for a world");
    world->base = (struct zipccl_world){.ops = &threads_ops,
                                        .kind = ZIPCCL_WORLD_THREADS,
                                        .nranks = options->nthreads,
                                        .nlocal = options->nthreads,
                                        .nhost = options->nthreads};
    world->whole = calloc(options->nthreads, sizeof(struct zipccl_transport *));
    status = world->whole != NULL ? threads_topology(options, &world->topology) : ZIPCCL_ERR_NOMEM;
    if (status == ZIPCCL_OK)
        status = zipccl_transport_mem_create(world->topology, world->whole);
    if (status != ZIPCCL_OK) {
        threads_close(&world->base);
        return zipccl_fail(error, status, "a world of %u threads: %s", options->nthreads,
                           zipccl_status_string(status));
    }
    world->base.topology = world->topology;
    world->limit_s = options->timeout_s;
    zipccl_transport_mem_set_limit(world->whole[0], world->limit_s);
    *out = &world->base;
    return ZIPCCL_OK;
}

zipccl_status zipccl_world_open(const struct zipccl_world_options *options,
                                struct zipccl_world **out, struct zipccl_error *error)
{
    if (options->kind == ZIPCCL_WORLD_THREADS)
        return threads_open(options, out, error);
    if (options->kind == ZIPCCL_WORLD_NCCL)
        return options->open_nccl != NULL
                   ? options->open_nccl(options, out, error)
                   : zipccl_fail(error, ZIPCCL_ERR_UNSUPPORTED, "this program has no NCCL");
    if (options->open_mpi == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_UNSUPPORTED, "this build has no MPI");
    return options->open_mpi(options, out, error);
}

zipccl_status zipccl_world_run(struct zipccl_world *world, zipccl_world_fn *fn, void *arg,
                               struct zipccl_error *error)
{
    return world->ops->run(world, fn, arg, error);
}

zipccl_status zipccl_world_group(struct zipccl_world *world, const uint32_t *ranks, uint32_t n,
                                 struct zipccl_transport **mine, struct zipccl_error *error)
{
    if (n == 0)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "a group without ranks");
    for (uint32_t i = 0; i < n; i++) {
        if (ranks[i] >= world->nranks)
            return zipccl_fail(error, ZIPCCL_ERR_ARG, "a group has rank %u, the world only %u",
                               ranks[i], world->nranks);
        for (uint32_t k = 0; k < i; k++)
            if (ranks[k] == ranks[i])
                return zipccl_fail(error, ZIPCCL_ERR_ARG, "a group has rank %u twice", ranks[i]);
    }
    return world->ops->group(world, ranks, n, mine, error);
}

void zipccl_world_close(struct zipccl_world *world)
{
    if (world != NULL)
        world->ops->close(world);
}

static zipccl_status post_all(struct zipccl_transport *t, const void *mine, size_t nbytes,
                              unsigned char *all)
{
    for (uint32_t p = 0; p < t->nranks; p++) {
        if (p == t->rank)
            continue;
        ZIPCCL_TRY(t->ops->send(t, p, mine, nbytes));
        ZIPCCL_TRY(t->ops->recv(t, p, all + p * nbytes, nbytes));
    }
    return ZIPCCL_OK;
}

zipccl_status zipccl_world_gather(struct zipccl_transport *t, const void *mine, size_t nbytes,
                                  void *all)
{
    zipccl_status status, ended;

    if (t->ops->gather != NULL)
        return t->ops->gather(t, mine, nbytes, all);
    memcpy((unsigned char *)all + t->rank * nbytes, mine, nbytes);
    status = t->ops->group_begin(t);
    if (status == ZIPCCL_OK) {
        status = post_all(t, mine, nbytes, all);
        if (status != ZIPCCL_OK)
            t->ops->abort(t);
        ended = t->ops->group_end(t); /* in any case: the buffers are the caller's */
        status = status != ZIPCCL_OK ? status : ended;
    }
    if (status != ZIPCCL_OK)
        t->ops->abort(t);
    return status;
}
