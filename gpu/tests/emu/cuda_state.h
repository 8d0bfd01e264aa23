/*
 * cuda_state.h - inside the double of the CUDA runtime: streams, events, captures, errors
 *
 * Host memory stands for device memory and every stream is a worker thread, so work really is
 * asynchronous and a missing synchronisation really can go wrong.  Compiled against the real
 * cuda_runtime_api.h, so the compiler checks every prototype.  Private to cuda_*.cpp and nccl_*.cpp.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_TESTS_EMU_CUDA_STATE_H
#define ZIPCCL_GPU_TESTS_EMU_CUDA_STATE_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <cuda_runtime_api.h>

#include "gpu/tests/emu/emu.h"

namespace emu
{
typedef std::function<void()> Work;

enum { MAX_DEVICES = 64 };

/* Set once, waited for by any number of threads. */
struct Signal {
    std::mutex mutex;
    std::condition_variable cv;
    bool set = false;
};
void raise(Signal *s);
void await(Signal *s);
bool is_raised(Signal *s);

/* One record of an event: later ones of the same event do not touch who waits for it. */
struct Record {
    Signal done;
    struct timespec time = {}; /* when it was */
};

/* What a capture records: a chain is what one stream did; signals tie chains together. */
struct Node {
    enum Kind { WORK, SIGNAL, WAIT } kind;
    int chain;
    int signal; /* index, for SIGNAL and WAIT */
    Work work;
};

struct Capture {
    std::mutex mutex;
    cudaStreamCaptureMode mode;
    std::thread::id owner;
    unsigned long long id;
    bool invalid;
    std::vector<Node> nodes;
    int nsignals;
    /* For each chain, how many nodes of every chain its last node comes after. */
    std::vector<std::vector<size_t>> after;
    std::vector<std::vector<size_t>> signal_after;
    std::vector<std::shared_ptr<struct CUstream_st>> streams; /* [chain]; the first began it */
};
} // namespace emu

struct CUstream_st {
    std::mutex mutex;
    std::condition_variable cv;
    std::deque<emu::Work> queue;
    uint64_t issued = 0, done = 0; /* operations */
    bool stop = false;
    int device = 0, priority = 0;
    unsigned flags = 0;
    uint64_t rng = 1;
    std::shared_ptr<emu::Capture> capture; /* of the capture that this stream is part of */
    int chain = 0;
};

struct CUevent_st {
    std::mutex mutex;
    std::shared_ptr<emu::Record> last; /* NULL: never recorded */
    unsigned flags = 0;
    bool captured = false;               /* the last record was */
    std::weak_ptr<emu::Capture> capture; /* by that one, until it ends */
    int signal = 0;
};

namespace emu
{
typedef std::shared_ptr<CUstream_st> StreamRef;

/* cuda_device.cpp */
struct Stats {
    std::atomic<uint64_t> launches, syncs, mallocs, bytes, most_bytes, streams, events, nccl_ops,
        nccl_sent;
};
Stats *stats();
cudaError_t set_last(cudaError_t error); /* keeps it for cudaGetLastError(); returns it */
int current_device();
void stick(int device, cudaError_t error); /* every later call on 'device' returns it */
/* True if the test asked this call of 'what' to fail; '*code' is then what to return. */
bool injected(const char *what, int *code);
/* First thing in an API function: an injected or a sticking error. */
cudaError_t enter(const char *what);

/* cuda_stream.cpp */
StreamRef find_stream(cudaStream_t s); /* NULL for a handle that is none */
StreamRef new_stream(unsigned flags, int priority, bool listed);
void end_stream(const StreamRef &s);
void push(const StreamRef &s, Work work); /* past any capture */
/* Run 'work' in stream order, or record it if the stream is captured. */
cudaError_t enqueue(cudaStream_t s, Work work);
void drain(CUstream_st *s);
void drain_device(int device);

/* cuda_capture.cpp */
/* An error if a potentially unsafe call is forbidden now; the captures concerned become invalid. */
cudaError_t unsafe_call();
cudaError_t capture_work(const StreamRef &s, Work work);
bool capture_record(const StreamRef &s, CUevent_st *event);
/* True if capturing has dealt with the wait; '*error' is then its result. */
bool capture_wait(const StreamRef &s, CUevent_st *event, cudaError_t *error);
bool capture_forbids_legacy(int device);
void invalidate(const std::shared_ptr<Capture> &c);

/* cuda_memory.cpp */
enum { ON_HOST_PINNED = -1, ON_HOST = -2, OUT_OF_BOUNDS = -3 };
int where(const void *p, size_t nbytes); /* the device, or one of the above */
void *take_memory(size_t nbytes, int device);
cudaError_t drop_memory(void *p);

/* cuda_driver.cpp: the driver's function 'name', or NULL if the double has none. */
void *driver_function(const char *name);
} // namespace emu

#define EMU_ENTER(name)                                                                            \
    do {                                                                                           \
        const cudaError_t entered_ = emu::enter(name);                                             \
        if (entered_) {                                                                            \
            return entered_;                                                                       \
        }                                                                                          \
    } while (0)
#define EMU_UNSAFE()                                                                               \
    do {                                                                                           \
        const cudaError_t unsafe_ = emu::unsafe_call();                                            \
        if (unsafe_) {                                                                             \
            return emu::set_last(unsafe_);                                                         \
        }                                                                                          \
    } while (0)

#endif
