/*
 * workload_block.c - the passes of a transformer block, of embedding and of head, with their
 * collectives over tp and cp
 *
 * A pass begins and ends with a compute event, so that blocks may stand in a loop: what a loop's
 * next iteration needs, its stream's order gives.  Work, forward (t tokens, P parameters):
 *   matrix products   2 t P flops; the core of attention under a causal mask 2 t s q
 *   memory traffic    weights once, and what the block keeps for its backward pass
 * Backward: twice the flops; weights three times, activations twice.  One rank of tp has its share.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/workload_out.h"

#define BF16 ZIPCCL_BFLOAT16

/* Pieces of a call over tp that overlaps a product: TransformerEngine's default for pipelined ones. */
#define TP_PIECES 4

struct attention {
    double in, out, core; /* flops forward: up to q, k and v; output projection; core */
    double in_bytes, out_bytes, core_bytes;
    double width; /* of the rows that tp exchanges at its input */
    double kv;    /* elements of a key and a value of one token on this rank */
};

static struct attention attention_of(const struct workload_out *o)
{
    const struct zipccl_workload *w = o->w;
    const struct zipccl_workload_model *m = &w->model;
    double t = (double)o->tokens, tp = w->tp, h = m->hidden, heads = m->heads;
    double out = heads * (m->kv_lora > 0 ? m->v_dim : m->head_dim);
    double qk = m->kv_lora > 0 ? (double)m->rope_dim + m->nope_dim : m->head_dim;
    double v = m->kv_lora > 0 ? m->v_dim : m->head_dim;
    double kv_heads = m->kv_lora > 0 ? heads : m->kv_heads;
    double params = (double)o->n.attention - out * h;
    struct attention a;

    kv_heads = kv_heads / tp > 1 ? kv_heads / tp : 1;
    a.in = 2 * t * params / tp;
    a.out = 2 * t * out * h / tp;
    a.core = t * (double)w->seq * heads * (qk + v) / tp;
    a.kv = kv_heads * (qk + v);
    a.width = h;
    if (m->kv_lora > 0)
        a.width = (m->q_lora > 0 ? m->q_lora : h) + m->kv_lora + m->rope_dim;
    a.in_bytes = 2 * params / tp + t * (4 * h / (w->sp ? tp : 1) + 2 * (heads / tp * qk + a.kv));
    a.core_bytes = t * 2 * (heads / tp * (qk + v) + a.kv);
    a.out_bytes = 2 * out * h / tp + t * (2 * out + 2 * h) / tp;
    return a;
}

void workload_part_flops(struct workload_out *o)
{
    const struct zipccl_workload_model *m = &o->w->model;
    struct attention a = attention_of(o);
    double t = (double)o->tokens, tp = o->w->tp, shard = (double)o->shard_tokens;
    double up = m->gated ? 3 : 2, h = m->hidden;

    o->part_flops[ZIPCCL_LAYER_ATTENTION] = a.in + a.out + a.core;
    o->part_flops[ZIPCCL_LAYER_MLP] = 2 * t * up * h * m->ffn / tp;
    o->part_flops[ZIPCCL_LAYER_SHARED] = 2 * t * up * h * m->shared_ffn / tp;
    o->part_flops[ZIPCCL_LAYER_ROUTER] = 2 * shard * h * m->experts;
    o->part_flops[ZIPCCL_LAYER_EXPERTS] = 2 * shard * m->topk * up * h * m->expert_ffn;
    o->part_flops[ZIPCCL_LAYER_HEAD] = 2 * t * m->vocab * h / tp;
}

/* One of 'pieces' of a call over tp; 'width' elements a token. */
static uint64_t exchange_piece(struct workload_out *o, const char *label, enum zipccl_op op,
                               double width, enum workload_use use, uint64_t pieces, uint64_t after)
{
    uint64_t n = o->tokens * (uint64_t)width, parts = pieces;

    if (op != ZIPCCL_ALL_REDUCE)
        parts *= o->w->tp;
    return workload_call(o, &(struct workload_call){.label = label,
                                                    .op = op,
                                                    .group = IN_TP,
                                                    .stream = ON_TP,
                                                    .dtype = BF16,
                                                    .count = (n + parts - 1) / parts,
                                                    .use = use,
                                                    .after = after});
}

static uint64_t exchange(struct workload_out *o, const char *label, enum zipccl_op op, double width,
                         enum workload_use use)
{
    return exchange_piece(o, label, op, width, use, 1, 0);
}

/* A product that meets a call over tp. */
struct product {
    enum zipccl_workload_part part;
    bool backward;
    const char *label;
    double flops, bytes;
    const char *call;
    double width;
    enum workload_use use;
};

/* Gather the rows that the product takes; with overlap, piece by piece beside it. */
static void gather_product(struct workload_out *o, const struct product *p)
{
    uint64_t first = o->last[o->stage], ids[TP_PIECES];

    if (!o->w->overlap_tp) {
        workload_wait(o, exchange(o, p->call, ZIPCCL_ALL_GATHER, p->width, p->use));
        workload_compute(o, p->part, p->backward, p->label, p->flops, p->bytes);
        return;
    }
    for (int i = 0; i < TP_PIECES; i++)
        ids[i] = exchange_piece(o, p->call, ZIPCCL_ALL_GATHER, p->width, p->use, TP_PIECES, first);
    for (int i = 0; i < TP_PIECES; i++) {
        workload_wait(o, ids[i]);
        workload_compute(o, p->part, p->backward, p->label, p->flops / TP_PIECES,
                         p->bytes / TP_PIECES);
    }
}

/* Scatter the sums of what the product gives, piece by piece beside it. */
static void product_scatter(struct workload_out *o, const struct product *p)
{
    uint64_t id = 0;

    for (int i = 0; i < TP_PIECES; i++) {
        workload_compute(o, p->part, p->backward, p->label, p->flops / TP_PIECES,
                         p->bytes / TP_PIECES);
        id = exchange_piece(o, p->call, ZIPCCL_REDUCE_SCATTER, p->width, p->use, TP_PIECES, 0);
    }
    workload_wait(o, id);
}

static enum zipccl_op sum_op(const struct workload_out *o)
{
    return o->w->sp ? ZIPCCL_REDUCE_SCATTER : ZIPCCL_ALL_REDUCE;
}

/* Elementwise work on the rows that a rank has between the parts of a block. */
static void rows(struct workload_out *o, enum zipccl_workload_part part, bool backward,
                 const char *label, double bytes_each)
{
    workload_compute(o, part, backward, label, 0,
                     bytes_each * (double)o->shard_tokens * o->w->model.hidden);
}

/* Before a part: sequence parallelism norms its own rows, then gathers them. */
static void enter(struct workload_out *o, enum zipccl_workload_part part, double width)
{
    if (!o->w->sp)
        return;
    rows(o, part, false, "norm", 4);
    workload_wait(o, exchange(o, "gather sequence", ZIPCCL_ALL_GATHER, width, OF_NORMED));
}

/* After it: partial sums of the ranks of tp, and the residual. */
static void leave(struct workload_out *o, enum zipccl_workload_part part, bool residual)
{
    if (o->w->tp == 1)
        return;
    workload_wait(o, exchange(o, "sum over tp", sum_op(o), o->w->model.hidden, OF_HIDDEN));
    if (residual)
        rows(o, part, false, "residual", 6);
}

/* Attention over the pieces of a sequence: keys and values go round, beside the computation. */
static void ring(struct workload_out *o, bool backward, double flops, double bytes, uint64_t count)
{
    uint32_t c = o->w->cp;
    const char *label = backward ? "attention core backward" : "attention core forward";
    uint64_t first = o->last[o->stage];

    workload_compute(o, ZIPCCL_LAYER_ATTENTION, backward, label, flops / c, bytes / c);
    workload_loop(o, c - 1, "ring");
    workload_wait(
        o, workload_call(o, &(struct workload_call){.label = backward ? "keys, values, gradients"
                                                                      : "keys and values",
                                                    .op = ZIPCCL_SENDRECV,
                                                    .group = IN_CP,
                                                    .stream = ON_CP,
                                                    .dtype = BF16,
                                                    .count = count,
                                                    .use = OF_KV,
                                                    .after = first}));
    workload_compute(o, ZIPCCL_LAYER_ATTENTION, backward, label, flops / c, bytes / c);
    workload_end(o, c - 1);
}

/* The same with the calls of sequence parallelism beside the products at either end. */
static void attention_forward_overlapped(struct workload_out *o, const struct attention *a)
{
    enum zipccl_workload_part part = ZIPCCL_LAYER_ATTENTION;

    rows(o, part, false, "norm", 4);
    gather_product(o, &(struct product){part, false, "q, k, v forward", a->in, a->in_bytes,
                                        "gather sequence", a->width, OF_NORMED});
    if (o->w->cp == 1)
        workload_compute(o, part, false, "attention core forward", a->core, a->core_bytes);
    else
        ring(o, false, a->core, a->core_bytes, (uint64_t)(a->kv * (double)o->tokens));
    product_scatter(o,
                    &(struct product){part, false, "attention output forward", a->out, a->out_bytes,
                                      "sum over tp", o->w->model.hidden, OF_HIDDEN});
    rows(o, part, false, "residual", 6);
}

static void attention_forward(struct workload_out *o)
{
    struct attention a = attention_of(o);
    enum zipccl_workload_part part = ZIPCCL_LAYER_ATTENTION;

    if (o->w->overlap_tp) {
        attention_forward_overlapped(o, &a);
        return;
    }
    enter(o, part, a.width);
    if (o->w->cp == 1) {
        workload_compute(o, part, false, "attention forward", a.in + a.core + a.out,
                         a.in_bytes + a.core_bytes + a.out_bytes);
    } else {
        workload_compute(o, part, false, "q, k, v forward", a.in, a.in_bytes);
        ring(o, false, a.core, a.core_bytes, (uint64_t)(a.kv * (double)o->tokens));
        workload_compute(o, part, false, "attention output forward", a.out, a.out_bytes);
    }
    leave(o, part, true);
}

/*
 * The column-parallel matrix of a part, backward: the input is gathered again, its gradient is
 * summed beside the product that gives the weights' gradient (Megatron-LM's linear layers).
 */
static void column_backward(struct workload_out *o, enum zipccl_workload_part part, double flops,
                            double bytes, double width, bool outer)
{
    uint64_t input = 0, gradient;

    if (o->w->tp == 1) {
        workload_compute(o, part, true, "input matrices backward", 2 * flops, bytes);
        return;
    }
    if (o->w->sp)
        input = exchange(o, "gather sequence again", ZIPCCL_ALL_GATHER, width, OF_NORMED);
    workload_compute(o, part, true, "input gradient", flops, bytes / 2);
    gradient = exchange(o, "sum input gradient over tp", sum_op(o), width, OF_HIDDEN_GRAD);
    workload_wait(o, input);
    workload_compute(o, part, true, "weight gradient", flops, bytes / 2);
    workload_wait(o, gradient);
    if (outer)
        rows(o, part, true, "norm and residual backward", 10);
}

/* What comes back to a row-parallel matrix is gathered under sequence parallelism. */
static void enter_backward(struct workload_out *o)
{
    if (o->w->sp)
        workload_wait(o, exchange(o, "gather gradient", ZIPCCL_ALL_GATHER, o->w->model.hidden,
                                  OF_HIDDEN_GRAD));
}

static void attention_backward(struct workload_out *o)
{
    struct attention a = attention_of(o);
    bool again = o->w->recompute == ZIPCCL_RECOMPUTE_SELECTIVE;
    enum zipccl_workload_part part = ZIPCCL_LAYER_ATTENTION;
    double core = (again ? 3 : 2) * a.core;

    if (o->w->tp == 1 && o->w->cp == 1) {
        workload_compute(o, part, true, "attention backward", 2 * (a.in + a.out) + core,
                         3 * (a.in_bytes + a.out_bytes) + 2 * a.core_bytes);
        return;
    }
    if (o->w->overlap_tp) {
        gather_product(o, &(struct product){part, true, "attention output backward", 2 * a.out,
                                            3 * a.out_bytes, "gather gradient", o->w->model.hidden,
                                            OF_HIDDEN_GRAD});
        if (o->w->cp == 1)
            workload_compute(o, part, true, "attention core backward", core, 2 * a.core_bytes);
        else
            ring(o, true, core, 2 * a.core_bytes, (uint64_t)(2 * a.kv * (double)o->tokens));
        column_backward(o, part, a.in, 3 * a.in_bytes, a.width, true);
        return;
    }
    enter_backward(o);
    if (o->w->cp == 1) {
        workload_compute(o, part, true, "attention output and core backward", 2 * a.out + core,
                         3 * a.out_bytes + 2 * a.core_bytes);
    } else {
        workload_compute(o, part, true, "attention output backward", 2 * a.out, 3 * a.out_bytes);
        ring(o, true, core, 2 * a.core_bytes, (uint64_t)(2 * a.kv * (double)o->tokens));
    }
    column_backward(o, part, a.in, 3 * a.in_bytes, a.width, true);
}

/* Flops and bytes of a whole MLP, dense or of the shared experts. */
static void mlp_work(const struct workload_out *o, bool outer, double *flops, double *bytes)
{
    const struct zipccl_workload_model *m = &o->w->model;
    double up = m->gated ? 3 : 2, h = m->hidden, tp = o->w->tp;
    double ffn = outer ? m->ffn : m->shared_ffn;

    *flops = o->part_flops[outer ? ZIPCCL_LAYER_MLP : ZIPCCL_LAYER_SHARED];
    *bytes = (2 * up * h * ffn + (double)o->tokens * (4 * h + 2 * up * ffn)) / tp;
}

static void mlp_forward_overlapped(struct workload_out *o, double flops, double bytes)
{
    enum zipccl_workload_part part = ZIPCCL_LAYER_MLP;
    double up = o->w->model.gated ? 2 : 1, h = o->w->model.hidden;

    rows(o, part, false, "norm", 4);
    gather_product(o, &(struct product){part, false, "MLP forward, in", flops * up / (up + 1),
                                        bytes * up / (up + 1), "gather sequence", h, OF_NORMED});
    product_scatter(o, &(struct product){part, false, "MLP forward, out", flops / (up + 1),
                                         bytes / (up + 1), "sum over tp", h, OF_HIDDEN});
    rows(o, part, false, "residual", 6);
}

void workload_mlp_forward(struct workload_out *o, bool outer)
{
    enum zipccl_workload_part part = outer ? ZIPCCL_LAYER_MLP : ZIPCCL_LAYER_SHARED;
    double flops, bytes;

    mlp_work(o, outer, &flops, &bytes);
    if (outer && o->w->overlap_tp) {
        mlp_forward_overlapped(o, flops, bytes);
        return;
    }
    if (outer)
        enter(o, part, o->w->model.hidden);
    else if (o->w->sp)
        workload_wait(
            o, exchange(o, "gather sequence", ZIPCCL_ALL_GATHER, o->w->model.hidden, OF_NORMED));
    workload_compute(o, part, false, outer ? "MLP forward" : "shared experts forward", flops,
                     bytes);
    leave(o, part, outer);
}

void workload_mlp_backward(struct workload_out *o, bool outer)
{
    enum zipccl_workload_part part = outer ? ZIPCCL_LAYER_MLP : ZIPCCL_LAYER_SHARED;
    double up = o->w->model.gated ? 2 : 1, flops, bytes;

    mlp_work(o, outer, &flops, &bytes);
    if (o->w->tp == 1) {
        workload_compute(o, part, true, outer ? "MLP backward" : "shared experts backward",
                         2 * flops, 3 * bytes);
        return;
    }
    if (o->w->sp && outer)
        workload_marker(o, ON_COMPUTE, "gradient is there");
    if (o->w->overlap_tp && outer) {
        gather_product(o, &(struct product){part, true, "output matrix backward",
                                            2 * flops / (up + 1), 3 * bytes / (up + 1),
                                            "gather gradient", o->w->model.hidden, OF_HIDDEN_GRAD});
    } else {
        enter_backward(o);
        workload_compute(o, part, true, "output matrix backward", 2 * flops / (up + 1),
                         3 * bytes / (up + 1));
    }
    column_backward(o, part, flops * up / (up + 1), 3 * bytes * up / (up + 1), o->w->model.hidden,
                    outer);
}

void workload_moe_forward(struct workload_out *o, enum workload_phase phase,
                          struct workload_waits *on_the_way)
{
    if (phase == TOKENS_OUT)
        attention_forward(o);
    workload_experts_forward(o, phase, on_the_way);
}

void workload_moe_backward(struct workload_out *o, enum workload_phase phase,
                           struct workload_waits *on_the_way)
{
    workload_experts_backward(o, phase, on_the_way);
    if (phase == TOKENS_HOME)
        attention_backward(o);
}

void workload_block_forward(struct workload_out *o, bool moe)
{
    struct workload_waits on_the_way = {{0}};

    for (int phase = 0; moe && phase < NUM_PHASES; phase++)
        workload_moe_forward(o, (enum workload_phase)phase, &on_the_way);
    if (moe)
        return;
    attention_forward(o);
    workload_mlp_forward(o, true);
}

void workload_block_backward(struct workload_out *o, bool moe)
{
    struct workload_waits on_the_way = {{0}};

    if (o->w->recompute == ZIPCCL_RECOMPUTE_FULL)
        workload_block_forward(o, moe);
    for (int phase = 0; moe && phase < NUM_PHASES; phase++)
        workload_moe_backward(o, (enum workload_phase)phase, &on_the_way);
    if (moe)
        return;
    workload_mlp_backward(o, true);
    attention_backward(o);
}

void workload_embedding_forward(struct workload_out *o)
{
    o->place = EARLY;
    workload_compute(o, ZIPCCL_LAYER_EMBEDDING, false, "embedding forward", 0,
                     4.0 * (double)o->tokens * o->w->model.hidden);
    if (o->w->tp > 1)
        workload_wait(
            o, exchange(o, "sum embedding over tp", sum_op(o), o->w->model.hidden, OF_HIDDEN));
}

void workload_embedding_backward(struct workload_out *o)
{
    o->place = EARLY;
    enter_backward(o);
    workload_compute(o, ZIPCCL_LAYER_EMBEDDING, true, "embedding backward", 0,
                     8.0 * (double)o->tokens * o->w->model.hidden);
}

/* The loss over a vocabulary that tp divides: a maximum, the wanted logit and a sum of each token. */
void workload_head_forward(struct workload_out *o)
{
    double logits = (double)o->tokens * o->w->model.vocab / o->w->tp;

    o->place = LATE;
    enter(o, ZIPCCL_LAYER_HEAD, o->w->model.hidden);
    workload_compute(o, ZIPCCL_LAYER_HEAD, false, "head and loss forward",
                     o->part_flops[ZIPCCL_LAYER_HEAD],
                     2.0 * o->w->model.vocab / o->w->tp * o->w->model.hidden + 12 * logits);
    if (o->w->tp > 1)
        workload_wait(o, workload_call(o, &(struct workload_call){.label = "loss over tp",
                                                                  .op = ZIPCCL_ALL_REDUCE,
                                                                  .group = IN_TP,
                                                                  .stream = ON_TP,
                                                                  .dtype = ZIPCCL_FLOAT32,
                                                                  .count = o->tokens,
                                                                  .repeat = 3}));
}

void workload_head_backward(struct workload_out *o)
{
    double logits = (double)o->tokens * o->w->model.vocab / o->w->tp;
    double bytes = 4.0 * o->w->model.vocab / o->w->tp * o->w->model.hidden + 24 * logits;

    o->place = LATE;
    if (o->w->tp == 1) {
        workload_compute(o, ZIPCCL_LAYER_HEAD, true, "head and loss backward",
                         2 * o->part_flops[ZIPCCL_LAYER_HEAD], bytes);
        return;
    }
    workload_marker(o, ON_COMPUTE, "loss is there");
    column_backward(o, ZIPCCL_LAYER_HEAD, o->part_flops[ZIPCCL_LAYER_HEAD], bytes,
                    o->w->model.hidden, true);
}
