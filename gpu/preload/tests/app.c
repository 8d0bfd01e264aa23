/*
 * app.c - an ordinary NCCL program for tests of the preloaded library
 *
 * app SCENARIO NRANKS       ranks are threads
 * app SCENARIO processes    ranks are processes, the unique id goes through the file $APP_ID
 *
 * With $APP_SAY it tells rank 0's last error, and what of the doubles was used in all.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#define _GNU_SOURCE
#include "gpu/preload/tests/app.h"

#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

int wrong;

static const struct {
    const char *name;
    void (*run)(struct app *app);
} scenarios[] = {{"collectives", run_collectives},
                 {"groups", run_groups},
                 {"split", run_split},
                 {"abort", run_abort},
                 {"control", run_control},
                 {"rare", run_rare},
                 {"watched", run_watched},
                 {"stuck", run_stuck},
                 {"steady", run_steady},
                 {"many", run_many},
                 {"endings", run_endings},
                 {"torch", run_torch},
                 {"torch_hang", run_torch_hang}};

static ncclUniqueId id;
ncclUniqueId app_more_ids[NIDS];

/* APP_FAIL=NAME:N lets the N-th call from here of a function of the doubles fail. */
static void arm(void)
{
    const char *text = getenv("APP_FAIL"), *colon = text != NULL ? strchr(text, ':') : NULL;
    void *symbol = dlsym(RTLD_DEFAULT, "emu_fail");
    void (*fail)(const char *, int, int);
    char name[64];

    if (colon == NULL)
        return;
    if (symbol == NULL)
        exit(2);
    memcpy(&fail, &symbol, sizeof symbol);
    (void)snprintf(name, sizeof name, "%.*s", (int)(colon - text), text);
    fail(name, atoi(colon + 1), cudaErrorMemoryAllocation);
}

static void run_rank(struct app *app)
{
    CHECK_CUDA(cudaSetDevice(app->rank % 8));
    CHECK_CUDA(cudaStreamCreate(&app->stream));
    arm();
    CHECK_NCCL(ncclCommInitRank(&app->comm, app->nranks, id, app->rank));
    for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++)
        if (strcmp(scenarios[i].name, app->scenario) == 0)
            scenarios[i].run(app);
    if (getenv("APP_SAY") != NULL && app->rank == 0)
        printf("last error: %s\n", ncclGetLastError(app->comm));
    if (app->comm != NULL)
        CHECK_NCCL(ncclCommDestroy(app->comm));
    CHECK_CUDA(cudaStreamDestroy(app->stream));
}

static void *rank_thread(void *arg)
{
    run_rank(arg);
    return NULL;
}

static int run_threads(const char *scenario, int nranks)
{
    pthread_t threads[16];
    struct app apps[16];

    if (nranks < 1 || nranks > 16)
        return 2;
    CHECK_NCCL(ncclGetUniqueId(&id));
    for (int i = 0; i < NIDS; i++)
        CHECK_NCCL(ncclGetUniqueId(&app_more_ids[i]));
    for (int r = 0; r < nranks; r++) {
        apps[r] = (struct app){r, nranks, NULL, NULL, scenario};
        if (pthread_create(&threads[r], NULL, rank_thread, &apps[r]) != 0)
            return 2;
    }
    for (int r = 0; r < nranks; r++)
        pthread_join(threads[r], NULL);
    return 0;
}

static int number(const char *a, const char *b)
{
    const char *text = getenv(a) != NULL ? getenv(a) : getenv(b);

    return text != NULL ? atoi(text) : -1;
}

/* Rank 0 writes the id beside its place and renames it. */
static void share_id(const char *path, int rank)
{
    char draft[512];
    FILE *file;

    (void)snprintf(draft, sizeof draft, "%s.tmp", path);
    if (rank == 0) {
        CHECK_NCCL(ncclGetUniqueId(&id));
        file = fopen(draft, "wb");
        if (file == NULL || fwrite(&id, sizeof id, 1, file) != 1 || fclose(file) != 0 ||
            rename(draft, path) != 0)
            exit(2);
        return;
    }
    for (int tries = 0; (file = fopen(path, "rb")) == NULL; tries++) {
        if (tries > 3000)
            exit(2);
        usleep(10000);
    }
    if (fread(&id, sizeof id, 1, file) != 1)
        exit(2);
    (void)fclose(file);
}

static int run_process(const char *scenario)
{
    struct app app = {number("RANK", "OMPI_COMM_WORLD_RANK"),
                      number("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE"), NULL, NULL, scenario};
    const char *path = getenv("APP_ID");

    if (app.rank < 0 || app.nranks < 1 || path == NULL)
        return 2;
    share_id(path, app.rank);
    run_rank(&app);
    return 0;
}

static int count_threads(void)
{
    DIR *folder = opendir("/proc/self/task");
    int threads = 0;

    while (folder != NULL && readdir(folder) != NULL)
        threads++;
    if (folder != NULL)
        (void)closedir(folder);
    return threads - 2;
}

/* Allocations and streams of the double, and threads that there still are once those of streams have ended. */
static void say(void)
{
    struct emu_stats stats = app_stats();
    int least = count_threads();

    for (int i = 0; i < 20; i++) {
        int now = count_threads();

        least = now < least ? now : least;
        (void)usleep(2000);
    }
    printf("used: %d allocations, %d streams, %d threads\n", (int)stats.mallocs, (int)stats.streams,
           least);
}

int main(int argc, char **argv)
{
    int version = 0, rc;

    if (argc != 3)
        return 2;
    CHECK_NCCL(ncclGetVersion(&version));
    rc = strcmp(argv[2], "processes") == 0 ? run_process(argv[1])
                                           : run_threads(argv[1], atoi(argv[2]));
    if (getenv("APP_SAY") != NULL)
        say();
    if (rc == 0)
        printf("app %s: NCCL %d, wrong %d\n", argv[1], version, wrong);
    return rc != 0 ? rc : wrong != 0;
}
