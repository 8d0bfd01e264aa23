/*
 * workload_experts.c - a mixture of experts: router, exchange of tokens, experts, and back
 *
 * As Megatron-LM's all-to-all dispatcher does it: numbers of tokens are gathered, tokens and their
 * weights dispatched, expert outputs combined; backward the same mirrored.  With sequence
 * parallelism each rank of tp sends its own rows.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/workload_out.h"

#include <math.h>
#include <stdlib.h>

/* The busiest member's part of tokens, over the mean, if weights fall as (j + 1)^-a. */
static double busiest(uint32_t n, double a)
{
    double sum = 0;

    for (uint32_t j = 0; j < n; j++)
        sum += pow(j + 1.0, -a);
    return n / sum;
}

static double exponent_for(uint32_t n, double imbalance)
{
    double low = 0, high = 64;

    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;

        if (busiest(n, middle) < imbalance)
            low = middle;
        else
            high = middle;
    }
    return low;
}

void workload_token_split(const struct zipccl_workload *w, uint64_t tokens, uint64_t *counts)
{
    double a = w->imbalance > 1 ? exponent_for(w->ep, w->imbalance) : 0, sum = 0, done = 0;
    uint64_t given = 0;

    for (uint32_t j = 0; j < w->ep; j++)
        sum += pow(j + 1.0, -a);
    /* Rounded sums differ by whole tokens, so that nothing is lost. */
    for (uint32_t j = 0; j < w->ep; j++) {
        done += pow(j + 1.0, -a);
        uint64_t upto = j + 1 == w->ep ? tokens : (uint64_t)llround((double)tokens * done / sum);

        counts[j] = upto - given;
        given = upto;
    }
}

/* 'width' elements go with each token; tables hold those of hidden rows. */
static uint64_t tokens_call(struct workload_out *o, const char *label, enum workload_use use,
                            enum zipccl_dtype dtype, double width, bool back)
{
    bool rows = width == o->w->model.hidden, uneven = o->header.nsplits > 0 && rows;
    uint64_t n = o->shard_tokens * o->w->model.topk * (uint64_t)width;

    return workload_call(
        o, &(struct workload_call){.label = label,
                                   .op = uneven ? ZIPCCL_ALLTOALLV : ZIPCCL_ALLTOALL,
                                   .group = IN_EP,
                                   .stream = ON_EP,
                                   .dtype = dtype,
                                   .count = uneven ? 0 : (n + o->w->ep - 1) / o->w->ep,
                                   .use = use,
                                   .splits = uneven ? (back ? 2 : 1) : 0});
}

/* Each rank its own tokens through its experts; under an imbalance an event for each member. */
static void experts(struct workload_out *o, bool backward)
{
    const struct zipccl_workload_model *m = &o->w->model;
    const char *label = backward ? "experts backward" : "experts forward";
    double rows = (double)o->shard_tokens * m->topk, up = m->gated ? 3 : 2, h = m->hidden;
    double flops = o->part_flops[ZIPCCL_LAYER_EXPERTS] * (backward ? 2 : 1);
    double weights = 2 * up * h * m->expert_ffn * (m->experts / o->w->ep) * (backward ? 3 : 1);
    double moved = rows * (4 * h + 2 * up * m->expert_ffn) * (backward ? 2 : 1);
    uint64_t *counts, ids[MAX_DEPS], sent = o->shard_tokens * m->topk;

    if (o->header.nsplits == 0) {
        workload_compute(o, ZIPCCL_LAYER_EXPERTS, backward, label, flops, weights + moved);
        return;
    }
    counts = calloc(o->w->ep, sizeof *counts);
    if (counts == NULL) {
        o->status = zipccl_fail(o->error, ZIPCCL_ERR_NOMEM, "out of memory");
        return;
    }
    workload_token_split(o->w, sent, counts);
    for (uint32_t j = 0; j < o->w->ep; j++) {
        double part = (double)counts[j] * o->w->ep / (double)sent;

        ids[j] = workload_compute_member(o, ZIPCCL_LAYER_EXPERTS, backward, label, flops * part,
                                         weights + moved * part, j);
    }
    free(counts);
    /* What follows waits, on each rank, for the one of these that it runs. */
    o->ndeps = 0;
    for (uint32_t j = 0; j < o->w->ep; j++)
        workload_wait(o, ids[j]);
    workload_marker(o, ON_COMPUTE, "experts are done");
}

void workload_experts_forward(struct workload_out *o)
{
    const struct zipccl_workload_model *m = &o->w->model;
    double rows = 2.0 * (double)o->shard_tokens * m->hidden;
    uint64_t tokens, scales = 0, weights;

    workload_compute(o, ZIPCCL_LAYER_ROUTER, false, "norm, router, permute forward",
                     o->part_flops[ZIPCCL_LAYER_ROUTER], rows * (3 + m->topk));
    if (m->shared_ffn > 0 && !o->w->overlap_shared)
        workload_mlp_forward(o, false);
    if (o->w->ep > 1)
        workload_call(o, &(struct workload_call){.label = "tokens for each expert",
                                                 .op = ZIPCCL_ALL_GATHER,
                                                 .group = IN_EP,
                                                 .stream = ON_EP,
                                                 .dtype = ZIPCCL_INT64,
                                                 .count = m->experts});
    tokens =
        tokens_call(o, "dispatch", OF_DISPATCH,
                    o->w->fp8_dispatch ? ZIPCCL_FLOAT8_E4M3 : ZIPCCL_BFLOAT16, m->hidden, false);
    if (o->w->fp8_dispatch)
        scales = tokens_call(o, "dispatch, scales", OF_NOTHING, ZIPCCL_FLOAT32,
                             (m->hidden + 127) / 128, false);
    weights = tokens_call(o, "dispatch, router weights", OF_NOTHING, ZIPCCL_FLOAT32, 1, false);
    if (m->shared_ffn > 0 && o->w->overlap_shared)
        workload_mlp_forward(o, false);
    workload_wait(o, tokens);
    workload_wait(o, scales);
    workload_wait(o, weights);
    experts(o, false);
    workload_wait(o, tokens_call(o, "combine", OF_COMBINE, ZIPCCL_BFLOAT16, m->hidden, true));
    workload_compute(o, ZIPCCL_LAYER_ROUTER, false, "un-permute, residual forward", 0,
                     rows * (m->topk + 3));
}

void workload_experts_backward(struct workload_out *o)
{
    const struct zipccl_workload_model *m = &o->w->model;
    double rows = 2.0 * (double)o->shard_tokens * m->hidden;
    uint64_t tokens, weights;

    workload_compute(o, ZIPCCL_LAYER_ROUTER, true, "un-permute backward", 0, 2 * rows * m->topk);
    tokens =
        tokens_call(o, "combine, gradients", OF_COMBINE_GRAD, ZIPCCL_BFLOAT16, m->hidden, false);
    if (m->shared_ffn > 0 && o->w->overlap_shared)
        workload_mlp_backward(o, false);
    workload_wait(o, tokens);
    experts(o, true);
    tokens =
        tokens_call(o, "dispatch, gradients", OF_DISPATCH_GRAD, ZIPCCL_BFLOAT16, m->hidden, true);
    weights = tokens_call(o, "router weights, gradients", OF_NOTHING, ZIPCCL_FLOAT32, 1, true);
    if (m->shared_ffn > 0 && !o->w->overlap_shared)
        workload_mlp_backward(o, false);
    workload_wait(o, tokens);
    workload_wait(o, weights);
    workload_compute(o, ZIPCCL_LAYER_ROUTER, true, "permute, router, norm backward",
                     2 * o->part_flops[ZIPCCL_LAYER_ROUTER], 2 * rows * (3 + m->topk));
}
