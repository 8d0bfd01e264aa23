/*
 * transport_nccl.c - point-to-point, all-gather and broadcast of bytes in a stream
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/transport_nccl.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Polls before a wait starts to sleep between them.  Meant to cover a small exchange, some 50 us: an
 * estimate, not measured on a GPU. */
#define SPINS    200u
#define SLEEP_NS 20000

/* Polls between two questions to NCCL whether it failed. */
#define ASK_EVERY 64u

static struct zipccl_transport_nccl *from(struct zipccl_transport *t)
{
    return (struct zipccl_transport_nccl *)t;
}

static zipccl_status note(struct zipccl_transport_nccl *t, zipccl_status status, const char *what,
                          const char *why, const char *more)
{
    if (t->error.text[0] == '\0')
        zipccl_fail(&t->error, status, "rank %u: %s: %s%s%s", t->base.rank, what, why,
                    more[0] != '\0' ? "; " : "", more);
    return status;
}

zipccl_status zipccl_transport_nccl_check(struct zipccl_transport_nccl *t, ncclResult_t result,
                                          const char *what)
{
    const char *more;

    if (result == ncclSuccess)
        return ZIPCCL_OK;
    more = t->api->GetLastError != NULL ? t->api->GetLastError(t->comm) : NULL;
    return note(t, result == ncclInvalidUsage ? ZIPCCL_ERR_MISMATCH : ZIPCCL_ERR_IO, what,
                t->api->GetErrorString(result), more != NULL ? more : "");
}

zipccl_status zipccl_transport_nccl_cuda(struct zipccl_transport_nccl *t, cudaError_t result,
                                         const char *what)
{
    if (result == cudaSuccess)
        return ZIPCCL_OK;
    return note(t, result == cudaErrorMemoryAllocation ? ZIPCCL_ERR_NOMEM : ZIPCCL_ERR_IO, what,
                cudaGetErrorString(result), "");
}

#define TRY_NCCL(call) ZIPCCL_TRY(zipccl_transport_nccl_check(t, (call), #call))
#define TRY_CUDA(call) ZIPCCL_TRY(zipccl_transport_nccl_cuda(t, (call), #call))

zipccl_status zipccl_transport_nccl_async_error(struct zipccl_transport_nccl *t)
{
    ncclResult_t result = ncclSuccess;

    if (atomic_load(&t->aborted))
        return ZIPCCL_ERR_ABORTED;
    TRY_NCCL(t->api->CommGetAsyncError(t->comm, &result));
    ZIPCCL_TRY(zipccl_transport_nccl_check(t, result, "an earlier operation"));
    for (unsigned part = 0; part < 2; part++)
        if (t->parts[part] != NULL) {
            TRY_NCCL(t->api->CommGetAsyncError(t->parts[part], &result));
            ZIPCCL_TRY(zipccl_transport_nccl_check(t, result, "an earlier operation"));
        }
    return ZIPCCL_OK;
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

zipccl_status zipccl_transport_nccl_wait(struct zipccl_transport_nccl *t, cudaEvent_t event)
{
    const struct timespec pause = {0, SLEEP_NS};
    double start = t->limit_s > 0 ? now_s() : 0;

    t->nwaits++;
    for (unsigned i = 1;; i++) {
        cudaError_t result = cudaEventQuery(event);

        if (result == cudaSuccess) /* what failed may still have "happened" */
            return zipccl_transport_nccl_async_error(t);
        if (result != cudaErrorNotReady)
            return zipccl_transport_nccl_cuda(t, result, "wait for an event");
        if (atomic_load(&t->aborted))
            return ZIPCCL_ERR_ABORTED;
        if (i % ASK_EVERY == 0) {
            ZIPCCL_TRY(zipccl_transport_nccl_async_error(t));
            if (t->limit_s > 0 && now_s() - start > t->limit_s)
                return note(t, ZIPCCL_ERR_IO, "wait for other ranks", "the limit is over", "");
        }
        if (i < SPINS)
            sched_yield();
        else
            nanosleep(&pause, NULL);
    }
}

static zipccl_status ready(struct zipccl_transport_nccl *t)
{
    return atomic_load(&t->aborted) ? ZIPCCL_ERR_ABORTED : ZIPCCL_OK;
}

static zipccl_status group_begin(struct zipccl_transport *base)
{
    struct zipccl_transport_nccl *t = from(base);

    ZIPCCL_TRY(ready(t));
    t->nposts = 0;
    if (!t->host)
        TRY_NCCL(t->api->GroupStart());
    return ZIPCCL_OK;
}

static zipccl_status post(struct zipccl_transport_nccl *t, struct zipccl_nccl_post one)
{
    if (t->nposts == t->room_posts) {
        size_t room = t->room_posts > 0 ? 2 * t->room_posts : 16;
        struct zipccl_nccl_post *more = realloc(t->posts, room * sizeof *more);

        if (more == NULL)
            return note(t, ZIPCCL_ERR_NOMEM, "post", "no memory", "");
        t->posts = more;
        t->room_posts = room;
    }
    t->posts[t->nposts++] = one;
    return ZIPCCL_OK;
}

static zipccl_status send_bytes(struct zipccl_transport *base, uint32_t peer, const void *buf,
                                size_t nbytes)
{
    struct zipccl_transport_nccl *t = from(base);

    if (t->host)
        return post(t, (struct zipccl_nccl_post){peer, true, (void *)(uintptr_t)buf, nbytes});
    TRY_NCCL(t->api->Send(buf, nbytes, ncclUint8, (int)peer, t->comm, t->stream));
    return ZIPCCL_OK;
}

static zipccl_status recv_bytes(struct zipccl_transport *base, uint32_t peer, void *buf,
                                size_t nbytes)
{
    struct zipccl_transport_nccl *t = from(base);

    if (t->host)
        return post(t, (struct zipccl_nccl_post){peer, false, buf, nbytes});
    TRY_NCCL(t->api->Recv(buf, nbytes, ncclUint8, (int)peer, t->comm, t->stream));
    return ZIPCCL_OK;
}

/* Room for 'nbytes' on both sides. */
static zipccl_status bounce_room(struct zipccl_transport_nccl *t, size_t nbytes)
{
    size_t room = t->bounce_bytes > 0 ? t->bounce_bytes : 4096;

    if (nbytes <= t->bounce_bytes)
        return ZIPCCL_OK;
    while (room < nbytes)
        room *= 2;
    /* Nothing is under way, but to free them would wait for the device, see exec_cuda_memory.c. */
    if (t->bounce != NULL || t->d_bounce != NULL) {
        t->old_bounces[t->nold] = t->bounce;
        t->old_d_bounces[t->nold++] = t->d_bounce;
        t->old_bytes += t->bounce_bytes;
    }
    t->bounce = t->d_bounce = NULL;
    t->bounce_bytes = 0;
    TRY_CUDA(cudaHostAlloc((void **)&t->bounce, room, cudaHostAllocDefault));
    TRY_CUDA(cudaMalloc((void **)&t->d_bounce, room));
    t->bounce_bytes = room;
    return ZIPCCL_OK;
}

static zipccl_status finish_bounce(struct zipccl_transport_nccl *t, size_t nbytes)
{
    TRY_CUDA(cudaMemcpyAsync(t->bounce, t->d_bounce, nbytes, cudaMemcpyDeviceToHost, t->stream));
    TRY_CUDA(cudaEventRecord(t->event, t->stream));
    return zipccl_transport_nccl_wait(t, t->event);
}

static zipccl_status post_on_device(struct zipccl_transport_nccl *t)
{
    size_t at = 0;

    for (size_t i = 0; i < t->nposts; i++) {
        const struct zipccl_nccl_post *p = &t->posts[i];

        if (p->send)
            TRY_NCCL(t->api->Send(t->d_bounce + at, p->nbytes, ncclUint8, (int)p->peer, t->comm,
                                  t->stream));
        else
            TRY_NCCL(t->api->Recv(t->d_bounce + at, p->nbytes, ncclUint8, (int)p->peer, t->comm,
                                  t->stream));
        at += p->nbytes;
    }
    return ZIPCCL_OK;
}

static zipccl_status host_group(struct zipccl_transport_nccl *t)
{
    size_t total = 0, at = 0;
    zipccl_status status;

    for (size_t i = 0; i < t->nposts; i++)
        total += t->posts[i].nbytes;
    if (total == 0)
        return ZIPCCL_OK;
    ZIPCCL_TRY(bounce_room(t, total));
    for (size_t i = 0; i < t->nposts; at += t->posts[i++].nbytes)
        if (t->posts[i].send)
            memcpy(t->bounce + at, t->posts[i].buf, t->posts[i].nbytes);
    TRY_CUDA(cudaMemcpyAsync(t->d_bounce, t->bounce, total, cudaMemcpyHostToDevice, t->stream));
    TRY_NCCL(t->api->GroupStart());
    status = post_on_device(t);
    TRY_NCCL(t->api->GroupEnd());
    ZIPCCL_TRY(status);
    ZIPCCL_TRY(finish_bounce(t, total));
    at = 0;
    for (size_t i = 0; i < t->nposts; at += t->posts[i++].nbytes)
        if (!t->posts[i].send)
            memcpy(t->posts[i].buf, t->bounce + at, t->posts[i].nbytes);
    return ZIPCCL_OK;
}

static zipccl_status group_end(struct zipccl_transport *base)
{
    struct zipccl_transport_nccl *t = from(base);

    if (t->host) {
        ZIPCCL_TRY(ready(t));
        return host_group(t);
    }
    TRY_NCCL(t->api->GroupEnd());
    return ready(t);
}

static zipccl_status gather(struct zipccl_transport *base, const void *mine, size_t nbytes,
                            void *all)
{
    struct zipccl_transport_nccl *t = from(base);
    size_t total = nbytes * t->base.nranks, own = nbytes * t->base.rank;

    ZIPCCL_TRY(ready(t));
    if (nbytes == 0)
        return ZIPCCL_OK;
    ZIPCCL_TRY(bounce_room(t, total));
    memcpy(t->bounce + own, mine, nbytes);
    TRY_CUDA(cudaMemcpyAsync(t->d_bounce + own, t->bounce + own, nbytes, cudaMemcpyHostToDevice,
                             t->stream));
    TRY_NCCL(
        t->api->AllGather(t->d_bounce + own, t->d_bounce, nbytes, ncclUint8, t->comm, t->stream));
    ZIPCCL_TRY(finish_bounce(t, total));
    memcpy(all, t->bounce, total);
    return ZIPCCL_OK;
}

static zipccl_status all_gather(struct zipccl_transport *base, const void *send, void *recv,
                                size_t nbytes, uint32_t channels)
{
    struct zipccl_transport_nccl *t = from(base);

    (void)channels; /* NCCL's own choice */
    ZIPCCL_TRY(ready(t));
    TRY_NCCL(t->api->AllGather(send, recv, nbytes, ncclUint8, t->comm, t->stream));
    return ZIPCCL_OK;
}

static zipccl_status broadcast(struct zipccl_transport *base, void *buf, size_t nbytes,
                               uint32_t root, uint32_t channels)
{
    struct zipccl_transport_nccl *t = from(base);

    (void)channels;
    ZIPCCL_TRY(ready(t));
    TRY_NCCL(t->api->Broadcast(buf, buf, nbytes, ncclUint8, (int)root, t->comm, t->stream));
    return ZIPCCL_OK;
}

zipccl_status zipccl_transport_nccl_part(struct zipccl_transport_nccl *t, unsigned part)
{
    const struct zipccl_topology *topology = t->base.topology;
    uint32_t rank = t->base.rank;
    uint32_t color = part == 0 ? topology->node_of[rank] : topology->local_of[rank];
    uint32_t key = part == 0 ? topology->local_of[rank] : topology->node_of[rank];
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;

    if (t->parts[part] != NULL)
        return ZIPCCL_OK;
    if (t->api->CommSplit == NULL)
        return ZIPCCL_ERR_UNSUPPORTED;
    config.splitShare = 1; /* channels and buffers of the whole communicator */
    TRY_NCCL(t->api->CommSplit(t->comm, (int)color, (int)key, &t->parts[part], &config));
    return ZIPCCL_OK;
}

zipccl_status zipccl_transport_nccl_part_gather(struct zipccl_transport_nccl *t, unsigned part,
                                                const void *send, void *recv, size_t nbytes)
{
    ZIPCCL_TRY(ready(t));
    TRY_NCCL(t->api->AllGather(send, recv, nbytes, ncclUint8, t->parts[part], t->stream));
    return ZIPCCL_OK;
}

void zipccl_transport_nccl_host_begin(struct zipccl_transport_nccl *t)
{
    t->host = true;
}

void zipccl_transport_nccl_host_end(struct zipccl_transport_nccl *t)
{
    t->host = false;
}

static bool has_native(const struct zipccl_transport *t, enum zipccl_op op, enum zipccl_dtype dtype,
                       enum zipccl_redop redop)
{
    (void)t;
    (void)op;
    (void)redop;
    return zipccl_dtype_size(dtype) > 0;
}

static void abort_local(struct zipccl_transport *base)
{
    atomic_store(&from(base)->aborted, true);
}

static void destroy(struct zipccl_transport *base)
{
    struct zipccl_transport_nccl *t = from(base);
    bool aborted = atomic_load(&t->aborted);

    for (unsigned part = 0; part < 2; part++)
        if (t->parts[part] != NULL) {
            if (aborted)
                t->api->CommAbort(t->parts[part]);
            else
                t->api->CommDestroy(t->parts[part]);
        }
    if (!aborted) { /* else a transfer may still be under way */
        cudaFreeHost(t->bounce);
        cudaFree(t->d_bounce);
        for (unsigned i = 0; i < t->nold; i++) {
            cudaFreeHost(t->old_bounces[i]);
            cudaFree(t->old_d_bounces[i]);
        }
    }
    if (t->event != NULL)
        cudaEventDestroy(t->event);
    free(t->posts);
    free(t);
}

static const char *error_text(const struct zipccl_transport *t)
{
    return ((const struct zipccl_transport_nccl *)t)->error.text;
}

static const struct zipccl_transport_ops ops = {
    .name = "nccl",
    .group_begin = group_begin,
    .send = send_bytes,
    .recv = recv_bytes,
    .group_end = group_end,
    .all_gather = all_gather,
    .broadcast = broadcast,
    .native = zipccl_transport_nccl_native,
    .has_native = has_native,
    .abort = abort_local,
    .destroy = destroy,
    .error_text = error_text,
    .gather = gather,
};

zipccl_status zipccl_transport_nccl_create(ncclComm_t nccl, const struct zipccl_nccl_api *api,
                                           const struct zipccl_topology *topology,
                                           struct zipccl_transport_nccl **out,
                                           struct zipccl_error *error)
{
    struct zipccl_transport_nccl *t = calloc(1, sizeof *t);
    int rank = 0, nranks = 0;
    zipccl_status status;

    if (t == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "no memory for a transport");
    t->api = api;
    t->comm = nccl;
    status = zipccl_transport_nccl_check(t, api->CommCount(nccl, &nranks), "ncclCommCount");
    if (status == ZIPCCL_OK)
        status = zipccl_transport_nccl_check(t, api->CommUserRank(nccl, &rank), "ncclCommUserRank");
    if (status == ZIPCCL_OK)
        status = zipccl_transport_nccl_cuda(
            t, cudaEventCreateWithFlags(&t->event, cudaEventDisableTiming), "an event");
    t->base = (struct zipccl_transport){
        .ops = &ops, .rank = (uint32_t)rank, .nranks = (uint32_t)nranks, .topology = topology};
    if (status != ZIPCCL_OK) {
        zipccl_fail(error, status, "%s", t->error.text);
        destroy(&t->base);
        return status;
    }
    *out = t;
    return ZIPCCL_OK;
}
