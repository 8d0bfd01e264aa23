/*
 * test_nccl.cpp - the NCCL double between threads: all collectives, eager and captured, with delays
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <functional>
#include <thread>
#include <vector>

#include "gpu/tests/emu/check.h"
#include "gpu/tests/emu/emu.h"
#include "gpu/tests/emu/nccl_rank.h"

static void run(int n, void (*rank)(int, int, const ncclUniqueId *))
{
    ncclUniqueId id;
    std::vector<std::thread> threads;
    CHECK_OK(ncclGetUniqueId(&id));
    for (int r = 0; r < n; r++) {
        threads.emplace_back(rank, r, n, &id);
    }
    for (std::thread &t : threads) {
        t.join();
    }
}

/* One thread, several devices: calls of all ranks in one group. */
static void one_thread(void)
{
    enum { N = 3, BYTES = 4096 };
    ncclComm_t comms[N], halves[N];
    void *p[N];
    CHECK_OK(ncclCommInitAll(comms, N, nullptr));
    CHECK_OK(ncclGroupStart());
    for (int r = 0; r < N; r++) {
        CHECK_OK(ncclCommSplit(comms[r], 0, r, &halves[r], nullptr));
    }
    CHECK_OK(ncclGroupEnd());
    CHECK_OK(ncclGroupStart());
    for (int r = 0; r < N; r++) {
        CHECK_OK(cudaSetDevice(r));
        CHECK_OK(ncclMemAlloc(&p[r], BYTES * N));
        CHECK_OK(cudaMemset(p[r], r + 1, BYTES * N));
        CHECK_OK(ncclAllGather((char *)p[r] + r * BYTES, p[r], BYTES, ncclUint8, halves[r], 0));
    }
    CHECK_OK(ncclGroupEnd());
    for (int r = 0; r < N; r++) {
        std::vector<char> got(BYTES * N);
        CHECK_OK(cudaSetDevice(r));
        CHECK_OK(cudaMemcpy(got.data(), p[r], got.size(), cudaMemcpyDeviceToHost));
        CHECK(got[0] == 1 && got[BYTES] == 2 && got[BYTES * N - 1] == N);
        CHECK_OK(ncclMemFree(p[r]));
        CHECK_OK(ncclCommDestroy(halves[r]));
        CHECK_OK(ncclCommDestroy(comms[r]));
    }
    CHECK_OK(cudaSetDevice(0));
}

/* Two splits of one communicator in a group, of which some ranks are in one only. */
static void two_splits(void)
{
    enum { N = 3 };
    ncclUniqueId id;
    std::vector<std::thread> threads;
    CHECK_OK(ncclGetUniqueId(&id));
    for (int r = 0; r < N; r++) {
        threads.emplace_back([r, id] {
            ncclComm_t world, a, b;
            int n = 0;
            CHECK_OK(cudaSetDevice(r));
            CHECK_OK(ncclCommInitRank(&world, N, id, r));
            for (int turn = 0; turn < 5; turn++) {
                CHECK_OK(ncclGroupStart());
                CHECK_OK(ncclCommSplit(world, r % 2, -r, &a, nullptr));
                CHECK_OK(
                    ncclCommSplit(world, r == turn % N ? NCCL_SPLIT_NOCOLOR : 1, r, &b, nullptr));
                CHECK_OK(ncclGroupEnd());
                CHECK_OK(ncclCommCount(a, &n));
                CHECK_EQ(n, r % 2 ? 1 : 2);
                CHECK((b == nullptr) == (r == turn % N));
                if (b) {
                    CHECK_OK(ncclCommCount(b, &n));
                    CHECK_EQ(n, 2);
                    CHECK_OK(ncclCommDestroy(b));
                }
                CHECK_OK(ncclCommDestroy(a));
            }
            CHECK_OK(ncclGroupStart());
            for (int i = 0; i < 4; i++) {
                CHECK_OK(ncclCommSplit(world, NCCL_SPLIT_NOCOLOR, r, &a, nullptr));
            }
            CHECK_EQ(ncclCommSplit(world, NCCL_SPLIT_NOCOLOR, r, &b, nullptr), ncclInvalidUsage);
            (void)ncclGroupEnd();
            CHECK_OK(ncclCommDestroy(world));
        });
    }
    for (std::thread &t : threads) {
        t.join();
    }
}

int main(void)
{
    struct emu_options o;
    emu_default_options(&o);
    for (int n : {2, 3, 5, 8}) {
        run(n, nccl_rank);
    }
    run(2, nccl_rank_types);
    run(3, nccl_rank_types);
    one_thread();
    two_splits();
    o.delay_us = 300;
    o.seed = 5;
    emu_set_options(&o);
    run(3, nccl_rank);
    o.delay_us = 0;
    o.lazy = 1; /* with five ranks a gather's root has a large buffer, the others small ones */
    emu_set_options(&o);
    run(5, nccl_rank);
    one_thread();
    return check_result("nccl");
}
