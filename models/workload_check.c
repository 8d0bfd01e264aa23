/*
 * workload_check.c - whether model, parallelism and batch fit together, and why not
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/workload.h"

#include <inttypes.h>
#include <string.h>

void zipccl_workload_init(struct zipccl_workload *w)
{
    memset(w, 0, sizeof *w);
    w->tp = w->pp = w->dp = w->cp = w->ep = w->etp = w->vpp = 1;
    w->micro_batch = 1;
    w->seq = 4096;
    w->imbalance = 1;
    w->sharding = ZIPCCL_SHARD_ZERO1;
    w->overlap_grad = w->overlap_p2p = true;
    for (int i = 0; i < ZIPCCL_LAYER_NUM; i++)
        w->times.forward_s[i] = w->times.backward_s[i] = -1;
}

uint64_t zipccl_workload_nranks(const struct zipccl_workload *w)
{
    return (uint64_t)w->tp * w->pp * w->dp * w->cp;
}

uint64_t zipccl_workload_micro_batches(const struct zipccl_workload *w)
{
    return w->global_batch / (w->micro_batch * w->dp);
}

#define REFUSE(...) return zipccl_fail(error, ZIPCCL_ERR_INPUT, __VA_ARGS__)

static zipccl_status check_tensor(const struct zipccl_workload *w, struct zipccl_error *error)
{
    const struct zipccl_workload_model *m = &w->model;

    if (w->sp && w->tp == 1)
        REFUSE("sequence parallelism splits over the ranks of tp, and tp is 1");
    if (w->tp == 1)
        return ZIPCCL_OK;
    if (m->heads % w->tp != 0)
        REFUSE("tp %u does not divide the %u heads of %s", w->tp, m->heads, m->name);
    if (m->kv_lora == 0 && m->kv_heads % w->tp != 0 && w->tp % m->kv_heads != 0)
        REFUSE("tp %u and the %u KV heads of %s: one has to divide the other", w->tp, m->kv_heads,
               m->name);
    if (m->ffn % w->tp != 0)
        REFUSE("tp %u does not divide the MLP width %u of %s", w->tp, m->ffn, m->name);
    if (m->shared_ffn % w->tp != 0)
        REFUSE("tp %u does not divide the width %u of the shared experts of %s", w->tp,
               m->shared_ffn, m->name);
    if (m->experts > 0 && !w->sp)
        REFUSE("experts with tp %u need --sp, as in Megatron-LM: else all ranks of tp would send "
               "the same tokens",
               w->tp);
    if (w->sp && w->seq / w->cp % w->tp != 0)
        REFUSE("sequence parallelism: tp %u does not divide %" PRIu64 " tokens of a sequence%s",
               w->tp, w->seq / w->cp, w->cp > 1 ? " on a rank of cp" : "");
    return ZIPCCL_OK;
}

static zipccl_status check_pipeline(const struct zipccl_workload *w, struct zipccl_error *error)
{
    uint64_t m = zipccl_workload_micro_batches(w);

    if (w->vpp > 1 && w->pp == 1)
        REFUSE("vpp %u interleaves the stages of a pipeline, and pp is 1", w->vpp);
    if ((uint64_t)w->pp * w->vpp > w->model.layers)
        REFUSE("pp %u x vpp %u need that many layers, %s has %u", w->pp, w->vpp, w->model.name,
               w->model.layers);
    if (w->vpp > 1 && m % w->pp != 0)
        REFUSE("the interleaved schedule takes micro-batches in groups of pp: pp %u does not "
               "divide %" PRIu64 " micro-batches",
               w->pp, m);
    if (w->pp > 1 && (w->sharding == ZIPCCL_SHARD_FSDP || w->sharding == ZIPCCL_SHARD_NORESHARD))
        REFUSE("fsdp with pp %u would gather every block once a micro-batch and stage; not "
               "offered. Use zero1 with pp, or fsdp with tp",
               w->pp);
    if (w->pp > 1 && w->sharding == ZIPCCL_SHARD_ZERO2)
        REFUSE("zero2 with pp %u: gradients are scattered in each micro-batch, which pipelines "
               "accumulate (DeepSpeed refuses it too); use zero1",
               w->pp);
    return ZIPCCL_OK;
}

/* Tokens sent once to each node: groups of ep have to fill several nodes. */
static zipccl_status check_nodes(const struct zipccl_workload *w, struct zipccl_error *error)
{
    uint64_t block = (uint64_t)w->ep * w->etp, node = w->ranks_per_node;

    if (!w->node_dispatch)
        return ZIPCCL_OK;
    if (node == 0)
        REFUSE("dispatch by nodes: how many ranks share one is not known; name a cluster, or give "
               "--ranks-per-node");
    if (block <= node || block % node != 0 || node % w->etp != 0)
        REFUSE("dispatch by nodes: ep %u x etp %u ranks on nodes of %u: expected several whole "
               "nodes, and etp to divide them",
               w->ep, w->etp, w->ranks_per_node);
    if (w->imbalance > 1)
        REFUSE("dispatch by nodes with imbalance: not offered, tables are of single ranks");
    return ZIPCCL_OK;
}

static zipccl_status check_experts(const struct zipccl_workload *w, struct zipccl_error *error)
{
    const struct zipccl_workload_model *m = &w->model;
    uint64_t stage = (uint64_t)w->tp * w->cp * w->dp;

    if (m->experts == 0) {
        if (w->ep > 1)
            REFUSE("ep %u: %s has no experts", w->ep, m->name);
        if (w->etp > 1)
            REFUSE("etp %u: %s has no experts", w->etp, m->name);
        if (w->fp8_dispatch || w->node_dispatch || w->imbalance > 1)
            REFUSE("%s has no experts: nothing is dispatched", m->name);
        return ZIPCCL_OK;
    }
    if (m->experts % w->ep != 0)
        REFUSE("ep %u does not divide the %u experts of %s", w->ep, m->experts, m->name);
    if (stage % ((uint64_t)w->ep * w->etp) != 0)
        REFUSE("ep %u%s%.0u does not divide the %" PRIu64 " ranks of a stage (tp x cp x dp)", w->ep,
               w->etp > 1 ? " x etp " : "", w->etp > 1 ? w->etp : 0, stage);
    if (m->expert_ffn % w->etp != 0)
        REFUSE("etp %u does not divide the width %u of an expert of %s", w->etp, m->expert_ffn,
               m->name);
    if (w->etp > 1 && w->imbalance > 1)
        REFUSE("imbalance with etp %u: not offered; what its ranks gather would differ by group",
               w->etp);
    if (w->ep == 1 && (w->fp8_dispatch || w->imbalance > 1))
        REFUSE("ep is 1: all experts are on each rank, no tokens are dispatched");
    ZIPCCL_TRY(check_nodes(w, error));
    if (!(w->imbalance >= 1 && w->imbalance <= w->ep))
        REFUSE("imbalance %g: the busiest of ep %u ranks gets 1 to %u times the mean", w->imbalance,
               w->ep, w->ep);
    return ZIPCCL_OK;
}

static zipccl_status check_shard(const struct zipccl_workload *w, struct zipccl_error *error)
{
    bool fsdp = w->sharding == ZIPCCL_SHARD_FSDP || w->sharding == ZIPCCL_SHARD_NORESHARD;
    uint64_t copies = (uint64_t)w->dp * w->cp;

    if (w->shard == 0)
        return ZIPCCL_OK;
    if (!fsdp || w->kind != ZIPCCL_WORKLOAD_TRAIN)
        REFUSE("shard %u: for training with fsdp or fsdp-noreshard", w->shard);
    if (w->shard < 2 || w->shard >= copies || copies % w->shard != 0)
        REFUSE("shard %u: expected a divisor of dp x cp = %" PRIu64 " between 1 and it", w->shard,
               copies);
    if (w->model.experts > 0)
        REFUSE("shard %u: not offered for models with experts, which have groups of their own",
               w->shard);
    return ZIPCCL_OK;
}

static zipccl_status check_batch(const struct zipccl_workload *w, struct zipccl_error *error)
{
    if (w->seq == 0 || w->micro_batch == 0 || w->global_batch == 0)
        REFUSE("sequence, micro-batch and global batch have to be 1 or more");
    if (w->seq > (uint64_t)1 << 26 || w->micro_batch > 1 << 20 || w->global_batch > 1 << 30)
        REFUSE("sequence over 2^26, micro-batch over 2^20 or global batch over 2^30");
    if ((double)w->seq * (double)w->micro_batch * w->model.hidden > 0x1p46)
        REFUSE("%" PRIu64 " sequences of %" PRIu64
               " tokens of %u: expected at most 2^46 elements in a "
               "micro-batch",
               w->micro_batch, w->seq, w->model.hidden);
    if (w->global_batch % (w->micro_batch * w->dp) != 0)
        REFUSE("the global batch of %" PRIu64 " is no multiple of micro-batch %" PRIu64
               " x dp %u = %" PRIu64,
               w->global_batch, w->micro_batch, w->dp, w->micro_batch * w->dp);
    if (w->cp > 1 && w->seq % (2 * (uint64_t)w->cp) != 0)
        REFUSE("cp %u cuts a sequence into %u pieces, for balance under the causal mask: no "
               "divisor of %" PRIu64,
               w->cp, 2 * w->cp, w->seq);
    return ZIPCCL_OK;
}

/* Options that would do nothing. */
static zipccl_status check_use(const struct zipccl_workload *w, struct zipccl_error *error)
{
    bool fsdp = w->sharding == ZIPCCL_SHARD_FSDP || w->sharding == ZIPCCL_SHARD_NORESHARD;

    if (w->kind != ZIPCCL_WORKLOAD_TRAIN &&
        (w->recompute != ZIPCCL_RECOMPUTE_NONE || w->fp32_reduce || w->fp8_dispatch ||
         w->node_dispatch || w->imbalance > 1 || w->bucket > 0 || w->overlap_param ||
         w->overlap_shared || w->overlap_tp || w->overlap_a2a))
        REFUSE(
            "weight-sync sends parameters alone: recomputation, gradients, buckets, dispatch and "
            "overlap have no meaning there");
    if (w->overlap_param && (fsdp || w->sharding == ZIPCCL_SHARD_DDP))
        REFUSE("overlap param is for zero1 and zero2: ddp gathers nothing, fsdp always overlaps");
    if (w->overlap_a2a && (w->model.experts == 0 || w->ep == 1))
        REFUSE("overlap a2a hides the exchange of tokens over ep, and there is none");
    if (w->overlap_a2a && (fsdp || w->sharding == ZIPCCL_SHARD_ZERO2 || w->vpp > 1 ||
                           w->recompute == ZIPCCL_RECOMPUTE_FULL))
        REFUSE("overlap a2a pairs passes of two micro-batches: with ddp or zero1, without vpp and "
               "full recomputation");
    if (w->overlap_a2a && zipccl_workload_micro_batches(w) < 2)
        REFUSE("overlap a2a pairs passes of two micro-batches, and there is one");
    if (w->overlap_tp && !w->sp)
        REFUSE("overlap tp cuts the gathers and scatters of --sp; an all_reduce of tp is not cut");
    if (w->overlap_shared && w->model.shared_ffn == 0)
        REFUSE("overlap shared: %s has no shared experts", w->model.name);
    if (w->bucket > 0 && fsdp)
        REFUSE("fsdp reduces block by block, not in buckets");
    return ZIPCCL_OK;
}

zipccl_status zipccl_workload_check(const struct zipccl_workload *w, struct zipccl_error *error)
{
    uint64_t n = 1;
    const uint32_t sizes[] = {w->tp, w->cp, w->dp, w->pp};

    if (w->tp == 0 || w->pp == 0 || w->dp == 0 || w->cp == 0 || w->ep == 0 || w->etp == 0 ||
        w->vpp == 0)
        REFUSE("tp, pp, dp, cp, ep, etp and vpp have to be 1 or more");
    for (int i = 0; i < 4; i++) {
        n *= sizes[i];
        if (n > 1 << 20)
            REFUSE("tp %u x cp %u x dp %u x pp %u are more than 1048576 ranks", w->tp, w->cp, w->dp,
                   w->pp);
    }
    ZIPCCL_TRY(zipccl_workload_model_check(&w->model, w->model.name, error));
    ZIPCCL_TRY(check_batch(w, error));
    if (w->kind != ZIPCCL_WORKLOAD_TRAIN && w->pp > 1)
        REFUSE("weight-sync with pp %u: not offered; the stages would take turns", w->pp);
    ZIPCCL_TRY(check_tensor(w, error));
    ZIPCCL_TRY(check_pipeline(w, error));
    ZIPCCL_TRY(check_experts(w, error));
    ZIPCCL_TRY(check_shard(w, error));
    ZIPCCL_TRY(check_use(w, error));
    if (w->peak_flops > 0 && !(w->mfu > 0 && w->mfu <= 1))
        REFUSE("a peak rate needs the part of it that kernels reach, over 0 and up to 1");
    if (w->imbalance > 1 && w->ep > 1024)
        REFUSE("imbalance over ep %u: expected at most 1024 ranks", w->ep);
    return ZIPCCL_OK;
}
