/*
 * strategy.c - the table of strategies and the size of fixed messages
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/strategy.h"

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

/* Raw size over coded size of each class, in thousandths. */
static const size_t class_permille[] = {1400, 1450, 1480, 1250};

/* Room for the headers of one block besides the message's own (DESIGN section 3: at most 128 B per
 * 64 KiB); in longer messages the ratio covers them. */
#define BLOCK_HEADER_BYTES 128u

size_t zipccl_capacity(enum zipccl_dtype dtype, size_t n, uint32_t capacity_class)
{
    size_t bound = zipccl_bound(dtype, n), raw = n * zipccl_dtype_size(dtype), permille, coded;

    if (bound == 0 || !zipccl_dtype_compressible(dtype) ||
        capacity_class >= sizeof class_permille / sizeof *class_permille)
        return bound;
    permille = class_permille[capacity_class];
    coded = raw / permille * 1000 + (raw % permille * 1000 + permille - 1) / permille;
    coded += ZIPCCL_MESSAGE_HEADER_BYTES + BLOCK_HEADER_BYTES;
    /* Whole cache lines, so that messages laid end to end stay aligned. */
    coded = (coded + 63) / 64 * 64;
    return coded < bound ? coded : bound;
}

/* Mean ratio of the codec on Gaussian data, in ten-thousandths.  Source: DESIGN section 3, tier
 * program 2,1,2,2,2 with its headers. */
#define GAUSSIAN_RATIO 15040u

static size_t gaussian_bytes(void *context, uint32_t src, uint32_t dst, size_t n)
{
    enum zipccl_dtype dtype = *(const enum zipccl_dtype *)context;
    size_t raw = n * zipccl_dtype_size(dtype), bound = zipccl_bound(dtype, n);
    size_t coded = ZIPCCL_MESSAGE_HEADER_BYTES + raw / GAUSSIAN_RATIO * 10000 +
                   raw % GAUSSIAN_RATIO * 10000 / GAUSSIAN_RATIO;

    (void)src;
    (void)dst;
    return coded < bound ? coded : bound;
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

/* The best candidate so far. */
struct choice {
    struct zipccl_plan *plan;
    struct zipccl_cost cost;
};

/* Build and price one candidate and keep it if it is cheaper; '*nchunks' is what it became. */
static zipccl_status try_candidate(const struct zipccl_strategy *strategy,
                                   const struct zipccl_call *call,
                                   const struct zipccl_placement *placement,
                                   const struct zipccl_cost_params *params,
                                   const struct zipccl_wire_sizes *sizes, size_t max_staging_bytes,
                                   uint32_t *nchunks, struct choice *best)
{
    struct zipccl_plan *plan;
    struct zipccl_cost cost;
    uint32_t asked = *nchunks;
    zipccl_status status;

    ZIPCCL_TRY(strategy->build(call, placement->topology, params->channels, asked, 0,
                               max_staging_bytes, &plan));
    *nchunks = plan->nchunks;
    status = zipccl_cost_plan(plan, placement, params, sizes, &cost);
    if (status == ZIPCCL_OK && (best->plan == NULL || cost.total_s < best->cost.total_s)) {
        zipccl_plan_destroy(best->plan);
        best->plan = plan;
        best->cost = cost;
        return ZIPCCL_OK;
    }
    zipccl_plan_destroy(plan);
    return status;
}

/* All strategies of one kind; '*status' becomes the first failure that is not a refusal. */
static void try_strategies(bool compressed, const struct zipccl_call *call,
                           const struct zipccl_placement *placement,
                           const struct zipccl_cost_params *params,
                           const struct zipccl_wire_sizes *sizes, size_t max_staging_bytes,
                           struct choice *best, zipccl_status *status)
{
    for (unsigned i = 0; zipccl_strategies[i] != NULL; i++) {
        const struct zipccl_strategy *strategy = zipccl_strategies[i];
        uint32_t most = zipccl_strategy_chunks(strategy, call) ? 16 : 1, before = 0;

        if (strategy->compressed != compressed || !strategy->serves(call))
            continue;
        for (uint32_t k = 1; k <= most; k *= 2) {
            uint32_t nchunks = k;
            zipccl_status s;

            /* The last build came out with as many chunks: it was this plan. */
            if (before >= k)
                continue;
            s = try_candidate(strategy, call, placement, params, sizes, max_staging_bytes, &nchunks,
                              best);
            if (s == ZIPCCL_OK)
                before = nchunks;
            else if (s != ZIPCCL_ERR_UNSUPPORTED && *status == ZIPCCL_ERR_UNSUPPORTED)
                *status = s;
        }
    }
}

zipccl_status zipccl_choose(const struct zipccl_call *call,
                            const struct zipccl_placement *placement,
                            const struct zipccl_cost_params *params,
                            const struct zipccl_wire_sizes *sizes, enum zipccl_mode mode,
                            size_t max_staging_bytes, struct zipccl_plan **out,
                            struct zipccl_cost *cost)
{
    enum zipccl_dtype dtype = call->dtype;
    struct zipccl_wire_sizes used = {.bytes = gaussian_bytes, .context = &dtype, .by_n = true};
    bool uneven = call->op == ZIPCCL_ALLTOALLV || call->op == ZIPCCL_SENDRECV;
    zipccl_status status = ZIPCCL_ERR_UNSUPPORTED;
    struct choice best = {NULL, {0}};
    size_t *splits = NULL;

    if (sizes != NULL)
        used = *sizes;
    if (uneven && used.splits == NULL) {
        used.splits = splits = assumed_splits(call, placement->topology);
        if (splits == NULL)
            return ZIPCCL_ERR_NOMEM;
    }
    if (mode != ZIPCCL_MODE_COMPRESSED)
        try_strategies(false, call, placement, params, &used, max_staging_bytes, &best, &status);
    if (mode != ZIPCCL_MODE_RAW)
        try_strategies(true, call, placement, params, &used, max_staging_bytes, &best, &status);
    if (mode == ZIPCCL_MODE_COMPRESSED && best.plan == NULL)
        try_strategies(false, call, placement, params, &used, max_staging_bytes, &best, &status);
    free(splits);
    if (best.plan == NULL)
        return status;
    *out = best.plan;
    if (cost != NULL)
        *cost = best.cost;
    return ZIPCCL_OK;
}
