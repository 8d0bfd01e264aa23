/*
 * schedule.c - T1 and T2: a program run by simulated streams
 *
 * Every (rank, stream) is an actor that runs its ops in order.  At T1 a collective runs when the last
 * rank of its part has come, as one parallel task started by that rank's actor; the others sleep
 * until it ends.  At T2 every rank runs its own part as it comes.  All actors share one thread, so
 * plain memory needs no locks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/times.h"

#include "sim/kernels.h"
#include "sim/platform.h"
#include "sim/stage.h"

#include <inttypes.h>
#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <simgrid/semaphore.h>
#include <stdlib.h>
#include <string.h>

struct schedule;

/* One stream of one rank. */
struct actor {
    struct schedule *schedule;
    uint32_t rank, stream;
    sg_sem_t wake;              /* raised once for each op this actor waits for */
    struct actor *next_waiting; /* for the same op and rank */
};

struct schedule {
    const struct zipccl_program *program;
    const struct zipccl_pricing *pricing;
    struct zipccl_times *times;
    struct zipccl_platform platform; /* T1 */
    struct zipccl_kernels *kernels;  /* T1 */
    struct zipccl_stage *stage;      /* T2; else NULL */
    int mode;
    struct actor *actors;   /* [nranks * nstreams] */
    struct actor **waiting; /* [nops * nranks] actors to wake when that op ends there */
    uint32_t *ops_of;       /* ops by stream */
    size_t *stream_start;   /* [nstreams + 1] into ops_of */
    uint32_t **arrived;     /* [nops][nparts] */
    zipccl_status status;   /* the first failure inside an actor */
};

static size_t slot(const struct schedule *s, uint32_t op, uint32_t rank)
{
    return (size_t)op * s->program->nranks + rank;
}

static void wait_for(struct schedule *s, uint32_t op, struct actor *a)
{
    size_t i = slot(s, op, a->rank);

    a->next_waiting = s->waiting[i];
    s->waiting[i] = a;
    sg_sem_acquire(a->wake);
}

static void finish(struct schedule *s, uint32_t op, uint32_t rank)
{
    size_t i = slot(s, op, rank);
    struct actor *a = s->waiting[i];

    s->times->end[i] = simgrid_get_clock();
    s->times->ran[i] = 1;
    s->waiting[i] = NULL;
    while (a != NULL) {
        struct actor *next = a->next_waiting;

        sg_sem_release(a->wake);
        a = next;
    }
}

/* A kernel needs SMs and memory, so codec work beside it slows it where that is what it lacks. */
static void run_compute(struct schedule *s, uint32_t op, const struct zipccl_program_event *e,
                        struct actor *a)
{
    uint32_t rank = a->rank;
    struct zipccl_kernel_work work = {e->sm_s[rank], e->hbm_bytes[rank], e->compute_s[rank]};
    zipccl_status status;

    if (work.alone_s <= 0)
        return;
    if (e->communication) {
        sg_actor_sleep_for(work.alone_s);
        return;
    }
    if (s->stage != NULL) {
        zipccl_exec_sim_kernel(zipccl_stage_platform(s->stage), rank, work.sm_s, work.hbm_bytes,
                               work.alone_s);
        return;
    }
    status = zipccl_kernels_run(s->kernels, op, rank, &work, a->wake);
    if (status != ZIPCCL_OK)
        s->status = status;
}

/* 'flow' among 'members', which takes SMs and memory of those that code. */
static zipccl_status run_flow(struct schedule *s, const struct zipccl_flow *flow,
                              const uint32_t *members)
{
    zipccl_status status;

    for (uint32_t i = 0; flow->codec_s != NULL && i < flow->nranks; i++)
        if (flow->codec_s[i] > 0)
            zipccl_kernels_disturb(s->kernels, members[i]);
    status = zipccl_flow_run(flow, members, &s->platform);
    for (uint32_t i = 0; flow->codec_s != NULL && i < flow->nranks; i++)
        if (flow->codec_s[i] > 0)
            zipccl_kernels_calm(s->kernels, members[i]);
    return status;
}

static void run_collective(struct schedule *s, uint32_t op, const struct zipccl_program_event *e,
                           struct actor *a)
{
    uint32_t part = e->part_of[a->rank];
    const uint32_t *members = zipccl_program_members(e, part);
    const struct zipccl_price *price = zipccl_pricing_get(s->pricing, e, part, s->mode);
    double start = simgrid_get_clock();

    if (++s->arrived[op][part] < e->nmembers[part]) {
        wait_for(s, op, a);
        return;
    }
    for (uint32_t i = 0; i < e->group->size; i++)
        s->times->start[slot(s, op, members[i])] = start;
    if (price->flow != NULL) {
        zipccl_status status = run_flow(s, price->flow, members);

        if (status != ZIPCCL_OK)
            s->status = status;
    }
    for (uint32_t i = 0; i < e->group->size; i++)
        if (e->part_of[members[i]] == part)
            finish(s, op, members[i]);
}

/* T2: the collective starts for all when the last has come, but not after it has ended for one. */
static void run_messages(struct schedule *s, uint32_t op, const struct zipccl_program_event *e,
                         struct actor *a)
{
    uint32_t part = e->part_of[a->rank];
    const uint32_t *members = zipccl_program_members(e, part);
    double now = simgrid_get_clock();
    zipccl_status status;

    if (++s->arrived[op][part] == e->nmembers[part])
        for (uint32_t i = 0; i < e->group->size; i++) {
            size_t at = slot(s, op, members[i]);

            s->times->start[at] = s->times->ran[at] ? s->times->end[at] : now;
        }
    status = zipccl_stage_run(s->stage, e, part, a->rank);
    if (status != ZIPCCL_OK && s->status == ZIPCCL_OK)
        s->status = status;
    finish(s, op, a->rank);
}

static void run_op(struct schedule *s, uint32_t op, struct actor *a)
{
    const struct zipccl_program_op *o = &s->program->ops[op];
    const struct zipccl_program_event *e = &s->program->events[o->event];
    size_t i = slot(s, op, a->rank);

    if (e->part_of[a->rank] == ZIPCCL_NO_PART)
        return;
    for (uint32_t d = 0; d < o->ndeps; d++) {
        uint32_t dep = s->program->deps[o->first_dep + d];
        const struct zipccl_program_event *de = &s->program->events[s->program->ops[dep].event];

        /* A dependency that does not run on this rank binds others, not this one. */
        if (de->part_of[a->rank] != ZIPCCL_NO_PART && !s->times->ran[slot(s, dep, a->rank)])
            wait_for(s, dep, a);
    }
    s->times->enter[i] = s->times->start[i] = simgrid_get_clock();
    if (e->group != NULL && s->stage != NULL) {
        run_messages(s, op, e, a);
        return;
    }
    if (e->group != NULL) {
        run_collective(s, op, e, a);
        return;
    }
    run_compute(s, op, e, a);
    finish(s, op, a->rank);
}

static void stream_actor(int argc, char **argv)
{
    struct actor *a = sg_actor_self_get_data();
    struct schedule *s = a->schedule;

    (void)argc;
    (void)argv;
    for (size_t i = s->stream_start[a->stream]; i < s->stream_start[a->stream + 1]; i++)
        run_op(s, s->ops_of[i], a);
}

static void start_actors(struct schedule *s, const struct zipccl_platform *platform)
{
    for (uint32_t rank = 0; rank < s->program->nranks; rank++)
        for (uint32_t stream = 0; stream < s->program->nstreams; stream++) {
            struct actor *a = &s->actors[(size_t)rank * s->program->nstreams + stream];
            sg_actor_t actor;

            if (s->stream_start[stream] == s->stream_start[stream + 1])
                continue;
            *a = (struct actor){s, rank, stream, sg_sem_init(0), NULL};
            actor = sg_actor_init("stream", platform->gpu[rank]);
            sg_actor_set_data(actor, a);
            sg_actor_start_(actor, stream_actor, 0, NULL);
        }
}

static uint32_t stream_of(const struct schedule *s, size_t op)
{
    return s->program->events[s->program->ops[op].event].event->stream;
}

static zipccl_status prepare(struct schedule *s)
{
    const struct zipccl_program *p = s->program;
    size_t filled = 0;

    s->actors = calloc((size_t)p->nranks * p->nstreams, sizeof(*s->actors));
    s->waiting = calloc(p->nops * p->nranks + 1, sizeof(*s->waiting));
    s->ops_of = calloc(p->nops + 1, sizeof(*s->ops_of));
    s->stream_start = calloc((size_t)p->nstreams + 1, sizeof(*s->stream_start));
    s->arrived = calloc(p->nops + 1, sizeof(*s->arrived));
    if (s->actors == NULL || s->waiting == NULL || s->ops_of == NULL || s->stream_start == NULL ||
        s->arrived == NULL)
        return ZIPCCL_ERR_NOMEM;
    for (uint32_t stream = 0; stream < p->nstreams; stream++) {
        s->stream_start[stream] = filled;
        for (size_t op = 0; op < p->nops; op++)
            if (stream_of(s, op) == stream)
                s->ops_of[filled++] = (uint32_t)op;
    }
    s->stream_start[p->nstreams] = filled;
    for (size_t op = 0; op < p->nops; op++) {
        const struct zipccl_program_event *e = &p->events[p->ops[op].event];

        if (e->group == NULL)
            continue;
        s->arrived[op] = calloc(e->nparts, sizeof(uint32_t));
        if (s->arrived[op] == NULL)
            return ZIPCCL_ERR_NOMEM;
    }
    return ZIPCCL_OK;
}

static void release(struct schedule *s)
{
    for (size_t op = 0; s->arrived != NULL && op < s->program->nops; op++)
        free(s->arrived[op]);
    free(s->arrived);
    free(s->stream_start);
    free(s->ops_of);
    free(s->waiting);
    free(s->actors);
    zipccl_kernels_destroy(s->kernels);
    zipccl_platform_release(&s->platform);
}

/* Every op that should have run did; else a defect or a deadlock left it waiting. */
static zipccl_status check_complete(const struct schedule *s, struct zipccl_error *error)
{
    for (uint32_t op = 0; op < s->program->nops; op++) {
        const struct zipccl_program_event *e = &s->program->events[s->program->ops[op].event];

        for (uint32_t rank = 0; rank < s->program->nranks; rank++)
            if (e->part_of[rank] != ZIPCCL_NO_PART && !s->times->ran[slot(s, op, rank)])
                return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                                   "event %" PRIu64 " never ran on rank %u: ranks wait for one "
                                   "another",
                                   e->event->id, rank);
    }
    return ZIPCCL_OK;
}

static zipccl_status run(struct schedule *s, const struct zipccl_platform *platform,
                         struct zipccl_error *error)
{
    start_actors(s, platform);
    simgrid_run();
    s->times->step_s = simgrid_get_clock();
    if (s->status != ZIPCCL_OK)
        return zipccl_fail(error, s->status, "a collective failed: %s",
                           zipccl_status_string(s->status));
    return check_complete(s, error);
}

zipccl_status zipccl_schedule_run(const struct zipccl_program *program,
                                  const struct zipccl_pricing *pricing, int mode,
                                  struct zipccl_times *times, struct zipccl_error *error)
{
    struct schedule s = {.program = program, .pricing = pricing, .times = times, .mode = mode};
    zipccl_status status = prepare(&s);

    if (status != ZIPCCL_OK)
        zipccl_fail(error, status, "out of memory");
    else
        status = zipccl_platform_load(&pricing->cluster, ZIPCCL_PLATFORM_FLOWS, &s.platform, error);
    if (status == ZIPCCL_OK &&
        zipccl_kernels_create(&s.platform, program->nops, &s.kernels) != ZIPCCL_OK)
        status = zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    if (status == ZIPCCL_OK)
        status = run(&s, &s.platform, error);
    release(&s);
    return status;
}

zipccl_status zipccl_schedule_run_messages(const struct zipccl_program *program,
                                           const struct zipccl_pricing *pricing, int mode,
                                           struct zipccl_samples *samples,
                                           struct zipccl_times *times, struct zipccl_error *error)
{
    struct schedule s = {.program = program, .pricing = pricing, .times = times, .mode = mode};
    zipccl_status status = prepare(&s);

    if (status != ZIPCCL_OK)
        zipccl_fail(error, status, "out of memory");
    else
        status = zipccl_stage_open(program, pricing, mode, samples, &s.stage, error);
    if (status == ZIPCCL_OK)
        status = run(&s, zipccl_stage_platform(s.stage), error);
    zipccl_stage_close(s.stage);
    release(&s);
    return status;
}
