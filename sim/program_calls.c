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

    if (!zipccl_is_uneven(c->event->op))
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
    rows[p->nrows] = (struct zipccl_program_row){e, 0, 0, 0};
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

/* The events of each row, in one list: those of row r are order[first[r]] to order[first[r + 1] - 1]. */
struct by_row {
    size_t *first; /* [nrows + 2] */
    size_t *order; /* [nevents] */
};

static zipccl_status sort_by_row(const struct zipccl_program *p, struct by_row *out)
{
    out->first = calloc((size_t)p->nrows + 2, sizeof(*out->first));
    out->order = malloc((p->nevents + 1) * sizeof(*out->order));
    if (out->first == NULL || out->order == NULL)
        return ZIPCCL_ERR_NOMEM;
    /* Counting sort: first[r + 1] walks from the begin of row r to its end. */
    for (size_t i = 0; i < p->nevents; i++)
        if (p->events[i].group != NULL && p->events[i].row + 1 < p->nrows)
            out->first[p->events[i].row + 2]++;
    for (uint32_t r = 1; r <= p->nrows; r++)
        out->first[r + 1] += out->first[r];
    for (size_t i = 0; i < p->nevents; i++)
        if (p->events[i].group != NULL)
            out->order[out->first[p->events[i].row + 1]++] = i;
    return ZIPCCL_OK;
}

/* What each rank does in one row. */
struct rank_calls {
    uint64_t calls;
    double recorded_s; /* < 0: one is not recorded */
};

static void count_event(const struct zipccl_program *program, const struct zipccl_program_event *e,
                        struct rank_calls *of)
{
    for (uint32_t rank = 0; rank < program->nranks; rank++) {
        if (e->part_of[rank] == ZIPCCL_NO_PART)
            continue;
        of[rank].calls += e->calls;
        if (e->event->recorded_s < 0)
            of[rank].recorded_s = -1;
        else if (of[rank].recorded_s >= 0)
            of[rank].recorded_s += (double)e->calls * e->event->recorded_s;
    }
}

zipccl_status zipccl_program_count_calls(struct zipccl_program *program)
{
    struct rank_calls *of = malloc(program->nranks * sizeof(*of));
    struct by_row rows = {NULL, NULL};
    zipccl_status status = of != NULL ? sort_by_row(program, &rows) : ZIPCCL_ERR_NOMEM;

    for (uint32_t r = 0; r < program->nrows && status == ZIPCCL_OK; r++) {
        struct zipccl_program_row *row = &program->rows[r];

        memset(of, 0, program->nranks * sizeof(*of));
        for (size_t i = rows.first[r]; i < rows.first[r + 1]; i++)
            count_event(program, &program->events[rows.order[i]], of);
        for (uint32_t rank = 1; rank < program->nranks; rank++)
            if (of[rank].calls > of[row->rank].calls)
                row->rank = rank;
        row->calls = of[row->rank].calls;
        row->recorded_s = of[row->rank].recorded_s;
    }
    free(rows.first);
    free(rows.order);
    free(of);
    return status;
}

bool zipccl_program_moves_data(const struct zipccl_program *program)
{
    for (uint32_t i = 0; i < program->nclasses; i++) {
        const struct zipccl_program_class *c = &program->classes[i];
        size_t size = c->group->size;

        if (size < 2 || c->event->count == 0)
            continue;
        if (c->splits == NULL)
            return true;
        /* What a member keeps for itself does not move. */
        for (size_t k = 0; k < size * size; k++)
            if (c->splits[k] > 0 && k % (size + 1) != 0)
                return true;
    }
    return false;
}
