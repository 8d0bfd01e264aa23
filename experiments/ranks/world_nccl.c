/*
 * world_nccl.c - worlds whose ranks each have a GPU and talk by NCCL
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/ranks/world_nccl.h"

#include "experiments/ranks/launch.h"
#include "experiments/ranks/rendezvous.h"
#include "experiments/perf/timed_exec.h"
#include "gpu/exec_cuda.h"
#include "gpu/gate.h"
#include "gpu/zipccl_gpu.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Staging of an exec at most: what communicators have by default. */
#define STAGING_BYTES ((size_t)256 << 20)

#define HOST_BYTES 64

/* One rank of this process in a communicator; NULL transport: it is no member. */
struct member {
    ncclComm_t comm;
    cudaStream_t stream;
    struct zipccl_transport_nccl *transport;
};

struct group {
    struct group *next;
    struct zipccl_topology *topology;
    struct member *members; /* [nlocal] */
};

struct nccl_world {
    struct zipccl_world base;
    struct zipccl_topology *topology;
    int first_device;
    struct member *whole; /* [nlocal] */
    struct group *groups;
    double limit_s;
    enum zipccl_gate_mode gate;
    atomic_bool failed;
};

static zipccl_status cuda_fail(cudaError_t result, const char *what, struct zipccl_error *error)
{
    if (result == cudaSuccess)
        return ZIPCCL_OK;
    return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: %s", what, cudaGetErrorString(result));
}

static zipccl_status nccl_fail(ncclResult_t result, const char *what, struct zipccl_error *error)
{
    if (result == ncclSuccess)
        return ZIPCCL_OK;
    return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: %s; %s", what, ncclGetErrorString(result),
                       ncclGetLastError(NULL));
}

static struct zipccl_transport_nccl *nccl_of(struct zipccl_transport *transport)
{
    return (struct zipccl_transport_nccl *)transport;
}

/* Buffers on the device. */

/* The gate that was asked for; an error if some rank cannot have it. */
static zipccl_status open_gate(struct zipccl_exec_cuda *exec)
{
    struct zipccl_transport_nccl *t = exec->transport;
    bool able = true;

    if (t->gate == ZIPCCL_GATE_OFF || t->base.nranks == 1)
        return ZIPCCL_OK;
    ZIPCCL_TRY(zipccl_gate_open(exec, t->gate, &able));
    return able ? ZIPCCL_OK
                : zipccl_transport_nccl_cuda(
                      t, cudaErrorNotSupported,
                      "--gate: stream memory operations, ncclCommSplit or a thread");
}

static zipccl_status device_exec(struct zipccl_transport *transport, struct zipccl_exec **out)
{
    struct zipccl_exec_cuda_options options = {.most_staging = STAGING_BYTES, .time_codec = true};
    struct zipccl_exec_cuda *exec;

    ZIPCCL_TRY(zipccl_exec_cuda_create(nccl_of(transport), &options, &exec));
    *out = &exec->base;
    return open_gate(exec);
}

static zipccl_status device_use(struct zipccl_transport *transport)
{
    struct zipccl_transport_nccl *t = nccl_of(transport);
    int device = 0;

    ZIPCCL_TRY(
        zipccl_transport_nccl_check(t, t->api->CommCuDevice(t->comm, &device), "ncclCommCuDevice"));
    return zipccl_transport_nccl_cuda(t, cudaSetDevice(device), "choice of a GPU");
}

static void *device_stream(struct zipccl_transport *transport)
{
    return nccl_of(transport)->stream;
}

static void *device_alloc(size_t nbytes)
{
    void *p = NULL;

    return cudaMalloc(&p, nbytes) == cudaSuccess ? p : NULL;
}

static void device_free(void *p)
{
    cudaFree(p);
}

static zipccl_status device_wait(struct zipccl_transport *transport)
{
    struct zipccl_transport_nccl *t = nccl_of(transport);

    ZIPCCL_TRY(zipccl_transport_nccl_cuda(t, cudaEventRecord(t->event, t->stream), "an event"));
    return zipccl_transport_nccl_wait(t, t->event);
}

static zipccl_status device_copy(struct zipccl_transport *transport, void *dst, const void *src,
                                 size_t nbytes, bool to_device)
{
    struct zipccl_transport_nccl *t = nccl_of(transport);
    enum cudaMemcpyKind kind = to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;

    ZIPCCL_TRY(device_wait(transport)); /* within the limit; a copy from the device waits without */
    /* In the stream: what cudaMemcpy() leaves under way from pageable memory, it would not wait for. */
    ZIPCCL_TRY(zipccl_transport_nccl_cuda(t, cudaMemcpyAsync(dst, src, nbytes, kind, t->stream),
                                          "copy of a buffer"));
    return device_wait(transport);
}

static zipccl_status device_codec(struct zipccl_exec *exec, struct zipccl_timed_exec *timed)
{
    struct zipccl_cuda_codec codec;

    ZIPCCL_TRY(zipccl_exec_cuda_codec(zipccl_cuda_of(exec), &codec));
    timed->encode_s = codec.encode_s;
    timed->decode_s = codec.decode_s;
    timed->coded_raw = codec.coded_raw;
    timed->coded_wire = codec.coded_wire;
    return ZIPCCL_OK;
}

static void device_params(struct zipccl_cost_params *out)
{
    struct zipccl_gpu_options options;

    zipccl_gpu_options_init(&options, zipccl_nccl_linked());
    *out = options.params;
}

static const struct zipccl_world_device device = {
    .exec = device_exec,
    .use = device_use,
    .stream = device_stream,
    .alloc = device_alloc,
    .free = device_free,
    .copy = device_copy,
    .wait = device_wait,
    .codec = device_codec,
    .params = device_params,
};

/* Runs. */

struct rank_job {
    pthread_t thread;
    struct nccl_world *world;
    uint32_t local;
    zipccl_world_fn *fn;
    void *arg;
    zipccl_status status;
};

/* No rank of this process waits for one that failed; other processes are the launcher's to end. */
static void abort_all(struct nccl_world *world)
{
    world->failed = true;
    for (uint32_t l = 0; l < world->base.nlocal; l++) {
        if (world->whole[l].transport != NULL)
            atomic_store(&world->whole[l].transport->aborted, true);
        for (struct group *g = world->groups; g != NULL; g = g->next)
            if (g->members[l].transport != NULL)
                atomic_store(&g->members[l].transport->aborted, true);
    }
}

static void *rank_main(void *p)
{
    struct rank_job *job = p;
    struct nccl_world *world = job->world;

    job->status = ZIPCCL_ERR_IO;
    if (cudaSetDevice(world->first_device + (int)job->local) == cudaSuccess)
        job->status = job->fn(&world->whole[job->local].transport->base, job->arg);
    if (job->status != ZIPCCL_OK)
        abort_all(world);
    return NULL;
}

static zipccl_status first_failure(const struct rank_job *jobs, uint32_t n,
                                   struct zipccl_error *error)
{
    const struct rank_job *failed = NULL;
    const struct zipccl_transport *t;

    for (uint32_t r = 0; r < n; r++)
        if (jobs[r].status != ZIPCCL_OK &&
            (failed == NULL ||
             (failed->status == ZIPCCL_ERR_ABORTED && jobs[r].status != ZIPCCL_ERR_ABORTED)))
            failed = &jobs[r];
    if (failed == NULL)
        return ZIPCCL_OK;
    t = &failed->world->whole[failed->local].transport->base;
    return zipccl_transport_fail(t, failed->status, "a run", error);
}

static zipccl_status nccl_run(struct zipccl_world *base, zipccl_world_fn *fn, void *arg,
                              struct zipccl_error *error)
{
    struct nccl_world *world = (struct nccl_world *)base;
    struct rank_job *jobs = calloc(base->nlocal, sizeof *jobs);
    uint32_t nstarted = 0;
    zipccl_status status;

    if (jobs == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "no memory for %u ranks", base->nlocal);
    for (; nstarted < base->nlocal; nstarted++) {
        jobs[nstarted] = (struct rank_job){.world = world, .local = nstarted, .fn = fn, .arg = arg};
        if (base->nlocal == 1)
            rank_main(&jobs[0]);
        else if (pthread_create(&jobs[nstarted].thread, NULL, rank_main, &jobs[nstarted]) != 0)
            break;
    }
    if (nstarted < base->nlocal)
        abort_all(world);
    for (uint32_t r = 0; base->nlocal > 1 && r < nstarted; r++)
        pthread_join(jobs[r].thread, NULL);
    status = nstarted < base->nlocal ? zipccl_fail(error, ZIPCCL_ERR_NOMEM,
                                                   "rank %u: cannot start its thread", nstarted)
                                     : first_failure(jobs, nstarted, error);
    free(jobs);
    return status;
}

/* Communicators. */

static void members_close(struct nccl_world *world, struct member *members)
{
    for (uint32_t l = 0; members != NULL && l < world->base.nlocal; l++) {
        cudaSetDevice(world->first_device + (int)l);
        if (members[l].transport != NULL)
            members[l].transport->base.ops->destroy(&members[l].transport->base);
        if (members[l].stream != NULL && !world->failed)
            cudaStreamDestroy(members[l].stream);
        if (members[l].comm != NULL) {
            if (world->failed)
                ncclCommAbort(members[l].comm);
            else
                ncclCommDestroy(members[l].comm);
        }
    }
    free(members);
}

static zipccl_status make_transports(struct nccl_world *world, struct member *members,
                                     const struct zipccl_topology *topology,
                                     struct zipccl_error *error)
{
    for (uint32_t l = 0; l < world->base.nlocal; l++) {
        if (members[l].comm == NULL)
            continue;
        ZIPCCL_TRY(
            cuda_fail(cudaSetDevice(world->first_device + (int)l), "choice of a GPU", error));
        ZIPCCL_TRY(cuda_fail(cudaStreamCreateWithFlags(&members[l].stream, cudaStreamNonBlocking),
                             "a stream", error));
        ZIPCCL_TRY(zipccl_transport_nccl_create(members[l].comm, zipccl_nccl_linked(), topology,
                                                &members[l].transport, error));
        members[l].transport->stream = members[l].stream;
        members[l].transport->limit_s = world->limit_s;
        members[l].transport->gate = world->gate;
    }
    return ZIPCCL_OK;
}

static zipccl_status split(struct nccl_world *world, const uint32_t *ranks, uint32_t n,
                           struct group *group, struct zipccl_error *error)
{
    uint32_t first = world->base.first;
    zipccl_status status = ZIPCCL_OK;

    ZIPCCL_TRY(nccl_fail(ncclGroupStart(), "ncclGroupStart", error));
    for (uint32_t l = 0; l < world->base.nlocal && status == ZIPCCL_OK; l++) {
        int color = NCCL_SPLIT_NOCOLOR, key = 0;

        for (uint32_t i = 0; i < n; i++)
            if (ranks[i] == first + l) {
                color = 0;
                key = (int)i;
            }
        status = cuda_fail(cudaSetDevice(world->first_device + (int)l), "choice of a GPU", error);
        if (status == ZIPCCL_OK)
            status = nccl_fail(
                ncclCommSplit(world->whole[l].comm, color, key, &group->members[l].comm, NULL),
                "ncclCommSplit", error);
    }
    if (status != ZIPCCL_OK)
        ncclGroupEnd();
    else
        status = nccl_fail(ncclGroupEnd(), "ncclGroupEnd", error);
    return status;
}

static zipccl_status nccl_group(struct zipccl_world *base, const uint32_t *ranks, uint32_t n,
                                struct zipccl_transport **mine, struct zipccl_error *error)
{
    struct nccl_world *world = (struct nccl_world *)base;
    struct group *group = calloc(1, sizeof *group);
    zipccl_status status = ZIPCCL_ERR_NOMEM;

    if (group == NULL || (group->members = calloc(base->nlocal, sizeof(struct member))) == NULL) {
        free(group);
        return zipccl_fail(error, status, "no memory for a group of %u ranks", n);
    }
    group->next = world->groups;
    world->groups = group;
    status = zipccl_topology_create_group(base->topology, ranks, n, &group->topology);
    if (status != ZIPCCL_OK)
        return zipccl_fail(error, status, "a group of %u ranks", n);
    ZIPCCL_TRY(split(world, ranks, n, group, error));
    ZIPCCL_TRY(make_transports(world, group->members, group->topology, error));
    for (uint32_t l = 0; l < base->nlocal; l++)
        mine[l] = group->members[l].transport != NULL ? &group->members[l].transport->base : NULL;
    return ZIPCCL_OK;
}

static void nccl_close(struct zipccl_world *base)
{
    struct nccl_world *world = (struct nccl_world *)base;

    while (world->groups != NULL) {
        struct group *next = world->groups->next;

        members_close(world, world->groups->members);
        zipccl_topology_destroy(world->groups->topology);
        free(world->groups);
        world->groups = next;
    }
    members_close(world, world->whole);
    zipccl_topology_destroy(world->topology);
    free(world);
}

static const struct zipccl_world_ops nccl_ops = {
    .name = "nccl", .run = nccl_run, .group = nccl_group, .close = nccl_close};

/* Opening. */

static zipccl_status open_comms(struct nccl_world *world, ncclUniqueId id,
                                struct zipccl_error *error)
{
    uint32_t n = world->base.nlocal;
    zipccl_status status = ZIPCCL_OK;

    ZIPCCL_TRY(nccl_fail(ncclGroupStart(), "ncclGroupStart", error));
    for (uint32_t l = 0; l < n && status == ZIPCCL_OK; l++) {
        status = cuda_fail(cudaSetDevice(world->first_device + (int)l), "choice of a GPU", error);
        if (status == ZIPCCL_OK)
            status = nccl_fail(ncclCommInitRank(&world->whole[l].comm, (int)world->base.nranks, id,
                                                (int)(world->base.first + l)),
                               "ncclCommInitRank", error);
    }
    if (status != ZIPCCL_OK) {
        ncclGroupEnd();
        return status;
    }
    return nccl_fail(ncclGroupEnd(), "start of NCCL", error);
}

/* Node of each rank: the lowest rank of a host of that name. */
static zipccl_status find_nodes(struct nccl_world *world, uint32_t *nodes,
                                struct zipccl_error *error)
{
    struct zipccl_transport *t = &world->whole[0].transport->base;
    uint32_t n = world->base.nranks;
    char mine[HOST_BYTES] = "", *all = calloc(n, HOST_BYTES);
    zipccl_status status;

    if (all == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "no memory for %u hosts", n);
    gethostname(mine, sizeof mine - 1);
    status = t->ops->gather(t, mine, HOST_BYTES, all);
    if (status != ZIPCCL_OK)
        zipccl_transport_fail(t, status, "exchange of host names", error);
    for (uint32_t r = 0; status == ZIPCCL_OK && r < n; r++)
        for (nodes[r] = 0; nodes[r] < r; nodes[r]++)
            if (memcmp(all + (size_t)nodes[r] * HOST_BYTES, all + (size_t)r * HOST_BYTES,
                       HOST_BYTES) == 0)
                break;
    world->base.nhost = 0;
    for (uint32_t r = 0; status == ZIPCCL_OK && r < n; r++)
        world->base.nhost += nodes[r] == nodes[world->base.first];
    free(all);
    return status;
}

static zipccl_status make_topology(struct nccl_world *world,
                                   const struct zipccl_world_options *options,
                                   struct zipccl_error *error)
{
    uint32_t n = world->base.nranks, *nodes = calloc(n, sizeof *nodes);
    zipccl_status status = nodes != NULL ? ZIPCCL_OK : ZIPCCL_ERR_NOMEM;

    if (status == ZIPCCL_OK && world->base.nlocal < n) /* else all are here */
        status = find_nodes(world, nodes, error);
    for (uint32_t r = 0; status == ZIPCCL_OK && r < n && options->ranks_per_node > 0; r++)
        nodes[r] = r / options->ranks_per_node;
    if (status == ZIPCCL_OK)
        status = zipccl_topology_create(n, nodes, &world->topology);
    free(nodes);
    ZIPCCL_TRY(status);
    world->base.topology = world->topology;
    for (uint32_t l = 0; l < world->base.nlocal; l++)
        world->whole[l].transport->base.topology = world->topology;
    return ZIPCCL_OK;
}

/* Which ranks are here, and their GPUs. */
static zipccl_status place_ranks(struct nccl_world *world,
                                 const struct zipccl_world_options *options,
                                 const struct zipccl_launch *launch, struct zipccl_error *error)
{
    int ndevices = 0;
    cudaError_t result = cudaGetDeviceCount(&ndevices);
    uint32_t local = launch->has_local ? launch->local_rank : launch->rank;

    /* srun --gpus-per-task=1, say, gives each process a GPU of its own, as number 0. */
    if (result == cudaSuccess && ndevices == 1 && getenv("CUDA_VISIBLE_DEVICES") != NULL)
        local = 0;
    if (result != cudaSuccess || ndevices == 0)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "--on nccl needs a GPU: %s",
                           result != cudaSuccess ? cudaGetErrorString(result) : "there is none");
    if (launch->launcher == NULL) {
        world->base.nranks = world->base.nlocal =
            options->nthreads > 0 ? options->nthreads : (uint32_t)ndevices;
        local = world->base.nlocal - 1;
    } else {
        world->base.nranks = launch->size;
        world->base.first = launch->rank;
        world->base.nlocal = 1;
        world->first_device = (int)local;
    }
    world->base.nhost = world->base.nlocal;
    if (local < (uint32_t)ndevices)
        return ZIPCCL_OK;
    return zipccl_fail(
        error, ZIPCCL_ERR_INPUT,
        "local rank %u of --on nccl has no GPU: this host has %d, and NCCL takes one "
        "rank a GPU",
        local, ndevices);
}

static zipccl_status open_world(struct nccl_world *world,
                                const struct zipccl_world_options *options,
                                struct zipccl_error *error)
{
    struct zipccl_launch launch;
    ncclUniqueId id;

    ZIPCCL_TRY(zipccl_launch_from_environment(&launch, error));
    ZIPCCL_TRY(place_ranks(world, options, &launch, error));
    world->whole = calloc(world->base.nlocal, sizeof *world->whole);
    if (world->whole == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "no memory for a world");
    memset(&id, 0, sizeof id);
    if (world->base.first == 0)
        ZIPCCL_TRY(nccl_fail(ncclGetUniqueId(&id), "ncclGetUniqueId", error));
    if (launch.launcher != NULL)
        ZIPCCL_TRY(zipccl_rendezvous(&launch, &id, sizeof id, options->timeout_s, error));
    ZIPCCL_TRY(open_comms(world, id, error));
    ZIPCCL_TRY(make_transports(world, world->whole, NULL, error));
    return make_topology(world, options, error);
}

static zipccl_status nccl_open(const struct zipccl_world_options *options,
                               struct zipccl_world **out, struct zipccl_error *error)
{
    struct nccl_world *world = calloc(1, sizeof *world);
    zipccl_status status;

    if (world == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "no memory for a world");
    world->base.ops = &nccl_ops;
    world->base.kind = ZIPCCL_WORLD_NCCL;
    world->base.device = &device;
    world->limit_s = options->timeout_s;
    world->gate = options->gate;
    status = open_world(world, options, error);
    if (status != ZIPCCL_OK) {
        world->failed = true;
        nccl_close(&world->base);
        return status;
    }
    *out = &world->base;
    return ZIPCCL_OK;
}

zipccl_world_open_fn *zipccl_world_nccl_opener(void)
{
    return nccl_open;
}
