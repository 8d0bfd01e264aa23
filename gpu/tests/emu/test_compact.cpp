/*
 * test_compact.cpp - the example kernel gives the right answer under every schedule
 *
 * 20 seeds over policies, block orders and resident blocks; sizes around the tile's.  Linked with
 * the emulator and the double, so this is also the shortest program that uses both.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/emu/compact.h"

#include <stdio.h>
#include <stdlib.h>
#include <vector>

#include "gpu/tests/emu/check.h"
#include "gpu/tests/emu/emu.h"

/* Starting a thread costs half a millisecond under TSan. */
#if defined(__SANITIZE_THREAD__)
static const uint64_t sizes[] = {1025};
enum { LARGE = 2049, MIDDLE = 2049, SEEDS = 2 };
#else
static const uint64_t sizes[] = {0, 1, 31, 1023, 1024, 1025, 5000, 20000};
enum { LARGE = 20000, MIDDLE = 9000, SEEDS = 20 };
#endif

static std::vector<uint32_t> values(uint64_t n, uint64_t seed)
{
    std::vector<uint32_t> v(n);
    for (uint32_t &x : v) {
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        x = seed >> 62 ? (uint32_t)(seed >> 20) | 1 : 0;
    }
    return v;
}

static void run(uint64_t n, uint64_t seed)
{
    const std::vector<uint32_t> in = values(n, seed);
    std::vector<uint32_t> expected, got(n);
    for (uint32_t x : in) {
        if (x) {
            expected.push_back(x);
        }
    }
    uint32_t *d_in, *d_out;
    uint64_t *d_count, count = 0;
    void *d_work;
    cudaStream_t s;
    CHECK_OK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
    CHECK_OK(cudaMalloc((void **)&d_in, n * 4));
    CHECK_OK(cudaMalloc((void **)&d_out, n * 4));
    CHECK_OK(cudaMalloc((void **)&d_count, 8));
    CHECK_OK(cudaMalloc(&d_work, emu_compact_workspace(n)));
    CHECK_OK(cudaMemcpyAsync(d_in, in.data(), n * 4, cudaMemcpyHostToDevice, s));
    CHECK_OK(emu_compact(d_in, n, d_out, d_count, d_work, s));
    CHECK_OK(cudaMemcpyAsync(&count, d_count, 8, cudaMemcpyDeviceToHost, s));
    CHECK_OK(cudaMemcpyAsync(got.data(), d_out, n * 4, cudaMemcpyDeviceToHost, s));
    if (cudaStreamSynchronize(s) != cudaSuccess) {
        printf("%s\n", emu_error());
        exit(1);
    }
    got.resize(count < n ? count : n);
    CHECK(count == expected.size() && got == expected);
    CHECK_OK(cudaFree(d_in));
    CHECK_OK(cudaFree(d_out));
    CHECK_OK(cudaFree(d_count));
    CHECK_OK(cudaFree(d_work));
    CHECK_OK(cudaStreamDestroy(s));
}

int main(void)
{
    struct emu_options o;
    emu_default_options(&o);
    for (uint64_t n : sizes) {
        run(n, n + 1);
    }
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        o.seed = seed;
        o.policy = (int)(seed % 3);
        o.order = (int)(seed / 3 % 3);
        o.resident = seed % 2 ? 4 : 1;
        emu_set_options(&o);
        run(MIDDLE, seed);
    }
    emu_default_options(&o);
    o.workers = 3;
    emu_set_options(&o);
    run(LARGE, 7);
    return check_result("compact");
}
