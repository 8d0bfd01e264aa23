/*
 * cuda_device.cpp - devices, errors, counters and injected failures of the double
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/emu/cuda_state.h"

#include <stdio.h>
#include <string.h>
#include <map>
#include <string>

namespace simt
{
void forget_error();
}

namespace emu
{
static thread_local cudaError_t last_error = cudaSuccess;
static thread_local int device = 0;
static std::atomic<int> sticking[MAX_DEVICES];

struct Failure {
    int nth, code;
};
static std::mutex &failures_mutex = *new std::mutex;
static auto &failures = *new std::map<std::string, Failure>;
static std::atomic<int> armed{0};

Stats *stats()
{
    static Stats &s = *new Stats();
    return &s;
}

cudaError_t set_last(cudaError_t error)
{
    if (error) {
        last_error = error;
    }
    return error;
}

int current_device()
{
    return device;
}

void stick(int which, cudaError_t error)
{
    sticking[which] = error;
}

bool injected(const char *what, int *code)
{
    if (armed == 0) {
        return false;
    }
    std::lock_guard<std::mutex> lock(failures_mutex);
    const auto found = failures.find(what);
    if (found == failures.end() || --found->second.nth > 0) {
        return false;
    }
    *code = found->second.code;
    failures.erase(found);
    armed--;
    return true;
}

cudaError_t enter(const char *what)
{
    int code;
    const cudaError_t stuck = (cudaError_t)sticking[device].load();
    if (stuck) {
        return set_last(stuck);
    }
    return what[0] && injected(what, &code) ? set_last((cudaError_t)code) : cudaSuccess;
}

static int ndevices()
{
    struct emu_options o;
    emu_get_options(&o);
    return o.devices < MAX_DEVICES ? o.devices : (int)MAX_DEVICES;
}

static int nsms()
{
    struct emu_options o;
    emu_get_options(&o);
    return o.sms;
}
} // namespace emu

using namespace emu;

void emu_reset(void)
{
    Stats *s = stats();
    simt::forget_error();
    for (auto &error : sticking) {
        error = cudaSuccess;
    }
    last_error = cudaSuccess;
    s->launches = s->syncs = s->mallocs = s->streams = s->events = 0;
    s->nccl_ops = s->nccl_sent = 0;
    s->most_bytes = s->bytes.load();
    std::lock_guard<std::mutex> lock(failures_mutex);
    failures.clear();
    armed = 0;
}

void emu_get_stats(struct emu_stats *out)
{
    const Stats *s = stats();
    *out = (struct emu_stats){s->launches, s->syncs,  s->mallocs,  s->bytes,    s->most_bytes,
                              s->streams,  s->events, s->nccl_ops, s->nccl_sent};
}

void emu_fail(const char *what, int nth, int code)
{
    std::lock_guard<std::mutex> lock(failures_mutex);
    failures[what] = Failure{nth, code};
    armed = (int)failures.size();
}

static const struct {
    cudaError_t code;
    const char *name, *text;
} errors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection",
     "invalid copy direction for memcpy"},
    {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorIllegalState, "cudaErrorIllegalState",
     "the operation cannot be performed in the present state"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
     "capture was not ended in the same stream as it began"},
    {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined",
     "capturing stream has unjoined work"},
    {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
    {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another thread"},
};

extern "C" {
const char *cudaGetErrorString(cudaError_t code)
{
    for (const auto &e : errors) {
        if (e.code == code) {
            return e.text;
        }
    }
    return "unrecognized error code";
}

const char *cudaGetErrorName(cudaError_t code)
{
    for (const auto &e : errors) {
        if (e.code == code) {
            return e.name;
        }
    }
    return "unrecognized error code";
}

cudaError_t cudaGetLastError(void)
{
    const cudaError_t error = last_error;
    const cudaError_t stuck = (cudaError_t)sticking[device].load();
    last_error = cudaSuccess;
    return stuck ? stuck : error;
}

cudaError_t cudaPeekAtLastError(void)
{
    const cudaError_t stuck = (cudaError_t)sticking[device].load();
    return stuck ? stuck : last_error;
}

cudaError_t cudaGetDeviceCount(int *out)
{
    EMU_ENTER("cudaGetDeviceCount");
    *out = ndevices();
    return *out ? cudaSuccess : set_last(cudaErrorNoDevice);
}

cudaError_t cudaSetDevice(int which)
{
    EMU_ENTER("cudaSetDevice");
    if (which < 0 || which >= ndevices()) {
        return set_last(cudaErrorInvalidDevice);
    }
    device = which;
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *out)
{
    *out = device;
    return cudaSuccess;
}

cudaError_t cudaInitDevice(int which, unsigned, unsigned)
{
    return which < 0 || which >= ndevices() ? set_last(cudaErrorInvalidDevice) : cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *out, cudaDeviceAttr attr, int which)
{
    if (which < 0 || which >= ndevices()) {
        return set_last(cudaErrorInvalidDevice);
    }
    switch (attr) {
    case cudaDevAttrMultiProcessorCount: *out = nsms(); break;
    case cudaDevAttrComputeCapabilityMajor: *out = 9; break;
    case cudaDevAttrComputeCapabilityMinor: *out = 0; break;
    case cudaDevAttrWarpSize: *out = 32; break;
    case cudaDevAttrMaxThreadsPerBlock: *out = 1024; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *out = 49152; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *out = 232448; break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: *out = 233472; break;
    case cudaDevAttrMaxThreadsPerMultiProcessor: *out = 2048; break;
    case cudaDevAttrMaxBlocksPerMultiprocessor: *out = 32; break;
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrConcurrentKernels: *out = 1; break;
    default: return set_last(cudaErrorNotSupported); /* rather than a number that means nothing */
    }
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *out, int which)
{
    if (which < 0 || which >= ndevices()) {
        return set_last(cudaErrorInvalidDevice);
    }
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "zipccl emulated device");
    out->major = 9;
    out->warpSize = 32;
    out->multiProcessorCount = nsms();
    out->maxThreadsPerBlock = 1024;
    out->maxThreadsPerMultiProcessor = 2048;
    out->sharedMemPerBlock = 49152;
    out->sharedMemPerBlockOptin = 232448;
    out->sharedMemPerMultiprocessor = 233472;
    out->totalGlobalMem = (size_t)64 << 30;
    out->unifiedAddressing = out->canMapHostMemory = out->concurrentKernels = 1;
    out->pciBusID = which + 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *out, int nbytes, int which)
{
    if (which < 0 || which >= ndevices() || nbytes < 13) {
        return set_last(cudaErrorInvalidValue);
    }
    snprintf(out, (size_t)nbytes, "0000:%02x:00.0", (unsigned)which + 1);
    return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaDeviceCanAccessPeer(int *out, int a, int b)
{
    if (a < 0 || b < 0 || a >= ndevices() || b >= ndevices()) {
        return set_last(cudaErrorInvalidDevice);
    }
    *out = a != b;
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned)
{
    return peer < 0 || peer >= ndevices() || peer == device ? set_last(cudaErrorInvalidDevice)
                                                            : cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *out)
{
    *out = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *out)
{
    *out = CUDART_VERSION;
    return cudaSuccess;
}
}
