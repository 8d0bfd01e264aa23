/*
 * account.c - partitions a step into compute, codec, exposed communication and wait
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/account.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NO_OP UINT32_MAX

struct account {
    const struct zipccl_program *program;
    const struct zipccl_times *times;
    uint32_t rank;
    uint32_t *before;  /* [nops] op before it in its stream on this rank, or NO_OP */
    uint32_t *compute; /* compute ops of this rank by start */
    size_t ncompute;
    struct zipccl_result_step *step;
    double *row_exposed;
};

static size_t slot(const struct account *a, uint32_t op)
{
    return (size_t)op * a->program->nranks + a->rank;
}

static const struct zipccl_program_event *event_of(const struct account *a, uint32_t op)
{
    return &a->program->events[a->program->ops[op].event];
}

/* The rank whose last op ends last, and that op. */
static uint32_t last_op(const struct zipccl_program *program, const struct zipccl_times *times,
                        uint32_t *rank)
{
    uint32_t last = NO_OP;
    double end = -1;

    for (uint32_t op = 0; op < program->nops; op++)
        for (uint32_t r = 0; r < program->nranks; r++) {
            size_t i = (size_t)op * program->nranks + r;

            if (times->ran[i] && (times->end[i] > end || (times->end[i] == end && r < *rank))) {
                end = times->end[i];
                *rank = r;
                last = op;
            }
        }
    return last;
}

/* What 'op' waited for last: its stream's op before it or a dependency. */
static uint32_t blocker(const struct account *a, uint32_t op)
{
    const struct zipccl_program_op *o = &a->program->ops[op];
    uint32_t best = a->before[op];

    for (uint32_t d = 0; d < o->ndeps; d++) {
        uint32_t dep = a->program->deps[o->first_dep + d];

        if (a->times->ran[slot(a, dep)] &&
            (best == NO_OP || a->times->end[slot(a, dep)] > a->times->end[slot(a, best)]))
            best = dep;
    }
    return best;
}

/* Attribute the idle time from 'from' to 'to', at whose end 'op' was what the rank waited for. */
static void explain_idle(struct account *a, double from, double to, uint32_t op)
{
    while (to > from && op != NO_OP) {
        const struct zipccl_program_event *e = event_of(a, op);
        double start = a->times->start[slot(a, op)], enter = a->times->enter[slot(a, op)];

        if (e->group == NULL && !e->communication)
            break; /* computing is not idle */
        start = start > from ? start : from;
        enter = enter > from ? enter : from;
        if (to > start) {
            if (e->group != NULL)
                a->row_exposed[e->row] += to - start;
            a->step->exposed_s += to - start;
            to = start;
        }
        if (to > enter) {
            a->step->wait_s += to - enter;
            to = enter;
        }
        op = blocker(a, op);
    }
    a->step->wait_s += to > from ? to - from : 0;
}

/* Compute from 'from' on (what lies before is taken by other compute of this rank). */
static void add_compute(struct account *a, uint32_t op, double from)
{
    double start = a->times->start[slot(a, op)], end = a->times->end[slot(a, op)];
    double alone = event_of(a, op)->compute_s[a->rank], share;

    if (end <= from)
        return;
    share = end - start > alone ? alone / (end - start) : 1;
    a->step->compute_s += (end - from) * share;
    a->step->codec_slow_s += (end - from) * (1 - share);
}

static void walk(struct account *a, uint32_t last)
{
    double busy_until = 0;

    for (size_t i = 0; i < a->ncompute; i++) {
        uint32_t op = a->compute[i];
        double start = a->times->start[slot(a, op)], end = a->times->end[slot(a, op)];

        if (start > busy_until)
            explain_idle(a, busy_until, start, blocker(a, op));
        add_compute(a, op, start > busy_until ? start : busy_until);
        busy_until = end > busy_until ? end : busy_until;
    }
    if (a->step->step_s > busy_until)
        explain_idle(a, busy_until, a->step->step_s, last);
}

/* Ops of the rank: order in streams, compute by start (streams are in order; a merge suffices). */
static void collect(struct account *a, uint32_t *last_of_stream)
{
    for (uint32_t s = 0; s < a->program->nstreams; s++)
        last_of_stream[s] = NO_OP;
    for (uint32_t op = 0; op < a->program->nops; op++) {
        const struct zipccl_program_event *e = event_of(a, op);
        double start = a->times->start[slot(a, op)];
        size_t at;

        a->before[op] = NO_OP;
        if (!a->times->ran[slot(a, op)])
            continue;
        a->before[op] = last_of_stream[e->event->stream];
        last_of_stream[e->event->stream] = op;
        if (e->group != NULL || e->communication)
            continue;
        for (at = a->ncompute; at > 0 && a->times->start[slot(a, a->compute[at - 1])] > start; at--)
            a->compute[at] = a->compute[at - 1];
        a->compute[at] = op;
        a->ncompute++;
    }
}

/* Each row's time on the rank where the sum is largest. */
static zipccl_status sum_rows(const struct zipccl_program *program,
                              const struct zipccl_times *times, double *row_time)
{
    double *sums = calloc((size_t)program->nrows + 1, sizeof(*sums));

    if (sums == NULL)
        return ZIPCCL_ERR_NOMEM;
    memset(row_time, 0, program->nrows * sizeof(*row_time));
    for (uint32_t rank = 0; rank < program->nranks; rank++) {
        memset(sums, 0, program->nrows * sizeof(*sums));
        for (size_t op = 0; op < program->nops; op++) {
            const struct zipccl_program_event *e = &program->events[program->ops[op].event];
            size_t i = op * program->nranks + rank;

            if (e->group != NULL && times->ran[i])
                sums[e->row] += times->end[i] - times->start[i];
        }
        for (uint32_t row = 0; row < program->nrows; row++)
            row_time[row] = sums[row] > row_time[row] ? sums[row] : row_time[row];
    }
    free(sums);
    return ZIPCCL_OK;
}

static void sum_communication(struct account *a, const struct zipccl_pricing *pricing, int mode)
{
    for (uint32_t op = 0; op < a->program->nops; op++) {
        const struct zipccl_program_event *e = event_of(a, op);
        size_t i = slot(a, op);

        if (e->group == NULL || !a->times->ran[i])
            continue;
        a->step->comm_s += a->times->end[i] - a->times->start[i];
        if (pricing != NULL)
            a->step->codec_s += zipccl_pricing_get(pricing, e, e->part_of[a->rank], mode)->codec_s;
    }
}

zipccl_status zipccl_account(const struct zipccl_program *program,
                             const struct zipccl_pricing *pricing, int mode,
                             const struct zipccl_times *times, struct zipccl_result_step *step,
                             double *row_time, double *row_exposed, struct zipccl_error *error)
{
    struct account a = {
        .program = program, .times = times, .rank = 0, .step = step, .row_exposed = row_exposed};
    uint32_t last = last_op(program, times, &a.rank);
    uint32_t *last_of_stream = malloc(program->nstreams * sizeof(*last_of_stream));
    zipccl_status status = sum_rows(program, times, row_time);
    double sum;

    memset(step, 0, sizeof(*step));
    memset(row_exposed, 0, program->nrows * sizeof(*row_exposed));
    step->present = true;
    a.before = malloc((program->nops + 1) * sizeof(*a.before));
    a.compute = malloc((program->nops + 1) * sizeof(*a.compute));
    if (a.before == NULL || a.compute == NULL || last_of_stream == NULL)
        status = ZIPCCL_ERR_NOMEM;
    if (status == ZIPCCL_OK && last != NO_OP) {
        step->step_s = times->end[(size_t)last * program->nranks + a.rank];
        collect(&a, last_of_stream);
        walk(&a, last);
        sum_communication(&a, pricing, mode);
    }
    free(a.before);
    free(a.compute);
    free(last_of_stream);
    if (status != ZIPCCL_OK)
        return zipccl_fail(error, status, "out of memory");
    sum = step->compute_s + step->codec_slow_s + step->exposed_s + step->wait_s;
    if (fabs(sum - step->step_s) > 1e-9 * step->step_s)
        return zipccl_fail(error, ZIPCCL_ERR_INTERNAL,
                           "the parts of the step give %.12g s, the step is %.12g s", sum,
                           step->step_s);
    return ZIPCCL_OK;
}
