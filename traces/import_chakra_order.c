/*
 * import_chakra_order.c - the nodes of a Chakra graph in an order that its dependencies allow
 *
 * Real files have cycles and name nodes that are missing; both are counted, never fatal.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_chakra.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct ordering {
    const struct chakra_file *f;
    struct kineto_keyed *ids;       /* [nnodes] by id */
    uint32_t *first_next, *next_of; /* who waits for a node */
    uint32_t *unmet;                /* [nnodes] dependencies not yet in 'order' */
    uint32_t *heap;
    size_t nheap;
    unsigned char *done;
};

static zipccl_status nomem(const struct chakra_file *f)
{
    struct zipccl_place at = {f->path, 0, f->importer->error};

    return zipccl_place_nomem(&at);
}

static zipccl_status index_ids(struct ordering *o)
{
    const struct chakra_file *f = o->f;

    for (size_t i = 0; i < f->nnodes; i++)
        o->ids[i] = (struct kineto_keyed){(int64_t)(f->nodes[i].id >> 1),
                                          (int64_t)(f->nodes[i].id & 1), (uint32_t)i};
    if (f->nnodes > 0)
        qsort(o->ids, f->nnodes, sizeof *o->ids, kineto_compare_keyed);
    for (size_t i = 1; i < f->nnodes; i++) {
        const struct chakra_node *a = &f->nodes[o->ids[i - 1].index];
        const struct chakra_node *b = &f->nodes[o->ids[i].index];
        struct zipccl_place at = {f->path, 0, f->importer->error};

        if (a->id == b->id)
            return zipccl_place_fail(&at,
                                     "node %" PRIu64 " has the id %" PRIu64 " of node %" PRIu64
                                     ", expected another",
                                     b->place, b->id, a->place);
    }
    return ZIPCCL_OK;
}

static uint32_t find(const struct ordering *o, uint64_t id)
{
    size_t low = 0, high = o->f->nnodes;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (o->f->nodes[o->ids[middle].index].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low < o->f->nnodes && o->f->nodes[o->ids[low].index].id == id ? o->ids[low].index
                                                                         : KINETO_NONE;
}

static zipccl_status resolve(struct ordering *o, uint32_t **first_dep, uint32_t **dep_of,
                             uint64_t *missing)
{
    const struct chakra_file *f = o->f;
    uint64_t total = 0;
    uint32_t n = 0;

    for (size_t i = 0; i < f->nnodes; i++)
        total += f->nodes[i].ndeps;
    *first_dep = calloc(f->nnodes + 1, sizeof **first_dep);
    *dep_of = total < KINETO_NONE ? malloc((total + 1) * sizeof **dep_of) : NULL;
    o->first_next = calloc(f->nnodes + 2, sizeof *o->first_next);
    o->next_of = total < KINETO_NONE ? malloc((total + 1) * sizeof *o->next_of) : NULL;
    if (*first_dep == NULL || *dep_of == NULL || o->first_next == NULL || o->next_of == NULL)
        return nomem(f);
    for (size_t i = 0; i < f->nnodes; i++) {
        for (uint32_t d = 0; d < f->nodes[i].ndeps; d++) {
            uint32_t dep = find(o, f->nodes[i].deps[d]);

            *missing += dep == KINETO_NONE;
            if (dep == KINETO_NONE || dep == i)
                continue;
            (*dep_of)[n++] = dep;
            o->first_next[dep + 2]++;
        }
        (*first_dep)[i + 1] = n;
        o->unmet[i] = n - (*first_dep)[i];
    }
    for (size_t i = 2; i <= f->nnodes + 1; i++)
        o->first_next[i] += o->first_next[i - 1];
    for (uint32_t i = 0; i < f->nnodes; i++)
        for (uint32_t d = (*first_dep)[i]; d < (*first_dep)[i + 1]; d++)
            o->next_of[o->first_next[(*dep_of)[d] + 1]++] = i;
    return ZIPCCL_OK;
}

static void push(struct ordering *o, uint32_t node)
{
    size_t at = o->nheap++;

    for (; at > 0 && o->heap[(at - 1) / 2] > node; at = (at - 1) / 2)
        o->heap[at] = o->heap[(at - 1) / 2];
    o->heap[at] = node;
}

static uint32_t pop(struct ordering *o)
{
    uint32_t top = o->heap[0], last = o->heap[--o->nheap];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;

        if (child + 1 < o->nheap && o->heap[child + 1] < o->heap[child])
            child++;
        if (child >= o->nheap || o->heap[child] >= last)
            break;
        o->heap[at] = o->heap[child];
        at = child;
    }
    o->heap[at] = last;
    return top;
}

/* The first in the file of those that nothing holds back; in a cycle the first of all. */
static void sort(struct ordering *o, uint32_t *order, uint64_t *cycles)
{
    uint32_t n = 0, oldest = 0, total = (uint32_t)o->f->nnodes;

    for (uint32_t i = 0; i < total; i++)
        if (o->unmet[i] == 0)
            push(o, i);
    while (n < total) {
        uint32_t node;

        if (o->nheap == 0) {
            while (o->done[oldest])
                oldest++;
            ++*cycles;
            o->unmet[oldest] = 0;
            push(o, oldest);
        }
        node = pop(o);
        if (o->done[node])
            continue;
        o->done[node] = 1;
        order[n++] = node;
        for (uint32_t i = o->first_next[node]; i < o->first_next[node + 1]; i++)
            if (!o->done[o->next_of[i]] && o->unmet[o->next_of[i]] > 0 &&
                --o->unmet[o->next_of[i]] == 0)
                push(o, o->next_of[i]);
    }
}

zipccl_status chakra_order(const struct chakra_file *f, uint32_t *order, uint32_t **first_dep,
                           uint32_t **dep_of, uint64_t *cycles, uint64_t *missing)
{
    struct ordering o = {.f = f,
                         .ids = malloc((f->nnodes + 1) * sizeof *o.ids),
                         .unmet = malloc((f->nnodes + 1) * sizeof *o.unmet),
                         .heap = malloc((f->nnodes + 1) * sizeof *o.heap),
                         .done = calloc(f->nnodes + 1, 1)};
    zipccl_status status = o.ids != NULL && o.unmet != NULL && o.heap != NULL && o.done != NULL
                               ? index_ids(&o)
                               : nomem(f);

    *first_dep = *dep_of = NULL;
    if (status == ZIPCCL_OK)
        status = resolve(&o, first_dep, dep_of, missing);
    if (status == ZIPCCL_OK)
        sort(&o, order, cycles);
    free(o.ids);
    free(o.unmet);
    free(o.heap);
    free(o.done);
    free(o.first_next);
    free(o.next_of);
    return status;
}
