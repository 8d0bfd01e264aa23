/*
 * comm_state.h - what a communicator keeps between calls
 *
 * Private to comm.c (creation, agreement), comm_plans.c (which plan serves a call) and calls.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_COMM_STATE_H
#define ZIPCCL_CORE_COMM_STATE_H

#include "core/zipccl.h"

/* One plan of the cache, newest first. */
struct zipccl_cached_plan {
    struct zipccl_cached_plan *next;
    struct zipccl_call call; /* the key */
    struct zipccl_plan *plan;
};

/* How pairs of one (op, dtype) travel; see zipccl_comm_plan(). */
struct zipccl_pair_rule {
    bool known;
    const struct zipccl_strategy *strategy;
    size_t chunk_n; /* elements of a full chunk, for every count */
};

struct zipccl_comm {
    struct zipccl_transport *transport; /* borrowed */
    struct zipccl_exec *exec;           /* borrowed */
    struct zipccl_comm_config config;   /* 'strategy' points to 'pinned''s name */
    const struct zipccl_strategy *pinned;
    struct zipccl_placement placement;
    struct zipccl_cached_plan *plans;
    const struct zipccl_plan *last;
    struct zipccl_pair_rule pair_rules[2][ZIPCCL_NUM_DTYPES]; /* alltoallv, sendrecv */
    struct zipccl_staging {                                   /* grown */
        void *p;
        size_t nbytes;
    } tx, rx, tmp, acc;
    size_t *pairs; /* [4 * nranks] counts and displacements of a sendrecv */
    struct zipccl_comm_stats stats;
    struct zipccl_error error;
};

/*
 * Find or make the plan of 'call'.  Even ops: on a miss the ranks compare digests.
 *
 * Uneven ops: a rank knows only its own pairs, so ranks may hold plans for different counts.  What
 * a message looks like must then follow from the pair's count and the communicator alone:
 *   - the strategy is chosen once per (op, dtype), from the configuration, for full chunks;
 *   - chunk_n is the same in every plan that has more than one chunk, and a plan of one chunk
 *     covers only counts up to it: a pair is cut in the same places at both ends;
 *   - raw_below_n and the capacity class are the communicator's;
 *   - the wire lane works chunk by chunk whatever the number of chunks or slots, so two ends see
 *     their common messages in the same order although one of them has more chunks.
 */
zipccl_status zipccl_comm_plan(struct zipccl_comm *comm, const struct zipccl_call *call,
                               const struct zipccl_plan **out);

/*
 * Exchange 'n' words of each rank; all [nranks * n] words arrive in 'all', in rank order.
 */
zipccl_status zipccl_comm_gather_words(struct zipccl_transport *transport, const uint64_t *mine,
                                       uint32_t n, uint64_t *all);

/* FNV-1a over fixed-width words, so that equal settings give equal digests on every machine. */
uint64_t zipccl_comm_hash_u64(uint64_t hash, uint64_t x);
#define ZIPCCL_COMM_HASH_START UINT64_C(0xcbf29ce484222325)

/* First rank whose word 'word' differs from what most ranks have; nranks if all are equal. */
uint32_t zipccl_comm_odd_rank(const uint64_t *all, uint32_t nranks, uint32_t n, uint32_t word);

#endif
