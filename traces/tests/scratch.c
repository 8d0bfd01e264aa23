/*
 * scratch.c - temporary files of tests
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/tests/scratch.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

const char *scratch_folder(void)
{
    if (folder[0] == '\0') {
        snprintf(folder, sizeof folder, "/tmp/zipccl-test-%ld", (long)getpid());
        mkdir(folder, 0700);
    }
    return folder;
}

const char *scratch_path(char path[SCRATCH_PATH], const char *name)
{
    snprintf(path, SCRATCH_PATH, "%s/%s", scratch_folder(), name);
    return path;
}

const char *scratch_write(char path[SCRATCH_PATH], const char *name, const void *bytes,
                          size_t nbytes)
{
    FILE *file = fopen(scratch_path(path, name), "wb");

    if (file == NULL || fwrite(bytes, 1, nbytes, file) != nbytes || fclose(file) != 0)
        abort();
    return path;
}

char *scratch_read(const char *path, size_t *nbytes)
{
    FILE *file = fopen(path, "rb");
    char *bytes;
    long n;

    if (file == NULL)
        return NULL;
    fseek(file, 0, SEEK_END);
    n = ftell(file);
    rewind(file);
    bytes = malloc((size_t)n + 1);
    if (bytes == NULL || fread(bytes, 1, (size_t)n, file) != (size_t)n)
        abort();
    fclose(file);
    bytes[n] = '\0';
    *nbytes = (size_t)n;
    return bytes;
}

static size_t each(bool drop)
{
    DIR *dir = opendir(scratch_folder());
    struct dirent *entry;
    size_t n = 0;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        char path[SCRATCH_PATH * 2];

        if (entry->d_name[0] == '.')
            continue;
        n++;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (drop)
            remove(path);
    }
    if (dir != NULL)
        closedir(dir);
    return n;
}

size_t scratch_count(void)
{
    return each(false);
}

void scratch_remove(void)
{
    each(true);
    rmdir(folder);
}
