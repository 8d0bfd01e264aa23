/*
 * exec_cuda_memory.c - staging, workspaces and tables: what a plan needs at most, and have it
 *
 * All of a call's memory is there before anything of it is enqueued; after that nothing allocates.
 *
 * What grows leaves its old block to the calls before it.  cudaFree() and the like would wait for the whole
 * device: for exchanges of other communicators, too, whose peers may be waiting here in the same way.
 * Sizes at least double, so that all old blocks together are not larger than the one in use.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/exec_cuda.h"

#include "gpu/gate.h"

#include <stdlib.h>
#include <string.h>

#define ALIGN 256u

static size_t align_up(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

size_t zipccl_cuda_take(struct zipccl_cuda_region *region, size_t nbytes)
{
    size_t at = region->used;

    region->used +=
        (nbytes + ZIPCCL_GPU_WIRE_ALIGN - 1) / ZIPCCL_GPU_WIRE_ALIGN * ZIPCCL_GPU_WIRE_ALIGN;
    return at;
}

/* Most messages of a step, and elements of one. */
static size_t messages_of(const struct zipccl_run_state *s, const struct zipccl_step *step)
{
    return (size_t)zipccl_step_group(s, step).size * step->nblocks;
}

static void add_step(const struct zipccl_run_state *s, const struct zipccl_exec_cuda *e,
                     const struct zipccl_step *step, struct zipccl_cuda_needs *needs)
{
    enum zipccl_dtype dtype = (enum zipccl_dtype)s->plan->dtype;
    size_t messages = messages_of(s, step), results;
    size_t total = messages * (step->n > 0 ? step->n : s->plan->chunk_n);
    uint32_t most =
        (uint32_t)(messages < ZIPCCL_GPU_MAX_MESSAGES ? messages : ZIPCCL_GPU_MAX_MESSAGES);

    results = messages * (sizeof(struct zipccl_gpu_result) + ZIPCCL_GPU_WIRE_ALIGN);
    switch (step->kind) {
    case ZIPCCL_STEP_ENCODE:
        needs->encode = max_size(needs->encode,
                                 (s->plan->effort == ZIPCCL_EFFORT_RATIO
                                      ? zipccl_gpu_encode_ratio_workspace
                                      : zipccl_gpu_encode_workspace)(dtype, total, most, e->nsms));
        needs->results += results;
        break;
    case ZIPCCL_STEP_RESOLVE:
        needs->results += results + sizeof(struct zipccl_gpu_seen) + ZIPCCL_GPU_WIRE_ALIGN;
        break;
    case ZIPCCL_STEP_DECODE:
        needs->decode =
            max_size(needs->decode, zipccl_gpu_decode_workspace(dtype, total, most, e->nsms));
        needs->outcomes += results;
        break;
    case ZIPCCL_STEP_REDUCE:
        needs->sum = max_size(
            needs->sum, zipccl_gpu_sum_workspace(dtype, step->n, (uint32_t)messages, e->nsms));
        needs->outcomes += results;
        break;
    default: return;
    }
    needs->tables += messages * (sizeof(struct zipccl_gpu_slot) + ZIPCCL_GPU_WIRE_ALIGN);
    if (zipccl_gate_is_on(e)) {
        needs->tables += zipccl_gate_table_bytes(messages);
        needs->results += zipccl_gate_result_bytes();
    }
}

static struct zipccl_cuda_needs needs_of(const struct zipccl_run_state *s,
                                         const struct zipccl_exec_cuda *e)
{
    struct zipccl_cuda_needs needs = {0};

    for (uint32_t i = 0; i < s->plan->nsteps; i++)
        add_step(s, e, &s->plan->steps[i], &needs);
    needs.staging = zipccl_cuda_staging_up(s->plan->tx_bytes) +
                    zipccl_cuda_staging_up(s->plan->rx_bytes) +
                    zipccl_cuda_staging_up(s->plan->tmp_bytes);
    return needs;
}

static size_t grown(size_t have, size_t want)
{
    return align_up(want > 2 * have ? want : 2 * have);
}

/* Keep a block that calls under way may still use. */
static zipccl_status keep_old(struct zipccl_exec_cuda *e, struct zipccl_cuda_old block)
{
    struct zipccl_cuda_old *old;

    if (block.d == NULL && block.h == NULL)
        return ZIPCCL_OK;
    old = malloc(sizeof *old);
    if (old == NULL)
        return ZIPCCL_ERR_NOMEM;
    *old = block;
    old->next = e->old;
    e->old = old;
    return ZIPCCL_OK;
}

static void region_free(struct zipccl_cuda_region *region)
{
    cudaFree(region->d);
    cudaFreeHost(region->h);
    *region = (struct zipccl_cuda_region){0};
}

/* Its arena is not busy. */
static zipccl_status region_room(struct zipccl_exec_cuda *e, struct zipccl_cuda_region *region,
                                 size_t want)
{
    size_t nbytes = grown(region->nbytes, want);

    region->used = 0;
    if (want <= region->nbytes)
        return ZIPCCL_OK;
    ZIPCCL_TRY(keep_old(
        e, (struct zipccl_cuda_old){.d = region->d, .h = region->h, .nbytes = region->nbytes}));
    *region = (struct zipccl_cuda_region){0};
    ZIPCCL_CUDA_TRY(e, cudaMalloc((void **)&region->d, nbytes));
    ZIPCCL_CUDA_TRY(e, cudaHostAlloc((void **)&region->h, nbytes, cudaHostAllocDefault));
    region->nbytes = nbytes;
    return ZIPCCL_OK;
}

static zipccl_status workspace_room(struct zipccl_exec_cuda *e, struct zipccl_cuda_workspace *w,
                                    size_t want, cudaStream_t stream)
{
    size_t nbytes = grown(w->nbytes, want);

    if (want <= w->nbytes)
        return ZIPCCL_OK;
    ZIPCCL_TRY(keep_old(e, (struct zipccl_cuda_old){.d = w->d, .nbytes = w->nbytes}));
    *w = (struct zipccl_cuda_workspace){0};
    ZIPCCL_CUDA_TRY(e, cudaMalloc(&w->d, nbytes));
    w->nbytes = nbytes;
    ZIPCCL_CUDA_TRY(e, zipccl_gpu_workspace_clear(w->d, nbytes, stream));
    return ZIPCCL_OK;
}

static void staging_free(struct zipccl_exec_cuda *e, void *d, void *handle)
{
    /* After an abort the ncclComm may be gone. */
    if (handle != NULL && !atomic_load(&e->transport->aborted))
        e->api->CommDeregister(e->transport->comm, handle);
    if (e->api->MemAlloc != NULL && e->api->MemFree != NULL)
        e->api->MemFree(d);
    else
        cudaFree(d);
}

/* Tell NCCL of the staging, which it may then send from without a copy; it may also refuse. */
static void staging_register(struct zipccl_exec_cuda *e)
{
    if (e->api->CommRegister == NULL || e->api->CommDeregister == NULL ||
        e->api->CommRegister(e->transport->comm, e->staging.d, e->staging.nbytes,
                             &e->staging.handle) != ncclSuccess)
        e->staging.handle = NULL;
}

static zipccl_status staging_room(struct zipccl_exec_cuda *e, size_t want)
{
    size_t nbytes = e->staging.nbytes > 0 ? e->staging.nbytes : ALIGN;
    size_t limit = align_up(e->most_staging) + 2 * ALIGN;
    void *p = NULL;

    if (want <= e->staging.nbytes)
        return ZIPCCL_OK;
    if (e->staging.borrowed)
        return zipccl_transport_nccl_cuda(e->transport, cudaErrorMemoryAllocation,
                                          "a plan needs more staging than there is");
    ZIPCCL_TRY(keep_old(e, (struct zipccl_cuda_old){.d = e->staging.d,
                                                    .nbytes = e->staging.nbytes,
                                                    .handle = e->staging.handle,
                                                    .staging = true}));
    e->staging.d = NULL;
    e->staging.handle = NULL;
    e->staging.nbytes = 0;
    while (nbytes < want)
        nbytes *= 2;        /* so that few calls make it grow */
    if (nbytes > limit / 2) /* the last block, not twice one that is nearly as large */
        nbytes = max_size(want, limit);
    if (e->api->MemAlloc != NULL && e->api->MemFree != NULL)
        ZIPCCL_TRY(zipccl_transport_nccl_check(e->transport, e->api->MemAlloc(&p, nbytes),
                                               "ncclMemAlloc"));
    else
        ZIPCCL_CUDA_TRY(e, cudaMalloc(&p, nbytes));
    e->staging.d = p;
    e->staging.nbytes = nbytes;
    staging_register(e);
    return ZIPCCL_OK;
}

void zipccl_cuda_arena_look(struct zipccl_exec_cuda *e, struct zipccl_cuda_arena *arena)
{
    const struct zipccl_gpu_result *r =
        (const struct zipccl_gpu_result *)(const void *)arena->outcomes.h;

    for (size_t i = 0; i < arena->outcomes.used / sizeof *r; i++)
        if (r[i].error != ZIPCCL_OK && !(arena->late && r[i].error == ZIPCCL_ERR_OVERFLOW) &&
            e->failed == ZIPCCL_OK)
            e->failed = ZIPCCL_ERR_CORRUPT;
    arena->busy = false;
}

static zipccl_status next_arena(struct zipccl_exec_cuda *e)
{
    struct zipccl_cuda_arena *arena = &e->arenas[e->next_arena];

    if (arena->busy) {
        ZIPCCL_TRY(zipccl_transport_nccl_wait(e->transport, arena->done));
        zipccl_cuda_arena_look(e, arena);
    }
    e->next_arena = (e->next_arena + 1) % ZIPCCL_CUDA_ARENAS;
    e->arena = arena;
    return ZIPCCL_OK;
}

zipccl_status zipccl_cuda_provide(struct zipccl_exec_cuda *e, const struct zipccl_run_state *s,
                                  cudaStream_t stream)
{
    struct zipccl_cuda_needs needs = needs_of(s, e);

    ZIPCCL_TRY(zipccl_gate_is_on(e) ? zipccl_gate_arena(e, s) : next_arena(e));
    ZIPCCL_TRY(region_room(e, &e->arena->tables, needs.tables));
    ZIPCCL_TRY(region_room(e, &e->arena->results, needs.results));
    ZIPCCL_TRY(region_room(e, &e->arena->outcomes, needs.outcomes));
    ZIPCCL_TRY(workspace_room(e, &e->encode, needs.encode, stream));
    ZIPCCL_TRY(workspace_room(e, &e->decode, needs.decode, stream));
    ZIPCCL_TRY(workspace_room(e, &e->sum, needs.sum, stream));
    return staging_room(e, needs.staging);
}

zipccl_status zipccl_cuda_memory_create(struct zipccl_exec_cuda *e)
{
    for (unsigned i = 0; i < ZIPCCL_CUDA_ARENAS; i++)
        ZIPCCL_CUDA_TRY(e, cudaEventCreateWithFlags(&e->arenas[i].done, cudaEventDisableTiming));
    if (e->staging.borrowed)
        staging_register(e);
    return ZIPCCL_OK;
}

static void old_free(struct zipccl_exec_cuda *e)
{
    while (e->old != NULL) {
        struct zipccl_cuda_old *old = e->old;

        e->old = old->next;
        if (old->staging)
            staging_free(e, old->d, old->handle);
        else
            cudaFree(old->d);
        cudaFreeHost(old->h);
        free(old);
    }
}

void zipccl_cuda_memory_destroy(struct zipccl_exec_cuda *e)
{
    for (unsigned i = 0; i < ZIPCCL_CUDA_ARENAS; i++) {
        region_free(&e->arenas[i].tables);
        region_free(&e->arenas[i].results);
        region_free(&e->arenas[i].outcomes);
        if (e->arenas[i].done != NULL)
            cudaEventDestroy(e->arenas[i].done);
    }
    cudaFree(e->encode.d);
    cudaFree(e->decode.d);
    cudaFree(e->sum.d);
    if (e->staging.borrowed) {
        if (e->staging.handle != NULL && !atomic_load(&e->transport->aborted))
            e->api->CommDeregister(e->transport->comm, e->staging.handle);
    } else if (e->staging.d != NULL)
        staging_free(e, e->staging.d, e->staging.handle);
    old_free(e);
}

size_t zipccl_exec_cuda_bytes(const struct zipccl_exec_cuda *e)
{
    size_t nbytes = e->encode.nbytes + e->decode.nbytes + e->sum.nbytes + e->staging.nbytes;

    for (unsigned i = 0; i < ZIPCCL_CUDA_ARENAS; i++)
        nbytes +=
            e->arenas[i].tables.nbytes + e->arenas[i].results.nbytes + e->arenas[i].outcomes.nbytes;
    for (const struct zipccl_cuda_old *old = e->old; old != NULL; old = old->next)
        nbytes += old->nbytes;
    return nbytes + (e->gate != NULL ? zipccl_gate_bytes(e->gate) : 0);
}
