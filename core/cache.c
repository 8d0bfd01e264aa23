/*
 * cache.c - the list and the chains of a cache
 *
 * SPDX-License-Identifier: Apache-2.0
 */
#include "core/cache.h"

static struct zipccl_cache_node *with_hash(struct zipccl_cache_node *node, uint64_t hash)
{
    while (node != NULL && node->hash != hash)
        node = node->chain;
    return node;
}

struct zipccl_cache_node *zipccl_cache_first(const struct zipccl_cache *cache, uint64_t hash)
{
    return with_hash(cache->chains[hash % ZIPCCL_CACHE_CHAINS], hash);
}

struct zipccl_cache_node *zipccl_cache_next(const struct zipccl_cache_node *node)
{
    return with_hash(node->chain, node->hash);
}

static void link_newest(struct zipccl_cache *cache, struct zipccl_cache_node *node)
{
    node->newer = NULL;
    node->older = cache->newest;
    if (cache->newest != NULL)
        cache->newest->newer = node;
    else
        cache->oldest = node;
    cache->newest = node;
}

static void unlink_node(struct zipccl_cache *cache, struct zipccl_cache_node *node)
{
    *(node->newer != NULL ? &node->newer->older : &cache->newest) = node->older;
    *(node->older != NULL ? &node->older->newer : &cache->oldest) = node->newer;
}

void zipccl_cache_add(struct zipccl_cache *cache, struct zipccl_cache_node *node, uint64_t hash)
{
    struct zipccl_cache_node **chain = &cache->chains[hash % ZIPCCL_CACHE_CHAINS];

    node->hash = hash;
    node->chain = *chain;
    *chain = node;
    link_newest(cache, node);
    cache->n++;
}

void zipccl_cache_use(struct zipccl_cache *cache, struct zipccl_cache_node *node)
{
    if (cache->newest == node)
        return;
    unlink_node(cache, node);
    link_newest(cache, node);
}

void zipccl_cache_remove(struct zipccl_cache *cache, struct zipccl_cache_node *node)
{
    struct zipccl_cache_node **chain = &cache->chains[node->hash % ZIPCCL_CACHE_CHAINS];

    while (*chain != node)
        chain = &(*chain)->chain;
    *chain = node->chain;
    unlink_node(cache, node);
    cache->n--;
}
