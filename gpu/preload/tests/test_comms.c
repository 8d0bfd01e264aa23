/*
 * test_comms.c - records of communicators are used again, none is lost, and none under a thread's hands
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/preload/counts.h"
#include "gpu/preload/tests/expect.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { MANY = 6000, READERS = 2 };

static ncclComm_t handle(uintptr_t i)
{
    return (ncclComm_t)(i * 64 + 64);
}

static void call(struct zipccl_shim_comm *comm)
{
    zipccl_shim_count(comm, ZIPCCL_SHIM_ALL_GATHER, ZIPCCL_BFLOAT16, 10, 20, ZIPCCL_SHIM_TAKEN);
}

/* All records, communicators and counted calls. */
struct sum {
    size_t nrecords, ncomms;
    uint64_t calls, bytes;
};

static struct sum sum_up(void)
{
    struct sum sum = {0};

    for (struct zipccl_shim_comm *c = zipccl_shim_comms_lock(); c != NULL;
         c = zipccl_shim_comms_next(c)) {
        sum.nrecords++;
        sum.ncomms += c->ncomms;
        sum.calls += c->counts.reasons[ZIPCCL_SHIM_ALL_GATHER][ZIPCCL_SHIM_TAKEN];
        for (size_t i = 0; i < c->counts.nkinds; i++)
            sum.bytes += c->counts.kinds[i].bytes;
    }
    zipccl_shim_comms_unlock();
    return sum;
}

/* One that makes a call and goes. */
static void live(uintptr_t i, const char *name)
{
    struct zipccl_shim_comm *comm = zipccl_shim_comm_add(handle(i), 0, 8, 0);

    (void)snprintf(comm->name, sizeof comm->name, "%s", name);
    call(comm);
    zipccl_shim_comm_remove(comm);
    zipccl_shim_comm_put(comm);
}

static void test_bounded(void)
{
    struct sum sum;
    char name[16];

    for (uintptr_t i = 0; i < MANY; i++)
        live(i, i % 3 == 0 ? "tp" : i % 3 == 1 ? "dp" : "");
    sum = sum_up();
    EXPECT(sum.nrecords == 3 && sum.ncomms == MANY && sum.calls == MANY && sum.bytes == 20 * MANY);
    EXPECT(zipccl_shim_comms_alive(-1) == 0);
    for (uintptr_t i = 0; i < 1000; i++) {
        (void)snprintf(name, sizeof name, "g%zu", (size_t)i);
        live(i, name);
    }
    sum = sum_up();
    EXPECT(sum.nrecords <= 256 && sum.ncomms == MANY + 1000 && sum.calls == MANY + 1000);
}

static void test_held(void)
{
    struct zipccl_shim_comm *comm = zipccl_shim_comm_add(handle(1), 0, 2, 0), *other;
    struct sum before = sum_up(), after;

    EXPECT(zipccl_shim_comm_get(handle(1)) == comm);
    EXPECT(zipccl_shim_comm_get(handle(2)) == NULL && zipccl_shim_comm_get(NULL) == NULL);
    zipccl_shim_comm_remove(comm);
    EXPECT(zipccl_shim_comm_get(handle(1)) == NULL);
    zipccl_shim_comm_put(comm);
    /* Still held once: it may be counted in, and is nobody else's. */
    other = zipccl_shim_comm_add(handle(2), 0, 2, 0);
    EXPECT(other != comm);
    call(comm);
    zipccl_shim_comm_put(comm);
    after = sum_up();
    EXPECT(after.calls == before.calls + 1 && after.ncomms == before.ncomms + 1);
    /* NCCL gives a handle again: who had it is gone. */
    comm = zipccl_shim_comm_add(handle(2), 0, 2, 0);
    EXPECT(comm != other && zipccl_shim_comm_get(handle(2)) == comm);
    zipccl_shim_comm_put(comm);
    zipccl_shim_comm_put(other);
    zipccl_shim_comm_remove(comm);
    zipccl_shim_comm_put(comm);
    EXPECT(zipccl_shim_comms_alive(-1) == 0);
}

static void test_full_table(void)
{
    size_t n = 0;

    for (uintptr_t i = 0; i < 5000; i++) {
        struct zipccl_shim_comm *comm = zipccl_shim_comm_add(handle(i), 0, 2, 0);

        n += comm != NULL;
        zipccl_shim_comm_put(comm);
    }
    EXPECT(n == 4096 && zipccl_shim_comms_alive(0) == n && zipccl_shim_comms_alive(1) == 0);
    for (uintptr_t i = 0; i < 5000; i++) {
        struct zipccl_shim_comm *comm = zipccl_shim_comm_get(handle(i));

        EXPECT((comm != NULL) == (i < 4096));
        if (comm != NULL)
            zipccl_shim_comm_remove(comm);
        zipccl_shim_comm_put(comm);
    }
    EXPECT(zipccl_shim_comms_alive(-1) == 0);
}

static int over;

/* Calls on whatever has the handle just now. */
static void *look(void *arg)
{
    uint64_t *calls = arg;

    while (!__atomic_load_n(&over, __ATOMIC_ACQUIRE)) {
        struct zipccl_shim_comm *comm = zipccl_shim_comm_get(handle(*calls % 2));

        if (comm == NULL)
            continue;
        call(comm);
        ++*calls;
        zipccl_shim_comm_put(comm);
    }
    return NULL;
}

static void test_threads(void)
{
    uint64_t calls[READERS] = {0}, made = 0;
    pthread_t threads[READERS];
    struct sum before = sum_up(), after;

    for (int i = 0; i < READERS; i++)
        if (pthread_create(&threads[i], NULL, look, &calls[i]) != 0) {
            failures++;
            return;
        }
    for (uintptr_t i = 0; i < MANY; i++) {
        struct zipccl_shim_comm *comm = zipccl_shim_comm_add(handle(i % 2), (int)(i % 5), 8, 0);

        zipccl_shim_comm_remove(comm);
        zipccl_shim_comm_put(comm);
    }
    __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
    for (int i = 0; i < READERS; i++) {
        pthread_join(threads[i], NULL);
        made += calls[i];
    }
    after = sum_up();
    EXPECT(after.calls == before.calls + made && after.ncomms == before.ncomms + MANY);
    EXPECT(after.nrecords <= 256);
}

int main(void)
{
    test_bounded();
    test_held();
    test_threads();
    test_full_table();
    return failures != 0;
}
