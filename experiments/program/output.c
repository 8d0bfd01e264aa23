/*
 * output.c - result files that appear whole or not at all
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/program/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* realpath() without XSI: the target of a link, or the path itself where nothing exists yet. */
static zipccl_status resolve(struct zipccl_output *output, struct zipccl_error *error)
{
    char link[sizeof output->target];
    struct stat info;

    if (snprintf(output->target, sizeof output->target, "%s", output->path) >=
        (int)sizeof output->target)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "output path is too long");
    for (int depth = 0; lstat(output->target, &info) == 0 && S_ISLNK(info.st_mode); depth++) {
        ssize_t n = readlink(output->target, link, sizeof link - 1);
        char *slash = strrchr(output->target, '/');
        size_t head = slash != NULL ? (size_t)(slash - output->target) + 1 : 0;

        if (n < 0 || depth > 32)
            return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: cannot write: broken link", output->path);
        link[n] = '\0';
        if (link[0] == '/')
            head = 0;
        if (head + (size_t)n >= sizeof output->target)
            return zipccl_fail(error, ZIPCCL_ERR_IO, "output path is too long");
        memcpy(output->target + head, link, (size_t)n + 1);
    }
    return ZIPCCL_OK;
}

static zipccl_status open_partial(struct zipccl_output *output, struct zipccl_error *error)
{
    snprintf(output->partial, sizeof output->partial, "%s.%ld.tmp", output->target, (long)getpid());
    int fd = open(output->partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

    output->file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (output->file == NULL) {
        int reason = errno;

        if (fd >= 0) {
            close(fd);
            unlink(output->partial);
        }
        output->partial[0] = '\0';
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: cannot write: %s", output->path,
                           strerror(reason));
    }
    return ZIPCCL_OK;
}

zipccl_status zipccl_output_check(struct zipccl_output *output, const char *path,
                                  struct zipccl_error *error)
{
    struct stat info;

    memset(output, 0, sizeof *output);
    if (path == NULL)
        return ZIPCCL_OK;
    if (path[0] == '\0')
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "an output path is empty");
    output->path = path;
    output->standard = output->direct = strcmp(path, "-") == 0;
    if (output->standard)
        return ZIPCCL_OK;
    ZIPCCL_TRY(resolve(output, error));
    if (stat(output->target, &info) == 0) {
        if (S_ISDIR(info.st_mode))
            return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: cannot write: it is a folder", path);
        if (access(output->target, W_OK) != 0)
            return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: cannot write: %s", path, strerror(errno));
        output->direct = !S_ISREG(info.st_mode);
    }
    if (output->direct)
        return ZIPCCL_OK;
    ZIPCCL_TRY(open_partial(output, error));
    zipccl_output_discard(output);
    return ZIPCCL_OK;
}

/* Two names of one file that exists, or of one place in one folder. */
static bool same_place(const char *a, const char *b)
{
    char folder_a[PATH_MAX], folder_b[PATH_MAX];
    struct stat info_a, info_b;
    bool exists_a = stat(a, &info_a) == 0, exists_b = stat(b, &info_b) == 0;

    if (exists_a && exists_b)
        return info_a.st_dev == info_b.st_dev && info_a.st_ino == info_b.st_ino;
    if (exists_a != exists_b)
        return false;
    const char *slash_a = strrchr(a, '/'), *slash_b = strrchr(b, '/');
    if (strcmp(slash_a != NULL ? slash_a + 1 : a, slash_b != NULL ? slash_b + 1 : b) != 0)
        return false;
    snprintf(folder_a, sizeof folder_a, "%.*s", slash_a != NULL ? (int)(slash_a - a) + 1 : 2,
             slash_a != NULL ? a : "./");
    snprintf(folder_b, sizeof folder_b, "%.*s", slash_b != NULL ? (int)(slash_b - b) + 1 : 2,
             slash_b != NULL ? b : "./");
    return stat(folder_a, &info_a) == 0 && stat(folder_b, &info_b) == 0 &&
           info_a.st_dev == info_b.st_dev && info_a.st_ino == info_b.st_ino;
}

bool zipccl_output_is(const struct zipccl_output *output, const char *path)
{
    return output->path != NULL && path != NULL && !output->direct &&
           same_place(output->target, path);
}

zipccl_status zipccl_output_spare(const struct zipccl_output *output, const char *path,
                                  struct zipccl_error *error)
{
    if (!zipccl_output_is(output, path))
        return ZIPCCL_OK;
    return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: an output must not overwrite an input",
                       output->path);
}

zipccl_status zipccl_output_differ(const struct zipccl_output *a, const struct zipccl_output *b,
                                   struct zipccl_error *error)
{
    if (a->path == NULL || b->path == NULL ||
        !((a->standard && b->standard) || zipccl_output_is(a, b->target)))
        return ZIPCCL_OK;
    return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: two outputs have the same path", a->path);
}

zipccl_status zipccl_output_open(struct zipccl_output *output, struct zipccl_error *error)
{
    if (output->path == NULL)
        return ZIPCCL_OK;
    if (output->standard) {
        output->file = stdout;
        return ZIPCCL_OK;
    }
    if (!output->direct)
        return open_partial(output, error);
    output->file = fopen(output->target, "w");
    if (output->file == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: cannot write: %s", output->path,
                           strerror(errno));
    return ZIPCCL_OK;
}

zipccl_status zipccl_output_close(struct zipccl_output *output, struct zipccl_error *error)
{
    if (output->file == NULL)
        return ZIPCCL_OK;
    if (output->standard) {
        output->file = NULL;
        return ZIPCCL_OK;
    }
    int failed = fflush(output->file) != 0 || ferror(output->file);
    int reason = errno;

    failed = fclose(output->file) != 0 || failed;
    output->file = NULL;
    if (failed)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: cannot write: %s", output->path,
                           strerror(reason));
    return ZIPCCL_OK;
}

zipccl_status zipccl_output_told(const struct zipccl_output *output, zipccl_status status,
                                 struct zipccl_error *error)
{
    struct zipccl_error reason = *error;

    if (status == ZIPCCL_OK)
        return status;
    if (output->standard && status == ZIPCCL_ERR_IO)
        return ZIPCCL_OK; /* zipccl_finish_output() tells */
    return zipccl_fail(error, status, "%.250s: cannot write: %.240s", output->path, reason.text);
}

zipccl_status zipccl_output_commit(struct zipccl_output *output, struct zipccl_error *error)
{
    if (output->partial[0] == '\0')
        return ZIPCCL_OK;
    if (rename(output->partial, output->target) != 0)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%s: cannot write: %s", output->path,
                           strerror(errno));
    output->partial[0] = '\0';
    return ZIPCCL_OK;
}

void zipccl_output_discard(struct zipccl_output *output)
{
    if (output->file != NULL && !output->standard)
        fclose(output->file);
    output->file = NULL;
    if (output->partial[0] != '\0')
        unlink(output->partial);
    output->partial[0] = '\0';
}

zipccl_status zipccl_output_named(const struct zipccl_output *output, zipccl_status status,
                                  struct zipccl_error *error)
{
    struct zipccl_error why = *error;

    if (status != ZIPCCL_ERR_IO || output->path == NULL)
        return status;
    if (output->standard)
        return ZIPCCL_OK; /* zipccl_finish_output() tells */
    return zipccl_fail(error, status, "%s: cannot write %.200s", output->path, why.text);
}
