/*
 * cuda_driver.cpp - driver functions, reached through cudaGetDriverEntryPointByVersion()
 *
 * The stream memory operations: a stream that waits for a word without holding an SM, and writes
 * one.  In a capture they become nodes like any other.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/emu/cuda_state.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cuda.h>

namespace simt
{
void keep_error(const char *error);
}

namespace emu
{
template <class T> static bool satisfied(T value, T target, unsigned how)
{
    switch (how & 3u) {
    case CU_STREAM_WAIT_VALUE_EQ: return value == target;
    case CU_STREAM_WAIT_VALUE_AND: return (value & target) != 0;
    case CU_STREAM_WAIT_VALUE_NOR: return (T) ~(value | target) != 0;
    default: return (T)(value - target) >> (8 * sizeof(T) - 1) == 0; /* cyclic >= */
    }
}

static double now_s()
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A real stream would wait for ever. */
static void report_wait(int device, const void *word, uint64_t value, uint64_t target)
{
    char line[256];
    snprintf(line, sizeof line,
             "a stream of device %d waits for ever: the word at %p is %llu, and nobody makes it "
             "what was asked for with %llu",
             device, word, (unsigned long long)value, (unsigned long long)target);
    simt::keep_error(line);
    stick(device, cudaErrorLaunchTimeout);
}

template <class T> static void wait_word(int device, const T *word, T target, unsigned how)
{
    struct emu_options o;
    emu_get_options(&o);
    const double start_s = now_s();
    for (unsigned i = 0;; i++) {
        const T value = __atomic_load_n(word, __ATOMIC_ACQUIRE);
        if (satisfied<T>(value, target, how)) {
            return;
        }
        if (i < 64) {
            sched_yield();
        } else {
            usleep(20);
        }
        if (i % 256 == 255 && (now_s() - start_s) * 1e3 > o.word_ms) {
            report_wait(device, word, value, target);
            return;
        }
    }
}

static CUresult result(cudaError_t error)
{
    switch (error) {
    case cudaSuccess: return CUDA_SUCCESS;
    case cudaErrorStreamCaptureInvalidated: return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    case cudaErrorStreamCaptureImplicit: return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    default: return CUDA_ERROR_INVALID_HANDLE;
    }
}

/* Words are device memory or pinned host memory, and aligned. */
template <class T> static bool good_word(CUdeviceptr address)
{
    const void *p = reinterpret_cast<const void *>(address);
    return address % sizeof(T) == 0 && where(p, sizeof(T)) >= ON_HOST_PINNED;
}

template <class T>
static CUresult stream_wait(const char *name, CUstream stream, CUdeviceptr address, T value,
                            unsigned flags)
{
    int code;
    if (injected(name, &code)) {
        return (CUresult)code;
    }
    if (!good_word<T>(address) || (flags & ~(unsigned)CU_STREAM_WAIT_VALUE_FLUSH) > 3) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const T *word = reinterpret_cast<const T *>(address);
    const StreamRef s = find_stream(stream);
    const int device = s ? s->device : 0;
    return result(enqueue(
        stream, [device, word, value, flags] { wait_word<T>(device, word, value, flags); }));
}

template <class T>
static CUresult stream_write(const char *name, CUstream stream, CUdeviceptr address, T value,
                             unsigned flags)
{
    int code;
    if (injected(name, &code)) {
        return (CUresult)code;
    }
    if (!good_word<T>(address) || flags > CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    T *word = reinterpret_cast<T *>(address);
    return result(
        enqueue(stream, [word, value] { __atomic_store_n(word, value, __ATOMIC_RELEASE); }));
}

static CUresult wait32(CUstream s, CUdeviceptr p, cuuint32_t v, unsigned flags)
{
    return stream_wait<uint32_t>("cuStreamWaitValue32", s, p, v, flags);
}

static CUresult wait64(CUstream s, CUdeviceptr p, cuuint64_t v, unsigned flags)
{
    return stream_wait<uint64_t>("cuStreamWaitValue64", s, p, v, flags);
}

static CUresult write32(CUstream s, CUdeviceptr p, cuuint32_t v, unsigned flags)
{
    return stream_write<uint32_t>("cuStreamWriteValue32", s, p, v, flags);
}

static CUresult write64(CUstream s, CUdeviceptr p, cuuint64_t v, unsigned flags)
{
    return stream_write<uint64_t>("cuStreamWriteValue64", s, p, v, flags);
}

void *driver_function(const char *name)
{
    static const struct {
        const char *name;
        void *function;
    } table[] = {
        {"cuStreamWaitValue32", reinterpret_cast<void *>(&wait32)},
        {"cuStreamWaitValue64", reinterpret_cast<void *>(&wait64)},
        {"cuStreamWriteValue32", reinterpret_cast<void *>(&write32)},
        {"cuStreamWriteValue64", reinterpret_cast<void *>(&write64)},
    };
    for (const auto &entry : table) {
        if (!strcmp(entry.name, name)) {
            return entry.function;
        }
    }
    return nullptr;
}
} // namespace emu

using namespace emu;

extern "C" {
cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **out, unsigned version,
                                             unsigned long long, cudaDriverEntryPointQueryResult *r)
{
    EMU_ENTER("cudaGetDriverEntryPointByVersion");
    if (!symbol || !out) {
        return set_last(cudaErrorInvalidValue);
    }
    *out = driver_function(symbol);
    const bool old = version < 8000;
    if (r) {
        *r = !*out ? cudaDriverEntryPointSymbolNotFound
             : old ? cudaDriverEntryPointVersionNotSufficent
                   : cudaDriverEntryPointSuccess;
    }
    if (old) {
        *out = nullptr;
    }
    return cudaSuccess;
}

cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **out, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult *r)
{
    return cudaGetDriverEntryPointByVersion(symbol, out, CUDART_VERSION, flags, r);
}
}
