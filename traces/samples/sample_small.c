/*
 * sample_small.c - one step of a small mixture of experts on 4 ranks, to be run for real
 *
 * 2 layers, 2 nodes of 2 ranks, tokens of 512 KiB to each rank in each exchange, buckets of 4 MiB:
 * every operation that the larger traces have, and the others, in sizes that two machines with a
 * 1 Gb/s link, or threads of one, move in a fraction of a second.  Durations of compute are chosen, about
 * as long as the exchanges over such a link, so that there is something to hide and something exposed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/samples/sample.h"

#define RANKS    4
#define PER_NODE 2
#define TOKENS_N ((uint64_t)1 << 18) /* elements to each rank in an exchange */
#define BUCKET_N ((uint64_t)1 << 19) /* elements of a rank's share of a layer */
#define HIDDEN_N ((uint64_t)1 << 18) /* elements to the next stage */

enum { STREAM_EP = 1, STREAM_DP, STREAM_PP };
enum { GROUP_WORLD, GROUP_NODE, GROUP_PAIR };

static const struct sample_names none = {{NULL}};

static uint64_t exchange(struct sample_out *out, const char *label, uint64_t after,
                         const char *tensor)
{
    struct zipccl_event call = {.stream = STREAM_EP,
                                .label = label,
                                .op = ZIPCCL_ALLTOALL,
                                .dtype = ZIPCCL_BFLOAT16,
                                .group = GROUP_WORLD,
                                .count = TOKENS_N};

    return sample_collective(out, &call, (struct sample_deps){{after}},
                             (struct sample_names){{tensor}});
}

static uint64_t bucket(struct sample_out *out, const char *label, enum zipccl_op op, uint64_t after,
                       const char *tensor)
{
    struct zipccl_event call = {.stream = STREAM_DP,
                                .label = label,
                                .op = op,
                                .dtype = ZIPCCL_BFLOAT16,
                                .redop = op == ZIPCCL_REDUCE_SCATTER ? ZIPCCL_AVG : ZIPCCL_SUM,
                                .group = GROUP_WORLD,
                                .count = BUCKET_N};

    return sample_collective(out, &call, (struct sample_deps){{after}},
                             (struct sample_names){{tensor}});
}

static void forward_layer(struct sample_out *out, int layer)
{
    static const char *const dispatch[] = {"alltoall.dispatch.layer0.step299",
                                           "alltoall.dispatch.layer5.step299"};
    static const char *const combine[] = {"alltoall.combine.layer0.step299",
                                          "alltoall.combine.layer5.step299"};
    struct zipccl_event counts = {.stream = STREAM_EP,
                                  .label = "tokens per expert",
                                  .op = ZIPCCL_ALL_GATHER,
                                  .dtype = ZIPCCL_INT64,
                                  .group = GROUP_WORLD,
                                  .count = RANKS};
    uint64_t id = sample_duration(out, "attention and router", 4e-3, (struct sample_deps){{0}});

    sample_collective(out, &counts, (struct sample_deps){{id}}, none);
    id = exchange(out, "dispatch", id, dispatch[layer]);
    id = sample_duration(out, "expert", 6e-3, (struct sample_deps){{id}});
    id = exchange(out, "combine", id, combine[layer]);
    sample_duration(out, "un-permute", 1e-3, (struct sample_deps){{id}});
}

static void backward_layer(struct sample_out *out)
{
    uint64_t id = sample_duration(out, "un-permute backward", 2e-3, (struct sample_deps){{0}});

    id = exchange(out, "combine, gradients", id, "alltoall.combine_grad.layer2.step299");
    id = sample_duration(out, "expert backward", 12e-3, (struct sample_deps){{id}});
    id = exchange(out, "dispatch, gradients", id, "alltoall.dispatch_grad.layer2.step299");
    id = sample_duration(out, "attention backward", 8e-3, (struct sample_deps){{id}});
    bucket(out, "layer gradients", ZIPCCL_REDUCE_SCATTER, id,
           "reducescatter.grad.layer2.attn.step299");
}

/* What the other traces lack: a pair's, a node's, uneven and rooted calls. */
static void begin_step(struct sample_out *out)
{
    struct zipccl_trace_pair pairs[] = {{0, 1}};
    struct zipccl_event hidden = {.stream = STREAM_PP,
                                  .label = "hidden state to the next stage",
                                  .op = ZIPCCL_SENDRECV,
                                  .dtype = ZIPCCL_BFLOAT16,
                                  .group = GROUP_PAIR,
                                  .count = HIDDEN_N,
                                  .npairs = 1,
                                  .pairs = pairs};
    struct zipccl_event seed = {.stream = STREAM_DP,
                                .label = "root's parameters",
                                .op = ZIPCCL_BROADCAST,
                                .dtype = ZIPCCL_BFLOAT16,
                                .group = GROUP_WORLD,
                                .count = HIDDEN_N,
                                .root = 1};
    uint64_t id = sample_duration(out, "embedding", 2e-3, (struct sample_deps){{0}});

    sample_collective(out, &hidden, (struct sample_deps){{id}},
                      (struct sample_names){{"alltoall.combine.layer2.step299"}});
    sample_collective(out, &seed, (struct sample_deps){{0}},
                      (struct sample_names){{"allgather.param.embed.step299"}});
}

static void finish(struct sample_out *out)
{
    struct zipccl_event shared = {.stream = STREAM_PP,
                                  .label = "shared gradients",
                                  .op = ZIPCCL_ALL_REDUCE,
                                  .dtype = ZIPCCL_BFLOAT16,
                                  .redop = ZIPCCL_SUM,
                                  .group = GROUP_NODE,
                                  .count = HIDDEN_N};
    struct zipccl_event norm = {.stream = STREAM_PP,
                                .label = "gradient norm",
                                .op = ZIPCCL_ALL_REDUCE,
                                .dtype = ZIPCCL_FLOAT32,
                                .redop = ZIPCCL_SUM,
                                .group = GROUP_WORLD,
                                .count = 1};
    uint64_t id, step;

    id = sample_collective(out, &shared, (struct sample_deps){{0}},
                           (struct sample_names){{"reducescatter.grad.embed.step299"}});
    id = sample_collective(out, &norm, (struct sample_deps){{id}}, none);
    step = sample_duration(out, "optimizer step", 4e-3, (struct sample_deps){{id}});
    bucket(out, "layer parameters", ZIPCCL_ALL_GATHER, step, "allgather.param.layer0.attn.step299");
    bucket(out, "layer parameters", ZIPCCL_ALL_GATHER, step, "allgather.param.layer2.attn.step299");
}

zipccl_status sample_small(const char *path, struct zipccl_error *error)
{
    /* The world; its nodes; rank i of one node with rank i of the other. */
    uint32_t world[] = {0, 1, 2, 3}, nodes[] = {0, 1, 2, 3}, pairs[] = {0, 2, 1, 3};
    struct zipccl_trace_group groups[] = {
        {"world", 1, RANKS, world}, {"node", 2, PER_NODE, nodes}, {"pair", 2, 2, pairs}};
    char *streams[] = {(char *)"compute", (char *)"nccl:ep", (char *)"nccl:dp", (char *)"nccl:pp"};
    struct zipccl_trace_header header = {
        .version = 1,
        .name = "moe4",
        .model = "a small mixture of experts, 2 layers, 4 experts, EP 4, ZeRO-1 over 4, bf16",
        .provenance = "generated, to be run for real; durations are chosen",
        .generator = SAMPLE_GENERATOR,
        .nranks = RANKS,
        .ranks_per_node = PER_NODE,
        .recorded_step_s = -1,
        .samples = "../tensors/moe.safetensors",
        .nstreams = 4,
        .streams = streams,
        .ngroups = 3,
        .groups = groups};
    struct sample_out out = {.error = error};
    zipccl_status status;

    ZIPCCL_TRY(zipccl_trace_writer_open(path, &header, &out.writer, error));
    begin_step(&out);
    for (int layer = 0; layer < 2; layer++)
        forward_layer(&out, layer);
    for (int layer = 0; layer < 2; layer++)
        backward_layer(&out);
    finish(&out);
    status = zipccl_trace_writer_finish(out.writer, out.status == ZIPCCL_OK, error);
    return out.status != ZIPCCL_OK ? out.status : status;
}
