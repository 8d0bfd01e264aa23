/*
 * file.c - the file through which a fuzz target feeds a reader
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char path[64];

static void drop(void)
{
    unlink(path);
}

const char *zipccl_fuzz_file(const uint8_t *data, size_t nbytes)
{
    FILE *file;

    if (path[0] == '\0') {
        snprintf(path, sizeof path, "/tmp/zipccl-fuzz-%ld", (long)getpid());
        atexit(drop);
    }
    /* Some file systems flush a file that was cut to nothing and written again; a new one is fast. */
    unlink(path);
    file = fopen(path, "wb");
    if (file == NULL || fwrite(data, 1, nbytes, file) != nbytes || fclose(file) != 0)
        abort();
    return path;
}
