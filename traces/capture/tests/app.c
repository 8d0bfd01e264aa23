/*
 * app.c - a program that uses NCCL, for the interposer: knows nothing of it
 *
 * app NRANKS [graph]: so many processes make the calls that PyTorch makes of NCCL, two rounds of them,
 * and check what they get.  With 'graph' the second round is captured to a CUDA graph and launched.
 * Run on the doubles of gpu/tests/emu.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _DEFAULT_SOURCE
#include <nccl.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define OK(call)                                                                                   \
    do {                                                                                           \
        int r_ = (int)(call);                                                                      \
        if (r_ != 0) {                                                                             \
            fprintf(stderr, "app: line %d: %s: %d\n", __LINE__, #call, r_);                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

enum { N = 3000, MAX_RANKS = 8 };

struct shared {
    ncclUniqueId id;
    volatile int made;
};

struct rank {
    int me, n;
    bool graph;
    ncclComm_t world, half;
    cudaStream_t stream;
    float *in, *out, host[N * MAX_RANKS];
};

/* All rows to all: rank r sends r + p + 1 elements to p, to itself too, as PyTorch does. */
static void exchange(struct rank *r)
{
    size_t to = 0, from = 0;

    OK(ncclGroupStart());
    for (int p = 0; p < r->n; p++) {
        size_t k = (size_t)(r->me + p + 1);

        OK(ncclSend(r->in + to, k, ncclFloat32, p, r->world, r->stream));
        OK(ncclRecv(r->out + from, k, ncclFloat32, p, r->world, r->stream));
        to += k;
        from += k;
    }
    OK(ncclGroupEnd());
}

static void round_of_calls(struct rank *r)
{
    size_t share = N / (size_t)r->n;

    OK(ncclAllReduce(r->in, r->out, N, ncclFloat32, ncclSum, r->world, r->stream));
    OK(ncclAllReduce(r->in, r->out, 10, ncclFloat32, ncclAvg, r->half, r->stream));
    OK(ncclAllGather(r->in, r->out, N, ncclBfloat16, r->world, r->stream));
    OK(ncclReduceScatter(r->in, r->out, share, ncclFloat32, ncclAvg, r->world, r->stream));
    OK(ncclBroadcast(r->in, r->out, 100, ncclInt64, 1, r->world, r->stream));
    exchange(r);
    /* a pipeline of two stages: forth and back in one group */
    OK(ncclGroupStart());
    OK(ncclSend(r->in, 50, ncclBfloat16, 1 - r->me % 2, r->half, r->stream));
    OK(ncclRecv(r->out, 50, ncclBfloat16, 1 - r->me % 2, r->half, r->stream));
    OK(ncclGroupEnd());
    OK(ncclReduce(r->in, r->out, 7, ncclFloat32, ncclSum, 0, r->world, r->stream));
    OK(ncclAllReduce(r->in, r->out, N, ncclFloat32, ncclSum, r->world, r->stream));
}

/* As PyTorch does it by default: no thread may do what could wait for the device. */
static void round_in_graph(struct rank *r)
{
    cudaGraphExec_t ready;
    cudaGraph_t graph;

    OK(cudaStreamBeginCapture(r->stream, cudaStreamCaptureModeGlobal));
    round_of_calls(r);
    OK(cudaStreamEndCapture(r->stream, &graph));
    OK(cudaGraphInstantiate(&ready, graph, 0));
    OK(cudaMemset(r->out, 0, sizeof r->host));
    OK(cudaGraphLaunch(ready, r->stream));
    OK(cudaStreamSynchronize(r->stream));
    OK(cudaGraphExecDestroy(ready));
    OK(cudaGraphDestroy(graph));
}

static int run(struct rank *r, struct shared *shared)
{
    int bad = 0;

    OK(cudaSetDevice(r->me));
    if (r->me == 0) {
        OK(ncclGetUniqueId(&shared->id));
        __atomic_store_n(&shared->made, 1, __ATOMIC_RELEASE);
    }
    while (__atomic_load_n(&shared->made, __ATOMIC_ACQUIRE) == 0)
        usleep(1000);
    OK(ncclCommInitRank(&r->world, r->n, shared->id, r->me));
    OK(ncclCommSplit(r->world, r->me / 2, r->me, &r->half, NULL));
    OK(cudaStreamCreate(&r->stream));
    OK(cudaMalloc((void **)&r->in, sizeof r->host));
    OK(cudaMalloc((void **)&r->out, sizeof r->host));
    for (size_t i = 0; i < N * MAX_RANKS; i++)
        r->host[i] = (float)(i % 97) + (float)r->me;
    OK(cudaMemcpy(r->in, r->host, sizeof r->host, cudaMemcpyHostToDevice));
    for (int k = 0; k < 2; k++) {
        if (r->graph && k == 1)
            round_in_graph(r);
        else
            round_of_calls(r);
        OK(cudaStreamSynchronize(r->stream));
    }
    OK(cudaMemcpy(r->host, r->out, N * sizeof(float), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < N; i++)
        bad += r->host[i] != (float)(r->n * (int)(i % 97)) + (float)(r->n * (r->n - 1) / 2);
    OK(ncclCommDestroy(r->half));
    OK(ncclCommDestroy(r->world));
    return bad;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 4, status, bad = 0;
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (shared == MAP_FAILED || n < 2 || n > MAX_RANKS || n % 2 != 0)
        return 2;
    for (int i = 0; i < n; i++)
        if (fork() == 0) {
            struct rank *r = calloc(1, sizeof *r);
            int wrong;

            r->me = i;
            r->n = n;
            r->graph = argc > 2 && strcmp(argv[2], "graph") == 0;
            wrong = run(r, shared);
            if (wrong != 0)
                fprintf(stderr, "app: rank %d: %d wrong elements\n", i, wrong);
            free(r);
            exit(wrong != 0); /* not _exit(): the interposer writes at exit */
        }
    for (int i = 0; i < n; i++)
        bad |= wait(&status) < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    return bad;
}
