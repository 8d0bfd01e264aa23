/*
 * log.h - lines for people, as ZIPCCL_DEBUG and ZIPCCL_DEBUG_FILE want them
 *
 * Levels and file names are NCCL's: WARN or INFO, and %h and %p for host and process.  Without a file
 * lines go to stderr, so that a job's own output stays as it is.  Nothing is logged per call.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_GPU_PRELOAD_LOG_H
#define ZIPCCL_GPU_PRELOAD_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Level "WARN" (default) or "INFO", file NULL or "", which is opened with the first line and stays
 * borrowed; false if the level is neither. */
bool zipccl_log_open(const char *level, const char *file);

void zipccl_log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void zipccl_log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* As zipccl_log_warn(), but once for each 'key' (the first 64 of them). */
void zipccl_log_warn_once(const char *key, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Replace %h by the host's name, %p by the process id and %% by %. */
void zipccl_log_expand(const char *name, char *out, size_t room);

/* A stream for several lines, which zipccl_log_unlock() gives back; never NULL. */
FILE *zipccl_log_lock(void);
void zipccl_log_unlock(FILE *out);

#endif
