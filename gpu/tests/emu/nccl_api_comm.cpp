/*
 * nccl_api_comm.cpp - NCCL 2.28's functions about communicators, memory and operators
 *
 * Every function has its pncclX name too, as in libnccl.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/emu/cuda_state.h"
#include "gpu/tests/emu/nccl_api.h"
#include "gpu/tests/emu/nccl_make.h"
#include "gpu/tests/emu/nccl_state.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <algorithm>

using namespace emu;

#define INJECT(name)                                                                               \
    do {                                                                                           \
        int code_;                                                                                 \
        if (injected(name, &code_)) {                                                              \
            return complain(nullptr, (ncclResult_t)code_, "%s: injected failure", name);           \
        }                                                                                          \
    } while (0)

static ncclResult_t no_comm(const char *name)
{
    return complain(nullptr, ncclInvalidArgument, "%s: no such communicator", name);
}

static ncclResult_t init(const char *name, ncclComm_t *out, int nranks, const ncclUniqueId *id,
                         int rank, const ncclConfig_t *config)
{
    CommRef c;
    INJECT(name);
    if (!out || nranks < 1 || nranks > MAX_RANKS || rank < 0 || rank >= nranks) {
        return complain(nullptr, ncclInvalidArgument, "%s: rank %d of %d (at most %d)", name, rank,
                        nranks, (int)MAX_RANKS);
    }
    if (config && config->magic != 0xcafebeef) {
        return complain(nullptr, ncclInvalidArgument, "%s: config is not initialized", name);
    }
    if (id->internal[0] != '/' || !memchr(id->internal, 0, sizeof id->internal)) {
        return complain(nullptr, ncclInvalidArgument, "%s: this is no unique id", name);
    }
    const ncclResult_t r = make_comm(&c, id->internal, rank, nranks);
    if (r) {
        return r;
    }
    *out = c.get();
    list_comm(c);
    return submit_join(Joining{c, nullptr, out, 0, 0, !config || config->blocking != 0, 0});
}

extern "C" {
NCCL_API(ncclResult_t, GetVersion, (int *version))
{
    if (!version) {
        return ncclInvalidArgument;
    }
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}
NCCL_ALIAS(ncclResult_t, GetVersion, (int *version))

NCCL_API(const char *, GetErrorString, (ncclResult_t code))
{
    static const char *const texts[] = {
        "no error",
        "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        "unhandled system error (run with NCCL_DEBUG=INFO for details)",
        "internal error - please report this issue to the NCCL developers",
        "invalid argument (run with NCCL_DEBUG=WARN for details)",
        "invalid usage (run with NCCL_DEBUG=WARN for details)",
        "remote process exited or there was a network error",
        "NCCL operation in progress",
    };
    return code >= 0 && code < ncclNumResults ? texts[code] : "unknown result code";
}
NCCL_ALIAS(const char *, GetErrorString, (ncclResult_t code))

NCCL_API(const char *, GetLastError, (ncclComm_t comm))
{
    return last_text(comm);
}
NCCL_ALIAS(const char *, GetLastError, (ncclComm_t comm))

/* Deprecated by NCCL, still exported; NCCL_DEBUG is read at every message here. */
NCCL_API(void, ResetDebugInit, ())
{
}
NCCL_ALIAS(void, ResetDebugInit, ())

NCCL_API(ncclResult_t, GetUniqueId, (ncclUniqueId * id))
{
    static std::atomic<unsigned> count{0};
    INJECT("ncclGetUniqueId");
    memset(id, 0, sizeof *id);
    snprintf(id->internal, sizeof id->internal, "/zipccl-emu-%d-%u-%llx", (int)getpid(), count++,
             (unsigned long long)(now_s() * 1e9));
    return ncclSuccess;
}
NCCL_ALIAS(ncclResult_t, GetUniqueId, (ncclUniqueId * id))

NCCL_API(ncclResult_t, CommInitRank, (ncclComm_t * out, int nranks, ncclUniqueId id, int rank))
{
    return init("ncclCommInitRank", out, nranks, &id, rank, nullptr);
}
NCCL_ALIAS(ncclResult_t, CommInitRank, (ncclComm_t * out, int nranks, ncclUniqueId id, int rank))

NCCL_API(ncclResult_t, CommInitRankConfig,
         (ncclComm_t * out, int nranks, ncclUniqueId id, int rank, ncclConfig_t *config))
{
    return init("ncclCommInitRankConfig", out, nranks, &id, rank, config);
}
NCCL_ALIAS(ncclResult_t, CommInitRankConfig,
           (ncclComm_t * out, int nranks, ncclUniqueId id, int rank, ncclConfig_t *config))

/* All ranks meet at the first id. */
NCCL_API(ncclResult_t, CommInitRankScalable,
         (ncclComm_t * out, int nranks, int rank, int nids, ncclUniqueId *ids,
          ncclConfig_t *config))
{
    if (nids < 1 || !ids) {
        return complain(nullptr, ncclInvalidArgument, "ncclCommInitRankScalable: %d ids", nids);
    }
    return init("ncclCommInitRankScalable", out, nranks, ids, rank, config);
}
NCCL_ALIAS(ncclResult_t, CommInitRankScalable,
           (ncclComm_t * out, int nranks, int rank, int nids, ncclUniqueId *ids,
            ncclConfig_t *config))

NCCL_API(ncclResult_t, CommInitAll, (ncclComm_t * out, int n, const int *devices))
{
    ncclUniqueId id;
    int before;
    cudaGetDevice(&before);
    ncclResult_t r = ncclGetUniqueId(&id);
    (void)group_start();
    for (int i = 0; i < n && !r; i++) {
        r = cudaSetDevice(devices ? devices[i] : i)
                ? ncclUnhandledCudaError
                : init("ncclCommInitAll", out + i, n, &id, i, nullptr);
    }
    const ncclResult_t end = group_end();
    cudaSetDevice(before);
    return r ? r : end;
}
NCCL_ALIAS(ncclResult_t, CommInitAll, (ncclComm_t * out, int n, const int *devices))

NCCL_API(ncclResult_t, CommSplit,
         (ncclComm_t handle, int color, int key, ncclComm_t *out, ncclConfig_t *config))
{
    CommRef parent = find_comm(handle);
    INJECT("ncclCommSplit");
    if (!parent || !out) {
        return no_comm("ncclCommSplit");
    }
    if (parent->state != ncclSuccess) {
        return (ncclResult_t)parent->state.load();
    }
    if (color < 0 && color != NCCL_SPLIT_NOCOLOR) {
        return complain(parent.get(), ncclInvalidArgument, "ncclCommSplit: color %d", color);
    }
    *out = nullptr;
    if (pending_splits(parent.get()) == SPLITS / 2) {
        return complain(parent.get(), ncclInvalidUsage,
                        "ncclCommSplit: the double takes %d of one communicator in a group",
                        SPLITS / 2);
    }
    const uint32_t seq = publish_split(parent.get(), color, key);
    return submit_join(
        Joining{nullptr, parent, out, color, key, !config || config->blocking != 0, seq});
}
NCCL_ALIAS(ncclResult_t, CommSplit,
           (ncclComm_t handle, int color, int key, ncclComm_t *out, ncclConfig_t *config))

NCCL_API(ncclResult_t, CommShrink,
         (ncclComm_t handle, int *excluded, int nexcluded, ncclComm_t *out, ncclConfig_t *config,
          int flags))
{
    CommRef parent = find_comm(handle), c;
    INJECT("ncclCommShrink");
    if (!parent || !out || nexcluded < 1 || !excluded || nexcluded >= parent->nranks) {
        return no_comm("ncclCommShrink");
    }
    std::vector<int> gone(excluded, excluded + nexcluded);
    if (std::find(gone.begin(), gone.end(), parent->rank) != gone.end()) {
        return complain(parent.get(), ncclInvalidArgument, "ncclCommShrink: this rank is excluded");
    }
    if (flags & NCCL_SHRINK_ABORT) {
        parent->aborted = true;
    }
    std::string name = parent->name + "-x" + std::to_string(parent->nshrinks++);
    int rank = 0, nranks = 0;
    for (int p = 0; p < parent->nranks; p++) {
        if (std::find(gone.begin(), gone.end(), p) == gone.end()) {
            rank = p == parent->rank ? nranks : rank;
            nranks++;
        }
    }
    const ncclResult_t r = make_comm(&c, name, rank, nranks);
    if (r) {
        return r;
    }
    *out = c.get();
    list_comm(c);
    return submit_join(Joining{c, nullptr, out, 0, 0, !config || config->blocking != 0, 0});
}
NCCL_ALIAS(ncclResult_t, CommShrink,
           (ncclComm_t handle, int *excluded, int nexcluded, ncclComm_t *out, ncclConfig_t *config,
            int flags))

/* Waits for what was called before; later calls are refused. */
NCCL_API(ncclResult_t, CommFinalize, (ncclComm_t handle))
{
    CommRef c = find_comm(handle);
    INJECT("ncclCommFinalize");
    if (!c) {
        return no_comm("ncclCommFinalize");
    }
    if (c->finalized) {
        return complain(c.get(), ncclInvalidArgument, "finalized twice");
    }
    while (c->done < c->issued && !c->aborted) {
        usleep(50);
    }
    c->finalized = true;
    return (ncclResult_t)c->state.load();
}
NCCL_ALIAS(ncclResult_t, CommFinalize, (ncclComm_t handle))

/* Operations in flight keep what they need. */
NCCL_API(ncclResult_t, CommDestroy, (ncclComm_t handle))
{
    INJECT("ncclCommDestroy");
    if (!handle) {
        return ncclSuccess;
    }
    if (!find_comm(handle)) {
        return no_comm("ncclCommDestroy");
    }
    unlist_comm(handle);
    return ncclSuccess;
}
NCCL_ALIAS(ncclResult_t, CommDestroy, (ncclComm_t handle))

/* From any thread: ends operations in flight; the other ranks' operations fail. */
NCCL_API(ncclResult_t, CommAbort, (ncclComm_t handle))
{
    CommRef c = find_comm(handle);
    if (!handle) {
        return ncclSuccess;
    }
    if (!c) {
        return no_comm("ncclCommAbort");
    }
    c->aborted = true;
    c->shared->member[c->rank].aborted = 1;
    unlist_comm(handle);
    return ncclSuccess;
}
NCCL_ALIAS(ncclResult_t, CommAbort, (ncclComm_t handle))

NCCL_API(ncclResult_t, CommRevoke, (ncclComm_t handle, int flags))
{
    CommRef c = find_comm(handle);
    if (!c || flags != NCCL_REVOKE_DEFAULT) {
        return no_comm("ncclCommRevoke");
    }
    c->aborted = true;
    c->revoked = true;
    return ncclSuccess;
}
NCCL_ALIAS(ncclResult_t, CommRevoke, (ncclComm_t handle, int flags))

NCCL_API(ncclResult_t, CommGetAsyncError, (ncclComm_t handle, ncclResult_t *error))
{
    CommRef c = find_comm(handle);
    if (!c || !error) {
        return no_comm("ncclCommGetAsyncError");
    }
    *error = (ncclResult_t)c->state.load();
    return ncclSuccess;
}
NCCL_ALIAS(ncclResult_t, CommGetAsyncError, (ncclComm_t handle, ncclResult_t *error))

NCCL_API(ncclResult_t, CommCount, (const ncclComm_t handle, int *out))
{
    CommRef c = find_comm(handle);
    if (!c || !out) {
        return no_comm("ncclCommCount");
    }
    *out = c->nranks;
    return ncclSuccess;
}
NCCL_ALIAS(ncclResult_t, CommCount, (const ncclComm_t handle, int *out))

NCCL_API(ncclResult_t, CommCuDevice, (const ncclComm_t handle, int *out))
{
    CommRef c = find_comm(handle);
    if (!c || !out) {
        return no_comm("ncclCommCuDevice");
    }
    *out = c->device;
    return ncclSuccess;
}
NCCL_ALIAS(ncclResult_t, CommCuDevice, (const ncclComm_t handle, int *out))

NCCL_API(ncclResult_t, CommUserRank, (const ncclComm_t handle, int *out))
{
    CommRef c = find_comm(handle);
    if (!c || !out) {
        return no_comm("ncclCommUserRank");
    }
    *out = c->rank;
    return ncclSuccess;
}
NCCL_ALIAS(ncclResult_t, CommUserRank, (const ncclComm_t handle, int *out))
}

/* Buffers and windows are only checked: data takes the same way with and without. */
static ncclResult_t add_handle(const char *name, ncclComm_t handle, void *p, size_t nbytes,
                               size_t align, void **out)
{
    CommRef c = find_comm(handle);
    INJECT(name);
    if (!c || !out) {
        return no_comm(name);
    }
    if (nbytes == 0 || where(p, nbytes) < 0 || (uintptr_t)p % align) {
        return complain(c.get(), ncclInvalidArgument,
                        "%s: %zu bytes are not device memory aligned to %zu", name, nbytes, align);
    }
    void *h = new char;
    std::lock_guard<std::mutex> lock(c->mutex);
    c->handles.insert(h);
    *out = h;
    return ncclSuccess;
}

static ncclResult_t drop_handle(const char *name, ncclComm_t handle, void *h)
{
    CommRef c = find_comm(handle);
    if (!c) {
        return no_comm(name);
    }
    std::unique_lock<std::mutex> lock(c->mutex);
    if (!c->handles.erase(h)) {
        lock.unlock();
        return complain(c.get(), ncclInvalidArgument, "%s: no such registration", name);
    }
    delete static_cast<char *>(h);
    return ncclSuccess;
}

extern "C" {
NCCL_API(ncclResult_t, CommRegister, (const ncclComm_t comm, void *p, size_t nbytes, void **out))
{
    return add_handle("ncclCommRegister", comm, p, nbytes, 1, out);
}
NCCL_ALIAS(ncclResult_t, CommRegister, (const ncclComm_t comm, void *p, size_t nbytes, void **out))

NCCL_API(ncclResult_t, CommDeregister, (const ncclComm_t comm, void *handle))
{
    return drop_handle("ncclCommDeregister", comm, handle);
}
NCCL_ALIAS(ncclResult_t, CommDeregister, (const ncclComm_t comm, void *handle))

NCCL_API(ncclResult_t, CommWindowRegister,
         (ncclComm_t comm, void *p, size_t nbytes, ncclWindow_t *out, int))
{
    return add_handle("ncclCommWindowRegister", comm, p, nbytes, NCCL_WIN_REQUIRED_ALIGNMENT,
                      reinterpret_cast<void **>(out));
}
NCCL_ALIAS(ncclResult_t, CommWindowRegister,
           (ncclComm_t comm, void *p, size_t nbytes, ncclWindow_t *out, int flags))

NCCL_API(ncclResult_t, CommWindowDeregister, (ncclComm_t comm, ncclWindow_t window))
{
    return drop_handle("ncclCommWindowDeregister", comm, window);
}
NCCL_ALIAS(ncclResult_t, CommWindowDeregister, (ncclComm_t comm, ncclWindow_t window))

/* Whole pages, so that windows can be made of it. */
NCCL_API(ncclResult_t, MemAlloc, (void **out, size_t nbytes))
{
    INJECT("ncclMemAlloc");
    return cudaMalloc(out, (nbytes + 4095) / 4096 * 4096) ? ncclUnhandledCudaError : ncclSuccess;
}
NCCL_ALIAS(ncclResult_t, MemAlloc, (void **out, size_t nbytes))

NCCL_API(ncclResult_t, MemFree, (void *p))
{
    return cudaFree(p) ? ncclUnhandledCudaError : ncclSuccess;
}
NCCL_ALIAS(ncclResult_t, MemFree, (void *p))

NCCL_API(ncclResult_t, RedOpCreatePreMulSum,
         (ncclRedOp_t * out, void *scalar, ncclDataType_t dtype, ncclScalarResidence_t residence,
          ncclComm_t handle))
{
    CommRef c = find_comm(handle);
    ReductionOp op = {dtype, {}, nullptr};
    INJECT("ncclRedOpCreatePreMulSum");
    if (!c || !out || !scalar || (int)dtype < 0 || dtype >= ncclNumTypes) {
        return no_comm("ncclRedOpCreatePreMulSum");
    }
    if (residence == ncclScalarHostImmediate) {
        memcpy(op.scalar, scalar, type_bytes(dtype));
    } else {
        op.device_scalar = scalar;
    }
    std::lock_guard<std::mutex> lock(c->mutex);
    *out = (ncclRedOp_t)c->next_op++;
    c->ops[(int)*out] = op;
    return ncclSuccess;
}
NCCL_ALIAS(ncclResult_t, RedOpCreatePreMulSum,
           (ncclRedOp_t * out, void *scalar, ncclDataType_t dtype, ncclScalarResidence_t residence,
            ncclComm_t handle))

/* Operations called before keep it. */
NCCL_API(ncclResult_t, RedOpDestroy, (ncclRedOp_t op, ncclComm_t handle))
{
    CommRef c = find_comm(handle);
    if (!c || (int)op < ncclNumOps) {
        return no_comm("ncclRedOpDestroy");
    }
    while (c->done < c->issued && !c->aborted && c->state == ncclSuccess) {
        usleep(50);
    }
    std::unique_lock<std::mutex> lock(c->mutex);
    if (!c->ops.erase((int)op)) {
        lock.unlock();
        return complain(c.get(), ncclInvalidArgument, "ncclRedOpDestroy: no such operator");
    }
    return ncclSuccess;
}
NCCL_ALIAS(ncclResult_t, RedOpDestroy, (ncclRedOp_t op, ncclComm_t handle))
}

uint64_t emu_nccl_wire(const void *handle, int src, int dst)
{
    CommRef c = find_comm(static_cast<ncclComm_t>(const_cast<void *>(handle)));
    if (!c || src < 0 || dst < 0 || src >= c->nranks || dst >= c->nranks) {
        return 0;
    }
    return c->shared->wire[src * MAX_RANKS + dst];
}
