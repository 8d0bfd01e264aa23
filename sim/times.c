/*
 * times.c - memory of a run's times
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "sim/times.h"

#include <stdlib.h>

zipccl_status zipccl_times_create(const struct zipccl_program *program, struct zipccl_times **out)
{
    struct zipccl_times *t = calloc(1, sizeof(*t));
    size_t n = program->nops * program->nranks + 1;

    if (t == NULL)
        return ZIPCCL_ERR_NOMEM;
    t->nranks = program->nranks;
    t->nops = program->nops;
    t->enter = calloc(n, sizeof(double));
    t->start = calloc(n, sizeof(double));
    t->end = calloc(n, sizeof(double));
    t->ran = calloc(n, 1);
    if (t->enter == NULL || t->start == NULL || t->end == NULL || t->ran == NULL) {
        zipccl_times_destroy(t);
        return ZIPCCL_ERR_NOMEM;
    }
    *out = t;
    return ZIPCCL_OK;
}

void zipccl_times_destroy(struct zipccl_times *times)
{
    if (times == NULL)
        return;
    free(times->enter);
    free(times->start);
    free(times->end);
    free(times->ran);
    free(times);
}
