/*
 * fuzz_model.c - any bytes as a model: refused with a reason, or a step can be made up from it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/workload_keys.h"
#include "traces/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

size_t zipccl_fuzz_seed(unsigned i, uint8_t *out)
{
    static const char *const seeds[] = {
        "name: t\ndescription: d\nsource: s\nlayers: 2\nhidden: 64\nheads: 4\nvocab: 64\nffn: 128\n"
        "kv_heads: 2\nhead_dim: 16\ngated: true\ntied: true\npositions: 9\n",
        "name: t\ndescription: d\nsource: s\nlayers: 3\nhidden: 64\nheads: 4\nvocab: 64\nffn: 128\n"
        "experts: 4\ntopk: 2\nexpert_ffn: 32\nshared_ffn: 32\ndense_layers: 1\nq_lora: 16\n"
        "kv_lora: 8\nrope_dim: 4\nnope_dim: 8\nv_dim: 8\n",
        "{\"model_type\":\"llama\",\"hidden_size\":64,\"intermediate_size\":128,"
        "\"num_attention_heads\":4,\"num_key_value_heads\":2,\"num_hidden_layers\":2,"
        "\"vocab_size\":64,\"tie_word_embeddings\":false}",
        "{\"model_type\":\"deepseek_v3\",\"hidden_size\":64,\"intermediate_size\":128,"
        "\"moe_intermediate_size\":32,\"num_attention_heads\":4,\"num_hidden_layers\":3,"
        "\"n_routed_experts\":4,\"n_shared_experts\":1,\"num_experts_per_tok\":2,"
        "\"first_k_dense_replace\":1,\"kv_lora_rank\":8,\"qk_rope_head_dim\":4,"
        "\"qk_nope_head_dim\":8,\"v_head_dim\":8,\"vocab_size\":64}",
        "attention_forward: 1ms\noptimizer: 0.5s\n"};
    size_t n;

    if (i >= sizeof seeds / sizeof seeds[0])
        return 0;
    n = strlen(seeds[i]);
    memcpy(out, seeds[i], n);
    return n;
}

/* A status that says no has a text. */
static bool good(zipccl_status status, const struct zipccl_error *error)
{
    if (status != ZIPCCL_OK && error->text[0] == '\0')
        abort();
    return status == ZIPCCL_OK;
}

static void use(const struct zipccl_workload_model *model)
{
    static const uint32_t ways[][6] = {/* tp, pp, dp, cp, ep, vpp */
                                       {1, 1, 2, 1, 1, 1},
                                       {2, 2, 1, 2, 1, 1},
                                       {2, 1, 2, 1, 4, 1},
                                       {1, 2, 2, 1, 2, 2}};
    char path[] = "/tmp/zipccl-fuzz-model-XXXXXX";
    int fd = mkstemp(path);

    if (fd < 0)
        abort();
    close(fd);
    for (int i = 0; i < 4; i++) {
        struct zipccl_workload_estimate estimate;
        struct zipccl_error error = {""};
        struct zipccl_workload w;

        zipccl_workload_init(&w);
        w.model = *model;
        w.tp = ways[i][0];
        w.sp = w.tp > 1;
        w.pp = ways[i][1];
        w.dp = ways[i][2];
        w.cp = ways[i][3];
        w.ep = ways[i][4];
        w.vpp = ways[i][5];
        w.seq = 64;
        w.global_batch = 4 * w.dp;
        w.imbalance = w.ep > 1 ? 1.5 : 1;
        if (i == 0)
            w.sharding = ZIPCCL_SHARD_FSDP;
        if (!good(zipccl_workload_check(&w, &error), &error))
            continue;
        zipccl_workload_estimate(&w, &estimate);
        if (!(estimate.total > 0 && estimate.total < 1e30))
            abort();
        if (model->layers <= 64)
            good(zipccl_workload_write(&w, path, NULL, NULL, NULL, &error), &error);
    }
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes)
{
    const char *path = zipccl_fuzz_file(data, nbytes);
    struct zipccl_workload_times times;
    struct zipccl_workload_model model;
    struct zipccl_error error = {""};

    if (good(zipccl_workload_model_yaml(path, &model, &error), &error))
        use(&model);
    error.text[0] = '\0';
    if (good(zipccl_workload_model_hf(path, &model, &error), &error))
        use(&model);
    error.text[0] = '\0';
    good(zipccl_workload_times_open(path, &times, &error), &error);
    return 0;
}
