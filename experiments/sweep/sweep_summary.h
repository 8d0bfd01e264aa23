/*
 * sweep_summary.h - what the points of a sweep say together: order, best, where compression pays
 *
 * Only arithmetic on what the points hold.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_SWEEP_SUMMARY_H
#define ZIPCCL_EXPERIMENTS_SWEEP_SUMMARY_H

#include "experiments/sweep/sweep_points.h"

/* Compression pays where the step gets this much shorter: speedup 1.02. */
#define ZIPCCL_SWEEP_PAYS 0.02

/* Tokens per second and GPU, and MFU, of the mode ZIPCCL_STEP_...; NaN where unknown. */
double zipccl_sweep_tokens(const struct zipccl_sweep_point *point, int mode);
double zipccl_sweep_mfu(const struct zipccl_sweep_point *point, int mode);

/* True if a point was run and has a speedup. */
bool zipccl_sweep_compared(const struct zipccl_sweep_point *point);

/* What rows are sorted by, ended by NULL; the first is the order of combinations. */
extern const char *const zipccl_sweep_sorts[];

/* Points that ran or failed, [*n] of them, sorted; equal ones as combinations go, failed ones last. */
zipccl_status zipccl_sweep_order(const struct zipccl_sweep *sweep, int sort,
                                 const struct zipccl_sweep_point ***out, size_t *n,
                                 struct zipccl_error *error);

/* A place on a numeric axis where the gain goes through ZIPCCL_SWEEP_PAYS, all else equal. */
struct zipccl_sweep_crossing {
    size_t axis;
    const struct zipccl_sweep_point *low, *high; /* the two neighbours, by number of the axis */
    double value;                                /* between them; interpolated */
    bool pays_below;
};

/* The lines along one axis: all else equal. */
struct zipccl_sweep_lines {
    size_t axis, nlines;       /* lines with two points or more */
    size_t always, never;      /* pays at all of their points, at none */
    size_t ncrossings, nbelow; /* of the lines together; of these, that pay below */
    double least, most;        /* of the crossings' values */
    double widest;             /* of the crossings: the larger neighbour over the smaller */
};

struct zipccl_sweep_summary {
    const struct zipccl_sweep_point *best; /* largest speedup, NULL: none is compared */
    const struct zipccl_sweep_point
        *fastest; /* most tokens per second and GPU, adaptive; or NULL */
    size_t ncompared, npays;
    size_t nlines;
    struct zipccl_sweep_lines
        lines[ZIPCCL_SWEEP_MAX_AXES]; /* of numeric axes with several values */
    size_t ncrossings;
    struct zipccl_sweep_crossing *crossings; /* [ncrossings] owned, axis by axis */
};

/* ZIPCCL_ERR_NOMEM. */
zipccl_status zipccl_sweep_summarize(const struct zipccl_sweep *sweep,
                                     struct zipccl_sweep_summary *out, struct zipccl_error *error);

/* A number of 'axis' for people: "400 Gb/s", "64". */
void zipccl_sweep_number(const struct zipccl_sweep_axis *axis, double number, char *out,
                         size_t size);

#endif
