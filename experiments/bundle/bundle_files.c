/*
 * bundle_files.c - reads the files of a bundle, packed with gzip or not
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "experiments/bundle/bundle_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* More than any result, and less than what would fill a disk. */
#define MOST_BYTES ((size_t)256 << 20)

/* First buffer; one that is full is doubled. */
#define FIRST ((size_t)64 << 10)

/* The folder in which 'path' stands, resolved; the caller frees it. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *name = slash == NULL ? strdup(".") : strndup(path, (size_t)(slash - path) + 1);
    char *folder = name != NULL ? realpath(name, NULL) : NULL;

    free(name);
    return folder;
}

/* A link may lead to a file below the folder in which it stands, and nowhere else. */
static zipccl_status check_link(const char *path, struct zipccl_error *error)
{
    char *folder = folder_of(path), *target = realpath(path, NULL);
    zipccl_status status = ZIPCCL_OK;
    size_t n = folder != NULL ? strlen(folder) : 0;

    if (folder == NULL || target == NULL)
        status = zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: %s", path, strerror(errno));
    else if (n > 1 && (strncmp(target, folder, n) != 0 || target[n] != '/'))
        status = zipccl_fail(error, ZIPCCL_ERR_INPUT,
                             "%s: a symbolic link out of its folder, expected a file in it", path);
    free(folder);
    free(target);
    return status;
}

/* Open without waiting for the other end of a FIFO; -1 and the error if it is no regular file. */
static int open_regular(const char *path, struct zipccl_error *error)
{
    struct stat info;
    int fd;

    fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) != 0) {
        zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: %s", path, strerror(errno));
    } else if (!S_ISREG(info.st_mode)) {
        zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: a %s, expected a regular file", path,
                    S_ISDIR(info.st_mode)    ? "folder"
                    : S_ISFIFO(info.st_mode) ? "FIFO"
                                             : "device or socket");
    } else if (check_link(path, error) == ZIPCCL_OK) {
        return fd;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

/* All of it, unpacked. */
static zipccl_status read_all(gzFile in, const char *path, char **out, size_t *nbytes,
                              struct zipccl_error *error)
{
    size_t size = FIRST, n = 0;
    int got = 1, code;

    if ((*out = malloc(size)) == NULL)
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path);
    while (n <= MOST_BYTES && (got = gzread(in, *out + n, (unsigned)(size - n))) > 0) {
        n += (size_t)got;
        if (n == size) {
            char *larger = realloc(*out, size * 2);

            if (larger == NULL)
                return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path);
            *out = larger;
            size *= 2;
        }
    }
    *nbytes = n;
    if (n > MOST_BYTES)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: expected at most %zu MiB, unpacked", path,
                           MOST_BYTES >> 20);
    gzerror(in, &code);
    if (got < 0 || code != Z_OK)
        return zipccl_fail(error, ZIPCCL_ERR_INPUT, "%s: damaged or cut gzip, or not to be read",
                           path);
    return ZIPCCL_OK;
}

zipccl_status zipccl_bundle_read(const char *path, char **out, size_t *nbytes, bool *packed,
                                 struct zipccl_error *error)
{
    size_t length = strlen(path);
    bool named = length > 3 && strcmp(path + length - 3, ".gz") == 0;
    int fd = open_regular(path, error);
    zipccl_status status = ZIPCCL_OK;
    gzFile in;

    *out = NULL;
    if (fd < 0)
        return ZIPCCL_ERR_INPUT;
    if ((in = gzdopen(fd, "rb")) == NULL) {
        close(fd);
        return zipccl_fail(error, ZIPCCL_ERR_NOMEM, "%s: out of memory", path);
    }
    *packed = !gzdirect(in);
    if (*packed != named)
        status = zipccl_fail(error, ZIPCCL_ERR_INPUT,
                             *packed ? "%s: packed with gzip, expected a name that ends in .gz"
                                     : "%s: not packed with gzip, expected that of a name in .gz",
                             path);
    else
        status = read_all(in, path, out, nbytes, error);
    gzclose(in);
    if (status != ZIPCCL_OK) {
        free(*out);
        *out = NULL;
    }
    return status;
}

zipccl_status zipccl_bundle_pack(char **text, size_t *nbytes)
{
    z_stream z = {.next_in = (Bytef *)*text, .avail_in = (uInt)*nbytes};
    size_t most;
    Bytef *out;

    /* 15 bits and a header of gzip, which has no name and no time. */
    if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return ZIPCCL_ERR_NOMEM;
    most = deflateBound(&z, *nbytes);
    if ((out = malloc(most)) == NULL) {
        deflateEnd(&z);
        return ZIPCCL_ERR_NOMEM;
    }
    z.next_out = out;
    z.avail_out = (uInt)most;
    deflate(&z, Z_FINISH); /* 'most' is enough */
    *nbytes = z.total_out;
    deflateEnd(&z);
    free(*text);
    *text = (char *)out;
    return ZIPCCL_OK;
}
