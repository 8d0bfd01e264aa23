/*
 * scratch.h - temporary files of tests
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_TESTS_SCRATCH_H
#define ZIPCCL_TRACES_TESTS_SCRATCH_H

#include <stdbool.h>
#include <stddef.h>

#define SCRATCH_PATH 256

/* A folder of this process, made at the first call; the same one later. */
const char *scratch_folder(void);

/* 'path' = folder/name. */
const char *scratch_path(char path[SCRATCH_PATH], const char *name);

/* Write a file and return its path. */
const char *scratch_write(char path[SCRATCH_PATH], const char *name, const void *bytes,
                          size_t nbytes);

/* Read a whole file; malloc, NUL after the end.  NULL if there is none. */
char *scratch_read(const char *path, size_t *nbytes);

/* Files in the folder. */
size_t scratch_count(void);

/* Remove the folder and what is in it. */
void scratch_remove(void);

#endif
