/*
 * workload_estimate.c - memory of a GPU and work of a step, by formula
 *
 * bf16 parameters (2 bytes), gradients (2, or 4 in fp32), AdamW with fp32 master weights and
 * moments (12); activations as workload_activation_bytes().  What allocators, NCCL and kernels take
 * besides is not in it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/workload_out.h"

#include <string.h>

struct stage {
    double dense, experts; /* parameters of a rank */
    double kept;           /* bytes of activations of one micro-batch */
    double largest;        /* parameters of its largest block */
};

static struct stage add_up(const struct zipccl_workload *w, uint32_t s)
{
    struct stage sum = {(double)workload_root_params(w, s), 0, 0, 0};

    for (uint32_t c = 0; c < w->vpp; c++) {
        struct workload_range r = workload_chunk(w, c * w->pp + s);

        for (uint32_t i = r.first; i < r.first + r.n; i++) {
            bool moe = zipccl_workload_is_moe(&w->model, i);
            double dense = (double)workload_dense_params(w, moe);
            double experts = (double)workload_expert_params(w, moe);

            sum.dense += dense;
            sum.experts += experts;
            sum.kept += workload_activation_bytes(w, moe);
            if (dense + experts > sum.largest)
                sum.largest = dense + experts;
        }
    }
    return sum;
}

/* Micro-batches whose activations a stage keeps at most; a chunk is a part of one. */
static double in_flight(const struct zipccl_workload *w, uint32_t s)
{
    double m = (double)zipccl_workload_micro_batches(w), n = w->pp - s;

    if (w->overlap_a2a)
        n = 2.0 * (w->pp - s);
    if (w->vpp > 1)
        n = (2.0 * (w->pp - s - 1) + (w->vpp - 1.0) * w->pp + 1) / w->vpp;
    return n < m ? n : m;
}

/* Logits of a micro-batch in bf16, in fp32 and their gradient in bf16; under full recomputation the
 * pass of one block is kept besides. */
static double extra_activations(const struct zipccl_workload *w, uint32_t s)
{
    double tokens = (double)w->seq * (double)w->micro_batch / w->cp, sum = 0;
    struct zipccl_workload kept = *w;

    if (s == w->pp - 1)
        sum += 8 * tokens * w->model.vocab / w->tp;
    kept.recompute = ZIPCCL_RECOMPUTE_NONE;
    if (w->recompute == ZIPCCL_RECOMPUTE_FULL)
        sum += workload_activation_bytes(&kept, w->model.experts > 0);
    return sum;
}

static void fill(const struct zipccl_workload *w, uint32_t s, struct zipccl_workload_estimate *e)
{
    struct stage sum = add_up(w, s);
    double dp = (double)w->dp * w->cp, edp = w->tp * dp / (w->ep * w->etp);
    double whole = sum.dense + sum.experts,
           part = sum.dense / (double)workload_shards(w) + sum.experts / edp;
    bool fsdp = w->sharding == ZIPCCL_SHARD_FSDP || w->sharding == ZIPCCL_SHARD_NORESHARD;
    bool grads_part = fsdp || w->sharding == ZIPCCL_SHARD_ZERO2;

    memset(e, 0, sizeof *e);
    e->stage = s;
    e->parameters_on_rank = (uint64_t)whole;
    e->parameters = 2 * (fsdp ? part : whole);
    e->gradients = (w->fp32_reduce ? 4 : 2) * (grads_part ? part : whole);
    e->optimizer = 12 * (w->sharding == ZIPCCL_SHARD_DDP ? whole : part);
    e->in_flight = in_flight(w, s);
    e->activations = e->in_flight * sum.kept + extra_activations(w, s);
    if (fsdp) /* two blocks and the root, in bf16, and one block's gradients */
        e->gathered = 2 * (2 * sum.largest + (double)workload_root_params(w, s)) +
                      (w->fp32_reduce ? 4 : 2) * sum.largest;
    if (w->sharding == ZIPCCL_SHARD_NORESHARD)
        e->gathered = 2 * whole + (w->fp32_reduce ? 4 : 2) * sum.largest;
    e->total = e->parameters + e->gradients + e->optimizer + e->activations + e->gathered;
}

/* Forward flops of one layer, micro-batch and rank. */
static double layer_flops(const struct workload_out *o, bool moe, double *core)
{
    const double *part = o->part_flops;
    double sum = part[ZIPCCL_LAYER_ATTENTION];

    *core = (double)o->tokens * (double)o->w->seq / o->w->tp * o->w->model.heads *
            (o->w->model.kv_lora > 0
                 ? (double)o->w->model.rope_dim + o->w->model.nope_dim + o->w->model.v_dim
                 : 2.0 * o->w->model.head_dim);
    if (moe)
        return sum + part[ZIPCCL_LAYER_ROUTER] + part[ZIPCCL_LAYER_EXPERTS] +
               part[ZIPCCL_LAYER_SHARED];
    return sum + part[ZIPCCL_LAYER_MLP];
}

static void add_work(const struct zipccl_workload *w, struct zipccl_workload_estimate *e)
{
    struct zipccl_error error;
    struct workload_out *o = workload_out_create(w, &error);
    double batches = (double)zipccl_workload_micro_batches(w), all = 0, busiest = 0, each = 0, core;

    if (o == NULL)
        return;
    for (uint32_t s = 0; s < w->pp; s++) {
        double model = s == w->pp - 1 ? 3 * o->part_flops[ZIPCCL_LAYER_HEAD] : 0, own = model;

        for (uint32_t c = 0; c < w->vpp; c++) {
            struct workload_range r = workload_chunk(w, c * w->pp + s);

            for (uint32_t i = r.first; i < r.first + r.n; i++) {
                double f = layer_flops(o, zipccl_workload_is_moe(&w->model, i), &core);

                model += 3 * f;
                own += 3 * f;
                own += w->recompute == ZIPCCL_RECOMPUTE_FULL        ? f
                       : w->recompute == ZIPCCL_RECOMPUTE_SELECTIVE ? core
                                                                    : 0;
            }
        }
        all += model * batches * o->per_stage;
        busiest = own > busiest ? own : busiest;
        each += own;
    }
    e->model_flops = all;
    e->rank_flops = busiest * batches;
    /* While the pipeline fills and drains: one micro-batch, or chunk, of the other stages. */
    e->bubble = (each - busiest) / w->vpp / e->rank_flops;
    e->tokens = (double)w->global_batch * (double)w->seq;
    workload_out_destroy(o, ZIPCCL_ERR_ABORTED, NULL);
}

void zipccl_workload_estimate(const struct zipccl_workload *w, struct zipccl_workload_estimate *out)
{
    struct zipccl_workload_estimate e;

    fill(w, 0, out);
    for (uint32_t s = 1; s < w->pp; s++) {
        fill(w, s, &e);
        if (e.total > out->total)
            *out = e;
    }
    add_work(w, out);
}
