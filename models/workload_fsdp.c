/*
 * workload_fsdp.c - a step under FSDP (ZeRO-3), with and without resharding after the forward pass
 *
 * As PyTorch's FullyShardedDataParallel runs it: one unit a block and a root unit (embedding, head,
 * last norm).  At most two gathered blocks are kept, so that of block i+2 waits for the forward of
 * block i; backward, block i-1 is prefetched before the pass of block i, and the last block and the
 * root stay gathered.  Every micro-batch gathers and reduces: 2L-1 block gathers, L without
 * resharding, L block reductions, one each of the root.  Experts are gathered over their own copies.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/workload_out.h"

#include <stdlib.h>

struct fsdp {
    struct workload_out *o;
    uint32_t n;                   /* layers */
    uint64_t *forward, *backward; /* [n] last event of each pass */
};

static bool is_moe(const struct fsdp *f, uint32_t layer)
{
    return zipccl_workload_is_moe(&f->o->w->model, layer);
}

static void gather(struct fsdp *f, uint32_t layer, const char *label, uint64_t after,
                   uint64_t ids[2])
{
    const struct workload_call call = {.label = label, .after = after, .free = after == 0};

    f->o->place = workload_place_of(f->o->w, layer);
    workload_gather_layers(f->o, 1, is_moe(f, layer), 1, &call, ids);
}

static void forward(struct fsdp *f)
{
    struct workload_out *o = f->o;
    struct workload_call call = {.label = "root parameters"};
    uint64_t ids[2], root, start = workload_marker(o, ON_COMPUTE, "micro-batch");

    /* The root is gathered when the step before has been computed. */
    call.after = start;
    root = workload_gather_root(o, &call);
    workload_wait(o, root);
    workload_embedding_forward(o);
    for (uint32_t i = 0; i < f->n; i++) {
        bool keep = o->w->sharding == ZIPCCL_SHARD_NORESHARD || i < 2;

        gather(f, i, "block parameters, forward", keep ? start : f->forward[i - 2], ids);
        workload_wait(o, ids[0]);
        workload_wait(o, ids[1]);
        workload_block_forward(o, is_moe(f, i));
        f->forward[i] = o->last[0];
    }
    workload_head_forward(o);
}

static void backward(struct fsdp *f)
{
    struct workload_out *o = f->o;
    uint64_t ready[2] = {0, 0};

    workload_head_backward(o);
    for (uint32_t i = f->n; i-- > 0;) {
        workload_wait(o, ready[0]);
        workload_wait(o, ready[1]);
        ready[0] = ready[1] = 0;
        if (i > 0 && o->w->sharding == ZIPCCL_SHARD_FSDP) {
            /* The buffer that it takes is free after the pass of the block that had it. */
            uint64_t freed = i + 1 < f->n ? f->backward[i + 1] : i > 0 ? f->forward[i - 1] : 0;

            gather(f, i - 1, "block parameters, backward", freed, ready);
        }
        o->place = workload_place_of(o->w, i);
        workload_block_backward(o, is_moe(f, i));
        f->backward[i] = o->last[0];
        workload_reduce_layers(o, 1, is_moe(f, i), 1);
    }
    workload_embedding_backward(o);
    workload_reduce_root(o);
}

void workload_write_fsdp(struct workload_out *o)
{
    uint64_t batches = zipccl_workload_micro_batches(o->w), times = o->w->unroll ? 1 : batches;
    struct fsdp f = {.o = o, .n = o->w->model.layers};

    f.forward = calloc(2 * (size_t)f.n, sizeof *f.forward);
    if (f.forward == NULL) {
        o->status = zipccl_fail(o->error, ZIPCCL_ERR_NOMEM, "out of memory");
        return;
    }
    f.backward = f.forward + f.n;
    workload_loop(o, times, "micro-batches");
    for (uint64_t i = 0; i < batches / times; i++) {
        forward(&f);
        backward(&f);
    }
    workload_end(o, times);
    free(f.forward);
    workload_finish(o);
}
