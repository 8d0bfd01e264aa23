/*
 * regular_file.c - opens files that are read whole, and nothing that a reader would wait for
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/regular_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

zipccl_status zipccl_open_regular(const char *path, FILE **out, struct zipccl_error *error)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    int reason;

    *out = NULL;
    if (fd < 0)
        return zipccl_fail(error, ZIPCCL_ERR_IO, "%.300s: %s", path, strerror(errno));
    if (fstat(fd, &info) == 0 && !S_ISREG(info.st_mode)) {
        close(fd);
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%.300s: found a %s, expected a regular file",
                           path,
                           S_ISDIR(info.st_mode)    ? "folder"
                           : S_ISFIFO(info.st_mode) ? "pipe"
                                                    : "device");
    }
    *out = fdopen(fd, "rb");
    if (*out != NULL)
        return ZIPCCL_OK;
    reason = errno;
    close(fd);
    return zipccl_fail(error, ZIPCCL_ERR_IO, "%.300s: %s", path, strerror(reason));
}
