/*
 * strategy.c - the table of strategies and the choice among them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/strategy.h"

#include "core/classes.h"
#include "core/codec.h"
#include "core/strategies/strategies.h"

#include <stdlib.h>
#include <string.h>

const struct zipccl_strategy *const zipccl_strategies[] = {
    &zipccl_strategy_native,
    &zipccl_strategy_raw_direct,
    &zipccl_strategy_raw_ring,
    &zipccl_strategy_raw_two_level,
    &zipccl_strategy_fixed_direct,
    &zipccl_strategy_fixed_ring,
    &zipccl_strategy_fixed_two_level,
    &zipccl_strategy_exact_direct,
    &zipccl_strategy_exact_ring,
    &zipccl_strategy_exact_two_level,
    &zipccl_strategy_fixed_split,
    &zipccl_strategy_exact_split,
    NULL,
};

bool zipccl_strategy_chunks(const struct zipccl_strategy *strategy, const struct zipccl_call *call)
{
    bool reduces = call->op == ZIPCCL_REDUCE_SCATTER || call->op == ZIPCCL_ALL_REDUCE;

    return strategy->chunked || (reduces && strategy->chunks_reductions);
}

const struct zipccl_strategy *zipccl_strategy_find(const char *name)
{
    for (unsigned i = 0; zipccl_strategies[i] != NULL; i++)
        if (strcmp(zipccl_strategies[i]->name, name) == 0)
            return zipccl_strategies[i];
    return NULL;
}

/* Parts of what the settled capacity saves that a message of Gaussian data saves on top, in the mean:
 * 1/150.  Source: ratios of 1.504 and 1.499 for long bf16 messages (core/tests/codec_speed, capacity). */
#define MEAN_BELOW_SETTLED 150u

static size_t gaussian_bytes(void *context, uint32_t src, uint32_t dst, size_t n)
{
    enum zipccl_dtype dtype = *(const enum zipccl_dtype *)context;
    size_t raw = n * zipccl_dtype_size(dtype), settled = zipccl_capacity_settled(dtype, n);

    (void)src;
    (void)dst;
    return settled < raw ? settled - (raw - settled) / MEAN_BELOW_SETTLED : settled;
}

static size_t gaussian_ratio_bytes(void *context, uint32_t src, uint32_t dst, size_t n)
{
    return gaussian_bytes(context, src, dst, n) - n / ZIPCCL_RATIO_SAVES_ONE_OF;
}

/*
 * Splits for a price that every rank can compute when no rank knows all of them: alltoallv as if
 * each pair moved 'count'; sendrecv as a shift to the next node, or the next rank of the one node.
 */
static size_t *assumed_splits(const struct zipccl_call *call,
                              const struct zipccl_topology *topology)
{
    size_t nranks = topology->nranks;
    size_t shift = topology->nnodes > 1 ? zipccl_topology_node_size(topology, 0) : 1;
    size_t *splits = calloc(nranks * nranks, sizeof *splits);

    if (splits == NULL)
        return NULL;
    for (size_t r = 0; r < nranks; r++)
        for (size_t peer = 0; peer < nranks; peer++)
            if (call->op == ZIPCCL_ALLTOALLV || peer == (r + shift) % nranks)
                splits[r * nranks + peer] = call->count;
    return splits;
}

/* What candidates are built and priced for, and who is told. */
struct question {
    const struct zipccl_call *call;
    const struct zipccl_placement *placement;
    const struct zipccl_cost_params *params;
    const struct zipccl_wire_sizes *sizes;
    uint32_t capacity_class;
    size_t max_staging_bytes;
    zipccl_candidate_fn *fn;
    void *context;
    size_t *ncandidates;
};

/* Price a candidate and show it; takes 'plan'. */
static zipccl_status price_candidate(const struct question *q,
                                     const struct zipccl_strategy *strategy,
                                     struct zipccl_plan *plan)
{
    struct zipccl_candidate candidate = {.strategy = strategy, .plan = plan};
    zipccl_status status =
        zipccl_cost_plan(plan, q->placement, q->params, q->sizes, &candidate.cost);

    if (status == ZIPCCL_OK) {
        q->fn(q->context, &candidate);
        ++*q->ncandidates;
    }
    zipccl_plan_destroy(candidate.plan);
    return status;
}

/* Build in class 'cls'; '*over': some message does not fit. */
static zipccl_status try_class(const struct question *q, const struct zipccl_strategy *strategy,
                               uint32_t nchunks, uint32_t cls, struct zipccl_plan **out, bool *over)
{
    ZIPCCL_TRY(strategy->build(q->call, q->placement->topology, q->params->channels, nchunks, cls,
                               q->max_staging_bytes, out));
    *over = zipccl_lower_overflows(*out, q->placement->topology, q->sizes);
    return ZIPCCL_OK;
}

/*
 * The plan in the narrowest class wider than 'over', whose messages do not fit, in which they do.
 * ZIPCCL_ERR_UNSUPPORTED if there is none.
 */
static zipccl_status find_class(const struct question *q, const struct zipccl_strategy *strategy,
                                uint32_t nchunks, uint32_t over, struct zipccl_plan **out)
{
    struct zipccl_plan *best = NULL, *plan;
    uint32_t end = over < ZIPCCL_NUM_CLASSES ? over : 0, next = ZIPCCL_CLASS_WIDE;

    while (next < end) { /* narrower than 'end' none fits; wider than 'next', all */
        uint32_t cls = next + (end - next) / 2;
        bool overflows;
        zipccl_status status = try_class(q, strategy, nchunks, cls, &plan, &overflows);

        if (status != ZIPCCL_OK) {
            zipccl_plan_destroy(best);
            return status;
        }
        zipccl_plan_destroy(overflows ? plan : best);
        if (overflows) {
            end = cls;
        } else {
            best = plan;
            next = cls + 1;
        }
    }
    *out = best;
    return best != NULL ? ZIPCCL_OK : ZIPCCL_ERR_UNSUPPORTED;
}

/*
 * Try one strategy with '*nchunks', which becomes what the plan has: in the narrowest class whose
 * messages all fit.  Pairs keep a class each and those that fit none travel raw, so the pairs of one
 * class that overflow are no reason against it, but part of its price: they are shown in some classes.
 */
static zipccl_status try_candidate(const struct question *q, const struct zipccl_strategy *strategy,
                                   uint32_t *nchunks)
{
    uint32_t asked = *nchunks, cls = q->capacity_class;
    bool pairs = zipccl_is_uneven(q->call->op);
    struct zipccl_plan *plan;
    bool over;

    for (;; cls = cls > ZIPCCL_CLASS_STRIDE ? cls - ZIPCCL_CLASS_STRIDE : ZIPCCL_CLASS_WIDE) {
        ZIPCCL_TRY(try_class(q, strategy, asked, cls, &plan, &over));
        *nchunks = plan->nchunks;
        if (!over || (pairs && !strategy->exact_sizes))
            ZIPCCL_TRY(price_candidate(q, strategy, plan));
        else /* an exact one has parts that do not stand */
            zipccl_plan_destroy(plan);
        if (!over)
            return ZIPCCL_OK;
        if (!pairs)
            break;
        if (cls == ZIPCCL_CLASS_WIDE || cls >= ZIPCCL_NUM_CLASSES)
            return ZIPCCL_OK;
    }
    ZIPCCL_TRY(find_class(q, strategy, asked, cls, &plan));
    *nchunks = plan->nchunks;
    return price_candidate(q, strategy, plan);
}

/* All strategies of one kind; '*status' becomes the first failure that is not a refusal. */
static void try_strategies(const struct question *q, bool compressed, zipccl_status *status)
{
    for (unsigned i = 0; zipccl_strategies[i] != NULL; i++) {
        const struct zipccl_strategy *strategy = zipccl_strategies[i];
        uint32_t most = zipccl_strategy_chunks(strategy, q->call) ? 16 : 1, before = 0;

        if (strategy->compressed != compressed || !strategy->serves(q->call) ||
            (q->call->no_sizes && strategy->exact_sizes) ||
            (compressed && q->call->effort == ZIPCCL_EFFORT_RATIO && !strategy->exact_sizes))
            continue;
        for (uint32_t k = 1; k <= most; k *= 2) {
            uint32_t nchunks = k;
            zipccl_status s;

            /* The last build came out with as many chunks: it was this plan. */
            if (before >= k)
                continue;
            s = try_candidate(q, strategy, &nchunks);
            if (s == ZIPCCL_OK)
                before = nchunks;
            else if (s != ZIPCCL_ERR_UNSUPPORTED && *status == ZIPCCL_ERR_UNSUPPORTED)
                *status = s;
        }
    }
}

zipccl_status zipccl_candidates(const struct zipccl_call *call,
                                const struct zipccl_placement *placement,
                                const struct zipccl_cost_params *params,
                                const struct zipccl_wire_sizes *sizes, enum zipccl_mode mode,
                                uint32_t capacity_class, size_t max_staging_bytes,
                                zipccl_candidate_fn *fn, void *context)
{
    enum zipccl_dtype dtype = call->dtype;
    struct zipccl_wire_sizes used = {.bytes = gaussian_bytes,
                                     .ratio_bytes = gaussian_ratio_bytes,
                                     .context = &dtype,
                                     .by_n = true};
    struct zipccl_call fast_call = *call, slow_call = *call;
    size_t n = 0, *splits = NULL;
    struct question fast = {&fast_call,        placement, params,  &used, capacity_class,
                            max_staging_bytes, fn,        context, &n};
    struct question slow = fast;
    bool uneven = zipccl_is_uneven(call->op);
    zipccl_status status = ZIPCCL_ERR_UNSUPPORTED;

    if (sizes != NULL)
        used = *sizes;
    if (uneven && used.splits == NULL) {
        used.splits = splits = assumed_splits(call, placement->topology);
        if (splits == NULL)
            return ZIPCCL_ERR_NOMEM;
    }
    slow.call = &slow_call;
    fast_call.effort = ZIPCCL_EFFORT_FAST;
    slow_call.effort = ZIPCCL_EFFORT_RATIO;
    if (mode != ZIPCCL_MODE_COMPRESSED)
        try_strategies(&fast, false, &status);
    if (mode != ZIPCCL_MODE_RAW && call->effort != ZIPCCL_EFFORT_RATIO)
        try_strategies(&fast, true, &status);
    if (mode != ZIPCCL_MODE_RAW && used.ratio_bytes != NULL && params->ratio_encode_Bps > 0 &&
        params->ratio_decode_Bps > 0)
        try_strategies(&slow, true, &status);
    if (mode == ZIPCCL_MODE_COMPRESSED && n == 0)
        try_strategies(&fast, false, &status);
    free(splits);
    return n > 0 ? ZIPCCL_OK : status;
}

/* The cheapest so far; the first of those that cost the same. */
static void keep_cheapest(void *context, struct zipccl_candidate *candidate)
{
    struct zipccl_candidate *best = context, other = *best;

    if (best->plan != NULL && !(candidate->cost.total_s < best->cost.total_s))
        return;
    *best = *candidate;
    candidate->plan = other.plan; /* goes away */
}

zipccl_status zipccl_choose(const struct zipccl_call *call,
                            const struct zipccl_placement *placement,
                            const struct zipccl_cost_params *params,
                            const struct zipccl_wire_sizes *sizes, enum zipccl_mode mode,
                            uint32_t capacity_class, size_t max_staging_bytes,
                            struct zipccl_plan **out, struct zipccl_cost *cost)
{
    struct zipccl_candidate best = {NULL, NULL, {0}};

    ZIPCCL_TRY(zipccl_candidates(call, placement, params, sizes, mode, capacity_class,
                                 max_staging_bytes, keep_cheapest, &best));
    *out = best.plan;
    if (cost != NULL)
        *cost = best.cost;
    return ZIPCCL_OK;
}
