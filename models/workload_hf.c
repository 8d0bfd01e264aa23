/*
 * workload_hf.c - models as a config.json of Hugging Face describes them
 *
 * Keys differ by architecture; the ones read here are those of GPT-2, Llama, Mistral, Mixtral,
 * Qwen2 and 3 (dense and MoE) and DeepSeek-V2 and V3.  Another "model_type" is refused.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/regular_file.h"
#include "models/workload_keys.h"

#include "traces/json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILE ((size_t)1 << 20)

enum { LLAMA, GPT2, MIXTRAL, QWEN2, QWEN3, QWEN3_MOE, DEEPSEEK, NUM_TYPES };

static const struct {
    const char *name;
    int type;
} types[] = {
    {"llama", LLAMA},         {"mistral", LLAMA},        {"gpt2", GPT2},
    {"mixtral", MIXTRAL},     {"qwen2", QWEN2},          {"qwen3", QWEN3},
    {"qwen3_moe", QWEN3_MOE}, {"deepseek_v2", DEEPSEEK}, {"deepseek_v3", DEEPSEEK},
};

struct reader {
    struct zipccl_place at;
    const struct zipccl_json *object;
    zipccl_status status;
};

/* An integer of the file; 'missing' where it is absent or null, required if that is UINT32_MAX. */
static uint32_t number(struct reader *r, const char *key, uint32_t missing)
{
    const struct zipccl_json *node = zipccl_json_get(r->object, key);
    uint64_t value = missing;

    if (r->status != ZIPCCL_OK)
        return 0;
    if (node == NULL || node->type == ZIPCCL_JSON_NULL) {
        if (missing == UINT32_MAX)
            r->status = zipccl_place_fail(&r->at, "no \"%s\", expected one", key);
        return missing;
    }
    r->status = zipccl_json_uint(&r->at, node, key, 0, 1 << 24, &value);
    return (uint32_t)value;
}

static bool flag(struct reader *r, const char *key, bool missing)
{
    const struct zipccl_json *node = zipccl_json_get(r->object, key);

    if (r->status != ZIPCCL_OK || node == NULL || node->type == ZIPCCL_JSON_NULL)
        return missing;
    if (node->type != ZIPCCL_JSON_BOOL) {
        r->status = zipccl_place_fail(&r->at, "\"%s\" is no boolean", key);
        return missing;
    }
    return node->value.boolean;
}

static int find_type(struct reader *r)
{
    const struct zipccl_json *node = zipccl_json_get(r->object, "model_type");
    const char *name = NULL;
    char quoted[ZIPCCL_QUOTE_SIZE];

    if (node == NULL) {
        r->status = zipccl_place_fail(&r->at, "no \"model_type\": not a config.json of a model");
        return -1;
    }
    r->status = zipccl_json_string(&r->at, node, "model_type", &name);
    for (size_t i = 0; r->status == ZIPCCL_OK && i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0)
            return types[i].type;
    if (r->status == ZIPCCL_OK)
        r->status = zipccl_place_fail(
            &r->at,
            "\"model_type\" %s is not known; expected llama, mistral, gpt2, mixtral, qwen2, qwen3, "
            "qwen3_moe, deepseek_v2 or deepseek_v3. Describe others in YAML (docs/generating.md)",
            zipccl_quote(quoted, name));
    return -1;
}

/* Width of a head where the file names none; 0, which is refused, where heads do not divide. */
static uint32_t head_dim(const struct zipccl_workload_model *m)
{
    return m->heads > 0 && m->hidden % m->heads == 0 ? m->hidden / m->heads : 0;
}

static void read_gpt2(struct reader *r, struct zipccl_workload_model *m)
{
    m->layers = number(r, "n_layer", UINT32_MAX);
    m->hidden = number(r, "n_embd", UINT32_MAX);
    m->heads = number(r, "n_head", UINT32_MAX);
    m->ffn = number(r, "n_inner", 4 * m->hidden);
    m->vocab = number(r, "vocab_size", UINT32_MAX);
    m->positions = number(r, "n_positions", UINT32_MAX);
    m->kv_heads = m->heads;
    m->head_dim = head_dim(m);
    m->layernorm = m->bias = true;
    m->tied = flag(r, "tie_word_embeddings", true);
}

static void read_experts(struct reader *r, int type, struct zipccl_workload_model *m)
{
    if (type == MIXTRAL) {
        m->experts = number(r, "num_local_experts", UINT32_MAX);
        m->expert_ffn = m->ffn;
    } else if (type == QWEN3_MOE) {
        m->experts = number(r, "num_experts", UINT32_MAX);
        m->expert_ffn = number(r, "moe_intermediate_size", UINT32_MAX);
        if (number(r, "decoder_sparse_step", 1) != 1)
            r->status = zipccl_place_fail(&r->at, "\"decoder_sparse_step\" is not 1: layers that "
                                                  "alternate are not read");
    } else {
        m->experts = number(r, "n_routed_experts", 0);
        if (m->experts == 0)
            return;
        m->expert_ffn = number(r, "moe_intermediate_size", UINT32_MAX);
        m->shared_ffn = number(r, "n_shared_experts", 0) * m->expert_ffn;
        m->dense_layers = number(r, "first_k_dense_replace", 0);
        if (number(r, "n_group", 1) > 1)
            m->node_limit = number(r, "topk_group", 0);
        /* The balancing bias came with V3's routing. */
        m->router_bias =
            zipccl_json_get(r->object, "topk_method") != NULL &&
            zipccl_json_get(r->object, "topk_method")->type == ZIPCCL_JSON_STRING &&
            strcmp(zipccl_json_get(r->object, "topk_method")->value.string, "noaux_tc") == 0;
    }
    m->topk = number(r, "num_experts_per_tok", UINT32_MAX);
}

static void read_llama(struct reader *r, int type, struct zipccl_workload_model *m)
{
    m->layers = number(r, "num_hidden_layers", UINT32_MAX);
    m->hidden = number(r, "hidden_size", UINT32_MAX);
    m->heads = number(r, "num_attention_heads", UINT32_MAX);
    m->ffn = number(r, "intermediate_size", UINT32_MAX);
    m->vocab = number(r, "vocab_size", UINT32_MAX);
    m->gated = true;
    m->tied = flag(r, "tie_word_embeddings", false);
    m->qkv_bias = flag(r, "attention_bias", type == QWEN2);
    m->qk_norm = type == QWEN3 || type == QWEN3_MOE;
    if (type == DEEPSEEK) {
        m->q_lora = number(r, "q_lora_rank", 0);
        m->kv_lora = number(r, "kv_lora_rank", UINT32_MAX);
        m->rope_dim = number(r, "qk_rope_head_dim", UINT32_MAX);
        m->nope_dim = number(r, "qk_nope_head_dim", UINT32_MAX);
        m->v_dim = number(r, "v_head_dim", UINT32_MAX);
    } else {
        m->kv_heads = number(r, "num_key_value_heads", m->heads);
        m->head_dim = number(r, "head_dim", head_dim(m));
    }
    if (type == MIXTRAL || type == QWEN3_MOE || type == DEEPSEEK)
        read_experts(r, type, m);
    if (m->experts > 0 && m->dense_layers == 0)
        m->ffn = 0;
}

static zipccl_status read_model(const char *path, const struct zipccl_json *object,
                                struct zipccl_workload_model *out, struct zipccl_error *error)
{
    struct reader r = {{path, 0, error}, object, ZIPCCL_OK};
    struct zipccl_workload_model m = {.name = ""};
    int type = find_type(&r);

    ZIPCCL_TRY(r.status);
    if (type == GPT2)
        read_gpt2(&r, &m);
    else
        read_llama(&r, type, &m);
    ZIPCCL_TRY(r.status);
    snprintf(m.name, sizeof m.name, "%s-%ux%u",
             object != NULL ? zipccl_json_get(object, "model_type")->value.string : "", m.layers,
             m.hidden);
    snprintf(m.description, sizeof m.description, "%s, %u layers of %u", m.name, m.layers,
             m.hidden);
    snprintf(m.source, sizeof m.source, "a config.json");
    ZIPCCL_TRY(zipccl_workload_model_check(&m, path, error));
    *out = m;
    return ZIPCCL_OK;
}

static zipccl_status read_text(const char *path, char **text, size_t *nbytes,
                               struct zipccl_error *error)
{
    char *bytes;
    FILE *f;

    ZIPCCL_TRY(zipccl_open_regular(path, &f, error));
    bytes = malloc(MAX_FILE + 1);
    if (bytes == NULL) {
        fclose(f);
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%.200s: out of memory", path);
    }
    *nbytes = fread(bytes, 1, MAX_FILE + 1, f);
    if (ferror(f) || *nbytes > MAX_FILE) {
        bool io = ferror(f);

        fclose(f);
        free(bytes);
        return io ? zipccl_fail(error, ZIPCCL_ERR_IO, "%.200s: cannot be read", path)
                  : zipccl_fail(error, ZIPCCL_ERR_INPUT,
                                "%.200s: more than 1 MiB, expected a config.json", path);
    }
    fclose(f);
    *text = bytes;
    return ZIPCCL_OK;
}

zipccl_status zipccl_workload_model_hf(const char *path, struct zipccl_workload_model *out,
                                       struct zipccl_error *error)
{
    struct zipccl_error own;
    struct zipccl_place at = {path, 0, error != NULL ? error : &own};
    struct zipccl_arena arena = {NULL};
    struct zipccl_json *object;
    zipccl_status status;
    char *text = NULL;
    size_t nbytes = 0;

    ZIPCCL_TRY(read_text(path, &text, &nbytes, at.error));
    status = zipccl_json_parse(&at, &arena, text, nbytes, &object);
    if (status == ZIPCCL_OK)
        status = read_model(path, object, out, at.error);
    zipccl_arena_free(&arena);
    free(text);
    return status;
}
