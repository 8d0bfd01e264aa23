/*
 * predict.c - what compression would gain on the calls that were counted, by the cost model
 *
 * A kind is priced by its mean count, at the codec's ratio for Gaussian data, and without contention
 * between collectives or with compute: T0 of core/cost.h.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/preload/predict.h"

#include "core/strategy.h"
#include "gpu/preload/rates.h"
#include "gpu/preload/shim.h"

#include <stdio.h>
#include <string.h>

static bool core_op(enum zipccl_shim_op op, enum zipccl_op *out)
{
    static const enum zipccl_op ops[] = {ZIPCCL_ALL_GATHER, ZIPCCL_ALLTOALL,  ZIPCCL_ALLTOALLV,
                                         ZIPCCL_SENDRECV,   ZIPCCL_BROADCAST, ZIPCCL_REDUCE_SCATTER,
                                         ZIPCCL_ALL_REDUCE};

    if (op >= ZIPCCL_SHIM_REDUCE)
        return false;
    *out = ops[op];
    return true;
}

static bool price(const struct zipccl_call *call, const struct zipccl_placement *placement,
                  const struct zipccl_cost_params *params, enum zipccl_mode mode, double *seconds,
                  char *strategy)
{
    struct zipccl_plan *plan = NULL;
    struct zipccl_cost cost;

    if (zipccl_choose(call, placement, params, NULL, mode, 1, zipccl_shim.settings.memory_bytes,
                      &plan, &cost) != ZIPCCL_OK)
        return false;
    *seconds = cost.total_s;
    (void)snprintf(strategy, 48, "%s", plan->strategy);
    zipccl_plan_destroy(plan);
    return true;
}

/* NCCL's own collective. */
static bool price_native(const struct zipccl_call *call, const struct zipccl_placement *placement,
                         const struct zipccl_cost_params *params, double *seconds)
{
    const struct zipccl_strategy *native = zipccl_strategy_find("native");
    struct zipccl_plan *plan = NULL;
    struct zipccl_cost cost;
    bool ok = native != NULL && native->build(call, placement->topology, params->channels, 1, 1, 0,
                                              &plan) == ZIPCCL_OK;

    ok = ok && zipccl_cost_plan(plan, placement, params, NULL, &cost) == ZIPCCL_OK;
    zipccl_plan_destroy(plan);
    if (ok)
        *seconds = cost.total_s;
    return ok;
}

bool zipccl_shim_predict(const struct zipccl_shim_comm *comm, const struct zipccl_shim_kind *kind,
                         struct zipccl_shim_prediction *out)
{
    struct zipccl_placement placement = {comm->topology, NULL};
    struct zipccl_call call = {.dtype = (enum zipccl_dtype)kind->dtype, .redop = ZIPCCL_SUM};
    struct zipccl_cost_params params;
    double calls = (double)kind->calls;
    char raw[48];
    uint32_t most = 1;

    if (comm->topology == NULL || comm->nranks < 2 || kind->calls == 0 ||
        !core_op((enum zipccl_shim_op)kind->op, &call.op) || !zipccl_dtype_compressible(call.dtype))
        return false;
    call.count = (size_t)(kind->elements / kind->calls);
    if (kind->op == ZIPCCL_SHIM_ALLTOALLV) /* of one pair */
        call.count /= (size_t)comm->nranks;
    call.has_native = kind->op != ZIPCCL_SHIM_ALLTOALLV && kind->op != ZIPCCL_SHIM_SENDRECV;
    zipccl_shim_rates(&params, NULL);
    for (uint32_t n = 0; n < comm->topology->nnodes; n++)
        if (zipccl_topology_node_size(comm->topology, n) > most)
            most = zipccl_topology_node_size(comm->topology, n);
    if (params.gpus_per_node < most)
        params.gpus_per_node = most;
    if (call.count == 0 || !price(&call, &placement, &params, ZIPCCL_MODE_RAW, &out->raw_s, raw) ||
        !price(&call, &placement, &params, ZIPCCL_MODE_ADAPTIVE, &out->best_s, out->strategy))
        return false;
    if (!call.has_native || !price_native(&call, &placement, &params, &out->native_s))
        out->native_s = out->raw_s;
    out->native_s *= calls;
    out->raw_s *= calls;
    out->best_s *= calls;
    return true;
}
