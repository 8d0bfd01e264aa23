/*
 * reduce_run.h - one reduction on ranks as threads, compared with the reference bit by bit
 *
 * Test code, for the tests of plans that reduce.  Inputs and expected bits are made once and read by
 * all ranks.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_CORE_TESTS_REDUCE_RUN_H
#define ZIPCCL_CORE_TESTS_REDUCE_RUN_H

#include "core/tests/coll_world.h"
#include "core/tests/ref_reduce.h"

struct reduce_case {
    enum zipccl_op op;
    enum zipccl_dtype dtype;
    enum zipccl_redop redop;
    const struct zipccl_strategy *strategy;
    size_t count;
    uint32_t nchunks, capacity_class;
    enum kind kind;
    bool in_place;
};

/* What the ranks send, [nranks] buffers of 'n' elements. */
struct reduce_inputs {
    uint32_t nranks;
    size_t n;
    void *of[MAX_RANKS];
};

/* One run: the caller fills the first part. */
struct reduce_job {
    const struct world *world;
    const struct reduce_case *c;
    const struct reduce_inputs *inputs;
    struct zipccl_transport *const *transports; /* [nranks] */
    struct zipccl_exec *const *execs;           /* [nranks] */
    bool leave; /* ranks that are done abort, as processes that end */
    /* Filled by reduce_run(). */
    struct zipccl_plan *plan; /* destroyed by reduce_close() */
    struct ref_reduce ref;
    void *expected; /* [inputs->n] all elements reduced */
    zipccl_status status[MAX_RANKS];
    bool right[MAX_RANKS];
    struct zipccl_run_stats stats[MAX_RANKS];
};

void reduce_inputs_open(struct reduce_inputs *in, const struct reduce_case *c, uint32_t nranks);
void reduce_inputs_close(struct reduce_inputs *in);

struct zipccl_call reduce_call(const struct reduce_case *c);

/* Build the plan and the expected bits; false if the strategy does not serve the case. */
bool reduce_open(struct reduce_job *job);

/* Run it on all ranks; true if every rank has what it must. */
bool reduce_run(struct reduce_job *job);
void reduce_close(struct reduce_job *job);

/* True if 'bytes' [nranks * nranks] are those of the lowering, which encodes the messages again. */
bool reduce_bytes_right(const struct reduce_job *job, const uint64_t *bytes);

void reduce_print(const struct reduce_job *job);

#endif
