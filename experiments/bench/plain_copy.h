/*
 * plain_copy.h - copies to measure a codec against, and data pushed out of the caches
 *
 * glibc's memcpy does not always go past the caches where that pays, so at large sizes "as fast as
 * a copy" needs the best copy beside it.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_EXPERIMENTS_PLAIN_COPY_H
#define ZIPCCL_EXPERIMENTS_PLAIN_COPY_H

#include <stdbool.h>
#include <stddef.h>

struct zipccl_plain_copy {
    const char *name;
    void (*copy)(void *dst, const void *src, size_t nbytes);
};

/* Copies beside memcpy that this machine can run; at most ZIPCCL_MAX_COPIES, 0 off x86-64. */
#define ZIPCCL_MAX_COPIES 3
size_t zipccl_plain_copies(struct zipccl_plain_copy copies[ZIPCCL_MAX_COPIES]);

/* True if zipccl_evict() works here: x86-64 with clflushopt. */
bool zipccl_can_evict(void);

/* Push 'nbytes' at 'p' out of all caches, back to memory. */
void zipccl_evict(const void *p, size_t nbytes);

#endif
