/*
 * result.c - memory of a replay's result, and the order of its rows
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/result.h"

#include "sim/timeline.h"

#include <stdlib.h>

int zipccl_result_row_order(const void *a, const void *b)
{
    const struct zipccl_result_row *x = a, *y = b;
    double saved_x = x->exposed_raw_s - x->exposed_adaptive_s;
    double saved_y = y->exposed_raw_s - y->exposed_adaptive_s;

    if (saved_x != saved_y)
        return saved_x > saved_y ? -1 : 1;
    if (x->time_raw_s != y->time_raw_s)
        return x->time_raw_s > y->time_raw_s ? -1 : 1;
    if (x->op != y->op)
        return x->op < y->op ? -1 : 1;
    return x->count < y->count ? -1 : x->count > y->count;
}

void zipccl_replay_result_destroy(struct zipccl_replay_result *result)
{
    if (result == NULL)
        return;
    if (result->import != NULL)
        free(result->import->items);
    free(result->import);
    zipccl_timeline_destroy(result->timeline);
    free(result->rows);
    free(result->settings);
    free(result->assumptions);
    free(result->sensitivities);
    free(result->warnings);
    free(result);
}
