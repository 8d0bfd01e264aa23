/*
 * workload_samples.c - which captured tensors stand for which payload of a made-up step
 *
 * Names are those of the bundled samples.  A class is bound only if the file has it in the type of
 * the call; the first that fits is taken.  The file of the mixture of experts has no tensors of
 * tensor or pipeline parallelism: rows on their way to experts, which are normed hidden states,
 * and expert outputs stand in.  The gradient of an embedding has rows of zeros, that of a head has
 * none, nor that of both where they are one.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/workload_out.h"

#include "traces/safetensors.h"

#include <stddef.h>

#define ANY (-1)

enum who { BOTH, DENSE, MOE };

static const struct {
    enum workload_use use;
    int place;
    enum who who;
    const char *names[MAX_NAMES]; /* tensors, or one class; NULL ends them */
} table[] = {
    {OF_PARAM, EARLY, DENSE, {"class:allgather.param.layer0"}},
    {OF_PARAM, MIDDLE, DENSE, {"class:allgather.param.layer3"}},
    {OF_PARAM, LATE, DENSE, {"class:allgather.param.layer7"}},
    {OF_PARAM, EARLY, MOE, {"class:allgather.param.layer0.attn"}},
    {OF_PARAM, ANY, MOE, {"class:allgather.param.layer2.attn"}},
    {OF_PARAM, ANY, BOTH, {"class:allgather.param"}},
    {OF_ROOT_PARAM,
     ANY,
     DENSE,
     {"allgather.param.embed.step219", "allgather.param.head.step219",
      "allgather.param.norms.step219"}},
    {OF_ROOT_PARAM, ANY, BOTH, {"class:allgather.param.embed"}},
    {OF_ROOT_PARAM, ANY, BOTH, {"class:allgather.param"}},
    {OF_EMBED_PARAM, ANY, BOTH, {"class:allgather.param.embed"}},
    {OF_EMBED_PARAM, ANY, BOTH, {"class:allgather.param"}},
    {OF_HEAD_PARAM, ANY, BOTH, {"class:allgather.param.head"}},
    {OF_HEAD_PARAM, ANY, BOTH, {"class:allgather.param.embed"}},
    {OF_HEAD_PARAM, ANY, BOTH, {"class:allgather.param"}},
    {OF_EXPERT_PARAM, ANY, BOTH, {"class:allgather.param.layer2.experts"}},
    {OF_EXPERT_PARAM, ANY, BOTH, {"class:allgather.param"}},
    {OF_GRAD, EARLY, DENSE, {"class:reducescatter.grad.layer0"}},
    {OF_GRAD, MIDDLE, DENSE, {"class:reducescatter.grad.layer3"}},
    {OF_GRAD, LATE, DENSE, {"class:reducescatter.grad.layer7"}},
    {OF_GRAD, EARLY, MOE, {"class:reducescatter.grad.layer0.attn"}},
    {OF_GRAD, ANY, MOE, {"class:reducescatter.grad.layer2.attn"}},
    {OF_GRAD, ANY, BOTH, {"class:reducescatter.grad"}},
    {OF_GRAD, ANY, BOTH, {"class:allreduce.grad_fp32"}},
    {OF_ROOT_GRAD,
     ANY,
     DENSE,
     {"reducescatter.grad.embed.step219", "reducescatter.grad.head.step219",
      "reducescatter.grad.norms.step219"}},
    {OF_ROOT_GRAD, ANY, BOTH, {"class:reducescatter.grad.head"}},
    {OF_ROOT_GRAD, ANY, BOTH, {"class:reducescatter.grad.embed"}},
    {OF_ROOT_GRAD, ANY, BOTH, {"class:reducescatter.grad"}},
    {OF_ROOT_GRAD, ANY, BOTH, {"class:allreduce.grad_fp32"}},
    {OF_EMBED_GRAD, ANY, BOTH, {"class:reducescatter.grad.embed"}},
    {OF_EMBED_GRAD, ANY, BOTH, {"class:reducescatter.grad"}},
    {OF_EMBED_GRAD, ANY, BOTH, {"class:allreduce.grad_fp32"}},
    {OF_HEAD_GRAD, ANY, BOTH, {"class:reducescatter.grad.head"}},
    {OF_HEAD_GRAD, ANY, MOE, {"class:reducescatter.grad.embed"}},
    {OF_HEAD_GRAD, ANY, BOTH, {"class:reducescatter.grad"}},
    {OF_HEAD_GRAD, ANY, BOTH, {"class:allreduce.grad_fp32"}},
    {OF_EXPERT_GRAD, ANY, BOTH, {"class:reducescatter.grad.layer2.experts"}},
    {OF_EXPERT_GRAD, ANY, BOTH, {"class:reducescatter.grad"}},
    {OF_EXPERT_GRAD, ANY, BOTH, {"class:allreduce.grad_fp32"}},
    {OF_HIDDEN, ANY, BOTH, {"class:allreduce.tp.hidden"}},
    {OF_HIDDEN, ANY, BOTH, {"class:alltoall.combine"}},
    {OF_NORMED, ANY, BOTH, {"class:allgather.sp.norm_out"}},
    {OF_NORMED, ANY, BOTH, {"class:allreduce.tp.hidden"}},
    {OF_NORMED, ANY, BOTH, {"class:alltoall.dispatch"}},
    {OF_HIDDEN_GRAD, ANY, BOTH, {"class:allgather.sp.grad"}},
    {OF_HIDDEN_GRAD, ANY, BOTH, {"class:p2p.pp.grad"}},
    {OF_HIDDEN_GRAD, ANY, BOTH, {"class:alltoall.dispatch_grad"}},
    {OF_STAGE, ANY, BOTH, {"class:p2p.pp.hidden"}},
    {OF_STAGE, ANY, BOTH, {"class:alltoall.dispatch"}},
    {OF_STAGE_GRAD, ANY, BOTH, {"class:p2p.pp.grad"}},
    {OF_STAGE_GRAD, ANY, BOTH, {"class:alltoall.dispatch_grad"}},
    {OF_KV, ANY, BOTH, {"class:p2p.cp"}},
    {OF_KV, ANY, BOTH, {"class:allreduce.tp.hidden"}},
    {OF_KV, ANY, BOTH, {"class:alltoall.dispatch"}},
    {OF_DISPATCH, EARLY, BOTH, {"class:alltoall.dispatch.layer0"}},
    {OF_DISPATCH, MIDDLE, BOTH, {"class:alltoall.dispatch.layer2"}},
    {OF_DISPATCH, LATE, BOTH, {"class:alltoall.dispatch.layer5"}},
    {OF_DISPATCH, ANY, BOTH, {"class:alltoall.dispatch"}},
    {OF_COMBINE, EARLY, BOTH, {"class:alltoall.combine.layer0"}},
    {OF_COMBINE, MIDDLE, BOTH, {"class:alltoall.combine.layer2"}},
    {OF_COMBINE, LATE, BOTH, {"class:alltoall.combine.layer5"}},
    {OF_COMBINE, ANY, BOTH, {"class:alltoall.combine"}},
    {OF_DISPATCH_GRAD, ANY, BOTH, {"class:alltoall.dispatch_grad"}},
    {OF_COMBINE_GRAD, ANY, BOTH, {"class:alltoall.combine_grad"}},
};

static enum zipccl_dtype dtype_of(const struct zipccl_workload *w, enum workload_use use)
{
    bool grad = use >= OF_GRAD && use <= OF_EXPERT_GRAD;

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

static bool all_fit(const struct zipccl_safetensors *file, const char *const *names,
                    enum zipccl_dtype dtype)
{
    for (int i = 0; i < MAX_NAMES && names[i] != NULL; i++)
        if (!fits(file, names[i], dtype))
            return false;
    return true;
}

zipccl_status workload_bind(struct workload_out *o, const char *samples)
{
    const struct zipccl_safetensors *file;

    ZIPCCL_TRY(zipccl_safetensors_open(samples, &file, o->error));
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        enum workload_use use = table[i].use;
        bool other = table[i].who == (o->w->model.experts > 0 ? DENSE : MOE);

        if (other || no_sample(o->w, use) || !all_fit(file, table[i].names, dtype_of(o->w, use)))
            continue;
        for (int place = 0; place < NUM_PLACES; place++)
            if (o->samples[use][place] == NULL &&
                (table[i].place == ANY || table[i].place == place))
                o->samples[use][place] = table[i].names;
    }
    zipccl_safetensors_close(file);
    return ZIPCCL_OK;
}
