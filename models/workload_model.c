/*
 * workload_model.c - how many parameters a transformer has, and where
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/workload.h"

#include <string.h>

bool zipccl_workload_is_moe(const struct zipccl_workload_model *m, uint32_t layer)
{
    return m->experts > 0 && layer >= m->dense_layers;
}

/* Multi-head latent attention: q and kv go through a low rank (DeepSeek-V2, section 2.1). */
static uint64_t latent_attention(const struct zipccl_workload_model *m)
{
    uint64_t h = m->hidden, n = m->heads, ql = m->q_lora, kl = m->kv_lora;
    uint64_t qk = (uint64_t)m->rope_dim + m->nope_dim;
    uint64_t q = ql > 0 ? h * ql + ql + ql * n * qk : h * n * qk;

    return q + h * (kl + m->rope_dim) + kl + kl * n * (m->nope_dim + m->v_dim) + n * m->v_dim * h;
}

static uint64_t attention(const struct zipccl_workload_model *m)
{
    uint64_t h = m->hidden, q = (uint64_t)m->heads * m->head_dim;
    uint64_t kv = (uint64_t)m->kv_heads * m->head_dim, n;

    if (m->kv_lora > 0)
        return latent_attention(m);
    n = h * q + 2 * h * kv + q * h;
    if (m->bias || m->qkv_bias)
        n += q + 2 * kv;
    if (m->bias)
        n += h;
    if (m->qk_norm)
        n += 2 * (uint64_t)m->head_dim;
    return n;
}

static uint64_t mlp(const struct zipccl_workload_model *m, uint64_t ffn)
{
    uint64_t up = m->gated ? 2 : 1, n = (up + 1) * m->hidden * ffn;

    return m->bias && ffn > 0 ? n + up * ffn + m->hidden : n;
}

void zipccl_workload_count(const struct zipccl_workload_model *m,
                           struct zipccl_workload_counts *out)
{
    uint64_t norm = (uint64_t)m->hidden * (m->layernorm ? 2 : 1), outer;
    uint64_t moe_layers = m->experts > 0 ? m->layers - m->dense_layers : 0;

    memset(out, 0, sizeof *out);
    out->attention = attention(m);
    out->mlp = mlp(m, m->ffn);
    out->norms = 2 * norm;
    out->block = out->attention + out->mlp + out->norms;
    if (m->experts > 0) {
        out->expert = mlp(m, m->expert_ffn);
        out->shared = mlp(m, m->shared_ffn);
        out->router = (uint64_t)m->hidden * m->experts + (m->router_bias ? m->experts : 0);
        out->moe_block =
            out->attention + out->norms + out->router + out->shared + out->expert * m->experts;
    }
    out->embedding = ((uint64_t)m->vocab + m->positions) * m->hidden;
    out->head = m->tied ? 0 : (uint64_t)m->vocab * m->hidden;
    out->final_norm = norm;
    out->root = out->embedding + out->head + out->final_norm;
    outer = out->root + (m->layers - moe_layers) * out->block;
    out->total = outer + moe_layers * out->moe_block;
    out->active = outer + moe_layers * (out->moe_block - out->expert * (m->experts - m->topk));
}

/* Roughly, in numbers that do not overflow. */
static double size(const struct zipccl_workload_model *m)
{
    double h = m->hidden, heads = m->heads;
    double width = heads * ((double)m->head_dim + m->rope_dim + m->nope_dim + m->v_dim);
    double rank = h + m->q_lora + m->kv_lora;
    double block = 4 * rank * width + h * rank +
                   3 * h * ((double)m->ffn + m->shared_ffn + (double)m->expert_ffn * m->experts);

    return m->layers * block + 2 * h * ((double)m->vocab + m->positions);
}

static zipccl_status wrong(const char *from, const char *key, const char *what,
                           struct zipccl_error *error)
{
    return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%.200s: %s: %s", from, key, what);
}

zipccl_status zipccl_workload_model_check(const struct zipccl_workload_model *m, const char *from,
                                          struct zipccl_error *error)
{
    if (m->layers == 0 || m->hidden == 0 || m->heads == 0 || m->vocab == 0)
        return wrong(from, "layers, hidden, heads, vocab", "one is 0, expected 1 or more", error);
    if (m->layers > 1 << 16)
        return wrong(from, "layers", "more than 65536, expected fewer", error);
    if (size(m) > 0x1p52)
        return wrong(from, "layers and widths", "more than 2^52 parameters, expected fewer", error);
    if (m->kv_lora > 0) {
        if (m->nope_dim == 0 || m->v_dim == 0)
            return wrong(from, "nope_dim, v_dim", "0 with latent attention, expected 1 or more",
                         error);
    } else if (m->head_dim == 0 && m->hidden % m->heads != 0) {
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%.200s: heads %u does not divide hidden %u, expected a divisor, or the "
                           "width of a head as head_dim",
                           from, m->heads, m->hidden);
    } else if (m->head_dim == 0 || m->kv_heads == 0) {
        return wrong(from, "head_dim, kv_heads", "0, expected 1 or more", error);
    } else if (m->heads % m->kv_heads != 0) {
        return wrong(from, "kv_heads", "does not divide heads", error);
    }
    if (m->experts > 0 && (m->topk == 0 || m->topk > m->experts))
        return wrong(from, "topk", "expected 1 to the number of experts", error);
    if (m->experts > 0 && m->expert_ffn == 0)
        return wrong(from, "expert_ffn", "0 with experts, expected 1 or more", error);
    if (m->experts > 0 && m->dense_layers >= m->layers)
        return wrong(from, "dense_layers", "no layer is left for the experts", error);
    if ((m->experts == 0 || m->dense_layers > 0) && m->ffn == 0)
        return wrong(from, "ffn", "0 with dense layers, expected 1 or more", error);
    if (m->node_limit > m->experts)
        return wrong(from, "node_limit", "more than there are experts", error);
    if (m->experts == 0 && (m->topk > 0 || m->expert_ffn > 0 || m->shared_ffn > 0 ||
                            m->dense_layers > 0 || m->router_bias))
        return wrong(from, "experts", "0, but other keys describe experts", error);
    return ZIPCCL_OK;
}
