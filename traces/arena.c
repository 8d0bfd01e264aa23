/*
 * arena.c - memory of one owner that is freed all at once
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "traces/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ALIGNMENT    (alignof(max_align_t))
#define FIRST_BLOCK  ((size_t)1 << 14)
#define LARGEST_STEP ((size_t)1 << 20) /* also the most that reset keeps */

struct zipccl_arena_block {
    struct zipccl_arena_block *next;
    size_t used, capacity;
    alignas(max_align_t) unsigned char bytes[];
};

static struct zipccl_arena_block *add_block(struct zipccl_arena *arena, size_t need)
{
    size_t capacity = arena->head != NULL ? arena->head->capacity : FIRST_BLOCK / 2;
    struct zipccl_arena_block *block;

    capacity = capacity < LARGEST_STEP / 2 ? capacity * 2 : LARGEST_STEP;
    if (capacity < need)
        capacity = need;
    if (capacity > SIZE_MAX - sizeof *block)
        return NULL;
    block = malloc(sizeof *block + capacity);
    if (block == NULL)
        return NULL;
    block->next = arena->head;
    block->used = 0;
    block->capacity = capacity;
    arena->head = block;
    return block;
}

void *zipccl_arena_alloc(struct zipccl_arena *arena, size_t n, size_t size)
{
    struct zipccl_arena_block *block = arena->head;
    size_t need;
    void *p;

    if (size != 0 && n > (SIZE_MAX - ALIGNMENT) / size)
        return NULL;
    need = n * size;
    need = need == 0 ? ALIGNMENT : (need + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (block == NULL || block->capacity - block->used < need) {
        block = add_block(arena, need);
        if (block == NULL)
            return NULL;
    }
    p = block->bytes + block->used;
    block->used += need;
    memset(p, 0, need);
    return p;
}

char *zipccl_arena_string(struct zipccl_arena *arena, const char *s, size_t nbytes)
{
    char *copy = nbytes < SIZE_MAX ? zipccl_arena_alloc(arena, nbytes + 1, 1) : NULL;

    if (copy != NULL && nbytes > 0)
        memcpy(copy, s, nbytes);
    return copy;
}

void zipccl_arena_reset(struct zipccl_arena *arena)
{
    struct zipccl_arena_block *keep = arena->head;

    if (keep == NULL)
        return;
    if (keep->capacity > LARGEST_STEP) {
        zipccl_arena_free(arena);
        return;
    }
    arena->head = keep->next;
    zipccl_arena_free(arena);
    keep->next = NULL;
    keep->used = 0;
    arena->head = keep;
}

void zipccl_arena_free(struct zipccl_arena *arena)
{
    struct zipccl_arena_block *block = arena->head;

    while (block != NULL) {
        struct zipccl_arena_block *next = block->next;

        free(block);
        block = next;
    }
    arena->head = NULL;
}
