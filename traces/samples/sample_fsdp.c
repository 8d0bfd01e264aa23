/*
 * sample_fsdp.c - one training step of Llama-2-7B under FSDP (ZeRO-3) on 64 GPUs
 *
 * As PyTorch's FullyShardedDataParallel runs it: one unit a block and a root unit (embedding,
 * head, last norm), parameters gathered in bf16, gradients reduced in bf16 or fp32, no activation
 * recomputation.  All collectives of the process group share one NCCL stream, in the order in
 * which the host issues them:
 *   forward   all-gather of the root, then of block 0, 1, ...; at most two gathered blocks are
 *             kept, so that of block i+2 waits for the forward of block i
 *   backward  before the backward of block i that of block i-1 is prefetched (BACKWARD_PRE),
 *             after it the gradients of block i are reduced; the last block and the root stay
 *             gathered from the forward pass
 *   end       root gradients, gradient norm (1 fp32), optimizer, loss and token count (1 fp32 each)
 * Counts: 2L-1 block and 1 root all-gather, L block and 1 root reduce-scatter, 3 all-reduces.
 *
 * With fp32 PyTorch widens bf16 gradients, so that one rank's have 16 zero bits; the bound sample
 * is a gradient that was accumulated in fp32, which compresses less: the careful choice.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/samples/sample.h"

#define L       32
#define H       4096.0
#define FFN     11008.0
#define VOCAB   32000.0
#define P_BLOCK (4 * H * H + 3 * H * FFN + 2 * H) /* 202,383,360 */
#define P_ROOT  (2 * VOCAB * H + H)               /* 262,148,096 */
#define T       ((double)SAMPLE_TOKENS)
#define S       ((double)SAMPLE_SEQ)

#define FWD_FLOPS   (2 * P_BLOCK * T + 2 * T * S * H)
#define FWD_BYTES   (2 * P_BLOCK + 34 * T * H)
#define BWD_BYTES   (3 * 2 * P_BLOCK + 2 * 34 * T * H)
#define HEAD_FLOPS  (2 * VOCAB * H * T)
#define HEAD_BYTES  (2 * VOCAB * H + 3 * 4 * T * VOCAB) /* logits in fp32 for the loss */
#define EMBED_BYTES (2 * 2 * T * H)

/* Block i of 32 stands near the first, the middle or the last captured block of 8. */
enum { EARLY, MIDDLE, LATE, ROOT };

static const struct sample_names params[] = {
    [EARLY] = {{"allgather.param.layer0.attn.step219", "allgather.param.layer0.mlp.step219"}},
    [MIDDLE] = {{"allgather.param.layer3.attn.step219", "allgather.param.layer3.mlp.step219"}},
    [LATE] = {{"allgather.param.layer7.mlp.step219"}},
    [ROOT] = {{"allgather.param.embed.step219", "allgather.param.head.step219",
               "allgather.param.norms.step219"}},
};

static const struct sample_names grads[] = {
    [EARLY] = {{"reducescatter.grad.layer0.attn.step219"}},
    [MIDDLE] = {{"reducescatter.grad.layer3.attn.step219",
                 "reducescatter.grad.layer3.mlp.step219"}},
    [LATE] = {{"reducescatter.grad.layer7.mlp.step219"}},
    [ROOT] = {{"reducescatter.grad.embed.step219", "reducescatter.grad.head.step219",
               "reducescatter.grad.norms.step219"}},
};

static const struct sample_names fp32_grads = {{"allreduce.grad_fp32.layer3.w_down.step219"}};

struct step {
    struct sample_out out;
    bool fp32;
    uint64_t forward[L], backward[L];
};

static int position(int block)
{
    return block < L / 4 ? EARLY : block < L * 3 / 4 ? MIDDLE : LATE;
}

static uint64_t gather(struct step *step, const char *label, double nparams, int where,
                       uint64_t after)
{
    struct zipccl_event call = {.stream = 1,
                                .label = label,
                                .op = ZIPCCL_ALL_GATHER,
                                .dtype = ZIPCCL_BFLOAT16,
                                .count = ((uint64_t)nparams + SAMPLE_RANKS - 1) / SAMPLE_RANKS};

    return sample_collective(&step->out, &call, (struct sample_deps){{after}}, params[where]);
}

static uint64_t scatter(struct step *step, const char *label, double nparams, int where,
                        uint64_t after)
{
    struct zipccl_event call = {.stream = 1,
                                .label = label,
                                .op = ZIPCCL_REDUCE_SCATTER,
                                .dtype = step->fp32 ? ZIPCCL_FLOAT32 : ZIPCCL_BFLOAT16,
                                .redop = ZIPCCL_AVG,
                                .count = ((uint64_t)nparams + SAMPLE_RANKS - 1) / SAMPLE_RANKS};

    return sample_collective(&step->out, &call, (struct sample_deps){{after}},
                             step->fp32 ? fp32_grads : grads[where]);
}

static uint64_t reduce_scalar(struct step *step, const char *label, uint64_t after)
{
    struct zipccl_event call = {.stream = 1,
                                .label = label,
                                .op = ZIPCCL_ALL_REDUCE,
                                .dtype = ZIPCCL_FLOAT32,
                                .redop = ZIPCCL_SUM,
                                .count = 1};

    return sample_collective(&step->out, &call, (struct sample_deps){{after}},
                             (struct sample_names){{NULL}});
}

static void forward(struct step *step)
{
    uint64_t root = gather(step, "root parameters", P_ROOT, ROOT, 0);

    sample_compute(&step->out, "embedding forward", 0, EMBED_BYTES, (struct sample_deps){{root}});
    for (int i = 0; i < L; i++) {
        uint64_t ready = gather(step, "block parameters, forward", P_BLOCK, position(i),
                                i >= 2 ? step->forward[i - 2] : 0);

        step->forward[i] = sample_compute(&step->out, "block forward", FWD_FLOPS, FWD_BYTES,
                                          (struct sample_deps){{ready}});
    }
    sample_compute(&step->out, "head and loss forward", HEAD_FLOPS, HEAD_BYTES,
                   (struct sample_deps){{0}});
}

static void backward(struct step *step)
{
    uint64_t ready = 0;

    sample_compute(&step->out, "head and loss backward", 2 * HEAD_FLOPS, 2 * HEAD_BYTES,
                   (struct sample_deps){{0}});
    for (int i = L - 1; i >= 0; i--) {
        uint64_t needed = ready; /* 0 for the last block: still gathered */

        if (i > 0) {
            /* The buffer that the gather of i-1 takes is the one that was used two gathers ago:
             * block 30's in the forward pass, then that of block i+1 in this pass. */
            uint64_t freed = i == L - 1 ? step->forward[L - 2] : step->backward[i + 1];

            ready = gather(step, "block parameters, backward", P_BLOCK, position(i - 1), freed);
        }
        step->backward[i] = sample_compute(&step->out, "block backward", 2 * FWD_FLOPS, BWD_BYTES,
                                           (struct sample_deps){{needed}});
        scatter(step, "block gradients", P_BLOCK, position(i), step->backward[i]);
    }
}

static void finish(struct step *step)
{
    double shard = (L * P_BLOCK + P_ROOT) / SAMPLE_RANKS;
    uint64_t id = sample_compute(&step->out, "embedding backward", 0, 2 * EMBED_BYTES,
                                 (struct sample_deps){{0}});

    id = scatter(step, "root gradients", P_ROOT, ROOT, id);
    id = sample_compute(&step->out, "gradient norm", 2 * shard, 4 * shard,
                        (struct sample_deps){{id}});
    id = reduce_scalar(step, "gradient norm", id);
    /* 6 more bytes a parameter: the bf16 copy that the next step gathers. */
    id = sample_compute(&step->out, "optimizer step", SAMPLE_ADAM_FLOPS * shard,
                        (SAMPLE_ADAM_BYTES + 6) * shard, (struct sample_deps){{id}});
    id = reduce_scalar(step, "loss", id);
    reduce_scalar(step, "token count", id);
}

zipccl_status sample_fsdp(const char *path, bool fp32, struct zipccl_error *error)
{
    uint32_t ranks[SAMPLE_RANKS];
    struct zipccl_trace_group world = {"world", 1, SAMPLE_RANKS, ranks};
    char *streams[] = {(char *)"compute", (char *)"nccl:world"};
    struct zipccl_trace_header header = {
        .version = 1,
        .name = fp32 ? "llama2-7b-fsdp64-fp32" : "llama2-7b-fsdp64",
        .model = fp32 ? "Llama-2-7B, FSDP (ZeRO-3) over 64, bf16 parameters, fp32 gradients, "
                        "4096 tokens/GPU"
                      : "Llama-2-7B, FSDP (ZeRO-3) over 64, bf16, 4096 tokens/GPU",
        .provenance = "generated from the published configuration of the model; nothing measured",
        .generator = SAMPLE_GENERATOR,
        .nranks = SAMPLE_RANKS,
        .ranks_per_node = SAMPLE_PER_NODE,
        .recorded_step_s = -1,
        .tokens_per_step = SAMPLE_TOKENS,
        .samples = "../tensors/dense.safetensors",
        .nstreams = 2,
        .streams = streams,
        .ngroups = 1,
        .groups = &world};
    struct step step = {.out = {.error = error}, .fp32 = fp32};
    zipccl_status status;

    for (uint32_t i = 0; i < SAMPLE_RANKS; i++)
        ranks[i] = i;
    ZIPCCL_TRY(zipccl_trace_writer_open(path, &header, &step.out.writer, error));
    forward(&step);
    backward(&step);
    finish(&step);
    status = zipccl_trace_writer_finish(step.out.writer, step.out.status == ZIPCCL_OK, error);
    return step.out.status != ZIPCCL_OK ? step.out.status : status;
}
