/*
 * timeline.h - when each rank ran what, in one mode: the spans behind a replay's sums
 *
 * Kept only if the options of the replay ask for it.  Names, counts and groups stay in the trace,
 * which must outlive the timeline.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_SIM_TIMELINE_H
#define ZIPCCL_SIM_TIMELINE_H

#include "traces/trace.h"

/* Unless told otherwise, a timeline holds at most this many ranks. */
#define ZIPCCL_TIMELINE_RANKS 64

/* One instance of an event on one rank. */
struct zipccl_span {
    uint32_t rank, stream;
    uint32_t event; /* index into the trace's events */
    uint32_t part;  /* of its group; compute: 0 */
    uint32_t op;    /* the same number on every rank that takes part */
    uint32_t price; /* collectives: index into 'prices' */
    double enter_s; /* the rank got there */
    double start_s; /* the last rank got there; compute: as enter */
    double end_s;
};

/* What a collective was run as. */
struct zipccl_span_price {
    char strategy[48];
    double raw_bytes, wire_bytes; /* sent by a rank, mean over the part */
    double codec_s;
    bool compressed;
};

struct zipccl_timeline {
    const struct zipccl_trace *trace;
    int mode; /* ZIPCCL_STEP_RAW, _COMPRESSED or _ADAPTIVE */
    uint32_t nranks;
    uint32_t *ranks; /* [nranks] world ranks, ascending */
    bool all_ranks;
    uint32_t gpus_per_node;
    size_t nspans;
    struct zipccl_span *spans; /* by rank, then stream, then time; a stream's do not overlap */
    size_t nprices;
    struct zipccl_span_price *prices;
};

/* Destroy a timeline; NULL is allowed. */
void zipccl_timeline_destroy(struct zipccl_timeline *timeline);

#endif
