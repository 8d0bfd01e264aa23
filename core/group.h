/*
 * group.h - who takes part in a step, and what each message of it is about
 *
 * Private to core.  The executor, the lowering, the cost model and the validator all ask here, so
 * that they agree on members, blocks and sizes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_GROUP_H
#define ZIPCCL_CORE_GROUP_H

#include "core/plan.h"

#define ZIPCCL_GROUP_NO_ROOT UINT32_MAX

/* The members of a step's group as 'rank' sees them: 0 to size - 1. */
struct zipccl_group {
    const struct zipccl_topology *topology;
    uint32_t rank; /* the caller */
    uint8_t kind;  /* enum zipccl_group_kind */
    uint32_t size, self;
    uint32_t root;    /* member that sends a broadcast; NO_ROOT: none does in this part */
    uint32_t nblocks; /* of the step */
    uint32_t skipped; /* block that a REMOTE step leaves out; nblocks: none */
};

static inline uint32_t zipccl_rank_at(const struct zipccl_topology *t, uint32_t node,
                                      uint32_t local)
{
    return t->members[t->node_start[node] + local];
}

/* RAIL and blocks need an even topology; zipccl_step_fits() says whether a step may be asked. */
static inline struct zipccl_group zipccl_group_of(const struct zipccl_topology *t,
                                                  const struct zipccl_step *step, uint32_t rank)
{
    struct zipccl_group g = {t,    rank,       step->group,   t->nranks,
                             rank, step->root, step->nblocks, step->nblocks};

    if (step->group == ZIPCCL_GROUP_NODE) {
        g.size = zipccl_topology_node_size(t, t->node_of[rank]);
        g.self = t->local_of[rank];
        g.root = t->local_of[step->root];
        if (step->remote)
            g.skipped = t->node_of[rank];
    } else if (step->group == ZIPCCL_GROUP_RAIL) {
        g.size = t->nnodes;
        g.self = t->node_of[rank];
        g.root = t->local_of[rank] == t->local_of[step->root] ? t->node_of[step->root]
                                                              : ZIPCCL_GROUP_NO_ROOT;
    }
    return g;
}

/* Rank of member 'p'. */
static inline uint32_t zipccl_group_rank(const struct zipccl_group *g, uint32_t p)
{
    const struct zipccl_topology *t = g->topology;

    if (g->kind == ZIPCCL_GROUP_NODE)
        return zipccl_rank_at(t, t->node_of[g->rank], p);
    if (g->kind == ZIPCCL_GROUP_RAIL)
        return zipccl_rank_at(t, p, t->local_of[g->rank]);
    return p;
}

/* The rank that member 'p' and block 'b' name; without blocks that is the member. */
static inline uint32_t zipccl_group_block_rank(const struct zipccl_group *g, uint32_t p, uint32_t b)
{
    if (g->nblocks <= 1)
        return zipccl_group_rank(g, p);
    return g->kind == ZIPCCL_GROUP_NODE ? zipccl_rank_at(g->topology, b, p)
                                        : zipccl_rank_at(g->topology, p, b);
}

/*
 * Elements of block 'b' that member 'from' sends to member 'to'; all patterns but PAIRS.
 * 0: there is no such message.
 */
static inline size_t zipccl_group_n(const struct zipccl_plan *plan, const struct zipccl_step *step,
                                    const struct zipccl_group *g, uint32_t from, uint32_t to,
                                    uint32_t b)
{
    uint32_t owner = step->pattern == ZIPCCL_PATTERN_ALL_TO_ALL ? to : from;

    if (b == g->skipped)
        return 0;
    if (plan->shard_n == 0 || step->n == 0)
        return step->n;
    return zipccl_plan_owner_n(plan, step->chunk, zipccl_group_block_rank(g, owner, b));
}

/* Offset of block 'b' of member 'p' in 'place', without the displacement of uneven places. */
static inline size_t zipccl_place_offset(const struct zipccl_place *place,
                                         const struct zipccl_group *g, uint32_t p, uint32_t b)
{
    if (place->by_rank)
        return place->base + place->peer_stride * zipccl_group_block_rank(g, p, b);
    return place->base + place->peer_stride * (place->uneven ? 0 : p) +
           place->self_stride * g->self + place->block_stride * b;
}

/* True if one message goes to all members, instead of one to each. */
static inline bool zipccl_step_shares_message(const struct zipccl_step *step)
{
    return step->pattern == ZIPCCL_PATTERN_ALL_GATHER || step->pattern == ZIPCCL_PATTERN_BROADCAST;
}

/* False if the step asks for members or blocks that 't' does not have. */
static inline bool zipccl_step_fits(const struct zipccl_step *step, const struct zipccl_topology *t)
{
    uint32_t blocks = step->group == ZIPCCL_GROUP_NODE ? t->nnodes : t->nranks / t->nnodes;

    if (step->group > ZIPCCL_GROUP_RAIL || step->nblocks == 0 || step->root >= t->nranks)
        return false;
    if (step->group != ZIPCCL_GROUP_WORLD && !t->even)
        return false;
    if (step->remote && (step->group != ZIPCCL_GROUP_NODE || step->nblocks != blocks))
        return false;
    return step->nblocks == 1 || (step->group != ZIPCCL_GROUP_WORLD && step->nblocks == blocks);
}

/* True if every rank has as many elements in the step's chunk: not where short shards end. */
static inline bool zipccl_group_is_full_chunk(const struct zipccl_plan *plan,
                                              const struct zipccl_step *s)
{
    return plan->shard_n == 0 || zipccl_plan_owner_n(plan, s->chunk, plan->nranks - 1) == s->n;
}

#endif
