/*
 * import_files.c - the files of a folder that an importer would read
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/import.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool ends_in(const char *name, const char *ending)
{
    size_t n = strlen(name), m = strlen(ending);

    return n > m && strcmp(name + n - m, ending) == 0;
}

/* What one folder has of several ranks: files of the profiler, execution traces. */
static bool is_input(const char *name)
{
    static const char *const endings[] = {".json", ".json.gz", ".et", ".et.gz"};

    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++)
        if (name[0] != '.' && ends_in(name, endings[i]))
            return true;
    return false;
}

static int compare(const void *a, const void *b)
{
    char *const *x = a, *const *y = b;

    return strcmp(*x, *y);
}

static zipccl_status add(const char *folder, const char *name, char ***files, size_t *n,
                         struct zipccl_error *error)
{
    size_t room = strlen(folder) + (name != NULL ? strlen(name) + 1 : 0) + 1;
    char **more = realloc(*files, (*n + 1) * sizeof *more);

    if (more != NULL) {
        *files = more;
        more[*n] = malloc(room);
    }
    if (more == NULL || more[*n] == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", folder);
    snprintf(more[(*n)++], room, "%s%s%s", folder, name != NULL ? "/" : "",
             name != NULL ? name : "");
    return ZIPCCL_OK;
}

zipccl_status zipccl_import_files(const char *path, char ***files, size_t *n,
                                  struct zipccl_error *error)
{
    zipccl_status status = ZIPCCL_OK;
    const struct dirent *entry;
    struct stat info;
    DIR *folder;

    *files = NULL;
    *n = 0;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return add(path, NULL, files, n, error);
    folder = opendir(path);
    if (folder == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: %s", path, strerror(errno));
    while (status == ZIPCCL_OK && (entry = readdir(folder)) != NULL)
        if (is_input(entry->d_name))
            status = add(path, entry->d_name, files, n, error);
    closedir(folder);
    ZIPCCL_TRY(status);
    if (*n == 0)
        return zipccl_fail(
            error, ZIPCCL_ERR_INPUT,
            "%s: a folder without .json, .json.gz, .et or .et.gz files, expected one "
            "or more",
            path);
    qsort(*files, *n, sizeof **files, compare);
    return ZIPCCL_OK;
}

void zipccl_import_files_free(char **files, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(files[i]);
    free(files);
}
