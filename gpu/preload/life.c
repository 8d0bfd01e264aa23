/*
 * life.c - the functions of nccl.h that make, watch and end communicators, taken over
 *
 * Each calls NCCL first or last and keeps the record of the communicator in step.  A communicator that
 * is made in a way that is not here is unknown, and plain.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/preload/agree.h"
#include "gpu/preload/control.h"
#include "gpu/preload/cuda.h"
#include "gpu/preload/engine.h"
#include "gpu/preload/fault.h"
#include "gpu/preload/group.h"
#include "gpu/preload/log.h"
#include "gpu/preload/pool.h"
#include "gpu/preload/report.h"
#include "gpu/preload/shim.h"

#include <stdlib.h>
#include <string.h>

#define ZIPCCL_NEED(name)                                                                          \
    const struct zipccl_nccl *nccl = zipccl_nccl_get();                                            \
                                                                                                   \
    if (nccl->name == NULL)                                                                        \
    return zipccl_nccl_missing(#name)

/* A member of 'config' that its writer's version had. */
#define ZIPCCL_HAS(config, member)                                                                 \
    ((config) != NULL &&                                                                           \
     (config)->size >= offsetof(ncclConfig_t, member) + sizeof((config)->member))

static void describe(struct zipccl_shim_birth *birth, const ncclConfig_t *config, ncclResult_t made)
{
    const struct zipccl_cuda *cuda = zipccl_cuda_get();

    if (cuda == NULL || cuda->cudaGetDevice(&birth->device) != cudaSuccess)
        birth->device = 0;
    /* NCCL_COMM_BLOCKING=0 shows in the result alone. */
    if ((ZIPCCL_HAS(config, blocking) && config->blocking == 0) || made == ncclInProgress)
        birth->plain = ZIPCCL_SHIM_NONBLOCKING;
    if (ZIPCCL_HAS(config, commName) && config->commName != NULL)
        (void)snprintf(birth->name, sizeof birth->name, "%s", config->commName);
}

#define BIRTH(comm, its_rank, its_nranks)                                                          \
    (struct zipccl_shim_birth)                                                                     \
    {                                                                                              \
        .handle = (comm), .plain = ZIPCCL_SHIM_TAKEN, .rank = (its_rank), .nranks = (its_nranks)   \
    }

/* A communicator of 'ids': of a rank of this library whatever its mode, if the ids are marked. */
static ncclResult_t born_of_ids(struct zipccl_shim_birth birth, const ncclUniqueId *ids, int n,
                                const ncclConfig_t *config, ncclResult_t made)
{
    ncclResult_t result;

    if (made != ncclSuccess && made != ncclInProgress)
        return zipccl_shim_nccl_said(NULL, made);
    birth.uid = zipccl_shim_marked(ids, n);
    if (birth.uid == 0 && !zipccl_shim.active)
        return made;
    describe(&birth, config, made);
    if (birth.uid == 0 && zipccl_shim.active && birth.plain == ZIPCCL_SHIM_TAKEN) {
        birth.plain = ZIPCCL_SHIM_STRANGER;
        zipccl_log_warn_once("stranger",
                             "the rank that made the unique id of a communicator runs without "
                             "zipccl, or off; its calls are plain NCCL");
    }
    result = zipccl_shim_group_birth(&birth);
    return result == ncclSuccess ? made : result;
}

ZIPCCL_SHIM_EXPORT ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    ncclResult_t result;

    ZIPCCL_NEED(ncclGetUniqueId);
    result = nccl->ncclGetUniqueId(id);
    if (result != ncclSuccess || zipccl_shim_forwards())
        return result;
    /* Without a mark nobody exchanges anything, so no rank waits for one that cannot. */
    if (zipccl_cuda_get() != NULL)
        zipccl_shim_mark(id);
    else
        zipccl_log_warn_once("cuda", "no libcudart was found in this process or on its library "
                                     "path; all calls are plain NCCL");
    return result;
}

ZIPCCL_SHIM_EXPORT ncclResult_t ncclCommInitRank(ncclComm_t *comm, int nranks, ncclUniqueId id,
                                                 int rank)
{
    ncclResult_t result;

    ZIPCCL_NEED(ncclCommInitRank);
    if (zipccl_shim_thread.inside > 0)
        return nccl->ncclCommInitRank(comm, nranks, id, rank);
    zipccl_shim_say_hello();
    zipccl_shim_thread.inside++;
    result = nccl->ncclCommInitRank(comm, nranks, id, rank);
    result = born_of_ids(BIRTH(comm, rank, nranks), &id, 1, NULL, result);
    zipccl_shim_thread.inside--;
    return result;
}

ZIPCCL_SHIM_EXPORT ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int nranks,
                                                       ncclUniqueId id, int rank,
                                                       ncclConfig_t *config)
{
    ncclResult_t result;

    ZIPCCL_NEED(ncclCommInitRankConfig);
    if (zipccl_shim_thread.inside > 0)
        return nccl->ncclCommInitRankConfig(comm, nranks, id, rank, config);
    zipccl_shim_say_hello();
    zipccl_shim_thread.inside++;
    result = nccl->ncclCommInitRankConfig(comm, nranks, id, rank, config);
    result = born_of_ids(BIRTH(comm, rank, nranks), &id, 1, config, result);
    zipccl_shim_thread.inside--;
    return result;
}

ZIPCCL_SHIM_EXPORT ncclResult_t ncclCommInitRankScalable(ncclComm_t *comm, int nranks, int rank,
                                                         int nids, ncclUniqueId *ids,
                                                         ncclConfig_t *config)
{
    ncclResult_t result;

    ZIPCCL_NEED(ncclCommInitRankScalable);
    if (zipccl_shim_thread.inside > 0)
        return nccl->ncclCommInitRankScalable(comm, nranks, rank, nids, ids, config);
    zipccl_shim_say_hello();
    zipccl_shim_thread.inside++;
    result = nccl->ncclCommInitRankScalable(comm, nranks, rank, nids, ids, config);
    result = born_of_ids(BIRTH(comm, rank, nranks), ids, nids, config, result);
    zipccl_shim_thread.inside--;
    return result;
}

/* All ranks are of this thread, so nothing need be marked. */
ZIPCCL_SHIM_EXPORT ncclResult_t ncclCommInitAll(ncclComm_t *comms, int n, const int *devices)
{
    struct zipccl_shim_birth *births;
    ncclUniqueId made = {{0}};
    ncclResult_t result;

    ZIPCCL_NEED(ncclCommInitAll);
    if (zipccl_shim_forwards())
        return nccl->ncclCommInitAll(comms, n, devices);
    zipccl_shim_say_hello();
    zipccl_shim_thread.inside++;
    result = nccl->ncclCommInitAll(comms, n, devices);
    births = n > 0 ? calloc((size_t)n, sizeof *births) : NULL;
    if (result == ncclSuccess && births != NULL && zipccl_cuda_get() != NULL) {
        zipccl_shim_mark(&made);
        for (int i = 0; i < n; i++)
            births[i] = (struct zipccl_shim_birth){.handle = &comms[i],
                                                   .uid = zipccl_shim_marked(&made, 1),
                                                   .plain = ZIPCCL_SHIM_TAKEN};
        result = zipccl_shim_settle(births, (size_t)n);
    }
    free(births);
    zipccl_shim_thread.inside--;
    return result;
}

/* A child of 'parent': its members have agreed already that they all have this library. */
static ncclResult_t born_of_parent(ncclComm_t parent, ncclComm_t *handle, uint64_t detail,
                                   bool shrunk, const ncclConfig_t *config, ncclResult_t made)
{
    struct zipccl_shim_comm *from = zipccl_shim_comm_get(parent);
    struct zipccl_shim_birth birth = {.handle = handle};
    ncclResult_t result = ncclSuccess;
    int stopped;

    if (from == NULL || (made != ncclSuccess && made != ncclInProgress)) {
        (void)zipccl_shim_nccl_said(from, made);
        zipccl_shim_comm_put(from);
        return made;
    }
    stopped = __atomic_load_n(&from->stopped, __ATOMIC_RELAXED);
    birth.plain = from->plain;
    /* What is about the parent alone does not pass to its children. */
    if (birth.plain == ZIPCCL_SHIM_GROUP || birth.plain == ZIPCCL_SHIM_ONE_RANK)
        birth.plain = ZIPCCL_SHIM_TAKEN;
    /* What was ended on all ranks at one call stays ended. */
    if (birth.plain == ZIPCCL_SHIM_TAKEN &&
        (stopped == ZIPCCL_SHIM_SWITCHED_OFF || stopped == ZIPCCL_SHIM_DISABLED))
        birth.plain = (enum zipccl_shim_reason)stopped;
    birth.uid = zipccl_shim_derive(
        from->uid, shrunk ? UINT64_MAX - ++from->shrinks[detail % 16] : ++from->splits, detail);
    zipccl_shim_comm_put(from);
    describe(&birth, config, made);
    result = zipccl_shim_group_birth(&birth);
    return result == ncclSuccess ? made : result;
}

ZIPCCL_SHIM_EXPORT ncclResult_t ncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *out,
                                              ncclConfig_t *config)
{
    ncclResult_t result;

    ZIPCCL_NEED(ncclCommSplit);
    if (zipccl_shim_forwards())
        return nccl->ncclCommSplit(comm, color, key, out, config);
    zipccl_shim_thread.inside++;
    if (out != NULL)
        *out = NULL; /* so it stays for a rank without a color */
    result = nccl->ncclCommSplit(comm, color, key, out, config);
    result = born_of_parent(comm, out, (uint64_t)(unsigned)color, false, config, result);
    zipccl_shim_thread.inside--;
    return result;
}

/* Take leave of 'handle' before NCCL does. */
static void leave(ncclComm_t handle, bool abort, bool remove)
{
    struct zipccl_shim_comm *comm = zipccl_shim_comm_get(handle);
    const struct zipccl_cuda *cuda = zipccl_cuda_get();
    struct zipccl_cuda_place before;
    bool entered;

    if (comm == NULL)
        return;
    if (abort)
        __atomic_store_n(&comm->leaving, 1, __ATOMIC_RELEASE);
    if (abort || !remove)
        zipccl_shim_comm_stop(comm, ZIPCCL_SHIM_ABORTED);
    /* The thread may be one that has never used the device. */
    entered = cuda != NULL && zipccl_cuda_enter(cuda, comm->device, &before);
    zipccl_shim_engine_destroy(comm, abort);
    zipccl_shim_control_destroy(comm, abort);
    if (remove)
        zipccl_shim_comm_remove(comm);
    if (entered) {
        if (remove && !abort && zipccl_shim_comms_alive(comm->device) == 0) {
            zipccl_shim_engine_reap(comm->device);
            zipccl_shim_pool_empty(cuda, comm->device);
        }
        zipccl_cuda_leave(cuda, &before);
    }
    zipccl_shim_comm_put(comm);
    /* Many a job ends without the process's usual end. */
    if (remove && zipccl_shim_comms_alive(-1) == 0)
        zipccl_shim_report_file();
}

ZIPCCL_SHIM_EXPORT ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int nexcluded,
                                               ncclComm_t *out, ncclConfig_t *config, int flags)
{
    uint64_t left_out = 0;
    ncclResult_t result;

    ZIPCCL_NEED(ncclCommShrink);
    if (zipccl_shim_forwards())
        return nccl->ncclCommShrink(comm, excluded, nexcluded, out, config, flags);
    zipccl_shim_thread.inside++;
    if (out != NULL)
        *out = NULL;
    /* In any order, since it need not be the same on all ranks. */
    for (int i = 0; i < nexcluded && excluded != NULL; i++)
        left_out += zipccl_shim_derive(1, 0, (uint64_t)(unsigned)excluded[i]);
    if ((flags & NCCL_SHRINK_ABORT) != 0)
        leave(comm, true, false);
    result = nccl->ncclCommShrink(comm, excluded, nexcluded, out, config, flags);
    result = born_of_parent(comm, out, left_out, true, config, result);
    zipccl_shim_thread.inside--;
    return result;
}

#define ZIPCCL_LEAVE(name, abort, remove, ...)                                                     \
    ncclResult_t result;                                                                           \
                                                                                                   \
    ZIPCCL_NEED(name);                                                                             \
    if (zipccl_shim_forwards())                                                                    \
        return nccl->name(__VA_ARGS__);                                                            \
    zipccl_shim_thread.inside++;                                                                   \
    leave(comm, abort, remove);                                                                    \
    result = zipccl_shim_nccl_said(NULL, nccl->name(__VA_ARGS__));                                 \
    zipccl_shim_thread.inside--;                                                                   \
    return result;

ZIPCCL_SHIM_EXPORT ncclResult_t ncclCommFinalize(ncclComm_t comm){
    ZIPCCL_LEAVE(ncclCommFinalize, false, false, comm)}

ZIPCCL_SHIM_EXPORT ncclResult_t
    ncclCommDestroy(ncclComm_t comm){ZIPCCL_LEAVE(ncclCommDestroy, false, true, comm)}

ZIPCCL_SHIM_EXPORT ncclResult_t
    ncclCommAbort(ncclComm_t comm){ZIPCCL_LEAVE(ncclCommAbort, true, true, comm)}

ZIPCCL_SHIM_EXPORT ncclResult_t ncclCommRevoke(ncclComm_t comm, int flags){
    ZIPCCL_LEAVE(ncclCommRevoke, true, false, comm, flags)}

/* Registering a window is collective, so all ranks stop compressing at the same place. */
ZIPCCL_SHIM_EXPORT ncclResult_t
    ncclCommWindowRegister(ncclComm_t comm, void *buff, size_t size, ncclWindow_t *win, int flags)
{
    struct zipccl_shim_comm *record;

    ZIPCCL_NEED(ncclCommWindowRegister);
    if (!zipccl_shim_forwards() && (record = zipccl_shim_comm_get(comm)) != NULL) {
        zipccl_shim_comm_stop(record, ZIPCCL_SHIM_WINDOW);
        zipccl_shim_comm_put(record);
    }
    return nccl->ncclCommWindowRegister(comm, buff, size, win, flags);
}

/*
 * The back end's state after NCCL's own: what failed later is told where the job looks for it.  While a call
 * is inside, it looks itself, and returns what it finds; another thread must not look then, nor wait.
 */
static ncclResult_t late_error(struct zipccl_shim_comm *comm)
{
    ncclResult_t result = (ncclResult_t)__atomic_load_n(&comm->failed, __ATOMIC_ACQUIRE);
    const struct zipccl_cuda *cuda = zipccl_cuda_get();
    struct zipccl_error error = {""};
    zipccl_status status = ZIPCCL_OK;
    enum cudaStreamCaptureMode before;

    if (result != ncclSuccess)
        return zipccl_shim_fault_again(comm, result);
    /* Who aborts holds the lock for writing and is not to be waited for here. */
    if (pthread_rwlock_tryrdlock(&comm->engine_lock) != 0)
        return ncclSuccess;
    if (pthread_mutex_trylock(&comm->call_lock) == 0) {
        /* A watchdog asks, also while another thread captures. */
        if (comm->engine != NULL && cuda != NULL && zipccl_cuda_relax(cuda, &before)) {
            status = zipccl_shim_engine_table()->async_error(comm->engine, &error);
            zipccl_cuda_restore(cuda, before);
        }
        pthread_mutex_unlock(&comm->call_lock);
    }
    pthread_rwlock_unlock(&comm->engine_lock);
    return status == ZIPCCL_OK
               ? ncclSuccess
               : zipccl_shim_fault(comm, zipccl_shim_engine_result(status), "%s", error.text);
}

ZIPCCL_SHIM_EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *out)
{
    struct zipccl_shim_comm *record;
    ncclResult_t result;

    ZIPCCL_NEED(ncclCommGetAsyncError);
    result = nccl->ncclCommGetAsyncError(comm, out);
    if (zipccl_shim_forwards() || result != ncclSuccess || *out != ncclSuccess)
        return result;
    record = zipccl_shim_comm_get(comm);
    if (record != NULL)
        *out = late_error(record);
    zipccl_shim_comm_put(record);
    return result;
}

/* Of the communicator, or, as PyTorch asks, without one: what this thread met last. */
ZIPCCL_SHIM_EXPORT const char *ncclGetLastError(ncclComm_t comm)
{
    const struct zipccl_nccl *nccl = zipccl_nccl_get();
    struct zipccl_shim_comm *record;
    const char *text;

    if (nccl->ncclGetLastError == NULL)
        return zipccl_nccl_missing_text("ncclGetLastError");
    if (zipccl_shim_forwards())
        return nccl->ncclGetLastError(comm);
    record = zipccl_shim_comm_get(comm);
    if (record != NULL)
        (void)late_error(record);
    text = zipccl_shim_fault_text(record);
    zipccl_shim_comm_put(record);
    return text != NULL ? text : nccl->ncclGetLastError(comm);
}
