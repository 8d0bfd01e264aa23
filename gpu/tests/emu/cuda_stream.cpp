/*
 * cuda_stream.cpp - streams and events of the double
 *
 * A stream's thread takes one operation after another.  The legacy stream (0) and streams created
 * without cudaStreamNonBlocking wait for each other as CUDA's do.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/emu/cuda_state.h"

#include <unistd.h>
#include <map>

namespace emu
{
/* Never destroyed: streams' threads outlive main(). */
static std::mutex &list_mutex = *new std::mutex;
static auto &streams = *new std::map<CUstream_st *, StreamRef>;
static auto &legacy = *new std::map<int, StreamRef>;
static auto &events = *new std::map<CUevent_st *, std::shared_ptr<CUevent_st>>;
static std::atomic<uint64_t> created{0};

void raise(Signal *s)
{
    std::lock_guard<std::mutex> lock(s->mutex);
    s->set = true;
    s->cv.notify_all();
}

void await(Signal *s)
{
    std::unique_lock<std::mutex> lock(s->mutex);
    s->cv.wait(lock, [s] { return s->set; });
}

bool is_raised(Signal *s)
{
    std::lock_guard<std::mutex> lock(s->mutex);
    return s->set;
}

static void delay(CUstream_st *s)
{
    struct emu_options o;
    emu_get_options(&o);
    if (o.delay_us > 0) {
        s->rng = s->rng * 6364136223846793005ull + 1442695040888963407ull + o.seed;
        usleep((useconds_t)((s->rng >> 33) % (uint64_t)o.delay_us));
    }
}

static void stream_main(StreamRef s)
{
    for (;;) {
        Work work;
        {
            std::unique_lock<std::mutex> lock(s->mutex);
            s->cv.wait(lock, [&s] { return s->stop || !s->queue.empty(); });
            if (s->queue.empty()) {
                return;
            }
            work = std::move(s->queue.front());
            s->queue.pop_front();
        }
        delay(s.get());
        work();
        work = nullptr; /* what it holds is freed before anyone sees it done */
        std::lock_guard<std::mutex> lock(s->mutex);
        s->done++;
        s->cv.notify_all();
    }
}

StreamRef new_stream(unsigned flags, int priority, bool listed)
{
    StreamRef s = std::make_shared<CUstream_st>();
    s->device = current_device();
    s->flags = flags;
    s->priority = priority;
    s->rng = ++created;
    if (listed) {
        std::lock_guard<std::mutex> lock(list_mutex);
        streams[s.get()] = s;
    }
    std::thread(stream_main, s).detach();
    return s;
}

/* What is queued still runs. */
void end_stream(const StreamRef &s)
{
    std::lock_guard<std::mutex> lock(s->mutex);
    s->stop = true;
    s->cv.notify_all();
}

static StreamRef legacy_stream(int device)
{
    std::lock_guard<std::mutex> lock(list_mutex);
    StreamRef &s = legacy[device];
    if (!s) {
        s = std::make_shared<CUstream_st>();
        s->device = device;
        s->rng = ++created;
        std::thread(stream_main, s).detach();
    }
    return s;
}

StreamRef find_stream(cudaStream_t s)
{
    static thread_local std::map<int, StreamRef> own;
    if (!s || s == cudaStreamLegacy) {
        return legacy_stream(current_device());
    }
    if (s == cudaStreamPerThread) {
        StreamRef &mine = own[current_device()];
        if (!mine) {
            mine = new_stream(cudaStreamDefault, 0, true);
        }
        return mine;
    }
    std::lock_guard<std::mutex> lock(list_mutex);
    const auto found = streams.find(s);
    return found == streams.end() ? nullptr : found->second;
}

static bool is_legacy(const StreamRef &s)
{
    std::lock_guard<std::mutex> lock(list_mutex);
    const auto found = legacy.find(s->device);
    return found != legacy.end() && found->second == s;
}

struct Ticket {
    StreamRef stream;
    uint64_t upto;
};

static void add_ticket(std::vector<Ticket> *tickets, const StreamRef &s)
{
    std::lock_guard<std::mutex> lock(s->mutex);
    if (s->done < s->issued) {
        tickets->push_back(Ticket{s, s->issued});
    }
}

/* What an operation of 's' waits for, besides the operations before it in 's'. */
static std::vector<Ticket> implied_waits(const StreamRef &s)
{
    std::vector<Ticket> tickets;
    std::vector<StreamRef> others;
    const bool all = is_legacy(s);
    if (s->flags & cudaStreamNonBlocking) {
        return tickets;
    }
    {
        std::lock_guard<std::mutex> lock(list_mutex);
        for (const auto &item : streams) {
            if (all && item.second->device == s->device &&
                !(item.second->flags & cudaStreamNonBlocking)) {
                others.push_back(item.second);
            }
        }
        const auto found = legacy.find(s->device);
        if (!all && found != legacy.end()) {
            others.push_back(found->second);
        }
    }
    for (const StreamRef &o : others) {
        add_ticket(&tickets, o);
    }
    return tickets;
}

static void wait_ticket(const Ticket &t)
{
    std::unique_lock<std::mutex> lock(t.stream->mutex);
    t.stream->cv.wait(lock, [&t] { return t.stream->done >= t.upto; });
}

void push(const StreamRef &s, Work work)
{
    std::vector<Ticket> tickets = implied_waits(s);
    if (!tickets.empty()) {
        work = [tickets, inner = std::move(work)] {
            for (const Ticket &t : tickets) {
                wait_ticket(t);
            }
            inner();
        };
    }
    std::lock_guard<std::mutex> lock(s->mutex);
    s->queue.push_back(std::move(work));
    s->issued++;
    s->cv.notify_all();
}

cudaError_t enqueue(cudaStream_t handle, Work work)
{
    StreamRef s = find_stream(handle);
    if (!s) {
        return cudaErrorInvalidResourceHandle;
    }
    if (s->capture) {
        return capture_work(s, std::move(work));
    }
    if (is_legacy(s) && capture_forbids_legacy(s->device)) {
        return cudaErrorStreamCaptureImplicit;
    }
    push(s, std::move(work));
    return cudaSuccess;
}

void drain(CUstream_st *s)
{
    std::unique_lock<std::mutex> lock(s->mutex);
    const uint64_t upto = s->issued;
    s->cv.wait(lock, [s, upto] { return s->done >= upto; });
}

void drain_device(int device)
{
    std::vector<StreamRef> all;
    {
        std::lock_guard<std::mutex> lock(list_mutex);
        for (const auto &item : streams) {
            if (item.second->device == device) {
                all.push_back(item.second);
            }
        }
        const auto found = legacy.find(device);
        if (found != legacy.end()) {
            all.push_back(found->second);
        }
    }
    for (const StreamRef &s : all) {
        drain(s.get());
    }
}

static std::shared_ptr<CUevent_st> find_event(cudaEvent_t e)
{
    std::lock_guard<std::mutex> lock(list_mutex);
    const auto found = events.find(e);
    return found == events.end() ? nullptr : found->second;
}

/* The stream of 'handle', which must not be captured: to ask or wait for one that is breaks its capture. */
static cudaError_t find_outside(cudaStream_t handle, StreamRef *out)
{
    *out = find_stream(handle);
    if (!*out) {
        return cudaErrorInvalidResourceHandle;
    }
    if ((*out)->capture) {
        invalidate((*out)->capture);
        return cudaErrorStreamCaptureUnsupported;
    }
    return cudaSuccess;
}

typedef std::shared_ptr<Record> RecordRef;

/* The last record of 'e', NULL if there is none, which counts as done; that of a capture has no state. */
static cudaError_t last_record(CUevent_st *e, RecordRef *out)
{
    std::lock_guard<std::mutex> lock(e->mutex);
    *out = e->last;
    return e->captured ? cudaErrorCapturedEvent : cudaSuccess;
}
} // namespace emu

using namespace emu;

extern "C" {
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *out, unsigned flags, int priority)
{
    EMU_ENTER("cudaStreamCreate");
    if (!out || (flags & ~(unsigned)cudaStreamNonBlocking)) {
        return set_last(cudaErrorInvalidValue);
    }
    stats()->streams++;
    *out = new_stream(flags, priority, true).get();
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned flags)
{
    return cudaStreamCreateWithPriority(out, flags, 0);
}

cudaError_t cudaStreamCreate(cudaStream_t *out)
{
    return cudaStreamCreateWithPriority(out, cudaStreamDefault, 0);
}

cudaError_t cudaStreamDestroy(cudaStream_t handle)
{
    StreamRef s = handle ? find_stream(handle) : nullptr;
    if (!s) {
        return set_last(cudaErrorInvalidResourceHandle);
    }
    if (s->capture) {
        invalidate(s->capture);
    }
    {
        std::lock_guard<std::mutex> lock(list_mutex);
        streams.erase(s.get());
    }
    end_stream(s);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle)
{
    EMU_ENTER("cudaStreamSynchronize");
    StreamRef s;
    const cudaError_t error = find_outside(handle, &s);
    if (error) {
        return set_last(error);
    }
    EMU_UNSAFE();
    stats()->syncs++;
    for (const Ticket &t : implied_waits(s)) {
        wait_ticket(t); /* the legacy stream stands for the blocking ones */
    }
    drain(s.get());
    return enter("");
}

cudaError_t cudaStreamQuery(cudaStream_t handle)
{
    EMU_ENTER("cudaStreamQuery");
    StreamRef s;
    const cudaError_t error = find_outside(handle, &s);
    if (error) {
        return set_last(error);
    }
    EMU_UNSAFE();
    std::lock_guard<std::mutex> lock(s->mutex);
    return s->done == s->issued ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned *out)
{
    StreamRef s = find_stream(handle);
    if (!s || !out) {
        return set_last(s ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle);
    }
    *out = s->flags;
    return cudaSuccess;
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int *out)
{
    StreamRef s = find_stream(handle);
    if (!s || !out) {
        return set_last(s ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle);
    }
    *out = s->priority;
    return cudaSuccess;
}

cudaError_t cudaStreamGetDevice(cudaStream_t handle, int *out)
{
    StreamRef s = find_stream(handle);
    if (!s || !out) {
        return set_last(s ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle);
    }
    *out = s->device;
    return cudaSuccess;
}

cudaError_t cudaStreamGetId(cudaStream_t handle, unsigned long long *out)
{
    StreamRef s = find_stream(handle);
    if (!s || !out) {
        return set_last(s ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle);
    }
    *out = (unsigned long long)(uintptr_t)s.get();
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize(void)
{
    EMU_ENTER("cudaDeviceSynchronize");
    EMU_UNSAFE();
    stats()->syncs++;
    drain_device(current_device());
    return enter("");
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned flags)
{
    EMU_ENTER("cudaEventCreate");
    if (!out) {
        return set_last(cudaErrorInvalidValue);
    }
    std::shared_ptr<CUevent_st> e = std::make_shared<CUevent_st>();
    e->flags = flags;
    stats()->events++;
    std::lock_guard<std::mutex> lock(list_mutex);
    events[e.get()] = e;
    *out = e.get();
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
    return cudaEventCreateWithFlags(out, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t handle)
{
    std::lock_guard<std::mutex> lock(list_mutex);
    return events.erase(handle) ? cudaSuccess : set_last(cudaErrorInvalidResourceHandle);
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t handle, cudaStream_t stream, unsigned)
{
    EMU_ENTER("cudaEventRecord");
    StreamRef s = find_stream(stream);
    std::shared_ptr<CUevent_st> e = find_event(handle);
    if (!s || !e) {
        return set_last(cudaErrorInvalidResourceHandle);
    }
    if (s->capture) {
        return capture_record(s, e.get()) ? cudaSuccess
                                          : set_last(cudaErrorStreamCaptureInvalidated);
    }
    const RecordRef record = std::make_shared<Record>();
    {
        std::lock_guard<std::mutex> lock(e->mutex);
        e->captured = false;
        e->capture.reset();
        e->last = record;
    }
    push(s, [record] {
        clock_gettime(CLOCK_MONOTONIC, &record->time);
        raise(&record->done);
    });
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream)
{
    return cudaEventRecordWithFlags(handle, stream, 0);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t handle, unsigned)
{
    EMU_ENTER("cudaStreamWaitEvent");
    StreamRef s = find_stream(stream);
    std::shared_ptr<CUevent_st> e = find_event(handle);
    cudaError_t error = cudaSuccess;
    if (!s || !e) {
        return set_last(cudaErrorInvalidResourceHandle);
    }
    if (capture_wait(s, e.get(), &error)) {
        return set_last(error);
    }
    RecordRef record; /* as it is now, whatever is recorded later */
    last_record(e.get(), &record);
    if (record) {
        push(s, [record] { await(&record->done); });
    }
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t handle)
{
    EMU_ENTER("cudaEventSynchronize");
    std::shared_ptr<CUevent_st> e = find_event(handle);
    RecordRef record;
    if (!e) {
        return set_last(cudaErrorInvalidResourceHandle);
    }
    EMU_UNSAFE();
    const cudaError_t error = last_record(e.get(), &record);
    if (error) {
        return set_last(error);
    }
    stats()->syncs++;
    if (record) {
        await(&record->done);
    }
    return enter("");
}

cudaError_t cudaEventQuery(cudaEvent_t handle)
{
    EMU_ENTER("cudaEventQuery");
    std::shared_ptr<CUevent_st> e = find_event(handle);
    RecordRef record;
    if (!e) {
        return set_last(cudaErrorInvalidResourceHandle);
    }
    EMU_UNSAFE();
    const cudaError_t error = last_record(e.get(), &record);
    if (error) {
        return set_last(error);
    }
    return !record || is_raised(&record->done) ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    std::shared_ptr<CUevent_st> a = find_event(start), b = find_event(end);
    if (!a || !b || !ms || ((a->flags | b->flags) & cudaEventDisableTiming)) {
        return set_last(cudaErrorInvalidResourceHandle);
    }
    RecordRef first, second;
    const cudaError_t error = last_record(a.get(), &first);
    const cudaError_t other = last_record(b.get(), &second);
    if (error || other) {
        return set_last(error ? error : other);
    }
    if (!first || !second) {
        return set_last(cudaErrorInvalidResourceHandle);
    }
    if (!is_raised(&first->done) || !is_raised(&second->done)) {
        return set_last(cudaErrorNotReady);
    }
    *ms = (float)((double)(second->time.tv_sec - first->time.tv_sec) * 1e3 +
                  (double)(second->time.tv_nsec - first->time.tv_nsec) * 1e-6);
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t fn, void *arg)
{
    EMU_ENTER("cudaLaunchHostFunc");
    if (!fn) {
        return set_last(cudaErrorInvalidValue);
    }
    return set_last(enqueue(stream, [fn, arg] { fn(arg); }));
}
}
