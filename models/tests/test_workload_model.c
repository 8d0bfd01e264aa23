/*
 * test_workload_model.c - parameters of published models, readers of models, and what is refused
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/tests/workload_use.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Totals as published, or as summed by hand from the published shapes; 0: not compared. */
static const struct {
    const char *name;
    uint64_t block, moe_block, root, total, active;
} models[] = {
    {"llama2-7b", 202383360, 0, 262148096, 6738415616, 6738415616},
    {"llama2-13b", 0, 0, 0, 13015864320, 13015864320},
    {"llama2-70b", 855654400, 0, 524296192, 68976648192, 68976648192},
    {"llama3-8b", 218112000, 0, 1050677248, 8030261248, 8030261248},
    {"llama3-70b", 855654400, 0, 2101354496, 70553706496, 70553706496},
    {"llama3-405b", 0, 0, 0, 405853388800, 405853388800},
    {"gpt3-175b", 1812099072, 0, 51200ull * 12288 + 2048ull * 12288 + 2 * 12288, 174615846912,
     174615846912},
    {"mixtral-8x7b", 0, 1451270144, 262148096, 46702792704, 12879925248},
    {"deepseek-v3", 583483392, 11507286272, 2 * 129280ull * 7168 + 7168, 671026419200, 37552297472},
    {"qwen3-30b-a3b", 0, 623120640, 622331904, 30532122624, 3353032704},
    {"qwen3-235b-a22b", 0, 2487755008, 0, 235093634560, 22190763520},
    {"qwen3-0.6b", 0, 0, 0, 596049920, 596049920},
    {"qwen3-4b", 0, 0, 0, 4022468096, 4022468096},
    {"qwen3-8b", 192946432, 0, 0, 8190735360, 8190735360},
    {"qwen3-14b", 0, 0, 0, 14768307200, 14768307200},
    {"qwen3-32b", 0, 0, 0, 32762123264, 32762123264},
};

Test(workload, presets_have_the_published_parameters)
{
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct zipccl_workload w = workload_of(models[i].name, 1);
        struct zipccl_workload_counts n;

        zipccl_workload_count(&w.model, &n);
        cr_expect_str_eq(w.model.name, models[i].name);
        cr_expect_eq(n.total, models[i].total, "%s: %lu", models[i].name, (unsigned long)n.total);
        cr_expect_eq(n.active, models[i].active, "%s: active %lu", models[i].name,
                     (unsigned long)n.active);
        if (models[i].block > 0)
            cr_expect_eq(n.block, models[i].block, "%s: block", models[i].name);
        if (models[i].moe_block > 0)
            cr_expect_eq(n.moe_block, models[i].moe_block, "%s: block", models[i].name);
        if (models[i].root > 0)
            cr_expect_eq(n.root, models[i].root, "%s: root", models[i].name);
    }
}

Test(workload, parts_of_deepseek_and_mixtral)
{
    struct zipccl_workload d = workload_of("deepseek-v3", 1), m = workload_of("mixtral-8x7b", 1);
    struct zipccl_workload_counts n;

    zipccl_workload_count(&d.model, &n);
    cr_expect_eq(n.attention, 187107328);
    cr_expect_eq(n.expert, 44040192);
    cr_expect_eq(n.router, 7168 * 256 + 256);
    zipccl_workload_count(&m.model, &n);
    cr_expect_eq(n.attention, 41943040);
    cr_expect_eq(n.expert, 176160768);
    cr_expect_eq(n.router, 32768);
}

/* Write 'text' into a file that ends in 'suffix', open it as a model, remove it. */
static zipccl_status open_text(const char *suffix, const char *text,
                               struct zipccl_workload_model *out, struct zipccl_error *error)
{
    char folder[] = "/tmp/zipccl-model-XXXXXX", path[64];
    zipccl_status status;
    FILE *f;

    cr_assert(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/config%s", folder, suffix);
    f = fopen(path, "w");
    cr_assert(f != NULL);
    fputs(text, f);
    fclose(f);
    status = zipccl_workload_model_open(path, NULL, out, error);
    unlink(path);
    rmdir(folder);
    return status;
}

Test(workload, reads_config_json)
{
    static const struct {
        const char *text;
        uint64_t total;
    } configs[] = {
        {"{\"model_type\":\"llama\",\"hidden_size\":8192,\"intermediate_size\":28672,"
         "\"num_attention_heads\":64,\"num_key_value_heads\":8,\"num_hidden_layers\":80,"
         "\"vocab_size\":128256,\"rope_scaling\":{\"factor\":8.0},\"rms_norm_eps\":1e-05,"
         "\"tie_word_embeddings\":false}",
         70553706496},
        {"{\"model_type\":\"qwen3_moe\",\"hidden_size\":2048,\"intermediate_size\":6144,"
         "\"moe_intermediate_size\":768,\"num_attention_heads\":32,\"num_key_value_heads\":4,"
         "\"head_dim\":128,\"num_hidden_layers\":48,\"num_experts\":128,\"num_experts_per_tok\":8,"
         "\"decoder_sparse_step\":1,\"vocab_size\":151936,\"tie_word_embeddings\":false}",
         30532122624},
        {"{\"model_type\":\"mixtral\",\"hidden_size\":4096,\"intermediate_size\":14336,"
         "\"num_attention_heads\":32,\"num_key_value_heads\":8,\"num_hidden_layers\":32,"
         "\"num_local_experts\":8,\"num_experts_per_tok\":2,\"vocab_size\":32000}",
         46702792704},
        {"{\"model_type\":\"deepseek_v3\",\"hidden_size\":7168,\"intermediate_size\":18432,"
         "\"moe_intermediate_size\":2048,\"num_attention_heads\":128,\"num_key_value_heads\":128,"
         "\"num_hidden_layers\":61,\"n_routed_experts\":256,\"n_shared_experts\":1,"
         "\"num_experts_per_tok\":8,\"first_k_dense_replace\":3,\"q_lora_rank\":1536,"
         "\"kv_lora_rank\":512,\"qk_rope_head_dim\":64,\"qk_nope_head_dim\":128,\"v_head_dim\":128,"
         "\"topk_method\":\"noaux_tc\",\"vocab_size\":129280,\"tie_word_embeddings\":false}",
         671026419200},
        {"{\"model_type\":\"gpt2\",\"n_layer\":12,\"n_embd\":768,\"n_head\":12,\"n_positions\":"
         "1024,"
         "\"vocab_size\":50257}",
         124439808},
        {"{\"model_type\":\"qwen2\",\"hidden_size\":3584,\"intermediate_size\":18944,"
         "\"num_attention_heads\":28,\"num_key_value_heads\":4,\"num_hidden_layers\":28,"
         "\"vocab_size\":152064,\"tie_word_embeddings\":false}",
         7615616512},
    };

    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
        struct zipccl_error error = {""};
        struct zipccl_workload_model m;
        struct zipccl_workload_counts n;

        cr_assert_eq(open_text(".json", configs[i].text, &m, &error), ZIPCCL_OK, "%s", error.text);
        zipccl_workload_count(&m, &n);
        cr_expect_eq(n.total, configs[i].total, "%s: %lu", m.name, (unsigned long)n.total);
    }
}

#define TINY "name: t\ndescription: d\nsource: s\nlayers: 2\nhidden: 64\nheads: 4\nvocab: 64\n"

Test(workload, wrong_descriptions_are_refused)
{
    static const struct {
        const char *suffix, *text, *reason;
    } cases[] = {
        {".yaml", TINY "ffn: 128\nlayrs: 2\n", "unknown key \"layrs\""},
        {".yaml", TINY "ffn: 12.5\n", "key \"ffn\""},
        {".yaml", TINY "ffn: 128\ngated: yes\n", "expected true or false"},
        {".yaml", TINY "ffn: 128\nkv_heads: 3\n", "does not divide heads"},
        {".yaml", TINY "ffn: 128\nffn: 64\n", "ffn"},
        {".yaml", TINY "ffn: 128\n---\n" TINY, "a second document, expected one in a file"},
        {".yaml",
         "name: \"  \"\ndescription: d\nsource: s\nlayers: 2\nhidden: 8\nheads: 1\nvocab: 8\n"
         "ffn: 8\n",
         "line 1: key \"name\": blank"},
        {".yaml",
         "name: t\ndescription: d\nsource: s\nlayers: 2\nhidden: 64\nheads: 5\nvocab: 8\n"
         "ffn: 8\n",
         "heads 5 does not divide hidden 64"},
        {".json",
         "{\"model_type\":\"llama\",\"hidden_size\":64,\"intermediate_size\":256,"
         "\"num_attention_heads\":5,\"num_hidden_layers\":8,\"vocab_size\":64}",
         "heads 5 does not divide hidden 64"},
        {".json",
         "{\"model_type\":\"gpt2\",\"n_layer\":2,\"n_embd\":64,\"n_head\":5,"
         "\"n_positions\":8,\"vocab_size\":64}",
         "heads 5 does not divide hidden 64"},
        {".yaml", TINY "experts: 4\ntopk: 5\nexpert_ffn: 64\n", "topk"},
        {".yaml", TINY "ffn: 128\ntopk: 2\n", "experts"},
        {".yaml", TINY, "ffn"},
        {".yaml", TINY "ffn: 16777216\nexperts: 16777216\ntopk: 1\nexpert_ffn: 16777216\n",
         "2^52 parameters"},
        {".yaml",
         "name: t\ndescription: d\nsource: s\nlayers: 70000\nhidden: 8\nheads: 1\nvocab: 8\nffn: "
         "8\n",
         "more than 65536"},
        {".yaml", "layers: 2\n", "\"name\" is missing"},
        {".yaml", "", "empty"},
        {".yaml", "a: [", "config.yaml"},
        {".json", "{\"model_type\":\"bert\"}", "\"bert\" is not known"},
        {".json", "{\"hidden_size\":1}", "no \"model_type\""},
        {".json", "{\"model_type\":\"llama\",\"hidden_size\":64}", "num_hidden_layers"},
        {".json", "{\"model_type\":\"llama\",\"num_hidden_layers\":-3}", "num_hidden_layers"},
        {".json", "{\"model_type\":", "config.json"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct zipccl_workload_model m = {.layers = 77};
        struct zipccl_error error = {""};

        cr_expect_eq(open_text(cases[i].suffix, cases[i].text, &m, &error), ZIPCCL_ERR_INPUT, "%zu",
                     i);
        cr_expect(strstr(error.text, cases[i].reason) != NULL, "%zu: %s", i, error.text);
        cr_expect_eq(m.layers, 77);
    }
}

Test(workload, an_unknown_name_tells_the_known_ones)
{
    struct zipccl_workload_model m;
    struct zipccl_error error = {""};

    cr_expect_eq(zipccl_workload_model_open("llama9", "models/workloads", &m, &error),
                 ZIPCCL_ERR_INPUT);
    cr_expect(strstr(error.text, "llama3-70b") != NULL, "%s", error.text);
    cr_expect_eq(zipccl_workload_model_open("/nowhere/x.yaml", NULL, &m, &error), ZIPCCL_ERR_IO);
    cr_expect_eq(zipccl_workload_model_open("/nowhere/x.json", NULL, &m, &error), ZIPCCL_ERR_IO);
}

static void refuse(struct zipccl_workload w, const char *reason)
{
    struct zipccl_error error = {""};

    cr_expect_eq(zipccl_workload_check(&w, &error), ZIPCCL_ERR_INPUT, "%s", reason);
    cr_expect(strstr(error.text, reason) != NULL, "%s: %s", reason, error.text);
}

Test(workload, what_does_not_fit_together_is_refused)
{
    struct zipccl_workload dense = workload_of("llama3-70b", 8),
                           moe = workload_of("mixtral-8x7b", 8);
    struct zipccl_workload x;

    x = dense, x.tp = 6, refuse(x, "does not divide the 64 heads");
    x = dense, x.tp = 64, x.model.kv_heads = 24, x.model.heads = 192, refuse(x, "KV heads");
    x = dense, x.sp = true, refuse(x, "tp is 1");
    x = dense, x.tp = 8, x.sp = true, x.seq = 1001, refuse(x, "does not divide 1001 tokens");
    x = dense, x.pp = 81, refuse(x, "has 80");
    x = dense, x.vpp = 2, refuse(x, "pp is 1");
    x = dense, x.pp = 4, x.vpp = 2, x.global_batch = 8 * 6, refuse(x, "groups of pp");
    x = dense, x.global_batch = 12, refuse(x, "no multiple of micro-batch");
    x = dense, x.cp = 3, refuse(x, "cp 3");
    x = dense, x.ep = 2, refuse(x, "has no experts");
    x = dense, x.fp8_dispatch = true, refuse(x, "nothing is dispatched");
    x = dense, x.etp = 2, refuse(x, "etp 2: llama3-70b has no experts");
    x = moe, x.ep = 4, x.etp = 4, refuse(x, "ep 4 x etp 4 does not divide the 8 ranks");
    x = moe, x.ep = 2, x.etp = 2, x.imbalance = 1.5, refuse(x, "imbalance with etp 2");
    x = moe, x.ep = 8, x.node_dispatch = true, x.ranks_per_node = 0, refuse(x, "is not known");
    x = moe, x.ep = 8, x.node_dispatch = true, refuse(x, "several whole nodes");
    x = moe, x.ep = 8, x.node_dispatch = true, x.ranks_per_node = 4, x.imbalance = 2;
    refuse(x, "tables are of single ranks");
    x = dense, x.overlap_a2a = true, refuse(x, "and there is none");
    x = moe, x.ep = 8, x.overlap_a2a = true, refuse(x, "and there is one");
    x = moe, x.ep = 8, x.overlap_a2a = true, x.sharding = ZIPCCL_SHARD_ZERO2;
    refuse(x, "with ddp or zero1");
    x = dense, x.tp = 8, x.overlap_tp = true, refuse(x, "an all_reduce of tp is not cut");
    x = dense, x.shard = 2, refuse(x, "for training with fsdp");
    x = dense, x.sharding = ZIPCCL_SHARD_FSDP, x.shard = 3,
    refuse(x, "expected a divisor of dp x cp");
    x = moe, x.sharding = ZIPCCL_SHARD_FSDP, x.shard = 2,
    refuse(x, "not offered for models with experts");
    x = dense, x.pp = 2, x.sharding = ZIPCCL_SHARD_FSDP, refuse(x, "fsdp with pp 2");
    x = dense, x.pp = 2, x.sharding = ZIPCCL_SHARD_ZERO2, refuse(x, "zero2 with pp 2");
    x = dense, x.peak_flops = 1e15, refuse(x, "peak");
    x = dense, x.dp = 1 << 20, x.tp = 2, refuse(x, "more than 1048576 ranks");
    x = dense, x.seq = 1 << 26, x.micro_batch = 1 << 10, x.global_batch = 1 << 13,
    refuse(x, "2^46 elements");
    x = dense, x.sharding = ZIPCCL_SHARD_DDP, x.overlap_param = true, refuse(x, "overlap param");
    x = moe, x.overlap_shared = true, refuse(x, "no shared experts");
    x = dense, x.sharding = ZIPCCL_SHARD_FSDP, x.bucket = 1000, refuse(x, "not in buckets");
    x = dense, x.kind = ZIPCCL_WORKLOAD_SYNC_GATHER, x.fp32_reduce = true;
    refuse(x, "parameters alone");
    x = dense, x.seq = 0, refuse(x, "1 or more");
    x = moe, x.tp = 2, refuse(x, "need --sp");
    x = moe, x.ep = 3, refuse(x, "does not divide the 8 experts");
    x = moe, x.dp = 2, x.global_batch = 2, x.ep = 4, refuse(x, "ranks of a stage");
    x = moe, x.ep = 1, x.imbalance = 2, refuse(x, "ep is 1");
    x = moe, x.ep = 4, x.imbalance = 5, refuse(x, "imbalance 5");
    x = moe, x.kind = ZIPCCL_WORKLOAD_SYNC_GATHER, x.pp = 2, refuse(x, "weight-sync with pp");
}

Test(workload, memory_is_the_sum_of_its_formulas)
{
    struct zipccl_workload w = workload_of("llama3-70b", 8);
    struct zipccl_workload_estimate e;
    double total = 70553706496.0, block = 855654400.0, root = 2101354496.0;
    /* 8h of norms and residual; q, k, v, output; row sums; gate, up and their product. */
    double kept = 8 * 8192 + 2 * (8192 + 8192 + 1024 + 1024) + 4 * 64 + 2 * 3 * 28672;

    w.sharding = ZIPCCL_SHARD_FSDP;
    zipccl_workload_estimate(&w, &e);
    cr_expect_float_eq(e.parameters, 2 * total / 8, 1);
    cr_expect_float_eq(e.gradients, 2 * total / 8, 1);
    cr_expect_float_eq(e.optimizer, 12 * total / 8, 1);
    cr_expect_float_eq(e.gathered, 2 * (2 * block + root) + 2 * block, 1);
    cr_expect_float_eq(e.activations, 4096 * (80 * kept + 8 * 128256.0), 1);
    cr_expect_float_eq(e.total,
                       e.parameters + e.gradients + e.optimizer + e.gathered + e.activations, 1);
    /* 6 flops a parameter of matrices and token, and 6 s q of attention under a causal mask. */
    cr_expect_float_eq(
        e.model_flops,
        8 * 4096 * (6 * (total - 80 * 2 * 8192 - 8192 - 128256.0 * 8192) + 80 * 6 * 4096.0 * 8192),
        1e9);
    w.dp = 32; /* HSDP: four copies, each over 8 ranks */
    w.shard = 8;
    w.global_batch = 32;
    zipccl_workload_estimate(&w, &e);
    cr_expect_float_eq(e.parameters + e.gradients + e.optimizer, 16 * total / 8, 1);
    w = workload_of("llama3-70b", 8);
    w.sharding = ZIPCCL_SHARD_DDP;
    w.fp32_reduce = true;
    zipccl_workload_estimate(&w, &e);
    cr_expect_float_eq(e.parameters + e.gradients + e.optimizer, 18 * total, 1);
}

Test(workload, pipelines_keep_more_on_early_stages)
{
    struct zipccl_workload w = workload_of("gpt3-175b", 1);
    struct zipccl_workload_estimate e;

    w.pp = 8;
    w.tp = 8;
    w.global_batch = 64;
    zipccl_workload_estimate(&w, &e);
    cr_expect_eq(e.stage, 0);
    cr_expect_float_eq(e.in_flight, 8, 1e-9);
    /* 7 of 64 passes, a little less as the last stage, with the head, is the longest. */
    cr_expect(e.bubble > 0.1 && e.bubble < 7.0 / 64, "%g", e.bubble);
    w.vpp = 3;
    zipccl_workload_estimate(&w, &e);
    /* (2 (p - 1) + (v - 1) p + 1) / v chunks of a third each. */
    cr_expect_float_eq(e.in_flight, 31.0 / 3, 1e-9);
    w.recompute = ZIPCCL_RECOMPUTE_FULL;
    w.vpp = 1;
    double before = e.activations;
    zipccl_workload_estimate(&w, &e);
    cr_expect_lt(e.activations, before / 4);
}
