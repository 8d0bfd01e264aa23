/*
 * nccl_collective.cpp - the collectives as sets of sends and receives
 *
 * Direct exchanges, whose bytes per rank are those of NCCL's rings: all-reduce is a reduce-scatter
 * and an all-gather.  Reductions combine in rank order 0, 1, ..., so results are known bit for bit.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/emu/cuda_state.h"
#include "gpu/tests/emu/nccl_state.h"

#include <string.h>

namespace emu
{
typedef std::vector<char> Bytes;

/* Elements of 'n' before rank 'r's share, in shares as equal as can be. */
static size_t share(size_t n, int r, int nranks)
{
    return n / (size_t)nranks * (size_t)r +
           (n % (size_t)nranks < (size_t)r ? n % (size_t)nranks : (size_t)r);
}

size_t send_bytes(const OpCall &q)
{
    const size_t b = q.count * type_bytes(q.dtype), n = (size_t)q.comm->nranks;
    const bool root = q.comm->rank == q.root;
    switch (q.kind) {
    case POINT_TO_POINT: return q.sends ? b : 0;
    case REDUCE_SCATTER:
    case ALLTOALL: return n * b;
    case BROADCAST: return root ? b : 0;
    case SCATTER: return root ? n * b : 0;
    default: return b;
    }
}

size_t recv_bytes(const OpCall &q)
{
    const size_t b = q.count * type_bytes(q.dtype), n = (size_t)q.comm->nranks;
    const bool root = q.comm->rank == q.root;
    switch (q.kind) {
    case POINT_TO_POINT: return q.sends ? 0 : b;
    case ALL_GATHER:
    case ALLTOALL: return n * b;
    case REDUCE: return root ? b : 0;
    case GATHER: return root ? n * b : 0;
    default: return b;
    }
}

/* The input is copied first: buffers may overlap in every way that NCCL allows. */
static Bytes copy_input(const OpCall &q)
{
    const char *p = static_cast<const char *>(q.send);
    const size_t n = send_bytes(q);
    return n ? Bytes(p, p + n) : Bytes();
}

static void move(const OpCall &q)
{
    const int n = q.comm->nranks, me = q.comm->rank;
    const size_t b = q.count * type_bytes(q.dtype);
    const Bytes in = copy_input(q);
    const char *s = in.data();
    char *r = static_cast<char *>(q.recv);
    std::vector<Transfer> list;
    for (int p = 0; p < n; p++) {
        const size_t at = (size_t)p * b;
        switch (q.kind) {
        case ALL_GATHER:
            add_send(&list, q, p, s, q.count);
            add_recv(&list, q, p, r + at, q.count);
            break;
        case ALLTOALL:
            add_send(&list, q, p, s + at, q.count);
            add_recv(&list, q, p, r + at, q.count);
            break;
        case BROADCAST:
        case SCATTER:
            if (me == q.root) {
                add_send(&list, q, p, q.kind == SCATTER ? s + at : s, q.count);
            }
            if (p == q.root) {
                add_recv(&list, q, p, r, q.count);
            }
            break;
        default:
            if (p == q.root) {
                add_send(&list, q, p, s, q.count);
            }
            if (me == q.root) {
                add_recv(&list, q, p, r + at, q.count);
            }
            break;
        }
    }
    progress(q.comm.get(), &list);
}

/* Elements [first, first + n) of every rank's input meet at 'owner'. */
static void reduce_into(const OpCall &q, char *out, size_t n, const Bytes &terms)
{
    const size_t b = n * type_bytes(q.dtype);
    if (n == 0) {
        return;
    }
    memmove(out, terms.data(), b);
    for (int p = 1; p < q.comm->nranks; p++) {
        combine(out, terms.data() + (size_t)p * b, n, q.dtype, q.op);
    }
    if (q.op == ncclAvg) {
        finish_average(out, n, q.dtype, q.comm->nranks);
    }
}

/* Where, in elements, the part that rank 'p' reduces starts in the input. */
static size_t part(const OpCall &q, int p)
{
    switch (q.kind) {
    case REDUCE_SCATTER: return (size_t)p * q.count;
    case REDUCE: return p <= q.root ? 0 : q.count; /* all of it is the root's */
    default: return share(q.count, p, q.comm->nranks);
    }
}

static void reduce(const OpCall &q)
{
    ncclComm *c = q.comm.get();
    const int n = c->nranks, me = c->rank;
    const size_t size = type_bytes(q.dtype);
    Bytes in = copy_input(q);
    scale_input(c, in.data(), in.size() / size, q.dtype, q.op);
    const size_t mine = part(q, me + 1) - part(q, me);
    Bytes terms((size_t)n * mine * size);
    std::vector<Transfer> list;
    for (int p = 0; p < n; p++) {
        const size_t first = part(q, p), theirs = part(q, p + 1) - first;
        add_send(&list, q, p, in.data() + first * size, theirs);
        add_recv(&list, q, p, terms.data() + (size_t)p * mine * size, mine);
    }
    progress(c, &list);
    if (c->state != ncclSuccess || c->aborted) {
        return;
    }
    char *r = static_cast<char *>(q.recv);
    if (q.kind != ALL_REDUCE) {
        reduce_into(q, r, mine, terms);
        return;
    }
    Bytes own(mine * size);
    reduce_into(q, own.data(), mine, terms);
    list.clear();
    for (int p = 0; p < n; p++) {
        add_send(&list, q, p, own.data(), mine);
        add_recv(&list, q, p, r + part(q, p) * size, part(q, p + 1) - part(q, p));
    }
    progress(c, &list);
}

void run_calls(const std::vector<OpCall> &calls)
{
    ncclComm *c = calls[0].comm.get();
    std::lock_guard<std::mutex> one_at_a_time(c->running);
    int code;
    if (injected("ncclAsync", &code)) {
        fault(c, (ncclResult_t)code, "injected failure");
    }
    std::vector<Transfer> list;
    if (c->state != ncclSuccess || c->aborted) {
        return;
    }
    for (const OpCall &q : calls) {
        if (q.kind == POINT_TO_POINT && q.sends) {
            add_send(&list, q, q.root, q.send, q.count);
        } else if (q.kind == POINT_TO_POINT) {
            add_recv(&list, q, q.root, q.recv, q.count);
        }
    }
    progress(c, &list);
    for (const OpCall &q : calls) {
        if (c->state != ncclSuccess || c->aborted) {
            return;
        }
        if (q.kind == REDUCE_SCATTER || q.kind == ALL_REDUCE || q.kind == REDUCE) {
            reduce(q);
        } else if (q.kind != POINT_TO_POINT) {
            move(q);
        }
    }
}
} // namespace emu
