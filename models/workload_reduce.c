/*
 * workload_reduce.c - gradients and parameters over data-parallel ranks, and the end of a step
 *
 * Dense parameters have as many copies as a stage has data and context parallel ranks, those of
 * experts as many as EP leaves.  Each bucket is reduced when its last layer is done; a bucket holds
 * whole layers, or a layer is several buckets.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/workload_out.h"

/* AdamW: moments, bias corrections, root, decay, step; master, m and v read and written. */
#define ADAM_FLOPS 14.0
#define ADAM_BYTES 24.0

static uint64_t bucket_size(const struct zipccl_workload *w)
{
    uint64_t dp = (uint64_t)w->dp * w->cp, by_ranks = 1000000 * dp;

    if (w->bucket > 0)
        return w->bucket;
    if (w->sharding == ZIPCCL_SHARD_DDP) /* bucket_cap_mb of PyTorch's DDP */
        return ((uint64_t)25 << 20) / (w->fp32_reduce ? 4 : 2);
    return by_ranks > 40000000 ? by_ranks : 40000000; /* Megatron-LM's distributed optimizer */
}

uint32_t workload_layers_a_bucket(const struct zipccl_workload *w, bool moe, uint32_t run)
{
    uint64_t layer = workload_dense_params(w, moe), n = (bucket_size(w) + layer - 1) / layer;

    if (w->sharding == ZIPCCL_SHARD_FSDP || w->sharding == ZIPCCL_SHARD_NORESHARD)
        return 1;
    return n < run ? (uint32_t)n : run;
}

/* 'elements' in one group of copies, cut into buckets if 'cut'; the id of the last call. */
static uint64_t spread(struct workload_out *o, struct workload_call call, uint64_t elements,
                       uint64_t repeat, bool cut)
{
    uint64_t bucket = bucket_size(o->w), n = o->size[call.group];
    uint64_t full = cut && elements > bucket ? elements / bucket : 0;
    uint64_t rest = elements - full * bucket, id = 0;
    bool whole = call.op == ZIPCCL_ALL_REDUCE;

    if (n < 2 || elements == 0)
        return 0;
    call.repeat = repeat * full;
    call.count = whole ? bucket : (bucket + n - 1) / n;
    if (full > 0)
        id = workload_call(o, &call);
    call.repeat = repeat;
    call.count = whole ? rest : (rest + n - 1) / n;
    return rest > 0 ? workload_call(o, &call) : id;
}

static bool is_fsdp(const struct zipccl_workload *w)
{
    return w->sharding == ZIPCCL_SHARD_FSDP || w->sharding == ZIPCCL_SHARD_NORESHARD;
}

/* HSDP: the shards, reduced inside their group, over the copies of the group. */
static uint64_t sum_replicas(struct workload_out *o, struct workload_call call, uint64_t elements,
                             uint64_t after)
{
    call.label = "gradients over replicas";
    call.op = ZIPCCL_ALL_REDUCE;
    call.count = (elements + o->size[IN_DP] - 1) / o->size[IN_DP];
    call.group = IN_REPLICAS;
    call.stream = ON_REPLICAS;
    call.after = after;
    return workload_call(o, &call);
}

static void reduce(struct workload_out *o, const char *label, enum workload_use use,
                   uint64_t elements, uint64_t repeat, bool experts)
{
    bool ddp = o->w->sharding == ZIPCCL_SHARD_DDP;
    struct workload_call call = {.label = label,
                                 .op = ddp ? ZIPCCL_ALL_REDUCE : ZIPCCL_REDUCE_SCATTER,
                                 .group = experts ? IN_EDP : IN_DP,
                                 .stream = experts ? ON_EDP : ON_DP,
                                 .dtype = o->w->fp32_reduce ? ZIPCCL_FLOAT32 : ZIPCCL_BFLOAT16,
                                 .use = use};
    uint64_t id = spread(o, call, elements, repeat, !is_fsdp(o->w));

    if (id != 0 && o->size[IN_REPLICAS] > 1)
        id = sum_replicas(o, call, elements, id);
    if (id != 0)
        o->grads[o->stage][experts] = id;
}

void workload_reduce_layers(struct workload_out *o, uint32_t layers, bool moe, uint64_t repeat)
{
    reduce(o, "gradients", OF_GRAD, layers * workload_dense_params(o->w, moe), repeat, false);
    reduce(o, "gradients of experts", OF_EXPERT_GRAD, layers * workload_expert_params(o->w, moe),
           repeat, true);
}

enum workload_use workload_root_use(const struct workload_out *o, bool grad)
{
    bool first = o->stage == 0, last = o->stage == o->w->pp - 1;

    if (o->w->model.tied)
        return grad ? OF_HEAD_GRAD : OF_EMBED_PARAM;
    if (first && last)
        return grad ? OF_ROOT_GRAD : OF_ROOT_PARAM;
    if (first)
        return grad ? OF_EMBED_GRAD : OF_EMBED_PARAM;
    return grad ? OF_HEAD_GRAD : OF_HEAD_PARAM;
}

void workload_reduce_root(struct workload_out *o)
{
    reduce(o, "gradients of embedding and head", workload_root_use(o, true),
           workload_root_params(o->w, o->stage), 1, false);
}

void workload_gather_layers(struct workload_out *o, uint32_t layers, bool moe, uint64_t repeat,
                            const struct workload_call *call, uint64_t ids[2])
{
    struct workload_call c = *call;
    bool cut = !is_fsdp(o->w);

    c.op = ZIPCCL_ALL_GATHER;
    c.dtype = ZIPCCL_BFLOAT16;
    c.group = IN_DP;
    c.stream = ON_DP;
    c.use = OF_PARAM;
    ids[0] = spread(o, c, layers * workload_dense_params(o->w, moe), repeat, cut);
    c.group = IN_EDP;
    c.stream = ON_EDP;
    c.use = OF_EXPERT_PARAM;
    ids[1] = spread(o, c, layers * workload_expert_params(o->w, moe), repeat, cut);
}

uint64_t workload_gather_root(struct workload_out *o, const struct workload_call *call)
{
    struct workload_call c = *call;

    c.op = ZIPCCL_ALL_GATHER;
    c.dtype = ZIPCCL_BFLOAT16;
    c.group = IN_DP;
    c.stream = ON_DP;
    c.use = workload_root_use(o, false);
    return spread(o, c, workload_root_params(o->w, o->stage), 1, !is_fsdp(o->w));
}

/* Norms see only a rank's own rows under sequence parallelism, so their gradients are summed. */
static void sum_norms(struct workload_out *o)
{
    const struct zipccl_workload_model *m = &o->w->model;
    uint64_t layers = 0, each = o->n.norms + (m->qk_norm ? 2 * (uint64_t)m->head_dim : 0);

    if (m->kv_lora > 0)
        each += m->q_lora + m->kv_lora;
    for (uint32_t c = 0; c < o->w->vpp; c++)
        layers += workload_chunk(o->w, c * o->w->pp + o->stage).n;
    workload_wait(
        o, workload_call(
               o, &(struct workload_call){
                      .label = "gradients of norms",
                      .op = ZIPCCL_ALL_REDUCE,
                      .group = IN_TP,
                      .stream = ON_TP,
                      .dtype = o->w->fp32_reduce ? ZIPCCL_FLOAT32 : ZIPCCL_BFLOAT16,
                      .count = layers * each + (o->stage == o->w->pp - 1 ? o->n.final_norm : 0),
                      .use = OF_GRAD}));
}

/* First and last stage of a pipeline have a copy each of a tied embedding. */
static uint64_t sum_embedding(struct workload_out *o)
{
    struct workload_call call = {.label = "gradients of the tied embedding",
                                 .op = ZIPCCL_ALL_REDUCE,
                                 .group = IN_EMBED,
                                 .stream = ON_WORLD,
                                 .dtype = o->w->fp32_reduce ? ZIPCCL_FLOAT32 : ZIPCCL_BFLOAT16,
                                 .use = OF_HEAD_GRAD,
                                 .after = o->last[0],
                                 .also = o->last[o->w->pp - 1]};

    call.count = ((uint64_t)o->w->model.vocab + o->w->tp - 1) / o->w->tp * o->w->model.hidden;
    return workload_call(o, &call);
}

static uint64_t sum_scalar(struct workload_out *o, const char *label)
{
    return workload_call(o, &(struct workload_call){.label = label,
                                                    .op = ZIPCCL_ALL_REDUCE,
                                                    .group = IN_WORLD,
                                                    .stream = ON_WORLD,
                                                    .dtype = ZIPCCL_FLOAT32,
                                                    .count = 1,
                                                    .all_stages = true});
}

/* The parameters that ZeRO-1 and 2 updated in pieces, whole again, after the optimizer. */
static void gather_stage(struct workload_out *o)
{
    static const struct workload_call call = {.label = "parameters"};
    uint64_t ids[2];

    for (uint32_t c = 0; c < o->w->vpp; c++) {
        struct workload_range r = workload_chunk(o->w, c * o->w->pp + o->stage);

        while (r.n > 0) {
            uint32_t run = workload_run(o->w, r.first, r.n);
            bool moe = zipccl_workload_is_moe(&o->w->model, r.first);
            uint32_t each = workload_layers_a_bucket(o->w, moe, run), rest = run % each;

            o->place = workload_place_of(o->w, r.first);
            workload_gather_layers(o, each, moe, run / each, &call, ids);
            if (rest > 0)
                workload_gather_layers(o, rest, moe, 1, &call, ids);
            r.first += run;
            r.n -= run;
        }
    }
    workload_gather_root(o, &call);
}

void workload_finish(struct workload_out *o)
{
    bool gathers = (o->w->sharding == ZIPCCL_SHARD_ZERO1 || o->w->sharding == ZIPCCL_SHARD_ZERO2) &&
                   !o->w->overlap_param;
    uint64_t tied, norm;

    o->place = MIDDLE;
    tied = o->size[IN_EMBED] > 1 ? sum_embedding(o) : 0;
    for (o->stage = 0; o->stage < o->w->pp; o->stage++) {
        double owned = (double)workload_owned(o->w, o->stage);

        if (o->w->sp)
            sum_norms(o);
        workload_wait(o, o->grads[o->stage][0]);
        workload_wait(o, o->grads[o->stage][1]);
        if (o->stage == 0 || o->stage == o->w->pp - 1)
            workload_wait(o, tied);
        workload_compute(o, ZIPCCL_LAYER_OPTIMIZER, true, "gradient norm", 2 * owned,
                         (o->w->fp32_reduce ? 4 : 2) * owned);
    }
    o->stage = 0;
    norm = sum_scalar(o, "gradient norm");
    for (o->stage = 0; o->stage < o->w->pp; o->stage++) {
        double owned = (double)workload_owned(o->w, o->stage);

        workload_wait(o, norm);
        workload_compute(o, ZIPCCL_LAYER_OPTIMIZER, false, "optimizer step", ADAM_FLOPS * owned,
                         (ADAM_BYTES + 2 + (o->w->fp32_reduce ? 4 : 2)) * owned);
        if (gathers)
            gather_stage(o);
    }
    o->stage = 0;
    sum_scalar(o, "loss");
}
