/*
 * loader.c - a program that loads NCCL as Python bindings do: dlopen() and dlsym(), no linking
 *
 * loader [missing NAME]   with a name: fails unless dlsym() says that it is not there
 * loader twice PATH       loads a second NCCL by its path before it makes a communicator
 * loader beside PATH OURS opens one NCCL by its path and then uses another, as vLLM does after PyTorch
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <nccl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 2, N = 5000 };

static void *find(void *handle, const char *name)
{
    void *symbol = dlsym(handle, name);

    if (symbol == NULL) {
        fprintf(stderr, "no %s: %s\n", name, dlerror());
        exit(1);
    }
    return symbol;
}

#define FUNCTION(handle, name) ((__typeof__(&name))find(handle, #name))

static int gather(void *nccl, void *cuda)
{
    ncclComm_t comms[RANKS];
    cudaStream_t streams[RANKS];
    unsigned char *send[RANKS], *recv[RANKS], *host = malloc((size_t)RANKS * N * 2);
    int bad = 0;

    if (host == NULL || FUNCTION(nccl, ncclCommInitAll)(comms, RANKS, NULL) != ncclSuccess)
        return 1;
    for (int r = 0; r < RANKS; r++) {
        memset(host, r + 1, N * 2);
        if (FUNCTION(cuda, cudaSetDevice)(r) != cudaSuccess ||
            FUNCTION(cuda, cudaStreamCreate)(&streams[r]) != cudaSuccess ||
            ((cudaError_t(*)(void **, size_t))find(cuda, "cudaMalloc"))((void **)&send[r], N * 2) !=
                cudaSuccess ||
            ((cudaError_t(*)(void **, size_t))find(cuda, "cudaMalloc"))(
                (void **)&recv[r], (size_t)RANKS * N * 2) != cudaSuccess ||
            FUNCTION(cuda, cudaMemcpy)(send[r], host, N * 2, cudaMemcpyHostToDevice) != cudaSuccess)
            return 1;
    }
    (void)((ncclResult_t(*)(void))find(nccl, "ncclGroupStart"))();
    for (int r = 0; r < RANKS; r++)
        (void)FUNCTION(nccl, ncclAllGather)(send[r], recv[r], N, ncclBfloat16, comms[r],
                                            streams[r]);
    if (((ncclResult_t(*)(void))find(nccl, "ncclGroupEnd"))() != ncclSuccess)
        return 1;
    for (int r = 0; r < RANKS; r++) {
        if (FUNCTION(cuda, cudaStreamSynchronize)(streams[r]) != cudaSuccess ||
            FUNCTION(cuda, cudaMemcpy)(host, recv[r], (size_t)RANKS * N * 2,
                                       cudaMemcpyDeviceToHost) != cudaSuccess)
            return 1;
        for (int i = 0; i < RANKS * N * 2; i++)
            bad += host[i] != i / (N * 2) + 1;
    }
    for (int r = 0; r < RANKS; r++)
        (void)FUNCTION(nccl, ncclCommDestroy)(comms[r]);
    free(host);
    printf("loader: wrong %d\n", bad);
    return bad != 0;
}

int main(int argc, char **argv)
{
    bool beside = argc == 4 && strcmp(argv[1], "beside") == 0;
    void *nccl, *cuda;
    int version = 0;

    if (beside && dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    nccl = dlopen(beside ? argv[3] : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (nccl == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    if (FUNCTION(nccl, ncclGetVersion)(&version) != ncclSuccess)
        return 1;
    if (argc == 3 && strcmp(argv[1], "missing") == 0) {
        /* Not ours alone: whoever looks in global scope must not find it either. */
        int there = dlsym(nccl, argv[2]) != NULL || dlsym(RTLD_DEFAULT, argv[2]) != NULL;

        printf("loader: %s is %s\n", argv[2], there ? "there" : "not there");
        return there;
    }
    if (argc == 3 && strcmp(argv[1], "twice") == 0 &&
        dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) == NULL)
        return 1;
    cuda = dlopen("libcudart.so.13", RTLD_NOW | RTLD_LOCAL);
    return cuda != NULL ? gather(nccl, cuda) : 1;
}
