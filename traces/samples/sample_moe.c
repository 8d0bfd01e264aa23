/*
 * sample_moe.c - one training step of a mixture of experts of Mixtral's width on 64 GPUs
 *
 * 16 layers, hidden 4096, 32 query and 8 KV heads, 64 SwiGLU experts of 14336, top-2.  Expert
 * parallelism over all 64 GPUs, one expert of each layer on each GPU, so token exchanges cross
 * nodes; routing is balanced.  Everything else is data parallel over the same 64 GPUs with ZeRO-1.
 * Order of a layer, as Megatron-LM's all-to-all dispatcher runs it:
 *   forward   attention, router; counts exchange (all_gather of 64 int64); dispatch; expert;
 *             combine; un-permute.  Nothing independent is left to compute while tokens travel, so
 *             the exchanges are exposed.  The router's mean probabilities are summed over data
 *             parallel ranks for the balancing loss (64 fp32); only the loss waits for them.
 *   backward  un-permute, gradients of combine, expert, gradients of dispatch, router and
 *             attention; then the layer's dense gradients are reduced on a stream of their own,
 *             beside the backward pass of the layer below.
 *   end       gradient norm, optimizer (1/64 of the dense parameters, all of the own experts),
 *             then the parameters are gathered, a bucket a layer: exposed at the end of the step, as
 *             without Megatron's --overlap-param-gather.
 * Expert gradients need no reduction: no two ranks hold the same expert.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/samples/sample.h"

#define L        16
#define H        4096.0
#define FFN      14336.0
#define VOCAB    32000.0
#define EXPERTS  64
#define TOPK     2
#define Q        4096.0                       /* 32 heads of 128 */
#define KV       1024.0                       /* 8 heads of 128 */
#define P_ATTN   (H * Q + 2 * H * KV + Q * H) /* 41,943,040 */
#define P_ROUTER (H * EXPERTS)                /* 262,144 */
#define P_DENSE  (P_ATTN + P_ROUTER + 2 * H)  /* of a layer, 42,213,376 */
#define P_EXPERT (3 * H * FFN)                /* 176,160,768 */
#define P_ROOT   (2 * VOCAB * H + H)          /* 262,148,096 */
#define T        ((double)SAMPLE_TOKENS)
#define S        ((double)SAMPLE_SEQ)

#define ATTN_FLOPS   (2 * P_ATTN * T + 2 * T * S * Q)
#define ATTN_BYTES   (2 * P_ATTN + 18 * T * H) /* of 34: attention and norms 18, MLP 16 */
#define ROUTER_FLOPS (2 * P_ROUTER * T)
#define ROUTER_BYTES                                                                               \
    (2 * T * H * (1 + TOPK)) /* permute: each token read once, written top-k times */
#define EXPERT_FLOPS    (2 * P_EXPERT * T * TOPK)
#define EXPERT_BYTES    (2 * P_EXPERT + T * TOPK * 2 * (2 * H + 3 * FFN))
#define UNPERMUTE_BYTES (2 * T * H * (TOPK + 1))
#define HEAD_FLOPS      (2 * VOCAB * H * T)
#define HEAD_BYTES      (2 * VOCAB * H + 3 * 4 * T * VOCAB)
#define EMBED_BYTES     (2 * 2 * T * H)

enum { STREAM_EP = 1, STREAM_DP, STREAM_WORLD };
enum { GROUP_EP, GROUP_DP, GROUP_WORLD };
enum { EARLY, MIDDLE, LATE, WHERES };

/* Captured layers are 0, 2 and 5 of 6; gradients of exchanges were captured in layer 2 alone. */
static const struct sample_names dispatch[WHERES] = {
    [EARLY] = {{"alltoall.dispatch.layer0.step299"}},
    [MIDDLE] = {{"alltoall.dispatch.layer2.step150", "alltoall.dispatch.layer2.step299"}},
    [LATE] = {{"alltoall.dispatch.layer5.step299"}},
};
static const struct sample_names combine[WHERES] = {
    [EARLY] = {{"alltoall.combine.layer0.step299"}},
    [MIDDLE] = {{"alltoall.combine.layer2.step299"}},
    [LATE] = {{"alltoall.combine.layer5.step299"}},
};
static const struct sample_names combine_grad = {{"alltoall.combine_grad.layer2.step299"}};
static const struct sample_names dispatch_grad = {{"alltoall.dispatch_grad.layer2.step299"}};
static const struct sample_names dense_grad[WHERES] = {
    [EARLY] = {{"reducescatter.grad.layer0.attn.step299"}},
    [MIDDLE] = {{"reducescatter.grad.layer2.attn.step299",
                 "reducescatter.grad.layer2.router.step299"}},
    [LATE] = {{"reducescatter.grad.layer2.attn.step299"}},
};
static const struct sample_names dense_param[WHERES] = {
    [EARLY] = {{"allgather.param.layer0.attn.step299"}},
    [MIDDLE] = {{"allgather.param.layer2.attn.step299", "allgather.param.layer2.router.step299"}},
    [LATE] = {{"allgather.param.layer2.attn.step299"}},
};
static const struct sample_names root_grad = {
    {"reducescatter.grad.embed.step299", "reducescatter.grad.norms.step299"}};
static const struct sample_names root_param = {
    {"allgather.param.embed.step299", "allgather.param.norms.step299"}};
static const struct sample_names none = {{NULL}};

static int position(int layer)
{
    return layer < L / 4 ? EARLY : layer < L * 3 / 4 ? MIDDLE : LATE;
}

static uint64_t token_exchange(struct sample_out *out, const char *label, uint64_t after,
                               uint64_t also, struct sample_names names)
{
    struct zipccl_event call = {.stream = STREAM_EP,
                                .label = label,
                                .op = ZIPCCL_ALLTOALL,
                                .dtype = ZIPCCL_BFLOAT16,
                                .group = GROUP_EP,
                                .count = SAMPLE_TOKENS * TOPK * (uint64_t)H / SAMPLE_RANKS};

    return sample_collective(out, &call, (struct sample_deps){{after, also}}, names);
}

static uint64_t dense(struct sample_out *out, const char *label, enum zipccl_op op, double nparams,
                      uint64_t after, struct sample_names names)
{
    struct zipccl_event call = {.stream = STREAM_DP,
                                .label = label,
                                .op = op,
                                .dtype = ZIPCCL_BFLOAT16,
                                .redop = op == ZIPCCL_REDUCE_SCATTER ? ZIPCCL_AVG : ZIPCCL_SUM,
                                .group = GROUP_DP,
                                .count = ((uint64_t)nparams + SAMPLE_RANKS - 1) / SAMPLE_RANKS};

    return sample_collective(out, &call, (struct sample_deps){{after}}, names);
}

static uint64_t reduce_fp32(struct sample_out *out, const char *label, uint32_t group,
                            uint32_t stream, uint64_t count, uint64_t after)
{
    struct zipccl_event call = {.stream = stream,
                                .label = label,
                                .op = ZIPCCL_ALL_REDUCE,
                                .dtype = ZIPCCL_FLOAT32,
                                .redop = group == GROUP_DP ? ZIPCCL_AVG : ZIPCCL_SUM,
                                .group = group,
                                .count = count};

    return sample_collective(out, &call, (struct sample_deps){{after}}, none);
}

/* Returns the id of the balancing loss's sum. */
static uint64_t forward_layer(struct sample_out *out, int layer)
{
    struct zipccl_event counts = {.stream = STREAM_EP,
                                  .label = "tokens per expert",
                                  .op = ZIPCCL_ALL_GATHER,
                                  .dtype = ZIPCCL_INT64,
                                  .group = GROUP_EP,
                                  .count = EXPERTS};
    uint64_t router, known, id, balance;

    sample_compute(out, "attention forward", ATTN_FLOPS, ATTN_BYTES, (struct sample_deps){{0}});
    router = sample_compute(out, "router forward", ROUTER_FLOPS, ROUTER_BYTES,
                            (struct sample_deps){{0}});
    known = sample_collective(out, &counts, (struct sample_deps){{router}}, none);
    balance = reduce_fp32(out, "router probabilities", GROUP_DP, STREAM_DP, EXPERTS, router);
    id = token_exchange(out, "dispatch", router, known, dispatch[position(layer)]);
    id = sample_compute(out, "expert forward", EXPERT_FLOPS, EXPERT_BYTES,
                        (struct sample_deps){{id}});
    id = token_exchange(out, "combine", id, 0, combine[position(layer)]);
    sample_compute(out, "un-permute forward", 2 * T * H * TOPK, UNPERMUTE_BYTES,
                   (struct sample_deps){{id}});
    return balance;
}

static uint64_t backward_layer(struct sample_out *out, int layer)
{
    uint64_t id = sample_compute(out, "un-permute backward", 2 * 2 * T * H * TOPK,
                                 2 * UNPERMUTE_BYTES, (struct sample_deps){{0}});

    id = token_exchange(out, "combine, gradients", id, 0, combine_grad);
    id = sample_compute(out, "expert backward", 2 * EXPERT_FLOPS,
                        3 * 2 * P_EXPERT + 2 * (EXPERT_BYTES - 2 * P_EXPERT),
                        (struct sample_deps){{id}});
    id = token_exchange(out, "dispatch, gradients", id, 0, dispatch_grad);
    sample_compute(out, "router backward", 2 * ROUTER_FLOPS, 2 * ROUTER_BYTES,
                   (struct sample_deps){{id}});
    id = sample_compute(out, "attention backward", 2 * ATTN_FLOPS,
                        3 * 2 * P_ATTN + 2 * (ATTN_BYTES - 2 * P_ATTN), (struct sample_deps){{0}});
    return dense(out, "layer gradients", ZIPCCL_REDUCE_SCATTER, P_DENSE, id,
                 dense_grad[position(layer)]);
}

static void finish(struct sample_out *out, uint64_t loss)
{
    double own = (L * P_DENSE + P_ROOT) / SAMPLE_RANKS + L * P_EXPERT;
    uint64_t id = sample_compute(out, "embedding backward", 0, 2 * EMBED_BYTES,
                                 (struct sample_deps){{0}}),
             step;

    id = dense(out, "root gradients", ZIPCCL_REDUCE_SCATTER, P_ROOT, id, root_grad);
    id = sample_compute(out, "gradient norm", 2 * own, 2 * own, (struct sample_deps){{id}});
    id = reduce_fp32(out, "gradient norm", GROUP_WORLD, STREAM_WORLD, 1, id);
    /* Gradients are bf16 here, and 2 bytes go into the new bf16 parameter: 28 again. */
    step = sample_compute(out, "optimizer step", SAMPLE_ADAM_FLOPS * own, SAMPLE_ADAM_BYTES * own,
                          (struct sample_deps){{id}});
    dense(out, "root parameters", ZIPCCL_ALL_GATHER, P_ROOT, step, root_param);
    for (int layer = 0; layer < L; layer++)
        dense(out, "layer parameters", ZIPCCL_ALL_GATHER, P_DENSE, step,
              dense_param[position(layer)]);
    reduce_fp32(out, "loss", GROUP_WORLD, STREAM_WORLD, 1, loss);
}

static void write_step(struct sample_out *out)
{
    uint64_t balance = 0, loss;

    sample_compute(out, "embedding forward", 0, EMBED_BYTES, (struct sample_deps){{0}});
    for (int layer = 0; layer < L; layer++)
        balance = forward_layer(out, layer);
    loss = sample_compute(out, "head and loss forward", HEAD_FLOPS, HEAD_BYTES,
                          (struct sample_deps){{balance}});
    sample_compute(out, "head and loss backward", 2 * HEAD_FLOPS, 2 * HEAD_BYTES,
                   (struct sample_deps){{0}});
    for (int layer = L - 1; layer >= 0; layer--)
        backward_layer(out, layer);
    finish(out, loss);
}

zipccl_status sample_moe(const char *path, struct zipccl_error *error)
{
    uint32_t ranks[SAMPLE_RANKS];
    struct zipccl_trace_group groups[] = {{"ep", 1, SAMPLE_RANKS, ranks},
                                          {"dp", 1, SAMPLE_RANKS, ranks},
                                          {"world", 1, SAMPLE_RANKS, ranks}};
    char *streams[] = {(char *)"compute", (char *)"nccl:ep", (char *)"nccl:dp",
                       (char *)"nccl:world"};
    struct zipccl_trace_header header = {
        .version = 1,
        .name = "moe64",
        .model = "Mixtral's width, 16 layers, 64 experts top-2, EP 64, ZeRO-1 over 64, bf16, "
                 "4096 tokens/GPU",
        .provenance = "generated, with Mixtral's published width; nothing measured",
        .generator = SAMPLE_GENERATOR,
        .nranks = SAMPLE_RANKS,
        .ranks_per_node = SAMPLE_PER_NODE,
        .recorded_step_s = -1,
        .tokens_per_step = SAMPLE_TOKENS,
        .samples = "../tensors/moe.safetensors",
        .nstreams = 4,
        .streams = streams,
        .ngroups = 3,
        .groups = groups};
    struct sample_out out = {.error = error};
    zipccl_status status;

    for (uint32_t i = 0; i < SAMPLE_RANKS; i++)
        ranks[i] = i;
    ZIPCCL_TRY(zipccl_trace_writer_open(path, &header, &out.writer, error));
    write_step(&out);
    status = zipccl_trace_writer_finish(out.writer, out.status == ZIPCCL_OK, error);
    return out.status != ZIPCCL_OK ? out.status : status;
}
