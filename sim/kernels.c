/*
 * kernels.c - times kernels that are alone, and solves for those that are not
 *
 * Every actor's kernel lives on the stack of its call.  All actors share one thread, so plain memory
 * needs no locks, but other actors run inside every call of SimGrid: states change together before
 * the first release, and 'raised' says what an actor has to take before its kernel goes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/kernels.h"

#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/exec.h>
#include <stdbool.h>
#include <stdlib.h>

/* Times closer than this are one, as in the platform's settings. */
#define SAME_TIME_S 1e-12

enum state {
    WAITS,  /* for the leader of its batch */
    LEADS,  /* and waits for the batch's end */
    ENDED,  /* with its batch */
    SOLVED, /* was met by other work: the rest runs as a parallel task */
};

struct kernel {
    struct batch *batch;
    struct kernel *before, *next; /* in the batch; the first one leads */
    sg_sem_t wake;
    uint32_t gpu;
    enum state state;
    uint32_t raised; /* releases of 'wake', done or to come, that its actor has not taken */
    double done_s;   /* SOLVED: how long it ran before */
};

/* Kernels of one op that have started at one time and take as long. */
struct batch {
    size_t op;
    double start_s, alone_s;
    struct kernel *first;
};

struct zipccl_kernels {
    const struct zipccl_platform *platform;
    struct batch **newest; /* [nops] batch of an op that still runs; NULL: none */
    struct kernel **timed; /* [ngpus] the kernel that has the GPU to itself; NULL: none */
    uint32_t *busy;        /* [ngpus] kernels and codecs that run there */
};

zipccl_status zipccl_kernels_create(const struct zipccl_platform *platform, size_t nops,
                                    struct zipccl_kernels **out)
{
    struct zipccl_kernels *k = calloc(1, sizeof(*k));

    if (k == NULL)
        return ZIPCCL_ERR_NOMEM;
    k->platform = platform;
    k->newest = calloc(nops + 1, sizeof(*k->newest));
    k->timed = calloc((size_t)platform->ngpus + 1, sizeof(*k->timed));
    k->busy = calloc((size_t)platform->ngpus + 1, sizeof(*k->busy));
    if (k->newest == NULL || k->timed == NULL || k->busy == NULL) {
        zipccl_kernels_destroy(k);
        return ZIPCCL_ERR_NOMEM;
    }
    *out = k;
    return ZIPCCL_OK;
}

void zipccl_kernels_destroy(struct zipccl_kernels *kernels)
{
    if (kernels == NULL)
        return;
    free(kernels->newest);
    free(kernels->timed);
    free(kernels->busy);
    free(kernels);
}

/* The part 'share' of 'work', sharing SMs and memory with whatever else runs on 'gpu'. */
static void solve(const struct zipccl_kernels *k, uint32_t gpu,
                  const struct zipccl_kernel_work *work, double share)
{
    sg_host_t hosts[2] = {k->platform->sm[gpu], k->platform->hbm[gpu]};
    double amount[2] = {work->sm_s * ZIPCCL_PLATFORM_SPEED * share, work->hbm_bytes * share};
    double nbytes[4] = {0, 0, 0, 0};
    int first = amount[0] > 0 ? 0 : 1, last = amount[1] > 0 ? 2 : 1;
    sg_exec_t task;

    if (first >= last)
        return;
    task = sg_actor_parallel_exec_init(last - first, hosts + first, amount + first, nbytes);
    sg_exec_start(task);
    sg_exec_wait(task);
}

static void join(struct batch *b, struct kernel *x)
{
    x->batch = b;
    x->next = NULL;
    x->before = b->first;
    if (b->first == NULL) {
        b->first = x;
        return;
    }
    /* Behind the leader, which stays first. */
    x->next = b->first->next;
    if (x->next != NULL)
        x->next->before = x;
    b->first->next = x;
}

static void leave(struct zipccl_kernels *k, struct kernel *x)
{
    struct batch *b = x->batch;

    if (x->before != NULL)
        x->before->next = x->next;
    else
        b->first = x->next;
    if (x->next != NULL)
        x->next->before = x->before;
    x->batch = NULL;
    k->timed[x->gpu] = NULL;
    if (b->first != NULL)
        return;
    if (k->newest[b->op] == b)
        k->newest[b->op] = NULL;
    free(b);
}

/* Other work has come to the GPU of 'x', which so far ran by the clock. */
static void stop_timing(struct zipccl_kernels *k, struct kernel *x)
{
    struct kernel *heir = x->state == LEADS ? x->next : NULL;
    sg_sem_t wake = x->wake, heir_wake = heir != NULL ? heir->wake : NULL;

    x->done_s = simgrid_get_clock() - x->batch->start_s;
    x->state = SOLVED;
    x->raised++;
    leave(k, x);
    if (heir != NULL) {
        heir->state = LEADS;
        heir->raised++;
        sg_sem_release(heir_wake);
    }
    sg_sem_release(wake);
}

/* The time of 'x', which leads, and of those behind it is over. */
static void end_batch(struct zipccl_kernels *k, struct kernel *x)
{
    struct kernel *others = x->next, *next;

    for (struct kernel *y = x; y != NULL; y = next) {
        next = y->next;
        y->state = ENDED;
        y->raised += y != x;
        k->timed[y->gpu] = NULL;
    }
    if (k->newest[x->batch->op] == x->batch)
        k->newest[x->batch->op] = NULL;
    free(x->batch);
    /* Each lives until it has taken its release. */
    for (struct kernel *y = others; y != NULL; y = next) {
        next = y->next;
        sg_sem_release(y->wake);
    }
}

/* Wait for the batch's end, which ends all of its kernels, or until this one has to be solved. */
static void lead(struct zipccl_kernels *k, struct kernel *x)
{
    double left_s = x->batch->start_s + x->batch->alone_s - simgrid_get_clock();

    if (left_s > SAME_TIME_S && sg_sem_acquire_timeout(x->wake, left_s) == 0)
        x->raised--;
    /* Its time may be over, and it still be met by other work before it runs. */
    if (x->state != SOLVED)
        end_batch(k, x);
}

static zipccl_status start_timed(struct zipccl_kernels *k, size_t op, struct kernel *x,
                                 double alone_s)
{
    double now = simgrid_get_clock();
    struct batch *b = k->newest[op];

    if (b != NULL && b->start_s == now && b->alone_s == alone_s) {
        x->state = WAITS;
    } else {
        b = malloc(sizeof(*b));
        if (b == NULL)
            return ZIPCCL_ERR_NOMEM;
        *b = (struct batch){op, now, alone_s, NULL};
        k->newest[op] = b;
        x->state = LEADS;
    }
    join(b, x);
    k->timed[x->gpu] = x;
    return ZIPCCL_OK;
}

zipccl_status zipccl_kernels_run(struct zipccl_kernels *k, size_t op, uint32_t gpu,
                                 const struct zipccl_kernel_work *work, sg_sem_t wake)
{
    struct kernel me = {.wake = wake, .gpu = gpu, .state = SOLVED};
    zipccl_status status = ZIPCCL_OK;

    if (k->busy[gpu]++ > 0) {
        if (k->timed[gpu] != NULL)
            stop_timing(k, k->timed[gpu]);
    } else {
        status = start_timed(k, op, &me, work->alone_s);
    }
    if (status == ZIPCCL_OK) {
        if (me.state == WAITS) {
            sg_sem_acquire(wake);
            me.raised--;
        }
        if (me.state == LEADS)
            lead(k, &me);
        for (; me.raised > 0; me.raised--)
            sg_sem_acquire(wake);
        if (me.state == SOLVED && work->alone_s - me.done_s > SAME_TIME_S)
            solve(k, gpu, work, 1 - me.done_s / work->alone_s);
    }
    k->busy[gpu]--;
    return status;
}

void zipccl_kernels_disturb(struct zipccl_kernels *kernels, uint32_t gpu)
{
    kernels->busy[gpu]++;
    if (kernels->timed[gpu] != NULL)
        stop_timing(kernels, kernels->timed[gpu]);
}

void zipccl_kernels_calm(struct zipccl_kernels *kernels, uint32_t gpu)
{
    kernels->busy[gpu]--;
}
