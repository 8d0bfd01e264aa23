/*
 * nccl_group.cpp - calls are checked, gathered in groups, and put on streams
 *
 * A group's calls become one operation per communicator, ordered after what its streams held before.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/emu/cuda_state.h"
#include "gpu/tests/emu/nccl_state.h"

#include <algorithm>
#include <thread>

namespace emu
{
static thread_local int depth;
static thread_local std::vector<OpCall> *pending;
static thread_local std::vector<Joining> *joining;
static thread_local ncclResult_t group_error;

static ncclResult_t check_buffer(const OpCall &q, const char *name, const char *which,
                                 const void *p, size_t nbytes)
{
    ncclComm *c = q.comm.get();
    if (nbytes == 0) {
        return ncclSuccess;
    }
    const int place = where(p, nbytes);
    if (place == ON_HOST) {
        return complain(c, ncclInvalidArgument, "%s: %s buffer is no device memory", name, which);
    }
    if (place == OUT_OF_BOUNDS) {
        return complain(c, ncclInvalidArgument,
                        "%s: %s buffer of %zu bytes goes past its allocation", name, which, nbytes);
    }
    if (place >= 0 && place != c->device) {
        return complain(c, ncclInvalidArgument,
                        "%s: %s buffer is on device %d, the communicator "
                        "on %d",
                        name, which, place, c->device);
    }
    return ncclSuccess;
}

static ncclResult_t check_call(const char *name, const OpCall &q)
{
    ncclComm *c = q.comm.get();
    int device;
    if (c->state != ncclSuccess) {
        return (ncclResult_t)c->state.load();
    }
    if (c->finalized || c->revoked) {
        return complain(c, ncclInvalidUsage, "%s: the communicator is %s", name,
                        c->finalized ? "finalized" : "revoked");
    }
    if ((int)q.dtype < 0 || q.dtype >= ncclNumTypes) {
        return complain(c, ncclInvalidArgument, "%s: invalid type %d", name, (int)q.dtype);
    }
    if (q.root < 0 || q.root >= c->nranks) {
        return complain(c, ncclInvalidArgument, "%s: root or peer %d of %d ranks", name, q.root,
                        c->nranks);
    }
    if (q.count > (size_t)1 << 46) {
        return complain(c, ncclInvalidArgument, "%s: count %zu", name, q.count);
    }
    {
        std::lock_guard<std::mutex> lock(c->mutex);
        const auto op = c->ops.find((int)q.op);
        if ((int)q.op < 0 || ((int)q.op >= ncclNumOps && op == c->ops.end())) {
            device = -1;
        } else {
            device = (int)q.op >= ncclNumOps && op->second.dtype != q.dtype ? -2 : 0;
        }
    }
    if (device < 0) {
        return complain(c, ncclInvalidArgument,
                        device == -1 ? "%s: invalid reduction %d"
                                     : "%s: reduction %d has another type",
                        name, (int)q.op);
    }
    if (q.stream && cudaStreamGetDevice(q.stream, &device) == cudaSuccess && device != c->device &&
        q.stream != cudaStreamLegacy && q.stream != cudaStreamPerThread) {
        return complain(c, ncclInvalidArgument,
                        "%s: the stream is on device %d, the communicator "
                        "on %d",
                        name, device, c->device);
    }
    const ncclResult_t r = check_buffer(q, name, "send", q.send, send_bytes(q));
    return r ? r : check_buffer(q, name, "receive", q.recv, recv_bytes(q));
}

static unsigned long long capture_of(cudaStream_t s)
{
    cudaStreamCaptureStatus status;
    unsigned long long id = 0;
    if (cudaStreamGetCaptureInfo(s, &status, &id, nullptr, nullptr, nullptr, nullptr) ||
        status != cudaStreamCaptureStatusActive) {
        return 0;
    }
    return id;
}

/* Make 'to' wait for what 'from' holds now. */
static bool order(cudaStream_t from, cudaStream_t to)
{
    cudaEvent_t e;
    if (cudaEventCreateWithFlags(&e, cudaEventDisableTiming)) {
        return false;
    }
    const bool ok = !cudaEventRecord(e, from) && !cudaStreamWaitEvent(to, e, 0);
    cudaEventDestroy(e);
    return ok;
}

/* Operations of one communicator on different streams still run in the order of calls. */
static bool order_after_last(ncclComm *c, cudaStream_t s)
{
    return !c->last_event || c->last_stream == s || c->last_capture != capture_of(s) ||
           !cudaStreamWaitEvent(s, c->last_event, 0);
}

static bool remember_last(ncclComm *c, cudaStream_t s)
{
    if (!c->last_event && cudaEventCreateWithFlags(&c->last_event, cudaEventDisableTiming)) {
        return false;
    }
    c->last_stream = s;
    c->last_capture = capture_of(s);
    return !cudaEventRecord(c->last_event, s);
}

static ncclResult_t launch(const std::vector<OpCall> &calls)
{
    CommRef c = calls[0].comm;
    const cudaStream_t main = calls[0].stream;
    std::vector<cudaStream_t> others;
    int before;
    for (const OpCall &q : calls) {
        if (q.stream != main && std::find(others.begin(), others.end(), q.stream) == others.end()) {
            others.push_back(q.stream);
        }
    }
    cudaGetDevice(&before);
    cudaSetDevice(c->device);
    bool ok = order_after_last(c.get(), main);
    for (cudaStream_t s : others) {
        ok = ok && order(s, main);
    }
    const bool captured = capture_of(main) != 0;
    c->issued += !captured;
    if (!ok || enqueue(main, [calls, captured] {
            run_calls(calls);
            calls[0].comm->done += !captured;
        })) {
        c->done += !captured;
        ok = false;
    }
    ok = ok && remember_last(c.get(), main);
    for (cudaStream_t s : others) {
        ok = ok && order(main, s);
    }
    cudaSetDevice(before);
    stats()->nccl_ops += calls.size();
    return ok ? ncclSuccess
              : complain(c.get(), ncclUnhandledCudaError, "a stream refused the operation: %s",
                         cudaGetErrorString(cudaGetLastError()));
}

static ncclResult_t launch_all(std::vector<OpCall> calls)
{
    ncclResult_t first = connect(calls);
    if (first) {
        return first;
    }
    while (!calls.empty()) {
        std::vector<OpCall> mine, rest;
        for (const OpCall &q : calls) {
            (q.comm == calls[0].comm ? mine : rest).push_back(q);
        }
        const ncclResult_t r = launch(mine);
        first = first ? first : r;
        calls.swap(rest);
    }
    return first;
}

/* Non-blocking communicators are made on a thread of their own; ncclCommGetAsyncError() tells. */
static ncclResult_t join_all(std::vector<Joining> list)
{
    if (list.empty()) {
        return ncclSuccess;
    }
    const bool blocking =
        std::all_of(list.begin(), list.end(), [](const Joining &j) { return j.blocking; });
    if (blocking) {
        return finish_joining(&list);
    }
    std::thread([list]() mutable { (void)finish_joining(&list); }).detach();
    return ncclInProgress;
}

ncclResult_t submit(const char *name, OpCall call)
{
    int code;
    ncclResult_t r;
    if (!call.comm) {
        r = complain(nullptr, ncclInvalidArgument, "%s: no such communicator", name);
    } else if (injected(name, &code)) {
        r = complain(call.comm.get(), (ncclResult_t)code, "%s: injected failure", name);
    } else {
        r = check_call(name, call);
    }
    if (r) {
        group_error = depth && !group_error ? r : group_error;
        return r;
    }
    if (depth == 0) {
        return launch_all({call});
    }
    if (!pending) {
        pending = new std::vector<OpCall>;
    }
    pending->push_back(call);
    return ncclSuccess;
}

ncclResult_t submit_join(Joining j)
{
    if (depth == 0) {
        return join_all({j});
    }
    if (!joining) {
        joining = new std::vector<Joining>;
    }
    joining->push_back(j);
    return ncclSuccess;
}

int pending_splits(const ncclComm *parent)
{
    return !joining ? 0
                    : (int)std::count_if(joining->begin(), joining->end(), [=](const Joining &j) {
                          return j.parent.get() == parent;
                      });
}

ncclResult_t group_start()
{
    depth++;
    return ncclSuccess;
}

/* Take what the group gathered. */
static void take_group(std::vector<OpCall> *calls, std::vector<Joining> *joins)
{
    if (pending) {
        calls->swap(*pending);
        delete pending;
        pending = nullptr;
    }
    if (joining) {
        joins->swap(*joining);
        delete joining;
        joining = nullptr;
    }
}

ncclResult_t group_end()
{
    std::vector<OpCall> calls;
    std::vector<Joining> joins;
    if (depth == 0) {
        return complain(nullptr, ncclInvalidUsage, "ncclGroupEnd without ncclGroupStart");
    }
    if (--depth > 0) {
        return ncclSuccess;
    }
    take_group(&calls, &joins);
    const ncclResult_t failed = group_error;
    group_error = ncclSuccess;
    if (failed) {
        return failed; /* nothing of the group is done */
    }
    const ncclResult_t joined = join_all(std::move(joins));
    if (joined && joined != ncclInProgress) {
        return joined;
    }
    const ncclResult_t r = launch_all(std::move(calls));
    return r ? r : joined;
}

ncclResult_t group_drop()
{
    std::vector<OpCall> calls;
    std::vector<Joining> joins;
    depth = depth > 0 ? depth - 1 : 0;
    take_group(&calls, &joins);
    group_error = ncclSuccess;
    return complain(nullptr, ncclInvalidUsage, "the double cannot simulate a group's time");
}
} // namespace emu
