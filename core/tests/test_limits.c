/*
 * test_limits.c - a call that waits longer than its limit ends, and its text says for whom
 *
 * The memory transport.  The rank that is waited for never comes; nothing here depends on how fast
 * the machine is.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/tests/coll_world.h"

#include "core/zipccl.h"

#include <stdio.h>
#include <string.h>

#define LIMIT_S 0.05
#define NBYTES  4096u

enum wait { WAIT_RECV, WAIT_SEND, WAIT_MANY, WAIT_NATIVE, NUM_WAITS };

struct job {
    const struct world *world;
    enum wait wait;
    zipccl_status status[MAX_RANKS];
};

/* A group of one message from each peer, of which the last rank sends none. */
static zipccl_status many(struct zipccl_transport *t)
{
    static uint8_t in[MAX_RANKS][NBYTES];
    zipccl_status status = t->ops->group_begin(t);

    for (uint32_t p = 0; p < t->nranks && status == ZIPCCL_OK; p++)
        if (p != t->rank)
            status = t->ops->recv(t, p, in[p], NBYTES);
    return status == ZIPCCL_OK ? t->ops->group_end(t) : status;
}

static bool run_rank(void *context, uint32_t rank)
{
    struct job *job = context;
    struct zipccl_transport *t = job->world->t[rank];
    uint8_t out[NBYTES] = {0}, in[NBYTES];
    struct zipccl_native_call call = {.op = ZIPCCL_ALL_REDUCE,
                                      .dtype = ZIPCCL_FLOAT32,
                                      .send = out,
                                      .recv = in,
                                      .count = 1, /* no ring step sends to the last rank */
                                      .channels = 1};

    job->status[rank] = ZIPCCL_OK;
    switch (job->wait) {
    case WAIT_RECV: /* only rank 0 waits */
        if (rank == 0)
            job->status[0] = t->ops->recv(t, 2, in, NBYTES);
        break;
    case WAIT_SEND:
        if (rank == 0)
            job->status[0] = t->ops->send(t, 2, out, NBYTES);
        break;
    case WAIT_MANY:
        if (rank == 0)
            job->status[0] = many(t);
        else if (rank == 1)
            job->status[1] = t->ops->send(t, 0, out, NBYTES);
        break;
    default:
        if (rank != 2)
            job->status[rank] = t->ops->native(t, &call);
        break;
    }
    return true;
}

static unsigned expect(bool ok, enum wait wait, const char *what, const char *text)
{
    if (!ok)
        fprintf(stderr, "wait %d: %s; text: %s\n", (int)wait, what, text);
    return !ok;
}

static unsigned test_wait(enum wait wait)
{
    static const char *const texts[] = {
        "rank 0 has waited 0.05 s for rank 2, to send 4096 bytes; missing in all: 4096 bytes in 1 "
        "messages",
        "rank 0 has waited 0.05 s for rank 2, to take 4096 bytes; missing in all: 4096 bytes in 1 "
        "messages",
        "rank 0 has waited 0.05 s for rank 2, to send 4096 bytes; missing in all: 4096 bytes in 1 "
        "messages",
        NULL,
    };
    struct job job = {.wait = wait};
    struct world w;
    uint8_t byte = 0;
    const char *text;
    unsigned nfailed = 0;

    world_open_even(&w, 1, 3);
    job.world = &w;
    zipccl_transport_mem_set_limit(w.t[1], LIMIT_S);
    world_run(&w, run_rank, &job);
    text = w.t[0]->ops->error_text(w.t[0]);
    if (wait == WAIT_NATIVE) { /* either of the two that wait may be first */
        bool late0 = job.status[0] == ZIPCCL_ERR_TIMEOUT,
             late1 = job.status[1] == ZIPCCL_ERR_TIMEOUT;

        nfailed += expect(late0 || late1, wait, "no rank was late", text);
        nfailed += expect(strstr(text, "for rank 2") != NULL, wait, "rank 2 is not named", text);
        nfailed += expect(late0 || job.status[0] == ZIPCCL_ERR_ABORTED, wait, "rank 0", text);
        nfailed += expect(late1 || job.status[1] == ZIPCCL_ERR_ABORTED, wait, "rank 1", text);
    } else {
        nfailed += expect(job.status[0] == ZIPCCL_ERR_TIMEOUT, wait, "status of rank 0", text);
        nfailed += expect(job.status[1] == ZIPCCL_OK, wait, "status of rank 1", text);
        nfailed += expect(strcmp(text, texts[wait]) == 0, wait, "another text", text);
    }
    /* It was aborted: who comes late does not wait. */
    nfailed += expect(w.t[2]->ops->recv(w.t[2], 0, &byte, 1) == ZIPCCL_ERR_ABORTED, wait,
                      "the late rank was not turned away", text);
    world_close(&w);
    return nfailed;
}

/* The meeting itself: all ring steps are over when the last rank does not come to it. */
static bool meet_rank(void *context, uint32_t rank)
{
    struct job *job = context;
    struct zipccl_transport *t = job->world->t[rank];
    float out[2] = {1, 2}, in[2];
    struct zipccl_native_call call = {.op = ZIPCCL_REDUCE_SCATTER,
                                      .dtype = ZIPCCL_FLOAT32,
                                      .send = out,
                                      .recv = in,
                                      .count = 0,
                                      .channels = 1};

    job->status[rank] = rank == 1 ? ZIPCCL_OK : t->ops->native(t, &call);
    return true;
}

static unsigned test_meeting(void)
{
    struct job job = {.wait = WAIT_NATIVE};
    struct world w;
    const char *text;
    unsigned nfailed = 0;

    world_open_even(&w, 1, 2);
    job.world = &w;
    zipccl_transport_mem_set_limit(w.t[0], LIMIT_S);
    world_run(&w, meet_rank, &job);
    text = w.t[0]->ops->error_text(w.t[0]);
    nfailed += expect(job.status[0] == ZIPCCL_ERR_TIMEOUT, NUM_WAITS, "status of rank 0", text);
    nfailed +=
        expect(strcmp(text, "rank 0 has waited 0.05 s for rank 1 to call reduce_scatter fp32 "
                            "of 0 elements, 0 bytes") == 0,
               NUM_WAITS, "another text", text);
    world_close(&w);
    return nfailed;
}

/* Rank 1 never makes its communicator: rank 0 is told by name whom it waited for. */
static bool create_rank(void *context, uint32_t rank)
{
    struct job *job = context;
    struct zipccl_exec *exec = NULL;
    struct zipccl_comm *comm = NULL;
    struct zipccl_error error = {""};

    job->status[rank] = ZIPCCL_OK;
    if (rank == 1)
        return true;
    if (zipccl_exec_cpu_create(zipccl_isa_best(), &exec) != ZIPCCL_OK)
        return false;
    job->status[rank] = zipccl_comm_create(job->world->t[rank], exec, NULL, &comm, &error);
    exec->ops->destroy(exec);
    return strstr(error.text, "exchange of settings on rank 0: ") != NULL &&
           strstr(error.text, "for rank 1") != NULL;
}

static unsigned test_create(void)
{
    struct job job = {.wait = WAIT_NATIVE};
    struct world w;
    unsigned nfailed = 0;

    world_open_even(&w, 1, 2);
    job.world = &w;
    zipccl_transport_mem_set_limit(w.t[0], LIMIT_S);
    nfailed += expect(world_run(&w, create_rank, &job), NUM_WAITS, "no name", "");
    nfailed += expect(job.status[0] == ZIPCCL_ERR_TIMEOUT, NUM_WAITS, "status of create", "");
    world_close(&w);
    return nfailed;
}

int main(void)
{
    unsigned nfailed = 0;

    for (unsigned wait = 0; wait < NUM_WAITS; wait++)
        nfailed += test_wait((enum wait)wait);
    nfailed += test_meeting();
    nfailed += test_create();
    printf("%u failures\n", nfailed);
    return nfailed == 0 ? 0 : 1;
}
