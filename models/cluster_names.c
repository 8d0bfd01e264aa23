/*
 * cluster_names.c - the clusters of a folder by name, and what to say of a name that is not there
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "models/cluster_keys.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CLUSTERS 1024

static const char suffix[] = ".yaml";

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "laptop" of "laptop.yaml"; NULL for other files, and with '*nomem' true where memory ran out. */
static char *name_of(const char *file, bool *nomem)
{
    size_t n = strlen(file), tail = sizeof suffix - 1;
    char *name;

    if (n <= tail || file[0] == '.' || strcmp(file + n - tail, suffix) != 0)
        return NULL;
    name = malloc(n - tail + 1);
    *nomem = name == NULL;
    if (name != NULL) {
        memcpy(name, file, n - tail);
        name[n - tail] = '\0';
    }
    return name;
}

zipccl_status zipccl_cluster_names(const char *search_dir, char ***out, size_t *n,
                                   struct zipccl_error *error)
{
    char **names = calloc(MAX_CLUSTERS, sizeof *names);
    DIR *dir = opendir(search_dir);
    struct dirent *entry;
    bool nomem = names == NULL;
    size_t found = 0;

    if (dir == NULL) {
        free(names);
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: %s", search_dir, strerror(errno));
    }
    while (!nomem && found < MAX_CLUSTERS && (entry = readdir(dir)) != NULL) {
        names[found] = name_of(entry->d_name, &nomem);
        found += names[found] != NULL;
    }
    closedir(dir);
    if (nomem) {
        zipccl_cluster_names_free(names, found);
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "clusters: out of memory");
    }
    qsort(names, found, sizeof *names, compare_names);
    *out = names;
    *n = found;
    return ZIPCCL_OK;
}

void zipccl_cluster_names_free(char **names, size_t n)
{
    for (size_t i = 0; names != NULL && i < n; i++)
        free(names[i]);
    free(names);
}

zipccl_status zipccl_cluster_unknown(const char *name, const char *search_dir,
                                     struct zipccl_error *error)
{
    char list[240] = "";
    char **names;
    size_t n, used = 0;

    ZIPCCL_TRY(zipccl_cluster_names(search_dir, &names, &n, error));
    for (size_t i = 0; i < n && used < sizeof list; i++)
        used +=
            (size_t)snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", names[i]);
    zipccl_cluster_names_free(names, n);
    return zipccl_fail(error, ZIPCCL_ERR_INPUT,
                       "no cluster is named \"%.60s\"; there are: %s ('zipccl cluster list'). A "
                       "file is given as ./FILE or FILE.yaml",
                       name, used > 0 ? list : "none");
}
