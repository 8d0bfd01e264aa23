/*
 * nccl_rank.cpp - what one rank does to try the NCCL double
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/tests/emu/nccl_rank.h"

#include <functional>
#include <vector>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "gpu/tests/emu/check.h"
#include "gpu/tests/emu/emu.h"

namespace
{
enum { K = 5003 }; /* elements of a share: more bytes than a ring holds, and uneven */

struct Rank {
    int rank, n;
    ncclComm_t comm;
    cudaStream_t s, s2;
    int32_t *in, *out; /* [n * K] on the device */
    std::vector<int32_t> host;
    bool captured; /* operations are captured, and replayed twice */
};

/* Value 'i' of rank 'p's input. */
int32_t value(int p, size_t i)
{
    return (int32_t)(i * 7 + (size_t)p);
}

void fill(Rank *r)
{
    const size_t nbytes = (size_t)r->n * K * sizeof(int32_t);
    for (size_t i = 0; i < r->host.size(); i++) {
        r->host[i] = value(r->rank, i);
    }
    CHECK_OK(cudaMemcpyAsync(r->in, r->host.data(), nbytes, cudaMemcpyHostToDevice, r->s));
    CHECK_OK(cudaMemsetAsync(r->out, 0, nbytes, r->s));
}

/* Run 'op' eagerly, or as a graph that is launched twice with fresh input each time. */
void perform(Rank *r, const std::function<void()> &op)
{
    fill(r);
    if (!r->captured) {
        op();
        return;
    }
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK_OK(cudaStreamBeginCapture(r->s, cudaStreamCaptureModeThreadLocal));
    op();
    CHECK_OK(cudaStreamEndCapture(r->s, &graph));
    CHECK_OK(cudaGraphInstantiate(&exec, graph, 0));
    CHECK_OK(cudaGraphDestroy(graph));
    CHECK_OK(cudaGraphLaunch(exec, r->s));
    fill(r);
    CHECK_OK(cudaGraphLaunch(exec, r->s));
    CHECK_OK(cudaGraphExecDestroy(exec));
}

/* The first 'n' elements of 'p' are what 'expected' says of their places. */
bool holds(Rank *r, const int32_t *p, size_t n, const std::function<int32_t(size_t)> &expected)
{
    std::vector<int32_t> got(n);
    CHECK_OK(cudaMemcpyAsync(got.data(), p, n * 4, cudaMemcpyDeviceToHost, r->s));
    CHECK_OK(cudaStreamSynchronize(r->s));
    for (size_t i = 0; i < n; i++) {
        if (got[i] != expected(i)) {
            printf("rank %d of %d: element %zu is %d, not %d\n", r->rank, r->n, i, got[i],
                   expected(i));
            return false;
        }
    }
    return true;
}

void move_data(Rank *r)
{
    const int n = r->n, me = r->rank, last = n - 1;
    const size_t all = (size_t)n * K;
    perform(r, [=] { CHECK_OK(ncclAllGather(r->in, r->out, K, ncclInt32, r->comm, r->s)); });
    CHECK(holds(r, r->out, all, [](size_t i) { return value((int)(i / K), i % K); }));
    perform(r,
            [=] { CHECK_OK(ncclAllGather(r->in + me * K, r->in, K, ncclInt32, r->comm, r->s)); });
    CHECK(holds(r, r->in, all, [](size_t i) { return value((int)(i / K), i); }));
    perform(r, [=] { CHECK_OK(ncclAlltoAll(r->in, r->out, K, ncclInt32, r->comm, r->s)); });
    CHECK(holds(r, r->out, all,
                [me](size_t i) { return value((int)(i / K), (size_t)me * K + i % K); }));
    perform(r, [=] { CHECK_OK(ncclBroadcast(r->in, r->out, K, ncclInt32, last, r->comm, r->s)); });
    CHECK(holds(r, r->out, K, [last](size_t i) { return value(last, i); }));
    perform(r, [=] { CHECK_OK(ncclBcast(r->in, K, ncclInt32, last, r->comm, r->s)); });
    CHECK(holds(r, r->in, K, [last](size_t i) { return value(last, i); }));
    perform(r, [=] { CHECK_OK(ncclGather(r->in, r->out, K, ncclInt32, last, r->comm, r->s)); });
    CHECK(holds(r, r->out, all,
                [me, last](size_t i) { return me == last ? value((int)(i / K), i % K) : 0; }));
    perform(r, [=] { CHECK_OK(ncclScatter(r->in, r->out, K, ncclInt32, last, r->comm, r->s)); });
    CHECK(holds(r, r->out, K, [me, last](size_t i) { return value(last, (size_t)me * K + i); }));
}

void reduce_data(Rank *r)
{
    const int n = r->n, me = r->rank, ranks = n * (n - 1) / 2;
    const auto sum = [n, ranks](size_t i) { return value(0, i) * n + ranks; };
    perform(r,
            [=] { CHECK_OK(ncclAllReduce(r->in, r->out, K, ncclInt32, ncclSum, r->comm, r->s)); });
    CHECK(holds(r, r->out, K, sum));
    perform(r,
            [=] { CHECK_OK(ncclAllReduce(r->in, r->in, K, ncclInt32, ncclMax, r->comm, r->s)); });
    CHECK(holds(r, r->in, K, [n](size_t i) { return value(n - 1, i); }));
    perform(r, [=] {
        CHECK_OK(ncclReduceScatter(r->in, r->out, K, ncclInt32, ncclSum, r->comm, r->s));
    });
    CHECK(holds(r, r->out, K, [me, sum](size_t i) { return sum((size_t)me * K + i); }));
    perform(r,
            [=] { CHECK_OK(ncclReduce(r->in, r->out, K, ncclInt32, ncclSum, 1, r->comm, r->s)); });
    CHECK(holds(r, r->out, K, [me, sum](size_t i) { return me == 1 ? sum(i) : 0; }));
}

/* Uneven all-to-all on two streams, and two collectives in one group. */
void group_calls(Rank *r)
{
    const int n = r->n, me = r->rank;
    perform(r, [=] {
        cudaEvent_t e;
        CHECK_OK(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
        CHECK_OK(cudaEventRecord(e, r->s));
        CHECK_OK(cudaStreamWaitEvent(r->s2, e, 0));
        CHECK_OK(ncclGroupStart());
        for (int p = 0; p < n; p++) {
            CHECK_OK(ncclSend(r->in + p * K, (size_t)(K - p), ncclInt32, p, r->comm, r->s));
            CHECK_OK(ncclRecv(r->out + p * K, (size_t)(K - me), ncclInt32, p, r->comm,
                              p % 2 ? r->s2 : r->s));
        }
        CHECK_OK(ncclGroupEnd());
        CHECK_OK(cudaEventRecord(e, r->s2));
        CHECK_OK(cudaStreamWaitEvent(r->s, e, 0));
        CHECK_OK(cudaEventDestroy(e));
    });
    CHECK(holds(r, r->out, (size_t)n * K, [me](size_t i) {
        const bool sent = i % K < (size_t)(K - me);
        return sent ? value((int)(i / K), (size_t)me * K + i % K) : 0;
    }));
    perform(r, [=] {
        CHECK_OK(ncclGroupStart());
        CHECK_OK(ncclAllReduce(r->in, r->out, 10, ncclInt32, ncclMin, r->comm, r->s));
        CHECK_OK(ncclAllGather(r->in, r->out + 10, 10, ncclInt32, r->comm, r->s));
        CHECK_OK(ncclGroupEnd());
    });
    CHECK(holds(r, r->out, 20,
                [](size_t i) { return value(i < 10 ? 0 : (int)(i - 10) / 10, i % 10); }));
}

/* Halves by colour, ranks in reverse; the first rank of the odd half stays out. */
void split(Rank *r)
{
    ncclComm_t half;
    const int color = r->rank == 1 ? NCCL_SPLIT_NOCOLOR : r->rank % 2;
    int n = 0, rank = 0;
    CHECK_OK(ncclCommSplit(r->comm, color, -r->rank, &half, nullptr));
    CHECK((half == nullptr) == (r->rank == 1));
    if (!half) {
        return;
    }
    CHECK_OK(ncclCommCount(half, &n));
    CHECK_OK(ncclCommUserRank(half, &rank));
    const int expected = color == 0 ? (r->n + 1) / 2 : r->n / 2 - 1;
    const int first = (r->n - 1) / 2 * 2 + (color ? (r->n % 2 ? -1 : 1) : 0);
    CHECK_EQ(n, expected);
    CHECK_EQ(rank, (first - r->rank) / 2);
    fill(r);
    CHECK_OK(ncclAllGather(r->in, r->out, K, ncclInt32, half, r->s));
    CHECK(holds(r, r->out, (size_t)n * K,
                [first](size_t i) { return value(first - (int)(i / K) * 2, i % K); }));
    CHECK_OK(ncclCommFinalize(half));
    CHECK_OK(ncclCommDestroy(half));
}

void count_bytes(Rank *r)
{
    const int next = (r->rank + 1) % r->n;
    const uint64_t before = emu_nccl_wire(r->comm, r->rank, next);
    CHECK_OK(ncclAllGather(r->in, r->out, K, ncclInt32, r->comm, r->s));
    CHECK_OK(cudaStreamSynchronize(r->s));
    CHECK_EQ(emu_nccl_wire(r->comm, r->rank, next) - before, K * 4);
    CHECK_EQ(emu_nccl_wire(r->comm, r->rank, r->rank), 0);
}

void open_rank(Rank *r, int rank, int nranks, const ncclUniqueId *id)
{
    void *p;
    r->rank = rank;
    r->n = nranks;
    r->captured = false;
    r->host.resize((size_t)nranks * K);
    CHECK_OK(cudaSetDevice(rank));
    CHECK_OK(ncclCommInitRank(&r->comm, nranks, *id, rank));
    CHECK_OK(cudaStreamCreateWithFlags(&r->s, cudaStreamNonBlocking));
    CHECK_OK(cudaStreamCreateWithFlags(&r->s2, cudaStreamNonBlocking));
    CHECK_OK(cudaMalloc(&p, (size_t)nranks * K * 4));
    r->in = (int32_t *)p;
    CHECK_OK(cudaMalloc(&p, (size_t)nranks * K * 4));
    r->out = (int32_t *)p;
}

void close_rank(Rank *r)
{
    ncclResult_t error;
    CHECK_OK(cudaStreamSynchronize(r->s));
    CHECK_OK(ncclCommGetAsyncError(r->comm, &error));
    CHECK_OK(error);
    CHECK_OK(cudaFree(r->in));
    CHECK_OK(cudaFree(r->out));
    CHECK_OK(cudaStreamDestroy(r->s));
    CHECK_OK(cudaStreamDestroy(r->s2));
    CHECK_OK(ncclCommFinalize(r->comm));
    CHECK_OK(ncclCommDestroy(r->comm));
}

template <class T>
void reduce_type(Rank *r, ncclDataType_t type, ncclRedOp_t op, double mine, double expected)
{
    T x[3] = {(T)(float)mine, (T)(float)mine, (T)(float)mine}, y[3];
    CHECK_OK(cudaMemcpyAsync(r->in, x, sizeof x, cudaMemcpyHostToDevice, r->s));
    CHECK_OK(ncclAllReduce(r->in, r->out, 3, type, op, r->comm, r->s));
    CHECK_OK(cudaMemcpyAsync(y, r->out, sizeof y, cudaMemcpyDeviceToHost, r->s));
    CHECK_OK(cudaStreamSynchronize(r->s));
    CHECK((double)(float)y[0] == expected && (double)(float)y[2] == expected);
}

/* Small whole numbers, which every type holds. */
template <class T> void reduce_all_ops(Rank *r, ncclDataType_t type)
{
    const int n = r->n;
    double product = 1;
    T two = (T)2.0f;
    ncclRedOp_t twice;
    for (int p = 0; p < n; p++) {
        product *= p % 2 + 1;
    }
    reduce_type<T>(r, type, ncclSum, 2, 2.0 * n);
    reduce_type<T>(r, type, ncclProd, r->rank % 2 + 1, product);
    reduce_type<T>(r, type, ncclMax, r->rank, n - 1);
    reduce_type<T>(r, type, ncclMin, r->rank + 1, 1);
    if (n == 2) { /* elsewhere 1/n is no number of every type */
        reduce_type<T>(r, type, ncclAvg, 2 * r->rank + 2, 3);
    }
    CHECK_OK(ncclRedOpCreatePreMulSum(&twice, &two, type, ncclScalarHostImmediate, r->comm));
    reduce_type<T>(r, type, twice, 1, 2.0 * n);
    CHECK_OK(ncclRedOpDestroy(twice, r->comm));
}
} // namespace

void nccl_rank(int rank, int nranks, const ncclUniqueId *id)
{
    Rank r;
    open_rank(&r, rank, nranks, id);
    for (int captured = 0; captured < 2; captured++) {
        r.captured = captured;
        move_data(&r);
        reduce_data(&r);
        group_calls(&r);
    }
    split(&r);
    count_bytes(&r);
    close_rank(&r);
}

void nccl_rank_types(int rank, int nranks, const ncclUniqueId *id)
{
    Rank r;
    open_rank(&r, rank, nranks, id);
    reduce_all_ops<int8_t>(&r, ncclInt8);
    reduce_all_ops<uint8_t>(&r, ncclUint8);
    reduce_all_ops<int32_t>(&r, ncclInt32);
    reduce_all_ops<uint32_t>(&r, ncclUint32);
    reduce_all_ops<int64_t>(&r, ncclInt64);
    reduce_all_ops<uint64_t>(&r, ncclUint64);
    reduce_all_ops<float>(&r, ncclFloat32);
    reduce_all_ops<double>(&r, ncclFloat64);
    reduce_all_ops<__half>(&r, ncclFloat16);
    reduce_all_ops<__nv_bfloat16>(&r, ncclBfloat16);
    reduce_all_ops<__nv_fp8_e4m3>(&r, ncclFloat8e4m3);
    reduce_all_ops<__nv_fp8_e5m2>(&r, ncclFloat8e5m2);
    close_rank(&r);
}
