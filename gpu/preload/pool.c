/*
 * pool.c - device memory that this library needs for a moment, kept
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "gpu/preload/pool.h"

#include "gpu/preload/shim.h"

#include <pthread.h>
#include <stdlib.h>

/* Sizes are multiples of this, so that many fit one block. */
#define STEP ((size_t)4096)

/* What is idle on a device besides ZIPCCL_MEMORY at most: two windows of verify mode. */
#define BESIDES ((size_t)32 << 20)

struct block {
    void *memory;
    size_t nbytes;
    int device;
    bool idle;
    struct block *next;
};

static struct block *blocks;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The smallest idle block that is large enough, and no more than twice as large; under the lock. */
static struct block *fitting(int device, size_t nbytes)
{
    struct block *best = NULL;

    for (struct block *b = blocks; b != NULL; b = b->next)
        if (b->idle && b->device == device && b->nbytes >= nbytes && b->nbytes / 2 <= nbytes &&
            (best == NULL || b->nbytes < best->nbytes))
            best = b;
    return best;
}

static size_t idle_bytes(int device)
{
    size_t nbytes = 0;

    for (struct block *b = blocks; b != NULL; b = b->next)
        nbytes += b->idle && b->device == device ? b->nbytes : 0;
    return nbytes;
}

/* Take idle blocks of 'device' out of the list, to be freed without the lock. */
static struct block *take_idle(int device)
{
    struct block *taken = NULL, **at = &blocks, *b;

    while ((b = *at) != NULL) {
        if (!b->idle || b->device != device) {
            at = &b->next;
            continue;
        }
        *at = b->next;
        b->next = taken;
        taken = b;
    }
    return taken;
}

static void free_blocks(const struct zipccl_cuda *cuda, struct block *list)
{
    while (list != NULL) {
        struct block *next = list->next;

        (void)cuda->cudaFree(list->memory);
        free(list);
        list = next;
    }
}

void *zipccl_shim_pool_take(const struct zipccl_cuda *cuda, int device, size_t nbytes)
{
    struct block *block, *old = NULL;

    nbytes = (nbytes + STEP - 1) / STEP * STEP + (nbytes == 0 ? STEP : 0);
    pthread_mutex_lock(&lock);
    block = fitting(device, nbytes);
    if (block != NULL)
        block->idle = false;
    else if (idle_bytes(device) + nbytes > zipccl_shim.settings.memory_bytes + BESIDES)
        old = take_idle(device);
    pthread_mutex_unlock(&lock);
    if (block != NULL)
        return block->memory;
    free_blocks(cuda, old);
    block = malloc(sizeof *block);
    if (block == NULL)
        return NULL;
    *block = (struct block){.nbytes = nbytes, .device = device};
    if (cuda->cudaMalloc(&block->memory, nbytes) != cudaSuccess) {
        free(block);
        return NULL;
    }
    pthread_mutex_lock(&lock);
    block->next = blocks;
    blocks = block;
    pthread_mutex_unlock(&lock);
    return block->memory;
}

void zipccl_shim_pool_give(void *memory)
{
    pthread_mutex_lock(&lock);
    for (struct block *b = blocks; memory != NULL && b != NULL; b = b->next)
        if (b->memory == memory)
            b->idle = true;
    pthread_mutex_unlock(&lock);
}

void zipccl_shim_pool_lose(void *memory)
{
    struct block **at = &blocks, *b;

    pthread_mutex_lock(&lock);
    while (memory != NULL && (b = *at) != NULL) {
        if (b->memory != memory) {
            at = &b->next;
            continue;
        }
        *at = b->next;
        free(b);
        break;
    }
    pthread_mutex_unlock(&lock);
}

void zipccl_shim_pool_empty(const struct zipccl_cuda *cuda, int device)
{
    struct block *idle;

    pthread_mutex_lock(&lock);
    idle = take_idle(device);
    pthread_mutex_unlock(&lock);
    free_blocks(cuda, idle);
}
