/*
 * executor.h - runs a plan on one rank, over a transport and an exec
 *
 * Two lanes: the codec lane in the caller, the wire lane beside it.  The executor decides nothing;
 * what to do, where and in which order is in the plan.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_EXECUTOR_H
#define ZIPCCL_CORE_EXECUTOR_H

#include "core/exec.h"
#include "core/plan.h"
#include "core/transport.h"

/* Buffers of one call on one rank. */
struct zipccl_run {
    const struct zipccl_plan *plan;
    const void *send;
    void *recv;
    const size_t *send_counts, *send_displs; /* [nranks] uneven ops, elements */
    const size_t *recv_counts, *recv_displs;
    /* [nranks] PAIRS: capacity class of the FIXED messages to and from each peer, ZIPCCL_NO_CLASS: they
     * travel raw.  Both ends of a pair have the same.  NULL: the plan's, none of these is wider. */
    const int8_t *send_class, *recv_class;
    /* [nranks] out, PAIRS: as 'fit' below, of the messages to and from each peer; NULL: not wanted. */
    int8_t *send_fit, *recv_fit;
    void *tx, *rx;     /* staging of plan->tx_bytes, plan->rx_bytes, aligned to 64 */
    void *tmp, *acc;   /* the same of plan->tmp_bytes, plan->acc_bytes */
    const void *owner; /* whose call it is, for exec->ops->ended */
};

/* What a run did on this rank. */
struct zipccl_run_stats {
    enum {
        ZIPCCL_TOLD,      /* everything that follows, and fits of pairs, are of the call */
        ZIPCCL_TOLD_LATE, /* overflows, fits and coded bytes come with its zipccl_ended_call */
        ZIPCCL_TOLD_NEVER /* nobody will know them */
    } told;
    uint64_t raw_bytes;   /* elements sent to peers, uncompressed */
    uint64_t wire_bytes;  /* payload handed to exchanges for peers */
    uint32_t overflows;   /* messages of this rank that did not fit */
    uint32_t raw_resends; /* exchanges that were repeated raw */
    int fit; /* narrowest capacity class that all messages of this rank would have fitted, of those
                that overflowed the next roomier one; ZIPCCL_NUM_CLASSES if it coded none */
    uint64_t coded_raw_bytes, coded_bytes; /* of this rank's messages that did not overflow: their
                                              elements, and what these became, without padding */
};

/* Of an ended call of pairs that have classes of their own, [nranks] each: as they were in the run. */
struct zipccl_ended_pairs {
    size_t *send_counts, *recv_counts;
    int8_t *send_class, *recv_class, *send_fit, *recv_fit;
};

/* A call of which run() of an exec (exec.h) could not tell everything yet, once it has ended. */
struct zipccl_ended_call {
    enum zipccl_op op;
    enum zipccl_dtype dtype;
    size_t count;
    bool even, fixed;                       /* its plan: of equal counts; with FIXED messages */
    struct zipccl_run_stats stats;          /* what run() left out; wire_bytes: of raw resends */
    const struct zipccl_ended_pairs *pairs; /* NULL: none; lives until the owner's next call */
};

/*
 * Run 'run->plan'.  Collective: every rank of the transport runs an equal plan.
 *
 * ZIPCCL_ERR_CORRUPT if a received message is not valid; every other status of the transport.
 * After an error the transport has been aborted, so that no peer waits for ever.
 */
zipccl_status zipccl_execute(const struct zipccl_run *run, struct zipccl_transport *transport,
                             struct zipccl_exec *exec, struct zipccl_run_stats *stats);

#endif
