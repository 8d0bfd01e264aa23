/*
 * workload_layout.c - which layers and how many parameters a rank holds
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/workload_out.h"

/*
 * Layers are dealt out evenly; what is left over goes to virtual stages in the middle, as the first
 * and the last have embedding and head to do.
 */
struct workload_range workload_chunk(const struct zipccl_workload *w, uint32_t v)
{
    uint32_t n = w->pp * w->vpp, each = w->model.layers / n, more = w->model.layers % n;
    uint32_t from = (n - more) / 2, before = v <= from ? 0 : v - from;

    if (before > more)
        before = more;
    return (struct workload_range){v * each + before, each + (v >= from && v < from + more)};
}

enum workload_place workload_place_of(const struct zipccl_workload *w, uint32_t layer)
{
    uint64_t l = w->model.layers;

    return layer < l / 4 ? EARLY : layer < l * 3 / 4 ? MIDDLE : LATE;
}

uint32_t workload_run(const struct zipccl_workload *w, uint32_t first, uint32_t n)
{
    bool moe = zipccl_workload_is_moe(&w->model, first);
    uint32_t i = 1;

    while (i < n && zipccl_workload_is_moe(&w->model, first + i) == moe &&
           workload_place_of(w, first + i) == workload_place_of(w, first))
        i++;
    return i;
}

uint64_t workload_tp_share(const struct zipccl_workload *w, uint64_t linear, uint64_t whole)
{
    return (linear + w->tp - 1) / w->tp + whole;
}

/* KV heads that each rank of tp has: at least one, so that some are held twice. */
static uint64_t attention_params(const struct zipccl_workload *w,
                                 const struct zipccl_workload_counts *n)
{
    const struct zipccl_workload_model *m = &w->model;
    uint64_t h = m->hidden, kv = (uint64_t)m->kv_heads * m->head_dim, extra = 0, whole = 0;

    if (m->kv_lora > 0) {
        /* The projections down to the latents are the same on all ranks. */
        whole = h * (m->kv_lora + m->rope_dim) + m->kv_lora;
        whole += m->q_lora > 0 ? h * m->q_lora + m->q_lora : 0;
        return workload_tp_share(w, n->attention - whole, whole);
    }
    whole = (m->qk_norm ? 2 * (uint64_t)m->head_dim : 0) + (m->bias ? h : 0);
    if (w->tp > m->kv_heads)
        extra = 2 * h * kv * (w->tp / m->kv_heads - 1);
    return workload_tp_share(w, n->attention - whole + extra, whole);
}

uint64_t workload_dense_params(const struct zipccl_workload *w, bool moe)
{
    struct zipccl_workload_counts n;
    uint64_t bias = w->model.bias ? w->model.hidden : 0, attention;

    zipccl_workload_count(&w->model, &n);
    attention = attention_params(w, &n) + n.norms;
    if (!moe)
        return attention + workload_tp_share(w, n.mlp - bias, bias);
    return attention + n.router + workload_tp_share(w, n.shared, 0);
}

uint64_t workload_expert_params(const struct zipccl_workload *w, bool moe)
{
    struct zipccl_workload_counts n;

    zipccl_workload_count(&w->model, &n);
    return moe ? (n.expert * (w->model.experts / w->ep) + w->etp - 1) / w->etp : 0;
}

uint64_t workload_root_params(const struct zipccl_workload *w, uint32_t stage)
{
    struct zipccl_workload_counts n;
    uint64_t sum = 0;

    zipccl_workload_count(&w->model, &n);
    if (stage == 0)
        sum += workload_tp_share(w, n.embedding, 0);
    /* A pipeline's last stage has a copy of a tied embedding. */
    if (stage == w->pp - 1)
        sum += n.final_norm + workload_tp_share(w, n.head, 0);
    if (stage == w->pp - 1 && w->pp > 1 && w->model.tied)
        sum += workload_tp_share(w, (uint64_t)w->model.vocab * w->model.hidden, 0);
    return sum;
}

uint64_t workload_shards(const struct zipccl_workload *w)
{
    return w->shard > 0 ? w->shard : (uint64_t)w->dp * w->cp;
}

uint64_t workload_owned(const struct zipccl_workload *w, uint32_t stage)
{
    uint64_t dense = workload_root_params(w, stage), experts = 0, dp = (uint64_t)w->dp * w->cp;
    uint64_t edp = w->tp * dp / (w->ep * w->etp);

    for (uint32_t c = 0; c < w->vpp; c++) {
        struct workload_range r = workload_chunk(w, c * w->pp + stage);

        for (uint32_t i = r.first; i < r.first + r.n; i++) {
            bool moe = zipccl_workload_is_moe(&w->model, i);

            dense += workload_dense_params(w, moe);
            experts += workload_expert_params(w, moe);
        }
    }
    if (w->sharding == ZIPCCL_SHARD_DDP)
        return dense + experts;
    dp = workload_shards(w);
    return (dense + dp - 1) / dp + (experts + edp - 1) / edp;
}

/*
 * Bytes that a block keeps for its backward pass, bf16, by what each operator reads there: the
 * inputs of both norms and of the matrices behind them, q, k, v, the output of attention and its
 * row sums, and of the MLP the widened rows before and after the activation.  For GPT-3 that is
 * 32 h bytes a token; with the masks of dropout, which is not assumed here, it would be the 34 h of
 * Korthikanti et al., arXiv 2205.05198, section 4.1.
 */
double workload_activation_bytes(const struct zipccl_workload *w, bool moe)
{
    const struct zipccl_workload_model *m = &w->model;
    double tokens = (double)w->seq * (double)w->micro_batch / w->cp, h = m->hidden, t = w->tp;
    double outer = 8 * h / (w->sp ? t : 1), q, kv, wide, inner;
    double up = m->gated ? 3 : 2;

    if (w->recompute == ZIPCCL_RECOMPUTE_FULL)
        return tokens * 2 * h / (w->sp ? t : 1);
    if (m->kv_lora > 0) {
        q = (double)m->heads * (m->rope_dim + m->nope_dim + m->v_dim);
        kv = (double)m->heads * (m->rope_dim + m->nope_dim + m->v_dim) / 2;
        outer += 2.0 * (m->q_lora + m->kv_lora) / (w->sp ? t : 1);
    } else {
        q = 2.0 * m->heads * m->head_dim;
        kv = (double)m->kv_heads * m->head_dim;
    }
    inner = 2 * (q + 2 * kv) + 4.0 * m->heads;
    if (w->plain_attention && w->recompute == ZIPCCL_RECOMPUTE_NONE)
        inner += 5.0 * m->heads * (double)w->seq;
    wide = moe ? 2 * up * m->shared_ffn / t : 2 * up * m->ffn / t;
    if (moe) /* rows as sent to an expert, as widened there, and as they come back */
        wide +=
            m->topk * (4 * h * w->etp + 2 * up * m->expert_ffn) / (w->sp ? t : 1) * w->imbalance;
    return tokens * (outer + inner / t + wide);
}
