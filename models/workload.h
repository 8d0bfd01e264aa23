/*
 * workload.h - training steps made up from a model's description and a way to run it in parallel
 *
 * A model (YAML, or a config.json of Hugging Face), a parallelism and options become a trace: who
 * computes what, and which collectives of which size run in which order.  Nothing is measured
 * here; docs/generating.md has every formula with its source.  It simulates nothing: the estimates
 * are sums and bounds.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_MODELS_WORKLOAD_H
#define ZIPCCL_MODELS_WORKLOAD_H

#include "core/dtype.h"
#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* A decoder-only transformer. */
struct zipccl_workload_model {
    char name[64], description[160], source[256];
    uint32_t layers, hidden, ffn, heads, kv_heads, head_dim, vocab;
    uint32_t positions;       /* learned position embeddings; 0: none */
    bool gated, tied;         /* MLP of three matrices; head and embedding are one */
    bool layernorm;           /* norms have a bias (2h instead of h) */
    bool bias, qkv_bias;      /* all linears of a block have biases; only q, k and v have */
    bool qk_norm;             /* norms of head_dim on q and k */
    uint32_t experts, topk;   /* 0: dense */
    uint32_t expert_ffn;      /* of one routed expert */
    uint32_t shared_ffn;      /* of all shared experts together; 0: none */
    uint32_t node_limit;      /* nodes that the experts of a token are on at most; 0: any */
    uint32_t dense_layers;    /* that many first layers have no experts */
    bool router_bias;         /* one value an expert, not trained by gradients */
    uint32_t q_lora, kv_lora; /* MLA where kv_lora > 0; q_lora 0: q is not compressed */
    uint32_t rope_dim, nope_dim, v_dim; /* MLA: head width of q and k (two parts), of v */
};

/* Parameters; all of the whole model. */
struct zipccl_workload_counts {
    uint64_t attention;      /* of a block, norms on q, k and latents included */
    uint64_t mlp;            /* of a dense block */
    uint64_t expert, shared; /* one routed expert; the shared ones of a block */
    uint64_t router;         /* of a block, bias included */
    uint64_t norms;          /* of a block, the two outer ones */
    uint64_t block, moe_block;
    uint64_t embedding, head, final_norm; /* positions belong to the embedding; head 0 if tied */
    uint64_t root;                        /* embedding, head and last norm */
    uint64_t total, active;               /* active: the top-k experts alone */
};

void zipccl_workload_count(const struct zipccl_workload_model *model,
                           struct zipccl_workload_counts *out);

/* True if block 'layer' has experts. */
bool zipccl_workload_is_moe(const struct zipccl_workload_model *model, uint32_t layer);

/*
 * Read a model: a name (looked for in 'search_dir'/NAME.yaml), a YAML file, or a config.json of
 * Hugging Face (ends in .json).
 *
 * ZIPCCL_ERR_IO / ZIPCCL_ERR_INPUT with file, key, what was found and what was expected; for a
 * name that is not there, the names that are.
 */
zipccl_status zipccl_workload_model_open(const char *name_or_path, const char *search_dir,
                                         struct zipccl_workload_model *out,
                                         struct zipccl_error *error);

/* See that a model's numbers fit together; 'from' names it in the error. */
zipccl_status zipccl_workload_model_check(const struct zipccl_workload_model *model,
                                          const char *from, struct zipccl_error *error);

enum zipccl_workload_sharding {
    ZIPCCL_SHARD_DDP,       /* gradients all-reduced once a step */
    ZIPCCL_SHARD_ZERO1,     /* reduced and scattered once a step, parameters gathered at its end */
    ZIPCCL_SHARD_ZERO2,     /* the same, reduced in every micro-batch */
    ZIPCCL_SHARD_FSDP,      /* ZeRO-3: a block is gathered when needed, and again backward */
    ZIPCCL_SHARD_NORESHARD, /* FSDP that keeps blocks from forward to backward */
    ZIPCCL_SHARD_NUM
};

enum zipccl_workload_recompute {
    ZIPCCL_RECOMPUTE_NONE,
    ZIPCCL_RECOMPUTE_SELECTIVE, /* the core of attention */
    ZIPCCL_RECOMPUTE_FULL,      /* whole blocks, their collectives too */
    ZIPCCL_RECOMPUTE_NUM
};

enum zipccl_workload_kind {
    ZIPCCL_WORKLOAD_TRAIN,
    ZIPCCL_WORKLOAD_SYNC_BROADCAST, /* all parameters, from the first rank of each group */
    ZIPCCL_WORKLOAD_SYNC_GATHER     /* all parameters, from shards */
};

/* What a compute event does; a table of measured times has one entry each. */
enum zipccl_workload_part {
    ZIPCCL_LAYER_EMBEDDING,
    ZIPCCL_LAYER_ATTENTION,
    ZIPCCL_LAYER_MLP,
    ZIPCCL_LAYER_ROUTER,
    ZIPCCL_LAYER_EXPERTS,
    ZIPCCL_LAYER_SHARED,
    ZIPCCL_LAYER_HEAD,
    ZIPCCL_LAYER_OPTIMIZER,
    ZIPCCL_LAYER_NUM
};

struct zipccl_workload_times {
    double forward_s[ZIPCCL_LAYER_NUM], backward_s[ZIPCCL_LAYER_NUM]; /* < 0: not in the table */
};

extern const char *const zipccl_workload_part_names[ZIPCCL_LAYER_NUM];

struct zipccl_workload {
    struct zipccl_workload_model model;
    enum zipccl_workload_kind kind;
    uint32_t tp, pp, dp, cp, ep;
    uint32_t etp;                            /* ranks that split each expert */
    uint32_t vpp;                            /* model chunks of a stage; 1: not interleaved */
    bool sp;                                 /* sequence parallel, over the ranks of tp */
    uint64_t seq, micro_batch, global_batch; /* tokens; sequences; sequences of a step */
    enum zipccl_workload_sharding sharding;
    uint32_t
        shard; /* FSDP over so many of the dp x cp ranks, copies over the rest (HSDP); 0: all */
    enum zipccl_workload_recompute recompute;
    bool plain_attention; /* scores are kept, as without a fused kernel */
    bool fp32_reduce;     /* gradients travel in fp32 */
    bool fp8_dispatch;    /* tokens to experts in fp8, with a scale for 128 values */
    bool node_dispatch;   /* a token is sent once to each node that has experts of it */
    double imbalance;     /* tokens of the busiest rank over the mean; 1: balanced */
    uint64_t bucket;      /* elements of a gradient bucket; 0: as the framework does by default */
    bool overlap_grad, overlap_param, overlap_p2p, overlap_shared, overlap_tp, overlap_a2a;
    bool unroll;                        /* write loops of layers and micro-batches out */
    double peak_flops, mfu;             /* > 0: durations are written instead of flops */
    struct zipccl_workload_times times; /* take precedence over both */
    uint32_t ranks_per_node;            /* 0: unknown */
};

/* Everything 1, off or unknown; times absent, imbalance 1, sharding ZeRO-1. */
void zipccl_workload_init(struct zipccl_workload *workload);

uint64_t zipccl_workload_nranks(const struct zipccl_workload *workload);
uint64_t zipccl_workload_micro_batches(const struct zipccl_workload *workload);

/* Nodes that a token goes to at most, with 'node_dispatch'. */
uint32_t zipccl_workload_nodes_of_token(const struct zipccl_workload *workload);

/* See that model, parallelism and batch fit together: ZIPCCL_ERR_INPUT with the reason. */
zipccl_status zipccl_workload_check(const struct zipccl_workload *workload,
                                    struct zipccl_error *error);

/* Read a table of measured times: YAML, "attention_forward: 1.2ms". */
zipccl_status zipccl_workload_times_open(const char *path, struct zipccl_workload_times *out,
                                         struct zipccl_error *error);

/* Memory of the fullest GPU, bytes, and the work of a step. */
struct zipccl_workload_estimate {
    uint32_t stage;              /* pipeline stage that needs most */
    uint64_t parameters_on_rank; /* of that stage, after tp, pp, ep; before sharding over dp */
    double parameters, gradients, optimizer, activations, gathered, total;
    double in_flight;   /* micro-batches whose activations that stage keeps */
    double model_flops; /* of all ranks in a step, without recomputation */
    double rank_flops;  /* of the busiest rank, with it */
    double bubble;      /* idle part of the pipeline over the busy part */
    double tokens;      /* of a step */
};

void zipccl_workload_estimate(const struct zipccl_workload *workload,
                              struct zipccl_workload_estimate *out);

/* What was written. */
struct zipccl_workload_summary {
    uint64_t lines, ncompute, ncollective; /* the latter two with loops written out */
    double bytes_node,
        bytes_net;    /* wire bytes of the busiest rank of a step, by the slowest link */
    uint64_t unbound; /* kinds of calls without a class in the samples file */
};

/*
 * Write the trace of one step.
 *
 * path          .jsonl or .jsonl.gz, appears whole or not at all
 * samples       the .safetensors whose classes stand for payload; NULL: none
 * samples_name  how the trace names that file
 *
 * ZIPCCL_ERR_INPUT as zipccl_workload_check(), or as the writer of traces.
 */
zipccl_status zipccl_workload_write(const struct zipccl_workload *workload, const char *path,
                                    const char *samples, const char *samples_name,
                                    struct zipccl_workload_summary *out,
                                    struct zipccl_error *error);

#endif
