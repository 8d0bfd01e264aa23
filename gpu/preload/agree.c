/*
 * agree.c - what the ranks of a new communicator tell each other
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "gpu/preload/agree.h"

#include "core/wire.h"
#include "gpu/host_hash.h"
#include "gpu/preload/cuda.h"
#include "gpu/preload/engine.h"
#include "gpu/preload/log.h"
#include "gpu/preload/shim.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The record, little-endian: magic 0, mode 8, can compress 12, digest 16, uid 24, host 32, thread 40,
 * number in the job 48, reserved 52, name 64. */
enum { RECORD = 128, NAME = 64, MARK = 16 };

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
};

static bool open_talk(const struct zipccl_cuda *cuda, struct talk *talk)
{
    size_t nbytes = (size_t)talk->nranks * RECORD;
    uint8_t own[RECORD];

    fill_record(own, talk->birth);
    talk->records = malloc(nbytes);
    return talk->records != NULL &&
           cuda->cudaStreamCreateWithFlags(&talk->stream, cudaStreamNonBlocking) == cudaSuccess &&
           cuda->cudaMalloc(&talk->d_records, nbytes + RECORD) == cudaSuccess &&
           cuda->cudaMemcpyAsync((char *)talk->d_records + nbytes, own, RECORD,
                                 cudaMemcpyHostToDevice, talk->stream) == cudaSuccess &&
           cuda->cudaStreamSynchronize(talk->stream) == cudaSuccess;
}

static bool finish_talk(const struct zipccl_cuda *cuda, struct talk *talk)
{
    return cuda->cudaMemcpyAsync(talk->records, talk->d_records, (size_t)talk->nranks * RECORD,
                                 cudaMemcpyDeviceToHost, talk->stream) == cudaSuccess &&
           cuda->cudaStreamSynchronize(talk->stream) == cudaSuccess;
}

static void close_talk(const struct zipccl_cuda *cuda, struct talk *talk)
{
    if (talk->d_records != NULL)
        (void)cuda->cudaFree(talk->d_records);
    if (talk->stream != NULL)
        (void)cuda->cudaStreamDestroy(talk->stream);
    free(talk->records);
}

/* Exchange the records of all 'talks' at once. */
static ncclResult_t exchange(const struct zipccl_cuda *cuda, struct talk *talks, size_t n)
{
    const struct zipccl_nccl *nccl = zipccl_nccl_get();
    ncclResult_t result = ncclSuccess, ended;
    int before = 0;

    for (size_t i = 0; i < n && result == ncclSuccess; i++)
        if (!zipccl_cuda_enter(cuda, talks[i].device, i == 0 ? &before : &(int){0}) ||
            !open_talk(cuda, &talks[i]))
            result = ncclUnhandledCudaError;
    if (result == ncclSuccess)
        result = nccl->ncclGroupStart();
    if (result == ncclSuccess) {
        for (size_t i = 0; i < n && result == ncclSuccess; i++) {
            struct talk *t = &talks[i];
            size_t nbytes = (size_t)t->nranks * RECORD;

            (void)cuda->cudaSetDevice(t->device);
            result = nccl->ncclAllGather((char *)t->d_records + nbytes, t->d_records, RECORD,
                                         ncclUint8, t->handle, t->stream);
        }
        ended = nccl->ncclGroupEnd();
        result = result == ncclSuccess ? ended : result;
    }
    for (size_t i = 0; i < n && result == ncclSuccess; i++) {
        (void)cuda->cudaSetDevice(talks[i].device);
        if (!finish_talk(cuda, &talks[i]))
            result = ncclUnhandledCudaError;
    }
    zipccl_cuda_leave(cuda, before);
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

static zipccl_status keep_places(struct zipccl_shim_comm *comm, const struct talk *t)
{
    uint32_t *node = calloc((size_t)t->nranks, sizeof *node);
    int *job = malloc((size_t)t->nranks * sizeof *job);
    bool told = true;
    zipccl_status status = ZIPCCL_ERR_NOMEM;

    for (int r = 0; node != NULL && job != NULL && r < t->nranks; r++) {
        const uint8_t *record = t->records + (size_t)r * RECORD;

        node[r] = 0;
        while (memcmp(t->records + (size_t)node[r] * RECORD + 32, record + 32, 8) != 0)
            node[r]++;
        job[r] = (int)zipccl_get_u32(record + 48);
        told = told && job[r] >= 0;
    }
    if (node != NULL && job != NULL)
        status = zipccl_topology_create((uint32_t)t->nranks, node, &comm->topology);
    comm->job_ranks = told ? job : NULL;
    if (!told)
        free(job);
    free(node);
    return status;
}

static enum zipccl_shim_reason judge(struct zipccl_shim_comm *comm, const struct talk *t)
{
    const struct zipccl_shim_settings *settings = &zipccl_shim.settings;
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
    memcpy(comm->name, t->records + NAME, sizeof comm->name);
    comm->name[sizeof comm->name - 1] = '\0';
    if (keep_places(comm, t) != ZIPCCL_OK)
        return ZIPCCL_SHIM_BACK_END;
    if (!zipccl_shim_group_selected(settings->groups, comm->name, comm->job_ranks, comm->nranks))
        return ZIPCCL_SHIM_GROUP;
    if (comm->nranks == 1)
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

static void take_in(struct talk *t, enum zipccl_shim_reason plain, bool agreed)
{
    struct zipccl_shim_comm *comm;

    if (!zipccl_shim.active)
        return;
    comm = zipccl_shim_comm_add(t->handle, t->rank, t->nranks, t->device);
    if (comm == NULL)
        return;
    comm->uid = t->birth->uid;
    (void)memcpy(comm->name, t->birth->name, sizeof comm->name);
    comm->plain = agreed ? judge(comm, t) : plain;
    if (comm->plain == ZIPCCL_SHIM_TAKEN && zipccl_shim.settings.mode == ZIPCCL_SHIM_ON)
        comm->plain = zipccl_shim_engine_create(comm);
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
            if (t->handle != NULL)
                take_in(t, births[i].plain, false);
        } else if (meet(&births[i], t)) {
            if (births[i].plain != ZIPCCL_SHIM_TAKEN || births[i].uid == 0)
                take_in(t, births[i].plain, false);
            else if (t->nranks == 1)
                take_in(t, ZIPCCL_SHIM_ONE_RANK, false);
            else
                ntalks++;
        }
    }
    if (ntalks > 0) {
        cuda = zipccl_cuda_get();
        result = cuda != NULL ? exchange(cuda, talks, ntalks) : ncclUnhandledCudaError;
        if (result != ncclSuccess)
            zipccl_log_warn("the settings of a new communicator could not be compared: %s",
                            cuda == NULL ? "no CUDA runtime was found"
                                         : zipccl_nccl_get()->ncclGetErrorString(result));
    }
    for (size_t i = 0; i < ntalks; i++) {
        if (result == ncclSuccess)
            take_in(&talks[i], ZIPCCL_SHIM_TAKEN, true);
        if (cuda != NULL)
            close_talk(cuda, &talks[i]);
    }
    free(talks);
    return result;
}
