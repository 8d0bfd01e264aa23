/*
 * flat_yaml.c - a YAML file of keys and single values or lists, read with libcyaml
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/flat_yaml.h"

#include "models/yaml_file.h"

#include <cyaml/cyaml.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The first error that libcyaml logs, and the first line and key it names. */
struct load_log {
    char message[160], key[64];
    unsigned line;
};

struct schema {
    cyaml_schema_field_t fields[ZIPCCL_FLAT_YAML_MAX_KEYS + 1];
    cyaml_schema_value_t top;
};

static void capture_log(cyaml_log_t level, void *context, const char *format, va_list args)
{
    struct load_log *log = context;
    const char *place;
    char text[256];

    if (level < CYAML_LOG_ERROR)
        return;
    vsnprintf(text, sizeof text, format, args);
    text[strcspn(text, "\n")] = 0;
    if (log->message[0] == 0)
        snprintf(log->message, sizeof log->message, "%.150s",
                 strncmp(text, "Load: ", 6) == 0 ? text + 6 : text);
    place = strstr(text, "(line: ");
    if (place != NULL && log->line == 0)
        sscanf(place, "(line: %u", &log->line);
    place = strstr(text, "in mapping field '");
    if (place != NULL && log->key[0] == 0)
        sscanf(place, "in mapping field '%63[^']", log->key);
}

/* libcyaml sees the array of values as a struct of strings. */
static void make_schema(struct schema *s, const char *const *keys, size_t n)
{
    memset(s, 0, sizeof *s);
    for (size_t i = 0; i < n; i++)
        s->fields[i] = (cyaml_schema_field_t){
            .key = keys[i],
            .value = {.type = CYAML_STRING,
                      .flags = (enum cyaml_flag)(CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL),
                      .data_size = sizeof(char),
                      .string = {.min = 1, .max = 255}},
            .data_offset = (uint32_t)(i * sizeof(char *))};
    s->top = (cyaml_schema_value_t){.type = CYAML_MAPPING,
                                    .flags = CYAML_FLAG_POINTER,
                                    .data_size = (uint32_t)(n * sizeof(char *)),
                                    .mapping = {.fields = s->fields}};
}

/* Whether a line begins with 'key', in quotes or without, and a colon. */
static bool has_key(const char *text, const char *key)
{
    size_t n = strlen(key);
    char quote;

    text += strspn(text, " {");
    quote = *text == '"' || *text == '\'' ? *text++ : '\0';
    if (strncmp(text, key, n) != 0 || (quote != '\0' && text[n] != quote))
        return false;
    text += n + (quote != '\0');
    return text[strspn(text, " ")] == ':';
}

unsigned zipccl_flat_yaml_line(const char *path, const char *key)
{
    FILE *f = fopen(path, "r");
    unsigned line = 0, found = 0;
    bool line_start = true;
    char text[512];

    if (f == NULL)
        return 0;
    while (found == 0 && fgets(text, sizeof text, f) != NULL) {
        line += line_start;
        if (line_start && has_key(text, key))
            found = line;
        line_start = strchr(text, '\n') != NULL;
    }
    fclose(f);
    return found;
}

static zipccl_status explain(const char *path, const char *what, const char *docs, cyaml_err_t err,
                             const struct load_log *log, struct zipccl_error *error)
{
    const char *colon = strrchr(log->message, ':'), *name = colon != NULL ? colon + 2 : "";
    unsigned line = 0;

    if (err == CYAML_ERR_OOM)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%.200s: out of memory", path);
    if (err == CYAML_ERR_INVALID_KEY && strncmp(log->message, "Unexpected key", 14) == 0) {
        line = zipccl_flat_yaml_line(path, name);
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%.200s: line %u: unknown key \"%.60s\" in %s; %s lists the keys", path,
                           line > 0 ? line : log->line, name, what, docs);
    }
    if (log->line > 0)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%.200s: near line %u: %s; expected %s", path,
                           log->line, log->message, what);
    return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%.200s: %s; expected %s", path,
                       log->message[0] != 0 ? log->message : cyaml_strerror(err), what);
}

zipccl_status zipccl_flat_yaml_load(const char *path, const char *what, const char *const *keys,
                                    size_t n, struct zipccl_flat_yaml *out,
                                    struct zipccl_error *error)
{
    struct load_log log = {.line = 0};
    cyaml_config_t config = {.log_fn = capture_log,
                             .log_ctx = &log,
                             .mem_fn = cyaml_mem,
                             .log_level = CYAML_LOG_ERROR,
                             .flags = CYAML_CFG_DEFAULT};
    struct schema schema;
    char **values = NULL;
    cyaml_err_t err;

    if (n > ZIPCCL_FLAT_YAML_MAX_KEYS)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "zipccl_flat_yaml_load: too many keys");
    ZIPCCL_TRY(zipccl_yaml_check_file(path, what, "one", error));
    make_schema(&schema, keys, n);
    err = cyaml_load_file(path, &config, &schema.top, (cyaml_data_t **)&values, NULL);
    if (err == CYAML_ERR_FILE_OPEN)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%.200s: %s", path, strerror(errno));
    if (err != CYAML_OK)
        return explain(path, what, "docs/generating.md", err, &log, error);
    if (values == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%.200s: empty; expected %s in YAML", path,
                           what);
    out->n = n;
    out->values = values;
    return ZIPCCL_OK;
}

void zipccl_flat_yaml_free(struct zipccl_flat_yaml *yaml)
{
    static const cyaml_config_t config = {.mem_fn = cyaml_mem, .log_level = CYAML_LOG_ERROR};

    /* The memory is libcyaml's: one block for the array, one for each text. */
    for (size_t i = 0; yaml->values != NULL && i < yaml->n; i++)
        config.mem_fn(config.mem_ctx, yaml->values[i], 0);
    if (yaml->values != NULL)
        config.mem_fn(config.mem_ctx, yaml->values, 0);
    memset(yaml, 0, sizeof *yaml);
}

/* libcyaml sees an array of these as a struct. */
struct slot {
    void *data; /* char *, or char ** of a list */
    uint64_t n;
};

struct list_schema {
    cyaml_schema_value_t entry;
    cyaml_schema_field_t fields[ZIPCCL_LIST_YAML_MAX_KEYS + 1];
    cyaml_schema_value_t top;
    bool list[ZIPCCL_LIST_YAML_MAX_KEYS];
};

/* 's->list' tells which keys have lists. */
static void make_list_schema(struct list_schema *s, const char *const *keys, size_t n)
{
    s->entry = (cyaml_schema_value_t){.type = CYAML_STRING,
                                      .flags = CYAML_FLAG_POINTER,
                                      .data_size = sizeof(char),
                                      .string = {.min = 1, .max = 255}};
    for (size_t i = 0; i < n; i++) {
        cyaml_schema_field_t *field = &s->fields[i];

        *field = (cyaml_schema_field_t){
            .key = keys[i], .value = s->entry, .data_offset = (uint32_t)(i * sizeof(struct slot))};
        field->value.flags = (enum cyaml_flag)(CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL);
        if (!s->list[i])
            continue;
        field->value.type = CYAML_SEQUENCE;
        field->value.data_size = sizeof(char *);
        field->value.sequence.entry = &s->entry;
        field->value.sequence.min = 0;
        field->value.sequence.max = ZIPCCL_LIST_YAML_MAX_VALUES;
        field->count_offset = (uint32_t)(i * sizeof(struct slot) + offsetof(struct slot, n));
        field->count_size = sizeof(uint64_t);
    }
    s->top = (cyaml_schema_value_t){.type = CYAML_MAPPING,
                                    .flags = CYAML_FLAG_POINTER,
                                    .data_size = (uint32_t)(n * sizeof(struct slot)),
                                    .mapping = {.fields = s->fields}};
}

/* Take texts over from libcyaml, whose memory they stay. */
static zipccl_status take_slots(const struct list_schema *s, const struct slot *slots,
                                struct zipccl_list_yaml *out)
{
    for (size_t i = 0; i < out->n; i++) {
        struct zipccl_list_yaml_entry *entry = &out->entries[i];

        if (slots[i].data == NULL) {
            /* An empty list has no memory, but stands in the file. */
            entry->given = s->list[i];
            continue;
        }
        entry->given = true;
        entry->n = s->list[i] ? (size_t)slots[i].n : 1;
        entry->values = s->list[i] ? slots[i].data : malloc(sizeof *entry->values);
        if (entry->values == NULL)
            return ZIPCCL_ERR_NOMEM;
        if (!s->list[i])
            entry->values[0] = slots[i].data;
    }
    return ZIPCCL_OK;
}

/* After an error: whether it was a list behind a key that was taken for a text; it is a list from then on. */
static bool turn_to_list(struct list_schema *s, const char *const *keys, size_t n,
                         const struct load_log *log)
{
    size_t i = 0;

    if (strcmp(log->message, "Expecting STRING, got event: SEQUENCE_START") != 0)
        return false;
    while (i < n && strcmp(keys[i], log->key) != 0)
        i++;
    if (i == n || s->list[i])
        return false;
    s->list[i] = true;
    return true;
}

/* libcyaml has to be told what is a list: what turns out to be one is so when the file is read again. */
static cyaml_err_t load_lists(const char *path, const char *const *keys, size_t n,
                              struct list_schema *schema, struct slot **slots, struct load_log *log)
{
    cyaml_config_t config = {.log_fn = capture_log,
                             .log_ctx = log,
                             .mem_fn = cyaml_mem,
                             .log_level = CYAML_LOG_ERROR,
                             .flags = CYAML_CFG_DEFAULT};
    cyaml_err_t err;

    memset(schema, 0, sizeof *schema);
    do {
        memset(log, 0, sizeof *log);
        *slots = NULL;
        make_list_schema(schema, keys, n);
        err = cyaml_load_file(path, &config, &schema->top, (cyaml_data_t **)slots, NULL);
    } while (err != CYAML_OK && turn_to_list(schema, keys, n, log));
    return err;
}

zipccl_status zipccl_list_yaml_load(const char *path, const char *what, const char *docs,
                                    const char *const *keys, size_t n, struct zipccl_list_yaml *out,
                                    struct zipccl_error *error)
{
    struct zipccl_list_yaml yaml = {.n = n};
    struct list_schema schema;
    struct slot *slots = NULL;
    zipccl_status status = ZIPCCL_OK;
    struct load_log log;
    cyaml_err_t err;

    if (n > ZIPCCL_LIST_YAML_MAX_KEYS)
        return zipccl_fail(error, ZIPCCL_ERR_ARG, "zipccl_list_yaml_load: too many keys");
    ZIPCCL_TRY(zipccl_yaml_check_file(path, what, "one", error));
    yaml.entries = calloc(n, sizeof *yaml.entries);
    if (yaml.entries == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%.200s: out of memory", path);
    for (size_t i = 0; i < n; i++)
        yaml.entries[i].line = zipccl_flat_yaml_line(path, keys[i]);
    err = load_lists(path, keys, n, &schema, &slots, &log);
    if (err == CYAML_ERR_FILE_OPEN)
        status = zipccl_fail(error, ZIPCCL_ERR_IO, "%.200s: %s", path, strerror(errno));
    else if (err != CYAML_OK)
        status = explain(path, what, docs, err, &log, error);
    else if (slots == NULL)
        status =
            zipccl_fail(error, ZIPCCL_ERR_INPUT, "%.200s: empty; expected %s in YAML", path, what);
    else if (take_slots(&schema, slots, &yaml) != ZIPCCL_OK)
        status = zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%.200s: out of memory", path);
    free(slots); /* cyaml_mem() is realloc() and free() */
    if (status != ZIPCCL_OK) {
        zipccl_list_yaml_free(&yaml);
        return status;
    }
    *out = yaml;
    return ZIPCCL_OK;
}

void zipccl_list_yaml_free(struct zipccl_list_yaml *yaml)
{
    for (size_t i = 0; yaml->entries != NULL && i < yaml->n; i++) {
        for (size_t k = 0; k < yaml->entries[i].n && yaml->entries[i].values != NULL; k++)
            free(yaml->entries[i].values[k]);
        free(yaml->entries[i].values);
    }
    free(yaml->entries);
    memset(yaml, 0, sizeof *yaml);
}
