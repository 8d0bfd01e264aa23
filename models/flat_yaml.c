/*
 * flat_yaml.c - a YAML file of keys and single values, read with libcyaml
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

/* The first error that libcyaml logs, and the first line it names. */
struct load_log {
    char message[160];
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

unsigned zipccl_flat_yaml_line(const char *path, const char *key)
{
    FILE *f = fopen(path, "r");
    size_t n = strlen(key);
    unsigned line = 0, found = 0;
    char text[512];

    if (f == NULL)
        return 0;
    while (found == 0 && fgets(text, sizeof text, f) != NULL) {
        line++;
        if (strncmp(text, key, n) == 0 && text[n] == ':')
            found = line;
    }
    fclose(f);
    return found;
}

static zipccl_status explain(const char *path, const char *what, cyaml_err_t err,
                             const struct load_log *log, struct zipccl_error *error)
{
    const char *colon = strrchr(log->message, ':'), *name = colon != NULL ? colon + 2 : "";
    unsigned line = 0;

    if (err == CYAML_ERR_OOM)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%.200s: out of memory", path);
    if (err == CYAML_ERR_INVALID_KEY && strncmp(log->message, "Unexpected key", 14) == 0) {
        line = zipccl_flat_yaml_line(path, name);
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%.200s: line %u: unknown key \"%.60s\" in %s; docs/generating.md lists "
                           "the keys",
                           path, line > 0 ? line : log->line, name, what);
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
        return explain(path, what, err, &log, error);
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
