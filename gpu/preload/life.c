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
#include "gpu/preload/group.h"
#include "gpu/preload/log.h"
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

static void describe(struct zipccl_shim_birth *birth, const ncclConfig_t *config)
{
    if (ZIPCCL_HAS(config, blocking) && config->blocking == 0)
        birth->plain = ZIPCCL_SHIM_NONBLOCKING;
    if (ZIPCCL_HAS(config, commName) && config->commName != NULL)
        (void)snprintf(birth->name, sizeof birth->name, "%s", config->commName);
}

/* A communicator of 'ids': of a rank of this library whatever its mode, if the ids are marked. */
static ncclResult_t born_of_ids(ncclComm_t *handle, const ncclUniqueId *ids, int n,
                                const ncclConfig_t *config, ncclResult_t made)
{
    struct zipccl_shim_birth birth = {handle, zipccl_shim_marked(ids, n), ZIPCCL_SHIM_TAKEN, ""};
    ncclResult_t result;

    describe(&birth, config);
    if (made != ncclSuccess && made != ncclInProgress)
        return made;
    if (birth.uid == 0 && zipccl_shim.active && birth.plain == ZIPCCL_SHIM_TAKEN) {
        birth.plain = ZIPCCL_SHIM_STRANGER;
        zipccl_log_warn_once("stranger",
                             "the rank that made the unique id of a communicator runs without "
                             "zipccl, or off; its calls are plain NCCL");
    }
    if (birth.uid == 0 && !zipccl_shim.active)
        return made;
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
    result = born_of_ids(comm, &id, 1, NULL, result);
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
    result = born_of_ids(comm, &id, 1, config, result);
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
    result = born_of_ids(comm, ids, nids, config, result);
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
            births[i] = (struct zipccl_shim_birth){&comms[i], zipccl_shim_marked(&made, 1),
                                                   ZIPCCL_SHIM_TAKEN, ""};
        result = zipccl_shim_settle(births, (size_t)n);
    }
    free(births);
    zipccl_shim_thread.inside--;
    return result;
}

/* A child of 'parent': its members have agreed already that they all have this library. */
static ncclResult_t born_of_parent(ncclComm_t parent, ncclComm_t *handle, uint64_t detail,
                                   const ncclConfig_t *config, ncclResult_t made)
{
    struct zipccl_shim_comm *from = zipccl_shim_comm_find(parent);
    struct zipccl_shim_birth birth = {handle, 0, ZIPCCL_SHIM_UNKNOWN, ""};
    ncclResult_t result;

    if (from == NULL || (made != ncclSuccess && made != ncclInProgress))
        return made;
    birth.plain = from->plain;
    /* What is about the parent alone does not pass to its children. */
    if (birth.plain == ZIPCCL_SHIM_GROUP || birth.plain == ZIPCCL_SHIM_ONE_RANK)
        birth.plain = ZIPCCL_SHIM_TAKEN;
    /* What was ended on all ranks at one call stays ended. */
    if (birth.plain == ZIPCCL_SHIM_TAKEN &&
        (from->stopped == ZIPCCL_SHIM_SWITCHED_OFF || from->stopped == ZIPCCL_SHIM_DISABLED))
        birth.plain = (enum zipccl_shim_reason)from->stopped;
    birth.uid = zipccl_shim_derive(from->uid, ++from->splits, detail);
    describe(&birth, config);
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
    *out = NULL; /* so it stays for a rank without a color */
    result = nccl->ncclCommSplit(comm, color, key, out, config);
    result = born_of_parent(comm, out, (uint64_t)(unsigned)color, config, result);
    zipccl_shim_thread.inside--;
    return result;
}

/* Take leave of 'handle' before NCCL does. */
static void leave(ncclComm_t handle, bool abort, bool remove)
{
    struct zipccl_shim_comm *comm = zipccl_shim_comm_find(handle);
    const struct zipccl_cuda *cuda = zipccl_cuda_get();
    bool entered;
    int before;

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
    if (entered)
        zipccl_cuda_leave(cuda, before);
    if (remove) {
        zipccl_shim_comm_remove(comm);
        /* Many a job ends without the process's usual end. */
        if (zipccl_shim_comm_alive() == 0)
            zipccl_shim_report_file();
    }
}

ZIPCCL_SHIM_EXPORT ncclResult_t ncclCommShrink(ncclComm_t comm, int *excluded, int nexcluded,
                                               ncclComm_t *out, ncclConfig_t *config, int flags)
{
    ncclResult_t result;

    ZIPCCL_NEED(ncclCommShrink);
    if (zipccl_shim_forwards())
        return nccl->ncclCommShrink(comm, excluded, nexcluded, out, config, flags);
    zipccl_shim_thread.inside++;
    if ((flags & NCCL_SHRINK_ABORT) != 0)
        leave(comm, true, false);
    result = nccl->ncclCommShrink(comm, excluded, nexcluded, out, config, flags);
    result = born_of_parent(comm, out, UINT64_MAX, config, result);
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
    result = nccl->name(__VA_ARGS__);                                                              \
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
    if (!zipccl_shim_forwards() && (record = zipccl_shim_comm_find(comm)) != NULL)
        zipccl_shim_comm_stop(record, ZIPCCL_SHIM_WINDOW);
    return nccl->ncclCommWindowRegister(comm, buff, size, win, flags);
}

/*
 * The back end's state after NCCL's own: what failed later is told where the job looks for it.  While a call
 * is inside, it looks itself, and returns what it finds; another thread must not look then, nor wait.
 */
static zipccl_status late_error(ncclComm_t handle, struct zipccl_error *error)
{
    struct zipccl_shim_comm *comm = zipccl_shim_comm_find(handle);
    zipccl_status status = ZIPCCL_OK;

    if (comm == NULL)
        return ZIPCCL_OK;
    if (__atomic_load_n(&comm->failed, __ATOMIC_ACQUIRE) != ncclSuccess)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "what the control file says could not be shared");
    /* Who aborts holds the lock for writing and is not to be waited for here. */
    if (pthread_rwlock_tryrdlock(&comm->engine_lock) != 0)
        return ZIPCCL_OK;
    if (pthread_mutex_trylock(&comm->call_lock) == 0) {
        if (comm->engine != NULL)
            status = zipccl_shim_engine_table()->async_error(comm->engine, error);
        pthread_mutex_unlock(&comm->call_lock);
    }
    pthread_rwlock_unlock(&comm->engine_lock);
    return status;
}

ZIPCCL_SHIM_EXPORT ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *out)
{
    struct zipccl_error error = {""};
    ncclResult_t result;

    ZIPCCL_NEED(ncclCommGetAsyncError);
    result = nccl->ncclCommGetAsyncError(comm, out);
    if (!zipccl_shim_forwards() && result == ncclSuccess && *out == ncclSuccess)
        *out = zipccl_shim_engine_result(late_error(comm, &error));
    return result;
}

ZIPCCL_SHIM_EXPORT const char *ncclGetLastError(ncclComm_t comm)
{
    static __thread char text[600];
    const struct zipccl_nccl *nccl = zipccl_nccl_get();
    struct zipccl_error error = {""};

    if (nccl->ncclGetLastError == NULL)
        return zipccl_nccl_missing_text("ncclGetLastError");
    if (!zipccl_shim_forwards() && comm != NULL && late_error(comm, &error) != ZIPCCL_OK) {
        (void)snprintf(text, sizeof text, "zipccl: %s", error.text);
        return text;
    }
    return nccl->ncclGetLastError(comm);
}
