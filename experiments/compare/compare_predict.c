/*
 * compare_predict.c - a prediction of measured rows, plan by plan
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/compare/compare_predict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Interquartile range of a Gaussian in standard deviations, and its median's error over its mean's. */
#define IQR_SIGMAS   1.349
#define MEDIAN_ERROR 1.2533

bool zipccl_row_has_plan(const struct zipccl_rows *file, const struct zipccl_row *row)
{
    bool uneven = zipccl_is_uneven(row->op);
    bool library = strcmp(file->on, "mpi") == 0 && strncmp(row->strategy, "native", 6) == 0;

    return !uneven && !library;
}

void zipccl_row_to_link(const struct zipccl_row *row, struct zipccl_link_row *out)
{
    *out = (struct zipccl_link_row){
        .op = row->op,
        .dtype = row->dtype,
        .redop = row->redop,
        .root = row->root,
        .count = (size_t)row->count,
        .nranks = row->nranks,
        .nnodes = row->nodes,
        .nchunks = row->nchunks,
        .effort = strcmp(row->effort, "ratio") == 0 ? ZIPCCL_EFFORT_RATIO : ZIPCCL_EFFORT_FAST,
        .time_s = row->time_s,
        .spread = NAN,
        .wire_bytes = row->wire_bytes,
        .ratio = row->ratio,
        .encode_s = row->encode_s,
        .decode_s = row->decode_s};
    snprintf(out->strategy, sizeof out->strategy, "%s", row->strategy);
    if (row->q3_s > row->q1_s)
        out->spread = MEDIAN_ERROR * (row->q3_s - row->q1_s) / IQR_SIGMAS / row->time_s /
                      sqrt(row->iters >= 1 ? row->iters : 1);
}

/* A cluster's ranks of a node are its GPUs: a row of more is of another machine. */
static zipccl_status check_world(const struct zipccl_row *row, const struct zipccl_cluster *cluster,
                                 struct zipccl_error *error)
{
    if (row->nodes > 0 && row->nranks / row->nodes > cluster->gpus_per_node)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%u ranks on a node, where cluster %.60s has %u: --set gpus_per_node=%u",
                           row->nranks / row->nodes, cluster->name, cluster->gpus_per_node,
                           row->nranks / row->nodes);
    return ZIPCCL_OK;
}

static zipccl_status predict(const struct zipccl_rows *file, const struct zipccl_row *row,
                             const struct zipccl_cluster *cluster, double *seconds,
                             struct zipccl_error *error)
{
    struct zipccl_error why = {""};
    struct zipccl_cost_params params;
    struct zipccl_link_row as_link;
    zipccl_status status = check_world(row, cluster, &why);

    zipccl_cluster_cost_params(cluster, &params);
    zipccl_row_to_link(row, &as_link);
    if (status == ZIPCCL_OK)
        status = zipccl_link_predict(&as_link, &params, seconds, &why);
    if (status == ZIPCCL_OK)
        return ZIPCCL_OK;
    return zipccl_fail(error, status, "%s: row %u: %s", file->path, row->place, why.text);
}

zipccl_status zipccl_predict_rows(struct zipccl_rows *const *files, size_t nfiles,
                                  const struct zipccl_cluster *cluster, struct zipccl_rows **out,
                                  struct zipccl_error *error)
{
    struct zipccl_rows *rows = calloc(1, sizeof *rows);
    zipccl_status status = ZIPCCL_OK;
    size_t most = 0;

    for (size_t f = 0; f < nfiles; f++)
        most += files[f]->n;
    if (rows != NULL)
        rows->rows = calloc(most + 1, sizeof *rows->rows);
    if (rows == NULL || rows->rows == NULL) {
        zipccl_rows_destroy(rows);
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    }
    snprintf(rows->path, sizeof rows->path, "the cost model (T0)");
    snprintf(rows->on, sizeof rows->on, "sim");
    snprintf(rows->cluster, sizeof rows->cluster, "%s", cluster->name);
    for (size_t f = 0; f < nfiles && status == ZIPCCL_OK; f++) {
        if (files[f]->kind == ZIPCCL_ROWS_REPLAY)
            status = zipccl_fail(error, ZIPCCL_ERR_INPUT,
                                 "%s: a step, whose calls share links; 'zipccl replay' predicts it",
                                 files[f]->path);
        for (size_t i = 0; i < files[f]->n && status == ZIPCCL_OK; i++) {
            struct zipccl_row *row = &rows->rows[rows->n];

            if (!zipccl_row_has_plan(files[f], &files[f]->rows[i]))
                continue;
            *row = files[f]->rows[i];
            row->wrong = NAN;
            status = predict(files[f], &files[f]->rows[i], cluster, &row->time_s, error);
            rows->n++;
        }
    }
    if (status == ZIPCCL_OK && rows->n == 0)
        status = zipccl_fail(error, ZIPCCL_ERR_INPUT,
                             "%s: no row has a plan that the model knows: all are of sendrecv, "
                             "alltoallv or MPI's own collectives",
                             files[0]->path);
    if (status != ZIPCCL_OK) {
        zipccl_rows_destroy(rows);
        return status;
    }
    *out = rows;
    return ZIPCCL_OK;
}
