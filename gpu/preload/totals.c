/*
 * totals.c - counts of all communicators of this process, added up by op
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/preload/totals.h"

#include "gpu/preload/counts.h"
#include "gpu/preload/engine.h"

void zipccl_shim_totals_add(struct zipccl_shim_totals *totals, struct zipccl_shim_comm *comm)
{
    pthread_mutex_lock(&comm->lock);
    for (size_t i = 0; i < comm->counts.nkinds; i++) {
        totals->calls[comm->counts.kinds[i].op] += comm->counts.kinds[i].calls;
        totals->bytes[comm->counts.kinds[i].op] += comm->counts.kinds[i].bytes;
    }
    for (int op = 0; op < ZIPCCL_SHIM_NUM_OPS; op++) {
        for (int v = 0; v < ZIPCCL_SHIM_NUM_VERDICTS; v++)
            totals->checks[op][v] += comm->counts.checks[op][v];
        for (int r = 0; r < ZIPCCL_SHIM_NUM_REASONS; r++)
            totals->reasons[op][r] += comm->counts.reasons[op][r];
    }
    for (int op = 0; op < ZIPCCL_NUM_OPS; op++)
        zipccl_shim_coded_add(&totals->coded[op], &comm->counts.coded[op]);
    pthread_mutex_unlock(&comm->lock);
}

const char *zipccl_shim_back_end_reason(enum zipccl_gpu_reason reason)
{
    const struct zipccl_shim_back_end *table = zipccl_shim_engine_table();

    return table != NULL ? table->reason_name(reason) : "?";
}
