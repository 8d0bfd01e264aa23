/*
 * workload_experts.c - a mixture of experts: router, exchange of tokens, experts, and back
 *
 * As Megatron-LM's all-to-all dispatcher does it: numbers of tokens are gathered, tokens and their
 * weights dispatched, expert outputs combined; backward the same mirrored.  With sequence
 * parallelism each rank of tp sends its own rows.  Where tensor parallelism splits each expert
 * (etp), its ranks gather the rows that they received, and scatter the sums of their outputs.
 *
 * Node-limited (DeepSeek-V3, arXiv 2412.19437, section 3.2.2): a row goes once to each node that has
 * experts of its token, to the rank at the same place there, and from there to the experts; their
 * outputs are added up in the node before they come back.
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

/* What goes with each row to an expert ('home' false), or back to where its token is. */
struct rows {
    const char *label;
    enum workload_use use;
    enum zipccl_dtype dtype;
    uint32_t width; /* elements of a row */
    bool home;
    uint64_t after; /* 0: the stage's last compute event */
};

/* 'copies' rows of each token, to all members of a group alike. */
static uint64_t rows_call(struct workload_out *o, const struct rows *r, enum workload_group group,
                          uint64_t copies, uint64_t after)
{
    /* Tables hold those of hidden rows. */
    bool uneven = o->header.nsplits > 0 && r->width == o->w->model.hidden;
    uint64_t n = o->shard_tokens * copies * r->width, size = o->size[group];

    return workload_call(o,
                         &(struct workload_call){.label = r->label,
                                                 .op = uneven ? ZIPCCL_ALLTOALLV : ZIPCCL_ALLTOALL,
                                                 .group = group,
                                                 .stream = group == IN_EP_RAIL ? ON_EP_RAIL : ON_EP,
                                                 .dtype = r->dtype,
                                                 .count = uneven ? 0 : (n + size - 1) / size,
                                                 .use = r->use,
                                                 .splits = uneven ? (r->home ? 2 : 1) : 0,
                                                 .after = after});
}

static uint64_t travel(struct workload_out *o, const struct rows *r)
{
    uint64_t topk = o->w->model.topk, nodes, first;

    if (!o->w->node_dispatch)
        return rows_call(o, r, IN_EP, topk, r->after);
    /* A weight is that of one expert: none is saved. */
    nodes = r->width > 1 ? zipccl_workload_nodes_of_token(o->w) : topk;
    first = r->home ? rows_call(o, r, IN_EP_NODE, topk, r->after)
                    : rows_call(o, r, IN_EP_RAIL, nodes, r->after);
    return r->home ? rows_call(o, r, IN_EP_RAIL, nodes, first)
                   : rows_call(o, r, IN_EP_NODE, topk, first);
}

/* The rows that a rank received, from or to all that hold a part of the same experts. */
static uint64_t share_rows(struct workload_out *o, const char *label, enum zipccl_op op,
                           enum workload_use use, enum zipccl_dtype dtype, uint64_t width,
                           uint64_t after)
{
    return workload_call(
        o, &(struct workload_call){.label = label,
                                   .op = op,
                                   .group = IN_ETP,
                                   .stream = ON_ETP,
                                   .dtype = dtype,
                                   .count = o->shard_tokens * o->w->model.topk * width,
                                   .use = use,
                                   .after = after});
}

uint32_t zipccl_workload_nodes_of_token(const struct zipccl_workload *w)
{
    uint32_t n = w->ep / (w->ranks_per_node / w->etp), most = w->model.topk;

    if (w->model.node_limit > 0 && w->model.node_limit < most)
        most = w->model.node_limit;
    return most < n ? most : n;
}

/* Each rank its own tokens through its experts; under an imbalance an event for each member. */
static void experts(struct workload_out *o, bool backward)
{
    const struct zipccl_workload_model *m = &o->w->model;
    const char *label = backward ? "experts backward" : "experts forward";
    double rows = (double)o->shard_tokens * m->topk, up = m->gated ? 3 : 2, h = m->hidden;
    double flops = o->part_flops[ZIPCCL_LAYER_EXPERTS] * (backward ? 2 : 1);
    double weights =
        2 * up * h * m->expert_ffn / o->w->etp * (m->experts / o->w->ep) * (backward ? 3 : 1);
    double moved = rows * (4 * h * o->w->etp + 2 * up * m->expert_ffn) * (backward ? 2 : 1);
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

/* Rows, their scales in fp8 and their weights on the way. */
static void dispatch(struct workload_out *o, struct workload_waits *on_the_way)
{
    uint32_t h = o->w->model.hidden, blocks = (h + 127) / 128;
    bool fp8 = o->w->fp8_dispatch;
    enum zipccl_dtype dtype = fp8 ? ZIPCCL_FLOAT8_E4M3 : ZIPCCL_BFLOAT16;
    uint64_t tokens, scales = 0, weights;

    tokens = travel(o, &(struct rows){"dispatch", OF_DISPATCH, dtype, h, false, 0});
    if (fp8)
        scales = travel(
            o, &(struct rows){"dispatch, scales", OF_NOTHING, ZIPCCL_FLOAT32, blocks, false, 0});
    weights = travel(
        o, &(struct rows){"dispatch, router weights", OF_NOTHING, ZIPCCL_FLOAT32, 1, false, 0});
    if (o->w->etp > 1) {
        tokens = share_rows(o, "rows over etp", ZIPCCL_ALL_GATHER, OF_DISPATCH, dtype, h, tokens);
        if (fp8)
            scales = share_rows(o, "scales over etp", ZIPCCL_ALL_GATHER, OF_NOTHING, ZIPCCL_FLOAT32,
                                blocks, scales);
    }
    *on_the_way = (struct workload_waits){{tokens, scales, weights}};
}

static void wait_for(struct workload_out *o, const struct workload_waits *on_the_way)
{
    for (int i = 0; i < 3; i++)
        workload_wait(o, on_the_way->ids[i]);
}

static void route(struct workload_out *o, struct workload_waits *on_the_way)
{
    const struct zipccl_workload_model *m = &o->w->model;
    double rows = 2.0 * (double)o->shard_tokens * m->hidden;

    workload_compute(o, ZIPCCL_LAYER_ROUTER, false, "norm, router, permute forward",
                     o->part_flops[ZIPCCL_LAYER_ROUTER], rows * (3 + m->topk));
    if (m->shared_ffn > 0 && !o->w->overlap_shared)
        workload_mlp_forward(o, false);
    workload_call(o, &(struct workload_call){.label = "tokens for each expert",
                                             .op = ZIPCCL_ALL_GATHER,
                                             .group = o->w->etp > 1 ? IN_ETP_EP : IN_EP,
                                             .stream = ON_EP,
                                             .dtype = ZIPCCL_INT64,
                                             .count = m->experts});
    dispatch(o, on_the_way);
}

static void combine(struct workload_out *o, struct workload_waits *on_the_way)
{
    const struct zipccl_workload_model *m = &o->w->model;
    uint64_t outputs = 0;

    if (m->shared_ffn > 0 && o->w->overlap_shared)
        workload_mlp_forward(o, false);
    wait_for(o, on_the_way);
    experts(o, false);
    if (o->w->etp > 1)
        outputs = share_rows(o, "outputs over etp", ZIPCCL_REDUCE_SCATTER, OF_COMBINE,
                             ZIPCCL_BFLOAT16, m->hidden, 0);
    *on_the_way = (struct workload_waits){{travel(
        o, &(struct rows){"combine", OF_COMBINE, ZIPCCL_BFLOAT16, m->hidden, true, outputs})}};
}

void workload_experts_forward(struct workload_out *o, enum workload_phase phase,
                              struct workload_waits *on_the_way)
{
    const struct zipccl_workload_model *m = &o->w->model;
    double rows = 2.0 * (double)o->shard_tokens * m->hidden;

    switch (phase) {
    case TOKENS_OUT: route(o, on_the_way); return;
    case TOKENS_BACK: combine(o, on_the_way); return;
    default: break;
    }
    wait_for(o, on_the_way);
    workload_compute(o, ZIPCCL_LAYER_ROUTER, false, "un-permute, residual forward", 0,
                     rows * (m->topk + 3));
}

static void gradients_out(struct workload_out *o, struct workload_waits *on_the_way)
{
    const struct zipccl_workload_model *m = &o->w->model;
    double rows = 2.0 * (double)o->shard_tokens * m->hidden;
    uint64_t tokens;

    workload_compute(o, ZIPCCL_LAYER_ROUTER, true, "un-permute backward", 0, 2 * rows * m->topk);
    tokens = travel(o, &(struct rows){"combine, gradients", OF_COMBINE_GRAD, ZIPCCL_BFLOAT16,
                                      m->hidden, false, 0});
    if (o->w->etp > 1)
        tokens = share_rows(o, "gradients of outputs over etp", ZIPCCL_ALL_GATHER, OF_COMBINE_GRAD,
                            ZIPCCL_BFLOAT16, m->hidden, tokens);
    *on_the_way = (struct workload_waits){{tokens}};
}

static void gradients_back(struct workload_out *o, struct workload_waits *on_the_way)
{
    const struct zipccl_workload_model *m = &o->w->model;
    uint64_t tokens, weights, inputs = 0;

    if (m->shared_ffn > 0 && o->w->overlap_shared)
        workload_mlp_backward(o, false);
    wait_for(o, on_the_way);
    experts(o, true);
    if (o->w->etp > 1)
        inputs = share_rows(o, "gradients of rows over etp", ZIPCCL_REDUCE_SCATTER,
                            OF_DISPATCH_GRAD, ZIPCCL_BFLOAT16, m->hidden, 0);
    tokens = travel(o, &(struct rows){"dispatch, gradients", OF_DISPATCH_GRAD, ZIPCCL_BFLOAT16,
                                      m->hidden, true, inputs});
    weights = travel(
        o, &(struct rows){"router weights, gradients", OF_NOTHING, ZIPCCL_FLOAT32, 1, true, 0});
    *on_the_way = (struct workload_waits){{tokens, weights}};
}

void workload_experts_backward(struct workload_out *o, enum workload_phase phase,
                               struct workload_waits *on_the_way)
{
    const struct zipccl_workload_model *m = &o->w->model;
    double rows = 2.0 * (double)o->shard_tokens * m->hidden;

    switch (phase) {
    case TOKENS_OUT: gradients_out(o, on_the_way); return;
    case TOKENS_BACK: gradients_back(o, on_the_way); return;
    default: break;
    }
    if (m->shared_ffn > 0 && !o->w->overlap_shared)
        workload_mlp_backward(o, false);
    wait_for(o, on_the_way);
    workload_compute(o, ZIPCCL_LAYER_ROUTER, true, "permute, router, norm backward",
                     2 * o->part_flops[ZIPCCL_LAYER_ROUTER], 2 * rows * (3 + m->topk));
}
