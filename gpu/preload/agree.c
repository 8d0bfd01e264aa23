/*
 * agree.c - what the ranks of a new communicator tell each other
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "gpu/preload/agree.h"

#include "core/wire.h"
#include "gpu/host_hash.h"
#include "gpu/preload/control.h"
#include "gpu/preload/cuda.h"
#include "gpu/preload/engine.h"
#include "gpu/preload/fault.h"
#include "gpu/preload/log.h"
#include "gpu/preload/pool.h"
#include "gpu/preload/shim.h"
#include "gpu/preload/verify.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The record, little-endian: magic 0, mode 8, can compress 12, digest 16, uid 24, host 32, thread 40,
 * number in the job 48, reserved 52, name 64. */
enum { RECORD = 128, NAME = 64, NAME_BYTES = 64, MARK = 16 };

/* Longest that the ranks of a new communicator wait for each other. */
enum { LIMIT_S = 600 };

/* What a rank says of itself when all try to get ready: done, failed, failed because another did. */
enum { READY = 0, FAILED = 1, FOLLOWED = 2 };

static const char magic[9] = "zipccl01";

uint64_t zipccl_shim_derive(uint64_t uid, uint64_t step, uint64_t detail)
{
    uint8_t bytes[24];
    uint64_t hash;

    zipccl_put_u64(bytes, uid);
    zipccl_put_u64(bytes + 8, step);
    zipccl_put_u64(bytes + 16, detail);
    hash = zipccl_gpu_hash(ZIPCCL_GPU_HASH_START, bytes, sizeof bytes);
    return hash != 0 ? hash : 1;
}

void zipccl_shim_mark(ncclUniqueId *id)
{
    static uint64_t count;
    char *mark = id->internal + sizeof id->internal - MARK;
    struct timespec now;
    uint64_t uid;

    for (size_t i = 0; i < MARK; i++)
        if (mark[i] != 0)
            return;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    uid = zipccl_shim_derive((uint64_t)now.tv_sec << 30 | (uint64_t)now.tv_nsec, (uint64_t)getpid(),
                             __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED));
    memcpy(mark, magic, 8);
    zipccl_put_u64((uint8_t *)mark + 8, uid);
}

uint64_t zipccl_shim_marked(const ncclUniqueId *ids, int n)
{
    uint64_t uid = 0;

    for (int i = 0; i < n; i++) {
        const char *mark = ids[i].internal + sizeof ids[i].internal - MARK;

        if (memcmp(mark, magic, 8) != 0)
            return 0;
        uid = zipccl_shim_derive(uid, (uint64_t)i, zipccl_get_u64((const uint8_t *)mark + 8));
    }
    return uid;
}

static void fill_record(uint8_t *record, const struct zipccl_shim_birth *birth)
{
    const struct zipccl_shim_settings *settings = &zipccl_shim.settings;
    char why[256];
    bool can = zipccl_shim.active && settings->mode == ZIPCCL_SHIM_ON &&
               zipccl_shim_engine_available(why, sizeof why);

    memset(record, 0, RECORD);
    memcpy(record, magic, 8);
    zipccl_put_u32(record + 8, zipccl_shim.active ? settings->mode : ZIPCCL_SHIM_OFF);
    zipccl_put_u32(record + 12, can);
    zipccl_put_u64(record + 16, zipccl_shim.digest);
    zipccl_put_u64(record + 24, birth->uid);
    zipccl_put_u64(record + 32, zipccl_gpu_host_hash());
    zipccl_put_u64(record + 40, zipccl_shim_derive(zipccl_gpu_host_hash(), (uint64_t)getpid(),
                                                   (uint64_t)syscall(SYS_gettid)));
    zipccl_put_u32(record + 48, (uint32_t)settings->rank);
    memcpy(record + NAME, birth->name, sizeof birth->name);
}

/* One communicator under way. */
struct talk {
    const struct zipccl_shim_birth *birth;
    ncclComm_t handle;
    int rank, nranks, device;
    uint8_t *records; /* [nranks * RECORD] */
    void *d_records;  /* the same, and one more, which is sent */
    cudaStream_t stream;
    uint32_t *node; /* [nranks] first rank of the same host */
    int *job;       /* [nranks] numbers in the job */
    bool under_way; /* the device may still use its memory */
};

static bool open_talk(const struct zipccl_cuda *cuda, struct talk *talk)
{
    size_t nbytes = (size_t)talk->nranks * RECORD;
    uint8_t own[RECORD];

    fill_record(own, talk->birth);
    talk->records = malloc(nbytes);
    talk->node = calloc((size_t)talk->nranks, sizeof *talk->node);
    talk->job = malloc((size_t)talk->nranks * sizeof *talk->job);
    talk->d_records = zipccl_shim_pool_take(cuda, talk->device, nbytes + RECORD);
    return talk->records != NULL && talk->node != NULL && talk->job != NULL &&
           talk->d_records != NULL &&
           cuda->cudaStreamCreateWithFlags(&talk->stream, cudaStreamNonBlocking) == cudaSuccess &&
           cuda->cudaMemcpyAsync((char *)talk->d_records + nbytes, own, RECORD,
                                 cudaMemcpyHostToDevice, talk->stream) == cudaSuccess &&
           cuda->cudaStreamSynchronize(talk->stream) == cudaSuccess;
}

/* Wait for the other ranks; not for ever if NCCL finds that one is gone, or after a limit. */
static ncclResult_t arrive(const struct zipccl_cuda *cuda, struct talk *talk)
{
    const struct zipccl_nccl *nccl = zipccl_nccl_get();
    ncclResult_t state = ncclSuccess;
    struct timespec from, now;
    cudaError_t reached;

    (void)clock_gettime(CLOCK_MONOTONIC, &from);
    talk->under_way = true;
    for (unsigned polls = 1; (reached = cuda->cudaStreamQuery(talk->stream)) == cudaErrorNotReady;
         polls++) {
        (void)usleep(20);
        if (polls % 512 != 0)
            continue;
        if (nccl->ncclCommGetAsyncError(talk->handle, &state) == ncclSuccess &&
            state != ncclSuccess && state != ncclInProgress)
            return state;
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - from.tv_sec > LIMIT_S)
            return ncclRemoteError;
    }
    talk->under_way = false;
    return reached == cudaSuccess ? ncclSuccess : ncclUnhandledCudaError;
}

static ncclResult_t finish_talk(const struct zipccl_cuda *cuda, struct talk *talk, size_t nbytes)
{
    if (cuda->cudaMemcpyAsync(talk->records, talk->d_records, nbytes, cudaMemcpyDeviceToHost,
                              talk->stream) != cudaSuccess) {
        talk->under_way = true;
        return ncclUnhandledCudaError;
    }
    return arrive(cuda, talk);
}

static void close_talk(const struct zipccl_cuda *cuda, struct talk *talk)
{
    free(talk->node);
    free(talk->job);
    if (talk->under_way) { /* the device may still use what it has */
        zipccl_shim_pool_lose(talk->d_records);
        return;
    }
    zipccl_shim_pool_give(talk->d_records);
    if (talk->stream != NULL)
        (void)cuda->cudaStreamDestroy(talk->stream);
    free(talk->records);
}

/* Exchange the records of all 'talks' at once. */
static ncclResult_t exchange(const struct zipccl_cuda *cuda, struct talk *talks, size_t n)
{
    const struct zipccl_nccl *nccl = zipccl_nccl_get();
    ncclResult_t result = ncclSuccess, ended;
    struct zipccl_cuda_place before;

    if (!zipccl_cuda_enter(cuda, talks[0].device, &before))
        return ncclUnhandledCudaError;
    for (size_t i = 0; i < n && result == ncclSuccess; i++)
        if (cuda->cudaSetDevice(talks[i].device) != cudaSuccess || !open_talk(cuda, &talks[i]))
            result = ncclUnhandledCudaError;
        else
            zipccl_shim_engine_reap(talks[i].device);
    if (result == ncclSuccess)
        result = nccl->ncclGroupStart();
    if (result == ncclSuccess) {
        for (size_t i = 0; i < n && result == ncclSuccess; i++) {
            struct talk *t = &talks[i];
            size_t nbytes = (size_t)t->nranks * RECORD;

            (void)cuda->cudaSetDevice(t->device);
            t->under_way = true;
            result = nccl->ncclAllGather((char *)t->d_records + nbytes, t->d_records, RECORD,
                                         ncclUint8, t->handle, t->stream);
        }
        ended = nccl->ncclGroupEnd();
        result = result == ncclSuccess ? ended : result;
    }
    for (size_t i = 0; i < n && result == ncclSuccess; i++) {
        (void)cuda->cudaSetDevice(talks[i].device);
        result = finish_talk(cuda, &talks[i], (size_t)talks[i].nranks * RECORD);
    }
    zipccl_cuda_leave(cuda, &before);
    return result;
}

/* The first rank whose record differs from rank 0's in what must be equal; nranks if none does. */
static int first_different(const struct talk *t)
{
    int r = 1;

    while (r < t->nranks && memcmp(t->records + (size_t)r * RECORD, t->records, 12) == 0 &&
           memcmp(t->records + (size_t)r * RECORD + 16, t->records + 16, 16) == 0)
        r++;
    return r;
}

static bool shares_thread(const struct talk *t)
{
    for (int a = 0; a < t->nranks; a++)
        for (int b = 0; b < a; b++)
            if (memcmp(t->records + (size_t)a * RECORD + 40, t->records + (size_t)b * RECORD + 40,
                       8) == 0)
                return true;
    return false;
}

static bool all_can(const struct talk *t, int *who)
{
    for (*who = 0; *who < t->nranks; (*who)++)
        if (zipccl_get_u32(t->records + (size_t)*who * RECORD + 12) == 0)
            return false;
    return true;
}

/* Which rank is where; true if all have a number in the job. */
static bool find_places(struct talk *t)
{
    bool told = true;

    for (int r = 0; r < t->nranks; r++) {
        const uint8_t *record = t->records + (size_t)r * RECORD;

        while (memcmp(t->records + (size_t)t->node[r] * RECORD + 32, record + 32, 8) != 0)
            t->node[r]++;
        t->job[r] = (int)zipccl_get_u32(record + 48);
        told = told && t->job[r] >= 0;
    }
    return told;
}

/* A function of the records alone, so that all ranks come to the same. */
static enum zipccl_shim_reason judge(struct talk *t)
{
    const struct zipccl_shim_settings *settings = &zipccl_shim.settings;
    const char *name = (const char *)t->records + NAME;
    int other = first_different(t);

    if (other < t->nranks) {
        const uint8_t *record = t->records + (size_t)other * RECORD;
        unsigned mode = zipccl_get_u32(record + 8);

        if (t->rank == 0)
            zipccl_log_warn("communicator of %d ranks: rank %d differs from rank 0 (%s); its calls "
                            "are plain NCCL",
                            t->nranks, other,
                            memcmp(record, magic, 8) != 0 ? "another version of zipccl"
                            : mode != (unsigned)settings->mode && mode <= ZIPCCL_SHIM_ON
                                ? "ZIPCCL_MODE"
                                : "other ZIPCCL_ variables");
        return ZIPCCL_SHIM_DIFFER;
    }
    t->records[NAME + NAME_BYTES - 1] = '\0';
    if (!find_places(t)) {
        free(t->job);
        t->job = NULL;
    }
    if (!zipccl_shim_group_selected(settings->groups, name, t->job, t->nranks))
        return ZIPCCL_SHIM_GROUP;
    if (t->nranks == 1)
        return ZIPCCL_SHIM_ONE_RANK;
    if (settings->mode == ZIPCCL_SHIM_ON && shares_thread(t))
        return ZIPCCL_SHIM_THREAD;
    if (settings->mode == ZIPCCL_SHIM_ON && !all_can(t, &other)) {
        char why[256] = "";

        if (t->rank == other && !zipccl_shim_engine_available(why, sizeof why))
            zipccl_log_warn_once("back end", "cannot compress: %s", why);
        return ZIPCCL_SHIM_BACK_END;
    }
    return ZIPCCL_SHIM_TAKEN;
}

/* What is known of the communicator 'birth' now that NCCL has made it; false if it has not. */
static bool meet(const struct zipccl_shim_birth *birth, struct talk *talk)
{
    const struct zipccl_nccl *nccl = zipccl_nccl_get();

    memset(talk, 0, sizeof *talk);
    talk->birth = birth;
    talk->handle = *birth->handle;
    return talk->handle != NULL &&
           nccl->ncclCommUserRank(talk->handle, &talk->rank) == ncclSuccess &&
           nccl->ncclCommCount(talk->handle, &talk->nranks) == ncclSuccess &&
           nccl->ncclCommCuDevice(talk->handle, &talk->device) == ncclSuccess;
}

/* Tell the others 'mine'; *who: the first rank that failed, nranks if all are ready. */
static ncclResult_t ask_all(const struct zipccl_cuda *cuda, struct talk *t, uint8_t mine, int *who)
{
    char *d_own = (char *)t->d_records + (size_t)t->nranks * RECORD;
    ncclResult_t result;

    if (cuda->cudaMemcpyAsync(d_own, &mine, 1, cudaMemcpyHostToDevice, t->stream) != cudaSuccess ||
        cuda->cudaStreamSynchronize(t->stream) != cudaSuccess)
        return ncclUnhandledCudaError;
    result =
        zipccl_nccl_get()->ncclAllGather(d_own, t->d_records, 1, ncclUint8, t->handle, t->stream);
    if (result == ncclSuccess)
        result = finish_talk(cuda, t, (size_t)t->nranks);
    if (result != ncclSuccess)
        return result;
    *who = t->nranks;
    for (int r = t->nranks - 1; r >= 0; r--)
        if (t->records[r] == FAILED || (t->records[r] == FOLLOWED && *who == t->nranks))
            *who = r;
    return ncclSuccess;
}

static uint8_t set_up(struct zipccl_shim_comm *comm, struct zipccl_error *error)
{
    bool because = false;

    if (!zipccl_shim_engine_create(comm, error, &because))
        return because ? FOLLOWED : FAILED;
    if (zipccl_shim_control_create(comm) &&
        (!zipccl_shim_messages_wanted() || zipccl_shim_messages_prepare(comm)))
        return READY;
    zipccl_fail(error, ZIPCCL_ERR_NOMEM, "no memory or stream for the control file or for checks");
    return FAILED;
}

/*
 * All that compression on 'comm' needs, on all ranks or on none.  What only one rank knows of itself is
 * told before the next collective step, so that no rank is left alone in one.  'comm' is NULL
 * where the record could not be kept.
 */
static ncclResult_t equip(const struct zipccl_cuda *cuda, struct talk *t,
                          struct zipccl_shim_comm *comm)
{
    struct zipccl_error error = {"too many communicators, or no memory"};
    uint8_t mine = comm != NULL && comm->topology != NULL ? READY : FAILED;
    ncclResult_t result;
    int who = 0;

    result = ask_all(cuda, t, mine, &who);
    if (result == ncclSuccess && who == t->nranks) {
        error.text[0] = '\0';
        mine = set_up(comm, &error);
        result = ask_all(cuda, t, mine, &who);
    }
    if (result == ncclSuccess && who == t->nranks && comm->messages != NULL) {
        mine = zipccl_shim_messages_create(comm) ? READY : FAILED;
        zipccl_fail(&error, ZIPCCL_ERR_IO, "no communicator for checks of sends and receives");
        result = ask_all(cuda, t, mine, &who);
    }
    if (result == ncclSuccess && who == t->nranks)
        return result;
    if (result == ncclSuccess && who == t->rank)
        zipccl_log_warn("communicator of %d ranks: rank %d: %s; its calls are plain NCCL",
                        t->nranks, t->rank, error.text);
    if (comm == NULL)
        return result;
    comm->plain = ZIPCCL_SHIM_BACK_END;
    if (comm->engine != NULL || comm->messages != NULL)
        zipccl_shim_engine_destroy(comm, result != ncclSuccess);
    zipccl_shim_control_destroy(comm, result != ncclSuccess);
    return result;
}

/* Fill in the record of a communicator that there is now. */
static struct zipccl_shim_comm *keep(struct talk *t, enum zipccl_shim_reason plain, bool agreed)
{
    struct zipccl_shim_comm *comm = zipccl_shim_comm_add(t->handle, t->rank, t->nranks, t->device);

    if (comm == NULL)
        return NULL;
    comm->uid = t->birth->uid;
    comm->plain = plain;
    (void)memcpy(comm->name, t->birth->name, sizeof comm->name);
    if (!agreed || plain == ZIPCCL_SHIM_DIFFER)
        return comm;
    memcpy(comm->name, t->records + NAME, sizeof comm->name);
    comm->job_ranks = t->job;
    t->job = NULL;
    (void)zipccl_topology_create((uint32_t)t->nranks, t->node, &comm->topology);
    return comm;
}

/* 'plain' is why nothing on it is compressed; an agreement, if 'cuda' is not NULL, may find more. */
static ncclResult_t take_in(const struct zipccl_cuda *cuda, struct talk *t,
                            enum zipccl_shim_reason plain)
{
    struct zipccl_shim_comm *comm;
    struct zipccl_cuda_place before;
    ncclResult_t result = ncclSuccess;

    if (!zipccl_shim.active)
        return ncclSuccess;
    if (cuda != NULL)
        plain = judge(t);
    comm = keep(t, plain, cuda != NULL);
    if (cuda != NULL && plain == ZIPCCL_SHIM_TAKEN && zipccl_shim.settings.mode == ZIPCCL_SHIM_ON) {
        result = ncclUnhandledCudaError;
        if (zipccl_cuda_enter(cuda, t->device, &before)) {
            result = equip(cuda, t, comm);
            zipccl_cuda_leave(cuda, &before);
        }
    }
    zipccl_shim_comm_put(comm);
    return result;
}

/* In an order that all ranks share, whatever the order in which they asked: what follows is collective. */
static int by_uid(const void *a, const void *b)
{
    const struct talk *x = a, *y = b;

    if (x->birth->uid != y->birth->uid)
        return x->birth->uid < y->birth->uid ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

ncclResult_t zipccl_shim_settle(const struct zipccl_shim_birth *births, size_t n)
{
    const struct zipccl_cuda *cuda = NULL;
    struct talk *talks = calloc(n, sizeof *talks);
    ncclResult_t result = ncclSuccess;
    size_t ntalks = 0;

    if (talks == NULL)
        return ncclSystemError;
    for (size_t i = 0; i < n; i++) {
        struct talk *t = &talks[ntalks];

        /* A communicator that is not ready cannot be asked anything. */
        if (births[i].plain == ZIPCCL_SHIM_NONBLOCKING) {
            t->birth = &births[i];
            t->handle = *births[i].handle;
            t->rank = births[i].rank;
            t->nranks = births[i].nranks;
            t->device = births[i].device;
            if (t->handle != NULL)
                (void)take_in(NULL, t, births[i].plain);
        } else if (meet(&births[i], t)) {
            if (births[i].plain != ZIPCCL_SHIM_TAKEN || births[i].uid == 0)
                (void)take_in(NULL, t, births[i].plain);
            else if (t->nranks == 1)
                (void)take_in(NULL, t, ZIPCCL_SHIM_ONE_RANK);
            else
                ntalks++;
        }
    }
    if (ntalks > 0) {
        const char *why = "no CUDA runtime was found";

        qsort(talks, ntalks, sizeof *talks, by_uid);
        cuda = zipccl_cuda_get();
        result = cuda != NULL ? exchange(cuda, talks, ntalks) : ncclUnhandledCudaError;
        if (cuda != NULL)
            why = zipccl_nccl_get()->ncclGetErrorString(result);
        if (result != ncclSuccess) {
            zipccl_log_warn("the settings of a new communicator could not be compared: %s", why);
            (void)zipccl_shim_fault(
                NULL, result, "the settings of a new communicator could not be compared: %s", why);
        }
    }
    for (size_t i = 0; i < ntalks; i++) {
        if (result == ncclSuccess)
            result = take_in(cuda, &talks[i], ZIPCCL_SHIM_TAKEN);
        if (cuda != NULL)
            close_talk(cuda, &talks[i]);
    }
    free(talks);
    return result;
}
