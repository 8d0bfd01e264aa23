/*
 * engine.c - load the back end and make its communicators
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "gpu/preload/engine.h"

#include "gpu/preload/fault.h"
#include "gpu/preload/log.h"
#include "gpu/preload/rates.h"
#include "gpu/preload/shim.h"
#include "gpu/preload/verify.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct zipccl_shim_back_end *table;
static char missing[256];
static struct zipccl_nccl_api api;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void fill_api(void)
{
    const struct zipccl_nccl *nccl = zipccl_nccl_get();

#define ZIPCCL_TAKE(name) api.name = nccl->nccl##name;
    ZIPCCL_TAKE(GetVersion)
    ZIPCCL_TAKE(GetErrorString)
    ZIPCCL_TAKE(GetLastError)
    ZIPCCL_TAKE(CommCount)
    ZIPCCL_TAKE(CommUserRank)
    ZIPCCL_TAKE(CommCuDevice)
    ZIPCCL_TAKE(CommGetAsyncError)
    ZIPCCL_TAKE(CommAbort)
    ZIPCCL_TAKE(CommDestroy)
    ZIPCCL_TAKE(GroupStart)
    ZIPCCL_TAKE(GroupEnd)
    ZIPCCL_TAKE(Send)
    ZIPCCL_TAKE(Recv)
    ZIPCCL_TAKE(AllGather)
    ZIPCCL_TAKE(ReduceScatter)
    ZIPCCL_TAKE(AllReduce)
    ZIPCCL_TAKE(Broadcast)
    ZIPCCL_TAKE(AlltoAll)
    ZIPCCL_TAKE(CommSplit)
    ZIPCCL_TAKE(MemAlloc)
    ZIPCCL_TAKE(MemFree)
    ZIPCCL_TAKE(CommRegister)
    ZIPCCL_TAKE(CommDeregister)
#undef ZIPCCL_TAKE
}

/* libzipccl-nccl.so of the folder that this library was loaded from. */
static void load(void)
{
    const struct zipccl_shim_back_end *found;
    const char *slash;
    char path[1024];
    Dl_info info;
    void *handle;

    if (dladdr(&table, &info) == 0 || (slash = strrchr(info.dli_fname, '/')) == NULL) {
        (void)snprintf(missing, sizeof missing, "the folder of this library is not known");
        return;
    }
    (void)snprintf(path, sizeof path, "%.*s/libzipccl-nccl.so", (int)(slash - info.dli_fname),
                   info.dli_fname);
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        (void)snprintf(missing, sizeof missing, "%s", dlerror());
        return;
    }
    found = dlsym(handle, "zipccl_shim_back_end");
    if (found == NULL || found->version != ZIPCCL_SHIM_BACK_END_VERSION) {
        (void)snprintf(missing, sizeof missing, "%.200s is of another build", path);
        return;
    }
    fill_api();
    table = found;
}

bool zipccl_shim_engine_available(char *why, size_t room)
{
    (void)pthread_once(&once, load);
    (void)snprintf(why, room, "%s", missing);
    return table != NULL;
}

const struct zipccl_shim_back_end *zipccl_shim_engine_table(void)
{
    return table;
}

static void tell(void *context, const char *text)
{
    (void)context;
    zipccl_log_info("%s", text);
}

static uint32_t op_bits(const bool *compress)
{
    static const struct {
        enum zipccl_shim_op shim;
        enum zipccl_op core;
    } ops[] = {{ZIPCCL_SHIM_ALL_GATHER, ZIPCCL_ALL_GATHER},
               {ZIPCCL_SHIM_ALLTOALL, ZIPCCL_ALLTOALL},
               {ZIPCCL_SHIM_SENDRECV, ZIPCCL_SENDRECV},
               {ZIPCCL_SHIM_BROADCAST, ZIPCCL_BROADCAST},
               {ZIPCCL_SHIM_REDUCE_SCATTER, ZIPCCL_REDUCE_SCATTER},
               {ZIPCCL_SHIM_ALL_REDUCE, ZIPCCL_ALL_REDUCE}};
    uint32_t bits = 0;

    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++)
        if (compress[ops[i].shim])
            bits |= ZIPCCL_GPU_OP(ops[i].core);
    return bits;
}

bool zipccl_shim_engine_create(struct zipccl_shim_comm *comm, struct zipccl_error *error,
                               bool *because)
{
    const struct zipccl_shim_settings *settings = &zipccl_shim.settings;
    struct zipccl_gpu_options options;
    zipccl_status status;

    table->options_init(&options, &api);
    options.mode = settings->always ? ZIPCCL_MODE_COMPRESSED : ZIPCCL_MODE_ADAPTIVE;
    options.ops = op_bits(settings->compress);
    options.min_bytes = settings->min_bytes;
    options.gate = settings->gate;
    options.max_staging_bytes = settings->memory_bytes;
    options.node_of = comm->topology->node_of;
    options.notice = tell;
    zipccl_shim_rates(&options.params, NULL);
    status = table->create(comm->handle, &options, &comm->engine, error);
    *because = status == ZIPCCL_ERR_MISMATCH;
    if (status == ZIPCCL_OK)
        return true;
    comm->engine = NULL;
    if (error->text[0] == '\0')
        zipccl_fail(error, status, "%s", zipccl_status_string(status));
    return false;
}

/* A second from now, as pthread_rwlock_timed*() count it. */
static struct timespec soon(void)
{
    struct timespec at;

    (void)clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec++;
    return at;
}

/* Let calls under way end, and wait for them; false if one does not. */
static bool interrupt(struct zipccl_shim_comm *comm)
{
    struct timespec at = soon();

    /* Who destroys it waits for work that NCCL's abort, which comes next, ends. */
    if (pthread_rwlock_timedrdlock(&comm->engine_lock, &at) != 0)
        return false;
    if (comm->engine != NULL)
        table->abort(comm->engine);
    pthread_rwlock_unlock(&comm->engine_lock);
    at = soon();
    if (pthread_rwlock_timedwrlock(&comm->engine_lock, &at) == 0)
        return true;
    zipccl_log_warn(
        "communicator of %d ranks: a call is still inside NCCL; what it uses is left to "
        "the process",
        comm->nranks);
    if (pthread_rwlock_tryrdlock(&comm->engine_lock) == 0) {
        zipccl_shim_messages_abort(comm);
        pthread_rwlock_unlock(&comm->engine_lock);
    }
    return false;
}

void zipccl_shim_engine_note(struct zipccl_shim_comm *comm)
{
    pthread_mutex_lock(&comm->lock);
    for (int op = 0; op < ZIPCCL_NUM_OPS; op++)
        table->get_stats(comm->engine, (enum zipccl_op)op, &comm->counts.coded[op]);
    pthread_mutex_unlock(&comm->lock);
}

/* Aborted ones, whose memory is still there. */
struct aborted {
    struct zipccl_gpu_comm *engine;
    int device;
    struct aborted *next;
};
static struct aborted *aborted;
static pthread_mutex_t aborted_lock = PTHREAD_MUTEX_INITIALIZER;

static bool put_off(struct zipccl_gpu_comm *engine, int device)
{
    struct aborted *one = malloc(sizeof *one);

    if (one == NULL)
        return false;
    pthread_mutex_lock(&aborted_lock);
    *one = (struct aborted){engine, device, aborted};
    aborted = one;
    pthread_mutex_unlock(&aborted_lock);
    return true;
}

void zipccl_shim_engine_reap(int device)
{
    struct aborted *mine = NULL, **at = &aborted, *one;

    if (zipccl_shim_comms_alive(device) > 0)
        return;
    pthread_mutex_lock(&aborted_lock);
    while ((one = *at) != NULL) {
        if (one->device != device) {
            at = &one->next;
            continue;
        }
        *at = one->next;
        one->next = mine;
        mine = one;
    }
    pthread_mutex_unlock(&aborted_lock);
    while ((one = mine) != NULL) {
        mine = one->next;
        table->destroy(one->engine);
        free(one);
    }
}

void zipccl_shim_engine_destroy(struct zipccl_shim_comm *comm, bool abort)
{
    struct zipccl_gpu_comm *engine;

    if (!abort)
        pthread_rwlock_wrlock(&comm->engine_lock);
    else if (!interrupt(comm))
        return;
    engine = comm->engine;
    if (engine != NULL)
        zipccl_shim_engine_note(comm);
    comm->engine = NULL;
    zipccl_shim_messages_destroy(comm, abort);
    if (engine != NULL && !(abort && put_off(engine, comm->device)))
        table->destroy(engine);
    pthread_rwlock_unlock(&comm->engine_lock);
}

ncclResult_t zipccl_shim_engine_result(zipccl_status status)
{
    switch (status) {
    case ZIPCCL_OK: return ncclSuccess;
    case ZIPCCL_ERR_ARG: return ncclInvalidArgument;
    case ZIPCCL_ERR_UNSUPPORTED:
    case ZIPCCL_ERR_MISMATCH: return ncclInvalidUsage;
    case ZIPCCL_ERR_NOMEM:
    case ZIPCCL_ERR_IO: return ncclSystemError;
    case ZIPCCL_ERR_ABORTED:
    case ZIPCCL_ERR_TIMEOUT: return ncclRemoteError;
    default: return ncclInternalError;
    }
}

ncclResult_t zipccl_shim_engine_said(struct zipccl_shim_comm *comm, zipccl_status status)
{
    return status == ZIPCCL_OK ? ncclSuccess
                               : zipccl_shim_fault(comm, zipccl_shim_engine_result(status), "%s",
                                                   table->error(comm->engine));
}
