/*
 * control.c - a file that switches compression off in a running job
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "gpu/preload/control.h"

#include "gpu/preload/cuda.h"
#include "gpu/preload/fault.h"
#include "gpu/preload/log.h"
#include "gpu/preload/shim.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Words that are broadcast. */
enum { KEEP = 0, OFF = 1 };

struct zipccl_shim_control {
    cudaStream_t stream;
    uint32_t *d_word, *word; /* device, and pinned host memory that it is copied to */
    bool pending;
    uint64_t done; /* periods of calls that are behind us */
};

/* OFF if the file exists and its first word is "off"; a pipe that nobody writes to is not waited for. */
static uint32_t read_file(const char *path)
{
    char text[64] = "", *at = text;
    int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ssize_t n;

    if (file < 0)
        return KEEP;
    n = read(file, text, sizeof text - 1);
    (void)close(file);
    text[n > 0 ? n : 0] = '\0';
    at += strspn(at, " \t\r\n");
    at[strcspn(at, " \t\r\n")] = '\0';
    if (strcmp(at, "off") == 0)
        return OFF;
    if (at[0] != '\0' && strcmp(at, "on") != 0)
        zipccl_log_warn_once("control", "%s says \"%s\", expected \"off\" or \"on\"", path, at);
    return KEEP;
}

bool zipccl_shim_control_create(struct zipccl_shim_comm *comm)
{
    const struct zipccl_cuda *cuda = zipccl_cuda_get();
    struct zipccl_shim_control *c;

    if (zipccl_shim.settings.control[0] == '\0')
        return true;
    comm->control = c = calloc(1, sizeof *c);
    return c != NULL &&
           cuda->cudaStreamCreateWithFlags(&c->stream, cudaStreamNonBlocking) == cudaSuccess &&
           cuda->cudaMalloc((void **)&c->d_word, sizeof *c->d_word) == cudaSuccess &&
           cuda->cudaMallocHost((void **)&c->word, sizeof *c->word) == cudaSuccess;
}

/* Learn what was broadcast a period ago. */
static bool finish(const struct zipccl_cuda *cuda, struct zipccl_shim_comm *comm)
{
    struct zipccl_shim_control *c = comm->control;

    if (zipccl_cuda_wait(cuda, c->stream, &comm->leaving) != cudaSuccess)
        return false;
    c->pending = false;
    if (*c->word == OFF) {
        zipccl_shim_comm_stop(comm, ZIPCCL_SHIM_SWITCHED_OFF);
        if (comm->rank == 0)
            zipccl_log_warn("%s: compression is off from collective %llu on (communicator %s of %d "
                            "ranks)",
                            zipccl_shim.settings.control, (unsigned long long)comm->collectives + 1,
                            comm->name[0] != '\0' ? comm->name : "without a name", comm->nranks);
    }
    return true;
}

/* The broadcast takes place on all ranks or is an error: the next collective would meet it otherwise. */
static ncclResult_t begin(const struct zipccl_cuda *cuda, struct zipccl_shim_comm *comm)
{
    const struct zipccl_nccl *nccl = zipccl_nccl_get();
    struct zipccl_shim_control *c = comm->control;
    ncclResult_t result;

    *c->word = comm->rank == 0 ? read_file(zipccl_shim.settings.control) : KEEP;
    if (cuda->cudaMemcpyAsync(c->d_word, c->word, sizeof *c->word, cudaMemcpyHostToDevice,
                              c->stream) != cudaSuccess)
        return ncclUnhandledCudaError;
    result = nccl->ncclBroadcast(c->d_word, c->d_word, sizeof *c->word, ncclUint8, 0, comm->handle,
                                 c->stream);
    if (result != ncclSuccess)
        return result;
    c->pending = true;
    return cuda->cudaMemcpyAsync(c->word, c->d_word, sizeof *c->word, cudaMemcpyDeviceToHost,
                                 c->stream) == cudaSuccess
               ? ncclSuccess
               : ncclUnhandledCudaError;
}

/* With the engine's lock held, so that the communicator stays. */
static ncclResult_t step(const struct zipccl_cuda *cuda, struct zipccl_shim_comm *comm,
                         uint64_t periods)
{
    ncclResult_t result = ncclSuccess;

    comm->control->done = periods;
    if (comm->control->pending && !finish(cuda, comm))
        result = ncclUnhandledCudaError;
    else if (__atomic_load_n(&comm->stopped, __ATOMIC_RELAXED) == ZIPCCL_SHIM_TAKEN)
        result = begin(cuda, comm);
    if (result != ncclSuccess && __atomic_load_n(&comm->leaving, __ATOMIC_ACQUIRE) == 0) {
        __atomic_store_n(&comm->failed, (int)result, __ATOMIC_RELEASE);
        (void)zipccl_shim_fault(comm, result, "what the control file says could not be shared");
        zipccl_log_warn("communicator of %d ranks: what the control file says could not be shared; "
                        "the communicator has failed",
                        comm->nranks);
    }
    return result;
}

ncclResult_t zipccl_shim_control_step(struct zipccl_shim_comm *comm)
{
    const struct zipccl_shim_settings *settings = &zipccl_shim.settings;
    uint64_t periods = comm->collectives / settings->control_every;
    const struct zipccl_cuda *cuda;
    struct zipccl_cuda_place before;
    ncclResult_t result = ncclSuccess;

    if (settings->mode != ZIPCCL_SHIM_ON || settings->control[0] == '\0' ||
        __atomic_load_n(&comm->stopped, __ATOMIC_RELAXED) != ZIPCCL_SHIM_TAKEN)
        return ncclSuccess;
    pthread_rwlock_rdlock(&comm->engine_lock);
    if (comm->engine != NULL && comm->control != NULL && periods != comm->control->done) {
        cuda = zipccl_cuda_get();
        if (cuda != NULL && zipccl_cuda_enter(cuda, comm->device, &before)) {
            result = step(cuda, comm, periods);
            zipccl_cuda_leave(cuda, &before);
        }
    }
    pthread_rwlock_unlock(&comm->engine_lock);
    return result;
}

void zipccl_shim_control_destroy(struct zipccl_shim_comm *comm, bool abort)
{
    const struct zipccl_cuda *cuda = zipccl_cuda_get();
    struct zipccl_shim_control *c = comm->control;

    if (c == NULL || cuda == NULL || comm->engine != NULL) /* stuck, and so who may look at it */
        return;
    comm->control = NULL;
    if (abort) { /* the device may still write, so its few bytes stay */
        free(c);
        return;
    }
    if (c->stream != NULL) {
        (void)cuda->cudaStreamSynchronize(c->stream);
        (void)cuda->cudaStreamDestroy(c->stream);
    }
    if (c->d_word != NULL)
        (void)cuda->cudaFree(c->d_word);
    if (c->word != NULL)
        (void)cuda->cudaFreeHost(c->word);
    free(c);
}
