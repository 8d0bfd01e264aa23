/*
 * timeline.c - makes timelines out of a run's times
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/timeline_build.h"

#include <stdlib.h>
#include <string.h>

zipccl_status zipccl_timeline_choose(uint32_t nranks, uint32_t gpus_per_node, uint32_t most,
                                     uint32_t **ranks, uint32_t *nchosen)
{
    uint32_t nodes = (nranks + gpus_per_node - 1) / gpus_per_node, step = 1, n = 0;

    if (nranks > most)
        step = gpus_per_node * (most < nodes ? (nodes + most - 1) / most : 1);
    *ranks = malloc(((size_t)nranks / step + 1) * sizeof(**ranks));
    if (*ranks == NULL)
        return ZIPCCL_ERR_NOMEM;
    for (uint64_t rank = 0; rank < nranks; rank += step)
        (*ranks)[n++] = (uint32_t)rank;
    *nchosen = n;
    return ZIPCCL_OK;
}

/* Where the program keeps what the world's 'rank' does. */
static uint32_t index_of(const struct zipccl_program *program, uint32_t rank)
{
    return program->fold != NULL ? program->fold->class_of[rank] : rank;
}

void zipccl_timeline_keep(const struct zipccl_program *program, const struct zipccl_times *times,
                          struct zipccl_kept_times *kept)
{
    double *t = kept->times;

    for (size_t op = 0; op < times->nops; op++)
        for (uint32_t k = 0; k < kept->nranks; k++, t += 3) {
            size_t i = op * times->nranks + index_of(program, kept->ranks[k]);

            t[0] = times->enter[i];
            t[1] = times->start[i];
            t[2] = times->ran[i] ? times->end[i] : -1;
        }
}

/* Ops of each stream in their order: [nops] and where each stream begins. */
struct by_stream {
    uint32_t *ops;
    size_t *first; /* [nstreams + 1] */
};

static zipccl_status sort_ops(const struct zipccl_program *p, struct by_stream *out)
{
    out->ops = malloc((p->nops + 1) * sizeof(*out->ops));
    out->first = calloc((size_t)p->nstreams + 2, sizeof(*out->first));
    if (out->ops == NULL || out->first == NULL)
        return ZIPCCL_ERR_NOMEM;
    /* Counting sort: first[s + 1] walks from the begin of stream s to its end. */
    for (size_t op = 0; op < p->nops; op++)
        out->first[p->events[p->ops[op].event].event->stream + 2]++;
    for (uint32_t s = 1; s < p->nstreams; s++)
        out->first[s + 1] += out->first[s];
    for (size_t op = 0; op < p->nops; op++)
        out->ops[out->first[p->events[p->ops[op].event].event->stream + 1]++] = (uint32_t)op;
    return ZIPCCL_OK;
}

/* The price of a part's call, copied when it is first met; its index in 't->prices'. */
static uint32_t price_of(const struct zipccl_program_event *event, uint32_t part,
                         const struct zipccl_pricing *pricing, struct zipccl_timeline *t)
{
    const struct zipccl_price *price = zipccl_pricing_get(pricing, event, part, t->mode);
    /* A refined step may send one call raw in one row and compressed in another. */
    uint32_t call = 2 * pricing->call_of[event->class][part] + price->compressed;
    struct zipccl_span_price *out = &t->prices[call];

    memcpy(out->strategy, price->name, sizeof(out->strategy));
    out->raw_bytes = price->raw_bytes;
    out->wire_bytes = price->wire_bytes;
    out->codec_s = price->codec_s;
    out->compressed = price->compressed;
    return call;
}

static void add_spans(const struct zipccl_program *p, const struct zipccl_pricing *pricing,
                      const struct zipccl_kept_times *kept, const struct by_stream *streams,
                      struct zipccl_timeline *t)
{
    for (uint32_t k = 0; k < kept->nranks; k++)
        for (size_t i = 0; i < p->nops; i++) {
            uint32_t op = streams->ops[i];
            const struct zipccl_program_event *e = &p->events[p->ops[op].event];
            const double *times = kept->times + 3 * ((size_t)op * kept->nranks + k);
            uint32_t part = e->part_of[index_of(p, kept->ranks[k])];

            if (times[2] < 0)
                continue;
            t->spans[t->nspans++] = (struct zipccl_span){
                .rank = kept->ranks[k],
                .stream = e->event->stream,
                .event = p->ops[op].event,
                .part = p->fold != NULL && e->group != NULL
                            ? p->fold->groups[e->event->group].part_of[kept->ranks[k]]
                            : part,
                .op = op,
                .price = e->group != NULL ? price_of(e, part, pricing, t) : 0,
                .enter_s = times[0],
                .start_s = times[1],
                .end_s = times[2]};
        }
}

static zipccl_status build(const struct zipccl_program *program,
                           const struct zipccl_pricing *pricing,
                           const struct zipccl_kept_times *kept, struct zipccl_timeline *t)
{
    struct by_stream streams = {NULL, NULL};
    zipccl_status status = sort_ops(program, &streams);
    size_t n = 0;

    for (size_t i = 0; i < program->nops * kept->nranks; i++)
        n += kept->times[3 * i + 2] >= 0;
    t->ranks = malloc(((size_t)kept->nranks + 1) * sizeof(*t->ranks));
    t->spans = malloc((n + 1) * sizeof(*t->spans));
    t->prices = calloc(2 * (size_t)pricing->ncalls + 1, sizeof(*t->prices));
    if (t->ranks == NULL || t->spans == NULL || t->prices == NULL)
        status = ZIPCCL_ERR_NOMEM;
    if (status == ZIPCCL_OK) {
        memcpy(t->ranks, kept->ranks, kept->nranks * sizeof(*t->ranks));
        t->nranks = kept->nranks;
        t->nprices = 2 * (size_t)pricing->ncalls;
        add_spans(program, pricing, kept, &streams, t);
    }
    free(streams.ops);
    free(streams.first);
    return status;
}

zipccl_status zipccl_timeline_create(const struct zipccl_program *program,
                                     const struct zipccl_pricing *pricing, int mode,
                                     const struct zipccl_kept_times *kept,
                                     struct zipccl_timeline **out)
{
    struct zipccl_timeline *t = calloc(1, sizeof(*t));
    zipccl_status status;

    if (t == NULL)
        return ZIPCCL_ERR_NOMEM;
    t->trace = program->trace;
    t->mode = mode;
    t->gpus_per_node = pricing->cluster.gpus_per_node;
    t->all_ranks = kept->nranks == program->trace->header.nranks;
    status = build(program, pricing, kept, t);
    if (status != ZIPCCL_OK) {
        zipccl_timeline_destroy(t);
        return status;
    }
    *out = t;
    return ZIPCCL_OK;
}

void zipccl_timeline_destroy(struct zipccl_timeline *timeline)
{
    if (timeline == NULL)
        return;
    free(timeline->ranks);
    free(timeline->spans);
    free(timeline->prices);
    free(timeline);
}
