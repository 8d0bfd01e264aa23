/*
 * cuda_capture.cpp - stream capture, graphs and their replay in the double
 *
 * Each captured stream becomes a chain, and a replay runs every chain on a stream of its own: a
 * dependency that was not captured is really missing then.  Child graphs and allocations inside a
 * capture are not supported and say so.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/emu/cuda_state.h"

#include <algorithm>

struct CUgraph_st {
    std::vector<emu::Node> nodes;
    int nchains, nsignals;
};

struct CUgraphExec_st {
    CUgraph_st graph;
    std::vector<emu::StreamRef> side;  /* chains after the first */
    std::shared_ptr<emu::Signal> last; /* end of the replay before */
    std::mutex mutex;
};

namespace emu
{
static std::mutex &captures_mutex = *new std::mutex;
static auto &captures = *new std::vector<std::shared_ptr<Capture>>; /* that have not ended */
static unsigned long long last_id;
static thread_local cudaStreamCaptureMode thread_mode = cudaStreamCaptureModeGlobal;

void invalidate(const std::shared_ptr<Capture> &c)
{
    std::lock_guard<std::mutex> lock(c->mutex);
    c->invalid = true;
}

/* The rule of cudaThreadExchangeStreamCaptureMode(). */
static bool forbids(const Capture &c)
{
    const bool mine = c.owner == std::this_thread::get_id();
    switch (thread_mode) {
    case cudaStreamCaptureModeRelaxed: return false;
    case cudaStreamCaptureModeThreadLocal: return mine && c.mode != cudaStreamCaptureModeRelaxed;
    default:
        return mine ? c.mode != cudaStreamCaptureModeRelaxed
                    : c.mode == cudaStreamCaptureModeGlobal;
    }
}

cudaError_t unsafe_call()
{
    cudaError_t error = cudaSuccess;
    std::lock_guard<std::mutex> lock(captures_mutex);
    for (const auto &c : captures) {
        if (forbids(*c)) {
            invalidate(c);
            error = cudaErrorStreamCaptureUnsupported;
        }
    }
    return error;
}

/* The legacy stream would have to wait for a blocking stream that is captured. */
bool capture_forbids_legacy(int device)
{
    std::lock_guard<std::mutex> lock(captures_mutex);
    for (const auto &c : captures) {
        std::lock_guard<std::mutex> capture_lock(c->mutex);
        for (const StreamRef &s : c->streams) {
            if (s->device == device && !(s->flags & cudaStreamNonBlocking)) {
                c->invalid = true;
                return true;
            }
        }
    }
    return false;
}

/* With c->mutex held. */
static void add_node(Capture *c, int chain, Node node)
{
    node.chain = chain;
    c->nodes.push_back(std::move(node));
    c->after[(size_t)chain][(size_t)chain]++;
}

cudaError_t capture_work(const StreamRef &s, Work work)
{
    Capture *c = s->capture.get();
    std::lock_guard<std::mutex> lock(c->mutex);
    if (c->invalid) {
        return cudaErrorStreamCaptureInvalidated;
    }
    add_node(c, s->chain, Node{Node::WORK, 0, 0, std::move(work)});
    return cudaSuccess;
}

bool capture_record(const StreamRef &s, CUevent_st *e)
{
    Capture *c = s->capture.get();
    std::lock_guard<std::mutex> lock(c->mutex);
    if (c->invalid) {
        return false;
    }
    add_node(c, s->chain, Node{Node::SIGNAL, 0, c->nsignals, nullptr});
    c->signal_after.push_back(c->after[(size_t)s->chain]);
    std::lock_guard<std::mutex> event_lock(e->mutex);
    e->captured = true;
    e->capture = s->capture;
    e->signal = c->nsignals++;
    return true;
}

static void add_chain(const std::shared_ptr<Capture> &c, const StreamRef &s)
{
    s->capture = c;
    s->chain = (int)c->streams.size();
    c->streams.push_back(s);
    c->after.emplace_back();
    for (auto &after : c->after) {
        after.resize(c->streams.size());
    }
}

bool capture_wait(const StreamRef &s, CUevent_st *e, cudaError_t *error)
{
    std::shared_ptr<Capture> c;
    int signal;
    {
        std::lock_guard<std::mutex> lock(e->mutex);
        c = e->capture.lock();
        signal = e->signal;
    }
    if (!c && !s->capture) {
        return false;
    }
    *error = cudaErrorStreamCaptureIsolation;
    if (!c || (s->capture && s->capture != c)) {
        invalidate(s->capture); /* waits for something outside its capture */
        return true;
    }
    std::lock_guard<std::mutex> lock(c->mutex);
    if (c->invalid) {
        *error = cudaErrorStreamCaptureInvalidated;
        return true;
    }
    if (!s->capture) {
        add_chain(c, s);
    }
    std::vector<size_t> &after = c->after[(size_t)s->chain];
    const std::vector<size_t> &then = c->signal_after[(size_t)signal];
    for (size_t i = 0; i < then.size(); i++) {
        after[i] = std::max(after[i], then[i]);
    }
    add_node(c.get(), s->chain, Node{Node::WAIT, 0, signal, nullptr});
    *error = cudaSuccess;
    return true;
}

/* True if the first chain's end comes after the last piece of work of every other. */
static bool joined(const Capture &c)
{
    std::vector<size_t> seen(c.streams.size()), last_work(c.streams.size());
    for (const Node &n : c.nodes) {
        const size_t k = (size_t)n.chain;
        seen[k]++;
        if (n.kind == Node::WORK) {
            last_work[k] = seen[k];
        }
    }
    for (size_t k = 1; k < seen.size(); k++) {
        if (last_work[k] > c.after[0][k]) {
            return false;
        }
    }
    return true;
}

/* Put one replay's operations on the streams. */
static void replay(CUgraphExec_st *x, const StreamRef &main)
{
    const CUgraph_st &g = x->graph;
    std::vector<std::shared_ptr<Signal>> signals;
    for (int i = 0; i < g.nsignals; i++) {
        signals.push_back(std::make_shared<Signal>());
    }
    std::shared_ptr<Signal> before = x->last, start = std::make_shared<Signal>();
    x->last = std::make_shared<Signal>();
    push(main, [before, start] {
        if (before) {
            await(before.get());
        }
        raise(start.get());
    });
    for (const StreamRef &s : x->side) {
        push(s, [start] { await(start.get()); });
    }
    for (const Node &n : g.nodes) {
        const StreamRef &s = n.chain ? x->side[(size_t)n.chain - 1] : main;
        if (n.kind == Node::WORK) {
            push(s, n.work);
        } else if (n.kind == Node::SIGNAL) {
            push(s, [signal = signals[(size_t)n.signal]] { raise(signal.get()); });
        } else {
            push(s, [signal = signals[(size_t)n.signal]] { await(signal.get()); });
        }
    }
    for (const StreamRef &s : x->side) {
        auto end = std::make_shared<Signal>();
        push(s, [end] { raise(end.get()); });
        push(main, [end] { await(end.get()); });
    }
    push(main, [last = x->last] { raise(last.get()); });
}
} // namespace emu

using namespace emu;

extern "C" {
cudaError_t cudaStreamBeginCapture(cudaStream_t handle, cudaStreamCaptureMode mode)
{
    EMU_ENTER("cudaStreamBeginCapture");
    StreamRef s = find_stream(handle);
    if (!s || !handle || handle == cudaStreamLegacy) {
        return set_last(handle && handle != cudaStreamLegacy ? cudaErrorInvalidResourceHandle
                                                             : cudaErrorStreamCaptureUnsupported);
    }
    if (s->capture) {
        return set_last(cudaErrorIllegalState);
    }
    auto c = std::make_shared<Capture>();
    c->mode = mode;
    c->owner = std::this_thread::get_id();
    c->invalid = false;
    c->nsignals = 0;
    std::lock_guard<std::mutex> lock(captures_mutex);
    c->id = ++last_id;
    add_chain(c, s);
    captures.push_back(c);
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *out)
{
    EMU_ENTER("cudaStreamEndCapture");
    StreamRef s = find_stream(handle);
    if (!s || !out) {
        return set_last(s ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle);
    }
    std::shared_ptr<Capture> c = s->capture;
    if (!c || s->chain != 0) {
        return set_last(c ? cudaErrorStreamCaptureUnmatched : cudaErrorIllegalState);
    }
    if (c->mode != cudaStreamCaptureModeRelaxed && c->owner != std::this_thread::get_id()) {
        return set_last(cudaErrorStreamCaptureWrongThread);
    }
    std::lock_guard<std::mutex> list_lock(captures_mutex);
    std::lock_guard<std::mutex> lock(c->mutex);
    captures.erase(std::find(captures.begin(), captures.end(), c));
    for (const StreamRef &member : c->streams) {
        member->capture.reset();
    }
    *out = nullptr;
    if (c->invalid || !joined(*c)) {
        return set_last(c->invalid ? cudaErrorStreamCaptureInvalidated
                                   : cudaErrorStreamCaptureUnjoined);
    }
    *out = new CUgraph_st{c->nodes, (int)c->streams.size(), c->nsignals};
    return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t handle, cudaStreamCaptureStatus *out)
{
    StreamRef s = find_stream(handle);
    if (!s || !out) {
        return set_last(s ? cudaErrorInvalidValue : cudaErrorInvalidResourceHandle);
    }
    std::shared_ptr<Capture> c = s->capture;
    *out = cudaStreamCaptureStatusNone;
    if (c) {
        std::lock_guard<std::mutex> lock(c->mutex);
        *out = c->invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
    }
    return cudaSuccess;
}

/* The graph under construction has no handle here; asking for it or its nodes is refused. */
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t handle, cudaStreamCaptureStatus *status,
                                     unsigned long long *id, cudaGraph_t *graph,
                                     const cudaGraphNode_t **deps, const cudaGraphEdgeData **edges,
                                     size_t *ndeps)
{
    if (graph || deps || edges || ndeps) {
        return set_last(cudaErrorNotSupported);
    }
    const cudaError_t error = cudaStreamIsCapturing(handle, status);
    if (!error && id && *status == cudaStreamCaptureStatusActive) {
        *id = find_stream(handle)->capture->id;
    }
    return error;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode *mode)
{
    std::swap(*mode, thread_mode);
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long)
{
    EMU_ENTER("cudaGraphInstantiate");
    if (!out || !graph) {
        return set_last(cudaErrorInvalidValue);
    }
    CUgraphExec_st *x = new CUgraphExec_st();
    x->graph = *graph;
    for (int i = 1; i < graph->nchains; i++) {
        x->side.push_back(new_stream(cudaStreamNonBlocking, 0, false));
    }
    *out = x;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *out, cudaGraph_t graph,
                                          unsigned long long flags)
{
    return cudaGraphInstantiate(out, graph, flags);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t x, cudaStream_t)
{
    return x ? cudaSuccess : set_last(cudaErrorInvalidValue);
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t x, cudaStream_t handle)
{
    EMU_ENTER("cudaGraphLaunch");
    StreamRef s = find_stream(handle);
    if (!s || !x) {
        return set_last(cudaErrorInvalidResourceHandle);
    }
    if (s->capture) {
        return set_last(cudaErrorNotSupported);
    }
    std::lock_guard<std::mutex> lock(x->mutex);
    replay(x, s);
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t x)
{
    if (!x) {
        return set_last(cudaErrorInvalidValue);
    }
    for (const StreamRef &s : x->side) {
        end_stream(s);
    }
    delete x;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    if (!graph) {
        return set_last(cudaErrorInvalidValue);
    }
    delete graph;
    return cudaSuccess;
}

/* Pieces of work, without the events between them. */
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *out)
{
    if (!graph || !out || nodes) {
        return set_last(graph && out ? cudaErrorNotSupported : cudaErrorInvalidValue);
    }
    *out = (size_t)std::count_if(graph->nodes.begin(), graph->nodes.end(),
                                 [](const Node &n) { return n.kind == Node::WORK; });
    return cudaSuccess;
}
}
