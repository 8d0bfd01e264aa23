/*
 * group.c - groups of calls, deferred to their outermost end
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/preload/group.h"

#include "gpu/preload/control.h"
#include "gpu/preload/counts.h"
#include "gpu/preload/cuda.h"
#include "gpu/preload/engine.h"
#include "gpu/preload/fault.h"
#include "gpu/preload/shim.h"
#include "gpu/preload/verify.h"

#include <stdlib.h>
#include <string.h>

/* nccl.h declares ncclGroupStart(), which is no prototype in C. */
#pragma GCC diagnostic ignored "-Wmissing-prototypes"

/* A call that waits, or, plain or observed, only wants to be counted with its group. */
struct item {
    struct zipccl_shim_comm *comm;
    struct zipccl_shim_call call;
    enum zipccl_shim_reason reason;
};

/* What a thread has collected; freed at the outermost end. */
struct queue {
    struct item *items;
    size_t n, room;
    struct zipccl_shim_birth *births;
    size_t nbirths, births_room;
    struct zipccl_shim_comm **touched;
    size_t ntouched, touched_room;
};

static __thread struct queue queue __attribute__((tls_model("initial-exec")));

static bool grow(void **list, size_t n, size_t *room, size_t size)
{
    void *grown;

    if (n < *room)
        return true;
    grown = realloc(*list, (*room * 2 + 16) * size);
    if (grown == NULL)
        return false;
    *list = grown;
    *room = *room * 2 + 16;
    return true;
}

static ncclResult_t push(struct zipccl_shim_comm *comm, const struct zipccl_shim_call *call,
                         enum zipccl_shim_reason reason)
{
    if (!grow((void **)&queue.items, queue.n, &queue.room, sizeof *queue.items))
        return ncclSystemError;
    zipccl_shim_comm_hold(comm);
    queue.items[queue.n++] = (struct item){comm, *call, reason};
    return ncclSuccess;
}

ncclResult_t zipccl_shim_group_add(struct zipccl_shim_comm *comm,
                                   const struct zipccl_shim_call *call)
{
    return push(comm, call, ZIPCCL_SHIM_TAKEN);
}

void zipccl_shim_group_touch(struct zipccl_shim_comm *comm)
{
    for (size_t i = 0; i < queue.ntouched; i++)
        if (queue.touched[i] == comm)
            return;
    if (comm->plain != ZIPCCL_SHIM_TAKEN ||
        !grow((void **)&queue.touched, queue.ntouched, &queue.touched_room,
              sizeof(struct zipccl_shim_comm *)))
        return;
    zipccl_shim_comm_hold(comm);
    queue.touched[queue.ntouched++] = comm;
}

/* The part of a verdict on a send or receive that its other end shares whatever the message is. */
static enum zipccl_shim_reason judge_p2p(const struct zipccl_shim_comm *comm,
                                         const struct zipccl_shim_call *call)
{
    enum zipccl_shim_reason reason = zipccl_shim_judge(comm, call);

    if (zipccl_shim.settings.mode != ZIPCCL_SHIM_ON)
        return reason;
    /* The back end itself sends these plain, in one group with those that it compresses. */
    return reason == ZIPCCL_SHIM_SMALL || reason == ZIPCCL_SHIM_TYPE ||
                   reason == ZIPCCL_SHIM_CAPTURED
               ? ZIPCCL_SHIM_TAKEN
               : reason;
}

/* A second peer in one direction makes sends and receives an all-to-all. */
struct shape {
    int to, from; /* -1: none yet */
    bool several;
};

static void see_peer(int *peer, int other, bool *several)
{
    *several = *several || (*peer >= 0 && *peer != other);
    *peer = other;
}

/* Count the sends of 'items' [n] that have the communicator and the type of the first as one call. */
static void count_p2p(const struct item *items, size_t n)
{
    struct zipccl_shim_comm *comm = items[0].comm;
    enum zipccl_dtype dtype = (enum zipccl_dtype)items[0].call.dtype;
    enum zipccl_shim_reason reason = items[0].reason;
    struct shape shape = {-1, -1, false};
    size_t elements = 0, most = 0;

    for (size_t i = 0; i < n; i++) {
        const struct zipccl_shim_call *call = &items[i].call;
        bool send = call->function == ZIPCCL_SHIM_FN_SEND;

        if (items[i].comm != comm || call->dtype != items[0].call.dtype || call->root == comm->rank)
            continue;
        see_peer(send ? &shape.to : &shape.from, call->root, &shape.several);
        elements += send ? call->count : 0;
        most = call->count > most ? call->count : most;
        if (items[i].reason == ZIPCCL_SHIM_TAKEN || items[i].reason == ZIPCCL_SHIM_OBSERVING)
            reason = items[i].reason;
    }
    zipccl_shim_count(comm, shape.several ? ZIPCCL_SHIM_ALLTOALLV : ZIPCCL_SHIM_SENDRECV, dtype,
                      shape.several ? elements : most, elements * zipccl_dtype_size(dtype), reason);
}

static struct zipccl_gpu_p2p p2p_of(const struct zipccl_shim_call *call)
{
    bool send = call->function == ZIPCCL_SHIM_FN_SEND;
    void *buf;

    memcpy(&buf, send ? (const void *)&call->send : (const void *)&call->recv, sizeof buf);
    return (struct zipccl_gpu_p2p){send, (uint32_t)call->root, buf, call->count,
                                   (enum zipccl_dtype)call->dtype};
}

/* The same to NCCL, in a group: the back end has gone meanwhile. */
static ncclResult_t issue_late(struct zipccl_shim_comm *comm, const struct item *items, size_t n)
{
    const struct zipccl_nccl *nccl = zipccl_nccl_get();
    ncclResult_t result = nccl->ncclGroupStart(), ended;

    if (result != ncclSuccess)
        return result;
    for (size_t i = 0; i < n && result == ncclSuccess; i++)
        if (items[i].reason == ZIPCCL_SHIM_TAKEN)
            result = zipccl_shim_issue_late(comm, &items[i].call);
    ended = nccl->ncclGroupEnd();
    return result == ncclSuccess ? zipccl_shim_nccl_said(comm, ended) : result;
}

/* Sends and receives to the back end, in one call for all of one communicator. */
static ncclResult_t give_p2p(struct zipccl_shim_comm *comm, const struct item *items, size_t n)
{
    struct zipccl_gpu_p2p *ops = malloc(n * sizeof *ops);
    const struct zipccl_cuda *cuda = zipccl_cuda_get();
    cudaStream_t stream = items[0].call.stream;
    ncclResult_t result = ncclSuccess;
    struct zipccl_cuda_place before;
    size_t nops = 0;

    if (ops == NULL)
        return ncclSystemError;
    for (size_t i = 0; i < n; i++)
        if (items[i].reason == ZIPCCL_SHIM_TAKEN)
            ops[nops++] = p2p_of(&items[i].call);
    pthread_rwlock_rdlock(&comm->engine_lock);
    if (comm->engine == NULL || cuda == NULL || !zipccl_cuda_enter(cuda, comm->device, &before)) {
        pthread_rwlock_unlock(&comm->engine_lock);
        free(ops);
        return issue_late(comm, items, n);
    }
    pthread_mutex_lock(&comm->call_lock);
    for (size_t i = 1; i < n && result == ncclSuccess; i++)
        result = zipccl_cuda_join(cuda, items[i].call.stream, stream);
    if (result == ncclSuccess)
        result = zipccl_shim_engine_said(
            comm, zipccl_shim_engine_table()->group(ops, nops, comm->engine, stream));
    for (size_t i = 1; i < n && result == ncclSuccess; i++)
        result = zipccl_cuda_join(cuda, stream, items[i].call.stream);
    if (result == ncclSuccess)
        result = zipccl_shim_check_p2p(comm, ops, nops, stream);
    zipccl_shim_engine_note(comm);
    pthread_mutex_unlock(&comm->call_lock);
    zipccl_cuda_leave(cuda, &before);
    pthread_rwlock_unlock(&comm->engine_lock);
    free(ops);
    return result;
}

ncclResult_t zipccl_shim_group_p2p(struct zipccl_shim_comm *comm,
                                   const struct zipccl_shim_call *call)
{
    enum zipccl_shim_reason reason = judge_p2p(comm, call);
    struct item alone = {comm, *call, reason};

    if (zipccl_shim_thread.depth > 0) {
        ncclResult_t result = push(comm, call, reason);

        return reason == ZIPCCL_SHIM_TAKEN || result != ncclSuccess
                   ? result
                   : zipccl_shim_nccl_said(comm, zipccl_shim_issue(call));
    }
    count_p2p(&alone, 1);
    return reason == ZIPCCL_SHIM_TAKEN ? give_p2p(comm, &alone, 1)
                                       : zipccl_shim_nccl_said(comm, zipccl_shim_issue(call));
}

ncclResult_t zipccl_shim_group_birth(const struct zipccl_shim_birth *birth)
{
    if (zipccl_shim_thread.depth == 0)
        return zipccl_shim_settle(birth, 1);
    if (!grow((void **)&queue.births, queue.nbirths, &queue.births_room, sizeof *queue.births))
        return ncclSystemError;
    queue.births[queue.nbirths++] = *birth;
    return ncclSuccess;
}

/* Communicators in an order that all ranks share; within one, collectives first, then by type. */
static int by_comm(const void *a, const void *b)
{
    const struct item *x = *(const struct item *const *)a, *y = *(const struct item *const *)b;

    if (x->comm->uid != y->comm->uid)
        return x->comm->uid < y->comm->uid ? -1 : 1;
    if (x->comm != y->comm)
        return x->comm->rank < y->comm->rank ? -1 : 1;
    if (zipccl_shim_is_p2p(&x->call) != zipccl_shim_is_p2p(&y->call))
        return zipccl_shim_is_p2p(&x->call) ? 1 : -1;
    return x < y ? -1 : x > y; /* the order of the calls */
}

/* Count sends and receives, type by type. */
static void count_group(const struct item *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool seen = false;

        for (size_t k = 0; k < i && !seen; k++)
            seen = items[k].call.dtype == items[i].call.dtype;
        if (!seen)
            count_p2p(items + i, n - i);
    }
}

/* Run what has waited; 'items' [n] is ordered. */
static ncclResult_t run_items(const struct item *items, size_t n)
{
    ncclResult_t result = ncclSuccess;

    for (size_t i = 0, end; i < n; i = end) {
        bool p2p = zipccl_shim_is_p2p(&items[i].call);

        for (end = i + 1; p2p && end < n && items[end].comm == items[i].comm;)
            end++;
        if (p2p)
            count_group(items + i, end - i);
        if (result != ncclSuccess || items[i].reason != ZIPCCL_SHIM_TAKEN)
            continue;
        result = p2p ? give_p2p(items[i].comm, items + i, end - i)
                     : zipccl_shim_run(items[i].comm, &items[i].call);
    }
    return result;
}

static ncclResult_t run_queue(void)
{
    size_t n = queue.n;
    const struct item **order = malloc((n + 1) * sizeof *order);
    struct item *sorted = malloc((n + 1) * sizeof *sorted);
    ncclResult_t result = ncclSystemError;

    if (order != NULL && sorted != NULL) {
        for (size_t i = 0; i < n; i++)
            order[i] = &queue.items[i];
        qsort(order, n, sizeof(const struct item *), by_comm);
        for (size_t i = 0; i < n; i++)
            sorted[i] = *order[i];
        result = run_items(sorted, n);
    }
    free(order);
    free(sorted);
    return result;
}

static void forget(void)
{
    for (size_t i = 0; i < queue.n; i++)
        zipccl_shim_comm_put(queue.items[i].comm);
    for (size_t i = 0; i < queue.ntouched; i++)
        zipccl_shim_comm_put(queue.touched[i]);
    free(queue.items);
    free(queue.births);
    free(queue.touched);
    memset(&queue, 0, sizeof queue);
}

/*
 * After NCCL's own outermost end.  That it is still in progress is about communicators that do not block, of
 * which nothing waits here.
 */
static ncclResult_t finish(ncclResult_t ended)
{
    ncclResult_t result = ended == ncclInProgress ? ncclSuccess : ended;

    for (size_t i = 0; i < queue.nbirths && ended == ncclInProgress; i++)
        queue.births[i].plain = ZIPCCL_SHIM_NONBLOCKING;
    if (result == ncclSuccess && queue.nbirths > 0)
        result = zipccl_shim_settle(queue.births, queue.nbirths);
    if (result == ncclSuccess && queue.n > 0)
        result = run_queue();
    for (size_t i = 0; i < queue.ntouched && result == ncclSuccess; i++)
        result = zipccl_shim_control_step(queue.touched[i]);
    forget();
    return result == ncclSuccess ? ended : result;
}

ZIPCCL_SHIM_EXPORT ncclResult_t ncclGroupStart(void)
{
    const struct zipccl_nccl *nccl = zipccl_nccl_get();
    ncclResult_t result;

    if (nccl->ncclGroupStart == NULL)
        return zipccl_nccl_missing("ncclGroupStart");
    if (zipccl_shim_thread.inside > 0)
        return nccl->ncclGroupStart();
    result = nccl->ncclGroupStart();
    if (result == ncclSuccess)
        zipccl_shim_thread.depth++;
    return result;
}

ZIPCCL_SHIM_EXPORT ncclResult_t ncclGroupEnd(void)
{
    const struct zipccl_nccl *nccl = zipccl_nccl_get();
    ncclResult_t result;

    if (nccl->ncclGroupEnd == NULL)
        return zipccl_nccl_missing("ncclGroupEnd");
    if (zipccl_shim_thread.inside > 0)
        return nccl->ncclGroupEnd();
    zipccl_shim_thread.inside++;
    result = zipccl_shim_nccl_said(NULL, nccl->ncclGroupEnd());
    if (zipccl_shim_thread.depth > 0 && --zipccl_shim_thread.depth == 0)
        result = finish(result);
    zipccl_shim_thread.inside--;
    return result;
}

/* Nothing is launched: what has waited joins NCCL's group, so that its estimate has all calls. */
ZIPCCL_SHIM_EXPORT ncclResult_t ncclGroupSimulateEnd(ncclSimInfo_t *info)
{
    const struct zipccl_nccl *nccl = zipccl_nccl_get();
    ncclResult_t result = ncclSuccess, ended;

    if (nccl->ncclGroupSimulateEnd == NULL)
        return zipccl_nccl_missing("ncclGroupSimulateEnd");
    if (zipccl_shim_thread.inside > 0)
        return nccl->ncclGroupSimulateEnd(info);
    zipccl_shim_thread.inside++;
    if (zipccl_shim_thread.depth == 1) {
        for (size_t i = 0; i < queue.n && result == ncclSuccess; i++)
            if (queue.items[i].reason == ZIPCCL_SHIM_TAKEN)
                result = zipccl_shim_issue_late(queue.items[i].comm, &queue.items[i].call);
        forget();
    }
    ended = nccl->ncclGroupSimulateEnd(info);
    if (zipccl_shim_thread.depth > 0)
        zipccl_shim_thread.depth--;
    zipccl_shim_thread.inside--;
    return result == ncclSuccess ? ended : result;
}
