/*
 * cluster_plain.c - reads a cluster as plain text, the only form that builds without libcyaml read
 *
 * A line has a key, its value and where that is from, with tabs between, as 'zipccl cluster plain'
 * prints them; lines that start with '#' and empty ones say nothing.  Without libcyaml it stands for
 * cluster_yaml.c; what values mean is cluster.c's business.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/regular_file.h"
#include "models/cluster_keys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef ZIPCCL_NO_YAML
#define WITHOUT_YAML ": this build has no YAML and reads what 'zipccl cluster plain NAME' prints"
#else
#define WITHOUT_YAML ", as in what 'zipccl cluster plain NAME' prints"
#endif

static char *copy_text(const char *text)
{
    size_t n = strlen(text) + 1;
    char *copy = malloc(n);

    if (copy != NULL)
        memcpy(copy, text, n);
    return copy;
}

/* Where the text of 'key' goes; NULL for a key that there is not.  '*source' NULL: it has none. */
static char **slot_of(struct zipccl_cluster_yaml *yaml, const char *key, char ***source)
{
    *source = NULL;
    if (strcmp(key, "name") == 0)
        return &yaml->name;
    if (strcmp(key, "description") == 0)
        return &yaml->description;
    for (int i = 0; i < NUM_KEYS; i++)
        if (strcmp(key, zipccl_cluster_key_names[i]) == 0) {
            *source = &yaml->values[i].source;
            return &yaml->values[i].value;
        }
    return NULL;
}

/* Cut 'text' at its first tab; what follows, or NULL. */
static char *cut(char *text)
{
    char *tab = strchr(text, '\t');

    if (tab == NULL)
        return NULL;
    *tab = '\0';
    return tab + 1;
}

static zipccl_status take_line(struct zipccl_cluster_yaml *yaml, const char *path, unsigned line,
                               char *key, struct zipccl_error *error)
{
    char *value = cut(key), *source = value != NULL ? cut(value) : NULL;
    char **slot, **source_slot;

    if (value == NULL || *value == '\0')
        return zipccl_fail(
            error, ZIPCCL_ERR_INPUT,
            "%s: line %u: \"%.60s\", expected a key, a tab and its value" WITHOUT_YAML, path, line,
            key);
    slot = slot_of(yaml, key, &source_slot);
    if (slot == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%s: line %u: unknown key \"%.60s\"; did you mean \"%s\"?", path, line,
                           key, zipccl_cluster_near_key(key));
    if (*slot != NULL)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: line %u: key \"%s\" is there twice", path,
                           line, key);
    if (source_slot != NULL && (source == NULL || *source == '\0'))
        return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                           "%s: line %u: key \"%s\" has no source, expected one behind a tab", path,
                           line, key);
    *slot = copy_text(value);
    if (source_slot != NULL)
        *source_slot = copy_text(source);
    if (*slot == NULL || (source_slot != NULL && *source_slot == NULL))
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path);
    return ZIPCCL_OK;
}

static zipccl_status read_lines(struct zipccl_cluster_yaml *yaml, const char *path, FILE *in,
                                struct zipccl_error *error)
{
    char text[512];

    for (unsigned line = 1; fgets(text, sizeof text, in) != NULL; line++) {
        size_t n = strcspn(text, "\r\n");

        if (text[n] == '\0' && n + 1 == sizeof text)
            return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: line %u: more than %zu characters",
                               path, line, n);
        text[n] = '\0';
        if (n > 0 && text[0] != '#')
            ZIPCCL_TRY(take_line(yaml, path, line, text, error));
    }
    return ferror(in) ? zipccl_fail(error, ZIPCCL_ERR_IO, "%s: %s", path, strerror(errno))
                      : ZIPCCL_OK;
}

/* What a cluster cannot do without; other keys may be left out. */
static zipccl_status check_all_there(const struct zipccl_cluster_yaml *yaml, const char *path,
                                     struct zipccl_error *error)
{
    static const enum zipccl_cluster_key_id needed[] = {KEY_NODES,
                                                        KEY_GPUS_PER_NODE,
                                                        KEY_GPU_NAME,
                                                        KEY_GPU_SMS,
                                                        KEY_GPU_HBM_RATE,
                                                        KEY_GPU_MEMORY,
                                                        KEY_GPU_FLOPS,
                                                        KEY_NVLINK_RATE,
                                                        KEY_NVLINK_ALPHA,
                                                        KEY_NIC_PER_NODE,
                                                        KEY_NIC_RATE,
                                                        KEY_NIC_ALPHA,
                                                        KEY_NCCL_CHANNELS,
                                                        KEY_CODEC_ENCODE_RATE,
                                                        KEY_CODEC_DECODE_RATE,
                                                        KEY_CODEC_SMS,
                                                        KEY_CODEC_LAUNCH,
                                                        KEY_CODEC_FENCE,
                                                        KEY_FABRIC_OVERSUBSCRIPTION,
                                                        KEY_COMPUTE_HBM_SHARE};
    const char *missing = yaml->name == NULL          ? "name"
                          : yaml->description == NULL ? "description"
                                                      : NULL;

    for (size_t i = 0; i < sizeof needed / sizeof needed[0] && missing == NULL; i++)
        if (yaml->values[needed[i]].value == NULL)
            missing = zipccl_cluster_key_names[needed[i]];
    if (missing == NULL)
        return ZIPCCL_OK;
    return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: key \"%s\" is missing", path, missing);
}

static void free_yaml(struct zipccl_cluster_yaml *yaml)
{
    if (yaml == NULL)
        return;
    for (int i = 0; i < NUM_KEYS; i++) {
        free(yaml->values[i].value);
        free(yaml->values[i].source);
    }
    free(yaml->name);
    free(yaml->description);
    free(yaml);
}

zipccl_status zipccl_cluster_plain_load(const char *path, struct zipccl_cluster_yaml **out,
                                        struct zipccl_error *error)
{
    struct zipccl_cluster_yaml *yaml;
    zipccl_status status;
    FILE *in;

    ZIPCCL_TRY(zipccl_open_regular(path, &in, error));
    yaml = calloc(1, sizeof *yaml);
    status = yaml == NULL ? zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path)
                          : read_lines(yaml, path, in, error);
    fclose(in);
    if (status == ZIPCCL_OK)
        status = check_all_there(yaml, path, error);
    if (status != ZIPCCL_OK) {
        free_yaml(yaml);
        return status;
    }
    *out = yaml;
    return ZIPCCL_OK;
}

bool zipccl_cluster_is_plain(const char *path)
{
    struct zipccl_cluster_yaml none;
    struct zipccl_error error;
    char text[512], **source;
    bool plain = false;
    FILE *in = NULL;

    if (zipccl_open_regular(path, &in, &error) != ZIPCCL_OK)
        return false;
    while (fgets(text, sizeof text, in) != NULL) {
        if (text[0] == '#' || text[strspn(text, "\r\n")] == '\0')
            continue;
        plain = cut(text) != NULL && slot_of(&none, text, &source) != NULL;
        break;
    }
    fclose(in);
    return plain;
}

unsigned zipccl_cluster_plain_line(const char *path, const char *key)
{
    size_t n = strlen(key);
    FILE *in = fopen(path, "r");
    unsigned line = 0, found = 0;
    char text[512];

    if (in == NULL)
        return 0;
    while (found == 0 && fgets(text, sizeof text, in) != NULL) {
        line++;
        if (strncmp(text, key, n) == 0 && text[n] == '\t')
            found = line;
    }
    fclose(in);
    return found;
}

#ifdef ZIPCCL_NO_YAML
zipccl_status zipccl_cluster_yaml_load(const char *path, struct zipccl_cluster_yaml **out,
                                       struct zipccl_error *error)
{
    return zipccl_cluster_plain_load(path, out, error);
}

void zipccl_cluster_yaml_free(struct zipccl_cluster_yaml *yaml)
{
    free_yaml(yaml);
}

unsigned zipccl_cluster_key_line(const char *path, const char *key)
{
    return zipccl_cluster_plain_line(path, key);
}
#endif
