/*
 * import_kineto_join.c - GPU activities and the CPU's side of them: launches, and calls around them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import_kineto.h"

#include <stdlib.h>

int kineto_compare_keyed(const void *a, const void *b)
{
    const struct kineto_keyed *x = a, *y = b;

    if (x->major != y->major)
        return x->major < y->major ? -1 : 1;
    if (x->minor != y->minor)
        return x->minor < y->minor ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static int compare_launches(const void *a, const void *b)
{
    const struct kineto_launch *x = a, *y = b;

    if (x->ts_ns != y->ts_ns)
        return x->ts_ns < y->ts_ns ? -1 : 1;
    return x->correlation < y->correlation ? -1 : x->correlation > y->correlation;
}

int64_t kineto_host_time(const struct kineto_file *f, const struct kineto_gpu *g)
{
    return g->launch != KINETO_NONE ? f->launches[g->launch].ts_ns : g->start_ns;
}

/* Give each GPU activity the call that launched it; 'keys' are launches by correlation. */
static void find_launches(struct kineto_file *f, const struct kineto_keyed *keys)
{
    for (size_t i = 0; i < f->ngpu; i++) {
        size_t low = 0, high = f->nlaunches;

        while (low < high) {
            size_t middle = low + (high - low) / 2;

            if (keys[middle].major < f->gpu[i].correlation)
                low = middle + 1;
            else
                high = middle;
        }
        while (low < f->nlaunches && keys[low].major == f->gpu[i].correlation &&
               f->launches[keys[low].index].wait)
            low++;
        if (low < f->nlaunches && keys[low].major == f->gpu[i].correlation)
            f->gpu[i].launch = keys[low].index;
    }
}

static int64_t order_of(uint8_t source, uint16_t thread)
{
    return (int64_t)source << 32 | thread;
}

/* The CPU's metas by source, thread and start. */
static void order_metas(struct kineto_file *f, struct kineto_keyed *keys)
{
    for (size_t i = 0; i < f->nmetas; i++)
        if (f->metas[i].source != KINETO_FROM_KERNEL)
            keys[f->nordered++] =
                (struct kineto_keyed){order_of(f->metas[i].source, f->metas[i].thread),
                                      f->metas[i].start_ns, (uint32_t)i};
    qsort(keys, f->nordered, sizeof *keys, kineto_compare_keyed);
    for (size_t i = 0; i < f->nordered; i++)
        f->ordered[i] = keys[i].index;
}

static int compare_blocks(const void *a, const void *b)
{
    const struct kineto_block *x = a, *y = b;

    return x->start_ns < y->start_ns ? -1 : x->start_ns > y->start_ns;
}

static void order_blocks(struct kineto_file *f)
{
    if (f->nblocks > 0)
        qsort(f->blocks, f->nblocks, sizeof *f->blocks, compare_blocks);
    for (size_t i = 1; i < f->nblocks; i++)
        if (f->blocks[i].end_ns < f->blocks[i - 1].end_ns)
            f->blocks[i].end_ns = f->blocks[i - 1].end_ns;
}

bool kineto_host_blocked(const struct kineto_file *f, int64_t when)
{
    size_t low = 0, high = f->nblocks;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (f->blocks[middle].start_ns <= when)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && f->blocks[low - 1].end_ns >= when;
}

zipccl_status kineto_join(struct kineto_file *f, struct zipccl_error *error)
{
    struct zipccl_place at = {f->path, 0, error};
    struct kineto_keyed *launches = malloc((f->nlaunches + 1) * sizeof *launches);
    struct kineto_keyed *metas = malloc((f->nmetas + 1) * sizeof *metas);

    f->ordered = malloc((f->nmetas + 1) * sizeof *f->ordered);
    if (launches == NULL || metas == NULL || f->ordered == NULL) {
        free(launches);
        free(metas);
        return zipccl_place_nomem(&at);
    }
    if (f->nlaunches > 0)
        qsort(f->launches, f->nlaunches, sizeof *f->launches, compare_launches);
    for (size_t i = 0; i < f->nlaunches; i++)
        launches[i] = (struct kineto_keyed){f->launches[i].correlation, 0, (uint32_t)i};
    qsort(launches, f->nlaunches, sizeof *launches, kineto_compare_keyed);
    find_launches(f, launches);
    order_blocks(f);
    order_metas(f, metas);
    free(launches);
    free(metas);
    return ZIPCCL_OK;
}

size_t kineto_last_meta(const struct kineto_file *f, enum kineto_source source, uint16_t thread,
                        int64_t ts)
{
    int64_t major = order_of((uint8_t)source, thread);
    size_t low = 0, high = f->nordered;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct kineto_meta *meta = &f->metas[f->ordered[middle]];
        int64_t other = order_of(meta->source, meta->thread);

        if (other < major || (other == major && meta->start_ns <= ts))
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return f->nordered;
    low--;
    return order_of(f->metas[f->ordered[low]].source, f->metas[f->ordered[low]].thread) == major
               ? low
               : f->nordered;
}

struct kineto_meta *kineto_around(const struct kineto_file *f, const struct kineto_launch *launch,
                                  enum kineto_source source)
{
    size_t at = kineto_last_meta(f, source, launch->thread, launch->ts_ns);
    struct kineto_meta *meta;

    if (at == f->nordered)
        return NULL;
    meta = &f->metas[f->ordered[at]];
    return meta->end_ns >= launch->ts_ns && meta->coll != KINETO_WAIT ? meta : NULL;
}

struct kineto_meta *kineto_enclosing(const struct kineto_file *f, const struct kineto_gpu *g,
                                     enum kineto_source source)
{
    return g->launch != KINETO_NONE ? kineto_around(f, &f->launches[g->launch], source) : NULL;
}
