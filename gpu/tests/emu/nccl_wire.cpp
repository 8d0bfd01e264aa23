/*
 * nccl_wire.cpp - bytes between ranks: rings in shared memory, and who waits for whom
 *
 * Every message starts with a header, so that two ranks whose operations do not match get an error
 * naming both, where the real library hangs or truncates.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/emu/cuda_state.h"
#include "gpu/tests/emu/nccl_state.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <algorithm>

namespace emu
{
struct Header {
    uint64_t nbytes;
    uint32_t kind, dtype, op, root;
};

static const char *const kind_names[] = {"?",         "send/recv", "AllGather", "ReduceScatter",
                                         "AllReduce", "Broadcast", "Reduce",    "AlltoAll",
                                         "Gather",    "Scatter"};

static Header header_of(const Transfer &t)
{
    const bool point = t.call->kind == POINT_TO_POINT;
    return Header{t.nbytes, (uint32_t)t.call->kind, (uint32_t)t.call->dtype, (uint32_t)t.call->op,
                  point ? 0 : (uint32_t)t.call->root};
}

static size_t ring_put(Ring *r, const char *p, size_t n)
{
    const uint64_t head = r->head.load(std::memory_order_relaxed);
    n = std::min(n, RING - (size_t)(head - r->tail.load(std::memory_order_acquire)));
    for (size_t i = 0; i < n;) {
        const size_t at = (head + i) % RING, part = std::min(n - i, RING - at);
        memcpy(r->bytes + at, p + i, part);
        i += part;
    }
    r->head.store(head + n, std::memory_order_release);
    return n;
}

static size_t ring_get(Ring *r, char *p, size_t n)
{
    const uint64_t tail = r->tail.load(std::memory_order_relaxed);
    n = std::min(n, (size_t)(r->head.load(std::memory_order_acquire) - tail));
    for (size_t i = 0; i < n;) {
        const size_t at = (tail + i) % RING, part = std::min(n - i, RING - at);
        memcpy(p + i, r->bytes + at, part);
        i += part;
    }
    r->tail.store(tail + n, std::memory_order_release);
    return n;
}

static void add(std::vector<Transfer> *list, const OpCall &call, int peer, bool send, void *p,
                size_t n)
{
    const size_t nbytes = n * type_bytes(call.dtype);
    list->push_back(Transfer{peer, send, static_cast<char *>(p), nbytes, 0, &call, false});
}

void add_send(std::vector<Transfer> *list, const OpCall &call, int peer, const void *p, size_t n)
{
    const ncclComm *c = call.comm.get();
    const size_t nbytes = n * type_bytes(call.dtype);
    add(list, call, peer, true, const_cast<void *>(p), n);
    if (peer != c->rank) {
        c->shared->wire[c->rank * MAX_RANKS + peer] += nbytes;
        stats()->nccl_sent += nbytes;
    }
}

void add_recv(std::vector<Transfer> *list, const OpCall &call, int peer, void *p, size_t n)
{
    add(list, call, peer, false, p, n);
}

static bool check_header(ncclComm *c, const Transfer &t, const Header &got)
{
    const Header own = header_of(t);
    if (!memcmp(&got, &own, sizeof own)) {
        return true;
    }
    fault(c, ncclInvalidUsage,
          "rank %d does %s of %llu bytes, type %u, op %u, root %u; here it is %s of %llu bytes, "
          "type %u, op %u, root %u",
          t.peer, got.kind <= SCATTER ? kind_names[got.kind] : "?", (unsigned long long)got.nbytes,
          got.dtype, got.op, got.root, kind_names[own.kind], (unsigned long long)own.nbytes,
          own.dtype, own.op, own.root);
    return false;
}

/* True if anything moved; false with a fault if the operations do not match. */
static bool step(ncclComm *c, Transfer *t, Ring *r)
{
    bool moved = false;
    if (!t->header_done) {
        Header h = header_of(*t);
        const size_t used = (size_t)(r->head.load() - r->tail.load());
        if (t->send ? RING - used < sizeof h : used < sizeof h) {
            return false;
        }
        if (t->send) {
            ring_put(r, reinterpret_cast<const char *>(&h), sizeof h);
        } else {
            ring_get(r, reinterpret_cast<char *>(&h), sizeof h);
            if (!check_header(c, *t, h)) {
                return false;
            }
        }
        t->header_done = moved = true;
    }
    if (t->moved < t->nbytes) {
        const size_t n = t->send ? ring_put(r, t->p + t->moved, t->nbytes - t->moved)
                                 : ring_get(r, t->p + t->moved, t->nbytes - t->moved);
        t->moved += n;
        moved = moved || n > 0;
    }
    return moved;
}

static bool over(const Transfer &t)
{
    return t.header_done && t.moved == t.nbytes;
}

static void report_missing(ncclComm *c, const std::vector<Transfer> &list, double waited_s)
{
    std::string text;
    int more = 0;
    for (const Transfer &t : list) {
        char item[120];
        if (over(t)) {
            continue;
        }
        if (text.size() > 400) {
            more++;
            continue;
        }
        snprintf(item, sizeof item, " [%s: %s rank %d, %zu of %zu bytes]", kind_names[t.call->kind],
                 t.send ? "send to" : "receive from", t.peer, t.moved, t.nbytes);
        text += item;
    }
    if (more > 0) {
        text += " and " + std::to_string(more) + " more";
    }
    fault(c, ncclSystemError, "no progress for %.1f s, waits in%s", waited_s, text.c_str());
}

/* False if the operation cannot go on. */
static bool healthy(ncclComm *c)
{
    if (c->aborted) {
        return false;
    }
    for (int p = 0; p < c->nranks; p++) {
        if (p != c->rank && c->shared->member[p].aborted) {
            fault(c, ncclRemoteError, "rank %d aborted the communicator", p);
            return false;
        }
    }
    if (c->shared->failed) {
        fault(c, ncclRemoteError, "another rank of the communicator failed");
        return false;
    }
    return c->state == ncclSuccess;
}

/* One transfer at a time for each peer and direction, in the order of calls, as in NCCL. */
static bool sweep(ncclComm *c, std::vector<Transfer> *list, size_t *left)
{
    std::vector<char> busy((size_t)c->nranks * 2, 0);
    bool moved = false;
    for (Transfer &t : *list) {
        char *slot = &busy[(size_t)t.peer * 2 + t.send];
        if (over(t) || *slot) {
            continue;
        }
        *slot = 1;
        const int src = t.send ? c->rank : t.peer, dst = t.send ? t.peer : c->rank;
        moved = step(c, &t, &c->shared->ring[src * c->nranks + dst]) || moved;
        *left -= over(t);
    }
    return moved;
}

void progress(ncclComm *c, std::vector<Transfer> *list)
{
    size_t left = list->size();
    double last_s = now_s();
    const double limit_s = peer_limit_s();
    for (unsigned idle = 0; left > 0;) {
        if (sweep(c, list, &left)) {
            last_s = now_s();
            idle = 0;
            continue;
        }
        if (!healthy(c)) {
            return;
        }
        if (++idle < 64) {
            sched_yield();
            continue;
        }
        usleep(50);
        if (now_s() - last_s > limit_s) {
            report_missing(c, *list, limit_s);
            return;
        }
    }
}
} // namespace emu
