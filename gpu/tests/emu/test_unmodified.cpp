/*
 * test_unmodified.cpp - what nvcc built, linked with the real libraries' names, runs on the doubles
 *
 * Started with LD_LIBRARY_PATH naming the doubles and LD_PRELOAD the emulated bodies.  The launcher
 * in here is nvcc's, with <<<>>>; the test fails if the real cudart is loaded, for it has no GPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include <vector>

#include <nccl.h>

#include "gpu/tests/emu/check.h"
#include "gpu/tests/emu/compact.h"

static void compact(void)
{
    enum { N = 3000 };
    std::vector<uint32_t> in(N), out(N);
    uint32_t *d_in, *d_out;
    uint64_t *d_count, count = 0;
    void *work;
    for (uint32_t i = 0; i < N; i++) {
        in[i] = i % 3 ? 0 : i + 1;
    }
    CHECK_OK(cudaMalloc((void **)&d_in, N * 4));
    CHECK_OK(cudaMalloc((void **)&d_out, N * 4));
    CHECK_OK(cudaMalloc((void **)&d_count, 8));
    CHECK_OK(cudaMalloc(&work, emu_compact_workspace(N)));
    CHECK_OK(cudaMemcpy(d_in, in.data(), N * 4, cudaMemcpyHostToDevice));
    CHECK_OK(emu_compact(d_in, N, d_out, d_count, work, nullptr));
    CHECK_OK(cudaMemcpy(&count, d_count, 8, cudaMemcpyDeviceToHost));
    CHECK_OK(cudaMemcpy(out.data(), d_out, N * 4, cudaMemcpyDeviceToHost));
    CHECK_EQ(count, 1000);
    CHECK(out[0] == 1 && out[1] == 4 && out[999] == 2998);
    for (void *p : {(void *)d_in, (void *)d_out, (void *)d_count, work}) {
        CHECK_OK(cudaFree(p));
    }
}

static void exchange(void)
{
    ncclComm_t comms[2];
    char *p[2], got[2] = {0, 0};
    CHECK_OK(ncclCommInitAll(comms, 2, nullptr));
    CHECK_OK(ncclGroupStart());
    for (int r = 0; r < 2; r++) {
        CHECK_OK(cudaSetDevice(r));
        CHECK_OK(cudaMalloc((void **)&p[r], 2));
        CHECK_OK(cudaMemset(p[r], r + 1, 2));
        CHECK_OK(ncclAllGather(p[r] + r, p[r], 1, ncclInt8, comms[r], nullptr));
    }
    CHECK_OK(ncclGroupEnd());
    for (int r = 0; r < 2; r++) {
        CHECK_OK(cudaSetDevice(r));
        CHECK_OK(cudaMemcpy(got, p[r], 2, cudaMemcpyDeviceToHost));
        CHECK(got[0] == 1 && got[1] == 2);
        CHECK_OK(cudaFree(p[r]));
        CHECK_OK(ncclCommDestroy(comms[r]));
    }
}

int main(void)
{
    int n = 0;
    CHECK_OK(cudaGetDeviceCount(&n));
    if (n > 0) {
        compact();
        exchange();
    }
    return check_result("unmodified");
}
