/*
 * workload_samples.c - which captured tensors stand for which payload of a made-up step
 *
 * Names are those of the bundled samples.  A class is bound only if the file has it in the type of
 * the call; the first that fits is taken.  The file of the mixture of experts has no tensors of
 * tensor or pipeline parallelism: rows on their way to experts, which are normed hidden states,
 * and expert outputs stand in.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/workload_out.h"

#include "traces/safetensors.h"

#include <stddef.h>

#define ANY (-1)

static const struct {
    enum workload_use use;
    int place;
    const char *class;
} table[] = {
    {OF_PARAM, EARLY, "class:allgather.param.layer0"},
    {OF_PARAM, MIDDLE, "class:allgather.param.layer3"},
    {OF_PARAM, LATE, "class:allgather.param.layer7"},
    {OF_PARAM, ANY, "class:allgather.param.layer2"},
    {OF_PARAM, ANY, "class:allgather.param"},
    {OF_ROOT_PARAM, ANY, "class:allgather.param.embed"},
    {OF_ROOT_PARAM, ANY, "class:allgather.param"},
    {OF_EXPERT_PARAM, ANY, "class:allgather.param.layer2.experts"},
    {OF_EXPERT_PARAM, ANY, "class:allgather.param"},
    {OF_GRAD, EARLY, "class:reducescatter.grad.layer0"},
    {OF_GRAD, MIDDLE, "class:reducescatter.grad.layer3"},
    {OF_GRAD, LATE, "class:reducescatter.grad.layer7"},
    {OF_GRAD, ANY, "class:reducescatter.grad.layer2"},
    {OF_GRAD, ANY, "class:reducescatter.grad"},
    {OF_GRAD, ANY, "class:allreduce.grad_fp32"},
    {OF_ROOT_GRAD, ANY, "class:reducescatter.grad.embed"},
    {OF_ROOT_GRAD, ANY, "class:reducescatter.grad"},
    {OF_ROOT_GRAD, ANY, "class:allreduce.grad_fp32"},
    {OF_EXPERT_GRAD, ANY, "class:reducescatter.grad.layer2.experts"},
    {OF_EXPERT_GRAD, ANY, "class:reducescatter.grad"},
    {OF_EXPERT_GRAD, ANY, "class:allreduce.grad_fp32"},
    {OF_HIDDEN, ANY, "class:allreduce.tp.hidden"},
    {OF_HIDDEN, ANY, "class:alltoall.combine"},
    {OF_NORMED, ANY, "class:allgather.sp.norm_out"},
    {OF_NORMED, ANY, "class:allreduce.tp.hidden"},
    {OF_NORMED, ANY, "class:alltoall.dispatch"},
    {OF_HIDDEN_GRAD, ANY, "class:allgather.sp.grad"},
    {OF_HIDDEN_GRAD, ANY, "class:p2p.pp.grad"},
    {OF_HIDDEN_GRAD, ANY, "class:alltoall.dispatch_grad"},
    {OF_STAGE, ANY, "class:p2p.pp.hidden"},
    {OF_STAGE, ANY, "class:alltoall.dispatch"},
    {OF_STAGE_GRAD, ANY, "class:p2p.pp.grad"},
    {OF_STAGE_GRAD, ANY, "class:alltoall.dispatch_grad"},
    {OF_KV, ANY, "class:p2p.cp"},
    {OF_KV, ANY, "class:allreduce.tp.hidden"},
    {OF_KV, ANY, "class:alltoall.dispatch"},
    {OF_DISPATCH, EARLY, "class:alltoall.dispatch.layer0"},
    {OF_DISPATCH, MIDDLE, "class:alltoall.dispatch.layer2"},
    {OF_DISPATCH, LATE, "class:alltoall.dispatch.layer5"},
    {OF_DISPATCH, ANY, "class:alltoall.dispatch"},
    {OF_COMBINE, EARLY, "class:alltoall.combine.layer0"},
    {OF_COMBINE, MIDDLE, "class:alltoall.combine.layer2"},
    {OF_COMBINE, LATE, "class:alltoall.combine.layer5"},
    {OF_COMBINE, ANY, "class:alltoall.combine"},
    {OF_DISPATCH_GRAD, ANY, "class:alltoall.dispatch_grad"},
    {OF_COMBINE_GRAD, ANY, "class:alltoall.combine_grad"},
};

static enum zipccl_dtype dtype_of(const struct zipccl_workload *w, enum workload_use use)
{
    bool grad = use == OF_GRAD || use == OF_ROOT_GRAD || use == OF_EXPERT_GRAD;

    return grad && w->fp32_reduce ? ZIPCCL_FLOAT32 : ZIPCCL_BFLOAT16;
}

static bool fits(const struct zipccl_safetensors *file, const char *class, enum zipccl_dtype dtype)
{
    const struct zipccl_tensor *t;
    size_t position = 0, n = 0;

    while ((t = zipccl_safetensors_match(file, class, &position)) != NULL) {
        if (!t->known || t->dtype != dtype)
            return false;
        n++;
    }
    return n > 0;
}

/* Tokens that travel in fp8 have no sample of that type. */
static bool no_sample(const struct zipccl_workload *w, enum workload_use use)
{
    return use == OF_NOTHING || (w->fp8_dispatch && use == OF_DISPATCH);
}

zipccl_status workload_bind(struct workload_out *o, const char *samples)
{
    const struct zipccl_safetensors *file;

    ZIPCCL_TRY(zipccl_safetensors_open(samples, &file, o->error));
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        enum workload_use use = table[i].use;

        if (no_sample(o->w, use) || !fits(file, table[i].class, dtype_of(o->w, use)))
            continue;
        for (int place = 0; place < NUM_PLACES; place++)
            if (o->classes[use][place] == NULL &&
                (table[i].place == ANY || table[i].place == place))
                o->classes[use][place] = table[i].class;
    }
    zipccl_safetensors_close(file);
    return ZIPCCL_OK;
}
