/*
 * step_t0.c - the schedule of a step with T0 durations, in plain C
 *
 * Ops are placed in program order, which dependencies and streams never contradict.  For searches
 * over many configurations; T1 (schedule.c) is what it is checked against.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/times.h"

#include <stdlib.h>
#include <string.h>

/* Intervals of a rank that are looked back at: older ones have ended in any sensible trace. */
#define LOOK_BACK 32

struct interval {
    double start, end;
    double rate; /* codec: SM seconds taken per second */
};

/* The last LOOK_BACK intervals, overwritten in turn. */
struct recent {
    struct interval of[LOOK_BACK];
    uint32_t n;
};

struct rank_state {
    struct recent codec, compute;
    double debt; /* SM seconds that earlier placed compute lost and was not charged */
};

struct placing {
    const struct zipccl_program *program;
    const struct zipccl_pricing *pricing;
    struct zipccl_times *times;
    int mode;
    double sm_share;
    double *ready; /* [nranks * nstreams] */
    struct rank_state *ranks;
};

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static void remember(struct recent *r, double start, double end, double rate)
{
    r->of[r->n++ % LOOK_BACK] = (struct interval){start, end, rate};
}

/* SM seconds taken between 'start' and 'end' by the intervals of 'r'. */
static double taken(const struct recent *r, double start, double end)
{
    double sum = 0;

    for (uint32_t i = 0; i < r->n && i < LOOK_BACK; i++) {
        double from = larger(r->of[i].start, start);
        double to = r->of[i].end < end ? r->of[i].end : end;

        if (to > from)
            sum += (to - from) * r->of[i].rate;
    }
    return sum;
}

static double enter_time(const struct placing *p, uint32_t op, uint32_t rank)
{
    const struct zipccl_program_op *o = &p->program->ops[op];
    uint32_t stream = p->program->events[o->event].event->stream;
    double t = p->ready[(size_t)rank * p->program->nstreams + stream];

    for (uint32_t d = 0; d < o->ndeps; d++) {
        size_t dep = p->program->deps[o->first_dep + d];

        t = larger(t, p->times->end[dep * p->program->nranks + rank]);
    }
    return t;
}

static void place(struct placing *p, uint32_t op, uint32_t rank, double enter, double start,
                  double end)
{
    size_t i = (size_t)op * p->program->nranks + rank;
    uint32_t stream = p->program->events[p->program->ops[op].event].event->stream;

    p->times->enter[i] = enter;
    p->times->start[i] = start;
    p->times->end[i] = end;
    p->times->ran[i] = 1;
    p->ready[(size_t)rank * p->program->nstreams + stream] = end;
    p->times->step_s = larger(p->times->step_s, end);
}

static void place_compute(struct placing *p, uint32_t op, const struct zipccl_program_event *e)
{
    for (uint32_t rank = 0; rank < p->program->nranks; rank++) {
        struct rank_state *state = &p->ranks[rank];
        double start, end, alone, share;

        if (e->part_of[rank] == ZIPCCL_NO_PART)
            continue;
        start = enter_time(p, op, rank);
        if (e->communication) {
            place(p, op, rank, start, start, start + e->compute_s[rank]);
            continue;
        }
        alone = e->compute_s[rank] + state->debt;
        end = start + alone;
        /* Compute that memory holds back has SMs to spare. */
        share = e->compute_s[rank] > 0 ? e->sm_s[rank] / e->compute_s[rank] : 0;
        /* Longer compute meets more codec work; a few rounds settle it. */
        for (int round = 0; round < 4; round++)
            end = start + alone + share * taken(&state->codec, start, end);
        state->debt = 0;
        place(p, op, rank, start, start, end);
        remember(&state->compute, start, end, share);
    }
}

static void place_part(struct placing *p, uint32_t op, const struct zipccl_program_event *e,
                       uint32_t part)
{
    const uint32_t *members = zipccl_program_members(e, part);
    const struct zipccl_price *price = zipccl_pricing_get(p->pricing, e, part, p->mode);
    double start = 0, end, rate;

    for (uint32_t i = 0; i < e->group->size; i++)
        if (e->part_of[members[i]] == part)
            start = larger(start, enter_time(p, op, members[i]));
    end = start + price->total_s;
    rate = end > start ? price->codec_s * p->sm_share / (end - start) : 0;
    for (uint32_t i = 0; i < e->group->size; i++) {
        uint32_t rank = members[i];
        struct rank_state *state = &p->ranks[rank];

        /* A class of a folded program may be there several times. */
        if (e->part_of[rank] != part || p->times->ran[(size_t)op * p->program->nranks + rank])
            continue;
        place(p, op, rank, enter_time(p, op, rank), start, end);
        if (rate <= 0)
            continue;
        state->debt += rate * taken(&state->compute, start, end);
        remember(&state->codec, start, end, rate);
    }
}

zipccl_status zipccl_step_t0_run(const struct zipccl_program *program,
                                 const struct zipccl_pricing *pricing, int mode,
                                 struct zipccl_times *times)
{
    struct placing p = {.program = program,
                        .pricing = pricing,
                        .times = times,
                        .mode = mode,
                        .sm_share = (double)pricing->cluster.codec_sms / pricing->cluster.gpu_sms};
    size_t n = (size_t)program->nranks * program->nops;

    p.ready = calloc((size_t)program->nranks * program->nstreams, sizeof(*p.ready));
    p.ranks = calloc(program->nranks, sizeof(*p.ranks));
    if (p.ready == NULL || p.ranks == NULL) {
        free(p.ready);
        free(p.ranks);
        return ZIPCCL_ERR_NOMEM;
    }
    memset(times->end, 0, n * sizeof(*times->end));
    memset(times->ran, 0, n);
    times->step_s = 0;
    for (uint32_t op = 0; op < program->nops; op++) {
        const struct zipccl_program_event *e = &program->events[program->ops[op].event];

        if (e->group == NULL) {
            place_compute(&p, op, e);
            continue;
        }
        for (uint32_t part = 0; part < e->nparts; part++)
            if (e->nmembers[part] > 0)
                place_part(&p, op, e, part);
    }
    free(p.ready);
    free(p.ranks);
    return ZIPCCL_OK;
}
