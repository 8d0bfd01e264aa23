/*
 * cuda.h - the few functions of the CUDA runtime that the call layer needs, from the job's own runtime
 *
 * This library links no CUDA: preloaded into any program it must load, and off it must not need a GPU.
 * The functions are those of the libcudart that the job has loaded, else of the newest that is found.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_PRELOAD_CUDA_H
#define ZIPCCL_GPU_PRELOAD_CUDA_H

#include <cuda_runtime_api.h>
#include <nccl.h>

#include <stdbool.h>

#define ZIPCCL_CUDA_FUNCTIONS(X)                                                                   \
    X(cudaGetDevice, (int *device))                                                                \
    X(cudaSetDevice, (int device))                                                                 \
    X(cudaMalloc, (void **p, size_t nbytes))                                                       \
    X(cudaFree, (void *p))                                                                         \
    X(cudaMallocHost, (void **p, size_t nbytes))                                                   \
    X(cudaFreeHost, (void *p))                                                                     \
    X(cudaMemcpyAsync,                                                                             \
      (void *dst, const void *src, size_t nbytes, enum cudaMemcpyKind kind, cudaStream_t s))       \
    X(cudaStreamCreateWithFlags, (cudaStream_t * stream, unsigned flags))                          \
    X(cudaStreamDestroy, (cudaStream_t stream))                                                    \
    X(cudaStreamSynchronize, (cudaStream_t stream))                                                \
    X(cudaStreamQuery, (cudaStream_t stream))                                                      \
    X(cudaStreamIsCapturing, (cudaStream_t stream, enum cudaStreamCaptureStatus * status))         \
    X(cudaThreadExchangeStreamCaptureMode, (enum cudaStreamCaptureMode * mode))                    \
    X(cudaStreamWaitEvent, (cudaStream_t stream, cudaEvent_t event, unsigned flags))               \
    X(cudaEventCreateWithFlags, (cudaEvent_t * event, unsigned flags))                             \
    X(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream))                                   \
    X(cudaEventQuery, (cudaEvent_t event))                                                         \
    X(cudaEventSynchronize, (cudaEvent_t event))                                                   \
    X(cudaEventDestroy, (cudaEvent_t event))

struct zipccl_cuda {
#define ZIPCCL_MEMBER(name, params) cudaError_t(*name) params;
    ZIPCCL_CUDA_FUNCTIONS(ZIPCCL_MEMBER)
#undef ZIPCCL_MEMBER
};

/* The table; NULL if this process has no CUDA runtime or that lacks one of them. */
const struct zipccl_cuda *zipccl_cuda_get(void);

/* Where a thread was before it did something of ours. */
struct zipccl_cuda_place {
    int device;
    enum cudaStreamCaptureMode mode;
};

/*
 * Make 'device' current, and let what is allocated and asked from here on do no harm to what another thread
 * captures, until zipccl_cuda_leave(); false if that fails, and then there is nothing to leave.
 */
bool zipccl_cuda_enter(const struct zipccl_cuda *cuda, int device,
                       struct zipccl_cuda_place *before);
void zipccl_cuda_leave(const struct zipccl_cuda *cuda, const struct zipccl_cuda_place *before);

/* The second half of it alone: the device stays, since to set one is to make a context on it. */
bool zipccl_cuda_relax(const struct zipccl_cuda *cuda, enum cudaStreamCaptureMode *before);
void zipccl_cuda_restore(const struct zipccl_cuda *cuda, enum cudaStreamCaptureMode before);

/* What 'after' gets from now on waits for what 'before' holds now; nothing if they are one stream. */
ncclResult_t zipccl_cuda_join(const struct zipccl_cuda *cuda, cudaStream_t before,
                              cudaStream_t after);

/* Wait for 'stream' as cudaStreamSynchronize() does, but no longer once '*leaving' is set, which then is
 * an error: who aborts a communicator must not wait for a rank that never comes. */
cudaError_t zipccl_cuda_wait(const struct zipccl_cuda *cuda, cudaStream_t stream,
                             const int *leaving);

#endif
