/*
 * cost_local.c - what each rank codes, copies and adds up in a step
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/cost.h"

#include "core/group.h"
#include "core/split.h"

/* Elements of a message of 'n' that 's' works on: an ENCODE in parts does some of them each time. */
static size_t part_n(const struct zipccl_plan *plan, const struct zipccl_step *s, size_t n)
{
    struct zipccl_split_cut split;

    if (s->kind != ZIPCCL_STEP_ENCODE || s->part == 0)
        return n;
    split = zipccl_split_of((enum zipccl_dtype)plan->dtype, n);
    return s->part == ZIPCCL_PART_EARLY ? split.early_n : n - split.early_n;
}

/* Elements of pairs that 'rank' encodes, decodes or copies in 's'. */
static double local_pairs_n(const struct zipccl_plan *plan, const struct zipccl_step *s,
                            const size_t *splits, uint32_t rank)
{
    uint32_t nranks = plan->nranks;
    size_t n = 0;

    if (splits == NULL)
        return 0;
    if (s->kind == ZIPCCL_STEP_COPY)
        return (double)splits[(size_t)rank * nranks + rank];
    for (uint32_t peer = 0; peer < nranks; peer++) {
        size_t from = s->kind == ZIPCCL_STEP_ENCODE ? rank : peer;
        size_t to = s->kind == ZIPCCL_STEP_ENCODE ? peer : rank;

        if (peer != rank)
            n += part_n(plan, s,
                        zipccl_chunk_n(splits[from * nranks + to], plan->chunk_n, s->chunk));
    }
    return (double)n;
}

double zipccl_cost_local_n(const struct zipccl_plan *plan, const struct zipccl_step *s,
                           const struct zipccl_topology *topology, const size_t *splits,
                           uint32_t rank)
{
    struct zipccl_group g = zipccl_group_of(topology, s, rank);
    bool out = s->kind == ZIPCCL_STEP_ENCODE, own = s->kind == ZIPCCL_STEP_COPY;
    bool broadcast = s->pattern == ZIPCCL_PATTERN_BROADCAST;
    bool once = own || broadcast || (out && s->pattern == ZIPCCL_PATTERN_ALL_GATHER);
    size_t n = 0;

    if (s->pattern == ZIPCCL_PATTERN_PAIRS)
        return local_pairs_n(plan, s, splits, rank);
    if (s->kind == ZIPCCL_STEP_REDUCE && s->form == ZIPCCL_FORM_RAW)
        return 0;
    if (broadcast && (g.root == ZIPCCL_GROUP_NO_ROOT || (g.self == g.root) != (out || own)))
        return 0;
    if (zipccl_group_is_full_chunk(plan, s))
        return (double)part_n(plan, s, s->n) * (once ? 1 : g.size - 1) *
               (g.nblocks - (g.skipped < g.nblocks ? 1 : 0));
    for (uint32_t b = 0; b < g.nblocks; b++)
        for (uint32_t peer = 0; peer < g.size; peer++)
            if (once ? peer == g.self : peer != g.self)
                n += part_n(plan, s,
                            out || own ? zipccl_group_n(plan, s, &g, g.self, peer, b)
                                       : zipccl_group_n(plan, s, &g, peer, g.self, b));
    return (double)n;
}

double zipccl_cost_summed_n(const struct zipccl_plan *plan, const struct zipccl_step *s,
                            const struct zipccl_topology *topology, uint32_t rank)
{
    struct zipccl_group g;
    double n = 0;

    if (s->kind != ZIPCCL_STEP_REDUCE)
        return 0;
    g = zipccl_group_of(topology, s, rank);
    for (uint32_t b = 0; b < g.nblocks; b++)
        n += (double)zipccl_group_n(plan, s, &g, g.self, g.self, b);
    return n;
}

double zipccl_cost_summed_s(const struct zipccl_plan *plan, const struct zipccl_step *s,
                            const struct zipccl_topology *topology,
                            const struct zipccl_cost_params *params, uint32_t rank)
{
    if (!(params->reduce_Bps > 0))
        return 0;
    return zipccl_cost_summed_n(plan, s, topology, rank) *
           (double)zipccl_dtype_size((enum zipccl_dtype)plan->dtype) /
           zipccl_cost_reduce_Bps(params, plan);
}
