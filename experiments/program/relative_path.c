/*
 * relative_path.c - a path as seen from another folder
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/program/relative_path.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Append the names of 'path' to 'out' ("/a/b"), with "." and ".." taken out. */
static int append(char out[PATH_MAX], const char *path)
{
    size_t n = strlen(out);

    while (*path != '\0') {
        size_t length = strcspn(path, "/");

        if (length == 2 && strncmp(path, "..", 2) == 0) {
            char *slash = strrchr(out, '/');

            n = slash != NULL ? (size_t)(slash - out) : 0;
        } else if (length > 0 && !(length == 1 && path[0] == '.')) {
            if (n + length + 2 > PATH_MAX)
                return -1;
            out[n++] = '/';
            memcpy(out + n, path, length);
            n += length;
        }
        out[n] = '\0';
        path += length;
        path += strspn(path, "/");
    }
    return 0;
}

static zipccl_status absolute(const char *path, char out[PATH_MAX], struct zipccl_error *error)
{
    char folder[PATH_MAX] = "";

    out[0] = '\0';
    if (path[0] != '/' && getcwd(folder, sizeof folder) == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "the current folder: %s", strerror(errno));
    if (append(out, folder) != 0 || append(out, path) != 0)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%.200s: path is too long", path);
    return ZIPCCL_OK;
}

/* From 'folder' to 'target', both absolute and without dots. */
static zipccl_status between(const char *path, const char *folder, const char *target, char *out,
                             size_t size, struct zipccl_error *error)
{
    size_t same = 0, n = 0;

    /* The names that both begin with. */
    for (size_t i = 0; folder[i] == target[i] || (folder[i] == '\0' && target[i] == '/'); i++) {
        if (folder[i] == '\0' || target[i] == '/')
            same = i;
        if (folder[i] == '\0' || target[i] == '\0')
            break;
    }
    out[0] = '\0';
    for (const char *p = folder + same; *p != '\0'; p++)
        if (*p == '/' && n + 4 < size)
            n += (size_t)snprintf(out + n, size - n, "../");
    if (snprintf(out + n, size - n, "%s", target + same + 1) >= (int)(size - n))
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%.200s: path is too long", path);
    return ZIPCCL_OK;
}

zipccl_status zipccl_relative_path(const char *path, const char *from, char *out, size_t size,
                                   struct zipccl_error *error)
{
    char target[PATH_MAX], folder[PATH_MAX];

    if (path[0] == '/')
        return snprintf(out, size, "%s", path) < (int)size
                   ? ZIPCCL_OK
                   : zipccl_fail(error, ZIPCCL_ERR_IO, "%.200s: path is too long", path);
    ZIPCCL_TRY(absolute(path, target, error));
    ZIPCCL_TRY(absolute(from, folder, error));
    char *file = strrchr(folder, '/');
    if (file != NULL)
        *file = '\0';
    return between(path, folder, target, out, size, error);
}

zipccl_status zipccl_relative_real_path(const char *path, const char *from, char *out, size_t size,
                                        struct zipccl_error *error)
{
    char target[PATH_MAX], folder[PATH_MAX], above[PATH_MAX];
    const char *slash = strrchr(from, '/');
    int n = slash == NULL ? 1 : slash == from ? 1 : (int)(slash - from);

    if (snprintf(above, sizeof above, "%.*s", n, slash == NULL ? "." : from) >= (int)sizeof above)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%.200s: path is too long", from);
    if (realpath(path, target) == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%.200s: %s", path, strerror(errno));
    if (realpath(above, folder) == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%.200s: %s", above, strerror(errno));
    if (folder[1] == '\0')
        folder[0] = '\0';
    return between(path, folder, target, out, size, error);
}
