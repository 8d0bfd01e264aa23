/*
 * cluster_fit.h - a cluster file whose links and codec are fitted to measured rows
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_CLUSTER_FIT_H
#define ZIPCCL_EXPERIMENTS_CLUSTER_FIT_H

#include "analysis/rows.h"
#include "models/cluster.h"
#include "models/link.h"

#include <stdio.h>

enum { ZIPCCL_FIT_MAX_SIZES = 64 };

/* Which rows of the files count; 0 of a list: all. */
struct zipccl_fit_filter {
    uint64_t sizes[ZIPCCL_FIT_MAX_SIZES]; /* bytes as nccl-tests counts them */
    size_t nsizes;
    const char *modes[8];
    size_t nmodes;
};

struct zipccl_cluster_fit {
    size_t nrows;
    struct zipccl_link_row *rows;       /* [nrows] owned, as are: */
    const struct zipccl_row **sources;  /* [nrows] rows of the files */
    const struct zipccl_rows **files;   /* [nrows] theirs */
    double *predicted_s;                /* [nrows] */
    size_t npairs, nlibrary, nfiltered; /* rows left out: uneven ops; MPI's own; by the filter */
    bool measured;                      /* some row is */
    struct zipccl_link_fit fit;
};

/*
 * Fit to the rows of 'files' [nfiles] and put what was found into 'cluster', each value with its source;
 * nodes and ranks of a node become those of the rows.
 *
 * Rows of sendrecv and alltoallv are left out; those of MPI's own collectives too if there are others,
 * since nobody knows its algorithms.
 * ZIPCCL_ERR_INPUT with file and row: a step's rows, wrong elements, no rows left, as zipccl_link_fit(),
 * or what was fitted and the rest of 'cluster' do not fit together.
 */
zipccl_status zipccl_cluster_fit_run(struct zipccl_rows *const *files, size_t nfiles,
                                     const struct zipccl_fit_filter *filter,
                                     struct zipccl_cluster_file *cluster,
                                     struct zipccl_cluster_fit *out, struct zipccl_error *error);
void zipccl_cluster_fit_release(struct zipccl_cluster_fit *fit);

/* Print parameters with intervals, then the rows with what the model makes of them. */
void zipccl_cluster_fit_print(const struct zipccl_cluster_fit *fit, const char *base, FILE *out);

/* A value of 'key' with its unit, as cluster files have it: "58.91MBps", "31.2us". */
void zipccl_link_text(enum zipccl_link_key key, double value, char *out, size_t size);

/* Half of a fitted value's interval in percent, at least 0.01. */
double zipccl_link_percent(const struct zipccl_link_estimate *estimate);

/* zipccl cluster fit ROWS...: argv[0] is "fit". */
int zipccl_cluster_fit_command(int argc, char **argv);

#endif
