/*
 * arena.h - memory of one owner that is freed all at once
 *
 * Used inside the traces layer for what a line or a whole trace holds.  It is no general
 * allocator: nothing is freed alone.
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#ifndef ZIPCCL_TRACES_ARENA_H
#define ZIPCCL_TRACES_ARENA_H

#include <stddef.h>

struct zipccl_arena_block;

/* All zero is an empty arena. */
struct zipccl_arena {
    struct zipccl_arena_block *head;
};

/* Return [n * size] zeroed bytes, aligned for any type; NULL if memory is out or n * size overflows.
 * Never NULL for a size of zero. */
void *zipccl_arena_alloc(struct zipccl_arena *arena, size_t n, size_t size);

/* Copy [nbytes] of 's' and end them with a NUL; NULL if memory is out. */
char *zipccl_arena_string(struct zipccl_arena *arena, const char *s, size_t nbytes);

/* Forget everything but keep one block for reuse. */
void zipccl_arena_reset(struct zipccl_arena *arena);

void zipccl_arena_free(struct zipccl_arena *arena);

#endif
