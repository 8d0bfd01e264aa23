/*
 * workload_yaml.c - models and tables of measured times, as YAML describes them
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/workload_keys.h"

#include "models/cluster.h"
#include "models/flat_yaml.h"
#include "models/units.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum kind { TEXT, U32, FLAG };

static const struct key {
    const char *name;
    enum kind kind;
    bool required;
    size_t offset, size; /* size: of a TEXT */
} table[] = {
#define AT(field)   offsetof(struct zipccl_workload_model, field)
#define ROOM(field) sizeof(((struct zipccl_workload_model *)0)->field)
#define WORDS(field)                                                                               \
    {                                                                                              \
#field, TEXT, true, AT(field), ROOM(field)                                                 \
    }
#define NUMBER(field, required)                                                                    \
    {                                                                                              \
#field, U32, required, AT(field), 0                                                        \
    }
#define SWITCH(field)                                                                              \
    {                                                                                              \
#field, FLAG, false, AT(field), 0                                                          \
    }
    WORDS(name),
    WORDS(description),
    WORDS(source),
    NUMBER(layers, true),
    NUMBER(hidden, true),
    NUMBER(ffn, false),
    NUMBER(heads, true),
    NUMBER(kv_heads, false),
    NUMBER(head_dim, false),
    NUMBER(vocab, true),
    NUMBER(positions, false),
    SWITCH(gated),
    SWITCH(tied),
    SWITCH(layernorm),
    SWITCH(bias),
    SWITCH(qkv_bias),
    SWITCH(qk_norm),
    NUMBER(experts, false),
    NUMBER(topk, false),
    NUMBER(expert_ffn, false),
    NUMBER(shared_ffn, false),
    NUMBER(node_limit, false),
    NUMBER(dense_layers, false),
    SWITCH(router_bias),
    NUMBER(q_lora, false),
    NUMBER(kv_lora, false),
    NUMBER(rope_dim, false),
    NUMBER(nope_dim, false),
    NUMBER(v_dim, false),
#undef AT
#undef ROOM
#undef WORDS
#undef NUMBER
#undef SWITCH
};

enum { NUM_KEYS = sizeof table / sizeof *table };

static zipccl_status parse(const struct key *key, const char *text, struct zipccl_workload_model *m,
                           struct zipccl_error *error)
{
    char *at = (char *)m + key->offset;
    bool yes = strcmp(text, "true") == 0;
    double number;
    uint32_t u;

    switch (key->kind) {
    case TEXT:
        for (const char *p = text; *p != 0; p++)
            if ((unsigned char)*p < 0x20 || *p == 0x7f)
                return zipccl_fail(error, ZIPCCL_ERR_INPUT, "control characters, expected none");
        if (text[strspn(text, " ")] == 0)
            return zipccl_fail(error, ZIPCCL_ERR_INPUT, "blank, expected a text");
        if (strlen(text) >= key->size)
            return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%zu characters, expected at most %zu",
                               strlen(text), key->size - 1);
        strcpy(at, text);
        return ZIPCCL_OK;
    case FLAG:
        if (!yes && strcmp(text, "false") != 0)
            return zipccl_fail(error, ZIPCCL_ERR_INPUT, "found \"%.40s\", expected true or false",
                               text);
        memcpy(at, &yes, sizeof yes);
        return ZIPCCL_OK;
    case U32:
        ZIPCCL_TRY(zipccl_parse_quantity(text, ZIPCCL_UNIT_COUNT, 0, 1 << 24, &number, error));
        u = (uint32_t)number;
        memcpy(at, &u, sizeof u);
        return ZIPCCL_OK;
    }
    return ZIPCCL_ERR_INTERNAL;
}

static zipccl_status parse_all(const char *path, const struct zipccl_flat_yaml *yaml,
                               struct zipccl_workload_model *m, struct zipccl_error *error)
{
    struct zipccl_error why;

    for (size_t i = 0; i < NUM_KEYS; i++) {
        if (yaml->values[i] == NULL && table[i].required)
            return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%.200s: key \"%s\" is missing", path,
                               table[i].name);
        if (yaml->values[i] != NULL && parse(&table[i], yaml->values[i], m, &why) != ZIPCCL_OK)
            return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%.200s: line %u: key \"%s\": %.200s", path,
                               zipccl_flat_yaml_line(path, table[i].name), table[i].name, why.text);
    }
    return ZIPCCL_OK;
}

zipccl_status zipccl_workload_model_yaml(const char *path, struct zipccl_workload_model *out,
                                         struct zipccl_error *error)
{
    struct zipccl_workload_model m = {.name = ""};
    const char *names[NUM_KEYS];
    struct zipccl_flat_yaml yaml;
    zipccl_status status;

    for (size_t i = 0; i < NUM_KEYS; i++)
        names[i] = table[i].name;
    ZIPCCL_TRY(zipccl_flat_yaml_load(path, "a model", names, NUM_KEYS, &yaml, error));
    status = parse_all(path, &yaml, &m, error);
    zipccl_flat_yaml_free(&yaml);
    if (status != ZIPCCL_OK)
        return status;
    if (m.kv_lora == 0 && m.kv_heads == 0)
        m.kv_heads = m.heads;
    if (m.kv_lora == 0 && m.head_dim == 0 && m.heads > 0 && m.hidden % m.heads == 0)
        m.head_dim = m.hidden / m.heads;
    ZIPCCL_TRY(zipccl_workload_model_check(&m, path, error));
    *out = m;
    return ZIPCCL_OK;
}

static bool ends_in(const char *text, const char *tail)
{
    size_t n = strlen(text), t = strlen(tail);

    return n > t && strcmp(text + n - t, tail) == 0;
}

static zipccl_status unknown_name(const char *name, const char *search_dir,
                                  struct zipccl_error *error)
{
    char list[320] = "";
    size_t n, used = 0;
    char **names;

    ZIPCCL_TRY(zipccl_cluster_names(search_dir, &names, &n, error));
    for (size_t i = 0; i < n && used < sizeof list; i++)
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", names[i]);
    zipccl_cluster_names_free(names, n);
    return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                       "no model is named \"%.60s\"; there are: %s. A file is given as FILE.yaml "
                       "or config.json",
                       name, list);
}

zipccl_status zipccl_workload_model_open(const char *name_or_path, const char *search_dir,
                                         struct zipccl_workload_model *out,
                                         struct zipccl_error *error)
{
    char path[4096];

    if (ends_in(name_or_path, ".json"))
        return zipccl_workload_model_hf(name_or_path, out, error);
    if (strchr(name_or_path, '/') != NULL || ends_in(name_or_path, ".yaml") ||
        ends_in(name_or_path, ".yml") || search_dir == NULL)
        return zipccl_workload_model_yaml(name_or_path, out, error);
    if (snprintf(path, sizeof path, "%s/%s.yaml", search_dir, name_or_path) >= (int)sizeof path)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "the path of the model is too long");
    if (access(path, F_OK) != 0)
        return unknown_name(name_or_path, search_dir, error);
    return zipccl_workload_model_yaml(path, out, error);
}

const char *const zipccl_workload_part_names[ZIPCCL_LAYER_NUM] = {
    [ZIPCCL_LAYER_EMBEDDING] = "embedding",
    [ZIPCCL_LAYER_ATTENTION] = "attention",
    [ZIPCCL_LAYER_MLP] = "mlp",
    [ZIPCCL_LAYER_ROUTER] = "router",
    [ZIPCCL_LAYER_EXPERTS] = "experts",
    [ZIPCCL_LAYER_SHARED] = "shared",
    [ZIPCCL_LAYER_HEAD] = "head",
    [ZIPCCL_LAYER_OPTIMIZER] = "optimizer",
};

zipccl_status zipccl_workload_times_open(const char *path, struct zipccl_workload_times *out,
                                         struct zipccl_error *error)
{
    char text[2 * ZIPCCL_LAYER_NUM][32];
    const char *names[2 * ZIPCCL_LAYER_NUM];
    zipccl_status status = ZIPCCL_OK;
    struct zipccl_flat_yaml yaml;
    struct zipccl_error why;

    for (int i = 0; i < 2 * ZIPCCL_LAYER_NUM; i++) {
        bool once = i / 2 == ZIPCCL_LAYER_OPTIMIZER;

        snprintf(text[i], sizeof text[i], "%s%s", zipccl_workload_part_names[i / 2],
                 once    ? (i % 2 ? "_" : "")
                 : i % 2 ? "_backward"
                         : "_forward");
        names[i] = text[i];
    }
    /* The optimizer has no backward pass: its second key is left out. */
    ZIPCCL_TRY(zipccl_flat_yaml_load(path, "a table of times, such as attention_forward: 1.2ms",
                                     names, 2 * ZIPCCL_LAYER_NUM - 1, &yaml, error));
    for (int i = 0; status == ZIPCCL_OK && i < 2 * ZIPCCL_LAYER_NUM - 1; i++) {
        double *at = i % 2 ? &out->backward_s[i / 2] : &out->forward_s[i / 2];

        if (yaml.values[i] != NULL &&
            zipccl_parse_quantity(yaml.values[i], ZIPCCL_UNIT_TIME, 0, 1e6, at, &why) != ZIPCCL_OK)
            status = zipccl_fail(error, ZIPCCL_ERR_INPUT, "%.200s: line %u: key \"%s\": %.200s",
                                 path, zipccl_flat_yaml_line(path, names[i]), names[i], why.text);
    }
    zipccl_flat_yaml_free(&yaml);
    return status;
}
