/*
 * perf_plan.c - perf of one plan made elsewhere: read, made the options' call, validated
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/perf/perf_plan.h"

#include "core/zipccl.h"
#include "experiments/perf/perf_check.h"
#include "experiments/plan/plan_file.h"

#include <stdlib.h>

enum zipccl_perf_mode zipccl_perf_plan_mode(const struct zipccl_plan *plan)
{
    if (plan->compressed)
        return ZIPCCL_PERF_COMPRESSED;
    return plan->nsteps > 0 && plan->steps[0].kind == ZIPCCL_STEP_NATIVE ? ZIPCCL_PERF_NATIVE
                                                                         : ZIPCCL_PERF_RAW;
}

void zipccl_perf_plan_call(const struct zipccl_plan *plan, struct zipccl_perf_call *call)
{
    size_t n = plan->nranks, count = plan->count;

    /* The largest pair has (2n - 1) / n of the mean. */
    if (plan->op == ZIPCCL_ALLTOALLV)
        count = count / (2 * n - 1) * n;
    zipccl_perf_call_of(call, (enum zipccl_op)plan->op, (enum zipccl_dtype)plan->dtype,
                        (enum zipccl_redop)plan->redop, plan->root, count, plan->nranks);
}

zipccl_status zipccl_perf_plan_open(struct zipccl_perf_options *o, struct zipccl_plan **plan,
                                    struct zipccl_error *error)
{
    struct zipccl_perf_call call;
    enum zipccl_perf_mode mode;
    bool given = false;

    ZIPCCL_TRY(zipccl_plan_file_read(o->plan_path, plan, &o->plan_nodes, error));
    mode = zipccl_perf_plan_mode(*plan);
    if ((*plan)->op != (uint8_t)o->op)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "--plan %.200s: a plan of %s, expected %s",
                           o->plan_path, zipccl_op_name((enum zipccl_op)(*plan)->op),
                           zipccl_op_name(o->op));
    for (int m = 0; m < ZIPCCL_NUM_PERF_MODES; m++)
        given = given || o->modes[m];
    if (given && !o->modes[mode])
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "--plan %.200s: a plan of --mode %s, which is not run", o->plan_path,
                           zipccl_perf_mode_names[mode]);
    o->modes[mode] = true;
    o->plan = *plan;
    o->dtypes[0] = (enum zipccl_dtype)(*plan)->dtype;
    o->redops[0] = (enum zipccl_redop)(*plan)->redop;
    o->root = (*plan)->root;
    zipccl_perf_plan_call(*plan, &call);
    o->min_bytes = o->max_bytes = call.size; /* for the table's head */
    return ZIPCCL_OK;
}

/* What perf moves between the pairs of an uneven op. */
static size_t *splits_of(const struct zipccl_perf_call *call, uint32_t nranks)
{
    size_t *splits = calloc((size_t)nranks * nranks, sizeof *splits), from, to;

    for (uint32_t src = 0; splits != NULL && src < nranks; src++)
        for (uint32_t dst = 0; dst < nranks; dst++)
            splits[(size_t)src * nranks + dst] =
                zipccl_perf_block(call, NULL, nranks, src, dst, &from, &to);
    return splits;
}

zipccl_status zipccl_perf_plan_check(const struct zipccl_perf_options *o,
                                     const struct zipccl_topology *topology, bool *in_place,
                                     struct zipccl_error *error)
{
    const struct zipccl_plan *plan = o->plan;
    bool uneven = zipccl_is_uneven(plan->op);
    struct zipccl_error why = {""};
    struct zipccl_comm_config config;
    struct zipccl_perf_call call;
    size_t *splits = NULL;
    zipccl_status status;

    if (plan->nranks != topology->nranks)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "--plan %.200s: for %u ranks, here are %u",
                           o->plan_path, plan->nranks, topology->nranks);
    zipccl_comm_config_init(&config);
    zipccl_perf_plan_call(plan, &call);
    if (call.count == 0)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "--plan %.200s: pairs of %zu elements are too short for what perf moves "
                           "between %u ranks",
                           o->plan_path, plan->count, plan->nranks);
    if (uneven && (splits = splits_of(&call, plan->nranks)) == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "no memory for %u ranks", plan->nranks);
    status = zipccl_plan_validate(plan, topology, false, splits, config.max_staging_bytes, &why);
    *in_place = status == ZIPCCL_OK && call.has_in_place &&
                zipccl_plan_validate(plan, topology, true, splits, config.max_staging_bytes,
                                     NULL) == ZIPCCL_OK;
    free(splits);
    if (status == ZIPCCL_OK || status == ZIPCCL_ERR_NOMEM)
        return status == ZIPCCL_OK ? status : zipccl_fail(error, status, "%s", why.text);
    return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                       "--plan %.150s, made for %u ranks on %u node%s, here are %u on %u: %.200s",
                       o->plan_path, plan->nranks, o->plan_nodes, o->plan_nodes != 1 ? "s" : "",
                       topology->nranks, topology->nnodes, why.text);
}
