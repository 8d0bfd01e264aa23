/*
 * workload_sync.c - sending all parameters, as reinforcement learning does after each update; and
 * the door to all writers
 *
 * Trainer and inference share the ranks of a group, or the group is that of one trainer and its
 * readers: either the first rank has all parameters and broadcasts them, or each has a shard and
 * all gather.  Layer by layer, embedding and head last; nothing is computed meanwhile.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/workload_out.h"

static void send_all(struct workload_out *o, enum workload_use use, bool experts, uint64_t elements)
{
    bool gather = o->w->kind == ZIPCCL_WORKLOAD_SYNC_GATHER;
    enum workload_group group = experts ? IN_EDP : IN_DP;
    uint64_t n = o->size[group];

    if (elements > 0)
        workload_call(o,
                      &(struct workload_call){.label = "parameters",
                                              .op = gather ? ZIPCCL_ALL_GATHER : ZIPCCL_BROADCAST,
                                              .group = group,
                                              .stream = experts ? ON_EDP : ON_DP,
                                              .dtype = ZIPCCL_BFLOAT16,
                                              .count = gather ? (elements + n - 1) / n : elements,
                                              .use = use});
}

void workload_write_sync(struct workload_out *o)
{
    const struct zipccl_workload *w = o->w;

    for (uint32_t first = 0; first < w->model.layers;) {
        uint32_t run = workload_run(w, first, w->model.layers - first);
        bool moe = zipccl_workload_is_moe(&w->model, first);

        o->place = workload_place_of(w, first);
        workload_loop(o, run, "layers");
        send_all(o, OF_PARAM, false, workload_dense_params(w, moe));
        if (moe)
            send_all(o, OF_EXPERT_PARAM, true, workload_expert_params(w, moe));
        workload_end(o, run);
        first += run;
    }
    send_all(o, workload_root_use(o, false), false, workload_root_params(w, 0));
}

static zipccl_status check_sync(const struct workload_out *o, struct zipccl_error *error)
{
    if (o->w->kind == ZIPCCL_WORKLOAD_TRAIN)
        return ZIPCCL_OK;
    if (o->size[IN_DP] < 2)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "weight-sync goes over the ranks of dp, and dp is 1");
    if (o->w->model.experts > 0 && o->size[IN_EDP] < 2)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "weight-sync: with ep %u and etp %u each rank has its own experts and "
                           "nobody to send them to",
                           o->w->ep, o->w->etp);
    return ZIPCCL_OK;
}

zipccl_status zipccl_workload_write(const struct zipccl_workload *w, const char *path,
                                    const char *samples, const char *samples_name,
                                    struct zipccl_workload_summary *out, struct zipccl_error *error)
{
    struct zipccl_error own;
    struct workload_out *o;
    zipccl_status status;

    if (error == NULL)
        error = &own;
    ZIPCCL_TRY(zipccl_workload_check(w, error));
    if (w->pp > MAX_STAGES)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "pp %u: expected at most %d", w->pp,
                           MAX_STAGES);
    o = workload_out_create(w, error);
    if (o == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "out of memory");
    status = check_sync(o, error);
    if (status == ZIPCCL_OK)
        status = workload_out_open(o, path, samples, samples_name);
    if (status == ZIPCCL_OK) {
        if (w->kind != ZIPCCL_WORKLOAD_TRAIN)
            workload_write_sync(o);
        else if (w->sharding == ZIPCCL_SHARD_FSDP || w->sharding == ZIPCCL_SHARD_NORESHARD)
            workload_write_fsdp(o);
        else
            workload_write_pipeline(o);
        status = o->status;
    }
    return workload_out_destroy(o, status, out);
}
