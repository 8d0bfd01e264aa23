/*
 * test_cuda.cpp - the cudart double: order of streams, captures, memory, failures
 *
 * Where an order is not given, the double must be able to show that it is missing: those cases hold
 * a stream back with a word that it waits for.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <string.h>
#include <atomic>
#include <thread>
#include <vector>

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "gpu/tests/emu/check.h"
#include "gpu/tests/emu/emu.h"

typedef CUresult (*StreamWord32)(CUstream, CUdeviceptr, cuuint32_t, unsigned);

static StreamWord32 driver(const char *name)
{
    void *p = nullptr;
    cudaDriverEntryPointQueryResult r;
    CHECK_OK(cudaGetDriverEntryPointByVersion(name, &p, 12000, cudaEnableDefault, &r));
    CHECK_EQ(r, cudaDriverEntryPointSuccess);
    return reinterpret_cast<StreamWord32>(p);
}

/* A stream that stands still until open() is called. */
struct Gate {
    uint32_t *word;
    void hold(cudaStream_t s)
    {
        CHECK_OK(cudaHostAlloc((void **)&word, 4, cudaHostAllocMapped));
        __atomic_store_n(word, 0u, __ATOMIC_RELEASE);
        CHECK_OK(driver("cuStreamWaitValue32")(s, (CUdeviceptr)word, 1, CU_STREAM_WAIT_VALUE_GEQ));
    }
    void open()
    {
        __atomic_store_n(word, 1u, __ATOMIC_RELEASE);
    }
    ~Gate()
    {
        CHECK_OK(cudaFreeHost(word));
    }
};

struct Fixture {
    cudaStream_t a, b;
    cudaEvent_t e;
    int *d; /* 1 word on the device */
    Fixture()
    {
        CHECK_OK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
        CHECK_OK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
        CHECK_OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
        CHECK_OK(cudaMalloc((void **)&d, sizeof *d));
        CHECK_OK(cudaMemset(d, 0, sizeof *d));
        CHECK_OK(cudaDeviceSynchronize());
    }
    ~Fixture()
    {
        CHECK_OK(cudaStreamDestroy(a));
        CHECK_OK(cudaStreamDestroy(b));
        CHECK_OK(cudaEventDestroy(e));
        CHECK_OK(cudaFree(d));
    }
    int read(cudaStream_t s)
    {
        int v = -1;
        CHECK_OK(cudaMemcpyAsync(&v, d, sizeof v, cudaMemcpyDeviceToHost, s));
        CHECK_OK(cudaStreamSynchronize(s));
        return v;
    }
};

static void streams_are_asynchronous(void)
{
    Fixture f;
    Gate g;
    g.hold(f.a);
    CHECK_OK(cudaMemsetAsync(f.d, 1, 1, f.a));
    CHECK_EQ(cudaStreamQuery(f.a), cudaErrorNotReady);
    CHECK_EQ(f.read(f.b), 0); /* nothing orders b after a */
    CHECK_OK(cudaEventRecord(f.e, f.a));
    CHECK_EQ(cudaEventQuery(f.e), cudaErrorNotReady);
    CHECK_OK(cudaStreamWaitEvent(f.b, f.e, 0));
    g.open();
    CHECK_EQ(f.read(f.b), 1); /* now it is */
    CHECK_OK(cudaEventSynchronize(f.e));
}

/* A wait is for the record that there was, whether a later one comes first or not. */
static void waits_are_for_the_record_before_them(void)
{
    Fixture f;
    Gate g;
    g.hold(f.a);
    CHECK_OK(cudaMemsetAsync(f.d, 1, 1, f.a));
    CHECK_OK(cudaEventRecord(f.e, f.a));
    CHECK_OK(cudaStreamWaitEvent(f.b, f.e, 0));
    cudaStream_t c;
    CHECK_OK(cudaStreamCreateWithFlags(&c, cudaStreamNonBlocking));
    CHECK_OK(cudaEventRecord(f.e, c)); /* of nothing: it is soon over */
    CHECK_OK(cudaEventSynchronize(f.e));
    CHECK_OK(cudaStreamSynchronize(c));
    CHECK_EQ(cudaStreamQuery(f.b), cudaErrorNotReady);
    CHECK_EQ(cudaEventQuery(f.e), cudaSuccess); /* the last record alone counts here */
    g.open();
    CHECK_EQ(f.read(f.b), 1);
    CHECK_OK(cudaStreamDestroy(c));
}

static void legacy_stream_waits_for_blocking_ones(void)
{
    Fixture f;
    Gate g;
    cudaStream_t blocking;
    CHECK_OK(cudaStreamCreate(&blocking));
    g.hold(blocking);
    CHECK_OK(cudaMemsetAsync(f.d, 2, 1, blocking));
    CHECK_EQ(f.read(f.a), 0);
    std::thread opener([&g] { g.open(); });
    CHECK_EQ(f.read(nullptr), 2);
    opener.join();
    CHECK_OK(cudaStreamDestroy(blocking));
}

static void increment(void *word)
{
    ++*static_cast<int *>(word);
}

/* a: +1, fork to b: +1, join: +1; replays add 3 each time. */
static cudaGraphExec_t capture_fork_join(Fixture *f, bool join)
{
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t x = nullptr;
    size_t n = 0;
    CHECK_OK(cudaStreamBeginCapture(f->a, cudaStreamCaptureModeGlobal));
    CHECK_OK(cudaLaunchHostFunc(f->a, increment, f->d));
    CHECK_OK(cudaEventRecord(f->e, f->a));
    CHECK_OK(cudaStreamWaitEvent(f->b, f->e, 0));
    CHECK_OK(cudaLaunchHostFunc(f->b, increment, f->d));
    if (join) {
        CHECK_OK(cudaEventRecord(f->e, f->b));
        CHECK_OK(cudaStreamWaitEvent(f->a, f->e, 0));
    }
    CHECK_OK(cudaLaunchHostFunc(f->a, increment, f->d));
    CHECK_EQ(cudaStreamEndCapture(f->a, &graph),
             join ? cudaSuccess : cudaErrorStreamCaptureUnjoined);
    if (graph) {
        CHECK_OK(cudaGraphGetNodes(graph, nullptr, &n));
        CHECK_EQ(n, 3);
        CHECK_OK(cudaGraphInstantiate(&x, graph, 0));
        CHECK_OK(cudaGraphDestroy(graph));
    }
    return x;
}

static void graphs_replay(void)
{
    Fixture f;
    cudaGraphExec_t x = capture_fork_join(&f, true);
    CHECK_EQ(f.read(f.a), 0); /* captured, not run */
    for (int i = 1; i <= 3; i++) {
        CHECK_OK(cudaGraphLaunch(x, f.a));
        CHECK_EQ(f.read(f.a), 3 * i);
    }
    CHECK_OK(cudaGraphExecDestroy(x));
    CHECK(capture_fork_join(&f, false) == nullptr);
}

static void captures_refuse_what_would_wait(void)
{
    Fixture f;
    cudaGraph_t graph;
    cudaStreamCaptureStatus status;
    void *p = nullptr;
    CHECK_OK(cudaStreamBeginCapture(f.a, cudaStreamCaptureModeGlobal));
    CHECK_OK(cudaStreamIsCapturing(f.a, &status));
    CHECK_EQ(status, cudaStreamCaptureStatusActive);
    CHECK_EQ(cudaMalloc(&p, 8), cudaErrorStreamCaptureUnsupported);
    CHECK_OK(cudaStreamIsCapturing(f.a, &status));
    CHECK_EQ(status, cudaStreamCaptureStatusInvalidated);
    CHECK_EQ(cudaStreamEndCapture(f.a, &graph), cudaErrorStreamCaptureInvalidated);
    CHECK_OK(cudaStreamBeginCapture(f.a, cudaStreamCaptureModeGlobal));
    CHECK_EQ(cudaStreamSynchronize(f.a), cudaErrorStreamCaptureUnsupported);
    CHECK_EQ(cudaStreamEndCapture(f.a, &graph), cudaErrorStreamCaptureInvalidated);
    /* Another thread's call counts for a global capture, not for a thread-local one. */
    for (cudaStreamCaptureMode mode :
         {cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal}) {
        const bool global = mode == cudaStreamCaptureModeGlobal;
        CHECK_OK(cudaStreamBeginCapture(f.a, mode));
        std::thread([&f, global] {
            CHECK_EQ(cudaEventQuery(f.e), global ? cudaErrorStreamCaptureUnsupported : cudaSuccess);
        }).join();
        CHECK_EQ(cudaStreamEndCapture(f.a, &graph),
                 global ? cudaErrorStreamCaptureInvalidated : cudaSuccess);
        if (graph) {
            CHECK_OK(cudaGraphDestroy(graph));
        }
    }
    /* An event from outside cannot be waited for inside. */
    CHECK_OK(cudaEventRecord(f.e, f.b));
    CHECK_OK(cudaStreamBeginCapture(f.a, cudaStreamCaptureModeRelaxed));
    CHECK_EQ(cudaStreamWaitEvent(f.a, f.e, 0), cudaErrorStreamCaptureIsolation);
    CHECK_EQ(cudaStreamEndCapture(f.a, &graph), cudaErrorStreamCaptureInvalidated);
    (void)cudaGetLastError();
}

/* The gate of a raw round: a word that a graph waits for, written by another stream. */
static void stream_words(void)
{
    Fixture f;
    cudaGraph_t graph;
    cudaGraphExec_t x;
    uint32_t *word;
    CHECK_OK(cudaMalloc((void **)&word, 4));
    CHECK_OK(cudaMemset(word, 0, 4));
    CHECK_OK(cudaDeviceSynchronize());
    CHECK_OK(cudaStreamBeginCapture(f.a, cudaStreamCaptureModeGlobal));
    CHECK_OK(driver("cuStreamWaitValue32")(f.a, (CUdeviceptr)word, 5, CU_STREAM_WAIT_VALUE_EQ));
    CHECK_OK(cudaLaunchHostFunc(f.a, increment, f.d));
    CHECK_OK(driver("cuStreamWriteValue32")(f.a, (CUdeviceptr)word, 0, 0));
    CHECK_OK(cudaStreamEndCapture(f.a, &graph));
    CHECK_OK(cudaGraphInstantiate(&x, graph, 0));
    for (int i = 1; i <= 2; i++) {
        CHECK_OK(cudaGraphLaunch(x, f.a));
        CHECK_EQ(cudaStreamQuery(f.a), cudaErrorNotReady);
        CHECK_OK(driver("cuStreamWriteValue32")(f.b, (CUdeviceptr)word, 5, 0));
        CHECK_OK(cudaStreamSynchronize(f.a));
        CHECK_EQ(f.read(f.a), i);
    }
    CHECK_OK(cudaGraphDestroy(graph));
    CHECK_OK(cudaGraphExecDestroy(x));
    CHECK_EQ(driver("cuStreamWaitValue32")(f.a, (CUdeviceptr)word + 1, 5, 0),
             CUDA_ERROR_INVALID_VALUE);
    CHECK_OK(cudaFree(word));
}

static void endless_wait_is_reported(void)
{
    Fixture f;
    uint32_t *word;
    struct emu_options o;
    emu_get_options(&o);
    o.word_ms = 30;
    emu_set_options(&o);
    CHECK_OK(cudaMalloc((void **)&word, 4));
    CHECK_OK(cudaMemset(word, 0, 4)); /* which does not wait, nor does the stream 'f.a' for it */
    CHECK_OK(cudaDeviceSynchronize());
    CHECK_OK(driver("cuStreamWaitValue32")(f.a, (CUdeviceptr)word, 7, CU_STREAM_WAIT_VALUE_EQ));
    CHECK_EQ(cudaStreamSynchronize(f.a), cudaErrorLaunchTimeout);
    CHECK(strstr(emu_error(), "waits for ever") && strstr(emu_error(), "asked for with 7"));
    emu_reset();
    CHECK_OK(cudaStreamSynchronize(f.a));
    CHECK_OK(cudaFree(word));
    emu_default_options(&o);
    emu_set_options(&o);
}

static void memory_is_checked(void)
{
    char host[64];
    char *d;
    cudaPointerAttributes attr;
    struct emu_stats before, after;
    emu_get_stats(&before);
    CHECK_OK(cudaMalloc((void **)&d, 64));
    emu_get_stats(&after);
    CHECK_EQ(after.bytes_allocated - before.bytes_allocated, 64);
    CHECK_EQ(after.mallocs - before.mallocs, 1);
    CHECK_OK(cudaMemcpy(host, d, 64, cudaMemcpyDeviceToHost));
    CHECK_EQ((unsigned char)host[63], 0xA5);
    CHECK_EQ(cudaMemcpy(host, d, 64, cudaMemcpyHostToDevice), cudaErrorInvalidMemcpyDirection);
    CHECK_EQ(cudaMemcpy(host, d, 65, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    CHECK_EQ(cudaMemsetAsync(d + 1, 0, 64, nullptr), cudaErrorInvalidValue);
    CHECK_OK(cudaPointerGetAttributes(&attr, d + 63));
    CHECK_EQ(attr.type, cudaMemoryTypeDevice);
    CHECK_OK(cudaPointerGetAttributes(&attr, host));
    CHECK_EQ(attr.type, cudaMemoryTypeUnregistered);
    CHECK_EQ(cudaFree(d + 1), cudaErrorInvalidValue);
    CHECK_OK(cudaFree(d));
    CHECK_EQ(cudaFree(d), cudaErrorInvalidValue);
    CHECK_EQ(cudaGetLastError(), cudaErrorInvalidValue);
    CHECK_OK(cudaGetLastError());
}

/* One event against itself, and two in either order. */
static void events_take_time(void)
{
    Fixture f;
    cudaEvent_t first, second;
    float ms = -1;
    CHECK_OK(cudaEventCreate(&first));
    CHECK_OK(cudaEventCreate(&second));
    CHECK_EQ(cudaEventElapsedTime(&ms, first, first), cudaErrorInvalidResourceHandle);
    CHECK_OK(cudaEventRecord(first, f.a));
    CHECK_OK(cudaEventRecord(second, f.a));
    CHECK_OK(cudaEventSynchronize(second));
    CHECK_OK(cudaEventElapsedTime(&ms, first, first));
    CHECK(ms == 0);
    float back = 0;
    CHECK_OK(cudaEventElapsedTime(&ms, first, second));
    CHECK_OK(cudaEventElapsedTime(&back, second, first));
    CHECK(ms >= 0 && back == -ms);
    CHECK_EQ(cudaEventElapsedTime(&ms, f.e, f.e), cudaErrorInvalidResourceHandle);
    CHECK_OK(cudaEventDestroy(first));
    CHECK_OK(cudaEventDestroy(second));
    (void)cudaGetLastError();
}

/* Nothing may come from and go to nowhere. */
static void nothing_is_copied(void)
{
    Fixture f;
    CHECK_OK(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice));
    CHECK_OK(cudaMemcpy(f.d, nullptr, 0, cudaMemcpyHostToDevice));
    CHECK_OK(cudaMemcpyAsync(nullptr, f.d, 0, cudaMemcpyDeviceToHost, f.a));
    CHECK_OK(cudaMemcpyPeerAsync(nullptr, 0, nullptr, 0, 0, f.a));
    CHECK_OK(cudaMemset(nullptr, 0, 0));
    CHECK_EQ(f.read(f.a), 0);
    CHECK_EQ(cudaMemcpy(nullptr, f.d, 4, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
    (void)cudaGetLastError();
}

static void failures_are_injected(void)
{
    void *p, *q = nullptr;
    cudaStream_t s;
    emu_fail("cudaMalloc", 2, cudaErrorMemoryAllocation);
    CHECK_OK(cudaMalloc(&p, 8));
    CHECK_EQ(cudaMalloc(&q, 8), cudaErrorMemoryAllocation);
    CHECK(q == nullptr);
    CHECK_OK(cudaFree(p));
    emu_fail("cudaStreamCreate", 1, cudaErrorMemoryAllocation);
    CHECK_EQ(cudaStreamCreate(&s), cudaErrorMemoryAllocation);
    CHECK_OK(cudaStreamCreate(&s));
    CHECK_OK(cudaStreamDestroy(s));
    CHECK_EQ(cudaStreamSynchronize(s), cudaErrorInvalidResourceHandle);
    CHECK_EQ(cudaSetDevice(64), cudaErrorInvalidDevice);
    emu_reset();
}

int main(void)
{
    streams_are_asynchronous();
    waits_are_for_the_record_before_them();
    legacy_stream_waits_for_blocking_ones();
    graphs_replay();
    captures_refuse_what_would_wait();
    stream_words();
    endless_wait_is_reported();
    memory_is_checked();
    events_take_time();
    nothing_is_copied();
    failures_are_injected();
    return check_result("cuda");
}
