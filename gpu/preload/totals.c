/*
 * totals.c - counts of all communicators of this process, added up by op
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/preload/totals.h"

#include "gpu/preload/engine.h"

/* Statistics of a back end that is still there; those of one that is gone are in 'counts'. */
static void add_coded(struct zipccl_gpu_op_stats *sum, const struct zipccl_gpu_op_stats *more)
{
    sum->calls += more->calls;
    sum->raw_bytes += more->raw_bytes;
    sum->wire_bytes += more->wire_bytes;
    sum->coded_raw_bytes += more->coded_raw_bytes;
    sum->coded_wire_bytes += more->coded_wire_bytes;
    sum->overflows += more->overflows;
    sum->raw_resends += more->raw_resends;
    for (int r = 0; r < ZIPCCL_GPU_NUM_REASONS; r++)
        sum->reasons[r] += more->reasons[r];
}

void zipccl_shim_totals_add(struct zipccl_shim_totals *totals, struct zipccl_shim_comm *comm)
{
    struct zipccl_gpu_op_stats now;

    pthread_mutex_lock(&comm->lock);
    for (size_t i = 0; i < comm->counts.nkinds; i++) {
        totals->calls[comm->counts.kinds[i].op] += comm->counts.kinds[i].calls;
        totals->bytes[comm->counts.kinds[i].op] += comm->counts.kinds[i].bytes;
    }
    for (int op = 0; op < ZIPCCL_SHIM_NUM_OPS; op++) {
        totals->verified[op] += comm->counts.verified[op];
        totals->unverified[op] += comm->counts.unverified[op];
        for (int r = 0; r < ZIPCCL_SHIM_NUM_REASONS; r++)
            totals->reasons[op][r] += comm->counts.reasons[op][r];
    }
    for (int op = 0; op < ZIPCCL_NUM_OPS; op++)
        add_coded(&totals->coded[op], &comm->counts.coded[op]);
    pthread_mutex_unlock(&comm->lock);
    if (pthread_rwlock_tryrdlock(&comm->engine_lock) != 0)
        return;
    for (int op = 0; comm->engine != NULL && op < ZIPCCL_NUM_OPS; op++) {
        zipccl_shim_engine_table()->get_stats(comm->engine, (enum zipccl_op)op, &now);
        add_coded(&totals->coded[op], &now);
    }
    pthread_rwlock_unlock(&comm->engine_lock);
}

const char *zipccl_shim_back_end_reason(enum zipccl_gpu_reason reason)
{
    const struct zipccl_shim_back_end *table = zipccl_shim_engine_table();

    return table != NULL ? table->reason_name(reason) : "?";
}
