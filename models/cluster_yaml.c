/*
 * cluster_yaml.c - reads a cluster file with libcyaml, every value as text
 *
 * libcyaml's own number parsing accepts too much (8x, 08, nan), so it never sees numbers here, and
 * what it logs becomes the error text: it is never printed.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/cluster_keys.h"
#include "models/yaml_file.h"

#ifndef ZIPCCL_NO_YAML
#include <cyaml/cyaml.h>
#endif
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const zipccl_cluster_key_names[NUM_KEYS] = {
    [KEY_NODES] = "nodes",
    [KEY_GPUS_PER_NODE] = "gpus_per_node",
    [KEY_GPU_NAME] = "gpu.name",
    [KEY_GPU_SMS] = "gpu.sms",
    [KEY_GPU_HBM_RATE] = "gpu.hbm_rate",
    [KEY_GPU_MEMORY] = "gpu.memory",
    [KEY_GPU_FLOPS] = "gpu.flops",
    [KEY_NVLINK_RATE] = "nvlink.rate",
    [KEY_NVLINK_ALPHA] = "nvlink.alpha",
    [KEY_NIC_PER_NODE] = "nic.per_node",
    [KEY_NIC_RATE] = "nic.rate",
    [KEY_NIC_ALPHA] = "nic.alpha",
    [KEY_NIC_BURST] = "nic.burst",
    [KEY_FABRIC_OVERSUBSCRIPTION] = "fabric.oversubscription",
    [KEY_NCCL_CHANNELS] = "nccl.channels",
    [KEY_CODEC_ENCODE_RATE] = "codec.encode_rate",
    [KEY_CODEC_DECODE_RATE] = "codec.decode_rate",
    [KEY_CODEC_RATIO_ENCODE_RATE] = "codec.ratio_encode_rate",
    [KEY_CODEC_RATIO_DECODE_RATE] = "codec.ratio_decode_rate",
    [KEY_CODEC_SMS] = "codec.sms",
    [KEY_CODEC_LAUNCH] = "codec.launch",
    [KEY_CODEC_FENCE] = "codec.fence",
    [KEY_COMPUTE_HBM_SHARE] = "compute.hbm_share",
    [KEY_REDUCE_RATE] = "reduce.rate",
    [KEY_MACHINE_CORES] = "machine.cores",
};

/* Plain text is read by cluster_plain.c, without libcyaml nothing else. */
#ifndef ZIPCCL_NO_YAML
/* A section maps onto a run of 'values' that starts at 'first'; libcyaml sees it as a struct. */
#define VALUE(key_, first_, id_)    VALUE_AS(key_, first_, id_, CYAML_FLAG_DEFAULT)
#define OPTIONAL(key_, first_, id_) VALUE_AS(key_, first_, id_, CYAML_FLAG_OPTIONAL)
#define VALUE_AS(key_, first_, id_, flags_)                                                        \
    {                                                                                              \
        .key = (key_),                                                                             \
        .value = {.type = CYAML_MAPPING,                                                           \
                  .flags = (flags_),                                                               \
                  .data_size = sizeof(struct zipccl_cluster_value),                                \
                  .mapping = {.fields = value_fields}},                                            \
        .data_offset = (uint32_t)(((id_) - (first_)) * sizeof(struct zipccl_cluster_value))        \
    }
#define SECTION(key_, fields_, first_, count_)                                                     \
    SECTION_AS(key_, fields_, first_, count_, CYAML_FLAG_DEFAULT)
#define SECTION_AS(key_, fields_, first_, count_, flags_)                                          \
    {                                                                                              \
        .key = (key_),                                                                             \
        .value = {.type = CYAML_MAPPING,                                                           \
                  .flags = (flags_),                                                               \
                  .data_size = (count_) * sizeof(struct zipccl_cluster_value),                     \
                  .mapping = {.fields = (fields_)}},                                               \
        .data_offset = (uint32_t)(offsetof(struct zipccl_cluster_yaml, values) +                   \
                                  (first_) * sizeof(struct zipccl_cluster_value))                  \
    }

static const cyaml_schema_field_t value_fields[] = {
    CYAML_FIELD_STRING_PTR("value", CYAML_FLAG_POINTER, struct zipccl_cluster_value, value, 1, 127),
    CYAML_FIELD_STRING_PTR("source", CYAML_FLAG_POINTER, struct zipccl_cluster_value, source, 1,
                           255),
    CYAML_FIELD_END};
static const cyaml_schema_field_t gpu_fields[] = {VALUE("name", KEY_GPU_NAME, KEY_GPU_NAME),
                                                  VALUE("sms", KEY_GPU_NAME, KEY_GPU_SMS),
                                                  VALUE("hbm_rate", KEY_GPU_NAME, KEY_GPU_HBM_RATE),
                                                  VALUE("memory", KEY_GPU_NAME, KEY_GPU_MEMORY),
                                                  VALUE("flops", KEY_GPU_NAME, KEY_GPU_FLOPS),
                                                  CYAML_FIELD_END};
static const cyaml_schema_field_t nvlink_fields[] = {
    VALUE("rate", KEY_NVLINK_RATE, KEY_NVLINK_RATE),
    VALUE("alpha", KEY_NVLINK_RATE, KEY_NVLINK_ALPHA), CYAML_FIELD_END};
static const cyaml_schema_field_t nic_fields[] = {
    VALUE("per_node", KEY_NIC_PER_NODE, KEY_NIC_PER_NODE),
    VALUE("rate", KEY_NIC_PER_NODE, KEY_NIC_RATE), VALUE("alpha", KEY_NIC_PER_NODE, KEY_NIC_ALPHA),
    OPTIONAL("burst", KEY_NIC_PER_NODE, KEY_NIC_BURST), CYAML_FIELD_END};
static const cyaml_schema_field_t fabric_fields[] = {
    VALUE("oversubscription", KEY_FABRIC_OVERSUBSCRIPTION, KEY_FABRIC_OVERSUBSCRIPTION),
    CYAML_FIELD_END};
static const cyaml_schema_field_t nccl_fields[] = {
    VALUE("channels", KEY_NCCL_CHANNELS, KEY_NCCL_CHANNELS), CYAML_FIELD_END};
static const cyaml_schema_field_t codec_fields[] = {
    VALUE("encode_rate", KEY_CODEC_ENCODE_RATE, KEY_CODEC_ENCODE_RATE),
    VALUE("decode_rate", KEY_CODEC_ENCODE_RATE, KEY_CODEC_DECODE_RATE),
    OPTIONAL("ratio_encode_rate", KEY_CODEC_ENCODE_RATE, KEY_CODEC_RATIO_ENCODE_RATE),
    OPTIONAL("ratio_decode_rate", KEY_CODEC_ENCODE_RATE, KEY_CODEC_RATIO_DECODE_RATE),
    VALUE("sms", KEY_CODEC_ENCODE_RATE, KEY_CODEC_SMS),
    VALUE("launch", KEY_CODEC_ENCODE_RATE, KEY_CODEC_LAUNCH),
    VALUE("fence", KEY_CODEC_ENCODE_RATE, KEY_CODEC_FENCE),
    CYAML_FIELD_END};
static const cyaml_schema_field_t compute_fields[] = {
    VALUE("hbm_share", KEY_COMPUTE_HBM_SHARE, KEY_COMPUTE_HBM_SHARE), CYAML_FIELD_END};
static const cyaml_schema_field_t reduce_fields[] = {
    VALUE("rate", KEY_REDUCE_RATE, KEY_REDUCE_RATE), CYAML_FIELD_END};
static const cyaml_schema_field_t machine_fields[] = {
    VALUE("cores", KEY_MACHINE_CORES, KEY_MACHINE_CORES), CYAML_FIELD_END};
static const cyaml_schema_field_t top_fields[] = {
    CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, struct zipccl_cluster_yaml, name, 1, 63),
    CYAML_FIELD_STRING_PTR("description", CYAML_FLAG_POINTER, struct zipccl_cluster_yaml,
                           description, 1, 255),
    SECTION("nodes", value_fields, KEY_NODES, 1),
    SECTION("gpus_per_node", value_fields, KEY_GPUS_PER_NODE, 1),
    SECTION("gpu", gpu_fields, KEY_GPU_NAME, 5),
    SECTION("nvlink", nvlink_fields, KEY_NVLINK_RATE, 2),
    SECTION("nic", nic_fields, KEY_NIC_PER_NODE, 4),
    SECTION("fabric", fabric_fields, KEY_FABRIC_OVERSUBSCRIPTION, 1),
    SECTION("nccl", nccl_fields, KEY_NCCL_CHANNELS, 1),
    SECTION("codec", codec_fields, KEY_CODEC_ENCODE_RATE, 7),
    SECTION("compute", compute_fields, KEY_COMPUTE_HBM_SHARE, 1),
    SECTION_AS("reduce", reduce_fields, KEY_REDUCE_RATE, 1, CYAML_FLAG_OPTIONAL),
    SECTION_AS("machine", machine_fields, KEY_MACHINE_CORES, 1, CYAML_FLAG_OPTIONAL),
    CYAML_FIELD_END};
static const cyaml_schema_value_t top_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct zipccl_cluster_yaml, top_fields)};

/* What libcyaml said: the first error line, then the path and place from its backtrace. */
struct load_log {
    char message[160];
    char path[128];
    unsigned line;
};

static void capture_log(cyaml_log_t level, void *context, const char *format, va_list args)
{
    struct load_log *log = context;
    char text[256], field[64], joined[128];
    const char *place;
    size_t n;

    if (level < CYAML_LOG_ERROR)
        return;
    vsnprintf(text, sizeof(text), format, args);
    n = strlen(text);
    if (n > 0 && text[n - 1] == '\n')
        text[n - 1] = 0;
    if (log->message[0] == 0) {
        snprintf(log->message, sizeof(log->message), "%.150s",
                 strncmp(text, "Load: ", 6) == 0 ? text + 6 : text);
        return;
    }
    place = strstr(text, "(line: ");
    if (place != NULL && log->line == 0)
        sscanf(place, "(line: %u", &log->line);
    place = strstr(text, "in mapping field '");
    if (place != NULL && sscanf(place, "in mapping field '%63[^']'", field) == 1) {
        snprintf(joined, sizeof(joined), "%.60s%s%.60s", field, log->path[0] ? "." : "", log->path);
        memcpy(log->path, joined, sizeof(joined));
    }
}

/* Text of a line that starts, after spaces, with the 'n' bytes of 'key' and a colon. */
static bool line_has_key(const char *text, const char *key, size_t n)
{
    return strncmp(text, key, n) == 0 && text[n] == ':';
}

/* libcyaml reports places up to one line early, so the line is looked up; 0 if not found. */
unsigned zipccl_cluster_key_line(const char *path, const char *key)
{
    const char *dot = strchr(key, '.');
    bool inside = dot == NULL;
    char text[512];
    FILE *f = fopen(path, "r");
    unsigned line = 0, found = 0;

    if (f == NULL)
        return 0;
    if (zipccl_cluster_is_plain(path)) {
        fclose(f);
        return zipccl_cluster_plain_line(path, key);
    }
    while (found == 0 && fgets(text, sizeof(text), f) != NULL) {
        size_t indent = strspn(text, " ");

        line++;
        if (dot != NULL && indent == 0)
            inside = line_has_key(text, key, (size_t)(dot - key));
        else if (inside && dot != NULL && line_has_key(text + indent, dot + 1, strlen(dot + 1)))
            found = line;
        if (dot == NULL && line_has_key(text, key, strlen(key)))
            found = line;
    }
    fclose(f);
    return found;
}

static zipccl_status unknown_key(const char *path, const struct load_log *log, const char *key,
                                 struct zipccl_error *error)
{
    char full[192];
    unsigned line;

    snprintf(full, sizeof(full), "%s%s%s", log->path, log->path[0] ? "." : "", key);
    line = zipccl_cluster_key_line(path, full);
    return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                       "%s: line %u: unknown key \"%s\"; did you mean \"%s\"?", path,
                       line ? line : log->line, full, zipccl_cluster_near_key(full));
}

/* What libcyaml calls an event, in words. */
static const char *event_words(const char *message)
{
    static const char *const words[][2] = {{"got event: SCALAR", "a single value"},
                                           {"got event: SEQUENCE_START", "a list"},
                                           {"got event: MAPPING_START", "keys of its own"}};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strstr(message, words[i][0]) != NULL)
            return words[i][1];
    return "something else";
}

/* What should stand at 'path' where keys were expected. */
static const char *expected_keys(const char *path)
{
    for (int i = 0; i < NUM_KEYS; i++)
        if (strcmp(zipccl_cluster_key_names[i], path) == 0)
            return "{value: ..., source: ...}";
    return path[0] != 0 ? "a section of keys, each written {value: ..., source: ...}"
                        : "the keys of a cluster, name: ... first";
}

/* libcyaml's message in words of the file, not of the library. */
static void reword(const struct load_log *log, cyaml_err_t err, char *out, size_t size)
{
    const char *message = log->message;
    unsigned most;

    if (strncmp(message, "Expecting MAPPING", 17) == 0)
        snprintf(out, size, "found %s, expected %s", event_words(message),
                 expected_keys(log->path));
    else if (strncmp(message, "Expecting STRING", 16) == 0)
        snprintf(out, size, "found %s, expected a text", event_words(message));
    else if (strncmp(message, "STRING length < 1", 17) == 0)
        snprintf(out, size, "found nothing, expected a text");
    else if (sscanf(message, "STRING length > %u", &most) == 1)
        snprintf(out, size, "a text of more than %u characters, expected a shorter one", most);
    else if (strncmp(message, "libyaml: ", 9) == 0)
        snprintf(out, size, "not YAML: %s", message + 9);
    else
        snprintf(out, size, "%s", message[0] != 0 ? message : cyaml_strerror(err));
}

/* Any other error: where it stands, as far as that is known. */
static zipccl_status explain_rest(const char *path, cyaml_err_t err, const struct load_log *log,
                                  struct zipccl_error *error)
{
    /* The parser fails ahead of the keys, so the last one read would mislead. */
    bool syntax = strncmp(log->message, "libyaml: ", 9) == 0, key = log->path[0] != 0 && !syntax;
    char text[256], line[48] = "";

    reword(log, err, text, sizeof(text));
    if (log->line > 0)
        snprintf(line, sizeof(line), syntax ? "near line %u: " : "line %u: ", log->line);
    return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: %s%s%s%s%s", path, line, key ? "key \"" : "",
                       key ? log->path : "", key ? "\": " : "", text);
}

static zipccl_status explain(const char *path, cyaml_err_t err, const struct load_log *log,
                             struct zipccl_error *error)
{
    const char *colon = strrchr(log->message, ':');
    const char *what = colon != NULL ? colon + 2 : "";

    if (err == CYAML_ERR_OOM)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path);
    if (err == CYAML_ERR_INVALID_KEY && strncmp(log->message, "Unexpected key", 14) == 0)
        return unknown_key(path, log, what, error);
    if (err == CYAML_ERR_MAPPING_FIELD_MISSING) {
        /* The innermost name of the backtrace is the last field read, not the parent. */
        const char *dot = strrchr(log->path, '.');

        return zipccl_fail(
            error, ZIPCCL_ERR_INPUT, "%s: key \"%.*s%s%s\" is missing%s", path,
            dot != NULL ? (int)(dot - log->path) : 0, log->path, dot != NULL ? "." : "", what,
            dot != NULL && (strcmp(what, "source") == 0 || strcmp(what, "value") == 0)
                ? "; every value is written {value: ..., source: ...}"
                : "");
    }
    if (strncmp(log->message, "Mapping field already seen", 26) == 0)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: line %u: key \"%s\" stands twice", path,
                           log->line, log->path);
    return explain_rest(path, err, log, error);
}

zipccl_status zipccl_cluster_yaml_load(const char *path, struct zipccl_cluster_yaml **out,
                                       struct zipccl_error *error)
{
    struct load_log log = {.line = 0};
    cyaml_config_t config = {.log_fn = capture_log,
                             .log_ctx = &log,
                             .mem_fn = cyaml_mem,
                             .log_level = CYAML_LOG_ERROR,
                             .flags = CYAML_CFG_DEFAULT};
    struct zipccl_cluster_yaml *yaml = NULL;
    cyaml_err_t err;

    ZIPCCL_TRY(zipccl_yaml_check_file(path, "a cluster", "one cluster", error));
    if (zipccl_cluster_is_plain(path))
        return zipccl_cluster_plain_load(path, out, error);
    err = cyaml_load_file(path, &config, &top_schema, (cyaml_data_t **)&yaml, NULL);
    if (err == CYAML_ERR_FILE_OPEN)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: %s", path, strerror(errno));
    if (err != CYAML_OK)
        return explain(path, err, &log, error);
    if (yaml == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: empty; expected a cluster in YAML", path);
    *out = yaml;
    return ZIPCCL_OK;
}

void zipccl_cluster_yaml_free(struct zipccl_cluster_yaml *yaml)
{
    cyaml_config_t config = {.mem_fn = cyaml_mem, .log_level = CYAML_LOG_ERROR};

    if (yaml != NULL)
        cyaml_free(&config, &top_schema, yaml, 0);
}

#endif

/* Levenshtein distance of short names. */
static unsigned distance(const char *a, const char *b)
{
    unsigned row[64];
    size_t n = strlen(b);

    if (n >= 64)
        return 1000;
    for (size_t j = 0; j <= n; j++)
        row[j] = (unsigned)j;
    for (size_t i = 1; *a != 0; a++, i++) {
        unsigned diagonal = row[0];

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= n; j++) {
            unsigned up = row[j], best = diagonal + (*a != b[j - 1]);

            if (up + 1 < best)
                best = up + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            diagonal = up;
            row[j] = best;
        }
    }
    return row[n];
}

const char *zipccl_cluster_near_key(const char *key)
{
    const char *best = zipccl_cluster_key_names[0];
    unsigned best_distance = 1000;

    for (size_t i = 0; i < NUM_KEYS; i++) {
        const char *name = zipccl_cluster_key_names[i];
        unsigned d = distance(key, name);
        char section[32];

        /* A name without a dot may be meant for a section: compare with that as well. */
        if (strchr(key, '.') == NULL && strchr(name, '.') != NULL) {
            snprintf(section, sizeof(section), "%.*s", (int)(strchr(name, '.') - name), name);
            d = distance(key, section) < d ? distance(key, section) : d;
        }

        if (d < best_distance) {
            best_distance = d;
            best = name;
        }
    }
    return best;
}
