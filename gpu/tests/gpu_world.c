/*
 * gpu_world.c - ranks as threads over the doubles of cudart and NCCL
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/gpu_world.h"

#include "core/tests/codec_data.h"
#include "core/transport_mem.h"
#include "gpu/tests/emu/emu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool gpu_expect_at(struct gpu_rank *r, bool holds, const char *what, const char *file, int line)
{
    if (!holds) {
        fprintf(stderr, "%s:%d: rank %u: not so: %s\n", file, line, r->rank, what);
        r->ok = false;
    }
    return holds;
}

void gpu_barrier(struct gpu_rank *r)
{
    pthread_barrier_wait(&r->world->barrier);
}

void gpu_rank_open(struct gpu_rank *r)
{
    struct gpu_world *w = r->world;
    int ndevices = 1;

    r->ok = true;
    EXPECT(r, cudaGetDeviceCount(&ndevices) == cudaSuccess);
    EXPECT(r, cudaSetDevice((int)r->rank % ndevices) == cudaSuccess);
    EXPECT(r, ncclCommInitRank(&r->nccl, (int)w->nranks, w->id, (int)r->rank) == ncclSuccess);
    EXPECT(r, cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking) == cudaSuccess);
    EXPECT(r, zipccl_exec_cpu_create(ZIPCCL_ISA_SCALAR, &r->cpu) == ZIPCCL_OK);
}

void gpu_rank_close(struct gpu_rank *r)
{
    r->cpu->ops->destroy(r->cpu);
    if (r->stream != NULL)
        EXPECT(r, cudaStreamDestroy(r->stream) == cudaSuccess);
    if (r->nccl != NULL)
        EXPECT(r, ncclCommDestroy(r->nccl) == ncclSuccess);
}

static void *run_rank(void *arg)
{
    struct gpu_rank *r = arg;

    gpu_rank_open(r);
    if (r->ok)
        r->world->fn(r, r->world->context);
    gpu_rank_close(r);
    return NULL;
}

bool gpu_world_run(uint32_t nranks, uint32_t per_node, void (*fn)(struct gpu_rank *, void *),
                   void *context)
{
    struct gpu_world w = {.nranks = nranks, .fn = fn, .context = context};
    struct zipccl_transport *host[MAX_RANKS];
    pthread_t threads[MAX_RANKS];
    struct data_random random = {1};
    uint16_t first;
    bool ok = true;

    data_gauss(&random, &first, 1, 1); /* makes its table before there are threads */
    for (uint32_t r = 0; r < nranks; r++)
        w.node_of[r] = r / per_node;
    if (ncclGetUniqueId(&w.id) != ncclSuccess ||
        zipccl_topology_create(nranks, w.node_of, &w.topology) != ZIPCCL_OK ||
        zipccl_transport_mem_create(w.topology, host) != ZIPCCL_OK ||
        pthread_barrier_init(&w.barrier, NULL, nranks) != 0)
        abort();
    for (uint32_t r = 0; r < nranks; r++) {
        w.ranks[r] = (struct gpu_rank){.world = &w, .rank = r, .host = host[r]};
        if (pthread_create(&threads[r], NULL, run_rank, &w.ranks[r]) != 0)
            abort();
    }
    for (uint32_t r = 0; r < nranks; r++) {
        pthread_join(threads[r], NULL);
        host[r]->ops->destroy(host[r]);
        ok = ok && w.ranks[r].ok;
    }
    pthread_barrier_destroy(&w.barrier);
    zipccl_topology_destroy(w.topology);
    return ok;
}

bool gpu_world_run_failures(void (*fn)(struct gpu_rank *, void *), struct gpu_failure *failures,
                            size_t n)
{
    bool ok = true;

    for (size_t i = 0; i < n; i++) {
        if (!gpu_world_run(3, 3, fn, &failures[i])) {
            fprintf(stderr, "injected: %s, call %d\n", failures[i].what, failures[i].nth);
            ok = false;
        }
        emu_reset();
    }
    return ok;
}

void gpu_test_options(const struct gpu_rank *r, struct zipccl_gpu_options *options)
{
    zipccl_gpu_options_init(options, zipccl_nccl_linked());
    options->mode = ZIPCCL_MODE_COMPRESSED;
    options->ops = (1u << ZIPCCL_NUM_OPS) - 1;
    options->min_bytes = 1;
    options->node_of = r->world->node_of;
    options->max_staging_bytes = (size_t)8 << 20;
}

struct zipccl_comm *gpu_host_comm(struct gpu_rank *r, const struct zipccl_gpu_options *options)
{
    struct zipccl_comm_config config;
    struct zipccl_comm *comm = NULL;
    struct zipccl_error error = {""};

    zipccl_comm_config_init(&config);
    config.mode = options->mode;
    config.strategy = options->strategy;
    config.nchunks = options->nchunks;
    config.capacity_class = options->capacity_class;
    config.max_staging_bytes = options->max_staging_bytes;
    config.params = options->params;
    config.effort = options->effort;
    config.learning = ZIPCCL_LEARN_SIZES;
    if (!EXPECT(r, zipccl_comm_create(r->host, r->cpu, &config, &comm, &error) == ZIPCCL_OK))
        fprintf(stderr, "%s\n", error.text);
    return comm;
}

void *gpu_upload(struct gpu_rank *r, const void *bytes, size_t nbytes)
{
    void *d = NULL;

    EXPECT(r, cudaMalloc(&d, nbytes) == cudaSuccess);
    EXPECT(r, cudaMemcpyAsync(d, bytes, nbytes, cudaMemcpyHostToDevice, r->stream) == cudaSuccess);
    EXPECT(r, cudaStreamSynchronize(r->stream) == cudaSuccess);
    return d;
}

void gpu_download(struct gpu_rank *r, void *bytes, const void *d, size_t nbytes)
{
    EXPECT(r, cudaMemcpyAsync(bytes, d, nbytes, cudaMemcpyDeviceToHost, r->stream) == cudaSuccess);
    EXPECT(r, cudaStreamSynchronize(r->stream) == cudaSuccess);
}
