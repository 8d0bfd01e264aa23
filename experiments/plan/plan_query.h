/*
 * plan_query.h - what would serve a call on a cluster: candidates with prices, and where choices flip
 *
 * T0 alone, closed form; it simulates and measures nothing.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_PLAN_QUERY_H
#define ZIPCCL_EXPERIMENTS_PLAN_QUERY_H

#include "core/strategy.h"
#include "models/cluster.h"

/* What is asked. */
struct zipccl_plan_query {
    struct zipccl_call call;
    uint32_t nranks, ranks_per_node; /* 0: all of the cluster's */
    enum zipccl_mode mode;
    double ratio;      /* mean of messages; 0: Gaussian data */
    double worst;      /* the lowest of one message; 'ratio' if that is given */
    double max_ratio;  /* mean with ZIPCCL_EFFORT_RATIO; 0: as much better as for Gaussian data */
    const char *input; /* the file that they are from, or NULL */
    size_t max_staging_bytes;
};

/* One candidate. */
struct zipccl_plan_row {
    char strategy[48];  /* as plans name it */
    const char *family; /* the same without rings: zipccl_strategy.name */
    uint32_t nchunks;
    enum zipccl_effort effort;
    int capacity_class; /* of fixed messages, else ZIPCCL_NO_CLASS */
    bool compressed;
    struct zipccl_cost cost;
    size_t order; /* in which it was built: of equal times the first is taken */
};

/* From this size on another strategy is chosen. */
struct zipccl_plan_flip {
    size_t count, size_bytes;
    const char *family;
    enum zipccl_effort effort;
    bool compressed;
};

struct zipccl_plan_answer {
    uint32_t nranks, nnodes, ranks_per_node;
    size_t size_bytes;
    size_t nrows;
    struct zipccl_plan_row *rows; /* [nrows] fastest first */
    size_t chosen, best_raw;      /* of them; nrows: there is none uncompressed */
    struct zipccl_plan *plan;     /* the one chosen */
    size_t nflips;
    struct zipccl_plan_flip *flips; /* [nflips] the first from the smallest size on; of pairs one,
                                       what a communicator settles on for all of them */
};

/* Smallest and largest size for flips. */
#define ZIPCCL_PLAN_LEAST_BYTES ((size_t)1 << 10)
#define ZIPCCL_PLAN_MOST_BYTES  ((size_t)1 << 30)

/*
 * Bytes of a call as nccl-tests count them: of all ranks' blocks for all_gather, reduce_scatter and
 * alltoall, else of the count.  SIZE_MAX if they do not fit.
 */
size_t zipccl_plan_size_bytes(enum zipccl_op op, enum zipccl_dtype dtype, size_t count,
                              uint32_t nranks);

/*
 * Fill in the ratios of 'query' from the tensors of its type in 'input': pieces of 256 Ki elements,
 * encoded with the codec.  ZIPCCL_ERR_INPUT if there are none; as zipccl_bench_load().
 */
zipccl_status zipccl_plan_measure_ratio(struct zipccl_plan_query *query,
                                        struct zipccl_error *error);

/*
 * Answer 'query'.  'out' is to be released whatever the status.
 * ZIPCCL_ERR_INPUT if the cluster is too small or nothing serves the call.
 */
zipccl_status zipccl_plan_ask(const struct zipccl_plan_query *query,
                              const struct zipccl_cluster *cluster, struct zipccl_plan_answer *out,
                              struct zipccl_error *error);
void zipccl_plan_answer_release(struct zipccl_plan_answer *answer);

#endif
