/*
 * real_calls.c - every call to NCCL that does something without a GPU, and what it returned
 *
 * Linked with libnccl.so.2 and knowing nothing of zipccl.  run.sh compares what it prints with and without the
 * libraries in between.  Nothing here depends on there being no GPU.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <nccl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* The result and what NCCL says of it. */
#define SAY(call) say(#call, (call))

static void say(const char *what, ncclResult_t result)
{
    const char *last = ncclGetLastError(NULL);

    printf("%s: %d, last error \"%s\"\n", what, (int)result, last != NULL ? last : "none");
}

static ncclResult_t start(void)
{
    return ((ncclResult_t(*)(void))(void *)ncclGroupStart)();
}

static ncclResult_t end(void)
{
    return ((ncclResult_t(*)(void))(void *)ncclGroupEnd)();
}

static void texts(void)
{
    int version = 0;

    SAY(ncclGetVersion(&version));
    SAY(ncclGetVersion(NULL));
    printf("version %d\n", version);
    for (int i = -1; i <= (int)ncclNumResults; i++)
        printf("%d is \"%s\"\n", i, ncclGetErrorString((ncclResult_t)i));
}

static void no_communicator(void)
{
    ncclResult_t async = ncclSuccess;
    ncclComm_t out = NULL;
    ncclRedOp_t op = ncclSum;
    ncclWindow_t window = NULL;
    void *handle = NULL;
    int n = -1;

    SAY(ncclCommCount(NULL, &n));
    SAY(ncclCommUserRank(NULL, &n));
    SAY(ncclCommCuDevice(NULL, &n));
    SAY(ncclCommGetAsyncError(NULL, &async));
    SAY(ncclCommSplit(NULL, 0, 0, &out, NULL));
    SAY(ncclCommRegister(NULL, &n, sizeof n, &handle));
    SAY(ncclCommDeregister(NULL, NULL));
    SAY(ncclCommWindowRegister(NULL, &n, sizeof n, &window, 0));
    SAY(ncclRedOpCreatePreMulSum(&op, &n, ncclInt32, ncclScalarHostImmediate, NULL));
    SAY(ncclRedOpDestroy(ncclSum, NULL));
    SAY(ncclCommFinalize(NULL));
    SAY(ncclCommAbort(NULL));
    SAY(ncclCommDestroy(NULL));
    SAY(ncclMemFree(NULL));
    printf("left alone: %d %p %p\n", n, (void *)out, handle);
}

static void data(void)
{
    float a[4] = {1, 2, 3, 4}, b[4] = {0};

    SAY(ncclAllGather(a, b, 2, ncclFloat, NULL, NULL));
    SAY(ncclAlltoAll(a, b, 2, ncclFloat, NULL, NULL));
    SAY(ncclBroadcast(a, b, 2, ncclFloat, 0, NULL, NULL));
    SAY(ncclBcast(a, 2, ncclFloat, 0, NULL, NULL));
    SAY(ncclReduceScatter(a, b, 2, ncclFloat, ncclSum, NULL, NULL));
    SAY(ncclAllReduce(a, b, 2, ncclFloat, ncclSum, NULL, NULL));
    SAY(ncclReduce(a, b, 2, ncclFloat, ncclSum, 0, NULL, NULL));
    SAY(ncclGather(a, b, 2, ncclFloat, 0, NULL, NULL));
    SAY(ncclScatter(a, b, 2, ncclFloat, 0, NULL, NULL));
    SAY(ncclSend(a, 2, ncclFloat, 0, NULL, NULL));
    SAY(ncclRecv(b, 2, ncclFloat, 0, NULL, NULL));
    printf("left alone: %g %g\n", (double)a[3], (double)b[0]);
}

static void groups(void)
{
    float a[4] = {0};

    SAY(end()); /* of none */
    SAY(start());
    SAY(start());
    SAY(end());
    SAY(end());
    SAY(start());
    SAY(ncclSend(a, 2, ncclFloat, 0, NULL, NULL));
    SAY(ncclRecv(a, 2, ncclFloat, 0, NULL, NULL));
    SAY(end());
    SAY(start());
    SAY(ncclGroupSimulateEnd(NULL));
    SAY(start());
    data();
    SAY(end());
    SAY(end());
}

static void finish(const char *what, ncclComm_t *comm)
{
    int nranks = -1;

    if (*comm == NULL)
        return;
    say(what, ncclCommCount(*comm, &nranks));
    printf("%d ranks\n", nranks);
    say(what, ncclCommDestroy(*comm));
    *comm = NULL;
}

static void births(void)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER, broken = NCCL_CONFIG_INITIALIZER;
    static const ncclUniqueId zero;
    ncclComm_t comm = NULL, both[2] = {NULL, NULL};
    ncclUniqueId id = zero;

    broken.magic = 0;
    SAY(ncclGetUniqueId(NULL));
    SAY(ncclGetUniqueId(&id));
    printf("an id: %d\n", memcmp(&id, &zero, sizeof id) != 0);
    SAY(ncclCommInitRank(&comm, 1, id, 0));
    finish("one rank", &comm);
    SAY(ncclCommInitRank(&comm, 0, id, 0));
    SAY(ncclCommInitRank(&comm, 2, id, 5));
    SAY(ncclCommInitRank(NULL, 1, id, 0));
    SAY(ncclGetUniqueId(&id));
    SAY(ncclCommInitRankConfig(&comm, 1, id, 0, &config));
    finish("with a configuration", &comm);
    SAY(ncclCommInitRankConfig(&comm, 1, id, 0, &broken));
    SAY(ncclCommInitRankScalable(&comm, 1, 0, 0, NULL, &config));
    SAY(ncclCommInitAll(NULL, 1, NULL));
    SAY(ncclCommInitAll(both, 0, NULL));
    SAY(ncclCommInitAll(both, 1, NULL));
    finish("all", &both[0]);
    SAY(start());
    SAY(ncclGetUniqueId(&id));
    SAY(ncclCommInitRank(&comm, 1, id, 0));
    SAY(end());
    finish("in a group", &comm);
}

static void *in_a_thread(void *unused)
{
    births();
    return unused;
}

int main(int argc, char **argv)
{
    void *nccl = dlopen("libnccl.so.2", RTLD_NOW | RTLD_NOLOAD);
    pthread_t thread;

    texts();
    no_communicator();
    data();
    groups();
    births();
    if (pthread_create(&thread, NULL, in_a_thread, NULL) == 0)
        pthread_join(thread, NULL);
    for (int i = 1; i < argc && nccl != NULL; i++)
        printf("%s: %s\n", argv[i], dlsym(nccl, argv[i]) != NULL ? "there" : "not there");
    return nccl == NULL;
}
