/*
 * cuda.c - the job's own CUDA runtime, found
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "gpu/preload/cuda.h"

#include "gpu/preload/log.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

static const char *const sonames[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0",
                                      NULL};
static const struct {
    const char *name;
    size_t offset;
} functions[] = {
#define ZIPCCL_ENTRY(name, params) {#name, offsetof(struct zipccl_cuda, name)},
    ZIPCCL_CUDA_FUNCTIONS(ZIPCCL_ENTRY)
#undef ZIPCCL_ENTRY
};

static struct zipccl_cuda table;
static const struct zipccl_cuda *known;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *open_runtime(void)
{
    void *handle = NULL;

    if (dlsym(RTLD_DEFAULT, "cudaStreamIsCapturing") != NULL)
        return RTLD_DEFAULT;
    for (size_t i = 0; sonames[i] != NULL && handle == NULL; i++)
        handle = dlopen(sonames[i], RTLD_NOLOAD | RTLD_LAZY);
    for (size_t i = 0; sonames[i] != NULL && handle == NULL; i++)
        handle = dlopen(sonames[i], RTLD_LAZY | RTLD_LOCAL);
    return handle;
}

static void find(void)
{
    void *handle = open_runtime();

    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        void *symbol = dlsym(handle, functions[i].name);

        if (symbol == NULL) {
            zipccl_log_info("no CUDA runtime with %s was found", functions[i].name);
            return;
        }
        memcpy((char *)&table + functions[i].offset, &symbol, sizeof symbol);
    }
    known = &table;
}

const struct zipccl_cuda *zipccl_cuda_get(void)
{
    (void)pthread_once(&once, find);
    return known;
}

bool zipccl_cuda_relax(const struct zipccl_cuda *cuda, enum cudaStreamCaptureMode *before)
{
    *before = cudaStreamCaptureModeRelaxed;
    return cuda->cudaThreadExchangeStreamCaptureMode(before) == cudaSuccess;
}

void zipccl_cuda_restore(const struct zipccl_cuda *cuda, enum cudaStreamCaptureMode before)
{
    (void)cuda->cudaThreadExchangeStreamCaptureMode(&before);
}

bool zipccl_cuda_enter(const struct zipccl_cuda *cuda, int device, struct zipccl_cuda_place *before)
{
    if (cuda->cudaGetDevice(&before->device) != cudaSuccess ||
        (before->device != device && cuda->cudaSetDevice(device) != cudaSuccess))
        return false;
    if (zipccl_cuda_relax(cuda, &before->mode))
        return true;
    (void)cuda->cudaSetDevice(before->device);
    return false;
}

void zipccl_cuda_leave(const struct zipccl_cuda *cuda, const struct zipccl_cuda_place *before)
{
    int now = -1;

    zipccl_cuda_restore(cuda, before->mode);
    /* To set a device is to make a context on it, also for a thread that never meant to use it.  One that has never
     * chosen a device and comes here with a communicator of another gets one even so, but has it without us, too:
     * NCCL goes back in the same way at the end of its calls (groupLaunch()). */
    if (cuda->cudaGetDevice(&now) != cudaSuccess || now != before->device)
        (void)cuda->cudaSetDevice(before->device);
}

ncclResult_t zipccl_cuda_join(const struct zipccl_cuda *cuda, cudaStream_t before,
                              cudaStream_t after)
{
    cudaEvent_t event;
    bool ok;

    if (before == after)
        return ncclSuccess;
    if (cuda->cudaEventCreateWithFlags(&event, cudaEventDisableTiming) != cudaSuccess)
        return ncclUnhandledCudaError;
    ok = cuda->cudaEventRecord(event, before) == cudaSuccess &&
         cuda->cudaStreamWaitEvent(after, event, 0) == cudaSuccess;
    (void)cuda->cudaEventDestroy(event);
    return ok ? ncclSuccess : ncclUnhandledCudaError;
}

cudaError_t zipccl_cuda_wait(const struct zipccl_cuda *cuda, cudaStream_t stream,
                             const int *leaving)
{
    cudaError_t state;

    while ((state = cuda->cudaStreamQuery(stream)) == cudaErrorNotReady) {
        if (__atomic_load_n(leaving, __ATOMIC_ACQUIRE) != 0)
            return cudaErrorNotReady;
        (void)usleep(20);
    }
    return state;
}
