/*
 * test_nccl_errors.cpp - what the NCCL double says to calls that are wrong or go wrong
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <stdlib.h>
#include <string.h>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <nccl.h>

#include "gpu/tests/emu/check.h"
#include "gpu/tests/emu/emu.h"

struct Rank {
    int rank;
    ncclComm_t comm;
    cudaStream_t s;
    char *p; /* [4096] on the device */
};

static bool says(const char *text, const char *part)
{
    if (strstr(text, part)) {
        return true;
    }
    printf("\"%s\" does not say \"%s\"\n", text, part);
    return false;
}

/* 'n' ranks in threads, each with a communicator, a stream and memory. */
static void ranks(int n, const std::function<void(Rank *)> &body)
{
    ncclUniqueId id;
    std::vector<std::thread> threads;
    CHECK_OK(ncclGetUniqueId(&id));
    for (int r = 0; r < n; r++) {
        threads.emplace_back([r, n, id, &body] {
            Rank me = {r, nullptr, nullptr, nullptr};
            CHECK_OK(cudaSetDevice(r));
            CHECK_OK(ncclCommInitRank(&me.comm, n, id, r));
            CHECK_OK(cudaStreamCreateWithFlags(&me.s, cudaStreamNonBlocking));
            CHECK_OK(cudaMalloc((void **)&me.p, 4096));
            body(&me);
            (void)ncclCommDestroy(me.comm);
            (void)cudaStreamSynchronize(me.s);
            CHECK_OK(cudaStreamDestroy(me.s));
            CHECK_OK(cudaFree(me.p));
        });
    }
    for (std::thread &t : threads) {
        t.join();
    }
}

/* Wait for the stream; the error that the communicator has then. */
static ncclResult_t outcome(Rank *r)
{
    ncclResult_t e = ncclSuccess;
    CHECK_OK(cudaStreamSynchronize(r->s));
    CHECK_OK(ncclCommGetAsyncError(r->comm, &e));
    return e;
}

static void mismatches(void)
{
    ranks(2, [](Rank *r) { /* count */
                           CHECK_OK(r->rank ? ncclRecv(r->p, 99, ncclUint8, 0, r->comm, r->s)
                                            : ncclSend(r->p, 100, ncclUint8, 1, r->comm, r->s));
                           const ncclResult_t e = outcome(r);
                           CHECK(e == (r->rank ? ncclInvalidUsage : ncclSuccess) ||
                                 e == ncclRemoteError);
                           CHECK(r->rank == 0 || says(ncclGetLastError(r->comm),
                                                      "rank 1 of 2: rank 0 does send/recv of 100 "
                                                      "bytes, type 1, op 0, root 0; here it "
                                                      "is send/recv of 99 bytes"));
    });
    std::atomic<int> usage{0}, remote{0};
    const auto count = [&usage, &remote](ncclResult_t e) {
        usage += e == ncclInvalidUsage;
        remote += e == ncclRemoteError;
    };
    ranks(3, [count](Rank *r) { /* type */
                                const ncclDataType_t t = r->rank ? ncclFloat32 : ncclInt32;
                                CHECK_OK(ncclAllReduce(r->p, r->p, 5, t, ncclSum, r->comm, r->s));
                                count(outcome(r));
                                CHECK(ncclAllReduce(r->p, r->p, 5, t, ncclSum, r->comm, r->s) !=
                                      ncclSuccess);
    });
    CHECK(usage >= 1 && usage + remote == 3);
    usage = remote = 0;
    ranks(2,
          [count](Rank *r) { /* operation */
                             CHECK_OK(r->rank
                                          ? ncclAllGather(r->p, r->p, 8, ncclInt32, r->comm, r->s)
                                          : ncclAlltoAll(r->p, r->p, 8, ncclInt32, r->comm, r->s));
                             count(outcome(r));
          });
    CHECK(usage >= 1 && usage + remote == 2);
    usage = remote = 0;
    ranks(2, [count](Rank *r) { /* reduction */
                                CHECK_OK(ncclAllReduce(r->p, r->p, 5, ncclInt32,
                                                       r->rank ? ncclMax : ncclSum, r->comm, r->s));
                                count(outcome(r));
    });
    CHECK(usage >= 1 && usage + remote == 2);
}

static void missing_peers(void)
{
    struct emu_options o;
    emu_default_options(&o);
    o.peer_ms = 200;
    emu_set_options(&o);
    ranks(3, [](Rank *r) {
        if (r->rank == 1) {
            return; /* never calls */
        }
        CHECK_OK(ncclAllGather(r->p, r->p, 10, ncclUint8, r->comm, r->s));
        const ncclResult_t e = outcome(r);
        CHECK(e == ncclSystemError || e == ncclRemoteError);
        CHECK(e == ncclRemoteError ||
              says(ncclGetLastError(r->comm),
                   "waits in [AllGather: receive from rank 1, 0 of 10 bytes]"));
    });
    ncclUniqueId id;
    ncclComm_t c;
    CHECK_OK(ncclGetUniqueId(&id));
    CHECK_EQ(ncclCommInitRank(&c, 3, id, 1), ncclSystemError);
    CHECK(says(ncclGetLastError(nullptr), "rank(s) 0, 2 have not joined"));
    o.lazy = 1; /* the calls themselves wait */
    emu_set_options(&o);
    ranks(2, [](Rank *r) {
        if (r->rank == 0) {
            CHECK_EQ(ncclSend(r->p, 10, ncclUint8, 1, r->comm, r->s), ncclSystemError);
            CHECK_EQ(ncclAllGather(r->p, r->p, 10, ncclUint8, r->comm, r->s), ncclSystemError);
            CHECK(says(ncclGetLastError(r->comm), "not all ranks have made the call"));
        }
    });
    ranks(2, [](Rank *r) {
        CHECK_OK(ncclGroupStart());
        CHECK_OK(ncclSend(r->p, 10, ncclUint8, 1 - r->rank, r->comm, r->s));
        CHECK_OK(
            ncclRecv(static_cast<char *>(r->p) + 10, 10, ncclUint8, 1 - r->rank, r->comm, r->s));
        CHECK_OK(ncclGroupEnd());
        CHECK_EQ(outcome(r), ncclSuccess);
    });
    emu_default_options(&o);
    emu_set_options(&o);
}

static void bad_calls(void)
{
    ranks(2, [](Rank *r) {
        char host[64] = "";
        void *elsewhere;
        cudaStream_t s;
        CHECK_EQ(ncclAllGather(host, r->p, 4, ncclUint8, r->comm, r->s), ncclInvalidArgument);
        CHECK(says(ncclGetLastError(r->comm), "ncclAllGather: send buffer is no device memory"));
        CHECK_EQ(ncclAllGather(r->p, r->p, 2049, ncclUint8, r->comm, r->s), ncclInvalidArgument);
        CHECK(says(ncclGetLastError(r->comm), "receive buffer of 4098 bytes goes past"));
        CHECK_OK(cudaSetDevice(7));
        CHECK_OK(cudaMalloc(&elsewhere, 64));
        CHECK_OK(cudaStreamCreate(&s));
        CHECK_EQ(ncclSend(elsewhere, 4, ncclUint8, 0, r->comm, r->s), ncclInvalidArgument);
        CHECK(says(ncclGetLastError(r->comm), "send buffer is on device 7"));
        CHECK_EQ(ncclSend(r->p, 4, ncclUint8, 0, r->comm, s), ncclInvalidArgument);
        CHECK(says(ncclGetLastError(r->comm), "the stream is on device 7"));
        CHECK_OK(cudaFree(elsewhere));
        CHECK_OK(cudaStreamDestroy(s));
        CHECK_OK(cudaSetDevice(r->rank));
        CHECK_EQ(ncclSend(r->p, 4, ncclUint8, 2, r->comm, r->s), ncclInvalidArgument);
        CHECK_EQ(ncclSend(r->p, 4, ncclNumTypes, 0, r->comm, r->s), ncclInvalidArgument);
        CHECK_EQ(ncclAllReduce(r->p, r->p, 4, ncclInt8, (ncclRedOp_t)77, r->comm, r->s),
                 ncclInvalidArgument);
        CHECK_EQ(ncclSend(r->p, 4, ncclUint8, 0, nullptr, r->s), ncclInvalidArgument);
        CHECK_EQ(ncclGroupEnd(), ncclInvalidUsage);
        /* One bad call in a group: none is done, and the group's end says so. */
        CHECK_OK(ncclGroupStart());
        CHECK_OK(ncclSend(r->p, 4, ncclUint8, 1 - r->rank, r->comm, r->s));
        CHECK_EQ(ncclRecv(host, 4, ncclUint8, 1 - r->rank, r->comm, r->s), ncclInvalidArgument);
        CHECK_EQ(ncclGroupEnd(), ncclInvalidArgument);
        CHECK_EQ(emu_nccl_wire(r->comm, r->rank, 1 - r->rank), 0);
        void *handle;
        CHECK_EQ(ncclCommRegister(r->comm, host, 4, &handle), ncclInvalidArgument);
        CHECK_OK(ncclCommRegister(r->comm, r->p, 4096, &handle));
        CHECK_OK(ncclCommDeregister(r->comm, handle));
        CHECK_EQ(ncclCommDeregister(r->comm, handle), ncclInvalidArgument);
        CHECK_OK(outcome(r));
        CHECK_OK(ncclCommFinalize(r->comm));
        CHECK_EQ(ncclSend(r->p, 4, ncclUint8, 0, r->comm, r->s), ncclInvalidUsage);
    });
    ncclUniqueId id;
    ncclComm_t c[2];
    const int same[2] = {3, 3};
    CHECK_EQ(ncclCommInitAll(c, 2, same), ncclInvalidUsage);
    CHECK(says(ncclGetLastError(nullptr), "duplicate GPU: ranks"));
    memset(&id, 'x', sizeof id);
    CHECK_EQ(ncclCommInitRank(c, 2, id, 0), ncclInvalidArgument);
}

static void injected_failures(void)
{
    ranks(2, [](Rank *r) {
        if (r->rank == 0) {
            emu_fail("ncclBroadcast", 2, ncclInternalError);
            CHECK_OK(ncclBroadcast(r->p, r->p, 4, ncclInt8, 0, r->comm, r->s));
            CHECK_EQ(ncclBroadcast(r->p, r->p, 4, ncclInt8, 0, r->comm, r->s), ncclInternalError);
            CHECK(says(ncclGetLastError(r->comm), "ncclBroadcast: injected failure"));
        }
    });
    ranks(2, [](Rank *r) {
        static std::atomic<int> armed{0};
        if (r->rank == 0) {
            emu_fail("ncclAsync", 1, ncclSystemError);
            armed = 1;
        }
        while (!armed) {
            std::this_thread::yield();
        }
        CHECK_OK(ncclAllReduce(r->p, r->p, 4, ncclInt8, ncclSum, r->comm, r->s));
        const ncclResult_t e = outcome(r);
        CHECK(e == ncclSystemError || e == ncclRemoteError);
    });
    emu_reset();
}

/* A thread aborts what its rank waits in; the other rank hears of it. */
static void abort_elsewhere(void)
{
    ranks(3, [](Rank *r) {
        if (r->rank == 2) {
            return;
        }
        CHECK_OK(ncclAllReduce(r->p, r->p, 4, ncclInt8, ncclSum, r->comm, r->s));
        if (r->rank == 0) {
            std::thread([r] { CHECK_OK(ncclCommAbort(r->comm)); }).join();
            CHECK_OK(cudaStreamSynchronize(r->s));
            CHECK_EQ(ncclCommDestroy(r->comm), ncclInvalidArgument);
        } else {
            CHECK_EQ(outcome(r), ncclRemoteError);
            CHECK(says(ncclGetLastError(r->comm), "rank 0 aborted the communicator"));
        }
    });
}

/* The ranks that are left go on without the one that is gone. */
static void shrink(void)
{
    ranks(3, [](Rank *r) {
        int gone = 1, n = 0;
        ncclComm_t rest;
        if (r->rank == 1) {
            return;
        }
        CHECK_OK(ncclAllReduce(r->p, r->p, 4, ncclInt8, ncclSum, r->comm, r->s));
        CHECK_OK(ncclCommShrink(r->comm, &gone, 1, &rest, nullptr, NCCL_SHRINK_ABORT));
        CHECK_OK(ncclCommCount(rest, &n));
        CHECK_EQ(n, 2);
        CHECK_OK(ncclAllGather(r->p, r->p, 4, ncclInt8, rest, r->s));
        CHECK_OK(cudaStreamSynchronize(r->s));
        CHECK_EQ(emu_nccl_wire(rest, 0, 1), 4);
        CHECK_OK(ncclCommDestroy(rest));
    });
}

/* ncclInProgress until all have come. */
static void non_blocking(void)
{
    ncclUniqueId id;
    std::vector<std::thread> threads;
    CHECK_OK(ncclGetUniqueId(&id));
    for (int r = 0; r < 2; r++) {
        threads.emplace_back([r, id] {
            ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
            ncclComm_t c;
            ncclResult_t e = ncclInProgress;
            config.blocking = 0;
            CHECK_OK(cudaSetDevice(r));
            CHECK_EQ(ncclCommInitRankConfig(&c, 2, id, r, &config), ncclInProgress);
            while (e == ncclInProgress) {
                CHECK_OK(ncclCommGetAsyncError(c, &e));
            }
            CHECK_OK(e);
            CHECK_OK(ncclCommDestroy(c));
        });
    }
    for (std::thread &t : threads) {
        t.join();
    }
}

int main(void)
{
    mismatches();
    missing_peers();
    bad_calls();
    injected_failures();
    abort_elsewhere();
    shrink();
    non_blocking();
    return check_result("nccl errors");
}
