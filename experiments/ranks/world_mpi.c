/*
 * world_mpi.c - worlds whose ranks are the processes of an MPI job
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/ranks/world_mpi.h"

#include "core/transport_mpi.h"
#include "experiments/ranks/launch.h"
#include "experiments/program/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What a group's ranks agree on in MPI's own communication. */
#define GROUP_TAG  17
#define HOST_BYTES 256

struct group {
    struct group *next;
    struct zipccl_topology *topology;
    struct zipccl_transport *transport;
};

struct mpi_world {
    struct zipccl_world base;
    struct zipccl_transport_mpi_config config;
    struct zipccl_topology *topology;
    struct zipccl_transport *whole;
    struct group *groups;
    bool failed;
};

/* What has to happen when the process exits: there is one MPI in it, so this is no world's. */
static enum { MPI_IS_DOWN, MPI_IS_UP } at_exit;

/* What the job ends with if this process fails: as the process itself. */
static int end_code = ZIPCCL_EXIT_FAILED;

/* The others may wait for this process for ever: end the job with it. */
static void end_job(void)
{
    int over = 0, rank = 0;

    if (at_exit == MPI_IS_DOWN || MPI_Finalized(&over) != MPI_SUCCESS || over)
        return;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fprintf(stderr, "rank %d has failed or left the others: ending the job\n", rank);
    fflush(NULL);
    MPI_Abort(MPI_COMM_WORLD, end_code);
}

static void finalize(void)
{
    at_exit = MPI_IS_DOWN;
    MPI_Finalize();
}

static void destroy_groups(struct mpi_world *world)
{
    while (world->groups != NULL) {
        struct group *next = world->groups->next;

        if (world->groups->transport != NULL)
            world->groups->transport->ops->destroy(world->groups->transport);
        zipccl_topology_destroy(world->groups->topology);
        free(world->groups);
        world->groups = next;
    }
}

/* After a failure MPI stays up, and with it what it may still use; see end_job(). */
static void mpi_close(struct zipccl_world *base)
{
    struct mpi_world *world = (struct mpi_world *)base;

    destroy_groups(world);
    if (world->whole != NULL)
        world->whole->ops->destroy(world->whole);
    zipccl_topology_destroy(world->topology);
    if (!world->failed)
        finalize();
    free(world);
}

static zipccl_status mpi_run(struct zipccl_world *base, zipccl_world_fn *fn, void *arg,
                             struct zipccl_error *error)
{
    struct mpi_world *world = (struct mpi_world *)base;
    zipccl_status status = fn(world->whole, arg);
    const char *text;

    if (status == ZIPCCL_OK)
        return status;
    world->failed = true;
    end_code = zipccl_exit_code(status);
    world->whole->ops->abort(world->whole);
    text = world->whole->ops->error_text(world->whole);
    return zipccl_fail(error, status, "rank %u: %s%s%s", base->first, zipccl_status_string(status),
                       text[0] != '\0' ? "; " : "", text);
}

static zipccl_status mpi_group(struct zipccl_world *base, const uint32_t *ranks, uint32_t n,
                               struct zipccl_transport **mine, struct zipccl_error *error)
{
    struct mpi_world *world = (struct mpi_world *)base;
    struct group *group;
    zipccl_status status;
    bool member = false;

    mine[0] = NULL;
    for (uint32_t i = 0; i < n; i++)
        member = member || ranks[i] == base->first;
    if (!member)
        return ZIPCCL_OK;
    group = calloc(1, sizeof *group);
    status = group != NULL
                 ? zipccl_topology_create_group(base->topology, ranks, n, &group->topology)
                 : ZIPCCL_ERR_NOMEM;
    if (status != ZIPCCL_OK)
        zipccl_fail(error, status, "a group of %u ranks: %s", n, zipccl_status_string(status));
    else
        status =
            zipccl_transport_mpi_create_group(MPI_COMM_WORLD, ranks, n, GROUP_TAG, group->topology,
                                              &world->config, &group->transport, error);
    if (status != ZIPCCL_OK) {
        world->failed = true; /* the other members wait */
        if (group != NULL)
            zipccl_topology_destroy(group->topology);
        free(group);
        return status;
    }
    group->next = world->groups;
    world->groups = group;
    mine[0] = group->transport;
    return ZIPCCL_OK;
}

static const struct zipccl_world_ops mpi_ops = {
    .name = "mpi", .run = mpi_run, .group = mpi_group, .close = mpi_close};

/* A process's host: its name, and the lowest rank that MPI says shares memory with it. */
struct host {
    char name[HOST_BYTES];
    int32_t lowest;
};

static int find_host(int rank, struct host *host)
{
    MPI_Comm local;
    int rc;

    memset(host, 0, sizeof *host);
    if (gethostname(host->name, sizeof host->name - 1) != 0)
        host->name[0] = '\0';
    rc = MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &local);
    if (rc == MPI_SUCCESS)
        rc = MPI_Allreduce(&rank, &host->lowest, 1, MPI_INT, MPI_MIN, local);
    if (rc == MPI_SUCCESS)
        rc = MPI_Comm_free(&local);
    return rc;
}

/* Node of each rank: the lowest rank on the same host; network namespaces of one machine, which have
 * names of their own, are hosts. */
static zipccl_status find_nodes(uint32_t rank, uint32_t nranks, uint32_t *nodes, uint32_t *nhost,
                                struct zipccl_error *error)
{
    struct host mine, *all = calloc(nranks, sizeof *all);
    zipccl_status status = ZIPCCL_OK;

    if (all == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "no memory for %u hosts", nranks);
    if (find_host((int)rank, &mine) != MPI_SUCCESS ||
        MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, MPI_COMM_WORLD) !=
            MPI_SUCCESS)
        status = zipccl_fail(error, ZIPCCL_ERR_IO, "MPI does not tell which ranks share a host");
    for (uint32_t r = 0; status == ZIPCCL_OK && r < nranks; r++)
        for (nodes[r] = 0; nodes[r] < r; nodes[r]++)
            if (memcmp(&all[nodes[r]], &all[r], sizeof *all) == 0)
                break;
    *nhost = 0;
    for (uint32_t r = 0; status == ZIPCCL_OK && r < nranks; r++)
        *nhost += nodes[r] == nodes[rank];
    free(all);
    return status;
}

static zipccl_status make_topology(const struct zipccl_world_options *options,
                                   struct mpi_world *world, struct zipccl_error *error)
{
    uint32_t n = world->base.nranks;
    uint32_t *nodes = malloc(n * sizeof *nodes);
    zipccl_status status;

    if (nodes == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "no memory for %u ranks", n);
    status = find_nodes(world->base.first, n, nodes, &world->base.nhost, error);
    for (uint32_t r = 0; r < n && options->ranks_per_node > 0; r++)
        nodes[r] = r / options->ranks_per_node;
    if (status == ZIPCCL_OK) {
        status = zipccl_topology_create(n, nodes, &world->topology);
        if (status != ZIPCCL_OK)
            zipccl_fail(error, status, "a topology of %u ranks: %s", n,
                        zipccl_status_string(status));
    }
    free(nodes);
    return status;
}

/*
 * What suits TCP better than Open MPI's defaults, unless the user has said otherwise; read by MPI_Init.
 * Pieces of the transport go at once (core/transport_mpi.h), and messages are sent, not put: with puts
 * Open MPI 4.1 leaves links idle when all ranks exchange (1.40 s instead of 1.05 s for an all-gather of
 * 8 MiB from each of 4 ranks at 200 Mb/s, its own and ours alike).
 */
static zipccl_status suit_tcp(struct zipccl_error *error)
{
    char eager[16];

    snprintf(eager, sizeof eager, "%d", ZIPCCL_MPI_EAGER_BYTES);
    if (setenv("OMPI_MCA_btl_tcp_eager_limit", eager, 0) != 0 ||
        setenv("OMPI_MCA_btl_tcp_flags", "send,inplace", 0) != 0)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "no memory for settings of Open MPI");
    return ZIPCCL_OK;
}

/* Bring MPI up, and see whether it has the ranks that the launcher has started. */
static zipccl_status start_mpi(int *rank, int *size, struct zipccl_error *error)
{
    struct zipccl_launch launch;
    int threads = MPI_THREAD_SINGLE, up = 0;
    zipccl_status status;

    ZIPCCL_TRY(zipccl_launch_from_environment(&launch, error));
    if (MPI_Initialized(&up) == MPI_SUCCESS && up)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "a program has one world of MPI's processes");
    ZIPCCL_TRY(suit_tcp(error));
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &threads) != MPI_SUCCESS)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "MPI does not start");
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, size);
    status = zipccl_launch_check_mpi(&launch, (uint32_t)*rank, (uint32_t)*size, error);
    if (status == ZIPCCL_OK && threads < MPI_THREAD_MULTIPLE)
        status = zipccl_fail(error, ZIPCCL_ERR_UNSUPPORTED,
                             "this MPI has no MPI_THREAD_MULTIPLE, which a world needs");
    if (status != ZIPCCL_OK && *size == 1) {
        MPI_Finalize();
        return status;
    }
    at_exit = MPI_IS_UP; /* also where this process alone has failed: the others go on */
    if (atexit(end_job) != 0)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "cannot note what to do at exit");
    return status;
}

zipccl_status zipccl_world_open_mpi(const struct zipccl_world_options *options,
                                    struct zipccl_world **out, struct zipccl_error *error)
{
    struct mpi_world *world = calloc(1, sizeof *world);
    int rank = 0, size = 1;
    zipccl_status status;

    if (world == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "no memory for a world");
    status = start_mpi(&rank, &size, error);
    if (status != ZIPCCL_OK) {
        free(world);
        return status;
    }
    world->base = (struct zipccl_world){.ops = &mpi_ops,
                                        .kind = ZIPCCL_WORLD_MPI,
                                        .nranks = (uint32_t)size,
                                        .nlocal = 1,
                                        .first = (uint32_t)rank};
    zipccl_transport_mpi_config_init(&world->config);
    world->config.limit_s = options->timeout_s;
    status = make_topology(options, world, error);
    if (status == ZIPCCL_OK)
        status = zipccl_transport_mpi_create(MPI_COMM_WORLD, world->topology, &world->config,
                                             &world->whole, error);
    if (status != ZIPCCL_OK) {
        world->failed = true;
        mpi_close(&world->base);
        return status;
    }
    world->base.topology = world->topology;
    *out = &world->base;
    return ZIPCCL_OK;
}
