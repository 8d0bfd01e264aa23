/*
 * regret.h - how far the chooser's plan is from the best candidate, message by message
 *
 * The chooser compares candidates at T0.  Here every candidate, and more chunk counts than the chooser
 * tries, runs at T2, which asks neither the lowering nor the cost model; what the chosen plan takes
 * beyond the fastest is the regret.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_SIM_REGRET_H
#define ZIPCCL_SIM_REGRET_H

#include "core/strategy.h"
#include "models/cluster.h"

/* A call of all ranks of a cluster, and what its messages shrink to. */
struct zipccl_regret_case {
    struct zipccl_call call; /* uneven ops: each pair moves 'count', sendrecv to the next node */
    double ratio;            /* raw / message without its header; 1: nothing shrinks */
    double ratio_gain;       /* times that in max-ratio mode */
};

/* One plan. */
struct zipccl_regret_plan {
    char name[48]; /* ends in " max-ratio" where it codes so */
    uint32_t nchunks;
    bool compressed, split;
    double t0_s, t2_s;
};

struct zipccl_regret {
    struct zipccl_regret_plan chosen, best;
    struct zipccl_regret_plan raw;     /* the fastest uncompressed one */
    struct zipccl_regret_plan unsplit; /* the fastest of those whose messages go whole */
    double regret;                     /* chosen.t2_s / best.t2_s - 1 */
    uint32_t ncandidates, nrun;        /* plans built, and those run: the others are out of reach */
};

/*
 * Run the candidates of each case on 'cluster', one after the other in a child process.
 *
 * A plan whose T0 less its latencies is above 1.5 times the least T0 is not run: T2 is never further below.
 * ZIPCCL_ERR_UNSUPPORTED if no strategy serves a case; ZIPCCL_ERR_INTERNAL if a plan failed.
 */
zipccl_status zipccl_regret_measure(const struct zipccl_cluster *cluster,
                                    const struct zipccl_regret_case *cases, uint32_t ncases,
                                    struct zipccl_regret *out, struct zipccl_error *error);

#endif
