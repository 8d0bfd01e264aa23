/*
 * compare.h - two results row by row: predicted and measured, or before and after
 *
 * A row of the second matches the row of the first that is the same call: op, type, reduction, root,
 * count, ranks and nodes, mode, strategy and chunks where both name them, and for steps group, stream and
 * calls.  A simulated row stands for in place and out of place.  What has no partner is kept, with the
 * reason; nothing is left out silently.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_ANALYSIS_COMPARE_H
#define ZIPCCL_ANALYSIS_COMPARE_H

#include "analysis/rows.h"

#include <stdio.h>

struct zipccl_compare_pair {
    const struct zipccl_row *first, *second;
    double error; /* predicted / measured - 1; of two of a kind: after / before - 1 */
};

struct zipccl_compare_single {
    const struct zipccl_rows *file;
    const struct zipccl_row *row;
    bool of_first;
    const char *why; /* what the nearest row of the other differs in */
};

/* |error| of some pairs. */
struct zipccl_compare_sum {
    size_t n;
    double median, worst;
    double bias; /* median of the errors with their signs */
};

struct zipccl_compare {
    const struct zipccl_rows *first;
    struct zipccl_rows *const *seconds; /* [nseconds] borrowed */
    size_t nseconds;
    bool predicts; /* the first is simulated, the others measured; else before and after */
    size_t npairs, nsingles;
    struct zipccl_compare_pair *pairs;     /* [npairs] owned, in the order of the second */
    struct zipccl_compare_single *singles; /* [nsingles] owned */
    struct zipccl_compare_sum all, by_op[ZIPCCL_NUM_OPS], by_mode[4]; /* n 0: none */
};

/* "raw", "native", "compressed", "adaptive": the order of by_mode. */
extern const char *const zipccl_compare_modes[4];

struct zipccl_compare_options {
    bool any_strategy;  /* rows of one mode match whatever their strategies */
    double least_bytes; /* rows of less are not compared; size_bytes, of steps raw bytes a call */
};

/*
 * Compare 'first' with 'seconds' [nseconds].
 *
 * ZIPCCL_ERR_INPUT: a step and single collectives, measured before simulated, or others simulated and
 * measured mixed.  That nothing matches is no error of this function: npairs is then 0.
 * ZIPCCL_ERR_NOMEM.  The caller releases '*out'; rows are borrowed.
 */
zipccl_status zipccl_compare_rows(const struct zipccl_rows *first,
                                  struct zipccl_rows *const *seconds, size_t nseconds,
                                  const struct zipccl_compare_options *options,
                                  struct zipccl_compare *out, struct zipccl_error *error);
void zipccl_compare_release(struct zipccl_compare *compare);

/* Bytes of a row as options and tables have them. */
double zipccl_compare_bytes(const struct zipccl_row *row);

/*
 * Write the picture: the first's time over the second's, both axes logarithmic, the line of equal times,
 * the band of 10 % around it, a colour an op, a shape a mode.  'alone': with its own light style, as a
 * file.  Nothing if there are no pairs.
 */
void zipccl_compare_svg(const struct zipccl_compare *compare, bool alone, FILE *out);

/* Write a self-contained page: picture, sums, rows, what has no partner.  ZIPCCL_ERR_IO. */
zipccl_status zipccl_compare_html(const struct zipccl_compare *compare, FILE *out,
                                  struct zipccl_error *error);

#endif
