/*
 * program_calls.c - which events are the same call, and which share a row
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/program_calls.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool same_pairs(const struct zipccl_event *a, const struct zipccl_event *b)
{
    return a->npairs == b->npairs &&
           (a->npairs == 0 || memcmp(a->pairs, b->pairs, a->npairs * sizeof(*a->pairs)) == 0);
}

static bool same_call(const struct zipccl_event *a, const struct zipccl_event *b)
{
    return a->op == b->op && a->dtype == b->dtype && a->redop == b->redop && a->group == b->group &&
           a->count == b->count && a->root == b->root && a->splits == b->splits && same_pairs(a, b);
}

static bool same_row(const struct zipccl_event *a, const struct zipccl_event *b)
{
    return a->op == b->op && a->group == b->group && a->dtype == b->dtype && a->count == b->count &&
           a->stream == b->stream;
}

/* Elements from member to member, [size * size]; uneven ops only. */
static zipccl_status make_splits(const struct zipccl_trace *trace, struct zipccl_program_class *c)
{
    size_t size = c->group->size;

    if (c->event->op != ZIPCCL_ALLTOALLV && c->event->op != ZIPCCL_SENDRECV)
        return ZIPCCL_OK;
    c->splits = calloc(size * size, sizeof(*c->splits));
    if (c->splits == NULL)
        return ZIPCCL_ERR_NOMEM;
    for (uint32_t i = 0; i < c->event->npairs; i++)
        c->splits[c->event->pairs[i].src * size + c->event->pairs[i].dst] = c->event->count;
    if (c->event->op == ZIPCCL_ALLTOALLV)
        for (size_t i = 0; i < size * size; i++)
            c->splits[i] = trace->header.splits[c->event->splits].counts[i];
    return ZIPCCL_OK;
}

static zipccl_status add_class(struct zipccl_program *p, const struct zipccl_event *e, uint32_t set,
                               uint32_t *out)
{
    struct zipccl_program_class *classes;

    for (uint32_t i = 0; i < p->nclasses; i++)
        if (p->classes[i].set == set && same_call(p->classes[i].event, e)) {
            *out = i;
            return ZIPCCL_OK;
        }
    classes = realloc(p->classes, (p->nclasses + 1) * sizeof(*classes));
    if (classes == NULL)
        return ZIPCCL_ERR_NOMEM;
    p->classes = classes;
    classes[p->nclasses] = (struct zipccl_program_class){
        e, p->fold != NULL ? &p->fold->groups[e->group].placed : &p->trace->header.groups[e->group],
        set, NULL};
    ZIPCCL_TRY(make_splits(p->trace, &classes[p->nclasses]));
    *out = p->nclasses++;
    return ZIPCCL_OK;
}

static zipccl_status add_row(struct zipccl_program *p, const struct zipccl_event *e, uint32_t *out)
{
    struct zipccl_program_row *rows;

    for (uint32_t i = 0; i < p->nrows; i++)
        if (same_row(p->rows[i].event, e)) {
            *out = i;
            return ZIPCCL_OK;
        }
    rows = realloc(p->rows, (p->nrows + 1) * sizeof(*rows));
    if (rows == NULL)
        return ZIPCCL_ERR_NOMEM;
    p->rows = rows;
    rows[p->nrows] = (struct zipccl_program_row){e, 0, 0};
    *out = p->nrows++;
    return ZIPCCL_OK;
}

zipccl_status zipccl_program_add_call(struct zipccl_program *program,
                                      const struct zipccl_event *event,
                                      struct zipccl_samples *samples,
                                      struct zipccl_program_event *out, struct zipccl_error *error)
{
    struct zipccl_error why = {""};
    zipccl_status status;
    uint32_t set = 0;

    status =
        zipccl_samples_bind(samples, event->dtype, event->samples, event->nsamples, &set, &why);
    if (status != ZIPCCL_OK)
        return zipccl_fail(error, status, "event %" PRIu64 " (%s): %.400s", event->id,
                           zipccl_op_name(event->op), why.text);
    status = add_class(program, event, set, &out->class);
    if (status == ZIPCCL_OK)
        status = add_row(program, event, &out->row);
    return status == ZIPCCL_OK ? ZIPCCL_OK : zipccl_fail(error, status, "out of memory");
}

/* Calls and recorded time of each rank in row 'index'; the rank with most calls gives the row. */
static void count_row(struct zipccl_program *program, uint32_t index, uint64_t *calls,
                      double *recorded_s)
{
    struct zipccl_program_row *row = &program->rows[index];

    memset(calls, 0, program->nranks * sizeof(*calls));
    memset(recorded_s, 0, program->nranks * sizeof(*recorded_s));
    for (size_t i = 0; i < program->nevents; i++) {
        const struct zipccl_program_event *e = &program->events[i];

        if (e->group == NULL || e->row != index)
            continue;
        for (uint32_t rank = 0; rank < program->nranks; rank++) {
            if (e->part_of[rank] == ZIPCCL_NO_PART)
                continue;
            calls[rank] += e->calls;
            if (e->event->recorded_s < 0)
                recorded_s[rank] = -1;
            else if (recorded_s[rank] >= 0)
                recorded_s[rank] += (double)e->calls * e->event->recorded_s;
        }
    }
    for (uint32_t rank = 0; rank < program->nranks; rank++)
        if (calls[rank] > row->calls) {
            row->calls = calls[rank];
            row->recorded_s = recorded_s[rank];
        }
}

zipccl_status zipccl_program_count_calls(struct zipccl_program *program)
{
    uint64_t *calls = malloc(program->nranks * sizeof(*calls));
    double *recorded_s = malloc(program->nranks * sizeof(*recorded_s));
    bool ok = calls != NULL && recorded_s != NULL;

    for (uint32_t i = 0; ok && i < program->nrows; i++)
        count_row(program, i, calls, recorded_s);
    free(calls);
    free(recorded_s);
    return ok ? ZIPCCL_OK : ZIPCCL_ERR_NOMEM;
}
