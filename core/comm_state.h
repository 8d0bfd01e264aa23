/*
 * comm_state.h - what a communicator keeps between calls
 *
 * Private to comm.c (creation, agreement), comm_plans.c (which plan serves a call) and calls.c.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_COMM_STATE_H
#define ZIPCCL_CORE_COMM_STATE_H

#include "core/cache.h"
#include "core/executor.h"
#include "core/zipccl.h"

/* What the plan of an even call follows from besides the call; equal on all ranks. */
struct zipccl_learnt_key {
    int cls;                   /* of its messages */
    int ceiling;               /* class at which it is priced */
    int kind;                  /* of plan; ZIPCCL_NO_KIND: the cheapest of all */
    uint32_t coded_ppm;        /* coded / raw of exact messages; 0: Gaussian */
    enum zipccl_effort effort; /* with which that was seen */
};

/*
 * Plans and kinds of calls that are kept.  The least recently used ones go, by the order of calls:
 * even calls, which all ranks make in the same order, have caches of their own, so that ranks with
 * different pairs still evict the same.
 */
#define ZIPCCL_CACHED_PLANS 4096u
#define ZIPCCL_CACHED_KINDS 2048u

/* One plan of the cache. */
struct zipccl_cached_plan {
    struct zipccl_cache_node node;
    struct zipccl_call call;      /* the key, */
    struct zipccl_learnt_key key; /* and this */
    struct zipccl_plan *plan;
};

/* How pairs of one (op, dtype) travel; see zipccl_comm_plan(). */
struct zipccl_pair_rule {
    bool known;
    const struct zipccl_strategy *strategy;
    enum zipccl_effort effort;
    size_t chunk_n;                      /* elements of a full chunk, for every count */
    struct zipccl_pair_classes *classes; /* [nranks] owned; NULL: nothing to learn */
};

/* What is learnt of calls of equal counts. */
struct zipccl_even_class {
    struct zipccl_cache_node node;
    enum zipccl_op op;
    enum zipccl_dtype dtype;
    size_t count;
    struct zipccl_class_state state;
    bool priced_out; /* of its last plan */
    bool coded;      /* a plan since the last decision had messages */
    struct zipccl_trials trials;
    bool timed; /* the call under way is one of a trial */
    /* Calls of the trial whose times a device has, by number in the period. */
    struct {
        uint32_t call;
        uint64_t ticket;
    } tickets[ZIPCCL_TRIAL_CALLS];
    unsigned ntickets;
    uint32_t coded_ppm; /* as plans are priced; 0: not known */
    enum zipccl_effort effort;
    /* On this rank since the last decision: elements of messages, these messages, their effort. */
    uint64_t raw_seen, coded_seen;
    enum zipccl_effort effort_seen;
};

/*
 * What is seen of a pair's messages once they have ended, by periods of calls, with the class that they had.  When
 * period k begins, period k - 3 decides: an exec that tells late waits for calls that are further back, so that
 * both ends have seen all of it.
 */
#define ZIPCCL_LATE_PERIODS 3u

struct zipccl_pair_late {
    bool begun;
    uint64_t ended; /* calls of the class that have; they end in their order */
    struct {
        struct zipccl_class_seen seen;
        int cls;
    } periods[ZIPCCL_LATE_PERIODS];
};

/* The classes of one peer's messages in one (op, dtype). */
struct zipccl_pair_classes {
    struct zipccl_class_state send, recv;
    struct zipccl_pair_late send_late, recv_late; /* used if the exec tells late */
};

struct zipccl_comm {
    struct zipccl_transport *transport; /* borrowed */
    struct zipccl_exec *exec;           /* borrowed */
    struct zipccl_comm_config config;   /* 'strategy' points to 'pinned''s name */
    const struct zipccl_strategy *pinned;
    bool times; /* all ranks have a clock and are to learn times */
    struct zipccl_placement placement;
    struct zipccl_cache even_plans, pair_plans;
    size_t most_plans, most_kinds; /* of each cache */
    const struct zipccl_plan *last;
    struct zipccl_pair_rule pair_rules[2][ZIPCCL_NUM_DTYPES]; /* alltoallv, sendrecv */
    struct zipccl_staging {                                   /* grown */
        void *p;
        size_t nbytes;
    } tx, rx, tmp, acc;
    struct zipccl_cache classes;
    size_t *pairs;        /* [4 * nranks] counts and displacements of a sendrecv */
    int8_t *pair_classes; /* [4 * nranks] of a call: classes out and in, fits out and in */
    struct zipccl_comm_stats stats, late; /* 'late': of calls that had not ended, since */
    struct zipccl_error error;
    const void *stream; /* of the call under way */
};

/*
 * Find or make the plan of 'call'.  Even ops: on a miss the ranks compare digests.
 *
 * cls  even ops: what has been learnt; NULL: the configuration's class.  The plan follows from its
 *      class, the class that nothing bars, at which it is priced, and the call alone.  In a
 *      reduction only the bytes on the wire follow from the class: order and rounding stay
 *
 * Uneven ops: a rank knows only its own pairs, so ranks may hold plans for different counts.  What
 * a message looks like must then follow from the pair's count and the communicator alone:
 *   - the strategy is chosen once per (op, dtype), from the configuration, for full chunks;
 *   - chunk_n is the same in every plan that has more than one chunk, and a plan of one chunk
 *     covers only counts up to it: a pair is cut in the same places at both ends;
 *   - raw_below_n is the communicator's, and the capacity class that of the configuration or the
 *     pair's own, which is never wider than the plan's;
 *   - the wire lane works chunk by chunk whatever the number of chunks or slots, so two ends see
 *     their common messages in the same order although one of them has more chunks.
 */
zipccl_status zipccl_comm_plan(struct zipccl_comm *comm, const struct zipccl_call *call,
                               struct zipccl_even_class *cls, const struct zipccl_plan **out);

/* The rule for pairs of an (op, dtype); NULL if it is not known yet. */
struct zipccl_pair_rule *zipccl_comm_pair_rule(struct zipccl_comm *comm, enum zipccl_op op,
                                               enum zipccl_dtype dtype);

/*
 * The class of an even call, decided anew if a period has ended, for which the ranks exchange what
 * they saw.  '*out' is NULL if there is nothing to learn.
 * ZIPCCL_ERR_MISMATCH, naming a rank, if the ranks' classes are found to differ.
 */
zipccl_status zipccl_comm_class_before(struct zipccl_comm *comm, const struct zipccl_call *call,
                                       struct zipccl_even_class **out);

/* Count the call that 'plan' served; 'cls' may be NULL. */
void zipccl_comm_class_after(const struct zipccl_comm *comm, struct zipccl_even_class *cls,
                             const struct zipccl_plan *plan, const struct zipccl_run_stats *stats);

/* Learn from and count calls that have ended since; does not wait. */
void zipccl_comm_settle(struct zipccl_comm *comm);

/*
 * What is learnt of even calls besides their class, see comm_learn.c.
 *
 * start     the kinds of plans for 'call' and their predicted times
 * decide    end a period; 'raw' and 'coded' are the sums over all ranks
 * digest    of what decisions depend on
 * key       what the next call's plan follows from
 */
zipccl_status zipccl_comm_learn_start(const struct zipccl_comm *comm,
                                      const struct zipccl_call *call,
                                      struct zipccl_even_class *cls);
void zipccl_comm_learn_decide(const struct zipccl_comm *comm, struct zipccl_even_class *cls,
                              struct zipccl_trial_seen seen, uint64_t raw, uint64_t coded);
uint64_t zipccl_comm_learn_digest(const struct zipccl_even_class *cls);
struct zipccl_learnt_key zipccl_comm_learnt_key(const struct zipccl_comm *comm,
                                                const struct zipccl_even_class *cls);

/* The kind that a plan is of. */
int zipccl_comm_kind_of(const struct zipccl_plan *plan);

/*
 * Sizes of exact messages for prices, from what has been seen; 'context' and '*out' live as long as
 * they are used.  NULL if nothing has: the chooser's own.
 */
struct zipccl_seen_sizes {
    enum zipccl_dtype dtype;
    uint32_t coded_ppm;
    enum zipccl_effort effort;
};
const struct zipccl_wire_sizes *zipccl_comm_seen_sizes(struct zipccl_seen_sizes *context,
                                                       const struct zipccl_call *call,
                                                       const struct zipccl_learnt_key *key,
                                                       struct zipccl_wire_sizes *out);

/* The cheapest plan of 'kind' for an even call; in a reduction on the path of the first choice. */
zipccl_status zipccl_comm_best_of_kind(const struct zipccl_comm *comm,
                                       const struct zipccl_call *call,
                                       const struct zipccl_learnt_key *key,
                                       struct zipccl_candidate *out);

/* Give 'run', an uneven call, the classes of its pairs; and count it, once it succeeded. */
void zipccl_comm_pairs_before(struct zipccl_comm *comm, const struct zipccl_call *call,
                              struct zipccl_run *run);
void zipccl_comm_pairs_after(struct zipccl_comm *comm, const struct zipccl_call *call,
                             const struct zipccl_run *run, const struct zipccl_run_stats *stats);

/* Find out how pairs of 'call' travel, if that is not known yet.  ZIPCCL_ERR_NOMEM perhaps on this
 * rank alone. */
zipccl_status zipccl_comm_settle_pairs(struct zipccl_comm *comm, const struct zipccl_call *call,
                                       const struct zipccl_pair_rule **out);

/* Fill in what transport and exec offer for 'call'. */
void zipccl_comm_offers(const struct zipccl_comm *comm, struct zipccl_call *call);

/* Version and digests of the settings; the options without what is to be learnt. */
struct zipccl_comm_settings {
    uint32_t agreement;
    uint64_t options, params, topology;
};
void zipccl_comm_settings(const struct zipccl_comm *comm, struct zipccl_comm_settings *out);

/*
 * zipccl_alltoallv() for blocks anywhere in memory, and for ranks of which only the two ends of each message
 * call: nothing checks that blocks do not overlap.
 */
zipccl_status zipccl_comm_run_pairs(struct zipccl_comm *comm, const void *send,
                                    const size_t *send_counts, const size_t *send_displs,
                                    void *recv, const size_t *recv_counts,
                                    const size_t *recv_displs, enum zipccl_dtype dtype,
                                    void *stream);

void zipccl_comm_plans_destroy(struct zipccl_comm *comm);
void zipccl_comm_classes_destroy(struct zipccl_comm *comm);

/* The class of a kind of even calls that there is; NULL. */
struct zipccl_even_class *zipccl_comm_class_find(const struct zipccl_comm *comm, enum zipccl_op op,
                                                 enum zipccl_dtype dtype, size_t count);

/* Keep a class, for whose kind there is none, in place of the one that was used longest ago. */
void zipccl_comm_class_add(struct zipccl_comm *comm, struct zipccl_even_class *cls);

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
