/*
 * zipccl.h - lossless compressed collectives: the one header a user includes
 *
 * The calls mirror NCCL: same argument order and meaning, counts in elements, in place as NCCL
 * defines it.  A communicator joins a transport, an exec, a topology and a plan cache; it keeps
 * its own error text.  On the CPU a call returns when it is done and 'stream' must be NULL.
 *
 * The exec decides how many threads a rank computes with: zipccl_exec_cpu_create_mt() for ranks that
 * have several cores each.  It is no option of the communicator, since neither bytes nor results
 * depend on it: ranks may differ.
 *
 * Buffers overlap only where NCCL allows it: all_gather with send == recv + rank * count,
 * reduce_scatter with recv == send + rank * recv_count, all_reduce and broadcast with send == recv.
 * Send buffers are not modified.  All ranks call the same collectives in the same order.
 *
 * Reductions: sum and avg of bf16, fp16 and fp32 have plans of our own, whose bits follow from the
 * plan alone: contributions are added in fp32 in rank order and rounded once, or, in two levels, in
 * rank order within each node and then in node order, rounded once a level; avg divides before the
 * last rounding; a NaN becomes the type's canonical quiet NaN.  The other operators and types, and
 * native plans, have the transport's bits.  What a communicator learns from its calls (classes.h,
 * trials.h) changes what is on the wire and how fast it is, never a result.
 *
 * ZIPCCL_ERR_ARG and ZIPCCL_ERR_UNSUPPORTED are found before anything moves and leave the
 * communicator as it was; a rank that gets one alone lets the others wait, as with NCCL, until it
 * repeats the call or calls zipccl_comm_abort().  After any other failure the transport has been
 * aborted: no rank waits for ever, and every later call returns ZIPCCL_ERR_ABORTED.
 * ZIPCCL_ERR_MISMATCH if the ranks' calls are found to differ.  ZIPCCL_ERR_UNSUPPORTED, with the
 * reason, also for calls that the plan of the configuration is not for.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_ZIPCCL_H
#define ZIPCCL_CORE_ZIPCCL_H

#include "core/capacity.h"
#include "core/classes.h"
#include "core/codec.h"
#include "core/cost.h"
#include "core/dtype.h"
#include "core/exec.h"
#include "core/status.h"
#include "core/strategy.h"
#include "core/topology.h"
#include "core/transport.h"
#include "core/trials.h"

struct zipccl_comm;

/* What a communicator learns from its calls; docs/design.md says how. */
enum zipccl_learning {
    ZIPCCL_LEARN_NOTHING, /* frozen: one plan for each (op, dtype, count), from the settings and what
                             zipccl_comm_load_state() brought, the same in every run */
    ZIPCCL_LEARN_SIZES,   /* capacity classes and ratios */
    ZIPCCL_LEARN_TIMES /* also whether native, raw or compressed plans are the fastest, if the execs
                             of all ranks have a clock; in ZIPCCL_MODE_ADAPTIVE without 'strategy' */
};

struct zipccl_comm_config {
    enum zipccl_mode mode;            /* default ZIPCCL_MODE_ADAPTIVE */
    const char *strategy;             /* pin one by name where it serves; NULL: choose */
    uint32_t nchunks;                 /* with 'strategy': chunks; 0: 1; not for uneven ops, whose
                                         chunks have one size for the whole communicator */
    uint32_t capacity_class;          /* of fixed messages, see zipccl_capacity(); default
                                         ZIPCCL_CLASS_LEARN: what the data have shown to fit */
    enum zipccl_effort effort;        /* RATIO: every compressed message has it, needs its rates in
                                         'params'; FAST: also RATIO where the chooser finds it
                                         cheaper and 'params' has its rates */
    const struct zipccl_plan *plan;   /* run this one, and serve no call that it is not for; NULL:
                                         choose.  Borrowed; it must have passed
                                         zipccl_plan_validate() for the transport's topology, for
                                         uneven ops with the splits of the calls: an uneven call that
                                         it is not for aborts, as other ranks cannot tell.  Nothing is
                                         learnt then */
    size_t max_staging_bytes;         /* per call; 0: 256 MiB */
    struct zipccl_cost_params params; /* rates for the chooser; gpus_per_node 0: the topology's */
    enum zipccl_learning learning;    /* default ZIPCCL_LEARN_TIMES; with a fixed capacity_class
                                         nothing is learnt */
};

#define ZIPCCL_CLASS_LEARN UINT32_MAX

/* Fill 'config' with defaults (rates of a CPU on a shared-memory transport). */
void zipccl_comm_config_init(struct zipccl_comm_config *config);

/*
 * Create a communicator on one rank.  Collective: exchanges a digest of version, options and cost
 * parameters; a difference is ZIPCCL_ERR_MISMATCH on every rank, naming one that differs.
 *
 * transport, exec  borrowed; outlive the communicator
 * config           NULL: defaults; must be equal on all ranks
 */
zipccl_status zipccl_comm_create(struct zipccl_transport *transport, struct zipccl_exec *exec,
                                 const struct zipccl_comm_config *config, struct zipccl_comm **out,
                                 struct zipccl_error *error);
void zipccl_comm_destroy(struct zipccl_comm *comm);

/* Make every blocked and later call of every rank return ZIPCCL_ERR_ABORTED.  Any thread. */
void zipccl_comm_abort(struct zipccl_comm *comm);

/* The plan of the last call that moved something, for tables; NULL if none.  Valid until the next
 * call. */
const struct zipccl_plan *zipccl_comm_last_plan(const struct zipccl_comm *comm);

/* Text of the last failure on this communicator; "" if none.  Valid until the next call. */
const char *zipccl_comm_error(const struct zipccl_comm *comm);

/* Bytes and overflows of the calls so far on this rank. */
struct zipccl_comm_stats {
    uint64_t calls, raw_bytes, wire_bytes, overflows, raw_resends;
};
void zipccl_comm_get_stats(const struct zipccl_comm *comm, struct zipccl_comm_stats *stats);

/* The capacity class of one kind of call, where it is learnt. */
struct zipccl_comm_class {
    enum zipccl_op op;
    enum zipccl_dtype dtype;
    size_t count;  /* of calls with equal counts; 0 for pairs */
    int peer;      /* alltoallv, sendrecv: messages to or from this rank; else -1 */
    bool incoming; /* from it */
    int now;       /* class of the next call, zipccl_class_name(); ZIPCCL_NO_CLASS: uncompressed */
    enum zipccl_class_reason reason; /* why */
    bool priced_out; /* uncompressed, since no class that its data are known to fit pays */
    uint64_t calls;  /* so far, of those in each class, of those uncompressed or exact, and of those
                        that overflowed, on any rank, up to the last decision */
    uint64_t class_calls[ZIPCCL_NUM_CLASSES], uncompressed_calls, overflow_calls;
};

/*
 * The kinds of calls, last made first; equal on all ranks that made the calls, for pairs on both ends.
 * Of more than 2048 kinds of even calls those made longest ago are forgotten, and so are plans of
 * more than 4096.
 * False, and '*out' untouched, if there are no more than 'index'.
 */
bool zipccl_comm_get_class(const struct zipccl_comm *comm, size_t index,
                           struct zipccl_comm_class *out);

/* What else is learnt of one kind of calls with equal counts; zipccl_comm_get_class() has its class. */
struct zipccl_comm_learnt {
    enum zipccl_op op;
    enum zipccl_dtype dtype;
    size_t count;
    double ratio; /* raw / coded of the messages of all ranks, as plans are priced; 0: not seen */
    bool times;   /* kinds of plans are compared */
    int kind;     /* in use, zipccl_kind_name(); ZIPCCL_NO_KIND: not compared, the cheapest */
    double predicted_s[ZIPCCL_NUM_KINDS]; /* of the best plan of each; 0: none, or not compared */
    double seen_s[ZIPCCL_NUM_KINDS];      /* of the slowest rank; 0: none */
    uint64_t ntrials;
    uint32_t changes; /* of the kind in use */
};

/*
 * The kinds of calls, last made first, and equal on all ranks that made the calls.
 * False, and '*out' untouched, if there are no more than 'index'.
 */
bool zipccl_comm_get_learnt(const struct zipccl_comm *comm, size_t index,
                            struct zipccl_comm_learnt *out);

/*
 * Write what has been learnt as text, format in core/STATE.md; the caller frees '*text' [*nbytes].
 * A file has it whole or not at all.  Local, but texts that are to be loaded together must be
 * written after the same calls.  What was seen since the last decision is not in them.
 *
 * ZIPCCL_ERR_NOMEM; ZIPCCL_ERR_IO with the path.
 */
zipccl_status zipccl_comm_save_state(struct zipccl_comm *comm, char **text, size_t *nbytes);
zipccl_status zipccl_comm_save_state_file(struct zipccl_comm *comm, const char *path);

/*
 * Start from what another run had learnt.  Collective, before the first call: every rank gives the
 * text that the same rank wrote, and all take it or none does.  With ZIPCCL_LEARN_NOTHING the
 * communicator stays there, else it goes on learning.  A communicator that fails to load stays
 * usable, with nothing learnt.
 *
 * ZIPCCL_ERR_INPUT on a rank whose text is broken, or of another version, rank, topology, rates or
 * options, ZIPCCL_ERR_IO on one that cannot read the file; ZIPCCL_ERR_MISMATCH, naming a rank, on
 * those for which it is another rank that failed, and on all if what they had learnt differs.
 */
zipccl_status zipccl_comm_load_state(struct zipccl_comm *comm, const char *text, size_t nbytes);
zipccl_status zipccl_comm_load_state_file(struct zipccl_comm *comm, const char *path);

/*
 * Learn no more.  Collective: ranks compare what they have learnt of calls with equal counts.
 * ZIPCCL_ERR_MISMATCH, naming one that differs.
 */
zipccl_status zipccl_comm_freeze(struct zipccl_comm *comm);

zipccl_status zipccl_all_gather(const void *send, void *recv, size_t count, enum zipccl_dtype dtype,
                                struct zipccl_comm *comm, void *stream);
zipccl_status zipccl_reduce_scatter(const void *send, void *recv, size_t recv_count,
                                    enum zipccl_dtype dtype, enum zipccl_redop redop,
                                    struct zipccl_comm *comm, void *stream);
zipccl_status zipccl_all_reduce(const void *send, void *recv, size_t count, enum zipccl_dtype dtype,
                                enum zipccl_redop redop, struct zipccl_comm *comm, void *stream);
zipccl_status zipccl_broadcast(const void *send, void *recv, size_t count, enum zipccl_dtype dtype,
                               uint32_t root, struct zipccl_comm *comm, void *stream);
zipccl_status zipccl_alltoall(const void *send, void *recv, size_t count, enum zipccl_dtype dtype,
                              struct zipccl_comm *comm, void *stream);
zipccl_status zipccl_alltoallv(const void *send, const size_t *send_counts,
                               const size_t *send_displs, void *recv, const size_t *recv_counts,
                               const size_t *recv_displs, enum zipccl_dtype dtype,
                               struct zipccl_comm *comm, void *stream);

/*
 * Send to 'dst' and receive from 'src' as one operation; -1 for no peer (then the count is 0).
 * Collective over the two ends only: a rank that exchanges nothing need not call.
 */
zipccl_status zipccl_sendrecv(const void *send, size_t send_count, int dst, void *recv,
                              size_t recv_count, int src, enum zipccl_dtype dtype,
                              struct zipccl_comm *comm, void *stream);

#endif
