/*
 * nccl_connect.cpp - connections that are made when they are first needed, by calls that wait for each other
 *
 * Only the waiting: messages go through the rings of nccl_comm.cpp all the same.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/emu/nccl_state.h"

#include <sched.h>

namespace emu
{
/* Bytes of the largest buffer of any rank: the same on all, also where only the root has one. */
static size_t most_bytes(const OpCall &q)
{
    const size_t b = q.count * type_bytes(q.dtype);
    switch (q.kind) {
    case ALL_REDUCE:
    case BROADCAST:
    case REDUCE: return b;
    default: return b * (size_t)q.comm->nranks;
    }
}

static unsigned kind_of(const OpCall &q)
{
    return 2 * (unsigned)q.kind + (most_bytes(q) >= LARGE ? 1 : 0);
}

static std::atomic<uint32_t> &ends_of(const OpCall &q)
{
    const int src = q.sends ? q.comm->rank : q.root, dst = q.sends ? q.root : q.comm->rank;
    return q.comm->shared->ends[src * MAX_RANKS + dst];
}

/* Tell the other ranks that this one has come. */
static void come(const OpCall &q)
{
    if (q.kind == POINT_TO_POINT) {
        ends_of(q) |= q.sends ? 1 : 2;
    } else if (!(q.comm->called.fetch_or(1u << kind_of(q)) & 1u << kind_of(q))) {
        q.comm->shared->called[kind_of(q)]++;
    }
}

static bool all_came(const OpCall &q)
{
    return q.kind == POINT_TO_POINT
               ? q.root == q.comm->rank || ends_of(q) == 3
               : q.comm->shared->called[kind_of(q)] == (uint32_t)q.comm->nranks;
}

static ncclResult_t wait_for_all(const OpCall &q)
{
    ncclComm *c = q.comm.get();
    const double start_s = now_s(), limit_s = peer_limit_s();
    while (!all_came(q)) {
        if (c->aborted) {
            return complain(c, ncclInternalError, "aborted while it connected");
        }
        if (now_s() - start_s > limit_s) {
            return complain(
                c, ncclSystemError,
                "after %.1f s not all ranks have made the call that rank %d connects in", limit_s,
                c->rank);
        }
        sched_yield();
    }
    return ncclSuccess;
}

ncclResult_t connect(const std::vector<OpCall> &calls)
{
    struct emu_options o;
    emu_get_options(&o);
    ncclResult_t result = ncclSuccess;
    if (!o.lazy) {
        return result;
    }
    for (const OpCall &q : calls) {
        come(q);
    }
    for (const OpCall &q : calls) {
        result = result ? result : wait_for_all(q);
    }
    return result;
}
} // namespace emu
