/*
 * strategy.h - the plans that could serve a call, and the choice among them
 *
 * Ops that only move data, and reductions that native collectives do not or not well enough serve:
 *     native              the transport's own
 *     raw|fixed|exact direct     everyone to everyone; reductions: sum and avg of bf16, fp16, fp32
 *     raw|fixed|exact ring       around rings (all_gather, broadcast)
 *     fixed|exact split          direct, or for broadcast on rings, a first chunk whose messages
 *                                leave in part while the rest of them is coded (not for max ratio)
 *     raw|fixed|exact two-level  between the nodes once, within them raw (not alltoallv, sendrecv)
 * raw is uncompressed; fixed has messages of a size known before, exact sends sizes first.
 *
 * A strategy builds a plan from a call and a topology; it sees no transport, no GPU and no
 * simulator.  The chooser prices candidates at T0 and takes the cheapest.  A choice is a pure
 * function of what both ends of each message know, so all ranks choose alike.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_STRATEGY_H
#define ZIPCCL_CORE_STRATEGY_H

#include "core/capacity.h"
#include "core/codec.h"
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
    bool whole;      /* the exec codes messages in one go: no plans with parts */
    bool
        no_sizes; /* the exec is not to wait for sizes: none of the strategies that exchange them */
    enum zipccl_effort effort; /* plans are built with it; for the chooser see zipccl_choose() */
};

enum zipccl_mode {
    ZIPCCL_MODE_RAW,        /* best uncompressed plan */
    ZIPCCL_MODE_COMPRESSED, /* best compressed plan; raw where there is none */
    ZIPCCL_MODE_ADAPTIVE    /* best of both */
};

/*
 * Full chunks of a large call are a multiple of this many elements, the codec's superblock, so
 * that chunking costs no partial block; calls with smaller chunks are cut evenly.
 */
#define ZIPCCL_CHUNK_ALIGN_N 16384u

/* plan->raw_below_n of compressed uneven plans: below, a header and a launch cost more than is
 * saved (512 bf16 elements are 1 KiB, of which a third could be saved). */
#define ZIPCCL_RAW_BELOW_N 512u

/* Staging slots of a chunked plan at most: chunks in flight.  Where staging is bounded, plans rather
 * have fewer, but two and one a stage, than smaller chunks.  Source: notes/simgrid section 3.1, a
 * window of 4 hides alpha at 1 MB chunks. */
#define ZIPCCL_MAX_SLOTS 4u

/* Elements of a full chunk of a pair if staging allows: 1 MiB of bf16.  Source: notes/simgrid section
 * 3.1, a window of 4 chunks hides the latencies at that size. */
#define ZIPCCL_PAIR_CHUNK_N ((size_t)1 << 19)

/* Chunks for which a pair chunk must fit the staging: as many as can be in flight.  A communicator
 * settles the strategy of all pairs once, for such a window. */
#define ZIPCCL_PAIR_WINDOW   ZIPCCL_MAX_SLOTS
#define ZIPCCL_PAIR_WINDOW_N (ZIPCCL_PAIR_WINDOW * ZIPCCL_PAIR_CHUNK_N)

/* What ZIPCCL_EFFORT_RATIO saves: a byte for so many elements.  Source: bf16 ratios of 1.504 and 1.5158
 * in messages of 64 KiB (test_codec_ratio, test_codec_ans); other types have the same exponents. */
#define ZIPCCL_RATIO_SAVES_ONE_OF 97u

/* One way to serve calls. */
struct zipccl_strategy {
    const char *name; /* rings add " x<channels>" to it in the name of a plan */
    bool compressed;
    bool exact_sizes;       /* messages are as long as they are: what shrinks more, sends less */
    bool chunked;           /* plans differ with nchunks; else they have one chunk */
    bool chunks_reductions; /* the same of its reductions, where 'chunked' is false */
    bool (*serves)(const struct zipccl_call *call);
    /*
     * Build the plan for 'nchunks' chunks (1 for strategies that are not chunked; clipped to the
     * count).  capacity_class: see zipccl_capacity().  max_staging_bytes: 0 for no bound; a plan
     * that needs more uses more, smaller chunks, or fails with ZIPCCL_ERR_NOMEM.
     * A count of 0 gives a plan without steps.  ZIPCCL_ERR_UNSUPPORTED if the strategy does not
     * serve the call or this topology (compressed plans need two ranks), ZIPCCL_ERR_ARG for an
     * invalid call or one whose buffers do not fit size_t.
     */
    zipccl_status (*build)(const struct zipccl_call *call, const struct zipccl_topology *topology,
                           uint32_t channels, uint32_t nchunks, uint32_t capacity_class,
                           size_t max_staging_bytes, struct zipccl_plan **out);
};

/* All strategies, NULL at the end; native first, then uncompressed, then compressed. */
extern const struct zipccl_strategy *const zipccl_strategies[];

/* True if plans of 'strategy' for 'call' differ with nchunks. */
bool zipccl_strategy_chunks(const struct zipccl_strategy *strategy, const struct zipccl_call *call);

/* Find by name; NULL if there is none. */
const struct zipccl_strategy *zipccl_strategy_find(const char *name);

/* A plan that could serve a call, and its price. */
struct zipccl_candidate {
    const struct zipccl_strategy *strategy;
    struct zipccl_plan *plan; /* goes away after the call of the function that is told, unless
                                 that sets it to NULL or another plan */
    struct zipccl_cost cost;
};

/* Told of one candidate. */
typedef void zipccl_candidate_fn(void *context, struct zipccl_candidate *candidate);

/*
 * Build and price what zipccl_choose() chooses among, in the order of the table; arguments and
 * statuses are its.  Of candidates that cost the same it takes the first.
 */
zipccl_status zipccl_candidates(const struct zipccl_call *call,
                                const struct zipccl_placement *placement,
                                const struct zipccl_cost_params *params,
                                const struct zipccl_wire_sizes *sizes, enum zipccl_mode mode,
                                uint32_t capacity_class, size_t max_staging_bytes,
                                zipccl_candidate_fn *fn, void *context);

/*
 * Price every candidate for 'call' (strategies x chunk counts 1, 2, 4, 8, ...) and build the
 * cheapest of 'mode'.
 *
 * capacity_class  of FIXED messages; where sizes->overflows says that one does not fit, the next
 *                 wider class.  A plan whose messages do not all fit the widest is no candidate;
 *                 uneven ops, whose pairs keep a class each, are priced with their raw resends
 * The price is the time alone: what the codec takes from other work on the GPU
 * (params->codec_sm_share) is for the caller to weigh.
 *
 * Plans of exact sizes are priced with each effort: ZIPCCL_EFFORT_RATIO where 'params' has its rates
 * and 'sizes' its sizes, ZIPCCL_EFFORT_FAST unless call->effort is RATIO.
 *
 * sizes   expected wire sizes, equal on all ranks; NULL: Gaussian data at the codec's mean ratio,
 *         1.504 for bf16, with ZIPCCL_EFFORT_RATIO 1.516.  Without splits an alltoallv is priced as if each pair moved 'count' and a
 *         sendrecv as a shift to the next node
 * cost    out, price of the chosen plan, NULL if not wanted
 * The caller destroys '*out'.  ZIPCCL_ERR_UNSUPPORTED if no strategy serves the call.
 */
zipccl_status zipccl_choose(const struct zipccl_call *call,
                            const struct zipccl_placement *placement,
                            const struct zipccl_cost_params *params,
                            const struct zipccl_wire_sizes *sizes, enum zipccl_mode mode,
                            uint32_t capacity_class, size_t max_staging_bytes,
                            struct zipccl_plan **out, struct zipccl_cost *cost);

#endif
