/*
 * workload_out.h - what the writers of a made-up step share: ids, ranks, groups, streams, sums
 *
 * Private to models/workload_*.c.  A stage's compute events stand in its compute stream in program
 * order; 'deps' are what the next of them waits for besides.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_MODELS_WORKLOAD_OUT_H
#define ZIPCCL_MODELS_WORKLOAD_OUT_H

#include "models/workload.h"
#include "traces/trace.h"

enum workload_group {
    IN_WORLD,
    IN_TP,
    IN_CP,
    IN_DP,
    IN_REPLICAS,
    IN_EP,
    IN_EP_NODE, /* members of an EP group in one node, and those at one place of all nodes */
    IN_EP_RAIL,
    IN_ETP,
    IN_ETP_EP, /* both: all ranks that hold the experts once */
    IN_EDP,
    IN_PP,
    IN_EMBED,
    NUM_GROUPS
};

enum workload_stream {
    ON_COMPUTE,
    ON_TP,
    ON_CP,
    ON_EP,
    ON_EP_RAIL,
    ON_ETP,
    ON_DP,
    ON_REPLICAS,
    ON_EDP,
    ON_PP_FORWARD, /* three: even and odd boundaries, and from the last stage to the first */
    ON_PP_ODD = ON_PP_FORWARD + 3, /* two: of odd micro-batches, under overlap_a2a */
    ON_PP_BACKWARD = ON_PP_ODD + 2,
    ON_WORLD = ON_PP_BACKWARD + 3,
    NUM_STREAMS
};

/* What travels, for the choice of captured tensors. */
enum workload_use {
    OF_NOTHING, /* scalars and counts */
    OF_PARAM,
    OF_ROOT_PARAM, /* embedding and head */
    OF_EMBED_PARAM,
    OF_HEAD_PARAM,
    OF_EXPERT_PARAM,
    OF_GRAD,
    OF_ROOT_GRAD,
    OF_EMBED_GRAD,
    OF_HEAD_GRAD,
    OF_EXPERT_GRAD,
    OF_HIDDEN, /* activations that are summed over tp */
    OF_NORMED, /* activations that sequence parallelism gathers */
    OF_HIDDEN_GRAD,
    OF_STAGE, /* activations between stages */
    OF_STAGE_GRAD,
    OF_KV, /* keys and values that travel round the ring of cp */
    OF_DISPATCH,
    OF_COMBINE,
    OF_DISPATCH_GRAD,
    OF_COMBINE_GRAD,
    NUM_USES
};

enum { MAX_DEPS = 1100, NUM_PLACES = 3, MAX_STAGES = 1024, MAX_NAMES = 3 };

/* Where a layer stands in the model: first quarter, middle, last quarter. */
enum workload_place { EARLY, MIDDLE, LATE };

struct workload_sums {
    double node, net; /* wire bytes of one rank */
};

struct workload_out {
    const struct zipccl_workload *w;
    struct zipccl_workload_counts n;
    struct zipccl_trace_writer *writer;
    struct zipccl_error *error;
    zipccl_status status;
    struct zipccl_trace_header header;
    struct zipccl_trace_group groups[NUM_GROUPS];
    struct zipccl_trace_splits splits[2]; /* dispatch, combine; under an imbalance */
    char *streams[NUM_STREAMS];
    uint32_t group_index[NUM_GROUPS], size[NUM_GROUPS]; /* size 1: not in the header */
    bool crosses[NUM_GROUPS];                           /* reaches over nodes */
    uint32_t stream_index[NUM_STREAMS];
    uint32_t *ranks;               /* [nranks] 0, 1, 2, ... */
    uint32_t *members;             /* [nranks] scratch */
    uint32_t stage, per_stage;     /* whose events are written; ranks of a stage */
    uint64_t tokens, shard_tokens; /* of a rank and micro-batch; of those sp leaves to it */
    uint64_t id, times;            /* last id; how often the lines written now run */
    uint64_t ndeps, deps[MAX_DEPS];
    uint64_t last[MAX_STAGES];           /* last compute event of each stage */
    uint64_t grads[MAX_STAGES][2];       /* last reduction over DP and EDP; 0: none */
    enum workload_place place;           /* of the layer being written */
    double part_flops[ZIPCCL_LAYER_NUM]; /* forward, of one layer, micro-batch and rank */
    const char *const *samples[NUM_USES][NUM_PLACES]; /* NULL: none fits; else MAX_NAMES texts */
    bool unbound[NUM_USES];                           /* used, and without a sample */
    struct workload_sums sums[MAX_STAGES];
    struct zipccl_workload_summary summary;
};

struct workload_call {
    const char *label;
    enum zipccl_op op;
    enum workload_group group;
    enum workload_stream stream;
    enum zipccl_dtype dtype;
    uint64_t count;
    enum workload_use use;
    uint64_t repeat;               /* 0: once */
    int32_t splits;                /* 1 + index; 0: none */
    struct zipccl_trace_pair pair; /* sendrecv of one pair; src == dst: a ring over the group */
    uint64_t after;                /* 0: the stage's last compute event */
    uint64_t also;                 /* 0: nothing else */
    bool free;                     /* after nothing */
    bool all_stages; /* of the whole world, after the last compute event of each stage */
};

/* Sizes of groups and loads; NULL if memory is out. */
struct workload_out *workload_out_create(const struct zipccl_workload *w,
                                         struct zipccl_error *error);
/* Header, groups, streams and classes. */
zipccl_status workload_out_open(struct workload_out *o, const char *path, const char *samples,
                                const char *samples_name);
/* Keep the file if 'status' is good; the status of all. */
zipccl_status workload_out_destroy(struct workload_out *o, zipccl_status status,
                                   struct zipccl_workload_summary *out);
/* Which captured tensors stand for which use; workload_samples.c. */
zipccl_status workload_bind(struct workload_out *o, const char *samples);

/* Each returns the id of what it wrote; failures are kept in 'o->status'. */
uint64_t workload_compute(struct workload_out *o, enum zipccl_workload_part part, bool backward,
                          const char *label, double flops, double bytes);
/* The same on ranks of which member 'member' of each EP group alone takes part. */
uint64_t workload_compute_member(struct workload_out *o, enum zipccl_workload_part part,
                                 bool backward, const char *label, double flops, double bytes,
                                 uint32_t member);
/* No work: ends when what the stream held before has ended. */
uint64_t workload_marker(struct workload_out *o, enum workload_stream stream, const char *label);
uint64_t workload_call(struct workload_out *o, const struct workload_call *call);
void workload_wait(struct workload_out *o, uint64_t id); /* by the next compute event */
void workload_loop(struct workload_out *o, uint64_t repeat, const char *label);
void workload_end(struct workload_out *o, uint64_t repeat);

/* A block's passes, and those of embedding and head; workload_block.c. */
void workload_block_forward(struct workload_out *o, bool moe);
void workload_block_backward(struct workload_out *o, bool moe);
void workload_embedding_forward(struct workload_out *o);
void workload_embedding_backward(struct workload_out *o);
void workload_head_forward(struct workload_out *o);
void workload_head_backward(struct workload_out *o);
void workload_part_flops(struct workload_out *o);

/*
 * A layer with experts, forward or backward, in three parts, each up to the exchange that the next
 * one waits for; 'on_the_way' keeps its ids.  workload_experts.c has the experts, and
 * workload_block.c puts attention to the part that it belongs to.
 */
enum workload_phase { TOKENS_OUT, TOKENS_BACK, TOKENS_HOME, NUM_PHASES };

struct workload_waits {
    uint64_t ids[3];
};

void workload_experts_forward(struct workload_out *o, enum workload_phase phase,
                              struct workload_waits *on_the_way);
void workload_experts_backward(struct workload_out *o, enum workload_phase phase,
                               struct workload_waits *on_the_way);
void workload_moe_forward(struct workload_out *o, enum workload_phase phase,
                          struct workload_waits *on_the_way);
void workload_moe_backward(struct workload_out *o, enum workload_phase phase,
                           struct workload_waits *on_the_way);
/* Tokens that each member of an EP group sends to each; [ep] counts of one sender. */
void workload_token_split(const struct zipccl_workload *w, uint64_t tokens, uint64_t *counts);
/* An MLP between the collectives of tp; 'outer': with norm and residual. */
void workload_mlp_forward(struct workload_out *o, bool outer);
void workload_mlp_backward(struct workload_out *o, bool outer);

/* Which layers stand where, and parameters on a rank; workload_layout.c. */
struct workload_range {
    uint32_t first, n;
};
struct workload_range workload_chunk(const struct zipccl_workload *w, uint32_t virtual_stage);
enum workload_place workload_place_of(const struct zipccl_workload *w, uint32_t layer);
/* Layers from 'first' on, at most 'n', that are alike in kind and place. */
uint32_t workload_run(const struct zipccl_workload *w, uint32_t first, uint32_t n);
uint64_t workload_dense_params(const struct zipccl_workload *w, bool moe);  /* not experts */
uint64_t workload_expert_params(const struct zipccl_workload *w, bool moe); /* of a rank */
uint64_t workload_root_params(const struct zipccl_workload *w, uint32_t stage);
/* What tp divides of a linear layer, and what all its ranks hold. */
uint64_t workload_tp_share(const struct zipccl_workload *w, uint64_t linear, uint64_t whole);
uint64_t
workload_shards(const struct zipccl_workload *w); /* ranks that hold one copy, of dp x cp */
double workload_activation_bytes(const struct zipccl_workload *w, bool moe); /* of a layer */

/* Gradients and parameters over data-parallel ranks; workload_reduce.c. */
void workload_reduce_layers(struct workload_out *o, uint32_t layers, bool moe, uint64_t repeat);
void workload_reduce_root(struct workload_out *o);
uint32_t workload_layers_a_bucket(const struct zipccl_workload *w, bool moe, uint32_t run);
/* 'call' gives label, 'after' and 'free'; 'ids' get those of DP and of EDP, 0 where nothing is sent. */
void workload_gather_layers(struct workload_out *o, uint32_t layers, bool moe, uint64_t repeat,
                            const struct workload_call *call, uint64_t ids[2]);
uint64_t workload_gather_root(struct workload_out *o, const struct workload_call *call);
/* What 'stage' has of embedding and head. */
enum workload_use workload_root_use(const struct workload_out *o, bool grad);
void workload_finish(struct workload_out *o);
/* Parameters whose optimizer state a rank of 'stage' holds. */
uint64_t workload_owned(const struct zipccl_workload *w, uint32_t stage);

/* Steps. */
void workload_write_pipeline(struct workload_out *o);
void workload_write_fsdp(struct workload_out *o);
void workload_write_sync(struct workload_out *o);

#endif
