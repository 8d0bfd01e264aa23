/*
 * fold.h - ranks that do the same at the same time, found from the trace
 *
 * Two ranks are alike if they run the same events, in groups that lie alike on the nodes and whose
 * members are alike in turn.  In a closed form such ranks have equal times, so one stands for all:
 * a trace of thousands of ranks folds to some dozens.  Not for T1, where all share links.
 * Source: colour refinement; colours are 64-bit hashes.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_SIM_FOLD_H
#define ZIPCCL_SIM_FOLD_H

#include "models/cluster.h"
#include "traces/trace.h"

/* Part of a group that a rank is in: none. */
#define ZIPCCL_FOLD_NONE UINT32_MAX

struct zipccl_fold_group {
    uint32_t *part_of;                /* [nranks] part of the trace's group, or none */
    struct zipccl_trace_group placed; /* one part of each kind, with its world ranks */
    struct zipccl_trace_group folded; /* the same parts, with the classes of those ranks */
    uint32_t *kind_of;                /* [nparts of the trace's group] part of 'folded' */
};

struct zipccl_fold {
    uint32_t nranks, nclasses;
    uint32_t *class_of; /* [nranks] classes are numbered by their first rank */
    uint32_t *first;    /* [nclasses] that rank */
    uint32_t *size;     /* [nclasses] */
    uint32_t ngroups;
    struct zipccl_fold_group *groups;
};

/* Fold the ranks of 'trace'; ZIPCCL_ERR_NOMEM.  Cost: events x ranks, some ten times. */
zipccl_status zipccl_fold_create(const struct zipccl_trace *trace,
                                 const struct zipccl_cluster *cluster, struct zipccl_fold **out);
void zipccl_fold_destroy(struct zipccl_fold *fold);

#endif
