/*
 * strategy.h - the plans that could serve a call, and the choice among them
 *
 * A strategy builds a plan from a call and a topology; it sees no transport, no GPU and no
 * simulator.  The chooser prices candidates at T0 and takes the cheapest.  A choice is a pure
 * function of what both ends of each message know, so all ranks choose alike.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_STRATEGY_H
#define ZIPCCL_CORE_STRATEGY_H

#include "core/cost.h"
#include "core/plan.h"

/* A collective call, as both ends know it. */
struct zipccl_call {
    enum zipccl_op op;
    enum zipccl_dtype dtype;
    enum zipccl_redop redop;
    uint32_t root;   /* broadcast */
    size_t count;    /* NCCL argument: all_gather send count, reduce_scatter receive count,
                           alltoall per peer, all_reduce and broadcast whole; uneven: largest pair */
    bool has_native; /* the transport offers this op itself */
};

enum zipccl_mode {
    ZIPCCL_MODE_RAW,        /* best uncompressed plan */
    ZIPCCL_MODE_COMPRESSED, /* best compressed plan; raw where there is none */
    ZIPCCL_MODE_ADAPTIVE    /* best of both */
};

/* One way to serve calls. */
struct zipccl_strategy {
    const char *name;
    bool compressed;
    bool (*serves)(const struct zipccl_call *call);
    /*
     * Build the plan for 'nchunks' chunks (1 for strategies that are not chunked; clipped to the
     * count).  capacity_class: see zipccl_capacity().  max_staging_bytes: 0 for no bound; a plan
     * that needs more uses more, smaller chunks, or fails with ZIPCCL_ERR_NOMEM.
     */
    zipccl_status (*build)(const struct zipccl_call *call, const struct zipccl_topology *topology,
                           uint32_t channels, uint32_t nchunks, uint32_t capacity_class,
                           size_t max_staging_bytes, struct zipccl_plan **out);
};

/* All strategies, NULL at the end; native first, then uncompressed, then compressed. */
extern const struct zipccl_strategy *const zipccl_strategies[];

/* Find by name; NULL if there is none. */
const struct zipccl_strategy *zipccl_strategy_find(const char *name);

/*
 * Bytes of a FIXED message of 'n' elements: a pure function, computed by both ends.
 * Class 0 is the wide one (ratio 1.40); raw bound if smaller.
 */
size_t zipccl_capacity(enum zipccl_dtype dtype, size_t n, uint32_t capacity_class);

/*
 * Price every candidate for 'call' (strategies x chunk counts 1, 2, 4, 8, ...) and build the
 * cheapest of 'mode'.
 *
 * sizes   expected wire sizes; NULL: Gaussian data at the codec's mean ratio
 * cost    out, price of the chosen plan, NULL if not wanted
 * The caller destroys '*out'.  ZIPCCL_ERR_UNSUPPORTED if no strategy serves the call.
 */
zipccl_status zipccl_choose(const struct zipccl_call *call,
                            const struct zipccl_placement *placement,
                            const struct zipccl_cost_params *params,
                            const struct zipccl_wire_sizes *sizes, enum zipccl_mode mode,
                            size_t max_staging_bytes, struct zipccl_plan **out,
                            struct zipccl_cost *cost);

#endif
