/*
 * cluster_write.c - a cluster as the YAML file that says it
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/cluster.h"

#include <math.h>
#include <string.h>

/* A double-quoted scalar; texts have no control characters. */
static void put_quoted(const char *text, FILE *out)
{
    fputc('"', out);
    for (; *text != '\0'; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', out);
        fputc(*text, out);
    }
    fputc('"', out);
}

static void put_value(const char *name, const struct zipccl_cluster_setting *s, FILE *out)
{
    fprintf(out, "%s: {value: ", name);
    if (isnan(s->value))
        put_quoted(s->text, out);
    else
        fputs(s->text, out);
    fputs(", source: ", out);
    put_quoted(s->source, out);
    fputs("}\n", out);
}

zipccl_status zipccl_cluster_write(const struct zipccl_cluster_file *file, FILE *out,
                                   struct zipccl_error *error)
{
    const struct zipccl_cluster_setting *settings;
    struct zipccl_cluster cluster;
    const char *section = "";
    size_t n;

    ZIPCCL_TRY(zipccl_cluster_get(file, &cluster, error));
    settings = zipccl_cluster_settings(file, &n);
    fputs("name: ", out);
    put_quoted(cluster.name, out);
    fputs("\ndescription: ", out);
    put_quoted(cluster.description, out);
    fputc('\n', out);
    for (size_t i = 0; i < n; i++) {
        const char *dot = strchr(settings[i].key, '.');
        size_t length = dot != NULL ? (size_t)(dot - settings[i].key) : 0;

        if (settings[i].text == NULL)
            continue;
        if (dot == NULL) {
            put_value(settings[i].key, &settings[i], out);
            continue;
        }
        if (strlen(section) < length || strncmp(section, settings[i].key, length + 1) != 0)
            fprintf(out, "%.*s:\n", (int)length, settings[i].key);
        section = settings[i].key;
        fputs("  ", out);
        put_value(dot + 1, &settings[i], out);
    }
    return ZIPCCL_OK;
}
